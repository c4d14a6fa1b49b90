// Checks, vectorisation and text of the addressing of gather and scatter.
#include "ops/def/addressing.h"

#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "weft/registry.h"

namespace weft {

// What an op calls the parts of an Addressing, in attributes and in StableHLO, and the labels of
// its constraints in StableHLO's specification.
struct AddressingNames {
  const char *op, *window_axes, *dropped, *index_map, *batching, *indices_batching;
  const char* hlo_batching;
  struct {
    int rank, components, window_order, window_range, distinct_dropped, dropped_order,
        dropped_range, batching_order, batching_range, distinct_pairs, pair_range, pair_count,
        pair_sizes, distinct_map, map_range;
  } labels;
};

const AddressingNames kGatherNames = {"gather",
                                      "offset_dims",
                                      "collapsed_slice_dims",
                                      "start_index_map",
                                      "operand_batching_dims",
                                      "start_indices_batching_dims",
                                      "operand_batching_dims",
                                      {1, 3, 4, 5, 6, 7, 8, 10, 11, 13, 14, 16, 17, 18, 19}};
const AddressingNames kScatterNames = {"scatter",
                                       "update_window_dims",
                                       "inserted_window_dims",
                                       "scatter_dims_to_operand_dims",
                                       "operand_batching_dims",
                                       "scatter_indices_batching_dims",
                                       "input_batching_dims",
                                       {2, 19, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 20, 21}};

namespace {

Addressing read_addressing(const AttrRecord& attrs, const AddressingNames& names) {
  return {attrs.ints(names.window_axes),      attrs.ints(names.dropped),
          attrs.ints(names.index_map),        attrs.ints(names.batching),
          attrs.ints(names.indices_batching), attrs.string("mode"),
          attrs.boolean("unique_indices"),    attrs.boolean("indices_are_sorted")};
}

using AddressingAttrs = std::initializer_list<NamedAttr>;

// Calls f with the attributes.
template <typename F>
auto with_attrs(const Addressing& a, const AddressingNames& names, F&& f) {
  return f(AddressingAttrs{{names.window_axes, a.window_axes},
                           {names.dropped, a.dropped},
                           {names.index_map, a.index_map},
                           {names.batching, a.batching},
                           {names.indices_batching, a.indices_batching},
                           {"mode", a.mode},
                           {"unique_indices", a.unique},
                           {"indices_are_sorted", a.sorted}});
}

Dims joined(Dims a, const Dims& b) {
  a.append(b);
  return a;
}

// Checks of one list of axes.
class AxisChecks {
 public:
  AxisChecks(const InferCtx& c, const AddressingNames& names) : c_(c), names_(names) {}

  void in_range(const char* name, const Dims& axes, int limit, int label) const {
    for (int64_t axis : axes)
      if (axis < 0 || axis >= limit)
        fail(cat("expected ", name, " between 0 and ", limit - 1), label, name, axes);
  }
  void in_order(const char* name, const Dims& axes, int label) const {
    if (!std::is_sorted(axes.begin(), axes.end()))
      fail(cat("expected increasing ", name), label, name, axes);
  }
  void distinct(const char* name, const Dims& axes, const Dims& with, int label) const {
    Dims all = joined(axes, with);
    std::sort(all.begin(), all.end());
    if (std::adjacent_find(all.begin(), all.end()) != all.end())
      fail(cat("expected distinct ", name, with.empty() ? "" : cat(", none in ", names_.batching)),
           label, name, axes);
  }
  [[noreturn]] void fail(std::string_view expected, int label, const char* name,
                         const Dims& axes) const {
    c_.fail(ErrorKind::kValue, expected, " (", names_.op, " C", label, "); got ", name, "=", axes,
            " (", operand_types(c_), ")");
  }

