// Graph in, graph or text or report out.

#include "module/bind_compiler.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <optional>

#include "binding/indexing.h"
#include "conversions/dtypes.h"
#include "execution/compile.h"
#include "execution/steps.h"
#include "graphs/attrs.h"
#include "graphs/graph_object.h"
#include "jit/history.h"
#include "references/bound_text.h"
#include "references/unlocked.h"
#include "weft/view.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

// Counts are doubles in the core, beyond any integer where calls of calls multiply.
nb::object count(double x) {
  if (!std::isfinite(x)) return nb::float_(x);
  return nb::steal(PyLong_FromDouble(std::round(x)));
}

nb::dict counts_of(const std::vector<std::pair<std::string, Tally>>& tallies) {
  nb::dict out;
  for (const auto& [name, tally] : tallies) out[nb::cast(name)] = count(tally.ops);
  return out;
}

nb::dict costs_of(const std::vector<std::pair<std::string, Tally>>& tallies) {
  nb::dict out;
  for (const auto& [name, tally] : tallies) {
    nb::dict cost;
    cost["flops"] = count(tally.cost.flops);
    cost["transcendentals"] = count(tally.cost.transcendentals);
    cost["bytes"] = count(tally.cost.bytes);
    out[nb::cast(name)] = cost;
  }
  return out;
}

void bind_analysis(nb::module_& m) {
  auto figure = [](double Analysis::* of) {
    return [of](const Analysis& a) { return count(a.*of); };
  };
  auto cost = [](double Cost::* of) {
    return [of](const Analysis& a) { return count(a.total.cost.*of); };
  };
  nb::class_<Analysis>(m, "Analysis", "What one run of a program takes.")
      .def_prop_ro("ops", [](const Analysis& a) { return count(a.total.ops); })
      .def_prop_ro("flops", cost(&Cost::flops))
      .def_prop_ro("transcendentals", cost(&Cost::transcendentals))
      .def_prop_ro("bytes", cost(&Cost::bytes))
      .def_prop_ro("peak_bytes", figure(&Analysis::peak_bytes))
      .def_prop_ro("input_bytes", figure(&Analysis::input_bytes))
      .def_prop_ro("output_bytes", figure(&Analysis::output_bytes))
      .def_prop_ro("critical_path", figure(&Analysis::critical_path))
      .def_prop_ro("levels", figure(&Analysis::levels))
      .def_prop_ro("width", figure(&Analysis::width))
      .def_prop_ro("by_op", [](const Analysis& a) { return counts_of(a.by_op); })
      .def_prop_ro("by_line", [](const Analysis& a) { return counts_of(a.by_line); })
      .def_prop_ro("cost_by_op", [](const Analysis& a) { return costs_of(a.by_op); })
      .def_prop_ro("cost_by_line", [](const Analysis& a) { return costs_of(a.by_line); })
      .def("__str__", [](const Analysis& a) { return to_text(a); })
      .def("__repr__", [](const Analysis& a) { return to_text(a); });
  m.def("analyze", [](const GraphObject& g) { return analyze(*g.graph); });
}

const char* type_name(AttrType type) {
  switch (type) {
    case AttrType::kBool:
      return "bool";
    case AttrType::kInt:
      return "int";
    case AttrType::kFloat:
      return "float";
    case AttrType::kString:
      return "str";
    case AttrType::kDType:
      return "dtype";
    case AttrType::kInts:
      return "ints";
    case AttrType::kBools:
      return "bools";
    case AttrType::kIntsList:
      return "tuple of ints";
    case AttrType::kIntsPairs:
      return "pairs of ints";
    case AttrType::kTypes:
      return "types";
    case AttrType::kGraph:
      return "graph";
    case AttrType::kGraphs:
      return "graphs";
    case AttrType::kAxisNames:
      return "axis names";
    case AttrType::kMesh:
      return "mesh";
    case AttrType::kSharding:
      return "sharding";
    case AttrType::kShardings:
      return "shardings";
    case AttrType::kConstant:
      return "array";
    case AttrType::kObject:
      return "object";
  }
  return "object";
}

