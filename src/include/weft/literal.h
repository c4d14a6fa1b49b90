// SPDX-License-Identifier: Apache-2.0
// A scalar constant. Values are kept in the widest form of their kind and are always
// representable in the dtype, so equality of literals is equality of bits.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>

#include "weft/api.h"
#include "weft/dtype.h"
#include "weft/text.h"

namespace weft {

struct Literal {
  DType dtype = DType::kF32;
  uint64_t lo = 0;  // integers: the value, sign extended; floats: bits of the value as a double
  uint64_t hi = 0;  // complex: bits of the imaginary part as a double

  int64_t as_int() const { return static_cast<int64_t>(lo); }
  double as_double() const { return std::bit_cast<double>(lo); }  // floats and real parts
  double imag() const { return std::bit_cast<double>(hi); }
  bool as_bool() const { return lo != 0; }
  friend bool operator==(const Literal&, const Literal&) = default;
};

// Each rounds (floats) or wraps (integers) to the dtype. A conversion between kinds follows
// StableHLO convert: float to integer truncates, to bool tests against zero.
WEFT_API Literal make_literal(DType dtype, int64_t value);
WEFT_API Literal make_literal(DType dtype, double value);
WEFT_API Literal make_literal(DType dtype, std::complex<double> value);
WEFT_API Literal convert(const Literal& x, DType dtype);
// The nearest value of a float dtype, as a double.
WEFT_API double round_to(DType dtype, double x);

// "2.0", "3", "True", "nan", "(1+2j)": the value alone, without its type.
WEFT_API Text& operator<<(Text& out, const Literal& x);

}  // namespace weft
