// How exact some element-wise functions have to be: their attribute `accuracy`, which StableHLO
// calls result_accuracy.
#pragma once

#include <string>

#include "weft/op_def.h"

namespace weft {

// Gives an op of one operand the attribute: None; "HIGHEST"; or tolerances, "atol = 1.0e-3, rtol =
// 0.0, ulps = 2". With it real numbers are emitted as the op `hlo`, if that is not empty.
OpDef with_accuracy(OpDef def, std::string hlo);

}  // namespace weft
