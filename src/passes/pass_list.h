// The functions behind the named passes; pipeline.cpp lists them.
#pragma once

#include "weft/passes.h"

namespace weft {

GraphRef strip_rules_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef fold_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef simplify_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef cse_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
// fold, simplify and cse in one walk: each op is built once.
GraphRef canonicalize_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef dce_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef inline_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);
GraphRef fuse_pass(const GraphRef& graph, const PassOptions& options, PassStats& stats);

// Whether an op is one that fuse makes.
bool is_fusion(const Op& op);

}  // namespace weft
