// SPDX-License-Identifier: Apache-2.0
// Element types: one table gives each dtype's names, width and kind; promotion follows the
// lattice that JAX documents (weak types come from Python scalars). Behind the dtypes of numbers
// stand those of random keys, of which a program may register its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weft/api.h"

namespace weft {

enum class DTypeKind : uint8_t { kBool, kSigned, kUnsigned, kFloat, kComplex, kFloat0, kKey };

// X(enumerator, short name, NumPy name, MLIR element type, bits, kind)
#define WEFT_DTYPES(X)                                                                  \
  X(kBool, "bool", "bool", "i1", 8, kBool)                                              \
  X(kI2, "i2", "int2", "i2", 2, kSigned)                                                \
  X(kI4, "i4", "int4", "i4", 4, kSigned)                                                \
  X(kI8, "i8", "int8", "i8", 8, kSigned)                                                \
  X(kI16, "i16", "int16", "i16", 16, kSigned)                                           \
  X(kI32, "i32", "int32", "i32", 32, kSigned)                                           \
  X(kI64, "i64", "int64", "i64", 64, kSigned)                                           \
  X(kU2, "u2", "uint2", "ui2", 2, kUnsigned)                                            \
  X(kU4, "u4", "uint4", "ui4", 4, kUnsigned)                                            \
  X(kU8, "u8", "uint8", "ui8", 8, kUnsigned)                                            \
  X(kU16, "u16", "uint16", "ui16", 16, kUnsigned)                                       \
  X(kU32, "u32", "uint32", "ui32", 32, kUnsigned)                                       \
  X(kU64, "u64", "uint64", "ui64", 64, kUnsigned)                                       \
  X(kF4E2M1FN, "f4_e2m1fn", "float4_e2m1fn", "f4E2M1FN", 4, kFloat)                     \
  X(kF8E3M4, "f8_e3m4", "float8_e3m4", "f8E3M4", 8, kFloat)                             \
  X(kF8E4M3, "f8_e4m3", "float8_e4m3", "f8E4M3", 8, kFloat)                             \
  X(kF8E4M3FN, "f8_e4m3fn", "float8_e4m3fn", "f8E4M3FN", 8, kFloat)                     \
  X(kF8E4M3B11FNUZ, "f8_e4m3b11fnuz", "float8_e4m3b11fnuz", "f8E4M3B11FNUZ", 8, kFloat) \
  X(kF8E4M3FNUZ, "f8_e4m3fnuz", "float8_e4m3fnuz", "f8E4M3FNUZ", 8, kFloat)             \
  X(kF8E5M2, "f8_e5m2", "float8_e5m2", "f8E5M2", 8, kFloat)                             \
  X(kF8E5M2FNUZ, "f8_e5m2fnuz", "float8_e5m2fnuz", "f8E5M2FNUZ", 8, kFloat)             \
  X(kF8E8M0FNU, "f8_e8m0fnu", "float8_e8m0fnu", "f8E8M0FNU", 8, kFloat)                 \
  X(kBF16, "bf16", "bfloat16", "bf16", 16, kFloat)                                      \
  X(kF16, "f16", "float16", "f16", 16, kFloat)                                          \
  X(kF32, "f32", "float32", "f32", 32, kFloat)                                          \
  X(kF64, "f64", "float64", "f64", 64, kFloat)                                          \
  X(kC64, "c64", "complex64", "complex<f32>", 64, kComplex)                             \
  X(kC128, "c128", "complex128", "complex<f64>", 128, kComplex)                         \
  X(kFloat0, "float0", "float0", "i1", 8, kFloat0)

// Without enumerators: the dtypes of random keys, from kNumDTypes on.
enum class DType : uint8_t {
#define X(name, ...) name,
  WEFT_DTYPES(X)
#undef X
};

struct DTypeInfo {
  std::string_view short_name;  // "f32", as programs are printed
  std::string_view numpy_name;  // "float32"
  std::string_view mlir;        // "f32"
  int bits;
  DTypeKind kind;
};

// With those of keys; entries up to the number of dtypes so far.
WEFT_API extern DTypeInfo kDTypeInfo[];
inline constexpr int kNumDTypes = 0
#define X(...) +1
    WEFT_DTYPES(X)
#undef X
    ;

inline const DTypeInfo& info(DType d) { return kDTypeInfo[static_cast<int>(d)]; }
inline std::string_view short_name(DType d) { return info(d).short_name; }
inline std::string_view numpy_name(DType d) { return info(d).numpy_name; }
inline DTypeKind kind(DType d) { return info(d).kind; }

inline bool is_bool(DType d) { return d == DType::kBool; }
inline bool is_signed_int(DType d) { return kind(d) == DTypeKind::kSigned; }
inline bool is_unsigned_int(DType d) { return kind(d) == DTypeKind::kUnsigned; }
inline bool is_integer(DType d) { return is_signed_int(d) || is_unsigned_int(d); }
inline bool is_float(DType d) { return kind(d) == DTypeKind::kFloat; }
inline bool is_complex(DType d) { return kind(d) == DTypeKind::kComplex; }
inline bool is_inexact(DType d) { return is_float(d) || is_complex(d); }

// Keys of random number generators. An element is a number of 32-bit words: `lower_keys` makes an
// array of uint32 with a further last axis of it before a program is emitted.
inline constexpr int kMaxDTypes = 256;
inline bool is_key(DType d) { return kind(d) == DTypeKind::kKey; }
inline int key_words(DType d) { return info(d).bits / 32; }
// The dtype of a name, "key<fry>"; those of the built-in generators are there from the start. A
// name has one number of words. Throws kValue if it is known with another, or if there are too
// many.
WEFT_API DType register_key_dtype(std::string_view name, int words);

// Accepts both the short and the NumPy name.
WEFT_API std::optional<DType> parse_dtype(std::string_view name);

// c64 -> f32, c128 -> f64; others unchanged.
inline DType real_dtype(DType d) {
  return d == DType::kC64 ? DType::kF32 : d == DType::kC128 ? DType::kF64 : d;
}
// f32 -> c64, f64 -> c128; other floats -> c64.
inline DType complex_dtype(DType d) {
  return is_complex(d) ? d : d == DType::kF64 ? DType::kC128 : DType::kC64;
}

// A dtype as promotion sees it.
struct PromotionType {
  DType dtype;
  bool weak = false;
  friend bool operator==(const PromotionType&, const PromotionType&) = default;
};

// The dtype both operands are converted to. nullopt when there is no implicit promotion (as for
// two different float8 types). A weak result has the widest dtype of its kind; with x64 off,
// callers canonicalize() results, as they do dtypes.
WEFT_API std::optional<PromotionType> promote(PromotionType a, PromotionType b);
// 64-bit dtypes become their 32-bit counterparts unless x64 is on.
WEFT_API DType canonicalize(DType d, bool x64);
// The float dtype that an integer or bool is promoted to by functions such as sin: f64 for 64-bit
// integers with x64, else f32. Floats and complex numbers are unchanged.
WEFT_API PromotionType to_inexact(PromotionType d, bool x64);

}  // namespace weft
