// Which values of a graph depend on which inputs; for its outputs see weft/graph_rules.h.
#pragma once

#include <vector>

#include "weft/graph.h"
#include "weft/graph_rules.h"
#include "weft/op_def.h"

namespace weft {

// Whether some results of an op may depend on other operands than others do.
inline bool tells_results_apart(const OpDef& op) { return op.flow || op.call == CallKind::kWhole; }
// Results of an op that depend on any of the masked operands, of which there are some. All do of an
// op that does not tell results apart, or whose graphs need those operands for the others too.
Mask dependent_results(const OpInfo& op, const AttrsRef& attrs, const Mask& operands,
                       size_t num_results);

// Values that depend on any of the masked inputs; looks into ops with graphs.
std::vector<bool> dependent_values(const Graph& graph, const Mask& inputs);

// What the masks of an op's operands and results become when `known` holds of its operands, or,
// for Flow::kNeeds, of its results.
FlowCtx flowed(const OpInfo& op, const AttrsRef& attrs, Flow flow, const Mask& known,
               size_t num_others);
inline FlowCtx flowed(const RuleCtx& c, Flow flow, const Mask& known) {
  return flowed(c.op, c.attrs, flow, known,
                flow == Flow::kNeeds ? c.in_types.size() : c.out_types.size());
}

}  // namespace weft
