// Floats may be decimal numbers or the bits of the element, 0x7FC00000; integers may be
// hexadecimal. Strings hold the bytes of the elements, low ones first.
#include "read/elements.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "weft/error.h"

namespace weft::reader {

namespace {

// The layout of the floats that C++ has no type for.
struct FloatLayout {
  int mantissa_bits;
  int min_exponent;  // of normal numbers
};

FloatLayout layout_of(DType dtype) {
  switch (dtype) {
    case DType::kF4E2M1FN:
      return {1, 0};
    case DType::kF8E3M4:
      return {4, -2};
    case DType::kF8E4M3:
    case DType::kF8E4M3FN:
      return {3, -6};
    case DType::kF8E4M3B11FNUZ:
      return {3, -10};
    case DType::kF8E4M3FNUZ:
      return {3, -7};
    case DType::kF8E5M2:
      return {2, -14};
    case DType::kF8E5M2FNUZ:
      return {2, -15};
    case DType::kBF16:
      return {7, -126};
    case DType::kF16:
      return {10, -14};
    default:
      fail(ErrorKind::kInternal, "no layout for ", short_name(dtype));
  }
}

bool has_negative_zero(DType dtype) {
  return dtype != DType::kF8E4M3B11FNUZ && dtype != DType::kF8E4M3FNUZ &&
         dtype != DType::kF8E5M2FNUZ;
}

// What is beyond the largest number, by the formula, is infinite or nan.
double float_of_bits(DType dtype, uint64_t bits) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (dtype == DType::kF64) return std::bit_cast<double>(bits);
  if (dtype == DType::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (dtype == DType::kF8E8M0FNU)
    return bits == 0xFF ? kNan : std::ldexp(1.0, static_cast<int>(bits) - 127);
  FloatLayout layout = layout_of(dtype);
  int width = info(dtype).bits;
  bool negative = bits >> (width - 1) & 1;
  bits &= (uint64_t{1} << (width - 1)) - 1;
  int exponent = static_cast<int>(bits >> layout.mantissa_bits);
  uint64_t hidden = uint64_t{1} << layout.mantissa_bits, mantissa = bits & (hidden - 1);
  if (bits == 0 && negative && !has_negative_zero(dtype)) return kNan;
  double x = exponent == 0 ? std::ldexp(static_cast<double>(mantissa),
                                        layout.min_exponent - layout.mantissa_bits)
                           : std::ldexp(static_cast<double>(mantissa + hidden),
                                        layout.min_exponent + exponent - 1 - layout.mantissa_bits);
  double rounded = round_to(dtype, x);
  if (std::isinf(rounded) && mantissa != 0) return kNan;
  return negative ? -rounded : rounded;
}

// Of a finite number that the dtype has.
uint64_t bits_of_float(DType dtype, double x) {
  if (dtype == DType::kF64) return std::bit_cast<uint64_t>(x);
  if (dtype == DType::kF32) return std::bit_cast<uint32_t>(static_cast<float>(x));
  if (dtype == DType::kF8E8M0FNU) return static_cast<uint64_t>(std::ilogb(x) + 127);
  FloatLayout layout = layout_of(dtype);
  uint64_t sign = std::signbit(x) ? uint64_t{1} << (info(dtype).bits - 1) : 0;
  if (x == 0) return sign;
  int exponent = std::max(std::ilogb(x), layout.min_exponent);
  auto whole = static_cast<uint64_t>(std::ldexp(std::fabs(x), layout.mantissa_bits - exponent));
  uint64_t hidden = uint64_t{1} << layout.mantissa_bits;
  if (whole < hidden) return sign | whole;
  auto biased = static_cast<uint64_t>(exponent - layout.min_exponent + 1);
  return sign | biased << layout.mantissa_bits | (whole - hidden);
}

// An element: its bits, in one or two parts.
struct Bits {
  uint64_t part[2] = {0, 0};
};

class ElementReader {
 public:
  ElementReader(const Document& document, TypeRef type)
      : document_(document), type_(type), dtype_(type->dtype()), part_(real_dtype(dtype_)) {}

