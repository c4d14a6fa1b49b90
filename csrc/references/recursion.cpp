// Reads the count, and puts it right after jaxlib.

#include "references/recursion.h"

#include "references/core.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

// The interpreter's count of how much deeper C code may call itself.
#if PY_VERSION_HEX < 0x030C0000
int recursion_left() { return PyThreadState_Get()->recursion_remaining; }
void set_recursion_left(int left) { PyThreadState_Get()->recursion_remaining = left; }
#elif PY_VERSION_HEX < 0x030E0000
int recursion_left() { return PyThreadState_Get()->c_recursion_remaining; }
void set_recursion_left(int left) { PyThreadState_Get()->c_recursion_remaining = left; }
#else  // it looks at the stack itself
int recursion_left() { return Py_GetRecursionLimit(); }
void set_recursion_left(int) {}
#endif

// What jaxlib needs to look at a leaf: it ends the process where Python has no level left for that.
constexpr int kLevelsForALeaf = 50;

// giving_levels_back(function, *args): jaxlib's flattening of trees counts a level of Python's
// recursion per level of the tree, and forgets to give them back where it raises.
PyObject* giving_levels_back(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard([&]() -> PyObject* {
    if (n < 1) raise_error("OperandError", "giving_levels_back expected a function first");
    int left = recursion_left();
    if (left < kLevelsForALeaf) {
      PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
      throw PythonError{};
    }
    Ref result =
        Ref::steal(PyObject_Vectorcall(args[0], args + 1, static_cast<size_t>(n - 1), nullptr));
    if (result) return result.release();
    set_recursion_left(left);
    throw PythonError{};
  });
}

PyMethodDef functions[] = {
    {"giving_levels_back",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(giving_levels_back)), METH_FASTCALL,
     "giving_levels_back(function, *args): calls it; where it raises, the levels of recursion that "
     "are left are as they were."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void bind_recursion(nb::module_& m) {
  check(PyModule_AddFunctions(m.ptr(), functions));
  m.def("recursion_left", [] { return recursion_left(); });
}

}  // namespace weft::py
