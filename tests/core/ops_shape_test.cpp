// What the ops that move elements refuse, each with its message; and their simplifications.
#include "check.h"
#include "rules.h"

using namespace weft;
using namespace weft::test;

namespace {

using Lists = std::vector<Dims>;
constexpr int64_t kZero = 0, kOne = 1;

}  // namespace

TEST(reshape_errors) {
  CHECK_THROWS(kShape, "6 elements in all (reshape C2); got new_sizes=(4,) (operand: f32[2,3])",
               OpCase("reshape", {"f32[2,3]"}, {{"new_sizes", Dims{4}}}));
  CHECK_THROWS(kShape, "got new_sizes=(-2, -3)",
               OpCase("reshape", {"f32[2,3]"}, {{"new_sizes", Dims{-2, -3}}}));
}

// Sizes that do not fit 64 bits are refused, not computed with.
TEST(huge_numbers) {
  CHECK_THROWS(
      kShape, "got new_sizes=(4294967296, 4294967296)",
      OpCase("reshape", {"f32[0]"}, {{"new_sizes", Dims{int64_t{1} << 32, int64_t{1} << 32}}}));
  auto pad = [](Dims config) {
    return OpCase("pad", {"f32[3]", "f32[]"}, {{"padding_config", Lists{config}}});
  };
  CHECK_THROWS(kShape, "below 2**62", pad({0, 0, int64_t{1} << 61}));
  CHECK_THROWS(kShape, "fewer than 2**60 bytes", pad({0, 0, int64_t{1} << 60}));
  CHECK_THROWS(kValue, "padding between -2**62 and 2**62", pad({INT64_MIN, INT64_MAX, 0}));
  CHECK_THROWS(kValue, "padding between -2**62 and 2**62", pad({INT64_MAX, INT64_MAX, INT64_MAX}));
  CHECK_THROWS(kParse, "result size below 2**62 for axis 0",
               parse("{ lambda ; a:i2[4611686018427387900]. let b:i2[2] = "
                     "concatenate[dimension=0] a a a in (b,) }"));
  CHECK_THROWS(
      kValue, "that add up to 3",
      OpCase("split", {"f32[3]"}, {{"axis", kZero}, {"sizes", Dims{INT64_MAX, INT64_MAX, 5}}}));
  auto slice = [](int64_t stride) {
    return print(
        *parse(cat("{ lambda ; a:f32[10]. let b:f32[1] = slice[limit_indices=(10,) "
                   "start_indices=(0,) strides=(",
                   stride, ",)] a in (b,) }")));
  };
  slice(INT64_MAX);
  slice(10);
}

TEST(squeeze_errors) {
  CHECK_THROWS(kShape, "dimensions of size 1; got dimensions=(0,) (operand: f32[2,1])",
               OpCase("squeeze", {"f32[2,1]"}, {{"dimensions", Dims{0}}}));
  CHECK_THROWS(kValue, "expected dimensions between 0 and 1",
               OpCase("squeeze", {"f32[2,1]"}, {{"dimensions", Dims{2}}}));
  CHECK_THROWS(kValue, "expected distinct dimensions",
               OpCase("squeeze", {"f32[2,1]"}, {{"dimensions", Dims{1, 1}}}));
}

TEST(broadcast_in_dim_errors) {
  auto broadcast = [](std::string_view x, Dims shape, Dims dims) {
    return OpCase("broadcast_in_dim", {x}, {{"shape", shape}, {"broadcast_dimensions", dims}});
  };
  CHECK_THROWS(kShape, "(broadcast_in_dim C2)", broadcast("f32[3]", {3}, {}));
  CHECK_THROWS(kValue, "(broadcast_in_dim C3)", broadcast("f32[3]", {3}, {1}));
  CHECK_THROWS(kValue, "strictly increasing", broadcast("f32[3,3]", {3, 3}, {1, 0}));
  CHECK_THROWS(kShape, "size 1 or 4, that of result axis 1 (broadcast_in_dim C5); got size 3",
               broadcast("f32[3]", {3, 4}, {1}));
  CHECK_THROWS(kShape, "", broadcast("f32[]", {-1}, {}));
}

