// The process-wide table of types. Each thread keeps a small direct-mapped cache in front of it, so
// that making a type again takes no lock.
#include "weft/type.h"

#include <array>
#include <charconv>
#include <deque>
#include <limits>
#include <mutex>

#include "support/index_table.h"
#include "weft/checked.h"
#include "weft/error.h"
#include "weft/hash.h"

namespace weft {

class TypeTable {
 public:
  TypeRef intern(DType dtype, std::span<const int64_t> shape, uint64_t hash) {
    std::lock_guard lock(mutex_);
    uint32_t found =
        index_.find(hash, [&](uint32_t i) { return matches(types_[i], dtype, shape, hash); });
    if (found != IndexTable::kAbsent) return &types_[found];
    int64_t num_elements = count(dtype, shape);
    index_.insert(hash, static_cast<uint32_t>(types_.size()));
    Type type;
    type.dtype_ = dtype;
    type.shape_ = Dims(shape);
    type.num_elements_ = num_elements;
    type.hash_ = hash;
    types_.push_back(std::move(type));
    return &types_.back();
  }

  static bool matches(const Type& type, DType dtype, std::span<const int64_t> shape,
                      uint64_t hash) {
    if (type.hash_ != hash || type.dtype_ != dtype || type.shape_.size() != shape.size()) {
      return false;
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      if (type.shape_[i] != shape[i]) return false;
    }
    return true;
  }

 private:
  // Checks the dimensions too: each distinct type comes here once.
  static int64_t count(DType dtype, std::span<const int64_t> shape) {
    if (has_symbols(shape)) return count_symbols(dtype, shape);
    Checked bits = info(dtype).bits;
    bool empty = false;
    for (int64_t dim : shape) {
      if (dim < 0) {
        fail(ErrorKind::kShape, "expected dimensions of at least 0; got a ", short_name(dtype),
             " array of shape ", shape);
      }
      empty |= dim == 0;
      if (dim > 0) bits = bits * dim;
    }
    constexpr int64_t kMaxBits = std::numeric_limits<int64_t>::max() - 7;  // 2**60 - 1 bytes
    if (!bits.within(0, kMaxBits)) {
      fail(ErrorKind::kShape, "expected an array of fewer than 2**60 bytes; got a ",
           short_name(dtype), " array of shape ", shape);
    }
    return empty ? 0 : bits.value() / info(dtype).bits;
  }

  static int64_t count_symbols(DType dtype, std::span<const int64_t> shape) {
    int64_t count = 1;
    for (int64_t dim : shape) {
      if (is_symbolic(dim) ? !is_known_symbol(dim) : dim < 0)
        fail(ErrorKind::kShape, "expected dimensions of at least 0, or symbolic ones; got a ",
             short_name(dtype), " array of shape ", shape);
      count = dim_mul(count, dim);
    }
    return count;
  }

  std::mutex mutex_;
  std::deque<Type> types_;
  IndexTable index_;
};

namespace {

uint64_t hash_type(DType dtype, std::span<const int64_t> shape) {
  // One multiplication per dimension: this runs for every op that is traced.
  uint64_t h = static_cast<uint64_t>(dtype) + 1 + 64 * shape.size();
  for (int64_t dim : shape) h = (h ^ static_cast<uint64_t>(dim)) * 0x9e3779b97f4a7c15ull;
  return mix(h);
}

}  // namespace

TypeRef make_type(DType dtype, std::span<const int64_t> shape) {
  static TypeTable& table = *new TypeTable;  // never destroyed: types outlive all statics
  thread_local std::array<TypeRef, 256> cache{};
  uint64_t hash = hash_type(dtype, shape);
  TypeRef& slot = cache[hash % cache.size()];
  if (!slot || !TypeTable::matches(*slot, dtype, shape, hash)) {
    slot = table.intern(dtype, shape, hash);
  }
  return slot;
}

Text& operator<<(Text& out, TypeRef type) {
  if (!type) return out << "<no type>";
  out << short_name(type->dtype()) << '[';
  for (int i = 0; i < type->rank(); ++i) {
    if (i) out << ',';
    out << type->dim(i);
  }
  return out << ']';
}

TypeRef parse_type(std::string_view text) {
  auto malformed = [&](const char* expected) {
    fail(ErrorKind::kParse, "expected ", expected, "; got \"", text, "\"");
  };
  size_t open = text.find('[');
  if (open == text.npos || text.back() != ']') malformed("a type such as f32[8,128]");
  std::optional<DType> dtype = parse_dtype(text.substr(0, open));
  if (!dtype) malformed("a type that starts with a dtype such as f32");
  Dims shape;
  const char* at = text.data() + open + 1;
  const char* end = text.data() + text.size() - 1;
  auto skip_spaces = [&] {
    while (at != end && *at == ' ') ++at;
  };
  for (skip_spaces(); at != end;) {
    int64_t dim = 0;
    auto [next, error] = std::from_chars(at, end, dim);
    std::string_view rest(at, static_cast<size_t>(end - at));
    std::string_view expression = rest.substr(0, end_of_dim(rest));
    if (next != at + expression.size() && ReadingScope::current()) {
      dim = parse_dim(expression, ReadingScope::current());
      next = at + expression.size();
    } else if (error != std::errc{} || dim < 0) {
      malformed("dimensions that are numbers of at least 0");
    }
    shape.push_back(dim);
    at = next;
    skip_spaces();
    if (at == end) break;
    if (*at++ != ',') malformed("dimensions separated by commas");
    skip_spaces();
    if (at == end) malformed("a dimension after the comma");
  }
  return make_type(*dtype, shape);
}

}  // namespace weft
