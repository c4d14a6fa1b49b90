// Graph in, graph or text or report out.

#include "compiler.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "graph_object.h"

namespace nb = nanobind;

namespace weft::py {

void bind_compiler(nb::module_& m) {
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

}  // namespace weft::py