TEST(transpose_errors) {
  for (Dims p : {Dims{0}, Dims{0, 0}, Dims{0, 2}, Dims{-1, 0}})
    CHECK_THROWS(kValue, "expected a permutation of (0, 1) (transpose C2)",
                 OpCase("transpose", {"f32[2,3]"}, {{"permutation", p}}));
}

TEST(rev_errors) {
  CHECK_THROWS(kValue, "expected distinct dimensions",
               OpCase("rev", {"f32[2,3]"}, {{"dimensions", Dims{0, 0}}}));
  CHECK_THROWS(kValue, "between 0 and 1", OpCase("rev", {"f32[2,3]"}, {{"dimensions", Dims{-1}}}));
}

TEST(iota_errors) {
  auto make = [](DType d, Dims shape, int64_t axis) {
    return OpCase("iota", {}, {{"dtype", d}, {"shape", shape}, {"dimension", axis}});
  };
  CHECK_THROWS(kValue, "(iota C1); got dimension=1 (result: i32[3])", make(DType::kI32, {3}, 1));
  CHECK_THROWS(kValue, "(iota C1)", make(DType::kI32, {}, 0));
  CHECK_THROWS(kDtype, "got dtype=bool", make(DType::kBool, {3}, 0));
}

TEST(concatenate_errors) {
  CHECK_THROWS(kType, "(concatenate C3)", OpCase("concatenate", {}, {{"dimension", kZero}}));
  CHECK_THROWS(kValue, "(concatenate C4)",
               OpCase("concatenate", {"f32[2]"}, {{"dimension", kOne}}));
  CHECK_THROWS(kDtype, "(concatenate C1); got operand 0: f32[2], operand 1: i32[2]",
               OpCase("concatenate", {"f32[2]", "i32[2]"}, {{"dimension", kZero}}));
  CHECK_THROWS(kShape, "(concatenate C2)",
               OpCase("concatenate", {"f32[2,3]", "f32[2,4]"}, {{"dimension", kZero}}));
  CHECK_THROWS(kShape, "(concatenate C2)",
               OpCase("concatenate", {"f32[2]", "f32[2,2]"}, {{"dimension", kZero}}));
}

TEST(split_errors) {
  auto split = [](int64_t axis, Dims sizes) {
    return OpCase("split", {"f32[2,6]"}, {{"axis", axis}, {"sizes", sizes}});
  };
  CHECK_THROWS(kValue, "got axis=2", split(2, {6}));
  CHECK_THROWS(kValue, "add up to 6; got sizes=(2, 3)", split(1, {2, 3}));
  CHECK_THROWS(kValue, "add up to 6", split(1, {-1, 7}));
}

TEST(pad_errors) {
  auto pad = [](std::string_view x, std::string_view value, Lists config) {
    return OpCase("pad", {x, value}, {{"padding_config", config}});
  };
  CHECK_THROWS(kDtype, "(pad C1)", pad("f32[3]", "i32[]", {{0, 0, 0}}));
  CHECK_THROWS(kShape, "scalar padding value", pad("f32[3]", "f32[1]", {{0, 0, 0}}));
  CHECK_THROWS(kValue, "(pad C2); got 2 entries", pad("f32[3]", "f32[]", {{0, 0, 0}, {0, 0, 0}}));
  CHECK_THROWS(kValue, "expected (low, high, interior)", pad("f32[3]", "f32[]", {{0, 0}}));
  CHECK_THROWS(kValue, "(pad C3)", pad("f32[3]", "f32[]", {{0, 0, -1}}));
  CHECK_THROWS(kShape, "(pad C4)", pad("f32[3]", "f32[]", {{-2, -2, 0}}));
}

