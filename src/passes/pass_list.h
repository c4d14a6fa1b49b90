// The named passes, each described where it is; pipeline.cpp lists them.
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
  // Asked before each application.
  bool allows(const std::string& name) const {
    if (options_.log && options_.log->applied.size() >= options_.log->most) return false;
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
  void applied(const std::string& name, Loc loc) const {
    if (options_.log) options_.log->applied.push_back({name, loc});
  }
  // Of a pass that makes all of its changes at once.
  void applied(const std::string& name, uint32_t hits, PassStats& stats) const {
    stats.count(name, hits);
    if (hits) applied(name, kNoLoc);
  }

 private:
  const PassOptions& options_;
  bool allows_all_;
};

// In the order of all_passes().
Pass strip_rules_pass();
Pass lower_keys_pass();
Pass expand_pass();
Pass inline_pass();
Pass fold_pass();
Pass scan_products_pass();
Pass simplify_pass();
Pass cse_pass();
Pass canonicalize_pass();
Pass dce_pass();
Pass roll_pass();
Pass pack_pass();
Pass kernels_pass();
Pass fuse_pass();

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
