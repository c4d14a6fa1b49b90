// sort: several arrays reordered together along an axis by the first of them. NaN comes last, and
// -0 equals 0; complex numbers go by their real, then by their imaginary parts. top_k: the greatest
// elements along an axis; NaN comes first, and -0 after 0.
#include <cmath>

#include "ops/def/addressing.h"
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/limits.h"
#include "ops/def/place.h"
#include "ops/def/plain.h"
#include "ops/def/presets.h"
#include "ops/elementwise/order.h"
#include "ops/shape/family.h"
#include "ops/shape/small_elements.h"
#include "weft/dims.h"

namespace weft {
namespace {

TypeRefs infer_sort(const InferCtx& c) {
  int64_t axis = c.attr().integer("dimension"), keys = c.attr().integer("num_keys");
  if (c.size() == 0) c.fail(ErrorKind::kType, "expected at least one operand; got none");
  for (TypeRef t : c.operands)
    if (t->shape() != c.in(0)->shape())
      c.fail(ErrorKind::kShape, "expected operands of one shape (sort C2); got ", operand_types(c));
  if (axis < 0 || axis >= c.in(0)->rank())
    c.fail(ErrorKind::kValue, "expected dimension between 0 and ", c.in(0)->rank() - 1,
           " (sort C4); got dimension=", axis, " (", operand_types(c), ")");
  if (keys < 1 || keys > static_cast<int64_t>(c.size()))
    c.fail(ErrorKind::kValue, "expected num_keys between 1 and ", c.size(), "; got num_keys=", keys,
           " (", operand_types(c), ")");
  for (TypeRef t : c.operands)
    if (is_key(t->dtype()))
      c.fail(ErrorKind::kDtype, "expected numbers or bools; got ", operand_types(c));
  return TypeRefs(c.operands);
}

// The integers or truth values that a key is compared by, one after the other.
Vals parts(Val key) {
  if (is_complex(key.dtype()))
    return {ordered_bits(real(key), true), ordered_bits(imag(key), true)};
  return {is_float(key.dtype()) ? ordered_bits(key, true) : key};
}

// Two elements of each operand in turn -> whether the first of them come before.
GraphRef comparator(std::span<const TypeRef> types, int64_t num_keys) {
  GraphBuilder b;
  Vals xs, ys;
  for (size_t i = 0; i < types.size(); ++i) {
    Val x{&b, b.input(scalar_type(types[i]->dtype()))};
    Val y{&b, b.input(scalar_type(types[i]->dtype()))};
    if (static_cast<int64_t>(i) >= num_keys) continue;
    for (Val part : parts(x)) xs.push_back(part);
    for (Val part : parts(y)) ys.push_back(part);
  }
  Val before = lt(xs.back(), ys.back());
  for (size_t i = xs.size() - 1; i-- > 0;)
    before = logical_or(lt(xs[i], ys[i]), logical_and(eq(xs[i], ys[i]), before));
  return b.finish({&before.value, 1});
}

// x[.., indices[.., i, ..], ..] along an axis.
Val take_along(Val x, Val indices, int axis) {
  Addressing a{.dropped = {axis},
               .index_map = {axis},
               .batching = other_axes(x.rank(), {axis}),
               .indices_batching = other_axes(x.rank(), {axis}),
               .mode = "promise_in_bounds",
               .unique = true};
  Dims sizes;
  for (int64_t n : x.shape()) sizes.push_back(dim_min(n, 1));
  return gather(x, expand_dim(indices, x.rank()), a, sizes);
}

// Which element along the axis comes first, second and so on in the increasing order of keys, of
// which the earlier ones count more; equals stay in their order. The place of each is how many come
// before it, by a comparison of every two.
Val order_by_counting(const Vals& keys, int axis) {
  Builder& b = *keys[0].builder;
  int last = keys[0].rank() - 1;
  Dims shape = keys[0].shape();
  int64_t n = shape[static_cast<size_t>(axis)];
  shape.erase(static_cast<size_t>(axis));
  shape.append(Dims{n, n});
  Dims lead = count_up(last), rows = lead, columns = lead;
  rows.push_back(last);
  columns.push_back(last + 1);
  TypeRef pairs = make_type(DType::kI32, shape);
  Val row = iota(b, pairs, last), column = iota(b, pairs, last + 1), before = lt(column, row);
  for (size_t i = keys.size(); i-- > 0;) {
    Val key = move_axis(keys[i], axis, last);
    Val x = broadcast_in_dim(key, shape, columns), y = broadcast_in_dim(key, shape, rows);
    before = logical_or(lt(x, y), logical_and(eq(x, y), before));
  }
  Val place = reduce_sum(convert(before, DType::kI32), {last + 1});
  Val stands_here = eq(broadcast_in_dim(place, shape, columns), row);
  Val order = reduce_sum(select(stands_here, column, zeros(b, pairs)), {last + 1});
  return move_axis(order, last, axis);
}

// Up to so many along the axis, comparisons of every two take less time than XLA's sort, in kernels
// and elsewhere.
constexpr int64_t kMostCounted = 32;
// Outside of kernels, with fewer elements in all, they take longer to compile than is gained.
constexpr int64_t kFewestCounted = 4096;
// In kernels, which one thread runs.
constexpr int64_t kMostCompared = 1 << 16;

bool is_for_kernel(const RuleCtx& c, int axis) {
  TypeRef x = c.in_types[0];
  return is_same_in_kernel({c.in_types, c.out_types, c.attrs.get(), {}}) &&
         x->dim(axis) <= kMostCounted && x->num_elements() * x->dim(axis) <= kMostCompared;
}

Vals sort_by_counting(const Vals& xs, const AttrRecord& attrs) {
  int axis = static_cast<int>(attrs.integer("dimension"));
  Vals keys, sorted;
  for (int64_t i = 0; i < attrs.integer("num_keys"); ++i)
    for (Val part : parts(xs[static_cast<size_t>(i)])) keys.push_back(part);
  Val order = order_by_counting(keys, axis);
  for (Val x : xs) sorted.push_back(take_along(x, order, axis));
  return sorted;
}

bool is_narrow(TypeRef type) { return is_integer(type->dtype()) && info(type->dtype()).bits < 8; }

// As what `write` makes of the operands.
void emit_as_all(EmitCtx& c, const std::function<Vals(const Vals&)>& write) {
  GraphBuilder b;
  Vals xs;
  std::vector<std::string> args;
  for (size_t i = 0; i < c.size(); ++i) {
    xs.push_back({&b, b.input(c.in_type(i))});
    args.push_back(c.in(i));
  }
  Values results;
  for (Val v : write(xs)) results.push_back(v.value);
  std::vector<std::string> made = c.inline_graph(*b.finish(results), args);
  for (size_t i = 0; i < made.size(); ++i) c.set_out(i, std::move(made[i]));
}

// bfloat16 as integers, and back.
Val as_bits(Val x) {
  if (x.dtype() != DType::kBF16) return x;
  return apply1("bitcast_convert_type", {x}, {{"new_dtype", DType::kI16}});
}
Val of_bits(Val x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return apply1("bitcast_convert_type", {x}, {{"new_dtype", dtype}});
}

// XLA sorts no integers of less than 8 bits.
Vals sort_wider(const EmitCtx& c, Vals xs) {
  for (Val& x : xs)
    if (is_narrow(x.type())) x = convert(x, DType::kI8);
  const OpDef& op = op_named<"sort">();
  Vals sorted = apply(op, xs, c.attr().with({}));
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = convert(sorted[i], c.out_type(i)->dtype());
  return sorted;
}

bool is_bfloat16(TypeRef type) { return type->dtype() == DType::kBF16; }

// XLA of jaxlib 0.10 sorts bfloat16 as float32, and converts each number back to compare it. On
// processors with an instruction for that, subnormal numbers are zeros then. So integers are
// sorted: keys in the order of the numbers, and their bits.
Vals sort_as_bits(const EmitCtx& c, const Vals& xs) {
  auto num_keys = static_cast<size_t>(c.attr().integer("num_keys"));
  Vals operands, results;
  for (size_t i = 0; i < num_keys; ++i)
    operands.push_back(is_bfloat16(xs[i].type()) ? ordered_bits(xs[i], true) : xs[i]);
  std::vector<size_t> places;
  for (size_t i = 0; i < xs.size(); ++i) {
    bool is_there = i < num_keys && !is_bfloat16(xs[i].type());
    places.push_back(is_there ? i : operands.size());
    if (!is_there) operands.push_back(as_bits(xs[i]));
  }
  Vals sorted = apply(op_named<"sort">(), operands, c.attr().with({}));
  for (size_t i = 0; i < xs.size(); ++i)
    results.push_back(of_bits(sorted[places[i]], xs[i].dtype()));
  return results;
}

// With positions as the last key: IREE 3.13 does not keep equal elements in their order.
Vals sort_with_positions(const Vals& xs, const AttrRecord& attrs) {
  auto num_keys = static_cast<size_t>(attrs.integer("num_keys"));
  Val first = xs[0];
  Vals all(std::span<const Val>(xs).first(num_keys));
  DType dtype = index_dtype(DType::kI32, first.shape());
  all.push_back(iota(*first.builder, make_type(dtype, first.shape()),
                     static_cast<int>(attrs.integer("dimension"))));
  all.append(Vals(std::span<const Val>(xs).subspan(num_keys)));
  Vals sorted =
      apply(op_named<"sort">(), all,
            attrs.with({{"is_stable", false}, {"num_keys", attrs.integer("num_keys") + 1}}));
  Vals out(std::span<const Val>(sorted).first(num_keys));
  out.append(Vals(std::span<const Val>(sorted).subspan(num_keys + 1)));
  return out;
}

void emit_sort(EmitCtx& c) {
  if (c.in_type(0)->num_elements() == 0) {
    for (size_t i = 0; i < c.size(); ++i) c.set_out(i, c.in(i));
    return;
  }
  if (std::any_of(c.in_types.begin(), c.in_types.end(), is_narrow))
    return emit_as_all(c, [&](const Vals& xs) { return sort_wider(c, xs); });
  TypeRef x = c.in_type(0);
  bool is_counted = c.platform() == "cpu" && !c.has_several_devices() &&
                    x->num_elements() >= kFewestCounted &&
                    x->dim(static_cast<int>(c.attr().integer("dimension"))) <= kMostCounted;
  if (is_counted)
    return emit_as_all(c, [&](const Vals& xs) { return sort_by_counting(xs, c.attr()); });
  if (c.platform() == "cpu" && std::ranges::any_of(c.in_types, is_bfloat16))
    return emit_as_all(c, [&](const Vals& xs) { return sort_as_bits(c, xs); });
  if (c.platform() == "iree" && c.attr().boolean("is_stable"))
    return emit_as_all(c, [&](const Vals& xs) { return sort_with_positions(xs, c.attr()); });
  std::string region =
      c.region(*comparator(c.in_types, c.attr().integer("num_keys")), "stablehlo.return");
  emit_results(c, cat("\"stablehlo.sort\"(", operand_list(c),
                      ") <{dimension = ", c.attr().integer("dimension"),
                      " : i64, is_stable = ", c.attr().boolean("is_stable") ? "true" : "false",
                      "}> (", region, ") : ", signature(c)));
}

// Sorts positions along, by which the tangents are then reordered.
void differentiate_sort(GraphJvpCtx& c) {
  int axis = static_cast<int>(c.attr().integer("dimension"));
  TypeRef first = c.in_types[0];
  DType dtype = index_dtype(DType::kI32, first->shape());
  Vals xs;
  for (Value v : c.operands) xs.push_back(c.val(v));
  xs.push_back(iota(c.b, with_dtype(first, dtype), axis));
  Vals sorted = apply(c.op, xs, c.attrs);
  for (size_t i = 0; i < c.operands.size(); ++i) {
    c.results.push_back(sorted[i].value);
    Val t = c.val(c.tangents[i]);
    if (t && first->num_elements() != 0) t = take_along(t, sorted.back(), axis);
    c.result_tangents.push_back(t.value);
  }
}

OpDef sort_op() {
  OpDef d;
  d.name = "sort";
  d.doc = "Arrays reordered together along an axis, increasing in the first num_keys of them.";
  d.attrs = {
      {"dimension", AttrType::kInt}, {"is_stable", AttrType::kBool}, {"num_keys", AttrType::kInt}};
  d.multiple_results = true;
  d.infer = infer_sort;
  d.place = [](PlaceCtx& c) { place_alike(c, {c.attr().integer("dimension")}); };
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = differentiate_sort;
  d.graph_linearize = differentiate_sort;
  d.batch = [](BatchCtx& c) {
    int at = *std::find_if(c.dims.begin(), c.dims.end(), [](int d) { return d != kNotBatched; });
    Vals xs;
    for (size_t i = 0; i < c.operands.size(); ++i) xs.push_back(c.at(i, at));
    c.apply(xs, c.attrs->with({{"dimension", shifted(c.attr().integer("dimension"), at)}}), at);
  };
  d.emit = emit_in_bytes("sort", emit_sort);
  d.for_kernel = [](RuleCtx& c) -> Vals {
    int axis = static_cast<int>(c.attr().integer("dimension"));
    if (!is_for_kernel(c, axis)) return {};
    Vals xs;
    for (size_t i = 0; i < c.size(); ++i) xs.push_back(c.x(i));
    return sort_by_counting(xs, c.attr());
  };
  d.simplify = {{"sort_one", "along an axis of size 1 -> x", [](SimplifyCtx& c) {
                   Vals xs;
                   if (c.in_types[0]->dim(static_cast<int>(c.attr().integer("dimension"))) > 1)
                     return xs;
                   for (Value v : c.operands) xs.push_back(c.val(v));
                   return xs;
                 }}};
  d.cost = [](const CostCtx& c) {
    double n =
        static_cast<double>(c.in_types[0]->dim(static_cast<int>(c.attrs->integer("dimension"))));
    Cost cost = cost_bytes(c);
    cost.flops = static_cast<double>(c.in_types[0]->num_elements()) * std::log2(std::fmax(n, 2));
    return cost;
  };
  return d;
}

TypeRefs infer_top_k(const InferCtx& c) {
  TypeRef x = c.in(0);
  int64_t k = c.attr().integer("k"), axis = c.attr().integer("axis");
  auto got = [&] { return cat("; got k=", k, ", axis=", axis, " (operand: ", x, ")"); };
  if (!contains(DTypeSet(kBools | kReals), x->dtype()))
    c.fail(ErrorKind::kDtype, "expected numbers with an order, or bool", got());
  if (axis < 0 || axis >= x->rank())
    c.fail(ErrorKind::kValue, "expected axis between 0 and ", x->rank() - 1, got());
  int64_t size = x->dim(static_cast<int>(axis));
  if (is_negative(k) || !dim_at_least(size, k))
    c.fail(ErrorKind::kValue, "expected k between 0 and ", size, ", the size of the axis", got());
  Dims shape = x->shape();
  shape[static_cast<size_t>(axis)] = k;
  return {with_shape(x, shape), make_type(DType::kI32, shape)};
}

std::string emit_transposed(EmitCtx& c, std::string x, TypeRef from, const Dims& permutation) {
  TypeRef to = with_shape(from, pick(from->shape(), permutation));
  return c.line(cat("stablehlo.transpose ", x, ", dims = ", bracketed(permutation), " : (",
                    mlir_type(from), ") -> ", mlir_type(to)));
}

// Positions are sorted by the numbers turned around, so that the first of equal ones comes first.
Vals top_k_by_sorting(Val x, const AttrRecord& attrs) {
  int axis = static_cast<int>(attrs.integer("axis"));
  Dims kept = x.shape();
  kept[static_cast<size_t>(axis)] = attrs.integer("k");
  if (x.type()->num_elements() == 0) {
    return {zeros(*x.builder, with_shape(x.type(), kept)),
            zeros(*x.builder, make_type(DType::kI32, kept))};
  }
  Val xs[] = {logical_not(in_total_order(x)),
              iota(*x.builder, make_type(DType::kI32, x.shape()), axis)};
  const OpDef& sort = op_named<"sort">();
  Val order = apply(sort, xs,
                    AttrRecord::make(sort.name, sort.attrs,
                                     {{"dimension", static_cast<int64_t>(axis)},
                                      {"is_stable", true},
                                      {"num_keys", int64_t{1}}}))[1];
  order = slice(order, Dims(kept.size()), kept);
  return {take_along(x, order, axis), order};
}

// CHLO takes the last axis, and XLA no numbers of less than 8 bits.
void emit_top_k(EmitCtx& c) {
  if (has_plain_ops_only(c.platform()))
    return emit_as_all(c, [&](const Vals& xs) { return top_k_by_sorting(xs[0], c.attr()); });
  TypeRef in = c.in_type(0);
  bool is_on_cpu = c.platform() == "cpu";
  // On CPU XLA has a pass for float32, and sorts others. What is converted back may lose subnormal
  // bfloat16 numbers (sort_as_bits).
  if (is_on_cpu && is_bfloat16(in)) {
    return emit_as_all(c, [&](const Vals& xs) -> Vals {
      Vals wide{convert(xs[0], DType::kF32)};
      Val order = apply(op_named<"top_k">(), wide, c.attr().with({}))[1];
      return {take_along(xs[0], order, static_cast<int>(c.attr().integer("axis"))), order};
    });
  }
  std::string x = c.in(0);
  auto converted = [&](std::string from, TypeRef type, DType to) {
    if (type->dtype() == to) return from;
    return c.line(cat("stablehlo.convert ", from, " : (", mlir_type(type), ") -> ",
                      mlir_type(with_dtype(type, to))));
  };
  DType dtype = in->dtype();
  if (info(dtype).bits < 8 && !is_bool(dtype)) dtype = is_float(dtype) ? DType::kF32 : DType::kI8;
  if (is_on_cpu && dtype == DType::kF16) dtype = DType::kF32;
  x = converted(x, in, dtype);
  in = with_dtype(in, dtype);

  int last = in->rank() - 1;
  size_t axis = static_cast<size_t>(c.attr().integer("axis"));
  Dims swap = count_up(in->rank());
  std::swap(swap[axis], swap.back());
  bool is_last = counts_up(swap);
  if (!is_last) x = emit_transposed(c, x, in, swap);
  Dims shape = pick(in->shape(), swap), kept = shape;
  kept[static_cast<size_t>(last)] = c.attr().integer("k");
  TypeRef types[] = {make_type(dtype, kept), make_type(DType::kI32, kept)};
  std::string made = c.line(
      cat("chlo.top_k(", x, ", k = ", kept.back(), ") : ", mlir_type(make_type(dtype, shape)),
          " -> (", mlir_type(types[0]), ", ", mlir_type(types[1]), ")"),
      2);
  for (size_t i = 0; i < 2; ++i) {
    std::string y = cat(made, "#", i);
    if (!is_last) y = emit_transposed(c, y, types[i], swap);
    TypeRef type = with_dtype(c.out_type(i), types[i]->dtype());
    c.set_out(i, converted(y, type, c.out_type(i)->dtype()));
  }
}

Vals top_k_by_counting(Val x, int axis, int64_t k) {
  // Turned around: from the greatest on.
  Val order = order_by_counting({logical_not(in_total_order(x))}, axis);
  Dims kept = x.shape();
  kept[static_cast<size_t>(axis)] = k;
  order = slice(order, Dims(kept.size()), kept);
  return {take_along(x, order, axis), order};
}

OpDef top_k_op() {
  OpDef d;
  d.name = "top_k";
  d.doc = "The k greatest elements along an axis, in decreasing order, and their indices.";
  d.attrs = {{"axis", AttrType::kInt}, {"k", AttrType::kInt}};
  d.num_operands = 1;
  d.multiple_results = true;
  d.infer = infer_top_k;
  d.place = [](PlaceCtx& c) { place_alike(c, {c.attr().integer("axis")}); };
  d.jvp_kind = JvpKind::kCustom;
  d.jvp = [](JvpCtx& c) -> Vals {
    if (c.out_types[0]->num_elements() == 0) return {Val{}, Val{}};
    return {take_along(c.t(0), c.y(1), static_cast<int>(c.attr().integer("axis"))), Val{}};
  };
  d.batch = [](BatchCtx& c) {
    Val x = c.x(0);
    c.apply({&x, 1}, c.attrs->with({{"axis", shifted(c.attr().integer("axis"), c.dim(0))}}),
            c.dim(0));
  };
  d.emit = emit_top_k;
  d.for_kernel = [](RuleCtx& c) -> Vals {
    int axis = static_cast<int>(c.attr().integer("axis"));
    if (!is_for_kernel(c, axis)) return {};
    return top_k_by_counting(c.x(0), axis, c.attr().integer("k"));
  };
  d.cost = [](const CostCtx& c) {
    Cost cost = cost_bytes(c);
    double k = static_cast<double>(c.attrs->integer("k"));
    cost.flops = static_cast<double>(c.in_types[0]->num_elements()) * std::log2(std::fmax(k, 2));
    return cost;
  };
  return d;
}

}  // namespace

void register_sort(OpRegistry& r) {
  r.add(sort_op());
  r.add(top_k_op());
}

}  // namespace weft
