"""weft.scipy.linalg: against SciPy in 64 bits, and rows of `scipy_cases.py` against jax.

Many functions are called in one jitted function, which compiles once. By default the first row of
each function is compared with jax; all with WEFT_TESTS=all.
"""

import numpy as np
import pytest
import scipy.linalg
from conftest import EVERYTHING
from scipy_checks import check, sampled

import weft
import weft.numpy as wnp
import weft.test_util
from weft.errors import AttributeValueError, NotImplementedRuleError, ShapeError
from weft.scipy import linalg


@pytest.mark.parametrize("row", sampled("linalg"))
def test_as_jax(row):
    check("linalg", row, {name.partition(" ")[0] for name in VALUES} | FACTORS)


RNG = np.random.default_rng(7)
N = 7
A = RNG.normal(size=(N, N))
C = A + 1j * RNG.normal(size=(N, N))
POSITIVE = A @ A.T + N * np.eye(N)
HERMITIAN = C @ C.conj().T + N * np.eye(N)
TALL = RNG.normal(size=(N, 4))
B = RNG.normal(size=(N, 3))
V = RNG.normal(size=N)

# Each function of `linalg` and arrays, which SciPy has under the same name.
VALUES = {
    "block_diag": lambda s: s.block_diag(TALL, B, V),
    "cho_solve": lambda s: s.cho_solve(s.cho_factor(POSITIVE), B),
    "cho_solve lower": lambda s: s.cho_solve(s.cho_factor(HERMITIAN, True), B),
    "cholesky": lambda s: s.cholesky(POSITIVE),
    "cholesky complex": lambda s: s.cholesky(HERMITIAN, lower=True),
    "circulant": lambda s: s.circulant(V),
    "companion": lambda s: s.companion(V),
    "convolution_matrix": lambda s: s.convolution_matrix(V, 5),
    "convolution_matrix same": lambda s: s.convolution_matrix(V, 12, "same"),
    "convolution_matrix valid": lambda s: s.convolution_matrix(V, 3, "valid"),
    "det": lambda s: s.det(C),
    "dft": lambda s: s.dft(9, "sqrtn"),
    "eigh": lambda s: s.eigh(HERMITIAN, eigvals_only=True),
    "eigh_tridiagonal": lambda s: s.eigh_tridiagonal(V, V[1:], eigvals_only=True),
    "eigh_tridiagonal some": lambda s: s.eigh_tridiagonal(
        V, V[1:], eigvals_only=True, select="i", select_range=(2, 4)
    ),
    "expm": lambda s: s.expm(A),
    "expm large": lambda s: s.expm(5 * C) * 1e-8,
    "expm small": lambda s: s.expm(1e-3 * A),
    "expm_frechet": lambda s: s.expm_frechet(A, B @ B.T),
    "fiedler": lambda s: s.fiedler(V),
    "fiedler_companion": lambda s: s.fiedler_companion(V),
    "fiedler_companion even": lambda s: s.fiedler_companion(V[:6]),
    "hadamard": lambda s: s.hadamard(8),
    "hankel": lambda s: s.hankel(V, B[:, 0]),
    "helmert": lambda s: s.helmert(6),
    "helmert full": lambda s: s.helmert(6, full=True),
    "hilbert": lambda s: s.hilbert(6),
    "inv": lambda s: s.inv(C),
    "invhilbert": lambda s: s.invhilbert(9).astype(float) * 1e-12,
    "invpascal": lambda s: s.invpascal(6),
    "invpascal lower": lambda s: s.invpascal(6, "lower"),
    "leslie": lambda s: s.leslie(V, V[1:]),
    "lu": lambda s: s.lu(TALL),
    "lu wide": lambda s: s.lu(TALL.T, permute_l=True),
    "lu_solve": lambda s: s.lu_solve(s.lu_factor(A), B),
    "lu_solve transposed": lambda s: s.lu_solve(s.lu_factor(C), B, trans=1),
    "lu_solve adjoint": lambda s: s.lu_solve(s.lu_factor(C), B, trans=2),
    "pascal": lambda s: s.pascal(9),
    "pascal lower": lambda s: s.pascal(9, "lower"),
    "pascal upper": lambda s: s.pascal(9, "upper"),
    "polar": lambda s: s.polar(TALL),
    "qr_multiply": lambda s: s.qr_multiply(A, B, "left")[0],
    "solve": lambda s: s.solve(C, B),
    "solve_sylvester": lambda s: s.solve_sylvester(A, TALL[:4], TALL),
    "solve_triangular": lambda s: s.solve_triangular(np.triu(POSITIVE), B),
    "solve_triangular lower": lambda s: s.solve_triangular(np.tril(HERMITIAN), B, 2, lower=True),
    "sqrtm": lambda s: s.sqrtm(POSITIVE),
    "sqrtm complex": lambda s: s.sqrtm(C),
    "svd": lambda s: s.svd(TALL, compute_uv=False),
    "toeplitz": lambda s: s.toeplitz(V, B[:, 0]),
    "toeplitz complex": lambda s: s.toeplitz(C[0]),
}


