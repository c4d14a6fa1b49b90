// Changes of representation: dtype conversions, precision, and the parts of complex numbers.
#include <cmath>
#include <limits>

#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/elementwise/family.h"
#include "weft/registry.h"

namespace weft {

namespace {

// Bits of the mantissa with the hidden one, and the range of exponents, of the wider floats.
struct FloatRange {
  int mantissa;
  int max_exponent;
};
std::optional<FloatRange> float_range(DType d) {
  switch (d) {
    case DType::kBF16:
      return FloatRange{8, 127};
    case DType::kF16:
      return FloatRange{11, 15};
    case DType::kF32:
      return FloatRange{24, 127};
    case DType::kF64:
      return FloatRange{53, 1023};
    default:
      return std::nullopt;
  }
}

// Whether every value of `from` is a value of `to`.
bool is_lossless(DType from, DType to) {
  if (from == to || is_bool(from)) return true;
  if (is_complex(to)) return is_lossless(real_dtype(from), real_dtype(to));
  if (is_complex(from) || is_bool(to)) return false;
  int magnitude_bits = info(from).bits - (is_signed_int(from) ? 1 : 0);
  if (is_integer(from) && is_integer(to)) {
    if (is_signed_int(from) && is_unsigned_int(to)) return false;
    return magnitude_bits <= info(to).bits - (is_signed_int(to) ? 1 : 0);
  }
  std::optional<FloatRange> target = float_range(to);
  if (!target) return false;
  if (is_integer(from))
    return magnitude_bits <= target->mantissa && magnitude_bits <= target->max_exponent;
  std::optional<FloatRange> source = float_range(from);
  return source && source->mantissa <= target->mantissa &&
         source->max_exponent <= target->max_exponent;
}

// Whether x -> middle -> last gives what x -> last does. Out of range, integers wrap and floats
// saturate, so dropping a step that changes the kind needs care.
bool can_skip(DType from, DType middle, DType last) {
  if (!is_lossless(from, middle) || is_complex(middle)) return false;
  return kind(from) == kind(middle) || kind(middle) == kind(last) || is_lossless(from, last);
}

void emit_convert(EmitCtx& c) {
  TypeRef from = c.in_type(0);
  TypeRef to = c.out_type();
  std::string x = c.in(0);
  if (is_complex(from->dtype()) && !is_complex(to->dtype())) {
    TypeRef part = with_dtype(from, real_dtype(from->dtype()));
    x = emit_op(c, "stablehlo.real", {&x, 1}, {&from, 1}, part);
    from = part;
  }
  if (from == to) return c.set_out(0, x);
  if (is_float(from->dtype()) && info(from->dtype()).bits < 8 && is_integer(to->dtype())) {
    // XLA takes the largest number of a dtype without infinity for one.
    TypeRef wide = with_dtype(from, DType::kF32);
    x = emit_op(c, "stablehlo.convert", {&x, 1}, {&from, 1}, wide);
    from = wide;
  }
  if (is_bool(to->dtype())) {
    std::string zero = c.constant(make_literal(from->dtype(), int64_t{0}), from->shape());
    return c.set_out(0, emit_compare(c, "NE", x, zero, from));
  }
  c.set_out(0, emit_op(c, "stablehlo.convert", {&x, 1}, {&from, 1}, to));
}

void register_convert_element_type(OpRegistry& r) {
  OpDef op = unary(
      {.name = "convert_element_type",
       .doc = "Converts to another dtype, elementwise; floats are truncated to integers, and "
              "complex numbers lose their imaginary part.",
       .dtypes = kAnyDType,
       .jvp_kind = JvpKind::kCustom,
       .transpose =
           [](TransposeCtx& c) {
             TypeRef from = c.in_types[0], to = c.out_types[0];
             if (is_inexact(from->dtype()) && !is_inexact(to->dtype()))
               fail(ErrorKind::kNotImplemented, "[convert_element_type] is not linear from ", from,
                    " to ", to);
             c.add(0, convert(c.ct(), from->dtype()));
           },
       .fold = [](const FoldCtx& c) -> std::optional<Literal> {
         Literal x = c.xs[0];
         if (is_complex(x.dtype) && !is_complex(c.out)) x = convert(x, real_dtype(x.dtype));
         return convert(x, c.out);
       },
       .simplify = {{"convert_same", "convert(x) of the same dtype -> x",
                     [](SimplifyCtx& c) -> Vals {
                       return c.in_types[0] == c.out_types[0] ? Vals{c.x(0)} : Vals{};
                     }},
                    {"convert_convert", "convert(convert(x)) -> convert(x), if the first is exact",
                     [](SimplifyCtx& c) -> Vals {
                       Val x = c.operand_of<"convert_element_type">(c.x(0));
                       DType last = c.out_types[0]->dtype();
                       bool exact = x && can_skip(x.dtype(), c.x(0).dtype(), last);
                       return exact ? Vals{convert(x, last)} : Vals{};
                     }}},
       .attrs = {{"new_dtype", AttrType::kDType},
                 {"weak_type", AttrType::kBool, AttrSpec::kOptional, false}},
       .flops = 0});
  op.sums = Sums::kHandedOn;
  op.infer = [](const InferCtx& c) -> TypeRefs {
    TypeRef out = with_dtype(c.in(0), c.attr().dtype("new_dtype"));
    if (out != c.in(0) && (is_key(c.in(0)->dtype()) || is_key(out->dtype())))
      c.fail(ErrorKind::kDtype, "expected numbers or bools on both sides; got ", c.in(0), " to ",
             numpy_name(out->dtype()));
    return {out};
  };
  op.jvp = [](JvpCtx& c) -> Vals {
    DType to = c.out_types[0]->dtype();
    if (!is_inexact(to)) return {Val{}};
    return {convert(c.t(0), to)};
  };
  op.emit = emit_convert;
  r.add(std::move(op));
}

TypeRefs infer_bitcast(const InferCtx& c) {
  TypeRef x = c.in(0);
  DType to = c.attr().dtype("new_dtype");
  if (x->dtype() == to) return {x};
  auto is_plain = [](DType d) { return is_integer(d) || is_float(d); };
  // Keys and their words.
  bool of_key =
      (is_key(to) && x->dtype() == DType::kU32) || (is_key(x->dtype()) && to == DType::kU32);
  if (!of_key && (!is_plain(x->dtype()) || !is_plain(to))) {
    c.fail(ErrorKind::kDtype, "expected integer or float dtypes on both sides; got ", x, " to ",
           numpy_name(to));
  }
  Dims shape = x->shape();
  int from_bits = info(x->dtype()).bits;
  int to_bits = info(to).bits;
  if (from_bits > to_bits) shape.push_back(from_bits / to_bits);
  if (from_bits < to_bits) {
    if (shape.empty() || shape.back() != to_bits / from_bits) {
      c.fail(ErrorKind::kShape, "expected a last axis of size ", to_bits / from_bits,
             " to make one ", numpy_name(to), "; got ", x);
    }
    shape.pop_back();
  }
  return {make_type(to, shape)};
}

void register_bitcast(OpRegistry& r) {
  OpDef op = unary(
      {.name = "bitcast_convert_type",
       .doc = "Reads the bits as another dtype; a last axis is added or removed where the widths "
              "differ.",
       .hlo = "stablehlo.bitcast_convert",
       .dtypes = kAnyDType,
       .jvp_kind = JvpKind::kZero,
       .simplify = {{"bitcast_same", "bitcast(x) to the same dtype -> x",
                     [](SimplifyCtx& c) -> Vals {
                       return c.in_types[0] == c.out_types[0] ? Vals{c.x(0)} : Vals{};
                     }},
                    {"bitcast_bitcast", "bitcast(bitcast(x)) back to x's type -> x",
                     [](SimplifyCtx& c) -> Vals {
                       Val x = c.operand_of<"bitcast_convert_type">(c.x(0));
                       return x && x.type() == c.out_types[0] ? Vals{x} : Vals{};
                     },
                     Phase::kFinal}},
       .attrs = {{"new_dtype", AttrType::kDType}},
       .flops = 0});
  op.infer = infer_bitcast;
  op.place = [](PlaceCtx& c) {
    Dims to = kept_dims(c.in_types[0]->rank());
    if (c.out_types[0]->rank() < c.in_types[0]->rank()) to.back() = kWhole;
    place_dims(c, to);
  };
  op.batch = [](BatchCtx& c) {
    // The last axis may be consumed, and must not be the mapped one.
    bool keeps_axes = c.in_types[0]->rank() <= c.out_types[0]->rank();
    int dim = keeps_axes ? c.dim(0) : 0;
    bool is_minor = dim == c.in_types[0]->rank();
    if (is_minor && c.in_types[0]->rank() != c.out_types[0]->rank()) dim = 0;
    Val x = c.at(0, dim);
    c.apply({&x, 1}, c.attrs, dim);
  };
  op.emit = [](EmitCtx& c) {
    std::string x = c.in(0);
    TypeRef from = c.in_type(0);
    if (from == c.out_type()) return c.set_out(0, x);
    c.set_out(0, emit_op(c, "stablehlo.bitcast_convert", {&x, 1}, {&from, 1}, c.out_type()));
  };
  op.elementwise = false;  // widths may differ
  r.add(std::move(op));
}

void register_reduce_precision(OpRegistry& r) {
  OpDef op =
      unary({.name = "reduce_precision",
             .doc = "Rounds to a float format with fewer bits, in the same dtype.",
             .dtypes = kFloats,
             .attrs = {{"exponent_bits", AttrType::kInt}, {"mantissa_bits", AttrType::kInt}}});
  op.infer = [](const InferCtx& c) {
    int64_t exponent = c.attr().integer("exponent_bits");
    int64_t mantissa = c.attr().integer("mantissa_bits");
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();  // what StableHLO's text holds
    if (exponent < 1 || exponent > kMax || mantissa < 0 || mantissa > kMax) {
      c.fail(ErrorKind::kValue, "expected exponent_bits between 1 and ", kMax,
             " and mantissa_bits between 0 and ", kMax, "; got exponent_bits=", exponent,
             " and mantissa_bits=", mantissa);
    }
    return infer_elementwise(c, kFloats);
  };
  op.emit = [](EmitCtx& c) {
    c.set_out(0, c.line(cat("stablehlo.reduce_precision ", c.in(0), ", format = e",
                            c.attr().integer("exponent_bits"), "m",
                            c.attr().integer("mantissa_bits"), " : ", mlir_type(c.out_type()))));
  };
  r.add(linear(op, [](TransposeCtx& c) {
    Val ct = c.ct();
    c.add(0, apply(c.op, {&ct, 1}, c.attrs)[0]);
  }));
}

void register_copy(OpRegistry& r) {
  OpDef op = unary(
      {.name = "copy",
       .doc = "The same values.",
       .dtypes = kAnyElement,
       .fold = [](const FoldCtx& c) { return std::optional(c.xs[0]); },
       .simplify = {{"copy", "copy(x) -> x", [](SimplifyCtx& c) -> Vals { return {c.x(0)}; }}},
       .flops = 0});
  op.emit = [](EmitCtx& c) { c.set_out(0, c.in(0)); };
  r.add(linear(op, [](TransposeCtx& c) { c.add(0, c.ct()); }));

  OpDef stop =
      unary({.name = "stop_gradient",
             .doc = "The same values, taken as constant by derivatives.",
             .dtypes = kAnyElement,
             .fold = [](const FoldCtx& c) { return std::optional(c.xs[0]); },
             .simplify = {{"stop_gradient", "stop_gradient(x) -> x",
                           [](SimplifyCtx& c) -> Vals { return {c.x(0)}; }, Phase::kFinal}},
             .flops = 0});
  stop.emit = [](EmitCtx& c) { c.set_out(0, c.in(0)); };
  stop.sums = Sums::kHandedOn;
  r.add(zero_tangent(stop));
}

// The part of a complex number made by complex(re, im).
Vals if_part_of_complex(SimplifyCtx& c, size_t part) {
  Val x = c.operand_of<"complex">(c.x(0), part);
  return x ? replacement(c, x) : Vals{};
}

void register_parts(OpRegistry& r) {
  OpDef real_op = unary({.name = "real",
                         .doc = "The real part, elementwise.",
                         .hlo = "stablehlo.real",
                         .dtypes = kComplexes,
                         .result_dtype = real_dtype,
                         .fold = [](const FoldCtx& c) -> std::optional<Literal> {
                           return make_literal(c.out, c.xs[0].as_double());
                         },
                         .simplify = {{"real_complex", "real(complex(x, y)) -> x",
                                       [](SimplifyCtx& c) { return if_part_of_complex(c, 0); }}},
                         .flops = 0});
  r.add(
      linear(real_op, [](TransposeCtx& c) { c.add(0, complex(c.ct(), scalar_like(c.ct(), 0))); }));

  OpDef imag_op = unary({.name = "imag",
                         .doc = "The imaginary part, elementwise.",
                         .hlo = "stablehlo.imag",
                         .dtypes = kComplexes,
                         .result_dtype = real_dtype,
                         .fold = [](const FoldCtx& c) -> std::optional<Literal> {
                           return make_literal(c.out, c.xs[0].imag());
                         },
                         .simplify = {{"imag_complex", "imag(complex(x, y)) -> y",
                                       [](SimplifyCtx& c) { return if_part_of_complex(c, 1); }}},
                         .flops = 0});
  r.add(
      linear(imag_op, [](TransposeCtx& c) { c.add(0, complex(scalar_like(c.ct(), 0), -c.ct())); }));
}

void register_complex(OpRegistry& r) {
  OpDef op = binary({.name = "complex",
                     .doc = "x + iy, elementwise.",
                     .hlo = "stablehlo.complex",
                     .dtypes = kFloats,
                     .fold = [](const FoldCtx& c) -> std::optional<Literal> {
                       return make_literal(c.out, {c.xs[0].as_double(), c.xs[1].as_double()});
                     },
                     .simplify = {{"complex_of_parts", "complex(real(z), imag(z)) -> z",
                                   [](SimplifyCtx& c) -> Vals {
                                     Val z = c.operand_of<"real">(c.x(0));
                                     Val w = c.operand_of<"imag">(c.x(1));
                                     return z && w && z.value == w.value ? Vals{z} : Vals{};
                                   }}},
                     .flops = 0});
  op.infer = [](const InferCtx& c) {
    DType part = c.in(0)->dtype();
    if (part != DType::kF32 && part != DType::kF64)
      c.fail(ErrorKind::kDtype, "expected float32 or float64 parts; got ", c.in(0), ", ", c.in(1));
    return infer_elementwise(c, kFloats, complex_dtype);
  };
  op.emit = [](EmitCtx& c) {
    const Dims& shape = c.out_type()->shape();
    std::string re = c.in_as(0, shape);
    std::string im = c.in_as(1, shape);
    c.set_out(0, c.line(cat("stablehlo.complex ", re, ", ", im, " : ", mlir_type(c.out_type()))));
  };
  r.add(linear(op, [](TransposeCtx& c) {
    if (c.linear(0)) c.add(0, unbroadcast(real(c.ct()), c.in_types[0]));
    if (c.linear(1)) c.add(1, unbroadcast(imag(-c.ct()), c.in_types[1]));
  }));
}

void register_conj(OpRegistry& r) {
  OpDef op = unary({.name = "conj",
                    .doc = "The complex conjugate, elementwise; a real number becomes complex.",
                    .dtypes = kInexact,
                    .result_dtype = complex_dtype,
                    .fold = [](const FoldCtx& c) -> std::optional<Literal> {
                      const Literal& x = c.xs[0];
                      double imag = is_complex(x.dtype) ? -x.imag() : 0.0;
                      return make_literal(c.out, {x.as_double(), imag});
                    },
                    .simplify = {{"conj_conj", "conj(conj(z)) -> z",
                                  [](SimplifyCtx& c) -> Vals {
                                    // That of a real number has an imaginary part of -0.
                                    Val z = c.operand_of<"conj">(c.x(0));
                                    return z && is_complex(z.dtype()) ? Vals{z} : Vals{};
                                  }}},
                    .attrs = {{"input_dtype", AttrType::kDType, AttrSpec::kOptional}}});
  op.infer = [](const InferCtx& c) {
    if (is_float(c.in(0)->dtype()) && info(c.in(0)->dtype()).bits < 32)
      c.fail(ErrorKind::kDtype, "expected float32, float64 or complex; got ", c.in(0));
    return infer_elementwise(c, kInexact, complex_dtype);
  };
  op.decompose = [](RuleCtx& c) -> Vals {
    Val z = c.x(0);
    if (!is_complex(z.dtype())) return {convert(z, c.out_types[0]->dtype())};
    return {complex(real(z), -imag(z))};
  };
  r.add(linear(op, [](TransposeCtx& c) {
    bool is_real = !is_complex(c.in_types[0]->dtype());
    c.add(0, is_real ? convert(real(c.ct()), c.in_types[0]->dtype()) : conj(c.ct()));
  }));
}

}  // namespace

void register_convert(OpRegistry& r) {
  register_convert_element_type(r);
  register_bitcast(r);
  register_reduce_precision(r);
  register_copy(r);
  register_parts(r);
  register_complex(r);
  register_conj(r);
}

}  // namespace weft
