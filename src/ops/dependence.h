// Which values of a graph depend on which inputs; for its outputs see weft/graph_rules.h.
#pragma once

#include <vector>

#include "weft/graph.h"
#include "weft/graph_rules.h"

namespace weft {

// Values that depend on any of the masked inputs; looks through calls.
std::vector<bool> dependent_values(const Graph& graph, const Mask& inputs);

// What a loop's carries have in common is found before its body is transformed. Of the values that
// have something from the start, what else has it, looking through calls and along the carries from
// one iteration to the next: the outputs that are carries, in order, come in again as the inputs
// from first_carry on. What ops do that hold other graphs is left out, for only their rules know.
enum class Flow { kTangents, kLanes };
Mask carries_reached(const Graph& body, Flow flow, const Mask& inputs, size_t first_carry,
                     size_t num_carry);
// The same backwards, for what is needed or has a cotangent: from outputs to the inputs that
// `takes_part` holds for.
Mask carries_leading_to(const Graph& body, const Mask& outputs, const Mask& takes_part,
                        size_t first_carry, size_t num_carry);

}  // namespace weft
