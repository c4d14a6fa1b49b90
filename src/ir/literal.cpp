// Scalar constants: rounding to every dtype, conversion, and their text.
#include "weft/literal.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "weft/dims.h"
#include "weft/error.h"

namespace weft {

namespace {

// What a float format does with a value beyond its largest finite one.
enum class Overflow { kInfinity, kNan, kSaturate };

struct FloatFormat {
  int mantissa_bits;  // without the hidden one
  int min_exponent;   // of the smallest normal number; subnormals have this exponent
  double max;         // largest finite value
  Overflow overflow;
  bool negative_zero = true;
};

FloatFormat float_format(DType dtype) {
  switch (dtype) {
    case DType::kF4E2M1FN:
      return {1, 0, 6, Overflow::kSaturate};
    case DType::kF8E3M4:
      return {4, -2, 15.5, Overflow::kInfinity};
    case DType::kF8E4M3:
      return {3, -6, 240, Overflow::kInfinity};
    case DType::kF8E4M3FN:
      return {3, -6, 448, Overflow::kNan};
    case DType::kF8E4M3B11FNUZ:
      return {3, -10, 30, Overflow::kNan, false};
    case DType::kF8E4M3FNUZ:
      return {3, -7, 240, Overflow::kNan, false};
    case DType::kF8E5M2:
      return {2, -14, 57344, Overflow::kInfinity};
    case DType::kF8E5M2FNUZ:
      return {2, -15, 57344, Overflow::kNan, false};
    case DType::kBF16:
      return {7, -126, 0x1.fep127, Overflow::kInfinity};
    case DType::kF16:
      return {10, -14, 65504, Overflow::kInfinity};
    default:
      fail(ErrorKind::kInternal, "no float format for ", short_name(dtype));
  }
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// An exponent and nothing else: no sign, no zero. Halfway values go up.
double round_to_exponent_only(double x) {
  if (!(x > 0) || std::isinf(x)) return kNan;
  int exponent;
  double fraction = std::frexp(x, &exponent);  // in [0.5, 1)
  exponent += fraction >= 0.75 ? 0 : -1;
  if (exponent > 127) return kNan;
  return std::ldexp(1.0, std::max(exponent, -127));
}

double round_to_format(const FloatFormat& format, double x) {
  if (x == 0) return format.negative_zero ? x : 0.0;
  double rounded = x;
  if (!std::isinf(x)) {
    int ulp = std::max(std::ilogb(x), format.min_exponent) - format.mantissa_bits;
    rounded = std::ldexp(std::nearbyint(std::ldexp(x, -ulp)), ulp);
  }
  if (std::fabs(rounded) > format.max) {
    switch (format.overflow) {
      case Overflow::kInfinity:
        return std::copysign(kInf, x);
      case Overflow::kNan:
        return kNan;
      case Overflow::kSaturate:
        return std::copysign(format.max, x);
    }
  }
  return rounded == 0 && !format.negative_zero ? 0.0 : rounded;
}

// An integer as a double that rounds on to any narrower format as the integer itself would: when
// bits are lost, the last one kept is set if any of them was (rounding to odd).
double to_double_for_rounding(uint64_t magnitude, bool negative, DType dtype) {
  if (dtype != DType::kF64 && dtype != DType::kC128 && (magnitude >> 53) != 0) {
    constexpr uint64_t kLost = 0x7ff;
    uint64_t sticky = (magnitude & kLost) != 0 ? kLost + 1 : 0;
    magnitude = (magnitude & ~kLost) | sticky;
  }
  double x = static_cast<double>(magnitude);
  return negative ? -x : x;
}

// Wraps to the dtype's width; the result is sign extended for signed dtypes.
uint64_t wrap(DType dtype, uint64_t x) {
  int unused = 64 - info(dtype).bits;
  if (is_signed_int(dtype)) {
    return static_cast<uint64_t>(static_cast<int64_t>(x << unused) >> unused);
  }
  return x << unused >> unused;
}

// Truncates towards zero; out of range goes to the nearest bound and nan to 0, as XLA does.
uint64_t truncate(DType dtype, double x) {
  if (std::isnan(x)) return 0;
  int bits = info(dtype).bits;
  if (is_signed_int(dtype)) {
    double bound = std::ldexp(1.0, bits - 1);
    int64_t max = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
    if (x >= bound) return static_cast<uint64_t>(max);
    if (x < -bound) return static_cast<uint64_t>(-max - 1);
    return static_cast<uint64_t>(static_cast<int64_t>(x));
  }
  if (x <= 0) return 0;
  if (x >= std::ldexp(1.0, bits)) return ~uint64_t{0} >> (64 - bits);
  return static_cast<uint64_t>(x);
}

// All nans are one, so that equal literals have equal bits.
uint64_t double_bits(double x) { return std::bit_cast<uint64_t>(std::isnan(x) ? kNan : x); }

Literal from_integer(DType dtype, uint64_t bits, bool is_unsigned) {
  switch (kind(dtype)) {
    case DTypeKind::kBool:
      return {dtype, bits != 0};
    case DTypeKind::kFloat0:
    case DTypeKind::kKey:
      return {dtype};
    case DTypeKind::kSigned:
    case DTypeKind::kUnsigned:
      return {dtype, wrap(dtype, bits)};
    case DTypeKind::kFloat:
    case DTypeKind::kComplex:
      break;
  }
  bool negative = !is_unsigned && static_cast<int64_t>(bits) < 0;
  double x = to_double_for_rounding(negative ? ~bits + 1 : bits, negative, dtype);
  return make_literal(dtype, x);
}

}  // namespace

double round_to(DType dtype, double x) {
  if (dtype == DType::kF64) return x;
  if (dtype == DType::kF32) return static_cast<float>(x);
  if (!is_float(dtype)) {
    fail(ErrorKind::kDtype, "expected a float dtype to round to; got ", short_name(dtype));
  }
  if (dtype == DType::kF8E8M0FNU) return round_to_exponent_only(x);
  if (std::isnan(x)) return dtype == DType::kF4E2M1FN ? -0.0 : x;  // f4 has no nan
  return round_to_format(float_format(dtype), x);
}

namespace {

// Rules that make a number of a size use size_value (build.h), which symbolic ones need.
void check_no_symbol(int64_t value) {
  if (is_known_symbol(value)) [[unlikely]]
    fail(ErrorKind::kNotImplemented,
         "expected a size that is a number; got the symbolic dimension ", value,
         ": this operation does not support it yet");
}

}  // namespace

Literal make_literal(DType dtype, int64_t value) {
  check_no_symbol(value);
  return from_integer(dtype, static_cast<uint64_t>(value), /*is_unsigned=*/false);
}

Literal make_literal(DType dtype, double value) {
  if (value < static_cast<double>(kFirstSymbol / 2) && value >= static_cast<double>(kFirstSymbol))
    check_no_symbol(static_cast<int64_t>(value));
  switch (kind(dtype)) {
    case DTypeKind::kBool:
      return {dtype, value != 0};
    case DTypeKind::kFloat0:
    case DTypeKind::kKey:
      return {dtype};
    case DTypeKind::kSigned:
    case DTypeKind::kUnsigned:
      return {dtype, truncate(dtype, value)};
    case DTypeKind::kFloat:
      return {dtype, double_bits(round_to(dtype, value))};
    case DTypeKind::kComplex:
      break;
  }
  return make_literal(dtype, std::complex<double>(value, 0));
}

Literal make_literal(DType dtype, std::complex<double> value) {
  if (is_bool(dtype)) return {dtype, value.real() != 0 || value.imag() != 0};
  if (!is_complex(dtype)) return make_literal(dtype, value.real());
  DType part = real_dtype(dtype);
  return {dtype, double_bits(round_to(part, value.real())),
          double_bits(round_to(part, value.imag()))};
}

Literal convert(const Literal& x, DType dtype) {
  if (x.dtype == dtype) return x;
  switch (kind(x.dtype)) {
    case DTypeKind::kFloat:
      return make_literal(dtype, x.as_double());
    case DTypeKind::kComplex:
      return make_literal(dtype, {x.as_double(), x.imag()});
    default:
      return from_integer(dtype, x.lo, !is_signed_int(x.dtype));
  }
}

namespace {

// A part of a complex number as Python writes it: whole numbers have no ".0".
std::string complex_part(double x) {
  std::string text = cat(x);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

}  // namespace

Text& operator<<(Text& out, const Literal& x) {
  switch (kind(x.dtype)) {
    case DTypeKind::kBool:
    case DTypeKind::kFloat0:
    case DTypeKind::kKey:
      return out << x.as_bool();
    case DTypeKind::kSigned:
      return out << x.as_int();
    case DTypeKind::kUnsigned:
      return out << x.lo;
    case DTypeKind::kFloat:
      return out << x.as_double();
    case DTypeKind::kComplex:
      break;
  }
  std::string imag = complex_part(x.imag());
  if (x.lo == 0) return out << imag << 'j';
  bool has_sign = imag[0] == '-';
  return out << '(' << complex_part(x.as_double()) << (has_sign ? "" : "+") << imag << "j)";
}

}  // namespace weft
