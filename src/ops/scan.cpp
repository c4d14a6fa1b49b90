// scan: a loop of known length that carries values from one iteration to the next, reads a slice of
// each of the arrays xs and stacks what else its body returns. Operands are the body's constants,
// the carry, then xs; the body takes them in this order and returns the carry, then a slice of each
// ys. With `reverse` the last slices come first, of xs and of ys.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "ops/axes.h"
#include "ops/dependence.h"
#include "ops/families.h"
#include "ops/scan.h"

namespace weft {
namespace scan {
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
  if (s.length < 0) c.fail(ErrorKind::kValue, "expected length >= 0; got ", s.length);
  if (s.unroll < 1) c.fail(ErrorKind::kValue, "expected unroll >= 1; got ", s.unroll);
  if (c.size() != body.num_inputs())
    c.fail(ErrorKind::kType, "expected ", body.num_inputs(),
           " operands, one per input of jaxpr; got ", c.size());
  std::vector<TypeRef> outputs = body.output_types();
  TypeRefs results;
  for (size_t i = 0; i < c.size(); ++i) {
    TypeRef type = body.input_types()[i];
    if (i < s.first_xs()) {
      check_region_type(c, "jaxpr", "input", i, c.in(i), type);
    } else if (c.in(i) != s.stacked(type)) {
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

void jvp_scan(GraphJvpCtx& c) {
  Scan s(c.attr());
  Mask mask = c.tangent_mask();
  Mask consts = part(mask, 0, s.num_consts), carry = part(mask, s.num_consts, s.num_carry);
  Mask xs = part(mask, s.first_xs(), s.num_xs);
  Mask no_ys(s.num_ys);
  carry = carries_reached(*s.body, Flow::kTangents, mask, s.num_consts, s.num_carry);
  auto jvp = carry_fixpoint(
      carry,
      [&](const Mask& m) {
        return c.transforms->jvp(
            s.body, {.in_mask = joined({consts, m, xs}), .instantiate = joined({m, no_ys})});
      },
      [](const JvpGraph& made, size_t i) { return made.out_mask[i]; });

  Operands x(c, s);
  Vals ts = vals_of(c.b, c.tangents);
  append_present(x.consts, std::span<const Val>(ts).first(s.num_consts));
  for (size_t i = 0; i < s.num_carry; ++i) {
    if (!carry[i]) continue;
    Val t = ts[s.num_consts + i];
    x.carry.push_back(t ? t : zeros(c.b, c.in_types[s.num_consts + i]));
  }
  append_present(x.xs, std::span<const Val>(ts).subspan(s.first_xs()));
  GraphRef body = make_graph(body_types(x), [&](Builder& b, std::span<const Val> in) {
    Reader read(in);
    Vals args(read.take(s.num_consts));
    auto const_ts = read.take(count(consts));
    args.append(read.take(s.num_carry));
    auto carry_ts = read.take(count(carry));
    args.append(read.take(s.num_xs));
    args.append(const_ts);
    args.append(carry_ts);
    args.append(read.rest());
    Vals made = inlined(b, jvp->graph, args);
    Reader out(made);
    auto carries = out.take(s.num_carry), ys = out.take(s.num_ys);
    Vals ordered(carries);
    ordered.append(out.take(count(carry)));
    ordered.append(ys);
    ordered.append(out.rest());
    return ordered;
  });
  Vals results = apply_scan(c, body, x);
  Reader read(results);
  Vals values(read.take(s.num_carry));
  Vals tangents = read.take(carry);
  values.append(read.take(s.num_ys));
  tangents.append(read.take(part(jvp->out_mask, s.num_carry, s.num_ys)));
  c.results = values_of(values);
  c.result_tangents = values_of(tangents);
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
  Mask mask = c.tangent_mask();
  Mask consts = part(mask, 0, s.num_consts), carry = part(mask, s.num_consts, s.num_carry);
  Mask xs = part(mask, s.first_xs(), s.num_xs);
  Mask no_ys(s.num_ys);
  carry = carries_reached(*s.body, Flow::kTangents, mask, s.num_consts, s.num_carry);
  auto split = carry_fixpoint(
      carry,
      [&](const Mask& m) {
        return c.transforms->linearize(
            s.body, {.in_mask = joined({consts, m, xs}), .instantiate = joined({m, no_ys})});
      },
      [](const LinearizedGraph& made, size_t i) { return made.out_mask[i]; });

  const Graph& forward = *split->forward;
  Operands x(c, s);
  size_t num_outputs = s.num_carry + s.num_ys;
  Mask changes(forward.num_inputs(), true);  // inputs that are not the same in all iterations
  for (size_t i = 0; i < s.num_consts; ++i) changes[i] = false;
  for (size_t i = 0; i < s.num_carry; ++i) {
    size_t input = s.num_consts + i;
    changes[input] = forward.outputs()[i] != forward.input(static_cast<uint32_t>(input));
  }
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
  auto is_xs = [&](Value v) { return v.id >= s.first_xs() && v.id < forward.num_inputs(); };
  std::unordered_map<uint32_t, size_t> stacked_output;
  for (size_t i = s.num_carry; i < num_outputs; ++i) stacked_output.try_emplace(outputs[i].id, i);
  for (Value v : kept.stacked)
    if (!is_xs(v) && stacked_output.try_emplace(v.id, outputs.size()).second) outputs.push_back(v);
  GraphRef body = make_graph(forward.input_types(), [&](Builder& b, std::span<const Val> in) {
    return inlined_with(b, forward, in, outputs);
  });
  Vals results = apply_scan(c, body, x);
  c.results = values_of(std::span<const Val>(results).first(num_outputs));
  c.result_tangents = Values(num_outputs);
  if (split->linear->outputs().empty()) return;

  Operands linear;
  Vals first_args = x.consts;
  first_args.append(x.carry);
  first_args.resize(forward.num_inputs());
  linear.consts = inlined_part(c.b, forward, first_args, kept.early);
  for (Value v : kept.stacked)
    linear.xs.push_back(is_xs(v) ? x.xs[v.id - s.first_xs()] : results[stacked_output.at(v.id)]);
  Vals ts = vals_of(c.b, c.tangents);
  append_present(linear.consts, std::span<const Val>(ts).first(s.num_consts));
  for (size_t i = 0; i < s.num_carry; ++i) {
    if (!carry[i]) continue;
    Val t = ts[s.num_consts + i];
    linear.carry.push_back(t ? t : zeros(c.b, c.in_types[s.num_consts + i]));
  }
  append_present(linear.xs, std::span<const Val>(ts).subspan(s.first_xs()));
  GraphRef linear_body = make_graph(body_types(linear), [&](Builder& b, std::span<const Val> in) {
    Reader read(in);
    Vals given(read.take(kept.early.size()));
    auto const_ts = read.take(count(consts)), carry_ts = read.take(linear.carry.size());
    given.append(read.take(kept.stacked.size()));
    Vals args = inlined_part(b, forward, {}, residuals, kept.all(), given);
    args.append(const_ts);
    args.append(carry_ts);
    args.append(read.rest());
    return inlined(b, split->linear, args);
  });
  Vals tangents = apply_scan(c, linear_body, linear);
  c.result_tangents = values_of(Reader(tangents).take(split->out_mask));
}

// Which inputs of the body are linear. A carry that starts as a known value may become linear.
Mask linear_inputs(const TransposeCtx& c, const Scan& s) {
  Mask linear;
  for (size_t i = 0; i < c.size(); ++i) linear.push_back(c.linear(i));
  Mask reached = carries_reached(*s.body, Flow::kLanes, linear, s.num_consts, s.num_carry);
  for (size_t i = 0; i < s.num_carry; ++i) linear[s.num_consts + i] = reached[i];
  for (bool grew = true; grew;) {
    grew = false;
    std::vector<bool> depends = dependent_values(*s.body, linear);
    for (size_t i = 0; i < s.num_carry; ++i) {
      Value v = s.body->outputs()[i];
      if (v.is_literal() || !depends[v.id] || linear[s.num_consts + i]) continue;
      linear[s.num_consts + i] = grew = true;
    }
  }
  return linear;
}

// The values of the carries that are not linear, at the start of each iteration: stacked by a loop
// of their own.
Vals stacked_carries(const TransposeCtx& c, const Scan& s, const Mask& linear) {
  Operands x;
  Vals args(c.size());  // of the body, while it is built
  Values next, current;
  SmallVector<size_t, 8> inputs;  // of the body
  for (size_t i = 0; i < c.size(); ++i) {
    if (linear[i]) continue;
    Vals& list = i < s.num_consts ? x.consts : i < s.first_xs() ? x.carry : x.xs;
    list.push_back(c.x(i));
    inputs.push_back(i);
    if (i < s.num_consts || i >= s.first_xs()) continue;
    next.push_back(s.body->outputs()[i - s.num_consts]);
    current.push_back(s.body->input(static_cast<uint32_t>(i)));
  }
  if (next.empty()) return {};
  Values wanted = next;
  wanted.append(current);
  GraphRef body = make_graph(body_types(x), [&](Builder& b, std::span<const Val> in) {
    for (size_t i = 0; i < in.size(); ++i) args[inputs[i]] = in[i];
    return inlined_part(b, *s.body, args, wanted);
  });
  Vals results = apply_scan(c, body, x);
  return Vals(std::span<const Val>(results).subspan(next.size()));
}

// The loop runs backwards. Cotangents of constants are summed up in its carry, those of xs are
// stacked.
void transpose_scan(TransposeCtx& c) {
  Scan s(c.attr());
  Mask linear = linear_inputs(c, s);
  Mask const_mask = part(linear, 0, s.num_consts);
  Mask carry_mask = part(linear, s.num_consts, s.num_carry);
  Mask xs_mask = part(linear, s.first_xs(), s.num_xs);
  std::vector<bool> depends = dependent_values(*s.body, linear);
  Mask has_ct;  // of the body's outputs
  for (size_t i = 0; i < s.num_carry + s.num_ys; ++i) {
    Value v = s.body->outputs()[i];
    has_ct.push_back(c.has_ct(i) && !v.is_literal() && depends[v.id]);
  }
  // A carry's cotangent comes from after the loop or from a later iteration. Entries of out_mask
  // are the linear inputs: constants, carries, xs.
  size_t first_carry = count(const_mask), num_carry = count(carry_mask);
  SmallVector<size_t, 8> carries;  // that are linear
  for (size_t i = 0; i < s.num_carry; ++i)
    if (carry_mask[i]) carries.push_back(i);
  Mask carry_ct;  // of the linear carries
  Mask leading = carries_leading_to(*s.body, has_ct, linear, s.num_consts, s.num_carry);
  for (size_t i : carries) carry_ct.push_back(has_ct[i] || leading[i]);
  auto transposed = carry_fixpoint(
      carry_ct,
      [&](const Mask& m) {
        for (size_t i = 0; i < num_carry; ++i) has_ct[carries[i]] = m[i];
        return c.transforms->transpose(s.body, {.linear = linear, .cotangents = has_ct});
      },
      [&](const TransposedGraph& made, size_t i) { return made.out_mask[first_carry + i]; });
  Mask const_ct = part(transposed->out_mask, 0, first_carry);
  Mask made_ct = part(transposed->out_mask, first_carry, num_carry);
  Mask xs_ct = part(transposed->out_mask, first_carry + num_carry, count(xs_mask));

  Operands x;
  SmallVector<size_t, 8> sums;  // constants whose cotangents are summed up
  size_t next = 0;
  for (size_t i = 0; i < s.num_consts; ++i) {
    if (!linear[i]) {
      x.consts.push_back(c.x(i));
    } else if (const_ct[next++]) {
      Value sum = c.accumulated[i];
      x.carry.push_back(sum ? c.val(sum) : zeros(c.b, c.in_types[i]));
      sums.push_back(i);
    }
  }
  for (size_t i = 0; i < num_carry; ++i)
    if (carry_ct[i]) x.carry.push_back(c.ct(carries[i]));
  x.xs = stacked_carries(c, s, linear);
  for (size_t i = s.first_xs(); i < c.size(); ++i)
    if (!linear[i]) x.xs.push_back(c.x(i));
  size_t num_known = x.xs.size();
  for (size_t i = 0; i < s.num_ys; ++i)
    if (has_ct[s.num_carry + i]) x.xs.push_back(c.ct(s.num_carry + i));

  GraphRef body = make_graph(body_types(x), [&](Builder& b, std::span<const Val> in) {
    Reader read(in);
    Vals args(read.take(x.consts.size()));
    auto so_far = read.take(sums.size()), carry_cts = read.take(count(carry_ct));
    args.append(read.take(num_known));
    args.append(carry_cts);
    args.append(read.rest());
    Vals made = inlined(b, transposed->graph, args);
    Reader out(made);
    Vals ordered;
    for (size_t i = 0; i < sums.size(); ++i) ordered.push_back(add_any(so_far[i], out.next()));
    for (size_t i = 0; i < num_carry; ++i) {
      Val ct = made_ct[i] ? out.next() : Val{};
      if (carry_ct[i])
        ordered.push_back(made_ct[i] ? ct : zeros(b, c.in_types[s.num_consts + carries[i]]));
    }
    ordered.append(out.rest());
    return ordered;
  });
  Vals results = apply_scan(c, c.attrs->with({{"reverse", !s.reverse}}), body, x);
  Reader read(results);
  for (size_t i : sums) c.accumulated[i] = read.next().value;
  for (size_t i = 0; i < num_carry; ++i) {
    if (!carry_ct[i]) continue;
    Val ct = read.next();
    size_t operand = s.num_consts + carries[i];
    if (c.linear(operand)) c.add(operand, ct);
  }
  next = 0;
  for (size_t i = s.first_xs(); i < c.size(); ++i)
    if (linear[i] && xs_ct[next++]) c.add(i, read.next());
}

// ---- Vectorisation

void batch_scan(BatchCtx& c) {
  Scan s(c.attr());
  Operands x(c, s);
  BatchDims const_dims, xs_dims;
  Mask carry;
  for (size_t i = 0; i < s.num_consts; ++i) const_dims.push_back(c.dim(i));
  for (size_t i = 0; i < s.num_xs; ++i) {
    int dim = c.dim(s.first_xs() + i);
    // Axis 0 is the loop's.
    if (dim == 0) x.xs[i] = c.at(s.first_xs() + i, dim = 1);
    xs_dims.push_back(dim == kNotBatched ? kNotBatched : dim - 1);
  }
  Mask mapped_inputs;
  for (size_t i = 0; i < s.body->num_inputs(); ++i) mapped_inputs.push_back(c.batched(i));
  carry = carries_reached(*s.body, Flow::kLanes, mapped_inputs, s.num_consts, s.num_carry);
  auto mapped = carry_fixpoint(
      carry,
      [&](const Mask& m) {
        BatchDims in_dims = const_dims, out_dims;
        for (bool batched : m) {
          in_dims.push_back(batched ? 0 : kNotBatched);
          out_dims.push_back(batched ? 0 : kAnyDim);
        }
        in_dims.append(xs_dims);
        out_dims.resize(s.num_carry + s.num_ys, kAnyDim);
        return c.transforms->vmap(s.body, vmap_options(c, in_dims, out_dims));
      },
      [](const VmapGraph& made, size_t i) { return made.out_dims[i] != kNotBatched; });
  for (size_t i = 0; i < s.num_carry; ++i)
    if (carry[i]) x.carry[i] = c.at(s.num_consts + i, 0);
  Vals results = apply_scan(c, mapped->graph, x);
  for (size_t i = 0; i < results.size(); ++i) {
    int dim = mapped->out_dims[i];
    c.result(results[i], dim == kNotBatched || i < s.num_carry ? dim : dim + 1);
  }
}

// ---- Passes

PrunedOp prune_scan(PruneCtx& c) {
  Scan s(*c.attrs);
  Mask outputs = c.results, inputs;
  Mask leading = carries_leading_to(*s.body, outputs, Mask(s.body->num_inputs(), true),
                                    s.num_consts, s.num_carry);
  for (size_t i = 0; i < s.num_carry; ++i) outputs[i] = outputs[i] || leading[i];
  for (bool grew = true; grew;) {
    grew = false;
    inputs = c.needed_inputs(s.body, outputs);
    for (size_t i = 0; i < s.num_carry; ++i) {
      grew |= inputs[s.num_consts + i] && !outputs[i];
      outputs[i] = outputs[i] || inputs[s.num_consts + i];
    }
  }
  for (size_t i = 0; i < s.num_carry; ++i) inputs[s.num_consts + i] = outputs[i];
  GraphRef body = c.narrowed(s.body, outputs, inputs);
  return {make_attrs(c.attrs, body, count(part(inputs, 0, s.num_consts)),
                     count(part(outputs, 0, s.num_carry))),
          inputs, outputs};
}

Vals write_slice(Val into, Val piece, Val at) {
  Vals starts(into.shape().size(), scalar_like(at, 0));
  starts[0] = at;
  return {dynamic_update_slice(into, expand_dim(piece, 0), starts)};
}

// A while: it counts iterations, and its carry holds the scan's and the arrays that ys are written
// to. With unroll = n an iteration of it is n of the scan; what is left over follows the loop.
Vals as_loop(RuleCtx& c) {
  Scan s(c.attr());
  Operands x(c, s);
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
      slices.push_back(squeeze(dynamic_slice(v, starts, sizes), {0}));
    }
    Reader old(state);
    Vals made = iteration(b, s, consts, old.take(s.num_carry), slices);
    Reader read(made);
    Vals next(read.take(s.num_carry));
    for (size_t k = 0; k < s.num_ys; ++k) next.append(write_slice(old.next(), read.next(), at));
    return next;
  };

  Vals consts = x.consts;
  consts.append(x.xs);
  Vals carry{counter(c.b, 0)};
  carry.append(x.carry);
  for (size_t k = 0; k < s.num_ys; ++k) carry.push_back(zeros(c.b, c.out_types[s.num_carry + k]));
  GraphRef condition = make_graph(types_of(carry), [&](Builder& b, std::span<const Val> in) {
    return Vals{lt(in[0], counter(b, s.length - rest))};
  });
  TypeRefs types = types_of(consts);
  types.append(types_of(carry));
  GraphRef body = make_graph(types, [&](Builder& b, std::span<const Val> in) {
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
  Vals operands = consts;
  operands.append(carry);
  const OpDef& loop = registry().get("while");
  AttrsRef attrs = AttrRecord::make(loop.name, loop.attrs,
                                    {{"cond_jaxpr", condition},
                                     {"cond_nconsts", int64_t{0}},
                                     {"body_jaxpr", body},
                                     {"body_nconsts", static_cast<int64_t>(consts.size())}});
  Vals made = vals_of(c.b, c.b.add(loop, values_of(operands), attrs));
  Vals state(std::span<const Val>(made).subspan(1));
  for (int64_t i = s.length - rest; i < s.length; ++i)
    state = step(c.b, x.consts, x.xs, state, counter(c.b, s.reverse ? s.length - 1 - i : i));
  return state;
}

LiftedOp lift_from_body(const AttrsRef& attrs) {
  Scan s(*attrs);
  auto inner = lift_constants(s.body);
  size_t num_consts = s.num_consts + inner->constants.size();
  LiftedOp lifted{make_attrs(attrs, inner->graph, num_consts, s.num_carry), {}};
  for (const ObjectRef& object : inner->constants) lifted.operands.push_back({0, object});
  return lifted;
}

OpDef scan_op() {
  OpDef d;
  d.name = "scan";
  d.doc = "A loop that carries values, reads slices of arrays and stacks results.";
  d.attrs = {{"jaxpr", AttrType::kGraph},    {"length", AttrType::kInt},
             {"num_consts", AttrType::kInt}, {"num_carry", AttrType::kInt},
             {"reverse", AttrType::kBool},   {"unroll", AttrType::kInt}};
  d.multiple_results = true;
  d.infer = infer_scan;
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = jvp_scan;
  d.graph_linearize = linearize_scan;
  d.transpose = transpose_scan;
  d.batch = batch_scan;
  d.prune = prune_scan;
  d.lift = lift_from_body;
  d.decompose = as_loop;
  d.simplify = rewrites();
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
