// weft._core: graphs, passes and emission as Python objects, and what python/weft installs at
// import. The per-op functions are in functions.cpp.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "array.h"
#include "attrs.h"
#include "bind.h"
#include "deferred.h"
#include "dtypes.h"
#include "execute.h"
#include "jaxpr_view.h"
#include "jit.h"
#include "location.h"
#include "primitive.h"
#include "recording.h"
#include "rules.h"
#include "trace.h"
#include "transforms.h"

namespace nb = nanobind;

namespace weft::py {

PyObject* live_arrays();

namespace {

struct GraphObject {
  GraphRef graph;
};
struct TracedObject {
  EntryRef entry;
};
struct ProgramObject {
  ProgramRef program;
};

nb::object take(Ref r) { return nb::steal(r.release()); }
Ref ref(nb::handle h) { return Ref::borrow(h.ptr()); }

// (shape, dtype) of a type.
nb::tuple type_tuple(TypeRef t) {
  return nb::make_tuple(take(to_tuple(t->shape())), nb::borrow(numpy_dtype(t->dtype())));
}
nb::list type_list(std::span<const TypeRef> types) {
  nb::list out;
  for (TypeRef t : types) out.append(type_tuple(t));
  return out;
}

void bind_graph(nb::module_& m) {
  nb::class_<GraphObject>(m, "Graph", "A program: an immutable list of ops.")
      .def("__str__", [](const GraphObject& g) { return print(*g.graph); })
      .def("__repr__", [](const GraphObject& g) { return print(*g.graph); })
      .def(
          "to_text",
          [](const GraphObject& g, int width, bool locations) {
            PrintOptions options;
            options.width = width;
            options.locations = locations;
            return print(*g.graph, options);
          },
          nb::arg("width") = 80, nb::arg("locations") = false)
      .def("__eq__",
           [](const GraphObject& a, nb::handle b) -> nb::object {
             GraphRef other = graph_of(b.ptr());
             if (!other) return nb::borrow(Py_NotImplemented);
             return nb::bool_(equal(*a.graph, *other));
           })
      .def("__hash__",
           [](const GraphObject& g) {
             return static_cast<Py_hash_t>(g.graph->structural_hash() >> 1);
           })
      .def("verify", [](const GraphObject& g) { verify(*g.graph); })
      .def_prop_ro("structural_hash",
                   [](const GraphObject& g) { return g.graph->structural_hash(); })
      .def_prop_ro("num_ops", [](const GraphObject& g) { return g.graph->ops().size(); })
      .def_prop_ro("num_consts", [](const GraphObject& g) { return g.graph->num_consts(); })
      .def_prop_ro("in_types",
                   [](const GraphObject& g) { return type_list(g.graph->input_types()); })
      .def_prop_ro("out_types",
                   [](const GraphObject& g) { return type_list(g.graph->output_types()); })
      .def("__len__", [](const GraphObject& g) { return g.graph->ops().size(); })
      .def("op_names",
           [](const GraphObject& g) {
             nb::list out;
             for (const Op& op : g.graph->ops()) out.append(op.info->name.c_str());
             return out;
           })
      .def("cost", [](const GraphObject& g) {
        Cost c = graph_cost(*g.graph);
        nb::dict d;
        d["flops"] = c.flops;
        d["transcendentals"] = c.transcendentals;
        d["bytes accessed"] = c.bytes;
        return d;
      });

  m.def("parse", [](const std::string& text) { return GraphObject{parse(text)}; });
  m.def(
      "emit_stablehlo",
      [](const GraphObject& g, const std::string& name, const std::string& platform,
         bool locations) {
        EmitOptions options;
        options.module_name = name;
        options.platform = platform;
        options.locations = locations;
        return emit_stablehlo(*g.graph, options);
      },
      nb::arg("graph"), nb::arg("name") = "main", nb::arg("platform") = "cpu",
      nb::arg("locations") = false);
  m.def(
      "run_passes",
      [](const GraphObject& g, const std::vector<std::string>& passes,
         const std::vector<std::string>& disabled, const std::vector<std::string>& only,
         bool check_graphs, nb::object dump) {
        PassOptions options;
        options.disabled_rewrites = disabled;
        options.only_rewrites = only;
        options.verify = check_graphs;
        if (!dump.is_none()) {
          options.dump = [&](std::string_view pass, const Graph& before, const Graph& after) {
            dump(nb::str(pass.data(), pass.size()), print(before), print(after));
          };
        }
        std::vector<PassStats> stats;
        GraphRef out = run_passes(g.graph, passes, options, &stats);
        nb::list report;
        for (const PassStats& s : stats) {
          nb::dict d, rewrites;
          for (const auto& [name, count] : s.rewrites) rewrites[name.c_str()] = count;
          d["pass"] = s.pass;
          d["ops_before"] = s.ops_before;
          d["ops_after"] = s.ops_after;
          d["seconds"] = s.seconds;
          d["rewrites"] = rewrites;
          report.append(d);
        }
        return nb::make_tuple(GraphObject{out}, report);
      },
      nb::arg("graph"), nb::arg("passes"), nb::arg("disabled"), nb::arg("only"), nb::arg("verify"),
      nb::arg("dump").none());
  m.def("passes", [] {
    nb::list out;
    for (const Pass& p : all_passes()) out.append(nb::make_tuple(p.name, p.doc));
    return out;
  });
  m.def("default_pipeline", [] { return default_pipeline(); });
  m.def("rewrites", [] {
    nb::list out;
    for (const RewriteInfo& r : all_rewrites()) out.append(nb::make_tuple(r.op, r.name, r.rule));
    return out;
  });
  m.def("fusion_report", [](const GraphObject& g) {
    nb::list out;
    for (const FusionReport& f : fusion_report(*g.graph)) {
      nb::dict d;
      d["name"] = f.name;
      d["num_ops"] = f.num_ops;
      d["flops"] = f.cost.flops;
      d["bytes"] = f.cost.bytes;
      d["fused_bytes"] = f.fused_bytes;
      d["location"] = loc_text(f.loc);
      out.append(d);
    }
    return out;
  });
  m.def("op_names", [] {
    nb::list out;
    for (const OpDef* op : registry().all()) out.append(op->name.c_str());
    return out;
  });
  m.def("op_info", [](const std::string& name) {
    const OpDef& op = registry().get(name);
    nb::dict d;
    nb::list attrs;
    for (const AttrSpec& a : op.attrs.specs()) attrs.append(a.name.c_str());
    d["name"] = op.name;
    d["doc"] = op.doc;
    d["attrs"] = attrs;
    d["num_operands"] = op.num_operands;
    d["elementwise"] = op.elementwise;
    d["multiple_results"] = op.multiple_results;
    static constexpr const char* kJvpKinds[] = {"none", "zero",   "linear",
                                                "args", "custom", "graph"};
    d["jvp_kind"] = kJvpKinds[static_cast<int>(op.jvp_kind)];
    d["missing"] = op.missing_rules();
    return d;
  });
}

// One output of a traced function, as Python sees it: (shape, dtype, weak).
nb::list output_avals(const Entry& e) {
  nb::list out;
  std::vector<TypeRef> types = e.graph->output_types();
  for (size_t i = 0; i < types.size(); ++i)
    out.append(nb::make_tuple(take(to_tuple(types[i]->shape())),
                              nb::borrow(numpy_dtype(types[i]->dtype())), bool(e.weak[i])));
  return out;
}

nb::object or_none(const Ref& r) { return r ? nb::borrow(r.get()) : nb::none(); }

void bind_jit(nb::module_& m) {
  nb::class_<TracedObject>(m, "Traced", "A function traced for one signature.")
      .def_prop_ro("graph", [](const TracedObject& t) { return GraphObject{t.entry->graph}; })
      .def_prop_ro("name", [](const TracedObject& t) { return t.entry->name; })
      .def_prop_ro("in_tree", [](const TracedObject& t) { return or_none(t.entry->in_tree); })
      .def_prop_ro("out_tree", [](const TracedObject& t) { return or_none(t.entry->out_tree); })
      .def_prop_ro("out_avals", [](const TracedObject& t) { return output_avals(*t.entry); })
      .def_prop_ro("consts",
                   [](const TracedObject& t) {
                     nb::list out;
                     for (const Ref& c : t.entry->captures) out.append(nb::borrow(c.get()));
                     return out;
                   })
      .def_prop_ro("donated",
                   [](const TracedObject& t) {
                     nb::list out;
                     for (bool d : t.entry->donated) out.append(nb::bool_(d));
                     return out;
                   })
      .def("stablehlo",
           [](const TracedObject& t, int device, bool keep_unused, bool locations,
              const std::vector<std::string>& result_info) {
             CompileOptions options;
             options.device = device;
             options.name = t.entry->name;
             options.donated = t.entry->donated;
             options.keep_unused = keep_unused;
             options.result_info = result_info;
             return lowered_text(t.entry->graph, options, locations);
           })
      .def("compile", [](const TracedObject& t, int device, bool keep_unused) {
        return ProgramObject{program_for(*t.entry, device, keep_unused)};
      });
  nb::class_<ProgramObject>(m, "Program", "A traced function compiled for a device.")
      .def_prop_ro("graph",
                   [](const ProgramObject& p) { return GraphObject{p.program->optimized}; })
      .def_prop_ro("loaded",
                   [](const ProgramObject& p) {
                     return p.program->executable ? or_none(p.program->executable->loaded)
                                                  : nb::none();
                   })
      .def_prop_ro("kept", [](const ProgramObject& p) { return p.program->kept; })
      .def("run", [](const ProgramObject& p, nb::list arrays) {
        std::vector<Operand> operands;
        for (nb::handle a : arrays)
          operands.push_back(classify_operand(a.ptr(), "compiled program"));
        Placement where = placement(operands, [](size_t i) { return cat("argument ", i); });
        std::vector<Ref> held;
        std::vector<PyObject*> inputs, outputs;
        for (const Operand& x : operands) {
          held.push_back(on_device(to_device(x, p.program->device), p.program->device));
          inputs.push_back(held.back().get());
        }
        run(*p.program, inputs, where.committed, outputs);
        nb::list out;
        for (PyObject* o : outputs) out.append(nb::steal(o));
        return out;
      });
  m.def("trace", [](nb::handle f, nb::tuple args, nb::dict kwargs) {
    return TracedObject{trace_entry(f.ptr(), args.ptr(), kwargs.ptr())};
  });
  m.def("set_jit_hooks", [](nb::object flatten, nb::object describe, nb::object describe_output,
                            nb::object describe_position, nb::object abstract_type) {
    jit_hooks.flatten = ref(flatten);
    jit_hooks.describe = ref(describe);
    jit_hooks.describe_output = ref(describe_output);
    jit_hooks.describe_position = ref(describe_position);
    jit_hooks.abstract_type = reinterpret_cast<PyTypeObject*>(abstract_type.inc_ref().ptr());
  });
}

// Position of a jaxlib device in the device table.
int device_index(nb::handle device) {
  current_device();  // starts the runtime
  std::vector<Device>& table = device_table();
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].device.get() == device.ptr()) return static_cast<int>(i);
  Ref text = Ref::checked(PyObject_Repr(device.ptr()));
  raise_error("AttributeValueError", "expected a device of weft.devices(); got ", utf8(text.get()));
}

