// The general reduce: several arrays together over axes, combined by a graph of scalars. Operands
// are x_1 .. x_n, then scalars init_1 .. init_n; the graph takes a_1 .. a_n, b_1 .. b_n and gives n
// results. Its derivative, and initial values that differ between lanes, are computed as a tree of
// pairs.
#include "ops/reduce/reduce_graph.h"
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/def/symbols.h"
#include "ops/reduce/family.h"

namespace weft {

size_t check_reduction(const InferCtx& c) {
  size_t n = c.size() / 2;
  const Graph& body = *c.attr().graph("jaxpr");
  if (n == 0 || c.size() % 2 != 0)
    c.fail(ErrorKind::kType, "expected operands and as many initial values; got ",
           operand_types(c));
  std::vector<TypeRef> outputs = body.output_types();
  if (body.num_inputs() != 2 * n || outputs.size() != n)
    c.fail(ErrorKind::kType, "expected a jaxpr of ", 2 * n, " inputs and ", n, " outputs; got ",
           body.num_inputs(), " and ", outputs.size());
  for (size_t i = 0; i < n; ++i) {
    TypeRef scalar = scalar_type(c.in(i)->dtype());
    if (!contains(kAnyDType, scalar->dtype()))
      c.fail(ErrorKind::kDtype, "expected ", describe(kAnyDType), "; got ", operand_types(c));
    if (c.in(i)->shape() != c.in(0)->shape())
      c.fail(ErrorKind::kShape, "expected operands of one shape; got ", operand_types(c));
    if (c.in(n + i) != scalar)
      c.fail(ErrorKind::kType, "expected initial value ", i, " to be ", scalar, "; got ",
             operand_types(c));
    if (body.input_types()[i] != scalar || body.input_types()[n + i] != scalar ||
        outputs[i] != scalar)
      c.fail(ErrorKind::kType, "expected the jaxpr to take and return ", scalar, " at ", i,
             "; got ", body.input_types()[i], ", ", body.input_types()[n + i], " and ", outputs[i]);
  }
  return n;
}

Combine combine_by(const RuleCtx& c, const GraphRef& graph) {
  return [&c, graph](const Vals& xs, const Vals& ys) {
    const Dims shape = xs[0].shape();
    int64_t n = product(shape);
    size_t values = c.size() / 2;  // what comes after them are tangents
    Vals args;
    auto append = [&](const Vals& from, size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) args.push_back(reshape(from[i], {n}));
    };
    append(xs, 0, values);
    append(ys, 0, values);
    append(xs, values, xs.size());
    append(ys, values, ys.size());
    BatchDims in_dims(args.size(), 0), out_dims(graph->outputs().size(), 0);
    auto mapped = c.transforms->vmap(graph, {.in_dims = in_dims, .size = n, .out_dims = out_dims});
    Values operands;
    for (Val v : args) operands.push_back(v.value);
    Vals out;
    for (Value v : c.b.inline_graph(*mapped->graph, operands))
      out.push_back(reshape(c.val(v), shape));
    return out;
  };
}

Vals jvp_of_reduction(JvpCtx& c, const Reduction& reduce) {
  size_t n = c.size() / 2;
  Mask has_tangent;
  Vals xs, inits;
  for (size_t i = 0; i < n; ++i) {
    has_tangent.push_back(is_inexact(c.in_types[i]->dtype()));
    xs.push_back(c.x(i));
    inits.push_back(c.x(n + i));
  }
  for (size_t i = 0; i < n; ++i) {
    if (!has_tangent[i]) continue;
    xs.push_back(c.t(i));
    inits.push_back(c.t(n + i));
  }
  Mask in_mask = has_tangent;
  for (bool m : has_tangent) in_mask.push_back(m);
  auto body =
      c.transforms->jvp(c.attr().graph("jaxpr"), {.in_mask = in_mask, .instantiate = has_tangent});
  need_numbers(c.op, c.in_types[0]->shape());
  Vals made = reduce(xs, inits, combine_by(c, body->graph));
  Vals tangents;
  size_t next = n;
  for (bool m : has_tangent) tangents.push_back(m ? made[next++] : Val{});
  return tangents;
}