nb::list attributes_of(const OpDef& op) {
  nb::list out;
  for (const AttrSpec& a : op.attrs.specs()) {
    nb::dict d;
    d["name"] = a.name;
    d["type"] = type_name(a.type);
    d["required"] = !a.has_default();
    d["default"] = a.has_default() ? take(from_attr(a, a.default_value)) : nb::none();
    out.append(d);
  }
  return out;
}

// A value for an attribute without a default that suits operands of one axis; nullopt if there is
// none, or if dtypes follow from it.
std::optional<Attr> sample(const AttrSpec& spec) {
  if (spec.type == AttrType::kBool) return Attr(false);
  if (spec.type == AttrType::kInt) return Attr(int64_t{0});
  if (spec.type == AttrType::kInts) return Attr(Dims{0});
  return std::nullopt;
}

// The dtypes that an op takes, each with the dtype of its result, as its inference says. Of ops
// with one operand, and of element-wise ones, whose operands agree; empty for others.
nb::list dtypes_of(const OpDef& op) {
  nb::list out;
  if (op.num_operands != 1 && !(op.elementwise && op.num_operands > 1)) return out;
  std::vector<NamedAttr> named;
  for (const AttrSpec& a : op.attrs.specs()) {
    if (a.has_default()) continue;
    std::optional<Attr> value = sample(a);
    if (!value) return out;
    named.push_back({a.name, *value});
  }
  AttrsRef attrs = op.attrs.size() ? AttrRecord::make(op.name, op.attrs, named) : nullptr;
  for (int i = 0; i < kNumDTypes; ++i) {
    DType dtype = static_cast<DType>(i);
    if (dtype == DType::kFloat0) continue;  // of no array
    std::vector<TypeRef> operands(static_cast<size_t>(op.num_operands), make_type(dtype, Dims{2}));
    try {
      TypeRefs results = infer_types(op, operands, attrs);
      if (results.empty()) return out;
      out.append(nb::make_tuple(nb::borrow(numpy_dtype(dtype)),
                                nb::borrow(numpy_dtype(results[0]->dtype()))));
    } catch (const Error&) {}  // not one that it takes
  }
  return out;
}

nb::dict rules_of(const OpDef& op) {
  static constexpr const char* kJvpKinds[] = {"none", "zero", "linear", "args", "custom", "graph"};
  nb::dict d;
  nb::list rewrites;
  for (const Rewrite& r : op.simplify) rewrites.append(nb::make_tuple(r.name, r.rule));
  d["jvp"] = kJvpKinds[static_cast<int>(op.jvp_kind)];
  d["transpose"] = static_cast<bool>(op.transpose);
  d["batch"] = static_cast<bool>(op.batch);
  d["emit"] = op.emit ? "emit" : op.decompose ? "decompose" : "none";
  d["fold"] = static_cast<bool>(op.fold);
  d["cost"] = static_cast<bool>(op.cost);
  d["prune"] = static_cast<bool>(op.prune);
  d["simplify"] = rewrites;
  return d;
}

nb::dict op_info(const OpDef& op) {
  static constexpr const char* kEffects[] = {"none", "unordered", "ordered", "ordered"};
  nb::dict d;
  nb::list attrs;
  for (const AttrSpec& a : op.attrs.specs()) attrs.append(a.name.c_str());
  nb::dict rules = rules_of(op);
  d["name"] = op.name;
  d["doc"] = op.doc;
  d["attrs"] = attrs;
  d["attributes"] = attributes_of(op);
  d["num_operands"] = op.num_operands;
  d["elementwise"] = op.elementwise;
  d["multiple_results"] = op.multiple_results;
  d["effects"] = kEffects[op.effects & 3];
  d["dtypes"] = dtypes_of(op);
  d["jvp_kind"] = rules["jvp"];
  d["rules"] = rules;
  d["missing"] = op.missing_rules();
  return d;
}

