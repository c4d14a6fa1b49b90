// The files of this folder that define ops; family.cpp calls each once.
#pragma once

#include "weft/registry.h"

namespace weft {

void register_shape(OpRegistry& r);
void register_concat(OpRegistry& r);
void register_slice(OpRegistry& r);
void register_gather(OpRegistry& r);
void register_scatter(OpRegistry& r);
void register_sort(OpRegistry& r);

}  // namespace weft
