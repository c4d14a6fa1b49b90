// jvp: values and tangents in one graph.
#include "transforms/differentiate.h"
#include "transforms/driver.h"

namespace weft {

DualValues jvp_into(Builder& b, const Graph& graph, std::span<const Value> args,
                    std::span<const Value> tangents) {
  return differentiate(b, graph, args, tangents, {});
}

namespace {

std::shared_ptr<const JvpGraph> make_jvp(const Graph& graph, const JvpOptions& options) {
  GraphBuilder b;
  b.set_hash_consing(true);
  std::vector<Value> args, tangents(graph.num_inputs());
  for (TypeRef type : graph.input_types()) args.push_back(b.input(type));
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    if (options.in_mask[i]) tangents[i] = b.input(graph.input_types()[i]);
  }
  DualValues out = differentiate(b, graph, args, tangents, {.instantiate = options.instantiate});
  auto result = std::make_shared<JvpGraph>();
  for (Value t : out.tangents) {
    result->out_mask.push_back(static_cast<bool>(t));
    if (t) out.outputs.push_back(t);
  }
  result->graph = b.finish_ordered(out.outputs, args, graph.num_consts());
  return result;
}

}  // namespace

std::shared_ptr<const JvpGraph> jvp(const GraphRef& graph, const JvpOptions& options) {
  check_tangent_mask("jvp", *graph, options.in_mask);
  std::string key = "jvp";
  append_key(key, options.in_mask);
  append_key(key, options.instantiate);
  return graph->cached<JvpGraph>(key, [&] { return make_jvp(*graph, options); });
}

}  // namespace weft
