// Un-jitted linearize, vjp and linear_transpose: a function linearised at a point, as an object
// that can be called forwards and backwards.
#pragma once

#include "references/core.h"

namespace weft::py {

void init_linear(PyObject* module);

}  // namespace weft::py
