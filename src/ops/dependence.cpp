// Which values and outputs of a graph depend on which inputs.
#include "ops/dependence.h"

#include <algorithm>

#include "ops/walk.h"

namespace weft {

std::vector<bool> dependent_values(const Graph& graph, const Mask& inputs) {
  std::vector<bool> depends(inputs.begin(), inputs.end());
  depends.resize(graph.num_values());
  auto is_dependent = [&](Value v) { return !v.is_literal() && depends[v.id]; };
  for (const Op& op : graph.ops()) {
    std::span<const Value> xs = graph.operands(op);
    if (std::none_of(xs.begin(), xs.end(), is_dependent)) continue;
    std::shared_ptr<const Mask> through;
    if (is_call(op)) {
      Mask operands;
      for (Value v : xs) operands.push_back(is_dependent(v));
      through = dependent_outputs(callee(op), operands);
    }
    for (uint32_t i = 0; i < op.num_results; ++i)
      depends[op.results_begin + i] = !through || (*through)[i];
  }
  return depends;
}

std::shared_ptr<const Mask> dependent_outputs(const GraphRef& graph, const Mask& inputs) {
  std::string key = "dependent_outputs:";
  for (bool m : inputs) key += m ? '1' : '0';
  return graph->cached<Mask>(key, [&] {
    std::vector<bool> depends = dependent_values(*graph, inputs);
    auto outputs = std::make_shared<Mask>();
    for (Value v : graph->outputs()) outputs->push_back(!v.is_literal() && depends[v.id]);
    return outputs;
  });
}

}  // namespace weft
