// One case per kind of value that holds others.

#include "graphs/values.h"

#include <bit>
#include <cstring>

#include "graphs/graph_object.h"
#include "references/hooks.h"
#include "weft/hash.h"

namespace weft::py {
namespace {

// Deep values end in a RecursionError, as they do in Python's own comparison.
struct Recursion {
  Recursion() { check(Py_EnterRecursiveCall(" while comparing values")); }
  ~Recursion() { Py_LeaveRecursiveCall(); }
};

bool python_equal(PyObject* a, PyObject* b) {
  int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  check(equal);
  return equal == 1;
}

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

Ref attribute(PyObject* o, const char* attribute_name) {
  return Ref::checked(PyObject_GetAttrString(o, attribute_name));
}

// Elements in order, of tuples or lists.
bool same_elements(PyObject* a, PyObject* b) {
  if (PySequence_Fast_GET_SIZE(a) != PySequence_Fast_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(a) && i < PySequence_Fast_GET_SIZE(b); ++i) {
    Ref x = Ref::borrow(PySequence_Fast_GET_ITEM(a, i));
    Ref y = Ref::borrow(PySequence_Fast_GET_ITEM(b, i));
    if (!same_value(x.get(), y.get())) return false;
  }
  return true;
}

bool same_dicts(PyObject* a, PyObject* b) {
  // As pairs of key and value, so that the keys are compared as well.
  Ref xs = Ref::checked(PyDict_Items(a)), ys = Ref::checked(PyDict_Items(b));
  if (same_elements(xs.get(), ys.get())) return true;
  if (!python_equal(a, b)) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(ys.get()); ++i) {
    PyObject* y = PyList_GET_ITEM(ys.get(), i);
    bool found = false;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(xs.get()) && !found; ++k) {
      PyObject* x = PyList_GET_ITEM(xs.get(), k);
      found = python_equal(PyTuple_GET_ITEM(x, 0), PyTuple_GET_ITEM(y, 0)) && same_value(x, y);
    }
    if (!found) return false;
  }
  return true;
}

// Sets that are equal have the same number of elements, and each element one that it is equal to.
bool same_sets(PyObject* a, PyObject* b) {
  if (!python_equal(a, b)) return false;
  Ref xs = Ref::checked(PySequence_List(a)), ys = Ref::checked(PySequence_List(b));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(xs.get()); ++i) {
    PyObject* x = PyList_GET_ITEM(xs.get(), i);
    bool found = false;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(ys.get()) && !found; ++k) {
      PyObject* y = PyList_GET_ITEM(ys.get(), k);
      found = python_equal(x, y) && same_value(x, y);
    }
    if (!found) return false;
  }
  return true;
}

bool same_trees(PyObject* a, PyObject* b) {
  if (!python_equal(a, b)) return false;
  Ref x = Ref::checked(PyObject_CallMethodNoArgs(a, name("node_data")));
  Ref y = Ref::checked(PyObject_CallMethodNoArgs(b, name("node_data")));
  if (!same_value(x.get(), y.get())) return false;
  if (x.get() == Py_None) return true;
  Ref xs = Ref::checked(PyObject_CallMethodNoArgs(a, name("children")));
  Ref ys = Ref::checked(PyObject_CallMethodNoArgs(b, name("children")));
  return same_elements(xs.get(), ys.get());
}

// Whether a class compares as the decorator of dataclasses wrote it, and no user did: such code is
// of no file.
bool compares_by_fields(PyObject* type) {
  Ref equal = attribute(type, "__eq__");
  Ref code = Ref::steal(PyObject_GetAttrString(equal.get(), "__code__"));
  if (!code) {
    PyErr_Clear();
    return false;
  }
  return PyUnicode_CompareWithASCIIString(attribute(code.get(), "co_filename").get(), "<string>") ==
         0;
}

// The fields of a dataclass take part in its equality as they are; what they hold does here.
bool same_fields(PyObject* a, PyObject* b, PyObject* fields) {
  PyObject *key, *field;
  for (Py_ssize_t at = 0; PyDict_Next(fields, &at, &key, &field);) {
    Ref compared = attribute(field, "compare");
    if (compared.get() != Py_True) continue;
    Ref x = Ref::checked(PyObject_GetAttr(a, key)), y = Ref::checked(PyObject_GetAttr(b, key));
    if (!same_value(x.get(), y.get())) return false;
  }
  return true;
}

}  // namespace

bool same_value(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyUnicode_CheckExact(a) || PyLong_CheckExact(a) || PyBytes_CheckExact(a))
    return python_equal(a, b);
  if (PyFloat_CheckExact(a)) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyComplex_CheckExact(a)) {
    Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return same_bits(x.real, y.real) && same_bits(x.imag, y.imag);
  }
  Recursion guard;
  if (PyTuple_CheckExact(a) || PyList_CheckExact(a)) return same_elements(a, b);
  if (PyDict_CheckExact(a)) return same_dicts(a, b);
  if (PyFrozenSet_CheckExact(a)) return same_sets(a, b);
  if (Py_TYPE(a) == hooks.tree_type.type()) return same_trees(a, b);
  if (GraphRef graph = graph_of(a)) {
    GraphRef other = graph_of(b);
    return other && equal(*graph, *other);
  }
  if (!python_equal(a, b)) return false;
  if (PyTuple_Check(a)) return same_elements(a, b);
  if (PyFloat_Check(a)) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (std::strcmp(Py_TYPE(a)->tp_name, "decimal.Decimal") == 0) {
    Ref x = Ref::checked(PyObject_Str(a)), y = Ref::checked(PyObject_Str(b));  // 0.5 and 0.50
    return python_equal(x.get(), y.get());
  }
  if (PyObject_HasAttrString(a, "tobytes"))  // NumPy's scalars
    return same_value(Ref::checked(PyObject_CallMethodNoArgs(a, name("tobytes"))).get(),
                      Ref::checked(PyObject_CallMethodNoArgs(b, name("tobytes"))).get());
  Ref fields = Ref::steal(PyObject_GetAttrString(a, "__dataclass_fields__"));
  if (!fields) PyErr_Clear();
  if (!fields || !PyDict_Check(fields.get())) return true;
  return !compares_by_fields(reinterpret_cast<PyObject*>(Py_TYPE(a))) ||
         same_fields(a, b, fields.get());
}

uint64_t hash_value(PyObject* o) {
  if (PyTuple_CheckExact(o)) {
    Recursion guard;
    uint64_t h = static_cast<uint64_t>(PyTuple_GET_SIZE(o));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      h = hash_combine(h, hash_value(PyTuple_GET_ITEM(o, i)));
    return h;
  }
  if (GraphRef graph = graph_of(o)) return graph->structural_hash();
  Py_hash_t h = PyObject_Hash(o);
  if (h == -1) throw PythonError{};
  return static_cast<uint64_t>(h);
}

}  // namespace weft::py
