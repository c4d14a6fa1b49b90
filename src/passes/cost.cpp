// What a graph costs to run, from the cost rules of its ops.
#include <unordered_map>

#include "ops/walk.h"
#include "weft/passes.h"

namespace weft {
namespace {

void add_to(Cost& sum, const Cost& x) {
  sum.flops += x.flops;
  sum.transcendentals += x.transcendentals;
  sum.bytes += x.bytes;
}

double bytes_of(std::span<const TypeRef> types) {
  double bytes = 0;
  for (TypeRef type : types) bytes += static_cast<double>(type->num_bytes());
  return bytes;
}

using CostMemo = std::unordered_map<const Graph*, Cost>;

Cost cost_of(const Graph& graph, CostMemo& memo) {
  auto known = memo.find(&graph);
  if (known != memo.end()) return known->second;
  Cost sum;
  TypeRefs in_types;
  for (const Op& op : graph.ops()) {
    const OpDef& op_def = def(*op.info);
    if (op_def.cost && op_def.call == CallKind::kNone) {
      in_types.clear();
      for (Value v : graph.operands(op)) in_types.push_back(graph.type(v));
      add_to(sum, op_def.cost(CostCtx{in_types, graph.result_types(op), op.attrs.get(),
                                      [&](const Graph& g) { return cost_of(g, memo); }}));
    } else if (op.attrs && takes_graphs(*op.info)) {
      for_each_graph(op.attrs, [&](const GraphRef& g) { add_to(sum, cost_of(*g, memo)); });
    } else {
      for (Value v : graph.operands(op))
        sum.bytes += static_cast<double>(graph.type(v)->num_bytes());
      sum.bytes += bytes_of(graph.result_types(op));
    }
  }
  memo.emplace(&graph, sum);
  return sum;
}

}  // namespace

Cost graph_cost(const Graph& graph) {
  CostMemo memo;
  return cost_of(graph, memo);
}

}  // namespace weft
