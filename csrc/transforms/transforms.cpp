// Graph in, graph out: masks are sequences of bools, mapped axes are ints or None.

#include "transforms/transforms.h"

#include "tracing/named_axes.h"
#include "weft/transforms.h"

#include <algorithm>

#include "graphs/graph_object.h"
#include "references/unlocked.h"
#include "transforms/rules.h"

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
  for (nb::handle x : h) mask.push_back(is_true(x.ptr()));
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

// ---- Later
//
// In the body of a shard_map that knows over which axes values vary, derivatives are ops that hold
// a graph until that is known of its inputs.

Dims bits(const Mask& mask) {
  Dims out;
  for (bool m : mask) out.push_back(m);
  return out;
}

// inputs, tangents or cotangents -> outputs, derivatives
GraphRef derivative_later(const char* name, const GraphRef& graph, const Mask& inputs,
                          const Mask& outputs) {
  const OpDef& op = registry().get(name);
  bool backwards = op.name == "pullback";
  GraphBuilder b;
  std::vector<Value> args;
  for (TypeRef type : graph->input_types()) args.push_back(b.input(type));
  std::vector<TypeRef> types =
      backwards ? graph->output_types()
                : std::vector<TypeRef>(graph->input_types().begin(), graph->input_types().end());
  for (size_t i = 0; i < types.size(); ++i)
    if ((backwards ? outputs : inputs)[i]) args.push_back(b.input(types[i]));
  AttrsRef attrs =
      AttrRecord::make(op.name, op.attrs,
                       {{"jaxpr", graph}, {"in_mask", bits(inputs)}, {"out_mask", bits(outputs)}});
  return b.finish_ordered(b.add(op, args, attrs), args, graph->num_consts());
}

// Of a graph, the outputs from number n on.
GraphRef outputs_from(const GraphRef& graph, size_t n) {
  GraphBuilder b;
  std::vector<Value> args;
  for (TypeRef type : graph->input_types()) args.push_back(b.input(type));
  Values made = b.inline_graph(*graph, args);
  return b.finish_ordered(std::span<const Value>(made).subspan(n), args, graph->num_consts());
}

// The outputs that have a derivative by the inputs: float or complex ones that depend on them, and
// those that are wanted anyway.
Mask moving(const GraphRef& graph, const Mask& inputs, const Mask& wanted = {}) {
  Mask mask;
  auto depends = dependent_outputs(graph, inputs);
  std::vector<TypeRef> types = graph->output_types();
  for (size_t i = 0; i < types.size(); ++i)
    mask.push_back(is_inexact(types[i]->dtype()) &&
                   ((*depends)[i] || (!wanted.empty() && wanted[i])));
  return mask;
}

Mask both(Mask a, const Mask& b) {
  for (size_t i = 0; i < b.size(); ++i) a[i] = a[i] && b[i];
  return a;
}

}  // namespace

std::shared_ptr<const JvpGraph> jvp_here(const GraphRef& graph, const JvpOptions& options) {
  if (are_varying_known()) {
    Mask outputs = moving(graph, options.in_mask, options.instantiate);
    return std::make_shared<JvpGraph>(
        JvpGraph{derivative_later("pushforward", graph, options.in_mask, outputs), outputs});
  }
  return unlocked(*graph, [&] { return jvp(graph, options); });
}

std::shared_ptr<const VjpGraph> vjp_here(const GraphRef& graph, const VjpOptions& options) {
  if (are_varying_known()) {
    Mask outputs = both(moving(graph, options.in_mask), options.cotangents);
    return std::make_shared<VjpGraph>(
        VjpGraph{derivative_later("pullback", graph, options.in_mask, outputs), outputs});
  }
  return unlocked(*graph, [&] { return vjp(graph, options); });
}

std::shared_ptr<const VmapGraph> vmap_here(const GraphRef& graph, const VmapOptions& options) {
  return unlocked(*graph, [&] { return vmap(graph, options); });
}

std::shared_ptr<const JacobianGraph> jacobian_here(const GraphRef& graph,
                                                   const JacobianOptions& options) {
  if (are_varying_known()) {
    if (options.forward)
      return std::make_shared<JacobianGraph>(JacobianGraph{
          jacobian_by_columns(*graph, options, *jvp_here(graph, {.in_mask = options.in_mask}))});
    Linearized made(graph, options.in_mask, Mask(options.num_values, true));
    auto parts = [&](Builder& b, std::span<const Value> inputs) -> LinearParts {
      Values outputs = b.inline_graph(*graph, inputs);
      return {{outputs.begin(), outputs.end()},
              {inputs.begin(), inputs.end()},
              made.out_mask(),
              made.pull()};
    };
    return std::make_shared<JacobianGraph>(JacobianGraph{jacobian_by_rows(*graph, options, parts)});
  }
  return unlocked(*graph, [&] { return jacobian(graph, options); });
}

