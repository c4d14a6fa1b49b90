// Graphs, and values that attributes of ops hold, as Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include "references/bound.h"

namespace weft::py {

// weft._core.Graph.
struct GraphObject {
  GraphRef graph;
};

// The Python object of a graph and back; null for anything that is no graph, Jaxpr or ClosedJaxpr
// without constants.
Ref graph_object(const GraphRef& graph);
GraphRef graph_of(PyObject* o);

// A graph's text; that of a long one is made without the interpreter's lock.
std::string text_of(const Graph& graph, const PrintOptions& options = {});

// weft._core.Object: an object of the core as Python passes it around (attributes of type kObject).
struct ObjectHolder {
  ObjectRef object;
};
// Null if it is none.
ObjectRef object_of(PyObject* o);
Ref object_handle(const ObjectRef& object);

void bind_graph_objects(nanobind::module_& m);

}  // namespace weft::py
