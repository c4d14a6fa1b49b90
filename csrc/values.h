// When two Python values are the same to a cache.
#pragma once

#include "core.h"

namespace weft::py {

// Whether they are of one type and Python finds them equal: 1, 1.0 and True make different
// programs, and so do 0.0 and -0.0. Tuples and graphs are looked into. May run Python code.
bool same_value(PyObject* a, PyObject* b);
// The same for values that are the same.
uint64_t hash_value(PyObject* o);

}  // namespace weft::py
