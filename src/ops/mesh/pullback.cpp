// pullback and pushforward: a graph and its derivative backwards, of inputs and cotangents, or
// forwards, of inputs and tangents. They stand in the graph of a shard_map that knows over which
// axes values vary, until that is known of their inputs: which cotangents are sums over devices
// depends on it. Then they are replaced by what they compute. Derivatives of derivatives are such
// ops whose graphs hold others, and the inner ones are replaced first.
#include "ops/def/presets.h"
#include "ops/def/regions.h"
#include "ops/mesh/family.h"

namespace weft {
namespace {

Mask mask_of(const AttrRecord& attrs, std::string_view name) {
  Mask mask;
  for (int64_t x : attrs.ints(name)) mask.push_back(x != 0);
  return mask;
}

// What both share: a graph, the inputs that it is differentiated by, and the outputs that have a
// tangent or cotangent. Results are the outputs, then the derivatives.
struct Derivative {
  GraphRef graph;
  Mask inputs, outputs;
  bool backwards;

  explicit Derivative(const RuleCtx& c) : Derivative(c.op, c.attr()) {}
  Derivative(const OpInfo& op, const AttrRecord& attrs)
      : graph(attrs.graph("jaxpr")),
        inputs(mask_of(attrs, "in_mask")),
        outputs(mask_of(attrs, "out_mask")),
        backwards(op.name == "pullback") {}

  TypeRefs input_types() const { return TypeRefs(graph->input_types()); }
  TypeRefs output_types() const {
    TypeRefs types;
    for (TypeRef type : graph->output_types()) types.push_back(type);
    return types;
  }
  // Of cotangents or tangents, those that are given and those that are made.
  TypeRefs given() const {
    return backwards ? picked(output_types(), outputs) : picked(input_types(), inputs);
  }
  TypeRefs made() const {
    return backwards ? picked(input_types(), inputs) : picked(output_types(), outputs);
  }
};

TypeRefs infer(const InferCtx& c) {
  Derivative d(c.op, c.attr());
  if (d.inputs.size() != d.graph->num_inputs() || d.outputs.size() != d.graph->outputs().size())
    c.fail(ErrorKind::kValue, "expected masks of the ", d.graph->num_inputs(), " inputs and ",
           d.graph->outputs().size(), " outputs; got ", d.inputs.size(), " and ", d.outputs.size());
  TypeRefs in = joined({d.input_types(), d.given()}), made = d.made();
  if (c.size() != in.size())
    c.fail(ErrorKind::kType, "expected ", in.size(), " operands; got ", c.size());
  for (size_t i = 0; i < in.size(); ++i) check_region_type(c, "jaxpr", "input", i, in[i], c.in(i));
  for (TypeRef type : made)
    if (!is_inexact(type->dtype()))
      c.fail(ErrorKind::kDtype, "expected derivatives to be float or complex; got ", type);
  return joined({d.output_types(), made});
}

Vals pulled_back(Builder& b, const Transforms& transforms, const Derivative& d,
                 const GraphRef& graph, std::span<const Val> all) {
  const Mask &inputs = d.inputs, &outputs = d.outputs;
  Reader read(all);
  Vals xs(read.take(graph->num_inputs())), cts = read.take(outputs);
  auto split = transforms.linearize(graph, {.in_mask = inputs});
  Vals made = inlined(b, split->forward, xs);
  TransposeOptions options;
  options.linear = Mask(split->residuals.size(), false);
  options.linear.append(Mask(count(inputs), true));
  Vals args;
  for (const Residual& r : split->residuals)
    args.push_back(r.is_input ? xs[r.index] : made[r.index]);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!split->out_mask[i]) continue;
    options.cotangents.push_back(outputs[i]);
    if (outputs[i]) args.push_back(cts[i]);
  }
  auto transposed = transforms.transpose(split->linear, options);
  Vals back = inlined(b, transposed->graph, args);
  Vals results(std::span<const Val>(made).first(outputs.size()));
  Vals gradients = Reader(back).take(transposed->out_mask);
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    Val ct = gradients[next++];
    results.push_back(ct.builder && ct ? ct : zeros(b, graph->input_types()[i]));
  }
  return results;
}

Vals pushed_forward(Builder& b, const Transforms& transforms, const Derivative& d,
                    const GraphRef& graph, std::span<const Val> all) {
  auto jvp = transforms.jvp(graph, {.in_mask = d.inputs, .instantiate = d.outputs});
  Vals made = inlined(b, jvp->graph, all);
  Reader read(made);
  Vals results(read.take(d.outputs.size()));
  append_present(results, picked(read.take(jvp->out_mask), d.outputs));
  return results;
}

Vals computed(Builder& b, const Transforms& transforms, const Derivative& d, const GraphRef& graph,
              std::span<const Val> all) {
  return d.backwards ? pulled_back(b, transforms, d, graph, all)
                     : pushed_forward(b, transforms, d, graph, all);
}

// Over which axes the cotangents of a value vary: where it is unreduced they are reduced, and the
// other way round.
AxisSet of_cotangents(AxisSet set) {
  AxisSet unreduced = unreduced_of(set), reduced = reduced_of(set);
  return without(set, unreduced | reduced) | as_unreduced(reduced) | as_reduced(unreduced);
}

