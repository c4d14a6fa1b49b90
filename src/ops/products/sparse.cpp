// sparse_dot and sampled_dot: products with a matrix that is given by a list of its entries. Each
// is the transpose of the other.
#include "kernels/list.h"
#include "ops/def/addressing.h"
#include "ops/def/axes.h"
#include "ops/def/presets.h"
#include "ops/products/family.h"
#include "ops/products/products.h"

namespace weft {
namespace {

Dims batch_of(TypeRef t, int own) { return Dims(t->shape().begin(), t->shape().end() - own); }
Dims with_sizes(Dims batch, std::initializer_list<int64_t> sizes) {
  for (int64_t n : sizes) batch.push_back(n);
  return batch;
}
int64_t size_from_end(TypeRef t, int i) {
  return t->shape()[t->shape().size() - static_cast<size_t>(i)];
}

// Checks that an operand is pairs of integers, one for each of (*batch, n).
void check_places(const InferCtx& c, size_t operand, const Dims& shape) {
  TypeRef t = c.in(operand);
  if (!is_integer(t->dtype()) || t->shape() != with_sizes(shape, {2}))
    c.fail(ErrorKind::kShape, "expected places (*batch, n, 2) of integers; got ", operand_types(c));
}

TypeRefs infer_sparse_dot(const InferCtx& c) {
  TypeRef data = c.in(0), rhs = c.in(2);
  check_places(c, 1, data->shape());
  if (data->rank() < 1 || rhs->rank() != data->rank() + 1 ||
      batch_of(data, 1) != batch_of(rhs, 2) || data->dtype() != rhs->dtype())
    c.fail(ErrorKind::kShape, "expected data (*batch, n) and rhs (*batch, k, m) of one dtype; got ",
           operand_types(c));
  int64_t num_rows = c.attr().integer("num_rows");
  if (num_rows < 0) c.fail(ErrorKind::kValue, "expected num_rows of 0 or more; got ", num_rows);
  return {with_shape(rhs, with_sizes(batch_of(rhs, 2), {num_rows, size_from_end(rhs, 1)}))};
}

TypeRefs infer_sampled_dot(const InferCtx& c) {
  TypeRef lhs = c.in(0), rhs = c.in(1), places = c.in(2);
  if (lhs->rank() < 2 || rhs->rank() != lhs->rank() || places->rank() != lhs->rank() ||
      batch_of(lhs, 2) != batch_of(rhs, 2) || batch_of(lhs, 2) != batch_of(places, 2) ||
      size_from_end(lhs, 1) != size_from_end(rhs, 1) || lhs->dtype() != rhs->dtype())
    c.fail(ErrorKind::kShape, "expected lhs (*batch, k, m) and rhs (*batch, l, m) of one dtype, ",
           "and places (*batch, n, 2); got ", operand_types(c));
  check_places(c, 2, batch_of(places, 1));
  return {with_shape(lhs, batch_of(places, 1))};
}

TypeRefs infer_csr_places(const InferCtx& c) {
  TypeRef begins = c.in(0), columns = c.in(1);
  if (!is_integer(begins->dtype()) || begins->dtype() != columns->dtype() || begins->rank() < 1 ||
      columns->rank() != begins->rank() || batch_of(begins, 1) != batch_of(columns, 1) ||
      size_from_end(begins, 1) == 0)
    c.fail(ErrorKind::kShape, "expected begins (*batch, rows + 1) and columns (*batch, n), ",
           "integers of one dtype; got ", operand_types(c));
  return {with_shape(columns, with_sizes(columns->shape(), {2}))};
}

Val sparse_dot(Val data, Val places, Val rhs, int64_t num_rows, bool transposed) {
  return apply1("sparse_dot", {data, places, rhs},
                {{"num_rows", num_rows}, {"transposed", transposed}});
}

void transpose_sparse_dot(TransposeCtx& c) {
  bool transposed = c.attr().boolean("transposed");
  if (c.linear(0)) {
    Val lhs = transposed ? c.x(2) : c.ct(), rhs = transposed ? c.ct() : c.x(2);
    c.add(0, apply1("sampled_dot", {lhs, rhs, c.x(1)}));
  }
  if (c.linear(2))
    c.add(2, sparse_dot(c.x(0), c.x(1), c.ct(), size_from_end(c.in_types[2], 2), !transposed));
}

void transpose_sampled_dot(TransposeCtx& c) {
  for (size_t i : {0, 1})
    if (c.linear(i))
      c.add(i, sparse_dot(c.ct(), c.x(2), c.x(1 - i), size_from_end(c.in_types[i], 2), i == 1));
}

void batch_all(BatchCtx& c) {
  Vals xs;
  for (size_t i = 0; i < c.operands.size(); ++i) xs.push_back(c.at(i, 0));
  c.apply(xs, c.attrs, 0);
}

// Of one matrix with several right sides these are further columns.
void batch_sparse_dot(BatchCtx& c) {
  if (c.batched(0) || c.batched(1)) return batch_all(c);
  int last = c.in_types[2]->rank() - 1;
  Val rhs = c.at(2, last);
  int64_t width = size_from_end(c.in_types[2], 1);
  Dims joined = batch_of(rhs.type(), 2);
  joined.push_back(c.size * width);
  Val out = sparse_dot(c.x(0), c.x(1), reshape(rhs, joined), c.attr().integer("num_rows"),
                       c.attr().boolean("transposed"));
  Dims apart = batch_of(out.type(), 1);
  c.result(reshape(out, with_sizes(apart, {c.size, width})), last);
}

// Windows along the axis `axis` of an array, one for each of (*batch, n); the array has `kept` axes
// after that one.
Addressing at_numbers(int axis, int kept) {
  Addressing a;
  for (int i = 0; i < kept; ++i) a.window_axes.push_back(axis + 1 + i);
  a.dropped = a.index_map = {axis};
  a.batching = a.indices_batching = count_up(axis);
  a.mode = "fill";
  return a;
}
// Of each pair the first or second number, as an index vector.
Val numbers_of(Val places, int64_t which) {
  Dims start(places.shape().size()), limit = places.shape();
  start.back() = which;
  limit.back() = which + 1;
  return slice(places, start, limit);
}
Val rows_at(Val matrix, Val numbers) {
  Dims sizes(static_cast<size_t>(matrix.rank()), 1);
  sizes.back() = matrix.shape().back();
  return gather(matrix, numbers, at_numbers(matrix.rank() - 2, 1), sizes, 0.0);
}
// Whether numbers are those of rows of a matrix, for each row that they give.
Val are_inside(Val numbers, Val matrix, const Dims& shape) {
  double size = static_cast<double>(size_from_end(matrix.type(), 2));
  Val inside =
      logical_and(ge(numbers, scalar_like(numbers, 0)), lt(numbers, scalar_like(numbers, size)));
  Dims axes = count_up(numbers.rank());
  return broadcast_in_dim(inside, shape, axes);
}
Val only_inside(Val inside, Val x) { return select(inside, x, zeros_like(x)); }

Vals decompose_sparse_dot(RuleCtx& c) {
  Val data = c.x(0), rhs = c.x(2);
  int64_t transposed = c.attr().boolean("transposed");
  Val rows = numbers_of(c.x(1), transposed), columns = numbers_of(c.x(1), 1 - transposed);
  Val taken = rows_at(rhs, columns);
  Val spread = broadcast_in_dim(data, taken.shape(), count_up(data.rank()));
  Val products = only_inside(are_inside(columns, rhs, taken.shape()), spread * taken);
  return {scatter("scatter-add", zeros(c.b, c.out_types[0]), rows, products,
                  at_numbers(rhs.rank() - 2, 1))};
}

Vals decompose_sampled_dot(RuleCtx& c) {
  Val rows = numbers_of(c.x(2), 0), columns = numbers_of(c.x(2), 1);
  Val left = rows_at(c.x(0), rows), right = rows_at(c.x(1), columns);
  Val inside = logical_and(are_inside(rows, c.x(0), left.shape()),
                           are_inside(columns, c.x(1), left.shape()));
  return {reduce_sum(only_inside(inside, left * right), {left.rank() - 1})};
}

// The row of an entry is the number of rows that end before it.
Vals decompose_csr_places(RuleCtx& c) {
  Val begins = c.x(0), columns = c.x(1);
  Dims first(begins.shape().size());
  first.back() = 1;
  Val ends = slice(begins, first, begins.shape());
  Val numbers = reshape(ends, with_sizes(ends.shape(), {1}));
  int axis = columns.rank() - 1;
  Val counts =
      scatter("scatter-add", zeros_like(columns), numbers, ones_like(ends), at_numbers(axis, 0));
  Val rows = apply1("cumsum", {counts}, {{"axis", int64_t{axis}}, {"reverse", false}});
  auto column = [](Val x) { return reshape(x, with_sizes(x.shape(), {1})); };
  Val pairs[] = {column(rows), column(columns)};
  return {concatenate(pairs, axis + 1)};
}

KernelRule kernel(const char* name, size_t indices) {
  return [name, indices](const CostCtx& c) -> std::optional<KernelCall> {
    DType index = c.in_types[indices]->dtype(), values = c.out_types[0]->dtype();
    bool has_values = values == DType::kF32 || values == DType::kF64 || values == index;
    if (!has_values || (index != DType::kI32 && index != DType::kI64)) return {};
    bool has_attr = name == std::string_view(kSparseProduct);
    return KernelCall{name, !has_attr                        ? ""
                            : c.attrs->boolean("transposed") ? "transposed = true"
                                                             : "transposed = false"};
  };
}

OpDef sparse_op(std::string name, std::string doc, int num_operands) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  d.num_operands = num_operands;
  // XLA's emitters write no calls.
  d.in_kernel = [](const CostCtx&) { return false; };
  d.batch = batch_all;
  d.cost = cost_bytes;
  return d;
}

JvpArgRule with_tangent(size_t i) {
  return [i](const JvpArgCtx& c) {
    Vals xs;
    for (size_t j = 0; j < c.size(); ++j) xs.push_back(i == j ? c.t() : c.x(j));
    return apply(c.op, xs, c.attrs)[0];
  };
}

CostRule cost_of_products(size_t places, size_t dense) {
  return [=](const CostCtx& c) {
    Cost cost = cost_bytes(c);
    cost.flops = static_cast<double>(c.in_types[places]->num_elements()) *
                 static_cast<double>(size_from_end(c.in_types[dense], 1));
    return cost;
  };
}

}  // namespace

