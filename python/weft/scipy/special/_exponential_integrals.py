"""Exponential, sine and cosine integrals, the dilogarithm.

Formula numbers are those of the NIST Digital Library of Mathematical Functions (DLMF).
"""

import math

import numpy as np

from weft import lax, numpy as jnp
from weft._custom_rules import custom_jvp
from weft._jit import composite
from weft.lax import _control as control
from weft.scipy.special._evaluate import (
    computed,
    fitted,
    horner,
    is_double,
    listed,
    reals,
    singles_or_doubles,
)
from weft.scipy.special._polynomials import CI, CI_SHORT, EXPI, EXPI_SHORT

_EULER = 0.57721566490153286061


def _continued_fraction(n, x, depth):
    """exp(x) E_n(x) by the contracted fraction 8.19.18, from `depth` levels down."""

    def level(i, value):
        k = jnp.asarray(depth - i, n.dtype)
        return x + n + 2 * (k - 1) - k * (n + k - 1) / value

    start = x + n + 2 * depth
    return 1 / control.fori_loop(0, depth, level, start)


def _expn_series(n, x):
    """E_n(x) for n >= 1 and 0 < x <= 1; 8.19.8."""
    total = jnp.zeros_like(x)
    power = jnp.ones_like(x)
    for m in range(20):
        skipped = n == m + 1
        gap = jnp.where(skipped, 1, m + 1 - n)
        total = total - jnp.where(skipped, 0, power / gap)
        power = -power * x / (m + 1)
    log = jnp.log(x)
    first = n == 1
    weight = jnp.exp((n - 1) * log - lax.lgamma(n))
    weight = jnp.where(first, 1, jnp.where(jnp.fmod(n, 2) == 0, -weight, weight))
    general = weight * (jnp.where(first, 0, lax.digamma(n)) - log) + total
    # Of the first kind -gamma is a term of the power series, 6.6.2.
    return jnp.where(first, horner(x, _FIRST_KIND) - log, general)


_FIRST_KIND = [-((-1) ** k) / (k * math.factorial(k)) for k in range(20, 0, -1)] + [-_EULER]


@custom_jvp
def _expn(n, x):
    valid = (n >= 1) & (n == jnp.floor(n)) & (x > 0)
    whole = jnp.where(valid, n, 1)
    near = x <= 1
    series = _expn_series(whole, jnp.where(valid & near, x, 1))
    far = jnp.where(valid & ~near & jnp.isfinite(x), x, 2)
    value = _continued_fraction(whole, far, 90 if is_double(x) else 22)
    value = jnp.where(near, series, jnp.exp(-far) * value)
    value = jnp.where((x == math.inf) & (n >= 0), 0, value)
    at_zero = jnp.where(n > 1, 1 / (jnp.where(n > 1, n, 2) - 1), math.inf)
    value = jnp.where(valid, value, jnp.where(x == 0, at_zero, math.nan))
    return jnp.where((n == 0) & (x > 0), jnp.exp(-x) / x, value)


@_expn.defjvp
def _expn_jvp(primals, tangents):
    (n, x), (_, dx) = primals, tangents
    whole = n >= 1
    at = jnp.where(whole, 1, x)
    of_zero = jnp.exp(-at) / at * (1 + 1 / at)  # E_0 is exp(-x) / x
    return _expn(n, x), -jnp.where(whole, _expn(jnp.where(whole, n - 1, 0), x), of_zero) * dx


@composite(broadcasts=True)
def expn(n, x):
    """The generalized exponential integral E_n(x) for integers n >= 0 and x >= 0, otherwise NaN.

    By its series for x up to 1, else by a continued fraction (DLMF 8.19). The derivative with
    respect to `n` is taken as 0.

    Args:
      n, x: real arrays or numbers that broadcast together.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.expn(2, wnp.array([0.0, 1.0])).round(3)
      Array([1.   , 0.148], dtype=float32)
    """
    return computed(_expn, *reals("expn", *listed(n, x)))


@composite
def exp1(x):
    """The exponential integral E_1(x), the integral of exp(-t) / t over t from x to infinity.

    NaN for negative `x`; see `expn`.

    Args:
      x: real array or number.

    Returns:
      Array of the shape of `x` and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.exp1(wnp.array([0.0, 1.0])).round(3)
      Array([  inf, 0.219], dtype=float32)
    """
    return computed(lambda x: _expn(jnp.ones_like(x), x), *reals("exp1", x))


