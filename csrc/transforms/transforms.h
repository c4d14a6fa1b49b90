// The transforms of the core as functions of graphs.
#pragma once

#include <nanobind/nanobind.h>

#include "references/function_ref.h"
#include "transforms/rules.h"
#include "weft/transforms.h"

namespace weft::py {

// The core's transforms of graphs that are called where they were recorded. Long graphs are
// transformed without the interpreter's lock.
std::shared_ptr<const JvpGraph> jvp_here(const GraphRef& graph, const JvpOptions& options);
std::shared_ptr<const VjpGraph> vjp_here(const GraphRef& graph, const VjpOptions& options);
std::shared_ptr<const VmapGraph> vmap_here(const GraphRef& graph, const VmapOptions& options);
std::shared_ptr<const JacobianGraph> jacobian_here(const GraphRef& graph,
                                                   const JacobianOptions& options);

// A graph linearized where it was recorded; its linear part may be called anywhere, and later.
class Linearized {
 public:
  // Of the outputs, only those in `values` have cotangents; those that it leaves out have none.
  Linearized(GraphRef graph, Mask inputs, Mask values);

  const GraphRef& forward() const { return made_->forward; }
  const Mask& out_mask() const { return made_->out_mask; }
  const std::vector<Residual>& residuals() const { return made_->residuals; }
  // The residuals, from the operands and results of forward().
  std::vector<Ref> kept(std::span<const Operand> operands, std::span<const Ref> results) const;
  // residuals, tangents of the inputs -> tangents of the outputs in out_mask()
  GraphRef push() const;
  // residuals, cotangents of the values in out_mask() -> cotangents of the inputs
  GraphRef pull() const;

 private:
  GraphRef graph_;
  Mask inputs_;
  Mask values_;
  // Without a linear graph where that is made later, once it is known what varies; the inputs are
  // the residuals then.
  std::shared_ptr<const LinearizedGraph> made_;
};

// The transpose of a linear graph, whose first inputs are residuals, for cotangents of the outputs
// in the mask; for all other inputs.
GraphRef transposed(const GraphRef& linear, size_t num_residuals, const Mask& cotangents);

void bind_transforms(nanobind::module_& m);

}  // namespace weft::py
