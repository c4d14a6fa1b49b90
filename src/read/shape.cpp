// Constants, and ops that move elements: shapes, slices, gather and scatter, sorting.
#include <algorithm>
#include <cmath>

#include "ops/def/addressing.h"
#include "ops/def/axes.h"
#include "ops/def/dense.h"
#include "ops/def/limits.h"
#include "ops/elementwise/order.h"
#include "read/elements.h"
#include "read/op_text.h"
#include "weft/rebuild.h"
#include "weft/registry.h"

namespace weft::reader {

namespace {

void constant(OpText& op) {
  std::string_view value = op.document.resolved(op.get({"value"}));
  TypeRef type = op.out_type();
  if (value.starts_with("array"))
    op.refuse("expected a value dense<...> or dense_resource<...>; got ", value.substr(0, 40));
  // In generic form a value has a type of its own, which is the result's.
  Elements elements = read_elements(op.document, value, type);
  if (elements.splat) {
    op.results.push_back(op.b.literal(*elements.splat));
  } else {
    op.result(broadcast_to(dense(op.b, elements.dense), type->shape()));
  }
}

void iota_rule(OpText& op) {
  int64_t axis = op.integer({"dim", "iota_dimension"});
  TypeRef type = op.out_type();
  if (axis < 0 || axis >= type->rank()) op.fail("expected a dimension of ", type, "; got ", axis);
  op.result(iota(op.b, type, static_cast<int>(axis)));
}

void broadcast_in_dim_rule(OpText& op) {
  // The shape of a dynamic one, its second operand, is that of the result.
  if (op.name == "broadcast_in_dim") op.expect_operands(1);
  const Dims& shape = op.out_type()->shape();
  Dims axes = op.ints({"dims", "broadcast_dimensions"});
  if (op.in_type(0)->rank() == 0 && shape.empty()) return op.result(op.x(0));
  op.result(broadcast_in_dim(op.x(0), shape, axes));
}

// New dimensions in front.
void broadcast_rule(OpText& op) {
  op.expect_operands(1);
  const Dims& shape = op.out_type()->shape();
  int rank = op.in_type(0)->rank();
  Dims axes;
  for (int i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(shape.size()) - rank + i);
  op.result(broadcast_in_dim(op.x(0), shape, axes));
}

void reshape_rule(OpText& op) { op.result(reshape(op.x(0), op.out_type()->shape())); }

void transpose_rule(OpText& op) {
  op.expect_operands(1);
  Dims permutation = op.ints({"dims", "permutation"});
  op.result(apply1("transpose", {op.x(0)}, {{"permutation", permutation}}));
}

void reverse(OpText& op) {
  op.expect_operands(1);
  op.result(apply1("rev", {op.x(0)}, {{"dimensions", op.ints({"dims", "dimensions"})}}));
}

void concatenate_rule(OpText& op) {
  if (op.size() == 0) op.fail("expected at least one operand");
  op.result(weft::apply(op_named<"concatenate">(), op.all(),
                        AttrRecord::make("concatenate", op_named<"concatenate">().attrs,
                                         {{"dimension", op.integer({"dim", "dimension"})}}))[0]);
}

void pad_rule(OpText& op) {
  op.expect_operands(2);
  Dims low = op.ints({"low", "edge_padding_low"}), high = op.ints({"high", "edge_padding_high"}),
       interior = op.ints({"interior", "interior_padding"});
  if (low.size() != high.size() || low.size() != interior.size())
    op.fail("expected as many low, high and interior paddings; got ", low.size(), ", ", high.size(),
            " and ", interior.size());
  std::vector<Dims> config;
  for (size_t i = 0; i < low.size(); ++i) config.push_back({low[i], high[i], interior[i]});
  op.result(pad(op.x(0), op.x(1), config));
}

void slice_rule(OpText& op) {
  op.expect_operands(1);
  Dims start, limit, strides;
  if (std::optional<std::string_view> ranges = op.find("ranges")) {  // [0:1, 0:4:2]
    for (std::string_view range : op.document.list(*ranges)) {
      Cursor in = op.document.cursor(range);
      start.push_back(in.integer());
      in.expect(":", "between the bounds of a slice");
      limit.push_back(in.integer());
      strides.push_back(in.accept(':') ? in.integer() : 1);
    }
  } else {
    start = op.ints({"start_indices"});
    limit = op.ints({"limit_indices"});
    strides = op.ints_or("strides", start.size(), 1);
  }
  if (limit.size() != start.size() || strides.size() != start.size())
    op.fail("expected as many bounds and strides; got ", start.size(), ", ", limit.size(), " and ",
            strides.size());
  op.result(slice(op.x(0), start, limit, strides));
}

void dynamic_slice_rule(OpText& op) {
  if (op.size() == 0) op.fail("expected an operand");
  Vals xs = op.all();
  op.result(
      dynamic_slice(xs[0], std::span<const Val>(xs).subspan(1), op.ints({"sizes", "slice_sizes"})));
}

void dynamic_update_slice_rule(OpText& op) {
  if (op.size() < 2) op.fail("expected an operand and an update");
  Vals xs = op.all();
  op.result(dynamic_update_slice(xs[0], xs[1], std::span<const Val>(xs).subspan(2)));
}

// ---- Gather and scatter

struct Numbers {
  NamedList fields;
  const OpText& op;

