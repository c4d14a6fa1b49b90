// Functions of complex numbers whose parts are infinite, huge or zero: values as C has them, where
// XLA's own are nan, overflow on the way, or have lost the sign of a zero.
#pragma once

#include "weft/build.h"
#include "weft/op_def.h"

namespace weft {

// Emit the HLO op, but for complex numbers what a rule makes of ops on their parts: of the operand,
// or of the operand and XLA's own result.
EmitRule emit_by_parts(std::string hlo, Val (*rule)(Val z));
EmitRule emit_mended(std::string hlo, Val (*rule)(Val z, Val result));

Val complex_sin(Val z);
Val complex_cos(Val z);
Val complex_sinh(Val z);
Val complex_cosh(Val z);
Val complex_exp(Val z);
Val complex_sign(Val z);

Val mend_tangent(Val z, Val result);
Val mend_tanh(Val z, Val result);
Val mend_log(Val z, Val result);  // log and log1p
Val mend_expm1(Val z, Val result);
Val mend_asin(Val z, Val result);
Val mend_asinh(Val z, Val result);
Val mend_acos(Val z, Val result);
Val mend_acosh(Val z, Val result);
Val mend_atan(Val z, Val result);
Val mend_atanh(Val z, Val result);
Val mend_sqrt(Val z, Val result);
Val mend_abs(Val z, Val result);

}  // namespace weft
