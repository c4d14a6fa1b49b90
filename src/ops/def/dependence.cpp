// Which values and outputs of a graph depend on which inputs.
#include "ops/def/dependence.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include "ops/def/walk.h"
#include "weft/text.h"

namespace weft {

std::vector<bool> dependent_values(const Graph& graph, const Mask& inputs) {
  std::vector<bool> depends(inputs.begin(), inputs.end());
  depends.resize(graph.num_values());
  for (const Op& op : graph.ops()) {
    std::span<const Value> xs = graph.operands(op);
    bool any = std::any_of(xs.begin(), xs.end(),
                           [&](Value v) { return !v.is_literal() && depends[v.id]; });
    std::fill_n(depends.begin() + op.results_begin, op.num_results, any);
  }
  return depends;
}

namespace {

bool is_differentiable(TypeRef type) { return is_inexact(type->dtype()); }

// Whether something of an operand gets into the results of an op without a flow rule.
bool takes(const OpDef& d, size_t operand, Flow flow) {
  if (flow != Flow::kTangents) return true;
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

// A walk that visits a value once, when it is found to have what is looked for. Ops with flow rules
// wait until nothing else is left, so that a rule is asked rarely and with much known.
class Walk {
 public:
  bool has(Value v) const { return !v.is_literal() && found_[v.id]; }

 protected:
  Walk(const Graph& graph, Flow flow, Carries carries)
      : graph_(graph), flow_(flow), carries_(carries), found_(graph.num_values()) {}

  void mark(Value v) {
    if (v.is_literal() || found_[v.id]) return;
    found_[v.id] = true;
    pending_.push_back(v);
  }
  // Calls follow(value) for each value found, and ask(op) for the next op that waits: the first
  // one, or backwards the last.
  template <typename Follow, typename Ask>
  void run(Follow&& follow, Ask&& ask) {
    for (;;) {
      while (!pending_.empty()) {
        Value v = pending_.back();
        pending_.pop_back();
        follow(v);
      }
      if (ops_.empty()) return;
      auto at = flow_ == Flow::kNeeds ? std::prev(ops_.end()) : ops_.begin();
      const Op& op = graph_.op(*at);
      ops_.erase(at);
      ask(op);
    }
  }
  Value input_of_carry(size_t i) const {
    return graph_.input(static_cast<uint32_t>(carries_.first_input + i));
  }
  Mask mask_of(std::span<const Value> vs) const {
    Mask mask;
    for (Value v : vs) mask.push_back(has(v));
    return mask;
  }
  Mask results_of(const Op& op) const {
    Mask mask;
    for (uint32_t i = 0; i < op.num_results; ++i) mask.push_back(found_[op.results_begin + i]);
    return mask;
  }

  const Graph& graph_;
  Flow flow_;
  Carries carries_;
  std::vector<bool> found_;
  std::vector<Value> pending_;
  std::set<uint32_t> ops_;
};

class Forward : public Walk {
 public:
  Forward(const Graph& graph, Flow flow, const Mask& inputs, Carries carries)
      : Walk(graph, flow, carries), users_(graph.num_values()), next_(graph.num_values()) {
    for (uint32_t i = 0; i < graph.ops().size(); ++i)
      for (Value v : graph.operands(graph.op(i)))
        if (!v.is_literal()) users_[v.id].push_back(i);
    for (size_t i = 0; i < carries.num; ++i)
      if (Value v = graph.outputs()[i]; !v.is_literal()) next_[v.id].push_back(i);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i]) mark(graph.input(static_cast<uint32_t>(i)));
    run([&](Value v) { follow(v); },
        [&](const Op& op) {
          Mask operands = mask_of(graph.operands(op));
          Mask results = flowed(*op.info, op.attrs, flow, operands, op.num_results).results;
          for (uint32_t i = 0; i < op.num_results; ++i)
            if (results[i]) reach(graph.result(op, i));
        });
  }
  Mask outputs() const { return mask_of(graph_.outputs()); }

 private:
  void reach(Value v) {
    if (flow_ != Flow::kTangents || is_differentiable(graph_.type(v))) mark(v);
  }
  void follow(Value from) {
    for (size_t i : next_[from.id]) reach(input_of_carry(i));
    for (uint32_t index : users_[from.id]) {
      const Op& op = graph_.op(index);
      const OpDef& d = def(*op.info);
      if (d.flow) {
        ops_.insert(index);
        continue;
      }
      std::span<const Value> xs = graph_.operands(op);
      for (size_t i = 0; i < xs.size(); ++i) {
        if (xs[i] != from || !takes(d, i, flow_)) continue;
        for (uint32_t r = 0; r < op.num_results; ++r) reach(graph_.result(op, r));
      }
    }
  }

  std::vector<SmallVector<uint32_t, 2>> users_;  // ops
  std::vector<SmallVector<size_t, 1>> next_;     // carries
};

class Backward : public Walk {
 public:
  Backward(const Graph& graph, const Mask& outputs, Carries carries)
      : Walk(graph, Flow::kNeeds, carries) {
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) mark(graph.outputs()[i]);
    if (graph.effects() != kPure)
      for (uint32_t i = 0; i < graph.ops().size(); ++i)
        if (effects_of(*graph.op(i).info, graph.op(i).attrs) != kPure) need(graph.op(i), i);
    run([&](Value v) { follow(v); },
        [&](const Op& op) {
          Mask operands =
              flowed(*op.info, op.attrs, flow_, results_of(op), op.num_operands).operands;
          for (uint32_t i = 0; i < op.num_operands; ++i)
            if (operands[i]) mark(graph.operand(op, i));
        });
  }
  Mask inputs() const {
    Mask mask;
    for (uint32_t i = 0; i < graph_.num_inputs(); ++i) mask.push_back(found_[i]);
    return mask;
  }

