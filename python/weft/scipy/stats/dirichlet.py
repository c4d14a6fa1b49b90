"""The Dirichlet distribution of the parameters `alpha`: of probabilities that sum to 1."""

import math

from weft import numpy as jnp
from weft._arguments import shape_of
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import IndexOutOfBoundsError, ShapeError
from weft.scipy import special
from weft.scipy.special._evaluate import reals, with_nan

__all__ = [
    "logpdf",
    "pdf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite
def logpdf(x, alpha):
    """Logarithm of the density at x; -inf for what are no positive numbers that sum to 1.

    Args:
      x: array `[n, ...]` of probabilities, or `[n - 1, ...]` without the last one.
      alpha: array `[n]` of positive parameters.

    Returns:
      Array `[...]` of a floating-point dtype.

    Raises:
      ShapeError: for other shapes.

    Examples:
      >>> weft.scipy.stats.dirichlet.logpdf(wnp.array([0.2, 0.8]), wnp.array([2.0, 1.0])).round(3)
      Array(-0.916, dtype=float32)
    """
    shapes = shape_of(x), shape_of(alpha)
    if len(shapes[1]) != 1:
        raise ShapeError(f"[dirichlet] expected alpha to have one axis; got shape {shapes[1]}")
    n = shapes[1][0]
    if not shapes[0] or shapes[0][0] not in (n, n - 1):
        raise _shape_error(shapes)
    x, alpha = reals("dirichlet.logpdf", x, alpha)
    if shapes[0][0] == n - 1:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)], axis=0)
    alpha = jnp.expand_dims(alpha, tuple(range(1, x.ndim)))
    valid = jnp.all(x > 0, axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1) < 1e-6)
    terms = special.xlogy(alpha - 1, jnp.where(valid, x, 1)) - special.gammaln(alpha)
    value = jnp.sum(terms, axis=0) + special.gammaln(jnp.sum(alpha))
    value = jnp.where(valid, value, -math.inf)
    return with_nan(value, jnp.sum(x, axis=0), jnp.sum(alpha))


def _shape_error(shapes):
    error = ShapeError if shapes[0] else IndexOutOfBoundsError
    n = shapes[1][0]
    return error(f"[dirichlet] expected x with {n} or {n - 1} rows; got shape {shapes[0]}")


@composite
def pdf(x, alpha):
    """The density at x: the exponential of `logpdf`.

    Examples:
      >>> weft.scipy.stats.dirichlet.pdf(wnp.array([0.2, 0.8]), wnp.array([2.0, 1.0])).round(3)
      Array(0.4, dtype=float32)
    """
    return jnp.exp(logpdf(x, alpha))


_open_to_users(__name__)
