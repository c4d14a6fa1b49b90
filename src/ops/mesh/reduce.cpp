// Reductions over lanes: psum, pmax and pmin.
#include <algorithm>

#include "ops/def/axes.h"
#include "ops/def/limits.h"
#include "ops/mesh/family.h"
#include "ops/mesh/lanes.h"

namespace weft {
namespace {

struct AllReduce {
  std::string name, hlo, doc;
  DTypeSet dtypes;
  Val (*reduce)(Val, const Dims&);
  Literal (*identity)(DType);
  // Of n equal values.
  Val (*repeated)(Val, int64_t n);
};

AttrsRef all_reduce_attrs(const OpDef& op, const Names& names, const Attr& groups,
                          bool invariant = false, bool unreduced = false) {
  return AttrRecord::make(op.name, op.attrs,
                          {{"axes", names},
                           {"axis_index_groups", groups},
                           {"invariant", invariant},
                           {"unreduced", unreduced}});
}

void emit_all_reduce(EmitCtx& c, std::string_view hlo) {
  MeshLanes lanes(c);
  emit_collective(c, "stablehlo.all_reduce",
                  cat(channel(c), ", ", lanes.replica_groups(c.attr()), ", use_global_device_ids"),
                  combiner(c, hlo, c.in_type(0)->dtype()));
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
  if (!others.empty()) x = apply(c.op, {&x, 1}, c.attrs->with({{"axes", others}}))[0];
  c.result(x, kNotBatched);
}

// Over axes of a mesh the result is the same everywhere, and is marked as that; names of axes that
// vmap has mapped are left to an op of their own.
void shard_all_reduce(ShardCtx& c) {
  std::vector<std::string> mapped;
  AxisSet own = c.set_of(names_of(c.attr()), &mapped), set = c.all();
  if (!own || has_groups(c.attr())) return c.apply(joined(set, own));
  Val x = c.as(0, own);
  if (!mapped.empty())
    x = apply(c.op, {&x, 1}, all_reduce_attrs(c.op, mapped, std::monostate{}))[0];
  bool unreduced = c.attr().boolean("unreduced") || (unreduced_of(set) & own);
  x = apply(c.op, {&x, 1},
            all_reduce_attrs(c.op, c.names_of(own), std::monostate{}, true, unreduced))[0];
  c.result(x.value, without(set, own));
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
             {"invariant", AttrType::kBool, AttrSpec::kHideDefault, false},
             // The operand is unreduced along the axes, and so its cotangent is reduced.
             {"unreduced", AttrType::kBool, AttrSpec::kHideDefault, false}};
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
    if (c.attr().boolean("invariant")) {
      const OpDef& op = op_named<"pvary">();
      Val ct = c.ct();
      AttrsRef attrs = AttrRecord::make(
          op.name, op.attrs,
          {{"axes", names_of(c.attr())}, {"reduced", c.attr().boolean("unreduced")}});
      return c.add(0, apply(op, {&ct, 1}, attrs)[0]);
    }
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

}  // namespace

Val psum(Val x, const Names& names, bool invariant) {
  const OpDef& op = op_named<"psum">();
  return apply(op, {&x, 1}, all_reduce_attrs(op, names, std::monostate{}, invariant))[0];
}

void register_reduce_lanes(OpRegistry& r) {
  r.add(psum_op());
  r.add(extreme_op("pmax", "stablehlo.maximum", "The maximum over the lanes of mapped axes.",
                   reduce_max, lowest));
  r.add(extreme_op("pmin", "stablehlo.minimum", "The minimum over the lanes of mapped axes.",
                   reduce_min, highest));
}

}  // namespace weft