void bind_runtime(nb::module_& m) {
  m.def("set_runtime", [](nb::dict hooks) {
    runtime.put = ref(hooks["put"]);
    runtime.put_semantics = ref(hooks["put_semantics"]);
    runtime.make_aval = ref(hooks["make_aval"]);
    runtime.make_handler = ref(hooks["make_handler"]);
    runtime.compile = ref(hooks["compile"]);
    runtime.to_numpy = ref(hooks["to_numpy"]);
    runtime.copy_to_device = ref(hooks["copy_to_device"]);
    runtime.start = ref(hooks["start"]);
    runtime.keep_token = ref(hooks["keep_token"]);
  });
  m.def("set_numpy_dtypes", [](nb::handle dtypes) { set_numpy_dtypes(dtypes.ptr()); });
  m.def("dtype_names", [] {
    nb::list out;
    for (int i = 0; i < kNumDTypes; ++i) out.append(std::string(kDTypeInfo[i].numpy_name));
    return out;
  });
  m.def("set_scope", [](std::string name) { return set_scope(std::move(name)); });
  m.def("set_package_directory", [](std::string dir) { set_package_directory(std::move(dir)); });
  m.def("register_device", [](nb::object device, nb::object sharding, nb::object device_list,
                              std::string platform) {
    device_table().push_back({ref(device), ref(sharding), ref(device_list), std::move(platform)});
    return device_table().size() - 1;
  });
  m.def("current_device", [] { return current_device(); });
  m.def("set_operators", [](nb::dict table) {
    for (auto [key, f] : table) set_operator_function(nb::cast<std::string>(key).c_str(), f.ptr());
  });
  m.def("set_methods", [](nb::dict table) {
    for (auto [key, f] : table)
      for (PyTypeObject* type : {array_type, tracer_type})
        check(PyObject_SetAttr(reinterpret_cast<PyObject*>(type), key.ptr(), f.ptr()));
  });
  m.def(
      "put",
      [](nb::handle host, bool weak, int device, bool committed) {
        Operand x = classify_operand(host.ptr(), "put");
        return nb::steal(put(host.ptr(), x.type, weak, device, committed));
      },
      nb::arg("host"), nb::arg("weak"), nb::arg("device"), nb::arg("committed"));
  m.def("wrap_buffer", [](nb::object buffer, nb::tuple shape, nb::object dtype, bool weak,
                          int device, bool committed) {
    Dims dims;
    for (nb::handle d : shape) dims.push_back(nb::cast<int64_t>(d));
    std::optional<DType> d = from_numpy_dtype(dtype.ptr());
    if (!d) fail(ErrorKind::kDtype, "[wrap_buffer] expected a supported dtype");
    return nb::steal(
        make_array(buffer.release().ptr(), make_type(*d, dims), weak, device, committed));
  });
  // The array on a device, committed to it.
  m.def("commit", [](nb::handle array, int device) {
    ArrayObject* a = as_array(array.ptr());
    if (a->device == device && a->committed) return nb::borrow(array);
    return take(copy_buffer(a, device, a->weak, true));
  });
  m.def("copy_array", [](nb::handle array) {
    ArrayObject* a = as_array(array.ptr());
    return take(copy_buffer(a, a->device, a->weak, a->committed));
  });
  m.def("in_trace", [] { return static_cast<bool>(innermost_staged()); });
  // Whether any function is being traced, or recorded for an un-jitted transform.
  m.def("in_context", [] { return !context_stack().empty(); });
  m.def("live_arrays", [] { return nb::steal(live_arrays()); });
  m.def("get_state", [] {
    int d = default_device();
    return nb::make_tuple(x64_enabled(), jit_disabled(),
                          d < 0 ? nb::none() : nb::borrow(device_table()[d].device.get()));
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
    }
  });
  m.def("set_global_state", [](nb::kwargs settings) {
    ProcessConfig& c = process_config();
    for (auto [key, value] : settings) {
      std::string_view k = utf8(key.ptr());
      if (k == "x64") c.x64 = nb::cast<bool>(value);
      if (k == "disable_jit") c.disable_jit = nb::cast<bool>(value);
      if (k == "default_device") c.default_device = value.is_none() ? -1 : device_index(value);
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
  m.def("clear_caches", [] {
    clear_eager_cache();
    clear_executable_cache();
  });
  // "file.py:12 (f)", or "" outside of any user code.
  m.def("user_location", [] {
    Loc loc = current_loc();
    return loc == kNoLoc ? std::string() : loc_text(loc);
  });
}

}  // namespace

Ref graph_object(const GraphRef& graph) {
  return Ref::steal(nb::cast(GraphObject{graph}).release().ptr());
}

GraphRef graph_of(PyObject* o) {
  GraphObject* g = nullptr;
  if (nb::try_cast(nb::handle(o), g) && g) return g->graph;
  return graph_of_jaxpr(o);
}

}  // namespace weft::py

NB_MODULE(_core, m) {
  using namespace weft::py;
  // Caches live as long as the process (csrc/README.md), and may hold objects of these classes.
  nb::set_leak_warnings(false);
  // Errors of the core and Python errors raised through it.
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const PythonError&) { translate_exception(); } catch (const weft::Error&) {
      translate_exception();
    }
  });
  init_array(m.ptr());
  init_tracer(m.ptr());
  init_bind(m.ptr());
  init_jit(m.ptr());
  init_recording(m.ptr());
  init_deferred(m.ptr());
  bind_graph(m);
  bind_jit(m);
  bind_runtime(m);
  bind_transforms(m);
  bind_rules(m);
  bind_jaxpr_view(m);
  bind_primitive(m);
}
