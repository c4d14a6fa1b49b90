// Comparisons, selection by a predicate, and clamping.
#include <cmath>

#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/elementwise/family.h"

namespace weft {

namespace {

bool equal_numbers(const Literal& x, const Literal& y) {
  if (is_float(x.dtype)) return x.as_double() == y.as_double();
  if (is_complex(x.dtype)) return x.as_double() == y.as_double() && x.imag() == y.imag();
  return x == y;
}
bool has_nan(const Literal& x) {
  return (is_inexact(x.dtype) && std::isnan(x.as_double())) ||
         (is_complex(x.dtype) && std::isnan(x.imag()));
}

struct Comparison {
  const char* name;
  const char* doc;
  const char* direction;
  DTypeSet dtypes;
  bool of_equals;  // the result for equal operands
  bool commutative;
  bool (*f)(const Literal&, const Literal&);
};

constexpr DTypeSet kOrdered = static_cast<DTypeSet>(kBools | kReals);

// Of integers and truth values: floats may be nan.
Vals if_same_operands(SimplifyCtx& c, bool result) {
  bool exact = c.x(0).value == c.x(1).value && !is_inexact(c.x(0).dtype());
  return exact ? Vals{full(c.b, c.out_types[0], result)} : Vals{};
}

void register_comparisons(OpRegistry& r) {
  using L = const Literal&;
  static const Comparison kComparisons[] = {
      {"eq", "x == y, elementwise.", "EQ", kAnyElement, true, true, equal_numbers},
      {"ne", "x != y, elementwise.", "NE", kAnyElement, false, true,
       [](L x, L y) { return !equal_numbers(x, y); }},
      {"lt", "x < y, elementwise.", "LT", kOrdered, false, false, less_than},
      {"gt", "x > y, elementwise.", "GT", kOrdered, false, false,
       [](L x, L y) { return less_than(y, x); }},
      {"le", "x <= y, elementwise.", "LE", kOrdered, true, false,
       [](L x, L y) { return !has_nan(x) && !has_nan(y) && !less_than(y, x); }},
      {"ge", "x >= y, elementwise.", "GE", kOrdered, true, false,
       [](L x, L y) { return !has_nan(x) && !has_nan(y) && !less_than(x, y); }},
  };
  for (const Comparison& k : kComparisons) {
    r.add(compare({.name = k.name,
                   .doc = k.doc,
                   .hlo = k.direction,
                   .dtypes = k.dtypes,
                   .fold = [f = k.f](const FoldCtx& c) -> std::optional<Literal> {
                     return make_literal(c.out, int64_t{f(c.xs[0], c.xs[1])});
                   },
                   .simplify = {{cat(k.name, "_self"),
                                 cat(k.name, "(x, x) -> ", k.of_equals, ", integers only"),
                                 [result = k.of_equals](SimplifyCtx& c) {
                                   return if_same_operands(c, result);
                                 }}},
                   .commutative = k.commutative}));
  }
}

// -nan < -inf < ... < -0 < 0 < ... < inf < nan.
void register_total_order(OpRegistry& r) {
  auto add = [&](const char* name, const char* doc, std::string direction) {
    OpDef op = compare({.name = name, .doc = doc, .dtypes = kOrdered});
    op.emit = [direction](EmitCtx& c) {
      const Dims& shape = c.out_type()->shape();
      std::string lhs = c.in_as(0, shape);
      std::string rhs = c.in_as(1, shape);
      TypeRef type = with_shape(c.in_type(0), shape);
      c.set_out(0, emit_compare(c, direction, lhs, rhs, type, /*total_order=*/true));
    };
    r.add(std::move(op));
  };
  add("eq_to", "x == y in the total order of floats, elementwise.", "EQ");
  add("lt_to", "x < y in the total order of floats, elementwise.", "LT");
  add("le_to", "x <= y in the total order of floats, elementwise.", "LE");
}

// select_n: operand 0 chooses among the others. A predicate out of range chooses the nearest.

TypeRefs infer_select_n(const InferCtx& c) {
  if (c.size() < 2)
    c.fail(ErrorKind::kType, "expected a predicate and cases; got ", c.size(), " operands");
  DType which = c.in(0)->dtype();
  if (!is_bool(which) && which != DType::kI32 && which != DType::kI64)
    c.fail(ErrorKind::kDtype, "expected a bool or int32 predicate; got ", c.in(0));
  if (is_bool(which) && c.size() > 3)
    c.fail(ErrorKind::kType, "expected at most 2 cases for a bool predicate; got ", c.size() - 1);
  DType dtype = c.in(1)->dtype();
  for (size_t i = 2; i < c.size(); ++i) {
    if (c.in(i)->dtype() != dtype)
      c.fail(ErrorKind::kDtype, "expected cases of one dtype; got ", c.in(1), " and ", c.in(i));
  }
  return {make_type(dtype, common_shape(c))};
}

size_t chosen_case(const Literal& which, size_t num_cases) {
  int64_t last = static_cast<int64_t>(num_cases) - 1;
  return static_cast<size_t>(std::min(std::max(which.as_int(), int64_t{0}), last));
}

Vals jvp_select_n(JvpCtx& c) {
  const Dims& shape = c.out_types[0]->shape();
  Vals xs{c.x(0)};
  for (size_t i = 1; i < c.size(); ++i) {
    TypeRef element = scalar_type(c.out_types[0]->dtype());
    xs.push_back(c.has_t(i) ? broadcast_to(c.t(i), shape) : zeros(c.b, element));
  }
  return apply(c.op, xs, c.attrs);
}

void transpose_select_n(TransposeCtx& c) {
  for (size_t i = 1; i < c.size(); ++i) {
    if (!c.linear(i)) continue;
    Vals xs{c.x(0)};
    for (size_t k = 1; k < c.size(); ++k) xs.push_back(k == i ? c.ct() : scalar_like(c.ct(), 0));
    c.add(i, unbroadcast(apply(c.op, xs, c.attrs)[0], c.in_types[i]));
  }
}

void emit_select_n(EmitCtx& c) {
  TypeRef type = c.out_type();
  const Dims& shape = type->shape();
  TypeRef which_type = c.in_type(0);
  std::string chosen = c.in_as(c.size() - 1, shape);
  if (c.size() == 2) return c.set_out(0, chosen);
  std::string which = c.in(0);
  if (is_bool(which_type->dtype()))
    return c.set_out(0, emit_select(c, which, which_type, chosen, c.in_as(1, shape), type));
  TypeRef mask = with_dtype(which_type, DType::kBool);
  for (size_t i = c.size() - 2; i >= 1; --i) {
    Literal bound = make_literal(which_type->dtype(), static_cast<int64_t>(i));
    std::string limit = c.constant(bound, which_type->shape());
    std::string below = emit_compare(c, "LT", which, limit, which_type);
    chosen = emit_select(c, below, mask, c.in_as(i, shape), chosen, type);
  }
  c.set_out(0, chosen);
}

std::vector<Rewrite> select_rewrites() {
  return {{"select_const", "select_n(constant, xs...) -> x",
           [](SimplifyCtx& c) -> Vals {
             std::optional<Literal> which = c.splat(c.x(0));
             if (!which) return {};
             return replacement(c, c.x(1 + chosen_case(*which, c.size() - 1)));
           }},
          {"select_same", "select_n(p, x, x) -> x",
           [](SimplifyCtx& c) -> Vals {
             for (size_t i = 2; i < c.size(); ++i)
               if (c.x(i).value != c.x(1).value) return {};
             return replacement(c, c.x(1));
           }},
          {"select_not", "select_n(not(p), x, y) -> select_n(p, y, x)",
           [](SimplifyCtx& c) -> Vals {
             Val p = c.operand_of<"not">(c.x(0));
             if (!p || !is_bool(p.dtype()) || c.size() != 3) return {};
             return {select(p, c.x(1), c.x(2))};
           }},
          {"select_bools", "select_n(p, False, True) -> p", [](SimplifyCtx& c) -> Vals {
             if (c.size() != 3 || !is_bool(c.x(0).dtype()) || !is_bool(c.x(1).dtype())) return {};
             bool is_p = c.is_splat(c.x(1), 0) && c.is_splat(c.x(2), 1);
             return is_p ? replacement(c, c.x(0)) : Vals{};
           }}};
}

void register_select_n(OpRegistry& r) {
  OpDef op;
  op.name = "select_n";
  op.doc = "The case that the predicate (bool or integer) chooses, elementwise.";
  op.infer = infer_select_n;
  op.jvp_kind = JvpKind::kCustom;
  op.jvp = jvp_select_n;
  op.transpose = transpose_select_n;
  op.batch = batch_elementwise;
  op.place = [](PlaceCtx& c) { place_equal(c); };
  op.in_kernel = is_same_in_kernel;
  op.emit = emit_select_n;
  op.fold = [](const FoldCtx& c) -> std::optional<Literal> {
    return c.xs[1 + chosen_case(c.xs[0], c.xs.size() - 1)];
  };
  op.simplify = select_rewrites();
  op.cost = [](const CostCtx& c) { return cost_elementwise(c, 1, false); };
  op.elementwise = true;
  r.add(std::move(op));
}

// clamp: min and max may be scalars, x has the shape of the result.

TypeRefs infer_clamp(const InferCtx& c) {
  TypeRef x = c.in(1);
  if (!contains(kAnyDType, x->dtype()))
    c.fail(ErrorKind::kDtype, "expected ", describe(kAnyDType), "; got ", x);
  for (size_t i : {0, 2}) {
    if (c.in(i)->dtype() != x->dtype()) {
      c.fail(ErrorKind::kDtype, "expected min, x and max of one dtype; got ", c.in(0), ", ", x,
             ", ", c.in(2));
    }
    if (c.in(i)->rank() != 0 && c.in(i) != x) {
      c.fail(ErrorKind::kShape, "expected min and max to be scalars or of x's shape; got ", c.in(0),
             ", ", x, ", ", c.in(2));
    }
  }
  return {x};
}

// The tangent where the operand was the one chosen. At a tie x counts as limited; NaN does not, so
// that it stays NaN in derivatives.
JvpArgRule kept_where(Val (*chosen)(const JvpArgCtx& c)) {
  return broadcast_tangent([chosen](const JvpArgCtx& c) {
    if (is_complex(c.t().dtype()))
      fail(ErrorKind::kNotImplemented, "[clamp] has no derivative for complex numbers");
    return select(chosen(c), c.t(), scalar_like(c.t(), 0));
  });
}

std::vector<JvpArgRule> clamp_jvps() {
  using C = const JvpArgCtx&;
  return {
      kept_where([](C c) { return logical_and(gt(c.x(0), c.x(1)), lt(c.x(0), c.x(2))); }),
      kept_where(
          [](C c) { return logical_not(logical_or(le(c.x(1), c.x(0)), ge(c.x(1), c.x(2)))); }),
      kept_where([](C c) { return gt(c.x(1), c.x(2)); }),
  };
}

void batch_clamp(BatchCtx& c) {
  int dim = c.batched(1) ? c.dim(1) : 0;
  Val x = c.at(1, dim);
  Val xs[] = {batched_operand(c, 0, x.shape(), dim), x, batched_operand(c, 2, x.shape(), dim)};
  c.apply(xs, c.attrs, dim);
}

void emit_clamp(EmitCtx& c) {
  std::string operands[] = {c.in(0), c.in(1), c.in(2)};
  c.set_out(0, emit_op(c, "stablehlo.clamp", operands, c.in_types, c.out_type()));
}

void register_clamp(OpRegistry& r) {
  OpDef op;
  op.name = "clamp";
  op.doc = "x limited to the range from min to max: min(max(x, min), max).";
  op.num_operands = 3;
  op.infer = infer_clamp;
  op.jvp_kind = JvpKind::kArgs;
  op.jvp_args = clamp_jvps();
  op.place = [](PlaceCtx& c) { place_result(c, split_of(c, 1)); };  // the limits follow
  op.batch = batch_clamp;
  op.in_kernel = is_same_in_kernel;
  op.emit = emit_clamp;
  op.fold = [](const FoldCtx& c) -> std::optional<Literal> {
    for (const Literal& x : c.xs)
      if (has_nan(x) || is_complex(x.dtype)) return std::nullopt;
    return extremum(extremum(c.xs[1], c.xs[0], true), c.xs[2], false);
  };
  op.simplify = {
      {"clamp_above_only", "clamp(-inf, x, y) -> min(x, y)",
       [](SimplifyCtx& c) -> Vals {
         return c.is_splat(c.x(0), -INFINITY) ? Vals{min(c.x(1), c.x(2))} : Vals{};
       },
       Phase::kFinal},  // the derivatives differ where x is the limit
      {"clamp_below_only", "clamp(x, y, inf) -> max(y, x)",
       [](SimplifyCtx& c) -> Vals {
         return c.is_splat(c.x(2), INFINITY) ? Vals{max(c.x(1), c.x(0))} : Vals{};
       },
       Phase::kFinal},
      {"clamp_clamp", "clamp(a, clamp(a, x, b), b) -> clamp(a, x, b)", [](SimplifyCtx& c) -> Vals {
         const Op* inner = c.made_by<"clamp">(c.x(1));
         bool same = inner && c.operand(*inner, 0).value == c.x(0).value &&
                     c.operand(*inner, 2).value == c.x(2).value;
         return same ? Vals{c.x(1)} : Vals{};
       }}};
  op.cost = [](const CostCtx& c) { return cost_elementwise(c, 2, false); };
  op.elementwise = true;
  r.add(std::move(op));
}

}  // namespace

void register_compare(OpRegistry& r) {
  register_comparisons(r);
  register_total_order(r);
  register_select_n(r);
  register_clamp(r);
}

}  // namespace weft
