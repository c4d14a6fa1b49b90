// weft._core: puts the layers together.

#include "arrays/array.h"
#include "binding/bind.h"
#include "binding/cell_functions.h"
#include "binding/eager_entry.h"
#include "binding/operators.h"
#include "conversions/devices.h"
#include "conversions/dlpack.h"
#include "conversions/dtypes.h"
#include "conversions/location.h"
#include "conversions/location_functions.h"
#include "conversions/public_function.h"
#include "conversions/sharding_object.h"
#include "conversions/ufunc.h"
#include "execution/compile.h"
#include "execution/eager.h"
#include "execution/host_call.h"
#include "execution/programs.h"
#include "graphs/checks.h"
#include "graphs/dims.h"
#include "graphs/graph_object.h"
#include "graphs/jaxpr_view.h"
#include "graphs/recording.h"
#include "graphs/values.h"
#include "jit/compiled.h"
#include "jit/jit.h"
#include "jit/stages.h"
#include "jit/traces.h"
#include "module/bind_compiler.h"
#include "references/hooks.h"
#include "references/recursion.h"
#include "references/settings.h"
#include "references/tables.h"
#include "tracing/array_functions.h"
#include "tracing/cell.h"
#include "tracing/contexts.h"
#include "tracing/named_axes.h"
#include "tracing/trace.h"
#include "transforms/batching.h"
#include "transforms/deferred.h"
#include "transforms/derivative.h"
#include "transforms/linear.h"
#include "transforms/op_call.h"
#include "transforms/primitive.h"
#include "transforms/rules.h"
#include "transforms/transforms.h"

// Caches, traces and tables of functions are guarded by the interpreter's lock alone.
#ifdef Py_GIL_DISABLED
#error "weft does not support free-threaded builds of Python"
#endif

namespace nb = nanobind;

namespace weft::py {
namespace {

// Attributes that weft.numpy gives arrays and tracers.
void add_methods(PyObject* table) {
  if (!PyDict_Check(table)) {
    PyErr_SetString(PyExc_TypeError, "install expected a dict as 'methods'");
    throw PythonError{};
  }
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(table, &at, &key, &value);)
    for (PyTypeObject* type : {array_type, tracer_type})
      check(PyObject_SetAttr(reinterpret_cast<PyObject*>(type), key, value));
}

// Errors of the core and Python errors raised through it.
void translate(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const PythonError&) { translate_exception(); } catch (const Error&) {
    translate_exception();
  }
}

}  // namespace
}  // namespace weft::py

NB_MODULE(_core, m) {
  using namespace weft::py;
  // Caches live as long as the process (csrc/README.md), and may hold objects of these classes.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);
  m.def("install", [](nb::kwargs objects) {
    for (auto [key, object] : objects) install(utf8(key.ptr()), object.ptr());
  });
  m.def(
      "same_value", [](nb::handle a, nb::handle b) { return same_value(a.ptr(), b.ptr()); },
      "Whether two static values make the same program.");
  m.def("clear_caches", [] {
    clear_traces();
    clear_eager_cache();
    clear_executable_cache();
  });
  init_location();
  init_dtypes();
  init_public_function(m.ptr(), run_entry);
  init_ufunc(m.ptr());
  TypeSlots shared = operator_slots();
  init_array(m.ptr(), shared);
  init_tracer(m.ptr(), shared);
  init_cell(m.ptr(), cell_slots());
  init_named_axes(m.ptr());
  hooks.methods.on_install(add_methods);
  init_bind(m.ptr());
  init_cell_functions(m.ptr());
  init_traces(m.ptr());
  init_jit(m.ptr());
  init_compiled_function();
  init_recording(m.ptr());
  init_deferred(m.ptr());
  init_derivative(m.ptr());
  init_linear(m.ptr());
  init_batching(m.ptr());
  bind_settings(m);
  bind_tables(m);
  bind_recursion(m);
  bind_location_functions(m);
  bind_devices(m);
  bind_shardings(m);
  bind_contexts(m);
  bind_array_functions(m);
  bind_dlpack(m);
  bind_graph_objects(m);
  bind_dims(m);
  bind_jaxpr_view(m);
  bind_compiler(m);
  bind_stages(m);
  bind_host_call(m);
  bind_programs(m);
  bind_checks(m);
  bind_transforms(m);
  bind_rules(m);
  bind_op_calls(m);
  bind_primitive(m);
}
