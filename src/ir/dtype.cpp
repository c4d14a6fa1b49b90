// The dtype table and look-ups in it. Promotion is in promote.cpp.
#include "weft/dtype.h"

#include <atomic>
#include <mutex>
#include <string>

#include "weft/error.h"

namespace weft {

DTypeInfo kDTypeInfo[kMaxDTypes] = {
#define X(name, short_name, numpy_name, mlir, bits, kind) \
  {short_name, numpy_name, mlir, bits, DTypeKind::kind},
    WEFT_DTYPES(X)
#undef X
        {"key<fry>", "key<fry>", "", 2 * 32, DTypeKind::kKey},
    {"key<rbg>", "key<rbg>", "", 4 * 32, DTypeKind::kKey},
    {"key<urbg>", "key<urbg>", "", 4 * 32, DTypeKind::kKey},
};

namespace {

// Entries below are complete, so that look-ups take no lock.
std::atomic<int> num_dtypes = kNumDTypes + 3;

}  // namespace

std::optional<DType> parse_dtype(std::string_view name) {
  for (int i = 0; i < num_dtypes; ++i) {
    if (kDTypeInfo[i].short_name == name || kDTypeInfo[i].numpy_name == name) {
      return static_cast<DType>(i);
    }
  }
  return std::nullopt;
}

DType register_key_dtype(std::string_view name, int words) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  constexpr int kMaxWords = 1 << 16;
  if (words < 1 || words > kMaxWords)
    fail(ErrorKind::kValue, "expected keys of 1 to ", kMaxWords, " words; got ", words);
  if (std::optional<DType> known = parse_dtype(name)) {
    if (is_key(*known) && key_words(*known) == words) return *known;
    fail(ErrorKind::kValue, "expected a new dtype; got ", name, ", which is taken");
  }
  int next = num_dtypes;
  if (next == kMaxDTypes)
    fail(ErrorKind::kValue, "expected at most ", kMaxDTypes - kNumDTypes,
         " dtypes of keys in a process; got one more, ", name);
  const std::string& kept = *new std::string(name);  // for the life of the process, as the dtype
  kDTypeInfo[next] = {kept, kept, "", words * 32, DTypeKind::kKey};
  num_dtypes = next + 1;
  return static_cast<DType>(next);
}

DType canonicalize(DType d, bool x64) {
  if (x64) return d;
  switch (d) {
    case DType::kI64:
      return DType::kI32;
    case DType::kU64:
      return DType::kU32;
    case DType::kF64:
      return DType::kF32;
    case DType::kC128:
      return DType::kC64;
    default:
      return d;
  }
}

}  // namespace weft
