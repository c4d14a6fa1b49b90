// Programs that were compiled, what they keep, and their runs, as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_programs(nanobind::module_& m);

}  // namespace weft::py
