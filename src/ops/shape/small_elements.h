// Elements of less than a byte: XLA's kernels for CPUs abort on them in some ops, or take them for
// others.
#pragma once

#include <string>

#include "weft/op_def.h"

namespace weft {

// Emits as the rule does, but with operands of 8 bits (f32 for floats) in place of smaller ones;
// the results are converted back. `op` is the name of the op whose rule it is.
EmitRule emit_in_bytes(std::string op, EmitRule rule);

}  // namespace weft
