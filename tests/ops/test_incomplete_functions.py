"""The incomplete gamma and beta functions over wide arguments, against SciPy and against numbers
from series summed with 45 digits."""

import numpy as np
import pytest
import scipy.special
import scipy.stats

import weft
from weft import compiler, lax
from weft.errors import AttributeValueError, NotImplementedRuleError, OperandError

COUNT = 2000
SMALLEST = {"float32": 1e-36, "float64": 1e-200}
TOLERANCE = {"float32": 1.2e-7, "float64": 2e-11}


def gamma_points(rng, low, high, spread):
    a = 10 ** rng.uniform(low, high, COUNT)
    near = np.abs(a * (1 + spread * rng.normal(size=COUNT) / np.sqrt(a)))
    far = 10 ** rng.uniform(low - 2, min(high, 3) + 1, COUNT)
    return a, np.where(rng.random(COUNT) < 0.5, near, far) + 1e-30


def beta_points(rng, low, high):
    a, b = 10 ** rng.uniform(low, high, (2, COUNT))
    near = a / (a + b) + 3 * rng.normal(size=COUNT) * np.sqrt(a * b / (a + b) ** 3)
    x = np.where(rng.random(COUNT) < 0.5, rng.random(COUNT), near)
    return a, b, np.clip(x, 1e-30, 1 - 1e-7)


def assert_close(function, reference, *arguments, tolerance=0, smallest=-np.inf):
    for dtype in ("float32", "float64"):
        arrays = [np.asarray(x, dtype) for x in arguments]
        with weft.enable_x64(True):
            got = np.asarray(function(*arrays))
        assert got.dtype == dtype
        want = reference(*[x.astype("float64") for x in arrays])
        assert not np.isnan(got).any()
        kept = (np.abs(want) > SMALLEST[dtype]) & (np.minimum(want, 1 - want) >= smallest)
        limit = max(TOLERANCE[dtype], tolerance)
        np.testing.assert_allclose(got[kept], want[kept], rtol=limit)


@pytest.mark.parametrize("low, high, spread", [(-8, 1, 2), (0, 4, 6), (4, 9, 2)])
@pytest.mark.parametrize(
    "function, reference",
    [(lax.igamma, scipy.special.gammainc), (lax.igammac, scipy.special.gammaincc)],
    ids=["igamma", "igammac"],
)
def test_incomplete_gamma(function, reference, low, high, spread):
    points = gamma_points(np.random.default_rng(1), low, high, spread)
    # SciPy itself loses all digits in the tails of large parameters.
    assert_close(function, reference, *points, smallest=1e-4 if high == 9 else -np.inf)


@pytest.mark.parametrize("low, high", [(-4, 1), (-2, 3), (0, 9)])
def test_incomplete_beta(low, high):
    points = beta_points(np.random.default_rng(2), low, high)
    assert_close(lax.betainc, scipy.special.betainc, *points, tolerance=1e-10)


def test_densities():
    rng = np.random.default_rng(3)
    a, x = gamma_points(rng, -2, 6, 2)
    slope = weft.vmap(weft.grad(lax.igamma, 1))
    assert_close(slope, lambda a, x: scipy.stats.gamma.pdf(x, a), a, x, tolerance=2e-8)
    a, b, x = beta_points(rng, -2, 8)
    slope = weft.vmap(weft.grad(lax.betainc, 2))
    assert_close(slope, lambda a, b, x: scipy.stats.beta.pdf(x, a, b), a, b, x)


# a, x, dP/da, -(dP/da) / (dP/dx)
SLOPES = [
    (1e-05, 1e-06, -13.236559930212415, 1.3238325580449533),
    (0.003, 0.5, -0.5615252881497276, 154.35459595046385),
    (0.2, 0.95, -0.3238426274980173, 3.6896499466031263),
    (0.7, 3.0, -0.06559756950385262, 2.3779393639106448),
    (2.5, 1.0, -0.1800996069540415, 0.6507938596862822),
    (6.0, 40.0, -8.297383873167282e-12, 2.288767871525),
    (9.5, 9.0, -0.13232095123155924, 0.9904455907763817),
    (10.0, 10.5, -0.12264418627727564, 1.0418336183460284),
    (11.5, 2.0, -6.144965723855889e-06, 0.37309495818056043),
    (30.0, 55.0, -5.823207509051182e-05, 1.3408481463610888),
    (250.0, 250.0, -0.025239738172700543, 1.000666932722899),
    (2000.0, 1900.0, -0.0006889100454374233, 0.9746538045785402),
    (100000.0, 100400.0, -0.0005669325882635275, 1.0019990086502513),
    (500000.0, 499000.0, -0.00020748436771511345, 0.9989996656656652),
]


