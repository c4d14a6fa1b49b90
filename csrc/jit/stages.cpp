// The classes Traced and Program, behind weft's Traced, Lowered and Compiled.

#include "jit/stages.h"

#include <nanobind/stl/vector.h>

#include "arrays/array.h"
#include "conversions/dtypes.h"
#include "conversions/sharding_object.h"
#include "execution/eager.h"
#include "execution/prologue.h"
#include "execution/run.h"
#include "execution/steps.h"
#include "graphs/graph_object.h"
#include "jit/compiled.h"
#include "jit/history.h"
#include "jit/jit.h"
#include "references/bound_text.h"
#include "tracing/cell.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

struct TracedObject : TracedCall {
  std::vector<ShardingRef> out_shardings;
};
struct PlacesObject {
  Places places;
};
struct ProgramObject {
  ProgramRef program;
  EntryRef entry;
};

Ref ref(nb::handle h) { return Ref::borrow(h.ptr()); }

nb::tuple aval(TypeRef type, bool weak) {
  return nb::make_tuple(take(to_tuple(type->shape())), nb::borrow(numpy_dtype(type->dtype())),
                        weak);
}

// One output of a traced function, as Python sees it: (shape, dtype, weak).
nb::list output_avals(const Entry& e) {
  nb::list out;
  std::vector<TypeRef> types = e.graph->output_types();
  for (size_t i = 0; i < e.num_results(); ++i) out.append(aval(types[i], e.weak[i]));
  return out;
}

}  // namespace

