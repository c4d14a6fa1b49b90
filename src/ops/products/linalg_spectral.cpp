// svd, eigh, eig, and the reductions hessenberg, tridiagonal and schur.
//
// Derivatives: J. Townsend, "Differentiating the singular value decomposition" (2016); M. Giles,
// "Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
// (2008); M. Seeger et al., "Auto-differentiating linear algebra" (2017).
#include "ops/def/plain.h"
#include "ops/products/linalg.h"
#include "ops/products/linalg_small.h"
#include "weft/registry.h"

namespace weft::linalg {

namespace {

// ---- svd

TypeRefs infer_svd(const InferCtx& c) {
  TypeRef a = check_matrices(c);
  Dims batch = batch_of(a->shape());
  const std::string& algorithm = c.attr().string("algorithm");
  if (algorithm != "default" && algorithm != "divide_and_conquer" && algorithm != "QR")
    c.fail(ErrorKind::kNotImplemented,
           "expected the algorithm default, divide_and_conquer or QR; got ", algorithm);
  int64_t m = rows_of(a), n = columns_of(a), k = smaller_of(a);
  TypeRef s = with_axes(batch, real_dtype(a->dtype()), {k});
  if (!c.attr().boolean("compute_uv")) return {s};
  bool full = c.attr().boolean("full_matrices");
  return {s, with_axes(batch, a->dtype(), {m, full ? m : k}),
          with_axes(batch, a->dtype(), {full ? n : k, n})};
}

// cuSOLVER takes matrices with as many rows as columns or more: others are transposed.
Vals svd_on_gpu(const RuleCtx& c, Val a, bool full, bool vectors) {
  bool wide = rows_of(a.type()) < columns_of(a.type());
  Val x = wide ? adjoint(a) : a;
  Dims batch = batch_of(x.shape());
  int64_t m = rows_of(x.type()), n = columns_of(x.type());
  auto flag = [](bool f) { return f ? "true" : "false"; };
  SolverCall call(c, x.dtype(), "", "cusolver_gesvd_ffi");
  call.attributes("", cat("compute_uv = ", flag(vectors), ", full_matrices = ", flag(full),
                          ", transposed = false"));
  call.overwritten_matrix(x)
      .gives(with_axes(batch, real_dtype(x.dtype()), {n}))
      .gives_matrix(with_axes(batch, x.dtype(), {m, full ? m : n}))
      .gives_matrix(with_axes(batch, x.dtype(), {n, n}));
  Vals out = call.checked();
  return wide ? Vals{out[1], adjoint(out[3]), adjoint(out[2])} : Vals{out[1], out[2], out[3]};
}

Vals svd_on_cpu(const RuleCtx& c, Val a, bool full, bool vectors) {
  Dims batch = batch_of(a.shape());
  int64_t m = rows_of(a.type()), n = columns_of(a.type()), k = std::min(m, n);
  bool by_qr = c.attr().string("algorithm") == "QR";
  SolverCall call(c, a.dtype(), by_qr ? "lapack_?gesvd_ffi" : "lapack_?gesdd_ffi", "");
  call.attributes(cat("mode = ", letter(!vectors ? 'N' : full ? 'A' : 'S')), "");
  call.overwritten_matrix(a)
      .gives(with_axes(batch, real_dtype(a.dtype()), {k}))
      .gives_matrix(with_axes(batch, a.dtype(), {m, full ? m : k}))
      .gives_matrix(with_axes(batch, a.dtype(), {full ? n : k, n}));
  Vals out = call.checked();
  return {out[1], out[2], out[3]};
}

Vals decompose_svd(RuleCtx& c) {
  Val a = c.x(0);
  bool vectors = c.attr().boolean("compute_uv"), full = c.attr().boolean("full_matrices");
  Vals out;
  if (a.type()->num_elements() > 0) {
    out = has_plain_ops_only(c.platform) ? small_svd(a, full, vectors)
          : c.platform == "cuda"         ? svd_on_gpu(c, a, full, vectors)
                                         : svd_on_cpu(c, a, full, vectors);
  } else {
    out.push_back(zeros(c.b, c.out_types[0]));
    for (size_t i = 1; i < c.out_types.size(); ++i) out.push_back(eye(c.b, c.out_types[i]));
  }
  if (!vectors) out.resize(1);
  return out;
}

// 1 / x where x is not 0, else 0; of x that is a constant in its derivatives where it is 0.
Val reciprocal_or_zero(Val x) {
  Val is_zero = eq(x, zeros_like(x));
  Val safe = select(is_zero, ones_like(x), x);
  return select(is_zero, zeros_like(x), 1.0 / safe);
}

// d[..., i, j] = x[..., j] - x[..., i], of the eigenvalues or singular values x of one matrix; 0
// where these are equal but for rounding, in the solver and in what made the matrix. That is some
// eps times the largest one, and grows like sqrt(n) (Golub and Van Loan, Matrix Computations, 8.1
// and 8.6). Measured, of the solver: up to 3 sqrt(n) eps.
Val differences(Val x) {
  Dims shape = x.shape(), row = count_up(x.rank());
  int64_t n = shape.back();
  shape.push_back(n);
  Dims column = row;
  row.back() = x.rank();
  Val gaps = broadcast_in_dim(x, shape, row) - broadcast_in_dim(x, shape, column);
  if (n == 0) return gaps;
  DType real = real_dtype(x.dtype());
  double eps = real == DType::kF64 ? 0x1p-52 : 0x1p-23;
  Val largest = reduce_max(abs(x), {x.rank() - 1}) * (8 * eps);
  Val growth = sqrt(size_value(*x.builder, n, real));
  Val rounding =
      broadcast_in_dim(largest, shape, count_up(x.rank() - 1)) * broadcast_to(growth, shape);
  return select(le(abs(gaps), rounding), zeros_like(gaps), gaps);
}

// A = U S V^H; dP = U^H dA V; dS = Re diag dP; with F[i,j] = 1 / (s[j]^2 - s[i]^2),
// dU = U (F * (dP S + S dP^H)) + (1 - U U^H) dA V S^-1, and dV likewise. Where singular values are
// equal F is 0. What phase the vectors of a complex matrix gain is U's.
Vals svd_tangents(Val a, Val da, Val s, Val u, Val vh, bool vectors) {
  Val v = adjoint(vh);
  Val dav = matmul(da, v);
  Val dp = matmul(adjoint(u), dav);
  Vals out{real_part(diagonal(dp))};
  if (!vectors) return out;
  int64_t m = rows_of(a.type()), n = columns_of(a.type()), k = smaller_of(a.type());
  Dims shape = dp.shape(), row = count_up(s.rank()), column = row;
  row.back() = s.rank();
  Val s_row = broadcast_in_dim(s, shape, row), s_column = broadcast_in_dim(s, shape, column);
  Val f = convert(reciprocal_or_zero(differences(s) * (s_row + s_column)), dp.dtype());
  Val inverse = reciprocal_or_zero(s);
  Val dps = scaled_columns(dp, s), sdp = scaled_rows(dp, s);
  Val inner = f * (dps + adjoint(dps));
  if (is_complex(dp.dtype())) {
    Val skew = scaled_columns(dp - adjoint(dp), inverse) * 0.5;
    inner = inner + select(on_diagonal(dp), skew, zeros_like(dp));
  }
  Val du = matmul(u, inner), dv = matmul(v, f * (sdp + adjoint(sdp)));
  if (m != k) du = du + scaled_columns(dav - matmul(u, dp), inverse);
  if (n != k) {
    Val dahu = matmul(adjoint(da), u);
    dv = dv + scaled_columns(dahu - matmul(v, adjoint(dp)), inverse);
  }
  out.push_back(du);
  out.push_back(adjoint(dv));
  return out;
}

// Values and tangents of one decomposition with vectors.
void differentiate_svd(GraphJvpCtx& c) {
  Val a = c.x(0);
  bool vectors = c.attr().boolean("compute_uv");
  if (vectors && c.attr().boolean("full_matrices") && rows_of(a.type()) != columns_of(a.type()))
    fail(ErrorKind::kNotImplemented,
         "[svd] expected full_matrices=False to differentiate a matrix that is not square, since "
         "the other vectors are arbitrary; got ",
         c.in_types[0]);
  Val xs[] = {a};
  Vals made = apply(c.op, xs, c.attrs->with({{"compute_uv", true}, {"full_matrices", false}}));
  Vals tangents = svd_tangents(a, c.val(c.tangents[0]), made[0], made[1], made[2], vectors);
  for (size_t i = 0; i < c.out_types.size(); ++i) {
    c.results.push_back(made[i].value);
    c.result_tangents.push_back(tangents[i].value);
  }
}

OpDef svd_op() {
  OpDef d =
      matrix_op("svd", "Singular values, and singular vectors in U and V^H.", 1,
                {{"full_matrices", AttrType::kBool},
                 {"compute_uv", AttrType::kBool},
                 {"algorithm", AttrType::kString, AttrSpec::kHideDefault, std::string("default")}},
                infer_svd, decompose_svd, [](double m, double n) {
                  double k = std::min(m, n);
                  return 14 * k * k * std::max(m, n) + 8 * k * k * k;
                });
  d.multiple_results = true;
  d.for_kernel = while_small_and_few([](RuleCtx& c) -> Vals {
    return small_svd(c.x(0), c.attr().boolean("full_matrices"), c.attr().boolean("compute_uv"));
  });
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = differentiate_svd;
  d.graph_linearize = differentiate_svd;
  return d;
}

// ---- eigh

// A stack of as many 2x2 matrices has a closed form in all programs.
constexpr int64_t kLeastMatricesOfTwo = 8;

Vals decompose_eigh(RuleCtx& c) {
  Val a = c.x(0);
  if (a.type()->num_elements() == 0) return {a, zeros(c.b, c.out_types[1])};
  bool lower = c.attr().boolean("lower");
  if (has_plain_ops_only(c.platform)) return small_eigh(a, lower);
  // One matrix takes as long either way, and longer to compile.
  bool is_stack = product(batch_of(a.shape())) >= kLeastMatricesOfTwo;
  if (c.platform == "cpu" && rows_of(a.type()) == 2 && is_stack && !is_complex(a.dtype())) {
    Vals out = small_eigh(a, lower);
    // XLA would compute them again in each fusion that reads them.
    for (Val& v : out) v = optimization_barrier({&v, 1})[0];
    return out;
  }
  SolverCall call(c, a.dtype(),
                  real_or_complex(a.dtype(), "lapack_?syevd_ffi", "lapack_?heevd_ffi"),
                  "cusolver_syevd_ffi");
  call.attributes(cat("mode = ", letter('V'), ", uplo = ", letter(lower ? 'L' : 'U')),
                  cat("algorithm = 0 : ui8, lower = ", lower ? "true" : "false"));
  return call.overwritten_matrix(a).gives(c.out_types[1]).checked();
}

// A V = V W: with dP = V^H dA V, dW = Re diag dP and dV = V (F * dP), F[i,j] = 1 / (w[j] - w[i]).
// Vectors of equal eigenvalues are arbitrary: they do not turn among themselves, F is 0. So
// functions of the spaces that they span, and symmetric functions of the eigenvalues, have their
// derivatives.
Vals eigh_tangents(JvpCtx& c) {
  Val v = c.y(0), w = c.y(1), da = hermitian(c.t(0), c.attr().boolean("lower"));
  Val dp = matmul(adjoint(v), matmul(da, v));
  Val f = convert(reciprocal_or_zero(differences(w)), dp.dtype());
  return {matmul(v, f * dp), real_part(diagonal(dp))};
}

OpDef eigh_op() {
  OpDef d = matrix_op(
      "eigh", "Eigenvectors and eigenvalues, in ascending order, of Hermitian matrices.", 1,
      {{"lower", AttrType::kBool}, {"sort_eigenvalues", AttrType::kBool}},
      [](const InferCtx& c) -> TypeRefs {
        TypeRef a = check_square(c);
        return {a, with_axes(batch_of(a->shape()), real_dtype(a->dtype()), {rows_of(a)})};
      },
      decompose_eigh, [](double, double n) { return 9 * n * n * n; });
  d.multiple_results = true;
  d.for_kernel =
      while_small_and_few([](RuleCtx& c) { return small_eigh(c.x(0), c.attr().boolean("lower")); });
  d.jvp_kind = JvpKind::kCustom;
  d.jvp = eigh_tangents;
  return d;
}

// ---- eig

TypeRefs infer_eig(const InferCtx& c) {
  TypeRef a = check_square(c);
  DType dtype = complex_dtype(a->dtype());
  TypeRefs out{with_axes(batch_of(a->shape()), dtype, {rows_of(a)})};
  for (const char* side : {"compute_left_eigenvectors", "compute_right_eigenvectors"})
    if (c.attr().boolean(side)) out.push_back(with_dtype(a, dtype));
  return out;
}

// The eigenvectors of real matrices, complex, from real columns: of each pair of conjugate
// eigenvalues, of which the one with the positive imaginary part comes first, the first column
// holds the real part and the second the imaginary part.
Val unpacked_eigenvectors(Val w, Val columns) {
  auto shifted = [&](int64_t by) {
    std::vector<Dims> config(columns.shape().size(), Dims{0, 0, 0});
    config.back() = {by, -by, 0};
    return pad(columns, scalar_like(columns, 0), config);
  };
  Dims axes = other_axes(columns.rank(), {columns.rank() - 2});
  Val sign = broadcast_in_dim(imag(w), columns.shape(), axes), zero = zeros_like(columns);
  Val is_first = gt(sign, zero), is_second = lt(sign, zero);
  return complex(select(is_second, shifted(1), columns),
                 select(is_first, shifted(-1), select(is_second, -columns, zero)));
}

Vals eig_on_gpu(const RuleCtx& c, Val a, bool left, bool right) {
  if (left)
    fail(ErrorKind::kNotImplemented,
         "[eig] expected compute_left_eigenvectors=False on platform cuda, whose solver has right "
         "eigenvectors only; got True");
  SolverCall call(c, a.dtype(), "", "cusolver_geev_ffi");
  call.attributes("", cat("left = false, right = ", right ? "true" : "false"));
  call.matrix(a).gives_matrix(a.type()).gives(c.out_types[0]);
  Vals all = call.gives_matrix(a.type()).gives_matrix(a.type()).checked();
  if (!right) return {all[1]};
  return {all[1], is_complex(a.dtype()) ? all[3] : unpacked_eigenvectors(all[1], all[3])};
}

Vals decompose_eig(RuleCtx& c) {
  Val a = c.x(0);
  bool left = c.attr().boolean("compute_left_eigenvectors");
  bool right = c.attr().boolean("compute_right_eigenvectors");
  if (a.type()->num_elements() == 0) {
    Vals out;
    for (TypeRef t : c.out_types) out.push_back(zeros(c.b, t));
    return out;
  }
  if (c.platform == "cuda") return eig_on_gpu(c, a, left, right);
  Dims batch = batch_of(a.shape());
  int64_t n = rows_of(a.type());
  TypeRef vectors = with_dtype(a.type(), complex_dtype(a.dtype()));
  SolverCall call(c, a.dtype(), "lapack_?geev_ffi", "cusolver_geev_ffi");
  call.attributes(cat("compute_left = ", letter(left ? 'V' : 'N'),
                      ", compute_right = ", letter(right ? 'V' : 'N')),
                  "");
  call.matrix(a).gives(with_axes(batch, a.dtype(), {n}));
  bool is_real = !is_complex(a.dtype());
  if (is_real) call.gives(with_axes(batch, a.dtype(), {n}));
  Vals all = call.gives_matrix(vectors).gives_matrix(vectors).checked();
  Vals out{is_real ? complex(all[0], all[1]) : all[0]};
  size_t first = is_real ? 2 : 1;
  if (left) out.push_back(all[first]);
  if (right) out.push_back(all[first + 1]);
  return out;
}

// A V = V W: with M = V^-1 dA V, dW = diag M and dV = V (F * M + D), F[i,j] = 1 / (w[j] - w[i]).
// The diagonal D keeps what LAPACK's vectors have: norm 1, a real largest component.
Val eigenvector_tangent(Val v, Val w, Val m) {
  Val dv = matmul(v, reciprocal_or_zero(differences(w)) * m);
  int rows_axis = v.rank() - 2;
  Val along = reduce_sum(real(conj(v) * dv), {rows_axis});
  dv = dv - scaled_columns(v, along);
  Dims every = other_axes(v.rank(), {rows_axis});
  Val size = abs(v);
  Val largest = broadcast_in_dim(reduce_max(size, {rows_axis}), v.shape(), every);
  Val is_largest = eq(size, largest);
  Val nothing = zeros_like(size);
  Val turned = reduce_sum(select(is_largest, imag(dv), nothing), {rows_axis});
  Val component = reduce_sum(select(is_largest, real(v), nothing), {rows_axis});
  Val phase = turned / component;
  return dv - scaled_columns(v, complex(zeros_like(phase), phase));
}

void differentiate_eig(GraphJvpCtx& c) {
  bool left = c.attr().boolean("compute_left_eigenvectors");
  bool right = c.attr().boolean("compute_right_eigenvectors");
  if ((left || right) && !c.attr().boolean("enable_eigvec_derivs"))
    fail(ErrorKind::kNotImplemented,
         "[eig] expected enable_eigvec_derivs=True to differentiate with eigenvectors computed, "
         "since they have a derivative only where eigenvalues are distinct; got False");
  Val xs[] = {c.x(0)};
  // What becomes of the vectors here depends on no choice of theirs, and so has derivatives again.
  Vals made =
      apply(c.op, xs,
            c.attrs->with({{"compute_right_eigenvectors", true}, {"enable_eigvec_derivs", true}}));
  Val w = made[0], v = made.back();
  Val da = convert(c.val(c.tangents[0]), w.dtype());
  Val m = solve(v, matmul(da, v));
  Vals results{w}, tangents{diagonal(m)};
  if (left) {
    // The same for A^H, whose eigenvalues are the conjugates.
    Val vl = made[1];
    results.push_back(vl);
    tangents.push_back(eigenvector_tangent(vl, conj(w), solve(vl, matmul(adjoint(da), vl))));
  }
  if (right) {
    results.push_back(v);
    tangents.push_back(eigenvector_tangent(v, w, m));
  }
  for (const Val& r : results) c.results.push_back(r.value);
  for (const Val& t : tangents) c.result_tangents.push_back(t.value);
}

OpDef eig_op() {
  OpDef d =
      matrix_op("eig", "Eigenvalues, and left and right eigenvectors, of general matrices.", 1,
                {{"compute_left_eigenvectors", AttrType::kBool},
                 {"compute_right_eigenvectors", AttrType::kBool},
                 {"enable_eigvec_derivs", AttrType::kBool, AttrSpec::kHideDefault, false}},
                infer_eig, decompose_eig, [](double, double n) { return 25 * n * n * n; });
  d.multiple_results = true;
  d.jvp_kind = JvpKind::kGraph;
  d.graph_jvp = differentiate_eig;
  d.graph_linearize = differentiate_eig;
  return d;
}

// ---- Reductions

int64_t one_less(int64_t n) { return dim_max(dim_sub(n, 1), 0); }

OpDef schur_op() {
  OpDef d = matrix_op(
      "schur", "Upper (quasi-)triangular T and unitary Q with Q T Q^H = A.", 1,
      {{"compute_schur_vectors", AttrType::kBool}},
      [](const InferCtx& c) -> TypeRefs {
        TypeRef a = check_square(c);
        return c.attr().boolean("compute_schur_vectors") ? TypeRefs{a, a} : TypeRefs{a};
      },
      [](RuleCtx& c) -> Vals {
        Val a = c.x(0);
        bool vectors = c.attr().boolean("compute_schur_vectors");
        if (a.type()->num_elements() == 0) return vectors ? Vals{a, a} : Vals{a};
        Dims batch = batch_of(a.shape());
        TypeRef values = with_axes(batch, a.dtype(), {rows_of(a.type())});
        SolverCall call(c, a.dtype(), "lapack_?gees_ffi", "");
        call.attributes(cat("mode = ", letter(vectors ? 'V' : 'N'), ", sort = ", letter('N')), "");
        call.overwritten_matrix(a).gives_matrix(a.type()).gives(values);
        if (!is_complex(a.dtype())) call.gives(values);
        Vals out = call.gives(make_type(DType::kI32, batch)).checked();
        return vectors ? Vals{out[0], out[1]} : Vals{out[0]};
      },
      [](double, double n) { return 25 * n * n * n; });
  d.multiple_results = true;
  return d;
}

OpDef hessenberg_op() {
  OpDef d = matrix_op(
      "hessenberg", "Upper Hessenberg form, Householder reflectors below it, and their factors.", 1,
      {},
      [](const InferCtx& c) -> TypeRefs {
        TypeRef a = check_square(c);
        return {a, with_axes(batch_of(a->shape()), a->dtype(), {one_less(rows_of(a))})};
      },
      [](RuleCtx& c) -> Vals {
        Val a = c.x(0);
        int64_t n = rows_of(a.type());
        if (a.type()->num_elements() == 0 || n < 2) return {a, zeros(c.b, c.out_types[1])};
        SolverCall call(c, a.dtype(), "lapack_?gehrd_ffi", "");
        call.attributes(cat("high = ", n, " : i32, low = 1 : i32"), "");
        return call.overwritten_matrix(a).gives(c.out_types[1]).checked();
      },
      [](double, double n) { return 10 * n * n * n / 3; });
  d.multiple_results = true;
  return d;
}

OpDef tridiagonal_op() {
  OpDef d = matrix_op(
      "tridiagonal",
      "Tridiagonal form of Hermitian matrices, the reflectors, both diagonals, their factors.", 1,
      {{"lower", AttrType::kBool}},
      [](const InferCtx& c) -> TypeRefs {
        TypeRef a = check_square(c);
        Dims batch = batch_of(a->shape());
        DType dtype = real_dtype(a->dtype());
        int64_t n = rows_of(a);
        return {a, with_axes(batch, dtype, {n}), with_axes(batch, dtype, {one_less(n)}),
                with_axes(batch, a->dtype(), {one_less(n)})};
      },
      [](RuleCtx& c) -> Vals {
        Val a = c.x(0);
        if (a.type()->num_elements() == 0 || rows_of(a.type()) < 2)
          return {a, real_part(diagonal(a)), zeros(c.b, c.out_types[2]),
                  zeros(c.b, c.out_types[3])};
        bool lower = c.attr().boolean("lower");
        SolverCall call(c, a.dtype(),
                        real_or_complex(a.dtype(), "lapack_?sytrd_ffi", "lapack_?hetrd_ffi"),
                        "cusolver_sytrd_ffi");
        call.attributes(cat("uplo = ", letter(lower ? 'L' : 'U')),
                        cat("lower = ", lower ? "true" : "false"));
        call.overwritten_matrix(a);
        for (size_t i = 1; i < 4; ++i) call.gives(c.out_types[i]);
        return call.checked();
      },
      [](double, double n) { return 4 * n * n * n / 3; });
  d.multiple_results = true;
  return d;
}

}  // namespace

void register_spectral(OpRegistry& r) {
  r.add(svd_op());
  r.add(eigh_op());
  r.add(eig_op());
  r.add(schur_op());
  r.add(hessenberg_op());
  r.add(tridiagonal_op());
}

}  // namespace weft::linalg
