// JitFunction: the callable that jit() returns. Calls are matched by signature to a traced entry,
// and run, recorded as a `jit` op, or spliced into the program being traced.
#pragma once

#include <memory>
#include <vector>

#include "bind.h"
#include "core.h"
#include "execute.h"

namespace weft::py {

// A function traced for one signature.
struct Entry {
  GraphRef graph;             // inputs: captures, then arguments
  std::vector<Ref> captures;  // arrays, and tracers of outer contexts
  bool captures_tracers = false;
  Ref out_tree;               // null: the output is one leaf
  std::vector<bool> weak;     // per output
  std::vector<bool> donated;  // per graph input
  Ref in_tree;                // of (args, kwargs) without static ones
  std::string name;
  // Made when needed.
  mutable AttrsRef call_attrs;
  mutable std::vector<std::pair<int, ProgramRef>> programs;  // by device
};
using EntryRef = std::shared_ptr<const Entry>;

extern PyTypeObject* jit_type;
void init_jit(PyObject* module);

// Traces a JitFunction on arguments, which may be abstract (shape and dtype only).
EntryRef trace_entry(PyObject* jit_function, PyObject* args, PyObject* kwargs);
// The program of an entry on a device, compiled at first use.
ProgramRef program_for(const Entry& entry, int device, bool keep_unused);

// Callables of Python's that the jit path needs.
struct JitHooks {
  Ref flatten;            // registry.flatten: tree -> (leaves, treedef)
  Ref describe;           // (function, in_tree, static_argnums, leaf) -> "argument x['w'] of f"
  Ref describe_output;    // (function name, out_tree, leaf number) -> "output [0] of f"
  Ref describe_position;  // (function, position) -> "argument n of f"
  PyTypeObject* abstract_type = nullptr;  // ShapeDtypeStruct
};
extern JitHooks& jit_hooks;

// classify(), and for a ShapeDtypeStruct an operand that has a type but no value (kInvalid).
Operand classify_abstract(PyObject* o);

}  // namespace weft::py
