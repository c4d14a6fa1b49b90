"""Spherical harmonics."""

import math

from weft import _core, lax, numpy as jnp
from weft._arguments import static_int
from weft._jit import composite
from weft.dtypes import is_integer
from weft.errors import ConcretizationTypeError, DTypeError
from weft.lax import _control as control
from weft.scipy.special._evaluate import is_double


def sph_harm_y(n, m, theta, phi, diff_n=None, n_max=None):
    """Orthonormal spherical harmonics, with the phase of Condon and Shortley.

    By the recurrence of normalized associated Legendre functions in the degree (DLMF 14.10.3,
    14.30.1).

    Args:
      n, m: integer arrays `[k]`: degrees that are not negative, and orders with |m| <= n.
      theta: array `[k]` of polar angles, from 0 to pi.
      phi: array `[k]` of azimuthal angles. All four broadcast together.
      diff_n: must be None: NotImplementedError otherwise.
      n_max: the highest degree, an integer, which higher ones are limited to; that of `n` if it is
        None, whose values must then be known.

    Returns:
      Complex array `[k]`.

    Examples:
      >>> weft.scipy.special.sph_harm_y(wnp.array([0]), wnp.array([0]), 0.5, 0.0).round(3)
      Array([0.282+0.j], dtype=complex64)
    """
    if diff_n is not None:
        raise NotImplementedError("[sph_harm_y] diff_n is not supported")
    for each in (n, m):
        if not is_integer(_core.typeof(each)[1]):
            raise DTypeError(
                f"[sph_harm_y] expected n and m to be integers; got {_core.typeof(each)[1]}"
            )
    if n_max is None:
        try:
            n_max = int(jnp.max(n))
        except ConcretizationTypeError as error:
            raise ConcretizationTypeError(
                "[sph_harm_y] expected n_max=, an integer, where the values of n are not known"
            ) from error
    return _sph_harm_y(n, m, theta, phi, max(static_int(n_max, "sph_harm_y", "n_max"), 0))


@composite(static_argnames=("n_max",))
def _sph_harm_y(n, m, theta, phi, n_max):
    theta, phi = _core.promote_dtypes_inexact(theta, phi)
    n, m, theta, phi = _core.broadcast_arrays(n, m, theta, phi)
    theta, phi = _core.astype(theta, theta.dtype), _core.astype(phi, phi.dtype)
    n = jnp.minimum(n, n_max)
    order = jnp.abs(m)
    cos, sin = jnp.cos(theta), jnp.sin(theta)

    def degree(carry, k):
        # The functions of degree k - 1 and k - 2 where k > order; of degree = order where k is at
        # most that.
        before, last, found = carry
        real = jnp.asarray(k, theta.dtype)
        diagonal = -jnp.sqrt((2 * real + 1) / (2 * real)) * sin * last
        square = jnp.square(jnp.asarray(jnp.where(order < k, order, 0), theta.dtype))
        factor = jnp.sqrt((4 * real * real - 1) / (real * real - square))
        gap = jnp.maximum(jnp.square(real - 1) - square, 0)
        weight = jnp.sqrt(gap / jnp.maximum(4 * jnp.square(real - 1) - 1, 1))
        upward = factor * (cos * last - weight * before)
        up = k > order
        value = jnp.where(up, upward, diagonal)
        return (jnp.where(up, last, 0), value, jnp.where(n == k, value, found)), None

    first = jnp.full_like(theta, math.sqrt(0.25 / math.pi))
    degrees = jnp.arange(1, n_max + 1, dtype=n.dtype)
    (_, _, found), _ = control.scan(degree, (jnp.zeros_like(theta), first, first), degrees)
    found = jnp.where(order > n, 0, found)
    found = jnp.where((m < 0) & (order % 2 == 1), -found, found)
    angle = jnp.asarray(m, theta.dtype) * phi
    result = lax.complex(found * jnp.cos(angle), found * jnp.sin(angle))
    return result.astype("complex128" if is_double(theta) else "complex64")
