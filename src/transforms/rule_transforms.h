// The transforms that rules of ops are given, behind the interface that the ops' layer declares.
#pragma once

#include "weft/transforms.h"

namespace weft {

class RuleTransforms : public Transforms {
 public:
  std::shared_ptr<const JvpGraph> jvp(const GraphRef& graph,
                                      const JvpOptions& options) const override;
  std::shared_ptr<const LinearizedGraph> linearize(const GraphRef& graph,
                                                   const LinearizeOptions& options) const override;
  std::shared_ptr<const TransposedGraph> transpose(const GraphRef& graph,
                                                   const TransposeOptions& options) const override;
  std::shared_ptr<const VmapGraph> vmap(const GraphRef& graph,
                                        const VmapOptions& options) const override;
  std::shared_ptr<const ShardedGraph> shard(const GraphRef& graph,
                                            const ShardOptions& options) const override;
};

}  // namespace weft