void bind_stages(nb::module_& m) {
  nb::class_<TracedObject>(m, "Traced", "A function traced for one signature.")
      .def_prop_ro("graph", [](const TracedObject& t) { return GraphObject{t.entry->graph}; })
      .def_prop_ro("name", [](const TracedObject& t) { return t.entry->name; })
      .def_prop_ro("options", [](const TracedObject& t) { return nb::borrow(t.options.get()); })
      .def_prop_ro("in_tree", [](const TracedObject& t) { return or_none(t.entry->in_tree); })
      .def_prop_ro("out_tree", [](const TracedObject& t) { return or_none(t.entry->out_tree); })
      .def_prop_ro("out_avals", [](const TracedObject& t) { return output_avals(*t.entry); })
      .def_prop_ro(
          "out_splits",
          [](const TracedObject& t) {
            nb::list out;
            for (size_t i = 0; i < t.entry->num_results(); ++i)
              out.append(t.entry->splits.empty() || t.entry->splits[i]->mesh()->axes().empty()
                             ? nb::none()
                             : take(sharding_object(t.entry->splits[i])));
            return out;
          })
      // What jit was given for the results, a list; None where it was given nothing.
      .def_prop_ro("out_shardings",
                   [](const TracedObject& t) {
                     nb::list out;
                     for (ShardingRef s : t.out_shardings)
                       out.append(s ? take(sharding_object(s)) : nb::none());
                     return out;
                   })
      .def_prop_ro("consts",
                   [](const TracedObject& t) {
                     nb::list out;
                     for (Ref& c : capture_values(t.entry->captures))
                       out.append(take(std::move(c)));
                     return out;
                   })
      .def_prop_ro("written",
                   [](const TracedObject& t) {
                     nb::list out;
                     for (const Ref& cell : t.entry->written) out.append(nb::borrow(cell.get()));
                     return out;
                   })
      .def_prop_ro("written_arguments",
                   [](const TracedObject& t) {
                     nb::list out;
                     for (size_t i : t.entry->written_arguments) out.append(i);
                     return out;
                   })
      .def_prop_ro("donated",
                   [](const TracedObject& t) {
                     nb::list out;
                     for (bool d : t.entry->donated) out.append(nb::bool_(d));
                     return out;
                   })
      .def("stablehlo",
           [](const TracedObject& t, const PlacesObject& places, bool locations,
              const std::vector<std::string>& result_info, const std::string& platform) {
             CompileOptions options;
             options.places = places.places;
             options.name = t.entry->name;
             options.donated = t.entry->donated;
             options.keep_unused = t.keep_unused;
             options.result_info = result_info;
             options.platform = platform;
             return lowered_text(t.entry->graph, options, locations);
           })
      .def_prop_ro("in_avals",
                   [](const TracedObject& t) {
                     nb::list out;
                     auto types = t.entry->graph->input_types();
                     size_t captures = t.entry->captures.size();
                     for (size_t i = captures; i < types.size(); ++i)
                       out.append(aval(types[i], t.entry->in_weak[i - captures]));
                     return out;
                   })
      // Where the arguments place it; else where arrays are put that nobody placed.
      .def("places",
           [](const TracedObject& t) {
             return PlacesObject{t.where.committed ? t.where.places : Places{current_placement()}};
           })
      .def(
          "compile",
          [](const TracedObject& t, const PlacesObject& places, nb::object compiler_options,
             nb::object executable) {
            CompileChoice how = t.how;
            how.xla_options = compiler_options_number(compiler_options.ptr());
            return ProgramObject{
                program_for(*t.entry, places.places, t.keep_unused, how, executable.ptr()),
                t.entry};
          },
          nb::arg("places"), nb::arg("compiler_options").none(), nb::arg("executable").none());
  nb::class_<PlacesObject>(m, "Places", "Where a program's arguments are.")
      .def("input", [](const PlacesObject& p, size_t i) {
        return take(sharding_object(p.places.input(i)));
      });
  nb::class_<ProgramObject>(m, "Program", "A traced function compiled for a device.")
      .def_prop_ro(
          "function",
          [](const ProgramObject& p) { return take(make_compiled_function(p.entry, p.program)); })
      .def_prop_ro("graph",
                   [](const ProgramObject& p) { return GraphObject{p.program->optimized}; })
      .def_prop_ro("loaded",
                   [](const ProgramObject& p) {
                     return p.program->executable ? take(p.program->executable->loaded())
                                                  : nb::none();
                   })
      .def_prop_ro("blocks",
                   [](const ProgramObject& p) {
                     nb::list out;
                     if (const Steps* steps = p.program->steps.get())
                       for (size_t i = 0; i < steps->blocks.size(); ++i)
                         out.append(nb::make_tuple(GraphObject{steps->blocks[i]->graph},
                                                   steps->plan->blocks[i].num_steps,
                                                   take(steps->blocks[i]->loaded())));
                     return out;
                   })
      // (operations that it stands for, iterations, iterations in its body) of each.
      .def_prop_ro("loops",
                   [](const ProgramObject& p) {
                     nb::list out;
                     for (const Rolled::Loop& loop : p.program->loops)
                       out.append(nb::make_tuple(loop.num_ops, loop.length, loop.unroll));
                     return out;
                   })
      // (operations, seconds that it saves, seconds without it, the user's line or None) of each.
      .def_prop_ro("kernels",
                   [](const ProgramObject& p) {
                     nb::list out;
                     for (const Kernels::Kernel& kernel : p.program->cost.kernels)
                       out.append(take(kernel_object(kernel)));
                     return out;
                   })
      // None, or (graph, the inputs of the program that it takes, bytes of its results,
      // seconds that a call is spared, whether the results are there now, executable).
      .def_prop_ro("prologue",
                   [](const ProgramObject& p) -> nb::object {
                     const Prologue* made = p.program->prologue.get();
                     if (!made) return nb::none();
                     return nb::make_tuple(GraphObject{made->executable->graph}, made->reads,
                                           made->bytes, made->seconds, made->is_kept(),
                                           take(made->executable->loaded()));
                   })
      // In the order of a run: the number of the block, the bytes of intermediate values meanwhile.
      .def_prop_ro("steps",
                   [](const ProgramObject& p) {
                     nb::list out;
                     if (!p.program->steps) return out;
                     std::vector<int64_t> held = p.program->steps->plan->held_bytes();
                     for (size_t i = 0; i < held.size(); ++i)
                       out.append(nb::make_tuple(p.program->steps->plan->steps[i].block, held[i]));
                     return out;
                   })
      // Bytes of arguments, of results, and of the arguments that results live on in.
      .def_prop_ro("sizes",
                   [](const ProgramObject& p) {
                     const Graph& g = *p.program->optimized;
                     auto bytes = [&](const std::vector<uint32_t>& inputs) {
                       int64_t sum = 0;
                       for (uint32_t i : inputs) sum += g.type(g.input(i))->num_bytes();
                       return sum;
                     };
                     int64_t results = 0;
                     for (size_t i = 0; i < p.program->outputs.size(); ++i)
                       if (p.program->from_input[i] < 0)
                         results += p.program->outputs[i]->num_bytes();
                     return nb::make_tuple(bytes(p.program->kept), results,
                                           bytes(p.program->donated));
                   })
      .def_prop_ro("kept", [](const ProgramObject& p) { return p.program->kept; })
      .def_prop_ro("input_shardings",
                   [](const ProgramObject& p) {
                     nb::list out;
                     for (size_t i = 0; i < p.program->optimized->num_inputs(); ++i)
                       out.append(take(sharding_object(p.program->places.input(i))));
                     return out;
                   })
      .def_prop_ro("output_shardings", [](const ProgramObject& p) {
        nb::list out;
        size_t next = 0, i = 0;
        const std::vector<SpecEntries>& entries = p.program->places.entries;
        for (int from : p.program->from_input) {
          ShardingRef sharding = from >= 0 ? p.program->places.input(static_cast<size_t>(from))
                                 : p.program->executable
                                     ? p.program->executable->result_sharding(next++)
                                     : p.program->places.at;
          SpecEntries written = i < entries.size() ? entries[i] : kAsNeeded;
          out.append(take(sharding_object(sharding, written)));
          ++i;
        }
        return out;
      });
  // The array as it is split by a sharding, committed to it.
  m.def("commit", [](nb::handle array, nb::handle sharding) {
    ArrayObject* a = array_argument(array.ptr(), "device_put");
    ShardingRef to = sharding_of(sharding.ptr());
    if (!to) raise_error("OperandError", "[device_put] expected a Sharding of the core");
    SpecEntries entries = entries_of(sharding.ptr());
    auto written = [&](Ref array) {
      as_array(array.get())->entries = entries;
      return take(std::move(array));
    };
    auto shown = [&](SpecEntries e) {
      bool in_type = to->mesh()->has(AxisType::kExplicit);
      return e != kAsNeeded ? e : in_type ? a->type->shape().size() : to->dims().size();
    };
    if (a->sharding == to && a->committed && shown(a->entries) == shown(entries))
      return nb::borrow(array);
    check_fit(to, a->type, "device_put");
    if (are_equivalent(a->sharding, to, a->type)) {
      Ref twin = twin_of(a, a->type, a->weak, true);
      as_array(twin.get())->sharding = to;
      return written(std::move(twin));
    }
    ExplicitTransfers by_name;
    guard_transfer(kGuardBetweenDevices, a->type);
    if (place_of(a->sharding).devices->is_local && !place_of(to).devices->is_local)
      check_same(stored_value(a).get(), to);
    Ref moved = on_device(ref(array), to);
    as_array(moved.get())->committed = true;
    return written(std::move(moved));
  });
  m.def("trace", [](nb::handle f, nb::tuple args, nb::dict kwargs) {
    TracedCall call = trace_call(f.ptr(), args.ptr(), kwargs.ptr());
    const Entry& entry = *call.entry;
    std::vector<ShardingRef> out(entry.num_results());
    if (entry.wanted)
      out.assign(entry.wanted->outputs.begin(),
                 entry.wanted->outputs.begin() + static_cast<ptrdiff_t>(out.size()));
    return TracedObject{std::move(call), std::move(out)};
  });
}

}  // namespace weft::py