  explicit Numbers(const OpText& text, std::string_view attr)
      : fields(text.document.fields(text.get({attr}))), op(text) {}
  Dims ints(std::string_view name) const {
    for (const Named& field : fields)
      if (field.name == name) return op.document.ints(field.value);
    return {};
  }
  int64_t integer(std::string_view name) const {
    for (const Named& field : fields)
      if (field.name == name) return op.document.integer(field.value);
    return 0;
  }
};

// Index vectors along the last axis.
Val with_vectors_last(const OpText& op, Val indices, int64_t axis) {
  if (axis < 0 || axis > indices.rank())
    op.fail("expected index_vector_dim between 0 and ", indices.rank(), "; got ", axis);
  if (axis == indices.rank()) return expand_dim(indices, indices.rank());
  return move_axis(indices, static_cast<int>(axis), indices.rank() - 1);
}

// Axes of the indices, once those of the vectors are last.
Dims moved(Dims axes, int64_t vectors) {
  for (int64_t& axis : axes) axis -= axis > vectors;
  return axes;
}

void gather_rule(OpText& op) {
  if (op.size() < 2) op.fail("expected an operand and indices");
  Numbers numbers(op, "dimension_numbers");
  int64_t vectors = numbers.integer("index_vector_dim");
  Addressing a{.window_axes = numbers.ints("offset_dims"),
               .dropped = numbers.ints("collapsed_slice_dims"),
               .index_map = numbers.ints("start_index_map"),
               .batching = numbers.ints("operand_batching_dims"),
               .indices_batching = moved(numbers.ints("start_indices_batching_dims"), vectors),
               .mode = "clip",
               .sorted = op.boolean_or("indices_are_sorted", false)};
  Val indices = with_vectors_last(op, op.x(1), vectors);
  op.result(gather(op.x(0), indices, a, op.ints({"slice_sizes"})));
}

// A scatter of several arrays is one of each, if its region keeps them apart.
void scatter_rule(OpText& op) {
  op.expect_regions(1);
  if (op.size() != 3)
    op.refuse("expected one operand, indices and updates; got ", op.size(), " operands");
  Numbers numbers(op, "scatter_dimension_numbers");
  int64_t vectors = numbers.integer("index_vector_dim");
  Addressing a{.window_axes = numbers.ints("update_window_dims"),
               .dropped = numbers.ints("inserted_window_dims"),
               .index_map = numbers.ints("scatter_dims_to_operand_dims"),
               .batching = numbers.ints("input_batching_dims"),
               .indices_batching = moved(numbers.ints("scatter_indices_batching_dims"), vectors),
               .mode = "fill",
               .unique = op.boolean_or("unique_indices", false),
               .sorted = op.boolean_or("indices_are_sorted", false)};
  Val x = op.x(0), indices = with_vectors_last(op, op.x(1), vectors), updates = op.x(2);
  const Graph& region = *op.regions[0].graph;
  bool closed =
      op.regions[0].captured.empty() && region.num_inputs() == 2 && region.outputs().size() == 1;
  if (closed && region.outputs()[0] == region.input(1))
    return op.result(scatter("scatter", x, indices, updates, a));
  struct Known {
    std::string_view combine, op;
  };
  static constexpr Known kKnown[] = {{"add", "scatter-add"},
                                     {"mul", "scatter-mul"},
                                     {"max", "scatter-max"},
                                     {"min", "scatter-min"},
                                     {"sub", "scatter-sub"}};
  std::string_view combine = closed ? combining_op(region) : std::string_view();
  for (const Known& known : kKnown)
    if (combine == known.combine) return op.result(scatter(known.op, x, indices, updates, a));
  // A function of the element that is there, and of nothing else.
  if (closed && std::ranges::none_of(region.ops(), [&](const Op& inner) {
        return std::ranges::any_of(region.operands(inner),
                                   [&](Value v) { return v == region.input(1); });
      })) {
    GraphBuilder b;
    Value in = b.input(region.input_types()[0]);
    Value args[] = {in, {}};
    Values out = b.inline_graph(region, args);
    AttrsRef like =
        weft::with_addressing(*AttrRecord::make("scatter-apply", op_named<"scatter-apply">().attrs,
                                                {{"update_window_dims", a.window_axes},
                                                 {"inserted_window_dims", a.dropped},
                                                 {"scatter_dims_to_operand_dims", a.index_map},
                                                 {"mode", a.mode},
                                                 {"jaxpr", b.finish(out)}}),
                              a);
    return op.result(weft::apply(op_named<"scatter-apply">(), Vals{x, indices, updates}, like)[0]);
  }
  op.refuse(
      "expected a region that adds, subtracts or multiplies, takes the larger or smaller, or "
      "puts the update in place of what is there");
}

// ---- Sorting

// What a comparator compares by: a function of the elements that come first, of which the same is
// made of those that come second.
struct Key {
  GraphRef function;  // one input per operand of the sort
  bool decreasing = false;
  bool total = false;  // by the order of the bits
};

// A comparator that is lt(f(x), f(y)), or that of several such f, one after the other:
//   or(lt(f(x), f(y)), and(eq(f(x), f(y)), ...))
// Inputs are x_0, y_0, x_1, y_1, ...
class Comparator {
 public:
  explicit Comparator(const Graph& graph) : g_(graph) {}

