// The classes Graph and Object.

#include "graphs/graph_object.h"

#include <nanobind/stl/vector.h>

#include "conversions/dtypes.h"
#include "graphs/jaxpr_view.h"
#include "references/bound_text.h"
#include "references/unlocked.h"
#include "tracing/trace.h"
#include "weft/transforms.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

// (shape, dtype) of a type.
nb::tuple type_tuple(TypeRef t) {
  return nb::make_tuple(take(to_tuple(t->shape())), nb::borrow(numpy_dtype(t->dtype())));
}
nb::list type_list(std::span<const TypeRef> types) {
  nb::list out;
  for (TypeRef t : types) out.append(type_tuple(t));
  return out;
}

// shard(graph, axes, inputs) -> (the graph with pvary where values that vary over different axes
// meet, per output the axes over which it varies): names of axes, for each input and output, as
// varying_of tells them; see weft/graph_rules.h.
nb::tuple shard_graph(const GraphObject& graph, const std::vector<std::string>& axes,
                      nb::handle inputs) {
  ShardOptions options{.axes = axes, .inputs = {}, .at_least = {}, .strict = true};
  for (nb::handle names : inputs) options.inputs.push_back(set_of_axes(axes, names.ptr()));
  auto made = shard(graph.graph, options);
  nb::list outputs;
  for (AxisSet set : made->outputs) outputs.append(take(names_of_axes(axes, set)));
  return nb::make_tuple(take(graph_object(made->graph)), outputs);
}

}  // namespace

std::string text_of(const Graph& graph, const PrintOptions& options) {
  return unlocked(graph, [&] { return print(graph, options); });
}

void bind_graph_objects(nb::module_& m) {
  m.def("shard", &shard_graph, nb::arg("graph"), nb::arg("axes"), nb::arg("inputs"));
  nb::class_<GraphObject>(m, "Graph", "A program: an immutable list of ops.")
      .def("__str__", [](const GraphObject& g) { return text_of(*g.graph); })
      .def("__repr__", [](const GraphObject& g) { return text_of(*g.graph); })
      .def(
          "to_text",
          [](const GraphObject& g, int width, bool locations) {
            PrintOptions options;
            options.width = width;
            options.locations = locations;
            return text_of(*g.graph, options);
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
      .def_prop_ro("is_portable", [](const GraphObject& g) { return is_portable(*g.graph); })
      .def_prop_ro("structural_hash",
                   [](const GraphObject& g) { return g.graph->structural_hash(); })
      .def_prop_ro(
          "effects", [](const GraphObject& g) { return g.graph->effects(); },
          "What running the graph does beside giving results: bits of weft::Effect.")
      .def(
          "without_effects",
          [](const GraphObject& g) { return GraphObject{without_effects(g.graph)}; },
          "The graph without the callbacks that it makes on the way to its results.")
      .def_prop_ro("num_ops", [](const GraphObject& g) { return g.graph->ops().size(); })
      .def_prop_ro("num_consts", [](const GraphObject& g) { return g.graph->num_consts(); })
      .def_prop_ro("in_types",
                   [](const GraphObject& g) { return type_list(g.graph->input_types()); })
      .def_prop_ro("out_types",
                   [](const GraphObject& g) { return type_list(g.graph->output_types()); })
      .def("__len__", [](const GraphObject& g) { return g.graph->ops().size(); })
      .def("op_names", [](const GraphObject& g) {
        nb::list out;
        for (const Op& op : g.graph->ops()) out.append(op.info->name.c_str());
        return out;
      });
  nb::class_<ObjectHolder>(m, "Object", "A value that an attribute of an op holds.")
      .def("__repr__", [](const ObjectHolder& h) { return h.object->text(); });
}

Ref graph_object(const GraphRef& graph) {
  return Ref::steal(nb::cast(GraphObject{graph}).release().ptr());
}

GraphRef graph_of(PyObject* o) {
  GraphObject* g = nullptr;
  if (nb::try_cast(nb::handle(o), g) && g) return g->graph;
  return graph_of_jaxpr(o);
}

ObjectRef object_of(PyObject* o) {
  ObjectHolder* holder = nullptr;
  return nb::try_cast(nb::handle(o), holder) && holder ? holder->object : nullptr;
}

Ref object_handle(const ObjectRef& object) {
  return Ref::steal(nb::cast(ObjectHolder{object}).release().ptr());
}

}  // namespace weft::py
