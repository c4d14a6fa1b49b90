// mapped_call: a graph applied to every lane of a mapped axis, before vmap has made one graph for
// all lanes of it. Such a graph runs both branches of a `cond` whose predicate is mapped, and the
// body of a `while` for lanes that have ended, and keeps what counts; of a check in them it could
// not be told whether its lane counts. So a vmap around checks stays this op until the checks have
// been made outputs of the graph, which are then chosen like all others. A transform of the op maps
// the transformed graph; what no check asks for is written out as the mapped graph.
#include "ops/control/call.h"
#include "ops/control/family.h"
#include "ops/control/loop_layout.h"
#include "ops/def/axes.h"
#include "ops/def/regions.h"
#include "ops/host/check.h"
#include "weft/build.h"

namespace weft {
namespace {

// The attributes. Results have the mapped axis in front.
struct MappedCall {
  GraphRef graph;
  BatchDims dims;  // of the operands
  int64_t size;
  std::string axis_name, spmd_axis_name;

  explicit MappedCall(const AttrRecord& attrs)
      : graph(attrs.graph("jaxpr")),
        size(attrs.integer("axis_size")),
        spmd_axis_name(attrs.string("spmd_axis_name")) {
    for (int64_t dim : attrs.ints("in_dims")) dims.push_back(static_cast<int>(dim));
    for (const std::string& name : attrs.names("axis_name")) axis_name = name;
  }

