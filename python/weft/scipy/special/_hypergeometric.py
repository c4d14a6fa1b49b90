"""Hypergeometric functions of real arguments.

Formula numbers are those of the NIST Digital Library of Mathematical Functions (DLMF).
"""

import math
from typing import Any

from weft import lax, numpy as jnp
from weft._autodiff import jvp
from weft._custom_rules import SymbolicZero, custom_jvp
from weft._jit import composite
from weft.lax import _control as control
from weft.scipy.special._evaluate import computed, epsilon, is_double, listed, reals
from weft.scipy.special._gamma import _gammasgn, _is_pole


def _series(ratio, like, limit, slopes):
    """1 + r(0) + r(0) r(1) + ... until all sums stand still; `ratio(k)` is r(k).

    Where `slopes` holds, a factor of 0 does not end a sum: its slope by a parameter is one more
    sum, of the other factors.
    """
    small = 0.01 * epsilon(like)

    def going(carry):
        k, _, size, total = carry
        return (k < limit) & jnp.any(size > small * jnp.abs(total))

    def add(carry):
        k, term, size, total = carry
        factor = ratio(k.astype(like.dtype))
        # What has ended stays so, also where a factor of a later term is infinite.
        ended = (term == 0) & ~slopes
        term = jnp.where(ended, 0, term * jnp.where(ended, 0, factor))
        size = jnp.where(slopes & (factor == 0), size, size * jnp.abs(factor))
        size = jnp.where(slopes, size, jnp.abs(term))
        return k + 1, term, lax.stop_gradient(size), total + term

    one = jnp.ones_like(like)
    return control.while_loop(going, add, (jnp.asarray(0), one, one, one))[3]


def _log_gamma(x):
    """(log|gamma(x)|, sign), with infinity and 1 at poles."""
    pole = _is_pole(x)
    safe = jnp.where(pole, 1, x)
    return jnp.where(pole, math.inf, lax.lgamma(safe)), _gammasgn(safe)


def _gammas(above, below, exponent: Any = 0):
    """exp(exponent) times gamma functions over others; 0 at a pole of those."""
    sign = 1
    for x in above:
        log, each = _log_gamma(x)
        exponent, sign = exponent + log, sign * each
    zero = False
    for x in below:
        pole = _is_pole(x)
        log, each = _log_gamma(jnp.where(pole, 1, x))
        exponent, sign, zero = exponent - log, sign * each, zero | pole
    return jnp.where(zero, 0, sign * jnp.exp(jnp.where(zero, 0, exponent)))


def _hyp1f1_value(a, b, x, slopes):
    # Kummer's transformation, 13.2.39: exp(x) M(b - a, b, -x)
    negative = x < 0
    size = jnp.abs(x)
    a = jnp.where(negative, b - a, a)
    bound = 100 if is_double(x) else 40
    far = (size > bound) & (2 * jnp.abs((1 - a) * (b - a)) < size)
    near = jnp.where(far, 0, size)
    slopes &= ~_is_pole(b)
    series = _series(lambda k: (a + k) / ((b + k) * (k + 1)) * near, x, 2000, slopes)
    series = jnp.where(negative, jnp.exp(-near) * series, series)
    # The asymptotic expansion, 13.7.1
    inverse = 1 / jnp.where(far, size, 1e6)
    total = 1
    for k in range(30, 0, -1):
        total = 1 + total * (k - a) * (b - a + k - 1) / k * inverse
    exponent = jnp.where(negative, 0, size) - (a - b) * jnp.log(inverse)
    return jnp.where(far, _gammas((b,), (a,), jnp.where(far, exponent, 0)) * total, series)