Linearized::Linearized(GraphRef graph, Mask inputs, Mask values)
    : graph_(std::move(graph)), inputs_(std::move(inputs)), values_(std::move(values)) {
  values_.resize(graph_->outputs().size(), false);
  if (!are_varying_known()) {
    made_ = unlocked(*graph_, [&] { return linearize(graph_, {.in_mask = inputs_}); });
    return;
  }
  auto later = std::make_shared<LinearizedGraph>();
  later->forward = graph_;
  later->out_mask = moving(graph_, inputs_);
  for (uint32_t i = 0; i < graph_->num_inputs(); ++i) later->residuals.push_back({true, i});
  made_ = later;
}

std::vector<Ref> Linearized::kept(std::span<const Operand> operands,
                                  std::span<const Ref> results) const {
  std::vector<Ref> out;
  for (const Residual& r : residuals())
    out.push_back(r.is_input ? Ref::borrow(operands[r.index].object) : results[r.index]);
  return out;
}

GraphRef Linearized::push() const {
  if (made_->linear) return made_->linear;
  return outputs_from(derivative_later("pushforward", without_effects(graph_), inputs_, out_mask()),
                      graph_->outputs().size());
}

GraphRef Linearized::pull() const {
  Mask outputs = out_mask();
  if (made_->linear) {
    Mask given;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) given.push_back(values_[i]);
    return transposed(made_->linear, residuals().size(), given);
  }
  outputs = both(outputs, values_);
  return outputs_from(derivative_later("pullback", without_effects(graph_), inputs_, outputs),
                      graph_->outputs().size());
}

GraphRef transposed(const GraphRef& linear, size_t num_residuals, const Mask& cotangents) {
  TransposeOptions options = linear_after(*linear, num_residuals, 0);
  std::copy(cotangents.begin(), cotangents.end(), options.cotangents.begin());
  return unlocked(*linear, [&] { return transpose(linear, options); })->graph;
}

void bind_transforms(nb::module_& m) {
  m.def(
      "jvp_graph",
      [](nb::handle graph, nb::handle in_mask, nb::handle instantiate) {
        auto r = jvp_here(to_graph(graph), {to_mask(in_mask), to_mask(instantiate)});
        return nb::make_tuple(from_graph(r->graph), from_mask(r->out_mask));
      },
      nb::arg("graph"), nb::arg("in_mask"), nb::arg("instantiate") = nb::none());
  m.def("linearize_graph", [](nb::handle graph, nb::handle in_mask) {
    GraphRef source = to_graph(graph);
    LinearizeOptions options{to_mask(in_mask), {}};
    auto r = unlocked(*source, [&] { return linearize(source, options); });
    nb::list residuals;
    for (const Residual& x : r->residuals)
      residuals.append(nb::make_tuple(x.is_input ? "input" : "output", x.index));
    return nb::make_tuple(from_graph(r->forward), from_graph(r->linear), from_mask(r->out_mask),
                          residuals);
  });
  m.def(
      "transpose_graph",
      [](nb::handle graph, nb::handle linear, nb::handle cotangents, bool instantiate) {
        GraphRef source = to_graph(graph);
        TransposeOptions options{to_mask(linear), to_mask(cotangents), instantiate};
        auto r = unlocked(*source, [&] { return transpose(source, options); });
        return nb::make_tuple(from_graph(r->graph), from_mask(r->out_mask));
      },
      nb::arg("graph"), nb::arg("linear"), nb::arg("cotangents"), nb::arg("instantiate") = false);
  m.def(
      "vjp_graph",
      [](nb::handle graph, nb::handle in_mask, nb::handle cotangents) {
        auto r = vjp_here(to_graph(graph), {to_mask(in_mask), to_mask(cotangents)});
        return nb::make_tuple(from_graph(r->graph), from_mask(r->ct_mask));
      },
      nb::arg("graph"), nb::arg("in_mask"), nb::arg("cotangents") = nb::none());
  m.def(
      "vmap_graph",
      [](nb::handle graph, nb::handle in_dims, int64_t size, nb::handle out_dims) {
        VmapOptions options{.in_dims = to_dims(in_dims), .size = size};
        if (!out_dims.is_none()) options.out_dims = to_dims(out_dims);
        auto r = vmap_here(to_graph(graph), options);
        return nb::make_tuple(from_graph(r->graph), from_dims(r->out_dims));
      },
      nb::arg("graph"), nb::arg("in_dims"), nb::arg("size"), nb::arg("out_dims") = nb::none());
}

}  // namespace weft::py
