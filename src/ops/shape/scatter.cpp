// The scatter family: an array with windows of it overwritten by, or combined with, updates. The
// members differ in how they combine and in how they differentiate; one table lists them.
#include "ops/def/addressing.h"
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/partition.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/shape/family.h"
#include "weft/registry.h"

namespace weft {
namespace {

TypeRefs infer_scatter(const InferCtx& c, DTypeSet dtypes) {
  TypeRef x = c.in(0), indices = c.in(1), updates = c.in(2);
  Addressing a = scatter_addressing(c.attr());
  if (!contains(dtypes, x->dtype()))
    c.fail(ErrorKind::kDtype, "expected ", describe(dtypes), "; got ", operand_types(c));
  if (updates->dtype() != x->dtype())
    c.fail(ErrorKind::kDtype, "expected updates of the operand's dtype (scatter C6); got ",
           operand_types(c));
  if (!is_integer(indices->dtype()))
    c.fail(ErrorKind::kDtype, "expected integer indices; got ", operand_types(c));
  if (indices->rank() == 0)
    c.fail(ErrorKind::kShape, "expected indices with an axis for the index vectors; got ",
           operand_types(c));
  check_addressing(c, a, kScatterNames, updates->rank());
  Dims index_sizes = indices->shape();
  index_sizes.pop_back();
  if (drop_axes(updates->shape(), a.window_axes) != index_sizes)
    c.fail(ErrorKind::kShape, "expected updates of the indices' shape ", index_sizes,
           " along the axes that are not in update_window_dims=", a.window_axes,
           " (scatter C4); got ", operand_types(c));
  Dims sizes = window_sizes(a, x, updates);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!(Checked(sizes[i]) <= x->shape()[i]))
      c.fail(ErrorKind::kShape, "expected windows no larger than the operand (scatter C4); got ",
             "windows of shape ", sizes, " (", operand_types(c), ")");
  return {x};
}

// Whether no element is written twice.
bool writes_once(TypeRef indices, const Addressing& a) {
  return a.unique || has_one_window(indices);
}

// What each update reads from an array of the operand's type; 0 outside of it.
Val read_back(const RuleCtx& c, Val x, const Addressing& a) {
  return gather(x, c.x(1), a, window_sizes(a, c.in_types[0], c.in_types[2]), 0.0);
}

// Of the updates of one element, the one that stayed: numbers the updates, scatters the numbers,
// and reads them back.
struct Winners {
  Val untouched;  // of the operand's shape: no update wrote here
  Val stayed;     // of the updates' shape
};
Winners find_winners(const RuleCtx& c, const Addressing& a) {
  TypeRef updates = c.in_types[2];
  DType dtype = index_dtype(DType::kI32, {dim_add(updates->num_elements(), 1)});
  Val ids = iota(c.b, make_type(dtype, Dims{updates->num_elements()}), 0);
  ids = reshape(ids + 1.0, updates->shape());
  Val written = scatter("scatter", zeros(c.b, with_dtype(c.in_types[0], dtype)), c.x(1), ids, a);
  return {eq(written, scalar_like(written, 0)), eq(read_back(c, written, a), ids)};
}

Vals jvp_replace(JvpCtx& c) {
  Addressing a = scatter_addressing(c.attr());
  if (writes_once(c.in_types[1], a)) return apply(c.op, Vals{c.t(0), c.x(1), c.t(2)}, c.attrs);
  Winners w = find_winners(c, a);
  Val base = zeros(c.b, c.in_types[0]);
  if (c.has_t(0)) base = select(w.untouched, c.t(0), base);
  if (!c.has_t(2)) return {base};
  Val kept = select(w.stayed, c.t(2), zeros(c.b, c.in_types[2]));
  return {scatter("scatter-add", base, c.x(1), kept, a)};
}

void transpose_replace(TransposeCtx& c) {
  Addressing a = scatter_addressing(c.attr());
  if (c.linear(0)) c.add(0, scatter("scatter", c.ct(), c.x(1), zeros(c.b, c.in_types[2]), a));
  if (!c.linear(2)) return;
  Val ct = read_back(c, c.ct(), a);
  if (!writes_once(c.in_types[1], a)) ct = select(find_winners(c, a).stayed, ct, zeros_like(ct));
  c.add(2, ct);
}

void transpose_add(TransposeCtx& c) {
  if (c.linear(0)) c.add(0, c.ct());
  if (!c.linear(2)) return;
  Val ct = read_back(c, c.ct(), scatter_addressing(c.attr()));
  c.add(2, c.op.name == "scatter-sub" ? -ct : ct);
}

// For each update, the product of the other updates of its element; 1 for one that is dropped.
// Without division, since updates may be zero, and of ops that have derivatives in their turn:
// sorts the updates by element and multiplies from both ends of each run of equal elements, over
// twice the distance in each step (segmented scan: Blelloch, Prefix sums and their applications,
// 1990).
Val product_of_others(const RuleCtx& c, const Addressing& a) {
  TypeRef x = c.in_types[0], updates = c.in_types[2];
  int64_t n = updates->num_elements();
  if (is_symbolic(n))
    fail(ErrorKind::kNotImplemented, "[", c.op.name, "] expected updates of a known size for a ",
         "derivative, which takes log(n) steps; got ", updates);
  DType dtype = index_dtype(DType::kI32, {dim_add(x->num_elements(), 1), n});
  // Elements are numbered from 1, so that 0 is read outside of the array.
  Val numbers = reshape(iota(c.b, make_type(dtype, Dims{x->num_elements()}), 0) + 1.0, x->shape());
  Val element = read_back(c, numbers, a);
  Val factors = select(eq(element, zeros_like(element)), ones_like(c.x(2)), c.x(2));
  Vals sorted =
      apply("sort",
            {reshape(element, {n}), reshape(factors, {n}), iota(c.b, make_type(dtype, Dims{n}), 0)},
            {{"dimension", int64_t{0}}, {"is_stable", true}, {"num_keys", int64_t{1}}});
  Val keys = sorted[0];
  // What stands `by` places before (behind, if negative) in the same run; 1 outside of it.
  auto moved = [&](Val v, int64_t by) {
    auto at = [&](Val from, double edge) {
      return pad(from, scalar_like(from, edge), {{by, -by, 0}});
    };
    return select(eq(keys, at(keys, -1)), at(v, 1), ones_like(v));
  };
  Val others;
  for (int64_t direction : {1, -1}) {
    Val product = sorted[1];
    for (int64_t by = 1; by < n; by *= 2) product = product * moved(product, by * direction);
    product = moved(product, direction);
    others = others ? others * product : product;
  }
  Addressing back{.dropped = {0}, .index_map = {0}, .mode = "promise_in_bounds", .unique = true};
  Val in_order = scatter("scatter", zeros_like(others), expand_dim(sorted[2], 1), others, back);
  return reshape(in_order, updates->shape());
}

Val jvp_multiply_operand(const JvpArgCtx& c) {
  return apply(c.op, Vals{c.t(), c.x(1), c.x(2)}, c.attrs)[0];
}
Val jvp_multiply_updates(const JvpArgCtx& c) {
  Addressing a = scatter_addressing(c.attr());
  Val slope = read_back(c, c.x(0), a);
  if (!writes_once(c.in_types[1], a)) slope = slope * product_of_others(c, a);
  return scatter("scatter-add", zeros_like(c.x(0)), c.x(1), c.t() * slope, a);
}

void transpose_multiply(TransposeCtx& c) {
  if (c.linear(2))
    fail(ErrorKind::kNotImplemented, "[", c.op.name,
         "] is not linear in its updates: elements without an update stay as they are");
  c.add(0, apply(c.op, Vals{c.ct(), c.x(1), c.x(2)}, c.attrs)[0]);
}

// The mean of the tangents of the operand's element and of the updates that attain the extreme.
Vals jvp_extreme(JvpCtx& c) {
  Addressing a = scatter_addressing(c.attr());
  DType dtype = c.in_types[0]->dtype();
  Val y = c.y();
  Val kept = convert(eq(c.x(0), y), dtype);
  Val attained = convert(eq(c.x(2), read_back(c, y, a)), dtype);
  auto sum = [&](Val x, Val updates) { return scatter("scatter-add", x, c.x(1), updates, a); };
  Val count = max(sum(kept, attained), scalar_like(y, 1));  // none if it is NaN
  Val t = c.has_t(0) ? c.t(0) * kept : zeros_like(y);
  if (c.has_t(2)) t = sum(t, c.t(2) * attained);
  return {t / count};
}

void batch_scatter(BatchCtx& c) {
  Addressing a = scatter_addressing(c.attr());
  int at = c.batched(0) ? c.dim(0) : 0, block_at = 0;
  Addressing mapped = c.batched(1) ? mapped_indices(a, at)
                                   : mapped_operand(a, c.in_types[0]->rank(), at, &block_at);
  Val xs[] = {c.at(0, at), c.moved(1, 0), c.at(2, block_at)};
  c.apply(xs, with_addressing(c.attr(), mapped), at);
}

// Old and new value -> what is stored.
using Combine = std::function<Val(const AttrRecord& attrs, Val old, Val update)>;

// A scatter as reads and writes of one window after the other, in the order of XLA's scatter for
// CPUs.
class WindowsInTurn {
 public:
  // Of the operands array, indices, updates.
  WindowsInTurn(const AttrRecord& attrs, const Vals& xs, const Combine& combine)
      : attrs_(attrs),
        combine_(combine),
        a_(scatter_addressing(attrs)),
        sizes_(window_sizes(a_, xs[0].type(), xs[2].type())),
        axes_(a_.index_map) {
    axes_.append(a_.batching);
    Dims of_indices = other_axes(xs[2].rank(), a_.window_axes), order = of_indices;
    Dims shape = pick(xs[2].shape(), of_indices);
    count_ = product(shape);
    order.append(a_.window_axes);
    updates_ = reshape(transpose(xs[2], order), inserted(sizes_, 0, count_));
    Val indices = convert(xs[1], index_dtype(xs[1].dtype(), xs[0].shape()));
    int64_t components = indices.shape().back();
    Val vectors = reshape(indices, {count_, components});
    for (int64_t i = 0; i < components; ++i)
      starts_.push_back(reshape(slice(vectors, {0, i}, {count_, i + 1}), {count_}));
    for (int64_t axis : a_.indices_batching) {
      Val place = iota(*indices.builder, make_type(indices.dtype(), shape), static_cast<int>(axis));
      starts_.push_back(reshape(place, {count_}));
    }
  }

