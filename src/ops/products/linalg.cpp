// What the ops of linear algebra share; see linalg.h.
#include "ops/products/linalg.h"

#include <complex>
#include <limits>

#include "ops/def/addressing.h"
#include "ops/def/place.h"
#include "ops/products/family.h"

namespace weft {

namespace linalg {

// ---- Types

bool has_solvers(DType d) {
  return d == DType::kF32 || d == DType::kF64 || d == DType::kC64 || d == DType::kC128;
}

TypeRef check_matrices(const InferCtx& c, size_t i, bool halves) {
  TypeRef t = c.in(i);
  DType d = t->dtype();
  if (!has_solvers(d) && !(halves && (d == DType::kF16 || d == DType::kBF16)))
    c.fail(is_float(d) ? ErrorKind::kNotImplemented : ErrorKind::kDtype, "expected ",
           halves ? "float16, bfloat16, " : "", "float32, float64, complex64 or complex128; got ",
           operand_types(c));
  if (t->rank() < 2)
    c.fail(ErrorKind::kShape, "expected matrices: 2 axes or more; got ", operand_types(c));
  return t;
}

TypeRef check_square(const InferCtx& c, size_t i, bool halves) {
  TypeRef t = check_matrices(c, i, halves);
  if (rows_of(t) != columns_of(t))
    c.fail(ErrorKind::kShape, "expected square matrices: [..., n, n]; got ", operand_types(c));
  return t;
}

TypeRef check_beside(const InferCtx& c, size_t i, std::string_view what,
                     std::initializer_list<int64_t> axes) {
  TypeRef a = c.in(0), t = c.in(i);
  if (t->dtype() != a->dtype())
    c.fail(ErrorKind::kDtype, "expected operands of one dtype; got ", operand_types(c));
  TypeRef wanted = with_axes(batch_of(a->shape()), a->dtype(), axes);
  if (t != wanted)
    c.fail(ErrorKind::kShape, "expected ", what, " to be ", wanted, " beside ", a, "; got ", t);
  return t;
}

// ---- Values

namespace {

Dims batch_axes(Val x, int matrix_axes = 2) { return count_up(x.rank() - matrix_axes); }

// Row and column of each element, as i32[m, n], compared and broadcast to x's shape.
Val compared(Val x, int64_t k, Val (*compare)(Val, Val)) {
  TypeRef t = make_type(DType::kI32, {rows_of(x.type()), columns_of(x.type())});
  Val row = iota(*x.builder, t, 0), column = iota(*x.builder, t, 1);
  if (k != 0) row = row + static_cast<double>(k);
  return broadcast_in_dim(compare(row, column), x.shape(), {x.rank() - 2, x.rank() - 1});
}

}  // namespace

Val mT(Val x) {
  Dims order = count_up(x.rank());
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}
Val conjugate(Val x) { return is_complex(x.dtype()) ? conj(x) : x; }
Val real_part(Val x) { return is_complex(x.dtype()) ? real(x) : x; }
Val adjoint(Val x) { return conjugate(mT(x)); }

Val matmul(Val x, Val y) {
  Dims batch = batch_axes(x);
  return dot_general(x, y,
                     {.lhs_contract = {x.rank() - 1},
                      .rhs_contract = {y.rank() - 2},
                      .lhs_batch = batch,
                      .rhs_batch = batch},
                     std::nullopt, std::string("HIGHEST"));
}

Val tril(Val x, int64_t k) { return select(compared(x, k, ge), x, zeros_like(x)); }
Val triu(Val x, int64_t k) { return select(compared(x, k, le), x, zeros_like(x)); }
Val on_diagonal(Val x) { return compared(x, 0, eq); }

Val eye(Builder& b, TypeRef type) {
  Val one = full(b, type, 1.0);
  return select(on_diagonal(one), one, zeros_like(one));
}

Val diagonal(Val x) { return reduce_sum(select(on_diagonal(x), x, zeros_like(x)), {x.rank() - 1}); }

Val scaled_columns(Val x, Val scale) {
  Dims axes = batch_axes(x);
  axes.push_back(x.rank() - 1);
  return x * broadcast_in_dim(convert(scale, x.dtype()), x.shape(), axes);
}
Val scaled_rows(Val x, Val scale) {
  Dims axes = batch_axes(x);
  axes.push_back(x.rank() - 2);
  return x * broadcast_in_dim(convert(scale, x.dtype()), x.shape(), axes);
}

namespace {

Val part(Val x, int axis, int64_t begin, int64_t end) {
  if (begin == 0 && end == x.type()->dim(axis)) return x;
  Dims from(x.shape().size(), 0), to = x.shape();
  from[static_cast<size_t>(axis)] = begin;
  to[static_cast<size_t>(axis)] = end;
  return slice(x, from, to);
}

}  // namespace

Val columns(Val x, int64_t begin, int64_t end) { return part(x, x.rank() - 1, begin, end); }
Val rows(Val x, int64_t begin, int64_t end) { return part(x, x.rank() - 2, begin, end); }

Val hermitian(Val x, bool lower) {
  Val strict = lower ? tril(x, -1) : triu(x, 1);
  Val middle = select(on_diagonal(x), convert(real_part(x), x.dtype()), zeros_like(x));
  return strict + adjoint(strict) + middle;
}

Val nan_like(Val x) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  Literal value = is_complex(x.dtype()) ? make_literal(x.dtype(), std::complex<double>(nan, nan))
                                        : make_literal(x.dtype(), nan);
  return broadcast_to({x.builder, x.builder->literal(value)}, x.shape());
}

Val padded(Val x, int64_t more_rows, int64_t more_columns) {
  if (more_rows == 0 && more_columns == 0) return x;
  std::vector<Dims> config(x.shape().size(), Dims{0, 0, 0});
  config[config.size() - 2][1] = more_rows;
  config[config.size() - 1][1] = more_columns;
  return pad(x, scalar_like(x, 0), config);
}

Val take_rows(Val x, Val order) {
  if (x.type()->num_elements() == 0) return x;
  int rank = x.rank();
  Addressing a{.window_axes = {rank - 1},
               .dropped = {rank - 2},
               .index_map = {rank - 2},
               .batching = batch_axes(x),
               .indices_batching = batch_axes(x),
               .mode = "promise_in_bounds",
               .unique = true};
  Dims sizes(x.shape().size(), 1);
  sizes[sizes.size() - 1] = columns_of(x.type());
  return gather(x, expand_dim(order, order.rank()), a, sizes);
}

Val triangular_solve(Val a, Val b, const Triangular& how) {
  return apply1("triangular_solve", {a, b},
                {{"left_side", how.left_side},
                 {"lower", how.lower},
                 {"transpose_a", how.transpose_a},
                 {"conjugate_a", how.conjugate_a},
                 {"unit_diagonal", how.unit_diagonal}});
}

Val solve(Val a, Val b) {
  Vals lu = apply("lu", {a});
  Val y = triangular_solve(lu[0], take_rows(b, lu[2]), {.lower = true, .unit_diagonal = true});
  return triangular_solve(lu[0], y, {.lower = false});
}

// ---- Rules

void batch_leading(BatchCtx& c) {
  Vals xs;
  for (size_t i = 0; i < c.operands.size(); ++i) xs.push_back(c.at(i, 0));
  c.apply(xs, c.attrs, 0);
}

CostRule cost_per_matrix(double (*flops)(double, double)) {
  return [flops](const CostCtx& c) {
    TypeRef t = c.in_types[0];
    double m = static_cast<double>(rows_of(t)), n = static_cast<double>(columns_of(t));
    Cost cost = cost_bytes(c);
    double scale = is_complex(t->dtype()) ? 4 : 1;
    cost.flops = scale * static_cast<double>(product(batch_of(t->shape()))) * flops(m, n);
    return cost;
  };
}

// Matrices, and vectors beside them, are not split; stacks of them are.
void place_matrices(PlaceCtx& c) {
  int rank = 0;
  for (TypeRef t : c.in_types) rank = std::max(rank, t->rank());
  std::vector<Dims> to;
  for (TypeRef t : c.in_types) {
    Dims whole;
    for (int64_t d = rank - 2; d < t->rank(); ++d) whole.push_back(d);
    to.push_back(kept_dims(t->rank(), whole));
  }
  place_dims(c, to);
}

OpDef matrix_op(std::string name, std::string doc, int num_operands, AttrSchema attrs,
                InferRule infer, std::function<Vals(RuleCtx&)> decompose,
                double (*flops)(double, double)) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  d.num_operands = num_operands;
  d.attrs = std::move(attrs);
  d.infer = std::move(infer);
  d.place = place_matrices;
  d.batch = batch_leading;
  d.decompose = std::move(decompose);
  d.cost = cost_per_matrix(flops);
  return d;
}

