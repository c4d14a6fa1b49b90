// The table of what XLA's partitioner does right with parts of unequal sizes, as far as
// tests/support/sharded_random.py has found (jaxlib 0.10.2).
#include "ops/def/partition.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>

#include "ops/def/axes.h"

namespace weft {
namespace {

// Ops that make dimensions of others.
constexpr std::string_view kResizing[] = {
    "concatenate",
    "conv_general_dilated",
    "dynamic_slice",
    "dynamic_update_slice",
    "fft",
    "gather",
    "pad",
    "reduce_window",
    "reduce_window_max",
    "reduce_window_min",
    "reduce_window_sum",
    "reshape",
    "scatter",
    "scatter-add",
    "select_and_gather_add",
    "select_and_scatter",
    "select_and_scatter_add",
    "slice",
    "split",
    "squeeze",
    "top_k",
};

// Ops beside the element-wise ones, and those that hold graphs, that give the right values of
// operands that are filled up.
constexpr std::string_view kTakesUnequalParts[] = {
    "after_all",
    "argmax",
    "argmin",
    "bitcast_convert_type",
    "broadcast_in_dim",
    "concatenate",
    "constant",
    "convert_element_type",
    "copy",
    "create_token",
    "device_put",
    "dot_general",

    "inspect_sharding",
    "iota",
    "optimization_barrier",
    "pad",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_xor",
    "reshape",
    "rev",
    "select_n",
    "shard_alike",
    "sharding_constraint",
    "slice",
    "split",
    "squeeze",
    "stop_gradient",
    "transpose",
    "vary_like",
};

bool is_in(std::span<const std::string_view> table, std::string_view name) {
  return std::ranges::find(table, name) != table.end();
}

// Sizes of which the results have more dimensions than any operand, or an operand more than they.
void add_resized(const Graph& graph, const Op& op, Sizes& sizes) {
  auto count = [](TypeRef type) {
    std::map<int64_t, int> counts;
    for (int64_t n : type->shape()) ++counts[n];
    return counts;
  };
  std::map<int64_t, int> most, made;
  auto raise = [](std::map<int64_t, int>& to, const std::map<int64_t, int>& counts) {
    for (auto [n, times] : counts) to[n] = std::max(to[n], times);
  };
  for (Value v : graph.operands(op)) raise(most, count(graph.type(v)));
  for (TypeRef type : graph.result_types(op)) raise(made, count(type));
  bool adds_ones = op.info->name == "reshape" || op.info->name == "squeeze";
  if (adds_ones) most[1] = made[1] = 0;
  for (auto [n, times] : made)
    if (times > most[n]) sizes.insert(n);
  for (auto [n, times] : most)
    if (times > made[n]) sizes.insert(n);
}

void add_resized(const Graph& graph, Sizes& sizes, std::unordered_set<const Graph*>& seen) {
  if (!seen.insert(&graph).second) return;
  for (const Op& op : graph.ops()) {
    if (is_in(kResizing, op.info->name)) add_resized(graph, op, sizes);
    if (op.attrs && op.attrs->holds_graphs())
      for_each_graph(op.attrs, [&](const GraphRef& inner) { add_resized(*inner, sizes, seen); });
  }
}

bool has_attr(const AttrRecord& attrs, std::string_view name) {
  return std::ranges::any_of(attrs.schema().specs(),
                             [&](const AttrSpec& a) { return a.name == name; });
}

// Whether a window does not go from element to element along an axis. Where it steps over some, the
// partitioner makes parts of sizes that it does not expect.
bool has_steps(const AttrRecord& attrs, size_t axis) {
  constexpr std::string_view kSteps[] = {"window_strides", "lhs_dilation", "rhs_dilation",
                                         "base_dilation", "window_dilation"};
  return std::ranges::any_of(kSteps, [&](std::string_view name) {
    return has_attr(attrs, name) && axis < attrs.ints(name).size() && attrs.ints(name)[axis] != 1;
  });
}

// Whether the window of a convolution is no larger than its result. The window of one that is the
// derivative of another convolution by its window is larger.
bool has_small_window(const Graph& graph, const Op& conv) {
  const std::vector<Dims>& axes = conv.attrs->ints_list("dimension_numbers");
  const Dims& window = graph.type(graph.operand(conv, 1))->shape();
  const Dims& result = graph.type(graph.result(conv, 0))->shape();
  for (size_t k = 2; k < axes[1].size(); ++k)
    if (window[static_cast<size_t>(axes[1][k])] > result[static_cast<size_t>(axes[2][k])])
      return false;
  return true;
}

}  // namespace

void add_resized(const Graph& graph, Sizes& sizes) {
  std::unordered_set<const Graph*> seen;
  add_resized(graph, sizes, seen);
}

bool is_partly_manual(EmitCtx& c) {
  MeshRef mesh = c.manual_mesh();
  return c.has_several_devices() && mesh &&
         (mesh->has(AxisType::kAuto) || mesh->has(AxisType::kExplicit));
}

bool may_be_split(EmitCtx& c) {
  return c.has_several_devices() && (!c.manual_mesh() || is_partly_manual(c));
}

std::string emit_apart(EmitCtx& c, const std::string& slice, TypeRef type) {
  return c.line(
      cat("stablehlo.optimization_barrier ", c.with_pending_sums(slice), " : ", mlir_type(type)));
}

void check_place_of_effect(EmitCtx& c, std::string_view op) {
  if (is_partly_manual(c))
    fail(
        ErrorKind::kNotImplemented, "[", op,
        "] expected a shard_map over all axes of its mesh around a call with effects; got one over "
        "some of ",
        shown(c.manual_mesh()));
}

Dims summed_axes(const Graph& graph, const Op& op, const Placements& places) {
  std::span<const Value> xs = graph.operands(op);
  auto split = [&](Value v, int64_t dim) {
    return v.is_literal() ? Dims() : places.of(v)->dim(static_cast<size_t>(dim)).axes;
  };
  Dims summed;
  auto add = [&](const Dims& axes) {
    for (int64_t axis : axes) summed.push_back(axis);
  };
  if (op.info->name == "reduce_sum") {
    for (int64_t dim : op.attrs->ints("axes")) add(split(xs[0], dim));
  } else if (op.info->name == "dot_general") {
    const std::vector<Dims>& dims = op.attrs->ints_list("dimension_numbers");
    // Few terms of many small products are added up one by one.
    if (!dims[2].empty()) return {};
    for (size_t i = 0; i < dims[0].size(); ++i)
      if (Dims axes = split(xs[0], dims[0][i]); axes == split(xs[1], dims[1][i])) add(axes);
  }
  return summed;
}

Mask whole_dims(const Graph& graph, const Op& applied, TypeRef type, int64_t i,
                const Sizes& resized, std::span<const int64_t> sizes) {
  const OpDef& op = def(*applied.info);
  const AttrRecord* attrs = applied.attrs.get();
  // What one device calls a function with, and gets, goes wrong where it is split.
  bool each = attrs && has_attr(*attrs, "partitioned") && attrs->boolean("partitioned");
  if (op.effects != kPure && op.name != "inspect_sharding" && !each) {
    Mask all;
    for (size_t k = 0; k < type->shape().size(); ++k) all.push_back(true);
    return all;
  }
  bool calls = op.call != CallKind::kNone || op.loop.parts ||
               (op.jvp_kind == JvpKind::kGraph && attrs && attrs->holds_graphs());
  if (op.elementwise || calls || is_in(kTakesUnequalParts, op.name)) return {};
  Mask whole;
  for (int64_t n : type->shape()) whole.push_back(n % product(sizes) != 0 && resized.contains(n));
  if (op.name == "conv_general_dilated") {
    // Sums over the places of a window go wrong wherever these are split, as in the derivative of a
    // convolution of a split image by its window.
    const Dims& axes = attrs->ints_list("dimension_numbers")[i < 0 ? 2 : static_cast<size_t>(i)];
    // Where places of the image are split over one axis of the mesh, and another dimension over one
    // more, sums are made over parts that are equal. With one axis only sums over features go
    // wrong.
    bool has_grid = sizes.size() > 1;
    for (size_t k = 2; k < axes.size(); ++k)
      if (has_grid || i == 1 || has_steps(*attrs, k - 2))
        whole[static_cast<size_t>(axes[k])] = true;
    if (!has_grid && i == 1 && has_small_window(graph, applied))
      whole[static_cast<size_t>(axes[1])] = true;
  } else if (attrs && has_attr(*attrs, "window_strides")) {
    // Windows over several arrays, and those that select, go wrong or end the process along split
    // axes that they reach over.
    bool is_joint = op.name == "reduce_window" || op.name.starts_with("select_and");
    const Dims& window = attrs->ints("window_dimensions");
    for (size_t k = 0; k < whole.size(); ++k)
      if (has_steps(*attrs, k) || (is_joint && window[k] != 1)) whole[k] = true;
  }
  // Transforms along axes that were split fail when they run, for the layout that they are given.
  if (op.name == "fft") {
    size_t axes = attrs->ints("fft_lengths").size();
    for (size_t k = whole.size() - axes; k < whole.size(); ++k) whole[k] = true;
  }
  return std::ranges::find(whole, true) == whole.end() ? Mask() : whole;
}

}  // namespace weft
