// The files of this folder that define ops; family.cpp calls each once.
#pragma once

#include "weft/registry.h"

namespace weft {

void register_reduce(OpRegistry& r);
void register_reduce_graph(OpRegistry& r);
void register_cumulative(OpRegistry& r);
void register_window(OpRegistry& r);
void register_select_window(OpRegistry& r);

}  // namespace weft