  Elements read(std::string_view value) {
    Cursor in = document_.cursor(document_.resolved(value));
    if (in.accept_word("dense_resource")) {
      Cursor name = document_.cursor(in.group());
      name.accept('<');
      const char* at = name.position();
      std::string_view key = name.peek() == '"' ? name.quoted() : name.word();
      constexpr size_t kAlignment = 4;  // bytes that say how the others are aligned
      return of_bytes(decoded(document_.resource(key, at)), at, kAlignment);
    }
    if (!in.accept_word("dense")) in.fail_expected("dense<...>");
    std::string_view group = in.group();
    Cursor body = document_.cursor(group.substr(1, group.size() - 2));
    if (group.size() < 2 || group[0] != '<') in.fail_at(group.data(), "expected \"<\" after dense");
    if (body.peek() == '"') {
      const char* at = body.position();
      return of_bytes(decoded(body.quoted()), at, 0);
    }
    if (body.at_end()) {
      if (type_->num_elements() != 0)
        body.fail_at(group.data(), cat("expected elements of ", type_, "; got none"));
      return {std::nullopt, make_constant(type_, {})};
    }
    if (body.peek() != '[' && type_->num_elements() != 0) {
      Bits bits = element(body);
      if (!body.at_end()) body.fail_expected("> after the element");
      return of_one(bits);
    }
    read_list(body, 0);
    if (!body.at_end()) body.fail_expected("> after the elements");
    if (type_->rank() == 0) body.fail_at(group.data(), cat("expected one element of ", type_));
    return {std::nullopt, make_constant(type_, std::move(bytes_))};
  }

 private:
  size_t part_size() const { return static_cast<size_t>(std::max(info(part_).bits, 8)) / 8; }
  size_t element_size() const { return part_size() * (is_complex(dtype_) ? 2 : 1); }

  void append(const Bits& bits) {
    for (size_t i = 0; i < (is_complex(dtype_) ? 2u : 1u); ++i)
      bytes_.append(reinterpret_cast<const char*>(&bits.part[i]), part_size());
  }

  // nullopt: a literal would not keep the bits of this nan.
  std::optional<Literal> literal(const Bits& bits) const {
    if (!is_inexact(dtype_)) return make_literal(dtype_, static_cast<int64_t>(bits.part[0]));
    double x[2] = {0, 0};
    for (size_t i = 0; i < (is_complex(dtype_) ? 2u : 1u); ++i) {
      x[i] = float_of_bits(part_, bits.part[i]);
      if (std::isnan(x[i]) && part_ == DType::kF32 && bits.part[i] != 0x7FC00000)
        return std::nullopt;
      if (std::isnan(x[i]) && part_ == DType::kF64 && bits.part[i] != 0x7FF8000000000000)
        return std::nullopt;
    }
    if (is_complex(dtype_)) return make_literal(dtype_, std::complex<double>(x[0], x[1]));
    return make_literal(dtype_, x[0]);
  }

  Elements of_one(const Bits& bits) {
    if (std::optional<Literal> x = literal(bits)) return {x, nullptr};
    append(bits);
    return {std::nullopt, make_constant(scalar_type(dtype_), std::move(bytes_))};
  }

  // The bytes of "0x00FF".
  std::string decoded(std::string_view digits) const {
    const char* at = digits.data();
    if (!digits.starts_with("0x") || digits.size() % 2 != 0)
      document_.source().fail(at, ErrorKind::kParse, "expected bytes such as 0x0000803F");
    std::string bytes((digits.size() - 2) / 2, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) {
      unsigned byte = 0;
      const char* first = digits.data() + 2 + 2 * i;
      auto [end, error] = std::from_chars(first, first + 2, byte, 16);
      if (error != std::errc{} || end != first + 2)
        document_.source().fail(first, ErrorKind::kParse, "expected two hexadecimal digits");
      bytes[i] = static_cast<char>(byte);
    }
    return bytes;
  }

  Bits at_byte(const std::string& bytes, size_t begin) const {
    Bits bits;
    for (size_t i = 0; i < element_size() / part_size(); ++i)
      std::memcpy(&bits.part[i], bytes.data() + begin + i * part_size(), part_size());
    return bits;
  }

  Elements of_bytes(std::string bytes, const char* at, size_t skip) {
    if (bytes.size() < skip)
      document_.source().fail(at, ErrorKind::kParse, "expected bytes behind the alignment");
    bytes.erase(0, skip);
    auto count = static_cast<size_t>(type_->num_elements());
    if (is_bool(dtype_) && bytes.size() != count && bytes.size() == (count + 7) / 8) {
      std::string unpacked(count, '\0');
      for (size_t i = 0; i < count; ++i)
        unpacked[i] = static_cast<char>(static_cast<unsigned char>(bytes[i / 8]) >> (i % 8) & 1);
      bytes = std::move(unpacked);
    } else if (is_bool(dtype_)) {
      for (char& byte : bytes) byte = byte != 0;
    }
    if (bytes.size() == element_size() && count > 0) {
      Bits bits = at_byte(bytes, 0);
      if (is_integer(dtype_) || count == 1 || literal(bits)) return of_one(bits);
    }
    if (bytes.size() % element_size() != 0 || bytes.size() / element_size() != count)
      document_.source().fail(at, ErrorKind::kParse,
                              cat("expected ", count, " elements of ", element_size(),
                                  " bytes for ", type_, "; got ", bytes.size(), " bytes"));
    return {std::nullopt, make_constant(type_, std::move(bytes))};
  }

