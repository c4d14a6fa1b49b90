// Dense constants.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "weft/error.h"
#include "weft/hash.h"
#include "weft/held.h"

namespace weft {

namespace {

size_t element_size(DType dtype) { return static_cast<size_t>(std::max(info(dtype).bits, 8)) / 8; }

template <typename T>
T read(const char* at) {
  T x;
  std::memcpy(&x, at, sizeof x);
  return x;
}

// bfloat16 is the upper half of a float32; float16 has 5 bits of exponent and 10 of mantissa.
double half(DType dtype, uint16_t bits) {
  if (dtype == DType::kBF16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  int exponent = (bits >> 10) & 31;
  double mantissa = bits & 1023;
  double x = exponent == 31  ? (mantissa != 0 ? NAN : INFINITY)
             : exponent == 0 ? std::ldexp(mantissa, -24)
                             : std::ldexp(mantissa + 1024, exponent - 25);
  return bits >> 15 ? -x : x;
}

double read_float(DType dtype, const char* at) {
  switch (dtype) {
    case DType::kF64:
    case DType::kC128:
      return read<double>(at);
    case DType::kF32:
    case DType::kC64:
      return read<float>(at);
    case DType::kF16:
    case DType::kBF16:
      return half(dtype, read<uint16_t>(at));
    default:
      return NAN;
  }
}

std::optional<Literal> read_element(DType dtype, const char* at) {
  if (is_inexact(dtype)) {
    double real = read_float(dtype, at);
    double imag = is_complex(dtype) ? read_float(dtype, at + element_size(dtype) / 2) : 0;
    if (std::isnan(real) || std::isnan(imag)) return std::nullopt;
    return is_complex(dtype) ? make_literal(dtype, {real, imag}) : make_literal(dtype, real);
  }
  uint64_t bits = 0;
  std::memcpy(&bits, at, element_size(dtype));
  return make_literal(dtype, static_cast<int64_t>(bits));  // wraps to the dtype
}

}  // namespace

static_assert(std::endian::native == std::endian::little, "elements are kept low bytes first");

DenseConstant::DenseConstant(TypeRef type, std::string bytes)
    : type_(type), bytes_(std::move(bytes)) {
  // Bits that no element has are cleared, so that equal elements are equal bytes.
  int bits = is_bool(type->dtype()) ? 1 : info(type->dtype()).bits;
  if (bits < 8)
    for (char& byte : bytes_) byte = static_cast<char>(byte & ((1 << bits) - 1));
  hash_ = hash_combine(type->hash(), hash_bytes(bytes_));
}

bool DenseConstant::equals(const AttrObject& other) const {
  const auto* constant = dynamic_cast<const DenseConstant*>(&other);
  return constant && constant->type_ == type_ && constant->bytes_ == bytes_;
}

std::string DenseConstant::text() const {
  static constexpr char digits[] = "0123456789ABCDEF";
  Text out;
  out << type_ << ":0x";
  for (unsigned char byte : bytes_) out << digits[byte >> 4] << digits[byte & 15];
  return out.take();
}

std::optional<Literal> DenseConstant::splat() const {
  size_t size = element_size(type_->dtype());
  if (bytes_.empty()) return std::nullopt;
  if (!std::equal(bytes_.begin() + static_cast<std::ptrdiff_t>(size), bytes_.end(), bytes_.begin()))
    return std::nullopt;
  return read_element(type_->dtype(), bytes_.data());
}

std::shared_ptr<const DenseConstant> make_constant(TypeRef type, std::string bytes) {
  size_t expected = static_cast<size_t>(type->num_elements()) * element_size(type->dtype());
  if (bytes.size() != expected) {
    fail(ErrorKind::kValue, "[constant] expected ", expected, " bytes for the elements of ", type,
         "; got ", bytes.size());
  }
  return std::make_shared<DenseConstant>(type, std::move(bytes));
}

std::shared_ptr<const DenseConstant> make_constant(DType dtype, std::span<const Literal> elements) {
  bool is_plain =
      is_bool(dtype) || is_integer(dtype) || dtype == DType::kF32 || dtype == DType::kF64;
  if (!is_plain || info(dtype).bits < 8) return nullptr;
  std::string bytes;
  for (const Literal& x : elements) {
    uint64_t bits =
        dtype == DType::kF32 ? std::bit_cast<uint32_t>(static_cast<float>(x.as_double())) : x.lo;
    bytes.append(reinterpret_cast<const char*>(&bits), element_size(dtype));
  }
  return make_constant(make_type(dtype, {static_cast<int64_t>(elements.size())}), std::move(bytes));
}

}  // namespace weft
