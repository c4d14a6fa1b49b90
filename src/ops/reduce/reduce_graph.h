// What reductions by a graph of scalars share: of axes, and of windows. Operands are x_1 .. x_n,
// then scalars init_1 .. init_n; the graph, "jaxpr", takes a_1 .. a_n, b_1 .. b_n and gives n
// results.
#pragma once

#include <functional>

#include "weft/op_def.h"

namespace weft {

// Checks operands and graph; returns n.
size_t check_reduction(const InferCtx& c);

// Combines two lists of arrays of one shape, element by element.
using Combine = std::function<Vals(const Vals&, const Vals&)>;
// By a graph of scalars: that of the op, or its jvp; then lists are n values and their tangents.
Combine combine_by(const RuleCtx& c, const GraphRef& graph);

// A reduction made of ops that combine arrays, for derivatives and for initial values that differ
// between lanes.
using Reduction = std::function<Vals(const Vals& xs, const Vals& inits, const Combine& combine)>;
// The reduction of pairs of a value and its tangent.
Vals jvp_of_reduction(JvpCtx& c, const Reduction& reduce);

}  // namespace weft
