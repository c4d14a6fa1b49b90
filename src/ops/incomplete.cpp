// The incomplete gamma and beta functions and the densities that they integrate. They are emitted
// as loops: Gauss's formula on the density where a parameter is large or in a tail, so that the
// work does not grow with the parameters; else a power series or a continued fraction. All of it is
// in f64: in f32 the logarithms of densities would lose most of their digits.
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/axes.h"
#include "ops/families.h"
#include "ops/hlo_text.h"
#include "ops/presets.h"

namespace weft {

namespace {

// Of series and fractions, which end long before.
constexpr int64_t kMaxSteps = 2000;

// Loops in the emitted text, their parts written as graphs.

struct Ssa {
  std::string name;
  TypeRef type;
};
using SsaList = std::vector<Ssa>;
using Function = std::function<Vals(std::span<const Val>)>;

GraphRef make_graph(std::span<const TypeRef> types, const Function& f) {
  GraphBuilder b;
  Vals args;
  for (TypeRef t : types) args.push_back({&b, b.input(t)});
  Values outputs;
  for (const Val& v : f(args)) outputs.push_back(v.value);
  return b.finish(outputs);
}

TypeRefs types_of(const SsaList& xs) {
  TypeRefs types;
  for (const Ssa& x : xs) types.push_back(x.type);
  return types;
}

std::vector<std::string> names_of(const SsaList& xs) {
  std::vector<std::string> names;
  for (const Ssa& x : xs) names.push_back(x.name);
  return names;
}

SsaList inline_function(EmitCtx& c, const SsaList& xs, const Function& f) {
  GraphRef graph = make_graph(types_of(xs), f);
  std::vector<std::string> names = c.inline_graph(*graph, names_of(xs));
  std::vector<TypeRef> types = graph->output_types();
  SsaList results;
  for (size_t i = 0; i < names.size(); ++i) results.push_back({names[i], types[i]});
  return results;
}

// Repeats state = step(count, state) while any element of the mask state[0] is set, at most
// max_steps times. An element keeps its values once its mask is clear.
using Step = std::function<Vals(Val count, std::span<const Val> state)>;
SsaList repeat(EmitCtx& c, const SsaList& state, int64_t max_steps, const Step& step) {
  SsaList carry = {
      {c.constant(make_literal(DType::kI32, int64_t{0}), {}), scalar_type(DType::kI32)}};
  carry.insert(carry.end(), state.begin(), state.end());
  TypeRefs types = types_of(carry);
  GraphRef condition = make_graph(types, [&](std::span<const Val> xs) -> Vals {
    Val any = reduce_or(xs[1], count_up(xs[1].rank()));
    return {logical_and(lt(xs[0], scalar_like(xs[0], static_cast<double>(max_steps))), any)};
  });
  GraphRef body = make_graph(types, [&](std::span<const Val> xs) {
    std::span<const Val> old = xs.subspan(1);
    Vals next = step(xs[0], old);
    Vals out{xs[0] + 1.0, logical_and(old[0], next[0])};
    for (size_t i = 1; i < old.size(); ++i) {
      bool changed = next[i].value != old[i].value;
      out.push_back(changed ? select(old[0], next[i], old[i]) : old[i]);
    }
    return out;
  });
  Text text;
  text << "\"stablehlo.while\"(";
  for (size_t i = 0; i < carry.size(); ++i) text << (i ? ", " : "") << carry[i].name;
  text << ") (" << c.region(*condition, "stablehlo.return") << ", "
       << c.region(*body, "stablehlo.return") << ") : " << signature(types, types);
  std::string name = c.line(text.view(), static_cast<int>(carry.size()));
  SsaList results;
  for (size_t i = 0; i < state.size(); ++i)
    results.push_back({cat(name, "#", i + 1), state[i].type});
  return results;
}

Val above(Val x, double v) { return gt(x, scalar_like(x, v)); }
Val below(Val x, double v) { return lt(x, scalar_like(x, v)); }
Val lgamma(Val x) { return apply1("lgamma", {x}); }
Val expm1(Val x) { return apply1("expm1", {x}); }

constexpr double kFlops = 1000;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
// From here on gamma functions are taken by their asymptotic series.
constexpr double kLarge = 10;

// The sum of c[i] x**i.
Val polynomial(Val x, std::span<const double> c) {
  Val sum = scalar_like(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

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
  Val inverse = 1.0 / max(x, scalar_like(x, kLarge));
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

// State: mask, length, integral, the integral of v times the integrand, up, c, o, nodes, weights, q
// and r.
constexpr size_t kIntegral = 2;
constexpr size_t kMoment = 3;

Vals integral_start(Val mask, const Density& d, Val length) {
  Val zero = zeros_like(length);
  const Nodes& nodes = gauss_nodes();
  Vals state{mask, length, zero, zero, d.up, d.c, d.o, table(zero, nodes.x), table(zero, nodes.w)};
  if (d.q)
    for (Val v : {d.q, d.r}) state.push_back(v);
  return state;
}

Vals integral_step(Val count, std::span<const Val> s) {
  Val length = s[1], up = s[4], c = s[5], o = s[6];
  auto entry = [&](Val of) { return reshape(dynamic_slice(of, {{count}}, {1}), {}); };
  Val v = length * entry(s[7]);
  Val e = expm1(select(up, v, -v));
  Val exponent = c * v + o * minus_log1p(e);
  if (s.size() > 9) {
    Val q = s[9], r = s[10];
    exponent = exponent + q * minus_log1p(max(-(r * e), scalar_like(e, -1)));
  }
  Val share = length * entry(s[8]) * exp(-exponent);
  Vals next(s.begin(), s.end());
  next[kIntegral] = s[kIntegral] + share;
  next[kMoment] = s[kMoment] + share * v;
  return next;
}

// P(a, x) = front / a * sum over n of x**n / ((a+1) ... (a+n)), with its derivative by a where
// `slope` is set. State: mask, a + n, x, the term, the sum, and their derivatives.
Vals series_start(Val mask, Val a, Val x, bool slope) {
  Val one = ones_like(a), zero = zeros_like(a);
  Vals state{mask, a, x, one, one};
  if (slope)
    for (Val v : {zero, zero}) state.push_back(v);
  return state;
}

Vals series_step(std::span<const Val> s, bool slope) {
  Val r = s[1] + 1.0, x = s[2];
  Val term = s[3] * x / r;
  Val sum = s[4] + term;
  Val moves = gt(term, kEpsilon * sum);
  Vals next{moves, r, x, term, sum};
  if (slope) {
    Val change = s[5] * x / r - term / r;
    Val total = s[6] + change;
    next[0] = logical_or(moves, gt(abs(change), kEpsilon * abs(total)));
    for (Val v : {change, total}) next.push_back(v);
  }
  return next;
}

// The sum over n > 0 of a (-x)**n / (n! (a + n)): Q(a, x) = 1 - x**a / gamma(1+a) (1 + sum), for x
// up to 1. State: mask, n, a, x, (-x)**n / n!, the sum.
Vals small_start(Val mask, Val a, Val x) {
  return {mask, zeros_like(a), a, x, ones_like(a), zeros_like(a)};
}

Vals small_step(std::span<const Val> s) {
  Val n = s[1] + 1.0, a = s[2], x = s[3];
  Val power = -(s[4] * x) / n;
  Val term = a / (a + n) * power;
  Val sum = s[5] + term;
  return {gt(abs(term), kEpsilon * abs(sum)), n, a, x, power, sum};
}

enum class Gamma {
  kLower,       // P
  kUpper,       // Q = 1 - P
  kSlope,       // dP/da
  kSampleSlope  // -(dP/da) / (dP/dx): how a sample x moves with a
};

bool has_slope(Gamma kind) { return kind == Gamma::kSlope || kind == Gamma::kSampleSlope; }

Val at_edges(Gamma kind, Val a, Val x, Val value) {
  auto number = [&](double v) { return scalar_like(value, v); };
  Val zero = number(0), infinite = number(INFINITY), nan = number(NAN);
  Val none = logical_or(eq(x, zero), eq(a, infinite));  // P = 0
  Val all = logical_or(eq(x, infinite), eq(a, zero));   // P = 1
  bool slope = has_slope(kind);
  value = select(none, number(kind == Gamma::kUpper ? 1 : 0), value);
  value = select(all, slope ? nan : number(kind == Gamma::kLower ? 1 : 0), value);
  Val outside = logical_or(lt(x, zero), lt(a, zero));
  Val unknown = logical_or(ne(x, x), ne(a, a));
  Val undefined = logical_or(logical_or(outside, unknown), logical_and(none, all));
  return select(undefined, nan, value);
}

// How P and Q are computed: by quadrature above max(a, 1), and below a if a is large; else by
// series.
struct GammaRegion {
  Val inside, up, by_quadrature;
};

GammaRegion gamma_region(Val a, Val x) {
  Val inside = logical_and(logical_and(above(a, 0), below(a, INFINITY)),
                           logical_and(above(x, 0), below(x, INFINITY)));
  Val up = gt(x, max(a, scalar_like(a, 1)));
  Val large = ge(a, scalar_like(a, kLarge));
  return {inside, up, logical_or(up, large)};
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

Val gamma_value(Gamma kind, Val a, Val x, Val series, Val slope, Val integral, Val moment,
                Val small) {
  GammaRegion region = gamma_region(a, x);
  Val front = gamma_front(a, x);
  if (has_slope(kind)) {
    // d/da of front times the series or the integral, over front, the sign that of dP/da.
    Val by_series = (slope + series * (log(x) - digamma(a + 1.0))) / a;
    // log(x) - digamma(a), of large a without cancellation.
    Val inverse = 1.0 / max(a, scalar_like(a, kLarge));
    static constexpr double kSeries[] = {1. / 12,  -1. / 120,     1. / 252, -1. / 240,
                                         1. / 132, -691. / 32760, 1. / 12};
    Val tail = square(inverse) * polynomial(square(inverse), kSeries) + 0.5 * inverse;
    Val z = (x - a) / a;
    Val log_ratio = select(below(abs(z), 0.5), log1p(z), log(x) - log(a));
    Val rate = select(below(a, kLarge), log(x) - digamma(a), log_ratio + tail);
    Val by_quadrature = select(region.up, -(integral * rate + moment), integral * rate - moment);
    Val relative = select(region.by_quadrature, by_quadrature, by_series);
    if (kind == Gamma::kSampleSlope) return -x * relative;
    return select(eq(front, scalar_like(front, 0)), zeros_like(front), front * relative);
  }
  bool upper = kind == Gamma::kUpper;
  Val tail = front * integral;
  // front / a, where front underflows for small a only when the quotient does not.
  Val lower_front = exp(a * log(x) - x - lgamma(a + 1.0));
  Val lower = select(region.by_quadrature, tail, lower_front * series);
  Val value = upper ? select(region.up, tail, 1.0 - lower) : select(region.up, 1.0 - tail, lower);
  if (!upper) return value;
  Val of_small_x = -expm1(a * log(x) - lgamma1p(a) + log1p(small));
  Val use_small = logical_and(le(x, scalar_like(x, 1)), below(a, kLarge));
  return select(use_small, of_small_x, value);
}

// Operands of the result's shape, in f64.
SsaList wide_operands(EmitCtx& c) {
  SsaList operands;
  for (size_t i = 0; i < c.size(); ++i)
    operands.push_back({c.in_as(i, c.out_type()->shape()), c.out_type()});
  return inline_function(c, operands, [](std::span<const Val> xs) {
    Vals wide;
    for (const Val& x : xs) wide.push_back(convert(x, DType::kF64));
    return wide;
  });
}

void emit_gamma(EmitCtx& c, Gamma kind) {
  bool slope = has_slope(kind);
  DType dtype = c.out_type()->dtype();
  SsaList operands = wide_operands(c);
  auto start = [&](auto f) {
    return inline_function(c, operands, [&](std::span<const Val> v) { return f(v[0], v[1]); });
  };
  SsaList xs = operands;
  // The sum and its slope, the integral and its moment, the sum for small x.
  auto take = [&](const SsaList& state, size_t from, size_t count) {
    xs.insert(xs.end(), state.begin() + static_cast<std::ptrdiff_t>(from),
              state.begin() + static_cast<std::ptrdiff_t>(from + count));
  };
  SsaList series = start([&](Val a, Val x) {
    GammaRegion region = gamma_region(a, x);
    return series_start(logical_and(region.inside, logical_not(region.by_quadrature)), a, x, slope);
  });
  series = repeat(c, series, kMaxSteps, [&](Val, auto s) { return series_step(s, slope); });
  take(series, 4, 1);
  if (slope) take(series, 6, 1);
  SsaList integral = start([&](Val a, Val x) {
    GammaRegion region = gamma_region(a, x);
    Density density{region.up, abs(x - a), x, {}, {}};
    Val length = fall_length(region.up, density.c, density.o);
    Val mask = logical_and(region.inside, region.by_quadrature);
    return integral_start(mask, density, length);
  });
  integral = repeat(c, integral, std::ssize(gauss_nodes().x), integral_step);
  take(integral, kIntegral, slope ? 2 : 1);
  if (kind == Gamma::kUpper) {
    SsaList small = start([&](Val a, Val x) {
      Val used = logical_and(le(x, scalar_like(x, 1)), below(a, kLarge));
      return small_start(logical_and(gamma_region(a, x).inside, used), a, x);
    });
    small = repeat(c, small, kMaxSteps, [](Val, auto s) { return small_step(s); });
    take(small, 5, 1);
  }
  SsaList result = inline_function(c, xs, [&](std::span<const Val> v) -> Vals {
    size_t at = 2;
    auto next = [&](bool present) { return present ? v[at++] : Val{}; };
    Val sum = next(true), sum_slope = next(slope), integral_v = next(true), moment = next(slope);
    Val small = next(kind == Gamma::kUpper);
    Val value = gamma_value(kind, v[0], v[1], sum, sum_slope, integral_v, moment, small);
    return {convert(at_edges(kind, v[0], v[1], value), dtype)};
  });
  c.set_out(0, result[0].name);
}
// The density of the gamma distribution: dP/dx.
Val gamma_density(Val a, Val x) {
  Val zero = scalar_like(x, 0), one = scalar_like(x, 1);
  // At 0, x**(a-1) is 1 for a = 1.
  Val power = select(eq(a, one), zeros_like(a), (a - 1.0) * log(x));
  Val of_small = exp(power - x - lgamma(a));
  Val at_zero = eq(x, zero);
  Val of_large = select(at_zero, zeros_like(a), gamma_front(a, x) / select(at_zero, one, x));
  Val density = select(below(a, kLarge), of_small, of_large);
  density = select(eq(x, scalar_like(x, INFINITY)), zeros_like(a), density);
  return select(logical_or(lt(x, zero), le(a, zero)), scalar_like(x, NAN), density);
}

// Emits a formula of the operands, computed in f64.
void emit_wide(EmitCtx& c, const std::function<Val(std::span<const Val>)>& formula) {
  DType dtype = c.out_type()->dtype();
  SsaList result = inline_function(c, wide_operands(c), [&](std::span<const Val> v) -> Vals {
    return {convert(formula(v), dtype)};
  });
  c.set_out(0, result[0].name);
}

void register_gamma(OpRegistry& r) {
  using C = const JvpArgCtx&;
  auto add_op = [&](const char* name, const char* doc, double flops, std::vector<JvpArgRule> jvp,
                    EmitRule emit) {
    OpDef op = binary({.name = name,
                       .doc = doc,
                       .dtypes = kFloats,
                       .jvp = std::move(jvp),
                       .flops = flops,
                       .transcendental = true});
    op.emit = std::move(emit);
    r.add(std::move(op));
  };
  auto add = [&](const char* name, const char* doc, Gamma kind, std::vector<JvpArgRule> jvp) {
    add_op(name, doc, kFlops, std::move(jvp), [kind](EmitCtx& c) { emit_gamma(c, kind); });
  };
  auto density = [](C c) { return apply1("igamma_grad_x", {c.x(0), c.x(1)}); };
  auto slope_in_a = [](C c) { return apply1("igamma_grad_a", {c.x(0), c.x(1)}); };
  add("igamma", "The regularised lower incomplete gamma function P(a, x), elementwise.",
      Gamma::kLower,
      {[=](C c) { return c.t() * slope_in_a(c); }, [=](C c) { return c.t() * density(c); }});
  add("igammac", "The regularised upper incomplete gamma function Q(a, x), elementwise.",
      Gamma::kUpper,
      {[=](C c) { return c.t() * -slope_in_a(c); }, [=](C c) { return c.t() * -density(c); }});
  add("igamma_grad_a", "The derivative of igamma(a, x) with respect to a, elementwise.",
      Gamma::kSlope, {no_derivative("igamma_grad_a", "a"), no_derivative("igamma_grad_a", "x")});
  add_op("igamma_grad_x", "The derivative of igamma(a, x) with respect to x, elementwise.", 50,
         {[](C c) { return c.t() * (c.y() * (log(c.x(1)) - digamma(c.x(0)))); },
          [](C c) { return c.t() * (c.y() * ((c.x(0) - 1.0 - c.x(1)) / c.x(1))); }},
         [](EmitCtx& c) { emit_wide(c, [](auto v) { return gamma_density(v[0], v[1]); }); });
  add("random_gamma_grad",
      "How a sample x of the gamma distribution moves with its parameter a, elementwise.",
      Gamma::kSampleSlope,
      {no_derivative("random_gamma_grad", "a"), no_derivative("random_gamma_grad", "x")});
}

// log beta(a, b).
Val log_beta(Val a, Val b) {
  Val small = min(a, b), large = max(a, b), sum = a + b;
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

// I_x(a, b) = front / a * h with a continued fraction h (Lentz's method), good for x below about
// the mean. State: mask, m, c, d, h, a, b, x.
Val away_from_zero(Val x) {
  constexpr double kTiny = 1e-30;
  return select(below(abs(x), kTiny), scalar_like(x, kTiny), x);
}

Vals fraction_start(const BetaRegion& region) {
  Val swap = region.fraction_mirrored;
  Val a = select(swap, region.b, region.a), b = select(swap, region.a, region.b);
  Val x = select(swap, region.y, region.x);
  Val d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  Val mask = logical_and(region.inside, logical_not(region.by_quadrature));
  return {mask, zeros_like(a), ones_like(a), d, d, a, b, x};
}

Vals fraction_step(std::span<const Val> s) {
  Val m = s[1] + 1.0, c = s[2], d = s[3], h = s[4], a = s[5], b = s[6], x = s[7];
  Val last;
  auto multiply_by = [&](Val numerator) {
    d = 1.0 / away_from_zero(1.0 + numerator * d);
    c = away_from_zero(1.0 + numerator / c);
    last = c * d;
    h = h * last;
  };
  Val a2m = a + 2.0 * m;
  multiply_by(m * (b - m) * x / ((a2m - 1.0) * a2m));
  multiply_by(-(a + m) * (a + b + m) * x / (a2m * (a2m + 1.0)));
  return {above(abs(last - 1.0), kEpsilon), m, c, d, h, a, b, x};
}

Vals beta_integral_start(const BetaRegion& region) {
  // On the upper side c may be a little below 0, as far as 1 - o.
  Val c = select(region.up, region.o - region.a, region.a - region.o);
  Val length = fall_length(region.up, c, region.o);
  length = select(region.up, min(length, -log(region.x)), length);
  Density density{region.up, c, region.o, region.b - 1.0, region.x / region.y};
  return integral_start(logical_and(region.inside, region.by_quadrature), density, length);
}

Val beta_value(Val a, Val b, Val x, Val fraction, Val integral) {
  auto number = [&](double v) { return scalar_like(x, v); };
  BetaRegion region = beta_region(a, b, x);
  Val front = beta_front(region.a, region.b, region.x, region.y);
  Val by_fraction = front * fraction / select(region.fraction_mirrored, region.b, region.a);
  Val tail = select(region.by_quadrature, front * integral / region.y, by_fraction);
  Val is_upper = select(region.by_quadrature, region.up, region.fraction_mirrored);
  Val value = select(ne(is_upper, region.mirrored), 1.0 - tail, tail);
  Val zero = number(0), one = number(1), infinite = number(INFINITY);
  auto any = [](Val p, Val q, Val r) { return logical_or(logical_or(p, q), r); };
  Val none = any(eq(x, zero), eq(b, zero), eq(a, infinite));
  Val all = any(eq(x, one), eq(a, zero), eq(b, infinite));
  value = select(none, zero, select(all, one, value));
  Val outside = any(any(lt(a, zero), lt(b, zero), lt(x, zero)), gt(x, one), logical_and(none, all));
  Val unknown = any(ne(a, a), ne(b, b), ne(x, x));
  return select(logical_or(outside, unknown), number(NAN), value);
}

void emit_beta(EmitCtx& c) {
  DType dtype = c.out_type()->dtype();
  SsaList xs = wide_operands(c);
  auto start = [&](Vals (*f)(const BetaRegion&)) {
    return inline_function(
        c, xs, [&](std::span<const Val> v) { return f(beta_region(v[0], v[1], v[2])); });
  };
  SsaList fraction = repeat(c, start(fraction_start), kMaxSteps,
                            [](Val, auto state) { return fraction_step(state); });
  SsaList integral =
      repeat(c, start(beta_integral_start), std::ssize(gauss_nodes().x), integral_step);
  xs.push_back(fraction[4]);
  xs.push_back(integral[kIntegral]);
  SsaList result = inline_function(c, xs, [&](std::span<const Val> v) -> Vals {
    return {convert(beta_value(v[0], v[1], v[2], v[3], v[4]), dtype)};
  });
  c.set_out(0, result[0].name);
}

// dI/dx.
Val beta_density(Val a, Val b, Val x) {
  Val one = scalar_like(x, 1);
  Val y = 1.0 - x;
  auto power = [&](Val exponent, Val log) {  // 0**0 is 1
    return select(eq(exponent, one), zeros_like(log), (exponent - 1.0) * log);
  };
  Val of_small = exp(power(a, log(x)) + power(b, log1p(-x)) - log_beta(a, b));
  Val within = logical_and(above(x, 0), above(y, 0));
  Val of_large = select(within, beta_front(a, b, x, y) / select(within, x * y, one), zeros_like(x));
  Val density = select(below(min(a, b), kLarge), of_small, of_large);
  Val outside = logical_or(below(x, 0), below(y, 0));
  Val defined = logical_and(above(a, 0), above(b, 0));
  return select(logical_or(outside, logical_not(defined)), scalar_like(x, NAN), density);
}

void register_beta(OpRegistry& r) {
  using C = const JvpArgCtx&;
  auto add = [&](const char* name, const char* doc, double flops, std::vector<JvpArgRule> jvp,
                 EmitRule emit) {
    OpDef op = binary({.name = name,
                       .doc = doc,
                       .dtypes = kFloats,
                       .jvp = std::move(jvp),
                       .flops = flops,
                       .transcendental = true});
    op.num_operands = 3;
    op.emit = std::move(emit);
    r.add(std::move(op));
  };
  constexpr const char* kName = "regularized_incomplete_beta";
  constexpr const char* kDensity = "regularized_incomplete_beta_grad_x";
  add(kName, "The regularised incomplete beta function I_x(a, b), elementwise.", kFlops,
      {no_derivative(kName, "a"), no_derivative(kName, "b"),
       [](C c) { return c.t() * apply1(kDensity, {c.x(0), c.x(1), c.x(2)}); }},
      emit_beta);
  // Of the parameter that goes with log(x) or log(1-x).
  auto by_parameter = [](C c, size_t i, Val log) {
    return c.t() * (c.y() * (log - digamma(c.x(i)) + digamma(c.x(0) + c.x(1))));
  };
  add(kDensity, "The derivative of the regularised incomplete beta function by x, elementwise.",
      100,
      {[=](C c) { return by_parameter(c, 0, log(c.x(2))); },
       [=](C c) { return by_parameter(c, 1, log1p(-c.x(2))); },
       [](C c) {
         Val x = c.x(2);
         return c.t() * (c.y() * ((c.x(0) - 1.0) / x - (c.x(1) - 1.0) / (1.0 - x)));
       }},
      [](EmitCtx& c) { emit_wide(c, [](auto v) { return beta_density(v[0], v[1], v[2]); }); });
}

}  // namespace

void register_incomplete(OpRegistry& r) {
  register_gamma(r);
  register_beta(r);
}

}  // namespace weft
