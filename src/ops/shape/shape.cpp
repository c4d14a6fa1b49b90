// Ops that arrange the elements of one array without computing: reshape, squeeze, broadcast_in_dim,
// transpose, rev; and iota, which makes one. All but iota are linear, so a jvp is the op itself.
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/products/products.h"
#include "ops/shape/family.h"

namespace weft {
namespace {

Cost cost_free(const CostCtx&) { return {}; }

TypeRefs infer_reshape(const InferCtx& c) {
  const Dims& sizes = c.attr().ints("new_sizes");
  bool negative = std::any_of(sizes.begin(), sizes.end(), is_negative);
  if (negative || !(checked_product(sizes) == c.in(0)->num_elements()))
    c.fail(ErrorKind::kShape, "expected new_sizes with ", c.in(0)->num_elements(),
           " elements in all (reshape C2); got new_sizes=", sizes, " (operand: ", c.in(0), ")");
  return {with_shape(c.in(0), sizes)};
}

// The mapped axis stays where it is when the axes to its left reshape among themselves; else it
// moves to the front.
void batch_reshape(BatchCtx& c) {
  const Dims& sizes = c.attr().ints("new_sizes");
  const Dims& shape = c.x(0).shape();
  int64_t left = product({shape.data(), static_cast<size_t>(c.dim(0))});
  int at = 0;
  for (int64_t p = 1; at < static_cast<int>(sizes.size()) && p != left; ++at)
    p = dim_mul(p, sizes[static_cast<size_t>(at)]);
  if (product({sizes.data(), static_cast<size_t>(at)}) == left) {
    c.result(reshape(c.x(0), inserted(sizes, at, c.size)), at);
  } else {
    c.result(reshape(c.moved(0, 0), inserted(sizes, 0, c.size)), 0);
  }
}

// If v only regroups the elements of another value, in the same order, that value.
Val reshaped_value(const SimplifyCtx& c, Val v) {
  Val source = c.operand_of<"reshape">(v);
  if (!source) source = c.operand_of<"squeeze">(v);
  if (!source) source = c.operand_of<"broadcast_in_dim">(v);
  // A broadcast that adds axes of size 1 keeps the number of elements.
  bool regroups = source && source.type()->num_elements() == v.type()->num_elements();
  return regroups ? source : Val{};
}

Vals reshape_of_reshape(SimplifyCtx& c) {
  Val source = reshaped_value(c, c.x(0));
  if (!source) return {};
  return {reshape(source, c.out_types[0]->shape())};
}

Vals same_type_as_operand(SimplifyCtx& c) {
  return c.out_types[0] == c.x(0).type() ? Vals{c.x(0)} : Vals{};
}

// For ops that only rearrange elements: of a constant they make a constant.
Vals rearranged_splat(SimplifyCtx& c) {
  std::optional<Literal> x = c.splat(c.x(0));
  if (!x) return {};
  return {broadcast_to(c.val(c.b.literal(*x)), c.out_types[0]->shape())};
}

// Axes of a dimension that is cut into several: the first ones split the first of these. False if
// they do not come out even.
bool split_parts(const PlaceCtx& c, const Dims& axes, std::span<const int64_t> sizes, Dims* parts) {
  size_t at = 0;
  int64_t rest = sizes[0];
  for (int64_t axis : axes) {
    int64_t n = c.mesh->axis(axis).size;
    while (rest == 1 && n > 1 && at + 1 < sizes.size()) rest = sizes[++at];
    if (rest % n != 0) return false;
    rest /= n;
    parts[at].push_back(axis);
  }
  return true;
}

// Dimensions that become one give it their axes, if those that are split come first; one that
// becomes several splits the first of them.
void place_reshape(PlaceCtx& c) {
  const Dims &from = c.in_types[0]->shape(), &to = c.out_types[0]->shape();
  Split in = split_of(c, 0), out(to.size());
  bool follows = product(from) > 0;
  for (size_t i = 0, j = 0; follows && (i < from.size() || j < to.size());) {
    size_t first_from = i, first_to = j;
    int64_t n = i < from.size() ? from[i++] : 1, m = j < to.size() ? to[j++] : 1;
    while (n != m) (n < m ? n *= from[i++] : m *= to[j++]);
    Dims left, right;  // the dimensions of the group that are not 1
    for (size_t d = first_from; d < i; ++d)
      if (from[d] != 1) left.push_back(static_cast<int64_t>(d));
    for (size_t d = first_to; d < j; ++d)
      if (to[d] != 1) right.push_back(static_cast<int64_t>(d));
    auto axes = [&](int64_t d) -> const Dims& { return in[static_cast<size_t>(d)]; };
    bool split = std::any_of(left.begin(), left.end(), [&](int64_t d) { return !axes(d).empty(); });
    if (!split) continue;
    if (right.size() == 1) {
      Dims& all = out[static_cast<size_t>(right[0])];
      bool ended = false;
      for (int64_t d : left) {
        follows = follows && (axes(d).empty() || !ended);
        ended = axes(d).empty();
        for (int64_t axis : axes(d)) all.push_back(axis);
      }
    } else if (left.size() == 1 && !right.empty()) {
      size_t first = static_cast<size_t>(right[0]);
      follows = split_parts(c, axes(left[0]), std::span(&to[first], j - first), &out[first]);
    } else {
      follows = false;
    }
  }
  if (follows) return place_result(c, out);
  place_ambiguous(c, "the dimensions that are split are not kept");
}

OpDef reshape_op() {
  OpDef d;
  d.name = "reshape";
  d.doc = "The same elements in row-major order under another shape.";
  d.attrs = {{"new_sizes", AttrType::kInts}};
  d.num_operands = 1;
  d.infer = infer_reshape;
  linear(d, [](TransposeCtx& c) { c.add(0, reshape(c.ct(), c.in_types[0]->shape())); });
  d.batch = batch_reshape;
  d.place = place_reshape;
  d.in_kernel = is_same_in_kernel;
  d.emit = [](EmitCtx& c) {
    emit_results(c, cat("stablehlo.reshape ", c.in(0), " : ", signature(c)));
  };
  d.simplify = {
      {"reshape_same", "reshape(x, shape(x)) -> x", same_type_as_operand},
      {"reshape_splat", "reshape(broadcast(s)) -> broadcast(s)", rearranged_splat},
      {"reshape_of_reshape", "reshape(reshape(x)) -> reshape(x)", reshape_of_reshape},
  };
  d.cost = cost_free;
  return d;
}

TypeRefs infer_squeeze(const InferCtx& c) {
  const Dims& dimensions = c.attr().ints("dimensions");
  check_axes(c, "dimensions", dimensions, c.in(0));
  for (int64_t d : dimensions)
    if (c.in(0)->dim(static_cast<int>(d)) != 1)
      c.fail(ErrorKind::kShape, "expected dimensions of size 1; got dimensions=", dimensions,
             " (operand: ", c.in(0), ")");
  return {with_shape(c.in(0), drop_axes(c.in(0)->shape(), dimensions))};
}

// squeeze(broadcast(x)) where x had none of the squeezed axes.
Vals squeeze_of_broadcast(SimplifyCtx& c) {
  const Op* op = c.made_by<"broadcast_in_dim">(c.x(0));
  if (!op) return {};
  Val source = c.operand(*op, 0);
  const Dims& squeezed = c.attr().ints("dimensions");
  Dims kept;
  for (int64_t d : op->attrs->ints("broadcast_dimensions")) {
    if (has_axis(squeezed, d)) return {};
    kept.push_back(dim_after_drop(static_cast<int>(d), squeezed));
  }
  return {broadcast_in_dim(source, c.out_types[0]->shape(), kept)};
}

OpDef squeeze_op() {
  OpDef d;
  d.name = "squeeze";
  d.doc = "The array without some of its axes of size 1.";
  d.attrs = {{"dimensions", AttrType::kInts}};
  d.num_operands = 1;
  d.infer = infer_squeeze;
  d.place = [](PlaceCtx& c) { place_dropped(c, c.attr().ints("dimensions")); };
  linear(d, [](TransposeCtx& c) { c.add(0, reshape(c.ct(), c.in_types[0]->shape())); });
  d.batch = [](BatchCtx& c) {
    const Dims& dimensions = c.attr().ints("dimensions");
    c.result(squeeze(c.x(0), shifted(dimensions, c.dim(0))), dim_after_drop(c.dim(0), dimensions));
  };
  d.in_kernel = is_same_in_kernel;
  d.emit = [](EmitCtx& c) {
    emit_results(c, cat("stablehlo.reshape ", c.in(0), " : ", signature(c)));
  };
  d.simplify = {
      {"squeeze_none", "squeeze(x, ()) -> x", same_type_as_operand},
      {"squeeze_of_broadcast", "squeeze(broadcast(x)) of added axes -> broadcast(x)",
       squeeze_of_broadcast},
      {"squeeze_of_reshape", "squeeze(reshape(x)) -> reshape(x)", reshape_of_reshape},
  };
  d.cost = cost_free;
  return d;
}

TypeRefs infer_broadcast_in_dim(const InferCtx& c) {
  TypeRef x = c.in(0);
  const Dims& shape = c.attr().ints("shape");
  const Dims& dims = c.attr().ints("broadcast_dimensions");
  TypeRef result = with_shape(x, shape);
  if (static_cast<int>(dims.size()) != x->rank())
    c.fail(ErrorKind::kShape, "expected one entry of broadcast_dimensions per operand axis ",
           "(broadcast_in_dim C2); got broadcast_dimensions=", dims, " (operand: ", x,
           ", result: ", result, ")");
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= result->rank())
      c.fail(ErrorKind::kValue, "expected broadcast_dimensions between 0 and ", result->rank() - 1,
             " (broadcast_in_dim C3); got broadcast_dimensions=", dims, " (operand: ", x,
             ", result: ", result, ")");
    if (i > 0 && dims[i] <= dims[i - 1])
      c.fail(ErrorKind::kValue, "expected strictly increasing broadcast_dimensions ",
             "(broadcast_in_dim C4); got broadcast_dimensions=", dims, " (operand: ", x,
             ", result: ", result, ")");
    int64_t from = x->shape()[i], to = shape[static_cast<size_t>(dims[i])];
    if (from != 1 && from != to)
      c.fail(ErrorKind::kShape, "expected operand axis ", i, " to have size 1 or ", to,
             ", that of result axis ", dims[i], " (broadcast_in_dim C5); got size ", from,
             " (operand: ", x, ", result: ", result, ")");
  }
  return {result};
}

