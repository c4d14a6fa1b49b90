// The identities of reductions: extreme values, zero and one of each dtype.
#pragma once

#include <complex>
#include <limits>
#include <optional>

#include "weft/literal.h"

namespace weft {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The largest value of float dtypes without infinity.
inline std::optional<double> largest_finite(DType d) {
  switch (d) {
    case DType::kF4E2M1FN:
      return 6.0;
    case DType::kF8E4M3FN:
      return 448.0;
    case DType::kF8E4M3B11FNUZ:
      return 30.0;
    case DType::kF8E4M3FNUZ:
      return 240.0;
    case DType::kF8E5M2FNUZ:
      return 57344.0;
    case DType::kF8E8M0FNU:
      return 0x1p127;
    default:
      return std::nullopt;
  }
}

// Identity of min: infinity, or the largest value of the dtype. Complex numbers are ordered by
// real, then by imaginary part.
inline Literal highest(DType d) {
  if (is_complex(d)) return make_literal(d, std::complex<double>(kInfinity, kInfinity));
  if (is_float(d)) return make_literal(d, largest_finite(d).value_or(kInfinity));
  if (is_signed_int(d)) return make_literal(d, int64_t((uint64_t{1} << (info(d).bits - 1)) - 1));
  return make_literal(d, int64_t{is_bool(d) ? 1 : -1});  // all bits set
}

// Identity of max.
inline Literal lowest(DType d) {
  if (d == DType::kF8E8M0FNU) return make_literal(d, 0x1p-127);  // has neither sign nor zero
  if (is_float(d)) return make_literal(d, -highest(d).as_double());
  if (is_complex(d)) return make_literal(d, std::complex<double>(-kInfinity, -kInfinity));
  if (is_signed_int(d)) return make_literal(d, -highest(d).as_int() - 1);
  return make_literal(d, int64_t{0});
}

inline Literal zero(DType d) {
  return is_inexact(d) ? make_literal(d, 0.0) : make_literal(d, int64_t{0});
}
inline Literal one(DType d) {
  return is_inexact(d) ? make_literal(d, 1.0) : make_literal(d, int64_t{1});
}

}  // namespace weft
