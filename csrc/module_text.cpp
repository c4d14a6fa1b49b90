// What is left of a module's text without its name and the user's lines.

#include "module_text.h"

#include <algorithm>

#include "weft/hash.h"

namespace weft::py {
namespace {

// Where the reference to a location begins that a line ends with; the line's end if there is none.
// Strings of MLIR have no ends of lines in them, so what ends a line is no part of one.
size_t end_without_loc(std::string_view line) {
  constexpr std::string_view kNumbered = " loc(#loc", kUnknown = " loc(unknown)";
  if (line.ends_with(kUnknown)) return line.size() - kUnknown.size();
  if (!line.ends_with(')')) return line.size();
  size_t digits = line.size() - 1;
  while (digits && line[digits - 1] >= '0' && line[digits - 1] <= '9') --digits;
  bool is_loc = digits < line.size() - 1 && line.substr(0, digits).ends_with(kNumbered);
  return is_loc ? digits - kNumbered.size() : line.size();
}

}  // namespace

std::string without_places(std::string_view module) {
  std::string out;
  out.reserve(module.size());
  // "module @name attributes {...} {"
  size_t attributes = module.find(" attributes {mhlo.num_partitions");
  module.remove_prefix(std::min(module.size(), attributes));
  while (!module.empty()) {
    size_t end = std::min(module.size(), module.find('\n'));
    std::string_view line = module.substr(0, end);
    module.remove_prefix(std::min(module.size(), end + 1));
    if (line.starts_with("#loc")) continue;
    out.append(line.substr(0, end_without_loc(line)));
    out.push_back('\n');
  }
  return out;
}

uint64_t module_fingerprint(std::string_view module) { return hash_bytes(without_places(module)); }

}  // namespace weft::py
