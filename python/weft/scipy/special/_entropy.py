"""Elementary functions with care at the ends: x log(y), entropies, log-odds, power transforms."""

import math

from weft import _core, numpy as jnp
from weft._custom_rules import custom_jvp
from weft._jit import composite
from weft.dtypes import dtype_of, is_complex
from weft.scipy.special._evaluate import horner, inexact, reals, sample, strong_array


@custom_jvp
def _logit(x):
    if is_complex(dtype_of(x)):
        return jnp.log(x / (1 - x))
    # Around 1/2 the quotient is close to 1.
    middle = (x > 0.25) & (x < 0.75)
    near = jnp.where(middle, x, 0.5)
    near = jnp.log1p((2 * near - 1) / (1 - near))
    return jnp.where(middle, near, jnp.log(x / (1 - x)))


@_logit.defjvp
def _logit_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _logit(x), dx * (1 / x + 1 / (1 - x))


@composite
def logit(x):
    """The log-odds log(x / (1 - x)); NaN outside of 0..1.

    Args:
      x: array or number, real or complex.

    Returns:
      Array of the shape of `x` and of a floating-point or complex dtype.

    Examples:
      >>> weft.scipy.special.logit(wnp.array([0.0, 0.5, 1.0]))
      Array([-inf,   0.,  inf], dtype=float32)
    """
    (x,) = inexact(x)
    return _logit(strong_array(x))


@custom_jvp
def _xlogy(x, y):
    zero = (x == 0) & (y == y)
    return jnp.where(zero, 0, x * jnp.log(jnp.where(zero, 1, y)))


@_xlogy.defjvp
def _xlogy_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return _xlogy(x, y), dx * jnp.log(y) + dy * (x / y)


@composite(broadcasts=True)
def xlogy(x, y):
    """x log(y), and 0 where x is 0.

    Args:
      x, y: arrays or numbers that broadcast together, real or complex.

    Returns:
      Array of the broadcast shape and of a floating-point or complex dtype.

    Examples:
      >>> weft.scipy.special.xlogy(wnp.array([0.0, 2.0]), 0.0)
      Array([  0., -inf], dtype=float32)
    """
    return _xlogy(*_core.broadcast_arrays(*inexact(x, y)))


@custom_jvp
def _xlog1py(x, y):
    zero = (x == 0) & (y == y)
    return jnp.where(zero, 0, x * jnp.log1p(jnp.where(zero, 1, y)))


@_xlog1py.defjvp
def _xlog1py_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return _xlog1py(x, y), dx * jnp.log1p(y) + dy * (x / (1 + y))


@composite(broadcasts=True)
def xlog1py(x, y):
    """x log(1 + y), and 0 where x is 0.

    Args:
      x, y: arrays or numbers that broadcast together, real or complex.

    Returns:
      Array of the broadcast shape and of a floating-point or complex dtype.

    Examples:
      >>> weft.scipy.special.xlog1py(wnp.array([0.0, 2.0]), -1.0)
      Array([  0., -inf], dtype=float32)
    """
    return _xlog1py(*_core.broadcast_arrays(*inexact(x, y)))


@custom_jvp
def _entr(x):
    # A difference, since the negative of 0 is -0.
    return jnp.where(x < 0, -math.inf, 0 - _xlogy(x, x))


@_entr.defjvp
def _entr_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _entr(x), dx * (-1 - jnp.log(x))


@composite
def entr(x):
    """-x log(x), 0 where x is 0 and -inf where it is negative.

    Args:
      x: real array or number.

    Returns:
      Array of the shape of `x` and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.entr(wnp.array([-1.0, 0.5])).round(3)
      Array([ -inf, 0.347], dtype=float32)
    """
    return _entr(*reals("entr", x))


