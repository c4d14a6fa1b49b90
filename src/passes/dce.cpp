// dce: drops ops whose results nobody needs, and prunes ops that hold graphs.
// src/transforms/prune.cpp does it.
#include "passes/pass_list.h"
#include "transforms/prune.h"

namespace weft {

GraphRef dce_pass(const GraphRef& graph, const PassOptions&, PassStats& stats) {
  Pruned pruned = prune(graph);
  if (pruned.num_pruned_ops) stats.rewrites.push_back({"prune_op", pruned.num_pruned_ops});
  return pruned.graph;
}

}  // namespace weft
