// cond: one of several graphs, chosen by an index. Operand 0 is the index, an i32 scalar that must
// be in range; the others are the inputs of every branch.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "ops/control/family.h"
#include "ops/control/loop_layout.h"
#include "ops/def/axes.h"
#include "ops/def/dependence.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/def/regions.h"
#include "weft/placements.h"

namespace weft {
namespace {

const std::vector<GraphRef>& branches(const AttrRecord& attrs) { return attrs.graphs("branches"); }

TypeRefs infer_cond(const InferCtx& c) {
  const std::vector<GraphRef>& graphs = branches(c.attr());
  if (c.size() == 0 || c.in(0) != scalar_type(DType::kI32))
    c.fail(ErrorKind::kType, "expected an index of type i32[] first; got ", operand_types(c));
  if (graphs.empty()) c.fail(ErrorKind::kValue, "expected at least one branch; got none");
  std::vector<TypeRef> results = graphs[0]->output_types();
  for (size_t k = 0; k < graphs.size(); ++k) {
    const Graph& graph = *graphs[k];
    std::string name = cat("branch ", k);
    if (graph.num_inputs() != c.size() - 1)
      c.fail(ErrorKind::kType, "expected ", c.size() - 1, " inputs of ", name,
             ", one per operand after the index; got ", graph.num_inputs());
    if (graph.outputs().size() != results.size())
      c.fail(ErrorKind::kType, "expected ", results.size(), " outputs of ", name,
             ", as of branch 0; got ", graph.outputs().size());
    for (uint32_t i = 0; i < graph.num_inputs(); ++i)
      check_region_type(c, name, "input", i, c.in(i + 1), graph.input_types()[i]);
    std::vector<TypeRef> outputs = graph.output_types();
    for (size_t i = 0; i < results.size(); ++i)
      check_region_type(c, name, "output", i, results[i], outputs[i]);
  }
  return TypeRefs(std::span<const TypeRef>(results));
}

AttrsRef with_branches(const AttrsRef& attrs, std::vector<GraphRef> graphs) {
  return attrs->with({{"branches", std::move(graphs)}});
}

// The op with other branches and operands.
Vals apply_cond(const RuleCtx& c, Vals operands, std::vector<GraphRef> graphs) {
  operands.insert(0, c.x(0));
  AttrsRef attrs = with_branches(c.attrs, std::move(graphs));
  return vals_of(c.b, c.b.add(c.op, values_of(operands), attrs));
}

Vals branch_operands(const RuleCtx& c) {
  Vals out;
  for (size_t i = 1; i < c.size(); ++i) out.push_back(c.x(i));
  return out;
}

// The index decides over all results that the branches do not agree on, and is always needed.
void flow_through_branches(FlowCtx& c) {
  Mask inputs(std::span<const bool>(c.operands).subspan(1));
  for (const GraphRef& graph : branches(*c.attrs)) c.through(graph, inputs, c.results);
  for (size_t i = 0; i < inputs.size(); ++i) c.operands[i + 1] = inputs[i];
  if (c.flow == Flow::kNeeds) c.operands[0] = true;
  if (c.flow != Flow::kTangents && c.flow != Flow::kNeeds && c.operands[0]) c.all();
}

// One result per branch, all with the outputs that any of them has: transform(graph, instantiate).
template <typename Transform>
auto transform_branches(const GraphJvpCtx& c, Transform&& transform) {
  Mask outputs = tangent_flow(c).results;
  for (;;) {
    std::vector<decltype(transform(branches(c.attr())[0], outputs))> results;
    Mask made = outputs;
    for (const GraphRef& graph : branches(c.attr())) {
      results.push_back(transform(graph, outputs));
      for (size_t i = 0; i < made.size(); ++i) made[i] = made[i] || results.back()->out_mask[i];
    }
    if (made == outputs) return std::pair(std::move(results), outputs);
    outputs = made;
  }
}

void jvp_cond(GraphJvpCtx& c) {
  Mask in_mask = c.tangent_mask();
  in_mask.erase(0);
  auto [made, out_mask] =
      transform_branches(c, [&](const GraphRef& graph, const Mask& instantiate) {
        return c.transforms->jvp(graph, {.in_mask = in_mask, .instantiate = instantiate});
      });
  std::vector<GraphRef> graphs;
  for (const auto& jvp : made) graphs.push_back(jvp->graph);
  Vals operands = branch_operands(c);
  append_present(operands, vals_of(c.b, c.tangents));
  Vals results = apply_cond(c, operands, std::move(graphs));
  Reader read(results);
  c.results = values_of(read.take(c.out_types.size()));
  c.result_tangents = values_of(read.take(out_mask));
}

// What the linear branches need of the forward ones. Residuals that are operands or results of the
// cond are passed on; the others become results, and branches share these by type, since only one
// of them runs.
struct BranchResiduals {
  std::vector<uint32_t> operands;  // inputs of the branches
  std::vector<uint32_t> results;   // outputs of the branches
  TypeRefs slots;
  // Per branch and residual: which of the operands, then results, then slots it is.
  std::vector<std::vector<size_t>> places;
  // Per branch: the output of the forward graph that fills each slot, -1 for none.
  std::vector<std::vector<int>> fillers;
};

// Numbers in the order in which they came, each once.
class Numbered {
 public:
  explicit Numbered(std::vector<uint32_t>& list) : list_(list) {}
  size_t operator()(uint32_t x) {
    auto [at, fresh] = index_.try_emplace(x, list_.size());
    if (fresh) list_.push_back(x);
    return at->second;
  }

