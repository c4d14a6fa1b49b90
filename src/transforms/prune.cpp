// Ops whose results nobody needs are dropped. Of ops that hold graphs the flow rules in their
// OpDefs say which operands and results stay, and the prune rules what becomes of the graphs:
// results that nobody uses leave them, then the inputs that only they needed, then whatever made
// these outside.
#include "transforms/prune.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "ops/def/dependence.h"
#include "ops/def/walk.h"
#include "transforms/driver.h"

namespace weft {
namespace {

bool all(const Mask& mask) {
  return std::all_of(mask.begin(), mask.end(), [](bool kept) { return kept; });
}

// Whether two records of one op hold the same graph objects.
bool hold_same_graphs(const AttrsRef& a, const AttrsRef& b) {
  std::vector<const Graph*> of_a, of_b;
  for_each_graph(a, [&](const GraphRef& graph) { of_a.push_back(graph.get()); });
  for_each_graph(b, [&](const GraphRef& graph) { of_b.push_back(graph.get()); });
  return of_a == of_b;
}

class Pruner {
 public:
  explicit Pruner(bool prunes_ops) : prunes_ops_(prunes_ops) {}

  Pruned run(const GraphRef& graph, Mask kept_outputs, uint32_t num_droppable) {
    Plan plan = analyze(*graph, std::move(kept_outputs));
    for (uint32_t i = 0; i < num_droppable; ++i) plan.kept_inputs[i] = plan.live_values[i];
    Pruned pruned{.graph = rebuilt(graph, plan), .kept_inputs = plan.kept_inputs};
    pruned.num_pruned_ops = num_pruned_ops_;
    return pruned;
  }

 private:
  // What is left of an op.
  struct PrunedOp {
    AttrsRef attrs;
    Mask operands;  // kept
    Mask results;   // kept
  };
  // What is to be kept of a graph, and what its ops that hold graphs become.
  struct Plan {
    Mask kept_inputs;
    Mask kept_outputs;
    std::vector<bool> live_values;
    std::vector<bool> live_ops;
    std::unordered_map<uint32_t, PrunedOp> ops;  // by op index
    bool changes = false;                        // in ops
  };

  class RuleCtx final : public PruneCtx {
   public:
    RuleCtx(Pruner& pruner, const FlowCtx& kept)
        : PruneCtx(kept.attrs, kept.operands, kept.results), pruner_(pruner) {}
    GraphRef narrowed(const GraphRef& graph, const Mask& outputs, const Mask& inputs) override {
      return pruner_.narrowed(graph, outputs, inputs);
    }

   private:
    Pruner& pruner_;
  };

  Plan analyze(const Graph& graph, Mask kept_outputs);
  void prune_op(const Graph& graph, uint32_t index, Plan& plan);
  GraphRef rebuilt(const GraphRef& graph, const Plan& plan);
  GraphRef narrowed(const GraphRef& any_graph, const Mask& outputs, const Mask& inputs);

  // A region without what nothing needs; kept on the region, so that pruning a caller after each
  // change of it does not walk through all that it calls again.
  struct Narrowed {
    GraphRef graph;  // null: the region itself, which must not own itself
    uint32_t num_pruned_ops;
  };

  GraphMemo distinct_{[](const GraphRef& graph) { return graph; }};  // also keeps them alive
  std::unordered_set<std::shared_ptr<const Narrowed>> counted_;
  bool prunes_ops_;
  uint32_t num_pruned_ops_ = 0;

