// How calls of Python functions on concrete arrays reach their programs without running Python.
#pragma once

#include "conversions/public_function.h"

namespace weft::py {

// Runs the call if its operands are concrete arrays, no trace wants it, and what else is given are
// values that the entry may key a program by; says whether it did. `result` is null if an error is
// set. What the program does is recorded from the function itself, at the first such call.
bool run_entry(const EagerEntry& entry, PyObject* const* args, Py_ssize_t n, PyObject* kwnames,
               PyObject*& result);

}  // namespace weft::py
