// The user's line and the scope of locations, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_location_functions(nanobind::module_& m);

}  // namespace weft::py
