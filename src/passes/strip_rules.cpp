// strip_rules: calls of functions with rules of their own, which nobody needs any more, become the
// ops of their graphs; what says how to differentiate other ops is dropped.
#include "ops/def/walk.h"
#include "passes/pass_list.h"

namespace weft {
namespace {

const std::string kStripRule = "strip_rule";

bool has_rule(const Op& op) { return def(*op.info).call == CallKind::kWhole; }

class StripRun {
 public:
  explicit StripRun(bool calls_only = false) : calls_only_(calls_only) {}

  GraphRef run(const GraphRef& graph) {
    GraphBuilder b;
    bool changed = false;
    GraphRef copy = rebuild(*graph, b, [&](const Op& op, std::span<const Value> operands) {
      if (!op.attrs || !takes_graphs(*op.info)) return copy_op(*graph, b, op, operands);
      AttrsRef attrs = map_graphs(op.attrs, [this](const GraphRef& g) { return regions_(g); });
      attrs = after_derivatives(attrs);
      changed |= attrs != op.attrs;
      if (!has_rule(op)) return b.add_typed(*op.info, operands, attrs, graph->result_types(op));
      ++num_stripped_;
      changed = true;
      return b.inline_graph(*callee(*op.info, attrs), operands);
    });
    return changed ? copy : graph;
  }

  // Whether there is anything to do: most programs have no such call, and are not copied.
  bool applies(const Graph& graph) {
    if (graph.depth() == 1) return false;
    for (const Op& op : graph.ops()) {
      if (!op.attrs || !takes_graphs(*op.info)) continue;
      if (has_rule(op)) return true;
      if (!calls_only_ && after_derivatives(op.attrs) != op.attrs) return true;
      bool found = false;
      for_each_graph(op.attrs, [&](const GraphRef& g) { found |= applies(distinct_(g)); });
      if (found) return true;
    }
    return false;
  }
  uint32_t num_stripped() const { return num_stripped_; }

 private:
  bool applies(const GraphRef& graph) {
    auto [known, fresh] = applies_.try_emplace(graph.get(), false);
    if (fresh && applies(*graph)) applies_[graph.get()] = true;
    return applies_[graph.get()];
  }

  GraphMemo regions_{[this](const GraphRef& graph) { return run(graph); }};
  GraphMemo distinct_{[](const GraphRef& graph) { return graph; }};
  std::unordered_map<const Graph*, bool> applies_;
  bool calls_only_;
  uint32_t num_stripped_ = 0;
};

GraphRef strip_rules(const GraphRef& graph, const PassOptions& options, PassStats& stats) {
  StripRun run;
  RewriteFilter filter(options);
  if (!filter.allows(kStripRule) || !run.applies(*graph)) return graph;
  GraphRef result = run.run(graph);
  filter.applied(kStripRule, run.num_stripped(), stats);
  return result;
}

}  // namespace

bool has_rules(const GraphRef& graph) { return StripRun(/*calls_only=*/true).applies(*graph); }

Pass strip_rules_pass() {
  return {"strip_rules",
          "Replaces calls that have derivatives of their own by the function's ops.",
          strip_rules,
          {{kStripRule, "a call that has derivatives of its own -> its ops"}},
          Phase::kFinal};
}

}  // namespace weft
