#include "ops/def/selected.h"

#include <algorithm>

#include "weft/build.h"

namespace weft {
namespace {

bool is_zero(Val x) {
  const Literal* number = x.builder->as_literal(x.value);
  return number && *number == make_literal(number->dtype, 0.0);
}

std::optional<Selected> outer_select(Val v) {
  const Op* op = made_by<"select_n">(v);
  if (!op) return {};
  std::span<const Value> cases = v.builder->operands(*op).subspan(1);
  auto is_kept = [&](Value x) { return !is_zero({v.builder, x}); };
  if (cases.size() < 2 || std::count_if(cases.begin(), cases.end(), is_kept) != 1) return {};
  auto place =
      static_cast<size_t>(std::find_if(cases.begin(), cases.end(), is_kept) - cases.begin());
  Val which{v.builder, v.builder->operands(*op)[0]}, kept{v.builder, cases[place]};
  if (kept.type()->shape() != v.type()->shape()) return {};
  if (const Op* spread = made_by<"broadcast_in_dim">(which)) {
    Val one{v.builder, v.builder->operands(*spread)[0]};
    if (one.type()->rank() == 0) which = one;
  }
  return Selected{which, kept, place, cases.size()};
}

// Whether the kept case is chosen. A number out of range chooses the nearest case.
Val is_chosen(const Selected& s) {
  bool is_last = s.place + 1 == s.num_cases;
  if (is_bool(s.which.dtype())) return is_last ? s.which : logical_not(s.which);
  Val place = scalar_like(s.which, static_cast<double>(s.place));
  return is_last ? ge(s.which, place) : s.place == 0 ? le(s.which, place) : eq(s.which, place);
}

bool same_select(const Selected& a, const Selected& b) {
  return a.which.value == b.which.value && a.place == b.place && a.num_cases == b.num_cases;
}

// Selects that stand in each other are one, of all their conditions.
std::optional<Selected> selected(Val v) {
  std::optional<Selected> found = outer_select(v);
  while (found) {
    std::optional<Selected> inner = outer_select(found->kept);
    if (!inner) break;
    if (!same_select(*found, *inner))
      *found = {logical_and(is_chosen(*found), is_chosen(*inner)), {}, 1, 2};
    found->kept = inner->kept;
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
  if (!out_types.empty() && keeps_elements(op, t.type(), out_types[0])) {
    s->which = reshape(s->which, out_types[0]->shape());
    return s;
  }
  return is_by_elements(op, t.type()->shape(), in_types) ? s : std::nullopt;
}

std::optional<Selected> selected_cotangent(Val ct, const OpDef& op, const AttrsRef& attrs,
                                           std::span<const TypeRef> in_types, const Mask& linear) {
  std::optional<Selected> s = selected_before(ct, op);
  if (!s || s->which.type()->rank() == 0) return s;
  const Dims& shape = ct.type()->shape();
  if (keeps_elements(op, in_types[0], ct.type())) {
    s->which = reshape(s->which, in_types[0]->shape());
    return s;
  }
  if (is_op<"broadcast_in_dim">(op)) {
    // The operand's cotangent sums up copies. Where the condition was broadcast in the same way, a
    // select leaves out all copies of an element or none, and can follow.
    const Op* made = made_by<"broadcast_in_dim">(s->which);
    if (!made) return {};
    Val one{ct.builder, ct.builder->operands(*made)[0]};
    auto dims = [](const AttrsRef& a) { return a->ints("broadcast_dimensions"); };
    s->which = one;
    bool same = one.type()->shape() == in_types[0]->shape() && dims(made->attrs) == dims(attrs);
    return same ? s : std::nullopt;
  }
  if (!is_by_elements(op, shape, in_types)) return {};
  for (size_t i = 0; i < in_types.size(); ++i)
    if (linear[i] && in_types[i]->shape() != shape) return {};
  return s;
}

Val select_as(const Selected& s, Val kept) {
  Vals xs{s.which};
  for (size_t i = 0; i < s.num_cases; ++i) xs.push_back(i == s.place ? kept : scalar_like(kept, 0));
  return apply(op_named<"select_n">(), xs, nullptr)[0];
}

Val sum_selected(Val x, Val y) {
  std::optional<Selected> a = outer_select(x), b = a ? outer_select(y) : std::nullopt;
  bool same = b && same_select(*a, *b);
  return same ? select_as(*a, add_any(a->kept, b->kept)) : add_any(x, y);
}

}  // namespace weft
