// expand: ops that stand for functions of the program (is_function) become calls of them, so
// that the other passes see their ops, and uses on operands of the same types share one function.
// Ops that users defined by a graph (OpDef::expand) become the ops of that.
#include "ops/def/function.h"
#include "ops/def/walk.h"
#include "passes/pass_list.h"
#include "weft/transforms.h"

namespace weft {
namespace {

const std::string kExpand = "expand";

class ExpandRun {
 public:
  GraphRef run(const GraphRef& graph) {
    GraphBuilder b;
    bool changed = false;
    GraphRef copy = rebuild(*graph, b, [&](const Op& op, std::span<const Value> operands) {
      if (is_function(def(*op.info))) {
        ++num_expanded_;
        changed = true;
        return call(*graph, op, b, operands);
      }
      if (GraphRef expansion = expansion_of(*graph, op)) {
        ++num_expanded_;
        changed = true;
        return b.inline_graph(*expansion, operands);
      }
      if (!op.attrs || !takes_graphs(*op.info)) return copy_op(*graph, b, op, operands);
      AttrsRef attrs = map_graphs(op.attrs, [this](const GraphRef& g) { return regions_(g); });
      changed |= attrs != op.attrs;
      return b.add_typed(*op.info, operands, attrs, graph->result_types(op));
    });
    return changed ? copy : graph;
  }

  bool applies(const Graph& graph) {
    for (const Op& op : graph.ops()) {
      if (is_function(def(*op.info)) || def(*op.info).expand) return true;
      if (graph.depth() == 1 || !op.attrs || !takes_graphs(*op.info)) continue;
      bool found = false;
      for_each_graph(op.attrs, [&](const GraphRef& g) { found |= applies(distinct_(g)); });
      if (found) return true;
    }
    return false;
  }
  uint32_t num_expanded() const { return num_expanded_; }

 private:
  struct Function {
    const OpInfo* op;
    AttrsRef attrs;
    TypeRefs in_types;
    GraphRef graph;
  };

  bool applies(const GraphRef& graph) {
    auto [known, fresh] = applies_.try_emplace(graph.get(), false);
    if (fresh && applies(*graph)) applies_[graph.get()] = true;
    return applies_[graph.get()];
  }

  static GraphRef expansion_of(const Graph& graph, const Op& op) {
    const OpDef& d = def(*op.info);
    if (!d.expand) return nullptr;
    TypeRefs in_types = operand_types(graph, op);
    return d.expand({in_types, graph.result_types(op), op.attrs.get(), {}});
  }

  Values call(const Graph& graph, const Op& op, Builder& b, std::span<const Value> operands) {
    const OpDef& jit = op_named<"jit">();
    AttrsRef attrs = AttrRecord::make(jit.name, jit.attrs,
                                      {{"name", op.info->name}, {"jaxpr", function(graph, op)}});
    return b.add_typed(jit, operands, attrs, graph.result_types(op));
  }

  const GraphRef& function(const Graph& graph, const Op& op) {
    TypeRefs in_types = operand_types(graph, op);
    for (const Function& f : functions_)
      if (f.op == op.info && f.in_types == in_types && equal(f.attrs, op.attrs)) return f.graph;
    GraphRef made =
        decomposed(def(*op.info), op.attrs, in_types, graph.result_types(op), transforms());
    functions_.push_back({op.info, op.attrs, std::move(in_types), std::move(made)});
    return functions_.back().graph;
  }

  GraphMemo regions_{[this](const GraphRef& graph) { return run(graph); }};
  GraphMemo distinct_{[](const GraphRef& graph) { return graph; }};
  std::unordered_map<const Graph*, bool> applies_;
  std::vector<Function> functions_;
  uint32_t num_expanded_ = 0;
};

GraphRef expand(const GraphRef& graph, const PassOptions& options, PassStats& stats) {
  ExpandRun run;
  RewriteFilter filter(options);
  if (!filter.allows(kExpand) || !run.applies(*graph)) return graph;
  GraphRef result = run.run(graph);
  filter.applied(kExpand, run.num_expanded(), stats);
  return result;
}

}  // namespace

Pass expand_pass() {
  return {"expand",
          "Replaces ops that stand for functions by calls of them.",
          expand,
          {{kExpand, "an op that stands for a function -> a call of it"}},
          Phase::kFinal};
}

}  // namespace weft
