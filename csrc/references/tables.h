// The tables behind caches, as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_tables(nanobind::module_& m);

}  // namespace weft::py
