// Settings, as Python reads and sets them.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_settings(nanobind::module_& m);

}  // namespace weft::py
