// Settings, the device table and caches, as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_state(nanobind::module_& m);

}  // namespace weft::py
