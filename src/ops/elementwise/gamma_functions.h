// What lgamma, digamma, polygamma and zeta are written as.
#pragma once

#include "weft/build.h"
#include "weft/op_def.h"

namespace weft {

// From here on gamma functions are taken by their asymptotic series.
inline constexpr double kLarge = 10;

Vals decompose_lgamma(RuleCtx& c);
Vals decompose_digamma(RuleCtx& c);
Vals decompose_zeta(RuleCtx& c);
Vals decompose_polygamma(RuleCtx& c);

}  // namespace weft
