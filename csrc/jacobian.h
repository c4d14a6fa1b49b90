// All derivatives of a graph's outputs by its inputs, in one graph.
#pragma once

#include "core.h"
#include "function_ref.h"
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
// The linear part of a graph, and its transpose, as maps over a basis need them.
struct LinearParts {
  Values outputs;    // of the graph
  Values residuals;  // first inputs of both graphs
  Mask out_mask;
  GraphRef push, pull;  // as those of Linearized; the one that is not needed may be null
};
using Linearize = FunctionRef<LinearParts(Builder&, std::span<const Value>)>;
std::shared_ptr<const JacobianGraph> jacobian(const GraphRef& graph,
                                              const JacobianOptions& options);
// The same with what `linearize` makes in the place of the graph's ops; not kept.
GraphRef jacobian_of(const Graph& graph, const JacobianOptions& options, Linearize linearize);

}  // namespace weft::py
