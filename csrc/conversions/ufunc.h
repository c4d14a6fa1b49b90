// The type of `weft.numpy.add` and its like. What they have beside being called is Python
// (python/weft/numpy/_ufunc.py).
#pragma once

#include "references/core.h"

namespace weft::py {

void init_ufunc(PyObject* module);

}  // namespace weft::py
