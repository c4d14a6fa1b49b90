// The transforms of the core as functions of graphs.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_transforms(nanobind::module_& m);

}  // namespace weft::py