def _around_root(x, root, part):
    """log(x / root) + (x - root) * part, which is 0 at the root as it has all its digits.

    `root` has the nearest float64, the rest of it, and the function whose integral, over its
    argument, this is.
    """
    near, rest, integrated = root
    slope = integrated(near) / near
    if not is_double(x):
        single = float(np.float32(near))
        near, rest = single, near - single
    gap = x - near
    return jnp.log1p(gap / near) + gap * part - rest * slope


def _expi_of_positive(x):
    """By 6.6.2, and for large x by 6.12.2, up to its smallest term."""
    terms, bound = (115, 40) if is_double(x) else (60, 20)
    near = x <= bound

    def term(k, carry):
        power, total = carry
        k = jnp.asarray(k + 1, x.dtype)
        power = power * near_x / k
        return power, total + power / k

    near_x = jnp.where(near, x, 1)
    _, total = control.fori_loop(0, terms, term, (jnp.ones_like(x), jnp.zeros_like(x)))
    series = jnp.log(near_x) + (_EULER + total)
    at_root = (x > 0.2) & (x < 0.6)
    root = 0.3725074107813666, 1.3140183414386028e-17, math.exp
    part = fitted(jnp.where(at_root, x, 0.4), 0.4, EXPI, EXPI_SHORT)
    series = jnp.where(at_root, _around_root(x, root, part), series)
    inverse = 1 / jnp.where(near, bound, x)
    tail = 1
    for k in range(bound, 0, -1):
        tail = 1 + k * inverse * tail
    # exp(x) / x may be finite where exp(x) is not.
    half = jnp.exp(0.5 * x)
    return jnp.where(near, series, half * inverse * tail * half)


@custom_jvp
def _expi(x):
    positive = x > 0
    # From 1000 on it is infinite; the smallest term of its expansion would be 0 times that.
    value = _expi_of_positive(jnp.where(positive, jnp.minimum(x, 1000), 1))
    negative = -_expn(jnp.ones_like(x), jnp.where(positive, 1, -x))
    return jnp.where(positive, value, negative)


@_expi.defjvp
def _expi_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _expi(x), _exp_over(x) * dx


@custom_jvp
def _exp_over(x):
    """exp(x) / x, which may be finite where exp(x) is not."""
    half = jnp.exp(0.5 * x)
    return jnp.where(x == math.inf, x, half * (half / jnp.where(x == math.inf, 1, x)))


@_exp_over.defjvp
def _exp_over_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    value = _exp_over(x)
    return value, value * (1 - 1 / x) * dx


@composite
def expi(x):
    """The exponential integral Ei(x), the principal value of that of exp(t) / t up to x.

    By its series, for large x by its asymptotic expansion, for negative x as -E_1(-x) (DLMF 6.2,
    6.6, 6.12).

    Args:
      x: real array or number.

    Returns:
      Array of the shape of `x` and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.expi(wnp.array([0.0, 1.0])).round(3)
      Array([ -inf, 1.895], dtype=float32)
    """
    return computed(_expi, *reals("expi", x))


def _factorial_series(first):
    """(-1)^k / ((2k + first) (2k + first)!), the highest k first."""
    terms = [
        (-1) ** k / ((2 * k + first) * math.factorial(2 * k + first))
        for k in range(0 if first else 1, 20)
    ]
    return terms[::-1]


@custom_jvp
def _sici(x):
    size = jnp.abs(x)
    small = size <= 4
    near = jnp.where(small, size, 1)
    square = near * near
    near_si = near * horner(square, _factorial_series(1))
    near_ci = jnp.log(near) + (_EULER + square * horner(square, _factorial_series(0)))
    at_root = (size > 0.4) & (size < 0.9)
    root = 0.6165054856207163, -4.209920321433186e-17, math.cos
    part = fitted(jnp.where(at_root, size, 0.65), 0.65, CI, CI_SHORT)
    near_ci = jnp.where(at_root, _around_root(size, root, part), near_ci)
    # E_1(ix) = -Ci(x) + i (Si(x) - pi / 2); 6.2.13 and 6.5.7
    finite = jnp.isfinite(x)
    far = jnp.where(small | ~finite, 5, size)
    z = lax.complex(jnp.zeros_like(far), far)
    integral = _continued_fraction(jnp.ones_like(z), z, 50 if is_double(x) else 14)
    cos, sin = jnp.cos(far), jnp.sin(far)
    real, imag = jnp.real(integral), jnp.imag(integral)
    far_si = math.pi / 2 + jnp.where(finite, imag * cos - real * sin, 0)
    far_ci = jnp.where(finite, -(real * cos + imag * sin), 0)
    far_ci = jnp.where(x == -math.inf, math.nan, far_ci)
    si = jnp.sign(x) * jnp.where(small, near_si, far_si)
    ci = jnp.where(small, near_ci, far_ci)
    return jnp.where(x == 0, x, si), jnp.where(jnp.isnan(x), x, ci)


