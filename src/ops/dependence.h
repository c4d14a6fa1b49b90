// Which values of a graph depend on which inputs; for its outputs see weft/graph_rules.h.
#pragma once

#include <vector>

#include "weft/graph.h"
#include "weft/graph_rules.h"

namespace weft {

// Values that depend on any of the masked inputs; looks through calls.
std::vector<bool> dependent_values(const Graph& graph, const Mask& inputs);

}  // namespace weft
