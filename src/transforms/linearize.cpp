// linearize: runs the jvp rules through a builder that keeps what depends on tangents apart. Ops
// that touch a tangent go to the linear graph, all others to the forward builder; forward values
// that the linear graph needs are its residuals.
#include <algorithm>
#include <unordered_map>

#include "ops/def/dependence.h"
#include "ops/def/selected.h"
#include "transforms/differentiate.h"
#include "transforms/driver.h"
#include "transforms/prune.h"
#include "transforms/rule_transforms.h"
#include "transforms/split.h"
#include "weft/build.h"

namespace weft {
namespace {

const Transforms& splitting();

// Values of the forward builder keep their ids; those of the linear graph have kLinearBit set.
class SplitBuilder final : public Builder {
 public:
  explicit SplitBuilder(Builder& forward) : forward_(forward) {
    linear_.set_hash_consing(true);
    loc_ = forward.loc();
  }

  static bool is_linear(Value v) { return !(v.id & Value::kLiteralBit) && (v.id & kLinearBit); }

  Value tangent_input(TypeRef type) { return outer(linear_.input(type)); }

  // The value in the linear graph.
  Value in_linear(Value v) {
    if (is_linear(v)) return {v.id & ~kLinearBit};
    if (const Literal* x = forward_.as_literal(v)) return linear_.literal(*x);
    auto [known, fresh] = crossed_.try_emplace(v.id);
    if (fresh) known->second = cross(v);
    return known->second;
  }

  GraphRef finish(std::span<const Value> linear_outputs) {
    return linear_.finish_ordered(linear_outputs, residual_inputs_);
  }
  const std::vector<Value>& residuals() const { return residuals_; }

  Values add(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs) override {
    if (!touches_tangent(operands)) return at_loc(forward_).add(op, operands, attrs);
    if (def(op).flow)
      return add_typed(op, operands, attrs, infer_types(op, types_of(operands), attrs));
    return add_linear(op, operands, attrs, {});
  }
  Values add_typed(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs,
                   std::span<const TypeRef> types) override {
    if (!touches_tangent(operands)) return at_loc(forward_).add_typed(op, operands, attrs, types);
    if (def(op).flow) {
      Mask linear;
      for (Value v : operands) linear.push_back(is_linear(v));
      Mask results = flowed(op, attrs, Flow::kDepends, linear, types.size()).results;
      if (std::find(results.begin(), results.end(), false) != results.end())
        return taken_apart(def(op), operands, attrs, types);
    }
    return add_linear(op, operands, attrs, types);
  }
  Values add_whole(const OpInfo& op, std::span<const Value> operands,
                   const AttrsRef& attrs) override {
    if (!touches_tangent(operands)) return at_loc(forward_).add(op, operands, attrs);
    return outer(at_loc(linear_).add(op, in_linear(operands), attrs));
  }
  Value literal(const Literal& x) override { return forward_.literal(x); }
  TypeRef type(Value v) const override {
    return is_linear(v) ? linear_.type({v.id & ~kLinearBit}) : forward_.type(v);
  }
  const Literal* as_literal(Value v) const override {
    return is_linear(v) ? nullptr : forward_.as_literal(v);
  }
  // Not known: the ops of linear values have operands in another numbering.
  const Op* producer(Value) const override { return nullptr; }
  std::span<const Value> operands(const Op&) const override { return {}; }

 private:
  static constexpr uint32_t kLinearBit = 0x40000000u;

