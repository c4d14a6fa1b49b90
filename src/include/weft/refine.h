// SPDX-License-Identifier: Apache-2.0
// Programs over symbolic dimensions as programs over numbers.
#pragma once

#include "weft/dims.h"
#include "weft/graph.h"

namespace weft {

// The graph for these sizes of the variables: all types and attributes with them, inferred again.
// Throws what inference throws where the sizes do not fit.
WEFT_API GraphRef refine(const GraphRef& graph, const DimValues& values);

}  // namespace weft