  int64_t count() const { return count_; }

  Val written_out(Val x) const {
    for (int64_t i = 0; i < count_; ++i) {
      Dims from(sizes_.size() + 1), to = inserted(sizes_, 0, i + 1);
      from[0] = i;
      Vals starts;
      for (Val all : starts_) starts.push_back(reshape(slice(all, {i}, {i + 1}), {}));
      x = write(x, starts, reshape(slice(updates_, from, to), sizes_));
    }
    return x;
  }

  Val as_loop(Val x) const {
    GraphBuilder body;
    Val carried{&body, body.input(x.type())};
    Vals starts, operands{x};
    for (Val all : starts_) {
      starts.push_back({&body, body.input(scalar_type(all.dtype()))});
      operands.push_back(all);
    }
    operands.push_back(updates_);
    Val next = write(carried, starts, {&body, body.input(with_shape(updates_.type(), sizes_))});
    return scan_over(*x.builder, operands, body.finish({&next.value, 1}),
                     {.length = count_, .num_carry = 1})[0];
  }

 private:
  // A number that stands in memory for XLA's scatter of several windows. Else the compiler would
  // join its last operation with the combining one, and round once.
  Val stored(Val x) const {
    return count_ > 1 && is_float(x.dtype()) ? apply1("clamp", {x, x, x}) : x;
  }

