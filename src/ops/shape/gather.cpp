// gather: slices of an array at the places that an array of index vectors gives.
#include "ops/def/addressing.h"
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/limits.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/shape/family.h"

namespace weft {
namespace {

TypeRefs infer_gather(const InferCtx& c) {
  TypeRef x = c.in(0), indices = c.in(1);
  Addressing a = gather_addressing(c.attr());
  const Dims& sizes = c.attr().ints("slice_sizes");
  auto got = [&] { return cat("; got slice_sizes=", sizes, " (", operand_types(c), ")"); };
  if (!is_integer(indices->dtype()))
    c.fail(ErrorKind::kDtype, "expected integer indices; got ", operand_types(c));
  if (indices->rank() == 0)
    c.fail(ErrorKind::kShape, "expected indices with an axis for the index vectors; got ",
           operand_types(c));
  int rank = static_cast<int>(a.window_axes.size()) + indices->rank() - 1;
  check_addressing(c, a, kGatherNames, rank);
  if (static_cast<int>(sizes.size()) != x->rank())
    c.fail(ErrorKind::kValue, "expected a slice size for each axis of the operand (gather C20)",
           got());
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!(Checked(sizes[i]) >= 0 && Checked(sizes[i]) <= x->shape()[i]))
      c.fail(ErrorKind::kShape, "expected slice_sizes between 0 and the operand's shape (gather ",
             "C21)", got());
  for (const auto& [axes, label] : {std::pair(a.dropped, 9), std::pair(a.batching, 12)})
    for (int64_t axis : axes)
      if (sizes[static_cast<size_t>(axis)] > 1)
        c.fail(ErrorKind::kValue, "expected slices of size 1 along axis ", axis,
               ", which they lack (gather C", label, ")", got());
  Dims shape, windows = pick(sizes, a.kept_axes(x->rank()));
  size_t next_window = 0, next_index = 0;
  for (int i = 0; i < rank; ++i)
    shape.push_back(has_axis(a.window_axes, i) ? windows[next_window++]
                                               : indices->shape()[next_index++]);
  return {with_shape(x, shape)};
}

// What is read outside of the array has no derivative.
Val jvp_gather(const JvpArgCtx& c) {
  return apply(c.op, Vals{c.t(), c.x(1)}, c.attr().with({{"fill_value", 0.0}}))[0];
}

void transpose_gather(TransposeCtx& c) {
  Addressing a = gather_addressing(c.attr());
  auto add_to = [&](Val sum) { return scatter("scatter-add", sum, c.x(1), c.ct(), a); };
  c.accumulate(0, add_to, [&] { return add_to(zeros(c.b, c.in_types[0])); });
}

void batch_gather(BatchCtx& c) {
  Addressing a = gather_addressing(c.attr());
  const Dims& sizes = c.attr().ints("slice_sizes");
  std::optional<double> fill;
  if (!c.attr().is_none("fill_value")) fill = c.attr().real("fill_value");
  if (c.batched(1)) return c.result(gather_lanes(c.x(0), c.dim(0), c.at(1, 0), a, sizes, fill), 0);
  int at = c.dim(0), block_at;
  Addressing mapped = mapped_operand(a, c.in_types[0]->rank(), at, &block_at);
  c.result(gather(c.x(0), c.x(1), mapped, inserted(sizes, at, c.size), fill), block_at);
}

// Windows keep the dimensions that they span; dimensions that go in step are split alike.
void place_gather(PlaceCtx& c) {
  Addressing a = gather_addressing(c.attr());
  const Dims& sizes = c.attr().ints("slice_sizes");
  TypeRef x = c.in_types[0], indices = c.in_types[1];
  Dims of_indices = other_axes(c.out_types[0]->rank(), a.window_axes);
  std::vector<Dims> to{Dims(x->shape().size(), kWhole), Dims(indices->shape().size(), kWhole)};
  size_t next = 0;
  for (int64_t axis : a.kept_axes(x->rank())) {
    int64_t at = a.window_axes[next++];
    auto i = static_cast<size_t>(axis);
    if (sizes[i] == x->shape()[i]) to[0][i] = at;
  }
  for (size_t i = 0; i < a.batching.size(); ++i) {
    auto axis = static_cast<size_t>(a.indices_batching[i]);
    to[1][axis] = to[0][static_cast<size_t>(a.batching[i])] = of_indices[axis];
  }
  place_dims(c, to);
}

Val fill_literal(Builder& b, DType dtype, const AttrRecord& attrs) {
  Literal value;
  if (!attrs.is_none("fill_value")) {
    value = make_literal(dtype, attrs.real("fill_value"));
  } else if (is_inexact(dtype)) {
    value = make_literal(dtype, std::numeric_limits<double>::quiet_NaN());
  } else {
    value = is_signed_int(dtype) ? lowest(dtype) : highest(dtype);
  }
  return {&b, b.literal(value)};
}

// Mode "fill" by a gather that promises and a mask.
Val filled_gather(Val x, Val indices, const AttrRecord& attrs) {
  Addressing a = gather_addressing(attrs);
  const Dims& sizes = attrs.ints("slice_sizes");
  Val outside = gt(indices, largest_starts(indices, a, x.shape(), sizes));
  if (is_signed_int(indices.dtype()))
    outside = logical_or(outside, lt(indices, scalar_like(indices, 0)));
  outside = reduce_or(outside, {indices.rank() - 1});
  a.mode = "promise_in_bounds";
  Val y = gather(x, indices, a, sizes);
  Val mask = broadcast_in_dim(outside, y.shape(), other_axes(y.rank(), a.window_axes));
  return select(mask, broadcast_to(fill_literal(*x.builder, x.dtype(), attrs), y.shape()), y);
}

void emit_gather_line(EmitCtx& c, const Addressing& a, std::string_view operands) {
  emit_results(
      c, cat("\"stablehlo.gather\"(", operands, ") <{dimension_numbers = #stablehlo.gather<",
             dimension_numbers(a, kGatherNames, c.in_type(1)),
             ">, indices_are_sorted = ", a.sorted ? "true" : "false",
             ", slice_sizes = ", mlir_ints(c.attr().ints("slice_sizes")), "}> : ", signature(c)));
}

// IREE 3.13 reads past the end where others clamp.
void emit_checked_gather(EmitCtx& c, const Addressing& a) {
  GraphBuilder b;
  Val indices{&b, b.input(c.in_type(1))};
  Value inside = clipped(indices, a, c.in_type(0)->shape(), c.attr().ints("slice_sizes")).value;
  std::string given[] = {c.in(1)};
  std::string starts = c.inline_graph(*b.finish({&inside, 1}), given)[0];
  emit_gather_line(c, a, cat(c.in(0), ", ", starts));
}

// XLA clamps starts as mode "clip" wants it. But it makes a slice of one window, and loses the
// clamp where that becomes one with another slice (see slice.cpp), so the start of one window is
// clamped here.
void emit_gather(EmitCtx& c) {
  Addressing a = gather_addressing(c.attr());
  const Dims& sizes = c.attr().ints("slice_sizes");
  DType index = index_dtype(c.in_type(1)->dtype(), c.in_type(0)->shape());
  bool clips = a.mode == "clip" && has_one_window(c.in_type(1)) && !a.index_map.empty();
  if (a.mode != "fill" && !clips && index == c.in_type(1)->dtype()) {
    if (c.platform() == "iree" && !a.index_map.empty()) return emit_checked_gather(c, a);
    return emit_gather_line(c, a, operand_list(c));
  }
  emit_as(c, [&](const Vals& xs) {
    Val indices = convert(xs[1], index);
    if (a.mode == "fill") return filled_gather(xs[0], indices, c.attr());
    if (clips) {
      indices = clipped(indices, a, xs[0].shape(), sizes);
      a.mode = "promise_in_bounds";
    }
    return gather(xs[0], indices, a, sizes);
  });
}

OpDef gather_op() {
  OpDef d;
  d.name = "gather";
  d.doc = "Slices of an array, each starting where an index vector says.";
  d.attrs = {{"offset_dims", AttrType::kInts},
             {"collapsed_slice_dims", AttrType::kInts},
             {"start_index_map", AttrType::kInts},
             {"operand_batching_dims", AttrType::kInts, AttrSpec::kHideDefault, Dims()},
             {"start_indices_batching_dims", AttrType::kInts, AttrSpec::kHideDefault, Dims()},
             {"slice_sizes", AttrType::kInts},
             {"mode", AttrType::kString},
             {"fill_value", AttrType::kFloat, AttrSpec::kOptional},
             {"unique_indices", AttrType::kBool, AttrSpec::kHideDefault, false},
             {"indices_are_sorted", AttrType::kBool, AttrSpec::kHideDefault, false}};
  d.num_operands = 2;
  d.infer = infer_gather;
  d.place = place_gather;
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {jvp_gather};
  d.transpose = transpose_gather;
  d.batch = batch_gather;
  d.in_kernel = is_same_in_kernel;
  d.emit = emit_gather;
  d.check = [](CheckCtx& c) {
    check_within(c, c.x(1), gather_addressing(c.attr()), c.attr().ints("slice_sizes"));
  };
  d.cost = [](const CostCtx& c) {  // reads what it writes, and the indices
    double bytes = 2.0 * static_cast<double>(c.out_types[0]->num_bytes());
    return Cost{.bytes = bytes + static_cast<double>(c.in_types[1]->num_bytes())};
  };
  return d;
}

}  // namespace

void register_gather(OpRegistry& r) { r.add(gather_op()); }

}  // namespace weft
