// Which values of a graph depend on which inputs.
#pragma once

#include <memory>
#include <vector>

#include "weft/graph.h"
#include "weft/graph_rules.h"

namespace weft {

// Values that depend on any of the masked inputs; looks through calls.
std::vector<bool> dependent_values(const Graph& graph, const Mask& inputs);
// Outputs that depend on any of the masked inputs; kept on the graph.
std::shared_ptr<const Mask> dependent_outputs(const GraphRef& graph, const Mask& inputs);

}  // namespace weft
