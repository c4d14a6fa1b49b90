// Ops over named axes. A value under vmap(axis_name="i") is one per lane of the axis "i"; these ops
// let the lanes see each other. vmap of the axis turns them into ordinary ops on the mapped axis,
// by their batch rules. The axes that shard_map binds are those of a mesh, and the lanes its
// devices: over these the ops are compiled. What nothing has bound cannot be.
//
// Lanes may be split into groups, [[0, 2], [1, 3]], that see only each other. Within a group, a
// lane's place is its position in the list.
#include <algorithm>
#include <map>

#include "ops/def/addressing.h"
#include "ops/def/axes.h"
#include "ops/def/dense.h"
#include "ops/def/hlo_text.h"
#include "ops/def/limits.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/mesh/family.h"
#include "weft/held.h"

namespace weft {
namespace {

using Names = std::vector<std::string>;
using Groups = std::vector<Dims>;

// ---- Names and groups

const Names& names_of(const AttrRecord& attrs) {
  return attrs.names(attrs.schema().find("axes") >= 0 ? "axes" : "axis_name");
}

bool has_groups(const AttrRecord& attrs) {
  return attrs.schema().find("axis_index_groups") >= 0 && !attrs.is_none("axis_index_groups");
}

// Whether the mapped axis is one of the op's own.
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

// For ops whose lanes differ, or that have groups.
void check_one_name(const InferCtx& c) {
  check_names(c);
  if (names_of(c.attr()).size() > 1)
    c.fail(ErrorKind::kNotImplemented, "expected one name of an axis; got ",
           names_of(c.attr()).size());
}

// The sizes of lists within which each number comes once.
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

// The groups of an axis of the mapped size: one of all lanes if there are none.
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

void check_size(const BatchCtx& c) {
  int64_t expected = c.attr().integer("axis_size");
  int64_t got = static_cast<int64_t>(groups_of(c)[0].size());
  if (expected != got)
    fail(ErrorKind::kValue, "[", c.op.name, "] expected lanes of axis '", c.axis_name, "' in ",
         has_groups(c.attr()) ? "groups" : "a number", " of axis_size=", expected, "; got ", got);
}

// ---- On a mesh

// What the devices of a mesh, by their numbers in the program, are along the op's axes: groups of
// those that see each other, each in the order of its lanes.
struct MeshLanes {
  MeshRef mesh;
  std::vector<int64_t> partitions;  // by position
  int64_t size = 1;                 // lanes
  std::vector<Dims> groups;

