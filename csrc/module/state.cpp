// For weft.config, weft.runtime and weft.clear_caches.

#include "module/state.h"

#include "arrays/array.h"
#include "conversions/location.h"
#include "conversions/sharding_object.h"
#include "execution/compile.h"
#include "execution/eager.h"
#include "execution/prologue.h"
#include "execution/run.h"
#include "execution/shared_runs.h"
#include "jit/traces.h"
#include "references/bound_text.h"
#include "references/lru_table.h"
#include "tracing/trace.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

Ref ref(nb::handle h) { return Ref::borrow(h.ptr()); }

// Position of a jaxlib device in the device table.
int device_index(nb::handle device) {
  current_placement();  // starts the runtime
  std::deque<Device>& table = device_table();
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].device.get() == device.ptr()) return static_cast<int>(i);
  Ref text = Ref::checked(PyObject_Repr(device.ptr()));
  raise_error("AttributeValueError", "expected a device of weft.devices(); got ",
              readable(text.get()));
}

const Setting& setting_named(std::string_view name) {
  for (const Setting& s : kSettings)
    if (s.name == name) return s;
  raise_error("AttributeValueError", "expected the name of a setting; got '", name, "'");
}

uint64_t with_setting(uint64_t word, const Setting& s, uint64_t value) {
  if (value > s.mask() >> s.shift)
    raise_error("AttributeValueError", "expected a value of the setting '", s.name, "'; got ",
                value);
  return (word & ~s.mask()) | (value << s.shift);
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

}  // namespace

void bind_state(nb::module_& m) {
  check(PyModule_AddFunctions(m.ptr(), functions));
  m.def("set_scope", [](std::string name) { return set_scope(std::move(name)); });
  m.def(
      "register_device",
      [](nb::object device, std::string platform, bool addressable) {
        auto number = static_cast<int32_t>(device_table().size());
        device_table().push_back(
            {ref(device), device_sharding(number), std::move(platform), addressable});
      },
      nb::arg("device"), nb::arg("platform"), nb::arg("addressable"));
  // What started on devices of several processes: a list of (numbers of the devices, count).
  m.def("shared_runs", [] {
    nb::list out;
    for (const SharedRuns& runs : SharedRuns::all())
      out.append(nb::make_tuple(
          nb::borrow(
              to_tuple(Dims(runs.devices().numbers.begin(), runs.devices().numbers.end())).get()),
          runs.count()));
    return out;
  });
  m.def("shared_order",
        [](size_t set, uint64_t count) { return SharedRuns::all()[set].order(count); });
  m.def("end_shared_runs", [] { SharedRuns::end(); });
  m.def("current_device", [] { return first_device(current_placement()); });
  m.def("current_placement", [] { return take(sharding_object(current_placement())); });
  // begin_eager() -> depth; end_eager(depth): in between, ops without tracers run.
  m.def("begin_eager", [] {
    auto context = std::make_shared<TraceContext>();
    context->kind = ContextKind::kEager;
    context_stack().push_back(std::move(context));
    return context_stack().size();
  });
  m.def("end_eager", [](size_t depth) {
    std::vector<ContextRef>& stack = context_stack();
    bool is_ours = depth > 0 && stack.size() == depth;
    if (is_ours && stack.back()->kind == ContextKind::kEager) stack.pop_back();
  });
  m.def("in_trace", [] { return static_cast<bool>(innermost_staged()); });
  // Whether any function is being traced, or recorded for an un-jitted transform.
  m.def("in_context", [] { return !context_stack().empty(); });
  // A tuple that tells the traces that are going on from others that do.
  m.def("trace_state", [] {
    nb::list out;
    for (const ContextRef& c : context_stack()) out.append(reinterpret_cast<uintptr_t>(c.get()));
    return nb::tuple(out);
  });
  // The jaxlib device of new arrays; None if that is the first one.
  m.def("get_default_device", [] {
    int d = default_device();
    return d < 0 ? nb::none() : nb::borrow(device_table()[d].device.get());
  });
  m.def("get_setting", [](const std::string& name) { return setting_named(name).of(settings()); });
  // None: the thread follows the process again.
  m.def(
      "set_setting",
      [](const std::string& name, nb::handle value) {
        const Setting& s = setting_named(name);
        ThreadConfig& c = thread_config();
        bool unset = value.is_none();
        c.word = with_setting(c.word, s, unset ? 0 : nb::cast<uint64_t>(value));
        c.set = unset ? c.set & ~s.mask() : c.set | s.mask();
      },
      nb::arg("name"), nb::arg("value").none());
  // What the thread has set for itself, for another thread that works for it.
  nb::class_<ThreadConfig>(m, "ThreadSettings", "What a thread has set for itself.");
  m.def("thread_settings", [] { return thread_config(); });
  m.def("use_thread_settings", [](const ThreadConfig& all) { thread_config() = all; });
  m.def("set_global_setting", [](const std::string& name, uint64_t value) {
    const Setting& s = setting_named(name);
    process_config().word = with_setting(process_config().word, s, value);
  });
  m.def(
      "set_default_device",
      [](nb::handle device) {
        thread_config().default_device =
            device.is_none() ? std::nullopt : std::optional(device_index(device));
      },
      nb::arg("device").none());
  m.def(
      "set_global_default_device",
      [](nb::handle device) {
        process_config().default_device = device.is_none() ? -1 : device_index(device);
      },
      nb::arg("device").none());
  m.def("device_index", [](nb::handle device) { return device_index(device); });
  m.def("cache_stats", [] {
    CacheStats c = executable_cache_stats();
    EagerStats e = eager_cache_stats();
    nb::dict d;
    d["compiles"] = c.compiles;
    d["disk_hits"] = c.disk_hits;
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
  m.def("constants_kept", [] { return constants_kept(); });
  m.def("max_constants_kept", [] { return max_constants_kept(); });
  m.def("set_max_constants_kept", [](int64_t bytes) { set_max_constants_kept(bytes); });
  m.def("clear_caches", [] {
    clear_traces();
    clear_eager_cache();
    clear_executable_cache();
  });
  // (name, capsule of the handler) of weft's own kernels for CPU.
  m.def("kernels", [] {
    nb::list all;
    for (const Kernel& k : kernels())
      all.append(nb::make_tuple(k.name, nb::capsule(k.handler, "xla._CUSTOM_CALL_TARGET")));
    return all;
  });
  m.def("recursion_left", [] { return recursion_left(); });
  // "file.py:12 (f)", or "" outside of any user code.
  m.def("user_location", [] {
    Loc loc = current_loc();
    return loc == kNoLoc ? std::string() : loc_text(loc);
  });
}

}  // namespace weft::py
