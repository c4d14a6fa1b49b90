// Graph in, graph out: masks are sequences of bools, mapped axes are ints or None.

#include "transforms.h"

#include "named_axes.h"
#include "weft/transforms.h"

#include <algorithm>
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

// ---- Found again by the token of rules

GraphRef stripped(const GraphRef& graph) {
  const std::string pass = "strip_rules";
  return run_passes(graph, {&pass, 1});
}

std::string option_text(const char* transform, std::initializer_list<const Mask*> masks) {
  std::string out = transform;
  for (const Mask* mask : masks) {
    out += ' ';
    for (bool m : *mask) out += m ? '1' : '0';
  }
  return out;
}

// What a token keeps for a graph with rules.
class Kept {
 public:
  Kept(RuleToken& token, const GraphRef& graph, std::string options)
      : token_(token),
        graph_(graph),
        options_(std::move(options)),
        hash_(hash_combine(graph->structural_hash(), std::hash<std::string>()(options_))) {}

  template <typename T>
  std::shared_ptr<T> find() const {
    auto known = token_.transformed.find(hash_, [&](const RuleToken::Key& k) {
      return k.options == options_ && equal(*k.graph, *graph_) && same_places(*k.graph, *graph_);
    });
    return known ? std::static_pointer_cast<T>(*known) : nullptr;
  }
  void keep(std::shared_ptr<void> made) const {
    if (GraphRef key = without_rule_objects(graph_))
      token_.transformed.insert(hash_, {std::move(key), options_}, std::move(made));
  }

 private:
  RuleToken& token_;
  const GraphRef& graph_;
  std::string options_;
  uint64_t hash_;
};

// Within a trace, or for a transform around this one, rules are still needed.
bool runs_at_once() { return context_stack().empty(); }

// A graph as a token may keep it; null if it may not.
GraphRef to_keep(const GraphRef& graph, bool at_once) {
  if (at_once) return has_rule_objects(*graph) ? nullptr : graph;
  GraphRef absent = without_rule_objects(graph);
  return absent && is_self_contained(*absent) ? absent : nullptr;
}

// A transform of a graph. T has the new graph as a member.
template <typename T>
std::shared_ptr<const T> transformed(const GraphRef& graph, std::string options,
                                     FunctionRef<std::shared_ptr<const T>()> transform) {
  auto make = [&] { return unlocked(*graph, [&] { return transform(); }); };
  std::vector<RuleTokenRef> tokens = rule_tokens(*graph);
  if (tokens.empty()) return make();
  bool at_once = runs_at_once();
  Kept kept(*tokens[0], graph, (at_once ? "at once " : "traced ") + options);
  if (auto known = kept.find<T>()) {
    if (at_once) return known;
    auto found = std::make_shared<T>(*known);
    found->graph = with_rule_objects(known->graph);
    if (found->graph) return found;
  }
  auto made = std::make_shared<T>(*make());
  if (at_once) made->graph = stripped(made->graph);
  if (GraphRef form = to_keep(made->graph, at_once)) {
    auto copy = std::make_shared<T>(*made);
    copy->graph = std::move(form);
    kept.keep(std::move(copy));
  }
  return made;
}

}  // namespace

namespace {

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
  return transformed<JvpGraph>(graph, option_text("jvp", {&options.in_mask, &options.instantiate}),
                               [&] { return jvp(graph, options); });
}

std::shared_ptr<const VjpGraph> vjp_here(const GraphRef& graph, const VjpOptions& options) {
  if (are_varying_known()) {
    Mask outputs = both(moving(graph, options.in_mask), options.cotangents);
    return std::make_shared<VjpGraph>(
        VjpGraph{derivative_later("pullback", graph, options.in_mask, outputs), outputs});
  }
  return transformed<VjpGraph>(graph, option_text("vjp", {&options.in_mask, &options.cotangents}),
                               [&] { return vjp(graph, options); });
}

std::shared_ptr<const VmapGraph> vmap_here(const GraphRef& graph, const VmapOptions& options) {
  std::string text =
      cat("vmap ", options.size, ' ', options.axis_name, ' ', options.spmd_axis_name);
  for (const BatchDims* dims : {&options.in_dims, &options.out_dims}) {
    text += ';';
    for (int d : *dims) text += cat(d, ',');
  }
  return transformed<VmapGraph>(graph, std::move(text), [&] { return vmap(graph, options); });
}

