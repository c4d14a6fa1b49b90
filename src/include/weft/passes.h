// Passes: named functions from graph to graph, and the pipeline that runs before emission.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/api.h"
#include "weft/graph.h"
#include "weft/op_def.h"

namespace weft {

struct PassStats {
  std::string pass;
  uint32_t ops_before = 0;
  uint32_t ops_after = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, uint32_t>> rewrites;  // hits per rewrite name
};

struct PassOptions {
  std::vector<std::string> disabled_rewrites;
  std::vector<std::string> only_rewrites;  // non-empty: no other rewrite runs
  bool verify = false;                     // verify() after every pass
  // Called with pass name and the graph before and after it.
  std::function<void(std::string_view, const Graph& before, const Graph& after)> dump;
};

struct Pass {
  std::string name;
  std::string doc;
  std::function<GraphRef(const GraphRef&, const PassOptions&, PassStats&)> run;
};

// All passes, in the order in which a pipeline would run them.
WEFT_API const std::vector<Pass>& all_passes();
// Names of the passes that optimize() runs by default.
WEFT_API const std::vector<std::string>& default_pipeline();
// Runs passes in the order given. Throws kValue for an unknown name (listing the known ones).
WEFT_API GraphRef run_passes(const GraphRef& graph, std::span<const std::string> passes,
                             const PassOptions& options = {},
                             std::vector<PassStats>* stats = nullptr);
// The default pipeline.
WEFT_API GraphRef optimize(const GraphRef& graph);

// Flops, transcendentals and bytes of the whole graph, regions included.
WEFT_API Cost graph_cost(const Graph& graph);

}  // namespace weft
