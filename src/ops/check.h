// What checkify knows of ops beyond their check rules.
#pragma once

#include "weft/op.h"

namespace weft {

// Whether a NaN of the op is reported although an operand has one: it computes, and does not move,
// choose or round.
bool reports_nans(const OpInfo& op);

}  // namespace weft
