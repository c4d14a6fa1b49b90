// Reading a part is indexing what a cell holds; writing one gives it an updated array.

#include "binding/cell_functions.h"

#include "arrays/array.h"
#include "binding/bind.h"
#include "binding/indexing.h"
#include "conversions/dtypes.h"
#include "execution/eager.h"
#include "references/hooks.h"
#include "tracing/cell.h"

namespace weft::py {
namespace {

// A value that may go into a cell: of its dtype, or a Python number that its dtype holds.
Operand value_for(CellObject* cell, PyObject* value, const char* function) {
  if (is_cell(value))
    raise_error("RefError", "[", function, "] expected an array or a number; got ",
                describe_cell(as_cell(value)), "\n  Refs hold no refs: pass its value, ref[...].");
  Operand x = classify_operand(value, function);
  DType dtype = cell->type->dtype();
  std::optional<PromotionType> both = promote({dtype, false}, {x.type->dtype(), x.weak});
  bool fits = x.weak ? both && both->dtype == dtype : x.type->dtype() == dtype;
  if (!fits)
    raise_error("RefError", "[", function, "] expected a value of dtype ", numpy_name(dtype),
                " for ", describe_cell(cell), "; got ", x.type,
                "\n  A ref keeps its dtype: convert the value with .astype(...).");
  return x;
}

// The value broadcast to the whole shape of the cell.
Ref whole_value(CellObject* cell, const Operand& x) {
  const Dims &shape = cell->type->shape(), &own = x.type->shape();
  bool fits = own.size() <= shape.size();
  for (size_t i = 0; fits && i < own.size(); ++i) {
    int64_t d = shape[shape.size() - own.size() + i];
    fits = own[i] == d || own[i] == 1;
  }
  if (!fits)
    raise_error("ShapeError", "[ref] expected a value that broadcasts to shape ",
                std::span<const int64_t>(shape), " of ", describe_cell(cell), "; got ", x.type);
  Ref value = astype(x, cell->type->dtype(), cell->weak);
  return broadcast_to(classify(value.get()), shape);
}

// The new value of a cell where the old one is, if that was committed.
Ref in_its_place(const Ref& old, Ref value) {
  if (!is_array(old.get()) || !is_array(value.get())) return value;
  const ArrayObject *from = as_array(value.get()), *to = as_array(old.get());
  if (!to->committed || are_equivalent(from->sharding, to->sharding, to->type)) return value;
  Ref moved = on_device(std::move(value), to->sharding);
  as_array(moved.get())->committed = true;
  return moved;
}

// kind: "set" or "add".
void update(CellObject* cell, PyObject* index, PyObject* value, const char* kind) {
  Ref old = cell_value(cell);
  Operand x = value_for(cell, value, "ref");
  bool is_set = std::string_view(kind) == "set";
  if (is_set && index == Py_Ellipsis)
    return set_cell(cell, in_its_place(old, whole_value(cell, x)));
  Ref name = Ref::checked(PyUnicode_FromString(kind));
  Ref updated = Ref::checked(PyObject_CallFunctionObjArgs(hooks.update.get(), name.get(), old.get(),
                                                          index, value, nullptr));
  set_cell(cell, astype(classify(updated.get()), cell->type->dtype(), cell->weak));
}

Ref read(CellObject* cell, PyObject* index) {
  Ref value = cell_value(cell);
  return index == Py_Ellipsis ? value : getitem(value.get(), index);
}

PyObject* subscript(PyObject* self, PyObject* index) {
  return guard([&] { return read(as_cell(self), index).release(); });
}

int assign(PyObject* self, PyObject* index, PyObject* value) {
  return guard_int([&]() -> int {
    if (!value) {
      PyErr_SetString(PyExc_TypeError, "elements of a ref cannot be deleted");
      throw PythonError{};
    }
    update(as_cell(self), index, value, "set");
    return 0;
  });
}

Py_ssize_t length(PyObject* self) {
  TypeRef type = as_cell(self)->type;
  if (type->rank() > 0) return static_cast<Py_ssize_t>(type->dim(0));
  PyErr_SetString(PyExc_TypeError, "len() of a ref with no axes");
  return -1;
}

PyObject* get_shape(PyObject* self, void*) {
  return guard([&] { return to_tuple(as_cell(self)->type->shape()).release(); });
}
PyObject* get_dtype(PyObject* self, void*) {
  return Py_NewRef(numpy_dtype(as_cell(self)->type->dtype()));
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(as_cell(self)->type->rank()); }
PyObject* get_size(PyObject* self, void*) {
  return PyLong_FromLongLong(as_cell(self)->type->num_elements());
}
PyObject* get_weak(PyObject* self, void*) { return PyBool_FromLong(as_cell(self)->weak); }
PyObject* get_frozen(PyObject* self, void*) { return PyBool_FromLong(!as_cell(self)->value); }
PyObject* get_held(PyObject* self, void*) {
  bool now = context_stack().empty() && as_cell(self)->value && !as_cell(self)->home;
  return Py_NewRef(now ? as_cell(self)->value.get() : Py_None);
}
PyObject* get_written(PyObject* self, void*) { return PyBool_FromLong(as_cell(self)->written); }

const PyGetSetDef getset[] = {
    {"shape", get_shape, nullptr, "Axis sizes, a tuple of ints.", nullptr},
    {"dtype", get_dtype, nullptr, "The element type, a NumPy dtype.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of axes.", nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"weak_type", get_weak, nullptr, "Whether the dtype came from a Python scalar.", nullptr},
    {"_frozen", get_frozen, nullptr, "Whether freeze() ended it.", nullptr},
    {"_held", get_held, nullptr, "The array that it holds; None while a function is traced.",
     nullptr},
    {"_written", get_written, nullptr, "Whether it was written where it was made.", nullptr}};

// new_ref(value, argument, no_grad) -> Ref; `argument`: it stands for a ref of outside; `no_grad`,
// which may be left out: no derivative goes through it.
PyObject* new_ref(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    check_count("new_ref", n, n == 3 ? 3 : 2);
    if (is_cell(args[0]))
      raise_error("RefError", "[new_ref] expected an array or a number; got ",
                  describe_cell(as_cell(args[0])), "\n  Refs hold no refs: pass ref[...].");
    Operand x = classify_operand(args[0], "new_ref");
    // The array may be donated or deleted later on.
    bool copies = x.kind == OperandKind::kArray && context_stack().empty();
    Ref value = copies ? copy_buffer(as_array(x.object), x.weak, as_array(x.object)->committed)
                       : astype(x, x.type->dtype(), x.weak);
    Ref cell = make_cell(value, args[1] == Py_True, n == 3 && args[2] == Py_True);
    // Nobody here knows of what cell that of the caller would have the trail.
    if (args[1] == Py_True) as_cell(cell.get())->trail = Ref::borrow(Py_None);
    return cell.release();
  });
}

