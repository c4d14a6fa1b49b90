// For weft.config, weft.runtime and weft.clear_caches.

#include "state.h"

#include "array.h"
#include "bound_text.h"
#include "compile.h"
#include "eager.h"
#include "jit_traces.h"
#include "location.h"
#include "lru_table.h"
#include "run.h"
#include "trace.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

Ref ref(nb::handle h) { return Ref::borrow(h.ptr()); }

// Position of a jaxlib device in the device table.
int device_index(nb::handle device) {
  current_device();  // starts the runtime
  std::deque<Device>& table = device_table();
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].device.get() == device.ptr()) return static_cast<int>(i);
  Ref text = Ref::checked(PyObject_Repr(device.ptr()));
  raise_error("AttributeValueError", "expected a device of weft.devices(); got ",
              readable(text.get()));
}

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

// The flag that a setting is; 0 if it is none.
uint32_t debug_flag(std::string_view setting) {
  if (setting == "debug_nans") return kDebugNans;
  return setting == "debug_infs" ? uint32_t{kDebugInfs} : 0;
}

}  // namespace

void bind_state(nb::module_& m) {
  check(PyModule_AddFunctions(m.ptr(), functions));
  m.def("set_scope", [](std::string name) { return set_scope(std::move(name)); });
  m.def("register_device", [](nb::object device, nb::object sharding, nb::object device_list,
                              std::string platform) {
    device_table().push_back({ref(device), ref(sharding), ref(device_list), std::move(platform)});
    return device_table().size() - 1;
  });
  m.def("current_device", [] { return current_device(); });
  m.def("in_trace", [] { return static_cast<bool>(innermost_staged()); });
  // Whether any function is being traced, or recorded for an un-jitted transform.
  m.def("in_context", [] { return !context_stack().empty(); });
  m.def("get_state", [] {
    int d = default_device();
    return nb::make_tuple(x64_enabled(), jit_disabled(),
                          d < 0 ? nb::none() : nb::borrow(device_table()[d].device.get()),
                          (debug_flags() & kDebugNans) != 0, (debug_flags() & kDebugInfs) != 0);
  });
  // None: the thread follows the process again.
  m.def("set_state", [](nb::kwargs settings) {
    ThreadConfig& c = thread_config();
    for (auto [key, value] : settings) {
      std::string_view k = utf8(key.ptr());
      bool unset = value.is_none();
      if (k == "x64") c.x64 = unset ? std::nullopt : std::optional(nb::cast<bool>(value));
      if (k == "disable_jit")
        c.disable_jit = unset ? std::nullopt : std::optional(nb::cast<bool>(value));
      if (k == "default_device")
        c.default_device = unset ? std::nullopt : std::optional(device_index(value));
      if (uint32_t flag = debug_flag(k)) {
        c.debug_set = unset ? c.debug_set & ~flag : c.debug_set | flag;
        c.debug = !unset && nb::cast<bool>(value) ? c.debug | flag : c.debug & ~flag;
      }
    }
  });
  m.def("set_global_state", [](nb::kwargs settings) {
    ProcessConfig& c = process_config();
    for (auto [key, value] : settings) {
      std::string_view k = utf8(key.ptr());
      if (k == "x64") c.x64 = nb::cast<bool>(value);
      if (k == "disable_jit") c.disable_jit = nb::cast<bool>(value);
      if (k == "default_device") c.default_device = value.is_none() ? -1 : device_index(value);
      if (uint32_t flag = debug_flag(k))
        c.debug = nb::cast<bool>(value) ? c.debug | flag : c.debug & ~flag;
    }
  });
  m.def("device_index", [](nb::handle device) { return device_index(device); });
  m.def("cache_stats", [] {
    CacheStats c = executable_cache_stats();
    EagerStats e = eager_cache_stats();
    nb::dict d;
    d["compiles"] = c.compiles;
    d["hits"] = c.hits;
    d["size"] = c.size;
    d["loaded"] = c.loaded;
    d["eager_hits"] = e.hits;
    d["eager_misses"] = e.misses;
    d["eager_size"] = e.size;
    return d;
  });
  // {name: (size, limit)} of the tables that were used so far.
  m.def("tables", [] {
    nb::dict d;
    for (auto [table_name, table] : process_tables())
      d[table_name] = nb::make_tuple(table->size(), table->limit());
    return d;
  });
  m.def("limit_table", [](const std::string& table_name, size_t limit) {
    for (auto [known, table] : process_tables())
      if (table_name == known) return table->set_limit(limit);
    raise_error("AttributeValueError", "limit_table expected a table that was used; got '",
                table_name, "'");
  });
  // (whether anything ran, a result to wait for or None); forgets both.
  m.def("take_last_run", [] {
    LastRun last = std::exchange(last_run(), LastRun());
    return nb::make_tuple(last.any, or_none(last.buffer));
  });
  m.def(
      "unload_executables", [](size_t count) { return unload_executables(count); },
      nb::arg("count"));
  m.def("clear_caches", [] {
    clear_traces();
    clear_eager_cache();
    clear_executable_cache();
  });
  m.def("recursion_left", [] { return recursion_left(); });
  // "file.py:12 (f)", or "" outside of any user code.
  m.def("user_location", [] {
    Loc loc = current_loc();
    return loc == kNoLoc ? std::string() : loc_text(loc);
  });
}

}  // namespace weft::py
