// Python's operators on arrays and tracers. Those that are one op go straight to it; the others
// call functions that weft.numpy installs.

#include "binding/operators.h"

#include "arrays/array.h"
#include "binding/bind.h"
#include "binding/indexing.h"
#include "conversions/dtypes.h"
#include "conversions/public_function.h"
#include "references/hooks.h"
#include "tracing/trace.h"

namespace weft::py {
namespace {

Elementwise function(const char* op, Promotion promotion, const char* bool_op = nullptr) {
  return {&registry().get(op), promotion, bool_op ? &registry().get(bool_op) : nullptr};
}

// An operator fails as the function of weft.numpy that it stands for.
void operator_fails(const char* function) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Ref numpy = Ref::steal(PyImport_ImportModule("weft.numpy"));
  Ref named = Ref::steal(numpy ? PyObject_GetAttrString(numpy.get(), function) : nullptr);
  PyErr_Restore(type, value, traceback);
  if (named) error_leaves(named.get());
}

// Of operands that are no arrays, another class may know what to do with them. NumPy would answer
// with arrays of its own about those of its dtypes that weft lacks: they are mistakes.
PyObject* call(const Elementwise& f, const char* function,
               std::initializer_list<PyObject*> objects) {
  PyObject* result = guard([&]() -> PyObject* {
    SmallVector<Operand, 2> xs;
    Ref foreign;  // one operand is an array or tracer, or this would not be called
    for (PyObject* o : objects) {
      xs.push_back(classify(o));
      if (xs.back().kind != OperandKind::kInvalid) continue;
      foreign = foreign_array(o);
      if (!foreign && !is_of_numpy(o)) return Py_NewRef(Py_NotImplemented);
      xs.back() = classify_operand(foreign ? foreign.get() : o, function);
    }
    return elementwise(f, xs, nullptr).release();
  });
  if (!result) operator_fails(function);
  return result;
}

PyObject* call_python(const Hook& function, PyObject* x, PyObject* y) {
  return guard([&]() -> PyObject* {
    Ref foreign;
    for (PyObject** o : {&x, &y}) {
      if (classify(*o).kind != OperandKind::kInvalid) continue;
      foreign = foreign_array(*o);
      if (foreign)
        *o = foreign.get();
      else if (!is_of_numpy(*o))
        return Py_NewRef(Py_NotImplemented);
    }
    return PyObject_CallFunctionObjArgs(function.get(), x, y, nullptr);
  });
}

// A function-local static: its address is part of the key under which eager programs are cached.
#define WEFT_BINARY(slot, ...)                          \
  PyObject* slot(PyObject* x, PyObject* y) {            \
    static const Elementwise f = function(__VA_ARGS__); \
    return call(f, #slot, {x, y});                      \
  }
WEFT_BINARY(add, "add", Promotion::kNumpy, "or")
WEFT_BINARY(subtract, "sub", Promotion::kNumpy)
WEFT_BINARY(divide, "div", Promotion::kInexact)
WEFT_BINARY(bitwise_and, "and", Promotion::kNumpy)
WEFT_BINARY(bitwise_or, "or", Promotion::kNumpy)
WEFT_BINARY(bitwise_xor, "xor", Promotion::kNumpy)
#undef WEFT_BINARY

// Whether a subclass of one of Python's containers has a method of its own by this name.
bool has_own(PyObject* o, const char* method) {
  for (PyTypeObject* base :
       {&PyList_Type, &PyTuple_Type, &PyDict_Type, &PySet_Type, &PyFrozenSet_Type}) {
    if (!PyType_IsSubtype(Py_TYPE(o), base)) continue;
    auto named = [&](PyTypeObject* type) {
      PyObject* found = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), method);
      if (!found) PyErr_Clear();
      return Ref::steal(found);
    };
    return named(Py_TYPE(o)).get() != named(base).get();
  }
  return false;
}

PyObject* multiply(PyObject* x, PyObject* y) {
  // Python would repeat these as often as an array of an integer says.
  for (PyObject* o : {x, y}) {
    if (!PyList_Check(o) && !PyTuple_Check(o)) continue;
    if (o == y && has_own(y, "__rmul__")) return Py_NewRef(Py_NotImplemented);
    PyErr_Format(PyExc_TypeError,
                 "multiply expected an array or a number; got %s\n  Convert it with "
                 "weft.numpy.array.",
                 Py_TYPE(o)->tp_name);
    return nullptr;
  }
  static const Elementwise f = function("mul", Promotion::kNumpy, "and");
  return call(f, "multiply", {x, y});
}

#define WEFT_UNARY(slot, op)                                      \
  PyObject* slot(PyObject* x) {                                   \
    static const Elementwise f = function(op, Promotion::kNumpy); \
    return call(f, #slot, {x});                                   \
  }
WEFT_UNARY(negative, "neg")
WEFT_UNARY(invert, "not")
#undef WEFT_UNARY

PyObject* unchanged(PyObject* x) {
  return guard([&] { return handed_on(x).release(); });
}

PyObject* absolute(PyObject* x) {
  static const Elementwise f = function("abs", Promotion::kNumpy);
  DType dtype = classify(x).type->dtype();
  return is_bool(dtype) || is_unsigned_int(dtype) ? unchanged(x) : call(f, "absolute", {x});
}

PyObject* floor_divide(PyObject* x, PyObject* y) { return call_python(hooks.floordiv, x, y); }
PyObject* remainder(PyObject* x, PyObject* y) { return call_python(hooks.mod, x, y); }
PyObject* divmod(PyObject* x, PyObject* y) { return call_python(hooks.divmod, x, y); }
PyObject* matmul(PyObject* x, PyObject* y) { return call_python(hooks.matmul, x, y); }
PyObject* left_shift(PyObject* x, PyObject* y) { return call_python(hooks.lshift, x, y); }
PyObject* right_shift(PyObject* x, PyObject* y) { return call_python(hooks.rshift, x, y); }
PyObject* power(PyObject* x, PyObject* y, PyObject* modulus) {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow() with a modulus is not defined for arrays");
    return nullptr;
  }
  return call_python(hooks.pow, x, y);
}