PyObject* freeze(PyObject*, PyObject* o) {
  return guard([&] { return freeze_cell(cell_argument(o, "freeze")).release(); });
}

// update_ref(kind, ref, index, value)
PyObject* update_ref(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    check_count("update_ref", n, 4);
    std::string kind = readable(args[0]);
    update(cell_argument(args[1], "ref"), args[2], args[3], kind.c_str());
    return Py_NewRef(Py_None);
  });
}

// set_refs(refs, values): what a graph gave for refs that its function wrote.
PyObject* set_refs(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    check_count("set_refs", n, 2);
    PyObject *refs = list_argument(args[0], "set_refs", "the refs"),
             *values = list_argument(args[1], "set_refs", "the values");
    if (PyList_GET_SIZE(refs) != PyList_GET_SIZE(values))
      raise_error("OperandError", "set_refs expected a value per ref");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(refs); ++i) {
      CellObject* cell = cell_argument(PyList_GET_ITEM(refs, i), "set_refs");
      Operand x = classify_operand(PyList_GET_ITEM(values, i), "set_refs");
      if (x.type != cell->type)
        raise_error("OperandError", "set_refs expected ", cell->type, "; got ", x.type);
      set_cell(cell, astype(x, x.type->dtype(), cell->weak));
    }
    return Py_NewRef(Py_None);
  });
}

// captured_values(captures) -> list: refs among them read.
PyObject* captured_values(PyObject*, PyObject* captures) {
  return guard([&]() -> PyObject* {
    list_argument(captures, "captured_values", "the captures");
    Objects out;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(captures); ++i)
      out.push_back(capture_value(Ref::borrow(PyList_GET_ITEM(captures, i))));
    return to_list(std::move(out));
  });
}

// ref_text(ref) -> how messages name it.
PyObject* ref_text(PyObject*, PyObject* o) {
  return guard([&] {
    std::string text = describe_cell(cell_argument(o, "ref_text"));
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}

PyCFunction fast(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

}  // namespace

TypeSlots cell_slots() {
  TypeSlots out;
  out.getters.assign(std::begin(getset), std::end(getset));
  out.slots = {{Py_mp_length, reinterpret_cast<void*>(length)},
               {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
               {Py_mp_ass_subscript, reinterpret_cast<void*>(assign)}};
  return out;
}

void init_cell_functions(PyObject* module) {
  static PyMethodDef functions[] = {
      {"new_ref", fast(new_ref), METH_FASTCALL, "new_ref(value, argument, no_grad) -> Ref."},
      {"freeze", freeze, METH_O, "freeze(ref) -> its value."},
      {"update_ref", fast(update_ref), METH_FASTCALL, "update_ref(kind, ref, index, value)."},
      {"set_refs", fast(set_refs), METH_FASTCALL, "set_refs(refs, values)."},
      {"captured_values", captured_values, METH_O, "captured_values(captures) -> list of values."},
      {"ref_text", ref_text, METH_O, "ref_text(ref) -> how messages name it."},
      {nullptr, nullptr, 0, nullptr}};
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace weft::py
