// The type Ref, and how a cell finds the value that it has in a context.

#include "tracing/cell.h"

#include <structmember.h>

#include <algorithm>
#include <new>

#include "arrays/array.h"
#include "conversions/dtypes.h"
#include "conversions/location.h"
#include "references/hooks.h"

namespace weft::py {

PyTypeObject* cell_type;

namespace {

bool is_live_cell(PyObject* o) { return o && is_cell(o); }

void dealloc(PyObject* self) {
  CellObject* c = as_cell(self);
  if (c->weakrefs) PyObject_ClearWeakRefs(self);
  if (is_live_cell(c->trail.get())) as_cell(c->trail.get())->owner = nullptr;
  c->value.~Ref();
  c->home.~ContextRef();
  c->trail.~Ref();
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CellObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

// How many contexts of the stack are there up to the cell's home.
size_t home_depth(CellObject* cell) {
  if (!cell->value)
    raise_error("RefError", "expected a live ref; got ", describe_cell(cell),
                ", which was frozen at ", loc_text(cell->frozen_at),
                "\n  freeze() ends a ref: use the array that it returned.");
  if (!cell->home) return 0;
  std::vector<ContextRef>& stack = context_stack();
  for (size_t i = stack.size(); i-- > 0;)
    if (stack[i] == cell->home) return i + 1;
  raise_error("UnexpectedTracerError", "expected a ref of the function being traced; got ",
              describe_cell(cell), ", which belongs to a trace of '", cell->home->name,
              "' that has ended\n  Return the ref's value, ref[...], instead of storing the ref.");
}

// What a cell holds outside of traces is not for others to donate.
void share(CellObject* cell) {
  if (!cell->home && is_array(cell->value.get())) as_array(cell->value.get())->shared = true;
}

OuterCell* find(TraceContext& context, CellObject* cell) {
  for (OuterCell& o : context.cells)
    if (o.cell.get() == reinterpret_cast<PyObject*>(cell)) return &o;
  return nullptr;
}

}  // namespace

Ref without_derivative(const Ref& value) {
  if (!is_tracer(value.get())) return value;
  const TracerObject* t = as_tracer(value.get());
  static const OpDef& op = registry().get("stop_gradient");
  Value stopped = record(*t->owner, op, {&t->value, 1}, nullptr)[0];
  return Ref::steal(make_tracer(t->owner, stopped, t->weak));
}

std::string describe_cell(CellObject* cell) {
  return cat("Ref{", cell->type, "} (made at ", loc_text(cell->made_at), ")");
}

CellObject* cell_argument(PyObject* o, const char* function) {
  if (!is_cell(o))
    raise_error("RefError", "[", function, "] expected a ref; got ", Py_TYPE(o)->tp_name,
                "\n  weft.new_ref(x) makes one.");
  return as_cell(o);
}

Ref make_cell(const Ref& value, bool argument, bool no_grad) {
  CellObject* c = PyObject_New(CellObject, cell_type);
  if (!c) throw PythonError{};
  std::vector<ContextRef>& stack = context_stack();
  new (&c->home) ContextRef(stack.empty() ? nullptr : stack.back());
  new (&c->value) Ref(no_grad ? without_derivative(value) : value);
  new (&c->trail) Ref();
  Operand x = classify(value.get());
  c->weakrefs = nullptr;
  c->type = x.type;
  c->weak = x.weak;
  c->argument = argument;
  c->written = false;
  c->no_grad = no_grad;
  c->made_at = current_loc();
  c->frozen_at = kNoLoc;
  c->owner = nullptr;
  c->is_trail = false;
  c->leaf = -1;
  share(c);
  return Ref::steal(reinterpret_cast<PyObject*>(c));
}

Ref cell_value(CellObject* cell) {
  size_t home = home_depth(cell);
  std::vector<ContextRef>& stack = context_stack();
  for (size_t i = stack.size(); i-- > home;) {
    TraceContext& c = *stack[i];
    if (OuterCell* known = find(c, cell)) return known->value;
    if (c.kind != ContextKind::kStaged) continue;
    Ref self = Ref::borrow(reinterpret_cast<PyObject*>(cell));
    Value v = capture(c, self.get(), self, cell->type);
    Ref tracer = Ref::steal(make_tracer(stack[i], v, cell->weak));
    c.cells.push_back({self, tracer, false});
    return tracer;
  }
  if (is_array(cell->value.get())) check_live(as_array(cell->value.get()), "a ref's array");
  return cell->value;
}

void set_cell(CellObject* cell, Ref value) {
  size_t home = home_depth(cell);
  std::vector<ContextRef>& stack = context_stack();
  if (cell->no_grad) value = without_derivative(value);
  if (stack.size() == home) {
    if (cell->is_trail) return;
    cell->written = true;
    std::swap(cell->value, value);
    share(cell);
    return;
  }
  for (size_t i = home; i < stack.size(); ++i)
    if (!stack[i]->fixed_cells.empty())
      raise_error("RefError", "expected no write to a ref of outside in ", stack[i]->fixed_cells,
                  "; got one to ", describe_cell(cell));
  TraceContext& c = *stack.back();
  if (OuterCell* known = find(c, cell)) {
    known->written = true;
    std::swap(known->value, value);
  } else {
    c.cells.push_back({Ref::borrow(reinterpret_cast<PyObject*>(cell)), std::move(value), true});
  }
}

Ref freeze_cell(CellObject* cell) {
  if (home_depth(cell) != context_stack().size() || cell->argument)
    raise_error("RefError", "[freeze] expected a ref that was made in the same function; got ",
                describe_cell(cell), ", of outside");
  Ref value = cell_value(cell);
  cell->frozen_at = current_loc();
  Ref gone = std::move(cell->value);
  return value;
}

CellObject* trail_of(CellObject* cell) {
  if (!is_inexact(cell->type->dtype()) || cell->trail.get() == Py_None) return nullptr;
  std::vector<ContextRef>& stack = context_stack();
  // That of an argument stands for a cell of outside.
  size_t home = home_depth(cell) - (cell->argument ? 1 : 0);
  for (size_t i = home; i < stack.size(); ++i)
    if (!stack[i]->fixed_cells.empty()) return nullptr;
  if (!cell->trail) {
    std::vector<ContextRef> suspended;
    suspended.swap(stack);
    struct Restore {
      std::vector<ContextRef>& saved;
      ~Restore() { context_stack().swap(saved); }
    } restore{suspended};
    Ref shape = to_tuple(cell->type->shape());
    Ref zeros = Ref::checked(PyObject_CallFunctionObjArgs(
        hooks.zeros.get(), shape.get(), numpy_dtype(cell->type->dtype()), Py_False, nullptr));
    cell->trail = make_cell(zeros, false);
    CellObject* trail = as_cell(cell->trail.get());
    if (home) trail->home = suspended[home - 1];
    trail->owner = cell;
    trail->is_trail = true;
    trail->made_at = cell->made_at;
  }
  return as_cell(cell->trail.get());
}

CellObject* cell_at_call(CellObject* cell, std::span<PyObject* const> leaves) {
  if (cell->leaf < 0 || !is_cell(leaves[static_cast<size_t>(cell->leaf)])) return cell;
  CellObject* given = as_cell(leaves[static_cast<size_t>(cell->leaf)]);
  if (CellObject* trail = trail_of(given)) return trail;
  raise_error("RefError", "expected a ref that a backward rule can write; got ",
              describe_cell(given),
              "\n  Parts of refs that scan gives, and refs of outside under vmap, cannot be.");
}

Ref capture_value(const Ref& capture) {
  return is_cell(capture.get()) ? cell_value(as_cell(capture.get())) : capture;
}

std::vector<Ref> capture_values(std::span<const Ref> captures) {
  std::vector<Ref> out;
  for (const Ref& capture : captures) out.push_back(capture_value(capture));
  return out;
}

std::vector<Ref> capture_values(std::span<const Ref> captures, std::span<PyObject* const> leaves) {
  std::vector<Ref> out;
  for (const Ref& c : captures)
    out.push_back(is_cell(c.get()) ? cell_value(cell_at_call(as_cell(c.get()), leaves)) : c);
  return out;
}

void check_aliases(std::span<PyObject* const> cells, FunctionRef<std::string(size_t)> describe) {
  for (size_t i = 1; i < cells.size(); ++i) {
    size_t first =
        static_cast<size_t>(std::find(cells.begin(), cells.end(), cells[i]) - cells.begin());
    if (first == i) continue;
    raise_error("RefError", "expected every ref once, as an argument or closed over; got ",
                describe_cell(as_cell(cells[i])), " as ", describe(first), " and as ", describe(i));
  }
}

void init_cell(PyObject* module, const TypeSlots& given) {
  std::vector<PyType_Slot> slots = given.slots;
  auto add = [&](int slot, void* f) { slots.push_back({slot, f}); };
  add(Py_tp_dealloc, reinterpret_cast<void*>(dealloc));
  add(Py_tp_getset, with_getters(given, {}));
  add(Py_tp_members, members);
  add(Py_tp_doc,
      const_cast<char*>("A mutable array; `weft.new_ref` makes one.\n\n"
                        "`ref[index]` reads and `ref[index] = value` writes, with the indices of "
                        "arrays; `ref[...]` is the whole value. Arithmetic takes what was read."));
  add(0, nullptr);
  PyType_Spec spec = {"weft.Ref", sizeof(CellObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw PythonError{};
  cell_type = reinterpret_cast<PyTypeObject*>(type);
  check(PyModule_AddObjectRef(module, "Ref", type));
}

}  // namespace weft::py
