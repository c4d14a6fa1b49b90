// Which values of a graph depend on which inputs; for its outputs see weft/graph_rules.h.
#pragma once

#include <vector>

#include "weft/graph.h"
#include "weft/graph_rules.h"
#include "weft/op_def.h"

namespace weft {

// Values that cannot be computed without the masked inputs, where an op is computed as a whole.
std::vector<bool> dependent_values(const Graph& graph, const Mask& inputs);

// What the masks of an op's operands and results become when `known` holds of its operands, or,
// for Flow::kNeeds, of its results.
FlowCtx flowed(const OpInfo& op, const AttrsRef& attrs, Flow flow, const Mask& known,
               size_t num_others);
inline FlowCtx flowed(const RuleCtx& c, Flow flow, const Mask& known) {
  return flowed(c.op, c.attrs, flow, known,
                flow == Flow::kNeeds ? c.in_types.size() : c.out_types.size());
}
// Which operands and results of an op have tangents, as far as masks tell.
inline FlowCtx tangent_flow(const GraphJvpCtx& c) {
  return flowed(c, c.transforms->only_splits() ? Flow::kDepends : Flow::kTangents,
                c.tangent_mask());
}

}  // namespace weft
