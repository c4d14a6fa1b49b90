// Rewrites of scan.
#include <algorithm>

#include "ops/control/scan.h"

namespace weft::scan {
namespace {

Vals static_slices(const Vals& xs, int64_t at) {
  Vals out;
  for (Val x : xs) {
    Dims start(x.shape().size()), limit = x.shape();
    start[0] = at;
    limit[0] = at + 1;
    out.push_back(squeeze(slice(x, start, limit), {0}));
  }
  return out;
}

}  // namespace

Vals iteration(Builder& b, const Scan& s, std::span<const Val> consts, std::span<const Val> carry,
               const Vals& slices) {
  return inlined(b, s.body, joined({Vals(consts), Vals(carry), slices}));
}

Vals unrolled(Builder& b, const Scan& s, const LoopOperands& x,
              std::span<const TypeRef> out_types) {
  Vals carry = x.carry;
  std::vector<Vals> ys(s.num_ys);
  for (int64_t i = 0; i < s.length; ++i) {
    Vals made =
        iteration(b, s, x.consts, carry, static_slices(x.xs, s.reverse ? s.length - 1 - i : i));
    Reader read(made);
    carry = Vals(read.take(s.num_carry));
    for (Vals& y : ys) y.push_back(expand_dim(read.next(), 0));
  }
  Vals results = carry;
  for (size_t k = 0; k < s.num_ys; ++k) {
    if (s.reverse) std::reverse(ys[k].begin(), ys[k].end());
    results.push_back(s.length ? concatenate(ys[k], 0) : zeros(b, out_types[s.num_carry + k]));
  }
  return results;
}

namespace {

Vals unroll_short(SimplifyCtx& c) {
  Scan s(c.attr());
  if (s.length > 1) return {};
  return unrolled(c.b, s, LoopOperands(c, s), c.out_types);
}

Vals hoist_from_body(SimplifyCtx& c) {
  Scan s(c.attr());
  Hoisted hoisted = hoist(s.body, s.num_consts);
  if (hoisted.values.empty()) return {};
  LoopOperands x(c, s);
  Vals args = x.consts;
  args.resize(s.body->num_inputs());
  x.consts = joined({inlined_part(c.b, *s.body, args, hoisted.values), x.consts});
  return apply_loop(c, hoisted.body, x);
}

// The value whose broadcast has equal slices along axis 0, if xs is one.
Val source_of_slices(const SimplifyCtx& c, Val xs) {
  const Op* op = c.made_by<"broadcast_in_dim">(xs);
  bool equal = op && !has_axis(op->attrs->ints("broadcast_dimensions"), 0);
  return equal ? c.operand(*op, 0) : Val{};
}

// Arrays of equal slices are no xs: the body makes the slice of what they were made of.
Vals unstack(SimplifyCtx& c) {
  Scan s(c.attr());
  LoopOperands x(c, s);
  Vals xs = x.xs, sources;
  Mask keeps;
  std::vector<Dims> axes;  // of each source, in the slice
  for (Val v : xs) {
    Val source = source_of_slices(c, v);
    keeps.push_back(!source.builder);
    if (!source.builder) continue;
    sources.push_back(source);
    axes.push_back(c.made_by<"broadcast_in_dim">(v)->attrs->ints("broadcast_dimensions"));
    for (int64_t& axis : axes.back()) --axis;
  }
  if (sources.empty()) return {};
  x.xs = picked(xs, keeps);
  std::vector<std::optional<Literal>> literals;  // stand in the body
  for (Val v : sources) {
    const Literal* literal = c.b.as_literal(v.value);
    literals.push_back(literal ? std::optional(*literal) : std::nullopt);
    if (!literal) x.consts.push_back(v);
  }
  GraphRef body = make_graph(x.body_types(), [&](Builder& b, std::span<const Val> in) {
    Reader read(in);
    Vals args(read.take(s.num_consts));
    Reader passed(read.take(x.consts.size() - s.num_consts));
    args.append(read.take(s.num_carry));
    size_t k = 0;
    for (size_t i = 0; i < s.num_xs; ++i) {
      if (keeps[i]) {
        args.push_back(read.next());
        continue;
      }
      Val v = literals[k] ? Val{&b, b.literal(*literals[k])} : passed.next();
      const Dims& shape = s.body->input_types()[s.first_xs() + i]->shape();
      args.push_back(v.shape() == shape ? v : broadcast_in_dim(v, shape, axes[k]));
      ++k;
    }
    return inlined(b, s.body, args);
  });
  return apply_loop(c, body, x);
}

// Carries that the body returns as they were become constants of it.
Vals fix_carries(SimplifyCtx& c) {
  Scan s(c.attr());
  Mask moves;
  for (size_t i = 0; i < s.num_carry; ++i) moves.push_back(!s.is_fixed(i));
  if (count(moves) == s.num_carry) return {};
  LoopOperands x(c, s);
  Vals start = x.carry;
  Vals fixed = picked(start, moves, false);
  x.carry = picked(start, moves);
  x.consts.append(fixed);
  GraphRef body = make_graph(x.body_types(), [&](Builder& b, std::span<const Val> in) {
    Reader read(in);
    Vals args(read.take(s.num_consts));
    Reader of_fixed(read.take(fixed.size()));
    for (bool m : moves) args.push_back(m ? read.next() : of_fixed.next());
    args.append(read.rest());
    return picked(inlined(b, s.body, args), joined({moves, Mask(s.num_ys, true)}));
  });
  Vals made = apply_loop(c, body, x);
  Reader read(made);
  Vals results = read.take(moves);
  for (size_t i = 0; i < s.num_carry; ++i)
    if (!moves[i]) results[i] = start[i];
  results.append(read.rest());
  return results;
}

}  // namespace

std::vector<Rewrite> rewrites() {
  return {
      {"scan_short", "scan of length 0 or 1 -> the body's ops", unroll_short},
      {"scan_fixed_carry", "a carry that the body returns as it was -> a constant", fix_carries},
      {"scan_equal_slices", "xs of equal slices -> a constant", unstack},
      {"scan_hoist", "what the body makes of constants alone -> made before the loop",
       hoist_from_body}};
}

}  // namespace weft::scan
