// Element text of literals. MLIR reads a decimal float as a double and rounds it to the element
// type, so the shortest decimal form of the (already rounded) double is exact for every dtype.
// NaN and infinity have no decimal form and are written as bits of the element type.
#include <charconv>
#include <cmath>

#include "weft/op_def.h"

namespace weft {
namespace {

// Bits of +infinity and of a quiet NaN, and where the sign bit is (-1: NaN and infinity have no
// sign). A dtype without infinities rounds them to NaN or to a finite value beforehand.
struct SpecialBits {
  uint64_t infinity;
  uint64_t nan;
  int sign_bit;
};

SpecialBits special_bits(DType d) {
  switch (d) {
    case DType::kF64:
    case DType::kC128:
      return {0x7FF0000000000000, 0x7FF8000000000000, 63};
    case DType::kF32:
    case DType::kC64:
      return {0x7F800000, 0x7FC00000, 31};
    case DType::kF16:
      return {0x7C00, 0x7E00, 15};
    case DType::kBF16:
      return {0x7F80, 0x7FC0, 15};
    case DType::kF8E5M2:
      return {0x7C, 0x7E, 7};
    case DType::kF8E4M3:
      return {0x78, 0x7C, 7};
    case DType::kF8E3M4:
      return {0x70, 0x78, 7};
    case DType::kF8E4M3FN:
      return {0x7F, 0x7F, 7};
    case DType::kF8E4M3B11FNUZ:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2FNUZ:
      return {0x80, 0x80, -1};
    case DType::kF8E8M0FNU:
      return {0xFF, 0xFF, -1};
    default:
      fail(ErrorKind::kInternal, "no NaN or infinity in ", numpy_name(d));
  }
}

void append_hex(Text& out, uint64_t bits, int width) {
  out << "0x";
  for (int shift = (width + 3) / 4 * 4 - 4; shift >= 0; shift -= 4) {
    out << "0123456789ABCDEF"[(bits >> shift) & 15];
  }
}

void append_float(Text& out, DType d, double x) {
  if (!std::isfinite(x)) {
    SpecialBits special = special_bits(d);
    uint64_t bits = std::isnan(x) ? special.nan : special.infinity;
    if (std::signbit(x) && special.sign_bit >= 0) bits |= uint64_t{1} << special.sign_bit;
    append_hex(out, bits, info(real_dtype(d)).bits);
    return;
  }
  char digits[40];
  char* end = std::to_chars(digits, digits + sizeof digits, x, std::chars_format::scientific).ptr;
  // The lexer needs a decimal point; six decimals at least is how MLIR itself prints.
  std::string_view text(digits, static_cast<size_t>(end - digits));
  size_t exponent = text.find('e');
  std::string_view mantissa = text.substr(0, exponent);
  out << mantissa;
  size_t point = mantissa.find('.');
  if (point == std::string_view::npos) out << '.';
  size_t decimals = point == std::string_view::npos ? 0 : mantissa.size() - point - 1;
  for (; decimals < 6; ++decimals) out << '0';
  out << text.substr(exponent);
}

}  // namespace

std::string mlir_literal(const Literal& x) {
  Text out;
  switch (kind(x.dtype)) {
    case DTypeKind::kBool:
    case DTypeKind::kFloat0:
    case DTypeKind::kKey:
      out << (x.as_bool() ? "true" : "false");
      break;
    case DTypeKind::kSigned:
      out << x.as_int();
      break;
    case DTypeKind::kUnsigned:
      out << x.lo;
      break;
    case DTypeKind::kFloat:
      append_float(out, x.dtype, x.as_double());
      break;
    case DTypeKind::kComplex:
      out << '(';
      append_float(out, x.dtype, x.as_double());
      out << ',';
      append_float(out, x.dtype, x.imag());
      out << ')';
      break;
  }
  return out.take();
}

}  // namespace weft
