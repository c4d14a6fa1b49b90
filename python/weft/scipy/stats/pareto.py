"""The Pareto distribution of the exponent `b`, above `loc + scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.special._evaluate import sample, with_nan

__all__ = [
    "cdf",
    "logcdf",
    "logpdf",
    "logsf",
    "pdf",
    "ppf",
    "sf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite(broadcasts=True)
def logpdf(x, b, loc=0, scale=1):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.pareto.logpdf(wnp.array([0.5, 2.0]), 1.0).round(3)
      Array([  -inf, -1.386], dtype=float32)
    """
    x, b, loc, scale = sample("pareto.logpdf", x, b, loc, scale)
    y = (x - loc) / scale
    value = jnp.log(b / scale) - (b + 1) * jnp.log(y)
    return with_nan(jnp.where(y < 1, -math.inf, value), b)


@composite(broadcasts=True)
def pdf(x, b, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.pareto.pdf(wnp.array([0.5, 2.0]), 1.0).round(3)
      Array([0.  , 0.25], dtype=float32)
    """
    return jnp.exp(logpdf(x, b, loc, scale))


@composite(broadcasts=True)
def logsf(x, b, loc=0, scale=1):
    """Logarithm of the probability of a value above x.

    Examples:
      >>> weft.scipy.stats.pareto.logsf(wnp.array([2.0, 4.0]), 1.0).round(3)
      Array([-0.693, -1.386], dtype=float32)
    """
    x, b, loc, scale = sample("pareto.logsf", x, b, loc, scale)
    y = (x - loc) / scale
    return -b * jnp.log(jnp.where(y <= 1, 1, y))


@composite(broadcasts=True)
def sf(x, b, loc=0, scale=1):
    """The probability of a value above x.

    Examples:
      >>> weft.scipy.stats.pareto.sf(wnp.array([0.5, 2.0]), 1.0).round(3)
      Array([1. , 0.5], dtype=float32)
    """
    return jnp.exp(logsf(x, b, loc, scale))


@composite(broadcasts=True)
def cdf(x, b, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.pareto.cdf(wnp.array([0.5, 2.0]), 1.0).round(3)
      Array([0. , 0.5], dtype=float32)
    """
    return -jnp.expm1(logsf(x, b, loc, scale))


@composite(broadcasts=True)
def logcdf(x, b, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.pareto.logcdf(wnp.array([0.5, 2.0]), 1.0).round(3)
      Array([  -inf, -0.693], dtype=float32)
    """
    return jnp.log(cdf(x, b, loc, scale))


@composite(broadcasts=True)
def ppf(q, b, loc=0, scale=1):
    """The value that is not exceeded with probability q.

    Examples:
      >>> weft.scipy.stats.pareto.ppf(wnp.array([0.0, 0.75]), 1.0).round(3)
      Array([1., 4.], dtype=float32)
    """
    q, b, loc, scale = sample("pareto.ppf", q, b, loc, scale)
    value = jnp.exp(-jnp.log1p(-q) / b) * scale + loc
    return jnp.where((q < 0) | (q > 1), math.nan, value)


_open_to_users(__name__)
