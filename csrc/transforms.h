// The transforms of the core as functions of graphs.
#pragma once

#include <nanobind/nanobind.h>

#include "function_ref.h"
#include "jacobian.h"
#include "rules.h"
#include "weft/transforms.h"

namespace weft::py {

// The core's transforms of graphs that are called where they were recorded; found again also if a
// graph has rules of users, and then without them where it runs at once. Long graphs are
// transformed without the interpreter's lock.
std::shared_ptr<const JvpGraph> jvp_here(const GraphRef& graph, const JvpOptions& options);
std::shared_ptr<const VjpGraph> vjp_here(const GraphRef& graph, const VjpOptions& options);
std::shared_ptr<const VmapGraph> vmap_here(const GraphRef& graph, const VmapOptions& options);
std::shared_ptr<const JacobianGraph> jacobian_here(const GraphRef& graph,
                                                   const JacobianOptions& options);

// A graph linearized where it was recorded; its linear part may be called anywhere, and later.
class Linearized {
 public:
  // Of the outputs, only the first `num_values` have cotangents.
  Linearized(GraphRef graph, Mask inputs, size_t num_values);

  const GraphRef& forward() const { return forward_; }
  const Mask& out_mask() const { return made_->out_mask; }
  const std::vector<Residual>& residuals() const { return made_->residuals; }
  // residuals, tangents of the inputs -> tangents of the outputs in out_mask()
  GraphRef push() const;
  // residuals, cotangents of the values in out_mask() -> cotangents of the inputs
  GraphRef pull() const;

 private:
  // Graphs in the form in which they are kept; what calls with rules of the same tokens share.
  struct Made {
    GraphRef forward;
    Mask out_mask;
    std::vector<Residual> residuals;
    // Where they run at once, and within traces.
    GraphRef push[2] = {}, pull[2] = {};
  };
  const LinearizedGraph& full() const;
  GraphRef form(GraphRef (Made::*which)[2], FunctionRef<GraphRef()> make) const;

  GraphRef graph_;
  Mask inputs_;
  size_t num_values_;
  bool later_;  // once it is known what varies; the inputs are the residuals then
  std::vector<RuleTokenRef> tokens_;
  std::shared_ptr<Made> made_;
  GraphRef forward_;
  mutable std::shared_ptr<const LinearizedGraph> full_;  // with the rules of this call
};

// The transpose of a linear graph, whose first inputs are residuals, for cotangents of the first
// `num_cotangents` of its outputs; for all other inputs.
GraphRef transposed(const GraphRef& linear, size_t num_residuals, size_t num_cotangents);
// What the core's transpose() needs to know for that.
TransposeOptions from_first(const Graph& linear, size_t num_residuals, size_t num_cotangents);

void bind_transforms(nanobind::module_& m);

}  // namespace weft::py