  // Empty: it is none.
  std::vector<Key> keys() const {
    std::vector<Key> all;
    if (g_.outputs().size() != 1 || !add_keys(g_.outputs()[0], all, 0)) all.clear();
    return all;
  }

 private:
  const Op* producer(Value v) const { return v.is_literal() ? nullptr : g_.producer(v); }

  // What makes v of the first (0) or second (1) elements alone; null if it takes others.
  GraphRef made_of(Value v, uint32_t which) const {
    std::vector<bool> needed(g_.num_values());
    auto need = [&](Value x) {
      if (!x.is_literal()) needed[x.id] = true;
    };
    need(v);
    for (size_t i = g_.ops().size(); i-- > 0;) {
      const Op& op = g_.op(static_cast<uint32_t>(i));
      bool used = false;
      for (uint32_t r = 0; r < op.num_results; ++r) used |= needed[op.results_begin + r];
      if (!used) continue;
      needed[op.results_begin] = true;
      for (Value x : g_.operands(op)) need(x);
    }
    GraphBuilder b;
    ValueMap map(g_, b);
    for (uint32_t i = 0; i < g_.num_inputs(); ++i) {
      if (i % 2 != which && needed[i]) return nullptr;
      if (i % 2 == which) map.set(g_.input(i), b.input(g_.input_types()[i]));
    }
    for (const Op& op : g_.ops())
      if (needed[op.results_begin]) map.set_results(op, copy_op(g_, b, op, map(g_.operands(op))));
    Value output = map(v);
    return b.finish({&output, 1});
  }