TEST(slice_errors) {
  auto slice = [](Dims start, Dims limit, Attr strides) {
    return OpCase("slice", {"f32[4]"},
                  {{"start_indices", start}, {"limit_indices", limit}, {"strides", strides}});
  };
  CHECK_THROWS(kValue, "(slice C2)", slice({0, 0}, {4}, {}));
  CHECK_THROWS(kValue, "(slice C2)", slice({0}, {4}, Dims{1, 1}));
  CHECK_THROWS(kValue, "<= 4 for axis 0 (slice C3); got start_indices=(0,), limit_indices=(5,)",
               slice({0}, {5}, {}));
  CHECK_THROWS(kValue, "(slice C3)", slice({-1}, {4}, {}));
  CHECK_THROWS(kValue, "(slice C3)", slice({3}, {2}, {}));
  CHECK_THROWS(kValue, "(slice C4)", slice({0}, {4}, Dims{0}));
}

TEST(dynamic_slice_errors) {
  auto slice = [](std::initializer_list<std::string_view> operands, Dims sizes) {
    return OpCase("dynamic_slice", operands, {{"slice_sizes", sizes}});
  };
  CHECK_THROWS(kType, "expected an operand", slice({}, {}));
  CHECK_THROWS(kType, "(dynamic_slice C2); got 1", slice({"f32[4,4]", "i32[]"}, {1, 1}));
  CHECK_THROWS(kDtype, "(dynamic_slice C3)", slice({"f32[4,4]", "i32[]", "i64[]"}, {1, 1}));
  CHECK_THROWS(kDtype, "one integer dtype", slice({"f32[4]", "f32[]"}, {1}));
  CHECK_THROWS(kShape, "scalar start indices", slice({"f32[4]", "i32[1]"}, {1}));
  CHECK_THROWS(kShape, "(dynamic_slice C4); got slice_sizes=(5,)", slice({"f32[4]", "i32[]"}, {5}));
  CHECK_THROWS(kShape, "(dynamic_slice C4)", slice({"f32[4]", "i32[]"}, {-1}));
  CHECK_THROWS(kShape, "(dynamic_slice C4)", slice({"f32[4]", "i32[]"}, {1, 1}));
}

TEST(dynamic_update_slice_errors) {
  auto update = [](std::initializer_list<std::string_view> operands) {
    return OpCase("dynamic_update_slice", operands);
  };
  CHECK_THROWS(kType, "expected an operand and an update", update({"f32[4]"}));
  CHECK_THROWS(kDtype, "(dynamic_update_slice C2)", update({"f32[4]", "i32[1]", "i32[]"}));
  CHECK_THROWS(kShape, "C3, C6)", update({"f32[4]", "f32[]", "i32[]"}));
  CHECK_THROWS(kShape, "C3, C6)", update({"f32[4]", "f32[5]", "i32[]"}));
  CHECK_THROWS(kType, "(dynamic_update_slice C4); got 0", update({"f32[4]", "f32[1]"}));
  CHECK_THROWS(kDtype, "(dynamic_update_slice C5)", update({"f32[4]", "f32[1]", "bool[]"}));
}

