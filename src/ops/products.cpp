#include "ops/products.h"

#include <optional>

#include "ops/axes.h"
#include "ops/hlo_text.h"
#include "ops/presets.h"

namespace weft {
namespace {

// The dtype of the result: as asked for, unless that would lose the kind or, for integers and
// complex numbers, the width that the operands promote to.
DType infer_dtype(const InferCtx& c) {
  DType lhs = c.in(0)->dtype(), rhs = c.in(1)->dtype();
  std::optional<PromotionType> common = promote({lhs}, {rhs});
  if (c.attr().is_none("preferred_element_type")) {
    if (lhs == rhs) return lhs;
    if (common) return common->dtype;
    c.fail(ErrorKind::kDtype,
           "expected preferred_element_type for operands without a common dtype; ", "got None (",
           operand_types(c), ")");
  }
  DType preferred = c.attr().dtype("preferred_element_type");
  auto level = [](DType d) { return is_bool(d) ? 0 : is_integer(d) ? 1 : is_float(d) ? 2 : 3; };
  DType widest = common ? common->dtype : lhs;
  bool narrower = info(preferred).bits < info(lhs == rhs ? lhs : widest).bits;
  bool keeps_width = is_integer(preferred) || is_complex(preferred);
  if (level(preferred) < level(widest) ||
      (level(preferred) == level(widest) && keeps_width && narrower))
    c.fail(ErrorKind::kDtype, "expected a preferred_element_type that holds ", numpy_name(widest),
           "; got preferred_element_type=", numpy_name(preferred), " (", operand_types(c), ")");
  return preferred;
}

// The dtype that operands are converted to before the product; nullopt when XLA takes them as they
// are: equal dtypes whose products it may accumulate in the dtype of the result. (XLA's own
// conversion of operands of less than a byte fails on some platforms, and it multiplies none of two
// bits.)
std::optional<DType> compute_dtype(DType lhs, DType rhs, DType out) {
  bool widens = info(lhs).bits < info(out).bits && kind(lhs) == kind(out);
  if (lhs == rhs && info(lhs).bits >= 8 && (lhs == out || widens)) return std::nullopt;
  std::optional<PromotionType> common = promote({lhs}, {rhs});
  if (common) common = promote({common->dtype}, {out});
  DType dtype = common ? common->dtype : out;
  return is_integer(dtype) && info(dtype).bits < 4 ? DType::kI32 : dtype;
}

}  // namespace

AttrSpec precision_attr() { return {"precision", AttrType::kString, AttrSpec::kHideDefault}; }
AttrSpec preferred_element_type_attr() {
  return {"preferred_element_type", AttrType::kDType, AttrSpec::kHideDefault};
}

DType infer_product_dtype(const InferCtx& c) {
  for (TypeRef t : c.operands)
    if (!contains(kAnyDType, t->dtype()))
      c.fail(ErrorKind::kDtype, "expected ", describe(kAnyDType), "; got ", operand_types(c));
  if (!c.attr().is_none("precision")) {
    const std::string& p = c.attr().string("precision");
    if (p != "DEFAULT" && p != "HIGH" && p != "HIGHEST")
      c.fail(ErrorKind::kValue, "expected precision DEFAULT, HIGH, HIGHEST or None; got ", p);
  }
  return infer_dtype(c);
}

std::string_view precision_name(const AttrRecord& attrs) {
  return attrs.is_none("precision") ? "DEFAULT" : std::string_view(attrs.string("precision"));
}

void emit_product(
    EmitCtx& c,
    const std::function<std::string(std::string_view lhs, std::string_view rhs)>& text) {
  std::optional<DType> compute =
      compute_dtype(c.in_type(0)->dtype(), c.in_type(1)->dtype(), c.out_type()->dtype());
  auto converted = [&](std::string x, TypeRef from, TypeRef to) {
    if (from == to) return x;
    TypeRef in[] = {from}, out[] = {to};
    return c.line(cat("stablehlo.convert ", x, " : ", signature(in, out)));
  };
  TypeRef in[] = {c.in_type(0), c.in_type(1)}, out[] = {c.out_type()};
  std::string xs[] = {c.in(0), c.in(1)};
  if (compute) {
    for (size_t i = 0; i < 2; ++i) {
      TypeRef to = with_dtype(in[i], *compute);
      xs[i] = converted(xs[i], in[i], to);
      in[i] = to;
    }
    out[0] = with_dtype(out[0], *compute);
  }
  std::string result = c.line(cat(text(xs[0], xs[1]), " : ", signature(in, out)));
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
