// The incomplete gamma and beta functions. They iterate until every element has converged, so they
// are emitted as loops: a power series or a continued fraction, by region of the arguments.
#include <cmath>
#include <limits>

#include "ops/axes.h"
#include "ops/families.h"
#include "ops/hlo_text.h"
#include "ops/presets.h"

namespace weft {

namespace {

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

// Repeats state = step(state) while any element of the mask state[0] is set. An element keeps its
// values once its mask is clear.
SsaList repeat(EmitCtx& c, const SsaList& state, const Function& step) {
  SsaList carry = {
      {c.constant(make_literal(DType::kI32, int64_t{0}), {}), scalar_type(DType::kI32)}};
  carry.insert(carry.end(), state.begin(), state.end());
  TypeRefs types = types_of(carry);
  GraphRef condition = make_graph(types, [](std::span<const Val> xs) -> Vals {
    Val any = reduce_or(xs[1], count_up(xs[1].rank()));
    return {logical_and(lt(xs[0], scalar_like(xs[0], kMaxSteps)), any)};
  });
  GraphRef body = make_graph(types, [&](std::span<const Val> xs) {
    std::span<const Val> old = xs.subspan(1);
    Vals next = step(old);
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

// A value with its derivative with respect to a; a derivative that is none is zero.
struct Number {
  Val v;
  Val d;
};

Val sum_of(Val x, Val y) { return x && y ? x + y : x ? x : y; }
Val product_of(Val x, Val y) { return x && y ? x * y : Val{}; }
Val negative_of(Val x) { return x ? -x : x; }

Number operator+(Number x, Number y) { return {x.v + y.v, sum_of(x.d, y.d)}; }
Number operator-(Number x, Number y) { return {x.v - y.v, sum_of(x.d, negative_of(y.d))}; }
Number operator*(Number x, Number y) {
  return {x.v * y.v, sum_of(product_of(x.d, y.v), product_of(x.v, y.d))};
}
Number operator/(Number x, Number y) {
  Val quotient = x.v / y.v;
  Val d = sum_of(x.d, negative_of(product_of(quotient, y.d)));
  return {quotient, d ? d / y.v : d};
}
Number choose(Val pred, Number x, Number y) {
  return {select(pred, x.v, y.v), x.d ? select(pred, x.d, y.d) : Val{}};
}

// The state of a recurrence as a list of values: the mask, then each number.
class State {
 public:
  State(std::span<const Val> values, bool slopes) : values_(values), slopes_(slopes) {}
  Val plain() { return values_[at_++]; }
  Number number() {
    Val v = plain();
    return {v, slopes_ ? plain() : Val{}};
  }

 private:
  std::span<const Val> values_;
  bool slopes_;
  size_t at_ = 1;
};

void append(Vals& values, Number x, bool slopes) {
  values.push_back(x.v);
  if (slopes) values.push_back(x.d ? x.d : zeros_like(x.v));
}

Val epsilon(Val x) {
  return scalar_like(x, x.dtype() == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                                 : std::numeric_limits<float>::epsilon());
}

// Whether `change` still matters for a number of about the size of `total`.
Val still_moves(Number change, Number total) {
  Val moves = gt(abs(change.v), epsilon(total.v) * abs(total.v));
  if (!change.d) return moves;
  Val scale = abs(total.d) + abs(total.v);
  return logical_or(moves, gt(abs(change.d), epsilon(total.v) * scale));
}

// P(a, x) = exp(scale) / a * sum over n of x**n / ((a+1) ... (a+n)), good for x < a or x < 1.
// State: r = a + n, the term, the sum, x.
Vals series_start(Val mask, Val a, Val x, bool slopes) {
  Vals state{mask, a};
  append(state, {ones_like(a), {}}, slopes);
  append(state, {ones_like(a), {}}, slopes);
  state.push_back(x);
  return state;
}

Vals series_step(std::span<const Val> values, bool slopes) {
  State s(values, slopes);
  Val r = s.plain() + 1.0;
  Number term = s.number(), sum = s.number();
  Val x = s.plain();
  Number denominator{r, slopes ? scalar_like(r, 1) : Val{}};
  term = term * (Number{x, {}} / denominator);
  sum = sum + term;
  Vals next{still_moves(term, sum), r};
  append(next, term, slopes);
  append(next, sum, slopes);
  next.push_back(x);
  return next;
}

// Q(a, x) = exp(scale) times a continued fraction p/q, good for x > a and x > 1.
// State: n, y = n + 1 - a, z = x + y + 1 + n, p and q of this step and the one before, p/q.
Vals fraction_start(Val mask, Val a, Val x, bool slopes) {
  Val one = ones_like(a);
  Val y = 1.0 - a;
  Val z = x + y + 1.0;
  Number p{x + 1.0, {}};
  Number q = Number{z, slopes ? scalar_like(z, -1) : Val{}} * Number{x, {}};
  Vals state{mask, zeros_like(a), y, z};
  append(state, {one, {}}, slopes);
  append(state, {x, {}}, slopes);
  append(state, p, slopes);
  append(state, q, slopes);
  append(state, p / q, slopes);
  return state;
}

Vals fraction_step(std::span<const Val> values, bool slopes) {
  State s(values, slopes);
  Val n = s.plain() + 1.0, y = s.plain() + 1.0, z = s.plain() + 2.0;
  Number p2 = s.number(), q2 = s.number(), p1 = s.number(), q1 = s.number(), old = s.number();
  Val minus_one = slopes ? scalar_like(z, -1) : Val{};
  Number yn = Number{y, minus_one} * Number{n, {}};
  Number z_number{z, minus_one};
  Number p = p1 * z_number - p2 * yn;
  Number q = q1 * z_number - q2 * yn;
  Val is_zero = eq(q.v, scalar_like(q.v, 0));
  Number safe_q{select(is_zero, scalar_like(q.v, 1), q.v), q.d};
  Number ratio = choose(is_zero, old, p / safe_q);
  Val moves = logical_or(is_zero, still_moves(ratio - old, ratio));
  // Keeps p and q in range; only their ratio matters.
  Val small = epsilon(z);
  Val scale = select(gt(abs(p.v), 1.0 / small), small, scalar_like(z, 1));
  Number factor{scale, {}};
  Vals next{moves, n, y, z};
  for (Number x : {p1 * factor, q1 * factor, p * factor, q * factor, ratio})
    append(next, x, slopes);
  return next;
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

Val gamma_value(Gamma kind, Val a, Val x, Val use_fraction, Number series, Number fraction) {
  Val log_x = log(x);
  if (kind == Gamma::kSampleSlope) {
    Val by_series = -(x / a) * (series.d + series.v * (log_x - digamma(a + 1.0)));
    Val by_fraction = x * (fraction.d + fraction.v * (log_x - digamma(a)));
    return select(use_fraction, by_fraction, by_series);
  }
  Val scale = exp(a * log_x - x - apply1("lgamma", {a}));
  if (kind == Gamma::kSlope) {
    Val by_series = scale / a * (series.d + series.v * (log_x - digamma(a + 1.0)));
    Val by_fraction = -scale * (fraction.d + fraction.v * (log_x - digamma(a)));
    return select(use_fraction, by_fraction, by_series);
  }
  Val lower = scale / a * series.v;
  Val upper = scale * fraction.v;
  return kind == Gamma::kLower ? select(use_fraction, 1.0 - upper, lower)
                               : select(use_fraction, upper, 1.0 - lower);
}

// Operands of the result's shape, in f32 if they are narrower.
SsaList wide_operands(EmitCtx& c) {
  SsaList operands;
  for (size_t i = 0; i < c.size(); ++i)
    operands.push_back({c.in_as(i, c.out_type()->shape()), c.out_type()});
  return inline_function(c, operands, [](std::span<const Val> xs) {
    Vals wide;
    for (const Val& x : xs)
      wide.push_back(convert(x, x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32));
    return wide;
  });
}

void emit_gamma(EmitCtx& c, Gamma kind) {
  bool slopes = has_slope(kind);
  DType dtype = c.out_type()->dtype();
  SsaList operands = wide_operands(c);
  auto start = [&](bool by_fraction) {
    return inline_function(c, operands, [&](std::span<const Val> xs) {
      Val a = xs[0], x = xs[1];
      auto above = [](Val u, double v) { return gt(u, scalar_like(u, v)); };
      auto below = [](Val u, double v) { return lt(u, scalar_like(u, v)); };
      Val inside = logical_and(logical_and(above(a, 0), below(a, INFINITY)),
                               logical_and(above(x, 0), below(x, INFINITY)));
      Val use_fraction = logical_and(above(x, 1), gt(x, a));
      Val mask = logical_and(inside, by_fraction ? use_fraction : logical_not(use_fraction));
      return by_fraction ? fraction_start(mask, a, x, slopes) : series_start(mask, a, x, slopes);
    });
  };
  SsaList series = repeat(c, start(false), [&](auto s) { return series_step(s, slopes); });
  SsaList fraction = repeat(c, start(true), [&](auto s) { return fraction_step(s, slopes); });
  SsaList xs = operands;
  // The sum comes before x in the state of the series, the ratio last in that of the fraction.
  size_t width = slopes ? 2 : 1;
  xs.insert(xs.end(), series.end() - 1 - width, series.end() - 1);
  xs.insert(xs.end(), fraction.end() - width, fraction.end());
  SsaList result = inline_function(c, xs, [&](std::span<const Val> v) -> Vals {
    Val a = v[0], x = v[1];
    Number sum{v[2], slopes ? v[3] : Val{}};
    Number ratio{v[2 + width], slopes ? v[3 + width] : Val{}};
    Val use_fraction = logical_and(gt(x, scalar_like(x, 1)), gt(x, a));
    Val value = gamma_value(kind, a, x, use_fraction, sum, ratio);
    return {convert(at_edges(kind, a, x, value), dtype)};
  });
  c.set_out(0, result[0].name);
}

// The density of the gamma distribution: dP/dx.
Val gamma_density(Val a, Val x) { return exp((a - 1.0) * log(x) - x - apply1("lgamma", {a})); }

void register_gamma(OpRegistry& r) {
  using C = const JvpArgCtx&;
  auto add = [&](const char* name, const char* doc, Gamma kind, std::vector<JvpArgRule> jvp) {
    OpDef op = binary({.name = name,
                       .doc = doc,
                       .dtypes = kFloats,
                       .jvp = std::move(jvp),
                       .flops = 100,
                       .transcendental = true});
    op.emit = [kind](EmitCtx& c) { emit_gamma(c, kind); };
    r.add(std::move(op));
  };
  auto slope_in_a = [](C c) { return apply1("igamma_grad_a", {c.x(0), c.x(1)}); };
  add("igamma", "The regularised lower incomplete gamma function P(a, x), elementwise.",
      Gamma::kLower,
      {[=](C c) { return c.t() * slope_in_a(c); },
       [](C c) { return c.t() * gamma_density(c.x(0), c.x(1)); }});
  add("igammac", "The regularised upper incomplete gamma function Q(a, x), elementwise.",
      Gamma::kUpper,
      {[=](C c) { return c.t() * -slope_in_a(c); },
       [](C c) { return c.t() * -gamma_density(c.x(0), c.x(1)); }});
  add("igamma_grad_a", "The derivative of igamma(a, x) with respect to a, elementwise.",
      Gamma::kSlope, {no_derivative("igamma_grad_a", "a"), no_derivative("igamma_grad_a", "x")});
  add("random_gamma_grad",
      "How a sample x of the gamma distribution moves with its parameter a, elementwise.",
      Gamma::kSampleSlope,
      {no_derivative("random_gamma_grad", "a"), no_derivative("random_gamma_grad", "x")});
}

// I_x(a, b) = front / a * h with a continued fraction h (Lentz's method), good for x below about
// the mean; else I_x(a, b) = 1 - I_1-x(b, a). State: m, c, d, h, a, b, x.

struct BetaArgs {
  Val a, b, x, is_swapped;
};

BetaArgs beta_args(Val a, Val b, Val x) {
  Val swap = gt(x, (a + 1.0) / (a + b + 2.0));
  return {select(swap, b, a), select(swap, a, b), select(swap, 1.0 - x, x), swap};
}

Val away_from_zero(Val x) {
  constexpr double kTiny = 1e-30;
  return select(lt(abs(x), scalar_like(x, kTiny)), scalar_like(x, kTiny), x);
}

Vals beta_start(std::span<const Val> xs) {
  auto number = [&](double v) { return scalar_like(xs[0], v); };
  Val positive = logical_and(gt(xs[0], number(0)), gt(xs[1], number(0)));
  Val finite = logical_and(lt(xs[0], number(INFINITY)), lt(xs[1], number(INFINITY)));
  Val inside = logical_and(gt(xs[2], number(0)), lt(xs[2], number(1)));
  auto [a, b, x, swapped] = beta_args(xs[0], xs[1], xs[2]);
  Val one = ones_like(a);
  Val d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  return {logical_and(logical_and(positive, finite), inside), zeros_like(a), one, d, d, a, b, x};
}

Vals beta_step(std::span<const Val> s) {
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
  return {gt(abs(last - 1.0), epsilon(h)), m, c, d, h, a, b, x};
}

Val log_beta(Val a, Val b) {
  auto lgamma = [](Val v) { return apply1("lgamma", {v}); };
  return lgamma(a) + lgamma(b) - lgamma(a + b);
}

Val beta_value(Val a, Val b, Val x, Val h) {
  auto number = [&](double v) { return scalar_like(x, v); };
  Val front = exp(a * log(x) + b * log1p(-x) - log_beta(a, b));
  BetaArgs args = beta_args(a, b, x);
  Val tail = front * h / args.a;
  Val value = select(args.is_swapped, 1.0 - tail, tail);
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
  SsaList state = repeat(c, inline_function(c, xs, beta_start), beta_step);
  xs.push_back(state[4]);
  SsaList result = inline_function(c, xs, [&](std::span<const Val> v) -> Vals {
    return {convert(beta_value(v[0], v[1], v[2], v[3]), dtype)};
  });
  c.set_out(0, result[0].name);
}

void register_beta(OpRegistry& r) {
  constexpr const char* kName = "regularized_incomplete_beta";
  OpDef op = binary({.name = kName,
                     .doc = "The regularised incomplete beta function I_x(a, b), elementwise.",
                     .dtypes = kFloats,
                     .jvp = {no_derivative(kName, "a"), no_derivative(kName, "b"),
                             [](const JvpArgCtx& c) {
                               Val a = c.x(0), b = c.x(1), x = c.x(2);
                               Val log_density = (a - 1.0) * log(x) + (b - 1.0) * log1p(-x);
                               return c.t() * exp(log_density - log_beta(a, b));
                             }},
                     .flops = 100,
                     .transcendental = true});
  op.num_operands = 3;
  op.emit = emit_beta;
  r.add(std::move(op));
}

}  // namespace

void register_incomplete(OpRegistry& r) {
  register_gamma(r);
  register_beta(r);
}

}  // namespace weft