  static Mask whole(const Graph& graph) { return Mask(graph.outputs().size(), true); }
};

void mark(std::vector<bool>& live, Value v) {
  if (!v.is_literal()) live[v.id] = true;
}

Pruner::Plan Pruner::analyze(const Graph& graph, Mask kept_outputs) {
  Plan plan;
  plan.live_values.resize(graph.num_values());
  plan.live_ops.resize(graph.ops().size());
  plan.kept_inputs.resize(graph.num_inputs(), true);
  for (size_t i = 0; i < kept_outputs.size(); ++i) {
    if (kept_outputs[i]) mark(plan.live_values, graph.outputs()[i]);
  }
  plan.kept_outputs = std::move(kept_outputs);

  for (uint32_t index = static_cast<uint32_t>(graph.ops().size()); index-- > 0;) {
    const Op& op = graph.op(index);
    bool has_graphs = op.attrs && takes_graphs(*op.info);
    bool live = effects_of(*op.info, op.attrs) != kPure;
    for (uint32_t i = 0; i < op.num_results; ++i) live |= plan.live_values[op.results_begin + i];
    plan.live_ops[index] = live;
    plan.changes |= !live;
    if (!live) continue;
    if (has_graphs) {
      prune_op(graph, index, plan);
    } else {
      for (Value v : graph.operands(op)) mark(plan.live_values, v);
    }
  }
  return plan;
}

void Pruner::prune_op(const Graph& graph, uint32_t index, Plan& plan) {
  const Op& op = graph.op(index);
  PrunedOp pruned;
  if (!prunes_ops_) {
    pruned = {op.attrs, Mask(op.num_operands, true), Mask(op.num_results, true)};
  } else if (const PruneRule& rule = def(*op.info).prune) {
    Mask needed;
    for (uint32_t i = 0; i < op.num_results; ++i) {
      needed.push_back(plan.live_values[op.results_begin + i]);
    }
    FlowCtx kept = flowed(*op.info, op.attrs, Flow::kNeeds, needed, op.num_operands);
    RuleCtx ctx(*this, kept);
    pruned = {rule(ctx), kept.operands, kept.results};
  } else {
    AttrsRef attrs = map_graphs(op.attrs, [this](const GraphRef& g) {
      return narrowed(g, whole(*g), Mask(g->num_inputs(), true));
    });
    pruned = {attrs, Mask(op.num_operands, true), Mask(op.num_results, true)};
  }
  for (uint32_t i = 0; i < op.num_operands; ++i) {
    if (pruned.operands[i]) mark(plan.live_values, graph.operand(op, i));
  }
  if (all(pruned.operands) && all(pruned.results) && hold_same_graphs(pruned.attrs, op.attrs)) {
    return;
  }
  plan.changes = true;
  plan.ops.emplace(index, std::move(pruned));
}

GraphRef Pruner::narrowed(const GraphRef& any_graph, const Mask& outputs, const Mask& inputs) {
  GraphRef graph = distinct_(any_graph);
  std::string key = "narrowed";
  append_key(key, outputs);
  append_key(key, inputs);
  uint32_t num_before = num_pruned_ops_;
  auto made = graph->cached<Narrowed>(key, [&] {
    Plan plan = analyze(*graph, outputs);
    plan.kept_inputs = inputs;
    GraphRef result = rebuilt(graph, plan);
    return std::make_shared<Narrowed>(result == graph ? nullptr : result,
                                      num_pruned_ops_ - num_before);
  });
  bool counts = counted_.insert(made).second;
  num_pruned_ops_ = num_before + (counts ? made->num_pruned_ops : 0);
  return made->graph ? made->graph : any_graph;
}

GraphRef Pruner::rebuilt(const GraphRef& source, const Plan& plan) {
  if (!plan.changes && all(plan.kept_inputs) && all(plan.kept_outputs)) return source;
  const Graph& graph = *source;
  if (plan.ops.empty() && all(plan.kept_inputs) && all(plan.kept_outputs))
    return GraphBuilder::without_ops(graph, plan.live_ops);
  GraphBuilder b;
  ValueMap map(graph, b);
  std::vector<Value> consts;
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    if (!plan.kept_inputs[i]) continue;
    Value input = b.input(graph.type(graph.input(i)));
    map.set(graph.input(i), input);
    if (i < graph.num_consts()) consts.push_back(input);
  }
  uint32_t next_op = 0;
  copy_ops(graph, b, map, [&](const Op& op, std::span<const Value> operands) -> Values {
    uint32_t index = next_op++;
    if (!plan.live_ops[index]) return {};
    auto changed = plan.ops.find(index);
    if (changed == plan.ops.end()) return copy_op(graph, b, op, operands);
    const PrunedOp& pruned = changed->second;
    Values args;
    TypeRefs types;
    for (uint32_t i = 0; i < op.num_operands; ++i) {
      if (pruned.operands[i]) args.push_back(operands[i]);
    }
    for (uint32_t i = 0; i < op.num_results; ++i) {
      if (pruned.results[i]) types.push_back(graph.type(graph.result(op, i)));
    }
    Values kept = b.add_typed(*op.info, args, pruned.attrs, types), results;
    uint32_t next = 0;
    for (bool is_kept : pruned.results) results.push_back(is_kept ? kept[next++] : Value{});
    if (!all(pruned.operands) || !all(pruned.results)) ++num_pruned_ops_;
    return results;
  });
  std::vector<Value> outputs;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (plan.kept_outputs[i]) outputs.push_back(map(graph.outputs()[i]));
  }
  return b.finish(outputs, consts);
}

}  // namespace

Pruned prune(const GraphRef& graph, uint32_t num_droppable, bool prunes_ops) {
  return Pruner(prunes_ops).run(graph, Mask(graph->outputs().size(), true), num_droppable);
}

}  // namespace weft