def test_values_as_scipy():
    with weft.enable_x64(True):
        got = weft.jit(lambda: {name: f(linalg) for name, f in VALUES.items()})()
    expected = {name: f(scipy.linalg) for name, f in VALUES.items()}
    for name in VALUES:
        for x, y in zip(*map(_listed, (got[name], expected[name])), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10, err_msg=name)


def _listed(x):
    return x if isinstance(x, (tuple, list)) else [x]


# Those that the next test checks.
FACTORS = {"eigh", "eigh_tridiagonal", "funm", "hessenberg", "polar", "qr", "rsf2csf", "schur"}


def test_factors_multiply_to_the_matrix():
    def products(a, c):
        """Pairs that are equal."""
        q, r, p = linalg.qr(a, mode="economic", pivoting=True)
        full, upper = linalg.qr(c)
        t, z = linalg.schur(a)
        tc, zc = linalg.rsf2csf(t, z)
        t2, z2 = linalg.schur(c, output="complex")
        h, hq = linalg.hessenberg(c, calc_q=True)
        w, v = linalg.eigh(c @ c.conj().T)
        d, e = a[0], c[0, 1:].astype(c.dtype)
        wt, vt = linalg.eigh_tridiagonal(d.astype(c.dtype), e)
        tri = wnp.diag(d) + wnp.diag(e, -1) + wnp.diag(e.conj(), 1)
        u, positive = linalg.polar(c, "right", method="svd")
        u2, positive2 = linalg.polar(c[:3], "left")
        f = linalg.funm(c, wnp.exp)
        eye = wnp.eye(N)
        x = linalg.solve_sylvester(c, a[:3, :3], a[:, :3])
        return [
            (c @ x + x @ a[:3, :3], a[:, :3]),
            (q @ r, a[:, p]),
            (full @ upper, c),
            (z @ t @ z.T, a),
            (zc @ tc @ zc.conj().T, a),
            (wnp.tril(tc, -1), 0 * tc),
            (zc @ zc.conj().T, eye),
            (z2 @ t2 @ z2.conj().T, c),
            (hq @ h @ hq.conj().T, c),
            (wnp.tril(h, -2), 0 * h),
            (hq @ hq.conj().T, eye),
            (v * w @ v.conj().T, c @ c.conj().T),
            (tri @ vt, vt * wt),
            (u @ positive, c),
            (positive2 @ u2, c[:3]),
            (u2 @ u2.conj().T, eye[:3, :3]),
            (f, linalg.expm(c)),
            (linalg.expm(wnp.triu(a), upper_triangular=True), linalg.expm(wnp.triu(a))),
            (linalg.solve(POSITIVE, B, assume_a="pos"), wnp.linalg.solve(POSITIVE, B)),
            (linalg.solve_sylvester(a, a, a), eye / 2),
            (linalg.solve_sylvester(a, a, a, method="eigen"), eye / 2),
        ]

    with weft.enable_x64(True):
        for i, (x, y) in enumerate(weft.jit(products)(A, C)):
            np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9, err_msg=f"pair {i}")


