// The typed builders of build.h: each looks its OpDef up once and appends one op.
#include "weft/build.h"

#include "ops/def/axes.h"
#include "weft/registry.h"

namespace weft {

namespace {

Vals append(Builder& b, const OpDef& op, std::span<const Val> xs, const AttrsRef& attrs) {
  SmallVector<Value, 8> values;
  for (const Val& x : xs) values.push_back(x.value);
  Vals results;
  for (Value v : b.add(op, values, attrs)) results.push_back({&b, v});
  return results;
}

Val append1(const OpDef& op, std::initializer_list<Val> xs, const AttrsRef& attrs = nullptr) {
  return append(*xs.begin()->builder, op, {xs.begin(), xs.size()}, attrs)[0];
}

AttrsRef make_attrs(const OpDef& op, std::span<const NamedAttr> attrs) {
  return op.attrs.size() == 0 && attrs.empty() ? nullptr
                                               : AttrRecord::make(op.name, op.attrs, attrs);
}

AttrsRef make_attrs(const OpDef& op, std::initializer_list<NamedAttr> attrs) {
  return make_attrs(op, std::span<const NamedAttr>(attrs.begin(), attrs.size()));
}

}  // namespace

Vals apply(const OpDef& op, std::span<const Val> xs, const AttrsRef& attrs) {
  if (xs.empty()) fail(ErrorKind::kInternal, "[", op.name, "] expected an operand to build on");
  return append(*xs[0].builder, op, xs, attrs);
}

Vals apply(std::string_view op, std::initializer_list<Val> xs,
           std::initializer_list<NamedAttr> attrs) {
  const OpDef& found = registry().get(op);
  return apply(found, std::span<const Val>(xs.begin(), xs.size()), make_attrs(found, attrs));
}

Val scalar_like(Val x, double value) {
  return {x.builder, x.builder->literal(make_literal(x.dtype(), value))};
}

Val full(Builder& b, TypeRef type, double value) {
  Val scalar{&b, b.literal(make_literal(type->dtype(), value))};
  return broadcast_to(scalar, type->shape());
}

Val size_value(Builder& b, int64_t size, DType dtype) {
  if (!is_symbolic(size)) return {&b, b.literal(make_literal(dtype, size))};
  const OpDef& op = op_named<"dim_as_value">();
  return append(b, op, {}, make_attrs(op, {{"dim", size}, {"dtype", dtype}}))[0];
}

Val iota(Builder& b, TypeRef type, int dimension) {
  const OpDef& op = op_named<"iota">();
  return append(b, op, {},
                make_attrs(op, {{"dtype", type->dtype()},
                                {"shape", type->shape()},
                                {"dimension", int64_t{dimension}}}))[0];
}

// Of functions that have attributes, the default ones.
#define X(name)                                                                 \
  Val name(Val x) {                                                             \
    static const OpDef& op = op_named<#name>();                                 \
    static const AttrsRef attrs = make_attrs(op, std::span<const NamedAttr>()); \
    return append1(op, {x}, attrs);                                             \
  }
WEFT_UNARY_BUILDERS(X)
#undef X

#define X(name) \
  Val name(Val x, Val y) { return append1(op_named<#name>(), {x, y}); }
WEFT_BINARY_BUILDERS(X)
#undef X

Val logical_not(Val x) { return append1(op_named<"not">(), {x}); }
Val logical_and(Val x, Val y) { return append1(op_named<"and">(), {x, y}); }
Val logical_or(Val x, Val y) { return append1(op_named<"or">(), {x, y}); }

Val conj(Val x) {
  const OpDef& op = op_named<"conj">();
  return append1(op, {x}, make_attrs(op, {{"input_dtype", x.dtype()}}));
}

Val integer_pow(Val x, int64_t y) {
  const OpDef& op = op_named<"integer_pow">();
  return append1(op, {x}, make_attrs(op, {{"y", y}}));
}

Val select(Val pred, Val on_true, Val on_false) {
  return append1(op_named<"select_n">(), {pred, on_false, on_true});
}

Val convert(Val x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const OpDef& op = op_named<"convert_element_type">();
  return append1(op, {x}, make_attrs(op, {{"new_dtype", dtype}}));
}

Val broadcast_in_dim(Val x, const Dims& shape, const Dims& broadcast_dimensions) {
  const OpDef& op = op_named<"broadcast_in_dim">();
  return append1(
      op, {x}, make_attrs(op, {{"shape", shape}, {"broadcast_dimensions", broadcast_dimensions}}));
}

Val broadcast_to(Val x, const Dims& shape) {
  return x.shape() == shape ? x : broadcast_in_dim(x, shape, {});
}

Val reshape(Val x, const Dims& shape) {
  if (x.shape() == shape) return x;
  const OpDef& op = op_named<"reshape">();
  return append1(op, {x}, make_attrs(op, {{"new_sizes", shape}}));
}

Val transpose(Val x, const Dims& permutation) {
  if (permutation == count_up(x.rank())) return x;
  const OpDef& op = op_named<"transpose">();
  return append1(op, {x}, make_attrs(op, {{"permutation", permutation}}));
}

Val move_axis(Val x, int from, int to) {
  Dims permutation = count_up(x.rank());
  permutation.erase(static_cast<size_t>(from));
  permutation.insert(static_cast<size_t>(to), from);
  return transpose(x, permutation);
}

Val sharded(Val x, ShardingRef sharding) {
  return apply1("sharding_constraint", {x}, {{"sharding", sharding}});
}

Vals scan_over(Builder& b, std::span<const Val> operands, GraphRef body, const ScanParts& parts) {
  static const OpDef& op = registered_op("scan");
  AttrsRef attrs = make_attrs(op, {{"jaxpr", std::move(body)},
                                   {"length", parts.length},
                                   {"num_consts", parts.num_consts},
                                   {"num_carry", parts.num_carry},
                                   {"reverse", parts.reverse},
                                   {"unroll", parts.unroll}});
  return append(b, op, operands, attrs);
}

Val expand_dim(Val x, int axis) {
  return broadcast_in_dim(x, inserted(x.shape(), axis, 1), other_axes(x.rank() + 1, {axis}));
}

Val squeeze(Val x, const Dims& dimensions) {
  if (dimensions.empty()) return x;
  const OpDef& op = op_named<"squeeze">();
  return append1(op, {x}, make_attrs(op, {{"dimensions", dimensions}}));
}

Val rev(Val x, const Dims& dimensions) {
  if (dimensions.empty()) return x;
  const OpDef& op = op_named<"rev">();
  return append1(op, {x}, make_attrs(op, {{"dimensions", dimensions}}));
}

Val concatenate(std::span<const Val> xs, int dimension) {
  if (xs.size() == 1) return xs[0];
  const OpDef& op = op_named<"concatenate">();
  return apply(op, xs, make_attrs(op, {{"dimension", int64_t{dimension}}}))[0];
}

Val pad(Val x, Val value, const std::vector<Dims>& config) {
  auto is_none = [](const Dims& p) { return p == Dims(3, 0); };
  if (std::all_of(config.begin(), config.end(), is_none)) return x;
  const OpDef& op = op_named<"pad">();
  return append1(op, {x, value}, make_attrs(op, {{"padding_config", config}}));
}

Val slice(Val x, const Dims& start, const Dims& limit, const Dims& strides) {
  const OpDef& op = op_named<"slice">();
  Attr by = strides.empty() ? Attr() : Attr(strides);
  return append1(
      op, {x},
      make_attrs(op, {{"start_indices", start}, {"limit_indices", limit}, {"strides", by}}));
}

Val dynamic_slice(Val x, std::span<const Val> starts, const Dims& sizes, bool in_bounds) {
  const OpDef& op = op_named<"dynamic_slice">();
  SmallVector<Val, 8> operands{x};
  operands.append(starts);
  return apply(op, operands, make_attrs(op, {{"slice_sizes", sizes}, {"in_bounds", in_bounds}}))[0];
}

Val dynamic_update_slice(Val x, Val update, std::span<const Val> starts, bool in_bounds) {
  const OpDef& op = op_named<"dynamic_update_slice">();
  SmallVector<Val, 8> operands{x, update};
  operands.append(starts);
  return apply(op, operands, make_attrs(op, {{"in_bounds", in_bounds}}))[0];
}

#define X(name)                                                \
  Val name(Val x, const Dims& axes) {                          \
    if (axes.empty()) return x;                                \
    const OpDef& op = op_named<#name>();                       \
    return append1(op, {x}, make_attrs(op, {{"axes", axes}})); \
  }
X(reduce_sum)
X(reduce_max)
X(reduce_min)
X(reduce_prod)
X(reduce_or)
#undef X

Val unbroadcast(Val ct, TypeRef to) {
  return to->rank() == 0 ? reduce_sum(ct, count_up(ct.rank())) : ct;
}

Val dot_general(Val x, Val y, const DotDims& dims, std::optional<DType> preferred_element_type,
                const Attr& precision) {
  const OpDef& op = op_named<"dot_general">();
  std::vector<Dims> numbers = {dims.lhs_contract, dims.rhs_contract, dims.lhs_batch,
                               dims.rhs_batch};
  return append1(
      op, {x, y},
      make_attrs(op, {{"dimension_numbers", numbers},
                      {"precision", precision},
                      {"preferred_element_type", preferred_element_type.value_or(x.dtype())}}));
}

Vals optimization_barrier(std::span<const Val> xs, bool prevent_cse) {
  const OpDef& op = op_named<"optimization_barrier">();
  return append(*xs[0].builder, op, xs, make_attrs(op, {{"prevent_cse", prevent_cse}}));
}

#undef WEFT_OP

}  // namespace weft