def test_derivatives_by_the_parameter():
    a, x, slope, sample_slope = np.array(SLOPES).T
    with weft.enable_x64(True):
        np.testing.assert_allclose(lax.igamma_grad_a(a, x), slope, rtol=1e-13)
        np.testing.assert_allclose(lax.random_gamma_grad(a, x), sample_slope, rtol=1e-13)
        by_grad = weft.vmap(weft.grad(lax.igammac))(a, x)
        np.testing.assert_allclose(by_grad, -slope, rtol=1e-13)


# a, x, the second derivative of P by a, and that by a and x
SECOND = [
    (1e-05, 1e-06, 173.58502441065207, 999734.2604070046),
    (0.003, 0.5, -0.5810374486158978, 1.2121908742807954),
    (0.2, 0.95, -0.37571571698588874, 0.4597199318023035),
    (0.7, 3.0, -0.09709343769328221, 0.06396162918704505),
    (2.5, 1.0, 0.17286396981617788, -0.19459039559527955),
    (6.0, 20.0, -0.00011830964253863842, 7.088250173059395e-05),
    (9.5, 9.0, 0.007341662764426951, -6.857541838594526e-05),
    (10.0, 10.0, 0.00010749206936509897, 0.006359656382142227),
    (10.0, 10.5, -0.005930653407600921, 0.011727535806432154),
    (11.5, 5.0, 0.006745552559758041, -0.00975336106534713),
    (30.0, 45.0, -0.0014122483428958034, 0.0011992664291061886),
    (250.0, 250.0, 3.367527870922165e-08, 5.047946287016451e-05),
    (1.0, 1.0, 0.033618035299959194, 0.21234577623937842),
    (2000.0, 1950.0, 0.00012114327319722758, -0.00012146295634019541),
]
# a, b, x, the derivatives of I by a and by b, the second one by a
BETA_SLOPES = [
    (0.5, 0.5, 0.3, -0.6428114811572838, 0.46874458391550544, 1.3451995000262817),
    (2.0, 3.0, 0.4, -0.24086937608755657, 0.15634433641359877, 0.05839660125154109),
    (0.0001, 2.0, 0.5, -0.1931684480384077, 2.1612073120705745e-05, -0.21265540333085656),
    (5.0, 0.01, 0.9, -0.0013697149029951229, 0.594881423780261, 0.0004423414725113342),
    (30.0, 40.0, 0.5, -0.025039368671131827, 0.021652489043227995, -0.0035031724173252565),
    (30.0, 40.0, 0.2, -6.511178748489484e-06, 2.8745231179385808e-06, 5.0644646450537476e-06),
    (30.0, 40.0, 0.9, -9.14445813681762e-23, 2.1388408148779293e-22, -6.662749540203336e-23),
    (11.0, 0.5, 0.99, -0.015477328305694935, 0.819082877956602, 0.0008742108268075685),
    (0.3, 25.0, 0.01, -0.9469072039402452, 0.006963590107459192, 0.6728451406952606),
    (200.0, 300.0, 0.41, -0.019477054685530487, 0.013253355464568035, -0.0004420225571478137),
    (200.0, 300.0, 0.3, -3.141477273032247e-07, 1.682978076167301e-07, 9.10268380132778e-08),
    (1.0, 1.0, 0.5, -0.34657359027997264, 0.34657359027997264, 0.24022650695910072),
    (15.0, 15.0, 0.5, -0.0738585697475021, 0.0738585697475021, 0.0025307626130260216),
    (3.0, 0.2, 0.7, -0.03189958310520135, 0.3146547971252384, 0.020853855477668715),
    (1000.0, 1000.0, 0.5, -0.008922479336000141, 0.008922479336000141, 4.4630987157590205e-06),
    (0.1, 50.0, 0.001, -2.0303632994399314, 0.0014948484407686718, 4.2804459326419435),
    (2.0, 1.0, 0.75, -0.16182116575412678, 0.41900378298995217, 0.04655304833071035),
]


def test_second_derivatives_of_gamma():
    a, x, by_a, by_both = np.array(SECOND).T
    with weft.enable_x64(True):
        for function, sign in [(lax.igamma_grad_a, 1), (weft.grad(lax.igammac), -1)]:
            slopes = weft.jit(weft.vmap(weft.grad(function, (0, 1))))(a, x)
            np.testing.assert_allclose(slopes[0], sign * by_a, rtol=1e-10)
            np.testing.assert_allclose(slopes[1], sign * by_both, rtol=1e-11)


