// The number, comparison and indexing slots that Array and Tracer share.
#pragma once

#include "core.h"

namespace weft::py {

// Appends the slots at slots[n...]; returns the new count.
int add_operator_slots(PyType_Slot* slots, int n);

}  // namespace weft::py
