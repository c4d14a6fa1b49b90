// Which values and outputs of a graph depend on which inputs.
#include "ops/dependence.h"

#include <algorithm>

#include "ops/walk.h"

namespace weft {

std::vector<bool> dependent_values(const Graph& graph, const Mask& inputs) {
  std::vector<bool> depends(inputs.begin(), inputs.end());
  depends.resize(graph.num_values());
  auto is_dependent = [&](Value v) { return !v.is_literal() && depends[v.id]; };
  for (const Op& op : graph.ops()) {
    std::span<const Value> xs = graph.operands(op);
    if (std::none_of(xs.begin(), xs.end(), is_dependent)) continue;
    std::shared_ptr<const Mask> through;
    if (is_call(op)) {
      Mask operands;
      for (Value v : xs) operands.push_back(is_dependent(v));
      through = dependent_outputs(callee(op), operands);
    }
    for (uint32_t i = 0; i < op.num_results; ++i)
      depends[op.results_begin + i] = !through || (*through)[i];
  }
  return depends;
}

std::shared_ptr<const Mask> dependent_outputs(const GraphRef& graph, const Mask& inputs) {
  std::string key = "dependent_outputs:";
  for (bool m : inputs) key += m ? '1' : '0';
  return graph->cached<Mask>(key, [&] {
    std::vector<bool> depends = dependent_values(*graph, inputs);
    auto outputs = std::make_shared<Mask>();
    for (Value v : graph->outputs()) outputs->push_back(!v.is_literal() && depends[v.id]);
    return outputs;
  });
}

namespace {

// A call that every transform turns into a call.
bool is_plain_call(const Op& op) { return is_call(op) && def(*op.info).call != CallKind::kWhole; }
// Whether only the op's rules know what it does.
bool is_opaque(const Op& op) { return takes_graphs(*op.info) && !is_plain_call(op); }

bool is_differentiable(TypeRef type) { return is_inexact(type->dtype()); }

// Whether something of an operand gets into the results of an op without graphs.
bool takes(const Op& op, size_t operand, Flow flow) {
  if (flow == Flow::kLanes) return true;
  const OpDef& d = def(*op.info);
  switch (d.jvp_kind) {
    case JvpKind::kZero:
      return false;
    case JvpKind::kLinear:
      return d.linear_args.empty() ||
             std::find(d.linear_args.begin(), d.linear_args.end(), operand) != d.linear_args.end();
    case JvpKind::kArgs:
      return operand < d.jvp_args.size() && d.jvp_args[operand];
    default:
      return true;
  }
}

struct Carries {
  size_t first_input = 0, num = 0;
};

std::string key_of(std::string_view what, const Mask& a, const Mask& b = {}) {
  std::string key(what);
  for (bool m : a) key += m ? '1' : '0';
  key += ':';
  for (bool m : b) key += m ? '1' : '0';
  return key;
}

// A walk that visits a value once, when it is found to have what is looked for.
class Walk {
 public:
  Walk(const Graph& graph, Carries carries) : graph_(graph), carries_(carries) {
    found_.resize(graph.num_values());
  }
  bool has(Value v) const { return !v.is_literal() && found_[v.id]; }

 protected:
  void mark(Value v) {
    if (v.is_literal() || found_[v.id]) return;
    found_[v.id] = true;
    pending_.push_back(v);
  }
  Value input(size_t i) const { return graph_.input(static_cast<uint32_t>(i)); }

  const Graph& graph_;
  Carries carries_;
  std::vector<bool> found_;
  std::vector<Value> pending_;
};

std::shared_ptr<const Mask> reached_outputs(const GraphRef& graph, Flow flow, const Mask& inputs);

class Forward : public Walk {
 public:
  Forward(const Graph& graph, Flow flow, const Mask& inputs, Carries carries)
      : Walk(graph, carries), flow_(flow), users_(graph.num_values()), next_(graph.num_values()) {
    for (uint32_t i = 0; i < graph.ops().size(); ++i)
      for (Value v : graph.operands(graph.op(i)))
        if (!v.is_literal()) users_[v.id].push_back(i);
    for (size_t i = 0; i < carries.num; ++i)
      if (Value v = graph.outputs()[i]; !v.is_literal()) next_[v.id].push_back(i);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i]) mark(input(i));
    while (!pending_.empty()) {
      Value v = pending_.back();
      pending_.pop_back();
      for (uint32_t index : users_[v.id]) visit(graph.op(index), v);
      for (size_t i : next_[v.id]) reach(input(carries.first_input + i));
    }
  }