void register_sparse(OpRegistry& r) {
  OpDef d = sparse_op("sparse_dot",
                      "The product of a matrix, given by its entries, and a dense one: data[i] * "
                      "rhs[column] is added to a row, for the pairs (row, column) of places, or "
                      "(column, row) if transposed; entries outside are skipped.",
                      3);
  d.attrs = {{"num_rows", AttrType::kInt},
             {"transposed", AttrType::kBool, AttrSpec::kHideDefault, false}};
  d.infer = infer_sparse_dot;
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {with_tangent(0), nullptr, with_tangent(2)};
  d.transpose = transpose_sparse_dot;
  d.batch = batch_sparse_dot;
  d.decompose = decompose_sparse_dot;
  d.kernel = kernel(kSparseProduct, 1);
  d.cost = cost_of_products(1, 2);
  r.add(std::move(d));

  OpDef s = sparse_op("sampled_dot",
                      "Elements of lhs * rhs^T at places: the products of a row of lhs and one of "
                      "rhs, for each pair of row numbers; 0 where one is outside.",
                      3);
  s.infer = infer_sampled_dot;
  s.jvp_kind = JvpKind::kArgs;
  s.jvp_args = {with_tangent(0), with_tangent(1), nullptr};
  s.transpose = transpose_sampled_dot;
  s.decompose = decompose_sampled_dot;
  s.kernel = kernel(kSampledProduct, 2);
  s.cost = cost_of_products(2, 0);
  r.add(std::move(s));

  OpDef p = sparse_op("csr_places",
                      "Pairs (row, column) of the entries of a matrix by rows, given where rows "
                      "begin; entries after the last row have the number of rows as their row.",
                      2);
  p.infer = infer_csr_places;
  p.decompose = decompose_csr_places;
  p.kernel = kernel(kCsrPlaces, 0);
  r.add(std::move(zero_tangent(p)));
}

}  // namespace weft
