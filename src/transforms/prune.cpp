// Ops whose results nobody needs are dropped, and calls are pruned: results that no caller uses
// leave the callee, then the inputs that only they needed, then whatever made these in the caller.
#include "transforms/prune.h"

#include <map>

#include "ops/walk.h"

namespace weft {
namespace {

class Pruner {
 public:
  Pruned run(const GraphRef& graph, std::vector<bool> kept_outputs, uint32_t num_droppable) {
    Plan plan = analyze(*graph, std::move(kept_outputs));
    plan.num_droppable = num_droppable;
    Pruned pruned{.graph = graph, .kept_inputs = kept_inputs(*graph, plan)};
    for (bool kept : pruned.kept_inputs) plan.changes |= !kept;
    if (plan.changes) pruned.graph = rebuild(*graph, plan);
    pruned.num_pruned_calls = num_pruned_calls_;
    return pruned;
  }

 private:
  struct PrunedCallee {
    GraphRef source;  // kept, so that its address stays unique
    Pruned pruned;
  };
  // What is to be kept of a graph, and what its kept region ops become.
  struct Plan {
    std::vector<bool> kept_outputs;
    std::vector<bool> live_values;
    std::vector<bool> live_ops;
    std::unordered_map<uint32_t, const Pruned*> calls;  // by op index
    std::unordered_map<uint32_t, AttrsRef> attrs;       // by op index
    uint32_t num_droppable = 0;  // of the first inputs, those that are not live are dropped
    bool changes = false;
  };

  GraphRef run(const GraphRef& graph) {
    return run(graph, std::vector<bool>(graph->outputs().size(), true), 0).graph;
  }
  Plan analyze(const Graph& graph, std::vector<bool> kept_outputs);
  void analyze_call(const Graph& graph, uint32_t index, Plan& plan);
  static std::vector<bool> kept_inputs(const Graph& graph, const Plan& plan);
  GraphRef rebuild(const Graph& graph, const Plan& plan);
  const Pruned& prune_callee(const GraphRef& graph, std::vector<bool> kept_outputs);

  GraphMemo regions_{[this](const GraphRef& graph) { return run(graph); }};
  GraphMemo distinct_{[](const GraphRef& graph) { return graph; }};
  std::map<std::pair<const Graph*, std::vector<bool>>, PrunedCallee> callees_;
  uint32_t num_pruned_calls_ = 0;
};

void mark(std::vector<bool>& live, Value v) {
  if (!v.is_literal()) live[v.id] = true;
}

Pruner::Plan Pruner::analyze(const Graph& graph, std::vector<bool> kept_outputs) {
  Plan plan;
  plan.live_values.resize(graph.num_values());
  plan.live_ops.resize(graph.ops().size());
  for (size_t i = 0; i < kept_outputs.size(); ++i) {
    if (kept_outputs[i]) mark(plan.live_values, graph.outputs()[i]);
    plan.changes |= !kept_outputs[i];
  }
  plan.kept_outputs = std::move(kept_outputs);

  for (uint32_t index = static_cast<uint32_t>(graph.ops().size()); index-- > 0;) {
    const Op& op = graph.op(index);
    bool has_graphs = op.attrs && takes_graphs(*op.info);
    bool live = (has_graphs ? effects_of(*op.info, op.attrs) : op.info->effects) != kPure;
    for (uint32_t i = 0; i < op.num_results; ++i) live |= plan.live_values[op.results_begin + i];
    plan.live_ops[index] = live;
    plan.changes |= !live;
    if (!live) continue;
    if (has_graphs && is_call(op) && def(*op.info).call != CallKind::kWhole) {
      analyze_call(graph, index, plan);
      continue;
    }
    for (Value v : graph.operands(op)) mark(plan.live_values, v);
    if (!has_graphs) continue;
    AttrsRef attrs = map_graphs(op.attrs, [this](const GraphRef& g) { return regions_(g); });
    if (attrs != op.attrs) {
      plan.attrs.emplace(index, attrs);
      plan.changes = true;
    }
  }
  return plan;
}

void Pruner::analyze_call(const Graph& graph, uint32_t index, Plan& plan) {
  const Op& op = graph.op(index);
  std::vector<bool> kept_results(op.num_results);
  for (uint32_t i = 0; i < op.num_results; ++i) {
    kept_results[i] = plan.live_values[op.results_begin + i];
  }
  const Pruned& pruned = prune_callee(callee(op), std::move(kept_results));
  std::span<const Value> operands = graph.operands(op);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (pruned.kept_inputs[i]) mark(plan.live_values, operands[i]);
  }
  if (pruned.graph == callee(op)) return;
  plan.calls.emplace(index, &pruned);
  plan.changes = true;
  ++num_pruned_calls_;
}

const Pruned& Pruner::prune_callee(const GraphRef& any_graph, std::vector<bool> kept_outputs) {
  GraphRef graph = distinct_(any_graph);
  auto key = std::pair(graph.get(), kept_outputs);
  auto known = callees_.find(key);
  if (known == callees_.end()) {
    Pruned pruned = run(graph, std::move(kept_outputs), graph->num_inputs());
    known = callees_.emplace(std::move(key), PrunedCallee{graph, std::move(pruned)}).first;
  }
  return known->second.pruned;
}

std::vector<bool> Pruner::kept_inputs(const Graph& graph, const Plan& plan) {
  std::vector<bool> kept(graph.num_inputs(), true);
  for (uint32_t i = 0; i < plan.num_droppable; ++i) kept[i] = plan.live_values[i];
  return kept;
}

GraphRef Pruner::rebuild(const Graph& graph, const Plan& plan) {
  GraphBuilder b;
  ValueMap map(graph, b);
  std::vector<Value> consts;
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    if (i < plan.num_droppable && !plan.live_values[i]) continue;
    Value input = b.input(graph.type(graph.input(i)));
    map.set(graph.input(i), input);
    if (i < graph.num_consts()) consts.push_back(input);
  }
  for (uint32_t index = 0; index < graph.ops().size(); ++index) {
    if (!plan.live_ops[index]) continue;
    const Op& op = graph.op(index);
    b.set_loc(op.loc);
    auto call = plan.calls.find(index);
    if (call == plan.calls.end()) {
      auto changed = plan.attrs.find(index);
      map.set_results(op, b.add_typed(*op.info, map(graph.operands(op)),
                                      changed == plan.attrs.end() ? op.attrs : changed->second,
                                      graph.result_types(op)));
      continue;
    }
    const Pruned& pruned = *call->second;
    Values args;
    for (uint32_t i = 0; i < op.num_operands; ++i) {
      if (pruned.kept_inputs[i]) args.push_back(map(graph.operand(op, i)));
    }
    Values results = b.add_typed(*op.info, args, with_callee(op.attrs, pruned.graph),
                                 pruned.graph->output_types());
    uint32_t next = 0;
    for (uint32_t i = 0; i < op.num_results; ++i) {
      if (plan.live_values[op.results_begin + i]) map.set(graph.result(op, i), results[next++]);
    }
  }
  std::vector<Value> outputs;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (plan.kept_outputs[i]) outputs.push_back(map(graph.outputs()[i]));
  }
  return b.finish(outputs, consts);
}

}  // namespace

Pruned prune(const GraphRef& graph, std::vector<bool> kept_outputs, uint32_t num_droppable) {
  if (kept_outputs.empty()) kept_outputs.assign(graph->outputs().size(), true);
  return Pruner().run(graph, std::move(kept_outputs), num_droppable);
}

}  // namespace weft