 private:
  std::vector<uint32_t>& list_;
  std::unordered_map<uint32_t, size_t> index_;
};

BranchResiduals place_residuals(std::span<const std::shared_ptr<const LinearizedGraph>> splits,
                                size_t num_results) {
  BranchResiduals out;
  Numbered operand(out.operands), result(out.results);
  for (const auto& split : splits)
    for (const Residual& r : split->residuals) {
      if (r.is_input) {
        operand(r.index);
      } else if (r.index < num_results) {
        result(r.index);
      }
    }
  size_t first_slot = out.operands.size() + out.results.size();
  std::unordered_map<TypeRef, std::vector<size_t>> slots;  // of each type
  for (const auto& split : splits) {
    std::unordered_map<TypeRef, size_t> num_taken;
    std::vector<size_t>& places = out.places.emplace_back();
    std::vector<int>& fillers = out.fillers.emplace_back();
    for (const Residual& r : split->residuals) {
      if (r.is_input) {
        places.push_back(operand(r.index));
        continue;
      }
      if (r.index < num_results) {
        places.push_back(out.operands.size() + result(r.index));
        continue;
      }
      TypeRef type = split->forward->type(split->forward->outputs()[r.index]);
      size_t next = num_taken[type]++;
      if (next == slots[type].size()) {
        slots[type].push_back(out.slots.size());
        out.slots.push_back(type);
      }
      size_t slot = slots[type][next];
      fillers.resize(out.slots.size(), -1);
      fillers[slot] = static_cast<int>(r.index);
      places.push_back(first_slot + slot);
    }
  }
  for (std::vector<int>& fillers : out.fillers) fillers.resize(out.slots.size(), -1);
  return out;
}

void linearize_cond(GraphJvpCtx& c) {
  Mask in_mask = c.tangent_mask();
  in_mask.erase(0);
  auto [splits, out_mask] =
      transform_branches(c, [&](const GraphRef& graph, const Mask& instantiate) {
        return c.transforms->linearize(graph, {.in_mask = in_mask, .instantiate = instantiate});
      });
  size_t num_results = c.out_types.size();
  BranchResiduals residuals = place_residuals(splits, num_results);

  std::vector<GraphRef> forward, linear;
  for (size_t k = 0; k < splits.size(); ++k) {
    const GraphRef& graph = splits[k]->forward;
    forward.push_back(make_graph(graph->input_types(), [&](Builder& b, std::span<const Val> xs) {
      Vals made = inlined(b, graph, xs);
      Vals out(std::span<const Val>(made).first(num_results));
      for (size_t slot = 0; slot < residuals.slots.size(); ++slot) {
        int filler = residuals.fillers[k][slot];
        out.push_back(filler < 0 ? zeros(b, residuals.slots[slot])
                                 : made[static_cast<size_t>(filler)]);
      }
      return out;
    }));
  }
  Vals results = apply_cond(c, branch_operands(c), std::move(forward));
  c.results = values_of(std::span<const Val>(results).first(num_results));
  c.result_tangents = Values(num_results);
  if (!any(out_mask)) return;

  Vals operands;
  for (uint32_t i : residuals.operands) operands.push_back(c.x(i + 1));
  for (uint32_t i : residuals.results) operands.push_back(results[i]);
  for (size_t i = num_results; i < results.size(); ++i) operands.push_back(results[i]);
  size_t num_residuals = operands.size();
  append_present(operands, vals_of(c.b, c.tangents));
  TypeRefs types = types_of(operands);
  for (size_t k = 0; k < splits.size(); ++k)
    linear.push_back(make_graph(types, [&](Builder& b, std::span<const Val> xs) {
      Vals args;
      for (size_t place : residuals.places[k]) args.push_back(xs[place]);
      args.append(xs.subspan(num_residuals));
      return inlined(b, splits[k]->linear, args);
    }));
  Vals tangents = apply_cond(c, operands, std::move(linear));
  c.result_tangents = values_of(Reader(tangents).take(out_mask));
}

void transpose_cond(TransposeCtx& c) {
  TransposeOptions options;
  Vals operands;
  for (size_t i = 1; i < c.size(); ++i) {
    options.linear.push_back(c.linear(i));
    if (!c.linear(i)) operands.push_back(c.x(i));
  }
  for (Value ct : c.cotangents) options.cotangents.push_back(static_cast<bool>(ct));
  append_present(operands, vals_of(c.b, c.cotangents));

  std::vector<std::shared_ptr<const TransposedGraph>> made;
  Mask out_mask(count(options.linear));
  for (const GraphRef& graph : branches(c.attr())) {
    made.push_back(c.transforms->transpose(graph, options));
    for (size_t i = 0; i < out_mask.size(); ++i)
      out_mask[i] = out_mask[i] || made.back()->out_mask[i];
  }
  if (!any(out_mask)) return;
  SmallVector<size_t, 8> linear;  // operands
  for (size_t i = 1; i < c.size(); ++i)
    if (c.linear(i)) linear.push_back(i);

  std::vector<GraphRef> graphs;
  for (const auto& transposed : made)
    graphs.push_back(
        make_graph(transposed->graph->input_types(), [&](Builder& b, std::span<const Val> xs) {
          Vals cts = inlined(b, transposed->graph, xs);
          Vals scattered = Reader(cts).take(transposed->out_mask);
          Vals out;
          for (size_t i = 0; i < out_mask.size(); ++i) {
            if (!out_mask[i]) continue;
            bool is_zero = !transposed->out_mask[i];
            out.push_back(is_zero ? zeros(b, c.in_types[linear[i]]) : scattered[i]);
          }
          return out;
        }));
  Vals cts = apply_cond(c, operands, std::move(graphs));
  Vals scattered = Reader(cts).take(out_mask);
  for (size_t i = 0; i < out_mask.size(); ++i)
    if (out_mask[i]) c.add(linear[i], scattered[i]);
}

// The operand that all branches return as result i, if there is one.
std::optional<size_t> operand_returned(const RuleCtx& c, size_t i) {
  const std::vector<GraphRef>& graphs = branches(c.attr());
  Value first = graphs[0]->outputs()[i];
  if (first.is_literal() || first.id >= graphs[0]->num_inputs()) return {};
  bool agree = std::all_of(graphs.begin(), graphs.end(),
                           [&](const GraphRef& g) { return g->outputs()[i] == first; });
  return agree ? std::optional<size_t>(first.id + 1) : std::nullopt;
}

// Lanes that choose differently: every branch runs, for all lanes, and each lane selects. What all
// branches return of their operands stays as it is.
void batch_by_select(BatchCtx& c) {
  check_lanes_may_run(c, branches(c.attr()), "the predicate or index");
  BatchDims in_dims(c.dims.subspan(1));
  BatchDims out_dims(c.out_types.size(), 0);
  std::vector<Vals> cases;
  for (const GraphRef& graph : branches(c.attr()))
    cases.push_back(inlined(c.b,
                            c.transforms->vmap(graph, vmap_options(c, in_dims, out_dims))->graph,
                            branch_operands(c)));
  Val index = c.x(0);
  for (size_t i = 0; i < c.out_types.size(); ++i) {
    if (std::optional<size_t> k = operand_returned(c, i)) {
      c.result(c.x(*k), c.dim(*k));
      continue;
    }
    Vals xs{broadcast_in_dim(index, cases[0][i].shape(), {0})};
    for (const Vals& results : cases) xs.push_back(results[i]);
    c.result(apply(registry().get("select_n"), xs, nullptr)[0], 0);
  }
}

void batch_cond(BatchCtx& c) {
  if (c.batched(0)) return batch_by_select(c);
  BatchDims in_dims(c.dims.subspan(1));
  size_t n = c.out_types.size();
  // A result is mapped if it is in any branch, at axis 0 unless all agree on another.
  BatchDims out_dims;
  for (const GraphRef& graph : branches(c.attr())) {
    auto mapped = c.transforms->vmap(graph, vmap_options(c, in_dims, BatchDims(n, kAnyDim)));
    if (out_dims.empty()) out_dims = mapped->out_dims;
    for (size_t i = 0; i < n; ++i)
      if (out_dims[i] != mapped->out_dims[i]) out_dims[i] = 0;
  }
  std::vector<GraphRef> graphs;
  for (const GraphRef& graph : branches(c.attr()))
    graphs.push_back(c.transforms->vmap(graph, vmap_options(c, in_dims, out_dims))->graph);
  Vals results = apply_cond(c, branch_operands(c), std::move(graphs));
  for (size_t i = 0; i < n; ++i) c.result(results[i], out_dims[i]);
}

// Over which axes the branches' results vary must not depend on which of them is taken.
void check_alike(const ShardCtx& c) {
  ShardOptions options{.axes = c.axes, .inputs = {}, .at_least = {}, .strict = true};
  for (AxisSet set : c.varying.subspan(1)) options.inputs.push_back(set);
  SmallVector<AxisSet, 8> first;
  for (const GraphRef& graph : branches(c.attr())) {
    SmallVector<AxisSet, 8> own = c.transforms->shard(graph, options)->outputs;
    if (first.empty()) first = own;
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i] != first[i])
        fail(ErrorKind::kType,
             "[cond] expected branches whose results vary over the same axes of the mesh; got, as ",
             "result ", i, ", ", c.text(c.out_types[i], first[i]), " and ",
             c.text(c.out_types[i], own[i]), "\n  Cast the one that does not with ",
             cast_text(c, first[i] ^ own[i]), '.');
  }
}

