// dce: drops ops whose results nobody needs, and prunes ops that hold graphs.
// src/transforms/prune.cpp does it.
#include "passes/pass_list.h"
#include "transforms/prune.h"

namespace weft {
namespace {

const std::string kPruneOp = "prune_op";

GraphRef dce(const GraphRef& graph, const PassOptions& options, PassStats& stats) {
  RewriteFilter filter(options);
  Pruned pruned = prune(graph, 0, filter.allows(kPruneOp));
  filter.applied(kPruneOp, pruned.num_pruned_ops, stats);
  return pruned.graph;
}

}  // namespace

Pass dce_pass() {
  return {"dce",
          "Drops ops, call results and call inputs that nothing needs.",
          dce,
          {{kPruneOp, "unused results and operands of an op that holds graphs -> dropped"}}};
}

}  // namespace weft