def test_stacks_of_matrices_are_as_vmap():
    stack = np.stack([POSITIVE, A]).astype(np.float32) / 8

    def both(stack):
        functions = [
            linalg.expm,
            linalg.lu,
            lambda a: linalg.solve_sylvester(a, a, a),
            lambda a: linalg.lu_solve(linalg.lu_factor(a), a),
            lambda a: linalg.hessenberg(a, calc_q=True),
            linalg.toeplitz,
        ]
        return [(f(stack) if f is not linalg.toeplitz else f(stack[:, 0]),
                 weft.vmap(f)(stack if f is not linalg.toeplitz else stack[:, 0]))
                for f in functions]  # fmt: skip

    for x, y in weft.jit(both)(stack):
        for each, other in zip(_listed(x), _listed(y), strict=True):
            np.testing.assert_allclose(each, other, rtol=2e-4, atol=2e-4)


DIFFERENTIABLE = {
    "expm": (linalg.expm, (A[:3, :3],)),
    "solve": (lambda a, b: linalg.solve(a @ a.T, b, assume_a="pos"), (A, B)),
    "solve_sylvester": (linalg.solve_sylvester, (POSITIVE / 8, TALL[:4], TALL)),
    "lu_solve": (lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), (POSITIVE / 8, B)),
    "qr_multiply": (lambda a, b: linalg.qr_multiply(a, b, "left")[0], (POSITIVE / 8, B)),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE if EVERYTHING else ["expm"])
def test_derivatives(name):
    f, args = DIFFERENTIABLE[name]
    with weft.enable_x64(True):
        # Reverse mode is the transposed forward mode, which it needs.
        modes = ("fwd", "rev") if EVERYTHING else ("rev",)
        weft.test_util.check_grads(weft.jit(f), args, 1, modes, atol=1e-4, rtol=1e-4)


def test_whole_numbers_are_exact():
    with weft.enable_x64(True):
        np.testing.assert_array_equal(linalg.invhilbert(8), scipy.linalg.invhilbert(8))
        np.testing.assert_array_equal(linalg.invpascal(10), scipy.linalg.invpascal(10))
    assert np.isinf(linalg.invhilbert(500)).any()


def test_results_of_primitives_are_lists():
    """As jax gives them, so that trees of results have one structure."""
    for factored in (linalg.schur(A), weft.lax.linalg.lu(A), weft.lax.linalg.tridiagonal(A @ A.T)):
        assert type(factored) is list
    assert type(linalg.lu_factor(A)) is tuple


def test_what_has_no_answer_is_nan():
    def answers(a, nilpotent, eye):
        return (
            linalg.expm(a, max_squarings=3),
            linalg.solve_sylvester(eye, -eye, eye),
            linalg.sqrtm(nilpotent),
            linalg.cholesky(-eye),
        )

    nilpotent, eye = np.array([[0, 1], [0, 0]], np.float32), np.eye(2, dtype=np.float32)
    found = weft.jit(answers)(1e4 * A.astype(np.float32), nilpotent, eye)
    assert all(np.isnan(x).all() for x in found[:2]) and all(np.isnan(x).any() for x in found)


def test_expm_takes_bools():
    ones = np.ones((2, 2))
    np.testing.assert_allclose(linalg.expm(ones.astype(bool)), scipy.linalg.expm(ones), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: linalg.eigh(A, A), NotImplementedRuleError, r"\[eigh\] expected b=None"),
        (lambda: linalg.solve(A, B, assume_a="x"), AttributeValueError, "assume_a 'gen'"),
        (lambda: linalg.expm(B), ShapeError, r"\[expm\] expected square matrices"),
        (lambda: linalg.polar(TALL, "left"), NotImplementedRuleError, "method='svd' takes all"),
        (lambda: linalg.lu_solve((A, V), B, trans=3), AttributeValueError, "trans to be 0, 1 or 2"),
        (lambda: linalg.hadamard(6), AttributeValueError, "a power of 2; got 6"),
        (lambda: linalg.leslie(V, V), ShapeError, r"f \[..., n\] and s \[..., n - 1\]"),
    ],
)
def test_mistakes_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
