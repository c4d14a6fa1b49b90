// without_effects(): the values of a graph, without the callbacks that it makes on the way.
#include "ops/def/walk.h"
#include "weft/graph_rules.h"

namespace weft {

GraphRef without_effects(const GraphRef& graph) {
  if (graph->effects() == kPure) return graph;
  return graph->cached<Graph>("without_effects", [&] {
    GraphBuilder b;
    return rebuild(*graph, b, [&](const Op& op, std::span<const Value> operands) -> Values {
      if (op.num_results == 0 && op.info->effects != kPure) return {};
      return b.add_typed(*op.info, operands, without_effects(op.attrs), graph->result_types(op));
    });
  });
}

AttrsRef without_effects(const AttrsRef& attrs) {
  return attrs ? map_graphs(attrs, [](const GraphRef& graph) { return without_effects(graph); })
               : attrs;
}

}  // namespace weft
