// Special functions that one StableHLO or CHLO op computes, or a short formula. Incomplete gamma
// and beta functions, which iterate, are in incomplete.cpp.
#include <limits>
#include <numbers>

#include "ops/def/hlo_text.h"
#include "ops/def/plain.h"
#include "ops/def/presets.h"
#include "ops/elementwise/family.h"
#include "ops/elementwise/gamma_functions.h"
#include "ops/elementwise/real_functions.h"

namespace weft {

namespace {

using C = const JvpArgCtx&;

// The result of `emit(x, type of x)`, which is called for float32 in place of a narrower float.
template <class Emit>
void emit_in_float32(EmitCtx& c, Emit emit) {
  TypeRef type = c.out_type(), wide = with_dtype(type, DType::kF32);
  auto converted = [&](std::string x, TypeRef from, TypeRef to) {
    return from == to ? x : emit_op(c, "stablehlo.convert", {&x, 1}, {&from, 1}, to);
  };
  c.set_out(0, converted(emit(converted(c.in(0), type, wide), wide), wide, type));
}

// CHLO has it for floats of 16 bits and more.
void emit_erf(EmitCtx& c) {
  if (has_plain_ops_only(c.platform())) return emit_real("", real_erf, nullptr)(c);
  if (info(c.out_type()->dtype()).bits >= 16) return emit_elementwise(c, "chlo.erf");
  emit_in_float32(
      c, [&](std::string x, TypeRef t) { return emit_op(c, "chlo.erf", {&x, 1}, {&t, 1}, t); });
}

// The inverse of erf for float32: x times a polynomial in w = -log(1 - x^2), or in its root in the
// tails (Giles, "Approximating the erfinv function", GPU Computing Gems, 2011).
Val erf_inv_float32(Val x) {
  constexpr double kCentral[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                 -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                 -0.00417768164,  0.246640727,    1.50140941};
  constexpr double kTail[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                              -0.00367342844,  0.00573950773,  -0.0076224613,
                              0.00943887047,   1.00167406,     2.83297682};
  auto number = [&](double value) { return full(*x.builder, x.type(), value); };
  Val xx = x * x;
  Val w = -log1p(-xx);
  Val central = lt(w, number(5));
  auto either = [&](Val inside, Val outside) { return select(central, inside, outside); };
  w = either(w - 2.5, sqrt(w) - 3.0);
  Val sum = either(number(kCentral[0]), number(kTail[0]));
  for (size_t i = 1; i < std::size(kCentral); ++i)
    sum = either(number(kCentral[i]), number(kTail[i])) + sum * w;
  Val infinity = number(std::numeric_limits<double>::infinity());
  return select(eq(xx, number(1)), infinity, sum) * x;
}

// CHLO's expansion has more ops, which matters: XLA spreads a kernel over threads by their number.
void emit_erf_inv(EmitCtx& c) {
  if (c.out_type()->dtype() == DType::kF64) {
    if (!has_plain_ops_only(c.platform())) return emit_elementwise(c, "chlo.erf_inv");
    return emit_as(c, [](const Vals& xs) { return real_erf_inv(xs[0]); });
  }
  emit_in_float32(c, [&](std::string x, TypeRef t) {
    GraphBuilder b;
    Value y = erf_inv_float32({&b, b.input(t)}).value;
    std::string callee = c.function(b.finish({&y, 1}), "erf_inv");
    return c.line(cat("func.call ", callee, "(", x, ") : ", signature({&t, 1}, {&t, 1})));
  });
}

OpDef special(const char* name, const char* doc, JvpArgRule jvp) {
  return unary({.name = name,
                .doc = doc,
                .dtypes = kFloats,
                .jvp = {std::move(jvp)},
                .transcendental = true});
}

void register_error_functions(OpRegistry& r) {
  constexpr double kSlopeAtZero = 2 * std::numbers::inv_sqrtpi;
  OpDef erf = special("erf", "The error function, elementwise.",
                      [](C c) { return c.t() * (kSlopeAtZero * bell(c.x(0))); });
  erf.emit = emit_erf;
  r.add(std::move(erf));
  OpDef complement = special("erfc", "1 - erf(x), elementwise, accurate for large x.",
                             [](C c) { return c.t() * (-kSlopeAtZero * bell(c.x(0))); });
  complement.emit = emit_real("", real_erfc, nullptr);
  r.add(std::move(complement));
  OpDef inverse = special("erf_inv", "The inverse of erf, elementwise.",
                          [](C c) { return c.t() * ((1 / kSlopeAtZero) * exp(square(c.y()))); });
  inverse.emit = emit_erf_inv;
  r.add(std::move(inverse));
}

void register_gamma_functions(OpRegistry& r) {
  auto add = [&](OpDef op, Vals (*decompose)(RuleCtx&), double flops) {
    op.decompose = decompose;
    op.cost = [flops](const CostCtx& c) { return cost_elementwise(c, flops, false); };
    r.add(std::move(op));
  };
  add(special("lgamma", "log|gamma(x)|, elementwise.", [](C c) { return c.t() * digamma(c.x(0)); }),
      decompose_lgamma, 150);
  add(special("digamma", "The derivative of lgamma, elementwise.",
              [](C c) { return c.t() * apply1("polygamma", {scalar_like(c.x(0), 1), c.x(0)}); }),
      decompose_digamma, 150);
  add(binary({.name = "polygamma",
              .doc = "The derivative of order m of digamma at x, elementwise.",
              .dtypes = kFloats,
              .jvp = {no_derivative("polygamma", "its order m"),
                      [](C c) { return c.t() * apply1("polygamma", {c.x(0) + 1.0, c.x(1)}); }},
              .transcendental = true}),
      decompose_polygamma, 2000);
  add(binary(
          {.name = "zeta",
           .doc = "The Hurwitz zeta function: the sum of (q + k)**-x for k >= 0.",
           .dtypes = kFloats,
           .jvp = {no_derivative("zeta", "its exponent x"),
                   [](C c) { return c.t() * (-c.x(0) * apply1("zeta", {c.x(0) + 1.0, c.x(1)})); }},
           .transcendental = true}),
      decompose_zeta, 2000);
}

// sqrt(x) e**-x I(x) for x >= 8, in 8/x - 1/2, as tools/fits prints them.
constexpr double kI0eShort[] = {4.02176513e-1, 6.72110627e-3, 5.44624614e-4,
                                8.89772459e-5, 2.62246373e-5, 1.13523843e-5};
constexpr double kI0e[] = {
    4.0217650944500809e-1,  6.7211039673357823e-3, 5.4486429755805856e-4, 8.9144270307614081e-5,
    2.3741562849476232e-5,  9.5155174670936746e-6, 5.6780893348233952e-6, 5.0336157710564153e-6,
    5.521358530856123e-6,   3.8703944185167037e-6, -7.021040175065541e-6, -2.7499543514933056e-5,
    -2.0552065165331134e-5, 6.2261284752863301e-5, 1.0686078749953672e-4, -1.175153348168329e-4,
    -2.9691550609323585e-4, 2.1082781982106283e-4, 5.6719606504852704e-4, -3.3176472371839773e-4,
    -6.8100723723742672e-4, 3.7115575485242351e-4, 3.823007498770266e-4,  -2.0486635546744419e-4};
constexpr double kI1eShort[] = {3.89398455e-1,  -1.9499157e-2,  -8.76673074e-4,
                                -1.20122202e-4, -3.21541963e-5, -1.31869235e-5};
constexpr double kI1e[] = {
    3.8939845902587233e-1,  -1.9499154386471458e-2, -8.7694305533721101e-4, -1.2030837760941017e-4,
    -2.9358561815466295e-5, -1.1148337948831798e-5, -6.4008470150825184e-6, -5.5205572735633356e-6,
    -5.9828726454063536e-6, -4.3144308887542551e-6, 6.876974211159058e-6,   2.8732812472018364e-5,
    2.4743433593491407e-5,  -6.2511120138777213e-5, -1.3179668522871208e-4, 1.1162865271428855e-4,
    4.2513331466939201e-4,  -1.857512802702406e-4,  -1.0611026568706415e-3, 2.6982475765315754e-4,
    1.9413039050141979e-3,  -2.8149364976930722e-4, -2.260010950584602e-3,  1.46821592886396e-4,
    1.2327885636134987e-3};

// I(x) for |x| <= 8: (x/2)**n times the sum of (x**2 / 4)**k / (k! (k + n)!), DLMF 10.25.2.
Val bessel_series(Val x, int order) {
  int terms = x.dtype() == DType::kF64 ? 24 : 16;
  Val quarter = square(0.5 * x), sum = scalar_like(x, 1);
  for (int k = terms; k > 0; --k)
    sum = 1.0 + quarter * (1.0 / (static_cast<double>(k) * (k + order))) * sum;
  return order == 0 ? sum : (0.5 * x) * sum;
}

Vals decompose_bessel(RuleCtx& c, int order) {
  DType dtype = c.x(0).dtype();
  bool is_double = dtype == DType::kF64;
  Val x = at_least_f32(c.x(0)), size = abs(x);
  Val eight = scalar_like(x, 8);
  Val is_near = le(size, eight);
  Val small = select(is_near, size, eight);
  small = bessel_series(small, order) * exp(-small);
  Val u = 8.0 / size - 0.5;
  std::span<const double> all = order == 0 ? std::span<const double>(kI0e) : kI1e;
  std::span<const double> few = order == 0 ? std::span<const double>(kI0eShort) : kI1eShort;
  Val large = polynomial(u, is_double ? all : few) * rsqrt(size);
  Val value = select(is_near, small, large);
  if (order == 1) value = select(lt(x, scalar_like(x, 0)), -value, value);
  return {convert(value, dtype)};
}

void register_bessel(OpRegistry& r) {
  OpDef i0e = special("bessel_i0e", "exp(-|x|) I0(x) of the modified Bessel function, elementwise.",
                      [](C c) {
                        Val i1e = apply1("bessel_i1e", {c.x(0)});
                        return c.t() * (i1e - sign(c.x(0)) * c.y());
                      });
  i0e.decompose = [](RuleCtx& c) { return decompose_bessel(c, 0); };
  i0e.cost = [](const CostCtx& c) { return cost_elementwise(c, 80, false); };
  r.add(std::move(i0e));
  OpDef i1e = special("bessel_i1e", "exp(-|x|) I1(x) of the modified Bessel function, elementwise.",
                      [](C c) {
                        // I1(x)/x is 1/2 at x = 0.
                        Val x = c.x(0);
                        Val at_zero = eq(x, scalar_like(x, 0));
                        Val ratio = c.y() / select(at_zero, scalar_like(x, 1), x);
                        Val i0e = apply1("bessel_i0e", {x});
                        Val slope = i0e - sign(x) * c.y() - ratio;
                        return c.t() * select(at_zero, scalar_like(x, 0.5), slope);
                      });
  i1e.decompose = [](RuleCtx& c) { return decompose_bessel(c, 1); };
  i1e.cost = [](const CostCtx& c) { return cost_elementwise(c, 80, false); };
  r.add(std::move(i1e));
}

}  // namespace

void register_special(OpRegistry& r) {
  register_error_functions(r);
  register_gamma_functions(r);
  register_bessel(r);
}

}  // namespace weft
