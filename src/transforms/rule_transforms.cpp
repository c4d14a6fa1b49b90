#include "transforms/rule_transforms.h"

namespace weft {

std::shared_ptr<const JvpGraph> RuleTransforms::jvp(const GraphRef& graph,
                                                    const JvpOptions& options) const {
  return weft::jvp(graph, options);
}

std::shared_ptr<const LinearizedGraph> RuleTransforms::linearize(
    const GraphRef& graph, const LinearizeOptions& options) const {
  return weft::linearize(graph, options);
}

std::shared_ptr<const TransposedGraph> RuleTransforms::transpose(
    const GraphRef& graph, const TransposeOptions& options) const {
  return weft::transpose(graph, options);
}

std::shared_ptr<const VmapGraph> RuleTransforms::vmap(const GraphRef& graph,
                                                      const VmapOptions& options) const {
  return weft::vmap(graph, options);
}

std::shared_ptr<const ShardedGraph> RuleTransforms::shard(const GraphRef& graph,
                                                          const ShardOptions& options) const {
  return weft::shard(graph, options);
}

const Transforms& transforms() {
  static const RuleTransforms transforms;
  return transforms;
}

}  // namespace weft
