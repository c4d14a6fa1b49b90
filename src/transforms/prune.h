// Pruning: drops what nothing needs, through call boundaries. The pass dce, and what linearize does
// to residuals that no tangent depends on.
#pragma once

#include <vector>

#include "weft/graph.h"
#include "weft/graph_rules.h"

namespace weft {

struct Pruned {
  GraphRef graph;  // the graph given, if nothing could be dropped
  std::vector<bool> kept_inputs;
  uint32_t num_pruned_calls = 0;
};

// Drops the outputs that are not kept (empty: all are), then ops and results of calls that nothing
// needs, and those of the first `num_droppable` inputs that are not used any more.
Pruned prune(const GraphRef& graph, std::vector<bool> kept_outputs = {},
             uint32_t num_droppable = 0);

}  // namespace weft
