// without_effects(): the values of a graph, without the callbacks that it makes on the way.
#include "ops/walk.h"
#include "weft/graph_rules.h"

namespace weft {

GraphRef without_effects(const GraphRef& graph) {
  if (graph->effects() == kPure) return graph;
  return graph->cached<Graph>("without_effects", [&] {
    GraphBuilder b;
    ValueMap map(*graph, b);
    std::vector<Value> inputs = copy_inputs(*graph, b, map);
    for (const Op& op : graph->ops()) {
      if (op.num_results == 0 && op.info->effects != kPure) continue;
      b.set_loc(op.loc);
      map.set_results(op, b.add_typed(*op.info, map(graph->operands(op)), without_effects(op.attrs),
                                      graph->result_types(op)));
    }
    return finish_copy(*graph, b, map, inputs);
  });
}

AttrsRef without_effects(const AttrsRef& attrs) {
  return attrs ? map_graphs(attrs, [](const GraphRef& graph) { return without_effects(graph); })
               : attrs;
}

}  // namespace weft
