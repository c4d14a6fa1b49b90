// What is left of a module's text without its name and the user's lines.

#include "execution/module_text.h"

#include <algorithm>

#include "weft/hash.h"

namespace weft::py {

std::string_view take_line(std::string_view& text) {
  size_t end = std::min(text.size(), text.find('\n'));
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + 1));
  return line;
}

// Strings of MLIR have no ends of lines in them, so what ends a line is no part of one.
std::string_view without_loc(std::string_view line) {
  constexpr std::string_view kNumbered = " loc(#loc", kUnknown = " loc(unknown)";
  if (line.ends_with(kUnknown)) return line.substr(0, line.size() - kUnknown.size());
  if (!line.ends_with(')')) return line;
  size_t digits = line.size() - 1;
  while (digits && line[digits - 1] >= '0' && line[digits - 1] <= '9') --digits;
  bool is_loc = digits < line.size() - 1 && line.substr(0, digits).ends_with(kNumbered);
  return is_loc ? line.substr(0, digits - kNumbered.size()) : line;
}

std::string without_places(std::string_view module) {
  std::string out;
  out.reserve(module.size());
  // "module @name attributes {...} {"
  size_t attributes = module.find(" attributes {mhlo.num_partitions");
  module.remove_prefix(std::min(module.size(), attributes));
  while (!module.empty()) {
    std::string_view line = take_line(module);
    if (line.starts_with("#loc")) continue;
    out.append(without_loc(line));
    out.push_back('\n');
  }
  return out;
}

uint64_t module_fingerprint(std::string_view module) { return hash_bytes(without_places(module)); }

}  // namespace weft::py
