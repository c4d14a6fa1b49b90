// Cells: mutable arrays, `weft.Ref` in Python. Programs know nothing of them: a cell is the value
// that it has where code reads it.
//
// A cell belongs to the context in which it was made, its home, or to none. Read in a context
// further in, it becomes an input there like any value of outside; written in there, its last value
// becomes an output, and whoever runs or records the finished graph writes it to the cell in turn.
// So an error on the way leaves the cell as it was.
//
// Backward rules of users may write cells as well, in the reverse order of the calls that they
// belong to. So a cell that such a call gets has a trail: a second cell, which each of these calls
// reads and writes. What a trail holds means nothing. Its cotangent is what the cell holds on the
// way back: a derivative starts with the value of the cell, each backward rule passes on what it
// leaves, and what comes out is written to the cell.
#pragma once

#include <span>
#include <string>

#include "references/core.h"
#include "references/function_ref.h"
#include "references/type_slots.h"
#include "tracing/trace.h"

namespace weft::py {

struct CellObject {
  PyObject_HEAD PyObject* weakrefs;
  TypeRef type;
  bool weak;
  bool argument;  // stands for a cell of the caller while a function is traced
  bool written;   // at home
  bool no_grad;   // no derivative goes through what it holds
  Loc made_at;
  Loc frozen_at;
  ContextRef home;    // null: made outside of traces
  Ref value;          // at home, an array or tracer; null once it was frozen
  Ref trail;          // made when it is needed; None: it cannot have one
  CellObject* owner;  // of a trail: its cell; null once that is gone
  bool is_trail;
  int64_t leaf;  // of the trail of an argument of jit, once that was traced; or else -1
};

extern PyTypeObject* cell_type;
void init_cell(PyObject* module, const TypeSlots& slots);
inline bool is_cell(PyObject* o) { return Py_TYPE(o) == cell_type; }
// Of an object that is known to be one.
inline CellObject* as_cell(PyObject* o) { return reinterpret_cast<CellObject*>(o); }
// Of anything that Python passed to a function; raises RefError.
CellObject* cell_argument(PyObject* o, const char* function);

// A cell of the innermost context that holds an array or tracer.
Ref make_cell(const Ref& value, bool argument, bool no_grad = false);
// What it holds for the code that runs now. Raises for a frozen cell, and for one whose home is a
// trace that has ended.
Ref cell_value(CellObject* cell);
// `value` is an array or tracer of the cell's type. Raises also where cells of outside are fixed.
void set_cell(CellObject* cell, Ref value);
// The value, which the cell loses for good. Raises unless the cell was made in the innermost
// context.
Ref freeze_cell(CellObject* cell);
// The same value, which no derivative goes through.
Ref without_derivative(const Ref& value);
// The trail of a cell; null where it has none: the cell holds no floats, or cannot be written here.
CellObject* trail_of(CellObject* cell);
// Of what the trace of a function under jit knows of: the trail of an argument is that of the cell
// among the leaves of a call, anything else is the cell itself.
CellObject* cell_at_call(CellObject* cell, std::span<PyObject* const> leaves);
// A capture of a graph as a value: of a cell what it holds, of anything else itself.
Ref capture_value(const Ref& capture);
std::vector<Ref> capture_values(std::span<const Ref> captures);
std::vector<Ref> capture_values(std::span<const Ref> captures, std::span<PyObject* const> leaves);
// Raises RefError if a cell stands twice among these, which are the cells that a call gets and
// those that its function refers to by itself. describe(i) names one.
void check_aliases(std::span<PyObject* const> cells, FunctionRef<std::string(size_t)> describe);
// "Ref{float32[3]} (made at ...)".
std::string describe_cell(CellObject* cell);

}  // namespace weft::py
