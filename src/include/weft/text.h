// SPDX-License-Identifier: Apache-2.0
// Text building: an append-only string with fast number formatting, and cat() for messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "weft/api.h"

namespace weft {

// Whatever the locale is, unlike std::isdigit.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What stands between the ends of lines; nothing of an empty text.
WEFT_API std::vector<std::string_view> lines_of(std::string_view text);

class WEFT_API Text {
 public:
  Text& operator<<(std::string_view s) {
    out_.append(s);
    return *this;
  }
  Text& operator<<(const char* s) { return *this << std::string_view(s); }
  Text& operator<<(const std::string& s) { return *this << std::string_view(s); }
  Text& operator<<(char c) {
    out_.push_back(c);
    return *this;
  }
  Text& operator<<(bool b) { return *this << (b ? "True" : "False"); }
  template <typename T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>)
  Text& operator<<(T x) {
    if constexpr (std::is_signed_v<T>) {
      append_int(static_cast<int64_t>(x));
    } else {
      append_uint(static_cast<uint64_t>(x));
    }
    return *this;
  }
  // Shortest decimal form that reads back as the same double.
  Text& operator<<(double x);
  // A Python tuple: (), (3,), (3, 4).
  Text& operator<<(std::span<const int64_t> xs);
  // Between two of a quote, with escapes before that, backslashes and ends of lines.
  Text& quoted(std::string_view s, char quote);

  Text& spaces(int n) {
    out_.append(static_cast<size_t>(n), ' ');
    return *this;
  }
  void reserve(size_t n) { out_.reserve(n); }
  size_t size() const { return out_.size(); }
  std::string_view view() const { return out_; }
  std::string take() { return std::move(out_); }
  std::string& raw() { return out_; }

 private:
  void append_int(int64_t x);
  void append_uint(uint64_t x);
  std::string out_;
};

template <typename... Parts>
std::string cat(const Parts&... parts) {
  Text t;
  (t << ... << parts);
  return t.take();
}

}  // namespace weft
