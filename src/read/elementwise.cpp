// Element-wise ops. Constants of one element stay scalars beside arrays.
#include <limits>

#include "read/op_text.h"
#include "weft/registry.h"

namespace weft::reader {

namespace {

// Operands, of which at least one is an array as it is kept, if the result is an array.
Vals beside_arrays(const OpText& op) {
  Vals xs;
  bool any_array = false;
  for (size_t i = 0; i < op.size(); ++i) {
    if (op.in_type(i)->rank() > 0 && !op.is_splat(i)) any_array = true;
    xs.push_back(op.raw(i));
  }
  if (!any_array && !xs.empty()) xs[0] = op.x(0);
  return xs;
}

void check_alike(const OpText& op) {
  for (size_t i = 1; i < op.size(); ++i)
    if (op.in_type(i) != op.in_type(0))
      op.fail("expected operands of one type; got ", op.in_type(0), " and ", op.in_type(i));
}

template <OpName name>
void unary(OpText& op) {
  op.expect_operands(1);
  static const AttrsRef attrs =
      AttrRecord::make(op_named<name>().name, op_named<name>().attrs, std::span<const NamedAttr>());
  op.result(weft::apply(op_named<name>(), Vals{op.x(0)}, attrs)[0]);
}

// Functions that may be asked for in some accuracy.
template <OpName name>
void graded(OpText& op) {
  std::optional<std::string_view> asked = op.find("result_accuracy");
  if (!asked || asked->find("HIGHEST") == asked->npos) return unary<name>(op);
  op.expect_operands(1);
  op.result(weft::apply1(name.text, {op.x(0)}, {{"accuracy", std::string("HIGHEST")}}));
}

template <OpName name>
void binary(OpText& op) {
  op.expect_operands(2);
  check_alike(op);
  op.result(weft::apply(op_named<name>(), beside_arrays(op), nullptr)[0]);
}

// Arithmetic of bools is that of one bit.
template <OpName name, OpName of_bools>
void arithmetic(OpText& op) {
  op.expect_operands(2);
  is_bool(op.in_type(0)->dtype()) ? binary<of_bools>(op) : binary<name>(op);
}

// CHLO's forms with operands of several shapes.
template <Rule rule>
void broadcasting(OpText& op) {
  const Dims& shape = op.out_type()->shape();
  for (size_t i = 0; i < op.size(); ++i) {
    TypeRef type = op.in_type(i);
    if (type->shape() == shape) continue;
    Dims axes;
    if (op.find("broadcast_dimensions")) {
      axes = type->rank() == 0 ? Dims() : op.ints({"broadcast_dimensions"});
    } else {
      for (int j = 0; j < type->rank(); ++j)
        axes.push_back(static_cast<int64_t>(shape.size()) - type->rank() + j);
    }
    Val x = broadcast_in_dim(op.x(i), shape, axes);
    op.operands[i] = {x.value, x.type()};
  }
  rule(op);
}

void round_away(OpText& op) {
  op.expect_operands(1);
  op.result(apply1("round", {op.x(0)}, {{"rounding_method", int64_t{0}}}));
}

void round_to_even(OpText& op) {
  op.expect_operands(1);
  op.result(apply1("round", {op.x(0)}, {{"rounding_method", int64_t{1}}}));
}

void negate(OpText& op) {
  op.expect_operands(1);
  is_bool(op.in_type(0)->dtype()) ? op.result(op.x(0)) : unary<"neg">(op);
}

void real_part(OpText& op) {
  op.expect_operands(1);
  is_complex(op.in_type(0)->dtype()) ? unary<"real">(op) : op.result(op.x(0));
}

void imaginary_part(OpText& op) {
  op.expect_operands(1);
  is_complex(op.in_type(0)->dtype()) ? unary<"imag">(op) : op.result(zeros_like(op.x(0)));
}

void conjugate(OpText& op) {
  op.expect_operands(1);
  op.result(is_complex(op.in_type(0)->dtype()) ? conj(op.x(0)) : op.x(0));
}

void compare(OpText& op) {
  op.expect_operands(2);
  check_alike(op);
  std::string_view direction = op.keyword({"comparison_direction"});
  std::string_view type = op.find("comparison_direction") ? op.keyword({"compare_type"})
                                                          : op.keyword({"compare_type"}, 1);
  bool total = type == "TOTALORDER" && is_float(op.in_type(0)->dtype());
  Vals xs = beside_arrays(op);
  auto is = [&](std::string_view name) { return direction == name; };
  auto made = [&](std::string_view name, bool turned = false) {
    if (turned) std::swap(xs[0], xs[1]);
    op.result(weft::apply(registry().get(name), xs, nullptr)[0]);
  };
  if (is("EQ")) return made(total ? "eq_to" : "eq");
  if (is("NE") && !total) return made("ne");
  if (is("LT")) return made(total ? "lt_to" : "lt");
  if (is("LE")) return made(total ? "le_to" : "le");
  if (is("GT")) return total ? made("lt_to", true) : made("gt");
  if (is("GE")) return total ? made("le_to", true) : made("ge");
  if (is("NE")) return op.result(logical_not(weft::apply(registry().get("eq_to"), xs, nullptr)[0]));
  op.fail("expected the direction EQ, NE, LT, LE, GT or GE; got ",
          direction.empty() ? std::string_view("none") : direction);
}

void select_rule(OpText& op) {
  op.expect_operands(3);
  if (op.in_type(1) != op.in_type(2) || op.in_type(0)->dtype() != DType::kBool)
    op.fail("expected a predicate of i1 and operands of one type; got ", op.in_type(0), ", ",
            op.in_type(1), " and ", op.in_type(2));
  if (op.in_type(0)->rank() != 0 && op.in_type(0)->shape() != op.in_type(1)->shape())
    op.fail("expected a predicate that is a scalar or of shape ", op.in_type(1)->shape(), "; got ",
            op.in_type(0));
  Val pred = op.raw(0), on_true = op.raw(1), on_false = op.raw(2);
  bool any_array = (op.in_type(0)->rank() > 0 && !op.is_splat(0)) ||
                   (op.in_type(1)->rank() > 0 && !(op.is_splat(1) && op.is_splat(2)));
  if (!any_array) on_true = op.x(1);
  op.result(select(pred, on_true, on_false));
}

// clamp(x, x, x) is x; weft's emitter writes it to keep XLA from joining two operations.
void clamp(OpText& op) {
  op.expect_operands(3);
  if (op.raw(0).value == op.raw(1).value && op.raw(1).value == op.raw(2).value)
    return op.result(op.raw(1));
  op.result(apply1("clamp", {op.raw(0), op.x(1), op.raw(2)}));
}

void convert_rule(OpText& op) {
  op.expect_operands(1);
  Val x = op.x(0);
  DType to = op.out_type()->dtype();
  // Weft does not drop imaginary parts silently.
  if (is_complex(x.dtype()) && !is_complex(to)) x = real(x);
  op.result(convert(x, to));
}

void bitcast(OpText& op) {
  op.expect_operands(1);
  op.result(apply1("bitcast_convert_type", {op.x(0)}, {{"new_dtype", op.out_type()->dtype()}}));
}

void reduce_precision(OpText& op) {
  op.expect_operands(1);
  int64_t exponent, mantissa;
  if (std::optional<std::string_view> format = op.find("format")) {  // e8m7
    Cursor in = op.document.cursor(*format);
    in.expect("e", "to begin a format such as e8m7");
    exponent = in.integer();
    in.expect("m", "before the bits of a mantissa");
    mantissa = in.integer();
  } else {
    exponent = op.integer({"exponent_bits"});
    mantissa = op.integer({"mantissa_bits"});
  }
  op.result(apply1("reduce_precision", {op.x(0)},
                   {{"exponent_bits", exponent}, {"mantissa_bits", mantissa}}));
}

void is_infinite(OpText& op) {
  op.expect_operands(1);
  Val x = weft::abs(op.x(0));
  op.result(eq(x, scalar_like(x, std::numeric_limits<double>::infinity())));
}

template <bool negative>
void is_infinity(OpText& op) {
  op.expect_operands(1);
  double infinity = std::numeric_limits<double>::infinity();
  Val x = op.x(0);
  op.result(eq(x, scalar_like(x, negative ? -infinity : infinity)));
}

constexpr NamedRule kElementwiseRules[] = {
    {"abs", unary<"abs">},
    {"acos", unary<"acos">},
    {"acosh", unary<"acosh">},
    {"add", arithmetic<"add", "or">},
    {"and", binary<"and">},
    {"asin", unary<"asin">},
    {"asinh", unary<"asinh">},
    {"atan", unary<"atan">},
    {"atan2", binary<"atan2">},
    {"atanh", unary<"atanh">},
    {"bessel_i1e", unary<"bessel_i1e">},
    {"bitcast_convert", bitcast},
    {"broadcast_add", broadcasting<arithmetic<"add", "or">>},
    {"broadcast_and", broadcasting<binary<"and">>},
    {"broadcast_atan2", broadcasting<binary<"atan2">>},
    {"broadcast_compare", broadcasting<compare>},
    {"broadcast_complex", broadcasting<binary<"complex">>},
    {"broadcast_divide", broadcasting<binary<"div">>},
    {"broadcast_maximum", broadcasting<arithmetic<"max", "or">>},
    {"broadcast_minimum", broadcasting<arithmetic<"min", "and">>},
    {"broadcast_multiply", broadcasting<arithmetic<"mul", "and">>},
    {"broadcast_next_after", broadcasting<binary<"nextafter">>},
    {"broadcast_or", broadcasting<binary<"or">>},
    {"broadcast_polygamma", broadcasting<binary<"polygamma">>},
    {"broadcast_power", broadcasting<binary<"pow">>},
    {"broadcast_remainder", broadcasting<binary<"rem">>},
    {"broadcast_shift_left", broadcasting<binary<"shift_left">>},
    {"broadcast_shift_right_arithmetic", broadcasting<binary<"shift_right_arithmetic">>},
    {"broadcast_shift_right_logical", broadcasting<binary<"shift_right_logical">>},
    {"broadcast_subtract", broadcasting<arithmetic<"sub", "xor">>},
    {"broadcast_xor", broadcasting<binary<"xor">>},
    {"broadcast_zeta", broadcasting<binary<"zeta">>},
    {"cbrt", graded<"cbrt">},
    {"ceil", unary<"ceil">},
    {"clamp", clamp},
    {"compare", compare},
    {"complex", binary<"complex">},
    {"conj", conjugate},
    {"convert", convert_rule},
    {"cosh", unary<"cosh">},
    {"cosine", graded<"cos">},
    {"count_leading_zeros", unary<"clz">},
    {"digamma", unary<"digamma">},
    {"divide", binary<"div">},
    {"erf", unary<"erf">},
    {"erf_inv", unary<"erf_inv">},
    {"erfc", unary<"erfc">},
    {"exponential", graded<"exp">},
    {"exponential_minus_one", graded<"expm1">},
    {"floor", unary<"floor">},
    {"imag", imaginary_part},
    {"is_finite", unary<"is_finite">},
    {"is_inf", is_infinite},
    {"is_neg_inf", is_infinity<true>},
    {"is_pos_inf", is_infinity<false>},
    {"lgamma", unary<"lgamma">},
    {"log", graded<"log">},
    {"log_plus_one", graded<"log1p">},
    {"logistic", graded<"logistic">},
    {"maximum", arithmetic<"max", "or">},
    {"minimum", arithmetic<"min", "and">},
    {"mulhi", binary<"mulhi">},
    {"multiply", arithmetic<"mul", "and">},
    {"negate", negate},
    {"next_after", binary<"nextafter">},
    {"not", unary<"not">},
    {"or", binary<"or">},
    {"polygamma", binary<"polygamma">},
    {"popcnt", unary<"population_count">},
    {"power", binary<"pow">},
    {"real", real_part},
    {"reduce_precision", reduce_precision},
    {"remainder", binary<"rem">},
    {"round_nearest_afz", round_away},
    {"round_nearest_even", round_to_even},
    {"rsqrt", graded<"rsqrt">},
    {"select", select_rule},
    {"shift_left", binary<"shift_left">},
    {"shift_right_arithmetic", binary<"shift_right_arithmetic">},
    {"shift_right_logical", binary<"shift_right_logical">},
    {"sign", unary<"sign">},
    {"sine", graded<"sin">},
    {"sinh", unary<"sinh">},
    {"sqrt", graded<"sqrt">},
    {"square", unary<"square">},
    {"subtract", arithmetic<"sub", "xor">},
    {"tan", graded<"tan">},
    {"tanh", graded<"tanh">},
    {"xor", binary<"xor">},
    {"zeta", binary<"zeta">},
};

}  // namespace

std::span<const NamedRule> elementwise_rules() { return kElementwiseRules; }

}  // namespace weft::reader
