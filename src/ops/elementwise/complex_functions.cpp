// Annex G of the C standard says what the values are. Where it leaves the sign of a zero or of an
// infinity open, it is that of the product without the special value.
#include "ops/elementwise/complex_functions.h"

#include <numbers>

#include "ops/def/presets.h"
#include "ops/elementwise/choices.h"

namespace weft {

namespace {

constexpr double kHalfPi = std::numbers::pi / 2;

struct Parts {
  Val re, im;
};

Parts parts(Val z) { return {real(z), imag(z)}; }
Val whole(Parts p) { return complex(p.re, p.im); }

Val is(Val x, double value) { return eq(x, scalar_like(x, value)); }
Val is_nan(Val x) { return ne(x, x); }
Val is_infinite(Val x) { return is(abs(x), kInf); }
Val at_least(Val x, double bound) { return max(x, scalar_like(x, bound)); }
Val at_most(Val x, double bound) { return min(x, scalar_like(x, bound)); }

// The largest whole power of e that is finite; its square is the most that a product with a small
// sine can bring back into range.
double last_power(Val x) { return x.dtype() == DType::kF32 ? 88 : 709; }

// What is missing from a power of e whose exponent was cut at last_power: 1 if it was not.
Val missing_factor(Val exponent) { return exp(at_least(exponent - last_power(exponent), 0)); }

Val cut(Val exponent) {
  double t = last_power(exponent);
  return at_least(at_most(exponent, t), -t);
}

// A number of x's sign that no zero times it makes nan.
Val unit(Val x) { return where(is_nan(x), 1, at_least(at_most(x, 1), -1)); }

// sin(a + bi) = sin a cosh b + i cos a sinh b
Parts sine(Parts z) {
  auto [a, b] = z;
  Val rest = missing_factor(abs(b)), cosine = cos(a);
  Val re = sin(a) * cosh(cut(b)) * rest;
  Val im = cosine * sinh(cut(b)) * rest;
  Val stays = logical_and(is_nan(cosine), logical_or(is(b, 0), is_infinite(b)));
  return {select(is(a, 0), a, re), select(stays, b, im)};
}

// cos(a + bi) = cos a cosh b - i sin a sinh b
Parts cosine(Parts z) {
  auto [a, b] = z;
  Val rest = missing_factor(abs(b)), cosine = cos(a), sine = sin(a);
  Val re = cosine * cosh(cut(b)) * rest;
  Val im = sine * sinh(cut(b)) * rest;
  Val zero = logical_or(is(a, 0), is(b, 0));
  return {where(logical_and(is_infinite(b), is_nan(cosine)), kInf, re),
          -select(zero, unit(sine) * unit(b), im)};
}

// Whether the sign bit of a number is set.
Val is_below(Val x) { return lt(select(is(x, 0), 1.0 / x, x), scalar_like(x, 0)); }

Val with_sign_of(Val x, Val size) { return select(is_below(x), -abs(size), abs(size)); }

// Whether a part is nan and the other not infinite, so that nothing is known of most functions.
Val is_lost(Parts z) {
  return logical_or(logical_and(is_nan(z.re), logical_not(is_infinite(z.im))),
                    logical_and(is_nan(z.im), logical_not(is_infinite(z.re))));
}

// asinh(a + bi), of which asin has the parts. Its real part is odd in a.
Parts mend_inverse_sine(Parts z, Parts result) {
  auto [a, b] = z;
  Val lost = is_lost(z);
  return {where(lost, kNan, with_sign_of(a, result.re)),
          select(is(b, 0), b, where(lost, kNan, result.im))};
}

// atanh(a + bi), of which atan has the parts. Both are odd: the real part in a, the other in b.
Parts mend_inverse_tangent(Parts z, Parts result) {
  auto [a, b] = z;
  Val no_angle = logical_or(is_nan(b), logical_and(is_nan(a), logical_not(is_infinite(b))));
  Val re = select(logical_and(is(a, 0), is_nan(b)), a, with_sign_of(a, result.re));
  return {re, where(no_angle, kNan, with_sign_of(b, result.im))};
}

}  // namespace

EmitRule emit_by_parts(std::string hlo, Val (*rule)(Val z)) {
  return [hlo = std::move(hlo), rule](EmitCtx& c) {
    if (!is_complex(c.in_type(0)->dtype())) return emit_elementwise(c, hlo);
    emit_as(c, [&](const Vals& xs) { return rule(xs[0]); });
  };
}

EmitRule emit_mended(std::string hlo, Val (*rule)(Val z, Val result)) {
  return [hlo = std::move(hlo), rule](EmitCtx& c) {
    TypeRef in = c.in_type(0), out = c.out_type();
    if (!is_complex(in->dtype())) return emit_elementwise(c, hlo);
    GraphBuilder b;
    Value z = b.input(in), result = b.input(out);
    GraphRef graph = b.finish(Values{rule(Val{&b, z}, Val{&b, result}).value});
    std::string operand = c.in(0);
    std::string args[] = {operand, emit_op(c, hlo, {&operand, 1}, {&in, 1}, out)};
    c.set_out(0, c.inline_graph(*graph, args)[0]);
  };
}

Val complex_sin(Val z) { return whole(sine(parts(z))); }

Val complex_cos(Val z) { return whole(cosine(parts(z))); }

// sinh z = -i sin(iz), and sin(b + ai) has the parts of sin(iz) but for the sign of one.
Val complex_sinh(Val z) {
  auto [a, b] = parts(z);
  Parts turned = sine({b, a});
  return complex(turned.im, turned.re);
}

Val complex_cosh(Val z) {
  auto [a, b] = parts(z);
  Parts turned = cosine({b, a});
  return complex(turned.re, -turned.im);
}

// Parts of the size of the larger one have squares that neither overflow nor vanish. Where one part
// is infinite the other does not count; where both are, there is no direction.
Val complex_sign(Val z) {
  auto [a, b] = parts(z);
  Val size = max(abs(a), abs(b));
  Val zero = is(size, 0);
  size = where(zero, 1, size);
  auto scaled = [&](Val x) { return select(is_infinite(x), unit(x), x / size); };
  Val re = scaled(a), im = scaled(b);
  Val length = sqrt(square(re) + square(im));
  length = where(logical_and(is_infinite(a), is_infinite(b)), kNan, length);
  return complex(select(zero, a * 0.0, re / length), select(zero, b * 0.0, im / length));
}

Val complex_exp(Val z) {
  auto [a, b] = parts(z);
  Val power = exp(at_most(a, last_power(a))), rest = missing_factor(a), cosine = cos(b);
  Val re = power * cosine * rest;
  Val im = select(is(b, 0), b, power * sin(b) * rest);
  Val no_angle = is_nan(cosine);
  Val vanishes = logical_and(no_angle, is(a, -kInf));
  Val infinite = logical_and(no_angle, is(a, kInf));
  return complex(where(vanishes, 0, where(infinite, kInf, re)), where(vanishes, 0, im));
}

Val mend_tangent(Val z, Val result) {
  auto [a, b] = parts(z);
  // Machines that take subnormal numbers for zeros take them for equal to zero: b * 0 is the zero.
  return complex(select(is(a, 0), a, real(result)), select(is(b, 0), b * 0.0, imag(result)));
}

// At an infinity the standard of arrays in Python asks for a zero of the sign of the angle.
Val mend_tanh(Val z, Val result) {
  auto [a, b] = parts(z);
  Val mended = mend_tangent(z, result);
  Val is_flat = logical_and(is_infinite(a), is(b * 0.0, 0));
  return complex(real(mended), select(is_flat, b * 0.0, imag(mended)));
}

Val mend_log(Val z, Val result) {
  auto [a, b] = parts(z);
  Val infinite = logical_or(is_infinite(a), is_infinite(b));
  return complex(where(infinite, kInf, real(result)), imag(result));
}

// An exponent without an angle leaves a size alone, as in complex_exp.
Val mend_expm1(Val z, Val result) {
  auto [a, b] = parts(z);
  Val no_angle = is_nan(cos(b));
  Val vanishes = logical_and(no_angle, is(a, -kInf));
  Val infinite = logical_and(no_angle, is(a, kInf));
  return complex(where(vanishes, -1, where(infinite, kInf, real(result))),
                 where(vanishes, 0, imag(result)));
}

Val mend_asinh(Val z, Val result) { return whole(mend_inverse_sine(parts(z), parts(result))); }

Val mend_asin(Val z, Val result) {
  auto [a, b] = parts(z);
  auto [im, re] = mend_inverse_sine({b, a}, {imag(result), real(result)});
  return complex(re, im);
}

Val mend_acos(Val z, Val result) {
  auto [a, b] = parts(z);
  Val lost = is_lost({a, b}), upright = logical_and(is(a, 0), is_nan(b));
  return complex(where(upright, kHalfPi, where(lost, kNan, real(result))),
                 where(lost, kNan, with_sign_of(-b, imag(result))));
}

Val mend_acosh(Val z, Val result) {
  auto [a, b] = parts(z);
  Val lost = is_lost({a, b}), upright = logical_and(is(a, 0), is_nan(b));
  return complex(where(lost, kNan, real(result)),
                 where(upright, kHalfPi, where(lost, kNan, with_sign_of(b, imag(result)))));
}

// atan z = -i atanh(iz)
Val mend_atan(Val z, Val result) {
  auto [a, b] = parts(z);
  auto [im, re] = mend_inverse_tangent({b, a}, {imag(result), real(result)});
  return complex(re, im);
}

Val mend_atanh(Val z, Val result) { return whole(mend_inverse_tangent(parts(z), parts(result))); }

// In the right half plane; the imaginary part has the sign of that of z.
Val mend_sqrt(Val z, Val result) {
  auto [a, b] = parts(z);
  Val endless = is_infinite(b);
  Val re = where(logical_or(endless, is(a, kInf)), kInf, real(result));
  Val im = where(logical_and(is(a, -kInf), is_nan(b)), kInf, abs(imag(result)));
  im = where(endless, kInf, im);
  Val zero = is(b, 0);
  Val signed_part = select(zero, 1.0 / b, b);
  Val below = lt(signed_part, scalar_like(b, 0));
  return complex(re, select(below, -im, im));
}

Val mend_abs(Val z, Val result) {
  auto [a, b] = parts(z);
  return where(logical_or(is_infinite(a), is_infinite(b)), kInf, result);
}

}  // namespace weft
