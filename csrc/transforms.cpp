// Graph in, graph out: masks are sequences of bools, mapped axes are ints or None.

#include "transforms.h"

#include "weft/transforms.h"

#include "graph_object.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

GraphRef to_graph(nb::handle h) {
  GraphRef graph = graph_of(h.ptr());
  if (!graph) throw nb::type_error("expected a weft._core.Graph");
  return graph;
}

nb::object from_graph(const GraphRef& graph) { return take(graph_object(graph)); }

Mask to_mask(nb::handle h) {
  Mask mask;
  if (h.is_none()) return mask;  // an option that is left out
  for (nb::handle x : h) {
    int truth = PyObject_IsTrue(x.ptr());
    check(truth);
    mask.push_back(truth != 0);
  }
  return mask;
}

nb::tuple from_mask(const Mask& mask) {
  nb::list out;
  for (bool m : mask) out.append(nb::bool_(m));
  return nb::tuple(out);
}

BatchDims to_dims(nb::handle h) {
  BatchDims dims;
  for (nb::handle x : h) dims.push_back(x.is_none() ? kNotBatched : nb::cast<int>(x));
  return dims;
}

nb::tuple from_dims(const BatchDims& dims) {
  nb::list out;
  for (int d : dims) {
    if (d == kNotBatched) {
      out.append(nb::none());
    } else {
      out.append(nb::int_(d));
    }
  }
  return nb::tuple(out);
}

}  // namespace

void bind_transforms(nb::module_& m) {
  m.def(
      "jvp_graph",
      [](nb::handle graph, nb::handle in_mask, nb::handle instantiate) {
        auto r = jvp(to_graph(graph),
                     {.in_mask = to_mask(in_mask), .instantiate = to_mask(instantiate)});
        return nb::make_tuple(from_graph(r->graph), from_mask(r->out_mask));
      },
      nb::arg("graph"), nb::arg("in_mask"), nb::arg("instantiate") = nb::none());
  m.def("linearize_graph", [](nb::handle graph, nb::handle in_mask) {
    auto r = linearize(to_graph(graph), {.in_mask = to_mask(in_mask)});
    nb::list residuals;
    for (const Residual& x : r->residuals)
      residuals.append(nb::make_tuple(x.is_input ? "input" : "output", x.index));
    return nb::make_tuple(from_graph(r->forward), from_graph(r->linear), from_mask(r->out_mask),
                          residuals);
  });
  m.def(
      "transpose_graph",
      [](nb::handle graph, nb::handle linear, nb::handle cotangents, bool instantiate) {
        auto r = transpose(to_graph(graph), {.linear = to_mask(linear),
                                             .cotangents = to_mask(cotangents),
                                             .instantiate = instantiate});
        return nb::make_tuple(from_graph(r->graph), from_mask(r->out_mask));
      },
      nb::arg("graph"), nb::arg("linear"), nb::arg("cotangents"), nb::arg("instantiate") = false);
  m.def(
      "vjp_graph",
      [](nb::handle graph, nb::handle in_mask, nb::handle cotangents) {
        auto r =
            vjp(to_graph(graph), {.in_mask = to_mask(in_mask), .cotangents = to_mask(cotangents)});
        return nb::make_tuple(from_graph(r->graph), from_mask(r->ct_mask));
      },
      nb::arg("graph"), nb::arg("in_mask"), nb::arg("cotangents") = nb::none());
  m.def(
      "vmap_graph",
      [](nb::handle graph, nb::handle in_dims, int64_t size, nb::handle out_dims) {
        VmapOptions options{.in_dims = to_dims(in_dims), .size = size};
        if (!out_dims.is_none()) options.out_dims = to_dims(out_dims);
        auto r = vmap(to_graph(graph), options);
        return nb::make_tuple(from_graph(r->graph), from_dims(r->out_dims));
      },
      nb::arg("graph"), nb::arg("in_dims"), nb::arg("size"), nb::arg("out_dims") = nb::none());
}

}  // namespace weft::py