  static bool touches_tangent(std::span<const Value> operands) {
    return std::any_of(operands.begin(), operands.end(), is_linear);
  }
  // Result types may be left out.
  Values add_linear(const OpInfo& op, std::span<const Value> operands, const AttrsRef& attrs,
                    std::span<const TypeRef> types) {
    Values xs = in_linear(operands);
    at_loc(linear_);
    if (std::count_if(operands.begin(), operands.end(), is_linear) == 1) {
      size_t i = std::find_if(operands.begin(), operands.end(), is_linear) - operands.begin();
      std::optional<Selected> by;
      if (made_by<"select_n">(Val{&linear_, xs[i]}))
        by = selected_tangent({&linear_, xs[i]}, def(op), types_of(operands), types);
      if (by) {
        xs[i] = by->kept.value;
        Val made = select_as(*by, {&linear_, linear_.add(op, xs, attrs)[0]});
        return {outer(made.value)};
      }
    }
    return outer(types.empty() ? linear_.add(op, xs, attrs)
                               : linear_.add_typed(op, xs, attrs, types));
  }
  TypeRefs types_of(std::span<const Value> vs) const {
    TypeRefs types;
    for (Value v : vs) types.push_back(type(v));
    return types;
  }
  // An op that computes forward values and linear ones together, as two ops: what needs the forward
  // values must not wait for tangents. To its rule a linear value is zero with a tangent, and its
  // graphs, which are linear in such values already, are split but not differentiated. A call whose
  // rules know it as a whole only is replaced by its ops.
  Values taken_apart(const OpDef& op, std::span<const Value> operands, const AttrsRef& attrs,
                     std::span<const TypeRef> types) {
    if (op.call == CallKind::kWhole) return inline_graph(*callee(op, attrs), operands);
    TypeRefs in_types = types_of(operands);
    Values values, tangents;
    for (size_t i = 0; i < operands.size(); ++i) {
      bool linear = is_linear(operands[i]);
      values.push_back(linear ? zeros(*this, in_types[i]).value : operands[i]);
      tangents.push_back(linear ? operands[i] : Value{});
    }
    GraphJvpCtx c{{*this, op, attrs, values, in_types, types, &splitting()}, tangents, {}, {}};
    op.graph_linearize(c);
    for (size_t i = 0; i < types.size(); ++i)
      if (c.result_tangents[i]) c.results[i] = c.result_tangents[i];
    return c.results;
  }
  Builder& at_loc(Builder& to) {
    to.set_loc(loc_);
    return to;
  }
  static Value outer(Value v) {
    if (v.id >= kLinearBit) fail(ErrorKind::kValue, "linearize handles at most 2**30 values");
    return {v.id | kLinearBit};
  }
  static Values outer(Values vs) {
    for (Value& v : vs) v = outer(v);
    return vs;
  }
  Values in_linear(std::span<const Value> vs) {
    Values out;
    for (Value v : vs) out.push_back(in_linear(v));
    return out;
  }

  // The one place that decides what is a residual: every forward value that the linear graph needs,
  // but for constants (made of literals alone), which are made again.
  Value cross(Value v) {
    if (v.id >= kLinearBit) fail(ErrorKind::kValue, "linearize handles at most 2**30 values");
    const Op* made_by = forward_.producer(v);
    if (made_by && is_constant(*made_by)) {
      Values operands = in_linear(forward_.operands(*made_by));
      uint32_t index = v.id - made_by->results_begin;
      return linear_.add(*made_by->info, operands, made_by->attrs)[index];
    }
    residuals_.push_back(v);
    residual_inputs_.push_back(linear_.input(forward_.type(v)));
    return residual_inputs_.back();
  }
  bool is_constant(const Op& op) const {
    std::span<const Value> xs = forward_.operands(op);
    return std::all_of(xs.begin(), xs.end(), [](Value v) { return v.is_literal(); }) &&
           op.info->effects == kPure && !takes_graphs(*op.info);
  }

  Builder& forward_;
  GraphBuilder linear_;
  std::unordered_map<uint32_t, Value> crossed_;  // forward id -> value in the linear graph
  std::vector<Value> residuals_;                 // forward values
  std::vector<Value> residual_inputs_;  // the inputs of the linear graph that stand for them
};

// The walk over a graph that is differentiated, and the one over a graph that is linear in the
// inputs with tangents already. That one only takes known values and linear ones apart: outputs
// that have tangents are these, and have the value zero.
using Walk = DualValues (*)(SplitBuilder& b, const Graph& graph, std::span<const Value> args,
                            std::span<const Value> tangents, const Mask& instantiate);

DualValues differentiated(SplitBuilder& b, const Graph& graph, std::span<const Value> args,
                          std::span<const Value> tangents, const Mask& instantiate) {
  // A tangent that depends on none is zero, since the map of tangents is linear.
  DifferentiateOptions rules{.graph_rule = &OpDef::graph_linearize,
                             .is_zero = [](Value t) { return !SplitBuilder::is_linear(t); },
                             .instantiate = instantiate};
  return differentiate(b, graph, args, tangents, rules);
}

DualValues taken_apart(SplitBuilder& b, const Graph& graph, std::span<const Value> args,
                       std::span<const Value> tangents, const Mask& instantiate) {
  std::vector<Value> inputs(args.begin(), args.end());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (tangents[i]) inputs[i] = tangents[i];
  DualValues out;
  for (Value v : b.inline_graph(graph, inputs)) {
    size_t i = out.outputs.size();
    bool has_tangent = SplitBuilder::is_linear(v) || (!instantiate.empty() && instantiate[i]);
    out.outputs.push_back(has_tangent ? zeros(b, graph.type(graph.outputs()[i])).value : v);
    out.tangents.push_back(has_tangent ? v : Value{});
  }
  return out;
}

Linearization walked_into(Builder& b, const Graph& graph, std::span<const Value> args,
                          const LinearizeOptions& options, Walk walk) {
  SplitBuilder split(b);
  std::vector<Value> tangents(graph.num_inputs());
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    if (options.in_mask[i]) tangents[i] = split.tangent_input(graph.input_types()[i]);
  }
  Loc loc = b.loc();
  DualValues duals = walk(split, graph, args, tangents, options.instantiate);

