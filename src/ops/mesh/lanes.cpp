// Ops over named axes. A value under vmap(axis_name="i") is one per lane of the axis "i"; these ops
// let the lanes see each other. vmap of the axis turns them into ordinary ops on the mapped axis,
// by their batch rules. The axes that shard_map binds are those of a mesh, and the lanes its
// devices: over these the ops are compiled. What nothing has bound cannot be.
//
// Lanes may be split into groups, [[0, 2], [1, 3]], that see only each other. Within a group, a
// lane's place is its position in the list.
#include "ops/mesh/lanes.h"

#include <algorithm>
#include <map>

#include "ops/def/addressing.h"
#include "ops/def/axes.h"
#include "ops/def/dense.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "ops/mesh/family.h"

namespace weft {

// ---- Names and groups

const Names& names_of(const AttrRecord& attrs) {
  return attrs.names(attrs.schema().find("axes") >= 0 ? "axes" : "axis_name");
}

bool has_groups(const AttrRecord& attrs) {
  return attrs.schema().find("axis_index_groups") >= 0 && !attrs.is_none("axis_index_groups");
}

bool is_own(const BatchCtx& c) {
  const Names& names = names_of(c.attr());
  return !c.axis_name.empty() && std::find(names.begin(), names.end(), c.axis_name) != names.end();
}

void check_names(const InferCtx& c) {
  const Names& names = names_of(c.attr());
  if (names.empty()) c.fail(ErrorKind::kValue, "expected the name of a mapped axis; got none");
  for (size_t i = 0; i < names.size(); ++i)
    if (std::find(names.begin(), names.begin() + static_cast<long>(i), names[i]) !=
        names.begin() + static_cast<long>(i))
      c.fail(ErrorKind::kValue, "expected distinct names of axes; got '", names[i], "' twice");
}

void check_one_name(const InferCtx& c) {
  check_names(c);
  if (names_of(c.attr()).size() > 1)
    c.fail(ErrorKind::kNotImplemented, "expected one name of an axis; got ",
           names_of(c.attr()).size());
}

void check_groups(const InferCtx& c, bool equal_sizes) {
  if (!has_groups(c.attr())) return;
  const Groups& groups = c.attr().ints_list("axis_index_groups");
  Dims all;
  for (const Dims& group : groups) {
    if (equal_sizes && group.size() != groups[0].size())
      c.fail(ErrorKind::kValue, "expected axis_index_groups of one size; got sizes ",
             groups[0].size(), " and ", group.size());
    for (int64_t lane : group) all.push_back(lane);
  }
  std::sort(all.begin(), all.end());
  if (all.empty() || !counts_up(all))
    c.fail(ErrorKind::kValue, "expected axis_index_groups with each index of the axis once; got ",
           all.size(), " indices: ", all);
}

Groups groups_of(const BatchCtx& c) {
  if (!has_groups(c.attr())) return {count_up(static_cast<int>(c.size))};
  const Groups& groups = c.attr().ints_list("axis_index_groups");
  int64_t total = 0;
  for (const Dims& group : groups) total += static_cast<int64_t>(group.size());
  if (total != c.size)
    fail(ErrorKind::kValue, "[", c.op.name, "] expected axis_index_groups of the ", c.size,
         " indices of axis '", c.axis_name, "'; got ", total);
  return groups;
}

namespace {

// Over other axes of the mesh: dimensions stay, those whose size changes must not be split.
void place_collective(PlaceCtx& c) {
  TypeRef out = c.out_types[0];
  if (c.in.empty()) return place_result(c, Split(static_cast<size_t>(out->rank())));
  Dims whole;
  for (int64_t i = 0; i < out->rank(); ++i)
    if (c.in_types[0]->shape()[static_cast<size_t>(i)] != out->shape()[static_cast<size_t>(i)])
      whole.push_back(i);
  place_dims(c, kept_dims(out->rank(), whole));
}

}  // namespace

OpDef collective(std::string name, std::string doc) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  d.num_operands = 1;
  d.shard = [](ShardCtx& c) { c.apply(joined(c.all(), c.set_of(names_of(c.attr())))); };
  d.place = place_collective;
  d.cost = [](const CostCtx& c) { return cost_bytes(c); };
  return d;
}

