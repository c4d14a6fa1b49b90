// exp, log, the trigonometric and the hyperbolic functions.
#include <numbers>

#include "ops/def/presets.h"
#include "ops/elementwise/accuracy.h"
#include "ops/elementwise/complex_functions.h"
#include "ops/elementwise/family.h"
#include "ops/elementwise/real_functions.h"

namespace weft {

namespace {

using C = const JvpArgCtx&;

OpDef function(const char* name, const char* doc, std::string hlo, JvpArgRule jvp) {
  return unary({.name = name,
                .doc = doc,
                .hlo = std::move(hlo),
                .dtypes = kInexact,
                .jvp = {std::move(jvp)},
                .transcendental = true});
}

OpDef function(const char* name, const char* doc, EmitRule emit, JvpArgRule jvp) {
  OpDef op = function(name, doc, std::string(), std::move(jvp));
  op.emit = std::move(emit);
  return op;
}

// One that XLA may have in several degrees of accuracy.
OpDef graded(const char* name, const char* doc, const char* hlo, JvpArgRule jvp) {
  return with_accuracy(function(name, doc, std::string(hlo), std::move(jvp)), hlo);
}

// One of which XLA's kernels differ in the last bits, by emitter and number of elements.
OpDef other_in_kernel(OpDef op) {
  op.in_kernel = nullptr;
  return op;
}

void register_exponentials(OpRegistry& r) {
  r.add(with_accuracy(
      function("exp", "e**x, elementwise.", emit_by_parts("stablehlo.exponential", complex_exp),
               [](C c) { return c.t() * c.y(); }),
      "stablehlo.exponential"));
  OpDef exp2 = with_accuracy(function("exp2", "2**x, elementwise.", "",
                                      [](C c) { return c.t() * (std::numbers::ln2 * c.y()); }),
                             "");
  exp2.decompose = [](RuleCtx& c) -> Vals {
    Val x = c.x(0);
    // The product of complex numbers would be nan where a part is infinite.
    auto scaled = [](Val v) { return v * std::numbers::ln2; };
    if (is_complex(x.dtype())) return {exp(complex(scaled(real(x)), scaled(imag(x))))};
    return {convert(real_exp2(at_least_f32(x), c.attr().at("accuracy")), x.dtype())};
  };
  r.add(std::move(exp2));
  r.add(with_accuracy(
      function(
          "expm1", "e**x - 1, elementwise, accurate near 0.",
          emit_real("", real_expm1, emit_mended("stablehlo.exponential_minus_one", mend_expm1)),
          // y + 1 would be 0 where the result is close to -1.
          [](C c) { return c.t() * exp(c.x(0)); }),
      "stablehlo.exponential_minus_one"));
  r.add(with_accuracy(
      function("log", "Natural logarithm, elementwise.", emit_mended("stablehlo.log", mend_log),
               [](C c) { return c.t() / c.x(0); }),
      "stablehlo.log"));
  r.add(with_accuracy(
      function("log1p", "log(1 + x), elementwise, accurate near 0.",
               emit_real("", real_log1p, emit_mended("stablehlo.log_plus_one", mend_log)),
               [](C c) { return c.t() / (c.x(0) + 1.0); }),
      "stablehlo.log_plus_one"));
  r.add(graded("logistic", "1 / (1 + e**-x), elementwise.", "stablehlo.logistic",
               [](C c) { return c.t() * (c.y() * (1.0 - c.y())); }));
}

// The slope of a function at x, by `near` of x up to 1, by `far` of 1/x beyond, where the square of
// x would overflow.
template <class Near, class Far>
Val slope_by_size(Val x, Near near, Far far) {
  if (is_complex(x.dtype())) return near(x);
  Val one = ones_like(x), is_large = gt(abs(x), one);
  return select(is_large, far(1.0 / select(is_large, x, one)), near(select(is_large, one, x)));
}

// 1 / (1 + x*x)
Val atan_slope(Val x) {
  auto near = [](Val x) { return 1.0 / (1.0 + square(x)); };
  auto far = [](Val inverse) { return square(inverse) / (1.0 + square(inverse)); };
  return slope_by_size(x, near, far);
}

// 1 / sqrt(1 + x*x)
Val asinh_slope(Val x) {
  auto near = [](Val x) { return rsqrt(1.0 + square(x)); };
  auto far = [](Val inverse) { return abs(inverse) * rsqrt(1.0 + square(inverse)); };
  return slope_by_size(x, near, far);
}

// An op of its own, since the product of its formula is accurate but its slopes are not: their sum
// (1 - x) - (1 + x) loses small x, and slopes at 1 would have a factor of 0.
void register_one_less_square(OpRegistry& r) {
  OpDef op = unary({.name = "one_less_square",
                    .doc = "1 - x * x, elementwise, accurate near 1.",
                    .dtypes = kInexact,
                    .jvp = {[](C c) { return c.t() * (-2.0 * c.x(0)); }}});
  op.decompose = [](RuleCtx& c) -> Vals { return {(1.0 - c.x(0)) * (1.0 + c.x(0))}; };
  r.add(std::move(op));
}

Val one_less_square(Val x) { return apply1("one_less_square", {x}); }

void register_trigonometric(OpRegistry& r) {
  r.add(with_accuracy(
      function("sin", "Sine, elementwise.", emit_by_parts("stablehlo.sine", complex_sin),
               [](C c) { return c.t() * cos(c.x(0)); }),
      "stablehlo.sine"));
  r.add(with_accuracy(
      function("cos", "Cosine, elementwise.", emit_by_parts("stablehlo.cosine", complex_cos),
               [](C c) { return c.t() * -sin(c.x(0)); }),
      "stablehlo.cosine"));
  r.add(other_in_kernel(with_accuracy(
      function("tan", "Tangent, elementwise.", emit_mended("stablehlo.tan", mend_tangent),
               [](C c) { return c.t() * (1.0 + square(c.y())); }),
      "stablehlo.tan")));
  auto asin_slope = [](Val x) { return rsqrt(one_less_square(x)); };
  r.add(function("asin", "Inverse sine, elementwise.",
                 emit_real("chlo.asin", real_asin, emit_mended("chlo.asin", mend_asin)),
                 [=](C c) { return c.t() * asin_slope(c.x(0)); }));
  r.add(function("acos", "Inverse cosine, elementwise.", emit_mended("chlo.acos", mend_acos),
                 [=](C c) { return c.t() * -asin_slope(c.x(0)); }));
  r.add(other_in_kernel(function("atan", "Inverse tangent, elementwise.",
                                 emit_mended("chlo.atan", mend_atan),
                                 [](C c) { return c.t() * atan_slope(c.x(0)); })));
}

void register_hyperbolic(OpRegistry& r) {
  r.add(function("sinh", "Hyperbolic sine, elementwise.",
                 emit_real("", real_sinh, emit_by_parts("chlo.sinh", complex_sinh)),
                 [](C c) { return c.t() * cosh(c.x(0)); }));
  r.add(function("cosh", "Hyperbolic cosine, elementwise.",
                 emit_real("", real_cosh, emit_by_parts("chlo.cosh", complex_cosh)),
                 [](C c) { return c.t() * sinh(c.x(0)); }));
  r.add(with_accuracy(
      function("tanh", "Hyperbolic tangent, elementwise.",
               emit_real("stablehlo.tanh", real_tanh, emit_mended("stablehlo.tanh", mend_tanh)),
               [](C c) { return c.t() * one_less_square(c.y()); }),
      "stablehlo.tanh"));
  r.add(function("asinh", "Inverse hyperbolic sine, elementwise.",
                 emit_mended("chlo.asinh", mend_asinh),
                 [](C c) { return c.t() * asinh_slope(c.x(0)); }));
  r.add(function("acosh", "Inverse hyperbolic cosine, elementwise.",
                 emit_mended("chlo.acosh", mend_acosh), [](C c) {
                   // One root would be on the wrong branch where Re(x) < 0, and overflow.
                   Val x = is_complex(c.x(0).dtype()) ? c.x(0) : abs(c.x(0));
                   return c.t() * (rsqrt(x - 1.0) * rsqrt(x + 1.0));
                 }));
  r.add(function("atanh", "Inverse hyperbolic tangent, elementwise.",
                 emit_real("", real_atanh, emit_mended("chlo.atanh", mend_atanh)),
                 [](C c) { return c.t() / one_less_square(c.x(0)); }));
}

}  // namespace

void register_transcendental(OpRegistry& r) {
  register_exponentials(r);
  register_one_less_square(r);
  register_trigonometric(r);
  register_hyperbolic(r);
}

}  // namespace weft
