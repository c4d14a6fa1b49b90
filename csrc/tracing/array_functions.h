// Functions of weft._core that make arrays of buffers and host data, and list them.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_array_functions(nanobind::module_& m);

}  // namespace weft::py