// ---- On a mesh

MeshLanes::MeshLanes(EmitCtx& c) : mesh(c.manual_mesh()) {
  const Names& names = names_of(c.attr());
  Dims own;
  for (const std::string& name : names) {
    own.push_back(mesh ? mesh->find(name) : -1);
    if (own.back() < 0)
      fail(ErrorKind::kValue,
           "expected every named axis to be bound by vmap(axis_name=...) or shard_map before a ",
           "program is compiled; got axis '", name, "'");
    size *= mesh->axis(own.back()).size;
  }
  partitions = c.partitions(mesh);
  std::map<std::vector<int64_t>, Dims> by_others;  // positions along the other axes
  for (int64_t at = 0; at < mesh->size(); ++at) {
    std::vector<int64_t> others;
    int64_t lane = lane_of(at, own, &others);
    Dims& group = by_others[others];
    group.resize(static_cast<size_t>(size));
    group[static_cast<size_t>(lane)] = partitions[static_cast<size_t>(at)];
  }
  for (auto& [others, group] : by_others) groups.push_back(group);
}

std::string MeshLanes::replica_groups(const AttrRecord& attrs) const {
  std::vector<Dims> all;
  if (!has_groups(attrs)) {
    all = groups;
  } else {
    for (const Dims& lanes : groups)
      for (const Dims& group : attrs.ints_list("axis_index_groups")) {
        all.emplace_back();
        for (int64_t lane : group) all.back().push_back(lanes[static_cast<size_t>(lane)]);
      }
  }
  size_t longest = 0;
  for (const Dims& group : all) longest = std::max(longest, group.size());
  Text t;
  t << "replica_groups = dense<[";
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].resize(longest, -1);
    t << (i ? ", " : "") << bracketed(all[i]);
  }
  t << "]> : tensor<" << all.size() << 'x' << longest << "xi64>";
  return t.take();
}

int64_t MeshLanes::lane_of(int64_t position, const Dims& own, std::vector<int64_t>* others) const {
  const std::vector<MeshAxis>& axes = mesh->axes();
  Dims at(axes.size(), 0);
  for (size_t i = axes.size(); i-- > 0;) {
    at[i] = position % axes[i].size;
    position /= axes[i].size;
  }
  int64_t lane = 0;
  for (int64_t axis : own) {
    auto a = static_cast<size_t>(axis);
    lane = lane * axes[a].size + at[a];
  }
  for (size_t i = 0; others && i < at.size(); ++i)
    if (!has_axis(own, static_cast<int64_t>(i))) others->push_back(at[i]);
  return lane;
}

std::string channel(EmitCtx& c) {
  return cat("channel_handle = #stablehlo.channel_handle<handle = ", c.channel(), ", type = 1>");
}

void emit_collective(EmitCtx& c, std::string_view hlo, std::string_view attributes,
                     std::string_view region) {
  emit_results(
      c, cat('"', hlo, "\"(", c.in(0), ") <{", attributes, "}>", region, " : ", signature(c)));
}

std::string combiner(EmitCtx& c, std::string_view hlo, DType dtype) {
  std::string x = c.fresh_argument(), y = c.fresh_argument(), z = c.fresh_argument();
  std::string type = mlir_type(scalar_type(dtype));
  return cat(" ({ ^bb0(", x, ": ", type, ", ", y, ": ", type, "): ", z, " = ", hlo, ' ', x, ", ", y,
             " : ", type, " stablehlo.return ", z, " : ", type, " })");
}

// ---- Values

Val int_array(Builder& b, Dims shape, std::span<const int64_t> xs) {
  std::string bytes;
  for (int64_t x : xs)
    for (int k = 0; k < 4; ++k) bytes += static_cast<char>(x >> (8 * k));
  return dense(b, make_constant(make_type(DType::kI32, shape), std::move(bytes)));
}