void transpose_broadcast_in_dim(TransposeCtx& c) {
  const Dims& shape = c.attr().ints("shape");
  const Dims& dims = c.attr().ints("broadcast_dimensions");
  Dims summed;  // new axes and those that had size 1, but for those that have it still
  for (int64_t d : other_axes(static_cast<int>(shape.size()), dims))
    if (shape[static_cast<size_t>(d)] != 1) summed.push_back(d);
  for (size_t i = 0; i < dims.size(); ++i)
    if (c.in_types[0]->shape()[i] != shape[static_cast<size_t>(dims[i])]) summed.push_back(dims[i]);
  std::sort(summed.begin(), summed.end());
  Val ct = summed.empty() ? c.ct() : reduce_sum(c.ct(), summed);
  c.add(0, reshape(ct, c.in_types[0]->shape()));
}

// The mapped axis of the result goes right after the result axis of the operand's axis before it,
// so that the axes stay in order.
void batch_broadcast_in_dim(BatchCtx& c) {
  const Dims& dims = c.attr().ints("broadcast_dimensions");
  int d = c.dim(0);
  int at = d == 0 ? 0 : static_cast<int>(dims[static_cast<size_t>(d - 1)]) + 1;
  c.result(broadcast_in_dim(c.x(0), inserted(c.attr().ints("shape"), at, c.size),
                            inserted(shifted(dims, at), d, at)),
           at);
}

