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
std::shared_ptr<const JacobianGraph> jacobian(const GraphRef& graph,
                                              const JacobianOptions& options);

// The same from a derivative that is made elsewhere; the result is not kept. Forward, that is a
// graph from inputs and tangents to outputs and tangents.
GraphRef jacobian_by_columns(const Graph& graph, const JacobianOptions& options,
                             const JvpGraph& dual);
// Backward, it is a graph that is linear in cotangents.
struct LinearParts {
  Values outputs;    // of the graph
  Values residuals;  // first inputs of `pull`
  Mask out_mask;
  GraphRef pull;  // as that of Linearized
};
using Linearize = FunctionRef<LinearParts(Builder&, std::span<const Value>)>;
GraphRef jacobian_by_rows(const Graph& graph, const JacobianOptions& options, Linearize linearize);

}  // namespace weft::py