def _relative_entropy(p, q):
    """p log(p / q) for p > 0 and q > 0, and where both of these hold, and where p is 0 at least."""
    both = (p > 0) & (q > 0)
    at_zero = (p == 0) & (q >= 0)
    safe_p, safe_q = jnp.where(both, p, 1), jnp.where(both, q, 1)
    # The difference of logarithms where the quotient would overflow or underflow.
    quotient = safe_p / safe_q
    normal = (quotient > 0) & jnp.isfinite(quotient)
    logs = jnp.where(
        normal, jnp.log(jnp.where(normal, quotient, 1)), jnp.log(safe_p) - jnp.log(safe_q)
    )
    return safe_p * logs, both, at_zero


@custom_jvp
def _rel_entr(p, q):
    value, both, at_zero = _relative_entropy(p, q)
    value = jnp.where(both, value, jnp.where(at_zero, 0, math.inf))
    return jnp.where(jnp.isnan(p) | jnp.isnan(q), math.nan, value)


@_rel_entr.defjvp
def _rel_entr_jvp(primals, tangents):
    (p, q), (dp, dq) = primals, tangents
    inside = (p > 0) & (q > 0)
    safe_p, safe_q = jnp.where(inside, p, 1), jnp.where(inside, q, 1)
    by_p = jnp.where(inside, jnp.log(safe_p) - jnp.log(safe_q) + 1, 0)
    by_q = jnp.where(inside, -safe_p / safe_q, 0)
    return _rel_entr(p, q), by_p * dp + by_q * dq


@composite(broadcasts=True)
def rel_entr(p, q):
    """p log(p / q), 0 where p is 0 and q is not negative, infinite for other p, q <= 0.

    Args:
      p, q: real arrays or numbers that broadcast together.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.rel_entr(wnp.array([0.0, 1.0, 2.0]), 1.0).round(3)
      Array([0.   , 0.   , 1.386], dtype=float32)
    """
    return _rel_entr(*_core.broadcast_arrays(*sample("rel_entr", p, q)))


@composite(broadcasts=True)
def kl_div(p, q):
    """rel_entr(p, q) - p + q: the divergence of Kullback and Leibler, elementwise.

    Args:
      p, q: real arrays or numbers that broadcast together.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.kl_div(wnp.array([0.0, 1.0]), wnp.array([2.0, 1.0]))
      Array([2., 0.], dtype=float32)
    """
    p, q = _core.broadcast_arrays(*sample("kl_div", p, q))
    return _rel_entr(p, q) - p + q


# (exp(t) - 1) / t as a polynomial in t, for |t| below 1/4.
_EXPM1_QUOTIENT = [1 / math.factorial(k + 1) for k in range(12, -1, -1)]


def _power_transform(logarithm, lmbda):
    """expm1(lmbda * logarithm) / lmbda, and its limit at 0.

    Around 0 it is a polynomial, for the derivatives by lmbda.
    """
    exponent = lmbda * logarithm
    small, zero = jnp.abs(exponent) < 0.25, lmbda == 0
    near = logarithm * horner(jnp.where(small, exponent, 0), _EXPM1_QUOTIENT)
    safe = jnp.where(small | zero, 1, lmbda)
    away = jnp.where(zero, logarithm, jnp.expm1(safe * logarithm) / safe)
    return jnp.where(small, near, away)


@composite(broadcasts=True)
def boxcox(x, lmbda):
    """(x ** lmbda - 1) / lmbda, and log(x) where lmbda is 0: the transform of Box and Cox (1964).

    Args:
      x, lmbda: arrays or numbers that broadcast together.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.boxcox(wnp.array([1.0, 3.0]), 2.0).round(3)
      Array([0., 4.], dtype=float32)
    """
    x, lmbda = inexact(x, lmbda)
    return _power_transform(jnp.log(x), lmbda)


@composite(broadcasts=True)
def boxcox1p(x, lmbda):
    """boxcox(1 + x, lmbda), accurate for small x.

    Args:
      x, lmbda: arrays or numbers that broadcast together.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.boxcox1p(wnp.array([0.0, 2.0]), 2.0).round(3)
      Array([0., 4.], dtype=float32)
    """
    x, lmbda = inexact(x, lmbda)
    return _power_transform(jnp.log1p(x), lmbda)