// A cotangent must not vary over axes over which what it belongs to does not.
void check_cotangents(const ShardCtx& c, const Derivative& d, ShardOptions options,
                      const ShardedGraph& with_cotangents) {
  options.at_least = {};
  auto made = c.transforms->shard(d.graph, options);
  for (size_t i = 0; i < d.outputs.size(); ++i) {
    AxisSet extra = without_marks(with_cotangents.outputs[i] & ~made->outputs[i]);
    if (!extra) continue;
    fail(ErrorKind::kValue, "[", c.op.name, "] expected the cotangent of output ", i, ", ",
         d.output_types()[i], ", to be the same along the axes of the mesh along which the output ",
         "is; got one that varies over ", axes_text(c.axes, extra));
  }
}

// A tangent varies as what it belongs to does, a cotangent likewise. What rules of users add to the
// derivative is made explicit, too.
void shard_derivative(ShardCtx& c) {
  Derivative d(c);
  size_t n = d.graph->num_inputs(), next = n;
  SmallVector<AxisSet, 8> varying(c.varying);
  ShardOptions options{.axes = c.axes, .inputs = {}, .at_least = {}, .strict = c.strict};
  if (!d.backwards)
    for (size_t i = 0; i < n; ++i)
      if (d.inputs[i]) varying[i] = varying[next] = joined(varying[i], varying[next]), ++next;
  options.inputs = SmallVector<AxisSet, 8>(std::span<const AxisSet>(varying).first(n));
  options.at_least = SmallVector<AxisSet, 8>(d.outputs.size(), 0);
  if (d.backwards)
    for (size_t i = 0; i < d.outputs.size(); ++i)
      if (d.outputs[i]) options.at_least[i] = of_cotangents(varying[next++]);
  auto inner = c.transforms->shard(d.graph, options);
  if (c.strict && d.backwards) check_cotangents(c, d, options, *inner);
  next = n;
  if (d.backwards)
    for (size_t i = 0; i < d.outputs.size(); ++i)
      if (d.outputs[i]) varying[next++] = of_cotangents(inner->outputs[i]);

  GraphRef whole = make_graph(c.in_types, [&](Builder& b, std::span<const Val> xs) {
    return computed(b, *c.transforms, d, inner->graph, xs);
  });
  options.inputs = varying;
  options.at_least = inner->outputs;
  options.strict = false;
  for (size_t i = 0; i < d.inputs.size(); ++i)
    if (d.backwards && d.inputs[i]) options.at_least.push_back(of_cotangents(varying[i]));
  for (size_t i = 0; i < d.outputs.size(); ++i)
    if (!d.backwards && d.outputs[i]) options.at_least.push_back(inner->outputs[i]);
  auto made = c.transforms->shard(whole, options);
  Vals operands;
  for (size_t i = 0; i < c.size(); ++i) operands.push_back(c.as(i, varying[i]));
  Vals results = inlined(c.b, made->graph, operands);
  for (size_t i = 0; i < results.size(); ++i) c.result(results[i].value, made->outputs[i]);
}

// Every lane has inputs of its own, and so gets cotangents of its own.
void batch_derivative(BatchCtx& c) {
  Derivative d(c);
  Vals xs;
  BatchDims dims;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    bool own = i >= d.inputs.size() || d.inputs[i] || c.batched(i);
    xs.push_back(own ? c.at(i, 0) : c.x(i));
    if (i < d.inputs.size()) dims.push_back(own ? 0 : kNotBatched);
  }
  auto mapped = c.transforms->vmap(d.graph, vmap_options(c, dims, BatchDims(d.outputs.size(), 0)));
  c.apply(xs, c.attrs->with({{"jaxpr", mapped->graph}}), 0);
}

// The transpose of one is the other: tangents are linear in tangents, as cotangents in cotangents.
void transpose_derivative(TransposeCtx& c) {
  Derivative d(c);
  size_t num_inputs = d.inputs.size(), num_outputs = d.outputs.size();
  Vals operands;
  for (size_t i = 0; i < num_inputs; ++i) operands.push_back(c.x(i));
  for (size_t r = num_outputs; r < c.cotangents.size(); ++r) operands.push_back(c.ct(r));
  const OpDef& other = d.backwards ? op_named<"pushforward">() : op_named<"pullback">();
  AttrsRef attrs = AttrRecord::make(other.name, other.attrs,
                                    {{"jaxpr", d.graph},
                                     {"in_mask", Attr(c.attr().ints("in_mask"))},
                                     {"out_mask", Attr(c.attr().ints("out_mask"))}});
  Vals made = apply(other, operands, attrs);
  size_t num_primals = d.backwards ? num_inputs : num_outputs;
  for (size_t i = num_inputs; i < c.size(); ++i)
    if (c.linear(i)) c.add(i, made[num_primals + i - num_inputs]);
}

OpDef derivative(std::string name, std::string doc) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  d.attrs = {
      {"jaxpr", AttrType::kGraph}, {"in_mask", AttrType::kBools}, {"out_mask", AttrType::kBools}};
  d.multiple_results = true;
  d.infer = infer;
  d.batch = batch_derivative;
  d.shard = shard_derivative;
  d.transpose = transpose_derivative;
  d.decompose = [](RuleCtx& c) {
    Derivative own(c);
    return computed(c.b, *c.transforms, own, own.graph, vals_of(c.b, c.operands));
  };
  return d;
}

}  // namespace

void register_pullback(OpRegistry& r) {
  r.add(derivative("pullback",
                   "A graph and the cotangents of its inputs, once it is known what varies over a "
                   "mesh."));
  r.add(derivative("pushforward",
                   "A graph and the tangents of its outputs, once it is known what varies over a "
                   "mesh."));
}

}  // namespace weft
