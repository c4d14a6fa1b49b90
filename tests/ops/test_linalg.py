"""weft.lax.linalg beyond the op table: failures, mistakes, platforms, equal eigenvalues."""

import functools
import importlib.util
import itertools
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
from conftest import SUPPORT, verify_stablehlo

import weft
import weft.numpy as wnp
from weft import compiler, errors
from weft.lax import linalg
from weft.runtime import cuda

rng = np.random.default_rng(0)
A = rng.normal(size=(3, 3)).astype(np.float32)
S = (A @ A.T + 3 * np.eye(3)).astype(np.float32)
R = rng.normal(size=(4, 3)).astype(np.float32)
# Smaller matrices, and stacks of those with one row less, are written out:
# src/ops/products/linalg_small.h.
LARGE = 5


def assert_close(x, y, tolerance=2e-5):
    np.testing.assert_allclose(np.asarray(x), y, rtol=tolerance, atol=tolerance)


def test_lapack_is_made_ready_by_a_fresh_process():
    code = (
        "import sys, numpy as np, weft\n"
        "assert 'scipy' not in sys.modules\n"
        "f = weft.jit(lambda x: weft.lax.linalg.lu(weft.lax.linalg.cholesky(x))[0])\n"
        "print(np.asarray(f(np.eye(2, dtype='f'))).tolist())\n"
        "assert 'scipy.linalg' not in sys.modules\n"  # it takes a tenth of a second
        "import scipy.linalg.cython_lapack\n"
        "assert scipy.linalg.cython_lapack.__pyx_capi__ and scipy.linalg.cython_blas\n"
        "assert scipy.linalg.det(np.eye(2)) == 1"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[[1.0, 0.0], [0.0, 1.0]]\n", 0), done.stderr


def test_failures_are_nan_where_they_are():
    both = np.stack([S, -S])
    for f in (linalg.cholesky, weft.vmap(linalg.cholesky)):
        out = np.asarray(f(both))
        assert np.isnan(out[1][np.tril_indices(3)]).all()
        assert_close(out[0], np.linalg.cholesky(S))
    bad = np.stack([S, np.full((3, 3), np.nan, np.float32)])
    for y in (*linalg.eigh(bad), *linalg.svd(bad)):
        assert np.isnan(y[1]).any() and np.isfinite(y[0]).all()
    singular = np.float32([[1, 2], [2, 4]])
    assert np.isfinite(linalg.lu(singular)[0]).all()
    zeros = np.zeros(3, np.float32)
    x = linalg.tridiagonal_solve(zeros, zeros, zeros, np.ones((3, 1), np.float32))
    assert np.isnan(x).all()


WRONG = {
    "square": (lambda: linalg.cholesky(wnp.asarray(R)), r"\[cholesky\] expected square(.|\n)*4,3"),
    "vector": (lambda: linalg.eigh(wnp.ones(3)), r"\[eigh\] expected matrices(.|\n)*f32\[3\]"),
    "number": (lambda: linalg.lu(1.0), r"\[lu\] expected matrices(.|\n)*f32\[\]"),
    "dtype": (lambda: linalg.qr(wnp.ones((2, 2), "bfloat16")), r"\[qr\] expected float32"),
    "integers": (lambda: linalg.svd(wnp.ones((2, 2), "int32")), r"expected float32(.|\n)*i32"),
    "dtypes": (lambda: linalg.triangular_solve(S, S.astype("complex64")), "operands of one dtype"),
    "rows": (lambda: linalg.triangular_solve(S, R, left_side=True),
             r"expected b to be f32\[3,3\] beside f32\[3,3\]; got f32\[4,3\]"),
    "columns": (lambda: linalg.triangular_solve(S, R.T), r"f32\[3,3\](.|\n)*got f32\[3,4\]"),
    "batch": (lambda: linalg.triangular_solve(S[None], np.stack([S, S])), r"f32\[1,3,3\]"),
    "algorithm": (lambda: linalg.svd(R, algorithm="magic"), "SvdAlgorithm.DEFAULT(.|\n)*'magic'"),
    "jacobi": (lambda: linalg.svd(R, algorithm=linalg.SvdAlgorithm.JACOBI), "expected algorithm="),
    "qdwh": (lambda: linalg.eigh(S, implementation=linalg.EighImplementation.QDWH), "QR or None"),
    "subset": (lambda: linalg.eigh(S, subset_by_index=(2, 9)), r"within 0 and 3; got \(2, 9\)"),
    "full": (lambda: linalg.svd(R, subset_by_index=(0, 1)), "full_matrices=False with subset"),
    "pivots": (lambda: linalg.lu_pivots_to_permutation(np.int32([0, 1, 2]), 2), r"\(3\); got 2"),
    "taus": (lambda: linalg.householder_product(R, R[0, :2][None]), "expected taus to be"),
    "wide": (lambda: linalg.householder_product(R.T, R[0]), "at least as many rows"),
    "diagonals": (lambda: linalg.tridiagonal_solve(R[0], R[0], R[1, :2], S), "dl, d and du"),
    "grad": (lambda: weft.grad(lambda x: linalg.svd(x)[0].sum())(R), "full_matrices=False"),
    "grad qr": (lambda: weft.grad(lambda x: linalg.qr(x)[0].sum())(R), "full_matrices=False"),
    "grad eig": (lambda: weft.grad(lambda x: abs(linalg.eig(x)[1]).sum())(S), "enable_eigvec"),
    "schur": (lambda: linalg.schur(S, sort_eig_vals=True), "sort_eig_vals=False"),
    "grad schur": (lambda: weft.grad(lambda x: linalg.schur(x)[0].sum())(S), "schur"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_mistakes(kind):
    call, message = WRONG[kind]
    with pytest.raises(errors.WeftError, match=message) as e:
        call()
    assert __file__ in str(e.value)


def test_equal_eigenvalues_and_singular_values():
    eye = np.eye(3, dtype=np.float32)
    assert_close(weft.grad(lambda x: linalg.eigh(x)[1].sum())(eye), eye)
    assert_close(weft.grad(lambda x: linalg.svd(x, compute_uv=False).sum())(eye), eye)
    u_vh = lambda x: (lambda u, s, vh: u @ vh)(*linalg.svd(x))
    assert np.isfinite(weft.jacobian(u_vh)(eye)).all()
    vectors = weft.grad(lambda x: linalg.eigh(x)[0].sum())(eye)
    assert np.isfinite(vectors).all()  # they are arbitrary, and taken not to turn


def symmetric(*eigenvalues):
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(len(eigenvalues),) * 2))[0]
    return np.diag(eigenvalues), (q * eigenvalues) @ q.T


@pytest.mark.parametrize(
    "a", [*symmetric(2.0, 2.0, 5.0), *symmetric(1.0, 1.0, 1.0), *symmetric(0.0, 0.0, 1.0)]
)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_functions_of_matrices_with_equal_eigenvalues(a, dtype):
    def trace_of_exponential(a):
        v, w = linalg.eigh(a)
        return wnp.trace((v * wnp.exp(w)) @ v.conj().mT).real

    def projector(a):  # on the vectors of the greatest eigenvalue, if that has others below
        v, w = linalg.eigh(a)
        return ((v * (w > w[-1] - 0.5)) @ v.conj().mT).real

    with weft.enable_x64(True):
        a = ((a + a.T) / 2).astype(dtype)
        want = scipy.linalg.expm(a)
        close = functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
        slopes = weft.grad(trace_of_exponential)
        close(slopes(a), want)
        close(weft.jit(weft.vmap(slopes))(np.stack([a, 2 * a]))[1], scipy.linalg.expm(2 * a))
        direction = np.ones((3, 3), dtype) + np.eye(3)
        tangent = weft.jvp(trace_of_exponential, (a,), (direction,))[1]
        close(tangent, np.sum(want * direction).real)
        close(weft.grad(lambda a: wnp.linalg.eigvalsh(a).sum())(a), np.eye(3))
        second = weft.jvp(slopes, (a,), (direction,))[1]
        assert np.isfinite(second).all()
        moved = [projector(a + t * direction) for t in (1e-6, -1e-6)]
        tangent = weft.jvp(projector, (a,), (direction,))[1]
        np.testing.assert_allclose(tangent, (moved[0] - moved[1]) / 2e-6, atol=1e-6)


def test_close_but_distinct_eigenvalues_have_derivatives_of_their_own():
    with weft.enable_x64(True):
        a = np.diag([1.0, 1.0 + 1e-9])
        turn = np.array([[0.0, 1.0], [1.0, 0.0]])
        tangent = weft.jvp(lambda a: linalg.eigh(a)[0], (a,), (turn,))[1]
        np.testing.assert_allclose(np.abs(tangent), [[0, 1e9], [1e9, 0]], rtol=1e-6)


def test_second_derivatives_are_finite():
    for f in (
        lambda x: linalg.cholesky(x).sum(),
        lambda x: (linalg.eigh(x)[1] ** 2).sum(),
        lambda x: (linalg.svd(x)[1] ** 3).sum(),
    ):
        assert np.isfinite(weft.hessian(f)(S)).all()


def test_parts_of_decompositions():
    u, s, vh = np.linalg.svd(R, full_matrices=False)
    part = linalg.svd(R, full_matrices=False, subset_by_index=(1, 3))
    assert [x.shape for x in part] == [(4, 2), (2,), (2, 3)]
    assert_close(part[0] * part[1] @ part[2], (u * s)[:, 1:] @ vh[1:])
    v, w = linalg.eigh(S, subset_by_index=(1, 3))
    assert_close(w, np.linalg.eigvalsh(S)[1:])
    assert_close(S @ np.asarray(v), np.asarray(v * w), 1e-4)


@pytest.mark.parametrize("left_side", [True, False])
def test_triangular_solve_with_vectors_and_mapped_right_sides(left_side):
    n = LARGE
    lower = np.tril(rng.normal(size=(n, n)) + 3 * np.eye(n)).astype(np.float32)
    right = rng.normal(size=(4, n)).astype(np.float32)
    solve = lambda b: linalg.triangular_solve(lower, b, left_side=left_side, lower=True)
    want = np.linalg.solve(lower if left_side else lower.T, right.T).T
    assert_close(solve(right[0]), want[0])
    assert_close(weft.vmap(solve)(right), want, 1e-4)
    matrices = np.stack([right.T, 2 * right.T]) if left_side else np.stack([right, 2 * right])
    text = weft.jit(weft.vmap(solve)).lower(matrices).as_text()
    assert len(re.findall("custom_call", text)) == 1
    assert_close(weft.vmap(solve)(matrices)[1], 2 * (want.T if left_side else want), 1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_triangular_solve_of_halves(dtype):
    a, b = wnp.asarray(S, dtype), wnp.asarray(R.T, dtype)
    solve = lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True)
    x = solve(a, b)
    assert x.dtype == dtype
    want = np.linalg.solve(np.tril(S), R.T)
    assert_close(x.astype(np.float32), want, 0.05)
    assert_close(weft.vmap(solve)(a[None], b[None])[0].astype(np.float32), want, 0.05)
    exact = weft.grad(lambda a, b: solve(a, b).sum(), (0, 1))(S, R.T)
    for ours, theirs in zip(
        weft.grad(lambda a, b: solve(a, b).sum(), (0, 1))(a, b), exact, strict=True
    ):
        assert_close(ours.astype(np.float32), theirs, 0.1)
    with pytest.raises(errors.NotImplementedRuleError, match="expected float16, bfloat16, float32"):
        solve(wnp.asarray(S, "float8_e5m2"), wnp.asarray(R.T, "float8_e5m2"))


def test_cholesky_update_and_symmetric_product():
    r, w = np.linalg.cholesky(S).T, R[0]
    updated = np.asarray(linalg.cholesky_update(r, w))
    assert_close(updated.T @ updated, S + np.outer(w, w), 1e-4)
    assert (np.diagonal(updated) > 0).all() and not np.tril(updated, -1).any()
    assert np.isfinite(weft.grad(lambda w: linalg.cholesky_update(r, w).sum())(w)).all()
    product = linalg.symmetric_product(R, R @ R.T, alpha=2.0, beta=-1.0, symmetrize_output=True)
    assert_close(product, R @ R.T, 1e-4)


def test_targets_of_platforms():
    f = weft.jit(lambda x: (linalg.cholesky(x), linalg.qr(x), linalg.eigh(x), linalg.svd(x[:2])))
    graph = f.trace(S).graph
    text = compiler.emit_stablehlo(graph, platform="cuda")
    verify_stablehlo(text)
    targets = set(re.findall(r'call_target_name = "(\w+)"', text))
    kinds = ("potrf", "geqrf", "orgqr", "syevd", "gesvd")
    assert targets == {f"cusolver_{kind}_ffi" for kind in kinds}
    solve = weft.jit(lambda a: linalg.triangular_solve(a, a, left_side=True)).trace(S).graph
    assert "stablehlo.triangular_solve" in compiler.emit_stablehlo(solve, platform="cuda")
    conjugated = weft.jit(
        lambda a, b: linalg.triangular_solve(a, b, left_side=True, conjugate_a=True)
    )
    text = compiler.emit_stablehlo(
        conjugated.trace(S.astype("complex64"), S.astype("complex64")).graph, platform="cuda"
    )
    assert "transpose NO_TRANSPOSE" in text and "stablehlo.negate" in text
    with pytest.raises(errors.NotImplementedRuleError, match="platform cpu or cuda(.|\n)*got tpu"):
        compiler.emit_stablehlo(weft.jit(linalg.cholesky).trace(S).graph, platform="tpu")


def test_what_gpus_have_no_solver_for():
    def emit(function, *args):
        return compiler.emit_stablehlo(weft.jit(function).trace(*args).graph, platform="cuda")

    for function in (linalg.schur, linalg.hessenberg, lambda x: linalg.qr(x, pivoting=True)):
        with pytest.raises(errors.NotImplementedRuleError, match="expected platform cpu"):
            emit(function, S)
    with pytest.raises(errors.NotImplementedRuleError, match="right eigenvectors only; got True"):
        emit(linalg.eig, S)
    right = emit(lambda x: linalg.eig(x, compute_left_eigenvectors=False), S)
    verify_stablehlo(right)
    assert "cusolver_geev_ffi" in right
    # Two equations need no solver.
    for n, has_solver in ((1, False), (2, False), (3, True)):
        line = np.ones((2, n), np.float32)
        text = emit(lambda x, b: linalg.tridiagonal_solve(x, x, x, b), line, line[..., None])
        verify_stablehlo(text)
        assert ("cusparse_gtsv2_ffi" in text) == has_solver


@pytest.mark.skipif(
    cuda.plugin_path() is None or importlib.util.find_spec("jax_cuda13_plugin") is None,
    reason="the wheels jax-cuda13-pjrt and jax-cuda13-plugin are not installed",
)
def test_programs_compile_for_a_described_gpu():
    script = SUPPORT / "cuda_compile.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_programs_are_shown():
    lowered = weft.jit(linalg.cholesky).lower(np.eye(LARGE, dtype=np.float32))
    assert "lapack_spotrf_ffi" in lowered.as_text()
    assert "cholesky" in str(weft.make_jaxpr(linalg.cholesky)(S))
    assert linalg.cholesky_p.name == "cholesky"


# ---- Small matrices, which are written out


def calls_nothing(function, *args):
    return "custom_call" not in weft.jit(function).lower(*args).as_text()


def of_each(function, *stacks):
    """The function of one matrix after the other, each written out."""
    compiled = weft.jit(function)
    made = [weft.tree.leaves(compiled(*xs)) for xs in zip(*stacks, strict=True)]
    assert calls_nothing(function, *[x[0] for x in stacks])
    assert calls_nothing(weft.vmap(function), *stacks) == (max(stacks[0].shape[1:]) < LARGE - 1)
    return [np.stack(xs) for xs in zip(*made, strict=True)]


def hard_matrices(m, n, dtype):
    """Random, graded, large, ill-conditioned and almost singular ones."""
    random = np.random.default_rng(m * 10 + n)
    is_complex = np.dtype(dtype).kind == "c"
    normal = lambda *s: random.normal(size=s) + (1j * random.normal(size=s) if is_complex else 0)
    k = min(m, n)
    u, v = np.linalg.qr(normal(m, m))[0][:, :k], np.linalg.qr(normal(n, n))[0][:k]
    made = [*normal(3, m, n), normal(m, n) * np.logspace(0, -5, m)[:, None]]
    made += [normal(m, n) * np.logspace(-6, 0, n), 1e6 * normal(m, n)]
    made += [u * np.logspace(0, -6, k) @ v, u * np.r_[np.ones(k - 1), 1e-7] @ v]
    return np.stack(made).astype(dtype)


def in_kernel(function, *stacks, kernels="always", most=1):
    """The function of each matrix, in a loop that is one kernel (or a few)."""

    def loop(*stacks):
        return weft.lax.scan(lambda _, xs: (None, function(*xs)), None, stacks)[1]

    compiled = weft.jit(loop, kernels=kernels).lower(*stacks).compile()
    if kernels == "always":
        assert 1 <= len(compiled.kernels) <= most
        assert "xla_cpu_small_call" in compiled.as_text()
    return [np.asarray(x) for x in weft.tree.leaves(compiled(*stacks))]


DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture
def wide():
    with weft.enable_x64(True):
        yield


def worst(differences, sizes, dtype):
    """The largest of |difference| / |size|, in units of the dtype's eps."""
    wide = np.abs(differences).max((-2, -1)), np.abs(sizes).max((-2, -1))
    return (wide[0] / wide[1]).max() / np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", range(1, LARGE))
def test_lu_of_small_matrices(n, dtype, wide):
    for m in {1, n, LARGE - 1}:
        a, k = hard_matrices(m, n, dtype), min(m, n)
        factors, pivots, order = of_each(linalg.lu, a)
        for made in ((factors, pivots, order), weft.vmap(linalg.lu)(a)):
            exact = np.asarray(made[0]).astype("complex128")
            rows = np.take_along_axis(a, np.asarray(made[2])[..., None], -2)
            product = (np.tril(exact[..., :k], -1) + np.eye(m, k)) @ np.triu(exact[..., :k, :])
            # LAPACK's are at most 1.2 here.
            assert worst(product - rows, a, dtype) < 3
        # In the last two rounding decides on rows.
        for x, row_swaps in zip(a[:-2], pivots[:-2], strict=True):
            expected = scipy.linalg.get_lapack_funcs("getrf", (x,))(x)[1]
            assert (row_swaps == expected).all()
        assert (linalg.lu_pivots_to_permutation(pivots, m) == order).all()


def test_pivots_of_equal_size_are_the_first_ones(wide):
    a = np.array([[1, 1], [-1, 2], [1, 3.0]])
    assert np.asarray(linalg.lu(a)[1]).tolist() == [0, 1]
    # |re| + |im| counts for complex numbers.
    assert np.asarray(linalg.lu(np.array([[4.5, 1], [3 + 3j, 2]]))[1]).tolist() == [1, 1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", range(1, LARGE))
def test_cholesky_of_small_matrices(n, dtype, wide):
    a = hard_matrices(n, n, dtype)
    size = np.abs(a).max((-2, -1), keepdims=True)
    a = (a @ a.conj().swapaxes(-2, -1) + 0.1 * size**2 * np.eye(n)).astype(dtype)
    plain = lambda x: linalg.cholesky(x, symmetrize_input=False)
    (factors,) = of_each(plain, a)
    exact = factors.astype("complex128")
    assert worst(exact @ exact.conj().swapaxes(-2, -1) - a, a, dtype) < 3
    assert not np.triu(factors, 1).any() and factors.dtype == dtype
    # Only the lower triangle counts.
    above = np.triu(np.full((n, n), np.nan), 1).astype(dtype)
    assert (of_each(plain, a + above)[0] == factors).all()
    bad = np.stack([a[0], a[1] - 100 * size[1] ** 2 * np.eye(n), np.full((n, n), np.nan)])
    (failed,) = of_each(plain, bad.astype(dtype))
    assert (failed[0] == factors[0]).all()
    assert (np.isnan(failed[1:]) == np.tril(np.ones((n, n), bool))).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("lower", [True, False])
def test_triangular_solve_of_small_matrices(left_side, lower, dtype, wide):
    conjugations = (False, True) if dtype.startswith("complex") else (False,)
    for n, unit, transposed, conjugated in itertools.product(
        (1, 3, LARGE - 1), (False, True), (False, True), conjugations
    ):
        a = hard_matrices(n, n, dtype)
        b = hard_matrices(n, 3, dtype) if left_side else hard_matrices(3, n, dtype)
        options = {"left_side": left_side, "lower": lower, "unit_diagonal": unit}
        solve = functools.partial(
            linalg.triangular_solve, transpose_a=transposed, conjugate_a=conjugated, **options
        )
        x = of_each(solve, a, b)[0].astype("complex128")
        t = (np.tril if lower else np.triu)(a).astype("complex128")
        if unit:
            t = t * (1 - np.eye(n)) + np.eye(n)
        t = t.swapaxes(-2, -1) if transposed else t
        t = t.conj() if conjugated else t
        product = t @ x if left_side else x @ t
        sizes = np.abs(t) @ np.abs(x) if left_side else np.abs(x) @ np.abs(t)
        assert (np.abs(product - b) <= 3 * np.finfo(dtype).eps * (sizes + np.abs(b))).all()


def test_singular_small_matrices():
    for a in ([[0, 0], [0, 0]], [[1, 2], [2, 4]], [[0, 1, 2], [0, 3, 4], [0, 5, 6]]):
        a = np.float32(a)
        factors, pivots, order = linalg.lu(a)
        theirs, swaps, info = scipy.linalg.lapack.sgetrf(a)
        assert info > 0 and (pivots == swaps).all()
        assert_close(factors, theirs)
        assert weft.numpy.linalg.det(a) == 0
        assert not np.isfinite(weft.numpy.linalg.solve(a, a[0] + 1)).all()
        assert [float(x) for x in weft.numpy.linalg.slogdet(a)] == [0, -np.inf]
    assert np.isnan(linalg.lu(np.full((3, 3), np.nan, np.float32))[0]).all()


def test_programs_with_small_matrices_are_differentiated_and_mapped():
    a = np.stack([S, S + A, S - 0.5 * A, S.T])

    def f(x):
        inverse = wnp.linalg.solve(x, R.T)
        return (inverse**2).sum() + wnp.linalg.slogdet(x)[1] + linalg.cholesky(x @ x.T).sum()

    slopes = weft.jit(weft.vmap(weft.grad(f)))(a)
    assert calls_nothing(weft.vmap(weft.grad(f)), a)
    direction = np.float32(0.01) * A
    for x, slope in zip(a, slopes, strict=True):
        change = float(f(x + direction)) - float(f(x - direction))
        np.testing.assert_allclose(change, 2 * float((slope * direction).sum()), rtol=3e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [3, 6])
def test_matrices_in_kernels(n, dtype, wide):
    """Larger ones are factored in a loop over columns."""
    a, tall, b = (hard_matrices(*s, dtype)[:6] for s in ((n, n), (n, n - 1), (n, 2)))
    square = a @ a.conj().swapaxes(-2, -1)
    square = square + 0.1 * np.abs(square).max((-2, -1), keepdims=True) * np.eye(n).astype(dtype)
    solve = linalg.triangular_solve
    for function, *stacks in (
        (linalg.lu, a),
        (linalg.lu, tall),
        (functools.partial(linalg.cholesky, symmetrize_input=False), np.stack([*square, -a[0]])),
        (functools.partial(solve, left_side=True, lower=True), square, b),
        (functools.partial(solve, transpose_a=True, conjugate_a=True), square, b.swapaxes(1, 2)),
    ):
        made, plain = in_kernel(function, *stacks), in_kernel(function, *stacks, kernels="never")
        for x, y in zip(made, plain, strict=True):
            assert (np.isnan(x) == np.isnan(y)).all()
            x, y = np.nan_to_num(x), np.nan_to_num(y)
            largest = np.abs(y).max((-2, -1), keepdims=True) if y.dtype == dtype else 0
            assert (np.abs(x - y) <= 1e3 * np.finfo(dtype).eps * largest).all()


def special_matrices(m, n, dtype, is_symmetric=False):
    """Hard ones, and those that algorithms treat apart; in the last two, numbers that are not."""
    zero, diagonal = np.zeros((m, n)), np.eye(m, n) * np.arange(n, 0, -1)
    corners = zero.copy()
    corners[0, 0] = -0.0
    corners[0, -1] = corners[-1, 0] = 1
    made = hard_matrices(m, n, dtype).astype("float64")
    if is_symmetric:
        made = np.tril(made) + np.tril(made, -1).swapaxes(1, 2)
        w, v = np.linalg.eigh(made[0])
        made = np.stack([*made, (v * np.round(w)) @ v.T, v @ v.T])  # some equal eigenvalues
    made = [*made, zero, -zero, zero + 1, diagonal, np.eye(m, n), corners]
    made += [made[0] * 1e-30, made[1] * 1e30, made[0], made[0]]
    made = np.stack(made)
    made[-2, -1, 0] = np.nan
    if is_symmetric:
        made[-2, 0, -1] = np.nan
    made[-1, -1, -1] = np.inf
    return made.astype(dtype)


def all_nan_at_the_end(results):
    """Of the last two matrices all results are NaN, of others none: these, in float64."""
    for x in results:
        assert np.isnan(x[-2:]).all() and np.isfinite(x[:-2]).all()
    return [x[:-2].astype("float64") for x in results]


def errors_of_lapack(n):
    """About the largest that it makes with such matrices, in eps of the largest element."""
    return 2.5 * n + 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_eigh_in_kernels(n, dtype, wide):
    a = special_matrices(n, n, dtype, is_symmetric=True)
    eps, above = np.finfo(dtype).eps, np.triu(np.full((n, n), 7.0), 1).astype(dtype)
    exact = a[:-2].astype("float64")
    for lower in (True, False):
        eigh = functools.partial(linalg.eigh, lower=lower, symmetrize_input=False)
        # Only one triangle counts.
        results = in_kernel(eigh, a + (above if lower else above.T))
        v, w = all_nan_at_the_end(results)
        assert [x.dtype for x in results] == [dtype, dtype]
        assert (np.diff(w) >= 0).all()
        size = np.abs(exact).max((1, 2))
        bound = errors_of_lapack(n) * eps * np.where(size > 0, size, 1)
        assert (np.abs(exact @ v - v * w[:, None]).max((1, 2)) <= bound).all()
        assert (np.abs(np.linalg.eigvalsh(exact) - w).max(1) <= bound).all()
        assert (np.abs(v.swapaxes(1, 2) @ v - np.eye(n)) <= 8 * eps).all()
    if n > 3:
        return
    # The smallest eigenvalue of a graded matrix is as exact as the largest: it is that of the
    # inverse.
    scale, ones = np.logspace(0, -6, n), np.ones((n, n))
    graded = (np.eye(n) + 0.3 * ones) * scale * scale[:, None]
    inverse = (np.eye(n) - 0.3 / (1 + 0.3 * n) * ones) / scale / scale[:, None]
    w = in_kernel(linalg.eigh, graded.astype(dtype)[None])[1][0]
    smallest = 1 / np.linalg.eigvalsh(inverse)[-1]
    np.testing.assert_allclose(w[0], smallest, rtol=20 * eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_eigh_of_two_has_the_signs_of_lapack(dtype, wide):
    """In a kernel and in stacks, which call nothing for it."""
    off = np.concatenate([-np.logspace(-20, 0, 50), np.logspace(-20, 0, 50)])
    whole = np.array([*itertools.product(range(-2, 3), repeat=3)])
    few = np.stack([rng.normal(size=100), off, rng.normal(size=100)], 1)
    a = np.concatenate([whole, few, few[:, ::-1] * 1e-5])[:, [0, 1, 1, 2]]
    a = a.reshape(-1, 2, 2).astype(dtype)
    solve = scipy.linalg.get_lapack_funcs("syevd", (a,))
    expected = [solve(x, lower=1)[:2] for x in a]
    eigh = functools.partial(linalg.eigh, symmetrize_input=False)
    assert calls_nothing(eigh, a) and not calls_nothing(eigh, a[0])
    (one_v, one_w), (v, w) = weft.jit(eigh)(a[-1]), weft.jit(eigh)(a)
    for some_v, some_w in ((v, w), in_kernel(eigh, a)):
        for x, y, (values, vectors) in zip(some_v, some_w, expected, strict=True):
            eps = np.finfo(dtype).eps * (np.abs(values).max() or 1)
            assert (np.abs(y - values) <= 4 * eps).all()
            gap = max(values[1] - values[0], eps)
            assert (np.abs(x - vectors) <= min(8 * eps / gap, 0.1)).all()
    assert_close(one_v, v[-1]), assert_close(one_w, w[-1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (8, 8), (6, 3), (2, 5)])
def test_svd_in_kernels(shape, dtype, wide):
    a = special_matrices(*shape, dtype)
    eps, k = np.finfo(dtype).eps, min(shape)
    exact = a[:-2].astype("float64")
    size = np.abs(exact).max((1, 2))
    bound = errors_of_lapack(k) * eps * np.where(size > 0, size, 1)
    right = np.linalg.svd(exact, compute_uv=False)
    for full in (False, True):
        results = in_kernel(functools.partial(linalg.svd, full_matrices=full), a)
        u, s, vt = all_nan_at_the_end(results)
        assert [x.dtype for x in results] == [dtype] * 3
        assert u.shape[1:] == (shape[0], shape[0] if full else k)
        assert vt.shape[1:] == (shape[1] if full else k, shape[1])
        assert (np.diff(s) <= 0).all() and (s >= 0).all()
        product = u[:, :, :k] * s[:, None] @ vt[:, :k]
        assert (np.abs(product - exact).max((1, 2)) <= bound).all()
        assert (np.abs(right - s).max(1) <= bound).all()
        assert (np.abs(u.swapaxes(1, 2) @ u - np.eye(u.shape[-1])) <= 10 * eps).all()
        assert (np.abs(vt @ vt.swapaxes(1, 2) - np.eye(vt.shape[-2])) <= 10 * eps).all()
    (s,) = all_nan_at_the_end(in_kernel(functools.partial(linalg.svd, compute_uv=False), a))
    assert (np.abs(right - s).max(1) <= bound).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (8, 8), (6, 3), (2, 5)])
def test_qr_in_kernels(shape, dtype, wide):
    a = special_matrices(*shape, dtype)
    eps, exact = np.finfo(dtype).eps, a[:-2].astype("float64")
    size = np.abs(exact).max((1, 2))
    unit = eps * np.where(size > 0, size, 1)
    for full in (False, True):
        qr = functools.partial(linalg.qr, full_matrices=full)
        results, plain = in_kernel(qr, a), in_kernel(qr, a, kernels="never")
        assert [x.dtype for x in results] == [dtype] * 2
        q, r = (x[:-2].astype("float64") for x in results)
        assert not np.tril(r, -1).any()
        assert (np.abs(q @ r - exact).max((1, 2)) <= 10 * unit).all()
        assert (np.abs(q.swapaxes(1, 2) @ q - np.eye(q.shape[-1])) <= 10 * eps).all()
        # Signs are LAPACK's, also of zeros; where a matrix is singular rounding decides.
        good = [0, 1, 2, 5, 8, 9, 11, 12, 13, 14, 15]
        for x, y in zip(results, plain, strict=True):
            largest = np.abs(y[good]).max((1, 2), keepdims=True)
            assert (np.abs(x[good] - y[good]) <= 100 * eps * largest).all()
            assert (np.isnan(x[:-1]) == np.isnan(y[:-1])).all()
        assert not np.isfinite(results[1][-1]).all()


@pytest.mark.parametrize("count", [1, 3])
def test_reflectors_in_kernels(count, wide):
    a = hard_matrices(5, 3, "float64")
    geqrf = scipy.linalg.get_lapack_funcs("geqrf", (a,))
    packed, taus = zip(*(geqrf(x)[:2] for x in a), strict=True)
    stacks = np.stack(packed), np.stack(taus)[:, :count]
    function = lambda a, taus: [linalg.householder_product(a, taus)]
    made, plain = (in_kernel(function, *stacks, kernels=k)[0] for k in ("always", "never"))
    np.testing.assert_allclose(made, plain, rtol=1e-13, atol=1e-13)


def test_products_of_no_reflectors_in_loops():
    def loop(a):
        def step(x, each):
            return x + 1 + wnp.sum(linalg.householder_product(each, each[0, :0])), None

        return weft.lax.scan(step, np.float32(0), a)[0]

    assert weft.jit(loop)(np.stack([S, S])) == 8


DECOMPOSITIONS = {
    "eigh": lambda x: linalg.eigh(x),
    "svd": lambda x: linalg.svd(x, full_matrices=False),
    "singular values": lambda x: [linalg.svd(x, compute_uv=False)],
    "qr": linalg.qr,
}


@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_stacks_in_kernels(name, wide):
    """A matrix that is not finite leaves the others of the stack right."""
    function, a = DECOMPOSITIONS[name], special_matrices(2, 2, "float32", is_symmetric=True)
    single = in_kernel(function, a)
    for mapped in (function, weft.vmap(weft.vmap(function))):
        lanes = in_kernel(mapped, a.reshape(2, -1, 1, 2, 2))
        for x, y in zip(lanes, single, strict=True):
            np.testing.assert_allclose(x.reshape(y.shape), y, rtol=1e-5, atol=1e-5)


def test_decompositions_in_kernels_have_derivatives(wide):
    a = hard_matrices(3, 3, "float64")[:3]

    def f(x):
        u, s, vt = linalg.svd(x)
        v, w = linalg.eigh(x)
        q, r = linalg.qr(x)
        return (s**3).sum() + (u @ vt)[0, 1] + (v * w**2 @ v.T)[0, 1] + (q[0] * r[1]).sum()

    made, plain = (in_kernel(weft.grad(f), a, kernels=k, most=9) for k in ("always", "never"))
    np.testing.assert_allclose(made[0], plain[0], rtol=1e-10)
    mapped = in_kernel(weft.vmap(weft.grad(f)), a[None], kernels="never")
    np.testing.assert_allclose(mapped[0][0], plain[0], rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize(
    "f",
    [
        lambda a: wnp.linalg.pinv(a, hermitian=True),
        lambda a: wnp.linalg.svd(a, hermitian=True, compute_uv=False),
        lambda a: wnp.linalg.cholesky(a),
        lambda a: wnp.linalg.eigvalsh(a, "U", symmetrize_input=False),
        lambda a: weft.scipy.linalg.solve(a, wnp.ones(3), assume_a="pos"),
        lambda a: weft.scipy.linalg.solve(a, wnp.ones(3), assume_a="pos", lower=True),
    ],
)
def test_derivatives_see_the_part_of_a_hermitian_matrix_that_counts(f, dtype):
    """Of matrices, and along tangents, that are not Hermitian."""
    draw = np.random.default_rng(0).normal
    imaginary = 1j if dtype is np.complex128 else 0
    a = np.diag([2.0, 4.0, 7.0]) + 0.2 * (draw(size=(3, 3)) + imaginary * draw(size=(3, 3)))
    da = draw(size=(3, 3)) + imaginary * draw(size=(3, 3))
    a, da = a.astype(dtype), da.astype(dtype)
    with weft.enable_x64(True):
        step = 1e-5 * da
        wanted = (f(a + step) - f(a - step)) / 2e-5
        np.testing.assert_allclose(weft.jvp(f, (a,), (da,))[1], wanted, rtol=1e-6, atol=1e-8)
