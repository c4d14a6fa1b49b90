// What lgamma, digamma, polygamma and zeta are written as.
#pragma once

#include "weft/build.h"
#include "weft/op_def.h"

namespace weft {

Vals decompose_lgamma(RuleCtx& c);
Vals decompose_digamma(RuleCtx& c);
Vals decompose_zeta(RuleCtx& c);
Vals decompose_polygamma(RuleCtx& c);

}  // namespace weft
