// Pruning: drops what nothing needs, also in and around the graphs that ops hold. The pass dce, and
// what linearize does to residuals that no tangent depends on.
#pragma once

#include <vector>

#include "weft/graph.h"
#include "weft/graph_rules.h"

namespace weft {

struct Pruned {
  GraphRef graph;  // the graph given, if nothing could be dropped
  Mask kept_inputs;
  uint32_t num_pruned_ops = 0;  // ops with graphs that lost operands or results
};

// Drops ops, and results and operands of ops that hold graphs, that nothing needs, then those of
// the first `num_droppable` inputs that are not used any more. Without `prunes_ops`, ops that hold
// graphs stay as they are.
Pruned prune(const GraphRef& graph, uint32_t num_droppable = 0, bool prunes_ops = true);

}  // namespace weft
