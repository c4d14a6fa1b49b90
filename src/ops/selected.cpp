#include "ops/selected.h"

#include <algorithm>

#include "weft/build.h"

namespace weft {
namespace {

// The op that made a value, if it is this one.
template <OpName name>
const Op* made_by(Val v) {
  const Op* op = v.builder->producer(v.value);
  return op && op->info == &op_named<name>() ? op : nullptr;
}

bool is_zero(Val x) {
  const Literal* number = x.builder->as_literal(x.value);
  return number && *number == make_literal(number->dtype, 0.0);
}

std::optional<Selected> outer_select(Val v) {
  const Op* op = made_by<"select_n">(v);
  if (!op || op->num_operands != 3) return {};
  std::span<const Value> xs = v.builder->operands(*op);
  Val which{v.builder, xs[0]}, on_false{v.builder, xs[1]}, on_true{v.builder, xs[2]};
  bool keeps_true = is_zero(on_false);
  if (!keeps_true && !is_zero(on_true)) return {};
  Val kept = keeps_true ? on_true : on_false;
  if (!is_bool(which.dtype()) || kept.type()->shape() != v.type()->shape()) return {};
  if (const Op* spread = made_by<"broadcast_in_dim">(which)) {
    Val one{v.builder, v.builder->operands(*spread)[0]};
    if (one.type()->rank() == 0) which = one;
  }
  return Selected{which, kept, keeps_true};
}

// Selects that stand in each other are one, of all their conditions.
std::optional<Selected> selected(Val v) {
  auto condition = [](const Selected& s) { return s.on_true ? s.which : logical_not(s.which); };
  std::optional<Selected> found = outer_select(v);
  while (found) {
    std::optional<Selected> inner = outer_select(found->kept);
    if (!inner) break;
    if (inner->which.value == found->which.value && inner->on_true == found->on_true) {
      found->kept = inner->kept;
      continue;
    }
    found = Selected{logical_and(condition(*found), condition(*inner)), inner->kept, true};
  }
  return found;
}

template <OpName name>
bool is_op(const OpDef& op) {
  return &op == &op_named<name>();
}

// The select that made a value, if the op is one that a select can follow. Collectives are not: a
// condition that is a scalar may differ between devices.
std::optional<Selected> selected_before(Val v, const OpDef& op) {
  bool follows = op.elementwise ? !is_op<"select_n">(op)
                                : is_op<"broadcast_in_dim">(op) || is_op<"reshape">(op) ||
                                      is_op<"transpose">(op) || is_op<"reduce_sum">(op) ||
                                      is_op<"dot_general">(op);
  return follows ? selected(v) : std::nullopt;
}

// Whether the op only changes the shape.
bool keeps_elements(const OpDef& op, TypeRef in, TypeRef out) {
  return is_op<"reshape">(op) ||
         (is_op<"broadcast_in_dim">(op) && in->num_elements() == out->num_elements());
}

// Whether each element of the result depends on one element of an operand of this shape.
bool is_by_elements(const OpDef& op, const Dims& shape, std::span<const TypeRef> in_types) {
  return op.elementwise && std::all_of(in_types.begin(), in_types.end(), [&](TypeRef type) {
           return type->rank() == 0 || type->shape() == shape;
         });
}

}  // namespace

std::optional<Selected> selected_tangent(Val t, const OpDef& op, std::span<const TypeRef> in_types,
                                         std::span<const TypeRef> out_types) {
  std::optional<Selected> s = selected_before(t, op);
  if (!s || s->which.type()->rank() == 0) return s;
  if (!out_types.empty() && keeps_elements(op, t.type(), out_types[0]))
    return Selected{reshape(s->which, out_types[0]->shape()), s->kept, s->on_true};
  return is_by_elements(op, t.type()->shape(), in_types) ? s : std::nullopt;
}

std::optional<Selected> selected_cotangent(Val ct, const OpDef& op, const AttrsRef& attrs,
                                           std::span<const TypeRef> in_types, const Mask& linear) {
  std::optional<Selected> s = selected_before(ct, op);
  if (!s || s->which.type()->rank() == 0) return s;
  const Dims& shape = ct.type()->shape();
  if (keeps_elements(op, in_types[0], ct.type()))
    return Selected{reshape(s->which, in_types[0]->shape()), s->kept, s->on_true};
  if (is_op<"broadcast_in_dim">(op)) {
    // Where the condition was broadcast as the operand was, the sum over copies is that of elements
    // of which all are left out or none.
    const Op* made = made_by<"broadcast_in_dim">(s->which);
    if (!made) return {};
    Val one{ct.builder, ct.builder->operands(*made)[0]};
    auto dims = [](const AttrsRef& a) { return a->ints("broadcast_dimensions"); };
    bool same = one.type()->shape() == in_types[0]->shape() && dims(made->attrs) == dims(attrs);
    return same ? std::optional(Selected{one, s->kept, s->on_true}) : std::nullopt;
  }
  if (!is_by_elements(op, shape, in_types)) return {};
  for (size_t i = 0; i < in_types.size(); ++i)
    if (linear[i] && in_types[i]->shape() != shape) return {};
  return s;
}

Val select_as(const Selected& s, Val kept) {
  Val zero = scalar_like(kept, 0);
  return s.on_true ? select(s.which, kept, zero) : select(s.which, zero, kept);
}

Val sum_selected(Val x, Val y) {
  std::optional<Selected> a = selected(x), b = a ? selected(y) : std::nullopt;
  bool same = b && a->which.value == b->which.value && a->on_true == b->on_true;
  return same ? select_as(*a, add_any(a->kept, b->kept)) : add_any(x, y);
}

}  // namespace weft
