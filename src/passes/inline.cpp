// strip_rules: calls of functions with rules of their own, which nobody needs any more.
// inline: replaces calls by the callee's ops where the callee is tiny or called from one place.
// Not in the default pipeline: XLA inlines anyway, and a callee that stays one function is emitted
// and parsed once.
#include "ops/walk.h"
#include "passes/pass_list.h"

namespace weft {
namespace {

constexpr size_t kTinyOps = 8;
const std::string kInlineCall = "inline_call";
const std::string kStripRule = "strip_rule";

class InlineRun {
 public:
  explicit InlineRun(const GraphRef& graph) { count_calls(*graph); }

  GraphRef run(const GraphRef& graph) {
    uint32_t inlined_before = num_inlined_;
    bool changed = false;
    GraphBuilder b;
    ValueMap map(*graph, b);
    std::vector<Value> inputs = copy_inputs(*graph, b, map);
    for (const Op& op : graph->ops()) {
      b.set_loc(op.loc);
      AttrsRef attrs = op.attrs;
      if (attrs && takes_graphs(*op.info)) {
        attrs = map_graphs(attrs, [this](const GraphRef& g) { return regions_(g); });
        changed |= attrs != op.attrs;
        if (def(*op.info).call == CallKind::kInline && is_worth_inlining(op, attrs)) {
          ++num_inlined_;
          Values args = map(graph->operands(op));
          map.set_results(op, b.inline_graph(*callee(*op.info, attrs), args));
          continue;
        }
      }
      map.set_results(
          op, b.add_typed(*op.info, map(graph->operands(op)), attrs, graph->result_types(op)));
    }
    if (!changed && num_inlined_ == inlined_before) return graph;
    return finish_copy(*graph, b, map, inputs);
  }

  uint32_t num_inlined() const { return num_inlined_; }

 private:
  bool is_worth_inlining(const Op& op, const AttrsRef& attrs) {
    return callee(*op.info, attrs)->ops().size() <= kTinyOps ||
           num_calls_.at(distinct_(callee(op)).get()) == 1;
  }

  // Counts the call sites of each distinct callee in the distinct graphs of the program.
  void count_calls(const Graph& graph) {
    for (const Op& op : graph.ops()) {
      if (!op.attrs || !takes_graphs(*op.info)) continue;
      bool counts = is_call(op);
      for_each_graph(op.attrs, [&](const GraphRef& any_graph) {
        GraphRef region = distinct_(any_graph);
        auto [calls, added] = num_calls_.try_emplace(region.get(), 0);
        if (counts) ++calls->second;
        if (added) count_calls(*region);
      });
    }
  }

  GraphMemo regions_{[this](const GraphRef& graph) { return run(graph); }};
  GraphMemo distinct_{[](const GraphRef& graph) { return graph; }};
  std::unordered_map<const Graph*, uint32_t> num_calls_;
  uint32_t num_inlined_ = 0;
};

// Calls that have derivatives of their own become the ops of their graphs; what says how to
// differentiate other ops is dropped.
class StripRun {
 public:
  explicit StripRun(bool calls_only = false) : calls_only_(calls_only) {}

  GraphRef run(const GraphRef& graph) {
    GraphBuilder b;
    ValueMap map(*graph, b);
    std::vector<Value> inputs = copy_inputs(*graph, b, map);
    bool changed = false;
    for (const Op& op : graph->ops()) {
      b.set_loc(op.loc);
      AttrsRef attrs = op.attrs;
      if (attrs && takes_graphs(*op.info)) {
        attrs = map_graphs(attrs, [this](const GraphRef& g) { return regions_(g); });
        attrs = after_derivatives(attrs);
        changed |= attrs != op.attrs;
        if (def(*op.info).call == CallKind::kWhole) {
          ++num_stripped_;
          changed = true;
          Values args = map(graph->operands(op));
          map.set_results(op, b.inline_graph(*callee(*op.info, attrs), args));
          continue;
        }
      }
      map.set_results(
          op, b.add_typed(*op.info, map(graph->operands(op)), attrs, graph->result_types(op)));
    }
    return changed ? finish_copy(*graph, b, map, inputs) : graph;
  }

  // Whether there is anything to do: most programs have no such call, and are not copied.
  bool applies(const Graph& graph) {
    for (const Op& op : graph.ops()) {
      if (!op.attrs || !takes_graphs(*op.info)) continue;
      if (def(*op.info).call == CallKind::kWhole) return true;
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

}  // namespace

bool has_rules(const GraphRef& graph) { return StripRun(/*calls_only=*/true).applies(*graph); }

GraphRef strip_rules_pass(const GraphRef& graph, const PassOptions&, PassStats& stats) {
  StripRun run;
  if (!run.applies(*graph)) return graph;
  GraphRef result = run.run(graph);
  stats.rewrites.push_back({kStripRule, run.num_stripped()});
  return result;
}

GraphRef inline_pass(const GraphRef& graph, const PassOptions&, PassStats& stats) {
  InlineRun run(graph);
  GraphRef result = run.run(graph);
  if (run.num_inlined()) stats.rewrites.push_back({kInlineCall, run.num_inlined()});
  return result;
}

}  // namespace weft
