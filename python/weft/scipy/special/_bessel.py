"""Bessel functions."""

import math

from weft import _core, lax, numpy as jnp
from weft._arguments import static_int, weak_as
from weft._custom_rules import custom_jvp
from weft._jit import composite
from weft.lax import _control as control
from weft.scipy.special._evaluate import computed, horner, is_double, listed, reals


def _unscaled(value, x):
    """`value` times exp(|x|), which may be finite where exp(|x|) is not; infinite where x is."""
    size = jnp.abs(x)
    large = size > 80
    power = jnp.exp(jnp.where(large, 0.5 * size, size))
    value = value * power * jnp.where(large, power, 1)
    return jnp.where(jnp.isinf(x), size, value)


@custom_jvp
def _i0(x):
    return _unscaled(lax.bessel_i0e(x), x)


@custom_jvp
def _i1(x):
    value = _unscaled(lax.bessel_i1e(x), x)
    return jnp.where(jnp.isinf(x), x, value)


@_i0.defjvp
def _i0_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _i0(x), _i1(x) * dx


# I1(x) / x in powers of (x/2)**2, for |x| up to 1 (DLMF 10.25.2).
_I1_QUOTIENT = [0.5 / (math.factorial(k) * math.factorial(k + 1)) for k in range(9, -1, -1)]


@_i1.defjvp
def _i1_jvp(primals, tangents):
    # I1' = I0 - I1/x. Around 0 the quotient is a polynomial, for the derivatives of that.
    (x,), (dx,) = primals, tangents
    even = _i0(x)
    near, plain = jnp.abs(x) < 1, jnp.isfinite(even)
    at = jnp.where(near | ~plain, 1, x)
    quotient = horner(jnp.square(jnp.where(near, x, 0) / 2), _I1_QUOTIENT)
    quotient = jnp.where(near, quotient, jnp.where(plain, _i1(at) / at, 0))
    return _i1(x), (even - quotient) * dx


@composite
def i0(x):
    """Modified Bessel function of the first kind of order 0.

    Args:
      x: real array or number.

    Returns:
      Array of the shape of `x` and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.i0(wnp.array([0.0, 1.0])).round(3)
      Array([1.   , 1.266], dtype=float32)
    """
    (x,) = reals("i0", x)
    return weak_as(computed(_i0, x), x)


@composite
def i1(x):
    """Modified Bessel function of the first kind of order 1.

    Args:
      x: real array or number.

    Returns:
      Array of the shape of `x` and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.i1(wnp.array([0.0, 1.0])).round(3)
      Array([0.   , 0.565], dtype=float32)
    """
    (x,) = reals("i1", x)
    return weak_as(computed(_i1, x), x)


def bessel_jn(z, *, v, n_iter=50):
    """Bessel functions of the first kind of the orders 0 to v.

    By J. C. P. Miller's backward recurrence (DLMF 3.6.3, 10.6.1), which is exact to working
    precision where `n_iter` exceeds |z| and v by some.

    Args:
      z: real array or number.
      v: the highest order, an integer.
      n_iter: the recurrence goes down from the order n_iter + 1; an integer.

    Returns:
      Array `[v + 1, ...]` with the shape of `z` after the first axis, of a floating-point dtype;
      of `n_iter + 1` orders if that is fewer.

    Examples:
      >>> weft.scipy.special.bessel_jn(wnp.array([1.0]), v=2).round(3)
      Array([[0.765],
             [0.44 ],
             [0.115]], dtype=float32)
    """
    v, n_iter = static_int(v, "bessel_jn", "v"), static_int(n_iter, "bessel_jn", "n_iter")
    return _bessel_jn(z, max(v, -1), max(n_iter, 0))


@composite(static_argnames=("v", "n_iter"))
def _bessel_jn(z, v, n_iter):
    (z,) = reals("bessel_jn", *listed(z))
    z = _core.astype(z, z.dtype)
    rows = min(v, n_iter) + 1
    zero = z == 0
    twice_inverse = 2 / jnp.where(zero, 1, z)
    limit = 1e100 if is_double(z) else 1e10 if z.dtype.itemsize == 4 else 1e2

    def step(carry, k):
        # J(k - 1) from J(k) and J(k + 1); all so far are scaled down before they overflow.
        above, at, total, kept = carry
        below = k * twice_inverse * at - above
        total = total + jnp.where(jnp.fmod(k, 2) == 1, 2 * below, 0)
        kept = jnp.where(rows_at == k - 1, below, kept)
        scale = jnp.where(jnp.abs(below) > limit, 1 / limit, 1)
        return (at * scale, below * scale, total * scale, kept * scale), None

    shape = (rows,) + (1,) * z.ndim
    rows_at = jnp.reshape(jnp.arange(rows, dtype=z.dtype), shape)
    one = jnp.ones_like(z)
    # J(0) + 2 J(2) + 2 J(4) + ... = 1
    total = 2 * one if n_iter % 2 else jnp.zeros_like(z)
    kept = jnp.zeros((rows, *z.shape), z.dtype)
    orders = jnp.arange(n_iter + 1, 0, -1).astype(z.dtype)
    carry = (jnp.zeros_like(z), one, total, kept)
    (_, at, total, kept), _ = control.scan(step, carry, orders)
    kept = kept / (total - at)
    return jnp.where(zero, jnp.where(rows_at == 0, one, 0), kept)
