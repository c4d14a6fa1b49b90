// Tangents and cotangents in which a select has set elements to zero.
//
// Such an element stays zero, whatever the slope of the next op is there. The product of zero and
// a slope that is infinite or NaN would be NaN. So a linear op is applied before the select, and
// the gradient of where(x > 0, sqrt(x), 0) is 0 at x = 0.
#pragma once

#include <optional>
#include <span>

#include "weft/op_def.h"

namespace weft {

// A select of which one case is `kept` and the others are zero.
struct Selected {
  Val which, kept;
  size_t place, num_cases;  // of `kept` among the cases
};
// The select that made a tangent, as it is behind an op that is linear in that tangent; none if the
// op may not be applied before it. Result types may be left out if they are not known.
std::optional<Selected> selected_tangent(Val t, const OpDef& op, std::span<const TypeRef> in_types,
                                         std::span<const TypeRef> out_types);
// The same for a cotangent and the transpose of an op. `linear` says which operands get one.
std::optional<Selected> selected_cotangent(Val ct, const OpDef& op, const AttrsRef& attrs,
                                           std::span<const TypeRef> in_types, const Mask& linear);
// The same select of another value.
Val select_as(const Selected& s, Val kept);
// The sum of two values. Where one select left elements out of both, it leaves them out of the sum.
Val sum_selected(Val x, Val y);

}  // namespace weft