def _with_partial_derivatives(value, by_argument):
    """`value` of parameters and an argument, with derivatives.

    That with respect to the argument is `by_argument`; those with respect to parameters are taken
    of the formulas, each with a tangent of 1, so that loops need not run backwards. `slopes` tells
    `value` of these.
    """
    function = custom_jvp(lambda *primals: value(*primals, slopes=False))

    def rule(primals, tangents):
        total = 0
        for i, tangent in enumerate(tangents):
            if isinstance(tangent, SymbolicZero):
                continue
            if i == len(primals) - 1:
                slope = by_argument(*primals)
            else:
                of_one = lambda p, i=i: value(*primals[:i], p, *primals[i + 1 :], slopes=True)
                slope = jvp(of_one, (primals[i],), (jnp.ones_like(primals[i]),))[1]
            total = total + slope * tangent
        return function(*primals), total

    function.defjvp(rule, symbolic_zeros=True)
    return function


_hyp1f1 = _with_partial_derivatives(_hyp1f1_value, lambda a, b, x: a / b * _hyp1f1(a + 1, b + 1, x))


@composite(broadcasts=True)
def hyp1f1(a, b, x):
    """Kummer's confluent hypergeometric function, 1F1(a; b; x).

    By its series (DLMF 13.2.2), for negative x after Kummer's transformation, for large |x| by its
    asymptotic expansion.

    Args:
      a, b, x: real arrays or numbers that broadcast together.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.hyp1f1(1.0, 1.0, 2.0).round(3)  # exp(2)
      Array(7.389, dtype=float32)
    """
    return computed(_hyp1f1, *reals("hyp1f1", *listed(a, b, x)))


def _gauss_series(a, b, c, x, slopes):
    """15.2.1; up to a common factor of (a)_k and (c)_k or so, terms vanish for good at a pole."""
    slopes &= (jnp.abs(x) < 1) & ~_is_pole(c)
    return _series(lambda k: (a + k) * (b + k) / ((c + k) * (k + 1)) * x, x, 3000, slopes)


def _near_one(a, b, c, rest, slopes):
    """2F1(a, b; c; 1 - rest) for a small rest and c - a - b not an integer; 15.8.4."""
    d = c - a - b
    first = _gammas((c, d), (c - a, c - b)) * _gauss_series(a, b, 1 - d, rest, slopes)
    scale = _gammas((c, -d), (a, b), d * jnp.log(rest))
    return first + scale * _gauss_series(c - a, c - b, 1 + d, rest, slopes)


def _near_one_logarithmic(a, b, m, rest):
    """2F1(a, b; a + b + m; 1 - rest) for a small rest and an integer m >= 0; 15.8.10."""
    log = jnp.log(rest)
    highest = jnp.max(m, initial=0)
    small = 0.01 * epsilon(rest)

    def going(carry):
        k, _, tail, _, total = carry
        return (k < highest + 60) & (
            (k < highest) | jnp.any(jnp.abs(tail) > small * jnp.abs(total))
        )

    def add(carry):
        k, head, tail, heads, tails = carry
        k_ = k.astype(rest.dtype)
        heads = heads + jnp.where(k_ < m, head, 0)
        gap = m - k_ - 1
        head = head * (a + k_) * (b + k_) / ((k_ + 1) * jnp.where(gap > 0, gap, 1)) * -rest
        digammas = lax.digamma(a + m + k_) + lax.digamma(b + m + k_)
        bracket = log - lax.digamma(k_ + 1) - lax.digamma(k_ + m + 1) + digammas
        tails = tails + tail * bracket
        tail = tail * (a + m + k_) * (b + m + k_) / ((k_ + 1) * (k_ + 1 + m)) * rest
        return k + 1, head, tail, heads, tails

    zero, one = jnp.zeros_like(rest), jnp.ones_like(rest)
    carry = (jnp.asarray(0), one, one, zero, zero)
    _, _, _, heads, tails = control.while_loop(going, add, carry)
    c = a + b + m
    first = jnp.where(m > 0, _gammas((c, jnp.where(m > 0, m, 1)), (a + m, b + m)) * heads, 0)
    sign = jnp.where(jnp.fmod(m, 2) == 0, 1, -1)
    return first - sign * _gammas((c,), (a, b, m + 1), m * log) * tails


