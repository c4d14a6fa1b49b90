#include "ops/control/recompute.h"

#include <map>
#include <optional>
#include <unordered_set>

#include "ops/control/call.h"
#include "ops/def/regions.h"
#include "ops/def/walk.h"

namespace weft {
namespace {

// A layer that is called from many places has a residual for each op and place. Nobody writes so
// many places by hand that they outnumber the ops by this factor.
constexpr size_t kMaxResidualsPerOp = 64;
constexpr size_t kFewResiduals = 1024;  // which no program is too small for

// Ops of a graph and of those that it holds, each counted once.
size_t num_distinct_ops(const GraphRef& graph) {
  std::unordered_set<const Graph*> seen{graph.get()};
  std::vector<const Graph*> pending{graph.get()};
  size_t total = 0;
  while (!pending.empty()) {
    const Graph& next = *pending.back();
    pending.pop_back();
    total += next.ops().size();
    for (const Op& op : next.ops())
      for_each_graph(op.attrs, [&](const GraphRef& held) {
        if (seen.insert(held.get()).second) pending.push_back(held.get());
      });
  }
  return total;
}
bool are_too_many(size_t num_values, const GraphRef& graph) {
  return num_values > kFewResiduals && num_values > kMaxResidualsPerOp * num_distinct_ops(graph);
}

// A forward graph in two.
struct Halves {
  GraphRef first;   // inputs -> the first outputs, what is kept
  GraphRef again;   // the needed inputs, what was kept -> the wanted outputs
  Mask inputs;      // needed by `again`
  size_t num_kept;  // values
};

class Halver {
 public:
  explicit Halver(const SavePolicy* policy) : policy_(policy) {}

  // What of the outputs is `wanted`, `again` returns; `first` returns the first ones.
  Halves halve(const Graph& forward, size_t num_first, const Mask& wanted) {
    Plan plan = make_plan(forward, wanted);
    Halves out;
    for (uint32_t i = 0; i < forward.num_inputs(); ++i) out.inputs.push_back(plan.is_needed[i]);
    TypeRefs kept_types;
    out.first = first_half(forward, num_first, plan, kept_types);
    out.again = second_half(forward, wanted, plan, out.inputs, kept_types);
    out.num_kept = kept_types.size();
    return out;
  }

 private:
  enum class Fate : uint8_t { kLeft, kRepeated, kKept };
  // What becomes of each op, and of calls that are halved themselves.
  struct Plan {
    std::vector<bool> is_needed;  // per value: by `again`
    std::vector<Fate> fates;      // per op
    std::map<uint32_t, std::shared_ptr<const Halves>> calls;
  };

  Plan make_plan(const Graph& graph, const Mask& wanted) {
    Plan plan{std::vector<bool>(graph.num_values()), std::vector<Fate>(graph.ops().size()), {}};
    auto need = [&](Value v) {
      if (!v.is_literal()) plan.is_needed[v.id] = true;
    };
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) need(graph.outputs()[i]);
    for (uint32_t index = static_cast<uint32_t>(graph.ops().size()); index-- > 0;) {
      const Op& op = graph.op(index);
      Mask needed = results_of(op, plan.is_needed);
      if (!any(needed)) continue;
      bool repeatable = effects_of(*op.info, without_effects(op.attrs)) == kPure;
      if (def(*op.info).call == CallKind::kInline && (policy_ || !repeatable)) {
        // A policy looks at the ops that a call makes, as if they stood here.
        auto halves = halves_of(callee(op), needed);
        if (halves->num_kept == 0 || !are_too_many(halves->num_kept, callee(op))) {
          for (uint32_t i = 0; i < op.num_operands; ++i)
            if (halves->inputs[i]) need(graph.operand(op, i));
          plan.fates[index] = Fate::kRepeated;
          plan.calls.emplace(index, std::move(halves));
          continue;
        }
        repeatable = false;
      }
      if (!repeatable || (policy_ && policy_->saves(*op.info, op.attrs))) {
        plan.fates[index] = Fate::kKept;
        continue;
      }
      plan.fates[index] = Fate::kRepeated;
      for (Value v : graph.operands(op)) need(v);
    }
    return plan;
  }

  static Mask results_of(const Op& op, const std::vector<bool>& values) {
    Mask mask;
    for (uint32_t i = 0; i < op.num_results; ++i) mask.push_back(values[op.results_begin + i]);
    return mask;
  }

  // Once per callee, however often it is called.
  std::shared_ptr<const Halves> halves_of(const GraphRef& graph, const Mask& wanted) {
    auto& known = known_[{graph.get(), std::vector<bool>(wanted.begin(), wanted.end())}];
    if (!known) known = std::make_shared<Halves>(halve(*graph, graph->outputs().size(), wanted));
    return known;
  }

