// Equality as caches need it.

#include "values.h"

#include <array>
#include <bit>

#include "graph_object.h"
#include "weft/hash.h"

namespace weft::py {

namespace {

// Tuples nest as deep as Python can make them.
struct Nesting {
  Nesting() { check(Py_EnterRecursiveCall(" while a cache is asked") ? -1 : 0); }
  ~Nesting() { Py_LeaveRecursiveCall(); }
};

}  // namespace

bool same_value(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a))
    return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(a)) ==
           std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(b));
  if (PyComplex_CheckExact(a)) {
    Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return std::bit_cast<std::array<uint64_t, 2>>(x) == std::bit_cast<std::array<uint64_t, 2>>(y);
  }
  if (PyTuple_CheckExact(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    Nesting nesting;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
      if (!same_value(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  if (GraphRef graph = graph_of(a)) {
    GraphRef other = graph_of(b);
    return other && equal(*graph, *other);
  }
  int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  check(equal);
  return equal == 1;
}

uint64_t hash_value(PyObject* o) {
  if (PyTuple_CheckExact(o)) {
    Nesting nesting;
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
