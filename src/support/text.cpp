// Number formatting: integers and doubles as Python writes them.
#include "weft/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "weft/dims.h"

namespace weft {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t length = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return lines;
}

void Text::append_int(int64_t x) {
  if (is_known_symbol(x)) {
    out_ += dim_text(x, /*spaces=*/false);
    return;
  }
  char buffer[24];
  out_.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, x).ptr);
}

void Text::append_uint(uint64_t x) {
  char buffer[24];
  out_.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, x).ptr);
}

Text& Text::operator<<(double x) {
  if (std::isnan(x)) return *this << "nan";
  if (std::isinf(x)) return *this << (x < 0 ? "-inf" : "inf");
  char buffer[400];
  // Python switches to exponents below 1e-4 and from 1e16 on.
  double magnitude = std::fabs(x);
  bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  char* end = std::to_chars(buffer, buffer + sizeof buffer, x, format).ptr;
  std::string_view digits(buffer, static_cast<size_t>(end - buffer));
  *this << digits;
  if (plain && digits.find('.') == digits.npos) *this << ".0";
  return *this;
}

Text& Text::operator<<(std::span<const int64_t> xs) {
  *this << '(';
  for (size_t i = 0; i < xs.size(); ++i) {
    if (i) *this << ", ";
    *this << xs[i];
  }
  return *this << (xs.size() == 1 ? ",)" : ")");
}

Text& Text::quoted(std::string_view s, char quote) {
  *this << quote;
  for (char c : s) {
    if (c == quote || c == '\\') *this << '\\';
    if (c == '\n') {
      *this << "\\n";
    } else {
      *this << c;
    }
  }
  return *this << quote;
}

}  // namespace weft
