// vjp: linearize, then transpose the linear graph, in one graph.
#include "transforms/driver.h"
#include "weft/build.h"

namespace weft {
namespace {

std::shared_ptr<const VjpGraph> make_vjp(const Graph& graph, const VjpOptions& options) {
  GraphBuilder b;
  b.set_hash_consing(true);
  std::vector<Value> inputs;
  for (TypeRef type : graph.input_types()) inputs.push_back(b.input(type));
  Linearization split = linearize_into(b, graph, inputs, {.in_mask = options.in_mask});

  auto result = std::make_shared<VjpGraph>();
  std::vector<Value> cotangents;  // of the outputs of the linear graph
  for (size_t i = 0; i < split.outputs.size(); ++i) {
    bool used = split.out_mask[i] && (options.cotangents.empty() || options.cotangents[i]);
    result->ct_mask.push_back(used);
    if (!split.out_mask[i]) continue;
    cotangents.push_back(used ? b.input(graph.type(graph.outputs()[i])) : Value{});
  }
  std::vector<Value> args = split.residuals;
  args.resize(split.linear->num_inputs());
  std::vector<Value> outputs = std::move(split.outputs);
  std::vector<Value> made = transpose_into(b, *split.linear, args, cotangents);
  size_t next = 0;
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    if (!options.in_mask[i]) continue;
    Value ct = made[next++];
    outputs.push_back(ct ? ct : zeros(b, graph.input_types()[i]).value);
  }
  result->graph = b.finish_ordered(outputs, inputs, graph.num_consts());
  return result;
}

}  // namespace

std::shared_ptr<const VjpGraph> vjp(const GraphRef& graph, const VjpOptions& options) {
  if (!options.cotangents.empty())
    check_mask("vjp", "output", options.cotangents.size(), graph->outputs().size());
  std::string key = "vjp";
  append_key(key, options.in_mask);
  append_key(key, options.cotangents);
  return graph->cached<VjpGraph>(key, [&] { return make_vjp(*graph, options); });
}

}  // namespace weft
