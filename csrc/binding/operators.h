// The number, comparison and indexing slots and the attributes that Array and Tracer share.
#pragma once

#include "references/type_slots.h"

namespace weft::py {

TypeSlots operator_slots();

}  // namespace weft::py