// Operands and results vary over the axes over which the index does, too: along these, devices take
// different branches, and the sum of cotangents that a pvary stands for has to be outside of them.
void shard_cond(ShardCtx& c) {
  if (casts_must_be_written(c)) check_alike(c);
  AxisSet index = c.varying[0];
  ShardOptions options{.axes = c.axes, .inputs = {}, .at_least = {}, .strict = c.strict};
  Vals operands;
  for (size_t i = 1; i < c.size(); ++i) {
    options.inputs.push_back(joined(c.varying[i], index));
    operands.push_back(c.as(i, options.inputs.back()));
  }
  options.at_least = SmallVector<AxisSet, 8>(c.out_types.size(), index);
  SmallVector<AxisSet, 8> all = options.at_least;
  for (const GraphRef& graph : branches(c.attr())) {
    auto made = c.transforms->shard(graph, options);
    for (size_t i = 0; i < all.size(); ++i) all[i] = joined(all[i], made->outputs[i]);
  }
  options.at_least = all;
  std::vector<GraphRef> graphs;
  for (const GraphRef& graph : branches(c.attr()))
    graphs.push_back(c.transforms->shard(graph, options)->graph);
  c.results = values_of(apply_cond(c, operands, std::move(graphs)));
  c.result_varying = options.at_least;
}

