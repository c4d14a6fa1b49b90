// Keys of caches, as far as they are numbers.
#pragma once

#include <bit>
#include <cstring>
#include <initializer_list>
#include <span>

#include "weft/hash.h"
#include "weft/small_vector.h"

namespace weft::py {

// A sequence of records of integers. Each is written behind its length, and there is no other way
// to write, so that a key can be decoded: two are equal only if they were built of the same
// records.
class CacheKey {
 public:
  CacheKey& add(std::initializer_list<int64_t> record) {
    return add(std::span<const int64_t>(record.begin(), record.size()));
  }
  CacheKey& add(std::span<const int64_t> record) {
    words_.push_back(static_cast<int64_t>(record.size()));
    words_.append(record);
    return *this;
  }
  // A key within a key.
  CacheKey& add(const CacheKey& key) { return add(std::span<const int64_t>(key.words_)); }

  uint64_t hash() const {
    uint64_t h = 0;
    for (int64_t w : words_)
      h = (std::rotl(h, 5) ^ static_cast<uint64_t>(w)) * 0x9e3779b97f4a7c15ull;
    return mix(h);
  }
  friend bool operator==(const CacheKey& a, const CacheKey& b) {
    return a.words_.size() == b.words_.size() &&
           std::memcmp(a.words_.data(), b.words_.data(), a.words_.size() * sizeof(int64_t)) == 0;
  }

 private:
  SmallVector<int64_t, 24> words_;
};

// A pointer to what lives as long as the key, as a number of a record.
inline int64_t word(const void* p) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p)); }

}  // namespace weft::py
