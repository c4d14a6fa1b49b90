// Graphs as the objects that programs about programs are written against: Jaxpr, ClosedJaxpr,
// JaxprEqn, Var, Literal.
#pragma once

#include <nanobind/nanobind.h>

#include "references/core.h"

namespace weft::py {

void bind_jaxpr_view(nanobind::module_& m);

// The graph behind a Jaxpr, or a ClosedJaxpr without constants; null for anything else.
GraphRef graph_of_jaxpr(PyObject* o);
// A region as `eqn.params` shows it: a Jaxpr, a ClosedJaxpr without constants.
Ref jaxpr(const GraphRef& graph);
Ref closed_jaxpr(const GraphRef& graph);
// The ShapedArray of a type, from a cache.
Ref shaped_array(TypeRef type);

}  // namespace weft::py
