// What the files of the op scan share.
#pragma once

#include <vector>

#include "ops/axes.h"
#include "ops/loop_layout.h"

namespace weft::scan {

// Segments of the operands, which are those of the body's inputs, and of the results.
enum Operand : size_t { kConsts, kCarry, kXs };
enum Result : size_t { kCarryOut, kYs };

// The attributes of a scan, and where its operands stand.
struct Scan {
  GraphRef body;
  int64_t length, unroll;
  bool reverse;
  size_t num_consts, num_carry, num_xs, num_ys;
  LoopLayout in, out;

  explicit Scan(const AttrRecord& attrs)
      : body(attrs.graph("jaxpr")),
        length(attrs.integer("length")),
        unroll(attrs.integer("unroll")),
        reverse(attrs.boolean("reverse")),
        num_consts(static_cast<size_t>(attrs.integer("num_consts"))),
        num_carry(static_cast<size_t>(attrs.integer("num_carry"))),
        num_xs(body->num_inputs() - num_consts - num_carry),
        num_ys(body->outputs().size() - num_carry),
        in{{"consts", num_consts}, {"carry", num_carry}, {"xs", num_xs}},
        out{{"carry", num_carry}, {"ys", num_ys}} {}

  size_t first_xs() const { return in[kXs].begin; }
  Carries carries() const { return {num_consts, num_carry}; }
  // Whether the body returns carry i as it was.
  bool is_fixed(size_t i) const {
    return body->outputs()[i] == body->input(static_cast<uint32_t>(num_consts + i));
  }
  TypeRef stacked(TypeRef slice) const {
    return with_shape(slice, inserted(slice->shape(), 0, length));
  }
};

// The operands of a rule, by what they are.
struct Operands {
  Vals consts, carry, xs;
  Operands() = default;
  Operands(const Vals& all, const LoopLayout& in)
      : consts(in[kConsts].of(all)), carry(in[kCarry].of(all)), xs(in[kXs].of(all)) {}
  Operands(const RuleCtx& c, const Scan& s) : Operands(vals_of(c.b, c.operands), s.in) {}

  Vals all() const { return joined({consts, carry, xs}); }
};

// Types of a body's inputs for these operands.
inline TypeRefs body_types(const Operands& x) {
  TypeRefs types = types_of(x.consts);
  types.append(types_of(x.carry));
  for (const Val& v : x.xs) {
    Dims shape = v.shape();
    shape.erase(0);
    types.push_back(with_shape(v.type(), shape));
  }
  return types;
}

inline AttrsRef make_attrs(const AttrsRef& like, const GraphRef& body, size_t num_consts,
                           size_t num_carry) {
  return like->with({{"jaxpr", body},
                     {"num_consts", static_cast<int64_t>(num_consts)},
                     {"num_carry", static_cast<int64_t>(num_carry)}});
}

inline Vals apply_scan(const RuleCtx& c, const AttrsRef& like, const GraphRef& body,
                       const Operands& x) {
  AttrsRef attrs = make_attrs(like, body, x.consts.size(), x.carry.size());
  return vals_of(c.b, c.b.add(c.op, values_of(x.all()), attrs));
}
inline Vals apply_scan(const RuleCtx& c, const GraphRef& body, const Operands& x) {
  return apply_scan(c, c.attrs, body, x);
}

// All iterations, one after the other.
Vals unrolled(Builder& b, const Scan& s, const Operands& x, std::span<const TypeRef> out_types);
// The body, applied to slices of xs.
Vals iteration(Builder& b, const Scan& s, std::span<const Val> consts, std::span<const Val> carry,
               const Vals& slices);

std::vector<Rewrite> rewrites();
// Rewrites that move matrix products out of the loop.
Vals move_products(SimplifyCtx& c);

}  // namespace weft::scan
