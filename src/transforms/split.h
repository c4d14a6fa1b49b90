// A graph that is linear in some of its inputs, in two: what depends on them, and what does not.
#pragma once

#include "weft/transforms.h"

namespace weft {

// As linearize_into, of a graph that is linear in the masked inputs already, whose arguments are
// none: nothing is differentiated. Outputs that depend on those inputs have themselves as tangents;
// their values are zeros.
Linearization split_into(Builder& b, const Graph& graph, std::span<const Value> args,
                         const Mask& linear);

}  // namespace weft
