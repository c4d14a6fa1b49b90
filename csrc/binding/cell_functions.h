// What users do with cells: reading, writing, making and ending them.
#pragma once

#include "references/core.h"
#include "references/type_slots.h"

namespace weft::py {

// The slots and attributes of the type Ref.
TypeSlots cell_slots();
void init_cell_functions(PyObject* module);

}  // namespace weft::py
