"""Which functions are measured for accuracy, at which arguments, and how far off they may be.

`tools/accuracy` measures them against mpmath and writes docs/accuracy.md and the sample
golden/accuracy.npz, which `test_accuracy.py` checks without mpmath.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

import weft.numpy as jnp
from weft import lax, nn
from weft.scipy import special, stats

DTYPES = {
    "float32": np.dtype("float32"),
    "float64": np.dtype("float64"),
    "float16": np.dtype("float16"),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
# What a function may be off by if nothing else is said.
LIMIT = 4.0


@dataclass(frozen=True)
class Case:
    """A function of one argument.

    `near` are arguments around which more of them lie: roots, poles, ends of the domain and of
    formulas. `low` and `high` bound the arguments.
    """

    group: str
    function: object
    near: tuple[float, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    # Whether the value at 0 is that of one side, by the sign of the zero.
    one_sided: bool = False


_UNDERFLOW = "the factor logistic(x) is below the smallest normal number, which XLA takes for zero"
_EXPONENT = (
    "the argument of an exponential is rounded, and a large one has that error times its size"
)
_ROOTS = "it is the difference of larger numbers near its roots at negative arguments"
_INTEGRALS = "near 1 the series and the continued fraction are sums of larger numbers"
_FADDEEVA = "Weideman's approximation has the absolute error of numbers near 1"
# What a function may be off by where that is more than LIMIT, and why, by name and dtype.
REASONS: dict[tuple[str, str], tuple[float, str]] = {
    ("tanh", "float32"): (5, "XLA's own approximation, which is fast"),
    ("silu", "float32"): (2e7, _UNDERFLOW + ": x < -87"),
    ("silu", "float16"): (2000, _UNDERFLOW + ": x < -9.7"),
    ("mish", "float32"): (2e7, _UNDERFLOW + ": x < -87"),
    ("gelu (tanh)", "float32"): (60, _EXPONENT),
    ("gelu (tanh)", "float64"): (1000, _EXPONENT),
    ("gelu (tanh)", "float16"): (10, _EXPONENT),
    ("gelu (tanh)", "bfloat16"): (150, _EXPONENT),
    ("gelu (erf)", "float32"): (100, _EXPONENT + "; `x * ndtr(x)` has no such error"),
    ("gelu (erf)", "float64"): (2000, _EXPONENT + "; `x * ndtr(x)` has no such error"),
    ("gelu (erf)", "float16"): (10, _EXPONENT),
    ("gelu (erf)", "bfloat16"): (40, _EXPONENT),
    ("erfinv", "float32"): (
        20,
        "Giles's approximation, which samples of the normal distribution take",
    ),
    ("gammaln", "float64"): (1e12, _ROOTS),
    ("digamma", "float64"): (1e12, _ROOTS),
    ("dawsn", "float64"): (7, _FADDEEVA),
    ("fresnel C", "float32"): (7, _FADDEEVA),
    ("fresnel C", "float64"): (7, _FADDEEVA),
    ("exp1", "float64"): (9, _INTEGRALS),
    ("expi", "float32"): (9, "a sum of up to 60 terms"),
    ("expi", "float64"): (9, _INTEGRALS),
    ("expn(2, x)", "float32"): (10, _INTEGRALS),
    ("expn(2, x)", "float64"): (9, _INTEGRALS),
    ("Ci", "float32"): (
        100,
        "near its roots above 1, and at 4, the series is a sum of larger numbers",
    ),
    ("Ci", "float64"): (
        40,
        "near its roots above 1, and at 4, the series is a sum of larger numbers",
    ),
    ("norm.logsf", "float64"): (5, "the logarithm of 1 less a product of four factors"),
    ("norm.logcdf", "float64"): (5, "the logarithm of 1 less a product of four factors"),
    ("log_ndtr", "float64"): (5, "the logarithm of 1 less a product of four factors"),
}


def limit(name, dtype):
    """The limit of a function, and the reason for one above LIMIT."""
    return REASONS.get((name, dtype), (LIMIT, ""))


def _numpy(name, *near, **options):
    return Case("weft.numpy", getattr(jnp, name), near, **options)


def _lax(name, *near, **options):
    return Case("weft.lax", getattr(lax, name), near, **options)


def _nn(name, *near, **options):
    return Case("weft.nn", getattr(nn, name), near, **options)


def _special(name, *near, **options):
    return Case("weft.scipy.special", getattr(special, name), near, **options)


def _norm(name, *near, **options):
    return Case("weft.scipy.stats.norm", getattr(stats.norm, name), near, **options)


def _polygamma(n):
    return lambda x: special.polygamma(np.int32(n), x)


PI = float(np.pi)
CASES = {
    "exp": _numpy("exp", 88.7, -87.3, 709.7, -708.3),
    "exp2": _numpy("exp2", 128, -126, 1024, -1022),
    "expm1": _numpy("expm1", 88.7, 709.7, 0.5, -0.5, 1, -1, -17),
    "log": _numpy("log", 1),
    "log2": _numpy("log2", 1, 2, 8),
    "log10": _numpy("log10", 1, 10, 1000),
    "log1p": _numpy("log1p", -1, -0.5, -0.41421356, -0.29, 0.41421356, 1),
    "sin": _numpy("sin", PI, 2 * PI, 355, 22),
    "cos": _numpy("cos", PI / 2, 3 * PI / 2, 11),
    "tan": _numpy("tan", PI / 2, PI, 11, 22),
    "sinc": _numpy("sinc", 1, 2, 100),
    "arcsin": _numpy("arcsin", 1, -1, 0.5, -0.5),
    "arccos": _numpy("arccos", 1, -1, 0.5, -0.5),
    "arctan": _numpy("arctan", 1, -1),
    "sinh": _numpy("sinh", 1, -1, 89, 710),
    "cosh": _numpy("cosh", 1, 89, 710),
    "tanh": _numpy("tanh", 0.5, -0.5, 9, 20),
    "arcsinh": _numpy("arcsinh", 1, -1),
    "arccosh": _numpy("arccosh", 1, 2, 1.5),
    "arctanh": _numpy("arctanh", 1, -1, 0.5, -0.5, 0.3),
    "sqrt": _numpy("sqrt", 1),
    "rsqrt": _lax("rsqrt", 1, one_sided=True),
    "cbrt": _numpy("cbrt", 1, -1, 8),
    "logaddexp(x, 0)": Case("weft.numpy", lambda x: jnp.logaddexp(x, jnp.zeros_like(x)), (0,)),
    "logaddexp2(x, 0)": Case("weft.numpy", lambda x: jnp.logaddexp2(x, jnp.zeros_like(x)), (0,)),
    "hypot(x, 1)": Case("weft.numpy", lambda x: jnp.hypot(x, jnp.ones_like(x)), (1,)),
    "sigmoid": _nn("sigmoid", 0),
    "log_sigmoid": _nn("log_sigmoid", 0),
    "softplus": _nn("softplus", 0),
    "silu": _nn("silu", -1.2784645),
    "mish": _nn("mish", -1.1924),
    "gelu (tanh)": Case("weft.nn", lambda x: nn.gelu(x), (-1, 1, -5)),
    "gelu (erf)": Case("weft.nn", lambda x: nn.gelu(x, approximate=False), (-1, 1, -5)),
    "elu": _nn("elu"),
    "celu": _nn("celu"),
    "selu": _nn("selu"),
    "squareplus": _nn("squareplus"),
    "soft_sign": _nn("soft_sign"),
    "log1mexp": _nn("log1mexp", 0.6931472, 0, low=0),
    "erf": _special("erf", 1, -1, 0.5, 3.9),
    "erfc": _special("erfc", 1, 0.5, -1, 2, 9.3, 10),
    "erfinv": _special("erfinv", 1, -1, 0.5, low=-1, high=1),
    "erfcx": _special("erfcx", -9, -26, 1, 10, 26),
    "expit": _special("expit", 0),
    "logit": _special("logit", 0.5, 1, low=0, high=1),
    "gammaln": _special("gammaln", 1, 2, 3, 10, -1, -2, -2.4570247, -2.7476827, -3.1435809),
    "gamma": _special("gamma", 1, 2, 10, -1, -2, -10.5, 35, 171.6, one_sided=True),
    "digamma": _special(
        "digamma", 1.46163214497, 1, 2, 10, -1, -0.50408300826, -1.57349847, one_sided=True
    ),
    "polygamma(1, x)": Case("weft.scipy.special", _polygamma(1), (1, 2, 10), low=0),
    "polygamma(2, x)": Case("weft.scipy.special", _polygamma(2), (1, 2, 10), low=0),
    "polygamma(3, x)": Case("weft.scipy.special", _polygamma(3), (1, 2, 10), low=0),
    "zeta(x, 1)": Case(
        "weft.scipy.special", lambda x: special.zeta(x, jnp.ones_like(x)), (1, 2, 20), low=1
    ),
    "zeta(2, q)": Case(
        "weft.scipy.special", lambda q: special.zeta(2 * jnp.ones_like(q), q), (1, 10), low=0
    ),
    "zeta(5.5, q)": Case(
        "weft.scipy.special", lambda q: special.zeta(5.5 * jnp.ones_like(q), q), (1, 10), low=0
    ),
    "i0": _special("i0", 8, -8, 1),
    "i0e": _special("i0e", 8, -8, 1),
    "i1": _special("i1", 8, -8, 1),
    "i1e": _special("i1e", 8, -8, 1),
    "ndtr": _special("ndtr", 0, -1, 1, -14, -38),
    "log_ndtr": _special("log_ndtr", -1, 1, -5, 5, 14),
    "ndtri": _special("ndtri", 0.5, 0.075, 0.925, 1, low=0, high=1),
    "dawsn": _special("dawsn", 0.5, -0.5, 5),
    "exp1": _special("exp1", 1, 2, low=0),
    "expi": _special("expi", 0.37250741, 1, -1, 20, 40),
    "expn(2, x)": Case(
        "weft.scipy.special", lambda x: special.expn(jnp.full_like(x, 2), x), (1,), low=0
    ),
    "Si": Case("weft.scipy.special", lambda x: special.sici(x)[0], (4, -4)),
    "Ci": Case("weft.scipy.special", lambda x: special.sici(x)[1], (4, 0.61650549), low=0),
    "fresnel S": Case("weft.scipy.special", lambda x: special.fresnel(x)[0], (1.5, 1)),
    "fresnel C": Case("weft.scipy.special", lambda x: special.fresnel(x)[1], (1.5, 1)),
    "spence": _special("spence", 1, 2, 0.5, low=0),
    "entr": _special("entr", 1, low=0),
    "factorial": _special("factorial", 1, 10, 34, 170, low=0),
    "norm.pdf": _norm("pdf", 1, 13, 38),
    "norm.logpdf": _norm("logpdf", 1),
    "norm.cdf": _norm("cdf", 0, -1, 1, -14, -38),
    "norm.logcdf": _norm("logcdf", -1, 1, -5, 5),
    "norm.sf": _norm("sf", 0, -1, 1, 14, 38),
    "norm.logsf": _norm("logsf", -1, 1, -5, 5),
    "norm.ppf": _norm("ppf", 0.5, 0.075, 0.925, 1, low=0, high=1),
}


def arguments(case, dtype, count, seed=0):
    """Numbers of both signs, from subnormal ones to the largest, and around a case's points."""
    rng = np.random.default_rng(seed)
    info = ml_dtypes.finfo(dtype)
    spread = []
    exponents = (np.log2(float(info.smallest_subnormal)), np.log2(float(info.max)))
    for low, high, share in ((*exponents, 0.4), (-12, 8, 0.6)):
        spread.append(2.0 ** rng.uniform(low, high, int(count * share)))
    sizes = np.concatenate(spread)
    numbers = [sizes * rng.choice([-1.0, 1.0], sizes.size)]
    ends = [0.0, float(info.smallest_subnormal), float(info.tiny), float(info.max), np.inf]
    numbers.append(np.array([*ends, *(-x for x in ends), 1.0, -1.0, 2.0, 0.5]))
    for point in case.near:
        at = np.array([point]).astype(dtype)
        for _ in range(3):
            numbers.append(at.astype(float))
            at = np.nextafter(at, np.array([np.inf], dtype))
        at = np.array([point]).astype(dtype)
        for _ in range(3):
            at = np.nextafter(at, np.array([-np.inf], dtype))
            numbers.append(at.astype(float))
        share = max(count // 20, 4)
        away = 2.0 ** rng.uniform(np.log2(float(info.eps)), -1, share)
        numbers.append(point + (abs(point) or 1) * away * rng.choice([-1.0, 1.0], share))
    with np.errstate(over="ignore"):
        xs = np.concatenate(numbers).astype(dtype)
    signs = (xs != 0) if case.one_sided else ~np.signbit(xs) if case.low == 0 else True
    return xs[(xs >= case.low) & (xs <= case.high) & signs]


def ulps(got, high, low):
    """How far `got` is from high + low (float64: the nearest number, and the rest), in ulps.

    An ulp is the distance between floats of the dtype of `got` at the right value. The error is
    infinite where one of them is NaN and the other is not, or one is infinite and the other is not
    close to the largest number. Zero is right for what is below the smallest normal number.
    """
    info = ml_dtypes.finfo(got.dtype)
    wide = got.astype(float)
    _, exponent = np.frexp(np.where(np.isfinite(high), high, 1))
    _, lowest = np.frexp(float(info.tiny))
    unit = np.ldexp(1.0, np.maximum(exponent, lowest) - 1 - info.nmant)
    with np.errstate(all="ignore"):
        error = np.abs((wide - high) / unit - low / unit)
    at_end = float(info.max) * (1 - LIMIT * float(info.eps))
    same_side = np.sign(wide) == np.sign(high)
    endless = np.isinf(wide) | np.isinf(high)
    both_end = same_side & (np.abs(wide) >= at_end) & (np.abs(high) >= at_end)
    vanishes = (wide == 0) & (np.abs(high) < float(info.tiny))
    both_nan = np.isnan(wide) & np.isnan(high)
    error = np.where((endless & both_end) | vanishes | both_nan, 0, error)
    return np.where(np.isnan(error), np.inf, error)