 private:
  void reach(Value v) {
    if (flow_ == Flow::kLanes || is_differentiable(graph_.type(v))) mark(v);
  }
  void visit(const Op& op, Value from) {
    if (is_opaque(op)) return;
    std::span<const Value> xs = graph_.operands(op);
    if (is_plain_call(op)) {
      Mask operands;
      for (Value v : xs) operands.push_back(has(v));
      auto through = reached_outputs(callee(op), flow_, operands);
      for (uint32_t i = 0; i < op.num_results; ++i)
        if ((*through)[i]) reach(graph_.result(op, i));
      return;
    }
    for (size_t i = 0; i < xs.size(); ++i) {
      if (xs[i] != from || !takes(op, i, flow_)) continue;
      for (uint32_t r = 0; r < op.num_results; ++r) reach(graph_.result(op, r));
    }
  }

  Flow flow_;
  std::vector<SmallVector<uint32_t, 2>> users_;
  std::vector<SmallVector<size_t, 1>> next_;
};

std::shared_ptr<const Mask> reached_outputs(const GraphRef& graph, Flow flow, const Mask& inputs) {
  auto key = key_of(flow == Flow::kLanes ? "lanes:" : "tangents:", inputs);
  return graph->cached<Mask>(key, [&] {
    Forward walk(*graph, flow, inputs, {});
    auto outputs = std::make_shared<Mask>();
    for (Value v : graph->outputs()) outputs->push_back(walk.has(v));
    return outputs;
  });
}

std::shared_ptr<const Mask> leading_inputs(const GraphRef& graph, const Mask& outputs,
                                           const Mask& takes_part);

class Backward : public Walk {
 public:
  Backward(const Graph& graph, const Mask& outputs, const Mask& takes_part, Carries carries)
      : Walk(graph, carries), takes_part_(dependent_values(graph, takes_part)) {
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) lead(graph.outputs()[i]);
    while (!pending_.empty()) {
      Value v = pending_.back();
      pending_.pop_back();
      if (const Op* op = graph.producer(v)) {
        visit(*op);
      } else if (v.id >= carries.first_input && v.id < carries.first_input + carries.num) {
        lead(graph.outputs()[v.id - carries.first_input]);
      }
    }
  }

 private:
  void lead(Value v) {
    if (!v.is_literal() && takes_part_[v.id]) mark(v);
  }
  void visit(const Op& op) {
    if (is_opaque(op)) return;
    std::span<const Value> xs = graph_.operands(op);
    std::shared_ptr<const Mask> through;
    if (is_plain_call(op)) {
      Mask results, operands;
      for (uint32_t i = 0; i < op.num_results; ++i) results.push_back(has(graph_.result(op, i)));
      for (Value v : xs) operands.push_back(!v.is_literal() && takes_part_[v.id]);
      through = leading_inputs(callee(op), results, operands);
    }
    for (size_t i = 0; i < xs.size(); ++i)
      if (!through || (*through)[i]) lead(xs[i]);
  }

  std::vector<bool> takes_part_;
};

std::shared_ptr<const Mask> leading_inputs(const GraphRef& graph, const Mask& outputs,
                                           const Mask& takes_part) {
  return graph->cached<Mask>(key_of("leading:", outputs, takes_part), [&] {
    Backward walk(*graph, outputs, takes_part, {});
    auto inputs = std::make_shared<Mask>();
    for (uint32_t i = 0; i < graph->num_inputs(); ++i) inputs->push_back(walk.has(graph->input(i)));
    return inputs;
  });
}

Mask carries_of(const Walk& walk, const Graph& body, size_t first_carry, size_t num_carry) {
  Mask out;
  for (size_t i = 0; i < num_carry; ++i)
    out.push_back(walk.has(body.input(static_cast<uint32_t>(first_carry + i))));
  return out;
}

}  // namespace

Mask carries_reached(const Graph& body, Flow flow, const Mask& inputs, size_t first_carry,
                     size_t num_carry) {
  return carries_of(Forward(body, flow, inputs, {first_carry, num_carry}), body, first_carry,
                    num_carry);
}

Mask carries_leading_to(const Graph& body, const Mask& outputs, const Mask& takes_part,
                        size_t first_carry, size_t num_carry) {
  return carries_of(Backward(body, outputs, takes_part, {first_carry, num_carry}), body,
                    first_carry, num_carry);
}

}  // namespace weft