  // Unless it is moved inside, a window that is not within the array changes nothing.
  Val write(Val x, const Vals& starts, Val update) const {
    DType dtype = starts.empty() ? DType::kI32 : starts[0].dtype();
    auto number = [&](int64_t n) {
      return Val{x.builder, x.builder->literal(make_literal(dtype, n))};
    };
    Vals at(sizes_.size(), number(0));
    Val inside;
    for (size_t i = 0; i < axes_.size(); ++i) {
      size_t axis = static_cast<size_t>(axes_[i]);
      at[axis] = starts[i];
      if (i >= a_.index_map.size() || a_.mode == "clip") continue;
      Val fits = le(starts[i], number(x.shape()[axis] - sizes_[axis]));
      if (is_signed_int(dtype)) fits = logical_and(fits, ge(starts[i], number(0)));
      inside = inside ? logical_and(inside, fits) : fits;
    }
    Val old = dynamic_slice(x, at, sizes_), made = combine_(attrs_, stored(old), stored(update));
    return dynamic_update_slice(x, inside ? select(inside, made, old) : made, at);
  }

  const AttrRecord& attrs_;
  const Combine& combine_;
  Addressing a_;
  Dims sizes_;  // of a window
  Dims axes_;   // of the array, along which starts count
  int64_t count_;
  Vals starts_;  // for each of these axes, of all windows
  Val updates_;  // [windows, sizes of a window]
};

std::string combining_region(EmitCtx& c, const Combine& combine) {
  TypeRef scalar = scalar_type(c.in_type(0)->dtype());
  GraphBuilder b;
  Val old{&b, b.input(scalar)}, update{&b, b.input(scalar)};
  Value result = combine(c.attr(), old, update).value;
  return c.region(*b.finish({&result, 1}), "stablehlo.return");
}

// XLA makes a read and a write of one window, whose index it does not clamp where the array is a
// slice itself, as parts of split arrays are. So the array stays apart from that slice.
void emit_plain(EmitCtx& c, const Addressing& a, const Combine& combine) {
  std::string region = combining_region(c, combine), x = c.in(0);
  if (has_one_window(c.in_type(1))) x = emit_apart(c, x, c.in_type(0));
  emit_results(c, cat("\"stablehlo.scatter\"(", x, ", ", c.in(1), ", ", c.in(2),
                      ") <{indices_are_sorted = ", a.sorted ? "true" : "false",
                      ", scatter_dimension_numbers = #stablehlo.scatter<",
                      dimension_numbers(a, kScatterNames, c.in_type(1)), ">, unique_indices = ",
                      a.unique ? "true" : "false", "}> (", region, ") : ", signature(c)));
}

// XLA drops windows that are not inside, as mode "fill" wants it.
void emit_by_xla(EmitCtx& c, std::string_view op, const Combine& combine, bool rounds) {
  Addressing a = scatter_addressing(c.attr());
  TypeRef updates = c.in_type(2);
  if (updates->num_elements() == 0) return c.set_out(0, c.in(0));
  // Many updates of one element are summed up, or multiplied, in float32.
  DType dtype = updates->dtype();
  if (rounds && is_float(dtype) && info(dtype).bits < 32 && !writes_once(c.in_type(1), a)) {
    return emit_as(c, [&](const Vals& xs) {
      Val x = convert(xs[0], DType::kF32), wide = convert(xs[2], DType::kF32);
      return convert(scatter(op, x, xs[1], wide, a), dtype);
    });
  }
  DType index = index_dtype(c.in_type(1)->dtype(), c.in_type(0)->shape());
  bool has_dtype = index == c.in_type(1)->dtype();
  if (a.mode != "clip" && has_dtype && !a.index_map.empty()) return emit_plain(c, a, combine);
  emit_as(c, [&](const Vals& xs) {
    Val x = xs[0], indices = convert(xs[1], index);
    if (a.index_map.empty()) {
      // XLA fails on index vectors without components, so there is an axis to index: one of size 1.
      x = expand_dim(x, 0);
      a = a.with_operand_axis(0);
      a.dropped = inserted(a.dropped, 0, 0);
      a.index_map = {0};
      Dims shape = indices.shape();
      shape.back() = 1;
      indices = zeros(*x.builder, make_type(index, shape));
    }
    if (a.mode == "clip")
      indices = clipped(indices, a, x.shape(), window_sizes(a, x.type(), updates));
    a.mode = "promise_in_bounds";
    const OpDef& same = registry().get(op);
    Val result = apply(same, Vals{x, indices, xs[2]}, with_addressing(c.attr(), a))[0];
    return reshape(result, c.out_type()->shape());
  });
}

// One window is read and written here, as XLA does it, but at an index that is clamped (slice.cpp).
void emit_scatter(EmitCtx& c, std::string_view op, const Combine& combine, bool rounds) {
  bool is_plain = has_one_window(c.in_type(1)) && c.in_type(2)->num_elements() > 0;
  if (!is_plain || may_be_split(c)) return emit_by_xla(c, op, combine, rounds);
  emit_as(c,
          [&](const Vals& xs) { return WindowsInTurn(c.attr(), xs, combine).written_out(xs[0]); });
}

// In kernels XLA has no scatter. Up to so many windows are written out, and up to so many are gone
// through in a loop. With more of them XLA's scatter is faster than a kernel.
constexpr int64_t kWrittenOut = 4, kMostInLoop = 256;

Vals scatter_for_kernel(RuleCtx& c, const Combine& combine) {
  if (!is_same_in_kernel({c.in_types, c.out_types, c.attrs.get(), {}})) return {};
  WindowsInTurn windows(c.attr(), {c.x(0), c.x(1), c.x(2)}, combine);
  if (windows.count() > kMostInLoop) return {};
  return {windows.count() <= kWrittenOut ? windows.written_out(c.x(0)) : windows.as_loop(c.x(0))};
}

// As the array is split; not along dimensions in which windows are placed.
void place_scatter(PlaceCtx& c) {
  Addressing a = scatter_addressing(c.attr());
  TypeRef x = c.in_types[0], updates = c.in_types[2];
  Dims sizes = window_sizes(a, x, updates);
  Dims of_indices = other_axes(updates->rank(), a.window_axes);
  std::vector<Dims> to;
  for (TypeRef t : c.in_types) to.push_back(Dims(t->shape().size(), kWhole));
  size_t next = 0;
  for (int64_t axis : a.kept_axes(x->rank())) {
    int64_t at = a.window_axes[next++];
    auto i = static_cast<size_t>(axis);
    if (sizes[i] == x->shape()[i]) to[0][i] = to[2][static_cast<size_t>(at)] = axis;
  }
  for (size_t i = 0; i < a.batching.size(); ++i) {
    auto axis = static_cast<size_t>(a.indices_batching[i]);
    to[0][static_cast<size_t>(a.batching[i])] = a.batching[i];
    to[1][axis] = to[2][static_cast<size_t>(of_indices[axis])] = a.batching[i];
  }
  place_dims(c, to);
}

OpDef scatter_op(std::string name, std::string doc, DTypeSet dtypes, Combine combine,
                 bool rounds = false, std::optional<AttrSpec> attr = std::nullopt) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  std::vector<AttrSpec> attrs = {
      {"update_window_dims", AttrType::kInts},
      {"inserted_window_dims", AttrType::kInts},
      {"scatter_dims_to_operand_dims", AttrType::kInts},
      {"operand_batching_dims", AttrType::kInts, AttrSpec::kHideDefault, Dims()},
      {"scatter_indices_batching_dims", AttrType::kInts, AttrSpec::kHideDefault, Dims()},
      {"mode", AttrType::kString},
      {"unique_indices", AttrType::kBool, AttrSpec::kHideDefault, false},
      {"indices_are_sorted", AttrType::kBool, AttrSpec::kHideDefault, false}};
  if (attr) attrs.push_back(*attr);
  d.attrs = AttrSchema(attrs);
  d.num_operands = 3;
  d.infer = [dtypes](const InferCtx& c) { return infer_scatter(c, dtypes); };
  d.batch = batch_scatter;
  d.place = place_scatter;
  d.emit = [name = d.name, combine, rounds](EmitCtx& c) { emit_scatter(c, name, combine, rounds); };
  d.for_kernel = [combine](RuleCtx& c) { return scatter_for_kernel(c, combine); };
  d.check = [](CheckCtx& c) {
    Addressing a = scatter_addressing(c.attr());
    check_within(c, c.x(1), a, window_sizes(a, c.in_types[0], c.in_types[2]));
  };
  d.simplify = {
      {d.name + "_nothing", "scatter of an empty array of updates -> x",
       [](SimplifyCtx& c) { return c.in_types[2]->num_elements() == 0 ? Vals{c.x(0)} : Vals{}; }}};
  d.cost = [](const CostCtx& c) {
    double updates = static_cast<double>(c.in_types[2]->num_elements());
    return Cost{.flops = updates, .bytes = cost_bytes(c).bytes};
  };
  return d;
}

