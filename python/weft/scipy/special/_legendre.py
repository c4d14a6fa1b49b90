"""Associated Legendre functions of all orders and degrees, by recurrence in the degree
(DLMF 14.10.3, 14.7.15)."""

import math

import numpy as np

from weft import _core, numpy as jnp
from weft._arguments import static_int
from weft._jit import composite
from weft.dtypes import is_float
from weft.errors import DTypeError, ShapeError
from weft.lax import _control as control


def lpmn_values(m, n, z, is_normalized):
    """Associated Legendre functions of the first kind, with the phase of Condon and Shortley.

    Args:
      m, n: the highest order and degree, integers, which must be equal: NotImplementedError
        otherwise.
      z: float array `[k]`; DTypeError and ShapeError for others.
      is_normalized: whether with the factors that make spherical harmonics orthonormal.

    Returns:
      Array `[m + 1, n + 1, k]` of the dtype of `z`.

    Examples:
      >>> weft.scipy.special.lpmn_values(1, 1, wnp.array([0.6]), False)[..., 0]
      Array([[ 1. ,  0.6],
             [ 0. , -0.8]], dtype=float32)
    """
    return _values(_checked("lpmn_values", m, n, z), z, bool(is_normalized))


def lpmn(m, n, z):
    """Associated Legendre functions of the first kind, and their derivatives.

    Args:
      m, n: the highest order and degree, integers, which must be equal: NotImplementedError
        otherwise.
      z: float array `[k]`; DTypeError and ShapeError for others.

    Returns:
      A tuple of two arrays `[m + 1, n + 1, k]` of the dtype of `z`.

    Examples:
      >>> weft.scipy.special.lpmn(1, 1, wnp.array([0.6]))[1][..., 0].round(2)
      Array([[0.  , 1.  ],
             [0.  , 0.75]], dtype=float32)
    """
    highest = _checked("lpmn", m, n, z)
    values = _values(highest, z, False)
    return values, _slopes(values, z)


def _checked(name, m, n, z):
    m, n = static_int(m, name, "m"), static_int(n, name, "n")
    shape, dtype = _core.typeof(z)[:2]
    if not is_float(dtype):
        raise DTypeError(f"[{name}] expected z to be floats; got {dtype}")
    if len(shape) != 1:
        raise ShapeError(f"[{name}] expected z to have one axis; got {len(shape)}")
    if m != n:
        raise NotImplementedError(f"[{name}] expected m and n to be equal; got {m} and {n}")
    return n


def _recurrence(highest, is_normalized):
    """(first value, and per degree k from 1 three weights by order): the function of degree k is
    up (z last - back before) where the order is below k, and - side sqrt(1 - z^2) times the one of
    the order and degree before where it is k."""
    k, order = np.arange(1.0, highest + 1)[:, None], np.arange(0.0, highest + 1)
    below, at = order < k, order == k
    smaller = np.where(below, order, 0)
    if is_normalized:
        up = np.sqrt((4 * k * k - 1) / (k * k - smaller**2))
        gap = np.maximum((k - 1) ** 2 - smaller**2, 0)
        back = np.sqrt(gap / np.maximum(4 * (k - 1) ** 2 - 1, 1))
        side = np.sqrt((2 * k + 1) / (2 * k))
    else:
        up, back, side = (2 * k - 1) / (k - smaller), (k + smaller - 1) / (2 * k - 1), 2 * k - 1
    return math.sqrt(0.25 / math.pi) if is_normalized else 1.0, (up * below, back, side * at)


@composite(static_argnames=("highest", "is_normalized"))
def _values(highest, z, is_normalized):
    first, weights = _recurrence(highest, is_normalized)
    weights = [jnp.asarray(w[..., None], z.dtype) for w in weights]
    sin = jnp.sqrt((1 - z) * (1 + z))

    def degree(carry, weight):
        before, last = carry
        up, back, side = weight
        value = up * (z * last - back * before) - side * sin * jnp.roll(last, 1, 0)
        return (last, value), value

    zero = jnp.zeros((highest + 1, *z.shape), z.dtype)
    start = zero.at[0].set(first)
    _, values = control.scan(degree, (zero, start), weights)
    return jnp.swapaxes(jnp.concatenate([start[None], values]), 0, 1)


@composite()
def _slopes(values, z):
    n = jnp.arange(values.shape[1], dtype=z.dtype)[:, None]
    m = jnp.arange(values.shape[0], dtype=z.dtype)[:, None, None]
    below = jnp.pad(values[:, :-1], ((0, 0), (1, 0), (0, 0)))
    at_end = jnp.abs(z) == 1
    slopes = ((n + m) * below - n * z * values) / jnp.where(at_end, 1, (1 - z) * (1 + z))
    ends = jnp.asarray(_slopes_at_one(values.shape[1])[..., None], z.dtype)
    odd = (n + m) % 2 == 1
    return jnp.where(at_end, jnp.where(odd | (z == 1), ends, -ends), slopes)


def _slopes_at_one(degrees):
    """By order and degree the derivatives at 1; those at -1 differ by the sign if n + m is even."""
    n = np.arange(degrees)
    slopes = np.zeros((degrees, degrees))
    rows = [n * (n + 1) / 2, np.where(n > 0, np.inf, 0), -(n - 1) * n * (n + 1) * (n + 2) / 4]
    slopes[:3] = rows[:degrees]
    return slopes
