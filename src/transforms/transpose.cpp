// transpose: walks a linear graph backwards and accumulates cotangents. What does not depend on the
// linear inputs is computed first, forwards. Ops that hold graphs may have results of both kinds:
// such a graph is taken apart before.
#include <algorithm>
#include <unordered_map>

#include "ir/missing_value.h"
#include "ops/def/block_sum.h"
#include "ops/def/dependence.h"
#include "ops/def/selected.h"
#include "transforms/driver.h"
#include "transforms/split.h"
#include "weft/build.h"
#include "weft/custom_rules.h"

namespace weft {
namespace {

[[noreturn]] void not_linear(const OpDef& op, const Mask& linear) {
  std::string operands;
  for (size_t i = 0; i < linear.size(); ++i)
    if (linear[i]) operands += cat(operands.empty() ? "" : ", ", i);
  bool several = std::count(linear.begin(), linear.end(), true) > 1;
  fail(ErrorKind::kNotImplemented, "[", op.name, "] is not linear in ",
       several ? "operands " : "operand ", operands, several ? " together" : "");
}

class Transposer {
 public:
  Transposer(Builder& b, const Graph& graph)
      : b_(b),
        graph_(graph),
        values_(graph, b),
        is_linear_(graph.num_values()),
        cotangents_(graph.num_values()) {}

  std::vector<Value> run(std::span<const Value> args, std::span<const Value> cotangents) {
    Loc outer = b_.loc();
    for (uint32_t i = 0; i < graph_.num_inputs(); ++i) {
      is_linear_[i] = args[i].is_none();
      values_.set(graph_.input(i), args[i]);
    }
    for (const Op& op : graph_.ops()) {
      bool linear = false;
      for (Value v : graph_.operands(op)) linear |= is_linear(v);
      for (uint32_t i = 0; i < op.num_results; ++i) is_linear_[op.results_begin + i] = linear;
      if (linear) continue;
      b_.set_loc(op.loc != kNoLoc ? op.loc : outer);
      values_.set_results(op, b_.add_typed(*op.info, values_(graph_.operands(op)), op.attrs,
                                           graph_.result_types(op)));
    }

    b_.set_loc(outer);
    for (size_t i = 0; i < cotangents.size(); ++i) {
      Value output = graph_.outputs()[i];
      if (cotangents[i] && is_linear(output)) add(output, cotangents[i]);
    }
    for (auto op = graph_.ops().rbegin(); op != graph_.ops().rend(); ++op) {
      b_.set_loc(loc_or(*op, outer, kCotangentLoc));
      for (uint32_t i = 0; i < op->num_results; ++i) put_together(op->results_begin + i);
      if (has_cotangent(*op)) at_op(*op, [&] { visit(*op); });
    }
    b_.set_loc(outer);
    for (uint32_t i = 0; i < graph_.num_inputs(); ++i) put_together(i);

    std::vector<Value> result;
    for (uint32_t i = 0; i < graph_.num_inputs(); ++i) {
      if (is_linear_[i]) result.push_back(cotangents_[i]);
    }
    return result;
  }

 private:
  bool is_linear(Value v) const { return !v.is_literal() && is_linear_[v.id]; }

  bool has_cotangent(const Op& op) const {
    for (uint32_t i = 0; i < op.num_results; ++i) {
      if (cotangents_[op.results_begin + i]) return true;
    }
    return false;
  }

  void add(Value v, Value ct) {
    Value& sum = cotangents_[v.id];
    sum = sum ? sum_selected({&b_, sum}, {&b_, ct}).value : ct;
  }

  // Adds the blocks of a value's cotangent to it: those of all uses are known.
  void put_together(uint32_t id) {
    if (blocks_.empty()) return;
    auto found = blocks_.find(id);
    if (found == blocks_.end()) return;
    Value& sum = cotangents_[id];
    sum = with_blocks({&b_, sum}, graph_.type(Value{id}), std::move(found->second)).value;
    blocks_.erase(found);
  }

  void visit(const Op& op) {
    const OpDef& d = def(*op.info);
    if (!d.transpose) missing_rule(d, "reverse-mode differentiation");
    std::span<const Value> source = graph_.operands(op);
    Values operands;
    Mask linear;
    for (Value v : source) {
      linear.push_back(is_linear(v));
      operands.push_back(linear.back() ? Value{} : values_(v));
    }
    Values cts;
    for (uint32_t i = 0; i < op.num_results; ++i) cts.push_back(cotangents_[op.results_begin + i]);
    TypeRefs in_types = operand_types(graph_, op);
    std::optional<Selected> by;
    if (cts.size() == 1) by = selected_cotangent({&b_, cts[0]}, d, op.attrs, in_types, linear);
    if (by) cts[0] = by->kept.value;
    Values accumulated(source.size());
    for (size_t i = 0; i < source.size(); ++i) {
      // An operand that stands twice has its sum so far in the first place.
      if (linear[i] && !by) accumulated[i] = std::exchange(cotangents_[source[i].id], Value{});
    }
    std::function<void(size_t, Block)> keep = [&](size_t i, Block block) {
      blocks_[source[i].id].push_back(std::move(block));
    };
    TransposeCtx c{rule_ctx(b_, graph_, op, operands, in_types),
                   linear,
                   cts,
                   {accumulated.data(), accumulated.size()},
                   keep};
    try {
      d.transpose(c);
    } catch (const MissingValue&) {  // linear operands have no values, and need none
      not_linear(d, linear);
    }
    for (size_t i = 0; i < source.size(); ++i) {
      if (!accumulated[i]) continue;
      add(source[i], by ? select_as(*by, {&b_, accumulated[i]}).value : accumulated[i]);
    }
  }

