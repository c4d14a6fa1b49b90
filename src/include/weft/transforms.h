// Derivatives and vectorisation as functions from graph to graph. Rules come from the ops
// (op_def.h); options and results are in graph_rules.h.
//
// Each transform has two forms: one from graph to graph, whose result is kept on the source graph,
// and one (`_into`) that appends to a builder, for use inside a program that is being traced.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "weft/api.h"
#include "weft/builder.h"
#include "weft/graph_rules.h"

namespace weft {

// All throw kNotImplemented, naming op and line, for an op that lacks a rule.
WEFT_API std::shared_ptr<const JvpGraph> jvp(const GraphRef& graph, const JvpOptions& options);
WEFT_API std::shared_ptr<const LinearizedGraph> linearize(const GraphRef& graph,
                                                          const LinearizeOptions& options);
WEFT_API std::shared_ptr<const TransposedGraph> transpose(const GraphRef& graph,
                                                          const TransposeOptions& options);
WEFT_API std::shared_ptr<const VmapGraph> vmap(const GraphRef& graph, const VmapOptions& options);
WEFT_API std::shared_ptr<const ShardedGraph> shard(const GraphRef& graph,
                                                   const ShardOptions& options);

struct VjpOptions {
  Mask in_mask;          // inputs to get cotangents
  Mask cotangents = {};  // outputs that have one; empty: all. Those without a tangent are ignored.
};
// One graph that goes forward and back.
struct VjpGraph {
  // inputs, cotangents of the outputs in ct_mask -> outputs, cotangents of the masked inputs
  GraphRef graph;
  Mask ct_mask;
};
WEFT_API std::shared_ptr<const VjpGraph> vjp(const GraphRef& graph, const VjpOptions& options);

// Gradients of a graph with one output, a float scalar, with respect to the inputs with these
// numbers, in their order: a graph from the same inputs to the gradients, or to the output and the
// gradients. Throws kType for other outputs, kDtype for inputs that are not floats, kValue for
// numbers of no input.
WEFT_API GraphRef grad(const GraphRef& graph, const std::vector<uint32_t>& argnums = {0});
WEFT_API GraphRef value_and_grad(const GraphRef& graph, const std::vector<uint32_t>& argnums = {0});

// A value may be none where it says so: for a tangent or cotangent that means zero.
struct DualValues {
  std::vector<Value> outputs;
  std::vector<Value> tangents;  // may be none
};
WEFT_API DualValues jvp_into(Builder& b, const Graph& graph, std::span<const Value> args,
                             std::span<const Value> tangents /* may be none */);

struct Linearization {
  std::vector<Value> outputs;
  GraphRef linear;               // residuals, tangents of the masked inputs -> tangents
  std::vector<Value> residuals;  // values of the builder
  Mask out_mask;                 // outputs whose tangents `linear` gives
};
WEFT_API Linearization linearize_into(Builder& b, const Graph& graph, std::span<const Value> args,
                                      const LinearizeOptions& options);

// Cotangents of the inputs whose argument is none: those are the linear ones, in order.
WEFT_API std::vector<Value> transpose_into(Builder& b, const Graph& graph,
                                           std::span<const Value> args,
                                           std::span<const Value> cotangents /* may be none */);

struct MappedValues {
  std::vector<Value> outputs;
  BatchDims dims;
};
// `args` have the mapped axis where options.in_dims says.
WEFT_API MappedValues vmap_into(Builder& b, const Graph& graph, std::span<const Value> args,
                                const VmapOptions& options);

// The above as rules see them.
WEFT_API const Transforms& transforms();

}  // namespace weft
