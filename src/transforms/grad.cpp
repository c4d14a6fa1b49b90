// grad and value_and_grad of a graph with one scalar output: vjp with a cotangent of one.
#include <algorithm>

#include "transforms/driver.h"
#include "transforms/prune.h"
#include "weft/build.h"

namespace weft {
namespace {

void check_output(std::string_view transform, const Graph& graph) {
  std::vector<TypeRef> types = graph.output_types();
  if (types.size() == 1 && types[0]->rank() == 0 && is_float(types[0]->dtype())) return;
  Text got;
  for (TypeRef type : types) got << (got.size() ? ", " : "") << type;
  fail(ErrorKind::kType, "[", transform, "] expected one output, a float scalar; got ",
       types.empty() ? "none" : got.view());
}

Mask checked_inputs(std::string_view transform, const Graph& graph,
                    std::span<const uint32_t> argnums) {
  Mask mask(graph.num_inputs(), false);
  for (uint32_t i : argnums) {
    if (i >= graph.num_inputs())
      fail(ErrorKind::kValue, "[", transform, "] expected numbers of the graph's ",
           graph.num_inputs(), " inputs; got ", i);
    if (mask[i]) fail(ErrorKind::kValue, "[", transform, "] got input ", i, " twice");
    if (!is_float(graph.input_types()[i]->dtype()))
      fail(ErrorKind::kDtype, "[", transform, "] expected inputs of a float dtype; got input ", i,
           " of type ", graph.input_types()[i]);
    mask[i] = true;
  }
  return mask;
}

GraphRef make_grad(std::string_view transform, const GraphRef& graph,
                   std::span<const uint32_t> argnums, bool value) {
  check_output(transform, *graph);
  Mask mask = checked_inputs(transform, *graph, argnums);
  auto both = vjp(graph, {.in_mask = mask});
  GraphBuilder b;
  b.set_hash_consing(true);
  std::vector<Value> inputs;
  for (TypeRef type : graph->input_types()) inputs.push_back(b.input(type));
  std::vector<Value> args = inputs;
  if (both->ct_mask[0]) args.push_back(full(b, graph->output_types()[0], 1.0).value);
  Values made = b.inline_graph(*both->graph, args);
  std::vector<Value> outputs;
  if (value) outputs.push_back(made[0]);
  for (uint32_t i : argnums) {
    auto before = static_cast<size_t>(std::count(mask.begin(), mask.begin() + i, true));
    outputs.push_back(made[1 + before]);
  }
  return prune(b.finish_ordered(outputs, inputs, graph->num_consts())).graph;
}

}  // namespace

GraphRef grad(const GraphRef& graph, const std::vector<uint32_t>& argnums) {
  return make_grad("grad", graph, argnums, false);
}

GraphRef value_and_grad(const GraphRef& graph, const std::vector<uint32_t>& argnums) {
  return make_grad("value_and_grad", graph, argnums, true);
}

}  // namespace weft