@_sici.defjvp
def _sici_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    finite, near = jnp.isfinite(x), jnp.abs(x) < 1
    at, at_near = jnp.where(finite & ~near, x, 1), jnp.where(near, x, 0)
    by_si = jnp.where(near, jnp.sinc(at_near / math.pi), jnp.sin(at) / at)
    bounded = jnp.where(finite, x, 1)
    by_ci = jnp.where(finite, jnp.cos(bounded) / bounded, 0)
    return _sici(x), (jnp.where(finite, by_si, 0) * dx, by_ci * dx)


@composite
def sici(x):
    """The sine and the cosine integral: of sin(t) / t from 0 to x, of cos(t) / t up to |x|.

    By their series for |x| up to 4, else as the exponential integral on the imaginary axis (DLMF
    6.2, 6.6, 8.19).

    Args:
      x: real array or number.

    Returns:
      The pair (Si, Ci) of arrays of the shape of `x` and of a floating-point dtype.

    Examples:
      >>> sine, cosine = weft.scipy.special.sici(wnp.array([0.0, 1.0]))
      >>> sine.round(3)
      Array([0.   , 0.946], dtype=float32)
    """
    return computed(_sici, *reals("sici", x))


# B(2k) / (2k + 1)!, the highest k first
_DILOGARITHM = [
    43867 / 798 / math.factorial(19),
    -3617 / 510 / math.factorial(17),
    7 / 6 / math.factorial(15),
    -691 / 2730 / math.factorial(13),
    5 / 66 / math.factorial(11),
    -1 / 30 / math.factorial(9),
    1 / 42 / math.factorial(7),
    -1 / 30 / math.factorial(5),
    1 / 6 / math.factorial(3),
    1.0,
]


@custom_jvp
def _spence(x):
    # Into the interval from 1/2 to 2 by inversion and by reflection.
    large = x > 2
    y = jnp.where(large, 1 / x, x)
    small = y < 0.5
    t = jnp.where(small, 1 - y, y)
    u = 0 - jnp.log(t)  # not -0 for t = 1
    value = u * horner(u * u, _DILOGARITHM) - 0.25 * u * u
    safe = jnp.where(small & (y > 0), y, 0.25)
    reflected = (math.pi**2 / 6) - jnp.where(y > 0, jnp.log(safe) * jnp.log1p(-safe), 0) - value
    value = jnp.where(small, reflected, value)
    value = jnp.where(large, -0.5 * jnp.square(jnp.log(jnp.where(large, x, 1))) - value, value)
    return jnp.where((x < 0) | (x == math.inf), math.nan, value)


@_spence.defjvp
def _spence_jvp(primals, tangents):
    # log(x) / (1 - x); around 1 a polynomial in 1 - x, for the derivatives of that.
    (x,), (dx,) = primals, tangents
    near = jnp.abs(1 - x) < 0.125
    series = -horner(jnp.where(near, 1 - x, 0), [1 / k for k in range(18, 0, -1)])
    safe = jnp.where(near, 2, x)
    return _spence(x), dx * jnp.where(near, series, jnp.log(safe) / (1 - safe))


@composite
def spence(x):
    """Spence's function, the dilogarithm of 1 - x; NaN for negative x.

    By the series in log(x) with Bernoulli numbers of G. 't Hooft and M. Veltman, "Scalar one-loop
    integrals", Nucl. Phys. B153 (1979), after inversion and reflection (DLMF 25.12).

    Args:
      x: array of float32 or float64.

    Returns:
      Array of the shape and dtype of `x`.

    Examples:
      >>> weft.scipy.special.spence(wnp.array([0.0, 2.0])).round(3)
      Array([ 1.645, -0.822], dtype=float32)
    """
    return computed(_spence, singles_or_doubles("spence", *listed(x)))
