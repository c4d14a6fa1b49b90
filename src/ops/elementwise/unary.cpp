// Arithmetic on one operand, element by element: signs, rounding, roots and whole powers.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/def/presets.h"
#include "ops/elementwise/accuracy.h"
#include "ops/elementwise/complex_functions.h"
#include "ops/elementwise/family.h"
#include "ops/elementwise/real_functions.h"

namespace weft {

namespace {

// f applied to float operands only.
FoldRule fold_float(double (*f)(double, double)) { return fold_real(f, nullptr); }

// f(x) in place of what is made of inner(x).
template <OpName inner>
Vals if_nested(SimplifyCtx& c, Val (*f)(Val)) {
  Val x = c.operand_of<inner>(c.x(0));
  return x ? replacement(c, f(x)) : Vals{};
}

Val same(Val x) { return x; }

// The derivative of z/|z| turns the number and does not stretch it; 0 at z = 0.
Vals jvp_sign(JvpCtx& c) {
  Val x = c.x(0);
  if (!is_complex(x.dtype())) return {Val{}};
  Val length = abs(x);
  Val at_zero = eq(length, scalar_like(length, 0));
  Val safe = select(at_zero, scalar_like(length, 1), length);
  Val inverse = select(at_zero, scalar_like(length, 0), 1.0 / safe);
  auto to_complex = [&](Val v) { return convert(v, x.dtype()); };
  Val stretch = c.y() * to_complex(real(c.t(0) * conj(c.y())));
  return {(c.t(0) - stretch) * to_complex(inverse)};
}

void register_sign_ops(OpRegistry& r) {
  OpDef neg_op = unary({.name = "neg",
                        .doc = "Negation, elementwise.",
                        .hlo = "stablehlo.negate",
                        .fold = fold_real([](double x, double) { return -x; },
                                          [](int64_t x, int64_t) { return wrapped(0 - bits(x)); }),
                        .simplify = {{"neg_neg", "-(-x) -> x",
                                      [](SimplifyCtx& c) { return if_nested<"neg">(c, same); }}}});
  r.add(linear(neg_op, [](TransposeCtx& c) { c.add(0, -c.ct()); }));

  OpDef sign_op = unary({.name = "sign",
                         .doc = "-1, 0 or 1 by sign; x/|x| for complex numbers; nan for nan.",
                         .jvp_kind = JvpKind::kCustom,
                         .fold = [](const FoldCtx& c) -> std::optional<Literal> {
                           const Literal& x = c.xs[0];
                           if (is_complex(c.out)) return std::nullopt;
                           if (is_float(c.out)) {
                             double v = x.as_double();
                             return make_literal(c.out, v > 0 ? 1.0 : v < 0 ? -1.0 : v);
                           }
                           bool negative = is_signed_int(c.out) && x.as_int() < 0;
                           return make_literal(c.out, int64_t{negative ? -1 : x.lo != 0});
                         }});
  sign_op.jvp = jvp_sign;
  sign_op.emit = [](EmitCtx& c) {
    TypeRef type = c.in_type(0);
    if (is_complex(type->dtype()))
      return emit_as(c, [](const Vals& operands) { return complex_sign(operands[0]); });
    if (!is_unsigned_int(type->dtype())) return emit_elementwise(c, "stablehlo.sign");
    std::string zero = c.constant(make_literal(type->dtype(), int64_t{0}), type->shape());
    std::string nonzero = emit_compare(c, "NE", c.in(0), zero, type);
    TypeRef nonzero_type = with_dtype(type, DType::kBool);
    c.set_out(0, emit_op(c, "stablehlo.convert", {&nonzero, 1}, {&nonzero_type, 1}, type));
  };
  r.add(std::move(sign_op));

  OpDef abs_op = unary(
      {.name = "abs",
       .doc = "Absolute value, elementwise; the modulus of complex numbers.",
       .dtypes = static_cast<DTypeSet>(kSignedInts | kInexact),
       .result_dtype = real_dtype,
       .jvp = {[](const JvpArgCtx& c) {
         Val x = c.x(0);
         if (!is_complex(x.dtype())) {
           Val slope = select(ge(x, scalar_like(x, 0)), scalar_like(x, 1), scalar_like(x, -1));
           return c.t() * slope;
         }
         // d|z| = Re(dz conj(z) / |z|), and 0 at z = 0.
         return real(c.t() * conj(sign(x)));
       }},
       .fold = fold_real([](double x, double) { return std::fabs(x); },
                         [](int64_t x, int64_t) { return x < 0 ? wrapped(0 - bits(x)) : x; }),
       .simplify = {{"abs_abs", "abs(abs(x)) -> abs(x)",
                     [](SimplifyCtx& c) { return if_nested<"abs">(c, abs); }},
                    {"abs_neg", "abs(-x) -> abs(x)",
                     [](SimplifyCtx& c) { return if_nested<"neg">(c, abs); }, Phase::kFinal}}});
  abs_op.emit = emit_mended("stablehlo.abs", mend_abs);
  r.add(std::move(abs_op));
}

void register_rounding(OpRegistry& r) {
  r.add(unary({.name = "floor",
               .doc = "The largest whole number not above x, elementwise.",
               .hlo = "stablehlo.floor",
               .dtypes = kFloats,
               .jvp_kind = JvpKind::kZero,
               .fold = fold_float([](double x, double) { return std::floor(x); }),
               .simplify = {{"floor_floor", "floor(floor(x)) -> floor(x)",
                             [](SimplifyCtx& c) { return if_nested<"floor">(c, floor); }}}}));
  r.add(unary({.name = "ceil",
               .doc = "The smallest whole number not below x, elementwise.",
               .hlo = "stablehlo.ceil",
               .dtypes = kFloats,
               .jvp_kind = JvpKind::kZero,
               .fold = fold_float([](double x, double) { return std::ceil(x); }),
               .simplify = {{"ceil_ceil", "ceil(ceil(x)) -> ceil(x)",
                             [](SimplifyCtx& c) { return if_nested<"ceil">(c, ceil); }}}}));

  OpDef round_op = unary(
      {.name = "round",
       .doc = "The nearest whole number; halfway cases go away from zero (rounding_method 0) or to "
              "the even one (1).",
       .dtypes = kFloats,
       .jvp_kind = JvpKind::kZero,
       .fold = [](const FoldCtx& c) -> std::optional<Literal> {
         double x = c.xs[0].as_double();
         bool to_even = c.attrs->integer("rounding_method") == 1;
         return make_literal(c.out, to_even ? std::nearbyint(x) : std::round(x));
       },
       .attrs = {{"rounding_method", AttrType::kInt}}});
  round_op.infer = [](const InferCtx& c) {
    int64_t method = c.attr().integer("rounding_method");
    if (method != 0 && method != 1)
      c.fail(ErrorKind::kValue, "expected rounding_method 0 or 1; got ", method);
    return infer_elementwise(c, kFloats);
  };
  round_op.emit = [](EmitCtx& c) {
    emit_elementwise(c, c.attr().integer("rounding_method") == 1 ? "stablehlo.round_nearest_even"
                                                                 : "stablehlo.round_nearest_afz");
  };
  r.add(std::move(round_op));

  r.add(unary({.name = "is_finite",
               .doc = "Whether x is neither infinite nor nan, elementwise.",
               .hlo = "stablehlo.is_finite",
               .dtypes = kFloats,
               .result_dtype = [](DType) { return DType::kBool; },
               .jvp_kind = JvpKind::kZero,
               .fold = [](const FoldCtx& c) -> std::optional<Literal> {
                 return make_literal(c.out, int64_t{std::isfinite(c.xs[0].as_double())});
               }}));
}

void register_roots(OpRegistry& r) {
  OpDef sqrt_op = unary({.name = "sqrt",
                         .doc = "Square root, elementwise.",
                         .dtypes = kInexact,
                         .jvp = {[](const JvpArgCtx& c) { return c.t() * (0.5 / c.y()); }},
                         .fold = fold_float([](double x, double) { return std::sqrt(x); })});
  sqrt_op.emit = emit_mended("stablehlo.sqrt", mend_sqrt);
  r.add(with_accuracy(std::move(sqrt_op), "stablehlo.sqrt"));
  OpDef rsqrt_op =
      unary({.name = "rsqrt",
             .doc = "1 / sqrt(x), elementwise.",
             .hlo = "stablehlo.rsqrt",
             .dtypes = kInexact,
             .jvp = {[](const JvpArgCtx& c) { return c.t() * (-0.5 * c.y() / c.x(0)); }}});
  r.add(with_accuracy(std::move(rsqrt_op), "stablehlo.rsqrt"));
  OpDef cbrt_op =
      unary({.name = "cbrt",
             .doc = "Cube root, elementwise.",
             .dtypes = kFloats,
             .jvp = {[](const JvpArgCtx& c) { return c.t() * ((1.0 / 3) * square(1.0 / c.y())); }},
             .transcendental = true});
  cbrt_op.emit = emit_real("", real_cbrt, nullptr);
  r.add(with_accuracy(std::move(cbrt_op), "stablehlo.cbrt"));
}

Val power(Val x, uint64_t n) {
  Val result;
  for (Val factor = x; n > 0; n >>= 1) {
    if (n & 1) result = result ? result * factor : factor;
    if (n > 1) factor = factor * factor;
  }
  return result;
}

void register_powers(OpRegistry& r) {
  OpDef square_op =
      unary({.name = "square",
             .doc = "x * x, elementwise.",
             .jvp = {[](const JvpArgCtx& c) { return c.t() * (2.0 * c.x(0)); }},
             .fold = fold_real([](double x, double) { return x * x; },
                               [](int64_t x, int64_t) { return wrapped(bits(x) * bits(x)); }),
             .simplify = {{"square_neg", "square(-x) -> square(x)",
                           [](SimplifyCtx& c) { return if_nested<"neg">(c, square); }}}});
  square_op.emit = [](EmitCtx& c) {
    if (is_complex(c.in_type(0)->dtype())) return emit_elementwise(c, "chlo.square");
    std::string x = c.in(0);
    std::string operands[] = {x, x};
    TypeRef types[] = {c.out_type(), c.out_type()};
    c.set_out(0, emit_op(c, "stablehlo.multiply", operands, types, c.out_type()));
  };
  r.add(std::move(square_op));

  OpDef op = unary({.name = "integer_pow",
                    .doc = "x raised to a fixed whole power, elementwise, by repeated squaring.",
                    .jvp = {[](const JvpArgCtx& c) {
                      int64_t n = c.attr().integer("y");
                      if (n == 0) return zeros_like(c.t());
                      // The lowest power stands for the one below it, too.
                      int64_t below = std::max(n, std::numeric_limits<int64_t>::min() + 1) - 1;
                      return c.t() * (static_cast<double>(n) * integer_pow(c.x(0), below));
                    }},
                    .simplify = {{"integer_pow_zero", "x ** 0 -> 1",
                                  [](SimplifyCtx& c) -> Vals {
                                    if (c.attr().integer("y") != 0) return {};
                                    return {full(c.b, c.out_types[0], 1)};
                                  }},
                                 {"integer_pow_one", "x ** 1 -> x",
                                  [](SimplifyCtx& c) -> Vals {
                                    if (c.attr().integer("y") != 1) return {};
                                    return {c.x(0)};
                                  }},
                                 {"integer_pow_two", "x ** 2 -> square(x), not of complex numbers",
                                  [](SimplifyCtx& c) -> Vals {
                                    if (c.attr().integer("y") != 2 || is_complex(c.x(0).dtype()))
                                      return {};
                                    return {square(c.x(0))};
                                  }}},
                    .attrs = {{"y", AttrType::kInt}}});
  op.infer = [](const InferCtx& c) {
    TypeRefs out = infer_elementwise(c, kNumbers);
    int64_t y = c.attr().integer("y");
    if (y < 0 && is_integer(out[0]->dtype()))
      c.fail(ErrorKind::kDtype, "expected a float or complex base for power ", y, "; got ",
             c.in(0));
    return out;
  };
  op.decompose = [](RuleCtx& c) -> Vals {
    int64_t n = c.attr().integer("y");
    if (n == 0) return {full(c.b, c.out_types[0], 1)};
    Val result = power(c.x(0), n < 0 ? 0 - bits(n) : bits(n));
    return {n < 0 ? 1.0 / result : result};
  };
  op.cost = [](const CostCtx& c) {
    int64_t n = c.attrs->integer("y");
    uint64_t m = n < 0 ? 0 - bits(n) : bits(n);
    // Squarings, products of those that are needed, and the reciprocal.
    int products = m == 0 ? 0 : std::bit_width(m) + std::popcount(m) - 2;
    return cost_elementwise(c, products + (n < 0), false);
  };
  r.add(std::move(op));
}

}  // namespace

void register_unary(OpRegistry& r) {
  register_sign_ops(r);
  register_rounding(r);
  register_roots(r);
  register_powers(r);
}

}  // namespace weft
