// The gamma function's logarithm and the derivatives of that, and the Hurwitz zeta function. They
// are computed in float64 for narrower floats too, whose sums of large terms would lose most digits
// near roots.
#include "ops/elementwise/gamma_functions.h"

#include <cmath>
#include <numbers>

#include "ops/def/function.h"
#include "ops/elementwise/choices.h"
#include "ops/elementwise/real_functions.h"

namespace weft {

namespace {

constexpr double kPi = std::numbers::pi;

Val equals(Val x, double v) { return eq(x, scalar_like(x, v)); }

// What tools/fits prints: log gamma(2 + w) / w in w - 1/4, for w from -1/2 to 1.
constexpr double kLgamma[] = {
    4.9948685956958638e-1,  2.9223842821659276e-1, -5.4295403852149914e-2, 1.4688323717332732e-2,
    -4.6626266712180069e-3, 1.6148854198894494e-3, -5.9016567417540373e-4, 2.2352009396955083e-4,
    -8.680583572785618e-5,  3.4336095672551067e-5, -1.3771742893826019e-5, 5.5842830911699757e-6,
    -2.2838238745410546e-6, 9.3880697105307445e-7, -3.8891529888914411e-7, 1.6611825991016615e-7,
    -6.948701300430819e-8,  2.3238382773919784e-8, -9.7585396362073903e-9, 8.7992862075292914e-9,
    -3.7338224605659091e-9};
// digamma(x) / (x - its root) in x - 3/2, for x from 1 to 2.
constexpr double kDigamma[] = {
    9.5105587603183289e-1, -4.236274212814605e-1,  2.4054248424077422e-1, -1.4840492305390886e-1,
    9.4988724454941213e-2, -6.1922133273064532e-2, 4.0760833812420736e-2, -2.6975796756138249e-2,
    1.7907252439451199e-2, -1.1908218001568645e-2, 7.926944646403796e-3,  -5.2799648732574042e-3,
    3.519006401502276e-3,  -2.345267632540769e-3,  1.5566317474486839e-3, -1.0376374098418605e-3,
    7.2332662792875542e-4, -4.8219905305667889e-4, 2.2723316609873759e-4, -1.5148586836773366e-4,
    2.5968482126430747e-4, -1.7312261802727393e-4};

// Logarithms, and functions of pi x for x from -1/2 to 1/2; of results narrower than float64 those
// that are quick.
Val log_of(bool is_wide, Val x) { return is_wide ? log(x) : real_log(x); }
Val sine(bool is_wide, Val x) { return is_wide ? sin(kPi * x) : sin_pi(x); }
Val tangent(bool is_wide, Val x) {
  if (is_wide) return tan(kPi * x);
  Val cosine = sin_pi(0.5 - abs(x));
  return sin_pi(x) / cosine;
}

// x less the nearest whole number, which is exact.
Val off_whole(Val x) { return x - apply1("round", {x}, {{"rounding_method", int64_t{1}}}); }

// A number moved down to at most `top` in steps of 1, from below kLarge; what it had before each
// step less 1 is multiplied up, and the sum of the inverses of those is sum / product.
struct Moved {
  Val x, product, sum;
};
Moved moved_down(Val x, double top) {
  Val product = ones_like(x), sum = zeros_like(x);
  for (double from = top; from < kLarge; ++from) {
    Val low = le(x, scalar_like(x, top));
    Val less = x - 1.0;
    sum = select(low, sum, sum * less + product);
    product = select(low, product, product * less);
    x = select(low, x, less);
  }
  return {x, product, sum};
}

// DLMF 5.11.1, for x >= kLarge.
Val lgamma_of_large(Val x, Val log_x) {
  static constexpr double kSeries[] = {1. / 12,   -1. / 360,      1. / 1260, -1. / 1680,
                                       1. / 1188, -691. / 360360, 1. / 156};
  constexpr double kHalfLog2Pi = 0.91893853320467274178;
  Val inverse = 1.0 / x;
  Val rest = inverse * polynomial(square(inverse), kSeries) + (kHalfLog2Pi - 0.5);
  return (x - 0.5) * (log_x - 1.0) + rest;
}

// For x >= 0, by the polynomial after steps up or down.
Val lgamma_of_positive(bool is_wide, Val x) {
  Val near_zero = below(x, 0.5), near_one = below(x, 1.5), is_near = below(x, kLarge);
  Moved moved = moved_down(select(is_near, x, scalar_like(x, 2)), 3);
  Val w = select(near_zero, x, select(near_one, x - 1.0, moved.x - 2.0));
  Val product = select(near_zero, x * (1.0 + x), select(near_one, x, moved.product));
  // Each element needs the logarithm of one form.
  Val log_one = log_of(is_wide, select(is_near, product, x));
  Val near = w * polynomial(w - 0.25, kLgamma);
  near = near + select(near_one, -log_one, log_one);
  return select(is_near, near, lgamma_of_large(x, log_one));
}

// Negative numbers by reflection, DLMF 5.5.3; infinite at poles.
Val lgamma_value(bool is_wide, Val x) {
  Val negative = below(x, 0);
  Val value = lgamma_of_positive(is_wide, select(negative, 1.0 - x, x));
  Val off = where(equals(x, -INFINITY), 0, off_whole(x));
  Val reflected = log_of(is_wide, kPi / abs(sine(is_wide, off))) - value;
  reflected = where(equals(off, 0), INFINITY, reflected);
  return select(negative, reflected, value);
}

Val digamma_value(bool is_wide, Val x) {
  constexpr double kRoot = 1.4616321449683622, kRest = 9.549995429965697e-17;
  constexpr double kSlope = 0.9676722454476212;  // at the root
  static constexpr double kSeries[] = {1. / 12,  -1. / 120,     1. / 252, -1. / 240,
                                       1. / 132, -691. / 32760, 1. / 12};
  Val negative = below(x, 0);
  Val z = select(negative, 1.0 - x, x);
  Val is_small = below(z, 1), is_near = below(z, kLarge);
  // From below 1 a step up.
  Moved moved = moved_down(select(is_near, z, scalar_like(z, 2)), 2);
  Val at = select(is_small, z + 1.0, moved.x);
  Val near = (at - kRoot) * polynomial(at - 1.5, kDigamma) - kRest * kSlope;
  Val top = where(is_small, -1, moved.sum), bottom = select(is_small, z, moved.product);
  near = near + top / bottom;
  // DLMF 5.11.2
  Val inverse = 1.0 / z;
  Val far = log_of(is_wide, z) - inverse * (0.5 + inverse * polynomial(square(inverse), kSeries));
  Val value = select(is_near, near, far);
  // DLMF 5.5.4. At the poles but 0 there is no limit of either sign.
  Val off = off_whole(x);
  Val reflected = value - kPi / tangent(is_wide, off);
  return select(negative, where(equals(off, 0), NAN, reflected), value);
}

// The sum of (q + k)**-s over k >= 0 for s > 1 and q >= 0, by the formula of Euler and Maclaurin
// (DLMF 25.11.28) from the tenth term on, or from the sixth where the result is narrower than
// float64.
Val zeta_of_positive(bool is_wide, Val s, Val q) {
  int num_terms = is_wide ? 10 : 6;
  // B(2j) / (2j)!
  static constexpr double kBernoulli[] = {1. / 12,          -1. / 720,
                                          1. / 30240,       -1. / 1209600,
                                          1. / 47900160,    -691. / 1307674368000,
                                          1. / 74724249600, -3617. / 10670622842880000};
  Val sum = pow(q, -s);
  for (int k = 1; k < num_terms; ++k) sum = sum + pow(q + k, -s);
  Val end = q + num_terms, power = pow(end, 1.0 - s), inverse = 1.0 / end;
  // Where s is large the power is 0, which factors of s must not make NaN.
  Val bounded = where(logical_not(below(s, 500)), 500, s);
  Val factor = bounded * inverse, tail = zeros_like(s);
  for (size_t j = 0; j < std::size(kBernoulli); ++j) {
    tail = tail + kBernoulli[j] * factor;
    double step = 2 * static_cast<double>(j) + 1;
    factor = factor * ((bounded + step) * inverse) * ((bounded + (step + 1)) * inverse);
  }
  return sum + power / (s - 1.0) + (power * inverse) * (0.5 + tail);
}

// For negative q the powers have a value where s is a whole number. With r = q - floor(q) the sum
// is
//   zeta(s, r) + (-1)**s (zeta(s, 1 - r) - zeta(s, 1 - q)),
// since the sum over all whole k of (q + k)**-s is that for r.
Val zeta_value(bool is_wide, Val s, Val q) {
  Val negative = below(q, 0), from = floor(q);
  Val fraction = q - from;
  Val value = zeta_of_positive(is_wide, s, select(negative, fraction, q));
  // A loop of one step or of none, since few arguments are negative.
  Val up = select(negative, 1.0 - fraction, ones_like(q));
  Val start[] = {negative, zeros_like(s), s, up, select(negative, 1.0 - q, ones_like(q))};
  auto subtract = [is_wide](Val, std::span<const Val> v) -> Vals {
    Val gap = zeta_of_positive(is_wide, v[2], v[3]) - zeta_of_positive(is_wide, v[2], v[4]);
    return {v[0], gap, v[2], v[3], v[4]};
  };
  Val gap = repeat(start, 1, subtract)[1];
  Val half = 0.5 * s;
  Val both = value + select(eq(half, floor(half)), gap, -gap);
  both = where(ne(s, floor(s)), NAN, where(equals(fraction, 0), INFINITY, both));
  value = select(negative, both, value);
  Val undefined = logical_or(below(s, 1), ne(q, q));
  return where(undefined, NAN, where(equals(s, 1), INFINITY, value));
}

Val polygamma_value(bool is_wide, Val m, Val x) {
  Val order = where(below(m, 1), 1, m);
  Val size = exp(lgamma_of_positive(is_wide, order + 1.0)) * zeta_value(is_wide, order + 1.0, x);
  Val half = 0.5 * order;
  Val value = select(eq(half, floor(half)), -size, size);
  value = select(equals(m, 0), digamma_value(is_wide, x), value);
  return where(logical_or(below(m, 0), ne(m, floor(m))), NAN, value);
}

// The result of a formula in float64 of all operands.
template <class Formula>
Vals in_f64(RuleCtx& c, Formula formula) {
  TypeRef type = c.out_types[0];
  auto wide = [&](size_t i) { return convert(broadcast_to(c.x(i), type->shape()), DType::kF64); };
  return {convert(formula(wide), type->dtype())};
}

}  // namespace

Vals decompose_lgamma(RuleCtx& c) {
  bool is_wide = c.out_types[0]->dtype() == DType::kF64;
  return in_f64(c, [is_wide](auto x) { return lgamma_value(is_wide, x(0)); });
}

Vals decompose_digamma(RuleCtx& c) {
  bool is_wide = c.out_types[0]->dtype() == DType::kF64;
  return in_f64(c, [is_wide](auto x) { return digamma_value(is_wide, x(0)); });
}

Vals decompose_zeta(RuleCtx& c) {
  bool is_wide = c.out_types[0]->dtype() == DType::kF64;
  return in_f64(c, [is_wide](auto x) { return zeta_value(is_wide, x(0), x(1)); });
}

Vals decompose_polygamma(RuleCtx& c) {
  bool is_wide = c.out_types[0]->dtype() == DType::kF64;
  return in_f64(c, [is_wide](auto x) { return polygamma_value(is_wide, x(0), x(1)); });
}

}  // namespace weft
