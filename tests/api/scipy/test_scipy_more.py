"""weft.scipy without linalg, special and stats: against SciPy in 64 bits, and rows of
`scipy_cases.py` against jax.

Many functions are called in one jitted function, which compiles once. By default the first row of
each function is compared with jax; all with WEFT_TESTS=all.
"""

import importlib

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.fft
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy_cases
from conftest import EVERYTHING
from scipy.spatial.transform import Rotation as ScipyRotation, Slerp as ScipySlerp
from scipy_checks import check, sampled

import weft
import weft.numpy as wnp
import weft.test_util
from weft.errors import AttributeValueError, NotImplementedRuleError, OperandError, ShapeError
from weft.scipy.cluster.vq import vq
from weft.scipy.interpolate import RegularGridInterpolator
from weft.scipy.ndimage import map_coordinates
from weft.scipy.optimize import minimize
from weft.scipy.signal import csd, stft
from weft.scipy.sparse.linalg import bicgstab, cg, gmres
from weft.scipy.spatial.transform import Rotation, Slerp


@pytest.mark.parametrize("row", sampled("more"))
def test_as_jax(row):
    check("more", row, {name.partition(" ")[0] for name in VALUES})


@pytest.mark.parametrize("row", sampled("solvers"))
def test_solvers_as_jax(row):
    check("solvers", row, SOLVERS)


@pytest.mark.parametrize("row", scipy_cases.rows("edges"))
def test_edges_as_jax(row):
    check("edges", row)


RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=50), RNG.normal(size=50)
Z = X[:20] + 1j * Y[:20]
M, K = RNG.normal(size=(6, 7)), RNG.normal(size=(4, 2))
AT = [RNG.uniform(-8, 12, 30), RNG.uniform(-8, 12, 30)]

# Each function of a module of weft.scipy, which SciPy has under the same name.
VALUES = {
    "convolve": lambda s: s.signal.convolve(X, Y[:7]),
    "convolve same": lambda s: s.signal.convolve(Z, Y[:6], "same"),
    "convolve matrices": lambda s: s.signal.convolve(M, K, "same"),
    "convolve valid": lambda s: s.signal.convolve(K, M, "valid"),
    "convolve2d": lambda s: s.signal.convolve2d(M, K, "same"),
    "correlate": lambda s: s.signal.correlate(Z, Z[3:9] * 1j),
    "correlate same": lambda s: s.signal.correlate(Y[:6], Z, "same"),
    "correlate valid": lambda s: s.signal.correlate(Z[:6], Z, "valid"),
    "correlate fft": lambda s: s.signal.correlate(M, K, method="fft"),
    "correlate2d": lambda s: s.signal.correlate2d(M, K, "same"),
    "correlate2d valid": lambda s: s.signal.correlate2d(K, M, "valid"),
    "fftconvolve": lambda s: s.signal.fftconvolve(M, M[:, :3], "same", axes=1),
    "detrend": lambda s: s.signal.detrend(M, axis=0),
    "detrend parts": lambda s: s.signal.detrend(X, bp=[10, 30]),
    "detrend constant": lambda s: s.signal.detrend(Z, type="constant"),
    "stft": lambda s: s.signal.stft(X, 5.0, nperseg=16, noverlap=5, nfft=20),
    "stft even": lambda s: s.signal.stft(X, nperseg=16, boundary="even", padded=False),
    "stft odd": lambda s: s.signal.stft(X, nperseg=15, boundary="odd", detrend="linear"),
    "istft": lambda s: s.signal.istft(s.signal.stft(X, nperseg=16)[2]),
    "csd": lambda s: s.signal.csd(X, Y, nperseg=16, average="median"),
    "welch": lambda s: s.signal.welch(X, 2.0, nperseg=15, scaling="spectrum"),
    "dct": lambda s: s.fft.dct(M),
    "dct ortho": lambda s: s.fft.dct(M, n=9, axis=0, norm="ortho"),
    "idct": lambda s: s.fft.idct(Z),
    "dctn": lambda s: s.fft.dctn(M, s=(5, 8)),
    "idctn": lambda s: s.fft.idctn(M, norm="ortho"),
    "vq": lambda s: s.vq.vq(M, M[:3] + 0.1),
    **{
        f"map_coordinates {mode} {order}": lambda s, mode=mode, order=order: (
            s.ndimage.map_coordinates(M, AT, order=order, mode=mode)
        )
        for mode in ("nearest", "mirror", "reflect")
        for order in (0, 1)
    },
    "RegularGridInterpolator": lambda s: s.interpolate.RegularGridInterpolator(
        (np.arange(6.0), np.arange(7.0) ** 2), M, bounds_error=False, fill_value=None
    )(np.stack(AT, -1)),
    "RegularGridInterpolator nearest": lambda s: s.interpolate.RegularGridInterpolator(
        (np.arange(6.0), np.arange(7.0) ** 2), M, method="nearest", bounds_error=False
    )(np.stack(AT, -1)),
}