  Linearization result;
  std::vector<Value> linear_outputs;
  for (Value t : duals.tangents) {
    result.out_mask.push_back(static_cast<bool>(t));
    if (t) linear_outputs.push_back(split.in_linear(t));
  }
  b.set_loc(loc);
  result.outputs = std::move(duals.outputs);
  uint32_t num_residuals = static_cast<uint32_t>(split.residuals().size());
  // Callbacks belong to the forward pass, also those of ops that the linear graph repeats.
  GraphRef repeated = without_effects(split.finish(linear_outputs));
  if (repeated->effects() != kPure)
    fail(ErrorKind::kNotImplemented,
         "linearize expected results of io_callback to be computed once; got one that the loop or "
         "call around it would compute again for the derivative");
  Pruned linear = prune(repeated, num_residuals);
  result.linear = std::move(linear.graph);
  for (size_t i = 0; i < num_residuals; ++i) {
    if (linear.kept_inputs[i]) result.residuals.push_back(split.residuals()[i]);
  }
  return result;
}

std::shared_ptr<const LinearizedGraph> make_linearized(const Graph& graph,
                                                       const LinearizeOptions& options, Walk walk) {
  GraphBuilder b;
  b.set_hash_consing(true);
  std::vector<Value> inputs;
  for (TypeRef type : graph.input_types()) inputs.push_back(b.input(type));
  Linearization split = walked_into(b, graph, inputs, options, walk);

  auto result = std::make_shared<LinearizedGraph>();
  std::vector<Value> outputs = split.outputs;
  std::unordered_map<uint32_t, uint32_t> output_index;
  for (uint32_t i = 0; i < outputs.size(); ++i) output_index.try_emplace(outputs[i].id, i);
  for (Value v : split.residuals) {
    if (v.id < inputs.size()) {
      result->residuals.push_back({.is_input = true, .index = v.id});
      continue;
    }
    auto [known, fresh] = output_index.try_emplace(v.id, static_cast<uint32_t>(outputs.size()));
    if (fresh) outputs.push_back(v);
    result->residuals.push_back({.is_input = false, .index = known->second});
  }
  result->forward = prune(b.finish_ordered(outputs, inputs, graph.num_consts())).graph;
  result->linear = std::move(split.linear);
  result->out_mask = std::move(split.out_mask);
  return result;
}

std::shared_ptr<const LinearizedGraph> walked(std::string key, const GraphRef& graph,
                                              const LinearizeOptions& options, Walk walk) {
  append_key(key, options.in_mask);
  append_key(key, options.instantiate);
  return graph->cached<LinearizedGraph>(key,
                                        [&] { return make_linearized(*graph, options, walk); });
}

// What the rules of an op are given whose graphs are only taken apart.
class Splitting final : public RuleTransforms {
 public:
  bool only_splits() const override { return true; }
  std::shared_ptr<const LinearizedGraph> linearize(const GraphRef& graph,
                                                   const LinearizeOptions& options) const override {
    return walked("split", graph, options, taken_apart);
  }
  // Both halves in one graph.
  std::shared_ptr<const JvpGraph> jvp(const GraphRef& graph,
                                      const JvpOptions& options) const override {
    auto halves = linearize(graph, {options.in_mask, options.instantiate});
    GraphBuilder b;
    b.set_hash_consing(true);
    std::vector<Value> inputs, args;
    for (TypeRef type : graph->input_types()) inputs.push_back(b.input(type));
    Values made = b.inline_graph(*halves->forward, inputs);
    for (const Residual& r : halves->residuals)
      args.push_back(r.is_input ? inputs[r.index] : made[r.index]);
    for (uint32_t i = 0; i < graph->num_inputs(); ++i)
      if (options.in_mask[i]) args.push_back(b.input(graph->input_types()[i]));
    made.resize(graph->outputs().size());
    made.append(b.inline_graph(*halves->linear, args));
    return std::make_shared<JvpGraph>(JvpGraph{b.finish(made), halves->out_mask});
  }
};

const Transforms& splitting() {
  static const Splitting transforms;
  return transforms;
}

}  // namespace

Linearization linearize_into(Builder& b, const Graph& graph, std::span<const Value> args,
                             const LinearizeOptions& options) {
  check_tangent_mask("linearize", graph, options.in_mask);
  return walked_into(b, graph, args, options, differentiated);
}

Linearization split_into(Builder& b, const Graph& graph, std::span<const Value> args,
                         const Mask& linear) {
  return walked_into(b, graph, args, {.in_mask = linear, .instantiate = {}}, taken_apart);
}

std::shared_ptr<const LinearizedGraph> linearize(const GraphRef& graph,
                                                 const LinearizeOptions& options) {
  check_tangent_mask("linearize", *graph, options.in_mask);
  return walked("linearize", graph, options, differentiated);
}

}  // namespace weft
