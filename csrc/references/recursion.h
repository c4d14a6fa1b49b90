// The interpreter's count of how much deeper C code may call itself.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_recursion(nanobind::module_& m);

}  // namespace weft::py
