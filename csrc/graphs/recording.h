// Running a Python function on tracers to get its graph: record() for un-jitted transforms, on
// tracers of a deferred context; trace_body() for loop bodies, branches and rules that users write,
// on tracers of a staged one. What becomes of cells is for the caller to do.
#pragma once

#include <string_view>
#include <vector>

#include "references/core.h"
#include "references/function_ref.h"
#include "tracing/trace.h"

namespace weft::py {

struct Recording {
  GraphRef graph;             // its inputs are the captures, then the function's
  std::vector<Ref> captures;  // what the function closed over: arrays, tracers of outer contexts,
                              // and cells, if the context was a staged one
  std::vector<bool> weak;     // per output
  std::vector<bool> as_came;  // per output: it is one of the function's arguments, untouched
  std::vector<Ref> written;   // cells of outside; their values are the last outputs
  // How the mapped axis, alone, is split over explicit axes; null: it is not.
  ShardingRef lanes = nullptr;

  size_t num_results() const { return weak.size() - written.size(); }
  // Writes the cells: `results` are those of the graph, or the last of them.
  void write(std::span<const Ref> results) const;
};

// Runs function(list of tracers) -> list of results on tracers of the given types. `name` is the
// function's in messages; `describe` maps the number of an input to its name there, or is None.
// `fixed` says what the function is, if it must not write cells of outside. `splits` are those of
// the inputs, for set_split(). With `values`, of the first inputs, null where unknown, the tracers
// are those of a deferred context: Python can ask for what follows from these values. `varies_as`
// holds per input what it varies as over the axes of a shard_map around it; unset: that is not
// known. `consts` are the types of inputs that come before those of the function, which stand for
// the tracers of `stand_ins`.
Recording trace_body(PyObject* function, std::span<const TypeRef> types,
                     const std::vector<bool>& weak, std::string_view name, PyObject* describe,
                     std::string_view fixed, std::span<const ShardingRef> splits = {},
                     std::span<const Ref> values = {}, std::vector<Ref> varies_as = {},
                     std::span<const TypeRef> consts = {}, std::vector<StandIn> stand_ins = {});

// Makes results from a list of tracers.
using Recorded = FunctionRef<std::vector<Ref>(PyObject* tracers)>;
// Records a function of these inputs, which must stay alive, on tracers of a deferred context.
// `axes` holds per input the mapped axis, if any; empty where nothing is mapped. `name` and
// `describe` as for trace_body(); `numbers` are those that `describe` knows the inputs by, unless
// they are their own; `fixed` as for trace_body(), where nothing is mapped. `is_differentiated`:
// for the sake of a derivative by the inputs.
Recording record(Recorded function, std::span<const Operand> inputs,
                 std::span<const std::optional<int64_t>> axes, std::string_view name,
                 PyObject* describe, std::span<const uint32_t> numbers = {},
                 std::string_view fixed = {}, bool is_differentiated = false);

// A leaf of a tree as an operand; kInvalid if it is no array or number, or of a dtype that weft has
// not. A cell has a type nevertheless.
Operand classify_leaf(PyObject* leaf);
// The leaves of a tree, a list, as operands. `describe` names a leaf in the ArgumentTypeError that
// one which is no array or number raises.
std::vector<Operand> classify_leaves(PyObject* leaves, FunctionRef<Ref(size_t)> describe);

// A traced graph as a region of an op: what the function closed over are inputs like the others.
GraphRef as_region(const GraphRef& graph);

void init_recording(PyObject* module);

}  // namespace weft::py
