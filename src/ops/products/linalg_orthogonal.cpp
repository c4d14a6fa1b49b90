// qr and the ops that it is made of: geqrf and geqp3, whose factors are Householder reflectors, and
// householder_product and ormqr, which multiply these.
//
// Derivatives: S. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions"
// (2010); D. Roberts, L. Roberts, "QR and LQ decomposition matrix backpropagation algorithms for
// square, wide, and deep matrices" (2020).
#include "ops/def/plain.h"
#include "ops/products/linalg.h"
#include "ops/products/linalg_small.h"
#include "weft/registry.h"

namespace weft::linalg {

namespace {

TypeRef taus_of(TypeRef a) { return with_axes(batch_of(a->shape()), a->dtype(), {smaller_of(a)}); }
double qr_flops(double m, double n) {
  double k = std::min(m, n);
  return 2 * k * k * (std::max(m, n) - k / 3);
}

// ---- geqrf, geqp3

OpDef geqrf_op() {
  OpDef d = matrix_op(
      "geqrf", "Upper triangular R, Householder reflectors below it, and their factors.", 1, {},
      [](const InferCtx& c) -> TypeRefs {
        TypeRef a = check_matrices(c);
        return {a, taus_of(a)};
      },
      [](RuleCtx& c) -> Vals {
        Val a = c.x(0);
        if (a.type()->num_elements() == 0) return {a, zeros(c.b, c.out_types[1])};
        if (has_plain_ops_only(c.platform)) return small_geqrf(a);
        SolverCall call(c, a.dtype(), "lapack_?geqrf_ffi", "cusolver_geqrf_ffi");
        return call.overwritten_matrix(a).gives(c.out_types[1]).results();
      },
      qr_flops);
  d.multiple_results = true;
  d.for_kernel = while_small_and_real([](RuleCtx& c) { return small_geqrf(c.x(0)); });
  return d;
}

OpDef geqp3_op() {
  OpDef d = matrix_op(
      "geqp3", "geqrf with columns reordered; those whose entry in jpvt is not 0 come first.", 2,
      {},
      [](const InferCtx& c) -> TypeRefs {
        TypeRef a = check_matrices(c);
        TypeRef order = with_axes(batch_of(a->shape()), DType::kI32, {columns_of(a)});
        if (c.in(1) != order)
          c.fail(ErrorKind::kShape, "expected jpvt to be ", order, " beside ", a, "; got ",
                 c.in(1));
        return {a, order, taus_of(a)};
      },
      [](RuleCtx& c) -> Vals {
        Val a = c.x(0), jpvt = c.x(1);
        if (a.type()->num_elements() == 0) {
          Val order = iota(c.b, jpvt.type(), jpvt.rank() - 1) + 1.0;
          return {a, order, zeros(c.b, c.out_types[2])};
        }
        SolverCall call(c, a.dtype(), "lapack_?geqp3_ffi", "");
        return call.overwritten_matrix(a).overwritten_array(jpvt).gives(c.out_types[2]).results();
      },
      qr_flops);
  d.multiple_results = true;
  return d;
}

// ---- householder_product, ormqr

void check_taus(const InferCtx& c, int64_t most) {
  TypeRef taus = c.in(1);
  if (taus->rank() < 1 || !dim_at_least(most, columns_of(taus)))
    c.fail(ErrorKind::kShape, "expected at most ", most, " taus; got ", operand_types(c));
  check_beside(c, 1, "taus", {taus->dim(taus->rank() - 1)});
}

OpDef householder_product_op() {
  OpDef d = matrix_op(
      "householder_product", "The first columns of the product of Householder reflectors.", 2, {},
      [](const InferCtx& c) -> TypeRefs {
        TypeRef a = check_matrices(c);
        if (!dim_at_least(rows_of(a), columns_of(a)))
          c.fail(ErrorKind::kShape, "expected at least as many rows as columns; got ",
                 operand_types(c));
        check_taus(c, columns_of(a));
        return {a};
      },
      [](RuleCtx& c) -> Vals {
        Val a = c.x(0), taus = c.x(1);
        if (a.type()->num_elements() == 0 || taus.type()->num_elements() == 0)
          return {eye(c.b, a.type())};
        if (has_plain_ops_only(c.platform)) return {small_householder_product(a, taus)};
        SolverCall call(c, a.dtype(),
                        real_or_complex(a.dtype(), "lapack_?orgqr_ffi", "lapack_?ungqr_ffi"),
                        "cusolver_orgqr_ffi");
        return call.overwritten_matrix(a).array(taus).results();
      },
      qr_flops);
  d.for_kernel = while_small_and_real(
      [](RuleCtx& c) -> Vals { return {small_householder_product(c.x(0), c.x(1))}; });
  return d;
}

// Q C, C Q with Q or its adjoint.
Val multiplied(const RuleCtx& c, Val a, Val taus, Val x, bool left, bool adjoint) {
  Val xs[] = {a, taus, x};
  return apply(c.op, xs, c.attrs->with({{"left", left}, {"transpose", adjoint}}))[0];
}

OpDef ormqr_op() {
  OpDef d = matrix_op(
      "ormqr", "A matrix times the product of Householder reflectors.", 3,
      {{"left", AttrType::kBool}, {"transpose", AttrType::kBool}},
      [](const InferCtx& c) -> TypeRefs {
        TypeRef a = check_matrices(c), x = check_matrices(c, 2);
        check_taus(c, smaller_of(a));
        int64_t order = rows_of(a);
        if (c.attr().boolean("left")) return {check_beside(c, 2, "c", {order, columns_of(x)})};
        return {check_beside(c, 2, "c", {rows_of(x), order})};
      },
      [](RuleCtx& c) -> Vals {
        Val a = c.x(0), taus = c.x(1), x = c.x(2);
        int64_t count = taus.type()->dim(taus.rank() - 1);
        if (x.type()->num_elements() == 0 || count == 0) return {x};
        bool left = c.attr().boolean("left"), adjoint = c.attr().boolean("transpose");
        if (has_plain_ops_only(c.platform)) return {small_ormqr(a, taus, x, left, adjoint)};
        std::string how =
            cat("left = ", left ? "true" : "false", ", transpose = ", adjoint ? "true" : "false");
        SolverCall call(c, a.dtype(),
                        real_or_complex(a.dtype(), "lapack_?ormqr_ffi", "lapack_?unmqr_ffi"),
                        "cusolver_ormqr_ffi");
        call.attributes(how, how);
        return call.matrix(columns(a, 0, count)).array(taus).overwritten_matrix(x).results();
      },
      [](double m, double n) { return 4 * m * n * n; });
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = {no_derivative("ormqr", "a"), no_derivative("ormqr", "taus"),
                [](const JvpArgCtx& c) {
                  Val xs[] = {c.x(0), c.x(1), c.t()};
                  return apply(c.op, xs, c.attrs)[0];
                }};
  // The transpose of Q is its adjoint, conjugated.
  d.transpose = [](TransposeCtx& c) {
    Val ct = multiplied(c, c.x(0), c.x(1), conjugate(c.ct()), c.attr().boolean("left"),
                        !c.attr().boolean("transpose"));
    c.add(2, conjugate(ct));
  };
  return d;
}

// ---- qr

TypeRefs infer_qr(const InferCtx& c) {
  TypeRef a = check_matrices(c);
  Dims batch = batch_of(a->shape());
  int64_t m = rows_of(a), n = columns_of(a),
          k = c.attr().boolean("full_matrices") ? m : smaller_of(a);
  TypeRefs out{with_axes(batch, a->dtype(), {m, k}), with_axes(batch, a->dtype(), {k, n})};
  if (c.attr().boolean("pivoting")) out.push_back(with_axes(batch, DType::kI32, {n}));
  return out;
}

Vals decompose_qr(RuleCtx& c) {
  Val a = c.x(0);
  bool pivoting = c.attr().boolean("pivoting");
  Vals factors = pivoting ? apply("geqp3", {a, zeros(c.b, c.out_types[2])}) : apply("geqrf", {a});
  Val packed = factors[0], taus = factors.back();
  int64_t n = columns_of(a.type()), k = columns_of(c.out_types[0]);
  Val reflectors = k <= n ? columns(packed, 0, k) : padded(packed, 0, k - n);
  Vals out{apply1("householder_product", {reflectors, taus}), triu(rows(packed, 0, k))};
  if (pivoting) out.push_back(factors[1] - 1.0);  // LAPACK counts from 1
  return out;
}

// A = Q R with square R: with M = Q^H dA R^-1, Q^H dQ is the skew-Hermitian W that has M's elements
// below the diagonal, and their imaginary parts on it, since R keeps a real one.
// dQ = Q (W - M) + dA R^-1, dR = (M - W) R. Of a wide A = [A1 A2] that is so for A1; R2 = Q^H A2.
Vals qr_tangents(JvpCtx& c) {
  Val a = c.x(0), da = c.t(0), q = c.y(0), r = c.y(1);
  int64_t m = rows_of(a.type()), n = columns_of(a.type()), k = smaller_of(a.type());
  if (m != k && c.attr().boolean("full_matrices"))
    fail(ErrorKind::kNotImplemented,
         "[qr] expected full_matrices=False to differentiate a matrix with more rows than columns, "
         "since the other columns of q are arbitrary; got ",
         c.in_types[0]);
  bool pivoting = c.attr().boolean("pivoting");
  if (pivoting) {
    a = mT(take_rows(mT(a), c.y(2)));
    da = mT(take_rows(mT(da), c.y(2)));
  }
  Val da1 = columns(da, 0, k), r1 = columns(r, 0, k);
  Val x = triangular_solve(r1, da1, {.left_side = false, .lower = false});
  Val inner = matmul(adjoint(q), x);
  Val below = tril(inner, -1);
  Val w = below - adjoint(below);
  if (is_complex(inner.dtype())) {
    Val imaginary = 0.5 * (inner - conjugate(inner));
    w = w + select(on_diagonal(inner), imaginary, zeros_like(inner));
  }
  Val dq = matmul(q, w - inner) + x;
  Val dr = triu(matmul(inner - w, r1));
  if (n != k) {
    Val dr2 = matmul(adjoint(dq), columns(a, k, n)) + matmul(adjoint(q), columns(da, k, n));
    Val both[] = {dr, dr2};
    dr = concatenate(both, dr.rank() - 1);
  }
  Vals out{dq, dr};
  if (pivoting) out.push_back(Val{});
  return out;
}

OpDef qr_op() {
  OpDef d =
      matrix_op("qr", "Q R = A with unitary Q and upper triangular R.", 1,
                {{"pivoting", AttrType::kBool, AttrSpec::kHideDefault, false},
                 {"full_matrices", AttrType::kBool}},
                infer_qr, decompose_qr, [](double m, double n) { return 2 * qr_flops(m, n); });
  d.multiple_results = true;
  d.jvp_kind = JvpKind::kCustom;
  d.jvp = qr_tangents;
  return d;
}

}  // namespace

void register_orthogonal(OpRegistry& r) {
  r.add(geqrf_op());
  r.add(geqp3_op());
  r.add(householder_product_op());
  r.add(ormqr_op());
  r.add(qr_op());
}

}  // namespace weft::linalg
