// sharding_constraint: how a value is to be split over the devices of a mesh. shard_alike: that two
// are to be split alike. device_put: in which of their memories a value is to be.
#include <algorithm>

#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "ops/def/plain.h"
#include "ops/def/presets.h"
#include "ops/mesh/family.h"
#include "weft/placements.h"

namespace weft {
namespace {

// The constraint of each of several values that are stacked along a new dimension: that is split
// over the axes, in lines, that the user named for it, or as XLA likes.
ShardingRef with_dim(ShardingRef sharding, int at, std::string_view spmd_axis_name) {
  ShardingParts parts = sharding->parts();
  auto place = static_cast<size_t>(at);
  if (parts.dims.size() < place) parts.dims.resize(place);
  DimSharding added{.axes = {}, .open = spmd_axis_name.empty()};
  for (std::string_view name : lines_of(spmd_axis_name)) {
    added.axes.push_back(parts.mesh->find(name));
    if (added.axes.back() < 0)
      fail(ErrorKind::kValue, "[sharding_constraint] expected spmd_axis_name of ",
           shown(parts.mesh), "; got '", name, "'");
  }
  parts.dims.insert(parts.dims.begin() + at, added);
  return make_sharding(std::move(parts));
}

// Within a shard_map its axes are the program's own, and the mesh is that of the shard_map.
void check_not_manual(EmitCtx& c, ShardingRef sharding) {
  MeshRef around = c.manual_mesh();
  if (!around) return;
  if (!same_grid(around, sharding->mesh()))
    fail(ErrorKind::kValue, "[sharding_constraint] expected the mesh of the shard_map around it, ",
         shown(around), "; got ", shown(sharding->mesh()));
  for (const DimSharding& dim : sharding->dims())
    for (int64_t axis : dim.axes)
      if (around->axis(axis).type == AxisType::kManual)
        fail(ErrorKind::kValue, "[sharding_constraint] expected axes that are not manual in ",
             shown(around), "; got '", around->axis(axis).name, "' in ", shown(sharding));
}

// The values, split alike where both are there.
Vals alike(const RuleCtx& c, std::span<const Value> values) {
  Vals xs;
  for (Value v : values) xs.push_back(v ? c.val(v) : Val{});
  return xs[0] && xs[1] ? apply(c.op, xs, c.attrs) : xs;
}

OpDef shard_alike_op() {
  OpDef d;
  d.name = "shard_alike";
  d.doc = "The operands; XLA, where it chooses how they are split, splits them alike.";
  d.num_operands = 2;
  d.infer = [](const InferCtx& c) {
    if (c.operands[0]->shape() != c.operands[1]->shape())
      c.fail(ErrorKind::kShape, "expected operands of one shape; got ", c.operands[0], " and ",
             c.operands[1]);
    return TypeRefs(c.operands);
  };
  hands_on(d, alike);
  d.batch = [](BatchCtx& c) {
    int dim = c.dim(c.batched(0) ? 0 : 1);
    c.apply(Vals{c.at(0, dim), c.at(1, dim)}, c.attrs, dim);
  };
  // A device's part of a value in a shard_map is not split any further.
  d.emit = [](EmitCtx& c) {
    int64_t group = c.channel();
    for (size_t i = 0; i < c.size(); ++i) {
      std::string x = c.in(i);
      if (!c.manual_mesh() && !has_plain_ops_only(c.platform()))
        c.line(cat("sdy.sharding_group ", x, " group_id=", group, " : ", mlir_type(c.in_type(i))),
               0);
      c.set_out(i, x);
    }
  };
  d.cost = [](const CostCtx&) { return Cost{}; };
  return d;
}

}  // namespace

// Attributes `memory` and `source`: kinds of memory, "device" for the default one.
void register_device_put(OpRegistry& r) {
  OpDef op = unary({.name = "device_put",
                    .doc = "The same values, in another memory of the devices.",
                    .dtypes = kAnyElement,
                    .attrs = {{"memory", AttrType::kString}, {"source", AttrType::kString}},
                    .flops = 0});
  op.place = [](PlaceCtx& c) {
    ShardingParts parts = c.in[0]->parts();
    parts.memory = c.attr().string("memory");
    c.out.push_back(make_sharding(std::move(parts)));
  };
  // The memories of CPUs are one: what a program returns is all that tells them apart.
  op.emit = [](EmitCtx& c) {
    if (c.platform() == "cpu" || has_plain_ops_only(c.platform())) return c.set_out(0, c.in(0));
    std::string type = mlir_type(c.out_type());
    c.set_out(0,
              c.line(cat("stablehlo.custom_call @annotate_device_placement(", c.in(0),
                         ") {backend_config = \"\", has_side_effect = true, "
                         "mhlo.frontend_attributes = {_xla_buffer_placement = ",
                         mlir_string(c.attr().string("memory")), "}} : (", type, ") -> ", type)));
  };
  op.elementwise = false;  // it is for whole arrays
  r.add(linear(op, [](TransposeCtx& c) {
    Val ct = c.ct();
    AttrsRef back = AttrRecord::make(
        c.op.name, c.op.attrs,
        {{"memory", c.attr().string("source")}, {"source", c.attr().string("memory")}});
    c.add(0, apply(c.op, {&ct, 1}, back)[0]);
  }));
}

void register_sharding(OpRegistry& r) {
  register_device_put(r);
  r.add(shard_alike_op());
  OpDef op = unary({.name = "sharding_constraint",
                    .doc = "The same values, split over a mesh as the sharding says.",
                    .dtypes = kAnyElement,
                    .attrs = {{"sharding", AttrType::kSharding}},
                    .flops = 0});
  op.infer = [](const InferCtx& c) {
    ShardingRef sharding = c.attr().sharding("sharding");
    std::string problem = misfit(sharding, c.operands[0]);
    if (!problem.empty()) c.fail(ErrorKind::kValue, problem);
    for (const Dims* axes : {&sharding->unreduced(), &sharding->reduced()})
      for (int64_t axis : *axes)
        if (sharding->mesh()->axis(axis).type != AxisType::kExplicit)
          c.fail(ErrorKind::kValue, "expected unreduced and reduced axes of type explicit; got ",
                 shown(sharding));
    return TypeRefs{c.operands[0]};
  };
  op.batch = [](BatchCtx& c) {
    ShardingRef sharding = with_dim(c.attr().sharding("sharding"), c.dim(0), c.spmd_axis_name);
    Val x = c.x(0);
    AttrsRef attrs = AttrRecord::make(c.op.name, c.op.attrs, {{"sharding", sharding}});
    c.apply({&x, 1}, attrs, c.dim(0));
  };
  op.place = [](PlaceCtx& c) {
    ShardingRef wanted = c.attr().sharding("sharding");
    ShardingParts parts = on_explicit_axes(wanted, c.mesh)->parts();
    parts.memory.clear();  // it stays in its own
    for (size_t i = 0; i < wanted->dims().size(); ++i) {
      if (!wanted->dim(i).open || !wanted->dim(i).axes.empty()) continue;
      parts.dims.resize(std::max(parts.dims.size(), i + 1));
      const Dims& own = c.in[0]->dim(i).axes;
      bool is_taken = std::any_of(own.begin(), own.end(),
                                  [&](int64_t axis) { return uses_axis(wanted, axis); });
      if (!is_taken) parts.dims[i].axes = own;
    }
    c.out.push_back(make_sharding(std::move(parts)));
  };
  op.emit = [](EmitCtx& c) {
    ShardingRef sharding = c.attr().sharding("sharding");
    if (sharding->mesh()->size() == 1) return c.set_out(0, c.in(0));
    check_not_manual(c, sharding);
    c.set_out(0, emit_constraint(c, c.in(0), c.out_type(), sharding));
  };
  op.elementwise = false;  // dimensions matter
  op.sums = Sums::kPlaced;
  r.add(linear(op, [](TransposeCtx& c) {
    // What is added up later has the cotangent of the sum, in each of its parts. Cotangents that
    // are summands are added up here: it is not known how the operand is split.
    ShardingRef own = c.attr().sharding("sharding");
    ShardingRef sharding = with_reduced(with_unreduced(own, {}), own->unreduced());
    Val ct = c.ct();
    AttrsRef attrs = AttrRecord::make(c.op.name, c.op.attrs, {{"sharding", sharding}});
    c.add(0, apply(c.op, {&ct, 1}, attrs)[0]);
  }));
}

}  // namespace weft
