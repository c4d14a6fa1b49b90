// Over which axes of a mesh values vary: pvary, vary_like.
#include "ops/def/place.h"
#include "ops/mesh/family.h"
#include "ops/mesh/lanes.h"

namespace weft {
namespace {

OpDef pvary_op() {
  OpDef d;
  d.name = "pvary";
  d.doc = "The operand, counted as one that may differ along axes of a mesh.";
  d.num_operands = 1;
  d.attrs = {{"axes", AttrType::kAxisNames}};
  d.elementwise = true;
  d.infer = [](const InferCtx& c) -> TypeRefs {
    check_names(c);
    return {c.in(0)};
  };
  linear(d, [](TransposeCtx& c) { c.add(0, psum(c.ct(), names_of(c.attr()), true)); });
  // Lanes of vmap are not counted.
  d.batch = [](BatchCtx& c) {
    Names others = names_of(c.attr());
    std::erase(others, c.axis_name);
    c.result(others.empty() ? c.x(0) : pvary(c.x(0), others), c.dim(0));
  };
  d.shard = [](ShardCtx& c) {
    AxisSet set = c.all() | c.set_of(names_of(c.attr()));
    c.result(c.as(0, set).value, set);
  };
  d.emit = [](EmitCtx& c) { c.set_out(0, c.in(0)); };
  d.cost = [](const CostCtx&) { return Cost{}; };
  d.simplify = {{"drop_pvary", "pvary(x) -> x", [](SimplifyCtx& c) -> Vals { return {c.x(0)}; },
                 Phase::kFinal}};
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
  r.add(vary_like_op());
}

Val pvary(Val x, const std::vector<std::string>& axes) {
  const OpDef& op = op_named<"pvary">();
  return apply(op, {&x, 1}, AttrRecord::make(op.name, op.attrs, {{"axes", axes}}))[0];
}

}  // namespace weft
