// The files of this folder that define ops; family.cpp calls each once.
#pragma once

#include "weft/registry.h"

namespace weft {

void register_callback(OpRegistry& r);
void register_check(OpRegistry& r);
void register_ffi(OpRegistry& r);
void register_rng(OpRegistry& r);
void register_constant(OpRegistry& r);
void register_barrier(OpRegistry& r);

}  // namespace weft
