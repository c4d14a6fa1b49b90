"""The normal distribution of several dimensions."""

import math

from weft import _core, numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import ShapeError
from weft.lax.linalg import triangular_solve
from weft.scipy.special._evaluate import inexact

__all__ = [
    "logpdf",
    "pdf",
]
__getattr__, __dir__ = _public(__name__, __all__)


_LOG_TWO_PI = math.log(2 * math.pi)


@composite
def _logpdf(x, mean, cov):
    x, mean, cov = inexact(x, mean, cov)
    if mean.ndim == 0:
        return -0.5 * (jnp.square(x - mean) / cov + _LOG_TWO_PI + jnp.log(cov))
    n = mean.shape[-1]
    if cov.ndim == 0:
        square = jnp.sum(jnp.square(x - mean), axis=-1) / cov
        return -0.5 * (square + n * (_LOG_TWO_PI + jnp.log(cov)))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ShapeError(
            f"[multivariate_normal] expected a mean [..., n] and covariances [..., n, n]; got "
            f"shapes {mean.shape} and {cov.shape}"
        )
    factor = jnp.linalg.cholesky(cov)
    difference = x - mean
    if factor.ndim > 2:
        batch = jnp.broadcast_shapes(difference.shape[:-1], factor.shape[:-2])
        difference = jnp.broadcast_to(difference, (*batch, n))
        factor = jnp.broadcast_to(factor, (*batch, n, n))
        scaled = triangular_solve(factor, difference[..., None], left_side=True, lower=True)
        square = jnp.sum(jnp.square(scaled), axis=(-2, -1))
    else:  # one matrix for all points
        rows = jnp.reshape(difference, (-1, n))
        scaled = triangular_solve(factor, rows, lower=True, transpose_a=True)
        square = jnp.reshape(jnp.sum(jnp.square(scaled), axis=-1), difference.shape[:-1])
    logs = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * (square + n * _LOG_TWO_PI) - logs


def logpdf(x, mean, cov, allow_singular=None):
    """Logarithm of the density at x; NaN where `cov` is not positive definite.

    Args:
      x: array `[..., n]` of points.
      mean: array `[..., n]`, or a number for one dimension.
      cov: covariance matrices `[..., n, n]`, or one variance for all dimensions.
      allow_singular: must be None: NotImplementedError otherwise.

    Returns:
      Array of the broadcast leading axes, of a floating-point dtype.

    Raises:
      ShapeError: for shapes that do not go together.

    Examples:
      >>> normal = weft.scipy.stats.multivariate_normal
      >>> normal.logpdf(wnp.zeros(2), wnp.zeros(2), wnp.eye(2)).round(3)
      Array(-1.838, dtype=float32)
    """
    if allow_singular is not None:
        raise NotImplementedError("[multivariate_normal] allow_singular is not supported")
    _core.check_ranks("multivariate_normal.logpdf", (x, mean))
    return _logpdf(x, mean, cov)


@composite
def _pdf(x, mean, cov):
    return jnp.exp(_logpdf(x, mean, cov))


def pdf(x, mean, cov):
    """The density at x: the exponential of `logpdf`.

    Examples:
      >>> weft.scipy.stats.multivariate_normal.pdf(wnp.zeros(2), wnp.zeros(2), wnp.eye(2)).round(3)
      Array(0.159, dtype=float32)
    """
    _core.check_ranks("multivariate_normal.pdf", (x, mean))
    return _pdf(x, mean, cov)


_open_to_users(__name__)