// What compile() would make of an optimised program on one device of a CPU: (blocks, each (graph
// with kernels, operations without, how often it runs); loops, each (operations, length, unroll);
// operations that arrays save; whether anything was rolled or packed, as a graph, or None; that
// graph with kernels; kernels).
nb::tuple plan(const GraphObject& program, nb::handle cut_name, nb::handle kernels_name) {
  Cut cut = cut_named(cut_name.ptr());
  KernelChoice choice = kernels_named(kernels_name.ptr());
  nb::list blocks, loops;
  nb::list kernels;
  auto choose = [&](const GraphRef& graph) {
    Kernels made = unlocked(*graph, [&] { return choose_kernels(graph, choice); });
    for (const Kernels::Kernel& kernel : made.kernels) kernels.append(take(kernel_object(kernel)));
    return made.graph;
  };
  if (auto steps = plan_of(program.graph, cut, {})) {
    for (const BlockPlan::Block& block : steps->blocks)
      blocks.append(nb::make_tuple(GraphObject{choose(block.graph)}, block.graph->ops().size(),
                                   block.num_steps));
    return nb::make_tuple(blocks, loops, 0, nb::none(), nb::none(), kernels);
  }
  Repacked made = repacked(program.graph, cut);
  for (const Rolled::Loop& loop : made.loops)
    loops.append(nb::make_tuple(loop.num_ops, loop.length, loop.unroll));
  GraphRef last = choose(made.graph);
  auto unless_same = [](const GraphRef& graph, const GraphRef& before) -> nb::object {
    return graph == before ? nb::none() : nb::cast(GraphObject{graph});
  };
  return nb::make_tuple(blocks, loops, made.num_saved, unless_same(made.graph, program.graph),
                        unless_same(last, made.graph), kernels);
}

}  // namespace

void bind_compiler(nb::module_& m) {
  bind_analysis(m);
  m.def("plan", &plan, nb::arg("graph"), nb::arg("compile"), nb::arg("kernels"));
  m.def(
      "view_json",
      [](const std::vector<GraphObject>& programs) {
        std::vector<GraphRef> graphs;
        for (const GraphObject& g : programs) graphs.push_back(g.graph);
        return view_json(graphs);
      },
      nb::arg("programs"));
  m.def("slice_extent", [](nb::handle slice, nb::handle dim) {
    return take(slice_extent(slice.ptr(), dim.ptr()));
  });
  m.def(
      "parse",
      [](const std::string& text, DimScope scope) {
        ReadingScope reading(scope);
        return GraphObject{parse(text)};
      },
      nb::arg("text"), nb::arg("scope") = 0);
  m.def("is_mlir", [](const std::string& text) { return is_mlir(text); });
  m.def(
      "read_stablehlo",
      [](const std::string& text, const std::string& function, const std::string& file) {
        nb::gil_scoped_release unlocked;
        return GraphObject{read_stablehlo(text, {.function = function, .file = file})};
      },
      nb::arg("text"), nb::arg("function") = "", nb::arg("file") = "");
  m.def(
      "emit_stablehlo",
      [](const GraphObject& g, const std::string& name, const std::string& platform,
         bool locations) {
        EmitOptions options = emit_options(platform);
        options.module_name = name;
        options.locations = locations;
        return emit_stablehlo(*g.graph, options).text;
      },
      nb::arg("graph"), nb::arg("name") = "main", nb::arg("platform") = "cpu",
      nb::arg("locations") = false);
  m.def(
      "run_passes",
      [](const GraphObject& g, const std::vector<std::string>& passes,
         const std::vector<std::string>& disabled, const std::vector<std::string>& only,
         bool check_graphs, bool keep_derivatives, nb::object dump) {
        PassOptions options;
        options.disabled_rewrites = disabled;
        options.only_rewrites = only;
        options.verify = check_graphs;
        options.keep_derivatives = keep_derivatives;
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
      nb::arg("keep_derivatives"), nb::arg("dump").none());
  // Of the module that a graph is emitted as.
  m.def("survey",
        [](const GraphObject& g) { return emit_stablehlo(*g.graph, emit_options("cpu")).survey; });
  m.def("passes", [] {
    nb::list out;
    for (const Pass& p : all_passes()) out.append(nb::make_tuple(p.name, p.doc));
    return out;
  });
  m.def(
      "default_pipeline", [](bool keep) { return default_pipeline(keep); },
      nb::arg("keep_derivatives") = false);
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
  m.def("op_info", [](const std::string& name) { return op_info(registry().get(name)); });
}

}  // namespace weft::py