Vals broadcast_of_broadcast(SimplifyCtx& c) {
  const Op* op = c.made_by<"broadcast_in_dim">(c.x(0));
  if (!op) return {};
  Val source = c.operand(*op, 0);
  Dims dims = pick(c.attr().ints("broadcast_dimensions"), op->attrs->ints("broadcast_dimensions"));
  return {broadcast_in_dim(source, c.out_types[0]->shape(), dims)};
}

void emit_broadcast_in_dim(EmitCtx& c) {
  if (c.in_type(0)->rank() == 0) {
    c.set_out(0, c.in_as(0, c.out_type()->shape()));
    return;
  }
  emit_results(c, cat("stablehlo.broadcast_in_dim ", c.in(0), ", dims = ",
                      bracketed(c.attr().ints("broadcast_dimensions")), " : ", signature(c)));
}

OpDef broadcast_in_dim_op() {
  OpDef d;
  d.name = "broadcast_in_dim";
  d.doc = "Repeats an array along new axes and along its axes of size 1.";
  d.attrs = {{"shape", AttrType::kInts, AttrSpec::kFromResult},
             {"broadcast_dimensions", AttrType::kInts, AttrSpec::kHideDefault, Dims()}};
  d.num_operands = 1;
  d.infer = infer_broadcast_in_dim;
  linear(d, transpose_broadcast_in_dim);
  d.batch = batch_broadcast_in_dim;
  d.place = [](PlaceCtx& c) { place_dims(c, c.attr().ints("broadcast_dimensions")); };
  d.in_kernel = is_same_in_kernel;
  d.emit = emit_broadcast_in_dim;
  d.simplify = {
      {"broadcast_same", "broadcast_in_dim(x, shape(x)) -> x", same_type_as_operand},
      {"broadcast_of_broadcast", "broadcast(broadcast(x)) -> broadcast(x)", broadcast_of_broadcast},
  };
  d.cost = cost_bytes;
  return d;
}