AttrsRef prune_cond(PruneCtx& c) {
  Mask inputs(std::span<const bool>(c.operands).subspan(1));
  std::vector<GraphRef> graphs;
  for (const GraphRef& graph : branches(*c.attrs))
    graphs.push_back(c.narrowed(graph, c.results, inputs));
  return with_branches(c.attrs, std::move(graphs));
}

// What any branch held becomes an input of all of them.
LiftedOp lift_from_branches(const AttrsRef& attrs) {
  LiftedOp lifted;
  std::unordered_map<const AttrObject*, size_t> known;
  std::vector<std::shared_ptr<const LiftedGraph>> inner;
  std::vector<std::vector<size_t>> places;
  TypeRefs types;
  for (const GraphRef& graph : branches(*attrs)) {
    inner.push_back(lift_constants(graph));
    places.emplace_back();
    for (const ObjectRef& object : inner.back()->constants) {
      auto [place, fresh] = known.try_emplace(object.get(), lifted.operands.size());
      places.back().push_back(place->second);
      if (!fresh) continue;
      lifted.operands.push_back({1, object});
      types.push_back(static_cast<const HeldValue&>(*object).type());
    }
  }
  size_t num_lifted = types.size();
  types.append(branches(*attrs)[0]->input_types());
  std::vector<GraphRef> graphs;
  for (size_t k = 0; k < inner.size(); ++k)
    graphs.push_back(make_graph(types, [&](Builder& b, std::span<const Val> xs) {
      Vals args;
      for (size_t place : places[k]) args.push_back(xs[place]);
      args.append(xs.subspan(num_lifted));
      return inlined(b, inner[k]->graph, args);
    }));
  lifted.attrs = with_branches(attrs, std::move(graphs));
  return lifted;
}

