// while: repeats a body on a carry as long as a condition holds. Operands are the constants of the
// condition, those of the body, then the carry.
#include <algorithm>
#include <array>

#include "ops/control/call.h"
#include "ops/control/family.h"
#include "ops/control/loop_layout.h"
#include "ops/def/axes.h"
#include "ops/def/dependence.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"

namespace weft {
namespace {

// Segments of the operands.
enum Operand : size_t { kCondConsts, kBodyConsts, kCarry };

// The attributes of a while, and where its operands stand.
struct While {
  GraphRef condition, body;
  LoopLayout in;

  explicit While(const AttrRecord& attrs)
      : condition(attrs.graph("cond_jaxpr")),
        body(attrs.graph("body_jaxpr")),
        in{{"cond_consts", static_cast<size_t>(attrs.integer("cond_nconsts"))},
           {"body_consts", static_cast<size_t>(attrs.integer("body_nconsts"))},
           {"carry", body->outputs().size()}} {}

  size_t num_carry() const { return in[kCarry].size; }
  LoopLayout of_condition() const { return in.select({kCondConsts, kCarry}); }
  LoopLayout of_body() const { return in.select({kBodyConsts, kCarry}); }
  Carries carries() const { return {in[kBodyConsts].size, num_carry()}; }
  // Whether the body returns carry i as it was.
  bool is_fixed(size_t i) const {
    return body->outputs()[i] == body->input(static_cast<uint32_t>(in[kBodyConsts].size + i));
  }
};

AttrsRef make_attrs(const AttrsRef& like, const GraphRef& condition, size_t num_cond_consts,
                    const GraphRef& body, size_t num_body_consts) {
  return like->with({{"cond_jaxpr", condition},
                     {"cond_nconsts", static_cast<int64_t>(num_cond_consts)},
                     {"body_jaxpr", body},
                     {"body_nconsts", static_cast<int64_t>(num_body_consts)}});
}

// The operands of a rule, by what they are.
struct Operands {
  Vals cond_consts, body_consts, carry;
  Operands(const Vals& all, const LoopLayout& in)
      : cond_consts(in[kCondConsts].of(all)),
        body_consts(in[kBodyConsts].of(all)),
        carry(in[kCarry].of(all)) {}
  Operands(const RuleCtx& c, const While& w) : Operands(vals_of(c.b, c.operands), w.in) {}
};

using Add = Values (Builder::*)(const OpInfo& op, std::span<const Value> operands,
                                const AttrsRef& attrs);

Vals apply_while(const RuleCtx& c, const GraphRef& condition, const GraphRef& body,
                 const Operands& x, Add add = &Builder::add) {
  AttrsRef attrs = make_attrs(c.attrs, condition, x.cond_consts.size(), body, x.body_consts.size());
  Values operands = values_of(joined({x.cond_consts, x.body_consts, x.carry}));
  return vals_of(c.b, (c.b.*add)(c.op, operands, attrs));
}

TypeRefs infer_while(const InferCtx& c) {
  int64_t cond_consts = c.attr().integer("cond_nconsts");
  int64_t body_consts = c.attr().integer("body_nconsts");
  Checked num_carry = Checked(static_cast<int64_t>(c.size())) - cond_consts - body_consts;
  if (cond_consts < 0 || body_consts < 0 || !num_carry.within(0, c.size()))
    c.fail(ErrorKind::kValue, "expected constants of condition and body among ", c.size(),
           " operands; got cond_nconsts=", cond_consts, ", body_nconsts=", body_consts);
  While w(c.attr());
  size_t carry = static_cast<size_t>(num_carry.value());
  size_t num_cond = w.in[kCondConsts].size + carry, num_body = w.in[kBodyConsts].size + carry;
  if (w.condition->num_inputs() != num_cond || w.num_carry() != carry ||
      w.body->num_inputs() != num_body)
    c.fail(ErrorKind::kType, "expected a condition of ", num_cond, " inputs and a body of ",
           num_body, " inputs and ", carry, " outputs; got ", w.condition->num_inputs(), ", ",
           w.body->num_inputs(), " and ", w.num_carry());
  std::vector<TypeRef> decides = w.condition->output_types();
  if (decides.size() != 1 || decides[0] != scalar_type(DType::kBool))
    c.fail(ErrorKind::kType, "expected a condition with one output of type bool[]; got ",
           decides.size() == 1 ? cat(decides[0]) : cat(decides.size(), " outputs"));
  w.of_condition().check_inputs(c, "the condition", *w.condition);
  w.of_body().check_inputs(c, "the body", *w.body);
  std::vector<TypeRef> outputs = w.body->output_types();
  TypeRefs results = w.in[kCarry].of(TypeRefs(c.operands));
  for (size_t i = 0; i < carry; ++i)
    check_region_type(c, "the body", "output", i, results[i], outputs[i]);
  return results;
}

// Results are the carry. What the body changes depends on how often it runs, and so on what the
// condition depends on; the condition is always needed.
void flow_through_while(FlowCtx& c) {
  While w(*c.attrs);
  LoopLayout of_condition = w.of_condition(), of_body = w.of_body();
  Mask body = of_body.pack(c.operands);
  auto through_body = [&] {
    c.through(w.body, body, c.results, w.carries());
    of_body.add_to(c.operands, body);
  };
  through_body();
  Mask condition = of_condition.pack(c.operands), decides{c.flow == Flow::kNeeds};
  if (c.flow != Flow::kTangents) c.through(w.condition, condition, decides);
  if (c.flow == Flow::kTangents || !decides[0]) return;
  of_condition.add_to(c.operands, condition);
  const Segment& carry = w.in[kCarry];
  for (size_t i = 0; i < carry.size; ++i) {
    bool& in = c.operands[carry.begin + i];
    if (c.flow == Flow::kLanes) in = in || !w.is_fixed(i);
    if (c.flow == Flow::kDepends) in = true;
    c.results[i] = c.results[i] || in;
  }
  if (c.flow == Flow::kNeeds) through_body();
}

// A loop on values and tangents: the results are those of the loop, then tangents where out_mask
// holds. Carries with a tangent from the start or after some iteration have one throughout.
Values loop_of_tangents(const GraphJvpCtx& c, Mask& out_mask) {
  While w(c.attr());
  Mask mask = tangent_flow(c).operands;
  // No tangent gets through the constants of the condition.
  for (size_t i = 0; i < w.in[kCondConsts].end(); ++i) mask[i] = false;
  const Segment& carry = w.in[kCarry];
  auto jvp = carry_fixpoint(
      mask, carry,
      [&](const Mask& inputs) {
        return c.transforms->jvp(
            w.body, {.in_mask = w.of_body().pack(inputs), .instantiate = carry.of(inputs)});
      },
      [](const JvpGraph& made, size_t i) { return made.out_mask[i]; });
  out_mask = carry.of(mask);

  Zipped in{w.in, w.in.kept(mask)}, in_body = in.select({kBodyConsts, kCarry}),
                                    out = in.select({kCarry});
  Values both = joined({Values(c.operands), instantiated_tangents(c, mask)});
  Operands x(vals_of(c.b, in.zip(both)), in.both());
  GraphRef body = zipped(jvp->graph, in_body, out);
  TypeRefs types = types_of(joined({x.cond_consts, x.carry}));
  GraphRef condition = make_graph(types, [&](Builder& b, std::span<const Val> xs) {
    return inlined(b, w.condition, xs.first(w.condition->num_inputs()));
  });
  return out.unzip(values_of(apply_while(c, condition, body, x, &Builder::add_whole)));
}

void jvp_while(GraphJvpCtx& c) {
  Mask out_mask;
  Values results = loop_of_tangents(c, out_mask);
  std::span<const Value> made(results);
  c.results = Values(made.first(c.out_types.size()));
  c.result_tangents = scattered(out_mask, made.subspan(c.out_types.size()));
}

// How often the body runs is not known beforehand, so nothing can be kept for a linear loop: that
// one computes the values again, along with the tangents. What changes in it has no transpose.
void linearize_while(GraphJvpCtx& c) {
  c.results = c.b.add_typed(c.op, c.operands, c.attrs, c.out_types);
  Mask out_mask;
  Values results = loop_of_tangents(c, out_mask);
  c.result_tangents =
      scattered(out_mask, std::span<const Value>(results).subspan(c.out_types.size()));
}

// What the body returns as it was does not depend on how often it runs.
void transpose_while(TransposeCtx& c) {
  While w(c.attr());
  for (size_t i = 0; i < w.num_carry(); ++i) {
    if (!c.has_ct(i)) continue;
    if (!w.is_fixed(i))
      fail(
          ErrorKind::kNotImplemented,
          "[while] while_loop has no reverse-mode derivative, for nothing bounds what it would "
          "have to keep\n  Give it max_steps, use scan or fori_loop with Python numbers as bounds, "
          "or forward mode (jvp, jacfwd).");
    c.add(w.in[kCarry].begin + i, c.ct(i));
  }
}

// Lanes that stop at different times: the loop runs while any lane is live, and the others keep
// their carry. Which lanes are live is a carry of its own, so the condition is evaluated once per
// iteration.
void batch_by_lanes(BatchCtx& c, const While& w, const Mask& carry_mask, const VmapGraph& condition,
                    const VmapGraph& body) {
  Operands x(c, w);
  Vals start = x.carry;
  for (size_t i = 0; i < start.size(); ++i)
    if (carry_mask[i]) start[i] = c.at(w.in[kCarry].begin + i, 0);
  auto live_lanes = [&](Builder& b, const Vals& cond_consts, const Vals& carry) {
    return inlined(b, condition.graph, joined({cond_consts, carry}));
  };
  Vals consts = joined({x.cond_consts, x.body_consts});
  Vals carry = joined({live_lanes(c.b, x.cond_consts, start), start});
  GraphRef step = make_graph(types_of(joined({consts, carry})), [&](Builder& b, auto xs) {
    Reader read(xs);
    Vals cond_consts(read.take(x.cond_consts.size())), body_consts(read.take(x.body_consts.size()));
    Val live = read.next();
    Vals old(read.rest());
    Vals next = inlined(b, body.graph, joined({body_consts, old}));
    for (size_t i = 0; i < next.size(); ++i)
      if (carry_mask[i] && !w.is_fixed(i))
        next[i] = select(broadcast_in_dim(live, next[i].shape(), {0}), next[i], old[i]);
    return joined({live_lanes(b, cond_consts, next), next});
  });
  GraphRef any_live = make_graph(types_of(carry), [&](Builder&, std::span<const Val> xs) {
    return Vals{reduce_or(xs[0], {0})};
  });
  AttrsRef attrs = make_attrs(c.attrs, any_live, 0, step, consts.size());
  Vals results = vals_of(c.b, c.b.add(c.op, values_of(joined({consts, carry})), attrs));
  for (size_t i = 0; i < w.num_carry(); ++i)
    c.result(results[i + 1], carry_mask[i] ? 0 : kNotBatched);
}

void batch_while(BatchCtx& c) {
  While w(c.attr());
  const Segment& carry = w.in[kCarry];
  // A carry is mapped at axis 0 if at all.
  auto dims_of = [&](const Mask& mask) {
    BatchDims dims(c.dims);
    for (size_t i = carry.begin; i < carry.end(); ++i) dims[i] = mask[i] ? 0 : kNotBatched;
    return dims;
  };
  Mask mask = flowed(c, Flow::kLanes, c.mapped()).operands;
  auto map_body = [&] {
    return carry_fixpoint(
        mask, carry,
        [&](const Mask& inputs) {
          BatchDims out_dims;
          for (bool mapped : carry.of(inputs)) out_dims.push_back(mapped ? 0 : kAnyDim);
          return c.transforms->vmap(
              w.body, vmap_options(c, w.of_body().pack(dims_of(inputs)), std::move(out_dims)));
        },
        [](const VmapGraph& made, size_t i) { return made.out_dims[i] != kNotBatched; });
  };
  auto body = map_body();
  auto map_condition = [&](int out_dim) {
    BatchDims in_dims = w.of_condition().pack(dims_of(mask));
    return c.transforms->vmap(w.condition, vmap_options(c, std::move(in_dims), {out_dim}));
  };
  auto condition = map_condition(kAnyDim);
  if (condition->out_dims[0] != kNotBatched) {
    check_lanes_may_run(c, std::array{w.condition, w.body}, "the condition");
    for (size_t i = 0; i < w.num_carry(); ++i)
      mask[carry.begin + i] = mask[carry.begin + i] || !w.is_fixed(i);
    body = map_body();
    return batch_by_lanes(c, w, carry.of(mask), *map_condition(0), *body);
  }
  Vals operands = vals_of(c.b, c.operands);
  for (size_t i = carry.begin; i < carry.end(); ++i)
    if (mask[i]) operands[i] = c.at(i, 0);
  Vals results = apply_while(c, condition->graph, body->graph, Operands(operands, w.in));
  for (size_t i = 0; i < w.num_carry(); ++i)
    c.result(results[i], mask[carry.begin + i] ? 0 : kNotBatched);
}

void shard_while(ShardCtx& c) {
  While w(c.attr());
  SmallVector<AxisSet, 8> varying(c.varying), of_body = w.of_body().pack(varying);
  auto body = sharded_body(c, w.body, of_body, w.carries());
  Vals operands;
  for (size_t i = 0; i < c.size(); ++i) {
    if (w.in[kCarry].has(i)) varying[i] = body->outputs[i - w.in[kCarry].begin];
    operands.push_back(c.as(i, varying[i]));
  }
  auto condition = c.transforms->shard(w.condition, {.axes = c.axes,
                                                     .inputs = w.of_condition().pack(varying),
                                                     .at_least = {},
                                                     .strict = c.strict});
  c.results = values_of(apply_while(c, condition->graph, body->graph, Operands(operands, w.in)));
  c.result_varying = body->outputs;
}

AttrsRef prune_while(PruneCtx& c) {
  While w(*c.attrs);
  LoopLayout kept = w.in.kept(c.operands);
  GraphRef condition = c.narrowed(w.condition, {true}, w.of_condition().pack(c.operands));
  GraphRef body = c.narrowed(w.body, c.results, w.of_body().pack(c.operands));
  return make_attrs(c.attrs, condition, kept[kCondConsts].size, body, kept[kBodyConsts].size);
}

LiftedOp lift_from_while(const AttrsRef& attrs) {
  While w(*attrs);
  LiftedGraphs inner = lift_graphs(w.in, std::array{w.condition, w.body});
  return {
      make_attrs(attrs, inner.graphs[0], inner.num_consts[0], inner.graphs[1], inner.num_consts[1]),
      inner.operands};
}

// The loop with what the condition gives in its carry. In StableHLO a condition returns a predicate
// alone, no token, and what it calls might be thought free of effects.
GraphRef with_carried_condition(const EmitCtx& c, const While& w) {
  return make_graph(c.in_types, [&](Builder& b, std::span<const Val> xs) {
    auto decide = [&](Builder& to, const Vals& operands) {
      return inlined(to, w.condition, w.of_condition().pack(operands));
    };
    Vals operands(xs);
    Vals consts(xs.first(w.in[kCarry].begin));
    Vals carry = joined({decide(b, operands), w.in[kCarry].of(operands)});
    GraphRef body = make_graph(types_of(joined({consts, carry})), [&](Builder& to, auto in) {
      Vals before(in);
      before.erase(consts.size());  // what the condition gave
      Vals next = inlined(to, w.body, w.of_body().pack(before));
      return joined({decide(to, joined({Vals(in.first(consts.size())), next})), next});
    });
    GraphRef condition =
        make_graph(types_of(carry), [](Builder&, std::span<const Val> in) { return Vals{in[0]}; });
    Vals made = while_loop(b, condition, body, consts, carry);
    return Vals(std::span<const Val>(made).subspan(1));
  });
}

void emit_while(EmitCtx& c) {
  While w(c.attr());
  if (w.condition->effects() != kPure) {
    std::vector<std::string> args;
    for (size_t i = 0; i < c.size(); ++i) args.push_back(c.in(i));
    std::vector<std::string> results = c.inline_graph(*with_carried_condition(c, w), args);
    for (size_t i = 0; i < results.size(); ++i) c.set_out(i, std::move(results[i]));
    return;
  }
  std::vector<std::string> cond_args, body_args;
  for (size_t i = 0; i < w.in[kCarry].begin; ++i)
    (w.in[kCondConsts].has(i) ? cond_args : body_args).push_back(c.in(i));
  Text text;
  text << "stablehlo.while(";
  for (size_t i = 0; i < w.num_carry(); ++i) {
    std::string arg = c.fresh_argument();
    text << (i ? ", " : "") << arg << " = " << c.in(w.in[kCarry].begin + i);
    cond_args.push_back(arg);
    body_args.push_back(arg);
  }
  std::string token = c.token();
  if (!token.empty()) {
    std::string arg = c.fresh_argument();
    text << (w.num_carry() ? ", " : "") << arg << " = " << token;
    token = arg;
  }
  text << ')';
  for (size_t i = 0; i < w.num_carry(); ++i)
    text << (i ? ", " : " : ") << mlir_type(c.in_type(w.in[kCarry].begin + i));
  if (!token.empty()) text << (w.num_carry() ? ", " : " : ") << kTokenType;
  text << " cond " << c.region_on(*w.condition, cond_args, "stablehlo.return");
  text << " do " << c.region_on(*w.body, body_args, "stablehlo.return", token);
  emit_results(c, text.view());
}

Vals hoist_from_body(SimplifyCtx& c) {
  While w(c.attr());
  Hoisted hoisted = hoist(w.body, w.in[kBodyConsts].size);
  if (hoisted.values.empty()) return {};
  Operands x(c, w);
  Vals args = x.body_consts;
  args.resize(w.body->num_inputs());
  x.body_consts = joined({inlined_part(c.b, *w.body, args, hoisted.values), x.body_consts});
  return apply_while(c, w.condition, hoisted.body, x);
}

// Carries that the body returns as they were become constants of condition and body.
Vals fix_carries(SimplifyCtx& c) {
  While w(c.attr());
  Mask moves;
  for (size_t i = 0; i < w.num_carry(); ++i) moves.push_back(!w.is_fixed(i));
  if (count(moves) == w.num_carry()) return {};
  Operands x(c, w);
  if (!any(moves)) return effects_of(c.op, c.attrs) == kPure ? x.carry : Vals{};
  Vals start = x.carry, fixed = picked(start, moves, false);
  x.carry = picked(start, moves);
  auto without_fixed = [&](const GraphRef& graph, const Vals& consts, bool is_body) {
    return make_graph(types_of(joined({consts, fixed, x.carry})), [&](Builder& b, auto xs) {
      Reader read(xs);
      Vals args(read.take(consts.size()));
      Reader of_fixed(read.take(fixed.size()));
      for (bool m : moves) args.push_back(m ? read.next() : of_fixed.next());
      Vals out = inlined(b, graph, args);
      return is_body ? picked(out, moves) : out;
    });
  };
  GraphRef condition = without_fixed(w.condition, x.cond_consts, false);
  GraphRef body = without_fixed(w.body, x.body_consts, true);
  x.cond_consts.append(fixed);
  x.body_consts.append(fixed);
  Vals made = apply_while(c, condition, body, x);
  Vals results = Reader(made).take(moves);
  for (size_t i = 0; i < w.num_carry(); ++i)
    if (!moves[i]) results[i] = start[i];
  return results;
}

// What failed first is carried along: of the condition, then of the body. The condition gives
// nothing but whether to go on, so its checks are made before the loop and after each iteration.
void check_while(CheckCtx& c) {
  While w(c.attr());
  auto condition = c.checked(w.condition), body = c.checked(w.body);
  Operands x(c, w);
  auto decide = [&](Builder& b, const Vals& cond_consts, std::span<const Val> carry) {
    Vals made = inlined(b, condition->graph, joined({cond_consts, Vals(carry)}));
    made.erase(0);
    return made;
  };
  Vals of_condition = decide(c.b, x.cond_consts, x.carry);
  Vals of_body = nothing_failed(c.b, failure_types(*body));
  size_t num_carry = x.carry.size(), num_cond_consts = x.cond_consts.size();
  x.carry.append(of_condition);
  x.carry.append(of_body);
  x.body_consts = joined({x.cond_consts, x.body_consts});
  TypeRefs types = types_of(joined({x.body_consts, x.carry}));
  GraphRef step = make_graph(types, [&](Builder& b, std::span<const Val> in) {
    Reader read(in);
    Vals consts(read.take(num_cond_consts)), args(read.take(w.in[kBodyConsts].size + num_carry));
    Vals conditions(read.take(of_condition.size())), bodies(read.rest());
    Vals made = inlined(b, body->graph, args);
    Reader out(made);
    Vals next(out.take(num_carry));
    // An iteration begins once the condition has been evaluated.
    Val begun = eq(conditions[0], scalar_like(conditions[0], kNothingFailed));
    Vals failed = first_failed(bodies, out.rest());
    for (size_t i = 0; i < failed.size(); ++i) failed[i] = select(begun, failed[i], bodies[i]);
    Val no_body = eq(failed[0], scalar_like(failed[0], kNothingFailed));
    Vals decided = first_failed(conditions, decide(b, consts, next));
    for (size_t i = 0; i < decided.size(); ++i)
      decided[i] = select(no_body, decided[i], conditions[i]);
    return joined({next, decided, failed});
  });
  GraphRef decides = without_effects(w.condition);
  GraphRef going_on =
      make_graph(types_of(joined({x.cond_consts, x.carry})), [&](Builder& b, auto in) {
        return inlined(b, decides, in.first(num_cond_consts + num_carry));
      });
  Vals made = apply_while(c, going_on, step, x);
  c.results = values_of(std::span<const Val>(made).first(num_carry));
  c.fail_in(std::span<const Val>(made).subspan(num_carry));
}

// Of one iteration: how many there are is not known.
Cost cost_while(const CostCtx& c) {
  While w(*c.attrs);
  Cost cost = c.graph_cost(*w.body), condition = c.graph_cost(*w.condition);
  cost.flops += condition.flops;
  cost.transcendentals += condition.transcendentals;
  cost.bytes += condition.bytes;
  return cost;
}

OpDef while_op() {
  OpDef d;
  d.name = "while";
  d.doc = "Repeats a graph on a carry as long as another graph of it gives True.";
  d.attrs = {{"cond_jaxpr", AttrType::kGraph},
             {"cond_nconsts", AttrType::kInt},
             {"body_jaxpr", AttrType::kGraph},
             {"body_nconsts", AttrType::kInt},
             auto_pcast_attr()};
  d.multiple_results = true;
  d.infer = infer_while;
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = jvp_while;
  d.graph_linearize = linearize_while;
  d.transpose = transpose_while;
  d.batch = batch_while;
  d.shard = shard_while;
  d.place = [](PlaceCtx& c) {
    While w(c.attr());
    std::span<const ShardingRef> inputs = c.in.subspan(w.in[kCondConsts].size);
    std::vector<ShardingRef> outputs = place_graph(c, w.body, inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      place_carry(c, inputs[w.in[kBodyConsts].size + i], outputs[i], i);
  };
  d.flow = flow_through_while;
  d.prune = prune_while;
  d.lift = lift_from_while;
  d.check = check_while;
  d.in_kernel = is_same_in_kernel;
  d.emit = emit_while;
  d.simplify = {
      {"while_fixed_carry", "a carry that the body returns as it was -> a constant", fix_carries},
      {"while_hoist", "what the body makes of constants alone -> made before the loop",
       hoist_from_body}};
  d.cost = cost_while;
  return d;
}

}  // namespace

Vals while_loop(Builder& b, const GraphRef& condition, const GraphRef& body, const Vals& consts,
                const Vals& carry) {
  const OpDef& loop = op_named<"while">();
  auto num_consts = static_cast<int64_t>(consts.size());
  AttrsRef attrs = AttrRecord::make(loop.name, loop.attrs,
                                    {{"cond_jaxpr", condition},
                                     {"cond_nconsts", int64_t{0}},
                                     {"body_jaxpr", body},
                                     {"body_nconsts", num_consts}});
  return vals_of(b, b.add(loop, values_of(joined({consts, carry})), attrs));
}

void register_while(OpRegistry& r) { r.add(while_op()); }

}  // namespace weft
