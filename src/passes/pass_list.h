// The functions behind the named passes; pipeline.cpp lists them.
#pragma once

#include <algorithm>

#include "weft/passes.h"

namespace weft {

// Which rewrites the options let a pass use.
class RewriteFilter {
 public:
  explicit RewriteFilter(const PassOptions& options)
      : options_(options),
        allows_all_(options.only_rewrites.empty() && options.disabled_rewrites.empty()) {}
  bool allows(const std::string& name) const {
    if (allows_all_) return true;
    auto has = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    return !has(options_.disabled_rewrites) &&
           (options_.only_rewrites.empty() || has(options_.only_rewrites));
  }
  bool allows(const Rewrite& rewrite) const {
    if (options_.keep_derivatives && rewrite.phase == Phase::kFinal) return false;
    return allows(rewrite.name);
  }

 private:
  const PassOptions& options_;
  bool allows_all_;
};

GraphRef strip_rules_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef lower_keys_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef roll_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef pack_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef expand_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef fold_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef simplify_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef scan_products_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef cse_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
// fold, simplify (with scan_products), cse and inline in one walk: each op is built once.
GraphRef canonicalize_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef dce_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef inline_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef kernels_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef fuse_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);

// What scan_products does to a loop.
const Rewrite& scan_products();

// What a run of an op takes, with the graphs that it runs.
Cost op_cost(const Graph& graph, const Op& op);
// The same if its graphs take what `of_graph` says.
using GraphCost = std::function<Cost(const Graph&)>;
Cost op_cost(const Graph& graph, const Op& op, const GraphCost& of_graph);
// The graphs of an op that run when it does. A fusion is one op, whatever is in it; so is an op
// whose graph only says how to combine two numbers.
std::vector<const Graph*> graphs_run(const Graph& graph, const Op& op);

// The ops of a graph and of those that it holds, each distinct one once.
uint32_t count_ops(const Graph& graph);

// Whether an op is one that fuse makes.
bool is_fusion(const Op& op);

}  // namespace weft
