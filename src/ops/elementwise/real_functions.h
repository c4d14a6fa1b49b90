// Functions of real numbers, where XLA's own are less accurate than the dtype, or overflow on the
// way. tools/accuracy measures them; tools/fits prints the polynomials.
#pragma once

#include <span>

#include "weft/build.h"
#include "weft/op_def.h"

namespace weft {

// Emits what a rule makes of a real operand, in which floats of less than 32 bits are float32. If
// `hlo` is not empty, the rule is given what that op gives as well. Complex numbers, and real ones
// for which the rule gives nothing, are left to `otherwise`.
using RealRule = Val (*)(Val x, Val own);
EmitRule emit_real(std::string hlo, RealRule rule, EmitRule otherwise);
// The operand as float32 if it is narrower, for rules that widen by themselves.
Val at_least_f32(Val x);

// The sum of c[i] x**i.
Val polynomial(Val x, std::span<const double> c);
// exp(-x * x) and exp(-x * x / 2), accurate for large x too; their slopes of any order are 0 where
// they vanish, for infinite x as well.
Val bell(Val x);

// 2**x; `accuracy` is that of the exponential that it takes.
Val real_exp2(Val x, const Attr& accuracy);
Val real_expm1(Val x, Val own);
Val real_log1p(Val x, Val own);  // float64
// In float64, of operations that are vectorised; XLA calls a function for each element. They are
// off by up to 2 units in the last place.
Val real_log(Val x);
Val sin_pi(Val x);  // for x from -1/2 to 1/2
Val real_asin(Val x, Val own);
Val real_sinh(Val x, Val own);
Val real_cosh(Val x, Val own);
Val real_tanh(Val x, Val own);   // float64
Val real_atanh(Val x, Val own);  // float64
Val real_cbrt(Val x, Val own);
Val real_erfc(Val x, Val own);
Val real_erf(Val x, Val own);
// The inverse of erf for float64, from an approximation of two digits on (S. Winitzki, "A handy
// approximation for the error function and its inverse", 2008).
Val real_erf_inv(Val x);

}  // namespace weft
