// Values that lanes send to others: pbroadcast, ppermute.
#include <algorithm>

#include "ops/def/axes.h"
#include "ops/mesh/family.h"
#include "ops/mesh/lanes.h"

namespace weft {
namespace {

// ---- pbroadcast

// The value where the lane is the source, zeros elsewhere.
Val at_source(const RuleCtx& c, Val x) {
  Val lane = axis_index(c.b, names_of(c.attr()));
  Val is_source = eq(lane, scalar_like(lane, static_cast<double>(c.attr().integer("source"))));
  return select(broadcast_to(is_source, x.shape()), x, zeros_like(x));
}

void transpose_pbroadcast(TransposeCtx& c) {
  c.add(0, at_source(c, psum(c.ct(), names_of(c.attr()))));
}

// Devices send by adding zeros.
Val from_source(const RuleCtx& c, Val x) {
  bool is_bool = x.dtype() == DType::kBool;
  Val sum = psum(at_source(c, is_bool ? convert(x, DType::kI32) : x), names_of(c.attr()));
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

// ---- ppermute

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

// Of lanes along axis 0, lane i replaced by lanes[i].
Val picked_lanes(Val x, const Dims& lanes) {
  if (counts_up(lanes) && static_cast<int64_t>(lanes.size()) == x.shape()[0]) return x;
  return parts(x, {static_cast<int64_t>(lanes.size()), 1}, lanes);
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

}  // namespace

void register_send(OpRegistry& r) {
  r.add(pbroadcast_op());
  r.add(ppermute_op());
}

}  // namespace weft
