// Comparisons with numbers, and choices by them, of which formulas of several ranges are made.
#pragma once

#include <limits>

#include "weft/build.h"

namespace weft {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline Val below(Val x, double v) { return lt(x, scalar_like(x, v)); }
inline Val above(Val x, double v) { return gt(x, scalar_like(x, v)); }
// v where the condition holds, else `otherwise`.
inline Val where(Val condition, double v, Val otherwise) {
  return select(condition, scalar_like(otherwise, v), otherwise);
}

}  // namespace weft