def test_derivatives_of_beta_by_its_parameters():
    a, b, x, by_a, by_b, by_a_twice = np.array(BETA_SLOPES).T
    with weft.enable_x64(True):
        slope = weft.grad(lax.betainc, (0, 1))
        slopes = weft.jit(weft.vmap(slope))(a, b, x)
        np.testing.assert_allclose(slopes[0], by_a, rtol=1e-12)
        np.testing.assert_allclose(slopes[1], by_b, rtol=1e-12)
        twice = weft.jit(weft.vmap(weft.grad(weft.grad(lax.betainc))))(a, b, x)
        np.testing.assert_allclose(twice, by_a_twice, rtol=1e-10)


def test_one_function_for_all_uses():
    def f(a, x):
        return lax.igamma(a, x) + lax.igamma(x, a) + weft.vmap(lax.igamma)(a, x)

    x = np.ones(3, np.float32)
    program = weft.jit(f).lower(x, x).as_text()
    assert program.count("func.func private @igamma") == 1 and program.count("call @igamma") == 2
    optimised = compiler.optimize(weft.jit(f).trace(x, x).graph)
    assert "while" in str(optimised)
    assert compiler.emit_stablehlo(weft.jit(f).trace(x, x).graph).count("func.func private") == 1


def test_mistakes_in_derivatives_of_functions():
    bind = weft._core.bind
    for attrs, error, words in [
        ({"function": "sin", "by": (0,)}, AttributeValueError, "element-wise function.*sin"),
        ({"function": "igamma", "by": (2,)}, AttributeValueError, "operands, 0 to 1.*by="),
        ({"function": "igamma", "by": ()}, AttributeValueError, "operands, 0 to 1.*by="),
        ({"function": "igamma", "by": (0,) * 9}, NotImplementedRuleError, "at most 6 derivatives"),
        ({"function": "regularized_incomplete_beta", "by": (0,)}, OperandError, "3 operands"),
    ]:
        with pytest.raises(error, match=words):
            bind("derivative", 1.0, 2.0, **attrs)


def test_median_of_large_parameters():
    with weft.enable_x64(True):
        for a in (1e6, 1e9, 1e15):
            median = 0.5 + 1 / (3 * np.sqrt(2 * np.pi * a))  # P(a, a), to first order
            np.testing.assert_allclose(lax.igamma(a, a), median, rtol=1e-9)
            np.testing.assert_allclose(lax.igammac(a, a), 1 - median, rtol=1e-9)
            np.testing.assert_allclose(lax.betainc(a, a, 0.5), 0.5, rtol=1e-12)


EDGES = (0.0, 1e-300, 1e-5, 1.0, 1e5, 1e300, np.inf, np.nan, -1.0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_edges(dtype):
    dtype = weft.dtypes.as_dtype(dtype)
    with weft.enable_x64(True):
        with np.errstate(over="ignore"):
            a, x = np.meshgrid(np.array(EDGES, dtype), np.array(EDGES, dtype))
        wide_a, wide_x = a.astype("float64"), x.astype("float64")
        lower, upper = np.asarray(lax.igamma(a, x)), np.asarray(lax.igammac(a, x))
        want = scipy.special.gammainc(wide_a, wide_x)
        # There is no limit at (0, 0) and (inf, inf).
        none = ((wide_a == 0) & (wide_x == 0)) | (np.isinf(wide_a) & np.isinf(wide_x))
        want[none] = np.nan
        rtol = float(weft.dtypes.finfo(dtype).eps)
        np.testing.assert_allclose(lower.astype("float64"), want, rtol=max(rtol, 1e-10))
        np.testing.assert_array_equal(np.isnan(upper.astype("float64")), np.isnan(want))
        b = np.asarray(lax.betainc(a, np.ones_like(a), np.full_like(a, 0.25)))
        np.testing.assert_array_equal(np.isnan(b.astype("float64")), ~(wide_a >= 0))


def test_what_does_not_fit_the_power_is_no_nan():
    assert lax.igamma(np.float32(1), np.float32(1e20)) == 1
    assert lax.igammac(np.float32(1), np.float32(1e20)) == 0
    assert lax.random_gamma_grad(np.float32(1e20), np.float32(1e20)) == 1