  Builder& b_;
  const Graph& graph_;
  ValueMap values_;  // of what is not linear
  std::vector<bool> is_linear_;
  std::vector<Value> cotangents_;                            // none where zero
  std::unordered_map<uint32_t, std::vector<Block>> blocks_;  // what is to be added to cotangents_
};

// Whether some op has results that depend on the linear inputs and others that do not.
bool has_mixed_op(const Graph& graph, std::span<const Value> args) {
  std::vector<bool> is_linear(graph.num_values());
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) is_linear[i] = args[i].is_none();
  auto depends = [&](Value v) { return !v.is_literal() && is_linear[v.id]; };
  for (const Op& op : graph.ops()) {
    std::span<const Value> operands = graph.operands(op);
    if (std::none_of(operands.begin(), operands.end(), depends)) continue;
    std::fill_n(is_linear.begin() + op.results_begin, op.num_results, true);
    if (!def(*op.info).flow) continue;
    Mask mask;
    for (Value v : operands) mask.push_back(depends(v));
    Mask results = flowed(*op.info, op.attrs, Flow::kDepends, mask, op.num_results).results;
    if (std::find(results.begin(), results.end(), false) != results.end()) return true;
  }
  return false;
}

std::shared_ptr<const TransposedGraph> make_transposed(const Graph& graph,
                                                       const TransposeOptions& options) {
  GraphBuilder b;
  b.set_hash_consing(true);
  std::vector<Value> args(graph.num_inputs()), cotangents(graph.outputs().size());
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    if (!options.linear[i]) args[i] = b.input(graph.input_types()[i]);
  }
  for (size_t i = 0; i < cotangents.size(); ++i) {
    if (options.cotangents[i]) cotangents[i] = b.input(graph.type(graph.outputs()[i]));
  }
  auto result = std::make_shared<TransposedGraph>();
  std::vector<Value> outputs;
  size_t next = 0;
  std::vector<Value> made = transpose_into(b, graph, args, cotangents);
  for (uint32_t i = 0; i < graph.num_inputs(); ++i) {
    if (!options.linear[i]) continue;
    Value ct = made[next++];
    if (!ct && options.instantiate) ct = zeros(b, graph.input_types()[i]).value;
    result->out_mask.push_back(static_cast<bool>(ct));
    if (ct) outputs.push_back(ct);
  }
  result->graph = b.finish(outputs);
  return result;
}

}  // namespace

std::vector<Value> transpose_into(Builder& b, const Graph& graph, std::span<const Value> args,
                                  std::span<const Value> cotangents) {
  check_mask("transpose", "input", args.size(), graph.num_inputs());
  check_mask("transpose", "output", cotangents.size(), graph.outputs().size());
  if (!has_mixed_op(graph, args)) return Transposer(b, graph).run(args, cotangents);
  Mask linear;
  for (Value arg : args) linear.push_back(arg.is_none());
  Linearization halves = split_into(b, graph, args, linear);
  std::vector<Value> known = halves.residuals, wanted;
  known.resize(halves.linear->num_inputs());
  for (size_t i = 0; i < cotangents.size(); ++i)
    if (halves.out_mask[i]) wanted.push_back(cotangents[i]);
  return Transposer(b, *halves.linear).run(known, wanted);
}

static bool has_backward_rule(const GraphRef& graph) {
  return *graph->cached<bool>("has_backward_rule", [&] {
    bool found = false;
    for (const Op& op : graph->ops()) {
      if (found) break;
      if (!op.attrs) continue;
      for (const Attr& value : op.attrs->values()) {
        const auto* object = std::get_if<ObjectRef>(&value);
        found = found || (object && dynamic_cast<const CustomBackward*>(object->get()));
      }
      for_each_graph(op.attrs, [&](const GraphRef& g) { found = found || has_backward_rule(g); });
    }
    return std::make_shared<bool>(found);
  });
}

std::shared_ptr<const TransposedGraph> transpose(const GraphRef& graph,
                                                 const TransposeOptions& options) {
  check_mask("transpose", "input", options.linear.size(), graph->num_inputs());
  check_mask("transpose", "output", options.cotangents.size(), graph->outputs().size());
  std::string key = options.instantiate ? "transpose_all" : "transpose";
  append_key(key, options.linear);
  append_key(key, options.cotangents);
  auto make = [&] { return make_transposed(*graph, options); };
  // The backward rule of a user that counts is that of now.
  return has_backward_rule(graph) ? make() : graph->cached<TransposedGraph>(key, make);
}

}  // namespace weft
