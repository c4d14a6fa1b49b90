// What the files of the op scan share.
#pragma once

#include <vector>

#include "ops/control/loop_layout.h"
#include "ops/def/axes.h"

namespace weft::scan {

// Segments of the operands, which are those of the body's inputs, and of the results.
enum Operand : size_t { kConsts, kCarry, kXs };
enum Result : size_t { kCarryOut, kYs };

Loop loop_parts(const AttrRecord& attrs);
AttrsRef with_loop(const AttrsRef& attrs, const Loop& loop);

// The attributes of a scan, and where its operands stand.
struct Scan : LoopSegments {
  int64_t length, unroll;
  bool reverse;

  explicit Scan(const AttrRecord& attrs)
      : LoopSegments(loop_parts(attrs)),
        length(attrs.integer("length")),
        unroll(attrs.integer("unroll")),
        reverse(attrs.boolean("reverse")) {}

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

// All iterations, one after the other.
Vals unrolled(Builder& b, const Scan& s, const LoopOperands& x, std::span<const TypeRef> out_types);
// The body, applied to slices of xs.
Vals iteration(Builder& b, const Scan& s, std::span<const Val> consts, std::span<const Val> carry,
               const Vals& slices);

std::vector<Rewrite> rewrites();

}  // namespace weft::scan
