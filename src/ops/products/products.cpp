#include "ops/products/products.h"

#include <algorithm>
#include <optional>

#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/presets.h"

namespace weft {
namespace {

// How dot_general is to compute, where a precision names more than a degree: what XLA rounds the
// operands to, adds up in, and how many products of parts stand for one. CPUs ignore it but for the
// dtypes, so only algorithms that are as exact as what they do are let through to them.
struct Algorithm {
  std::string_view name;
  std::string_view precision;    // of the operands, as StableHLO names it; empty: floats of 8 bits
  std::optional<DType> operand;  // what operands are converted to; nullopt: they stay
  bool or_f32;                   // f32 operands stay
  std::optional<DType> sum;      // what it adds up in; nullopt: as the result's dtype asks
  int operations = 1;
  bool fast = false;
  bool on_cpu = false;
};

constexpr Algorithm kAlgorithms[] = {
    {"ANY_F8_ANY_F8_F32", "", std::nullopt, false, DType::kF32},
    {"ANY_F8_ANY_F8_F32_FAST_ACCUM", "", std::nullopt, false, DType::kF32, 1, true},
    {"ANY_F8_ANY_F8_ANY", "", std::nullopt, false, std::nullopt},
    {"ANY_F8_ANY_F8_ANY_FAST_ACCUM", "", std::nullopt, false, std::nullopt, 1, true},
    {"F16_F16_F16", "f16", DType::kF16, false, DType::kF16, 1, false, true},
    {"F16_F16_F32", "f16", DType::kF16, false, DType::kF32},
    {"BF16_BF16_BF16", "bf16", DType::kBF16, true, DType::kBF16},
    {"BF16_BF16_F32", "bf16", DType::kBF16, true, DType::kF32, 1, false, true},
    {"BF16_BF16_F32_X3", "bf16", DType::kF32, true, DType::kF32, 3, false, true},
    {"BF16_BF16_F32_X6", "bf16", DType::kF32, true, DType::kF32, 6, false, true},
    {"BF16_BF16_F32_X9", "bf16", DType::kF32, true, DType::kF32, 9},
    {"TF32_TF32_F32", "tf32", DType::kF32, true, DType::kF32},
    {"TF32_TF32_F32_X3", "tf32", DType::kF32, true, DType::kF32, 3},
    {"F32_F32_F32", "f32", DType::kF32, true, DType::kF32, 1, false, true},
    {"F64_F64_F64", "f64", DType::kF64, false, DType::kF64, 1, false, true},
};

const Algorithm* find_algorithm(const AttrRecord& attrs) {
  if (attrs.is_none("precision")) return nullptr;
  const std::string& name = attrs.string("precision");
  auto found = std::find_if(std::begin(kAlgorithms), std::end(kAlgorithms),
                            [&](const Algorithm& a) { return a.name == name; });
  return found == std::end(kAlgorithms) ? nullptr : found;
}

// The names of those for which `holds`, for messages.
template <typename Holds>
std::string algorithm_names(Holds&& holds) {
  Text names;
  for (const Algorithm& a : kAlgorithms)
    if (holds(a)) names << (names.view().empty() ? "" : ", ") << a.name;
  return names.take();
}

bool is_f8(DType d) { return is_float(d) && info(d).bits == 8; }

void check_precision(const InferCtx& c, bool has_algorithms) {
  if (c.attr().is_none("precision")) return;
  const std::string& p = c.attr().string("precision");
  if (p == "DEFAULT" || p == "HIGH" || p == "HIGHEST") return;
  if (!has_algorithms)
    c.fail(ErrorKind::kValue, "expected precision DEFAULT, HIGH, HIGHEST or None; got ", p);
  const Algorithm* algorithm = find_algorithm(c.attr());
  if (!algorithm)
    c.fail(ErrorKind::kValue, "expected precision DEFAULT, HIGH, HIGHEST, None or an algorithm (",
           algorithm_names([](const Algorithm&) { return true; }), "); got ", p);
  for (TypeRef t : c.operands)
    if (is_complex(t->dtype()) || (!algorithm->operand && !is_f8(t->dtype())))
      c.fail(ErrorKind::kDtype, "expected operands of ",
             algorithm->operand ? "real dtypes" : "float8 dtypes", " for precision ", p, "; got ",
             operand_types(c));
}

int level(DType d) { return is_bool(d) ? 0 : is_integer(d) ? 1 : is_float(d) ? 2 : 3; }

// One of the operands' dtypes, as XLA chooses it: complex before real, float before integer; the
// float that holds larger numbers, the integer of more bits, a signed one before an unsigned one.
DType wider(DType x, DType y) {
  constexpr DType kByRange[] = {DType::kF4E2M1FN,   DType::kF8E3M4, DType::kF8E4M3B11FNUZ,
                                DType::kF8E4M3FNUZ, DType::kF8E4M3, DType::kF8E4M3FN,
                                DType::kF8E5M2FNUZ, DType::kF8E5M2, DType::kF16,
                                DType::kF8E8M0FNU,  DType::kBF16,   DType::kF32,
                                DType::kF64};
  auto rank = [&](DType d) {
    if (is_float(d)) return static_cast<int>(std::ranges::find(kByRange, d) - kByRange);
    return 2 * info(d).bits + is_signed_int(d);
  };
  if (level(x) != level(y)) return level(x) < level(y) ? y : x;
  return rank(x) < rank(y) ? y : x;
}

// The dtype of the result: as asked for, unless that would lose the kind or, for integers and
// complex numbers, the width of the wider operand.
DType infer_dtype(const InferCtx& c) {
  DType widest = wider(c.in(0)->dtype(), c.in(1)->dtype());
  if (c.attr().is_none("preferred_element_type")) return widest;
  DType preferred = c.attr().dtype("preferred_element_type");
  bool narrower = info(preferred).bits < info(widest).bits;
  bool keeps_width = (is_integer(preferred) || is_complex(preferred)) && !find_algorithm(c.attr());
  if (level(preferred) < level(widest) ||
      (level(preferred) == level(widest) && keeps_width && narrower))
    c.fail(ErrorKind::kDtype, "expected a preferred_element_type that holds ", numpy_name(widest),
           "; got preferred_element_type=", numpy_name(preferred), " (", operand_types(c), ")");
  return preferred;
}

// What operands and result are computed in.
struct ComputeTypes {
  DType lhs, rhs, out;
};

ComputeTypes types_of_algorithm(const Algorithm& a, ComputeTypes t) {
  if (a.operand) {
    auto of = [&](DType d) { return a.or_f32 && d == DType::kF32 ? d : *a.operand; };
    t.lhs = of(t.lhs);
    t.rhs = of(t.rhs);
    if (t.lhs != t.rhs) t.lhs = t.rhs = DType::kF32;
    bool as_narrow = t.out == *a.operand && t.lhs == t.out;
    if (!as_narrow || *a.operand == DType::kF32) t.out = *a.sum;
  } else if (a.sum && info(t.out).bits > 32) {
    t.out = *a.sum;
  }
  return t;
}

// XLA takes equal dtypes as they are if it may accumulate their products in the dtype of the
// result. (Its own conversion of operands of less than a byte fails on some platforms, and it
// multiplies none of two bits.) Integers are those of the result, whatever wraps around on the way;
// beside uint64 the signed ones have no integer dtype in common.
ComputeTypes compute_types(ComputeTypes t) {
  bool widens = info(t.lhs).bits < info(t.out).bits && kind(t.lhs) == kind(t.out);
  if (t.lhs == t.rhs && info(t.lhs).bits >= 8 && (t.lhs == t.out || widens)) return t;
  DType dtype = t.out;
  if (!is_integer(dtype)) {
    std::optional<PromotionType> common = promote({t.lhs}, {t.rhs});
    if (common) common = promote({common->dtype}, {t.out});
    if (common) dtype = common->dtype;
  }
  if (is_integer(dtype) && info(dtype).bits < 4) dtype = DType::kI32;
  return {dtype, dtype, dtype};
}

}  // namespace

AttrSpec precision_attr() { return {"precision", AttrType::kString, AttrSpec::kHideDefault}; }
AttrSpec preferred_element_type_attr() {
  return {"preferred_element_type", AttrType::kDType, AttrSpec::kHideDefault};
}

DType infer_product_dtype(const InferCtx& c, bool has_algorithms) {
  for (TypeRef t : c.operands)
    if (!contains(kAnyDType, t->dtype()))
      c.fail(ErrorKind::kDtype, "expected ", describe(kAnyDType), "; got ", operand_types(c));
  check_precision(c, has_algorithms);
  return infer_dtype(c);
}

std::string_view precision_name(const AttrRecord& attrs) {
  bool is_degree = !attrs.is_none("precision") && !find_algorithm(attrs);
  return is_degree ? std::string_view(attrs.string("precision")) : "DEFAULT";
}

std::string algorithm_text(const EmitCtx& c) {
  const Algorithm* a = find_algorithm(c.attr());
  if (!a) return "";
  if (c.platform() == "cpu" && !a->on_cpu)
    fail(ErrorKind::kNotImplemented, "[dot_general] expected a precision that cpu has: DEFAULT, ",
         "HIGH, HIGHEST, ", algorithm_names([](const Algorithm& x) { return x.on_cpu; }), "; got ",
         a->name);
  auto of_operand = [&](size_t i) {
    return a->precision.empty() ? info(c.in_type(i)->dtype()).mlir : a->precision;
  };
  return cat(", algorithm = <lhs_precision_type = ", of_operand(0),
             ", rhs_precision_type = ", of_operand(1),
             ", accumulation_type = ", info(a->sum.value_or(DType::kF32)).mlir,
             ", lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = ",
             a->operations, ", allow_imprecise_accumulation = ", a->fast ? "true" : "false", ">");
}

void emit_product(
    EmitCtx& c,
    const std::function<std::string(std::string_view lhs, std::string_view rhs)>& text) {
  ComputeTypes types{c.in_type(0)->dtype(), c.in_type(1)->dtype(), c.out_type()->dtype()};
  const Algorithm* algorithm = find_algorithm(c.attr());
  types = algorithm ? types_of_algorithm(*algorithm, types) : compute_types(types);
  auto converted = [&](std::string x, TypeRef from, TypeRef to) {
    if (from == to) return x;
    TypeRef in[] = {from}, out[] = {to};
    return c.line(cat("stablehlo.convert ", x, " : ", signature(in, out)));
  };
  TypeRef in[] = {with_dtype(c.in_type(0), types.lhs), with_dtype(c.in_type(1), types.rhs)};
  TypeRef out[] = {with_dtype(c.out_type(), types.out)};
  std::string lhs = converted(c.in(0), c.in_type(0), in[0]);
  std::string rhs = converted(c.in(1), c.in_type(1), in[1]);
  std::string result = c.line(cat(text(lhs, rhs), " : ", signature(in, out)));
  c.set_out(0, converted(result, out[0], c.out_type()));
}

std::vector<JvpArgRule> bilinear_jvp() {
  auto of_side = [](size_t side) -> JvpArgRule {
    return [side](const JvpArgCtx& c) {
      Val xs[] = {side == 0 ? c.t() : c.x(0), side == 1 ? c.t() : c.x(1)};
      return apply(c.op, xs, c.attrs)[0];
    };
  };
  return {of_side(0), of_side(1)};
}

}  // namespace weft
