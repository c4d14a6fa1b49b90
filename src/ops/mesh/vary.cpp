// Over which axes of a mesh values vary: pvary, vary_cast, vary_like.
#include "ops/def/place.h"
#include "ops/mesh/family.h"
#include "ops/mesh/lanes.h"

namespace weft {
namespace {

// An op that changes nothing but how its operand counts along axes. Lanes of vmap are not counted.
void counts_only(OpDef& d) {
  d.elementwise = true;
  d.infer = [](const InferCtx& c) -> TypeRefs {
    check_names(c);
    return {c.in(0)};
  };
  d.batch = [](BatchCtx& c) {
    Names others = names_of(c.attr());
    std::erase(others, c.axis_name);
    if (others.empty()) return c.result(c.x(0), c.dim(0));
    Val x = c.x(0);
    c.apply({&x, 1}, c.attrs->with({{"axes", others}}), c.dim(0));
  };
  d.emit = [](EmitCtx& c) { c.set_out(0, c.in(0)); };
  d.cost = [](const CostCtx&) { return Cost{}; };
  d.simplify = {{cat("drop_", d.name), cat(d.name, "(x) -> x"),
                 [](SimplifyCtx& c) -> Vals { return {c.x(0)}; }, Phase::kFinal}};
}

OpDef pvary_op() {
  OpDef d;
  d.name = "pvary";
  d.doc = "The operand, counted as one that may differ along axes of a mesh.";
  d.num_operands = 1;
  // Reduced: all parts have the same, and the cotangents are summands.
  d.attrs = {{"axes", AttrType::kAxisNames},
             {"reduced", AttrType::kBool, AttrSpec::kHideDefault, false}};
  counts_only(d);
  linear(d, [](TransposeCtx& c) { c.add(0, psum(c.ct(), names_of(c.attr()), true)); });
  d.shard = [](ShardCtx& c) {
    AxisSet own = c.set_of(names_of(c.attr()));
    bool reduced = c.attr().boolean("reduced");
    Val x = c.x(0);
    x = reduced ? apply(c.op, {&x, 1}, c.attrs)[0] : c.as(0, own);
    c.result(x.value, without(c.all(), own) | (reduced ? as_reduced(own) : own));
  };
  return d;
}

// What varies and is taken for summands, or what is reduced and is taken for what varies: each is
// the other's transpose.
OpDef vary_cast_op() {
  OpDef d;
  d.name = "vary_cast";
  d.doc = "The operand, whose parts along axes of a mesh count as summands, or no more as reduced.";
  d.num_operands = 1;
  d.attrs = {{"axes", AttrType::kAxisNames}, {"unreduced", AttrType::kBool}};
  counts_only(d);
  linear(d, [](TransposeCtx& c) {
    Val ct = c.ct();
    AttrsRef back = c.attrs->with({{"unreduced", !c.attr().boolean("unreduced")}});
    c.add(0, apply(c.op, {&ct, 1}, back)[0]);
  });
  d.shard = [](ShardCtx& c) {
    AxisSet own = c.set_of(names_of(c.attr())), set = c.all();
    Val x = c.as(0, as_reduced(own));
    c.result(apply(c.op, {&x, 1}, c.attrs)[0].value,
             without(set, own) | (c.attr().boolean("unreduced") ? as_unreduced(own) : own));
  };
  return d;
}

// There until it is known what varies; arrays that are made like another one start from it.
OpDef vary_like_op() {
  OpDef d;
  d.name = "vary_like";
  d.doc = "The first operand, counted as one that differs along the axes that the second does.";
  d.num_operands = 2;
  d.infer = [](const InferCtx& c) -> TypeRefs { return {c.in(0)}; };
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {[](const JvpArgCtx& c) { return c.t(); }, nullptr};
  d.batch = [](BatchCtx& c) { c.result(apply(c.op, Vals{c.x(0), c.x(1)}, nullptr)[0], c.dim(0)); };
  d.place = [](PlaceCtx& c) { place_result(c, split_of(c, 0)); };
  d.emit = [](EmitCtx& c) { c.set_out(0, c.in(0)); };
  d.cost = [](const CostCtx&) { return Cost{}; };
  d.simplify = {{"drop_vary_like", "vary_like(x, y) -> x",
                 [](SimplifyCtx& c) -> Vals { return {c.x(0)}; }, Phase::kFinal}};
  return d;
}

}  // namespace

void register_vary(OpRegistry& r) {
  r.add(pvary_op());
  r.add(vary_cast_op());
  r.add(vary_like_op());
}

Val vary_cast(Val x, const std::vector<std::string>& axes, bool unreduced) {
  const OpDef& op = op_named<"vary_cast">();
  AttrsRef attrs = AttrRecord::make(op.name, op.attrs, {{"axes", axes}, {"unreduced", unreduced}});
  return apply(op, {&x, 1}, attrs)[0];
}

Val pvary(Val x, const std::vector<std::string>& axes) {
  const OpDef& op = op_named<"pvary">();
  return apply(op, {&x, 1}, AttrRecord::make(op.name, op.attrs, {{"axes", axes}}))[0];
}

}  // namespace weft
