// Calls whose derivatives compute values again instead of keeping them.
#pragma once

#include "weft/custom_rules.h"
#include "weft/op_def.h"

namespace weft {

// Linearizes a call: its operands, and what the policy saves, are the residuals; the linear call
// repeats the rest of the forward pass. Without a policy it repeats all that has no effects.
void linearize_by_recomputation(GraphJvpCtx& c, const SavePolicy* policy);

// Whether a callee has so many residuals that they cannot be those of its own ops. Functions that
// call functions twice have twice the residuals at each level, in programs that grow by an op or
// two; so many values no program can hold. With the values computed again, what a derivative takes
// stays in proportion to what is written, and an op runs once more for each level that does so: as
// residuals double up to the bound first, that is every tenth level or so.
bool has_too_many_residuals(const GraphRef& callee, const LinearizedGraph& split);

}  // namespace weft