class _Modules:
    """The modules of a package by the names that VALUES uses."""

    def __init__(self, package):
        for name in ("fft", "interpolate", "ndimage", "signal"):
            setattr(self, name, importlib.import_module(f"{package}.{name}"))
        self.vq = importlib.import_module(f"{package}.cluster.vq")


def test_values_as_scipy():
    ours = _Modules("weft.scipy")
    with weft.enable_x64(True):
        got = weft.jit(lambda: {name: f(ours) for name, f in VALUES.items()})()
    for name, f in VALUES.items():
        for x, y in zip(*map(_listed, (got[name], f(_Modules("scipy")))), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10, err_msg=name)


def _listed(x):
    return x if isinstance(x, (tuple, list)) else [x]


def test_windows_of_istft_take_part_in_promotion():
    spectra = wnp.ones((9, 4), "complex64")
    with weft.enable_x64(True):
        for window, dtype in (("hann", "float32"), (np.ones(16), "float64")):
            times, x = weft.scipy.signal.istft(spectra, window=window)
            assert times.dtype == dtype and x.dtype == dtype


WINDOWS = [
    "barthann", "bartlett", "blackman", "blackmanharris", "bohman", "boxcar", "cosine",
    "exponential", "flattop", "hamming", "hann", "lanczos", "nuttall", "parzen", "triang", "tukey",
    4.5, ("gaussian", 3.0), ("general_gaussian", 1.5, 3.0), ("general_hamming", 0.7),
    ("general_cosine", [0.5, 0.3, 0.2]), ("tukey", 0.3), ("exponential", None, 2.0),
]  # fmt: skip


def test_windows_by_name():
    from weft.scipy.signal._windows import window_of

    for n in (1, 8, 9):
        for window in WINDOWS:
            expected = scipy.signal.get_window(window, n)
            got = window_of("stft", window, n)
            np.testing.assert_allclose(got, expected, atol=1e-12, err_msg=f"{window} {n}")


# Names in `scipy_cases.py` of minimize, the iterations and what has to do with rotations.
SOLVERS = {"mini", "part", "vmap", "cg", "bicgstab", "gmres", "RG", "rd", "apply", "as_matrix"}


