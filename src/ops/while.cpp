// while: repeats a body on a carry as long as a condition holds. Operands are the constants of the
// condition, those of the body, then the carry.
#include <algorithm>
#include <array>

#include "ops/axes.h"
#include "ops/dependence.h"
#include "ops/families.h"
#include "ops/hlo_text.h"
#include "ops/regions.h"

namespace weft {
namespace {

// The attributes of a while, and where its operands stand.
struct While {
  GraphRef condition, body;
  size_t num_cond_consts, num_body_consts, num_carry;

  explicit While(const AttrRecord& attrs)
      : condition(attrs.graph("cond_jaxpr")),
        body(attrs.graph("body_jaxpr")),
        num_cond_consts(static_cast<size_t>(attrs.integer("cond_nconsts"))),
        num_body_consts(static_cast<size_t>(attrs.integer("body_nconsts"))),
        num_carry(body->outputs().size()) {}

  size_t first_body_const() const { return num_cond_consts; }
  size_t first_carry() const { return num_cond_consts + num_body_consts; }
};

AttrsRef make_attrs(const AttrsRef& like, const GraphRef& condition, size_t num_cond_consts,
                    const GraphRef& body, size_t num_body_consts) {
  return like->with({{"cond_jaxpr", condition},
                     {"cond_nconsts", static_cast<int64_t>(num_cond_consts)},
                     {"body_jaxpr", body},
                     {"body_nconsts", static_cast<int64_t>(num_body_consts)}});
}

Vals apply_while(const RuleCtx& c, const GraphRef& condition, const Vals& cond_consts,
                 const GraphRef& body, const Vals& body_consts, const Vals& carry) {
  Values operands = values_of(cond_consts);
  operands.append(values_of(body_consts));
  operands.append(values_of(carry));
  AttrsRef attrs = make_attrs(c.attrs, condition, cond_consts.size(), body, body_consts.size());
  return vals_of(c.b, c.b.add(c.op, operands, attrs));
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
  if (w.condition->num_inputs() != w.num_cond_consts + carry || w.num_carry != carry ||
      w.body->num_inputs() != w.num_body_consts + carry)
    c.fail(ErrorKind::kType, "expected a condition of ", w.num_cond_consts + carry,
           " inputs and a body of ", w.num_body_consts + carry, " inputs and ", carry,
           " outputs; got ", w.condition->num_inputs(), ", ", w.body->num_inputs(), " and ",
           w.num_carry);
  std::vector<TypeRef> decides = w.condition->output_types();
  if (decides.size() != 1 || decides[0] != scalar_type(DType::kBool))
    c.fail(ErrorKind::kType, "expected a condition with one output of type bool[]; got ",
           decides.size() == 1 ? cat(decides[0]) : cat(decides.size(), " outputs"));
  auto check_inputs = [&](std::string_view name, const Graph& graph, size_t consts, size_t first) {
    for (size_t i = 0; i < graph.num_inputs(); ++i) {
      size_t operand = i < consts ? first + i : w.first_carry() + i - consts;
      check_region_type(c, name, "input", i, c.in(operand), graph.input_types()[i]);
    }
  };
  check_inputs("the condition", *w.condition, w.num_cond_consts, 0);
  check_inputs("the body", *w.body, w.num_body_consts, w.first_body_const());
  std::vector<TypeRef> outputs = w.body->output_types();
  TypeRefs results;
  for (size_t i = 0; i < carry; ++i) {
    TypeRef type = c.in(w.first_carry() + i);
    check_region_type(c, "the body", "output", i, type, outputs[i]);
    results.push_back(type);
  }
  return results;
}

// The operands of a rule, by what they are.
struct Operands {
  Vals cond_consts, body_consts, carry;
  Operands(const RuleCtx& c, const While& w) {
    Vals all = vals_of(c.b, c.operands);
    Reader read(all);
    cond_consts = Vals(read.take(w.num_cond_consts));
    body_consts = Vals(read.take(w.num_body_consts));
    carry = Vals(read.rest());
  }
};

// A loop on values and tangents. Carries with a tangent from the start or after some iteration have
// one throughout; carry_mask becomes theirs.
Vals loop_of_tangents(const GraphJvpCtx& c, Mask& carry_mask) {
  While w(c.attr());
  Mask mask = c.tangent_mask();
  Mask const_mask = part(mask, w.first_body_const(), w.num_body_consts);
  carry_mask = carries_reached(*w.body, Flow::kTangents,
                               joined({const_mask, part(mask, w.first_carry(), w.num_carry)}),
                               w.num_body_consts, w.num_carry);
  auto jvp = carry_fixpoint(
      carry_mask,
      [&](const Mask& carry) {
        return c.transforms->jvp(w.body,
                                 {.in_mask = joined({const_mask, carry}), .instantiate = carry});
      },
      [](const JvpGraph& made, size_t i) { return made.out_mask[i]; });

  Operands x(c, w);
  Vals ts = vals_of(c.b, c.tangents);
  Vals body_consts = x.body_consts, carry = x.carry;
  for (size_t i = 0; i < w.num_body_consts; ++i)
    if (const_mask[i]) body_consts.push_back(ts[w.first_body_const() + i]);
  for (size_t i = 0; i < w.num_carry; ++i) {
    if (!carry_mask[i]) continue;
    Val t = ts[w.first_carry() + i];
    carry.push_back(t ? t : zeros(c.b, c.in_types[w.first_carry() + i]));
  }
  TypeRefs types = types_of(body_consts);
  types.append(types_of(carry));
  GraphRef body = make_graph(types, [&](Builder& b, std::span<const Val> xs) {
    Reader read(xs);
    auto consts = read.take(w.num_body_consts), const_ts = read.take(count(const_mask));
    auto carries = read.take(w.num_carry), carry_ts = read.rest();
    Vals args(consts);
    args.append(carries);
    args.append(const_ts);
    args.append(carry_ts);
    return inlined(b, jvp->graph, args);
  });
  types = types_of(x.cond_consts);
  types.append(types_of(carry));
  GraphRef condition = make_graph(types, [&](Builder& b, std::span<const Val> xs) {
    return inlined(b, w.condition, xs.first(w.condition->num_inputs()));
  });
  return apply_while(c, condition, x.cond_consts, body, body_consts, carry);
}

void jvp_while(GraphJvpCtx& c) {
  Mask carry_mask;
  Vals results = loop_of_tangents(c, carry_mask);
  Reader read(results);
  c.results = values_of(read.take(c.out_types.size()));
  c.result_tangents = values_of(read.take(carry_mask));
}

// How often the body runs is not known beforehand, so nothing can be kept for a linear loop: that
// one computes the values again, along with the tangents. It has no transpose.
void linearize_while(GraphJvpCtx& c) {
  c.results = c.b.add_typed(c.op, c.operands, c.attrs, c.out_types);
  Mask carry_mask;
  Vals results = loop_of_tangents(c, carry_mask);
  Reader read(results);
  read.take(c.out_types.size());
  c.result_tangents = values_of(read.take(carry_mask));
}

void transpose_while(TransposeCtx&) {
  fail(
      ErrorKind::kNotImplemented,
      "[while] while_loop has no reverse-mode derivative, for nothing bounds what it would have to "
      "keep\n  Give it max_steps, use scan or fori_loop with Python numbers as bounds, or forward "
      "mode "
      "(jvp, jacfwd).");
}

// Lanes that stop at different times: the loop runs while any lane is live, and the others keep
// their carry. Which lanes are live is a carry of its own, so the condition is evaluated once per
// iteration.
void batch_by_lanes(BatchCtx& c, const While& w, const Mask& carry_mask, const VmapGraph& condition,
                    const VmapGraph& body) {
  Operands x(c, w);
  Vals consts = x.cond_consts;
  consts.append(x.body_consts);
  Vals start;
  for (size_t i = 0; i < w.num_carry; ++i) {
    size_t operand = w.first_carry() + i;
    start.push_back(carry_mask[i] ? c.at(operand, 0) : c.x(operand));
  }
  auto live_lanes = [&](Builder& b, std::span<const Val> cond_consts, std::span<const Val> carry) {
    Vals args(cond_consts);
    args.append(carry);
    return inlined(b, condition.graph, args)[0];
  };
  Vals carry{live_lanes(c.b, x.cond_consts, start)};
  carry.append(start);
  TypeRefs types = types_of(consts);
  types.append(types_of(carry));
  GraphRef step = make_graph(types, [&](Builder& b, std::span<const Val> xs) {
    Reader read(xs);
    auto cond_consts = read.take(w.num_cond_consts), body_consts = read.take(w.num_body_consts);
    Val live = read.next();
    auto old = read.rest();
    Vals args(body_consts);
    args.append(old);
    Vals next = inlined(b, body.graph, args);
    for (size_t i = 0; i < next.size(); ++i)
      if (carry_mask[i])
        next[i] = select(broadcast_in_dim(live, next[i].shape(), {0}), next[i], old[i]);
    Vals out{live_lanes(b, cond_consts, next)};
    out.append(next);
    return out;
  });
  GraphRef any_live = make_graph(types_of(carry), [&](Builder&, std::span<const Val> xs) {
    return Vals{reduce_or(xs[0], {0})};
  });
  Vals results = apply_while(c, any_live, {}, step, consts, carry);
  for (size_t i = 0; i < w.num_carry; ++i)
    c.result(results[i + 1], carry_mask[i] ? 0 : kNotBatched);
}

// Whether the body returns carry i as it was.
bool is_fixed(const While& w, size_t i) {
  return w.body->outputs()[i] == w.body->input(static_cast<uint32_t>(w.num_body_consts + i));
}

void batch_while(BatchCtx& c) {
  While w(c.attr());
  BatchDims cond_dims, body_dims;
  for (size_t i = 0; i < w.num_cond_consts; ++i) cond_dims.push_back(c.dim(i));
  for (size_t i = 0; i < w.num_body_consts; ++i)
    body_dims.push_back(c.dim(w.first_body_const() + i));
  Mask carry_mask;
  for (size_t i = 0; i < w.num_carry; ++i) carry_mask.push_back(c.batched(w.first_carry() + i));

  auto carry_dims = [](const Mask& mask, int otherwise) {
    BatchDims dims;
    for (bool mapped : mask) dims.push_back(mapped ? 0 : otherwise);
    return dims;
  };
  auto map_body = [&] {
    Mask inputs;
    for (int dim : body_dims) inputs.push_back(dim != kNotBatched);
    carry_mask = carries_reached(*w.body, Flow::kLanes, joined({inputs, carry_mask}),
                                 w.num_body_consts, w.num_carry);
    return carry_fixpoint(
        carry_mask,
        [&](const Mask& mask) {
          BatchDims dims = body_dims;
          dims.append(carry_dims(mask, kNotBatched));
          return c.transforms->vmap(w.body, vmap_options(c, dims, carry_dims(mask, kAnyDim)));
        },
        [](const VmapGraph& made, size_t i) { return made.out_dims[i] != kNotBatched; });
  };
  auto map_condition = [&](int out_dim) {
    BatchDims dims = cond_dims;
    dims.append(carry_dims(carry_mask, kNotBatched));
    return c.transforms->vmap(w.condition, vmap_options(c, dims, {out_dim}));
  };
  auto body = map_body();
  auto condition = map_condition(kAnyDim);
  if (condition->out_dims[0] != kNotBatched) {
    check_lanes_may_run(c, std::array{w.condition, w.body}, "the condition");
    // What the body changes depends on when a lane stops, so it differs between lanes.
    for (size_t i = 0; i < w.num_carry; ++i) carry_mask[i] = carry_mask[i] || !is_fixed(w, i);
    body = map_body();
    return batch_by_lanes(c, w, carry_mask, *map_condition(0), *body);
  }
  Operands x(c, w);
  Vals carry;
  for (size_t i = 0; i < w.num_carry; ++i)
    carry.push_back(carry_mask[i] ? c.at(w.first_carry() + i, 0) : x.carry[i]);
  Vals results = apply_while(c, condition->graph, x.cond_consts, body->graph, x.body_consts, carry);
  for (size_t i = 0; i < w.num_carry; ++i) c.result(results[i], carry_mask[i] ? 0 : kNotBatched);
}

PrunedOp prune_while(PruneCtx& c) {
  While w(*c.attrs);
  auto carry_of = [&](const Mask& inputs, size_t consts) {
    return part(inputs, consts, w.num_carry);
  };
  Mask cond_inputs = c.needed_inputs(w.condition, {true});
  Mask carry = carry_of(cond_inputs, w.num_cond_consts);
  for (size_t i = 0; i < w.num_carry; ++i) carry[i] = carry[i] || c.results[i];
  Mask body_inputs;
  Mask leading = carries_leading_to(*w.body, carry, Mask(w.body->num_inputs(), true),
                                    w.num_body_consts, w.num_carry);
  for (size_t i = 0; i < w.num_carry; ++i) carry[i] = carry[i] || leading[i];
  for (bool grew = true; grew;) {
    grew = false;
    body_inputs = c.needed_inputs(w.body, carry);
    Mask used = carry_of(body_inputs, w.num_body_consts);
    for (size_t i = 0; i < w.num_carry; ++i) {
      grew |= used[i] && !carry[i];
      carry[i] = carry[i] || used[i];
    }
  }
  Mask cond_consts = part(cond_inputs, 0, w.num_cond_consts);
  Mask body_consts = part(body_inputs, 0, w.num_body_consts);
  GraphRef condition = c.narrowed(w.condition, {true}, joined({cond_consts, carry}));
  GraphRef body = c.narrowed(w.body, carry, joined({body_consts, carry}));
  return {make_attrs(c.attrs, condition, count(cond_consts), body, count(body_consts)),
          joined({cond_consts, body_consts, carry}), carry};
}

LiftedOp lift_from_graphs(const AttrsRef& attrs) {
  While w(*attrs);
  auto condition = lift_constants(w.condition), body = lift_constants(w.body);
  size_t cond_consts = w.num_cond_consts + condition->constants.size();
  size_t body_consts = w.num_body_consts + body->constants.size();
  LiftedOp lifted{make_attrs(attrs, condition->graph, cond_consts, body->graph, body_consts), {}};
  for (const ObjectRef& object : condition->constants) lifted.operands.push_back({0, object});
  for (const ObjectRef& object : body->constants)
    lifted.operands.push_back({w.first_body_const(), object});
  return lifted;
}

// The loop with what the condition gives in its carry. In StableHLO a condition returns a predicate
// alone, no token, and what it calls might be thought free of effects.
GraphRef with_carried_condition(const EmitCtx& c, const While& w) {
  return make_graph(c.in_types, [&](Builder& b, std::span<const Val> xs) {
    auto decide = [&](Builder& to, std::span<const Val> consts, std::span<const Val> carry) {
      Vals args(consts);
      args.append(carry);
      return inlined(to, w.condition, args)[0];
    };
    auto consts = xs.first(w.first_carry()), start = xs.subspan(w.first_carry());
    Vals carry{decide(b, consts.first(w.num_cond_consts), start)};
    carry.append(start);
    TypeRefs types = types_of(consts);
    types.append(types_of(carry));
    GraphRef body = make_graph(types, [&](Builder& to, std::span<const Val> in) {
      Vals args(in.subspan(w.first_body_const(), w.num_body_consts));
      args.append(in.subspan(w.first_carry() + 1));
      Vals next = inlined(to, w.body, args);
      Vals out{decide(to, in.first(w.num_cond_consts), next)};
      out.append(next);
      return out;
    });
    GraphRef condition =
        make_graph(types_of(carry), [](Builder&, std::span<const Val> in) { return Vals{in[0]}; });
    Values operands = values_of(consts);
    operands.append(values_of(carry));
    const OpDef& loop = registry().get("while");
    AttrsRef attrs = AttrRecord::make(loop.name, loop.attrs,
                                      {{"cond_jaxpr", condition},
                                       {"cond_nconsts", int64_t{0}},
                                       {"body_jaxpr", body},
                                       {"body_nconsts", static_cast<int64_t>(w.first_carry())}});
    Vals made = vals_of(b, b.add(loop, operands, attrs));
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
  std::vector<std::string> cond_args, body_args, carry;
  for (size_t i = 0; i < w.first_carry(); ++i)
    (i < w.num_cond_consts ? cond_args : body_args).push_back(c.in(i));
  Text text;
  text << "stablehlo.while(";
  for (size_t i = 0; i < w.num_carry; ++i) {
    std::string arg = c.fresh_argument();
    text << (i ? ", " : "") << arg << " = " << c.in(w.first_carry() + i);
    cond_args.push_back(arg);
    body_args.push_back(arg);
  }
  std::string token = c.token();
  if (!token.empty()) {
    std::string arg = c.fresh_argument();
    text << (w.num_carry ? ", " : "") << arg << " = " << token;
    token = arg;
  }
  text << ')';
  for (size_t i = 0; i < w.num_carry; ++i)
    text << (i ? ", " : " : ") << mlir_type(c.in_type(w.first_carry() + i));
  if (!token.empty()) text << (w.num_carry ? ", " : " : ") << kTokenType;
  text << " cond " << c.region_on(*w.condition, cond_args, "stablehlo.return");
  text << " do " << c.region_on(*w.body, body_args, "stablehlo.return", token);
  emit_results(c, text.view());
}

Vals hoist_from_body(SimplifyCtx& c) {
  While w(c.attr());
  Hoisted hoisted = hoist(w.body, w.num_body_consts);
  if (hoisted.values.empty()) return {};
  Operands x(c, w);
  Vals args = x.body_consts;
  args.resize(w.body->num_inputs());
  Vals consts = inlined_part(c.b, *w.body, args, hoisted.values);
  consts.append(x.body_consts);
  return apply_while(c, w.condition, x.cond_consts, hoisted.body, consts, x.carry);
}

// Carries that the body returns as they were become constants of condition and body.
Vals fix_carries(SimplifyCtx& c) {
  While w(c.attr());
  Mask moves;
  for (size_t i = 0; i < w.num_carry; ++i) moves.push_back(!is_fixed(w, i));
  if (count(moves) == w.num_carry) return {};
  Operands x(c, w);
  if (!any(moves)) return effects_of(c.op, c.attrs) == kPure ? x.carry : Vals{};
  Vals fixed = picked(x.carry, moves, false), carry = picked(x.carry, moves);
  auto without_fixed = [&](const GraphRef& graph, const Vals& consts, bool is_body) {
    TypeRefs types = types_of(consts);
    types.append(types_of(fixed));
    types.append(types_of(carry));
    return make_graph(types, [&](Builder& b, std::span<const Val> xs) {
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
  Vals cond_consts = x.cond_consts, body_consts = x.body_consts;
  cond_consts.append(fixed);
  body_consts.append(fixed);
  Vals made = apply_while(c, condition, cond_consts, body, body_consts, carry);
  Vals results = Reader(made).take(moves);
  for (size_t i = 0; i < w.num_carry; ++i)
    if (!moves[i]) results[i] = x.carry[i];
  return results;
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
             {"body_nconsts", AttrType::kInt}};
  d.multiple_results = true;
  d.infer = infer_while;
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = jvp_while;
  d.graph_linearize = linearize_while;
  d.transpose = transpose_while;
  d.batch = batch_while;
  d.prune = prune_while;
  d.lift = lift_from_graphs;
  d.emit = emit_while;
  d.simplify = {
      {"while_fixed_carry", "a carry that the body returns as it was -> a constant", fix_carries},
      {"while_hoist", "what the body makes of constants alone -> made before the loop",
       hoist_from_body}};
  d.cost = cost_while;
  return d;
}

}  // namespace

void register_while(OpRegistry& r) { r.add(while_op()); }

}  // namespace weft
