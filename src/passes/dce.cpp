// dce: drops ops whose results nobody needs, and prunes ops that hold graphs.
// src/transforms/prune.cpp does it.
#include "passes/pass_list.h"
#include "transforms/prune.h"

namespace weft {

GraphRef dce_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats) {
  static const std::string kPruneOp = "prune_op";
  Pruned pruned = prune(graph, 0, RewriteFilter(options).allows(kPruneOp));
  stats.count(kPruneOp, pruned.num_pruned_ops);
  return pruned.graph;
}

}  // namespace weft