def _hyp2f1_value(a, b, c, x, slopes):
    ends = (_is_pole(a), _is_pole(b))
    polynomial = ends[0] | ends[1]
    power_a, power_b = (c == b), (c == a)  # (1 - x) ** -a, (1 - x) ** -b; 15.4.6
    pole = _is_pole(c)
    power = (power_a | power_b) & (pole | ~polynomial)
    # A polynomial ends before the pole, or has none of its own; 15.2.4
    infinite = pole & ~power & ~((ends[0] & (a > c)) | (ends[1] & (b > c)))
    # Powers have slopes by all arguments, which the series knows.
    regular = power & ~pole & (x < 1)
    special = polynomial | (power & ~regular) | infinite | (x >= 1)
    # Pfaff's transformation, 15.8.1, for x < 0: (1 - x) ** -a F(a, c - b; c; x / (x - 1))
    negative = (x < 0) & ~special
    scale = jnp.where(negative, jnp.exp(-a * jnp.log1p(jnp.where(negative, -x, 0))), 1)
    second = jnp.where(negative, c - b, b)
    z = jnp.where(negative, x / (x - 1), x)
    rest = jnp.where(negative, 1 / (1 - x), 1 - x)
    d = c - a - second
    close = (z > 0.9) & ~special & ~power & ~_is_pole(second)
    # Euler's transformation, 15.8.1, where c - a - b < 0 is to be an integer that is not negative.
    whole = d == jnp.round(d)
    turned = close & whole & (d < 0)
    first_ = jnp.where(turned, c - a, a)
    second_ = jnp.where(turned, c - second, second)
    rest = jnp.where(close, rest, 0.1)
    turn = jnp.where(turned, jnp.exp(d * jnp.log(rest)), 1)
    by_log = _near_one_logarithmic(
        jnp.where(close & whole, first_, 1),
        jnp.where(close & whole, second_, 1),
        jnp.where(close & whole, jnp.abs(d), 0),
        rest,
    )
    smooth = close & ~whole
    by_powers = _near_one(
        jnp.where(smooth, a, 0.25),
        jnp.where(smooth, second, 0.25),
        jnp.where(smooth, c, 1),
        rest,
        slopes,
    )
    # Else the series; of polynomials at any x.
    inside = ~close & (~special | polynomial) & (~power | regular) & ~infinite
    series = _gauss_series(
        jnp.where(inside, a, 0),
        jnp.where(inside, second, 1),
        jnp.where(inside, c, 1),
        jnp.where(inside, z, 0),
        slopes,
    )
    value = jnp.where(close, jnp.where(whole, turn * by_log, by_powers), series) * scale
    at_one = jnp.where(d > 0, _gammas((c, jnp.where(d > 0, d, 1)), (c - a, c - b)), math.inf)
    value = jnp.where((x == 1) & ~polynomial, at_one, value)
    value = jnp.where(infinite | ((x > 1) & ~polynomial), math.inf, value)
    exponent = jnp.where(power_a, -a, -b)
    power &= (x <= 1) | (exponent == jnp.round(exponent))
    exact = jnp.power(1 - x, exponent)
    of_series = lax.stop_gradient(exact - value) + value
    return jnp.where(power, jnp.where(regular, of_series, exact), value)


_hyp2f1 = _with_partial_derivatives(
    _hyp2f1_value, lambda a, b, c, x: a * b / c * _hyp2f1(a + 1, b + 1, c + 1, x)
)


@composite(broadcasts=True)
def hyp2f1(a, b, c, x):
    """Gauss's hypergeometric function, 2F1(a, b; c; x).

    By its series (DLMF 15.2.1), for negative x after Pfaff's transformation, near 1 by the formulas
    in powers of 1 - x (DLMF 15.8). Infinite for x > 1, but where it is a polynomial or a power that
    is real, and where c is an integer <= 0 which no polynomial ends before.

    Args:
      a, b, c, x: real arrays or numbers that broadcast together.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.hyp2f1(1.0, 1.0, 2.0, 0.5).round(3)  # -log(1 - 0.5) / 0.5
      Array(1.386, dtype=float32)
    """
    return computed(_hyp2f1, *reals("hyp2f1", *listed(a, b, c, x)))
