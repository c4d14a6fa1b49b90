// Special functions that one StableHLO or CHLO op computes, or a short formula. Incomplete gamma
// and beta functions, which iterate, are in incomplete.cpp.
#include <limits>
#include <numbers>

#include "ops/families.h"
#include "ops/hlo_text.h"
#include "ops/presets.h"

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

// CHLO has not all of them for floats of less than 16 bits.
void emit_special(EmitCtx& c, std::string_view hlo) {
  if (info(c.out_type()->dtype()).bits >= 16) return emit_elementwise(c, hlo);
  emit_in_float32(c,
                  [&](std::string x, TypeRef t) { return emit_op(c, hlo, {&x, 1}, {&t, 1}, t); });
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
  if (c.out_type()->dtype() == DType::kF64) return emit_elementwise(c, "chlo.erf_inv");
  emit_in_float32(c, [&](std::string x, TypeRef t) {
    GraphBuilder b;
    Value y = erf_inv_float32({&b, b.input(t)}).value;
    std::string callee = c.function(b.finish({&y, 1}), "erf_inv");
    return c.line(cat("func.call ", callee, "(", x, ") : ", signature({&t, 1}, {&t, 1})));
  });
}

OpDef special(const char* name, const char* doc, std::string hlo, JvpArgRule jvp) {
  OpDef def = unary({.name = name,
                     .doc = doc,
                     .dtypes = kFloats,
                     .jvp = {std::move(jvp)},
                     .transcendental = true});
  if (!hlo.empty()) def.emit = [hlo = std::move(hlo)](EmitCtx& c) { emit_special(c, hlo); };
  return def;
}

void register_error_functions(OpRegistry& r) {
  constexpr double kSlopeAtZero = 2 * std::numbers::inv_sqrtpi;
  r.add(special("erf", "The error function, elementwise.", "chlo.erf",
                [](C c) { return c.t() * (kSlopeAtZero * exp(-square(c.x(0)))); }));
  r.add(special("erfc", "1 - erf(x), elementwise, accurate for large x.", "chlo.erfc",
                [](C c) { return c.t() * (-kSlopeAtZero * exp(-square(c.x(0)))); }));
  OpDef inverse = special("erf_inv", "The inverse of erf, elementwise.", "",
                          [](C c) { return c.t() * ((1 / kSlopeAtZero) * exp(square(c.y()))); });
  inverse.emit = emit_erf_inv;
  r.add(std::move(inverse));
}

void register_gamma_functions(OpRegistry& r) {
  r.add(special("lgamma", "log|gamma(x)|, elementwise.", "chlo.lgamma",
                [](C c) { return c.t() * digamma(c.x(0)); }));
  r.add(special("digamma", "The derivative of lgamma, elementwise.", "chlo.digamma",
                [](C c) { return c.t() * apply1("polygamma", {scalar_like(c.x(0), 1), c.x(0)}); }));
  r.add(binary({.name = "polygamma",
                .doc = "The derivative of order m of digamma at x, elementwise.",
                .hlo = "chlo.polygamma",
                .dtypes = kFloats,
                .jvp = {no_derivative("polygamma", "its order m"),
                        [](C c) { return c.t() * apply1("polygamma", {c.x(0) + 1.0, c.x(1)}); }},
                .transcendental = true}));
  r.add(binary(
      {.name = "zeta",
       .doc = "The Hurwitz zeta function: the sum of (q + k)**-x for k >= 0.",
       .hlo = "chlo.zeta",
       .dtypes = kFloats,
       .jvp = {no_derivative("zeta", "its exponent x"),
               [](C c) { return c.t() * (-c.x(0) * apply1("zeta", {c.x(0) + 1.0, c.x(1)})); }},
       .transcendental = true}));
}

