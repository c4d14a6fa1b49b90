// The transforms of the core as functions of graphs, and evaluation of a graph on arrays.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_transforms(nanobind::module_& m);

}  // namespace weft::py
