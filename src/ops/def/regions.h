// What the ops of control flow share: taking graphs apart and putting them together again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/def/walk.h"
#include "weft/build.h"
#include "weft/held.h"
#include "weft/op_def.h"

namespace weft {

inline Values values_of(std::span<const Val> xs) {
  Values out;
  for (const Val& x : xs) out.push_back(x.value);
  return out;
}
inline Vals vals_of(Builder& b, std::span<const Value> xs) {
  Vals out;
  for (Value x : xs) out.push_back({&b, x});
  return out;
}
inline TypeRefs types_of(std::span<const Val> xs) {
  TypeRefs out;
  for (const Val& x : xs) out.push_back(x.type());
  return out;
}

// A graph from a function of its inputs.
template <typename F>
GraphRef make_graph(std::span<const TypeRef> types, F&& f) {
  GraphBuilder b;
  b.set_hash_consing(true);
  Vals inputs;
  for (TypeRef type : types) inputs.push_back({&b, b.input(type)});
  Vals outputs = f(b, std::span<const Val>(inputs));
  return b.finish(values_of(outputs));
}

// The ops of a graph, applied to `args`.
inline Vals inlined(Builder& b, const GraphRef& graph, std::span<const Val> args) {
  return vals_of(b, b.inline_graph(*graph, values_of(args)));
}
// Only the ops that the `wanted` values of the graph need; an argument that they do not need may be
// none. Values in `given` are replaced by the values in `by`. Returns the wanted values.
Vals inlined_part(Builder& b, const Graph& graph, std::span<const Val> args,
                  std::span<const Value> wanted, std::span<const Value> given = {},
                  std::span<const Val> by = {});
// The graph with other outputs: as inlined_part, but ops with effects stay.
Vals inlined_with(Builder& b, const Graph& graph, std::span<const Val> args,
                  std::span<const Value> outputs, std::span<const Value> given = {},
                  std::span<const Val> by = {});

// Reads a list piece by piece.
class Reader {
 public:
  explicit Reader(std::span<const Val> xs) : rest_(xs) {}
  Val next() { return take(1)[0]; }
  std::span<const Val> take(size_t n) {
    std::span<const Val> piece = rest_.first(n);
    rest_ = rest_.subspan(n);
    return piece;
  }
  // One value where the mask holds, none elsewhere.
  Vals take(const Mask& mask) {
    Vals out;
    for (bool present : mask) out.push_back(present ? next() : Val{});
    return out;
  }
  std::span<const Val> rest() const { return rest_; }

 private:
  std::span<const Val> rest_;
};

inline void append_present(Vals& to, std::span<const Val> from) {
  for (const Val& x : from)
    if (x.builder && x) to.push_back(x);
}
// The entries that are masked, or those that are not.
template <typename T, uint32_t N>
SmallVector<T, N> picked(const SmallVector<T, N>& xs, const Mask& mask, bool where = true) {
  SmallVector<T, N> out;
  for (size_t i = 0; i < xs.size(); ++i)
    if (mask[i] == where) out.push_back(xs[i]);
  return out;
}
inline Mask part(const Mask& mask, size_t begin, size_t n) {
  return Mask(std::span<const bool>(mask).subspan(begin, n));
}
template <typename T, uint32_t N>
SmallVector<T, N> joined(std::initializer_list<SmallVector<T, N>> lists) {
  SmallVector<T, N> out;
  for (const auto& list : lists) out.append(list);
  return out;
}
inline size_t count(const Mask& mask) {
  return static_cast<size_t>(std::count(mask.begin(), mask.end(), true));
}
inline bool any(const Mask& mask) { return count(mask) > 0; }

// Options of a vmap within a batch rule.
inline VmapOptions vmap_options(const BatchCtx& c, BatchDims in_dims, BatchDims out_dims) {
  return {.in_dims = std::move(in_dims),
          .size = c.size,
          .out_dims = std::move(out_dims),
          .axis_name = std::string(c.axis_name),
          .spmd_axis_name = std::string(c.spmd_axis_name)};
}

// Throws if one of the graphs calls on the host for more than to report (io_callback): all lanes
// would call, also those for which the program says that the graph does not run.
void check_lanes_may_run(const BatchCtx& c, std::span<const GraphRef> graphs,
                         std::string_view chosen_by);

// Values that a loop's body makes of its first `num_consts` inputs alone, and that are better made
// once, before the loop: pure ops, whose results are not larger than what they are made of.
struct Hoisted {
  std::vector<Value> values;  // of the body
  GraphRef body;              // inputs: those of the body, preceded by the values
};
Hoisted hoist(const GraphRef& body, size_t num_consts);

// Of loops and branches: whether what is carried, or what branches give, may vary over different
// axes, as where a function of the library has them inside. Else users have to write the casts.
inline AttrSpec auto_pcast_attr() {
  return {"auto_pcast", AttrType::kBool, AttrSpec::kHideDefault | AttrSpec::kForDerivatives, false};
}
bool casts_must_be_written(const ShardCtx& c);
// For errors: "'x', 'y'", the axes of a set, and how a user writes a cast to them.
std::string axes_text(const std::vector<std::string>& axes, AxisSet set);
std::string cast_text(const ShardCtx& c, AxisSet set);

// The body of a loop, as `shard` makes it; its carries vary over the same axes in all iterations.
// What its inputs have to vary over for that is added to `inputs`; throws kType instead where casts
// must be written.
std::shared_ptr<const ShardedGraph> sharded_body(const ShardCtx& c, const GraphRef& body,
                                                 SmallVector<AxisSet, 8>& inputs, Carries carries);

// Checks the type of what a graph of an op takes or gives, for inference.
void check_region_type(const InferCtx& c, std::string_view graph, std::string_view what, size_t i,
                       TypeRef expected, TypeRef got);

}  // namespace weft
