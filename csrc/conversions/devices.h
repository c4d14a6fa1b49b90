// The table of devices, as Python fills and reads it.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_devices(nanobind::module_& m);

}  // namespace weft::py
