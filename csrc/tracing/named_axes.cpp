// One list per thread, and what lax.axis_size asks for.

#include "tracing/named_axes.h"

#include <algorithm>
#include <utility>

namespace weft::py {
namespace {

NamedAxes& current() {
  thread_local NamedAxes axes;
  return axes;
}

// axis_size(name): of the innermost axis of that name. Raises UnboundAxisNameError.
PyObject* axis_size(PyObject*, PyObject* axis) {
  return guard([&]() -> PyObject* {
    if (!PyUnicode_Check(axis)) {
      Ref text = Ref::checked(PyObject_Repr(axis));
      raise_error("ArgumentTypeError", "expected the name of a mapped axis, a string; got ",
                  utf8(text.get()));
    }
    std::string_view wanted = utf8(axis);
    const NamedAxes& axes = named_axes();
    auto found = std::find_if(axes.rbegin(), axes.rend(),
                              [&](const NamedAxis& a) { return a.name == wanted; });
    if (found != axes.rend()) return PyLong_FromLongLong(found->size);
    std::string known;
    for (const NamedAxis& a : axes) known += cat(known.empty() ? "" : ", ", "'", a.name, "'");
    raise_error("UnboundAxisNameError",
                "expected an axis that a vmap or shard_map around this call names; got '", wanted,
                "', where ", known.empty() ? "none is" : cat("there are ", known), "\n  ",
                known.empty() ? "Give" : "Use one of these names, or give",
                " the axis its name with vmap(f, axis_name='", wanted, "').");
  });
}

// named_axes() -> ((name, size), ...), for keys.
PyObject* named_axes_for_python(PyObject*, PyObject*) {
  return guard([&]() -> PyObject* {
    const NamedAxes& axes = named_axes();
    Ref out = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(axes.size())));
    for (size_t i = 0; i < axes.size(); ++i)
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                       Ref::checked(Py_BuildValue("(s#L)", axes[i].name.data(),
                                                  static_cast<Py_ssize_t>(axes[i].name.size()),
                                                  static_cast<long long>(axes[i].size)))
                           .release());
    return out.release();
  });
}

// with_axes(((name, size), ...), varies, function) -> function(), with these axes, too.
PyObject* with_axes(PyObject*, PyObject* tuple) {
  return guard([&]() -> PyObject* {
    PyObject *axes, *function;
    int varies;
    if (!PyArg_ParseTuple(tuple, "O!pO", &PyTuple_Type, &axes, &varies, &function))
      throw PythonError{};
    NamedAxes all = named_axes();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(axes); ++i) {
      PyObject* name;
      long long size;
      PyObject* axis = PyTuple_GET_ITEM(axes, i);
      if (!PyTuple_Check(axis))
        raise_error("OperandError", "[with_axes] expected pairs of a name and a size; got ",
                    Py_TYPE(axis)->tp_name);
      if (!PyArg_ParseTuple(axis, "UL", &name, &size)) throw PythonError{};
      all.push_back({std::string(utf8(name)), size, varies != 0});
    }
    NamedAxesScope scope(std::move(all));
    return Ref::checked(PyObject_CallNoArgs(function)).release();
  });
}

PyObject* varying_axes(PyObject*, PyObject*) {
  return guard([] { return to_tuple(axes_known_to_vary()).release(); });
}

PyMethodDef functions[] = {
    {"varying_axes", varying_axes, METH_NOARGS,
     "The axes over which it is known which values vary: of shard_maps with check_vma around."},
    {"with_axes", with_axes, METH_VARARGS,
     "with_axes(((name, size), ...), varies, function) -> function(), within these axes."},
    {"axis_size", axis_size, METH_O, "axis_size(name) -> int: lanes of the mapped axis."},
    {"named_axes", named_axes_for_python, METH_NOARGS, "The named axes here, innermost last."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

const NamedAxes& named_axes() { return current(); }

NamedAxesScope::NamedAxesScope(NamedAxes axes)
    : outer_(std::exchange(current(), std::move(axes))) {}

NamedAxesScope::~NamedAxesScope() { current() = std::move(outer_); }

NamedAxes with_named_axis(std::string_view name, int64_t size) {
  NamedAxes axes = current();
  if (!name.empty()) axes.push_back({std::string(name), size});
  return axes;
}

bool are_varying_known() {
  const NamedAxes& axes = named_axes();
  return std::any_of(axes.begin(), axes.end(), [](const NamedAxis& a) { return a.varies; });
}

std::vector<std::string> axes_known_to_vary() {
  std::vector<std::string> names;
  for (const NamedAxis& a : named_axes())
    if (a.varies) names.push_back(a.name);
  return names;
}

void init_named_axes(PyObject* module) { check(PyModule_AddFunctions(module, functions)); }

}  // namespace weft::py