// Chebyshev coefficients of e**-x I0(x) on [0, 8], in x/4 - 1.
constexpr double kI0eSmall[] = {
    6.767952744094761e-01,  -3.046826723431984e-01,  1.7162090152220877e-01, -9.490109704804764e-02,
    4.930528423967071e-02,  -2.373741480589947e-02,  1.0546460394594998e-02, -4.324309995050576e-03,
    1.6394756169413357e-03, -5.763755745385824e-04,  1.8850288509584165e-04, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
    6.046995022541919e-08,  -1.300025009986248e-08,  2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11,  -1.726826291441556e-11,  2.95505266312964e-12,   -4.856446783111929e-13,
    7.676185498604936e-14,  -1.1685332877993451e-14, 1.715391285555133e-15,  -2.431279846547955e-16,
    3.3307945188222384e-17, -4.4153416464793395e-18};
// And of sqrt(x) e**-x I0(x) for x >= 8, in 16/x - 1.
constexpr double kI0eLarge[] = {
    8.044904110141088e-01,   3.3691164782556943e-03,  6.889758346916825e-05,
    2.8913705208347567e-06,  2.0489185894690638e-07,  2.266668990498178e-08,
    3.3962320257083865e-09,  4.94060238822497e-10,    1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13,   3.8527783827421426e-13,  1.54008621752141e-14,
    -4.150569347287222e-14,  -9.554846698828307e-15,  3.8116806693526224e-15,
    1.7725601330565263e-15,  -3.425485619677219e-16,  -2.8276239805165836e-16,
    3.461222867697461e-17,   4.46562142029676e-17,    -4.830504485944182e-18,
    -7.233180487874754e-18};

// Clenshaw's sum of c[0]/2 + c[1] T1(u) + c[2] T2(u) + ...; `terms` are enough for the dtype.
Val chebyshev(Val u, std::span<const double> c, size_t terms) {
  Val twice = 2.0 * u;
  Val b1 = scalar_like(u, 0);
  Val b2 = b1;
  for (size_t i = std::min(terms, c.size()) - 1; i > 0; --i) {
    Val b0 = twice * b1 - b2 + c[i];
    b2 = b1;
    b1 = b0;
  }
  return u * b1 - b2 + c[0] / 2;
}

Vals decompose_bessel_i0e(RuleCtx& c) {
  DType dtype = c.x(0).dtype();
  bool is_double = dtype == DType::kF64;
  Val x = abs(is_double ? c.x(0) : convert(c.x(0), DType::kF32));
  Val small = chebyshev(0.25 * x - 1.0, kI0eSmall, is_double ? 30 : 18);
  Val large = chebyshev(16.0 / x - 1.0, kI0eLarge, is_double ? 25 : 7) * rsqrt(x);
  return {convert(select(le(x, scalar_like(x, 8)), small, large), dtype)};
}

void register_bessel(OpRegistry& r) {
  OpDef i0e = special("bessel_i0e", "exp(-|x|) I0(x) of the modified Bessel function, elementwise.",
                      "", [](C c) {
                        Val i1e = apply1("bessel_i1e", {c.x(0)});
                        return c.t() * (i1e - sign(c.x(0)) * c.y());
                      });
  i0e.decompose = decompose_bessel_i0e;
  i0e.cost = [](const CostCtx& c) { return cost_elementwise(c, 80, false); };
  r.add(std::move(i0e));
  r.add(special("bessel_i1e", "exp(-|x|) I1(x) of the modified Bessel function, elementwise.",
                "chlo.bessel_i1e", [](C c) {
                  // I1(x)/x is 1/2 at x = 0.
                  Val x = c.x(0);
                  Val at_zero = eq(x, scalar_like(x, 0));
                  Val ratio = c.y() / select(at_zero, scalar_like(x, 1), x);
                  Val i0e = apply1("bessel_i0e", {x});
                  Val slope = i0e - sign(x) * c.y() - ratio;
                  return c.t() * select(at_zero, scalar_like(x, 0.5), slope);
                }));
}

}  // namespace

void register_special(OpRegistry& r) {
  register_error_functions(r);
  register_gamma_functions(r);
  register_bessel(r);
}

}  // namespace weft
