// The files of this folder that define ops; family.cpp calls each once.
#pragma once

#include "weft/registry.h"

namespace weft {

void register_cond(OpRegistry& r);
void register_platform(OpRegistry& r);
void register_while(OpRegistry& r);
void register_scan(OpRegistry& r);
void register_call(OpRegistry& r);
void register_checkpoint(OpRegistry& r);
void register_custom_rules(OpRegistry& r);
void register_linear_solve(OpRegistry& r);
void register_mapped_call(OpRegistry& r);

}  // namespace weft