  GraphRef mapped(const Transforms& transforms, const GraphRef& of) const {
    return transforms
        .vmap(of, {.in_dims = dims,
                   .size = size,
                   .out_dims = BatchDims(of->outputs().size(), 0),
                   .axis_name = axis_name,
                   .spmd_axis_name = spmd_axis_name})
        ->graph;
  }
};

TypeRef with_lanes(TypeRef type, int dim, int64_t size) {
  if (dim == kNotBatched) return type;
  Dims shape = type->shape();
  shape.insert(static_cast<size_t>(dim), size);
  return with_shape(type, shape);
}

TypeRefs infer_mapped(const InferCtx& c) {
  MappedCall m(c.attr());
  if (m.size < 0) c.fail(ErrorKind::kValue, "expected axis_size >= 0; got ", m.size);
  if (m.graph->num_inputs() != c.size() || m.dims.size() != c.size())
    c.fail(ErrorKind::kType, "expected ", c.size(), " inputs of jaxpr and entries of in_dims; got ",
           m.graph->num_inputs(), " and ", m.dims.size());
  for (size_t i = 0; i < c.size(); ++i) {
    TypeRef type = m.graph->input_types()[i];
    if (m.dims[i] < kNotBatched || m.dims[i] > type->rank())
      c.fail(ErrorKind::kValue, "expected in_dims between -1 and ", type->rank(), " for input ", i,
             "; got ", m.dims[i]);
    check_region_type(c, "jaxpr", "input", i, c.in(i), with_lanes(type, m.dims[i], m.size));
  }
  TypeRefs out;
  for (TypeRef type : m.graph->output_types()) out.push_back(with_lanes(type, 0, m.size));
  return out;
}

// The same op for another graph, whose inputs are mapped there.
Values apply_mapped(const RuleCtx& c, const GraphRef& graph, const BatchDims& dims,
                    std::span<const Value> operands) {
  AttrsRef attrs = c.attrs->with({{"jaxpr", graph}, {"in_dims", Dims(dims.begin(), dims.end())}});
  return c.b.add(c.op, operands, attrs);
}

// A tangent is mapped where its operand is.
void append_tangents(const GraphJvpCtx& c, const MappedCall& m, Values& args, BatchDims& dims) {
  for (size_t i = 0; i < c.size(); ++i)
    if (c.tangents[i]) args.push_back(c.tangents[i]), dims.push_back(m.dims[i]);
}

void jvp_mapped(GraphJvpCtx& c) {
  MappedCall m(c.attr());
  auto jvp = c.transforms->jvp(m.graph, {.in_mask = c.tangent_mask()});
  Values args(c.operands);
  BatchDims dims = m.dims;
  append_tangents(c, m, args, dims);
  Values made = apply_mapped(c, jvp->graph, dims, args);
  std::span<const Value> results(made);
  size_t n = c.out_types.size();
  c.results = Values(results.first(n));
  c.result_tangents = scattered(jvp->out_mask, results.subspan(n));
}

void linearize_mapped(GraphJvpCtx& c) {
  MappedCall m(c.attr());
  auto split = c.transforms->linearize(m.graph, {.in_mask = c.tangent_mask()});
  Values made = apply_mapped(c, split->forward, m.dims, c.operands);
  c.results = Values(std::span<const Value>(made).first(c.out_types.size()));
  Values args;
  BatchDims dims;
  for (const Residual& r : split->residuals) {
    args.push_back(r.is_input ? c.operands[r.index] : made[r.index]);
    dims.push_back(r.is_input ? m.dims[r.index] : 0);
  }
  append_tangents(c, m, args, dims);
  Values tangents;
  if (!split->linear->outputs().empty()) tangents = apply_mapped(c, split->linear, dims, args);
  c.result_tangents = scattered(split->out_mask, tangents);
}

// Of an operand that all lanes share, the cotangent is the sum of those of the lanes.
void transpose_mapped(TransposeCtx& c) {
  MappedCall m(c.attr());
  TransposeOptions options;
  Values args;
  BatchDims dims;
  for (size_t i = 0; i < c.size(); ++i) {
    options.linear.push_back(c.linear(i));
    if (!c.linear(i)) args.push_back(c.operands[i]), dims.push_back(m.dims[i]);
  }
  for (Value ct : c.cotangents) {
    options.cotangents.push_back(static_cast<bool>(ct));
    if (ct) args.push_back(ct), dims.push_back(0);
  }
  auto transposed = c.transforms->transpose(m.graph, options);
  Values made = apply_mapped(c, transposed->graph, dims, args);
  Values cts = scattered(transposed->out_mask, made);
  size_t next = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    if (!c.linear(i)) continue;
    Value ct = cts[next++];
    if (!ct) continue;
    c.add(i, m.dims[i] == kNotBatched ? reduce_sum(c.val(ct), {0})
                                      : move_axis(c.val(ct), 0, m.dims[i]));
  }
}

// Every lane of the outer axis is this op.
void batch_mapped(BatchCtx& c) {
  GraphRef inner = make_graph(c.in_types, [&](Builder& b, std::span<const Val> xs) {
    return vals_of(b, b.add(c.op, values_of(xs), c.attrs));
  });
  std::vector<std::string> names;
  if (!c.axis_name.empty()) names.emplace_back(c.axis_name);
  AttrsRef attrs = c.attrs->with({{"jaxpr", inner},
                                  {"in_dims", Dims(c.dims.begin(), c.dims.end())},
                                  {"axis_size", c.size},
                                  {"axis_name", std::move(names)},
                                  {"spmd_axis_name", std::string(c.spmd_axis_name)}});
  for (Value v : c.b.add(c.op, c.operands, attrs)) c.result(c.val(v), 0);
}

// Of the checks that fail in some lane, the first one counts, and of its lanes the last.
void check_mapped(CheckCtx& c) {
  MappedCall m(c.attr());
  auto inner = c.checked(m.graph);
  Vals made = inlined(c.b, m.mapped(*c.transforms, inner->graph), vals_of(c.b, c.operands));
  Reader read(made);
  c.results = values_of(read.take(inner->num_outputs));
  if (m.size == 0) return c.fail_in(nothing_failed(c.b, failure_types(*inner)));
  Val numbers = read.next();
  Vals failed{reduce_min(numbers, {0})};
  Val lanes = iota(c.b, numbers.type(), 0);
  Val first = broadcast_to(failed[0], numbers.shape());
  Val last = reduce_max(select(eq(numbers, first), lanes, zeros_like(lanes)), {0});
  for (Val x : read.rest()) {
    Dims sizes = x.shape();
    sizes[0] = 1;
    Vals starts(sizes.size(), scalar_like(last, 0));
    starts[0] = last;
    failed.push_back(squeeze(dynamic_slice(x, starts, sizes), {0}));
  }
  c.fail_in(failed);
}

void shard_mapped(ShardCtx& c) {
  MappedCall m(c.attr());
  auto inner = c.transforms->shard(m.graph, {.axes = c.axes,
                                             .inputs = SmallVector<AxisSet, 8>(c.varying),
                                             .at_least = {},
                                             .strict = c.strict});
  c.results = apply_mapped(c, inner->graph, m.dims, c.operands);
  c.result_varying = inner->outputs;
}

LiftedOp lift_from_mapped(const AttrsRef& attrs) {
  auto inner = lift_constants(attrs->graph("jaxpr"));
  Dims dims(inner->constants.size(), kNotBatched);
  dims.append(attrs->ints("in_dims"));
  LiftedOp lifted{attrs->with({{"jaxpr", inner->graph}, {"in_dims", std::move(dims)}}), {}};
  for (const ObjectRef& object : inner->constants) lifted.operands.push_back({0, object});
  return lifted;
}

}  // namespace

void register_mapped_call(OpRegistry& r) {
  OpDef d;
  d.name = "mapped_call";
  d.doc = "Applies a graph to every lane of a mapped axis.";
  d.attrs = {{"jaxpr", AttrType::kGraph},
             {"in_dims", AttrType::kInts},
             {"axis_size", AttrType::kInt},
             {"axis_name", AttrType::kAxisNames, AttrSpec::kBinds},
             {"spmd_axis_name", AttrType::kString, AttrSpec::kHideDefault, std::string()}};
  d.multiple_results = true;
  d.infer = infer_mapped;
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = jvp_mapped;
  d.graph_linearize = linearize_mapped;
  d.transpose = transpose_mapped;
  d.batch = batch_mapped;
  d.check = check_mapped;
  d.shard = shard_mapped;
  d.lift = lift_from_mapped;
  d.decompose = [](RuleCtx& c) {
    MappedCall m(c.attr());
    return inlined(c.b, m.mapped(*c.transforms, m.graph), vals_of(c.b, c.operands));
  };
  r.add(std::move(d));
}

}  // namespace weft
