// PublicFunction: a Python function of weft as its users see it. The errors of a call that fails
// pass through `error_leaves`. To one that succeeds it adds nothing; those of functions with an
// entry may do without Python.

#include "conversions/public_function.h"

#include <memory>

#include "references/hooks.h"
#include "references/object_type.h"

namespace weft::py {
namespace {

struct PublicFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* weakrefs;
  const EagerEntry* entry;  // null: none

  int visit(visitproc visit, void* arg) const {
    Py_VISIT(function);
    return 0;
  }
  // Whoever calls it still gets an error.
  void clear() { Py_SETREF(function, Py_NewRef(Py_None)); }
  void release() {
    Py_CLEAR(function);
    delete entry;
  }
};
PublicFunction* as_public(PyObject* o) { return reinterpret_cast<PublicFunction*>(o); }

RunEntry run_entry;

// The arguments with arrays in place of objects that stand for one, a tuple; null if there are none
// or `function` takes no such objects.
Ref stand_ins(PyObject* error, PyObject* function, PyObject* const* args, size_t nargsf,
              PyObject* kwnames) {
  if (!hooks.stand_ins) return Ref();
  Py_ssize_t count = PyVectorcall_NARGS(nargsf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  Ref values = Ref::checked(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(values.get(), i, Py_NewRef(args[i]));
  Ref found = Ref::checked(
      PyObject_CallFunctionObjArgs(hooks.stand_ins.get(), error, function, values.get(), nullptr));
  return found.get() == Py_None ? Ref() : found;
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const EagerEntry* entry = as_public(self)->entry;
  PyObject* result = nullptr;
  if (!entry || !run_entry(*entry, args, PyVectorcall_NARGS(nargsf), kwnames, result))
    result = PyObject_Vectorcall(as_public(self)->function, args, nargsf, kwnames);
  return result ? result : call_failed(self, as_public(self)->function, args, nargsf, kwnames);
}

const EagerEntry* make_entry(PyObject* function, Py_ssize_t operands, PyObject* statics) {
  Ref code = Ref::checked(PyObject_GetAttrString(function, "__code__"));
  Ref locals = Ref::checked(PyObject_GetAttrString(code.get(), "co_varnames"));
  auto* c = reinterpret_cast<PyCodeObject*>(code.get());
  Py_ssize_t count = c->co_argcount + c->co_kwonlyargcount;
  auto entry = std::make_unique<EagerEntry>();
  entry->function = Py_NewRef(function);
  entry->operands = operands;
  entry->parameters = Ref::checked(PyTuple_GetSlice(locals.get(), 0, count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    int found = PySequence_Contains(statics, PyTuple_GET_ITEM(locals.get(), i));
    check(found);
    entry->statics.push_back(found == 1);
  }
  return entry.release();
}

// PublicFunction(function, operands=0, statics=()): with operands it has an entry. One that is
// public already is handed back.
PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *function, *statics = nullptr;
  Py_ssize_t operands = 0;
  if (!PyArg_ParseTuple(args, "O|nO!:PublicFunction", &function, &operands, &PyTuple_Type,
                        &statics))
    return nullptr;
  if (kwargs && PyDict_GET_SIZE(kwargs)) {
    PyErr_SetString(PyExc_TypeError, "PublicFunction takes no keyword arguments");
    return nullptr;
  }
  if (!PyCallable_Check(function)) {
    PyErr_Format(PyExc_TypeError, "PublicFunction expected a function; got %R", function);
    return nullptr;
  }
  if (Py_TYPE(function) == type) return Py_NewRef(function);
  return guard([&]() -> PyObject* {
    Ref self = Ref::checked(type->tp_alloc(type, 0));
    as_public(self.get())->vectorcall = call;
    as_public(self.get())->function = Py_NewRef(function);
    if (operands) as_public(self.get())->entry = make_entry(function, operands, statics);
    return self.release();
  });
}

// What describes a function is asked of the function, and so is all that this type lacks.
PyObject* get_attribute(PyObject* self, PyObject* key) {
  PyObject* function = as_public(self)->function;
  for (const char* own : {"__name__", "__qualname__", "__module__"})
    if (PyUnicode_CompareWithASCIIString(key, own) == 0) return PyObject_GetAttr(function, key);
  PyObject* found = PyObject_GenericGetAttr(self, key);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(function, key);
}

int set_attribute(PyObject* self, PyObject* key, PyObject* value) {
  return PyObject_SetAttr(as_public(self)->function, key, value);
}

PyObject* represent(PyObject* self) { return PyObject_Repr(as_public(self)->function); }

// A descriptor: `help` does not use get_attribute, and hides a docstring that the class has, too.
PyObject* documentation(PyObject* self, void*) {
  return PyObject_GetAttrString(as_public(self)->function, "__doc__");
}

PyObject* implementation(PyObject* self, void*) { return Py_NewRef(as_public(self)->function); }

// What a transform made is a function around one of the user's, which is what they ask for.
PyObject* wrapped(PyObject* self, void*) {
  PyObject* function = as_public(self)->function;
  PyObject* users = PyObject_GetAttrString(function, "__wrapped__");
  if (users || !PyErr_ExceptionMatches(PyExc_AttributeError)) return users;
  PyErr_Clear();
  return Py_NewRef(function);
}

PyObject* reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("(O(O))", Py_TYPE(self), as_public(self)->function);
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

void error_leaves(PyObject* function) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return;  // KeyboardInterrupt and the like
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  if (hooks.leave) {
    PyObject* done = PyObject_CallFunctionObjArgs(hooks.leave.get(), value, function, nullptr);
    if (!done) PyErr_Clear();  // the error itself matters more than how it looks
    Py_XDECREF(done);
  }
  Py_XDECREF(traceback);
  PyErr_Restore(type, value, PyException_GetTraceback(value));
}

PyObject* call_failed(PyObject* callable, PyObject* function, PyObject* const* args, size_t nargsf,
                      PyObject* kwnames) {
  if (PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Ref instead;
    bool asked = guard_int([&] {
                   instead = stand_ins(type, function, args, nargsf, kwnames);
                   return 0;
                 }) == 0;
    if (asked && !instead) {
      PyErr_Restore(type, value, traceback);
    } else {
      Py_DECREF(type), Py_XDECREF(value), Py_XDECREF(traceback);
      if (asked)
        return PyObject_Vectorcall(callable, PySequence_Fast_ITEMS(instead.get()),
                                   static_cast<size_t>(PyVectorcall_NARGS(nargsf)), kwnames);
    }
  }
  error_leaves(function);
  return nullptr;
}

void init_public_function(PyObject* module, RunEntry run) {
  run_entry = run;
  PyTypeObject* type = ObjectType<PublicFunction>::make(
      "weft._core.PublicFunction", Py_TPFLAGS_METHOD_DESCRIPTOR,
      {{Py_tp_new, reinterpret_cast<void*>(create)},
       {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
       {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
       {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
       {Py_tp_repr, reinterpret_cast<void*>(represent)},
       {Py_tp_methods, methods}},
      {{"__doc__", documentation, nullptr, nullptr, nullptr},
       {"__wrapped__", wrapped, nullptr, nullptr, nullptr},
       {"implementation", implementation, nullptr, nullptr, nullptr}});
  check(PyModule_AddObjectRef(module, "PublicFunction", reinterpret_cast<PyObject*>(type)));
}

}  // namespace weft::py
