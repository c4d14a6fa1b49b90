// Calls of users' functions by programs that run.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_host_call(nanobind::module_& m);

}  // namespace weft::py