const GraphRef& known_branch(const AttrRecord& attrs, const Literal& index) {
  const std::vector<GraphRef>& graphs = branches(attrs);
  int64_t last = static_cast<int64_t>(graphs.size()) - 1;
  return graphs[static_cast<size_t>(std::clamp<int64_t>(index.as_int(), 0, last))];
}

void emit_cond(EmitCtx& c) {
  auto branch_args = [&] {
    std::vector<std::string> args;
    for (size_t i = 1; i < c.size(); ++i) args.push_back(c.in(i));
    return args;
  };
  if (const Literal* known = c.literal(0)) {
    const Graph& branch = *known_branch(c.attr(), *known);
    std::vector<std::string> results = c.inline_graph(branch, branch_args());
    for (size_t i = 0; i < results.size(); ++i) c.set_out(i, std::move(results[i]));
    return;
  }
  std::string index = c.in(0), token = c.token();
  if (size_t count = branches(c.attr()).size(); count > 1) {  // beyond its range XLA takes the last
    auto bound = [&](size_t i) {
      return c.constant(make_literal(c.in_type(0)->dtype(), static_cast<int64_t>(i)), {});
    };
    std::string operands[] = {bound(0), index, bound(count - 1)};
    TypeRef types[] = {c.in_type(0), c.in_type(0), c.in_type(0)};
    index = emit_op(c, "stablehlo.clamp", operands, types, c.in_type(0));
  }
  std::vector<std::string> args = branch_args();
  Text text;
  text << "\"stablehlo.case\"(" << index << ") (";
  bool first = true;
  for (const GraphRef& graph : branches(c.attr())) {
    text << (first ? "" : ", ") << c.region_on(*graph, args, "stablehlo.return", token);
    first = false;
  }
  text << ") : " << signature(c.in_types.first(1), c.out_types, false, !token.empty());
  emit_results(c, text.view());
}

Vals fold_index(SimplifyCtx& c) {
  const std::vector<GraphRef>& graphs = branches(c.attr());
  std::optional<Literal> index = c.splat(c.x(0));
  if (!index && graphs.size() > 1) return {};
  const GraphRef& chosen = index ? known_branch(c.attr(), *index) : graphs[0];
  return inlined(c.b, chosen, branch_operands(c));
}

// What results are if all branches return the same operand or literal there, or return there what
// they return for an earlier result.
class KnownResults {
 public:
  explicit KnownResults(SimplifyCtx& c) : c_(c), graphs_(branches(c.attr())) {
    for (size_t i = 0; i < c.out_types.size(); ++i) {
      std::vector<uint32_t> returned;
      for (const GraphRef& graph : graphs_)
        if (!graph->outputs()[i].is_literal()) returned.push_back(graph->outputs()[i].id);
      bool has_literal = returned.size() < graphs_.size();
      earlier_.push_back(has_literal ? i
                                     : first_.try_emplace(std::move(returned), i).first->second);
    }
  }

  // None if it is not known.
  Val operator()(size_t i, std::span<const Val> results) const {
    auto all_agree = [&](auto&& is_it) {
      return std::all_of(graphs_.begin(), graphs_.end(), is_it);
    };
    const Graph& first = *graphs_[0];
    Value v = first.outputs()[i];
    if (v.is_literal()) {
      Literal x = first.literal(v);
      bool same = all_agree([&](const GraphRef& g) {
        return g->outputs()[i].is_literal() && g->literal(g->outputs()[i]) == x;
      });
      return same ? Val{&c_.b, c_.b.literal(x)} : Val{};
    }
    if (std::optional<size_t> k = operand_returned(c_, i)) return c_.x(*k);
    return earlier_[i] < i ? results[earlier_[i]] : Val{};
  }

 private:
  SimplifyCtx& c_;
  const std::vector<GraphRef>& graphs_;
  std::map<std::vector<uint32_t>, size_t> first_;
  std::vector<size_t> earlier_;  // the first result for which all branches return the same values
};