TypeRefs infer_transpose(const InferCtx& c) {
  const Dims& permutation = c.attr().ints("permutation");
  Dims sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != count_up(c.in(0)->rank()))
    c.fail(ErrorKind::kValue, "expected a permutation of ", count_up(c.in(0)->rank()),
           " (transpose C2); got permutation=", permutation, " (operand: ", c.in(0), ")");
  return {with_shape(c.in(0), pick(c.in(0)->shape(), permutation))};
}

Vals transpose_of_transpose(SimplifyCtx& c) {
  const Op* op = c.made_by<"transpose">(c.x(0));
  if (!op) return {};
  Val source = c.operand(*op, 0);
  return {transpose(source, pick(op->attrs->ints("permutation"), c.attr().ints("permutation")))};
}

OpDef transpose_op() {
  OpDef d;
  d.name = "transpose";
  d.doc = "The array with its axes permuted: result axis i is operand axis permutation[i].";
  d.attrs = {{"permutation", AttrType::kInts}};
  d.num_operands = 1;
  d.infer = infer_transpose;
  d.place = [](PlaceCtx& c) { place_dims(c, inverse(c.attr().ints("permutation"))); };
  linear(d, [](TransposeCtx& c) {
    c.add(0, transpose(c.ct(), inverse(c.attr().ints("permutation"))));
  });
  d.batch = [](BatchCtx& c) {  // the mapped axis stays in its place
    int at = c.dim(0);
    c.result(transpose(c.x(0), inserted(shifted(c.attr().ints("permutation"), at), at, at)), at);
  };
  d.in_kernel = is_same_in_kernel;
  d.emit = [](EmitCtx& c) {
    emit_results(c, cat("stablehlo.transpose ", c.in(0),
                        ", dims = ", bracketed(c.attr().ints("permutation")), " : ", signature(c)));
  };
  d.simplify = {
      {"transpose_identity", "transpose(x, (0, 1, ..)) -> x",
       [](SimplifyCtx& c) {
         return counts_up(c.attr().ints("permutation")) ? Vals{c.x(0)} : Vals{};
       }},
      {"transpose_splat", "transpose(broadcast(s)) -> broadcast(s)", rearranged_splat},
      {"transpose_of_transpose", "transpose(transpose(x, p), q) -> transpose(x, p[q])",
       transpose_of_transpose},
      {"transpose_of_product",
       "transpose(dot_general(x, y)) -> dot_general(y, x), where that is as fast",
       transpose_of_product},
  };
  d.cost = cost_bytes;
  return d;
}

// Reversing an axis of size 0 or 1 does nothing.
Vals rev_of_short_axes(SimplifyCtx& c) {
  Dims long_axes;
  for (int64_t d : c.attr().ints("dimensions"))
    if (c.x(0).type()->dim(static_cast<int>(d)) > 1) long_axes.push_back(d);
  if (long_axes.size() == c.attr().ints("dimensions").size()) return {};
  return {long_axes.empty() ? c.x(0) : rev(c.x(0), long_axes)};
}

Vals rev_of_rev(SimplifyCtx& c) {
  const Op* op = c.made_by<"rev">(c.x(0));
  if (!op) return {};
  Val source = c.operand(*op, 0);
  const Dims& outer = c.attr().ints("dimensions");
  const Dims& inner = op->attrs->ints("dimensions");
  Dims once;
  for (int64_t d : outer)
    if (!has_axis(inner, d)) once.push_back(d);
  for (int64_t d : inner)
    if (!has_axis(outer, d)) once.push_back(d);
  return {once.empty() ? source : rev(source, once)};
}

