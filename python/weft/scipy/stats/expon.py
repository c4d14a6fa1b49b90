"""The exponential distribution of mean `scale`, moved by `loc`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.special._evaluate import reals, with_nan

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
def logpdf(x, loc=0, scale=1):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.expon.logpdf(wnp.array([-1.0, 1.0])).round(3)
      Array([-inf,  -1.], dtype=float32)
    """
    x, loc, scale = reals("expon.logpdf", x, loc, scale)
    value = -(x - loc) / scale - jnp.log(scale)
    return with_nan(jnp.where(x < loc, -math.inf, value), scale)


@composite(broadcasts=True)
def pdf(x, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.expon.pdf(wnp.array([-1.0, 1.0])).round(3)
      Array([0.   , 0.368], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@composite(broadcasts=True)
def cdf(x, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.expon.cdf(wnp.array([1.0, np.inf])).round(3)
      Array([0.632, 1.   ], dtype=float32)
    """
    return -jnp.expm1(logsf(x, loc, scale))


@composite(broadcasts=True)
def logcdf(x, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.expon.logcdf(wnp.array([-1.0, 1.0])).round(3)
      Array([  -inf, -0.459], dtype=float32)
    """
    return jnp.log(cdf(x, loc, scale))


@composite(broadcasts=True)
def sf(x, loc=0, scale=1):
    """The probability of a value above x.

    Examples:
      >>> weft.scipy.stats.expon.sf(wnp.array([-1.0, 1.0])).round(3)
      Array([1.   , 0.368], dtype=float32)
    """
    return jnp.exp(logsf(x, loc, scale))


@composite(broadcasts=True)
def logsf(x, loc=0, scale=1):
    """Logarithm of the probability of a value above x.

    Examples:
      >>> weft.scipy.stats.expon.logsf(wnp.array([-1.0, 1.0])).round(3)
      Array([ 0., -1.], dtype=float32)
    """
    x, loc, scale = reals("expon.logsf", x, loc, scale)
    return with_nan(jnp.where(x < loc, 0, -(x - loc) / scale), scale)


@composite(broadcasts=True)
def ppf(q, loc=0, scale=1):
    """The value that is not exceeded with probability q.

    Examples:
      >>> weft.scipy.stats.expon.ppf(wnp.array([0.0, 0.5])).round(3)
      Array([0.   , 0.693], dtype=float32)
    """
    q, loc, scale = reals("expon.ppf", q, loc, scale)
    value = loc - scale * jnp.log1p(-q)
    return jnp.where((q < 0) | (q > 1), math.nan, value)


_open_to_users(__name__)
