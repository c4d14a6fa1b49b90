// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sizes that come from outside: attributes, shapes, numbers in text.
#pragma once

#include <cstdint>
#include <span>

#include "weft/dims.h"

namespace weft {

// What is at least a number below this has no lower bound.
inline constexpr int64_t kFarBelow = -(int64_t{1} << 58);

// A 64-bit integer that knows when a sum or product of it did not fit. Rules of inference compute
// with these and refuse what does not fit, before anything is made of it. It may be a size that is
// a symbol (weft/dims.h): comparisons then throw kInconclusive where they hold for some sizes only.
class Checked {
 public:
  Checked(int64_t x) : value_(x) {}

  bool fits() const { return fits_; }
  // Whether it fits and is between the two, inclusively.
  bool within(int64_t low, int64_t high) const {
    if (is_symbolic(value_)) [[unlikely]]
      return fits_ && (low < kFarBelow || dim_at_least(value_, low)) &&
             dim_may_be_at_most(value_, high);
    return fits_ && low <= value_ && value_ <= high;
  }
  int64_t value() const { return value_; }  // any number unless it fits

  friend Checked operator+(Checked a, Checked b) {
    return {a, b, dim_add,
            [](int64_t x, int64_t y, int64_t* r) { return __builtin_add_overflow(x, y, r); }};
  }
  friend Checked operator-(Checked a, Checked b) {
    return {a, b, dim_sub,
            [](int64_t x, int64_t y, int64_t* r) { return __builtin_sub_overflow(x, y, r); }};
  }
  friend Checked operator*(Checked a, Checked b) {
    return {a, b, dim_mul,
            [](int64_t x, int64_t y, int64_t* r) { return __builtin_mul_overflow(x, y, r); }};
  }
  // Numbers that do not fit equal nothing.
  friend bool operator==(Checked a, Checked b) {
    return a.fits_ && b.fits_ && a.value_ == b.value_;
  }
  // Numbers that do not fit are in no order.
  friend bool operator<=(Checked a, Checked b) {
    if (is_symbolic(a.value_) || is_symbolic(b.value_)) [[unlikely]]
      return a.fits_ && b.fits_ && dim_at_least(b.value_, a.value_);
    return a.fits_ && b.fits_ && a.value_ <= b.value_;
  }
  friend bool operator>=(Checked a, Checked b) { return b <= a; }

 private:
  template <typename F>
  Checked(Checked a, Checked b, int64_t (*of_symbols)(int64_t, int64_t), F&& overflows) {
    if (is_symbolic(a.value_) || is_symbolic(b.value_)) [[unlikely]] {
      fits_ = a.fits_ && b.fits_;
      if (fits_) value_ = of_symbols(a.value_, b.value_);
      return;
    }
    fits_ = !overflows(a.value_, b.value_, &value_) && a.fits_ && b.fits_;
  }

  int64_t value_ = 0;
  bool fits_ = true;
};

inline Checked checked_sum(std::span<const int64_t> xs) {
  Checked sum = 0;
  for (int64_t x : xs) sum = sum + x;
  return sum;
}
inline Checked checked_product(std::span<const int64_t> xs) {
  Checked product = 1;
  for (int64_t x : xs) product = product * x;
  return product;
}

// a / b rounded up, for a >= 0 and b > 0.
inline int64_t divide_up(int64_t a, int64_t b) {
  if (is_symbolic(a) || is_symbolic(b)) [[unlikely]]
    return dim_floordiv(dim_add(a, dim_sub(b, 1)), b);
  return a == 0 ? 0 : (a - 1) / b + 1;
}

}  // namespace weft