  std::optional<Key> comparison(const Op& op) const {
    bool turned = false;
    GraphRef x = made_of(g_.operand(op, 0), 0), y = made_of(g_.operand(op, 1), 1);
    if (!x || !y) {
      turned = true;
      x = made_of(g_.operand(op, 1), 0);
      y = made_of(g_.operand(op, 0), 1);
    }
    if (!x || !y || !equal(*x, *y)) return std::nullopt;
    const std::string& name = op.info->name;
    bool greater = name == "gt";
    return Key{x, greater != turned, name.ends_with("_to")};
  }

  bool add_keys(Value v, std::vector<Key>& keys, int depth) const {
    constexpr int kMostKeys = 64;
    const Op* op = producer(v);
    if (!op || depth > kMostKeys) return false;
    const std::string& name = op->info->name;
    if (name == "lt" || name == "lt_to" || name == "gt") {
      std::optional<Key> key = comparison(*op);
      if (key) keys.push_back(*key);
      return key.has_value();
    }
    if (name != "or") return false;
    const Op* rest = producer(g_.operand(*op, 1));
    if (!rest || rest->info->name != "and" || !add_keys(g_.operand(*op, 0), keys, depth + 1))
      return false;
    const Op* same = producer(g_.operand(*rest, 0));
    if (!same || (same->info->name != "eq" && same->info->name != "eq_to")) return false;
    std::optional<Key> key = comparison(*same);
    return key && equal(*key->function, *keys.back().function) &&
           add_keys(g_.operand(*rest, 1), keys, depth + 1);
  }

