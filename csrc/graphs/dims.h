// Symbolic dimensions for Python: arithmetic on their handles.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_dims(nanobind::module_& m);

}  // namespace weft::py
