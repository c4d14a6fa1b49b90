// Lanes' blocks along an axis of the array: all_gather, reduce_scatter, all_to_all.
#include <algorithm>

#include "ops/def/axes.h"
#include "ops/mesh/family.h"
#include "ops/mesh/lanes.h"

namespace weft {
namespace {

// ---- Blocks of lanes

void check_size(const BatchCtx& c) {
  int64_t expected = c.attr().integer("axis_size");
  int64_t got = static_cast<int64_t>(groups_of(c)[0].size());
  if (expected != got)
    fail(ErrorKind::kValue, "[", c.op.name, "] expected lanes of axis '", c.axis_name, "' in ",
         has_groups(c.attr()) ? "groups" : "a number", " of axis_size=", expected, "; got ", got);
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

// ---- What the ops share

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

// ---- The ops

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

// The lane's own block of a value that all lanes have. The op has one axis, and maybe groups.
Val own_block(TransposeCtx& c, Val x) {
  int64_t axis = c.attr().integer("all_gather_dimension"), lanes = c.attr().integer("axis_size");
  Val place = axis_index(c.b, names_of(c.attr()));
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
                      {"invariant", AttrType::kBool, AttrSpec::kHideDefault, false},
                      // It is reduced along the axis.
                      {"reduced", AttrType::kBool, AttrSpec::kHideDefault, false}});
  d.shard = [](ShardCtx& c) {
    AxisSet own = c.set_of(names_of(c.attr()));
    c.apply(joined(c.all(), own));
    AxisSet& set = c.result_varying[0];
    if (c.attr().boolean("invariant")) set = without(set, own);
    if (c.attr().boolean("reduced")) set = without(set, own) | as_reduced(own);
  };
  d.infer = [](const InferCtx& c) -> TypeRefs {
    int64_t lanes = lanes_in_group(c);
    return {stretched(c, c.in(0), checked_axis(c, "all_gather_dimension"), lanes)};
  };
  linear(d, [](TransposeCtx& c) {
    if (c.attr().boolean("invariant")) return c.add(0, own_block(c, c.ct()));
    c.add(0, like("reduce_scatter", c.ct(), c.attr(),
                  {{"scatter_dimension", c.attr().at("all_gather_dimension")},
                   {"unreduced", c.attr().boolean("reduced")}}));
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
                     {{"scatter_dimension", AttrType::kInt},
                      // The operand is unreduced along the axis.
                      {"unreduced", AttrType::kBool, AttrSpec::kHideDefault, false}});
  d.shard = [](ShardCtx& c) {
    AxisSet own = c.set_of(names_of(c.attr())), set = joined(c.all(), own);
    Val x = c.as(0, own);
    bool unreduced = c.attr().boolean("unreduced") || (unreduced_of(c.all()) & own);
    AttrsRef attrs = c.attrs->with({{"unreduced", unreduced}});
    c.result(apply(c.op, {&x, 1}, attrs)[0].value, without(set, own) | own);
  };
  d.infer = [](const InferCtx& c) -> TypeRefs {
    int64_t lanes = lanes_in_group(c);
    if (!contains(kNumbers, c.in(0)->dtype()))
      c.fail(ErrorKind::kDtype, "expected ", describe(kNumbers), "; got ", operand_types(c));
    return {cut(c, c.in(0), "scatter_dimension", checked_axis(c, "scatter_dimension"), lanes)};
  };
  linear(d, [](TransposeCtx& c) {
    c.add(0, like("all_gather", c.ct(), c.attr(),
                  {{"all_gather_dimension", c.attr().at("scatter_dimension")},
                   {"reduced", c.attr().boolean("unreduced")}}));
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

void register_exchange(OpRegistry& r) {
  r.add(all_gather_op());
  r.add(reduce_scatter_op());
  r.add(all_to_all_op());
}

}  // namespace weft
