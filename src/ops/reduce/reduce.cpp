// Reductions: reduce_{sum,prod,max,min,and,or,xor} over axes, argmax and argmin.
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/limits.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/def/symbols.h"
#include "ops/elementwise/order.h"
#include "ops/reduce/family.h"

namespace weft {
namespace {

Literal all_bits(DType d) { return make_literal(d, int64_t{is_bool(d) ? 1 : -1}); }

// Repeats a reduced value along the reduced axes.
Val spread(Val reduced, TypeRef operand, const Dims& axes) {
  return broadcast_in_dim(reduced, operand->shape(), other_axes(operand->rank(), axes));
}

Vals reduce_one_element(SimplifyCtx& c) {
  TypeRef x = c.in_types[0];
  for (int64_t a : c.attr().ints("axes"))
    if (x->dim(static_cast<int>(a)) != 1) return {};
  return {reshape(c.x(0), c.out_types[0]->shape())};
}

// max(max(x, a), b) -> max(x, a and b). Only for operations that do not round.
Vals reduce_of_reduce(SimplifyCtx& c) {
  const Op* op = c.producer(c.x(0), c.op);
  // Where the inner one is needed too, the outer one is cheaper from it.
  if (!op || !c.is_only_use(c.x(0))) return {};
  Val source = c.operand(*op, 0);
  const Dims& inner = op->attrs->ints("axes");
  Dims kept = other_axes(source.rank(), inner);
  Dims axes = inner;
  for (int64_t a : c.attr().ints("axes")) axes.push_back(kept[static_cast<size_t>(a)]);
  std::sort(axes.begin(), axes.end());
  return apply(c.op, {&source, 1}, c.attrs->with({{"axes", axes}}));
}

OpDef reduction(Reducer r, bool rounds) {
  std::string name = r.name;
  OpDef d = reducer(std::move(r));
  d.simplify = {{name + "_one", "reduction over axes of size 1, or over none -> reshape(x)",
                 reduce_one_element}};
  if (!rounds)
    d.simplify.push_back({name + "_twice", "reduction of the same reduction -> over all their axes",
                          reduce_of_reduce});
  return d;
}

OpDef reduce_sum_op() {
  OpDef d = reduction({.name = "reduce_sum",
                       .doc = "Sum over axes.",
                       .hlo = "stablehlo.add",
                       .dtypes = kNumbers,
                       .identity = zero},
                      /*rounds=*/true);
  linear(d,
         [](TransposeCtx& c) { c.add(0, spread(c.ct(), c.in_types[0], c.attr().ints("axes"))); });
  d.mapped_sum = [](RuleCtx& c) {
    return reduce_sum(c.x(0), inserted(shifted(c.attr().ints("axes"), 0), 0, 0));
  };
  return d;
}

// Derivative of a product without division, so that zeros are no problem: a tree of pairs
// (x, x') (y, y') -> (xy, x'y + xy').
Val jvp_reduce_prod(const JvpArgCtx& c) {
  const Dims& axes = c.attr().ints("axes");
  Dims kept = other_axes(c.in_types[0]->rank(), axes);
  Dims order = axes;
  for (int64_t a : kept) order.push_back(a);
  Dims shape = pick(c.in_types[0]->shape(), kept);
  Dims counted = pick(c.in_types[0]->shape(), axes);
  need_numbers(c.op, counted);
  int64_t n = product(counted);
  if (n == 0) return zeros(c.b, c.out_types[0]);
  auto flat = [&](Val v) {
    return reshape(counts_up(order) ? v : transpose(v, order), inserted(shape, 0, n));
  };
  Val x = flat(c.x(0)), t = flat(c.t());
  while (n > 1) {
    int64_t half = n / 2, rest = n - 2 * half;
    Dims sizes = rest ? Dims{half, half, rest} : Dims{half, half};
    Vals xs = apply("split", {x}, {{"axis", int64_t{0}}, {"sizes", sizes}});
    Vals ts = apply("split", {t}, {{"axis", int64_t{0}}, {"sizes", sizes}});
    x = xs[0] * xs[1];
    t = ts[0] * xs[1] + xs[0] * ts[1];
    if (rest) {
      x = concatenate(Vals{x, xs[2]}, 0);
      t = concatenate(Vals{t, ts[2]}, 0);
    }
    n = half + rest;
  }
  return squeeze(t, {0});
}

OpDef reduce_prod_op() {
  OpDef d = reduction({.name = "reduce_prod",
                       .doc = "Product over axes.",
                       .hlo = "stablehlo.multiply",
                       .dtypes = kNumbers,
                       .identity = one},
                      /*rounds=*/true);
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {jvp_reduce_prod};
  return d;
}

// The mean of the tangents at the positions that attain the extreme; NaN where that is NaN.
Val jvp_extreme(const JvpArgCtx& c) {
  const Dims& axes = c.attr().ints("axes");
  if (c.in_types[0]->num_elements() == 0) return zeros(c.b, c.out_types[0]);
  Val extreme = spread(c.y(), c.in_types[0], axes);
  // All positions attain a NaN, so that the transpose, which divides first, passes NaN on to them.
  Val attained = convert(logical_or(eq(c.x(0), extreme), ne(extreme, extreme)), c.t().dtype());
  Val nan = broadcast_to(scalar_like(c.y(), NAN), c.y().shape());
  Val count = select(eq(c.y(), c.y()), reduce_sum(attained, axes), nan);
  return reduce_sum(c.t() * attained, axes) / count;
}

// XLA compares real numbers only.
void emit_complex_extreme(EmitCtx& c, Val (*combine)(Val, Val), Literal (*identity)(DType)) {
  DType dtype = c.in_type(0)->dtype();
  TypeRef element = scalar_type(dtype);
  GraphBuilder pair;
  Val left{&pair, pair.input(element)}, right{&pair, pair.input(element)};
  Value combined = combine(left, right).value;
  GraphRef graph = pair.finish({&combined, 1});
  emit_as(c, [&](const Vals& xs) {
    Val init{xs[0].builder, xs[0].builder->literal(identity(dtype))};
    return apply1("reduce", {xs[0], init}, {{"dimensions", c.attr().at("axes")}, {"jaxpr", graph}});
  });
}

OpDef reduce_extreme_op(std::string name, std::string doc, std::string hlo,
                        Val (*combine)(Val, Val), Literal (*identity)(DType)) {
  OpDef d = reduction({.name = std::move(name),
                       .doc = std::move(doc),
                       .hlo = std::move(hlo),
                       .dtypes = kAnyDType,
                       .identity = identity},
                      /*rounds=*/false);
  d.emit = [emit = std::move(d.emit), combine, identity](EmitCtx& c) {
    if (!is_complex(c.in_type(0)->dtype())) return emit(c);
    emit_complex_extreme(c, combine, identity);
  };
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {jvp_extreme};
  return d;
}

OpDef reduce_bits_op(std::string name, std::string doc, std::string hlo,
                     Literal (*identity)(DType)) {
  OpDef d = reduction({.name = std::move(name),
                       .doc = std::move(doc),
                       .hlo = std::move(hlo),
                       .dtypes = kBoolsAndInts,
                       .identity = identity},
                      /*rounds=*/false);
  return zero_tangent(d);
}

TypeRefs infer_arg_extreme(const InferCtx& c) {
  TypeRef x = c.in(0);
  const Dims& axes = c.attr().ints("axes");
  DType index = c.attr().dtype("index_dtype");
  DTypeSet dtypes = DTypeSet(kBools | kReals);
  if (!contains(dtypes, x->dtype()))
    c.fail(ErrorKind::kDtype, "expected ", describe(dtypes), "; got ", operand_types(c));
  if (!is_integer(index))
    c.fail(ErrorKind::kDtype, "expected an integer index_dtype; got ", numpy_name(index));
  check_axes(c, "axes", axes, x);
  if (axes.size() != 1)
    c.fail(ErrorKind::kValue, "expected one axis; got axes=", axes, " (operand: ", x, ")");
  if (x->dim(static_cast<int>(axes[0])) == 0)
    c.fail(ErrorKind::kShape, "expected an axis with elements; got axes=", axes, " (operand: ", x,
           ")");
  return {make_type(index, drop_axes(x->shape(), axes))};
}

// (value, index) of the better of two candidates. Of equals the first is better, so the result does
// not depend on the order in which pairs are combined.
GraphRef better_candidate(DType value, DType index, bool largest) {
  GraphBuilder b;
  auto input = [&](DType d) { return Val{&b, b.input(scalar_type(d))}; };
  Val x = input(value), i = input(index), y = input(value), j = input(index);
  Val better = largest ? gt(x, y) : lt(x, y);
  Val first = logical_or(better, logical_and(eq(x, y), lt(i, j)));
  Value outputs[] = {select(first, x, y).value, select(first, i, j).value};
  return b.finish(outputs);
}

// Value and index are the high and the low half of one integer. XLA finds the extreme of several
// such integers at a time, but goes through pairs one by one. Of equals the first is better.
Val extreme_of_halves(Val x, int axis, bool largest) {
  DType whole = is_signed_int(x.dtype()) ? DType::kI64 : DType::kU64;
  Val position = iota(*x.builder, make_type(whole, x.shape()), axis);
  double last = static_cast<double>(x.type()->dim(axis) - 1);
  if (largest) position = last - position;
  Val high = apply1("shift_left", {convert(x, whole), full(*x.builder, position.type(), 32)});
  Val halves = logical_or(high, position);
  Val best = largest ? reduce_max(halves, {axis}) : reduce_min(halves, {axis});
  best = convert(best, DType::kU32);
  return largest ? last - best : best;
}

// The initial candidate (the worst value, index 0) wins only when no element is better than the
// worst, and then 0 is right.
Val extreme_of_pairs(Val x, int axis, DType index, bool largest) {
  Builder& b = *x.builder;
  Val position = iota(b, make_type(index, x.shape()), axis);
  auto constant = [&](Literal value) { return Val{&b, b.literal(value)}; };
  Val worst = constant(largest ? lowest(x.dtype()) : highest(x.dtype()));
  return apply(
      "reduce", {x, position, worst, constant(zero(index))},
      {{"dimensions", Dims{axis}}, {"jaxpr", better_candidate(x.dtype(), index, largest)}})[1];
}

Vals decompose_arg_extreme(RuleCtx& c, bool largest) {
  Val x = c.x(0);
  // XLA does not reduce integers of two bits together with others.
  if (is_integer(x.dtype()) && info(x.dtype()).bits < 8) x = convert(x, DType::kI8);
  if (is_float(x.dtype())) x = ordered_bits(x, /*nan_last=*/largest);
  DType index = c.attr().dtype("index_dtype");
  int axis = static_cast<int>(c.attr().ints("axes")[0]);
  bool fits = info(x.dtype()).bits <= 32 && x.type()->dim(axis) <= int64_t{1} << 32;
  if (fits) return {convert(extreme_of_halves(x, axis, largest), index)};
  return {extreme_of_pairs(x, axis, index, largest)};
}

void batch_arg_extreme(BatchCtx& c) {
  const Dims& axes = c.attr().ints("axes");
  Val xs[] = {c.x(0)};
  c.apply(xs, c.attrs->with({{"axes", shifted(axes, c.dim(0))}}), dim_after_drop(c.dim(0), axes));
}

OpDef arg_extreme_op(std::string name, std::string doc, bool largest) {
  OpDef d;
  d.name = name;
  d.doc = std::move(doc);
  d.attrs = {{"axes", AttrType::kInts}, {"index_dtype", AttrType::kDType}};
  d.num_operands = 1;
  d.infer = infer_arg_extreme;
  d.place = [](PlaceCtx& c) { place_dropped(c, c.attr().ints("axes")); };
  zero_tangent(d);
  d.batch = batch_arg_extreme;
  d.decompose = [largest](RuleCtx& c) { return decompose_arg_extreme(c, largest); };
  d.simplify = {{name + "_one", "over an axis of size 1 -> 0", [](SimplifyCtx& c) {
                   bool single = c.in_types[0]->num_elements() == c.out_types[0]->num_elements();
                   return single ? Vals{zeros(c.b, c.out_types[0])} : Vals{};
                 }}};
  d.cost = [](const CostCtx& c) {
    Cost cost = cost_bytes(c);
    cost.flops = static_cast<double>(c.in_types[0]->num_elements());
    return cost;
  };
  return d;
}

}  // namespace

void register_reduce(OpRegistry& r) {
  r.add(reduce_sum_op());
  r.add(reduce_prod_op());
  r.add(reduce_extreme_op("reduce_max", "Maximum over axes.", "stablehlo.maximum", max, lowest));
  r.add(reduce_extreme_op("reduce_min", "Minimum over axes.", "stablehlo.minimum", min, highest));
  r.add(reduce_bits_op("reduce_and", "Bitwise and over axes.", "stablehlo.and", all_bits));
  r.add(reduce_bits_op("reduce_or", "Bitwise or over axes.", "stablehlo.or", zero));
  r.add(reduce_bits_op("reduce_xor", "Bitwise exclusive or over axes.", "stablehlo.xor", zero));
  r.add(arg_extreme_op("argmax", "Index of the first largest element along an axis.", true));
  r.add(arg_extreme_op("argmin", "Index of the first smallest element along an axis.", false));
}

}  // namespace weft
