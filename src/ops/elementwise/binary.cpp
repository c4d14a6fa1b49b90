// Arithmetic on two operands, element by element: add .. nextafter.
//
// Rewrites keep every value, the sign of zeros included (a sum is -0 only if both operands are, so
// what may be left out of one is -0); which nan a nan is does not count.
#include <cmath>
#include <limits>

#include "ops/def/axes.h"
#include "ops/def/presets.h"
#include "ops/elementwise/choices.h"
#include "ops/elementwise/family.h"

namespace weft {

namespace {

// Towards zero.
Val truncated(Val x) { return select(lt(x, scalar_like(x, 0)), ceil(x), floor(x)); }

Vals jvp_add(JvpCtx& c) {
  Val sum = c.has_t(0) && c.has_t(1) ? c.t(0) + c.t(1) : c.has_t(0) ? c.t(0) : c.t(1);
  return {broadcast_to(sum, c.out_types[0]->shape())};
}

void transpose_add(TransposeCtx& c) {
  for (size_t i = 0; i < 2; ++i)
    if (c.linear(i)) c.add(i, unbroadcast(c.ct(), c.in_types[i]));
}

FoldRule fold_add() {
  return fold_real([](double x, double y) { return x + y; },
                   [](int64_t x, int64_t y) { return wrapped(bits(x) + bits(y)); });
}

void register_add(OpRegistry& r) {
  OpDef add_op = binary({.name = "add",
                         .doc = "x + y, elementwise.",
                         .hlo = "stablehlo.add",
                         .jvp_kind = JvpKind::kCustom,
                         .transpose = transpose_add,
                         .fold = fold_add(),
                         .simplify = {{"add_zero", "x + 0 -> x; -0 for floats",
                                       [](SimplifyCtx& c) -> Vals {
                                         Val x =
                                             c.beside([&](Val v) { return c.is_splat(v, -0.0); });
                                         return x ? replacement(c, x) : Vals{};
                                       }},
                                      {"add_neg", "x + (-y) -> x - y; (-x) + y -> y - x",
                                       [](SimplifyCtx& c) -> Vals {
                                         if (Val y = c.operand_of<"neg">(c.x(1)))
                                           return {c.x(0) - y};
                                         if (Val x = c.operand_of<"neg">(c.x(0)))
                                           return {c.x(1) - x};
                                         return {};
                                       }}},
                         .commutative = true});
  add_op.jvp = jvp_add;
  add_op.adds = true;
  r.add(std::move(add_op));

  OpDef accumulate =
      binary({.name = "add_any",
              .doc = "The sum of two cotangents.",
              .hlo = "stablehlo.add",
              .jvp_kind = JvpKind::kCustom,
              .transpose = transpose_add,
              .fold = fold_add(),
              .simplify = {{"add_any_zero", "add_any(x, 0) -> x: a cotangent of zero is none",
                            [](SimplifyCtx& c) -> Vals {
                              Val x = c.beside(
                                  [&](Val v) { return c.is_splat(v, 0) || c.is_splat(v, -0.0); });
                              return x ? replacement(c, x) : Vals{};
                            }},
                           {"add_any_add", "add_any(x, y) -> x + y",
                            [](SimplifyCtx& c) -> Vals { return {c.x(0) + c.x(1)}; }}},
              .commutative = true});
  accumulate.jvp = jvp_add;
  accumulate.adds = true;
  r.add(std::move(accumulate));
}

void register_sub(OpRegistry& r) {
  OpDef op =
      binary({.name = "sub",
              .doc = "x - y, elementwise.",
              .hlo = "stablehlo.subtract",
              .jvp_kind = JvpKind::kCustom,
              .transpose =
                  [](TransposeCtx& c) {
                    if (c.linear(0)) c.add(0, unbroadcast(c.ct(), c.in_types[0]));
                    if (c.linear(1)) c.add(1, unbroadcast(-c.ct(), c.in_types[1]));
                  },
              .fold = fold_real([](double x, double y) { return x - y; },
                                [](int64_t x, int64_t y) { return wrapped(bits(x) - bits(y)); }),
              .simplify = {{"sub_zero", "x - 0 -> x",
                            [](SimplifyCtx& c) -> Vals {
                              return c.is_splat(c.x(1), 0) ? replacement(c, c.x(0)) : Vals{};
                            }},
                           {"zero_sub", "0 - x -> -x; -0 for floats",
                            [](SimplifyCtx& c) -> Vals {
                              return c.is_splat(c.x(0), -0.0) ? replacement(c, -c.x(1)) : Vals{};
                            }},
                           {"sub_neg", "x - (-y) -> x + y",
                            [](SimplifyCtx& c) -> Vals {
                              Val y = c.operand_of<"neg">(c.x(1));
                              return y ? Vals{c.x(0) + y} : Vals{};
                            }},
                           {"sub_self", "x - x -> 0, integers only", [](SimplifyCtx& c) -> Vals {
                              bool exact =
                                  is_integer(c.x(0).dtype()) && c.x(0).value == c.x(1).value;
                              return exact ? Vals{full(c.b, c.out_types[0], 0)} : Vals{};
                            }}}});
  op.jvp = [](JvpCtx& c) -> Vals {
    Val difference = c.has_t(0) && c.has_t(1) ? c.t(0) - c.t(1) : c.has_t(0) ? c.t(0) : -c.t(1);
    return {broadcast_to(difference, c.out_types[0]->shape())};
  };
  r.add(std::move(op));
}

// The operand that is multiplied by a constant, if it is this one. The product of complex numbers
// has terms with the zero part of the constant, which decide over signs of zeros, and nan.
Val times(const SimplifyCtx& c, double constant) {
  if (is_complex(c.x(0).dtype())) return {};
  return c.beside([&](Val v) { return c.is_splat(v, constant); });
}

// The upper half of the bits of x * y. (XLA has an op for it, and no code for arrays of some
// shapes.)
Val upper_half(Val x, Val y) {
  DType own = x.dtype();
  DType wide = is_signed_int(own) ? DType::kI64 : DType::kU64;
  std::string_view shift = is_signed_int(own) ? "shift_right_arithmetic" : "shift_right_logical";
  auto shifted = [&](Val v, int bits) { return apply1(shift, {v, scalar_like(v, bits)}); };
  int width = info(own).bits;
  x = convert(x, wide);
  y = convert(y, wide);
  if (width <= 32) return convert(shifted(x * y, width), own);
  // Halves of 32 bits, as in Warren, Hacker's Delight, section 8-2.
  auto low = [&](Val v) { return logical_and(v, scalar_like(v, 0xFFFFFFFF)); };
  Val x0 = low(x), x1 = shifted(x, 32), y0 = low(y), y1 = shifted(y, 32);
  Val carry = apply1("shift_right_logical", {x0 * y0, scalar_like(x, 32)});
  Val middle = x1 * y0 + carry;
  return x1 * y1 + shifted(middle, 32) + shifted(x0 * y1 + low(middle), 32);
}

void register_mul(OpRegistry& r) {
  auto product_with = [](size_t other) -> JvpArgRule {
    return [other](const JvpArgCtx& c) { return c.t() * c.x(other); };
  };
  OpDef mulhi =
      binary({.name = "mulhi",
              .doc = "The upper half of the bits of x * y, elementwise.",
              .hlo = "",
              .dtypes = kInts,
              .jvp_kind = JvpKind::kZero,
              .fold = [](const FoldCtx& c) -> std::optional<Literal> {
                int width = info(c.out).bits;
                if (width > 32) return std::nullopt;
                if (is_signed_int(c.out))
                  return make_literal(c.out, c.xs[0].as_int() * c.xs[1].as_int() >> width);
                return make_literal(c.out, static_cast<int64_t>(c.xs[0].lo * c.xs[1].lo >> width));
              },
              .commutative = true});
  mulhi.decompose = [](RuleCtx& c) { return Vals{upper_half(c.x(0), c.x(1))}; };
  r.add(std::move(mulhi));
  OpDef mul_op =
      binary({.name = "mul",
              .doc = "x * y, elementwise.",
              .hlo = "stablehlo.multiply",
              .jvp = {product_with(1), product_with(0)},
              .transpose =
                  [](TransposeCtx& c) {
                    size_t i = c.linear(0) ? 0 : 1;
                    c.add(i, unbroadcast(c.ct() * c.x(1 - i), c.in_types[i]));
                  },
              .fold = fold_real([](double x, double y) { return x * y; },
                                [](int64_t x, int64_t y) { return wrapped(bits(x) * bits(y)); }),
              .simplify = {{"mul_one", "x * 1 -> x",
                            [](SimplifyCtx& c) -> Vals {
                              Val x = times(c, 1);
                              return x ? replacement(c, x) : Vals{};
                            }},
                           {"mul_minus_one", "x * -1 -> -x",
                            [](SimplifyCtx& c) -> Vals {
                              Val x = times(c, -1);
                              return x ? replacement(c, -x) : Vals{};
                            }},
                           {"mul_zero", "x * 0 -> 0, integers only",
                            [](SimplifyCtx& c) -> Vals {
                              bool zero = c.is_splat(c.x(0), 0) || c.is_splat(c.x(1), 0);
                              bool exact = zero && is_integer(c.x(0).dtype());
                              return exact ? Vals{full(c.b, c.out_types[0], 0)} : Vals{};
                            }},
                           {"mul_neg_neg", "(-x) * (-y) -> x * y",
                            [](SimplifyCtx& c) -> Vals {
                              Val x = c.operand_of<"neg">(c.x(0));
                              Val y = c.operand_of<"neg">(c.x(1));
                              return x && y ? Vals{x * y} : Vals{};
                            }}},
              .commutative = true});
  mul_op.sums = Sums::kOfProduct;
  r.add(std::move(mul_op));
}

// 1/c if c is a power of two whose inverse is a normal number of every dtype from f16 up.
std::optional<double> exact_inverse(const Literal& c) {
  if (!is_float(c.dtype) || info(c.dtype).bits < 16) return std::nullopt;
  int exponent;
  double fraction = std::frexp(c.as_double(), &exponent);
  if (std::fabs(fraction) != 0.5 || std::abs(exponent) > 14) return std::nullopt;
  return 1 / c.as_double();
}

// Whole numbers: truncated. By zero: all bits set, and the remainder is x; -1 may overflow and
// wraps. So XLA computes at run time.
std::optional<Literal> fold_quotient(const FoldCtx& c, bool remainder) {
  const Literal& x = c.xs[0];
  const Literal& y = c.xs[1];
  if (is_float(c.out)) {
    double a = x.as_double(), b = y.as_double();
    return make_literal(c.out, remainder ? std::fmod(a, b) : a / b);
  }
  if (!is_integer(c.out)) return std::nullopt;
  if (y.lo == 0) return remainder ? x : make_literal(c.out, int64_t{-1});
  if (is_unsigned_int(c.out))
    return make_literal(c.out, wrapped(remainder ? x.lo % y.lo : x.lo / y.lo));
  if (y.as_int() == -1) return make_literal(c.out, remainder ? int64_t{0} : wrapped(0 - x.lo));
  return make_literal(c.out, remainder ? x.as_int() % y.as_int() : x.as_int() / y.as_int());
}

// XLA's own folding divides whole numbers on the machine that compiles, and a zero divisor ends the
// process. Constants become known in it in many ways, so the division that it sees never has one;
// code for CPUs and GPUs chooses another divisor in any case, and then does not do so twice.
void emit_quotient(EmitCtx& c, std::string_view hlo, bool remainder) {
  TypeRef type = c.out_type();
  const Literal* divisor = c.literal(1);
  if (!is_integer(type->dtype()) || (divisor && divisor->lo != 0)) return emit_elementwise(c, hlo);
  const Dims& shape = type->shape();
  auto number = [&](int64_t x) { return c.constant(make_literal(type->dtype(), x), shape); };
  std::string x = c.in_as(0, shape), y = c.in_as(1, shape);
  TypeRef mask = with_dtype(type, DType::kBool);
  std::string is_zero = emit_compare(c, "EQ", y, number(0), type);
  std::string operands[] = {x, emit_select(c, is_zero, mask, number(1), y, type)};
  TypeRef types[] = {type, type};
  std::string result = emit_op(c, hlo, operands, types, type);
  c.set_out(0, emit_select(c, is_zero, mask, remainder ? x : number(-1), result, type));
}

void register_div(OpRegistry& r) {
  OpDef div = binary(
      {.name = "div",
       .doc = "x / y, elementwise; whole numbers are divided towards zero.",
       .jvp = {[](const JvpArgCtx& c) { return c.t() / c.x(1); },
               [](const JvpArgCtx& c) { return c.t() * (-c.y() / c.x(1)); }},
       .transpose =
           [](TransposeCtx& c) {
             if (c.linear(1))
               fail(ErrorKind::kNotImplemented, "[div] is not linear in the divisor");
             c.add(0, unbroadcast(c.ct() / c.x(1), c.in_types[0]));
           },
       .fold = [](const FoldCtx& c) { return fold_quotient(c, /*remainder=*/false); },
       .simplify = {{"div_one", "x / 1 -> x",
                     [](SimplifyCtx& c) -> Vals {
                       bool exact = c.is_splat(c.x(1), 1) && !is_complex(c.x(0).dtype());
                       return exact ? replacement(c, c.x(0)) : Vals{};
                     }},
                    {"div_power_of_two", "x / 2**n -> x * 2**-n", [](SimplifyCtx& c) -> Vals {
                       std::optional<Literal> divisor = c.splat(c.x(1));
                       if (!divisor) return {};
                       std::optional<double> inverse = exact_inverse(*divisor);
                       return inverse ? replacement(c, c.x(0) * *inverse) : Vals{};
                     }}}});
  div.emit = [](EmitCtx& c) { emit_quotient(c, "stablehlo.divide", /*remainder=*/false); };
  div.check = [](CheckCtx& c) {
    if (!c.options.divisions) return;
    Val zero = eq(c.x(1), scalar_like(c.x(1), 0));
    if (zero.rank() > 0) zero = reduce_or(zero, count_up(zero.rank()));
    c.fail_if(CheckKind::kDivision, zero);
  };
  r.add(std::move(div));
  OpDef rem = binary(
      {.name = "rem",
       .doc = "The remainder of x / y rounded towards zero, elementwise; it has the sign of x.",
       .dtypes = kReals,
       .jvp = {[](const JvpArgCtx& c) { return c.t(); },
               [](const JvpArgCtx& c) { return c.t() * -truncated(c.x(0) / c.x(1)); }},
       .fold = [](const FoldCtx& c) { return fold_quotient(c, /*remainder=*/true); }});
  rem.emit = [](EmitCtx& c) { emit_quotient(c, "stablehlo.remainder", /*remainder=*/true); };
  r.add(std::move(rem));
}

// y - 1. Where y is 0 and 1/x or x is not finite, it is 0: the slope of x**0 is 0 there too. For
// all other x it stays y - 1 at y = 0, so that the slope can be differentiated by y.
Val slope_exponent(Val x, Val y) {
  const Literal* known = y.builder->as_literal(y.value);
  if (known && is_float(y.dtype()) && known->as_double() != 0)
    return scalar_like(y, known->as_double() - 1);
  Val flat = eq(y, scalar_like(y, 0));
  if (is_inexact(y.dtype()) && !known) {
    Val size = abs(x), infinite = scalar_like(size, std::numeric_limits<double>::infinity());
    Val is_usual = logical_and(lt(size, infinite), lt(1.0 / size, infinite));
    flat = logical_and(flat, logical_not(is_usual));
  }
  return select(flat, scalar_like(y, 0), y - 1);
}

TypeRefs infer_pow(const InferCtx& c) {
  DType base = c.in(0)->dtype();
  DType exponent = c.in(1)->dtype();
  if (!is_inexact(base))
    c.fail(ErrorKind::kDtype, "expected a float or complex base; got ", c.in(0));
  if (exponent != base && !is_integer(exponent)) {
    c.fail(ErrorKind::kDtype, "expected an exponent of the base's dtype or of an integer one; got ",
           c.in(0), ", ", c.in(1));
  }
  return {make_type(base, common_shape(c))};
}

// 0 to a power whose real part is positive is 0; XLA's own is nan if the zero has a sign.
std::string power_of_zero(EmitCtx& c, std::string base, std::string exponent, std::string power) {
  GraphBuilder b;
  auto input = [&] { return Val{&b, b.input(c.out_type())}; };
  Val x = input(), y = input(), given = input();
  Val zero = logical_and(eq(x, scalar_like(x, 0)), gt(real(y), scalar_like(real(y), 0)));
  Val lost = logical_and(zero, ne(given, given));
  GraphRef graph = b.finish(Values{select(lost, zeros_like(given), given).value});
  std::string args[] = {std::move(base), std::move(exponent), std::move(power)};
  return c.inline_graph(*graph, args)[0];
}

// x ** y, of |x| ** y: of numbers below 0, and of 0 ** 0, IREE 3.13 makes nan.
std::string power_of_sign(EmitCtx& c, std::string_view x, std::string_view y,
                          std::string_view power) {
  GraphBuilder b;
  Val in[3];
  for (Val& v : in) v = {&b, b.input(c.out_type())};
  auto number = [&](double value) { return full(b, c.out_type(), value); };
  Val zero = number(0), is_whole = eq(floor(in[1]), in[1]);
  Val is_odd = logical_and(is_whole, ne(floor(in[1] * 0.5) * 2.0, in[1]));
  // Also of -0.
  Val is_minus = logical_or(lt(in[0], zero), lt(1.0 / in[0], zero));
  Val is_nan =
      logical_and(logical_and(lt(in[0], zero), gt(in[0], number(-kInf))), logical_not(is_whole));
  Val signed_power = select(logical_and(is_minus, is_odd), -in[2], in[2]);
  Val power_of_number = select(is_nan, number(kNan), signed_power);
  Value result = select(eq(in[1], zero), number(1), power_of_number).value;
  std::string args[] = {std::string(x), std::string(y), std::string(power)};
  return c.inline_graph(*b.finish({&result, 1}), args)[0];
}

void emit_pow(EmitCtx& c) {
  const Dims& shape = c.out_type()->shape();
  std::string operands[] = {c.in_as(0, shape), c.in_as(1, shape)};
  TypeRef types[] = {c.out_type(), c.out_type()};
  TypeRef given = with_shape(c.in_type(1), shape);
  if (given != c.out_type())
    operands[1] = emit_op(c, "stablehlo.convert", {&operands[1], 1}, {&given, 1}, c.out_type());
  bool by_size = c.platform() == "iree" && is_float(c.out_type()->dtype());
  const std::string x = operands[0];
  if (by_size) operands[0] = emit_op(c, "stablehlo.abs", {&x, 1}, {types, 1}, c.out_type());
  std::string power = emit_op(c, "stablehlo.power", operands, types, c.out_type());
  if (by_size) power = power_of_sign(c, x, operands[1], power);
  if (is_complex(c.out_type()->dtype())) power = power_of_zero(c, operands[0], operands[1], power);
  c.set_out(0, power);
}

// x ** (k + 1/2) for k of -3 to 2, by a root and products or quotients: a sixth of the time. XLA
// does x ** 0.5 itself. From each factor to the next the magnitude moves away from 1, so none
// overflows before the result does. The error is at most 2.5 units in the last place.
Vals power_of_root(SimplifyCtx& c) {
  std::optional<Literal> exponent = c.splat(c.x(1));
  Val x = c.x(0);
  if (!exponent || (x.dtype() != DType::kF32 && x.dtype() != DType::kF64)) return {};
  double y = exponent->as_double();
  int twice = y == y && std::abs(y) < 3 ? static_cast<int>(2 * y) : 0;
  if (twice % 2 == 0 || twice == 1 || twice != 2 * y) return {};
  Val root = sqrt(x), power = root;
  if (twice == -1) power = 1.0 / root;
  if (twice < -1) power = 1.0 / x / root;
  if (twice == -5) power = power / x;
  if (twice > 1) power = x * root;
  if (twice == 5) power = power * x;
  // The root of -0 has a sign, that of -infinity is nan.
  Val size = y < 0 ? 1.0 / abs(x) : abs(x);
  Val zero = scalar_like(x, 0), lowest = scalar_like(x, -std::numeric_limits<double>::infinity());
  Val is_limit = logical_or(eq(x, zero), eq(x, lowest));
  return replacement(c, select(is_limit, size, power));
}

void register_pow(OpRegistry& r) {
  OpDef op = binary(
      {.name = "pow",
       .doc = "x raised to the power y, elementwise; y may be of an integer dtype.",
       .jvp = {[](const JvpArgCtx& c) {
                 Val y = c.x(1);
                 return c.t() *
                        (convert(y, c.y().dtype()) * pow(c.x(0), slope_exponent(c.x(0), y)));
               },
               [](const JvpArgCtx& c) {
                 // log(0) times a zero power would be nan.
                 Val x = c.x(0);
                 Val safe = select(eq(x, scalar_like(x, 0)), scalar_like(x, 1), x);
                 return c.t() * (log(safe) * c.y());
               }},
       .simplify = {{"pow_zero", "x ** 0 -> 1",
                     [](SimplifyCtx& c) -> Vals {
                       if (!c.is_splat(c.x(1), 0)) return {};
                       return {full(c.b, c.out_types[0], 1)};
                     }},
                    {"pow_one", "x ** 1 -> x",
                     [](SimplifyCtx& c) -> Vals {
                       return c.is_splat(c.x(1), 1) ? replacement(c, c.x(0)) : Vals{};
                     }},
                    {"pow_two", "x ** 2 -> square(x)",
                     [](SimplifyCtx& c) -> Vals {
                       return c.is_splat(c.x(1), 2) ? replacement(c, square(c.x(0))) : Vals{};
                     }},
                    {"pow_minus_one", "x ** -1 -> 1 / x",
                     [](SimplifyCtx& c) -> Vals {
                       bool exact = c.is_splat(c.x(1), -1) && !is_complex(c.x(0).dtype());
                       return exact ? replacement(c, 1.0 / c.x(0)) : Vals{};
                     }},
                    {"pow_half", "x ** 1.5 -> x * sqrt(x), and so on", power_of_root,
                     Phase::kFinal}},
       .transcendental = true});
  op.infer = infer_pow;
  op.emit = emit_pow;
  r.add(std::move(op));
}

// The gradient goes to the operand that was chosen, half to each where they are equal.
JvpArgRule chosen(size_t other) {
  return [other](const JvpArgCtx& c) {
    Val x = c.x(c.arg);
    auto number = [&](double value) { return scalar_like(x, value); };
    Val share = select(eq(x, c.x(other)), number(0.5), number(1));
    return select(eq(x, c.y()), c.t() * share, number(0));
  };
}

// Complex numbers are ordered by real, then by imaginary part.
void emit_extremum(EmitCtx& c, std::string_view hlo, std::string_view direction) {
  if (!is_complex(c.in_type(0)->dtype())) return emit_elementwise(c, hlo);
  TypeRef type = c.out_type();
  TypeRef part = with_dtype(type, real_dtype(type->dtype()));
  TypeRef mask = with_dtype(type, DType::kBool);
  std::string x = c.in_as(0, type->shape());
  std::string y = c.in_as(1, type->shape());
  auto part_of = [&](std::string_view op, const std::string& z) {
    return emit_op(c, op, {&z, 1}, {&type, 1}, part);
  };
  std::string x_re = part_of("stablehlo.real", x), y_re = part_of("stablehlo.real", y);
  std::string x_im = part_of("stablehlo.imag", x), y_im = part_of("stablehlo.imag", y);
  std::string equal = emit_compare(c, "EQ", x_re, y_re, part);
  std::string by_real = emit_compare(c, direction, x_re, y_re, part);
  std::string by_imag = emit_compare(c, direction, x_im, y_im, part);
  std::string first = emit_select(c, equal, mask, by_imag, by_real, mask);
  c.set_out(0, emit_select(c, first, mask, x, y, type));
}

std::optional<Literal> fold_extremum(const FoldCtx& c, bool largest) {
  if (is_complex(c.out)) return std::nullopt;
  return extremum(c.xs[0], c.xs[1], largest);
}

void register_extrema(OpRegistry& r) {
  auto extremum = [&](const char* name, const char* doc, std::string hlo, std::string direction,
                      bool largest) {
    OpDef op = binary({.name = name,
                       .doc = doc,
                       .dtypes = kAnyDType,
                       .jvp = {chosen(1), chosen(0)},
                       .fold = [largest](const FoldCtx& c) { return fold_extremum(c, largest); },
                       .simplify = {{cat(name, "_self"), cat(name, "(x, x) -> x"),
                                     [](SimplifyCtx& c) -> Vals {
                                       return c.x(0).value == c.x(1).value ? replacement(c, c.x(0))
                                                                           : Vals{};
                                     }}},
                       .commutative = true});
    op.emit = [hlo, direction](EmitCtx& c) { emit_extremum(c, hlo, direction); };
    r.add(std::move(op));
  };
  extremum("max", "The larger of x and y, elementwise; nan if either is nan.", "stablehlo.maximum",
           "GT", true);
  extremum("min", "The smaller of x and y, elementwise; nan if either is nan.", "stablehlo.minimum",
           "LT", false);
}

// The neighbour of a normal number, unless it is not normal itself: platforms flush such numbers.
std::optional<Literal> fold_nextafter(const FoldCtx& c) {
  double x = c.xs[0].as_double(), y = c.xs[1].as_double();
  if (std::isnan(y)) return std::nullopt;
  if (c.out == DType::kF64 && std::isnormal(x)) {
    double next = std::nextafter(x, y);
    if (std::isnormal(next)) return make_literal(c.out, next);
  }
  if (c.out == DType::kF32 && std::isnormal(x)) {
    float next = std::nextafter(static_cast<float>(x), static_cast<float>(y));
    if (std::isnormal(next)) return make_literal(c.out, static_cast<double>(next));
  }
  return std::nullopt;
}

void register_other_binary(OpRegistry& r) {
  r.add(binary({.name = "atan2",
                .doc = "The angle of the point (y, x), elementwise: atan(x0 / x1) by quadrant.",
                .hlo = "stablehlo.atan2",
                .dtypes = kInexact,
                .jvp = {[](const JvpArgCtx& c) {
                          return c.t() * (c.x(1) / (square(c.x(0)) + square(c.x(1))));
                        },
                        [](const JvpArgCtx& c) {
                          return c.t() * (-c.x(0) / (square(c.x(0)) + square(c.x(1))));
                        }},
                .transcendental = true}));
  r.add(binary({.name = "nextafter",
                .doc = "The next representable number after x towards y, elementwise.",
                .hlo = "chlo.next_after",
                .dtypes = kFloats,
                .jvp = {no_derivative("nextafter", "x"), no_derivative("nextafter", "y")},
                .fold = fold_nextafter}));
}

}  // namespace

void register_binary(OpRegistry& r) {
  register_add(r);
  register_sub(r);
  register_mul(r);
  register_div(r);
  register_pow(r);
  register_extrema(r);
  register_other_binary(r);
}

}  // namespace weft
