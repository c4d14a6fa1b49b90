// SPDX-License-Identifier: Apache-2.0
// checked() as weft.experimental.checkify wants it.
#pragma once

#include "weft/checks.h"

namespace weft {

// A NaN counts although an operand has one, too, where the op computes; one that moves, chooses or
// rounds values still has to make it of operands that have none.
WEFT_API std::shared_ptr<const CheckedGraph> checkified(const GraphRef& graph,
                                                        const CheckOptions& options);

// The graph, and all that it holds, without the checks that are there for debugging: what runs
// outside of checkify makes only the others.
WEFT_API GraphRef without_debug_checks(const GraphRef& graph);

}  // namespace weft
