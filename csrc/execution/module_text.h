// Texts of modules, as far as they say what runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::py {

// The first line of a text, which is left without it.
std::string_view take_line(std::string_view& text);
// A line without the reference to a location that it ends with.
std::string_view without_loc(std::string_view line);
// An emitted module without its name and the user's lines: what decides about the executable. Names
// of functions inside of it stay.
std::string without_places(std::string_view module);
// A hash of that, the same in every process.
uint64_t module_fingerprint(std::string_view module);

}  // namespace weft::py
