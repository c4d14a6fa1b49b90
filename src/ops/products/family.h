// The files of this folder that define ops; family.cpp calls each once.
#pragma once

#include "weft/registry.h"

namespace weft {

void register_dot(OpRegistry& r);
void register_sparse(OpRegistry& r);
void register_conv(OpRegistry& r);
void register_fft(OpRegistry& r);
void register_linalg(OpRegistry& r);

}  // namespace weft