  const Graph& g_;
};

// x == 0 ? 0 : x, then nan for every nan: numbers that count as equal get one form.
bool is_normal_form(const Graph& f, Value v) {
  for (int steps = 0; steps <= 2; ++steps) {
    if (v.is_literal()) return false;
    if (v.id < f.num_inputs()) return steps > 0;
    const Op* op = f.producer(v);
    if (op->info->name != "select_n" || op->num_operands != 3) return false;
    Value pred = f.operand(*op, 0), other = f.operand(*op, 2);
    const Op* test = pred.is_literal() ? nullptr : f.producer(pred);
    if (!test || !other.is_literal() || test->num_operands != 2) return false;
    Value x = f.operand(*test, 0), y = f.operand(*test, 1);
    bool is_zero = test->info->name == "eq" && y.is_literal() && f.literal(y).as_double() == 0 &&
                   f.literal(other).as_double() == 0;
    bool is_nan = test->info->name == "ne" && x == y && std::isnan(f.literal(other).as_double());
    if (!is_zero && !is_nan) return false;
    v = f.operand(*op, 1);
  }
  return false;
}

// The operand that a key is, in the order in which weft's sort has its elements.
std::optional<uint32_t> operand_of(const Key& key) {
  const Graph& f = *key.function;
  Value v = f.outputs()[0];
  for (uint32_t i = 0; i < f.num_inputs(); ++i) {
    DType dtype = f.input_types()[i]->dtype();
    if (v == f.input(i) && !(key.total && is_float(dtype))) return i;
    if (!is_float(dtype)) continue;
    GraphBuilder b;
    Vals xs;
    for (TypeRef type : f.input_types()) xs.push_back({&b, b.input(type)});
    Value bits = ordered_bits(xs[i], /*nan_last=*/true).value;
    if (equal(f, *b.finish({&bits, 1}))) return i;
    Value leaf = v;
    while (!leaf.is_literal() && leaf.id >= f.num_inputs() &&
           f.producer(leaf)->info->name == "select_n")
      leaf = f.operand(*f.producer(leaf), 1);
    if (leaf == f.input(i) && is_normal_form(f, v)) return i;
  }
  return std::nullopt;
}

Vals sorted(const Vals& xs, int64_t axis, bool stable, int64_t num_keys) {
  const OpDef& sort = op_named<"sort">();
  return weft::apply(
      sort, xs,
      AttrRecord::make(sort.name, sort.attrs,
                       {{"dimension", axis}, {"is_stable", stable}, {"num_keys", num_keys}}));
}

// Operands that are no keys as they stand are sorted together with their keys. A decreasing order
// is the increasing one of the reversed axis, reversed, so that equals stay in their order.
void sort_rule(OpText& op) {
  op.expect_regions(1);
  if (op.size() == 0) op.fail("expected an operand");
  const Graph& region = *op.closed_region(0);
  if (region.num_inputs() != 2 * op.size())
    op.fail("expected a region of ", 2 * op.size(), " arguments; got ", region.num_inputs());
  int64_t axis = op.integer_or("dimension", -1);
  if (axis < 0) axis += op.in_type(0)->rank();
  std::vector<Key> keys = Comparator(region).keys();
  bool decreasing = !keys.empty() && keys[0].decreasing;
  if (keys.empty() ||
      std::ranges::any_of(keys, [&](const Key& key) { return key.decreasing != decreasing; }))
    op.refuse(
        "expected a region that compares what one function makes of the first elements and "
        "of the second ones, or several such, all by LT or all by GT");
  Vals xs = op.all();
  bool plain = true;
  for (uint32_t i = 0; i < keys.size(); ++i) plain = plain && operand_of(keys[i]) == i;
  Vals operands;
  if (!plain)
    for (const Key& key : keys) {
      std::optional<uint32_t> i = operand_of(key);
      Val made = i ? xs[*i] : mapped(key.function, xs)[0];
      operands.push_back(key.total && !i ? in_total_order(made) : made);
    }
  operands.append(xs);
  auto turned = [&](Val x) { return decreasing ? rev(x, {axis}) : x; };
  for (Val& x : operands) x = turned(x);
  Vals made =
      sorted(operands, axis, op.boolean_or("is_stable", false), static_cast<int64_t>(keys.size()));
  for (size_t i = operands.size() - xs.size(); i < made.size(); ++i) op.result(turned(made[i]));
}

void top_k(OpText& op) {
  op.expect_operands(1);
  Vals made = weft::apply("top_k", {op.x(0)},
                          {{"k", op.integer({"k"})}, {"axis", int64_t{op.in_type(0)->rank() - 1}}});
  for (Val v : made) op.result(v);
}

void dimension_size(OpText& op) {
  op.expect_operands(1);
  int64_t axis = op.integer({"dim", "dimension"});
  if (axis < 0 || axis >= op.in_type(0)->rank())
    op.fail("expected a dimension of ", op.in_type(0), "; got ", axis);
  op.results.push_back(op.b.literal(
      make_literal(op.out_type()->dtype(), op.in_type(0)->dim(static_cast<int>(axis)))));
}

constexpr NamedRule kShapeRules[] = {
    {"broadcast", broadcast_rule},
    {"broadcast_in_dim", broadcast_in_dim_rule},
    {"concatenate", concatenate_rule},
    {"constant", constant},
    {"dynamic_broadcast_in_dim", broadcast_in_dim_rule},
    {"dynamic_gather", gather_rule},
    {"dynamic_iota", iota_rule},
    {"dynamic_reshape", reshape_rule},
    {"dynamic_slice", dynamic_slice_rule},
    {"dynamic_update_slice", dynamic_update_slice_rule},
    {"gather", gather_rule},
    {"get_dimension_size", dimension_size},
    {"iota", iota_rule},
    {"pad", pad_rule},
    {"reshape", reshape_rule},
    {"reverse", reverse},
    {"scatter", scatter_rule},
    {"slice", slice_rule},
    {"sort", sort_rule},
    {"top_k", top_k},
    {"transpose", transpose_rule},
};

}  // namespace

std::span<const NamedRule> shape_rules() { return kShapeRules; }

}  // namespace weft::reader
