"""Exponentials over their sums, and the zeta and polygamma functions."""

from weft import _core, lax, numpy as jnp
from weft._custom_rules import SymbolicZero, custom_jvp
from weft._jit import composite
from weft.dtypes import dtype_of, is_integer
from weft.errors import DTypeError
from weft.nn._normalized import log_softmax as _log_softmax, softmax as _softmax
from weft.scipy.special._evaluate import is_double, reals


def softmax(x, /, *, axis=None):
    """exp(x) / sum(exp(x)) over an axis or axes, all by default, without overflow.

    Args:
      x: array or number.
      axis: axis or axes to sum over.

    Returns:
      Array of the shape of `x` and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.softmax(wnp.log(wnp.array([1.0, 3.0, 4.0]))).round(3)
      Array([0.125, 0.375, 0.5  ], dtype=float32)
    """
    return _softmax(x, axis)


def log_softmax(x, /, *, axis=None):
    """log(softmax(x)), without overflow.

    Args:
      x: array or number.
      axis: axis or axes to sum over.

    Returns:
      Array of the shape of `x` and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.log_softmax(wnp.array([0.0, 1000.0]))
      Array([-1000.,     0.], dtype=float32)
    """
    return _log_softmax(x, axis)


@composite(broadcasts=True)
def polygamma(n, x):
    """The derivative of order n of digamma at x.

    Args:
      n: integer array or number; ValueError for other dtypes.
      x: real array or number, which broadcasts with `n`.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.polygamma(1, 1.0).round(3)
      Array(1.645, dtype=float32, weak_type=True)
    """
    if not is_integer(dtype_of(n)):
        raise DTypeError(f"[polygamma] expected n to be of an integer dtype; got {dtype_of(n)}")
    n, x = _core.broadcast_arrays(*reals("polygamma", n, x))
    first = n == 0
    # Each has an argument of its own, so that an infinite slope of one is none of the other.
    higher = lax.polygamma(jnp.where(first, 1, n), jnp.where(first, 1, x))
    return jnp.where(first, lax.digamma(jnp.where(first, x, 1)), higher)


# B(2j) / (2j)!
_EULER_MACLAURIN = [
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
]


def _zeta_by_exponent(x, q):
    """The derivative of zeta with respect to x, of the formula of Euler and Maclaurin term by term.

    F. Johansson, "Rigorous high-precision computation of the Hurwitz zeta function and its
    derivatives", Numerical Algorithms 69 (2015).
    """
    total = 0
    x = jnp.minimum(x, 1e4)  # times a logarithm of 0 infinity would be NaN
    for k in range(12):
        log = jnp.log(q + k)
        total = total - log * jnp.exp(-x * log)
    end = q + 12
    log = jnp.log(end)
    power = jnp.exp(-x * log)
    total = total - power * end * (log / (x - 1) + 1 / jnp.square(x - 1)) - 0.5 * log * power
    # Where x is large the power is 0, which factors of x must not make NaN.
    x = jnp.minimum(x, 500 if is_double(x) else 50)
    factor, slope = x, jnp.ones_like(x)  # x (x + 1) ... (x + 2j), and its derivative
    scale = power / end
    for j, coefficient in enumerate(_EULER_MACLAURIN):
        total = total + coefficient * scale * (slope - log * factor)
        for i in (2 * j + 1, 2 * j + 2):
            factor, slope = factor * (x + i), slope * (x + i) + factor
        scale = scale / (end * end)
    return total


@custom_jvp
def _hurwitz(x, q):
    return lax.zeta(x, q)


def _zeta_jvp(primals, tangents):
    (x, q), (dx, dq) = primals, tangents
    slope = 0 if isinstance(dx, SymbolicZero) else _zeta_by_exponent(x, q) * dx
    if not isinstance(dq, SymbolicZero):
        slope = slope - x * _hurwitz(x + 1, q) * dq
    return _hurwitz(x, q), slope


_hurwitz.defjvp(_zeta_jvp, symbolic_zeros=True)


def zeta(x, q=None):
    """The Hurwitz zeta function: the sum of (n + q) ** -x over n >= 0; NaN for x < 1.

    Args:
      x: real array or number.
      q: real array or number, which broadcasts with `x`; NotImplementedError for None.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.zeta(2.0, wnp.array([1.0, 2.0])).round(3)
      Array([1.645, 0.645], dtype=float32)
    """
    if q is None:
        raise NotImplementedError("[zeta] expected q; pass q=1 for Riemann's zeta function")
    return _zeta(x, q)


@composite(broadcasts=True)
def _zeta(x, q):
    return _hurwitz(*_core.broadcast_arrays(*reals("zeta", x, q)))