  GraphRef first_half(const Graph& forward, size_t num_first, const Plan& plan,
                      TypeRefs& kept_types) {
    GraphBuilder b;
    b.set_hash_consing(true);
    ValueMap map(forward, b);
    std::vector<Value> inputs = copy_inputs(forward, b, map);
    Values kept;
    uint32_t next = 0;
    copy_ops(forward, b, map, [&](const Op& op, std::span<const Value> operands) {
      uint32_t index = next++;
      auto call = plan.calls.find(index);
      if (call == plan.calls.end()) {
        Values results = copy_op(forward, b, op, operands);
        for (uint32_t i = 0; i < op.num_results; ++i)
          if (plan.fates[index] == Fate::kKept && plan.is_needed[op.results_begin + i])
            kept.push_back(results[i]);
        return results;
      }
      const GraphRef& first = call->second->first;
      Values results =
          b.add_typed(*op.info, operands, with_callee(op.attrs, first), first->output_types());
      kept.append(std::span<const Value>(results).subspan(op.num_results));
      results.resize(op.num_results);
      return results;
    });
    Values outputs = map(forward.outputs().first(num_first));
    outputs.append(kept);
    for (Value v : kept) kept_types.push_back(b.type(v));
    return b.finish(outputs);
  }

  GraphRef second_half(const Graph& forward, const Mask& wanted, const Plan& plan,
                       const Mask& inputs, const TypeRefs& kept_types) {
    GraphBuilder b;
    b.set_hash_consing(true);
    ValueMap map(forward, b);
    for (uint32_t i = 0; i < forward.num_inputs(); ++i)
      if (inputs[i]) map.set(forward.input(i), b.input(forward.input_types()[i]));
    Values kept;
    for (TypeRef type : kept_types) kept.push_back(b.input(type));
    std::span<const Value> unread(kept);
    auto read = [&](size_t n) {
      auto piece = unread.first(n);
      unread = unread.subspan(n);
      return piece;
    };
    uint32_t next = 0;
    copy_ops(forward, b, map, [&](const Op& op, std::span<const Value> operands) -> Values {
      uint32_t index = next++;
      Mask needed = results_of(op, plan.is_needed);
      if (plan.fates[index] == Fate::kLeft) return {};
      if (plan.fates[index] == Fate::kKept) return scattered(needed, read(count(needed)));
      auto call = plan.calls.find(index);
      if (call == plan.calls.end()) return copy_op(forward, b, op, operands);
      const Halves& halves = *call->second;
      Values args = picked(Values(operands), halves.inputs);
      args.append(read(halves.num_kept));
      return scattered(needed, b.add_typed(*op.info, args, with_callee(op.attrs, halves.again),
                                           halves.again->output_types()));
    });
    Values outputs;
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) outputs.push_back(map(forward.outputs()[i]));
    return b.finish(outputs);
  }

  const SavePolicy* policy_;
  std::map<std::pair<const Graph*, std::vector<bool>>, std::shared_ptr<const Halves>> known_;
};

// The two calls that stand for one.
struct Recomputed {
  GraphRef forward;  // operands -> results, what is kept
  GraphRef linear;   // operands, what was kept, tangents -> tangents
  Mask out_mask;
};

std::shared_ptr<const Recomputed> recomputed(const LinearizedGraph& split, size_t num_results,
                                             const SavePolicy* policy) {
  const Graph& forward = *split.forward;
  Mask wanted(forward.outputs().size());
  for (const Residual& r : split.residuals)
    if (!r.is_input) wanted[r.index] = true;
  Halves halves = Halver(policy).halve(forward, num_results, wanted);
  auto out = std::make_shared<Recomputed>();
  out->forward = halves.first;
  out->out_mask = split.out_mask;

  size_t num_tangents = split.linear->num_inputs() - split.residuals.size();
  TypeRefs types(forward.input_types());
  types.append(TypeRefs(halves.again->input_types().last(halves.num_kept)));
  types.append(TypeRefs(split.linear->input_types().last(num_tangents)));
  out->linear = make_graph(types, [&](Builder& b, std::span<const Val> in) {
    Reader read(in);
    Vals operands(read.take(forward.num_inputs()));
    Vals args = picked(operands, halves.inputs);
    args.append(read.take(halves.num_kept));
    Vals made = inlined(b, halves.again, args);
    Vals outputs = Reader(made).take(wanted), linear_args;
    for (const Residual& r : split.residuals)
      linear_args.push_back(r.is_input ? operands[r.index] : outputs[r.index]);
    linear_args.append(read.rest());
    return inlined(b, split.linear, linear_args);
  });
  return out;
}

}  // namespace

void linearize_by_recomputation(GraphJvpCtx& c, const SavePolicy* policy) {
  const GraphRef& source = callee(c.op, c.attrs);
  size_t num_results = c.out_types.size();
  auto split = c.transforms->linearize(source, {.in_mask = c.tangent_mask()});
  auto make = [&] { return recomputed(*split, num_results, policy); };
  // Policies are objects of users, which a graph is not to keep alive.
  auto halves = policy ? make() : split->forward->cached<Recomputed>("recomputed", make);

  Values made = call(c, c.operands, halves->forward);
  std::span<const Value> results(made);
  c.results = Values(results.first(num_results));
  Values args(c.operands);
  args.append(results.subspan(num_results));
  append_present(args, c.tangents);
  Values tangents;
  if (!halves->linear->outputs().empty()) tangents = call(c, args, halves->linear);
  c.result_tangents = scattered(halves->out_mask, tangents);
}

bool has_too_many_residuals(const GraphRef& callee, const LinearizedGraph& split) {
  return are_too_many(split.residuals.size(), callee);
}

}  // namespace weft
