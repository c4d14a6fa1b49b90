// Dense constants: bytes to text and back, equality and hashes by content, folding, emission.
#include <string>

#include "check.h"
#include "weft/emit.h"
#include "weft/held.h"
#include "weft/passes.h"
#include "weft/registry.h"

using namespace weft;

namespace {

std::string program(std::string_view value, std::string_view type) {
  return cat("{ lambda ; . let a:", type, " = constant[value=", value, "] in (a,) }");
}

std::string simplified(std::string_view value, std::string_view type) {
  std::string passes[] = {"simplify", "dce"};
  return print(*run_passes(parse(program(value, type)), passes));
}

}  // namespace

TEST(constants_round_trip) {
  const std::string_view cases[][2] = {{"f32[2]:0x0000803F00000040", "f32[2]"},
                                       {"i8[3]:0xFF00F0", "i8[3]"},
                                       {"bool[2]:0x0001", "bool[2]"},
                                       {"f64[0,3]:0x", "f64[0,3]"},
                                       {"i4[2]:0x0F01", "i4[2]"}};
  for (const auto& [value, type] : cases) {
    GraphRef graph = parse(program(value, type));
    CHECK_EQ(print(*graph), program(value, type));
    CHECK(equal(*parse(print(*graph)), *graph));
    CHECK(is_portable(*graph));
    verify(*graph);
    emit_stablehlo(*graph);
  }
}

TEST(constants_are_compared_by_content) {
  auto constant = [](std::string bytes) {
    return make_constant(make_type(DType::kI8, Dims{2}), std::move(bytes));
  };
  CHECK(constant("ab")->equals(*constant("ab")));
  CHECK(!constant("ab")->equals(*constant("ac")));
  CHECK_EQ(constant("ab")->content_hash(), constant("ab")->content_hash());
  CHECK(constant("ab")->content_hash() != constant("ac")->content_hash());
  // Bits that an int4 does not have do not tell two apart.
  TypeRef i4 = make_type(DType::kI4, Dims{1});
  CHECK(make_constant(i4, "\xff")->equals(*make_constant(i4, "\x0f")));
  CHECK_THROWS(kValue, "expected 2 bytes for the elements of i8[2]; got 3", constant("abc"));
}

TEST(equal_elements_fold) {
  CHECK_EQ(simplified("f32[2]:0x0000803F0000803F", "f32[2]"),
           "{ lambda ; . let a:f32[2] = broadcast_in_dim 1.0:f32[] in (a,) }");
  CHECK_EQ(simplified("f32[]:0x00000080", "f32[]"), "{ lambda ; . let  in (-0.0:f32[],) }");
  CHECK_EQ(simplified("f16[]:0x003C", "f16[]"), "{ lambda ; . let  in (1.0:f16[],) }");
  CHECK_EQ(simplified("f16[]:0x0100", "f16[]"),
           "{ lambda ; . let  in (5.960464477539063e-08:f16[],) }");
  CHECK_EQ(simplified("bf16[]:0x80BF", "bf16[]"), "{ lambda ; . let  in (-1.0:bf16[],) }");
  CHECK_EQ(simplified("i4[2]:0x0F0F", "i4[2]"),
           "{ lambda ; . let a:i4[2] = broadcast_in_dim -1:i4[] in (a,) }");
  CHECK_EQ(simplified("c64[]:0x0000803F00000040", "c64[]"),
           "{ lambda ; . let  in ((1+2j):c64[],) }");
  // Zeros differ; a literal would not keep the bits of a nan.
  for (auto [value, type] :
       {std::pair("f32[2]:0x0000000000000080", "f32[2]"), std::pair("f32[]:0x0100C07F", "f32[]")})
    CHECK_EQ(simplified(value, type), program(value, type));
}

TEST(constant_errors) {
  CHECK_THROWS(kParse, "expected 8 bytes for the elements of f32[2]; got 4",
               parse(program("f32[2]:0x0000803F", "f32[2]")));
  CHECK_THROWS(kParse, "0x0123..EF", parse(program("f32[1]:0x000080GF", "f32[1]")));
  CHECK_THROWS(kParse, "0x0123..EF", parse(program("f32[1]:0x000080F", "f32[1]")));
  CHECK_THROWS(kParse, "elements of a constant", parse(program("f32[1]", "f32[1]")));
  CHECK_THROWS(kParse, "fewer than 2**60 bytes",
               parse(program("f32[9223372036854775807]:0x", "f32[1]")));
}