def rosenbrock(x):
    return wnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("method", ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"])
def test_minimize_finds_minima(method):
    def himmelblau(x):
        return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2

    starts = np.stack([np.zeros(2), np.array([-1.2, 1.0])])
    with weft.enable_x64(True):
        for f in (rosenbrock, himmelblau) if EVERYTHING else (rosenbrock,):
            found = weft.jit(weft.vmap(lambda x, f=f: minimize(f, x, method=method)))(starts)
            assert found.success.all()
            np.testing.assert_allclose(found.fun, 0, atol=1e-8)


def test_minimize_passes_arguments_and_stops():
    result = minimize(lambda x, a: wnp.sum((x - a) ** 2), wnp.zeros(3), (2.0,), method="BFGS")
    np.testing.assert_allclose(result.x, 2, atol=1e-5)
    assert result.success and result.status == 0 and result.hess_inv.shape == (3, 3)
    # A minimum far from 0, beside which rounding hides the decrease in float32.
    start = wnp.array([-1.2, 1.0])
    assert minimize(lambda x: wnp.sum((x - 3) ** 2) + wnp.prod(x), start, method="BFGS").success
    stopped = minimize(rosenbrock, wnp.zeros(2), method="BFGS", options={"maxiter": 2})
    assert stopped.status == 1 and stopped.nit == 2 and not stopped.success


def test_minimize_over_complex_numbers():
    method = "l-bfgs-experimental-do-not-rely-on-this"

    def himmelblau(z):
        x, y = wnp.real(z)[0], wnp.imag(z)[0]
        return (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2

    found = minimize(himmelblau, wnp.array([1 + 1j]), method=method)
    assert found.fun < 1e-6 and found.x.dtype == np.complex64 and found.fun.dtype == np.float32
    np.testing.assert_allclose(found.x, [3 + 2j], rtol=1e-4)
    # It is the search over the parts, also where it has not ended.
    options = {"maxiter": 2, "norm": 2}
    stopped = minimize(himmelblau, wnp.array([1 + 1j]), method=method, options=options)
    of_parts = minimize(
        lambda p: himmelblau(p[:1] + 1j * p[1:]), wnp.ones(2), method=method, options=options
    )
    np.testing.assert_allclose(stopped.x[0], of_parts.x[0] + 1j * of_parts.x[1], rtol=1e-5)
    np.testing.assert_allclose(stopped.jac, weft.grad(himmelblau)(stopped.x), rtol=1e-4)
    with pytest.raises(weft.errors.DTypeError, match="expected floating-point x0"):
        minimize(himmelblau, wnp.array([1j]), method="BFGS")


SYSTEM = RNG.normal(size=(12, 12)) + 8 * np.eye(12)
SYMMETRIC = SYSTEM @ SYSTEM.T


def test_iterations_solve_systems():
    rhs = RNG.normal(size=12)

    def residuals(a, symmetric, b):
        c = a + 1j * wnp.triu(a) / 4
        found = [
            (symmetric, cg(symmetric, b, tol=1e-10, M=lambda x: x / 64)[0]),
            (a, bicgstab(a, b, tol=1e-10)[0]),
            (c, bicgstab(c, b + 0j, tol=1e-10)[0]),
            (c, gmres(c, b + 0j, tol=1e-10, solve_method="incremental")[0]),
            (a, gmres(a, b, tol=1e-10, restart=3)[0]),
        ]
        if EVERYTHING:
            found.append((a, gmres(a, b, tol=1e-10)[0]))
        return [wnp.max(wnp.abs(m @ x - b)) for m, x in found]

    with weft.enable_x64(True):
        assert max(weft.jit(residuals)(SYSTEM, SYMMETRIC, rhs)) < 1e-8


def test_solutions_have_implicit_derivatives():
    def solutions(a, b):
        tree = {"b": b, "c": 2 * b}

        def apply(t):
            return {k: a @ v for k, v in t.items()}

        return gmres(apply, tree, tol=1e-12)[0]["c"] + cg(a @ a.T, b, tol=1e-12)[0]

    with weft.enable_x64(True):
        a, b, da, db = SYSTEM[:4, :4], X[:4], SYSTEM[4:8, :4] - 8 * np.eye(4), Y[:4]

        def derivatives(a, b, da, db):
            """Along a direction: by jvp, by vjp, by a quotient of differences."""
            out, forward = weft.jvp(solutions, (a, b), (da, db))
            found = weft.vjp(solutions, a, b)[1](out)
            backward = wnp.sum(found[0] * da) + wnp.sum(found[1] * db)
            step = 1e-4
            ahead, behind = weft.vmap(lambda h: solutions(a + h * da, b + h * db))(
                wnp.array([step, -step])
            )
            return forward, backward, wnp.sum(out * forward), (ahead - behind) / (2 * step)

        forward, backward, product, quotient = weft.jit(derivatives)(a, b, da, db)
    np.testing.assert_allclose(forward, quotient, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(backward, product, rtol=1e-8)


def test_rotations_as_scipy():
    quats, vectors = RNG.normal(size=(5, 4)), RNG.normal(size=(5, 3))
    times = np.arange(5.0)

    def all_of(rotation, slerp):
        r = rotation.from_quat(quats)
        other = rotation.from_rotvec(vectors)
        return [
            r.as_matrix(),
            r.as_rotvec(),
            r.as_mrp(),
            r.as_quat(canonical=True, scalar_first=True),
            *(r.as_euler(seq) for seq in ("xyz", "XYZ", "zxz", "ZYZ", "yzx")),
            rotation.from_matrix(r.as_matrix()).as_matrix(),
            rotation.from_mrp(vectors).as_matrix(),
            *(rotation.from_euler(seq, vectors).as_matrix() for seq in ("xyz", "YXZ", "zyz")),
            (r * other.inv()).as_matrix(),
            r.apply(vectors),
            r.apply(vectors, inverse=True),
            r.magnitude(),
            r.mean().as_matrix(),
            slerp(times, r)(np.array([0.3, 2.0, 3.7])).as_matrix(),
            rotation.from_euler("xyz", [0.1, np.pi / 2, 0.2] if rotation is ScipyRotation
                                else wnp.array([0.1, np.pi / 2, 0.2])).as_matrix(),
        ]  # fmt: skip

    with weft.enable_x64(True):
        got = weft.jit(lambda: all_of(Rotation, Slerp.init))()
    for i, (x, y) in enumerate(zip(got, all_of(ScipyRotation, ScipySlerp), strict=True)):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9, err_msg=f"result {i}")


def test_rotations_of_many_factors_stay_of_norm_one():
    step = Rotation.from_rotvec(wnp.array([0.1, 0.2, 0.3]))
    total = step
    for _ in range(200):
        total = total * step
    assert abs(np.linalg.norm(total.as_quat()) - 1) < 3e-7


def test_rotations_are_trees():
    r = Rotation.from_rotvec(wnp.array([0.1, 0.2, 0.3]))
    assert weft.tree.leaves(r)[0] is r.quat and r.single
    sequence = weft.vmap(Rotation.from_rotvec)(wnp.ones((3, 3)))
    assert len(sequence) == 3 and len(sequence[:2]) == 2 and sequence[0].single
    with pytest.raises(TypeError, match="has no length"):
        len(r)
    # At the identity the length of the vector has no derivative, but the rotation has.
    jacobian = weft.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())(wnp.zeros(3))
    np.testing.assert_allclose(jacobian, np.eye(3), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: minimize(rosenbrock, X, method="x"), AttributeValueError, "method 'BFGS' or"),
        (lambda: minimize(rosenbrock, K, method="BFGS"), ShapeError, "x0 to be a vector"),
        (lambda: cg(3, X), OperandError, "A to be a function or a matrix; got 3"),
        (lambda: cg(K, X), ShapeError, r"a square matrix; got shape \(4, 2\)"),
        (lambda: map_coordinates(M, AT, 3), NotImplementedRuleError, "order 0 or 1; got 3"),
        (lambda: map_coordinates(K.astype("uint8"), AT, 1, cval=-1), OverflowError, "-1 is out of"),
        (lambda: vq(M, K), ShapeError, "as many columns"),
        (lambda: stft(X, window="dpss"), AttributeValueError, "expected as window an array"),
        (lambda: csd(X, Y, scaling="x"), AttributeValueError, "scaling 'density'"),
        (lambda: Rotation.from_euler("xY", K), AttributeValueError, "three axes out of 'xyz'"),
        (lambda: Rotation.from_euler("xx", K), AttributeValueError, "neighbours differ"),
        (lambda: RegularGridInterpolator((X,), M), ShapeError, "vectors of as many points"),
    ],
)
def test_mistakes_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_sequences_stand_for_arrays():
    turned = Rotation.from_rotvec([0.0, 0.0, np.pi / 2]).apply([1.0, 2.0, 3.0])
    np.testing.assert_allclose(turned, [-2, 1, 3], rtol=1e-5)
    turns = Slerp.init([0, 1], Rotation.from_euler("z", [[0], [90]], degrees=True))
    np.testing.assert_allclose(turns([0.5]).as_rotvec(), [[0, 0, np.pi / 4]], atol=1e-6)
    got = map_coordinates([[1.0, 2.0], [3.0, 4.0]], [[0.5, 1.5], [0.2, 2.0]], 1)
    np.testing.assert_allclose(got, [2.2, 0], rtol=1e-5)
    with pytest.raises(ValueError, match="from_matrix"):
        Rotation.from_matrix(np.ones((2, 3)))
