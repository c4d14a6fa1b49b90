// The ops that take symbolic dimensions.
#include "ops/def/symbols.h"

#include <unordered_set>

#include "weft/dims.h"
#include "weft/error.h"

namespace weft {
namespace {

// Their rules compute with sizes as sizes are computed with, or refuse symbolic ones themselves.
const std::unordered_set<std::string_view>& with_symbols() {
  static const std::unordered_set<std::string_view> names = {
      // Element by element.
      "abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2", "atanh",
      "bessel_i0e", "bessel_i1e", "bitcast_convert_type", "cbrt", "ceil", "clamp", "clz", "complex",
      "conj", "convert_element_type", "copy", "cos", "cosh", "derivative", "digamma", "div", "eq",
      "eq_to", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor", "ge", "gt", "igamma",
      "igamma_grad_a", "igamma_grad_x", "igammac", "imag", "integer_pow", "is_finite", "le",
      "le_to", "lgamma", "log", "log1p", "logistic", "lt", "lt_to", "max", "min", "mul", "mulhi",
      "ne", "neg", "nextafter", "not", "one_less_square", "or", "polygamma", "population_count",
      "pow", "random_gamma_grad", "real", "reduce_precision", "regularized_incomplete_beta",
      "regularized_incomplete_beta_grad_x", "rem", "round", "rsqrt", "select_n", "shift_left",
      "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "sqrt", "square",
      "stop_gradient", "sub", "tan", "tanh", "threefry2x32", "xor", "zeta",
      // Shapes and places.
      "broadcast_in_dim", "concatenate", "constant", "dim_as_value", "dynamic_slice",
      "dynamic_update_slice", "gather", "iota", "pad", "reshape", "rev", "scatter", "scatter-add",
      "scatter-max", "scatter-min", "scatter-mul", "scatter-sub", "slice", "sort", "split",
      "squeeze", "top_k", "transpose",
      // Sums and products.
      "argmax", "argmin", "conv_general_dilated", "cumlogsumexp", "cummax", "cummin", "cumprod",
      "cumsum", "dot_general", "fft", "reduce", "reduce_and", "reduce_max", "reduce_min",
      "reduce_or", "reduce_prod", "reduce_sum", "reduce_window", "reduce_window_max",
      "reduce_window_min", "reduce_window_sum", "reduce_xor", "select_and_gather_add",
      "select_and_scatter_add",
      // Matrices.
      "cholesky", "custom_linear_solve", "eig", "eigh", "geqp3", "geqrf", "hessenberg",
      "householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "qr", "schur", "svd",
      "triangular_solve", "tridiagonal", "tridiagonal_solve",
      // What holds graphs, and what hands values on.
      "check", "checkpoint", "composite", "cond", "custom_jvp_call", "custom_lin",
      "custom_vjp_call", "dce_sink", "device_put", "jit", "mapped_call", "name",
      "optimization_barrier", "pullback", "pushforward", "rng_bit_generator", "scan",
      "sharding_constraint", "while"};
  return names;
}

}  // namespace

void guard_symbols(OpDef& op) {
  if (with_symbols().contains(op.name)) return;
  op.infer = [infer = std::move(op.infer)](const InferCtx& c) {
    TypeRefs out = infer(c);
    for (std::span<const TypeRef> types : {c.operands, std::span<const TypeRef>(out)})
      for (TypeRef type : types)
        if (has_symbols(type->shape()))
          c.fail(ErrorKind::kNotImplemented, "expected sizes that are numbers; got ", type,
                 ", which has symbolic dimensions");
    return out;
  };
}

void need_numbers(const OpDef& op, std::span<const int64_t> sizes) {
  for (int64_t size : sizes)
    if (is_symbolic(size))
      fail(ErrorKind::kNotImplemented, "[", op.name, "] expected sizes that are numbers for ",
           "derivatives and vmap; got ", dim_text(size));
}

}  // namespace weft
