#include "conversions/ufunc.h"

#include "conversions/public_function.h"
#include "references/object_type.h"

namespace weft::py {
namespace {

struct UfuncObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* function;  // what a call is handed to

  int visit(visitproc visit, void* arg) const {
    Py_VISIT(function);
    return 0;
  }
  void clear() { Py_SETREF(function, Py_NewRef(Py_None)); }
  void release() { Py_CLEAR(function); }
};
UfuncObject* as_ufunc(PyObject* o) { return reinterpret_cast<UfuncObject*>(o); }

// `out` and `where` are there for the sake of NumPy's callers only.
void check_keywords(PyObject* self, PyObject* kwnames, PyObject* const* values) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i) {
    PyObject* key = PyTuple_GET_ITEM(kwnames, i);
    bool known = PyUnicode_CompareWithASCIIString(key, "out") == 0 ||
                 PyUnicode_CompareWithASCIIString(key, "where") == 0;
    if (known && values[i] == Py_None) continue;
    Ref shown = Ref::checked(PyObject_GetAttr(self, name("__name__")));
    PyErr_Format(known ? PyExc_NotImplementedError : PyExc_TypeError,
                 known ? "[%S] expected %U to be None: arrays are immutable, and "
                         "weft.numpy.where(mask, a, b) chooses between results"
                       : "[%S] expected no keyword arguments but out and where; got %U",
                 shown.get(), key);
    throw PythonError{};
  }
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (kwnames) {
    bool refused = guard_int([&] {
      check_keywords(self, kwnames, args + PyVectorcall_NARGS(nargsf));
      return 0;
    });
    if (refused) {
      error_leaves(self);
      return nullptr;
    }
  }
  return PyObject_Vectorcall(as_ufunc(self)->function, args, nargsf, nullptr);
}

// All arguments are for __init__.
PyObject* create(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  as_ufunc(self)->vectorcall = call;
  as_ufunc(self)->function = Py_NewRef(Py_None);
  return self;
}

PyObject* get_function(PyObject* self, void*) { return Py_NewRef(as_ufunc(self)->function); }

int set_function(PyObject* self, PyObject* value, void*) {
  if (!value || !PyCallable_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "expected a function");
    return -1;
  }
  Py_XSETREF(as_ufunc(self)->function, Py_NewRef(value));
  return 0;
}

}  // namespace

void init_ufunc(PyObject* module) {
  PyTypeObject* type = ObjectType<UfuncObject>::make(
      "weft.numpy.ufunc", 0, {{Py_tp_new, reinterpret_cast<void*>(create)}},
      {{"_function", get_function, set_function, "What a call is handed to.", nullptr}});
  check(PyModule_AddObjectRef(module, "ufunc", reinterpret_cast<PyObject*>(type)));
}

}  // namespace weft::py
