// JitFunction: the callable that jit() returns. Calls are matched by signature to a traced entry,
// and run, recorded as a `jit` op, or spliced into the program being traced.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "execution/compile.h"
#include "execution/eager.h"
#include "jit/result_tree.h"
#include "references/core.h"
#include "tracing/in_flight.h"

namespace weft::py {

struct Miss;

// A function traced for one signature.
struct Entry {
  GraphRef graph;               // inputs: captures, then arguments
  std::vector<Ref> captures;    // arrays, cells, and tracers of outer contexts
  bool of_outer_trace = false;  // closes over tracers, or cells of a trace
  // Outputs beyond the results: values of cells that the function closes over, then of those at
  // these places among the leaves of the arguments.
  std::vector<Ref> written;
  std::vector<size_t> written_arguments;
  bool is_library = false;          // composite(): no function that a user wrote
  bool leaked = false;              // tracers outlived the trace
  bool holds_objects = false;       // of users, in the graph: callbacks, rules
  bool runs_only = false;           // rules of derivatives are left out of the graph
  Ref out_tree;                     // null: the output is one leaf
  ResultTree result_tree;           // the same, where it can be known
  std::vector<bool> weak;           // per output
  std::vector<ShardingRef> splits;  // of the outputs over explicit axes; empty: there are none
  std::vector<bool> donated;        // per graph input
  std::vector<bool> in_weak;        // per argument
  Ref in_tree;                      // of (args, kwargs) without static ones
  std::string name;
  std::weak_ptr<Miss> miss;  // the call that it was traced for, while that is remembered
  // Made when needed.
  mutable AttrsRef call_attrs;
  // What jit was given, per graph input and output.
  struct Wanted {
    std::vector<ShardingRef> inputs, outputs;
    std::vector<SpecEntries> entries;  // of the outputs
  };
  mutable std::unique_ptr<Wanted> wanted;
  mutable std::optional<MeshRef> mesh;  // that ops of the graph name
  struct Target {
    Places places;
    int debug_flags;
    bool keeps_constants;
    CompileChoice how;
    friend bool operator==(const Target&, const Target&) = default;
  };
  mutable std::vector<std::pair<Target, ProgramRef>> programs;
  mutable InFlightTable<Target> compiling;

  size_t num_results() const { return weak.size() - written.size() - written_arguments.size(); }
};
using EntryRef = std::shared_ptr<const Entry>;

extern PyTypeObject* jit_type;
void init_jit(PyObject* module);

// Traces a JitFunction on arguments, which may be abstract (shape and dtype only), and says where
// it would run, and how the function is to be compiled.
struct TracedCall {
  EntryRef entry;
  Placement where;
  Ref options;  // those of the function
  bool keep_unused;
  CompileChoice how;
};
TracedCall trace_call(PyObject* jit_function, PyObject* args, PyObject* kwargs);
// The program of an entry on devices, compiled at first use; whether it was. `executable`: see
// CompileOptions.
bool is_compiled(const Entry& entry, Places places, const CompileChoice& how);
ProgramRef program_for(const Entry& entry, Places places, bool keep_unused,
                       const CompileChoice& how, PyObject* executable = Py_None);

}  // namespace weft::py
