// The files of this folder that define ops; family.cpp calls each once.
#pragma once

#include "weft/registry.h"

namespace weft {

void register_unary(OpRegistry& r);
void register_binary(OpRegistry& r);
void register_bitwise(OpRegistry& r);
void register_convert(OpRegistry& r);
void register_transcendental(OpRegistry& r);
void register_special(OpRegistry& r);
void register_incomplete(OpRegistry& r);
void register_compare(OpRegistry& r);

}  // namespace weft
