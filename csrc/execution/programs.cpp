// Counters and limits of programs; what started last, and on several processes.

#include "execution/programs.h"

#include <nanobind/stl/string_view.h>

#include "execution/compile.h"
#include "execution/eager.h"
#include "execution/prologue.h"
#include "execution/run.h"
#include "execution/shared_runs.h"
#include "references/bound_text.h"
#include "weft/kernel_call.h"

namespace nb = nanobind;

namespace weft::py {

void bind_programs(nb::module_& m) {
  nb::class_<ModuleSurvey>(m, "ModuleSurvey", "Counts of a module's operations.")
      .def(nb::init<>())
      .def_ro("operations", &ModuleSurvey::operations)
      .def_ro("distinct", &ModuleSurvey::distinct)
      .def_ro("unlike", &ModuleSurvey::unlike)
      .def_ro("shifts", &ModuleSurvey::shifts)
      .def_ro("reductions", &ModuleSurvey::reductions)
      .def_ro("kernels", &ModuleSurvey::kernels)
      .def_ro("moves", &ModuleSurvey::moves)
      .def_ro("scalar_work", &ModuleSurvey::scalar_work)
      .def_ro("has_rare_types", &ModuleSurvey::has_rare_types);
  m.attr("KERNEL_CALL") = nb::str(kKernelCall.data(), kKernelCall.size());
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
  // What `gc.callbacks` takes, which calls `collect` before each collection. A function of Python's
  // would lose the interrupt of a user that comes within it.
  m.def("before_collections", [](nb::callable collect) {
    return nb::cpp_function([collect](std::string_view phase, nb::handle) {
      if (phase == "start") collect();
    });
  });
  // (name, capsule of the handler) of weft's own kernels for CPU.
  m.def("kernels", [] {
    nb::list all;
    for (const Kernel& k : kernels())
      all.append(nb::make_tuple(k.name, nb::capsule(k.handler, "xla._CUSTOM_CALL_TARGET")));
    return all;
  });
}

}  // namespace weft::py
