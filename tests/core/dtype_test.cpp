// The dtype table and promotion. The promotion cases were taken from JAX's documented lattice.
#include "weft/dtype.h"
#include "check.h"

using namespace weft;
using enum DType;

namespace {

// "i32", "f32*" (weak), "none".
std::string promoted(PromotionType a, PromotionType b) {
  auto r = promote(a, b);
  return r ? cat(short_name(r->dtype), r->weak ? "*" : "") : "none";
}

PromotionType strong(DType d) { return {d, false}; }
PromotionType weak(DType d) { return {d, true}; }

}  // namespace

TEST(names) {
  for (int i = 0; i < kNumDTypes; ++i) {
    DType d = static_cast<DType>(i);
    CHECK(parse_dtype(short_name(d)) == d);
    CHECK(parse_dtype(numpy_name(d)) == d);
  }
  CHECK(!parse_dtype("f33"));
  CHECK(!parse_dtype(""));
  CHECK(canonicalize(kC128, false) == kC64);
  CHECK(canonicalize(kU64, false) == kU32);
  CHECK(canonicalize(kI64, true) == kI64);
  CHECK(canonicalize(kBF16, false) == kBF16);
}

TEST(promotion_is_symmetric_and_idempotent) {
  for (int i = 0; i < 2 * kNumDTypes; ++i) {
    PromotionType a{static_cast<DType>(i / 2), i % 2 == 1};
    if (!is_bool(a.dtype)) CHECK(promote(a, a) == a);
    for (int j = 0; j < 2 * kNumDTypes; ++j) {
      PromotionType b{static_cast<DType>(j / 2), j % 2 == 1};
      CHECK(promote(a, b) == promote(b, a));
    }
  }
}

TEST(promotion_of_strong_types) {
  CHECK_EQ(promoted(strong(kBool), strong(kU8)), "u8");
  CHECK_EQ(promoted(strong(kU8), strong(kI8)), "i16");
  CHECK_EQ(promoted(strong(kU16), strong(kI8)), "i32");
  CHECK_EQ(promoted(strong(kU32), strong(kI32)), "i64");
  CHECK_EQ(promoted(strong(kU64), strong(kI8)), "f64*");
  CHECK_EQ(promoted(strong(kI64), strong(kBF16)), "bf16");
  CHECK_EQ(promoted(strong(kF16), strong(kBF16)), "f32");
  CHECK_EQ(promoted(strong(kF64), strong(kC64)), "c128");
  CHECK_EQ(promoted(strong(kI32), strong(kF8E4M3FN)), "f8_e4m3fn");
  CHECK_EQ(promoted(strong(kF8E5M2), strong(kF8E4M3FN)), "none");
  CHECK_EQ(promoted(strong(kF8E5M2), strong(kF16)), "none");
  CHECK_EQ(promoted(strong(kF4E2M1FN), strong(kC64)), "none");
  CHECK_EQ(promoted(strong(kI4), strong(kI8)), "none");
  CHECK_EQ(promoted(strong(kI4), strong(kF32)), "none");
  CHECK_EQ(promoted(strong(kFloat0), strong(kF32)), "none");
}

TEST(promotion_of_weak_types) {
  CHECK_EQ(promoted(strong(kBool), weak(kI32)), "i64*");
  CHECK_EQ(promoted(strong(kI8), weak(kI32)), "i8");
  CHECK_EQ(promoted(strong(kU4), weak(kI32)), "u4");
  CHECK_EQ(promoted(strong(kI32), weak(kF32)), "f64*");
  CHECK_EQ(promoted(strong(kF16), weak(kF32)), "f16");
  CHECK_EQ(promoted(strong(kF16), weak(kI32)), "f16");
  CHECK_EQ(promoted(strong(kF16), weak(kC64)), "c64");
  CHECK_EQ(promoted(strong(kI32), weak(kC64)), "c128*");
  CHECK_EQ(promoted(strong(kF32), weak(kC64)), "c64");
  CHECK_EQ(promoted(strong(kF64), weak(kC64)), "c128");
  CHECK_EQ(promoted(strong(kF8E5M2), weak(kF32)), "f8_e5m2");
  CHECK_EQ(promoted(strong(kF8E5M2), weak(kC64)), "none");
  CHECK_EQ(promoted(weak(kI32), weak(kF32)), "f32*");
  CHECK_EQ(promoted(weak(kI32), weak(kBool)), "i32*");
}

TEST(inexact) {
  CHECK((to_inexact(strong(kI32), false) == PromotionType{kF32, false}));
  CHECK((to_inexact(weak(kI64), true) == PromotionType{kF64, true}));
  CHECK((to_inexact(strong(kI8), true) == PromotionType{kF32, false}));
  CHECK((to_inexact(strong(kBF16), true) == PromotionType{kBF16, false}));
}