  void read_list(Cursor& in, int axis) {
    const char* begin = in.position();
    in.expect("[", "to begin a list of elements");
    if (axis >= type_->rank())
      in.fail_at(begin, cat("expected lists in each other ", type_->rank(), " deep for ", type_));
    int64_t count = 0;
    bool is_last = axis + 1 == type_->rank();
    while (!in.accept(']')) {
      if (count > 0) in.expect(",", "between elements");
      if (is_last) {
        append(element(in));
      } else {
        read_list(in, axis + 1);
      }
      ++count;
    }
    if (count != type_->dim(axis))
      in.fail_at(begin, cat("expected ", type_->dim(axis), " elements along axis ", axis, " of ",
                            type_, "; got ", count));
  }

  Bits element(Cursor& in) {
    if (!is_complex(dtype_)) return {{number(in), 0}};
    Bits bits;
    in.expect("(", "to begin a complex number");
    bits.part[0] = number(in);
    in.expect(",", "between the parts of a complex number");
    bits.part[1] = number(in);
    in.expect(")", "to end a complex number");
    return bits;
  }

  [[noreturn]] void fail_element(const Cursor& in, const char* at) const {
    (void)in;
    Cursor again = document_.cursor(in.rest());
    again.seek(at);
    again.fail_expected(cat("an element of ", type_));
  }

  uint64_t number(Cursor& in) {
    in.skip_space();
    const char* at = in.position();
    const char* end = at + in.rest().size();
    if (is_bool(dtype_)) {
      if (in.accept_word("true")) return 1;
      if (in.accept_word("false")) return 0;
    }
    bool negative = in.here() == '-';
    if (in.here(negative) == '0' && (in.here(negative + 1) == 'x')) {
      uint64_t bits = 0;
      auto [stop, error] = std::from_chars(at + negative + 2, end, bits, 16);
      int width = info(part_).bits;
      bool fits = width == 64 || bits >> width == 0;
      if (error != std::errc{} || !fits || (negative && is_inexact(dtype_))) fail_element(in, at);
      in.seek(stop);
      return negative ? -bits : bits;
    }
    if (is_inexact(dtype_)) {
      double x = 0;
      auto [stop, error] = std::from_chars(at, end, x);
      if (error == std::errc::result_out_of_range) x = beyond_range(at, stop);
      if ((error != std::errc{} && error != std::errc::result_out_of_range) || !is_numeric(at))
        fail_element(in, at);
      in.seek(stop);
      double rounded = part_ == DType::kF32   ? static_cast<double>(static_cast<float>(x))
                       : part_ == DType::kF64 ? x
                                              : round_to(part_, x);
      bool wide = part_ == DType::kF32 || part_ == DType::kF64;
      if (!wide && (!std::isfinite(rounded) || (x == 0 && part_ == DType::kF8E8M0FNU)))
        fail_element(in, at);
      return bits_of_float(part_, rounded);
    }
    Literal x{dtype_};
    if (is_unsigned_int(dtype_) || is_bool(dtype_)) {
      auto [stop, error] = std::from_chars(at, end, x.lo);
      if (error != std::errc{}) fail_element(in, at);
      in.seek(stop);
    } else {
      int64_t value = 0;
      auto [stop, error] = std::from_chars(at, end, value);
      if (error != std::errc{}) fail_element(in, at);
      in.seek(stop);
      x.lo = static_cast<uint64_t>(value);
    }
    if (!(make_literal(dtype_, x.as_int()) == x)) fail_element(in, at);
    return x.lo;
  }

  static bool is_numeric(const char* at) {
    char c = *at == '-' ? at[1] : *at;
    return c >= '0' && c <= '9';
  }

  // Of a number with too large an exponent, or one so small that it is zero.
  static double beyond_range(const char* at, const char* stop) {
    std::string_view text(at, static_cast<size_t>(stop - at));
    double sign = text.starts_with('-') ? -1 : 1;
    size_t exponent = text.find_first_of("eE");
    bool tiny = exponent != text.npos && text.substr(exponent + 1).starts_with('-');
    return std::copysign(tiny ? 0.0 : std::numeric_limits<double>::infinity(), sign);
  }

  const Document& document_;
  TypeRef type_;
  DType dtype_, part_;
  std::string bytes_;
};

}  // namespace

Elements read_elements(const Document& document, std::string_view value, TypeRef type) {
  return ElementReader(document, type).read(value);
}

}  // namespace weft::reader
