"""weft.lax.linalg beyond the op table: failures, mistakes, platforms, equal eigenvalues."""

import functools
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from conftest import verify_stablehlo

import weft
import weft.numpy as wnp
from weft import compiler, errors
from weft.lax import linalg
from weft.runtime import cuda

rng = np.random.default_rng(0)
A = rng.normal(size=(3, 3)).astype(np.float32)
S = (A @ A.T + 3 * np.eye(3)).astype(np.float32)
R = rng.normal(size=(4, 3)).astype(np.float32)


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
    solve = lambda b: linalg.triangular_solve(S, b, left_side=left_side, lower=True)
    lower = np.tril(S)
    want = np.linalg.solve(lower if left_side else lower.T, R.T).T
    assert_close(solve(R[0]), want[0])
    assert_close(weft.vmap(solve)(R), want, 1e-4)
    matrices = np.stack([R.T, 2 * R.T]) if left_side else np.stack([R, 2 * R])
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
    script = Path(__file__).with_name("cuda_compile.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_programs_are_shown():
    lowered = weft.jit(linalg.cholesky).lower(S)
    assert "lapack_spotrf_ffi" in lowered.as_text()
    assert "cholesky" in str(weft.make_jaxpr(linalg.cholesky)(S))
    assert linalg.cholesky_p.name == "cholesky"
