// The incomplete gamma and beta functions and the densities that they integrate. They are loops:
// Gauss's formula on the density where a parameter is large or in a tail, so that the work does not
// grow with the parameters; else a power series or a continued fraction. A comparison that chooses
// between formulas has no slope, so maxima and absolute values, which would have one, are choices.
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/def/axes.h"
#include "ops/def/function.h"
#include "ops/def/regions.h"
#include "ops/elementwise/choices.h"
#include "ops/elementwise/family.h"
#include "ops/elementwise/gamma_functions.h"
#include "ops/elementwise/real_functions.h"

namespace weft {

namespace {

// Of series and fractions, which end long before.
constexpr int64_t kMaxSteps = 2000;

Val lgamma(Val x) { return apply1("lgamma", {x}); }
Val expm1(Val x) { return apply1("expm1", {x}); }
// x where it is not below v, else v.
Val not_below(Val x, double v) { return select(below(x, v), full(*x.builder, x.type(), v), x); }

constexpr double kFlops = 1000;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
// Series end where terms are that small a part of the sum: those of their slopes, of which each is
// some multiple of a term, are negligible then too.
constexpr double kNegligible = kEpsilon / 64;

// z - log(1 + z), accurate for small z: by 2 atanh(r) with r = z / (2 + z) there.
// `log_ratio` is log(1 + z), from a form of 1 + z that has no rounding error.
Val minus_log1p(Val z, Val log_ratio) {
  static constexpr double kOdd[] = {1. / 3,  1. / 5,  1. / 7,  1. / 9,  1. / 11,
                                    1. / 13, 1. / 15, 1. / 17, 1. / 19, 1. / 21};
  Val r = z / (z + 2.0);
  Val r2 = square(r);
  Val near = r * (z - 2.0 * r2 * polynomial(r2, kOdd));
  return select(below(abs(z), 0.25), near, z - log_ratio);
}
Val minus_log1p(Val z) { return minus_log1p(z, log1p(z)); }

// What Stirling's formula lacks: log gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2).
Val stirling_rest(Val x) {
  static constexpr double kSeries[] = {1. / 12,   -1. / 360,      1. / 1260, -1. / 1680,
                                       1. / 1188, -691. / 360360, 1. / 156};
  Val inverse = 1.0 / not_below(x, kLarge);
  Val series = inverse * polynomial(square(inverse), kSeries);
  constexpr double kHalfLog2Pi = 0.91893853320467274178;
  Val formula = (x - 0.5) * log(x) - x + kHalfLog2Pi;
  return select(below(x, kLarge), lgamma(x) - formula, series);
}

// log gamma(1 + x), to full relative accuracy for small x too.
Val lgamma1p(Val x) {
  constexpr double kEulerGamma = 0.57721566490153286061;
  // log(1 + x) + lgamma(1 + x) = x (1 - gamma + the sum over k > 1 of (-x)**(k-1) (1-zeta(k))/k).
  static const std::vector<double> coefficients = [] {
    std::vector<double> c{1 - kEulerGamma};
    for (int k = 2; k <= 24; ++k) {
      constexpr int kFrom = 40;  // zeta(k) - 1: terms, then the Euler-Maclaurin formula
      double rest = 0;
      for (int n = 2; n < kFrom; ++n) rest += std::pow(n, -k);
      double power = std::pow(kFrom, -k);
      double slope = k * power / kFrom;
      rest += power * (kFrom / (k - 1.0) + 0.5) + slope / 12;
      rest -= slope * (k + 1) * (k + 2) / (720.0 * kFrom * kFrom);
      rest += slope * (k + 1) * (k + 2) * (k + 3) * (k + 4) / (30240.0 * std::pow(kFrom, 4));
      c.push_back((k % 2 ? -rest : rest) / k);
    }
    return c;
  }();
  Val small = x * polynomial(x, coefficients) - log1p(x);
  return select(below(x, 0.5), small, lgamma(x + 1.0));
}

// Integrals of densities by Gauss's formula.
//
// With t = y exp(+-v), both a gamma and a beta density from y outwards become
//   exp(-(c v + o f(exp(+-v) - 1) + q f(-r (exp(+-v) - 1)))) dv,    f(z) = z - log(1 + z),
// which falls from 1 at v = 0, without cancellation in the exponent when y is on the outer side of
// the mode. It is smooth on the scale on which it falls, if the density is that of large enough
// parameters or y is at its upper side: then a few nodes between 0 and where it is less than
// exp(-kFall) give full accuracy, for parameters of any size. The upper side is `up`; a gamma
// density has no q and r.
struct Density {
  Val up, c, o, q, r;
};

constexpr double kFall = 40;

// sqrt(x**2 + y**2) for y >= 0, where the squares may overflow.
Val hypotenuse(Val x, Val y) {
  Val large = max(abs(x), y);
  return large * sqrt(1.0 + square(min(abs(x), y) / large));
}

// Where the integrand has fallen below exp(-kFall): f(exp(v) - 1) is at least v**2 / 2, and
// f(exp(-v) - 1) at least v**2 / (2 + v).
Val fall_length(Val up, Val c, Val o) {
  Val total = c + o;
  Val b = 2.0 * c - kFall;
  Val root = hypotenuse(b, sqrt(8.0 * kFall * total));
  Val positive = above(b, 0);
  Val down_length = select(positive, 4.0 * kFall / select(positive, b + root, ones_like(b)),
                           (root - b) / (2.0 * total));
  Val up_length = 2.0 * kFall / (c + hypotenuse(c, sqrt(2.0 * kFall * o)));
  Val p = o - c;  // how fast what is not an exponential grows
  up_length = min(up_length, log1p((max(p, scalar_like(p, 0)) * up_length + kFall) / o));
  return select(up, up_length, down_length);
}

struct Nodes {
  std::vector<double> x, w;  // on [0, 1]
};

// Gauss and Legendre's nodes and weights: the zeros of the Legendre polynomial, by Newton's method.
const Nodes& gauss_nodes() {
  static const Nodes nodes = [] {
    constexpr int kCount = 32;
    Nodes out;
    for (int i = 0; i < kCount; ++i) {
      double z = std::cos(std::numbers::pi * (i + 0.75) / (kCount + 0.5));
      double slope = 1;
      for (int step = 0; step < 8; ++step) {
        double p = z, before = 1;
        for (int k = 2; k <= kCount; ++k)
          before = std::exchange(p, ((2 * k - 1) * z * p - (k - 1) * before) / k);
        slope = kCount * (z * p - before) / (z * z - 1);
        z -= p / slope;
      }
      out.x.push_back((1 - z) / 2);
      out.w.push_back(1 / ((1 - z * z) * slope * slope));
    }
    return out;
  }();
  return nodes;
}

Val table(Val like, std::span<const double> values) {
  Vals entries;
  for (double v : values) entries.push_back(reshape(scalar_like(like, v), {1}));
  return concatenate(entries, 0);
}

// Where the integral ends makes no difference to it, nor to its slopes.
Val integral(Val mask, const Density& d, Val end) {
  // State: mask, length, integral, up, c, o, nodes, weights, q and r.
  Val length = apply1("stop_gradient", {end});
  const Nodes& nodes = gauss_nodes();
  Vals state{mask, length, zeros_like(length),     d.up,
             d.c,  d.o,    table(length, nodes.x), table(length, nodes.w)};
  if (d.q)
    for (Val v : {d.q, d.r}) state.push_back(v);
  auto step = [](Val count, std::span<const Val> s) {
    Val up = s[3], c = s[4], o = s[5];
    auto entry = [&](Val of) { return reshape(dynamic_slice(of, {{count}}, {1}), {}); };
    Val v = s[1] * entry(s[6]);
    Val e = expm1(select(up, v, -v));
    Val exponent = c * v + o * minus_log1p(e);
    if (s.size() > 8) exponent = exponent + s[8] * minus_log1p(not_below(-(s[9] * e), -1));
    Vals next(s.begin(), s.end());
    next[2] = s[2] + s[1] * entry(s[7]) * exp(-exponent);
    return next;
  };
  return repeat(state, std::ssize(nodes.x), step)[2];
}

// How P and Q = 1 - P are computed: by quadrature above max(a, 1), and below a if a is large; else
// by series.
struct GammaRegion {
  Val inside, up, by_quadrature;
};

GammaRegion gamma_region(Val a, Val x) {
  Val inside = logical_and(logical_and(above(a, 0), below(a, INFINITY)),
                           logical_and(above(x, 0), below(x, INFINITY)));
  Val up = gt(x, not_below(a, 1));
  Val large = ge(a, scalar_like(a, kLarge));
  return {inside, up, logical_or(up, large)};
}

// The sum over n of x**n / ((a+1) ... (a+n)), which is P(a, x) over x**a exp(-x) / gamma(a + 1).
Val power_series(const GammaRegion& region, Val a, Val x) {
  Val mask = logical_and(region.inside, logical_not(region.by_quadrature));
  // State: mask, a + n, x, the term, the sum.
  Vals state{mask, a, x, ones_like(a), ones_like(a)};
  auto step = [](Val, std::span<const Val> s) -> Vals {
    Val r = s[1] + 1.0, x = s[2];
    Val term = s[3] * x / r;
    Val sum = s[4] + term;
    return {gt(term, kNegligible * sum), r, x, term, sum};
  };
  return repeat(state, kMaxSteps, step)[4];
}

// The sum over n > 0 of a (-x)**n / (n! (a + n)): Q(a, x) = 1 - x**a / gamma(1+a) (1 + sum).
Val small_series(Val mask, Val a, Val x) {
  // State: mask, n, a, x, (-x)**n / n!, the sum.
  Vals state{mask, zeros_like(a), a, x, ones_like(a), zeros_like(a)};
  auto step = [](Val, std::span<const Val> s) -> Vals {
    Val n = s[1] + 1.0, a = s[2], x = s[3];
    Val power = -(s[4] * x) / n;
    Val term = a / (a + n) * power;
    Val sum = s[5] + term;
    return {gt(abs(term), kNegligible * abs(sum)), n, a, x, power, sum};
  };
  return repeat(state, kMaxSteps, step)[5];
}

// What is integrated from x outwards, over x dP/dx.
Val gamma_integral(const GammaRegion& region, Val a, Val x) {
  Density density{region.up, select(region.up, x - a, a - x), x, {}, {}};
  Val mask = logical_and(region.inside, region.by_quadrature);
  return integral(mask, density, fall_length(density.up, density.c, density.o));
}

// x dP/dx = x**a exp(-x) / gamma(a).
Val gamma_front(Val a, Val x) {
  Val ratio = x / a;
  Val exponent = a * minus_log1p((x - a) / a, log(ratio)) + stirling_rest(a);
  Val of_large = sqrt(a / (2 * std::numbers::pi)) * exp(-exponent);
  // In logarithms: gamma(a) itself overflows for the smallest a.
  Val of_small = exp(a * log(x) - x - lgamma(a));
  return select(below(a, kLarge), of_small, of_large);
}

Val lower_gamma(const GammaRegion& region, Val a, Val x, Val tail) {
  // x dP/dx over a: x dP/dx underflows for small a where the quotient does not.
  Val front = exp(a * log(x) - x - lgamma(a + 1.0));
  return select(region.by_quadrature, tail, front * power_series(region, a, x));
}

Val p_value(Val a, Val x) {
  GammaRegion region = gamma_region(a, x);
  Val tail = gamma_front(a, x) * gamma_integral(region, a, x);
  return select(region.up, 1.0 - tail, lower_gamma(region, a, x, tail));
}

Val q_value(Val a, Val x) {
  GammaRegion region = gamma_region(a, x);
  Val tail = gamma_front(a, x) * gamma_integral(region, a, x);
  Val value = select(region.up, tail, 1.0 - lower_gamma(region, a, x, tail));
  Val use_small = logical_and(le(x, scalar_like(x, 1)), below(a, kLarge));
  Val small = small_series(logical_and(region.inside, use_small), a, x);
  Val of_small_x = -expm1(a * log(x) - lgamma1p(a) + log1p(small));
  return select(use_small, of_small_x, value);
}

// log(x) - digamma(a), of large a without cancellation.
Val log_front_slope(Val a, Val x) {
  static constexpr double kSeries[] = {1. / 12,  -1. / 120,     1. / 252, -1. / 240,
                                       1. / 132, -691. / 32760, 1. / 12};
  Val inverse = 1.0 / not_below(a, kLarge);
  Val tail = square(inverse) * polynomial(square(inverse), kSeries) + 0.5 * inverse;
  Val z = (x - a) / a;
  Val log_ratio = select(below(abs(z), 0.5), log1p(z), log(x) - log(a));
  return select(below(a, kLarge), log(x) - digamma(a), log_ratio + tail);
}

// dP/da over x dP/dx.
Val p_slope_over_front(const RuleCtx& c, Val a, Val x) {
  Val args[] = {a, x};
  auto rest = [](std::span<const Val> v) {
    GammaRegion region = gamma_region(v[0], v[1]);
    Val tail = gamma_integral(region, v[0], v[1]);
    return select(region.by_quadrature, select(region.up, -tail, tail),
                  power_series(region, v[0], v[1]));
  };
  ValueAndSlope r = value_and_slope(c, args, 0, rest);
  Val by_quadrature = r.value * log_front_slope(a, x) + r.slope;
  Val by_series = (r.value * (log(x) - digamma(a + 1.0)) + r.slope) / a;
  return select(gamma_region(a, x).by_quadrature, by_quadrature, by_series);
}

Val p_slope(const RuleCtx& c, Val a, Val x) {
  Val front = gamma_front(a, x);
  return select(above(front, 0), front * p_slope_over_front(c, a, x), zeros_like(front));
}

// With what a value is where P is 0 and 1 by one of its arguments.
Val at_edges(Val a, Val x, Val value, double at_zero, double at_one) {
  auto number = [&](double v) { return scalar_like(value, v); };
  Val zero = number(0), infinite = number(INFINITY);
  Val none = logical_or(eq(x, zero), eq(a, infinite));
  Val all = logical_or(eq(x, infinite), eq(a, zero));
  value = select(none, number(at_zero), select(all, number(at_one), value));
  Val outside = logical_or(lt(x, zero), lt(a, zero));
  Val unknown = logical_or(ne(x, x), ne(a, a));
  Val undefined = logical_or(logical_or(outside, unknown), logical_and(none, all));
  return select(undefined, number(NAN), value);
}

// The density of the gamma distribution: dP/dx.
Val gamma_density(Val a, Val x) {
  Val zero = scalar_like(x, 0), one = scalar_like(x, 1);
  Val at_zero = eq(x, zero);
  // 0**0 is 1.
  Val power = select(logical_and(at_zero, eq(a, one)), zeros_like(a), (a - 1.0) * log(x));
  Val of_small = exp(power - x - lgamma(a));
  Val of_large = select(at_zero, zeros_like(a), gamma_front(a, x) / select(at_zero, one, x));
  Val density = select(below(a, kLarge), of_small, of_large);
  density = select(eq(x, scalar_like(x, INFINITY)), zeros_like(a), density);
  return select(logical_or(lt(x, zero), le(a, zero)), scalar_like(x, NAN), density);
}

// The contribution of a tangent by a function, or its negative.
JvpArgRule minus(JvpArgRule rule) {
  return [rule = std::move(rule)](const JvpArgCtx& c) { return -rule(c); };
}

void register_gamma(OpRegistry& r) {
  auto add = [&](const char* name, const char* doc, double flops, std::vector<JvpArgRule> jvp,
                 Val (*value)(const RuleCtx&, Val a, Val x)) {
    auto of_pair = [value](const RuleCtx& c, std::span<const Val> v) {
      return value(c, v[0], v[1]);
    };
    r.add(wide_function({name, doc, 2, flops, of_pair, std::move(jvp)}));
  };
  JvpArgRule by_a = times_slope("igamma_grad_a"), by_x = times_slope("igamma_grad_x");
  add("igamma", "The regularised lower incomplete gamma function P(a, x), elementwise.", kFlops,
      {by_a, by_x},
      [](const RuleCtx&, Val a, Val x) { return at_edges(a, x, p_value(a, x), 0, 1); });
  add("igammac", "The regularised upper incomplete gamma function Q(a, x), elementwise.", kFlops,
      {minus(by_a), minus(by_x)},
      [](const RuleCtx&, Val a, Val x) { return at_edges(a, x, q_value(a, x), 1, 0); });
  add("igamma_grad_a", "The derivative of igamma(a, x) with respect to a, elementwise.", kFlops,
      {nullptr,
       [](const JvpArgCtx& c) {
         Val xs[] = {c.x(0), c.x(1)};
         return c.t() * derivative("igamma_grad_x", xs, {0});
       }},
      [](const RuleCtx& c, Val a, Val x) { return at_edges(a, x, p_slope(c, a, x), 0, NAN); });
  add("igamma_grad_x", "The derivative of igamma(a, x) with respect to x, elementwise.", 50, {},
      [](const RuleCtx&, Val a, Val x) { return gamma_density(a, x); });
  add("random_gamma_grad",
      "How a sample x of the gamma distribution moves with its parameter a, elementwise.", kFlops,
      {}, [](const RuleCtx& c, Val a, Val x) {
        return at_edges(a, x, -x * p_slope_over_front(c, a, x), 0, NAN);
      });
}

// log beta(a, b).
Val log_beta(Val a, Val b) {
  Val is_small = lt(a, b);
  Val small = select(is_small, a, b), large = select(is_small, b, a), sum = a + b;
  // log gamma(large) - log gamma(sum), by Stirling's formula.
  Val ratio = small / large;
  Val difference = large * minus_log1p(ratio) + 0.5 * log1p(ratio) - small * log(sum) +
                   stirling_rest(large) - stirling_rest(sum);
  return lgamma(small) + select(below(large, kLarge), lgamma(large) - lgamma(sum), difference);
}

// x (1-x) dI/dx = x**a (1-x)**b / beta(a, b), for y = 1 - x.
Val beta_front(Val a, Val b, Val x, Val y) {
  Val log_x = select(lt(x, y), log(x), log1p(-y));
  Val log_y = select(lt(x, y), log1p(-x), log(y));
  Val of_small = exp(a * log_x + b * log_y - log_beta(a, b));
  Val sum = a + b;
  Val off = select(lt(x, y), a - sum * x, sum * y - b);  // of the mean, by rounding errors of one x
  Val exponent = a * minus_log1p(-(off / a), log(x * (sum / a))) +
                 b * minus_log1p(off / b, log(y * (sum / b))) + stirling_rest(a) +
                 stirling_rest(b) - stirling_rest(sum);
  Val of_large = sqrt(a / (2 * std::numbers::pi) * (b / sum)) * exp(-exponent);
  return select(below(min(a, b), kLarge), of_small, of_large);
}

// How I_x(a, b) is computed: first mirrored, so that x <= 1/2, by I_x(a, b) = 1 - I_1-x(b, a).
// Then by quadrature from x away from the mean, which gives 1 - I_x(a, b) at the upper side; or by
// a continued fraction, mirrored where x is above about the mean.
struct BetaRegion {
  Val mirrored, a, b, x, y;  // y = 1 - x
  Val up, by_quadrature, o;  // o: see Density
  Val fraction_mirrored, inside;
};

BetaRegion beta_region(Val a, Val b, Val x) {
  BetaRegion out;
  Val finite = logical_and(below(a, INFINITY), below(b, INFINITY));
  Val positive = logical_and(above(a, 0), above(b, 0));
  Val within = logical_and(above(x, 0), below(x, 1));
  out.inside = logical_and(logical_and(positive, finite), within);
  out.mirrored = above(x, 0.5);
  out.a = select(out.mirrored, b, a);
  out.b = select(out.mirrored, a, b);
  out.x = select(out.mirrored, 1.0 - x, x);
  out.y = select(out.mirrored, x, 1.0 - x);
  out.o = (out.b - 1.0) * (out.x / out.y);
  out.up = gt(out.b * out.x, out.a * out.y);
  // The density ends at 1 as (1-t)**(b-1), which has to be smooth and small there.
  Val smooth_up = logical_and(ge(out.o, scalar_like(x, 1)), ge(out.b, scalar_like(x, 40)));
  Val smooth_down = ge(out.a, scalar_like(x, kLarge));
  out.by_quadrature = select(out.up, smooth_up, smooth_down);
  out.fraction_mirrored = gt(out.x, (out.a + 1.0) / (out.a + out.b + 2.0));
  // For small b the complement would lose the digits of a small result.
  Val direct = logical_and(below(b, 0.3), below(x, 0.999));
  out.fraction_mirrored = select(direct, out.mirrored, out.fraction_mirrored);
  return out;
}

Val away_from_zero(Val x) {
  constexpr double kTiny = 1e-30;
  return select(below(abs(x), kTiny), scalar_like(x, kTiny), x);
}

// I_x(a, b) = front / a * h with a continued fraction h, good for x below about the mean. Steed's
// method: each partial numerator n multiplies what is added to h by d - 1 = -n d d', d' the last d.
// For b near an integer some n vanishes and the sum ends, but not its slopes: `bound`, what would
// be added with n away from zero, decides.
Val fraction(const BetaRegion& region) {
  Val swap = region.fraction_mirrored;
  Val a = select(swap, region.b, region.a), b = select(swap, region.a, region.b);
  Val x = select(swap, region.y, region.x);
  Val d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  Val mask = logical_and(region.inside, logical_not(region.by_quadrature));
  // State: mask, m, d, what was added last, h, the bound, a, b, x.
  Vals state{mask, zeros_like(a), d, d - 1.0, d, abs(d - 1.0), a, b, x};
  auto step = [](Val, std::span<const Val> s) -> Vals {
    Val m = s[1] + 1.0, before = s[2], a = s[6], b = s[7], x = s[8];
    Val a2m = a + 2.0 * m;
    Val scale = m * x / ((a2m - 1.0) * a2m);
    Val even = 1.0 / away_from_zero(1.0 + scale * (b - m) * before);
    Val odd = 1.0 / away_from_zero(1.0 - (a + m) * (a + b + m) * x / (a2m * (a2m + 1.0)) * even);
    Val added = (even - 1.0) * s[3];
    Val added_next = (odd - 1.0) * added;
    Val h = s[4] + added + added_next;
    Val bound = s[5] * abs(scale * not_below(abs(b - m), 1) * before * even * (odd - 1.0));
    return {gt(bound, kNegligible * abs(h)), m, odd, added_next, h, bound, a, b, x};
  };
  return repeat(state, kMaxSteps, step)[4];
}

Val beta_integral(const BetaRegion& region) {
  // On the upper side c may be a little below 0, as far as 1 - o.
  Val c = select(region.up, region.o - region.a, region.a - region.o);
  Val length = fall_length(region.up, c, region.o);
  length = select(region.up, min(length, -log(region.x)), length);
  Density density{region.up, c, region.o, region.b - 1.0, region.x / region.y};
  return integral(logical_and(region.inside, region.by_quadrature), density, length);
}

Val beta_value(Val a, Val b, Val x) {
  auto number = [&](double v) { return scalar_like(x, v); };
  BetaRegion region = beta_region(a, b, x);
  Val front = beta_front(region.a, region.b, region.x, region.y);
  Val by_fraction = front * fraction(region) / select(region.fraction_mirrored, region.b, region.a);
  Val tail = select(region.by_quadrature, front * beta_integral(region) / region.y, by_fraction);
  Val is_upper = select(region.by_quadrature, region.up, region.fraction_mirrored);
  Val value = select(ne(is_upper, region.mirrored), 1.0 - tail, tail);
  Val zero = number(0), one = number(1), infinite = number(INFINITY);
  auto any = [](Val p, Val q, Val r) { return logical_or(logical_or(p, q), r); };
  // The whole probability stands at 1, or at 0. It is 0 up to 0 and 1 up to 1 all the same.
  Val none = logical_or(eq(b, zero), eq(a, infinite));
  Val all = logical_or(eq(a, zero), eq(b, infinite));
  value = select(none, zero, select(all, one, value));
  value = select(eq(x, zero), zero, select(eq(x, one), one, value));
  Val outside = any(any(lt(a, zero), lt(b, zero), lt(x, zero)), gt(x, one), logical_and(none, all));
  Val unknown = any(ne(a, a), ne(b, b), ne(x, x));
  return select(logical_or(outside, unknown), number(NAN), value);
}

// dI/dx.
Val beta_density(Val a, Val b, Val x) {
  Val one = scalar_like(x, 1);
  Val y = 1.0 - x;
  auto power = [&](Val exponent, Val base, Val log) {  // 0**0 is 1
    Val is_one = logical_and(eq(exponent, one), eq(base, zeros_like(base)));
    return select(is_one, zeros_like(log), (exponent - 1.0) * log);
  };
  Val of_small = exp(power(a, x, log(x)) + power(b, y, log1p(-x)) - log_beta(a, b));
  Val within = logical_and(above(x, 0), above(y, 0));
  Val of_large = select(within, beta_front(a, b, x, y) / select(within, x * y, one), zeros_like(x));
  Val density = select(below(min(a, b), kLarge), of_small, of_large);
  Val outside = logical_or(below(x, 0), below(y, 0));
  Val defined = logical_and(above(a, 0), above(b, 0));
  return select(logical_or(outside, logical_not(defined)), scalar_like(x, NAN), density);
}

void register_beta(OpRegistry& r) {
  constexpr const char* kDensity = "regularized_incomplete_beta_grad_x";
  auto add = [&](const char* name, const char* doc, double flops, std::vector<JvpArgRule> jvp,
                 Val (*value)(Val a, Val b, Val x)) {
    auto of_three = [value](const RuleCtx&, std::span<const Val> v) {
      return value(v[0], v[1], v[2]);
    };
    r.add(wide_function({name, doc, 3, flops, of_three, std::move(jvp)}));
  };
  add("regularized_incomplete_beta",
      "The regularised incomplete beta function I_x(a, b), elementwise.", kFlops,
      {nullptr, nullptr, times_slope(kDensity)}, beta_value);
  add(kDensity, "The derivative of the regularised incomplete beta function by x, elementwise.",
      100, {}, beta_density);
}

}  // namespace

void register_incomplete(OpRegistry& r) {
  r.add(derivative_op());
  register_gamma(r);
  register_beta(r);
}

}  // namespace weft
