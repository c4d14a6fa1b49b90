// x[...] with ints, slices, None, Ellipsis and scalar index arrays.
#pragma once

#include "references/core.h"

namespace weft::py {

// Anything else (index arrays, masks) goes to the function installed as "getitem".
Ref getitem(PyObject* x, PyObject* index);
// x[i] for a sequence-style position; raises IndexError past the end.
Ref item(PyObject* x, int64_t i);
// (first position, how many, their distance) of a slice of an axis; all may be symbolic dimensions.
Ref slice_extent(PyObject* slice, PyObject* dim);

}  // namespace weft::py
