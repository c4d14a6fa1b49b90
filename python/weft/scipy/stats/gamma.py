"""The gamma distribution of shape `a`, moved by `loc` and scaled by `scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy import special
from weft.scipy.special._evaluate import reals, sample, with_nan
from weft.scipy.special._saddle_point import LEAST, log_poisson

__all__ = [
    "cdf",
    "logcdf",
    "logpdf",
    "logsf",
    "pdf",
    "sf",
]
__getattr__, __dir__ = _public(__name__, __all__)


def _from_zero(y):
    """y, and 0 below, where the derivative is 0 whatever multiplies it."""
    return jnp.where(y <= 0, 0, y)


@composite(broadcasts=True)
def logpdf(x, a, loc=0, scale=1):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.gamma.logpdf(wnp.array([-1.0, 1.0]), 1.0).round(3)
      Array([-inf,  -1.], dtype=float32)
    """
    x, a, loc, scale = sample("gamma.logpdf", x, a, loc, scale)
    y = (x - loc) / scale
    outside = y < 0
    y = jnp.where(outside, 1, y)  # where no slope is NaN
    large = a > LEAST + 1
    many = log_poisson(jnp.where(large, a - 1, LEAST), jnp.where(large, y, LEAST))
    few, at = jnp.where(large, 1, a), jnp.where(large, 1, y)
    value = special.xlogy(few - 1, at) - at - special.gammaln(few)
    value = jnp.where(large, many, value) - jnp.log(scale)
    return with_nan(jnp.where(outside, -math.inf, value), a)


@composite(broadcasts=True)
def pdf(x, a, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.gamma.pdf(wnp.array([-1.0, 1.0]), 1.0).round(3)
      Array([0.   , 0.368], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, loc, scale))


@composite(broadcasts=True)
def cdf(x, a, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.gamma.cdf(wnp.array([-1.0, 1.0]), 1.0).round(3)
      Array([0.   , 0.632], dtype=float32)
    """
    x, a, loc, scale = sample("gamma.cdf", x, a, loc, scale)
    return special.gammainc(a, _from_zero((x - loc) / scale))


@composite(broadcasts=True)
def logcdf(x, a, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.gamma.logcdf(wnp.array([-1.0, 1.0]), 1.0).round(3)
      Array([  -inf, -0.459], dtype=float32)
    """
    return jnp.log(cdf(x, a, loc, scale))


@composite(broadcasts=True)
def sf(x, a, loc=0, scale=1):
    """The probability of a value above x.

    Examples:
      >>> weft.scipy.stats.gamma.sf(wnp.array([-1.0, 1.0]), 1.0).round(3)
      Array([1.   , 0.368], dtype=float32)
    """
    x, a, loc, scale = reals("gamma.sf", x, a, loc, scale)
    return special.gammaincc(a, _from_zero((x - loc) / scale))


@composite(broadcasts=True)
def logsf(x, a, loc=0, scale=1):
    """Logarithm of the probability of a value above x.

    Examples:
      >>> weft.scipy.stats.gamma.logsf(wnp.array([-1.0, 1.0]), 1.0).round(3)
      Array([ 0., -1.], dtype=float32)
    """
    return jnp.log(sf(x, a, loc, scale))


_open_to_users(__name__)
