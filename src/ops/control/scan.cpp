// scan: a loop of known length that carries values from one iteration to the next, reads a slice of
// each of the arrays xs and stacks what else its body returns. Operands are the body's constants,
// the carry, then xs; the body takes them in this order and returns the carry, then a slice of each
// ys. With `reverse` the last slices come first, of xs and of ys.
#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "ops/control/call.h"
#include "ops/control/family.h"
#include "ops/control/scan.h"
#include "ops/def/axes.h"
#include "ops/def/dependence.h"
#include "ops/def/presets.h"

namespace weft {
namespace scan {

Loop loop_parts(const AttrRecord& attrs) {
  return {attrs.graph("jaxpr"), static_cast<size_t>(attrs.integer("num_consts")),
          static_cast<size_t>(attrs.integer("num_carry"))};
}

AttrsRef with_loop(const AttrsRef& attrs, const Loop& loop) {
  return attrs->with({{"jaxpr", loop.body},
                      {"num_consts", static_cast<int64_t>(loop.num_consts)},
                      {"num_carry", static_cast<int64_t>(loop.num_carry)}});
}

namespace {

TypeRefs infer_scan(const InferCtx& c) {
  int64_t consts = c.attr().integer("num_consts"), carry = c.attr().integer("num_carry");
  const Graph& body = *c.attr().graph("jaxpr");
  int64_t num_inputs = body.num_inputs(), num_outputs = static_cast<int64_t>(body.outputs().size());
  bool fits = consts >= 0 && carry >= 0 && (Checked(consts) + carry).within(0, num_inputs);
  if (!fits || carry > num_outputs)
    c.fail(ErrorKind::kValue, "expected constants and carries among the ", num_inputs,
           " inputs, and carries among the ", num_outputs,
           " outputs of jaxpr; got num_consts=", consts, ", num_carry=", carry);
  Scan s(c.attr());
  if (is_negative(s.length)) c.fail(ErrorKind::kValue, "expected length >= 0; got ", s.length);
  if (s.unroll < 1) c.fail(ErrorKind::kValue, "expected unroll >= 1; got ", s.unroll);
  if (c.size() != body.num_inputs())
    c.fail(ErrorKind::kType, "expected ", body.num_inputs(),
           " operands, one per input of jaxpr; got ", c.size());
  std::vector<TypeRef> outputs = body.output_types();
  TypeRefs results;
  s.in.select({kConsts, kCarry}).check_inputs(c, "jaxpr", body);
  for (size_t i = s.first_xs(); i < c.size(); ++i) {
    TypeRef type = body.input_types()[i];
    if (c.in(i) != s.stacked(type)) {
      c.fail(ErrorKind::kShape, "expected operand ", i, " to be ", s.stacked(type), ", ", s.length,
             " slices of ", type, " as input ", i, " of jaxpr; got ", c.in(i));
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i < s.num_carry)
      check_region_type(c, "jaxpr", "output", i, c.in(s.num_consts + i), outputs[i]);
    results.push_back(i < s.num_carry ? outputs[i] : s.stacked(outputs[i]));
  }
  return results;
}

// ---- Differentiation

// What gets through the loop: masks of the body's inputs are those of the operands.
void flow_through_scan(FlowCtx& c) {
  Scan s(*c.attrs);
  c.through(s.body, c.operands, c.results, s.carries());
}

// Transforms the body for operands with tangents; carries with one come out with one.
template <typename Transform>
auto transform_body(const GraphJvpCtx& c, const Scan& s, Mask& mask, Transform&& transform) {
  mask = tangent_flow(c).operands;
  return carry_fixpoint(
      mask, s.in[kCarry],
      [&](const Mask& inputs) {
        return transform(inputs, joined({s.in[kCarry].of(inputs), Mask(s.num_ys)}));
      },
      [](const auto& made, size_t i) { return made.out_mask[i]; });
}

void jvp_scan(GraphJvpCtx& c) {
  Scan s(c.attr());
  Mask mask;
  auto jvp = transform_body(c, s, mask, [&](const Mask& inputs, const Mask& instantiate) {
    return c.transforms->jvp(s.body, {.in_mask = inputs, .instantiate = instantiate});
  });
  Zipped in{s.in, s.in.kept(mask)}, out{s.out, s.out.kept(jvp->out_mask)};
  Values both = joined({Values(c.operands), instantiated_tangents(c, mask)});
  LoopOperands x(vals_of(c.b, in.zip(both)), in.both());
  Values results = out.unzip(values_of(apply_loop(c, zipped(jvp->graph, in, out), x)));
  std::span<const Value> made(results);
  c.results = Values(made.first(s.out.size()));
  c.result_tangents = scattered(jvp->out_mask, made.subspan(s.out.size()));
}

// What the linear loop is given of the forward one, as values of the forward body.
struct Kept {
  Values early;    // the same in all iterations
  Values stacked;  // one per iteration