  explicit MeshLanes(EmitCtx& c) : mesh(c.manual_mesh()) {
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

  // With groups of lanes, each group is one.
  std::string replica_groups(const AttrRecord& attrs) const {
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

  // The number along the op's axes of the device at a position.
  int64_t lane_of(int64_t position, const Dims& own, std::vector<int64_t>* others = nullptr) const {
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
};

std::string channel(EmitCtx& c) {
  return cat("channel_handle = #stablehlo.channel_handle<handle = ", c.channel(), ", type = 1>");
}

// A collective of one operand: "stablehlo.all_gather", with attributes of its own.
void emit_collective(EmitCtx& c, std::string_view hlo, std::string_view attributes,
                     std::string_view region = "") {
  emit_results(
      c, cat('"', hlo, "\"(", c.in(0), ") <{", attributes, "}>", region, " : ", signature(c)));
}

// The region of a reduction of two scalars.
std::string combiner(EmitCtx& c, std::string_view hlo, DType dtype) {
  std::string x = c.fresh_argument(), y = c.fresh_argument(), z = c.fresh_argument();
  std::string type = mlir_type(scalar_type(dtype));
  return cat(" ({ ^bb0(", x, ": ", type, ", ", y, ": ", type, "): ", z, " = ", hlo, ' ', x, ", ", y,
             " : ", type, " stablehlo.return ", z, " : ", type, " })");
}

void emit_all_reduce(EmitCtx& c, std::string_view hlo) {
  MeshLanes lanes(c);
  emit_collective(c, "stablehlo.all_reduce",
                  cat(channel(c), ", ", lanes.replica_groups(c.attr()), ", use_global_device_ids"),
                  combiner(c, hlo, c.in_type(0)->dtype()));
}

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

// ---- Parts of lanes

Val int_array(Builder& b, Dims shape, std::span<const int64_t> xs) {
  std::string bytes;
  for (int64_t x : xs)
    for (int k = 0; k < 4; ++k) bytes += static_cast<char>(x >> (8 * k));
  return dense(b, make_constant(make_type(DType::kI32, shape), std::move(bytes)));
}

// x[table[..., 0], table[..., 1], ...]: parts along the first axes of x, as many as an entry of the
// table has numbers. The result has the table's shape, without its last axis, in front.
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

// Of lanes along axis 0, lane i replaced by lanes[i].
Val picked_lanes(Val x, const Dims& lanes) {
  if (counts_up(lanes) && static_cast<int64_t>(lanes.size()) == x.shape()[0]) return x;
  return parts(x, {static_cast<int64_t>(lanes.size()), 1}, lanes);
}

// Per lane (axis 0) the lanes of its group (axis 1), of groups of one size.
Val group_rows(Val x, const Groups& groups) {
  auto n = static_cast<size_t>(x.shape()[0]);
  size_t k = groups[0].size();
  std::vector<int64_t> table(n * k);
  for (const Dims& group : groups)
    for (int64_t lane : group)
      std::copy(group.begin(), group.end(), table.begin() + lane * static_cast<int64_t>(k));
  return parts(x, {static_cast<int64_t>(n), static_cast<int64_t>(k), 1}, table);
}

// Splits an axis into `n` equal blocks: the axis of blocks, then that within a block.
Val split_blocks(Val x, int axis, int64_t n) {
  Dims shape = x.shape();
  auto at = static_cast<size_t>(axis);
  shape[at] /= n;
  return reshape(x, inserted(shape, axis, n));
}

// Undoes it.
Val join_blocks(Val x, int axis) {
  Dims shape = x.shape(), joined;
  for (int i = 0; i < x.rank(); ++i) {
    auto at = static_cast<size_t>(i);
    if (i == axis + 1) {
      joined.back() *= shape[at];
    } else {
      joined.push_back(shape[at]);
    }
  }
  return reshape(x, joined);
}

// Lanes in all their blocks, ordered so that what lane i gets of lane j of its group is block
// place(i) of j: per lane (axis 0) the lanes of its group (axis 1). x: lanes, blocks, rest.
Val exchanged(Val x, const Groups& groups) {
  if (groups.size() == 1 && counts_up(groups[0])) {
    Dims order = count_up(x.rank());
    std::swap(order[0], order[1]);
    return transpose(x, order);
  }
  auto n = static_cast<size_t>(x.shape()[0]);
  size_t k = groups[0].size();
  std::vector<int64_t> table(n * k * 2);
  for (const Dims& group : groups) {
    for (size_t place = 0; place < k; ++place) {
      for (size_t j = 0; j < k; ++j) {
        size_t at = (static_cast<size_t>(group[place]) * k + j) * 2;
        table[at] = group[j];
        table[at + 1] = static_cast<int64_t>(place);
      }
    }
  }
  return parts(x, {static_cast<int64_t>(n), static_cast<int64_t>(k), 2}, table);
}

// ---- psum, pmax, pmin

struct AllReduce {
  std::string name, hlo, doc;
  DTypeSet dtypes;
  Val (*reduce)(Val, const Dims&);
  Literal (*identity)(DType);
  // Of n equal values.
  Val (*repeated)(Val, int64_t n);
};

AttrsRef all_reduce_attrs(const OpDef& op, const Names& names, const Attr& groups,
                          bool invariant = false) {
  return AttrRecord::make(
      op.name, op.attrs,
      {{"axes", names}, {"axis_index_groups", groups}, {"invariant", invariant}});
}

// Lanes (axis 0) in groups of any sizes: rows of the longest, the others filled up.
Val reduce_groups(const AllReduce& r, Val x, const Groups& groups) {
  size_t k = 0;
  for (const Dims& group : groups) k = std::max(k, group.size());
  auto n = static_cast<size_t>(x.shape()[0]);
  std::vector<int64_t> table(n * k), sizes(n);
  for (const Dims& group : groups) {
    for (int64_t lane : group) {
      sizes[static_cast<size_t>(lane)] = static_cast<int64_t>(group.size());
      std::copy(group.begin(), group.end(), table.begin() + lane * static_cast<int64_t>(k));
    }
  }
  Builder& b = *x.builder;
  Dims shape{static_cast<int64_t>(n), static_cast<int64_t>(k)};
  Val rows = parts(x, {shape[0], shape[1], 1}, table);
  if (std::any_of(sizes.begin(), sizes.end(), [&](int64_t s) { return s != shape[1]; })) {
    Val size = broadcast_in_dim(int_array(b, {shape[0]}, sizes), shape, {0});
    Val in_group = lt(iota(b, make_type(DType::kI32, shape), 1), size);
    Val filler = {&b, b.literal(r.identity(x.dtype()))};
    rows = select(broadcast_in_dim(in_group, rows.shape(), {0, 1}), rows,
                  broadcast_to(filler, rows.shape()));
  }
  return r.reduce(rows, {1});
}

void batch_all_reduce(BatchCtx& c, const AllReduce& r) {
  if (!is_own(c)) {
    Val x = c.x(0);
    return c.apply({&x, 1}, c.attrs, c.dim(0));
  }
  if (has_groups(c.attr())) return c.result(reduce_groups(r, c.at(0, 0), groups_of(c)), 0);
  Names others = names_of(c.attr());
  std::erase(others, c.axis_name);
  Val x = c.batched(0) ? r.reduce(c.x(0), {c.dim(0)}) : r.repeated(c.x(0), c.size);
  if (!others.empty())
    x = apply(c.op, {&x, 1},
              all_reduce_attrs(c.op, others, std::monostate{}, c.attr().boolean("invariant")))[0];
  c.result(x, kNotBatched);
}

// Over axes of a mesh the result is the same everywhere, and is marked as that; names of axes that
// vmap has mapped are left to an op of their own.
void shard_all_reduce(ShardCtx& c) {
  std::vector<std::string> mapped;
  AxisSet own = c.set_of(names_of(c.attr()), &mapped), set = c.all();
  if (!own || has_groups(c.attr())) return c.apply(set | own);
  Val x = c.as(0, set | own);
  if (!mapped.empty())
    x = apply(c.op, {&x, 1}, all_reduce_attrs(c.op, mapped, std::monostate{}))[0];
  x = apply(c.op, {&x, 1}, all_reduce_attrs(c.op, c.names_of(own), std::monostate{}, true))[0];
  c.result(x.value, set & ~own);
}

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

OpDef collective(std::string name, std::string doc) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  d.num_operands = 1;
  d.shard = [](ShardCtx& c) { c.apply(c.all() | c.set_of(names_of(c.attr()))); };
  d.place = place_collective;
  d.cost = [](const CostCtx& c) { return cost_bytes(c); };
  return d;
}

TypeRefs infer_all_reduce(const InferCtx& c, DTypeSet dtypes) {
  has_groups(c.attr()) ? check_one_name(c) : check_names(c);
  check_groups(c, /*equal_sizes=*/false);
  if (!contains(dtypes, c.in(0)->dtype()))
    c.fail(ErrorKind::kDtype, "expected ", describe(dtypes), "; got ", operand_types(c));
  return {c.in(0)};
}

OpDef all_reduce(AllReduce r) {
  OpDef d = collective(r.name, r.doc);
  d.attrs = {{"axes", AttrType::kAxisNames},
             {"axis_index_groups", AttrType::kIntsList, AttrSpec::kOptional},
             // The result counts as the same along the axes: its cotangent is one for all of them.
             {"invariant", AttrType::kBool, AttrSpec::kHideDefault, false}};
  d.shard = shard_all_reduce;
  d.emit = [r](EmitCtx& c) { emit_all_reduce(c, r.hlo); };
  d.infer = [dtypes = r.dtypes](const InferCtx& c) { return infer_all_reduce(c, dtypes); };
  d.batch = [r](BatchCtx& c) { batch_all_reduce(c, r); };
  return d;
}

Val psum_like(Val x, const AttrRecord& attrs) {
  const OpDef& op = op_named<"psum">();
  return apply(op, {&x, 1},
               all_reduce_attrs(op, names_of(attrs), attrs.at("axis_index_groups"),
                                attrs.boolean("invariant")))[0];
}

OpDef psum_op() {
  OpDef d = all_reduce({.name = "psum",
                        .hlo = "stablehlo.add",
                        .doc = "The sum over the lanes of mapped axes.",
                        .dtypes = kNumbers,
                        .reduce = reduce_sum,
                        .identity = zero,
                        .repeated = [](Val x, int64_t n) {
                          DType d = x.dtype();
                          Literal times = is_inexact(d) ? make_literal(d, static_cast<double>(n))
                                                        : make_literal(d, n);
                          return x * Val{x.builder, x.builder->literal(times)};
                        }});
  // Of all lanes' sums each lane's value is a part, and each lane's sum has a cotangent; unless the
  // sum is one for all of them, and so has one.
  linear(d, [](TransposeCtx& c) {
    if (c.attr().boolean("invariant")) return c.add(0, pvary(c.ct(), names_of(c.attr())));
    c.add(0, apply(c.op, Vals{c.ct()}, c.attrs)[0]);
  });
  return d;
}

// As reductions do: the mean of the tangents where the extreme is attained.
Val jvp_extreme(const JvpArgCtx& c) {
  bool invariant = c.attr().boolean("invariant");
  Val extreme = invariant ? pvary(c.y(), names_of(c.attr())) : c.y();
  Val attained = convert(eq(c.x(0), extreme), c.t().dtype());
  return psum_like(c.t() * attained, c.attr()) / psum_like(attained, c.attr());
}

OpDef extreme_op(std::string name, std::string hlo, std::string doc,
                 Val (*reduce)(Val, const Dims&), Literal (*identity)(DType)) {
  OpDef d = all_reduce({.name = std::move(name),
                        .hlo = std::move(hlo),
                        .doc = std::move(doc),
                        .dtypes = DTypeSet(kBools | kReals),
                        .reduce = reduce,
                        .identity = identity,
                        .repeated = [](Val x, int64_t) { return x; }});
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {jvp_extreme};
  return d;
}

// ---- pvary

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
  linear(d, [](TransposeCtx& c) {
    const OpDef& psum = op_named<"psum">();
    Val ct = c.ct();
    c.add(0, apply(psum, {&ct, 1},
                   all_reduce_attrs(psum, names_of(c.attr()), std::monostate{}, true))[0]);
  });
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

// ---- axis_index, pbroadcast, ppermute

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

Val axis_index(Builder& b, const AttrRecord& attrs) {
  const OpDef& op = op_named<"axis_index">();
  AttrsRef own = AttrRecord::make(op.name, op.attrs, {{"axis_name", names_of(attrs)}});
  return {&b, b.add(op, {}, own)[0]};
}

Val psum_over(Val x, const Names& names) {
  const OpDef& psum = op_named<"psum">();
  return apply(psum, {&x, 1}, all_reduce_attrs(psum, names, std::monostate{}))[0];
}

// The value where the lane is the source, zeros elsewhere.
Val at_source(const RuleCtx& c, Val x) {
  Val lane = axis_index(c.b, c.attr());
  Val is_source = eq(lane, scalar_like(lane, static_cast<double>(c.attr().integer("source"))));
  return select(broadcast_to(is_source, x.shape()), x, zeros_like(x));
}

void transpose_pbroadcast(TransposeCtx& c) {
  c.add(0, at_source(c, psum_over(c.ct(), names_of(c.attr()))));
}

// Devices send by adding zeros.
Val from_source(const RuleCtx& c, Val x) {
  bool is_bool = x.dtype() == DType::kBool;
  Val sum = psum_over(at_source(c, is_bool ? convert(x, DType::kI32) : x), names_of(c.attr()));
  return is_bool ? convert(sum, DType::kBool) : sum;
}

void batch_pbroadcast(BatchCtx& c) {
  Val x = c.x(0);
  if (!is_own(c)) return c.apply({&x, 1}, c.attrs, c.dim(0));
  int64_t source = c.attr().integer("source");
  if (source >= c.size)
    fail(ErrorKind::kValue, "[pbroadcast] expected a source below ", c.size, ", the size of axis '",
         c.axis_name, "'; got ", source);
  if (!c.batched(0)) return c.result(x, kNotBatched);
  Dims begin(x.shape().size(), 0), end = x.shape();
  auto at = static_cast<size_t>(c.dim(0));
  begin[at] = source;
  end[at] = source + 1;
  c.result(squeeze(slice(x, begin, end), {c.dim(0)}), kNotBatched);
}

OpDef pbroadcast_op() {
  OpDef d = collective("pbroadcast", "The value of one lane, for all lanes of a mapped axis.");
  d.attrs = {{"axis_name", AttrType::kAxisNames}, {"source", AttrType::kInt}};
  d.infer = [](const InferCtx& c) -> TypeRefs {
    check_one_name(c);
    if (c.attr().integer("source") < 0)
      c.fail(ErrorKind::kValue, "expected the source to be the index of a lane; got ",
             c.attr().integer("source"));
    return {c.in(0)};
  };
  linear(d, transpose_pbroadcast);
  d.batch = batch_pbroadcast;
  d.decompose = [](RuleCtx& c) -> Vals { return {from_source(c, c.x(0))}; };
  return d;
}

TypeRefs infer_ppermute(const InferCtx& c) {
  check_one_name(c);
  const std::vector<Dims>& perm = c.attr().ints_list("perm");
  for (size_t side = 0; side < 2; ++side) {
    Dims seen;
    for (const Dims& pair : perm) {
      if (pair.size() != 2 || pair[side] < 0)
        c.fail(ErrorKind::kValue, "expected perm to be pairs (source, destination) of lanes; got ",
               pair);
      if (has_axis(seen, pair[side]))
        c.fail(ErrorKind::kValue, "expected each ", side ? "destination" : "source",
               " in perm once; got ", pair[side], " twice");
      seen.push_back(pair[side]);
    }
  }
  return {c.in(0)};
}

void transpose_ppermute(TransposeCtx& c) {
  std::vector<Dims> back;
  for (const Dims& pair : c.attr().ints_list("perm")) back.push_back({pair[1], pair[0]});
  c.add(0, apply(c.op, Vals{c.ct()}, c.attrs->with({{"perm", back}}))[0]);
}

void batch_ppermute(BatchCtx& c) {
  if (!is_own(c)) {
    Val x = c.x(0);
    return c.apply({&x, 1}, c.attrs, c.dim(0));
  }
  Dims source(static_cast<size_t>(c.size), -1);
  for (const Dims& pair : c.attr().ints_list("perm")) {
    if (std::max(pair[0], pair[1]) >= c.size)
      fail(ErrorKind::kValue, "[ppermute] expected lanes below ", c.size, ", the size of axis '",
           c.axis_name, "', in perm; got ", pair);
    source[static_cast<size_t>(pair[1])] = pair[0];
  }
  bool all_receive = !has_axis(source, -1);
  if (all_receive && !c.batched(0)) return c.result(c.x(0), kNotBatched);
  Val x = c.at(0, 0);
  Dims lanes = source;
  for (int64_t& lane : lanes) lane = std::max<int64_t>(lane, 0);
  Val moved = picked_lanes(x, lanes);
  if (!all_receive) {
    Val from = int_array(c.b, {c.size}, source);
    Val receives = broadcast_in_dim(ge(from, scalar_like(from, 0)), moved.shape(), {0});
    moved = select(receives, moved, zeros_like(moved));
  }
  c.result(moved, 0);
}

void emit_ppermute(EmitCtx& c) {
  MeshLanes lanes(c);
  Text pairs;
  size_t count = 0;
  for (const Dims& group : lanes.groups)
    for (const Dims& pair : c.attr().ints_list("perm")) {
      if (std::max(pair[0], pair[1]) >= lanes.size)
        fail(ErrorKind::kValue, "[ppermute] expected lanes below ", lanes.size,
             ", the size of axis '", names_of(c.attr())[0], "', in perm; got ", pair);
      pairs << (count++ ? ", [" : "[") << group[static_cast<size_t>(pair[0])] << ", "
            << group[static_cast<size_t>(pair[1])] << ']';
    }
  std::string list = count ? cat("[", pairs.view(), "]") : std::string();
  emit_collective(
      c, "stablehlo.collective_permute",
      cat(channel(c), ", source_target_pairs = dense<", list, "> : tensor<", count, "x2xi64>"));
}

OpDef ppermute_op() {
  OpDef d = collective("ppermute", "Values sent from lane to lane; zeros where none arrives.");
  d.attrs = {{"axis_name", AttrType::kAxisNames}, {"perm", AttrType::kIntsList}};
  d.infer = infer_ppermute;
  linear(d, transpose_ppermute);
  d.batch = batch_ppermute;
  d.emit = emit_ppermute;
  return d;
}

// ---- all_gather, reduce_scatter, all_to_all: lanes' blocks along an axis of the array

int64_t checked_axis(const InferCtx& c, std::string_view attr) {
  int64_t axis = c.attr().integer(attr);
  check_axes(c, attr, {axis}, c.in(0));
  return axis;
}

int64_t lanes_in_group(const InferCtx& c) {
  check_one_name(c);
  check_groups(c, /*equal_sizes=*/true);
  int64_t size = c.attr().integer("axis_size");
  int64_t expected = has_groups(c.attr())
                         ? static_cast<int64_t>(c.attr().ints_list("axis_index_groups")[0].size())
                         : size;
  if (size < 1 || size != expected)
    c.fail(ErrorKind::kValue, "expected axis_size to be the number of lanes",
           has_groups(c.attr()) ? " in a group" : "", "; got ", size);
  return size;
}

// A type with as many times the elements along an axis as there are lanes; and with one part in as
// many.
TypeRef stretched(const InferCtx& c, TypeRef type, int64_t axis, int64_t lanes) {
  Dims shape = type->shape();
  int64_t& size = shape[static_cast<size_t>(axis)];
  Checked all = Checked(size) * lanes;
  if (!all.fits())
    c.fail(ErrorKind::kShape, "expected a size that fits for axis ", axis, " of the result; got ",
           size, " times ", lanes);
  size = all.value();
  return with_shape(type, shape);
}
TypeRef cut(const InferCtx& c, TypeRef type, std::string_view attr, int64_t axis, int64_t lanes) {
  Dims shape = type->shape();
  int64_t& size = shape[static_cast<size_t>(axis)];
  if (size % lanes != 0)
    c.fail(ErrorKind::kShape, "expected ", attr, "=", axis, " to have a size divisible by ", lanes,
           ", the number of lanes; got ", operand_types(c));
  size /= lanes;
  return with_shape(type, shape);
}

void batch_all_gather(BatchCtx& c) {
  auto axis = static_cast<int>(c.attr().integer("all_gather_dimension"));
  Val x = c.x(0);
  if (!is_own(c)) {
    auto shifted_axis = shifted(int64_t{axis}, c.dim(0));
    return c.apply({&x, 1}, c.attrs->with({{"all_gather_dimension", shifted_axis}}), c.dim(0));
  }
  check_size(c);
  if (!has_groups(c.attr())) return c.result(join_blocks(c.at(0, axis), axis), kNotBatched);
  Val rows = group_rows(c.at(0, 0), groups_of(c));
  c.result(join_blocks(move_axis(rows, 1, axis + 1), axis + 1), 0);
}

OpDef block_op(std::string name, std::string doc, std::initializer_list<AttrSpec> own) {
  OpDef d = collective(std::move(name), std::move(doc));
  std::vector<AttrSpec> attrs = own;
  attrs.push_back({"axis_name", AttrType::kAxisNames});
  attrs.push_back({"axis_index_groups", AttrType::kIntsList, AttrSpec::kOptional});
  attrs.push_back({"axis_size", AttrType::kInt});
  d.attrs = AttrSchema(std::move(attrs));
  return d;
}

// An op of this family with the names, groups and size of another.
Val like(const char* name, Val x, const AttrRecord& attrs, std::initializer_list<NamedAttr> own) {
  const OpDef& op = registry().get(name);
  std::vector<NamedAttr> all = own;
  for (const char* shared : {"axis_name", "axis_index_groups", "axis_size"})
    all.push_back({shared, attrs.at(shared)});
  return apply(op, {&x, 1}, AttrRecord::make(op.name, op.attrs, all))[0];
}

// The lane's own block of a value that all lanes have. The op has one axis, and maybe groups.
Val own_block(TransposeCtx& c, Val x) {
  int64_t axis = c.attr().integer("all_gather_dimension"), lanes = c.attr().integer("axis_size");
  Val place = axis_index(c.b, c.attr());
  if (has_groups(c.attr())) {
    const Groups& groups = c.attr().ints_list("axis_index_groups");
    Dims places(groups.size() * static_cast<size_t>(lanes), 0);
    for (const Dims& group : groups)
      for (size_t i = 0; i < group.size(); ++i)
        places[static_cast<size_t>(group[i])] = static_cast<int64_t>(i);
    Val table = int_array(c.b, {static_cast<int64_t>(places.size())}, places);
    place = reshape(dynamic_slice(table, Vals{place}, {1}), {});
  }
  Dims sizes = x.shape();
  sizes[static_cast<size_t>(axis)] /= lanes;
  Vals starts(sizes.size(), scalar_like(place, 0));
  starts[static_cast<size_t>(axis)] =
      place * scalar_like(place, static_cast<double>(sizes[static_cast<size_t>(axis)]));
  return dynamic_slice(x, starts, sizes);
}

OpDef all_gather_op() {
  OpDef d = block_op("all_gather", "The lanes' values one after the other along an axis.",
                     {{"all_gather_dimension", AttrType::kInt},
                      // The result counts as the same along the axis: all lanes have one cotangent.
                      {"invariant", AttrType::kBool, AttrSpec::kHideDefault, false}});
  d.shard = [](ShardCtx& c) {
    AxisSet own = c.set_of(names_of(c.attr()));
    c.apply(c.all() | own);
    if (c.attr().boolean("invariant")) c.result_varying[0] &= ~own;
  };
  d.infer = [](const InferCtx& c) -> TypeRefs {
    int64_t lanes = lanes_in_group(c);
    return {stretched(c, c.in(0), checked_axis(c, "all_gather_dimension"), lanes)};
  };
  linear(d, [](TransposeCtx& c) {
    if (c.attr().boolean("invariant")) return c.add(0, own_block(c, c.ct()));
    c.add(0, like("reduce_scatter", c.ct(), c.attr(),
                  {{"scatter_dimension", c.attr().at("all_gather_dimension")}}));
  });
  d.batch = batch_all_gather;
  d.emit = [](EmitCtx& c) {
    emit_collective(
        c, "stablehlo.all_gather",
        cat("all_gather_dim = ", c.attr().integer("all_gather_dimension"), " : i64, ", channel(c),
            ", ", MeshLanes(c).replica_groups(c.attr()), ", use_global_device_ids"));
  };
  return d;
}

void batch_reduce_scatter(BatchCtx& c) {
  auto axis = static_cast<int>(c.attr().integer("scatter_dimension"));
  Val x = c.x(0);
  if (!is_own(c)) {
    auto shifted_axis = shifted(int64_t{axis}, c.dim(0));
    return c.apply({&x, 1}, c.attrs->with({{"scatter_dimension", shifted_axis}}), c.dim(0));
  }
  check_size(c);
  Groups groups = groups_of(c);
  int64_t lanes = static_cast<int64_t>(groups[0].size());
  if (!has_groups(c.attr()))
    return c.result(split_blocks(reduce_sum(c.at(0, 0), {0}), axis, lanes), axis);
  Val blocks = move_axis(split_blocks(c.at(0, 0), axis + 1, lanes), axis + 1, 1);
  c.result(reduce_sum(exchanged(blocks, groups), {1}), 0);
}

OpDef reduce_scatter_op() {
  OpDef d = block_op("reduce_scatter", "The sum over lanes, of which each lane gets one block.",
                     {{"scatter_dimension", AttrType::kInt}});
  d.infer = [](const InferCtx& c) -> TypeRefs {
    int64_t lanes = lanes_in_group(c);
    if (!contains(kNumbers, c.in(0)->dtype()))
      c.fail(ErrorKind::kDtype, "expected ", describe(kNumbers), "; got ", operand_types(c));
    return {cut(c, c.in(0), "scatter_dimension", checked_axis(c, "scatter_dimension"), lanes)};
  };
  linear(d, [](TransposeCtx& c) {
    c.add(0, like("all_gather", c.ct(), c.attr(),
                  {{"all_gather_dimension", c.attr().at("scatter_dimension")}}));
  });
  d.emit = [](EmitCtx& c) {
    MeshLanes lanes(c);
    emit_collective(c, "stablehlo.reduce_scatter",
                    cat(channel(c), ", ", lanes.replica_groups(c.attr()), ", scatter_dimension = ",
                        c.attr().integer("scatter_dimension"), " : i64, use_global_device_ids"),
                    combiner(c, "stablehlo.add", c.in_type(0)->dtype()));
  };
  d.batch = batch_reduce_scatter;
  return d;
}

void batch_all_to_all(BatchCtx& c) {
  int64_t split = c.attr().integer("split_axis"), concat = c.attr().integer("concat_axis");
  Val x = c.x(0);
  if (!is_own(c)) {
    AttrsRef attrs = c.attrs->with(
        {{"split_axis", shifted(split, c.dim(0))}, {"concat_axis", shifted(concat, c.dim(0))}});
    return c.apply({&x, 1}, attrs, c.dim(0));
  }
  check_size(c);
  Groups groups = groups_of(c);
  int split_at = static_cast<int>(split) + 1, concat_at = static_cast<int>(concat) + 1;
  Val blocks = split_blocks(c.at(0, 0), split_at, static_cast<int64_t>(groups[0].size()));
  Val got = exchanged(move_axis(blocks, split_at, 1), groups);
  c.result(join_blocks(move_axis(got, 1, concat_at), concat_at), 0);
}

OpDef all_to_all_op() {
  OpDef d = block_op("all_to_all",
                     "Blocks along one axis, each sent to another lane, which lines those that it "
                     "gets up along another axis.",
                     {{"split_axis", AttrType::kInt}, {"concat_axis", AttrType::kInt}});
  d.infer = [](const InferCtx& c) -> TypeRefs {
    int64_t lanes = lanes_in_group(c);
    int64_t split = checked_axis(c, "split_axis"), concat = checked_axis(c, "concat_axis");
    return {stretched(c, cut(c, c.in(0), "split_axis", split, lanes), concat, lanes)};
  };
  linear(d, [](TransposeCtx& c) {
    AttrsRef back = c.attrs->with(
        {{"split_axis", c.attr().at("concat_axis")}, {"concat_axis", c.attr().at("split_axis")}});
    c.add(0, apply(c.op, Vals{c.ct()}, back)[0]);
  });
  d.emit = [](EmitCtx& c) {
    MeshLanes lanes(c);
    int64_t count = has_groups(c.attr())
                        ? static_cast<int64_t>(c.attr().ints_list("axis_index_groups")[0].size())
                        : lanes.size;
    emit_collective(c, "stablehlo.all_to_all",
                    cat(channel(c), ", concat_dimension = ", c.attr().integer("concat_axis"),
                        " : i64, ", lanes.replica_groups(c.attr()), ", split_count = ", count,
                        " : i64, split_dimension = ", c.attr().integer("split_axis"), " : i64"));
  };
  d.batch = batch_all_to_all;
  return d;
}

}  // namespace

void register_collectives(OpRegistry& r) {
  r.add(psum_op());
  r.add(extreme_op("pmax", "stablehlo.maximum", "The maximum over the lanes of mapped axes.",
                   reduce_max, lowest));
  r.add(extreme_op("pmin", "stablehlo.minimum", "The minimum over the lanes of mapped axes.",
                   reduce_min, highest));
  r.add(pvary_op());
  r.add(vary_like_op());
  r.add(axis_index_op());
  r.add(pbroadcast_op());
  r.add(ppermute_op());
  r.add(all_gather_op());
  r.add(reduce_scatter_op());
  r.add(all_to_all_op());
}

Val pvary(Val x, const std::vector<std::string>& axes) {
  const OpDef& op = op_named<"pvary">();
  return apply(op, {&x, 1}, AttrRecord::make(op.name, op.attrs, {{"axes", axes}}))[0];
}

}  // namespace weft
