#include "ops/elementwise/real_functions.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/def/presets.h"
#include "ops/elementwise/choices.h"

namespace weft {

namespace {

// Their sum is log 2, and products of the first with small whole numbers are exact.
constexpr double kLog2High = 0.6931471803691238, kLog2Low = 1.9082149292705877e-10;

bool is_f64(Val x) { return x.dtype() == DType::kF64; }
Val number(Val like, double v) { return scalar_like(like, v); }
Val nearest(Val x) { return apply1("round", {x}, {{"rounding_method", int64_t{1}}}); }
// NaN stays.
Val clipped(Val x, double bound) {
  return select(above(x, bound), number(x, bound), where(below(x, -bound), -bound, x));
}

// The layout of a dtype.
struct Format {
  DType bits;    // integers of its width
  int mantissa;  // bits of it
  int bias;      // of the exponent
  double tiny;   // the smallest normal number
};

Format format_of(Val x) {
  if (is_f64(x)) return {DType::kI64, 52, 1023, std::numeric_limits<double>::min()};
  return {DType::kI32, 23, 127, std::numeric_limits<float>::min()};
}

Val bits_of(Val x) {
  return apply1("bitcast_convert_type", {x}, {{"new_dtype", format_of(x).bits}});
}
Val from_bits(Val bits) {
  DType to = bits.dtype() == DType::kI64 ? DType::kF64 : DType::kF32;
  return apply1("bitcast_convert_type", {bits}, {{"new_dtype", to}});
}
Val shifted_left(Val x, int n) { return apply1("shift_left", {x, number(x, n)}); }
Val shifted_right(Val x, int n) { return apply1("shift_right_arithmetic", {x, number(x, n)}); }

// 2**n of whole numbers n that give a normal number.
Val power_of_two(Val n) {
  Format f = format_of(n);
  Val exponent = convert(convert(n, DType::kI32), f.bits) + static_cast<double>(f.bias);
  return from_bits(shifted_left(exponent, f.mantissa));
}

// log(1 + f) for f from sqrt(1/2) - 1 to sqrt(2) - 1, as 2 atanh(s), s = f / (2 + f), whose series
// ends early there (Abramowitz and Stegun 4.1.27; the grouping is W. Kahan's).
Val log_near_one(Val f) {
  static constexpr double kOdd[] = {2. / 3,  2. / 5,  2. / 7,  2. / 9,  2. / 11,
                                    2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21};
  Val s = f / (f + 2.0), square = s * s;
  return f - s * (f - square * polynomial(square, kOdd));
}

// In float64 what x is 2**k (1 + f) of.
struct BinaryParts {
  Val k, f;
};
BinaryParts binary_parts(Val x) {
  constexpr double kRootHalfBits = 0x3FE6A09Ep32;  // bits of a number next to sqrt(1/2)
  Val bits = bits_of(x), k = shifted_right(bits - kRootHalfBits, 52);
  return {k, from_bits(bits - shifted_left(k, 52)) - 1.0};
}

// log x of such parts; at the ends, of which the bits say nothing, by x itself.
Val log_of_parts(Val x, Val k, Val f) {
  Val power = convert(convert(k, DType::kI32), DType::kF64);
  Val value = power * kLog2High + (log_near_one(f) + power * kLog2Low);
  Val edge = select(above(x, 0), number(x, kInf),
                    select(eq(x, number(x, 0)), number(x, -kInf), number(x, kNan)));
  return select(logical_and(above(x, 0), below(x, kInf)), value, edge);
}

constexpr double kErfcxShort[] = {1.25300806,     -1.356211e-1,  -4.75621561e-2, 1.29644721e-1,
                                  -1.19275281e-1, 6.83131967e-2, -2.37635597e-2, 2.50677867e-3,
                                  1.87506025e-3,  -7.3408205e-4, -9.25376913e-5, 8.00745497e-5};
constexpr double kErfcx[] = {
    1.2530080582697297,     -1.3562110612458117e-1, -4.7562294353450872e-2, 1.2964515870276062e-1,
    -1.1927366341530699e-1, 6.8308027343978475e-2,  -2.3770514918645887e-2, 2.5293918160662392e-3,
    1.8886903591561552e-3,  -7.7983227210839912e-4, -1.0515979981501178e-4, 1.2509935235563108e-4,
    4.9494849925705952e-6,  -2.0100567931289228e-5, -7.3151051641590619e-7, 3.472414602875686e-6,
    3.5683839153992205e-7,  -6.1664960776043528e-7, -1.4160064940265986e-7, 1.0187000600072885e-7,
    4.1807846988455822e-8,  -1.3326364813003833e-8, -8.5003979297726154e-9, 9.8857988311393649e-10,
    8.864219016427092e-10};

// (1 + 2x) exp(x**2) erfc(x) for x >= 0, in t = (x - 3) / (x + 3): M. M. Shepherd and
// J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc x in 0 <= x < inf",
// Mathematics of Computation 36 (1981). The polynomials are printed by tools/fits.
Val scaled_erfc(Val x) {
  Val t = (x - 3.0) / (x + 3.0);
  return is_f64(x) ? polynomial(t, kErfcx) : polynomial(t, kErfcxShort);
}

// exp(-x * x) for x >= 0 below 30: x is a number whose square is exact, and a small rest.
Val exp_minus_square(Val x) {
  double grid = is_f64(x) ? 0x1p20 : 0x1p7;
  Val high = nearest(x * grid) * (1 / grid), low = x - high;
  static constexpr double kExp[] = {1, -1, 1. / 2, -1. / 6, 1. / 24, -1. / 120};
  return exp(-(high * high)) * polynomial(low * (x + high), kExp);
}

}  // namespace

Val at_least_f32(Val x) { return info(x.dtype()).bits < 32 ? convert(x, DType::kF32) : x; }

EmitRule emit_real(std::string hlo, RealRule rule, EmitRule otherwise) {
  return [hlo = std::move(hlo), rule, otherwise = std::move(otherwise)](EmitCtx& c) {
    TypeRef type = c.out_type();
    if (!is_float(type->dtype())) return otherwise(c);
    TypeRef wide = info(type->dtype()).bits < 32 ? with_dtype(type, DType::kF32) : type;
    GraphBuilder b;
    Val x{&b, b.input(wide)};
    Val own = hlo.empty() ? Val{} : Val{&b, b.input(wide)};
    Val result = rule(x, own);
    if (!result) return otherwise(c);
    GraphRef graph = b.finish(Values{result.value});
    auto converted = [&](std::string v, TypeRef from, TypeRef to) {
      return from == to ? v : emit_op(c, "stablehlo.convert", {&v, 1}, {&from, 1}, to);
    };
    std::vector<std::string> args{converted(c.in(0), type, wide)};
    if (own) args.push_back(emit_op(c, hlo, {args.data(), 1}, {&wide, 1}, wide));
    c.set_out(0, converted(c.inline_graph(*graph, args)[0], wide, type));
  };
}

Val polynomial(Val x, std::span<const double> c) {
  Val sum = number(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

Val bell(Val x) {
  constexpr double kEnd = 30;  // exp(-900) is 0
  return exp(-square(where(above(abs(x), kEnd), kEnd, x)));
}

// 2**n 2**r with |r| <= 1/2. The first factor is two, of which each is a normal number.
Val real_exp2(Val x, const Attr& accuracy) {
  Val cut = clipped(x, is_f64(x) ? 1100 : 160);
  Val n = nearest(cut), half = floor(0.5 * n);
  Val power = apply1("exp", {(cut - n) * std::numbers::ln2}, {{"accuracy", accuracy}});
  return power * power_of_two(half) * power_of_two(n - half);
}

// 2**k (1 + p) - 1 with p = exp(r) - 1 by its series, r = x - k log 2; k is cut where it matters no
// more. The last factor is apart, since 2**k may overflow where the result does not.
Val real_expm1(Val x, Val) {
  static constexpr double kInverse[] = {1,
                                        1. / 2,
                                        1. / 6,
                                        1. / 24,
                                        1. / 120,
                                        1. / 720,
                                        1. / 5040,
                                        1. / 40320,
                                        1. / 362880,
                                        1. / 3628800,
                                        1. / 39916800,
                                        1. / 479001600,
                                        1. / 6227020800,
                                        1. / 87178291200};
  bool wide = is_f64(x);
  Val near = where(below(x, -40), -40, where(above(x, wide ? 710 : 89), wide ? 710 : 89, x));
  Val k = nearest(near * std::numbers::log2e);
  Val r =
      near - k * (wide ? kLog2High : 0.693145751953125) - k * (wide ? kLog2Low : 1.42860682e-06);
  Val p = r * polynomial(r, std::span(kInverse).first(wide ? 14 : 8));
  Val half = power_of_two(k - 1.0);
  Val value = 2.0 * (half * p + (half - 0.5));
  // Halves of the smallest numbers may be taken for 0.
  return select(below(abs(x), 0x1p-60), x, value);
}

// log(1 + x) = k log 2 + log(1 + f), 1 + x = 2**k (1 + f), where f has no rounding error that
// counts.
Val real_log1p(Val x, Val) {
  if (!is_f64(x)) return {};
  Val sum = x + 1.0;
  BinaryParts own = binary_parts(sum);
  Val scale = from_bits(shifted_left(1023.0 - own.k, 52));
  Val f = select(lt(own.k, number(own.k, 60)), x * scale + (scale - 1.0), own.f);
  Val value = log_of_parts(sum, own.k, f);
  return select(below(abs(x), 0x1p-60), x, value);  // -0 keeps its sign
}

Val real_log(Val x) {
  BinaryParts own = binary_parts(x);
  return log_of_parts(x, own.k, own.f);
}

// The series of the sine (DLMF 4.19.1), of which the twelfth term is below half a unit.
Val sin_pi(Val x) {
  std::array<double, 12> series;
  double term = std::numbers::pi;
  for (size_t i = 0; i < series.size(); ++i) {
    series[i] = term;
    double n = 2 * static_cast<double>(i) + 2;
    term *= -std::numbers::pi * std::numbers::pi / (n * (n + 1));
  }
  return x * polynomial(square(x), series);
}

// The quotient that XLA takes loses small arguments.
Val real_asin(Val x, Val own) { return select(below(abs(x), 0x1p-28), x, own); }

// exp(size) / 2, as a square where it is finite only when halved, and exp(-size) / 2.
struct Halves {
  Val up, down;
};
Halves halves(Val size) {
  Val large = above(size, is_f64(size) ? 700 : 80);
  Val e = exp(select(large, 0.5 * size, size));
  return {select(large, (0.5 * e) * e, 0.5 * e), where(large, 0, 0.5 / e)};
}

// Up to 1 by its series.
Val real_sinh(Val x, Val) {
  Val size = abs(x), is_small = le(size, number(x, 1));
  Halves h = halves(size);
  Val far = h.up - h.down, square_of_near = square(select(is_small, x, zeros_like(x)));
  Val series = ones_like(x);
  for (int k = is_f64(x) ? 18 : 10; k > 0; k -= 2)
    series = 1.0 + square_of_near * (1.0 / (k * (k + 1))) * series;
  return select(is_small, x * series, select(below(x, 0), -far, far));
}

Val real_cosh(Val x, Val) {
  Halves h = halves(abs(x));
  return h.up + h.down;
}

// XLA's own stops short of 1.
Val real_tanh(Val x, Val own) {
  if (!is_f64(x)) return {};
  Val size = abs(x);
  Val far = 1.0 - 2.0 / (exp(2.0 * size) + 1.0);
  return select(above(size, 8), select(below(x, 0), -far, far), own);
}

Val real_atanh(Val x, Val) {
  if (!is_f64(x)) return {};
  Val size = abs(x);
  Val value = 0.5 * apply1("log1p", {2.0 * size / (1.0 - size)});
  value = select(below(size, 0x1p-30), size, value);
  return select(below(x, 0), -value, select(eq(x, number(x, 0)), x, value));
}

// A step of Newton's method on exp(log(x) / 3). Subnormal numbers, which machines may take for
// zeros, are read as whole numbers of the smallest one.
Val real_cbrt(Val x, Val) {
  Format f = format_of(x);
  Val bits = bits_of(x), is_small = below(abs(x), f.tiny);
  double mask = static_cast<double>((int64_t{1} << f.mantissa) - 1);
  Val whole = convert(logical_and(bits, number(bits, mask)), x.dtype());
  // The smallest is 2**-149 or 2**-1074, of which twice or once has an exact root.
  if (!is_f64(x)) whole = 2.0 * whole;
  double unit = is_f64(x) ? 0x1p-358 : 0x1p-50;
  Val scaled = select(is_small, select(below(bits, 0), -whole, whole), x);
  Val size = abs(scaled);
  Val first = exp(log(size) * (1.0 / 3));
  Val root = first + (size / square(first) - first) * (1.0 / 3);
  Val is_edge = logical_or(eq(size, number(x, 0)), eq(size, number(x, kInf)));
  root = select(is_edge, size, root) * where(is_small, unit, ones_like(x));
  return select(below(bits, 0), -root, root);
}

namespace {

// Of numbers from 1/2 on.
Val erfc_far_out(Val x) {
  Val far = where(above(x, 30), 30, x);
  return scaled_erfc(far) / (1.0 + 2.0 * x) * exp_minus_square(far);
}

}  // namespace

Val real_erfc(Val x, Val) {
  Val far = erfc_far_out(x);
  return select(below(x, 0.5), 1.0 - erf(where(above(x, 0.5), 0, x)), far);
}

// Its Taylor series up to 1.
Val real_erf(Val x, Val) {
  const int last = is_f64(x) ? 20 : 12;
  Val size = abs(x), is_near = below(size, 1);
  std::vector<double> terms;
  for (int n = 0; n <= last; ++n)
    terms.push_back((n % 2 ? -1 : 1) / (std::tgamma(n + 1.0) * (2 * n + 1)));
  Val near = select(is_near, x, zeros_like(x));
  near = near * polynomial(square(near), terms) * (2 * std::numbers::inv_sqrtpi);
  Val far = 1.0 - erfc_far_out(where(is_near, 1, size));
  return select(is_near, near, select(below(x, 0), -far, far));
}

// Halley's iteration, each step of which triples the number of digits.
Val real_erf_inv(Val x) {
  constexpr double kShape = 0.147, kRoot = 1.7724538509055160273;  // of pi
  constexpr int kSteps = 3;
  Val size = abs(x), is_inside = below(size, 1);
  Val a = select(is_inside, size, zeros_like(x));
  Val l = apply1("log1p", {-square(a)});
  Val t = l * 0.5 + 2 / (std::numbers::pi * kShape);
  Val guess = sqrt(sqrt(square(t) - l * (1 / kShape)) - t);
  Val y = select(below(a, 0.125), a * (kRoot / 2), guess);
  for (int step = 0; step < kSteps; ++step) {
    Val excess = select(below(a, 0.5), erf(y) - a, (1.0 - a) - erfc(y));
    Val change = excess * exp(square(y)) * (kRoot / 2);
    y = y - change / (y * change + 1.0);
  }
  Val edge = where(eq(size, ones_like(x)), kInf, number(x, std::nan("")));
  y = select(is_inside, y, edge);
  return select(below(x, 0), -y, y);
}

}  // namespace weft
