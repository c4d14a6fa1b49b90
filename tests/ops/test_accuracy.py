"""Functions against correctly rounded values of mpmath, kept in golden/accuracy.npz by
tools/accuracy: none is off by more than its limit; derivatives at extremes.
"""

import numpy as np
import pytest
from accuracy_cases import CASES, DTYPES, LIMIT, REASONS, limit, ulps
from conftest import ROOT

import weft

SAMPLE = np.load(ROOT / "tests" / "golden" / "accuracy.npz")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_errors_in_ulps(dtype):
    """One program computes all functions at their samples."""
    names = list(CASES)
    wide = {name: SAMPLE[f"{name}|{dtype}"] for name in names}
    arguments = {name: wide[name][0].astype(DTYPES[dtype]) for name in names}
    with weft.enable_x64(True):
        results = weft.jit(lambda xs: {name: CASES[name].function(xs[name]) for name in names})(
            arguments
        )
    exceeded = []
    for name in names:
        errors = ulps(np.asarray(results[name]), *wide[name][1:])
        worst = int(np.argmax(errors))
        if errors[worst] > limit(name, dtype)[0]:
            exceeded.append((name, arguments[name][worst], errors[worst]))
    assert not exceeded


def test_log1p_keeps_small_numbers():
    for dtype, small in (("float32", 2.0**-126), ("float64", 2.0**-1022)):
        with weft.enable_x64(True):
            x = np.array([-0.0, 0.0, small, -small], dtype)
            found = np.asarray(weft.numpy.log1p(x))
        assert found.tobytes() == x.tobytes()


def test_every_limit_above_the_usual_one_has_a_reason():
    for (name, dtype), (bound, reason) in REASONS.items():
        assert name in CASES and dtype in DTYPES
        assert bound > LIMIT and len(reason) > 10


def test_the_sample_has_every_function():
    assert set(SAMPLE.files) == {f"{name}|{d}" for name in CASES for d in ("float32", "float64")}


# Where a value is a number and its derivative has no limit.
WITHOUT_SLOPE = {
    "gammaln": lambda x: x < 0,  # poles
    "entr": lambda x: x < 0,  # -inf
    "fresnel S": np.isinf,
    "fresnel C": np.isinf,
}
# Second derivatives that must be numbers at all points, where the function is one.
TWICE = [
    "arctan",
    "arcsinh",
    "tanh",
    "expm1",
    "erf",
    "erfc",
    "sigmoid",
    "log_sigmoid",
    "softplus",
    "silu",
    "mish",
    "gelu (tanh)",
    "gelu (erf)",
    "erfcx",
    "ndtr",
    "log_ndtr",
    "norm.pdf",
    "norm.logpdf",
    "norm.logcdf",
    "norm.logsf",
    "dawsn",
    "expi",
    "exp1",
    "i0",
    "i1",
    "i0e",
    "i1e",
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_at_extremes(dtype):
    """No NaN, where infinities would meet zeros in a product."""
    info = np.finfo(dtype)
    sizes = [float(info.tiny), 1e-30, 1e-10, 1, 10, 30, 100, 1e4, 1e10, 1e30, info.max, np.inf]
    points = np.array(sizes + [-x for x in sizes], dtype)

    def at_points(function, times):
        for _ in range(times):
            function = weft.grad(function)
        return weft.vmap(function)

    def everything(points):
        values = {name: at_points(case.function, 0)(points) for name, case in CASES.items()}
        first = {name: at_points(case.function, 1)(points) for name, case in CASES.items()}
        second = {name: at_points(CASES[name].function, 2)(points) for name in TWICE}
        return values, (first, second)

    with weft.enable_x64(True):
        values, derivatives = weft.jit(everything)(points)
    for slopes in derivatives:
        for name, found in slopes.items():
            without = WITHOUT_SLOPE.get(name, np.isnan)(points)
            lost = np.isnan(found) & ~np.isnan(values[name]) & ~without
            assert not lost.any(), (name, points[lost])


EXTREME = [
    # name, point, the first and the second derivative
    ("erfcx", 1e10, -5.6418958e-21, 1.1283792e-30),
    ("erfcx", np.inf, 0, 0),
    ("erfcx", -1e10, -np.inf, None),
    ("log_ndtr", -1e10, 1e10, -1),
    ("log_ndtr", -np.inf, np.inf, -1),
    ("log_ndtr", 1e5, 0, 0),
    ("log_ndtr", np.inf, 0, 0),
    ("norm.logsf", 1e10, -1e10, -1),
    ("tanh", 1e-20, 1, -2e-20),
    ("arctanh", 1e-20, 1, 2e-20),
    ("arcsin", 1e-20, 1, 1e-20),
    ("arcsinh", 1e30, 1e-30, None),
    ("expm1", -20, 2.0611536e-09, 2.0611536e-09),
    ("silu", np.inf, 1, 0),
    ("silu", -np.inf, 0, 0),
    ("gelu (tanh)", 1e30, 1, 0),
    ("gelu (erf)", -1e30, 0, 0),
    ("digamma", 1e30, 1e-30, None),
    ("dawsn", 1e10, -5e-21, 1e-30),
]


def test_values_of_derivatives_at_extremes():
    def both(x):
        slopes = []
        for i, (name, *_) in enumerate(EXTREME):
            first = weft.grad(CASES[name].function)
            slopes.append((first(x[i]), weft.grad(first)(x[i])))
        return slopes

    points = np.array([row[1] for row in EXTREME], np.float32)
    for (name, x, *right), got in zip(EXTREME, weft.jit(both)(points), strict=True):
        for wanted, slope in zip(right, got, strict=True):
            if wanted is not None:
                np.testing.assert_allclose(slope, wanted, rtol=1e-5, err_msg=f"{name} at {x}")


def test_complex_signs():
    z = np.array(
        [3e38 + 3e38j, -1e-37 + 0j, 0j, complex(np.inf, 2), complex(1, -np.inf)], np.complex64
    )
    half = np.sqrt(np.float32(0.5))
    right = np.array([half + half * 1j, -1, 0, 1, -1j], np.complex64)
    np.testing.assert_allclose(weft.numpy.sign(z), right, rtol=1e-6)
    slopes = weft.vmap(weft.grad(weft.numpy.abs))(z)
    np.testing.assert_allclose(slopes, np.conj(right), rtol=1e-6)


def test_cube_roots_of_subnormal_numbers():
    for dtype, x in (("float32", 1e-42), ("float64", 5e-324), ("bfloat16", 1e-39)):
        with weft.enable_x64(True):
            x = np.array([x, -x]).astype(DTYPES[dtype])
            root = np.asarray(weft.numpy.cbrt(x)).astype(float)
        rtol = 1e-2 if dtype == "bfloat16" else 1e-6
        np.testing.assert_allclose(root, np.cbrt(x.astype(float)), rtol=rtol)
