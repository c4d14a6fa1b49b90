// What the rule contexts of op_def.h do for rules: zeros on demand, sums of cotangents, moving
// mapped axes, looking through constants.
#include "weft/op_def.h"

#include <cmath>

#include "ops/def/axes.h"
#include "ops/def/marks.h"
#include "weft/build.h"

namespace weft {

Val JvpCtx::t(size_t i) const {
  if (tangents[i]) return {&b, tangents[i]};
  return zeros(b, in_types[i]);
}

Val TransposeCtx::ct(size_t r) const {
  if (cotangents[r]) return {&b, cotangents[r]};
  return zeros(b, out_types[r]);
}

void TransposeCtx::add(size_t i, Val ct) {
  if (ct.type() != in_types[i]) {
    fail(ErrorKind::kInternal, "[", op.name, "] transpose made a cotangent of type ", ct.type(),
         " for operand ", i, " of type ", in_types[i]);
  }
  accumulate(i, [&](Val sum) { return add_any(sum, ct); }, [&] { return ct; });
}

void TransposeCtx::accumulate(size_t i, const std::function<Val(Val)>& update,
                              const std::function<Val()>& fresh) {
  Value& sum = accumulated[i];
  sum = (sum ? update(val(sum)) : fresh()).value;
}

Val BatchCtx::at(size_t i, int dim) const {
  if (batched(i)) return move_axis(x(i), dims[i], dim);
  Dims shape = inserted(in_types[i]->shape(), dim, size);
  return broadcast_in_dim(x(i), shape, other_axes(in_types[i]->rank() + 1, {dim}));
}

Val BatchCtx::moved(size_t i, int dim) const { return batched(i) ? at(i, dim) : x(i); }

void BatchCtx::apply(std::span<const Val> xs, const AttrsRef& with, int dim) {
  SmallVector<Value, 4> values;
  for (const Val& v : xs) values.push_back(v.value);
  for (Value v : b.add(op, values, with)) result(val(v), dim);
}

const Op* producer(Val v, const OpDef& op) {
  const Op* found = v.builder->producer(v.value);
  return found && found->info == &op ? found : nullptr;
}

std::optional<Literal> SimplifyCtx::splat(Val v) const {
  while (Val source = operand_of<"broadcast_in_dim">(v)) v = source;
  if (const Literal* x = b.as_literal(v.value)) return *x;
  return std::nullopt;
}

bool SimplifyCtx::is_splat(Val v, double x) const {
  std::optional<Literal> s = splat(v);
  if (!s) return false;
  auto is = [](double number, double expected) {
    return number == expected && std::signbit(number) == std::signbit(expected);
  };
  switch (kind(s->dtype)) {
    case DTypeKind::kFloat:
      return is(s->as_double(), x);
    case DTypeKind::kComplex:
      return is(s->as_double(), x) && is(s->imag(), std::copysign(0.0, x));
    case DTypeKind::kUnsigned:
      return static_cast<double>(s->lo) == x;
    default:
      return static_cast<double>(s->as_int()) == x;
  }
}

std::vector<std::string> OpDef::missing_rules() const {
  std::vector<std::string> missing;
  auto need = [&](bool present, const char* slot) {
    if (!present) missing.push_back(slot);
  };
  need(!doc.empty(), "doc");
  need(static_cast<bool>(infer), "infer");
  need(jvp_kind != JvpKind::kNone, "jvp");
  if (jvp_kind == JvpKind::kCustom) need(static_cast<bool>(jvp), "jvp");
  if (jvp_kind == JvpKind::kGraph) need(graph_jvp && graph_linearize, "jvp");
  bool is_linear = jvp_kind == JvpKind::kLinear || jvp_kind == JvpKind::kGraph;
  if (is_linear) need(static_cast<bool>(transpose), "transpose");
  need(static_cast<bool>(batch), "batch");
  need(emit || decompose, "emit");
  need(static_cast<bool>(cost), "cost");
  return missing;
}

// ---- Shards

AxisSet ShardCtx::set_of(std::span<const std::string> names, std::vector<std::string>* rest) const {
  AxisSet set = 0;
  for (const std::string& name : names) {
    auto at = std::find(axes.begin(), axes.end(), name);
    if (at != axes.end()) {
      set |= AxisSet{1} << (at - axes.begin());
    } else if (rest) {
      rest->push_back(name);
    }
  }
  return set;
}

std::vector<std::string> ShardCtx::names_of(AxisSet set) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < axes.size(); ++i)
    if (set >> i & 1) names.push_back(axes[i]);
  return names;
}

std::string ShardCtx::text(TypeRef type, AxisSet set) const {
  std::string text;
  auto add = [&](const char* how, AxisSet own) {
    std::vector<std::string> names = names_of(own);
    if (names.empty()) return;
    text += cat(text.empty() ? "{" : ", ", how, names.size() > 1 ? "(" : "");
    for (const std::string& name : names) text += cat(&name == names.data() ? "" : ",", name);
    if (names.size() > 1) text += ')';
  };
  AxisSet unreduced = unreduced_of(set), reduced = reduced_of(set);
  add("V:", without_marks(set) & ~unreduced & ~reduced);
  add("U:", unreduced);
  add("R:", reduced);
  return cat(type, text, text.empty() ? "" : "}");
}

AxisSet ShardCtx::all() const {
  AxisSet set = 0;
  for (AxisSet s : varying) set = joined(set, s);
  return set;
}

AxisSet ShardCtx::of_results() const {
  AxisSet set = all(), marked = 0, reduced = 0;
  for (AxisSet s : varying) marked |= unreduced_of(s) | reduced_of(s), reduced |= reduced_of(s);
  if (!marked) return set;
  SmallVector<Marks, 4> marks;
  for (AxisSet s : varying) marks.push_back({unreduced_of(s), reduced_of(s)});
  std::optional<uint64_t> sums = sums_of_results(op, marks);
  if (strict) {
    std::string operands;
    for (size_t i = 0; i < size(); ++i) operands += (i ? ", " : "") + text(in_types[i], varying[i]);
    if (!sums) fail_sums(op, operands);
    for (size_t i = 0; i < size() && op.elementwise; ++i)
      if (in_types[i]->rank() && !b.as_literal(this->operands[i]) && reduced & ~varying[i])
        fail_reduced(op, operands);
  }
  AxisSet made = sums.value_or(0), unreduced = unreduced_of(set) | made;
  return without(set, unreduced) | unreduced | as_unreduced(made);
}

Val ShardCtx::as(size_t i, AxisSet set) const {
  if (b.as_literal(operands[i])) return x(i);
  AxisSet missing = without_marks(set & ~varying[i]);
  AxisSet marked = reduced_of(varying[i]) & set & ~reduced_of(set);
  Val made = missing ? pvary(x(i), names_of(missing)) : x(i);
  return marked ? vary_cast(made, names_of(marked), false) : made;
}

void ShardCtx::apply(AxisSet set) {
  Values xs;
  for (size_t i = 0; i < size(); ++i) xs.push_back(as(i, set).value);
  for (Value v : b.add_typed(op, xs, attrs, out_types)) result(v, set);
}

}  // namespace weft
