// When two Python values make the same program: not whenever Python finds them equal, since 1, 1.0
// and True are equal, and so are 0.0 and -0.0.
#pragma once

#include "references/core.h"

namespace weft::py {

// Whether the values are equal and of one type, and so is what they hold, for tuples, frozensets,
// dataclasses, tree definitions, and lists and dicts in any of these. Floating-point numbers
// compare by their bits, decimal ones by their digits, graphs by their structure. Runs Python code
// (`__eq__`), so that no table may be walked meanwhile.
bool same_value(PyObject* a, PyObject* b);
// Equal for the same values; raises TypeError for one without a hash.
uint64_t hash_value(PyObject* o);

}  // namespace weft::py
