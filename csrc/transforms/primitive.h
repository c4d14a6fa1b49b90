// Ops that users define in Python.
#pragma once

#include <nanobind/nanobind.h>

#include "references/core.h"

namespace weft::py {

void bind_primitive(nanobind::module_& m);

}  // namespace weft::py