PyObject* compare(PyObject* x, PyObject* y, int op) {
  static const Elementwise functions[] = {
      function("lt", Promotion::kNumpy), function("le", Promotion::kNumpy),
      function("eq", Promotion::kNumpy), function("ne", Promotion::kNumpy),
      function("gt", Promotion::kNumpy), function("ge", Promotion::kNumpy)};
  static const char* const names[] = {"less",      "less_equal", "equal",
                                      "not_equal", "greater",    "greater_equal"};
  static const char* const reflected[] = {"__gt__", "__ge__", "__eq__",
                                          "__ne__", "__lt__", "__le__"};
  // Python would answer these by identity.
  if (PyList_Check(y) || PyTuple_Check(y) || PyDict_Check(y) || PyAnySet_Check(y)) {
    if (has_own(y, reflected[op])) return Py_NewRef(Py_NotImplemented);
    PyErr_Format(PyExc_TypeError,
                 "%s expected an array or a number to compare with; got %s\n  Convert it with "
                 "weft.numpy.array.",
                 names[op], Py_TYPE(y)->tp_name);
    return nullptr;
  }
  return call(functions[op], names[op], {x, y});
}

PyObject* subscript(PyObject* x, PyObject* index) {
  return guard([&] { return getitem(x, index).release(); });
}

int assign(PyObject* x, PyObject*, PyObject*) {
  return guard_int([&]() -> int {
    Operand o = classify(x);
    raise_error("OperandError", "arrays are immutable; got an assignment into ", o.type,
                "\n  Write x = x.at[index].set(value) instead of x[index] = value.");
  });
}

PyObject* sequence_item(PyObject* x, Py_ssize_t i) {
  return guard([&] { return item(x, i).release(); });
}

[[noreturn]] void no_length(TypeRef type) {
  fail(ErrorKind::kInconclusive, "expected a first axis whose size is a number; got ", type,
       "\n  x.shape[0] is its size; weft.lax.scan and weft.lax.map loop over it.");
}

Py_ssize_t length(PyObject* x) {
  TypeRef type = classify(x).type;
  if (type->rank() > 0 && is_symbolic(type->dim(0))) {
    guard([&]() -> PyObject* { no_length(type); });
    return -1;
  }
  if (type->rank() > 0) return static_cast<Py_ssize_t>(type->dim(0));
  PyErr_SetString(PyExc_TypeError, "len() of an array with no axes");
  return -1;
}

PyObject* iterate(PyObject* x) {
  TypeRef type = classify(x).type;
  if (type->rank() == 0) {
    PyErr_SetString(PyExc_TypeError, "iteration over an array with no axes");
    return nullptr;
  }
  if (is_symbolic(type->dim(0))) return guard([&]() -> PyObject* { no_length(type); });
  return PySeqIter_New(x);
}

PyObject* get_shape(PyObject* self, void*) {
  return guard([&] { return to_tuple(classify(self).type->shape()).release(); });
}
PyObject* get_dtype(PyObject* self, void*) {
  return Py_NewRef(numpy_dtype(classify(self).type->dtype()));
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(classify(self).type->rank()); }
PyObject* get_size(PyObject* self, void*) {
  return guard([&] { return from_size(classify(self).type->num_elements()).release(); });
}
PyObject* get_weak(PyObject* self, void*) { return PyBool_FromLong(classify(self).weak); }

const PyGetSetDef shared_getset[] = {
    {"shape", get_shape, nullptr, "Axis sizes, a tuple of ints.", nullptr},
    {"dtype", get_dtype, nullptr, "The element type, a NumPy dtype.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of axes.", nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"weak_type", get_weak, nullptr, "Whether the dtype came from a Python scalar.", nullptr}};

}  // namespace

TypeSlots operator_slots() {
  TypeSlots out;
  out.getters.assign(std::begin(shared_getset), std::end(shared_getset));
  auto add_slot = [&](int slot, auto* f) {
    out.slots.push_back({slot, reinterpret_cast<void*>(f)});
  };
  add_slot(Py_nb_add, add);
  add_slot(Py_nb_subtract, subtract);
  add_slot(Py_nb_multiply, multiply);
  add_slot(Py_nb_true_divide, divide);
  add_slot(Py_nb_floor_divide, floor_divide);
  add_slot(Py_nb_remainder, remainder);
  add_slot(Py_nb_divmod, divmod);
  add_slot(Py_nb_power, power);
  add_slot(Py_nb_matrix_multiply, matmul);
  add_slot(Py_nb_and, bitwise_and);
  add_slot(Py_nb_or, bitwise_or);
  add_slot(Py_nb_xor, bitwise_xor);
  add_slot(Py_nb_lshift, left_shift);
  add_slot(Py_nb_rshift, right_shift);
  add_slot(Py_nb_negative, negative);
  add_slot(Py_nb_positive, unchanged);
  add_slot(Py_nb_absolute, absolute);
  add_slot(Py_nb_invert, invert);
  add_slot(Py_tp_richcompare, compare);
  add_slot(Py_mp_length, length);
  add_slot(Py_mp_subscript, subscript);
  add_slot(Py_mp_ass_subscript, assign);
  add_slot(Py_sq_item, sequence_item);
  add_slot(Py_sq_length, length);
  add_slot(Py_tp_iter, iterate);
  return out;
}

}  // namespace weft::py
