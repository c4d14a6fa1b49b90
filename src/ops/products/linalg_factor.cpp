// cholesky, triangular_solve, lu, and the permutation that lu's row swaps amount to.
//
// Derivatives: M. Giles, "Collected matrix derivative results for forward and reverse mode
// algorithmic differentiation" (2008); I. Murray, "Differentiation of the Cholesky decomposition"
// (2016); F. de Hoog, R. Anderssen, M. Lukas, "Differentiation of matrix functionals using
// triangular factorization" (2011).
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "ops/def/plain.h"
#include "ops/products/linalg.h"
#include "ops/products/linalg_small.h"
#include "weft/ffi.h"
#include "weft/registry.h"

namespace weft::linalg {

namespace {

// ---- cholesky

Vals decompose_cholesky(RuleCtx& c) {
  Val a = c.x(0);
  if (a.type()->num_elements() == 0) return {a};
  if (is_written_out(a.type(), c.platform) || has_plain_ops_only(c.platform))
    return {small_cholesky(a)};
  SolverCall call(c, a.dtype(), "lapack_?potrf_ffi", "cusolver_potrf_ffi");
  call.attributes(cat("uplo = ", letter('L')), "lower = true").overwritten_matrix(a);
  return {tril(call.checked()[0])};
}

// L L^H = A. dL = L low(L^-1 dA L^-H), where low is the lower triangle with half the diagonal.
Val cholesky_tangent(Val l, Val da) {
  Triangular right{.left_side = false, .lower = true, .transpose_a = true, .conjugate_a = true};
  Val x = triangular_solve(l, triangular_solve(l, da, right), {});
  Val low = tril(x);
  low = select(on_diagonal(low), low * 0.5, low);
  return matmul(l, low);
}

OpDef cholesky_op() {
  OpDef d = matrix_op(
      "cholesky", "The lower triangular L with L L^H = A, of the lower triangle of A.", 1, {},
      [](const InferCtx& c) -> TypeRefs { return {check_square(c)}; }, decompose_cholesky,
      [](double, double n) { return n * n * n / 3; });
  d.for_kernel = while_small([](RuleCtx& c) -> Vals { return {small_cholesky(c.x(0))}; });
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {[](const JvpArgCtx& c) { return cholesky_tangent(c.y(), hermitian(c.t(), true)); }};
  return d;
}

// ---- triangular_solve

Triangular how_of(const AttrRecord& attrs) {
  return {.left_side = attrs.boolean("left_side"),
          .lower = attrs.boolean("lower"),
          .transpose_a = attrs.boolean("transpose_a"),
          .conjugate_a = attrs.boolean("conjugate_a"),
          .unit_diagonal = attrs.boolean("unit_diagonal")};
}

TypeRefs infer_triangular_solve(const InferCtx& c) {
  TypeRef a = check_square(c, 0, true), b = c.in(1);
  if (b->rank() < 2)
    c.fail(ErrorKind::kShape, "expected matrices: 2 axes or more; got ", operand_types(c));
  bool left = c.attr().boolean("left_side");
  int64_t n = rows_of(a);
  if (left) return {check_beside(c, 1, "b", {n, columns_of(b)})};
  return {check_beside(c, 1, "b", {rows_of(b), n})};
}

// The triangular factor: conjugated here where solvers can do so only as they transpose.
std::string emit_factor(EmitCtx& c, const Triangular& how) {
  TypeRef type = c.in_type(0);
  std::string a = c.in(0);
  if (!how.conjugate_a || how.transpose_a || !is_complex(type->dtype())) return a;
  TypeRef parts[] = {with_dtype(type, real_dtype(type->dtype()))}, whole[] = {type};
  std::string re = c.line(cat("stablehlo.real ", a, " : ", signature(whole, parts)));
  std::string im = c.line(cat("stablehlo.imag ", a, " : ", signature(whole, parts)));
  im = c.line(cat("stablehlo.negate ", im, " : ", mlir_type(parts[0])));
  return c.line(cat("stablehlo.complex ", re, ", ", im, " : ", mlir_type(type)));
}

std::string on_cpu(EmitCtx& c, const Triangular& how) {
  TypeRef type = c.in_type(0);
  FfiCall call{.target = "lapack_?trsm_ffi"};
  switch (type->dtype()) {
    case DType::kF32:
      call.target[7] = 's';
      break;
    case DType::kF64:
      call.target[7] = 'd';
      break;
    case DType::kC64:
      call.target[7] = 'c';
      break;
    default:
      call.target[7] = 'z';
  }
  char trans = !how.transpose_a ? 'N' : how.conjugate_a ? 'C' : 'T';
  call.attributes = cat("diag = ", letter(how.unit_diagonal ? 'U' : 'N'),
                        ", side = ", letter(how.left_side ? 'L' : 'R'),
                        ", trans_x = ", letter(trans), ", uplo = ", letter(how.lower ? 'L' : 'U'));
  call.operands = {emit_factor(c, how), c.in(1)};
  Dims layout;
  for (int i = type->rank() - 1; i >= 0; --i) layout.push_back(i);
  std::swap(layout[0], layout[1]);
  call.operand_layouts = {layout, layout};
  call.result_layouts = {layout};
  call.aliases = {{1, 0}};
  return ffi_call_text(c, call);
}

// XLA has an op for it, which is slow on CPU but takes halves.
void emit_triangular_solve(EmitCtx& c) {
  if (c.out_type()->num_elements() == 0) return c.set_out(0, c.in(1));
  Triangular how = how_of(c.attr());
  if (is_written_out(c.in_type(0), c.platform()) || has_plain_ops_only(c.platform()))
    return emit_as(c, [&](const Vals& xs) { return small_triangular_solve(xs[0], xs[1], how); });
  if (c.platform() == "cpu" && has_solvers(c.out_type()->dtype()))
    return emit_results(c, on_cpu(c, how));
  auto flag = [](bool x) { return x ? "true" : "false"; };
  std::string a = emit_factor(c, how);
  emit_results(c, cat("\"stablehlo.triangular_solve\"(", a, ", ", c.in(1),
                      ") <{left_side = ", flag(how.left_side), ", lower = ", flag(how.lower),
                      ", transpose_a = #stablehlo<transpose ",
                      !how.transpose_a  ? "NO_TRANSPOSE"
                      : how.conjugate_a ? "ADJOINT"
                                        : "TRANSPOSE",
                      ">, unit_diagonal = ", flag(how.unit_diagonal), "}> : ", signature(c)));
}

// op(A) X = B: dX = -op(A)^-1 op(dA) X; X op(A) = B likewise.
Val tangent_of_factor(const JvpArgCtx& c) {
  Triangular how = how_of(c.attr());
  int64_t k = how.unit_diagonal ? 1 : 0;
  Val da = how.lower ? tril(c.t(), -k) : triu(c.t(), k);
  if (how.transpose_a) da = mT(da);
  if (how.conjugate_a) da = conjugate(da);
  Val rhs = how.left_side ? matmul(da, c.y()) : matmul(c.y(), da);
  Val xs[] = {c.x(0), -rhs};
  return apply(c.op, xs, c.attrs)[0];
}

void transpose_triangular_solve(TransposeCtx& c) {
  AttrsRef attrs = c.attrs->with({{"transpose_a", !c.attr().boolean("transpose_a")}});
  Val xs[] = {c.x(0), c.ct()};
  c.add(1, apply(c.op, xs, attrs)[0]);
}

// Right-hand sides of one matrix go side by side.
void batch_triangular_solve(BatchCtx& c) {
  if (c.batched(0)) return batch_leading(c);
  bool left = c.attr().boolean("left_side");
  TypeRef b = c.in_types[1];
  int at = b->rank() - (left ? 1 : 2);  // beside the axis that counts right-hand sides
  Dims joined = b->shape();
  joined[static_cast<size_t>(at)] = dim_mul(b->dim(at), c.size);
  Val xs[] = {c.x(0), reshape(c.at(1, at), joined)};
  Val y = apply(c.op, xs, c.attrs)[0];
  c.result(reshape(y, inserted(b->shape(), at, c.size)), at);
}

OpDef triangular_solve_op() {
  OpDef d;
  d.name = "triangular_solve";
  d.doc = "X with op(A) X = B, or X op(A) = B, for triangular A.";
  d.num_operands = 2;
  d.attrs = {{"left_side", AttrType::kBool},
             {"lower", AttrType::kBool},
             {"transpose_a", AttrType::kBool},
             {"conjugate_a", AttrType::kBool},
             {"unit_diagonal", AttrType::kBool}};
  d.infer = infer_triangular_solve;
  d.place = place_matrices;
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {tangent_of_factor, [](const JvpArgCtx& c) {
                  Val xs[] = {c.x(0), c.t()};
                  return apply(c.op, xs, c.attrs)[0];
                }};
  d.transpose = transpose_triangular_solve;
  d.batch = batch_triangular_solve;
  d.emit = emit_triangular_solve;
  d.for_kernel = while_small([](RuleCtx& c) -> Vals {
    return {small_triangular_solve(c.x(0), c.x(1), how_of(c.attr()))};
  });
  d.cost = [](const CostCtx& c) {
    Cost cost = cost_bytes(c);
    cost.flops = static_cast<double>(c.in_types[1]->num_elements()) *
                 static_cast<double>(rows_of(c.in_types[0]));
    return cost;
  };
  return d;
}

// ---- lu

TypeRefs infer_lu(const InferCtx& c) {
  TypeRef x = check_matrices(c);
  Dims batch = batch_of(x->shape());
  return {x, with_axes(batch, DType::kI32, {smaller_of(x)}),
          with_axes(batch, DType::kI32, {rows_of(x)})};
}

Vals decompose_lu(RuleCtx& c) {
  Val x = c.x(0);
  if (x.type()->num_elements() > 0 && is_written_out(x.type(), c.platform)) {
    Vals out = small_lu(x);
    // XLA would compute the factors again in each fusion that reads them.
    for (Val& v : out) v = optimization_barrier({&v, 1})[0];
    return out;
  }
  if (x.type()->num_elements() > 0 && has_plain_ops_only(c.platform)) return small_lu(x);
  Val lu = x, pivots = zeros(c.b, c.out_types[1]);
  if (x.type()->num_elements() > 0) {
    SolverCall call(c, x.dtype(), "lapack_?getrf_ffi", "cusolver_getrf_ffi");
    Vals out = call.overwritten_matrix(x).gives(c.out_types[1]).checked(true);
    lu = out[0];
    pivots = out[1] - 1.0;  // LAPACK counts from 1
  }
  Val order =
      apply1("lu_pivots_to_permutation", {pivots}, {{"permutation_size", rows_of(x.type())}});
  return {lu, pivots, order};
}

// P A = L U. With both factors extended to square ones by the identity, F = L^-1 P dA U^-1:
// dL = L low(F) below the diagonal, dU = up(F) U.
Vals lu_tangents(JvpCtx& c) {
  Val lu = c.y(0);
  int64_t m = rows_of(lu.type()), n = columns_of(lu.type()), k = smaller_of(lu.type());
  TypeRef square_l = with_axes(batch_of(lu.shape()), lu.dtype(), {m, m});
  Val l = padded(tril(columns(lu, 0, k), -1), 0, dim_sub(m, k)) + eye(c.b, square_l);
  int64_t more = dim_sub(n, k);
  Val u = padded(triu(rows(lu, 0, k)), more, 0);
  if (more != 0) {
    Val rest = eye(c.b, with_axes(batch_of(lu.shape()), lu.dtype(), {more, more}));
    std::vector<Dims> config(u.shape().size(), Dims{0, 0, 0});
    config[config.size() - 1] = {k, 0, 0};
    config[config.size() - 2] = {k, 0, 0};
    u = u + pad(rest, scalar_like(rest, 0), config);
  }
  Val da = take_rows(c.t(0), c.y(2));
  Val f = triangular_solve(l, da, {.lower = true, .unit_diagonal = true});
  f = triangular_solve(u, f, {.left_side = false, .lower = false});
  Val dl = matmul(l, tril(f, -1)), du = matmul(triu(f), u);
  return {dl + du, Val{}, Val{}};
}

OpDef lu_op() {
  OpDef d =
      matrix_op("lu", "L U = P A with partial pivoting: both factors, row swaps, permutation.", 1,
                {}, infer_lu, decompose_lu, [](double m, double n) {
                  double k = std::min(m, n);
                  return k * k * (std::max(m, n) - k / 3);
                });
  d.multiple_results = true;
  d.for_kernel = while_small([](RuleCtx& c) { return small_lu(c.x(0)); });
  d.jvp_kind = JvpKind::kCustom;
  d.jvp = lu_tangents;
  return d;
}

// ---- lu_pivots_to_permutation

TypeRefs infer_permutation(const InferCtx& c) {
  TypeRef p = c.in(0);
  int64_t size = c.attr().integer("permutation_size");
  if (p->dtype() != DType::kI32 || p->rank() < 1)
    c.fail(ErrorKind::kDtype, "expected pivots of int32, with 1 axis or more; got ", p);
  if (!dim_at_least(size, p->dim(p->rank() - 1)))
    c.fail(ErrorKind::kValue, "expected permutation_size to be at least the number of pivots (",
           p->dim(p->rank() - 1), "); got ", size);
  return {with_axes(batch_of(p->shape(), 1), DType::kI32, {size})};
}

// order: [n] or, for several, [lanes, n]. Swaps elements i and j of each: one pass over the array,
// which a loop would copy if elements of it were written.
Val swapped(Val order, Val i, Val j) {
  bool many = order.rank() > 1;
  Val position = iota(*order.builder, order.type(), order.rank() - 1);
  Dims lanes = many ? Dims{0} : Dims{};
  Val is_i = eq(position, broadcast_to(i, order.shape()));
  Val is_j = eq(position, broadcast_in_dim(j, order.shape(), lanes));
  auto element = [&](Val at, Val where) {
    if (many)
      return broadcast_in_dim(reduce_sum(select(where, order, zeros_like(order)), {1}),
                              order.shape(), lanes);
    return broadcast_in_dim(dynamic_slice(order, {&at, 1}, {1}), order.shape(), {0});
  };
  return select(is_i, element(j, is_j), select(is_j, element(i, is_i), order));
}

// The swaps one after the other.
Vals decompose_permutation(RuleCtx& c) {
  Val pivots = c.x(0);
  TypeRef type = c.out_types[0];
  int64_t count = pivots.type()->dim(pivots.rank() - 1),
          lanes = product(batch_of(type->shape(), 1));
  Val order = iota(c.b, type, type->rank() - 1);
  if (count == 0 || lanes == 0) return {order};
  int64_t size = type->dim(type->rank() - 1);
  if (c.platform == "cpu" && is_written_out(size, lanes)) return {small_permutation(pivots, size)};
  bool many = type->rank() > 1;
  if (many) {
    order = reshape(order, {lanes, type->dim(type->rank() - 1)});
    pivots = transpose(reshape(pivots, {lanes, count}), {1, 0});
  }
  GraphBuilder body;
  Val carry{&body, body.input(order.type())};
  Val i{&body, body.input(scalar_type(DType::kI32))};
  Val j{&body, body.input(many ? make_type(DType::kI32, {lanes}) : scalar_type(DType::kI32))};
  Val next = swapped(carry, i, j);
  Val xs[] = {order, iota(c.b, make_type(DType::kI32, {count}), 0), pivots};
  Vals swept = scan_over(c.b, xs, body.finish({&next.value, 1}), {.length = count, .num_carry = 1});
  return {reshape(swept[0], type->shape())};
}

OpDef permutation_op() {
  OpDef d;
  d.name = "lu_pivots_to_permutation";
  d.doc = "The permutation that a sequence of row swaps amounts to.";
  d.num_operands = 1;
  d.attrs = {{"permutation_size", AttrType::kInt}};
  d.infer = infer_permutation;
  d.place = [](PlaceCtx& c) { place_alike(c, {c.in_types[0]->rank() - 1}); };
  d.batch = batch_leading;
  d.decompose = decompose_permutation;
  d.cost = [](const CostCtx& c) { return cost_bytes(c); };
  return zero_tangent(d);
}

}  // namespace

void register_factorizations(OpRegistry& r) {
  r.add(cholesky_op());
  r.add(triangular_solve_op());
  r.add(lu_op());
  r.add(permutation_op());
}

}  // namespace weft::linalg
