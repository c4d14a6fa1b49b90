// What reductions, dot_general and calls refuse, each with its message; and their simplifications.
#include "check.h"
#include "ops_cases.h"

using namespace weft;
using namespace weft::test;

namespace {

using Lists = std::vector<Dims>;

}  // namespace

TEST(reduction_errors) {
  auto reduce = [](std::string_view op, std::string_view x, Dims axes) {
    return OpCase(op, {x}, {{"axes", axes}});
  };
  CHECK_THROWS(kDtype, "[reduce_sum]", reduce("reduce_sum", "bool[2]", {0}));
  CHECK_EQ(cat(reduce("reduce_max", "c64[2]", {0}).out_types[0]), "c64[]");
  CHECK_THROWS(kDtype, "[reduce_and]", reduce("reduce_and", "f32[2]", {0}));
  CHECK_THROWS(kValue, "[reduce_sum] expected axes between 0 and 0",
               reduce("reduce_sum", "f32[2]", {1}));
  CHECK_THROWS(kValue, "expected distinct axes", reduce("reduce_sum", "f32[2]", {0, 0}));
}

TEST(argmax_errors) {
  auto argmax = [](std::string_view x, Dims axes, DType index) {
    return OpCase("argmax", {x}, {{"axes", axes}, {"index_dtype", index}});
  };
  CHECK_THROWS(kDtype, "[argmax] expected bool, integer or float; got operand 0: c64[2]",
               argmax("c64[2]", {0}, DType::kI32));
  CHECK_THROWS(kDtype, "integer index_dtype; got float32", argmax("f32[2]", {0}, DType::kF32));
  CHECK_THROWS(kValue, "expected one axis", argmax("f32[2,2]", {0, 1}, DType::kI32));
  CHECK_THROWS(kValue, "expected axes between 0 and 0", argmax("f32[2]", {1}, DType::kI32));
  CHECK_THROWS(kShape, "an axis with elements", argmax("f32[2,0]", {1}, DType::kI32));
}

TEST(reduce_errors) {
  auto reduce = [](std::initializer_list<std::string_view> operands, Dims dimensions) {
    return OpCase("reduce", operands, {{"dimensions", dimensions}, {"jaxpr", larger_pair()}});
  };
  CHECK_THROWS(kType, "as many initial values", reduce({}, {}));
  CHECK_THROWS(kType, "as many initial values", reduce({"f32[3]", "i32[3]", "f32[]"}, {0}));
  CHECK_THROWS(kType, "a jaxpr of 2 inputs", reduce({"f32[3]", "f32[]"}, {0}));
  CHECK_THROWS(kShape, "operands of one shape",
               reduce({"f32[3]", "i32[4]", "f32[]", "i32[]"}, {0}));
  CHECK_THROWS(kType, "initial value 1 to be i32",
               reduce({"f32[3]", "i32[3]", "f32[]", "f32[]"}, {0}));
  CHECK_THROWS(kType, "to take and return i32",
               reduce({"i32[3]", "i32[3]", "i32[]", "i32[]"}, {0}));
  CHECK_THROWS(kValue, "dimensions between", reduce({"f32[3]", "i32[3]", "f32[]", "i32[]"}, {1}));
}

TEST(dot_general_errors) {
  auto dot = [](std::string_view x, std::string_view y, Lists numbers, Attr precision = {},
                Attr preferred = {}) {
    return OpCase("dot_general", {x, y},
                  {{"dimension_numbers", numbers},
                   {"precision", precision},
                   {"preferred_element_type", preferred}});
  };
  Lists matmul = {{1}, {0}, {}, {}};
  CHECK_THROWS(kShape, "contracting axes of equal sizes (dot_general C10)",
               dot("f32[2,3]", "f32[4,2]", matmul));
  CHECK_THROWS(kValue, "as many contracting axes", dot("f32[2,3]", "f32[3]", {{1}, {}, {}, {}}));
  CHECK_THROWS(kValue, "(dot_general C1)", dot("f32[2]", "f32[2]", {{}, {}, {0}, {}}));
  CHECK_THROWS(kShape, "batch axes of equal sizes (dot_general C9)",
               dot("f32[2]", "f32[3]", {{}, {}, {0}, {0}}));
  CHECK_THROWS(kValue, "distinct lhs dimension_numbers",
               dot("f32[2]", "f32[2,2]", {{0}, {0}, {0}, {1}}));
  CHECK_THROWS(kValue, "rhs dimension_numbers between 0 and 0",
               dot("f32[2]", "f32[2]", {{0}, {1}, {}, {}}));
  CHECK_THROWS(kValue, "of 4 lists", dot("f32[2]", "f32[2]", {{0}, {0}}));
  CHECK_THROWS(kValue, "got FASTEST", dot("f32[2,3]", "f32[3,2]", matmul, std::string("FASTEST")));
  CHECK_THROWS(kDtype, "preferred_element_type that holds int32; got preferred_element_type=int8",
               dot("i32[2,3]", "i32[3,2]", matmul, {}, DType::kI8));
  CHECK_THROWS(kDtype, "preferred_element_type that holds float32",
               dot("f32[2,3]", "f32[3,2]", matmul, {}, DType::kI32));
}

