// Graph in, graph out: masks are sequences of bools, mapped axes are ints or None.

#include "transforms.h"

#include "weft/transforms.h"

#include <functional>

#include "graph_object.h"
#include "recording.h"
#include "rules.h"
#include "trace.h"
#include "unlocked.h"
#include "weft/hash.h"

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

// A transform of a graph that runs at once. What it gives for a graph with rules of users is found
// again through them, so that they are not traced at each call.
RuleToken::Transformed transformed(const GraphRef& graph, const std::string& options,
                                   const std::function<RuleToken::Transformed()>& make) {
  // Within a trace, or for a transform around this one, the rules are still needed.
  RuleTokenRef token = context_stack().empty() ? rule_token(graph) : nullptr;
  if (!token) return make();
  uint64_t hash = hash_combine(graph->structural_hash(), std::hash<std::string>()(options));
  auto known = token->transformed.find(hash, [&](const RuleToken::Key& k) {
    return k.options == options && equal(*k.graph, *graph) && same_places(*k.graph, *graph);
  });
  if (known) return *known;
  RuleToken::Transformed made = make();
  const std::string pass = "strip_rules";
  made.graph = run_passes(made.graph, {&pass, 1});
  if (GraphRef key = without_rule_objects(graph))
    token->transformed.insert(hash, {std::move(key), options}, made);
  return made;
}

std::string option_text(const char* transform, const Mask& a, const Mask& b) {
  std::string out = transform;
  for (const Mask* mask : {&a, &b}) {
    out += ' ';
    for (bool m : *mask) out += m ? '1' : '0';
  }
  return out;
}

}  // namespace

RuleToken::Transformed jvp_at_once(const GraphRef& graph, const Mask& inputs, const Mask& wanted) {
  return transformed(graph, option_text("jvp", inputs, wanted), [&] {
    auto made =
        unlocked(*graph, [&] { return jvp(graph, {.in_mask = inputs, .instantiate = wanted}); });
    return RuleToken::Transformed{made->graph, made->out_mask};
  });
}

RuleToken::Transformed vjp_at_once(const GraphRef& graph, const Mask& inputs,
                                   const Mask& cotangents) {
  return transformed(graph, option_text("vjp", inputs, cotangents), [&] {
    auto made =
        unlocked(*graph, [&] { return vjp(graph, {.in_mask = inputs, .cotangents = cotangents}); });
    return RuleToken::Transformed{made->graph, made->ct_mask};
  });
}

std::shared_ptr<const LinearizedGraph> linearized(const GraphRef& graph,
                                                  const LinearizeOptions& options) {
  return unlocked(*graph, [&] { return linearize(graph, options); });
}

std::shared_ptr<const TransposedGraph> transposed(const GraphRef& graph,
                                                  const TransposeOptions& options) {
  return unlocked(*graph, [&] { return transpose(graph, options); });
}

std::shared_ptr<const VmapGraph> mapped(const GraphRef& graph, const VmapOptions& options) {
  return unlocked(*graph, [&] { return vmap(graph, options); });
}

void bind_transforms(nb::module_& m) {
  m.def(
      "jvp_graph",
      [](nb::handle graph, nb::handle in_mask, nb::handle instantiate) {
        auto r = jvp_at_once(to_graph(graph), to_mask(in_mask), to_mask(instantiate));
        return nb::make_tuple(from_graph(r.graph), from_mask(r.mask));
      },
      nb::arg("graph"), nb::arg("in_mask"), nb::arg("instantiate") = nb::none());
  m.def("linearize_graph", [](nb::handle graph, nb::handle in_mask) {
    auto r = linearized(to_graph(graph), {.in_mask = to_mask(in_mask)});
    nb::list residuals;
    for (const Residual& x : r->residuals)
      residuals.append(nb::make_tuple(x.is_input ? "input" : "output", x.index));
    return nb::make_tuple(from_graph(r->forward), from_graph(r->linear), from_mask(r->out_mask),
                          residuals);
  });
  m.def(
      "transpose_graph",
      [](nb::handle graph, nb::handle linear, nb::handle cotangents, bool instantiate) {
        auto r = transposed(to_graph(graph), {.linear = to_mask(linear),
                                              .cotangents = to_mask(cotangents),
                                              .instantiate = instantiate});
        return nb::make_tuple(from_graph(r->graph), from_mask(r->out_mask));
      },
      nb::arg("graph"), nb::arg("linear"), nb::arg("cotangents"), nb::arg("instantiate") = false);
  m.def(
      "vjp_graph",
      [](nb::handle graph, nb::handle in_mask, nb::handle cotangents) {
        auto r = vjp_at_once(to_graph(graph), to_mask(in_mask), to_mask(cotangents));
        return nb::make_tuple(from_graph(r.graph), from_mask(r.mask));
      },
      nb::arg("graph"), nb::arg("in_mask"), nb::arg("cotangents") = nb::none());
  m.def(
      "vmap_graph",
      [](nb::handle graph, nb::handle in_dims, int64_t size, nb::handle out_dims) {
        VmapOptions options{.in_dims = to_dims(in_dims), .size = size};
        if (!out_dims.is_none()) options.out_dims = to_dims(out_dims);
        auto r = mapped(to_graph(graph), options);
        return nb::make_tuple(from_graph(r->graph), from_dims(r->out_dims));
      },
      nb::arg("graph"), nb::arg("in_dims"), nb::arg("size"), nb::arg("out_dims") = nb::none());
}

}  // namespace weft::py