  Values all() const {
    Values out = early;
    out.append(stacked);
    return out;
  }
};

// Chooses what is kept. A residual that a few cheap element-wise ops make of others is not stacked:
// to compute it again costs less than to write and to read it.
class ResidualChoice {
 public:
  ResidualChoice(const Graph& forward, const std::vector<bool>& varies, Values residuals)
      : forward_(forward),
        varies_(varies),
        is_wanted_(forward.num_values()),
        is_kept_(forward.num_values()) {
    std::sort(residuals.begin(), residuals.end(), [](Value a, Value b) { return a.id < b.id; });
    for (Value v : residuals)
      if (!v.is_literal()) is_wanted_[v.id] = true;
    for (size_t i = residuals.size(); i-- > 0;) {
      Value v = residuals[i];
      Values needed;
      if (v.is_literal()) continue;
      if (!varies_[v.id]) {
        keep(kept_.early, v);
      } else if (is_cheap(v, 0, needed)) {
        for (Value early : needed) keep(kept_.early, early);
      } else {
        keep(kept_.stacked, v);
      }
    }
  }
  const Kept& kept() const { return kept_; }

 private:
  static constexpr int kMaxDepth = 3;

  // A value is in one list only: it varies or does not.
  void keep(Values& list, Value v) {
    if (!is_kept_[v.id]) list.push_back(v);
    is_kept_[v.id] = true;
  }
  // Whether the ops behind v, down to other residuals and to constants, are cheap and few.
  bool is_cheap(Value v, int depth, Values& early) const {
    const Op* op = forward_.producer(v);
    if (!op || depth == kMaxDepth || !def(*op->info).elementwise || !is_light(*op)) return false;
    for (Value x : forward_.operands(*op)) {
      if (x.is_literal()) continue;
      if (!varies_[x.id]) {
        early.push_back(x);
      } else if (!is_wanted_[x.id] && !is_cheap(x, depth + 1, early)) {
        return false;
      }
    }
    return true;
  }
  bool is_light(const Op& op) const {
    TypeRefs types;
    for (Value v : forward_.operands(op)) types.push_back(forward_.type(v));
    CostCtx c{types, forward_.result_types(op), op.attrs.get(), nullptr};
    const CostRule& cost = def(*op.info).cost;
    return cost && cost(c).transcendentals == 0;
  }