// ---- Calls of solvers

namespace {

char letter_of(DType d) {
  return d == DType::kF32 ? 's' : d == DType::kF64 ? 'd' : d == DType::kC64 ? 'c' : 'z';
}

// Major to minor.
Dims layout_of(TypeRef type, bool is_matrix) {
  Dims axes = count_up(type->rank());
  if (is_matrix) std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return axes;
}

}  // namespace

std::string letter(char c) { return cat(static_cast<int>(c), " : ui8"); }

std::string_view real_or_complex(DType dtype, std::string_view real, std::string_view complex) {
  return is_complex(dtype) ? complex : real;
}

SolverCall::SolverCall(const RuleCtx& c, DType dtype, std::string_view cpu, std::string_view gpu)
    : c_(c), is_gpu_(c.platform == "cuda"), target_(is_gpu_ ? gpu : cpu) {
  if ((!is_gpu_ && c.platform != "cpu") || target_.empty())
    fail(ErrorKind::kNotImplemented, "[", c.op.name, "] expected platform cpu",
         gpu.empty() ? "" : " or cuda", ", which have a solver for it; got ", c.platform);
  if (size_t at = target_.find('?'); at != std::string::npos) target_[at] = letter_of(dtype);
}

SolverCall& SolverCall::attributes(std::string cpu, std::string gpu) {
  attributes_ = is_gpu_ ? std::move(gpu) : std::move(cpu);
  return *this;
}

