#include "ops/def/function.h"

#include <algorithm>

#include "ops/def/axes.h"
#include "ops/def/regions.h"
#include "weft/error.h"
#include "weft/hash.h"
#include "weft/registry.h"

namespace weft {
namespace {

// A program grows with each derivative to some multiple; nobody needs more.
constexpr size_t kMaxDerivatives = 6;

Vals operands_of(const RuleCtx& c) {
  Vals xs;
  for (size_t i = 0; i < c.size(); ++i) xs.push_back(c.x(i));
  return xs;
}

Vals in_f64(const RuleCtx& c) {
  Vals wide;
  for (size_t i = 0; i < c.size(); ++i)
    wide.push_back(convert(broadcast_to(c.x(i), c.out_types[0]->shape()), DType::kF64));
  return wide;
}

// The output of a graph, and its slope by input `by`.
Vals jvp_of(Builder& b, const Transforms& transforms, const GraphRef& graph,
            std::span<const Val> xs, size_t by) {
  JvpOptions options{.in_mask = Mask(xs.size()), .instantiate = {true}};
  options.in_mask[by] = true;
  Vals args(xs);
  args.push_back(ones_like(xs[by]));
  return inlined(b, transforms.jvp(graph, options)->graph, args);
}

TypeRefs infer_derivative(const InferCtx& c) {
  const std::string& name = c.attr().string("function");
  const OpDef* f = registry().find(name);
  if (!f || !is_function(*f) || !f->elementwise)
    c.fail(ErrorKind::kValue, "expected the name of an element-wise function; got function=", name);
  int64_t num_operands = f->num_operands;
  if (static_cast<int64_t>(c.size()) != num_operands)
    c.fail(ErrorKind::kType, "expected ", num_operands, " operands, those of ", name, "; got ",
           c.size());
  const Dims& by = c.attr().ints("by");
  auto is_operand = [&](int64_t i) { return 0 <= i && i < num_operands; };
  if (by.empty() || !std::all_of(by.begin(), by.end(), is_operand))
    c.fail(ErrorKind::kValue, "expected numbers of operands, 0 to ", num_operands - 1,
           "; got by=", by);
  if (by.size() > kMaxDerivatives)
    c.fail(ErrorKind::kNotImplemented, "expected at most ", kMaxDerivatives, " derivatives of ",
           name, "; got by=", by);
  return infer_elementwise(c, kFloats);
}

Vals decompose_derivative(RuleCtx& c) {
  const OpDef& f = registry().get(c.attr().string("function"));
  Vals wide = in_f64(c);
  TypeRefs types = types_of(wide);
  TypeRef out[] = {types[0]};
  GraphRef graph = decomposed(f, nullptr, types, out, *c.transforms);
  for (int64_t i : c.attr().ints("by")) {
    auto slope = [&](Builder& b, std::span<const Val> xs) -> Vals {
      return {jvp_of(b, *c.transforms, graph, xs, static_cast<size_t>(i))[1]};
    };
    graph = make_graph(types, slope);
  }
  return {convert(inlined(c.b, graph, wide)[0], c.out_types[0]->dtype())};
}

Vals jvp_derivative(JvpCtx& c) {
  Val sum;
  for (size_t i = 0; i < c.size(); ++i) {
    if (!c.has_t(i)) continue;
    Dims by = c.attr().ints("by");
    by.push_back(static_cast<int64_t>(i));
    Val share = c.t(i) * derivative(c.attr().string("function"), operands_of(c), by);
    sum = sum ? add_any(sum, share) : share;
  }
  return {sum};
}

}  // namespace

Vals repeat(std::span<const Val> state, int64_t max_steps, const Step& step) {
  Vals carry{full(*state[0].builder, scalar_type(DType::kI32), 0)};
  for (const Val& v : state) carry.push_back(v);
  TypeRefs types = types_of(carry);
  auto condition = [&](Builder&, std::span<const Val> xs) -> Vals {
    Val any = reduce_or(xs[1], count_up(xs[1].rank()));
    return {logical_and(lt(xs[0], scalar_like(xs[0], static_cast<double>(max_steps))), any)};
  };
  auto body = [&](Builder&, std::span<const Val> xs) {
    std::span<const Val> old = xs.subspan(1);
    Vals next = step(xs[0], old);
    Vals out{xs[0] + 1.0, logical_and(old[0], next[0])};
    for (size_t i = 1; i < old.size(); ++i) {
      bool changed = next[i].value != old[i].value;
      out.push_back(changed ? select(old[0], next[i], old[i]) : old[i]);
    }
    return out;
  };
  const OpDef& op = op_named<"while">();
  AttrsRef attrs = AttrRecord::make(op.name, op.attrs,
                                    {{"cond_jaxpr", make_graph(types, condition)},
                                     {"cond_nconsts", int64_t{0}},
                                     {"body_jaxpr", make_graph(types, body)},
                                     {"body_nconsts", int64_t{0}}});
  Vals results = apply(op, carry, attrs);
  return Vals(std::span<const Val>(results).subspan(1));
}

OpDef derivative_op() {
  OpDef d;
  d.name = "derivative";
  d.doc = "The derivative of an element-wise function by operands, one after the other.";
  d.attrs = {{"function", AttrType::kString}, {"by", AttrType::kInts}};
  d.infer = infer_derivative;
  d.jvp_kind = JvpKind::kCustom;
  d.jvp = jvp_derivative;
  d.batch = batch_elementwise;
  d.decompose = FunctionRule{decompose_derivative};
  d.elementwise = true;
  d.cost = [](const CostCtx& c) { return cost_elementwise(c, 3000, true); };
  return d;
}

OpDef wide_function(WideFunction f) {
  f.jvp.resize(f.num_operands);
  for (size_t i = 0; i < f.num_operands; ++i) {
    if (f.jvp[i]) continue;
    f.jvp[i] = [name = std::string(f.name), i](const JvpArgCtx& c) {
      return c.t() * derivative(name, operands_of(c), {static_cast<int64_t>(i)});
    };
  }
  OpDef op = binary({.name = f.name,
                     .doc = f.doc,
                     .hlo = "",
                     .dtypes = kFloats,
                     .jvp = std::move(f.jvp),
                     .flops = f.flops,
                     .transcendental = true});
  op.num_operands = static_cast<int>(f.num_operands);
  op.decompose = FunctionRule{[value = std::move(f.value)](RuleCtx& c) -> Vals {
    return {convert(value(c, in_f64(c)), c.out_types[0]->dtype())};
  }};
  return op;
}

Val derivative(std::string_view function, std::span<const Val> xs, const Dims& by) {
  Dims sorted = by;  // their order makes no difference
  std::sort(sorted.begin(), sorted.end());
  const OpDef& op = op_named<"derivative">();
  AttrsRef attrs =
      AttrRecord::make(op.name, op.attrs, {{"function", std::string(function)}, {"by", sorted}});
  return apply(op, xs, attrs)[0];
}

JvpArgRule times_slope(std::string function) {
  return [function = std::move(function)](const JvpArgCtx& c) {
    return c.t() * apply(registry().get(function), operands_of(c), nullptr)[0];
  };
}

ValueAndSlope value_and_slope(const RuleCtx& c, std::span<const Val> xs, size_t by,
                              const std::function<Val(std::span<const Val>)>& f) {
  GraphRef graph = make_graph(
      types_of(xs), [&](Builder&, std::span<const Val> inputs) -> Vals { return {f(inputs)}; });
  Vals made = jvp_of(c.b, *c.transforms, graph, xs, by);
  return {made[0], made[1]};
}

namespace {

// The graph of what a rule writes an op as; null if it writes nothing.
GraphRef written(const std::function<Vals(RuleCtx&)>& rule, const OpDef& op, const AttrsRef& attrs,
                 std::span<const TypeRef> in_types, std::span<const TypeRef> out_types,
                 const Transforms& transforms, std::string_view platform) {
  GraphBuilder b;
  Values operands;
  for (TypeRef t : in_types) operands.push_back(b.input(t));
  RuleCtx ctx{b, op, attrs, operands, in_types, out_types, &transforms, platform};
  Values results;
  for (Val v : rule(ctx)) results.push_back(v.value);
  if (results.empty() && !out_types.empty()) return nullptr;
  bool as_inferred = results.size() == out_types.size();
  for (size_t i = 0; as_inferred && i < results.size(); ++i)
    as_inferred = b.type(results[i]) == out_types[i];
  if (!as_inferred)
    fail(ErrorKind::kInternal, "[", op.name,
         "] decomposes to results of other types than inferred");
  return b.finish(results);
}

}  // namespace

uint64_t hash_use(const OpDef& op, const AttrsRef& attrs, std::span<const TypeRef> in_types) {
  uint64_t h = hash_combine(hash_pointer(&op), hash(attrs));
  for (TypeRef t : in_types) h = hash_combine(h, hash_pointer(t));
  return h;
}

GraphRef decomposed(const OpDef& op, const AttrsRef& attrs, std::span<const TypeRef> in_types,
                    std::span<const TypeRef> out_types, const Transforms& transforms,
                    std::string_view platform) {
  GraphRef graph = written(op.decompose, op, attrs, in_types, out_types, transforms, platform);
  if (!graph) fail(ErrorKind::kInternal, "[", op.name, "] decomposes to no results");
  return graph;
}

GraphRef written_for_kernel(const OpDef& op, const AttrsRef& attrs,
                            std::span<const TypeRef> in_types, std::span<const TypeRef> out_types,
                            const Transforms& transforms) {
  return written(op.for_kernel, op, attrs, in_types, out_types, transforms, "cpu");
}

}  // namespace weft