namespace {

TypeRefs infer_reduce(const InferCtx& c) {
  const Dims& dimensions = c.attr().ints("dimensions");
  size_t n = check_reduction(c);
  check_axes(c, "dimensions", dimensions, c.in(0));
  TypeRefs out;
  for (size_t i = 0; i < n; ++i)
    out.push_back(with_shape(c.in(i), drop_axes(c.in(i)->shape(), dimensions)));
  return out;
}

// Halves are combined until one element is left, then the initial value with that. `inits` are
// scalars or have the shape of the result.
Vals tree_reduce(const Vals& xs, const Vals& inits, const Dims& dimensions,
                 const Combine& combine) {
  const Dims& shape = xs[0].shape();
  Dims kept = other_axes(xs[0].rank(), dimensions);
  Dims order = dimensions;
  for (int64_t a : kept) order.push_back(a);
  int64_t n = product(pick(shape, dimensions)), width = product(pick(shape, kept));

  Vals parts;
  for (Val x : xs) parts.push_back(reshape(transpose(x, order), {n * width}));
  auto piece = [&](int64_t begin, int64_t end) {
    Vals out;
    for (Val v : parts) out.push_back(slice(v, {begin * width}, {end * width}));
    return out;
  };
  while (n > 1) {
    int64_t half = n / 2;
    Vals made = combine(piece(0, half), piece(half, 2 * half));
    if (n % 2) {
      Vals rest = piece(2 * half, n);
      for (size_t i = 0; i < made.size(); ++i) made[i] = concatenate(Vals{made[i], rest[i]}, 0);
    }
    parts = made;
    n = half + n % 2;
  }
  Vals starts;
  for (Val v : inits) starts.push_back(v.rank() ? reshape(v, {width}) : broadcast_to(v, {width}));
  Vals out;
  for (Val v : n == 0 ? starts : combine(starts, parts))
    out.push_back(reshape(v, pick(shape, kept)));
  return out;
}

void batch_reduce(BatchCtx& c) {
  size_t n = c.operands.size() / 2;
  int at = kNotBatched;
  bool inits_differ = false;
  for (size_t i = n; i-- > 0;) {
    if (c.batched(i)) at = c.dim(i);
    inits_differ |= c.batched(n + i);
  }
  if (inits_differ) at = 0;
  Dims dimensions = shifted(c.attr().ints("dimensions"), at);
  int out_dim = dim_after_drop(at, c.attr().ints("dimensions"));
  Vals xs;
  for (size_t i = 0; i < n; ++i) xs.push_back(c.at(i, at));
  if (!inits_differ) {
    for (size_t i = n; i < 2 * n; ++i) xs.push_back(c.x(i));
    return c.apply(xs, c.attrs->with({{"dimensions", dimensions}}), out_dim);
  }
  need_numbers(c.op, xs[0].shape());
  Vals inits;
  for (size_t i = 0; i < n; ++i) {
    Dims shape = inserted(c.out_types[i]->shape(), out_dim, c.size);
    bool batched = c.batched(n + i);
    inits.push_back(batched ? broadcast_in_dim(c.x(n + i), shape, {out_dim}) : c.x(n + i));
  }
  Vals made = tree_reduce(xs, inits, dimensions, combine_by(c, c.attr().graph("jaxpr")));
  for (Val v : made) c.result(v, out_dim);
}

Vals reduce_without_ones(const EmitCtx& c, Vals xs) {
  auto [shape, axes] = without_ones(xs[0].shape(), c.attr().ints("dimensions"));
  for (size_t i = 0; i < xs.size() / 2; ++i) xs[i] = reshape(xs[i], shape);
  Vals out = apply(op_named<"reduce">(), xs, c.attrs->with({{"dimensions", axes}}));
  for (size_t i = 0; i < out.size(); ++i) out[i] = reshape(out[i], c.out_types[i]->shape());
  return out;
}

OpDef reduce_op() {
  OpDef d;
  d.name = "reduce";
  d.doc = "Reduction of several arrays together over axes, combined by a function of scalars.";
  d.attrs = {{"dimensions", AttrType::kInts}, {"jaxpr", AttrType::kGraph}};
  d.multiple_results = true;
  d.infer = infer_reduce;
  d.place = [](PlaceCtx& c) { place_dropped(c, c.attr().ints("dimensions")); };
  d.jvp_kind = JvpKind::kCustom;
  d.jvp = [](JvpCtx& c) {
    return jvp_of_reduction(c, [&](const Vals& xs, const Vals& inits, const Combine& combine) {
      return tree_reduce(xs, inits, c.attr().ints("dimensions"), combine);
    });
  };
  d.batch = batch_reduce;
  d.in_kernel = is_same_in_kernel;
  d.emit = [](EmitCtx& c) {
    if (c.in_type(0)->rank() > kMostReducedAxes)
      return emit_all_as(c, [&](const Vals& xs) { return reduce_without_ones(c, xs); });
    emit_results(c,
                 cat("\"stablehlo.reduce\"(", operand_list(c),
                     ") <{dimensions = ", mlir_ints(c.attr().ints("dimensions")), "}> (",
                     c.region(*c.attr().graph("jaxpr"), "stablehlo.return"), ") : ", signature(c)));
  };
  d.cost = [](const CostCtx& c) {
    Cost cost = cost_bytes(c);
    for (size_t i = 0; i < c.out_types.size(); ++i)
      cost.flops += static_cast<double>(c.in_types[i]->num_elements());
    return cost;
  };
  return d;
}

}  // namespace

void register_reduce_graph(OpRegistry& r) { r.add(reduce_op()); }

}  // namespace weft
