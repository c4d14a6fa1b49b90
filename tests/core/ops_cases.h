// One or more cases of every op that moves, reduces or contracts, and the sets of operands in
// which it is linear.
#pragma once

#include <vector>

#include "rules.h"

namespace weft::test {

struct RuleCase {
  OpCase op;
  std::vector<std::vector<size_t>> linear = {};
  bool differentiable = true;
};

// (a, i, b, j) -> the pair with the larger first part.
inline GraphRef larger_pair() {
  GraphBuilder b;
  auto input = [&](DType d) { return Val{&b, b.input(scalar_type(d))}; };
  Val x = input(DType::kF32), i = input(DType::kI32), y = input(DType::kF32),
      j = input(DType::kI32);
  Val first = gt(x, y);
  Value outputs[] = {select(first, x, y).value, select(first, i, j).value};
  return b.finish(outputs);
}

inline std::vector<RuleCase> rule_cases() {
  using V = std::vector<Dims>;
  const int64_t one = 1;
  std::vector<RuleCase> cases = {
      {{"reshape", {"f32[2,3,4]"}, {{"new_sizes", Dims{6, 4}}}}, {{0}}},
      {{"reshape", {"f32[2,3]"}, {{"new_sizes", Dims{3, 1, 2}}}}, {{0}}},
      {{"reshape", {"f32[1]"}, {{"new_sizes", Dims{}}}}, {{0}}},
      {{"reshape", {"f32[0,3]"}, {{"new_sizes", Dims{2, 0}}}}, {{0}}},
      {{"squeeze", {"f32[1,3,1]"}, {{"dimensions", Dims{2, 0}}}}, {{0}}},
      {{"broadcast_in_dim",
        {"f32[1,3]"},
        {{"shape", Dims{2, 4, 5, 3}}, {"broadcast_dimensions", Dims{1, 3}}}},
       {{0}}},
      {{"broadcast_in_dim", {"f32[]"}, {{"shape", Dims{2, 3}}}}, {{0}}},
      {{"broadcast_in_dim",
        {"f32[1,2]"},
        {{"shape", Dims{0, 2}}, {"broadcast_dimensions", Dims{0, 1}}}},
       {{0}}},
      {{"transpose", {"f32[2,3,4]"}, {{"permutation", Dims{1, 2, 0}}}}, {{0}}},
      {{"transpose", {"f32[]"}, {{"permutation", Dims{}}}}, {{0}}},
      {{"rev", {"f32[2,3]"}, {{"dimensions", Dims{1}}}}, {{0}}},
      {{"rev", {"f32[]"}, {{"dimensions", Dims{}}}}, {{0}}},
      {{"concatenate", {"f32[2,3]", "f32[2,0]", "f32[2,2]"}, {{"dimension", one}}},
       {{0, 1, 2}, {0, 2}, {1}}},
      {{"pad", {"f32[3,2]", "f32[]"}, {{"padding_config", V{{1, 2, 1}, {0, 1, 0}}}}},
       {{0, 1}, {0}, {1}}},
      {{"pad", {"f32[4,5]", "f32[]"}, {{"padding_config", V{{-1, 2, 0}, {-2, -3, 2}}}}},
       {{0, 1}, {0}}},
      {{"pad", {"f32[0]", "f32[]"}, {{"padding_config", V{{1, 2, 3}}}}}, {{0, 1}}},
      {{"pad", {"f32[]", "f32[]"}, {{"padding_config", V{}}}}, {{0, 1}}},
      {{"split", {"f32[2,6]"}, {{"axis", one}, {"sizes", Dims{1, 0, 5}}}}, {{0}}},
      {{"slice",
        {"f32[4,7]"},
        {{"start_indices", Dims{1, 1}}, {"limit_indices", Dims{3, 7}}, {"strides", Dims{1, 3}}}},
       {{0}}},
      {{"slice", {"f32[4,7]"}, {{"start_indices", Dims{4, 0}}, {"limit_indices", Dims{4, 7}}}},
       {{0}}},
      {{"slice", {"f32[]"}, {{"start_indices", Dims{}}, {"limit_indices", Dims{}}}}, {{0}}},
      {{"dynamic_slice", {"f32[5,6]", "i32[]", "i32[]"}, {{"slice_sizes", Dims{2, 3}}}}, {{0}}},
      {{"dynamic_slice", {"f32[5,0]", "u8[]", "u8[]"}, {{"slice_sizes", Dims{5, 0}}}}, {{0}}},
      {{"dynamic_slice", {"f32[]"}, {{"slice_sizes", Dims{}}}}, {{0}}},
      {{"dynamic_update_slice", {"f32[5,6]", "f32[2,3]", "i32[]", "i32[]"}}, {{0, 1}, {0}, {1}}},
      {{"dynamic_update_slice", {"f32[300]", "f32[7]", "i8[]"}}, {{0, 1}}},
      {{"dynamic_update_slice", {"f32[]", "f32[]"}}, {{0, 1}}},
      {{"reduce_sum", {"f32[2,3,4]"}, {{"axes", Dims{0, 2}}}}, {{0}}},
      {{"reduce_sum", {"f32[0,3]"}, {{"axes", Dims{0}}}}, {{0}}},
      {{"reduce_prod", {"f32[2,3,5]"}, {{"axes", Dims{2, 0}}}}},
      {{"reduce_prod", {"f32[3,0]"}, {{"axes", Dims{1}}}}},
      {{"reduce_max", {"f32[2,3,4]"}, {{"axes", Dims{1}}}}},
      {{"reduce_min", {"f32[2,3]"}, {{"axes", Dims{0, 1}}}}},
      {{"reduce_max", {"bool[2,3]"}, {{"axes", Dims{1}}}}, {}, false},
      {{"reduce_and", {"i32[2,3]"}, {{"axes", Dims{0}}}}, {}, false},
      {{"reduce_or", {"bool[2,3]"}, {{"axes", Dims{0}}}}, {}, false},
      {{"reduce_xor", {"u8[2,3]"}, {{"axes", Dims{}}}}, {}, false},
      {{"argmax", {"f32[2,3]"}, {{"axes", Dims{1}}, {"index_dtype", DType::kI32}}}, {}, false},
      {{"argmin", {"u8[3,2]"}, {{"axes", Dims{0}}, {"index_dtype", DType::kU8}}}, {}, false},
      {{"reduce",
        {"f32[3,4]", "i32[3,4]", "f32[]", "i32[]"},
        {{"dimensions", Dims{1}}, {"jaxpr", larger_pair()}}},
       {},
       false},
  };
  struct Dot {
    std::string_view lhs, rhs;
    V numbers;
  };
  for (const Dot& d : {
           Dot{"f32[3]", "f32[3]", {{0}, {0}, {}, {}}},
           Dot{"f32[2,3]", "f32[3,4]", {{1}, {0}, {}, {}}},
           Dot{"f32[2,5,3]", "f32[5,3,4,2]", {{1, 2}, {0, 1}, {0}, {3}}},
           Dot{"f32[3,2,5]", "f32[5,4,3]", {{2, 0}, {0, 2}, {}, {}}},
           Dot{"f32[2,3]", "f32[4]", {{}, {}, {}, {}}},
           Dot{"f32[2,3]", "f32[3,2]", {{}, {}, {0, 1}, {1, 0}}},
           Dot{"f32[2,0]", "f32[0,3]", {{1}, {0}, {}, {}}},
       })
    cases.push_back(
        {{"dot_general", {d.lhs, d.rhs}, {{"dimension_numbers", d.numbers}}}, {{0}, {1}}});
  cases.push_back(
      {{"dot_general",
        {"bf16[2,3]", "bf16[3,4]"},
        {{"dimension_numbers", V{{1}, {0}, {}, {}}}, {"preferred_element_type", DType::kF32}}},
       {{0}, {1}}});
  return cases;
}

}  // namespace weft::test
