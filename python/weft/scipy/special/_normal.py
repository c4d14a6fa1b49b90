"""The normal distribution function, its logarithm and inverse; Owen's T function."""

import functools
import math

import numpy as np

from weft import lax, numpy as jnp
from weft._arguments import static_int
from weft._custom_rules import custom_jvp
from weft._jit import composite
from weft.errors import AttributeValueError
from weft.scipy.special._error_functions import scaled_erfcx, scaled_erfcx_slope
from weft.scipy.special._evaluate import (
    computed,
    exp_of_square,
    horner,
    listed,
    reals,
    singles,
    singles_or_doubles,
)

_ROOT_HALF = math.sqrt(0.5)


@custom_jvp
def bell(x):
    """exp(-x^2 / 2)."""
    return exp_of_square(x, -0.5)


@bell.defjvp
def _bell_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    value = bell(x)
    # Where it vanishes an infinite x is no factor.
    return value, dx * (jnp.where(value == 0, 0, -x) * value)


def _tail(x):
    """The probability of a value above x >= 0."""
    scaled = _ROOT_HALF * x
    return 0.5 * scaled_erfcx(scaled) / (1 + 2 * scaled) * bell(x)


def _split(x):
    """Whether x is on the left, around 0 or on the right, and x where it is, else 0."""
    left, right = x < -0.5, x > 0.5
    parts = left, ~(left | right), right
    return parts, tuple(jnp.where(part, x, 0) for part in parts)


def _middle(x):
    return 0.5 + 0.5 * lax.erf(_ROOT_HALF * x)


@custom_jvp
def _ndtr(x):
    (left, _, right), (_, middle, _) = _split(x)
    tail = _tail(jnp.abs(x))
    return jnp.where(left, tail, jnp.where(right, 1 - tail, _middle(middle)))


@_ndtr.defjvp
def _ndtr_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _ndtr(x), dx * (bell(x) / math.sqrt(2 * math.pi))


@composite
def ndtr(x):
    """The normal distribution function: the probability of a value of at most x.

    Args:
      x: array of float32 or float64.

    Returns:
      Array of the shape and dtype of `x`.

    Examples:
      >>> weft.scipy.special.ndtr(wnp.array([-np.inf, 0.0, 1.0])).round(3)
      Array([0.   , 0.5  , 0.841], dtype=float32)
    """
    return computed(_ndtr, singles_or_doubles("ndtr", *listed(x)))


@custom_jvp
def _log_ndtr(x):
    (left, _, right), (below, middle, above) = _split(x)
    # A product with an exponential, whose logarithm is a sum.
    scaled = -_ROOT_HALF * below
    lower = jnp.log(0.5 * scaled_erfcx(scaled)) - jnp.log1p(2 * scaled) - 0.5 * below * below
    upper = jnp.log1p(-_tail(above))
    return jnp.where(left, lower, jnp.where(right, upper, jnp.log(_middle(middle))))


@_log_ndtr.defjvp
def _log_ndtr_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _log_ndtr(x), dx * _hazard(x)


@custom_jvp
def _hazard(x):
    """The derivative of log_ndtr: the density over the distribution function."""
    left = x <= 0
    scaled = -_ROOT_HALF * jnp.where(left, x, 0)
    lower = math.sqrt(2 / math.pi) * (1 + 2 * scaled) / scaled_erfcx(scaled)
    above = jnp.where(left, 0, x)
    upper = bell(above) / (math.sqrt(2 * math.pi) * (1 - _tail(above)))
    return jnp.where(left, lower, upper)


@_hazard.defjvp
def _hazard_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    value = _hazard(x)
    # -h (h + x) would lose its digits for negative x.
    left = x <= 0
    scaled = -_ROOT_HALF * jnp.where(left, x, 0)
    lower = -scaled_erfcx_slope(scaled) / jnp.square(scaled_erfcx(scaled)) / math.sqrt(math.pi)
    above, size = jnp.where(left | (value == 0), 0, x), jnp.where(left, 0, value)
    return value, dx * jnp.where(left, lower, -size * (size + above))


def log_ndtr(x, series_order=3):
    """log(ndtr(x)), also where ndtr(x) underflows.

    Args:
      x: array of float32 or float64.
      series_order: an integer from 0 to 30. It has no effect: the tail is exact to working
        precision, by the scaled complementary error function.

    Returns:
      Array of the shape and dtype of `x`.

    Raises AttributeValueError (a ValueError) for another series_order.

    Examples:
      >>> weft.scipy.special.log_ndtr(wnp.array([-30.0, 0.0])).round(1)
      Array([-454.3,   -0.7], dtype=float32)
    """
    if not isinstance(series_order, int):
        static_int(None, "log_ndtr", "series_order")
    if not 0 <= series_order <= 30:
        raise AttributeValueError(
            f"[log_ndtr] expected series_order from 0 to 30; got {series_order}"
        )
    return _composed_log_ndtr(x)


@composite
def _composed_log_ndtr(x):
    return computed(_log_ndtr, singles_or_doubles("log_ndtr", *listed(x)))