Val parts(Val x, const Dims& table_shape, std::span<const int64_t> table) {
  auto leading = static_cast<int>(table_shape.back());
  Addressing a{.mode = "promise_in_bounds"};
  Dims sizes = x.shape();
  for (int i = 0; i < leading; ++i) {
    a.dropped.push_back(i);
    a.index_map.push_back(i);
    sizes[static_cast<size_t>(i)] = 1;
  }
  int in_front = static_cast<int>(table_shape.size()) - 1;
  for (int i = leading; i < x.rank(); ++i) a.window_axes.push_back(in_front + i - leading);
  return gather(x, int_array(*x.builder, table_shape, table), a, sizes);
}

Val axis_index(Builder& b, const Names& axis) {
  const OpDef& op = op_named<"axis_index">();
  AttrsRef attrs = AttrRecord::make(op.name, op.attrs, {{"axis_name", axis}});
  return {&b, b.add(op, {}, attrs)[0]};
}

// ---- axis_index

namespace {

// Each device's lane is looked up by its number in the program. That number has no meaning where
// XLA decides over other axes; there devices that all have the lanes in order each get one of them.
void emit_axis_index(EmitCtx& c) {
  MeshLanes lanes(c);
  TypeRef one = make_type(DType::kI32, Dims{1});
  bool decides_all = true;
  for (const MeshAxis& axis : lanes.mesh->axes())
    decides_all = decides_all && axis.type == AxisType::kManual;
  std::string lane;
  if (decides_all) {
    Dims by_partition(static_cast<size_t>(lanes.mesh->size()), 0), own;
    for (const std::string& name : names_of(c.attr())) own.push_back(lanes.mesh->find(name));
    for (int64_t at = 0; at < lanes.mesh->size(); ++at)
      by_partition[static_cast<size_t>(lanes.partitions[static_cast<size_t>(at)])] =
          lanes.lane_of(at, own);
    std::string type = mlir_type(make_type(DType::kI32, Dims{lanes.mesh->size()}));
    std::string table =
        c.line(cat("stablehlo.constant dense<", bracketed(by_partition), "> : ", type));
    std::string id = c.line("stablehlo.partition_id : tensor<ui32>");
    lane = c.line(cat("stablehlo.dynamic_slice ", table, ", ", id, ", sizes = [1] : (", type,
                      ", tensor<ui32>) -> ", mlir_type(one)));
  } else {
    std::string type = mlir_type(make_type(DType::kI32, Dims{lanes.size}));
    std::string all = c.line(cat("stablehlo.iota dim = 0 : ", type));
    lane = c.line(cat(
        "\"stablehlo.reduce_scatter\"(", all, ") <{", channel(c), ", ",
        lanes.replica_groups(c.attr()), ", scatter_dimension = 0 : i64, use_global_device_ids}>",
        combiner(c, "stablehlo.maximum", DType::kI32), " : (", type, ") -> ", mlir_type(one)));
  }
  c.set_out(0, c.line(cat("stablehlo.reshape ", lane, " : (", mlir_type(one), ") -> ",
                          mlir_type(c.out_type()))));
}

OpDef axis_index_op() {
  OpDef d = collective("axis_index", "The number of the lane along a mapped axis.");
  d.num_operands = 0;
  d.attrs = {{"axis_name", AttrType::kAxisNames}};
  d.infer = [](const InferCtx& c) -> TypeRefs {
    check_one_name(c);
    return {scalar_type(DType::kI32)};
  };
  zero_tangent(d);
  d.batch = [](BatchCtx& c) { c.result(iota(c.b, make_type(DType::kI32, Dims{c.size}), 0), 0); };
  d.emit = emit_axis_index;
  return d;
}

}  // namespace

void register_lanes(OpRegistry& r) { r.add(axis_index_op()); }

}  // namespace weft
