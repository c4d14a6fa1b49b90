// Which outputs of a graph depend on which inputs.
#pragma once

#include "weft/graph.h"
#include "weft/graph_rules.h"

namespace weft {

// Outputs that depend on any of the masked inputs; looks through calls. Kept on the graph.
std::shared_ptr<const Mask> dependent_outputs(const GraphRef& graph, const Mask& inputs);

}  // namespace weft