  const Graph& forward_;
  const std::vector<bool>& varies_;
  std::vector<bool> is_wanted_, is_kept_;
  Kept kept_;
};

// Residuals that are constants of the loop, or made of them alone, are not stacked, nor are those
// that are stacked already: slices of xs and of ys.
void linearize_scan(GraphJvpCtx& c) {
  Scan s(c.attr());
  Mask mask;
  auto split = transform_body(c, s, mask, [&](const Mask& inputs, const Mask& instantiate) {
    return c.transforms->linearize(s.body, {.in_mask = inputs, .instantiate = instantiate});
  });

  const Graph& forward = *split->forward;
  LoopOperands x(c, s);
  size_t num_outputs = s.out.size();
  Mask changes(forward.num_inputs(), true);  // inputs that are not the same in all iterations
  for (size_t i = 0; i < s.num_consts; ++i) changes[i] = false;
  for (size_t i = 0; i < s.num_carry; ++i) changes[s.in[kCarry].begin + i] = !s.is_fixed(i);
  std::vector<bool> varies = dependent_values(forward, changes);
  // What io_callback gives differs from call to call.
  if (without_effects(split->forward)->effects() != kPure) varies.assign(varies.size(), true);
  Values residuals;
  for (const Residual& r : split->residuals)
    residuals.push_back(r.is_input ? forward.input(r.index) : forward.outputs()[r.index]);
  ResidualChoice choice(forward, varies, residuals);
  const Kept& kept = choice.kept();

  // What is stacked anyway, as xs or ys, is not stacked twice.
  Values outputs(forward.outputs().first(num_outputs));
  auto is_xs = [&](Value v) { return s.in[kXs].has(v.id); };
  std::unordered_map<uint32_t, size_t> stacked_output;
  for (size_t i = s.num_carry; i < num_outputs; ++i) stacked_output.try_emplace(outputs[i].id, i);
  for (Value v : kept.stacked)
    if (!is_xs(v) && stacked_output.try_emplace(v.id, outputs.size()).second) outputs.push_back(v);
  GraphRef body = make_graph(forward.input_types(), [&](Builder& b, std::span<const Val> in) {
    return inlined_with(b, forward, in, outputs);
  });
  Vals results = apply_loop(c, body, x);
  c.results = values_of(std::span<const Val>(results).first(num_outputs));
  c.result_tangents = Values(num_outputs);
  if (split->linear->outputs().empty()) return;

  // The linear loop: constants and xs are what is kept, and all have tangents.
  Vals first_args = joined({x.consts, x.carry});
  first_args.resize(forward.num_inputs());
  Vals given = inlined_part(c.b, forward, first_args, kept.early);
  for (Value v : kept.stacked)
    given.push_back(is_xs(v) ? x.xs[v.id - s.first_xs()] : results[stacked_output.at(v.id)]);
  LoopLayout known{{"early", kept.early.size()}, {"carry", 0}, {"stacked", kept.stacked.size()}};
  Zipped in{known, s.in.kept(mask)};
  Vals both = joined({given, vals_of(c.b, instantiated_tangents(c, mask))});
  LoopOperands linear(in.zip(both), in.both());
  TypeRefs types;  // of slices
  for (Value v : kept.all()) types.push_back(forward.type(v));
  types.append(TypeRefs(split->linear->input_types().subspan(split->residuals.size())));
  GraphRef body_of_both = make_graph(in.zip(types), [&](Builder& b, std::span<const Val> xs) {
    Vals args = in.unzip(Vals(xs));
    Reader read(args);
    Vals all = inlined_part(b, forward, {}, residuals, kept.all(), read.take(known.size()));
    all.append(read.rest());
    return inlined(b, split->linear, all);
  });
  Vals tangents = apply_loop(c, body_of_both, linear);
  c.result_tangents = values_of(Reader(tangents).take(split->out_mask));
}

// The loop runs backwards. Cotangents of constants are summed up in its carry, those of xs are
// stacked. All carries are linear, also those that start from known values: transpose takes loops
// apart that have others.
void transpose_scan(TransposeCtx& c) {
  Scan s(c.attr());
  Mask linear(c.linear_mask);
  for (size_t i = s.in[kCarry].begin; i < s.in[kCarry].end(); ++i) linear[i] = true;
  std::vector<bool> depends = dependent_values(*s.body, linear);
  Mask has_ct;  // of the body's outputs
  for (size_t i = 0; i < s.out.size(); ++i) {
    Value v = s.body->outputs()[i];
    has_ct.push_back(c.has_ct(i) && !v.is_literal() && depends[v.id]);
  }
  // A carry's cotangent comes from after the loop or from a later iteration.
  Mask needed = flowed(c, Flow::kNeeds, has_ct).results;
  for (size_t i = 0; i < s.num_carry; ++i)
    has_ct[i] = has_ct[i] || (needed[i] && linear[s.in[kCarry].begin + i]);
  Mask made;  // by operand: cotangents that the transposed body makes
  auto transposed = carry_fixpoint(
      has_ct, s.out[kCarryOut],
      [&](const Mask& cotangents) {
        auto result = c.transforms->transpose(s.body, {.linear = linear, .cotangents = cotangents});
        made.clear();
        size_t next = 0;
        for (bool is_linear : linear) made.push_back(is_linear && result->out_mask[next++]);
        return result;
      },
      [&](const TransposedGraph&, size_t i) { return made[s.in[kCarry].begin + i]; });

  // Operands: what is known, and in turn with it the sums of constants' cotangents so far, the
  // cotangents of carries and those of ys.
  Vals operands;
  SmallVector<size_t, 8> sums;  // constants
  for (size_t i = 0; i < s.num_consts; ++i) {
    if (!linear[i]) operands.push_back(c.x(i));
    if (made[i]) sums.push_back(i);
  }
  size_t num_consts = operands.size();
  for (size_t i = s.first_xs(); i < c.size(); ++i)
    if (!linear[i]) operands.push_back(c.x(i));
  size_t num_known = operands.size();
  for (size_t i : sums) {
    Value sum = c.accumulated[i];
    operands.push_back(sum ? c.val(sum) : zeros(c.b, c.in_types[i]));
  }
  for (size_t i = 0; i < s.out.size(); ++i)
    if (has_ct[i]) operands.push_back(c.ct(i));
  LoopLayout cts = s.out.kept(has_ct);
  Zipped in{{{"consts", num_consts}, {"carry", 0}, {"xs", num_known - num_consts}},
            {{"consts", 0}, {"carry", sums.size() + cts[kCarryOut].size}, {"xs", cts[kYs].size}}};

  std::span<const TypeRef> body_types = transposed->graph->input_types();
  TypeRefs types(body_types.first(num_known));
  for (size_t i : sums) types.push_back(c.in_types[i]);
  types.append(body_types.subspan(num_known));
  GraphRef body = make_graph(in.zip(types), [&](Builder& b, std::span<const Val> xs) {
    Vals unzipped = in.unzip(Vals(xs));
    Reader read(unzipped);
    Vals args(read.take(num_known));
    auto so_far = read.take(sums.size());
    args.append(read.rest());
    Vals results = inlined(b, transposed->graph, args), next;
    Reader out(results);
    for (Val sum : so_far) next.push_back(add_any(sum, out.next()));
    for (size_t i = 0; i < s.num_carry; ++i) {
      if (!has_ct[i]) continue;
      size_t at = s.in[kCarry].begin + i;
      next.push_back(made[at] ? out.next() : zeros(b, c.in_types[at]));
    }
    next.append(out.rest());
    return next;
  });
  Vals results = apply_loop(c, c.attrs->with({{"reverse", !s.reverse}}), body,
                            LoopOperands(in.zip(operands), in.both()));
  Reader read(results);
  for (size_t i : sums) c.accumulated[i] = read.next().value;
  for (size_t i = 0; i < s.num_carry; ++i) {
    if (!has_ct[i]) continue;
    Val ct = read.next();
    if (size_t at = s.in[kCarry].begin + i; c.linear(at)) c.add(at, ct);
  }
  for (size_t i = s.first_xs(); i < c.size(); ++i)
    if (made[i]) c.add(i, read.next());
}

// ---- Vectorisation

void batch_scan(BatchCtx& c) {
  Scan s(c.attr());
  Vals operands = vals_of(c.b, c.operands);
  BatchDims dims(c.dims);  // in the body
  for (size_t i = s.in[kXs].begin; i < s.in[kXs].end(); ++i) {
    if (dims[i] == kNotBatched) continue;
    // Axis 0 is the loop's.
    if (dims[i] == 0) operands[i] = c.at(i, dims[i] = 1);
    --dims[i];
  }
  Mask mask = flowed(c, Flow::kLanes, c.mapped()).operands;
  auto mapped = carry_fixpoint(
      mask, s.in[kCarry],
      [&](const Mask& inputs) {
        BatchDims out_dims(s.out.size(), kAnyDim);
        for (size_t i = 0; i < s.num_carry; ++i) {
          size_t at = s.in[kCarry].begin + i;
          dims[at] = inputs[at] ? 0 : kNotBatched;
          if (inputs[at]) out_dims[i] = 0;
        }
        return c.transforms->vmap(s.body, vmap_options(c, dims, out_dims));
      },
      [](const VmapGraph& made, size_t i) { return made.out_dims[i] != kNotBatched; });
  for (size_t i = s.in[kCarry].begin; i < s.in[kCarry].end(); ++i)
    if (mask[i]) operands[i] = c.at(i, 0);
  Vals results = apply_loop(c, mapped->graph, LoopOperands(operands, s.in));
  for (size_t i = 0; i < results.size(); ++i) {
    int dim = mapped->out_dims[i];
    c.result(results[i], dim == kNotBatched || s.out[kCarryOut].has(i) ? dim : dim + 1);
  }
}

// ---- Shards

void shard_scan(ShardCtx& c) {
  Scan s(c.attr());
  SmallVector<AxisSet, 8> varying(c.varying);
  auto made = sharded_body(c, s.body, varying, s.carries());
  Vals operands;
  for (size_t i = 0; i < c.size(); ++i) operands.push_back(c.as(i, varying[i]));
  c.results = values_of(apply_loop(c, made->graph, LoopOperands(operands, s.in)));
  c.result_varying = made->outputs;
}

// ---- Passes

AttrsRef prune_scan(PruneCtx& c) {
  Scan s(*c.attrs);
  LoopLayout kept = s.in.kept(c.operands);
  return with_loop(
      c.attrs, {c.narrowed(s.body, c.results, c.operands), kept[kConsts].size, kept[kCarry].size});
}

Vals write_slice(Val into, Val piece, Val at) {
  Vals starts(into.shape().size(), scalar_like(at, 0));
  starts[0] = at;
  return {dynamic_update_slice(into, expand_dim(piece, 0), starts, /*in_bounds=*/true)};
}

// A while: it counts iterations, and its carry holds the scan's and the arrays that ys are written
// to. With unroll = n an iteration of it is n of the scan; what is left over follows the loop.
Vals as_loop(RuleCtx& c) {
  Scan s(c.attr());
  LoopOperands x(c, s);
  if (s.length <= s.unroll) return unrolled(c.b, s, x, c.out_types);
  int64_t rest = s.length % s.unroll;
  DType counts = s.length <= std::numeric_limits<int32_t>::max() ? DType::kI32 : DType::kI64;
  auto counter = [&](Builder& b, int64_t i) { return Val{&b, b.literal(make_literal(counts, i))}; };
  // An iteration whose slices are at `at`.
  auto step = [&](Builder& b, std::span<const Val> consts, std::span<const Val> xs,
                  const Vals& state, Val at) {
    Vals slices;
    for (Val v : xs) {
      Dims sizes = v.shape();
      sizes[0] = 1;
      Vals starts(sizes.size(), counter(b, 0));
      starts[0] = at;
      slices.push_back(squeeze(dynamic_slice(v, starts, sizes, /*in_bounds=*/true), {0}));
    }
    Reader old(state);
    Vals made = iteration(b, s, consts, old.take(s.num_carry), slices);
    Reader read(made);
    Vals next(read.take(s.num_carry));
    for (size_t k = 0; k < s.num_ys; ++k) next.append(write_slice(old.next(), read.next(), at));
    return next;
  };

  Vals consts = joined({x.consts, x.xs}), carry = joined({Vals{counter(c.b, 0)}, x.carry});
  for (size_t k = 0; k < s.num_ys; ++k) carry.push_back(zeros(c.b, c.out_types[s.num_carry + k]));
  GraphRef condition = make_graph(types_of(carry), [&](Builder& b, std::span<const Val> in) {
    return Vals{lt(in[0], counter(b, s.length - rest))};
  });
  GraphRef body = make_graph(types_of(joined({consts, carry})), [&](Builder& b, auto in) {
    Reader read(in);
    auto inner_consts = read.take(s.num_consts), xs = read.take(s.num_xs);
    Val n = read.next();
    Vals state(read.rest());
    Val first = s.reverse ? counter(b, s.length - 1) - n : n;
    for (int64_t i = 0; i < s.unroll; ++i) {
      Val at = i == 0 ? first : s.reverse ? first - counter(b, i) : first + counter(b, i);
      state = step(b, inner_consts, xs, state, at);
    }
    Vals out{n + counter(b, s.unroll)};
    out.append(state);
    return out;
  });
  Vals made = while_loop(c.b, condition, body, consts, carry);
  Vals state(std::span<const Val>(made).subspan(1));
  for (int64_t i = s.length - rest; i < s.length; ++i)
    state = step(c.b, x.consts, x.xs, state, counter(c.b, s.reverse ? s.length - 1 - i : i));
  return state;
}

LiftedOp lift_from_body(const AttrsRef& attrs) {
  Scan s(*attrs);
  LiftedGraphs inner = lift_graphs(s.in, std::array{s.body});
  return {with_loop(attrs, {inner.graphs[0], inner.num_consts[0], s.num_carry}), inner.operands};
}

// What failed first is carried along, behind the other carries.
void check_scan(CheckCtx& c) {
  Scan s(c.attr());
  auto inner = c.checked(s.body);
  LoopOperands x(c, s);
  Vals start = nothing_failed(c.b, failure_types(*inner));
  x.carry.append(start);
  GraphRef body = make_graph(x.body_types(), [&](Builder& b, std::span<const Val> in) {
    Reader read(in);
    Vals args(read.take(s.num_consts + s.num_carry)), before(read.take(start.size()));
    args.append(read.rest());
    Vals made = inlined(b, inner->graph, args);
    Reader out(made);
    Vals carry(out.take(s.num_carry)), ys(out.take(s.num_ys));
    return joined({carry, first_failed(before, out.rest()), ys});
  });
  Vals made = apply_loop(c, body, x);
  Reader read(made);
  Vals results(read.take(s.num_carry)), failed(read.take(start.size()));
  results.append(read.rest());
  c.results = values_of(results);
  c.fail_in(failed);
}

OpDef scan_op() {
  OpDef d;
  d.name = "scan";
  d.doc = "A loop that carries values, reads slices of arrays and stacks results.";
  d.attrs = {{"jaxpr", AttrType::kGraph},
             {"length", AttrType::kInt},
             {"num_consts", AttrType::kInt},
             {"num_carry", AttrType::kInt},
             {"reverse", AttrType::kBool},
             {"unroll", AttrType::kInt},
             auto_pcast_attr()};
  d.multiple_results = true;
  d.infer = infer_scan;
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = jvp_scan;
  d.graph_linearize = linearize_scan;
  d.transpose = transpose_scan;
  d.batch = batch_scan;
  d.shard = shard_scan;
  d.flow = flow_through_scan;
  d.prune = prune_scan;
  d.lift = lift_from_body;
  d.check = check_scan;
  d.decompose = as_loop;
  d.simplify = rewrites();
  d.loop = {loop_parts, with_loop};
  d.in_kernel = is_same_in_kernel;
  d.cost = [](const CostCtx& c) {
    Scan s(*c.attrs);
    Cost cost = c.graph_cost(*s.body);
    double n = static_cast<double>(s.length);
    return Cost{cost.flops * n, cost.transcendentals * n, cost.bytes * n};
  };
  return d;
}

}  // namespace
}  // namespace scan

void register_scan(OpRegistry& r) { r.add(scan::scan_op()); }

}  // namespace weft