SolverCall& SolverCall::operand(Val x, bool is_matrix) {
  operands_.push_back(x);
  in_layouts_.push_back(layout_of(x.type(), is_matrix));
  return *this;
}

SolverCall& SolverCall::result(TypeRef type, bool is_matrix) {
  types_.push_back(type);
  out_layouts_.push_back(layout_of(type, is_matrix));
  return *this;
}

SolverCall& SolverCall::overwritten_matrix(Val x) {
  aliases_.push_back({static_cast<int64_t>(operands_.size()), static_cast<int64_t>(types_.size())});
  return operand(x, true).result(x.type(), true);
}

SolverCall& SolverCall::overwritten_array(Val x) {
  aliases_.push_back({static_cast<int64_t>(operands_.size()), static_cast<int64_t>(types_.size())});
  return operand(x, false).result(x.type(), false);
}

Vals SolverCall::results() {
  static const OpDef& op = registered_op("ffi_call");
  return apply(op, operands_,
               AttrRecord::make(op.name, op.attrs,
                                {{"target_name", target_},
                                 {"result_avals", types_},
                                 {"attributes", attributes_},
                                 {"input_layouts", in_layouts_},
                                 {"output_layouts", out_layouts_},
                                 {"input_output_aliases", aliases_}}));
}

Vals SolverCall::checked(bool positive_is_fine) {
  Dims batch = batch_of(operands_.back().shape());
  gives(make_type(DType::kI32, batch));
  Vals all = results(), out;
  Val info = all.back();
  Val zero = zeros_like(info);
  Val is_good = positive_is_fine ? ge(info, zero) : eq(info, zero);
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    Val x = all[i];
    if (!is_inexact(x.dtype())) {
      out.push_back(x);
      continue;
    }
    Dims axes = count_up(static_cast<int>(batch.size()));
    out.push_back(select(broadcast_in_dim(is_good, x.shape(), axes), x, nan_like(x)));
  }
  return out;
}

}  // namespace linalg

void register_linalg(OpRegistry& r) {
  linalg::register_factorizations(r);
  linalg::register_orthogonal(r);
  linalg::register_spectral(r);
  linalg::register_tridiagonal(r);
}

}  // namespace weft
