// The class Checked.

#include "graphs/checks.h"

#include "graphs/attrs.h"
#include "graphs/graph_object.h"
#include "references/bound_text.h"
#include "references/unlocked.h"
#include "weft/checkify.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

struct CheckedObject {
  std::shared_ptr<const CheckedGraph> checked;
};

const char* kind_name(CheckKind kind) {
  switch (kind) {
    case CheckKind::kUser:
      return "user";
    case CheckKind::kNan:
      return "nan";
    case CheckKind::kInf:
      return "inf";
    case CheckKind::kIndex:
      return "index";
    case CheckKind::kDivision:
      return "division";
  }
  return "";
}

nb::dict describe(const CheckSite& site) {
  nb::dict d;
  d["kind"] = kind_name(site.kind);
  d["op"] = site.op->name.c_str();
  d["place"] = site.loc == kNoLoc ? std::string() : loc_text(site.loc);
  d["computes"] = site.loc & kCotangentLoc ? "cotangents"
                  : site.loc & kTangentLoc ? "tangents"
                                           : "values";
  auto error = std::dynamic_pointer_cast<const PythonObject>(site.error);
  d["error"] = error ? nb::borrow(error->get()) : nb::none();
  d["shape"] = take(to_tuple(site.shape));
  d["axes"] = take(to_tuple(site.axes));
  d["values"] = nb::make_tuple(site.first_value, site.first_value + site.num_values);
  d["num_operands"] = site.num_operands;
  return d;
}

}  // namespace

Ref checked_object(const std::shared_ptr<const CheckedGraph>& checked) {
  return Ref::steal(nb::cast(CheckedObject{checked}).release().ptr());
}

void bind_checks(nb::module_& m) {
  nb::class_<CheckedObject>(m, "Checked", "A graph with its checks as further outputs.")
      .def_prop_ro("graph", [](const CheckedObject& c) { return GraphObject{c.checked->graph}; })
      .def_prop_ro("num_outputs", [](const CheckedObject& c) { return c.checked->num_outputs; })
      .def_prop_ro("count", [](const CheckedObject& c) { return c.checked->count; })
      .def("site", [](const CheckedObject& c, int32_t n) { return describe(c.checked->site(n)); });
  m.attr("nothing_failed") = kNothingFailed;
  m.def(
      "checked",
      [](const GraphObject& g, bool user, bool nans, bool infs, bool indices, bool divisions,
         int32_t only, bool passed_nans) {
        CheckOptions options{user, nans, infs, indices, divisions, only};
        return CheckedObject{unlocked(*g.graph, [&] {
          return passed_nans ? checkified(g.graph, options) : checked(g.graph, options);
        })};
      },
      nb::arg("graph"), nb::arg("user") = false, nb::arg("nans") = false, nb::arg("infs") = false,
      nb::arg("indices") = false, nb::arg("divisions") = false, nb::arg("only") = -1,
      nb::arg("passed_nans") = false);
  // Without callbacks that give no values; None if there are others.
  m.def("repeatable", [](const GraphObject& g) -> nb::object {
    GraphRef graph = without_effects(g.graph);
    return graph->effects() == kPure ? take(graph_object(graph)) : nb::none();
  });
}

}  // namespace weft::py
