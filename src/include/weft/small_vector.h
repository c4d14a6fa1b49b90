// SPDX-License-Identifier: Apache-2.0
// A vector of trivially copyable values that keeps up to N of them without allocating.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <new>
#include <span>
#include <type_traits>

namespace weft {

template <typename T, uint32_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>, "SmallVector copies with memcpy");

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() : data_(inline_()) {}
  explicit SmallVector(size_t n, T fill = T()) : SmallVector() { resize(n, fill); }
  SmallVector(std::initializer_list<T> xs) : SmallVector(xs.begin(), xs.end()) {}
  template <std::input_iterator It>
  SmallVector(It first, It last) : SmallVector() {
    for (; first != last; ++first) push_back(*first);
  }
  SmallVector(std::span<const T> xs) : SmallVector() { append(xs); }
  SmallVector(const SmallVector& o) : SmallVector() { append(o); }
  SmallVector(SmallVector&& o) noexcept : SmallVector() { steal(o); }
  ~SmallVector() { release(); }

  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) {
      clear();
      append(o);
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this != &o) {
      release();
      data_ = inline_();
      size_ = 0;
      capacity_ = N;
      steal(o);
    }
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }

  void clear() { size_ = 0; }
  void pop_back() { --size_; }
  void push_back(T x) {
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = x;
  }
  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }
  void resize(size_t n, T fill = T()) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data_[i] = fill;
    size_ = static_cast<uint32_t>(n);
  }
  void append(std::span<const T> xs) {
    if (xs.empty()) return;
    reserve(size_ + xs.size());
    std::memcpy(static_cast<void*>(data_ + size_), xs.data(), xs.size() * sizeof(T));
    size_ += static_cast<uint32_t>(xs.size());
  }
  void insert(size_t at, T x) {
    push_back(x);
    for (size_t i = size_ - 1; i > at; --i) data_[i] = data_[i - 1];
    data_[at] = x;
  }
  void erase(size_t at) {
    for (size_t i = at + 1; i < size_; ++i) data_[i - 1] = data_[i];
    --size_;
  }

  operator std::span<const T>() const { return {data_, size_}; }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  T* inline_() { return reinterpret_cast<T*>(storage_); }
  bool is_inline() const { return data_ == reinterpret_cast<const T*>(storage_); }
  void release() {
    if (!is_inline()) std::free(data_);
  }
  void steal(SmallVector& o) {
    if (o.is_inline()) {
      append(o);
    } else {
      data_ = o.data_;
      size_ = o.size_;
      capacity_ = o.capacity_;
      o.data_ = o.inline_();
      o.capacity_ = N;
    }
    o.size_ = 0;
  }
  void grow(size_t n) {
    size_t capacity = capacity_ * 2;
    if (capacity < n) capacity = n;
    T* fresh = static_cast<T*>(std::malloc(capacity * sizeof(T)));
    if (!fresh) throw std::bad_alloc();
    std::memcpy(static_cast<void*>(fresh), data_, size_ * sizeof(T));
    release();
    data_ = fresh;
    capacity_ = static_cast<uint32_t>(capacity);
  }

  T* data_;
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  alignas(T) unsigned char storage_[N * sizeof(T)];
};

// Dimension sizes, axis numbers, permutations.
using Dims = SmallVector<int64_t, 6>;

}  // namespace weft
