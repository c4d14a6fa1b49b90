// Files of safetensors: eight bytes that say how long the header is, the header, which is JSON, and
// the elements.
#include "weft/arrays.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <fstream>

#include "weft/error.h"
#include "weft/session.h"
#include "weft/text.h"

namespace weft {

static_assert(std::endian::native == std::endian::little, "elements are stored low bytes first");

namespace {

constexpr std::string_view kMetadata = "__metadata__";
constexpr uint64_t kMostHeader = 100'000'000;  // what the format allows

constexpr std::array<std::pair<std::string_view, DType>, 17> kNames = {{
    {"BOOL", DType::kBool},
    {"U8", DType::kU8},
    {"I8", DType::kI8},
    {"U16", DType::kU16},
    {"I16", DType::kI16},
    {"U32", DType::kU32},
    {"I32", DType::kI32},
    {"U64", DType::kU64},
    {"I64", DType::kI64},
    {"F16", DType::kF16},
    {"BF16", DType::kBF16},
    {"F32", DType::kF32},
    {"F64", DType::kF64},
    {"C64", DType::kC64},
    {"F8_E5M2", DType::kF8E5M2},
    {"F8_E4M3", DType::kF8E4M3FN},
    {"F8_E8M0", DType::kF8E8M0FNU},
}};

// The header, token by token.
class Header {
 public:
  Header(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  [[noreturn]] void fail_here(std::string_view expected) const {
    fail(ErrorKind::kParse, "expected ", expected, " at byte ", at_ + 8, " of ", path_);
  }
  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail_here(std::string_view(&c, 1));
  }
  void expect_end() {
    skip_blanks();
    if (at_ != text_.size()) fail_here("the end of the header");
  }
  // Items with commas between them, up to `close`.
  template <typename Item>
  void list(char close, Item&& item) {
    if (take(close)) return;
    do item();
    while (take(','));
    expect(close);
  }
  // Keys with values.
  template <typename Entry>
  void object(Entry&& entry) {
    expect('{');
    list('}', [&] {
      std::string key = string();
      expect(':');
      entry(key);
    });
  }
  std::string string() {
    expect('"');
    std::string out;
    for (;;) {
      if (at_ == text_.size()) fail_here("the end of a string");
      char c = text_[at_++];
      if (c == '"') return out;
      out += c == '\\' ? escaped() : std::string(1, c);
    }
  }
  int64_t number() {
    skip_blanks();
    size_t begin = at_;
    int64_t x = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      x = x * 10 + (text_[at_] - '0');
      if (x >> 53) fail_here("a number of bytes or elements");
    }
    if (at_ == begin) fail_here("a number");
    return x;
  }
  Dims numbers() {
    expect('[');
    Dims out;
    list(']', [&] { out.push_back(number()); });
    return out;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  std::string escaped() {
    if (at_ == text_.size()) fail_here("a character behind \\");
    char c = text_[at_++];
    constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    if (size_t i = kFrom.find(c); i != kFrom.npos) return std::string(1, kTo[i]);
    if (c != 'u') fail_here("a character that JSON has behind \\");
    uint32_t code = unit();
    if (code >= 0xd800 && code < 0xdc00) {  // the first half of a pair
      if (text_.substr(at_, 2) != "\\u") fail_here("the second half of a pair");
      at_ += 2;
      code = 0x10000 + ((code - 0xd800) << 10) + ((unit() - 0xdc00) & 0x3ff);
    }
    return utf8(code);
  }
  uint32_t unit() {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      size_t digit = at_ < text_.size() ? kDigits.find(text_[at_] | 0x20) : kDigits.npos;
      if (digit == kDigits.npos) fail_here("four hexadecimal digits");
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    return code;
  }
  static std::string utf8(uint32_t code) {
    auto low = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
    auto high = [&](uint32_t mark, int shift) { return static_cast<char>(mark | (code >> shift)); };
    if (code < 0x80) return {static_cast<char>(code)};
    if (code < 0x800) return {high(0xc0, 6), low(0)};
    if (code < 0x10000) return {high(0xe0, 12), low(6), low(0)};
    return {high(0xf0, 18), low(12), low(6), low(0)};
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    auto code = static_cast<unsigned char>(c);
    if (code < 0x20) {
      out += cat("\\u00", code >> 4, kDigits.substr(code & 15, 1));
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out += '"';
}

NamedArray read_entry(Header& header, const std::string& name, std::string_view elements) {
  std::string dtype;
  Dims shape, offsets;
  header.object([&](const std::string& key) {
    if (key == "dtype") {
      dtype = header.string();
    } else if (key == "shape") {
      shape = header.numbers();
    } else if (key == "data_offsets") {
      offsets = header.numbers();
    } else {
      header.fail_here("dtype, shape or data_offsets before this");
    }
  });
  auto is_it = [&](const auto& known) { return known.first == dtype; };
  auto found = std::find_if(kNames.begin(), kNames.end(), is_it);
  if (found == kNames.end()) header.fail_here(cat("a dtype that weft has, not \"", dtype, "\","));
  TypeRef type = make_type(found->second, shape);
  auto size = static_cast<int64_t>(elements.size());
  bool fits = offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= size &&
              offsets[1] - offsets[0] == host_bytes(type);
  if (!fits) header.fail_here(cat("offsets within ", size, " bytes for ", type, " of ", name));
  std::string_view own = elements.substr(static_cast<size_t>(offsets[0]),
                                         static_cast<size_t>(offsets[1] - offsets[0]));
  return {name, type, std::vector<char>(own.begin(), own.end())};
}

}  // namespace

std::vector<NamedArray> read_arrays(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorKind::kValue, "expected a file of arrays; cannot read ", path);
  std::string file{std::istreambuf_iterator<char>(in), {}};
  uint64_t size = 0;
  if (file.size() >= sizeof size)
    std::copy_n(file.data(), sizeof size, reinterpret_cast<char*>(&size));
  if (file.size() < sizeof size || size > kMostHeader || size > file.size() - sizeof size)
    fail(ErrorKind::kParse, "expected a file of safetensors; ", path, " is none");
  std::string_view all = file;
  Header header(all.substr(sizeof size, size), path);
  std::string_view elements = all.substr(sizeof size + size);
  std::vector<NamedArray> arrays;
  header.object([&](const std::string& name) {
    if (name == kMetadata) {
      header.object([&](const std::string&) { header.string(); });
    } else {
      arrays.push_back(read_entry(header, name, elements));
    }
  });
  header.expect_end();
  return arrays;
}

void write_arrays(const std::string& path, std::span<const NamedArray> arrays) {
  std::string header = "{";
  int64_t offset = 0;
  for (const NamedArray& array : arrays) {
    auto same = [&](const NamedArray& other) { return other.name == array.name; };
    if (array.name == kMetadata || std::count_if(arrays.begin(), arrays.end(), same) > 1)
      fail(ErrorKind::kValue, "expected names that differ; got ", array.name, " twice");
    auto is_it = [&](const auto& known) { return known.second == array.type->dtype(); };
    auto found = std::find_if(kNames.begin(), kNames.end(), is_it);
    if (found == kNames.end())
      fail(ErrorKind::kDtype, "expected a dtype that safetensors has; got ", array.type);
    int64_t size = host_bytes(array.type);
    if (static_cast<size_t>(size) != array.bytes.size())
      fail(ErrorKind::kValue, "expected ", size, " bytes for ", array.type, "; got ",
           array.bytes.size());
    Text shape;
    for (int64_t n : array.type->shape()) shape << (shape.size() ? "," : "") << n;
    header += cat(header.size() > 1 ? "," : "", quoted(array.name), ":{\"dtype\":\"", found->first,
                  "\",\"shape\":[", shape.view(), "],\"data_offsets\":[", offset, ",",
                  offset + size, "]}");
    offset += size;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');  // elements are aligned
  uint64_t size = header.size();
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out << header;
  for (const NamedArray& array : arrays)
    out.write(array.bytes.data(), static_cast<std::streamsize>(array.bytes.size()));
  if (!out.flush()) fail(ErrorKind::kValue, "expected a file that can be written; got ", path);
}

const NamedArray& find_array(std::span<const NamedArray> arrays, std::string_view name) {
  Text names;
  for (const NamedArray& array : arrays) {
    if (array.name == name) return array;
    names << (names.size() ? ", " : "") << array.name;
  }
  fail(ErrorKind::kValue, "expected one of ", names.view(), "; got ", name);
}

}  // namespace weft
