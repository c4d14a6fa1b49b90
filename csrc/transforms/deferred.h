// Deferred recording: what un-jitted grad, jvp, linearize and vmap do to a function. The function
// runs once on tracers of a deferred context, the transformed graph is then run eagerly from the
// cache of compiled programs, or becomes part of the program that is being traced.
#pragma once

#include "binding/bind.h"
#include "references/core.h"
#include "tracing/trace.h"

namespace weft::py {

// The value of a tracer of a deferred context whose inputs are known, so that Python can branch on
// it; null if it stands for more than one value.
Ref concrete_value(TracerObject* t);
// Whether a derivative goes through an object, as far as transforms are un-jitted.
bool carries_derivative(PyObject* o);

// Results of a graph on operands, in the context they belong to: run at once, or recorded where
// operands are tracers. `weak` says which results are weak; those beyond its end are not.
Objects call_graph(const GraphRef& graph, std::span<const Operand> xs,
                   const std::vector<bool>& weak);

void init_deferred(PyObject* module);

}  // namespace weft::py
