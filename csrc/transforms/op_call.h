// Calls of functions that become one op, which holds the function's graph: checkpoint, and
// functions whose derivatives users wrote.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_op_calls(nanobind::module_& m);

}  // namespace weft::py