OpDef scatter_op(std::string name, std::string doc, DTypeSet dtypes, Val (*combine)(Val, Val),
                 bool rounds = false) {
  return scatter_op(
      std::move(name), std::move(doc), dtypes,
      [combine](const AttrRecord&, Val old, Val update) { return combine(old, update); }, rounds);
}

// scatter-apply: the graph is applied to each element as often as windows hold it. The updates only
// say how large the windows are.
TypeRefs infer_apply(const InferCtx& c) {
  TypeRefs out = infer_scatter(c, kAnyDType);
  const Graph& f = *c.attr().graph("jaxpr");
  TypeRef scalar = scalar_type(c.in(0)->dtype());
  std::vector<TypeRef> results = f.output_types();
  if (f.num_inputs() != 1 || f.input_types()[0] != scalar || results.size() != 1 ||
      results[0] != scalar)
    c.fail(ErrorKind::kType, "expected a jaxpr that takes one ", scalar, " and returns one; got ",
           f.num_inputs(), " inputs and ", results.size(), " outputs (", operand_types(c), ")");
  return out;
}

Val apply_graph(const AttrRecord& attrs, Val old, Val) {
  return {old.builder, old.builder->inline_graph(*attrs.graph("jaxpr"), {&old.value, 1})[0]};
}