OpDef rev_op() {
  OpDef d;
  d.name = "rev";
  d.doc = "The array with the order of elements reversed along some axes.";
  d.attrs = {{"dimensions", AttrType::kInts}};
  d.num_operands = 1;
  d.infer = [](const InferCtx& c) {
    check_axes(c, "dimensions", c.attr().ints("dimensions"), c.in(0));
    return TypeRefs{c.in(0)};
  };
  linear(d, [](TransposeCtx& c) { c.add(0, rev(c.ct(), c.attr().ints("dimensions"))); });
  d.place = [](PlaceCtx& c) { place_alike(c); };
  d.batch = [](BatchCtx& c) {
    c.result(rev(c.x(0), shifted(c.attr().ints("dimensions"), c.dim(0))), c.dim(0));
  };
  d.in_kernel = is_same_in_kernel;
  d.emit = [](EmitCtx& c) {
    if (c.out_type()->rank() == 0) return c.set_out(0, c.in(0));
    emit_results(c, cat("stablehlo.reverse ", c.in(0), ", dims = ",
                        bracketed(c.attr().ints("dimensions")), " : ", mlir_type(c.out_type())));
  };
  d.simplify = {
      {"rev_short", "rev of axes of size 0 or 1 -> x", rev_of_short_axes},
      {"rev_splat", "rev(broadcast(s)) -> broadcast(s)", rearranged_splat},
      {"rev_of_rev", "rev(rev(x)) -> x, axes that occur once remain", rev_of_rev},
  };
  d.cost = cost_bytes;
  return d;
}

TypeRefs infer_iota(const InferCtx& c) {
  DType dtype = c.attr().dtype("dtype");
  TypeRef result = make_type(dtype, c.attr().ints("shape"));
  int64_t axis = c.attr().integer("dimension");
  if (!contains(kNumbers, dtype))
    c.fail(ErrorKind::kDtype, "expected dtype to be ", describe(kNumbers),
           "; got dtype=", numpy_name(dtype));
  if (axis < 0 || axis >= result->rank())
    c.fail(ErrorKind::kValue, "expected dimension between 0 and ", result->rank() - 1,
           " (iota C1); got dimension=", axis, " (result: ", result, ")");
  return {result};
}

OpDef iota_op() {
  OpDef d;
  d.name = "iota";
  d.doc = "The index of each element along one axis.";
  d.attrs = {
      {"dimension", AttrType::kInt}, {"dtype", AttrType::kDType}, {"shape", AttrType::kInts}};
  d.num_operands = 0;
  d.infer = infer_iota;
  zero_tangent(d);
  d.in_kernel = is_same_in_kernel;
  d.emit = [](EmitCtx& c) {
    emit_results(c, cat("stablehlo.iota dim = ", c.attr().integer("dimension"), " : ",
                        mlir_type(c.out_type())));
  };
  d.simplify = {{"iota_of_one", "iota over an axis of size 1 -> 0", [](SimplifyCtx& c) {
                   int axis = static_cast<int>(c.attr().integer("dimension"));
                   return c.out_types[0]->dim(axis) == 1 ? Vals{zeros(c.b, c.out_types[0])}
                                                         : Vals{};
                 }}};
  d.cost = cost_bytes;
  return d;
}

OpDef dim_as_value_op() {
  OpDef d;
  d.name = "dim_as_value";
  d.doc = "A size as a scalar: what a symbolic dimension will be.";
  d.attrs = {{"dim", AttrType::kInt}, {"dtype", AttrType::kDType}};
  d.num_operands = 0;
  d.infer = [](const InferCtx& c) -> TypeRefs { return {scalar_type(c.attr().dtype("dtype"))}; };
  zero_tangent(d);
  d.emit = [](EmitCtx& c) {
    Literal size = make_literal(c.attr().dtype("dtype"), c.attr().integer("dim"));
    c.set_out(0, c.constant(size, {}));
  };
  d.simplify = {{"dim_known", "dim_as_value of a number -> the number", [](SimplifyCtx& c) {
                   int64_t size = c.attr().integer("dim");
                   if (is_symbolic(size)) return Vals{};
                   return Vals{size_value(c.b, size, c.attr().dtype("dtype"))};
                 }}};
  d.cost = cost_free;
  return d;
}

}  // namespace

void register_shape(OpRegistry& r) {
  for (OpDef d : {reshape_op(), squeeze_op(), broadcast_in_dim_op(), transpose_op(), rev_op(),
                  iota_op(), dim_as_value_op()})
    r.add(std::move(d));
}

}  // namespace weft
