// SPDX-License-Identifier: Apache-2.0
// Transforms of whole graphs: what each takes and gives, and the interface through which the rules
// of ops that hold graphs (jit, loops, branches) ask for them. src/transforms implements it;
// results are kept on the graph they came from, so a function called 48 times is transformed once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/api.h"
#include "weft/graph.h"
#include "weft/sharding.h"

namespace weft {

class Builder;

// One entry per input, output, operand or result.
using Mask = SmallVector<bool, 8>;
// Mapped axes: one entry per input or output.
inline constexpr int kNotBatched = -1;
using BatchDims = SmallVector<int, 4>;

struct JvpOptions {
  Mask in_mask;      // inputs that have a tangent; float or complex
  Mask instantiate;  // outputs that get a tangent even if it is zero; empty: none
};
struct JvpGraph {
  // inputs, tangents of the masked inputs -> outputs, tangents of the masked outputs
  GraphRef graph;
  Mask out_mask;
};

struct LinearizeOptions {
  Mask in_mask;
  Mask instantiate;
};
// A value that the linear graph needs: an input of the forward graph or one of its outputs.
struct Residual {
  bool is_input;
  uint32_t index;
  friend bool operator==(const Residual&, const Residual&) = default;
};
struct LinearizedGraph {
  GraphRef forward;  // inputs -> outputs, then residuals that are neither input nor output
  GraphRef linear;   // residuals, tangents of the masked inputs -> tangents of the masked outputs
  Mask out_mask;
  std::vector<Residual> residuals;
};

struct TransposeOptions {
  Mask linear;               // inputs in which the graph is linear
  Mask cotangents;           // outputs that have a cotangent; the others' are zero
  bool instantiate = false;  // zero cotangents are made too
};
struct TransposedGraph {
  // the inputs that are not linear, cotangents of the masked outputs -> cotangents of the linear
  // inputs for which out_mask (over the linear inputs only) holds; the others' are zero
  GraphRef graph;
  Mask out_mask;
};

struct VmapOptions {
  BatchDims in_dims;  // kNotBatched: the input is the same for all
  int64_t size = 0;   // of the mapped axis
  // Where outputs are to have the mapped axis; empty: wherever it comes out. kNotBatched throws
  // kValue if the output is mapped; kAnyDim leaves that output as it comes out.
  BatchDims out_dims = {};
  // Names that collective ops refer to the axis by.
  std::string axis_name = {};
  std::string spmd_axis_name = {};
  // How the mapped axis, alone, is split over explicit axes; null: it is not. Outputs that do not
  // depend on it are split like those that do.
  ShardingRef lanes = nullptr;

  friend bool operator==(const VmapOptions&, const VmapOptions&) = default;
};
inline constexpr int kAnyDim = -2;
struct VmapGraph {
  GraphRef graph;
  BatchDims out_dims;
};

// The axes of a mesh over which a value varies: bit i stands for the i-th of a list of names. Where
// a program is written for one part of its arrays (shard_map), a value that does not vary over an
// axis is known to be the same for all parts along it. Axes over which it varies may bear a mark, a
// further bit: along unreduced ones the values of the parts are summands, which are yet to be
// added; along reduced ones they are the same, and their cotangents are summands.
using AxisSet = uint64_t;
inline constexpr size_t kMaxManualAxes = 21;
constexpr AxisSet without_marks(AxisSet set) { return set & ((AxisSet{1} << kMaxManualAxes) - 1); }
constexpr AxisSet unreduced_of(AxisSet set) { return without_marks(set >> kMaxManualAxes); }
constexpr AxisSet reduced_of(AxisSet set) { return without_marks(set >> 2 * kMaxManualAxes); }
// Axes without marks, marked.
constexpr AxisSet as_unreduced(AxisSet axes) { return axes | axes << kMaxManualAxes; }
constexpr AxisSet as_reduced(AxisSet axes) { return axes | axes << 2 * kMaxManualAxes; }
// The set without these axes, which bear no marks, and without the marks of theirs.
constexpr AxisSet without(AxisSet set, AxisSet axes) {
  return set & ~(as_unreduced(axes) | as_reduced(axes));
}
// What varies as either does: an axis over which both vary keeps a mark that both have.
constexpr AxisSet joined(AxisSet a, AxisSet b) {
  AxisSet both = without_marks(a & b), marks = a & b & ~both;
  return without(a, both) | without(b, both) | both |
         (marks & (as_unreduced(both) | as_reduced(both)));
}

struct ShardOptions {
  std::vector<std::string> axes;     // of the mesh, those for whose parts the program is written
  SmallVector<AxisSet, 8> inputs;    // over which the inputs vary
  SmallVector<AxisSet, 8> at_least;  // over which outputs are to vary, if they do not; empty: none
  // Whether it is an error for the carry of a loop to vary over more axes after an iteration than
  // before; else it does from the start. Derivatives start carries from zeros, users should say so.
  bool strict = false;
};
// The same graph with `pvary` where values that vary over different axes meet, so that each op's
// operands vary over the same ones. Derivatives of it are right: the cotangent of a pvary is summed
// up over the axes that it adds.
struct ShardedGraph {
  GraphRef graph;
  SmallVector<AxisSet, 8> outputs;
};

// Outputs that depend on any of the masked inputs; looks into ops with graphs. Kept on the graph.
WEFT_API std::shared_ptr<const Mask> dependent_outputs(const GraphRef& graph, const Mask& inputs);

// Whether a value that a builder knows has a tangent, if those of its inputs have one of which
// `input_has` says so.
WEFT_API bool has_tangent(const Builder& builder, Value v,
                          const std::function<bool(Value)>& input_has);

// The graph without what gives no values and is there for its effects alone: the calls of
// debug_callback, also in graphs that it holds. Where values are computed a second time, callbacks
// must not run a second time. Kept on the graph.
WEFT_API GraphRef without_effects(const GraphRef& graph);
WEFT_API AttrsRef without_effects(const AttrsRef& attrs);

class Transforms {
 public:
  virtual ~Transforms() = default;
  // Whether jvp and linearize differentiate nothing: the graphs are linear in the masked inputs
  // already, and are only taken apart. A value with a tangent is zero then, and any other value
  // that is to have a tangent is its own.
  virtual bool only_splits() const { return false; }
  virtual std::shared_ptr<const JvpGraph> jvp(const GraphRef&, const JvpOptions&) const = 0;
  virtual std::shared_ptr<const LinearizedGraph> linearize(const GraphRef&,
                                                           const LinearizeOptions&) const = 0;
  virtual std::shared_ptr<const TransposedGraph> transpose(const GraphRef&,
                                                           const TransposeOptions&) const = 0;
  virtual std::shared_ptr<const VmapGraph> vmap(const GraphRef&, const VmapOptions&) const = 0;
  virtual std::shared_ptr<const ShardedGraph> shard(const GraphRef&, const ShardOptions&) const = 0;
};

}  // namespace weft
