// The stack of trace contexts, as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_contexts(nanobind::module_& m);

}  // namespace weft::py