 private:
  const InferCtx& c_;
  const AddressingNames& names_;
};

}  // namespace

Dims Addressing::kept_axes(int rank) const { return other_axes(rank, joined(dropped, batching)); }

Addressing Addressing::with_operand_axis(int at) const {
  Addressing a = *this;
  a.dropped = shifted(dropped, at);
  a.index_map = shifted(index_map, at);
  a.batching = shifted(batching, at);
  return a;
}

Addressing gather_addressing(const AttrRecord& attrs) {
  return read_addressing(attrs, kGatherNames);
}
Addressing scatter_addressing(const AttrRecord& attrs) {
  return read_addressing(attrs, kScatterNames);
}

AttrsRef with_addressing(const AttrRecord& attrs, const Addressing& a) {
  return with_attrs(a, kScatterNames, [&](AddressingAttrs xs) { return attrs.with(xs); });
}

Addressing mapped_operand(const Addressing& a, int rank, int at, int* block_at) {
  Addressing mapped = a.with_operand_axis(at);
  int nth = count_before(a.kept_axes(rank), at);
  *block_at = nth == 0 ? 0 : static_cast<int>(a.window_axes[static_cast<size_t>(nth - 1)]) + 1;
  mapped.window_axes = inserted(shifted(a.window_axes, *block_at), nth, *block_at);
  return mapped;
}

Addressing mapped_indices(const Addressing& a, int at) {
  Addressing mapped = a.with_operand_axis(at);
  int nth = count_before(mapped.batching, at);
  mapped.batching.insert(static_cast<size_t>(nth), at);
  mapped.indices_batching = inserted(shifted(a.indices_batching, 0), nth, 0);
  mapped.window_axes = shifted(a.window_axes, 0);
  mapped.sorted = false;
  return mapped;
}

Dims window_sizes(const Addressing& a, TypeRef operand, TypeRef updates) {
  Dims sizes(operand->shape().size(), 1);
  Dims kept = a.kept_axes(operand->rank());
  for (size_t i = 0; i < kept.size(); ++i)
    sizes[static_cast<size_t>(kept[i])] = updates->dim(static_cast<int>(a.window_axes[i]));
  for (int64_t axis : a.batching)  // an empty axis has no window of size 1
    sizes[static_cast<size_t>(axis)] = dim_min(1, operand->dim(static_cast<int>(axis)));
  return sizes;
}

Val gather(Val x, Val indices, const Addressing& a, const Dims& sizes, std::optional<double> fill) {
  const OpDef& op = registry().get("gather");
  std::vector<NamedAttr> attrs =
      with_attrs(a, kGatherNames, [](AddressingAttrs xs) { return std::vector<NamedAttr>(xs); });
  attrs.push_back({"slice_sizes", sizes});
  if (fill) attrs.push_back({"fill_value", *fill});
  return apply(op, Vals{x, indices}, AttrRecord::make(op.name, op.attrs, attrs))[0];
}

Val gather_lanes(Val x, int at, Val indices, const Addressing& a, const Dims& sizes,
                 std::optional<double> fill) {
  if (at != kNotBatched) {
    int64_t size = dim_min(1, indices.type()->dim(0));
    return gather(x, indices, mapped_indices(a, at), inserted(sizes, at, size), fill);
  }
  Addressing mapped = a;
  mapped.window_axes = shifted(a.window_axes, 0);
  mapped.indices_batching = shifted(a.indices_batching, 0);
  mapped.sorted = mapped.unique = false;
  return gather(x, indices, mapped, sizes, fill);
}

Val scatter(std::string_view name, Val x, Val indices, Val updates, const Addressing& a) {
  const OpDef& op = registry().get(name);
  AttrsRef attrs = with_attrs(a, kScatterNames, [&](AddressingAttrs xs) {
    return AttrRecord::make(op.name, op.attrs, xs);
  });
  return apply(op, Vals{x, indices, updates}, attrs)[0];
}

bool fits(const Dims& shape, DType dtype) {
  if (info(dtype).bits >= 64) return true;
  int64_t limit = (int64_t{1} << (info(dtype).bits - is_signed_int(dtype))) - 1;
  return std::all_of(shape.begin(), shape.end(), [limit](int64_t n) { return n <= limit; });
}

DType index_dtype(DType indices, const Dims& shape) {
  if (info(indices).bits < 32) indices = DType::kI32;
  return fits(shape, indices) ? indices : DType::kI64;
}

Val largest_starts(Val indices, const Addressing& a, const Dims& shape, const Dims& sizes) {
  Dims largest;
  for (int64_t axis : a.index_map)
    largest.push_back(dim_sub(shape[static_cast<size_t>(axis)], sizes[static_cast<size_t>(axis)]));
  auto largest_start = [&](size_t i) {
    return size_value(*indices.builder, largest[i], indices.dtype());
  };
  if (largest.empty()) return scalar_like(indices, 0);
  Val first = largest_start(0);
  if (std::all_of(largest.begin(), largest.end(), [&](int64_t n) { return n == largest[0]; }))
    return first;
  // The graph has no constant arrays: choose by position along the last axis.
  TypeRef vector = make_type(indices.dtype(), Dims{static_cast<int64_t>(largest.size())});
  Val position = iota(*indices.builder, vector, 0);
  Val all = broadcast_to(first, vector->shape());
  for (size_t i = 1; i < largest.size(); ++i)
    all = select(eq(position, scalar_like(position, static_cast<double>(i))),
                 broadcast_to(largest_start(i), vector->shape()), all);
  return broadcast_in_dim(all, indices.shape(), {indices.rank() - 1});
}

Val clipped(Val indices, const Addressing& a, const Dims& shape, const Dims& sizes) {
  return min(max(indices, scalar_like(indices, 0)), largest_starts(indices, a, shape, sizes));
}

bool has_one_window(TypeRef indices) {
  const Dims& shape = indices->shape();
  int64_t count = product({shape.data(), shape.size() - 1});
  return !is_symbolic(count) && count <= 1;
}

void check_within(CheckCtx& c, Val indices, const Addressing& a, const Dims& sizes) {
  const Dims& shape = c.in_types[0]->shape();
  int64_t n = indices.type()->num_elements();
  if (!c.options.indices || n == 0) return;
  DType dtype = index_dtype(indices.dtype(), shape);
  indices = convert(indices, dtype);
  Val outside = gt(indices, largest_starts(indices, a, shape, sizes));
  if (is_signed_int(dtype)) outside = logical_or(outside, lt(indices, scalar_like(indices, 0)));
  // The first one that is, and its component.
  Val position = iota(c.b, make_type(DType::kI32, Dims{n}), 0);
  Val last = scalar_like(position, static_cast<double>(n - 1));
  Val first = reduce_min(select(reshape(outside, {n}), position, broadcast_to(last, {n})), {0});
  Val index = reshape(dynamic_slice(reshape(indices, {n}), Vals{first}, {1}), {});
  Val component = rem(first, scalar_like(first, static_cast<double>(a.index_map.size())));
  c.fail_if(CheckSite{.kind = CheckKind::kIndex, .shape = shape, .axes = a.index_map},
            reduce_or(outside, count_up(outside.rank())), {index, component});
}

void check_addressing(const InferCtx& c, const Addressing& a, const AddressingNames& names,
                      int block_rank) {
  TypeRef x = c.in(0), indices = c.in(1);
  AxisChecks check(c, names);
  const auto& labels = names.labels;
  check.in_order(names.window_axes, a.window_axes, labels.window_order);
  check.distinct(names.window_axes, a.window_axes, {}, labels.window_order);
  check.in_range(names.window_axes, a.window_axes, block_rank, labels.window_range);
  check.in_order(names.dropped, a.dropped, labels.dropped_order);
  check.in_range(names.dropped, a.dropped, x->rank(), labels.dropped_range);
  check.in_order(names.batching, a.batching, labels.batching_order);
  check.in_range(names.batching, a.batching, x->rank(), labels.batching_range);
  check.distinct(names.dropped, a.dropped, a.batching, labels.distinct_dropped);
  check.in_range(names.indices_batching, a.indices_batching, indices->rank() - 1,
                 labels.pair_range);
  check.distinct(names.indices_batching, a.indices_batching, {}, labels.distinct_pairs);
  if (a.batching.size() != a.indices_batching.size())
    check.fail(cat("expected as many ", names.indices_batching, " as ", names.batching),
               labels.pair_count, names.batching, a.batching);
  for (size_t i = 0; i < a.batching.size(); ++i)
    if (x->dim(static_cast<int>(a.batching[i])) !=
        indices->dim(static_cast<int>(a.indices_batching[i])))
      check.fail("expected operand and indices to have equal sizes along their batching axes",
                 labels.pair_sizes, names.batching, a.batching);
  check.in_range(names.index_map, a.index_map, x->rank(), labels.map_range);
  check.distinct(names.index_map, a.index_map, a.batching, labels.distinct_map);
  if (static_cast<int64_t>(a.index_map.size()) != indices->shape().back())
    check.fail(cat("expected an axis in ", names.index_map, " for each of the ",
                   indices->shape().back(), " components of the index vectors"),
               labels.components, names.index_map, a.index_map);
  if (a.kept_axes(x->rank()).size() != a.window_axes.size())
    check.fail(cat("expected ", x->rank(), " axes in ", names.window_axes, ", ", names.dropped,
                   " and ", names.batching, " together, the rank of the operand"),
               labels.rank, names.window_axes, a.window_axes);
  if (a.mode != "clip" && a.mode != "fill" && a.mode != "promise_in_bounds")
    c.fail(ErrorKind::kValue, "expected mode clip, fill or promise_in_bounds; got ", a.mode);
}

std::string dimension_numbers(const Addressing& a, const AddressingNames& names, TypeRef indices) {
  Text t;
  auto list = [&](const char* name, const Dims& axes) {
    if (!axes.empty()) t << name << " = " << bracketed(axes) << ", ";
  };
  list(names.window_axes, a.window_axes);
  list(names.dropped, a.dropped);
  list(names.hlo_batching, a.batching);
  list(names.indices_batching, a.indices_batching);
  list(names.index_map, a.index_map);
  t << "index_vector_dim = " << indices->rank() - 1;
  return t.take();
}

}  // namespace weft
