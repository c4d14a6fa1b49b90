// pullback: a graph and its derivative backwards, of inputs and cotangents. It stands in the graph
// of a shard_map that knows over which axes values vary, until that is known of its inputs: which
// cotangents are sums over devices depends on it. Then it is replaced by what it computes.
#include "ops/families.h"
#include "ops/presets.h"
#include "ops/regions.h"

namespace weft {
namespace {

Mask mask_of(const AttrRecord& attrs, std::string_view name) {
  Mask mask;
  for (int64_t x : attrs.ints(name)) mask.push_back(x != 0);
  return mask;
}

// Results are the outputs, then the cotangents of the masked inputs.
TypeRefs infer_pullback(const InferCtx& c) {
  const Graph& graph = *c.attr().graph("jaxpr");
  Mask inputs = mask_of(c.attr(), "in_mask"), outputs = mask_of(c.attr(), "ct_mask");
  if (inputs.size() != graph.num_inputs() || outputs.size() != graph.outputs().size())
    c.fail(ErrorKind::kValue, "expected masks of the ", graph.num_inputs(), " inputs and ",
           graph.outputs().size(), " outputs; got ", inputs.size(), " and ", outputs.size());
  TypeRefs in(graph.input_types()), results;
  for (TypeRef type : graph.output_types()) results.push_back(type);
  in.append(picked(results, outputs));
  if (c.size() != in.size())
    c.fail(ErrorKind::kType, "expected ", in.size(), " operands; got ", c.size());
  for (size_t i = 0; i < in.size(); ++i) check_region_type(c, "jaxpr", "input", i, in[i], c.in(i));
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    if (!inputs[i]) continue;
    if (!is_inexact(graph.input_types()[i]->dtype()))
      c.fail(ErrorKind::kDtype, "expected inputs with cotangents to be float or complex; got ",
             graph.input_types()[i]);
    results.push_back(graph.input_types()[i]);
  }
  return results;
}

Vals pulled_back(const RuleCtx& c, const GraphRef& graph) {
  Mask inputs = mask_of(c.attr(), "in_mask"), outputs = mask_of(c.attr(), "ct_mask");
  Vals all = vals_of(c.b, c.operands);
  Reader read(all);
  Vals xs(read.take(graph->num_inputs())), cts = read.take(outputs);
  auto split = c.transforms->linearize(graph, {.in_mask = inputs});
  Vals made = inlined(c.b, split->forward, xs);
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
  auto transposed = c.transforms->transpose(split->linear, options);
  Vals back = inlined(c.b, transposed->graph, args);
  Vals results(std::span<const Val>(made).first(outputs.size()));
  Vals gradients = Reader(back).take(transposed->out_mask);
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    Val ct = gradients[next++];
    results.push_back(ct.builder && ct ? ct : zeros(c.b, graph->input_types()[i]));
  }
  return results;
}

void shard_pullback(ShardCtx& c) {
  const GraphRef& graph = c.attr().graph("jaxpr");
  SmallVector<AxisSet, 8> varying(c.varying.first(graph->num_inputs()));
  ShardOptions options{.axes = c.axes, .inputs = varying, .at_least = {}, .strict = c.strict};
  // Cotangents vary as what they belong to does.
  options.at_least = SmallVector<AxisSet, 8>(graph->outputs().size(), 0);
  Mask inputs = mask_of(c.attr(), "in_mask"), outputs = mask_of(c.attr(), "ct_mask");
  size_t next = graph->num_inputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) options.at_least[i] = c.varying[next++];
  auto made = c.transforms->shard(graph, options);
  Vals results = pulled_back(c, made->graph);
  for (size_t i = 0; i < outputs.size(); ++i) c.result(results[i].value, made->outputs[i]);
  next = outputs.size();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) c.result(results[next++].value, varying[i]);
}

// Every lane has inputs of its own, and so gets cotangents of its own.
void batch_pullback(BatchCtx& c) {
  const GraphRef& graph = c.attr().graph("jaxpr");
  Mask inputs = mask_of(c.attr(), "in_mask"), outputs = mask_of(c.attr(), "ct_mask");
  Vals xs;
  BatchDims dims;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    bool own = i >= inputs.size() || inputs[i] || c.batched(i);
    xs.push_back(own ? c.at(i, 0) : c.x(i));
    if (i < inputs.size()) dims.push_back(own ? 0 : kNotBatched);
  }
  auto mapped =
      c.transforms->vmap(graph, vmap_options(c, dims, BatchDims(graph->outputs().size(), 0)));
  c.apply(xs, c.attrs->with({{"jaxpr", mapped->graph}}), 0);
}

[[noreturn]] void fail_jvp(GraphJvpCtx&) {
  fail(ErrorKind::kNotImplemented,
       "expected no forward-mode derivative of grad within a shard_map with check_vma\n  Take the "
       "derivative around the shard_map, or set check_vma=False.");
}

}  // namespace

void register_pullback(OpRegistry& r) {
  OpDef d;
  d.name = "pullback";
  d.doc = "A graph and the cotangents of its inputs, once it is known what varies over a mesh.";
  d.attrs = {
      {"jaxpr", AttrType::kGraph}, {"in_mask", AttrType::kBools}, {"ct_mask", AttrType::kBools}};
  d.multiple_results = true;
  d.infer = infer_pullback;
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = fail_jvp;
  d.graph_linearize = fail_jvp;
  d.batch = batch_pullback;
  d.shard = shard_pullback;
  d.decompose = [](RuleCtx& c) { return pulled_back(c, c.attr().graph("jaxpr")); };
  r.add(std::move(d));
}

}  // namespace weft
