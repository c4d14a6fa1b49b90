// Parsing, passes, emission and what is known of ops, for weft.compiler and the command line.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_compiler(nanobind::module_& m);

}  // namespace weft::py