# Numerators and denominators for the middle, the tails, and the far tails, the highest power first.
_CENTRAL = (
    (
        2509.0809287301226727,
        33430.575583588128105,
        67265.770927008700853,
        45921.953931549871457,
        13731.693765509461125,
        1971.5909503065514427,
        133.14166789178437745,
        3.387132872796366608,
    ),
    (
        5226.495278852854561,
        28729.085735721942674,
        39307.89580009271061,
        21213.794301586595867,
        5394.1960214247511077,
        687.1870074920579083,
        42.313330701600911252,
        1.0,
    ),
)
_TAIL = (
    (
        7.7454501427834140764e-4,
        0.0227238449892691845833,
        0.24178072517745061177,
        1.27045825245236838258,
        3.64784832476320460504,
        5.7694972214606914055,
        4.6303378461565452959,
        1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9,
        5.475938084995344946e-4,
        0.0151986665636164571966,
        0.14810397642748007459,
        0.68976733498510000455,
        1.6763848301838038494,
        2.05319162663775882187,
        1.0,
    ),
)
_FAR_TAIL = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        0.0012426609473880784386,
        0.026532189526576123093,
        0.29656057182850489123,
        1.7848265399172913358,
        5.4637849111641143699,
        6.6579046435011037772,
    ),
    (
        2.04426310338993978564e-15,
        1.4215117583164458887e-7,
        1.8463183175100546818e-5,
        7.868691311456132591e-4,
        0.0148753612908506148525,
        0.13692988092273580531,
        0.59983220655588793769,
        1.0,
    ),
)


def _ratio(x, polynomials):
    return horner(x, polynomials[0]) / horner(x, polynomials[1])


@custom_jvp
def _ndtri(p):
    q = p - 0.5
    central = jnp.abs(q) <= 0.425
    middle = jnp.where(central, q, 0)
    middle = middle * _ratio(0.180625 - middle * middle, _CENTRAL)
    small = jnp.where(central, 0.25, jnp.minimum(p, 1 - p))
    r = jnp.sqrt(-jnp.log(small))
    finite = jnp.where(r < 30, r, 1)
    tail = jnp.where(r <= 5, _ratio(finite - 1.6, _TAIL), _ratio(finite - 5, _FAR_TAIL))
    tail = jnp.where(small == 0, math.inf, jnp.where(small < 0, math.nan, tail))
    return jnp.where(central, middle, jnp.sign(q) * tail)  # NaN stays


@_ndtri.defjvp
def _ndtri_jvp(primals, tangents):
    (p,), (dp,) = primals, tangents
    x = _ndtri(p)
    return x, dp * (math.sqrt(2 * math.pi) * jnp.exp(0.5 * x * x))


@composite
def ndtri(p):
    """Inverse of the normal distribution function; NaN outside 0..1.

    M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied
    Statistics 37 (1988).

    Args:
      p: array of float32 or float64.

    Returns:
      Array of the shape and dtype of `p`.

    Examples:
      >>> weft.scipy.special.ndtri(wnp.array([0.5, 0.975, 1.0])).round(2)
      Array([0.  , 1.96,  inf], dtype=float32)
    """
    return computed(_ndtri, singles_or_doubles("ndtri", p))


@composite
def erfcinv(y):
    """Inverse of the complementary error function; NaN outside 0..2.

    Args:
      y: array of float32 or float64, or integers.

    Returns:
      Array of the shape of `y` and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.erfcinv(wnp.array([0.0, 1.0, 1.5])).round(3)
      Array([   inf,  0.   , -0.477], dtype=float32)
    """
    (y,) = reals("erfcinv", y)
    return 0.0 - _ROOT_HALF * ndtri(y * 0.5)  # 0 at 1


@functools.cache
def _gauss_legendre(n):
    """Nodes and weights on 0..1."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (0.5 * (nodes + 1)).tolist(), (0.5 * weights).tolist()


def _owens_t_by_quadrature(h, a):
    """For 0 <= a <= 1, over the part of 0..a where the integrand is not negligible."""
    end = jnp.where(h * a > 9, 9 / jnp.where(h > 0, h, 1), a)
    total = 0
    for node, weight in zip(*_gauss_legendre(32), strict=True):
        square = jnp.square(node * end)
        total = total + weight * jnp.exp(-0.5 * h * h * square) / (1 + square)
    return total * end * jnp.exp(-0.5 * h * h) * (0.5 / math.pi)


@custom_jvp
def _owens_t(h, a):
    h, size = jnp.abs(h), jnp.abs(a)
    steep = size > 1
    # T(h, a) = (q + p) / 2 - q p - T(ah, 1 / a), with the upper tails q of h and p of ah.
    steeper = jnp.where(steep, size, 1)
    product = jnp.where(h == 0, 0, h * steeper)
    at = jnp.where(steep, product, h)
    t = _owens_t_by_quadrature(jnp.where(jnp.isinf(at), 0, at), jnp.where(steep, 1 / steeper, size))
    t = jnp.where(jnp.isinf(at), 0, t)
    q, p = 0.5 * lax.erfc(_ROOT_HALF * h), 0.5 * lax.erfc(_ROOT_HALF * product)
    t = jnp.where(steep, 0.5 * (q + p) - q * p - t, t)
    t = jnp.where(h == 0, jnp.arctan(size) * (0.5 / math.pi), t)
    return jnp.where(a < 0, -t, t)


@_owens_t.defjvp
def _owens_t_jvp(primals, tangents):
    (h, a), (dh, da) = primals, tangents
    by_h = -lax.erf(_ROOT_HALF * a * h) * jnp.exp(-0.5 * h * h) / math.sqrt(8 * math.pi)
    by_a = jnp.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a))
    return _owens_t(h, a), by_h * dh + by_a * da


@composite(broadcasts=True)
def owens_t(h, a):
    """Owen's T function: the probability that X > h and 0 < Y < aX for normal X and Y.

    By Gauss-Legendre quadrature, as method T5 of M. Patefield and D. Tandy, "Fast and accurate
    calculation of Owen's T function", J. Statistical Software 5 (2000).

    Args:
      h, a: real arrays or numbers that broadcast together.

    Returns:
      Array of the broadcast shape, of float32 or float64.

    Examples:
      >>> weft.scipy.special.owens_t(0.0, 1.0).round(3)
      Array(0.125, dtype=float32)
    """
    return computed(_owens_t, *singles(reals("owens_t", h, a)))