TEST(shape_simplifications) {
  CHECK_EQ(simplified("{ lambda ; a:f32[2,3]. let b:f32[6] = reshape[new_sizes=(6,)] a"
                      " c:f32[3,2] = reshape[new_sizes=(3, 2)] b in (c,) }"),
           "{ lambda ; a:f32[2,3]. let b:f32[3,2] = reshape[new_sizes=(3, 2)] a in (b,) }");
  CHECK_EQ(simplified("{ lambda ; a:f32[2,3]. let b:f32[6] = reshape[new_sizes=(6,)] a"
                      " c:f32[2,3] = reshape[new_sizes=(2, 3)] b in (c,) }"),
           "{ lambda ; a:f32[2,3]. let  in (a,) }");
  CHECK_EQ(simplified("{ lambda ; a:f32[2,3]. let b:f32[3,2] = transpose[permutation=(1, 0)] a"
                      " c:f32[2,3] = transpose[permutation=(1, 0)] b in (c,) }"),
           "{ lambda ; a:f32[2,3]. let  in (a,) }");
  CHECK_EQ(simplified("{ lambda ; a:f32[2,3]. let b:f32[2,3] = rev[dimensions=(0, 1)] a"
                      " c:f32[2,3] = rev[dimensions=(0,)] b in (c,) }"),
           "{ lambda ; a:f32[2,3]. let b:f32[2,3] = rev[dimensions=(1,)] a in (b,) }");
  CHECK_EQ(simplified("{ lambda ; a:f32[3]. let b:f32[1,3] ="
                      " broadcast_in_dim[broadcast_dimensions=(1,)] a"
                      " c:f32[3] = squeeze[dimensions=(0,)] b in (c,) }"),
           "{ lambda ; a:f32[3]. let  in (a,) }");
  CHECK_EQ(simplified("{ lambda ; . let b:f32[2,3] = broadcast_in_dim 1.0:f32[]"
                      " c:f32[3,2] = transpose[permutation=(1, 0)] b"
                      " d:f32[6] = reshape[new_sizes=(6,)] c in (d,) }"),
           "{ lambda ; . let a:f32[6] = broadcast_in_dim 1.0:f32[] in (a,) }");
}

TEST(slice_simplifications) {
  CHECK_EQ(simplified("{ lambda ; a:f32[20]. let"
                      " b:f32[7] = slice[limit_indices=(20,) start_indices=(1,) strides=(3,)] a"
                      " c:f32[2] = slice[limit_indices=(6,) start_indices=(2,) strides=(2,)] b"
                      " in (c,) }"),
           "{ lambda ; a:f32[20]. let\n"
           "    b:f32[2] = slice[limit_indices=(14,) start_indices=(7,) strides=(6,)] a\n"
           "  in (b,) }");
  CHECK_EQ(simplified("{ lambda ; a:f32[2] b:f32[3]. let c:f32[5] = concatenate[dimension=0] a b"
                      " d:f32[3] = slice[limit_indices=(5,) start_indices=(2,) strides=None] c"
                      " in (d,) }"),
           "{ lambda ; a:f32[2] b:f32[3]. let  in (b,) }");
  CHECK_EQ(simplified("{ lambda ; a:f32[2] b:f32[0]. let c:f32[2] = concatenate[dimension=0] a b"
                      " in (c,) }"),
           "{ lambda ; a:f32[2] b:f32[0]. let  in (a,) }");
  CHECK_EQ(simplified("{ lambda ; a:f32[2] b:f32[3]. let c:f32[5] = concatenate[dimension=0] a b"
                      " d:f32[2] e:f32[3] = split[axis=0 sizes=(2, 3)] c in (e, d) }"),
           "{ lambda ; a:f32[2] b:f32[3]. let  in (b, a) }");
  CHECK_EQ(simplified("{ lambda ; a:f32[9]. let"
                      " b:f32[3] = dynamic_slice[slice_sizes=(3,)] a 100:i32[] in (b,) }"),
           "{ lambda ; a:f32[9]. let\n"
           "    b:f32[3] = slice[limit_indices=(9,) start_indices=(6,) strides=None] a\n"
           "  in (b,) }");
  CHECK_EQ(simplified("{ lambda ; a:f32[9]. let"
                      " b:f32[6] = pad[padding_config=((-1, -2, 0),)] a 0.0:f32[] in (b,) }"),
           "{ lambda ; a:f32[9]. let\n"
           "    b:f32[6] = slice[limit_indices=(7,) start_indices=(1,) strides=None] a\n"
           "  in (b,) }");
  CHECK_EQ(simplified("{ lambda ; a:f32[4] b:f32[4] i:i32[]. let"
                      " c:f32[4] = dynamic_update_slice a b i in (c,) }"),
           "{ lambda ; a:f32[4] b:f32[4] c:i32[]. let  in (b,) }");
}
