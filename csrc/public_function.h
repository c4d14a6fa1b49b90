// The callables through which users enter weft, as far as they are Python functions; and what
// happens to an error that leaves one.
#pragma once

#include "core.h"

namespace weft::py {

// An error is set and leaves `function` for the code that called it: `hooks.leave` folds weft's own
// frames and names the function. The error stays set.
void error_leaves(PyObject* function);

void init_public_function(PyObject* module);

}  // namespace weft::py
