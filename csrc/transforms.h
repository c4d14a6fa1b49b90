// The transforms of the core as functions of graphs.
#pragma once

#include <nanobind/nanobind.h>

#include "rules.h"

namespace weft::py {

// jvp() and vjp() of a graph that runs at once, found again also if it has rules of users; the mask
// is out_mask and ct_mask.
RuleToken::Transformed jvp_at_once(const GraphRef& graph, const Mask& inputs, const Mask& wanted);
RuleToken::Transformed vjp_at_once(const GraphRef& graph, const Mask& inputs,
                                   const Mask& cotangents);

// The core's transforms; those of long graphs run without the interpreter's lock.
std::shared_ptr<const LinearizedGraph> linearized(const GraphRef& graph,
                                                  const LinearizeOptions& options);
std::shared_ptr<const TransposedGraph> transposed(const GraphRef& graph,
                                                  const TransposeOptions& options);
std::shared_ptr<const VmapGraph> mapped(const GraphRef& graph, const VmapOptions& options);

void bind_transforms(nanobind::module_& m);

}  // namespace weft::py
