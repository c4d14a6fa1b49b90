// The number, comparison and indexing slots and the attributes that Array and Tracer share.
#pragma once

#include "core.h"

namespace weft::py {

// Appends the slots at slots[n...]; returns the new count.
int add_operator_slots(PyType_Slot* slots, int n);
// shape, dtype, ndim, size and weak_type, followed by a type's own; kept for the process.
PyGetSetDef* with_shared_getters(std::span<const PyGetSetDef> own);

}  // namespace weft::py
