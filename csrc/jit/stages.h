// The stages of a jitted function as Python objects: Traced (trace), Program (compile).
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_stages(nanobind::module_& m);

}  // namespace weft::py
