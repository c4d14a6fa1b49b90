// The callables through which users enter weft, as far as they are Python functions; and what
// happens to an error that leaves one.
#pragma once

#include "references/core.h"

namespace weft::py {

// What makes calls of a function on concrete arrays programs of their own: how many of its first
// parameters are operands, and which of the others are static.
struct EagerEntry {
  PyObject* function;  // lives as long as the process: programs are cached under its address
  Py_ssize_t operands;
  Ref parameters;  // a tuple of their names
  std::vector<bool> statics;

  bool is_static(Py_ssize_t parameter) const { return statics[static_cast<size_t>(parameter)]; }
};
// See eager_entry.h.
using RunEntry = bool (*)(const EagerEntry& entry, PyObject* const* args, Py_ssize_t n,
                          PyObject* kwnames, PyObject*& result);

// An error is set and leaves `function` for the code that called it: `hooks.leave` folds weft's own
// frames and names the function. The error stays set.
void error_leaves(PyObject* function);

// A call of `callable`, which is `function` to its users, has failed. If it was given objects that
// stand for arrays (`__jax_array__`) and takes them, it is called again with these; else the error
// leaves.
PyObject* call_failed(PyObject* callable, PyObject* function, PyObject* const* args, size_t nargsf,
                      PyObject* kwnames);

void init_public_function(PyObject* module, RunEntry run);

}  // namespace weft::py
