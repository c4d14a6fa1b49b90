// SPDX-License-Identifier: Apache-2.0
// 64-bit hash mixing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weft {

inline uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  return x;
}

inline uint64_t hash_combine(uint64_t seed, uint64_t x) {
  return mix(seed * 0x9e3779b97f4a7c15ull + x + 0x632be59bd9b4e019ull);
}

inline uint64_t hash_bytes(std::string_view s) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (unsigned char c : s) h = (h ^ c) * 0x100000001b3ull;
  return mix(h);
}

inline uint64_t hash_pointer(const void* p) { return mix(reinterpret_cast<uintptr_t>(p)); }

template <typename T>
uint64_t hash_ints(std::span<const T> xs) {
  uint64_t h = xs.size();
  for (T x : xs) h = hash_combine(h, static_cast<uint64_t>(x));
  return h;
}

}  // namespace weft
