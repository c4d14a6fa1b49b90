// SPDX-License-Identifier: Apache-2.0
// Source locations: where in the user's program an op was made. Interned process-wide; a Loc is a
// small integer, 0 means unknown. Programs have few lines, but code that is made while they run
// (exec, scopes named after a step) has any number; so there is a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/api.h"

namespace weft {

using Loc = uint32_t;
inline constexpr Loc kNoLoc = 0;
// Set in the location of an op that a transform made for the op that stands there: it computes a
// tangent; a cotangent.
inline constexpr Loc kTangentLoc = Loc{1} << 30;
inline constexpr Loc kCotangentLoc = Loc{1} << 31;
inline constexpr Loc place_of(Loc loc) { return loc & ~(kTangentLoc | kCotangentLoc); }

struct LocInfo {
  std::string file;
  int line = 0;
  std::string function;
  std::string scope;  // names that the program gave this part of itself: "encoder/layer_1"
};

// How many are kept, at some 200 bytes each. Past the first number a new one loses its scope; past
// the second one it is kNoLoc.
inline constexpr size_t kMaxScopedLocs = size_t{1} << 16;
inline constexpr size_t kMaxLocs = size_t{1} << 17;

WEFT_API Loc make_loc(std::string_view file, int line, std::string_view function,
                      std::string_view scope = {});
// The reference stays valid for the life of the process.
WEFT_API const LocInfo& loc_info(Loc loc);
// "file.py:12 (function)", or "<unknown>".
WEFT_API std::string loc_text(Loc loc);

}  // namespace weft