void custom(OpDef& d, JvpRule jvp, TransposeRule transpose = nullptr) {
  d.jvp_kind = JvpKind::kCustom;
  d.jvp = std::move(jvp);
  d.transpose = std::move(transpose);
}

}  // namespace

void register_scatter(OpRegistry& r) {
  OpDef replace = scatter_op(
      "scatter", "An array with windows replaced by updates.", kAnyElement,
      +[](Val, Val update) { return update; });
  custom(replace, jvp_replace, transpose_replace);
  r.add(std::move(replace));

  OpDef sum = scatter_op("scatter-add", "An array with updates added to windows of it.", kNumbers,
                         add, true);
  r.add(linear(sum, transpose_add, {0, 2}));
  OpDef difference = scatter_op(
      "scatter-sub", "An array with updates subtracted from windows of it.", kNumbers, sub, true);
  r.add(linear(difference, transpose_add, {0, 2}));

  OpDef multiply = scatter_op("scatter-mul", "An array with windows of it multiplied by updates.",
                              kNumbers, mul, true);
  multiply.jvp_kind = JvpKind::kArgs;
  multiply.jvp_args = {jvp_multiply_operand, nullptr, jvp_multiply_updates};
  multiply.transpose = transpose_multiply;
  r.add(std::move(multiply));

  OpDef lower =
      scatter_op("scatter-min", "The lesser of windows of an array and updates.", kAnyDType, min);
  custom(lower, jvp_extreme);
  r.add(std::move(lower));
  OpDef upper =
      scatter_op("scatter-max", "The greater of windows of an array and updates.", kAnyDType, max);
  custom(upper, jvp_extreme);
  r.add(std::move(upper));

  OpDef apply = scatter_op("scatter-apply", "An array with a function applied to windows of it.",
                           kAnyDType, apply_graph, false, AttrSpec{"jaxpr", AttrType::kGraph});
  apply.infer = infer_apply;
  // Its graph takes one number.
  apply.emit = [](EmitCtx& c) { emit_by_xla(c, "scatter-apply", apply_graph, false); };
  apply.for_kernel = nullptr;
  r.add(std::move(apply));
}

}  // namespace weft
