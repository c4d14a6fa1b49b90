// What checkify knows of ops beyond their check rules.
#pragma once

#include "weft/op.h"
#include "weft/registry.h"

namespace weft {

// Whether a NaN of the op is reported although an operand has one: it computes, and does not move,
// choose or round.
bool reports_nans(const OpInfo& op);

// A graph applied to every lane of a mapped axis, which may hold checks (mapped_call.cpp).

}  // namespace weft
