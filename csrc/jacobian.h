// All derivatives of a graph's outputs by its inputs, in one graph.
#pragma once

#include "core.h"
#include "weft/transforms.h"

namespace weft::py {

struct JacobianOptions {
  Mask in_mask;       // inputs to differentiate by; float or complex
  size_t num_values;  // of the outputs, the first ones are differentiated
  bool forward;  // one column per element of the inputs; else one row per element of the values
};

// inputs -> the outputs that are not differentiated, then for each value, for each input in the
// mask, an array of the value's shape followed by the input's. Kept on the graph.
struct JacobianGraph {
  GraphRef graph;
};
std::shared_ptr<const JacobianGraph> jacobian(const GraphRef& graph,
                                              const JacobianOptions& options);

}  // namespace weft::py