Vals forward_results(SimplifyCtx& c) {
  size_t n = c.out_types.size();
  KnownResults known(c);
  Mask kept(n, true);
  Vals placeholders(n, c.x(0));
  for (size_t i = 0; i < n; ++i) kept[i] = !known(i, placeholders).builder;
  if (count(kept) == n) return {};
  std::vector<GraphRef> graphs;
  for (const GraphRef& graph : branches(c.attr()))
    graphs.push_back(make_graph(graph->input_types(), [&](Builder& b, std::span<const Val> xs) {
      return picked(inlined(b, graph, xs), kept);
    }));
  bool has_effects = effects_of(c.op, c.attrs) != kPure;
  bool stays = any(kept) || has_effects;
  Vals results =
      Reader(stays ? apply_cond(c, branch_operands(c), std::move(graphs)) : Vals{}).take(kept);
  for (size_t i = 0; i < n; ++i)
    if (!kept[i]) results[i] = known(i, results);
  return results;
}

Cost cost_cond(const CostCtx& c) {
  Cost most;
  for (const GraphRef& graph : branches(*c.attrs)) {
    Cost cost = c.graph_cost(*graph);
    most.flops = std::max(most.flops, cost.flops);
    most.transcendentals = std::max(most.transcendentals, cost.transcendentals);
    most.bytes = std::max(most.bytes, cost.bytes);
  }
  return most;
}

// Every branch gives what all of them have for their checks; only one of them runs.
void check_cond(CheckCtx& c) {
  std::vector<std::shared_ptr<const CheckedGraph>> inner;
  std::vector<TypeRefs> types;
  for (const GraphRef& graph : branches(c.attr())) {
    inner.push_back(c.checked(graph));
    types.push_back(failure_types(*inner.back()));
  }
  std::vector<GraphRef> graphs;
  for (size_t k = 0; k < inner.size(); ++k) {
    const GraphRef& graph = inner[k]->graph;
    graphs.push_back(make_graph(graph->input_types(), [&](Builder& b, std::span<const Val> xs) {
      Vals made = inlined(b, graph, xs);
      Vals out(std::span<const Val>(made).first(inner[k]->num_outputs));
      for (size_t other = 0; other < inner.size(); ++other)
        out.append(other == k ? Vals(std::span<const Val>(made).subspan(inner[k]->num_outputs))
                              : nothing_failed(b, types[other]));
      return out;
    }));
  }
  Vals made = apply_cond(c, branch_operands(c), std::move(graphs));
  Reader read(made);
  c.results = values_of(read.take(c.out_types.size()));
  c.fail_in(read.rest());
}

OpDef cond_op() {
  OpDef d;
  d.name = "cond";
  d.doc = "The results of one of several graphs, chosen by an index.";
  d.attrs = {{"branches", AttrType::kGraphs}, auto_pcast_attr()};
  d.multiple_results = true;
  d.infer = infer_cond;
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = jvp_cond;
  d.graph_linearize = linearize_cond;
  d.transpose = transpose_cond;
  d.batch = batch_cond;
  d.shard = shard_cond;
  d.place = [](PlaceCtx& c) {
    std::vector<ShardingRef> first;
    for (const GraphRef& branch : c.attr().graphs("branches")) {
      std::vector<ShardingRef> own = place_graph(c, branch, c.in.subspan(1));
      if (first.empty()) first = own;
      for (size_t i = 0; i < own.size(); ++i) {
        if (own[i] == first[i]) continue;
        if (c.strict)
          fail(ErrorKind::kSharding, "[cond] expected branches whose results are split alike; got ",
               split_text(c.out_types[i], first[i]), " and ", split_text(c.out_types[i], own[i]),
               " for result ", i, "\n  Bring one into another sharding with weft.reshard.");
        first[i] = make_sharding({.mesh = c.mesh});
      }
    }
    for (ShardingRef s : first) c.out.push_back(s);
  };
  d.flow = flow_through_branches;
  d.prune = prune_cond;
  d.lift = lift_from_branches;
  d.check = check_cond;
  d.in_kernel = is_same_in_kernel;
  d.emit = emit_cond;
  d.simplify = {
      {"cond_index", "cond(constant, ...) -> the branch", fold_index},
      {"cond_forward", "what all branches return of their operands -> that", forward_results}};
  d.cost = cost_cond;
  return d;
}

}  // namespace

void register_cond(OpRegistry& r) { r.add(cond_op()); }

}  // namespace weft
