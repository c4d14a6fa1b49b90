// vjp: linearize, then transpose the linear graph, in one graph. Also the table of transforms that
// rules are given.
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

class Drivers final : public Transforms {
 public:
  std::shared_ptr<const JvpGraph> jvp(const GraphRef& graph,
                                      const JvpOptions& options) const override {
    return weft::jvp(graph, options);
  }
  std::shared_ptr<const LinearizedGraph> linearize(const GraphRef& graph,
                                                   const LinearizeOptions& options) const override {
    return weft::linearize(graph, options);
  }
  std::shared_ptr<const TransposedGraph> transpose(const GraphRef& graph,
                                                   const TransposeOptions& options) const override {
    return weft::transpose(graph, options);
  }
  std::shared_ptr<const VmapGraph> vmap(const GraphRef& graph,
                                        const VmapOptions& options) const override {
    return weft::vmap(graph, options);
  }
  std::shared_ptr<const ShardedGraph> shard(const GraphRef& graph,
                                            const ShardOptions& options) const override {
    return weft::shard(graph, options);
  }
};

}  // namespace

std::shared_ptr<const VjpGraph> vjp(const GraphRef& graph, const VjpOptions& options) {
  if (!options.cotangents.empty())
    check_mask("vjp", "output", options.cotangents.size(), graph->outputs().size());
  std::string key = "vjp";
  append_key(key, options.in_mask);
  append_key(key, options.cotangents);
  return graph->cached<VjpGraph>(key, [&] { return make_vjp(*graph, options); });
}

const Transforms& transforms() {
  static const Drivers drivers;
  return drivers;
}

}  // namespace weft
