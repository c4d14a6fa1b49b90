// SPDX-License-Identifier: Apache-2.0
// Derivatives and vectorisation as functions from graph to graph. Rules come from the ops
// (op_def.h); options and results are in graph_rules.h.
//
// Each transform has two forms: one from graph to graph, whose result is kept on the source graph,
// and one (`_into`) that appends to a builder, for use inside a program that is being traced.
#pragma once

#include <functional>
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

struct JacobianOptions {
  Mask in_mask;       // inputs to differentiate by; float or complex
  size_t num_values;  // of the outputs, the first ones are differentiated
  bool forward;  // one column per element of the inputs; else one row per element of the values
};
struct JacobianGraph {
  // inputs -> the outputs that are not differentiated, then for each value, for each input in the
  // mask, an array of the value's shape followed by the input's
  GraphRef graph;
};
WEFT_API std::shared_ptr<const JacobianGraph> jacobian(const GraphRef& graph,
                                                       const JacobianOptions& options);

// The same from a derivative that is made elsewhere; the result is not kept. Forward, that is a
// graph from inputs and tangents to outputs and tangents.
WEFT_API GraphRef jacobian_by_columns(const Graph& graph, const JacobianOptions& options,
                                      const JvpGraph& dual);
// Backward, it is a graph that is linear in cotangents.
struct LinearParts {
  std::vector<Value> outputs;    // of the graph
  std::vector<Value> residuals;  // first inputs of `pull`
  Mask out_mask;                 // outputs that have a cotangent
  GraphRef pull;                 // residuals, cotangents -> cotangents of the inputs in the mask
};
using LinearizeForRows = std::function<LinearParts(Builder&, std::span<const Value> inputs)>;
WEFT_API GraphRef jacobian_by_rows(const Graph& graph, const JacobianOptions& options,
                                   const LinearizeForRows& linearize);

// To transpose a graph that is linear in all inputs but the first ones, for cotangents of the first
// `num_cotangents` of its outputs.
WEFT_API TransposeOptions linear_after(const Graph& linear, size_t num_residuals,
                                       size_t num_cotangents);

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