TEST(dot_general_result_dtypes) {
  auto dtype = [](std::string_view x, std::string_view y, Attr preferred) {
    OpCase c(
        "dot_general", {x, y},
        {{"dimension_numbers", Lists{{0}, {0}, {}, {}}}, {"preferred_element_type", preferred}});
    return short_name(c.out_types[0]->dtype());
  };
  CHECK_EQ(dtype("f32[2]", "f32[2]", {}), "f32");
  CHECK_EQ(dtype("bf16[2]", "f32[2]", {}), "f32");
  CHECK_EQ(dtype("bf16[2]", "bf16[2]", DType::kF32), "f32");
  CHECK_EQ(dtype("f32[2]", "f32[2]", DType::kBF16), "bf16");
  CHECK_EQ(dtype("i8[2]", "i8[2]", DType::kI32), "i32");
  CHECK_EQ(dtype("i8[2]", "i8[2]", DType::kF32), "f32");
  CHECK_EQ(dtype("bool[2]", "bool[2]", {}), "bool");
  CHECK_EQ(dtype("f8_e4m3fn[2]", "f8_e5m2[2]", {}), "f8_e5m2");
  CHECK_EQ(dtype("f16[2]", "bf16[2]", {}), "bf16");
  CHECK_EQ(dtype("u32[2]", "i8[2]", {}), "u32");
  CHECK_EQ(dtype("u8[2]", "i8[2]", {}), "i8");
  CHECK_EQ(dtype("c64[2]", "f64[2]", {}), "c64");
}

TEST(call_errors) {
  GraphRef callee = parse("{ lambda ; a:f32[3]. let b:f32[3] = neg a in (b, a) }");
  CHECK_EQ(OpCase("jit", {"f32[3]"}, {{"jaxpr", callee}}).out_types.size(), 2u);
  CHECK_THROWS(kType, "[jit] expected 1 operands, one per input of jaxpr; got 0",
               OpCase("jit", {}, {{"jaxpr", callee}}));
  CHECK_THROWS(kType, "expected operand 0 of type f32[3], as input 0 of body; got f32[4]",
               OpCase("fusion", {"f32[4]"}, {{"body", callee}}));
}

TEST(reduction_simplifications) {
  CHECK_EQ(simplified("{ lambda ; a:f32[1,3]. let b:f32[3] = reduce_sum[axes=(0,)] a in (b,) }"),
           "{ lambda ; a:f32[1,3]. let b:f32[3] = reshape[new_sizes=(3,)] a in (b,) }");
  CHECK_EQ(simplified("{ lambda ; a:f32[3]. let b:f32[3] = reduce_max[axes=()] a in (b,) }"),
           "{ lambda ; a:f32[3]. let  in (a,) }");
  CHECK_EQ(simplified("{ lambda ; a:f32[2,3,4]. let b:f32[2,4] = reduce_max[axes=(1,)] a"
                      " c:f32[2] = reduce_max[axes=(1,)] b in (c,) }"),
           "{ lambda ; a:f32[2,3,4]. let b:f32[2] = reduce_max[axes=(1, 2)] a in (b,) }");
  std::string sums =
      "{ lambda ; a:f32[2,3]. let\n"
      "    b:f32[2] = reduce_sum[axes=(1,)] a\n"
      "    c:f32[] = reduce_sum[axes=(0,)] b\n"
      "  in (c,) }";
  CHECK_EQ(simplified(sums), sums);
}
