// Un-jitted grad, value_and_grad and jvp as Python calls them: record a function at the leaves of
// its arguments, transform the graph, call it, and give back trees.
#pragma once

#include "references/core.h"

namespace weft::py {

void init_derivative(PyObject* module);

}  // namespace weft::py