std::shared_ptr<const JacobianGraph> jacobian_here(const GraphRef& graph,
                                                   const JacobianOptions& options) {
  if (are_varying_known()) {
    Linearized made(graph, options.in_mask, options.num_values);
    auto parts = [&](Builder& b, std::span<const Value> inputs) -> LinearParts {
      return {b.inline_graph(*graph, inputs), Values(inputs), made.out_mask(),
              options.forward ? made.push() : nullptr, options.forward ? nullptr : made.pull()};
    };
    return std::make_shared<JacobianGraph>(JacobianGraph{jacobian_of(*graph, options, parts)});
  }
  std::string text = cat(option_text("jacobian", {&options.in_mask}), ' ', options.num_values,
                         options.forward ? " forward" : " reverse");
  return transformed<JacobianGraph>(graph, std::move(text),
                                    [&] { return jacobian(graph, options); });
}

Linearized::Linearized(GraphRef graph, Mask inputs, size_t num_values)
    : graph_(std::move(graph)),
      inputs_(std::move(inputs)),
      num_values_(num_values),
      later_(are_varying_known()) {
  if (later_) {
    made_ = std::make_shared<Made>();
    made_->out_mask = moving(graph_, inputs_);
    for (uint32_t i = 0; i < graph_->num_inputs(); ++i) made_->residuals.push_back({true, i});
    forward_ = graph_;
    return;
  }
  bool at_once = runs_at_once();
  tokens_ = rule_tokens(*graph_);
  std::optional<Kept> kept;
  if (!tokens_.empty()) {
    kept.emplace(*tokens_[0], graph_,
                 cat(at_once ? "at once " : "traced ", option_text("linearize", {&inputs_}), ' ',
                     num_values));
    made_ = kept->find<Made>();
    if (made_) forward_ = with_rule_objects(made_->forward);
    if (forward_) return;
  }
  full_ = unlocked(*graph_, [&] { return linearize(graph_, {.in_mask = inputs_}); });
  forward_ = kept && at_once ? stripped(full_->forward) : full_->forward;
  made_ = std::make_shared<Made>();
  made_->out_mask = full_->out_mask;
  made_->residuals = full_->residuals;
  if (!kept) return;
  made_->forward = to_keep(forward_, at_once);
  if (made_->forward) kept->keep(made_);
}

const LinearizedGraph& Linearized::full() const {
  if (full_) return *full_;
  auto again = unlocked(*graph_, [&] { return linearize(graph_, {.in_mask = inputs_}); });
  if (again->residuals != made_->residuals || again->out_mask != made_->out_mask ||
      again->forward->output_types() != forward_->output_types())
    raise_error("TreeStructureError",
                "expected the same residuals of a forward rule that is traced again; got others");
  full_ = std::move(again);
  return *full_;
}

GraphRef Linearized::form(GraphRef (Made::*which)[2], FunctionRef<GraphRef()> make) const {
  // The backward rules that count are those of now.
  bool current = std::all_of(tokens_.begin(), tokens_.end(),
                             [](const RuleTokenRef& token) { return token->is_current(); });
  if (tokens_.empty() || !current) return make();
  bool at_once = runs_at_once();
  GraphRef& known = (made_.get()->*which)[at_once];
  if (GraphRef found = known ? with_rule_objects(known) : nullptr) return found;
  GraphRef made = make();
  if (at_once) made = stripped(made);
  known = to_keep(made, at_once);
  return made;
}

GraphRef Linearized::push() const {
  if (later_)
    return outputs_from(
        derivative_later("pushforward", without_effects(graph_), inputs_, made_->out_mask),
        graph_->outputs().size());
  return form(&Made::push, [&] { return full().linear; });
}

GraphRef Linearized::pull() const {
  if (later_) {
    Mask outputs = out_mask();
    for (size_t i = num_values_; i < outputs.size(); ++i) outputs[i] = false;
    return outputs_from(derivative_later("pullback", without_effects(graph_), inputs_, outputs),
                        graph_->outputs().size());
  }
  return form(&Made::pull, [&] {
    const Mask& mask = out_mask();
    auto count = std::count(mask.begin(), mask.begin() + num_values_, true);
    return transposed(full().linear, residuals().size(), static_cast<size_t>(count));
  });
}

TransposeOptions from_first(const Graph& linear, size_t num_residuals, size_t num_cotangents) {
  TransposeOptions options;
  options.linear.resize(num_residuals, false);
  options.linear.resize(linear.num_inputs(), true);
  options.cotangents.resize(num_cotangents, true);
  options.cotangents.resize(linear.outputs().size(), false);
  options.instantiate = true;
  return options;
}

GraphRef transposed(const GraphRef& linear, size_t num_residuals, size_t num_cotangents) {
  TransposeOptions options = from_first(*linear, num_residuals, num_cotangents);
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