 private:
  void follow(Value v) {
    if (const Op* op = graph_.producer(v)) {
      need(*op, static_cast<uint32_t>(op - graph_.ops().data()));
    } else if (v.id >= carries_.first_input && v.id < carries_.first_input + carries_.num) {
      mark(graph_.outputs()[v.id - carries_.first_input]);
    }
  }
  void need(const Op& op, uint32_t index) {
    if (def(*op.info).flow) {
      ops_.insert(index);
    } else {
      for (Value v : graph_.operands(op)) mark(v);
    }
  }
};

// Whether a tangent of an operand may get into the results of an op; a flow rule says of which.
bool may_take_tangent(const OpDef& d, size_t operand) {
  return d.flow || takes(d, operand, Flow::kTangents);
}

// What was found about a graph. One entry among what is kept on it, however many masks are asked
// for.
struct FlowMemo {
  static constexpr size_t kMax = 256;
  mutable std::mutex mutex;
  mutable std::unordered_map<std::string, Mask> known;
};

}  // namespace

bool has_tangent(const Builder& builder, Value v, const std::function<bool(Value)>& input_has) {
  auto may_have = [&](Value x) { return !x.is_literal() && is_differentiable(builder.type(x)); };
  // The ops that it may come through, by their first results, and which of their results have one.
  // Operands are made before results.
  std::map<uint32_t, Mask> found;
  std::vector<Value> pending{v};
  while (!pending.empty()) {
    Value x = pending.back();
    pending.pop_back();
    const Op* op = may_have(x) ? builder.producer(x) : nullptr;
    if (!op || !found.try_emplace(op->results_begin).second) continue;
    std::span<const Value> xs = builder.operands(*op);
    for (size_t i = 0; i < xs.size(); ++i)
      if (may_take_tangent(def(*op->info), i)) pending.push_back(xs[i]);
  }
  auto has = [&](Value x) -> bool {
    if (!may_have(x)) return false;
    const Op* op = builder.producer(x);
    return op ? found.at(op->results_begin)[x.id - op->results_begin] : input_has(x);
  };
  for (auto& [first, results] : found) {
    const Op& op = *builder.producer(Value{first});
    std::span<const Value> xs = builder.operands(op);
    Mask operands;
    for (size_t i = 0; i < xs.size(); ++i)
      operands.push_back(may_take_tangent(def(*op.info), i) && has(xs[i]));
    bool any = std::find(operands.begin(), operands.end(), true) != operands.end();
    results = any ? flowed(*op.info, op.attrs, Flow::kTangents, operands, op.num_results).results
                  : Mask(op.num_results, false);
  }
  return has(v);
}

void FlowCtx::through(const GraphRef& graph, Mask& inputs, Mask& outputs, Carries carries) {
  bool forwards = flow != Flow::kNeeds;
  const Mask& from = forwards ? inputs : outputs;
  std::string key = cat(static_cast<int>(flow), ':', carries.first_input, ':', carries.num, ':');
  for (bool m : from) key += m ? '1' : '0';
  auto memo = graph->cached<FlowMemo>("flow", [] { return std::make_shared<FlowMemo>(); });
  std::optional<Mask> made;
  {
    std::lock_guard lock(memo->mutex);
    if (auto known = memo->known.find(key); known != memo->known.end()) made = known->second;
  }
  if (!made) {
    made = forwards ? Forward(*graph, flow, from, carries).outputs()
                    : Backward(*graph, from, carries).inputs();
    std::lock_guard lock(memo->mutex);
    if (memo->known.size() >= FlowMemo::kMax) memo->known.clear();
    memo->known.emplace(std::move(key), *made);
  }
  Mask& to = forwards ? outputs : inputs;
  for (size_t i = 0; i < to.size(); ++i) to[i] = to[i] || (*made)[i];
  for (size_t i = 0; i < carries.num; ++i) {
    bool& in = inputs[carries.first_input + i];
    in = outputs[i] = in || outputs[i];
  }
}

std::shared_ptr<const Mask> dependent_outputs(const GraphRef& graph, const Mask& inputs) {
  std::string key = "dependent_outputs:";
  for (bool m : inputs) key += m ? '1' : '0';
  return graph->cached<Mask>(key, [&] {
    return std::make_shared<Mask>(Forward(*graph, Flow::kDepends, inputs, {}).outputs());
  });
}

FlowCtx flowed(const OpInfo& op, const AttrsRef& attrs, Flow flow, const Mask& known,
               size_t num_others) {
  Mask others(num_others);
  bool forwards = flow != Flow::kNeeds;
  FlowCtx c{flow, op, attrs, forwards ? known : others, forwards ? others : known};
  if (const FlowRule& rule = def(op).flow) {
    rule(c);
  } else {
    c.all();
  }
  return c;
}

}  // namespace weft
