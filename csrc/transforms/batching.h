// Un-jitted vmap as Python calls it.
#pragma once

#include "references/core.h"

namespace weft::py {

void init_batching(PyObject* module);

}  // namespace weft::py
