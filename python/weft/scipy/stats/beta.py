"""The beta distribution of the parameters `a` and `b`, on `loc` to `loc + scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import lax, numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy import special
from weft.scipy.special._evaluate import sample, with_nan

__all__ = [
    "cdf",
    "logcdf",
    "logpdf",
    "logsf",
    "pdf",
    "sf",
]
__getattr__, __dir__ = _public(__name__, __all__)


def _within(y):
    """y in 0..1, where outside of them the derivative is 0 whatever multiplies it."""
    return lax.clamp(jnp.zeros_like(y), y, jnp.ones_like(y))


@composite(broadcasts=True)
def logpdf(x, a, b, loc=0, scale=1):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.beta.logpdf(wnp.array([0.0, 0.5, 1.0]), 2.0, 2.0).round(3)
      Array([ -inf, 0.405,  -inf], dtype=float32)
    """
    x, a, b, loc, scale = sample("beta.logpdf", x, a, b, loc, scale)
    y = (x - loc) / scale
    value = special.xlogy(a - 1, y) + special.xlog1py(b - 1, -y)
    value = value - special.betaln(a, b) - jnp.log(scale)
    value = jnp.where((y < 0) | (y > 1), -math.inf, value)
    return with_nan(jnp.where(_are_wrong(a, b, scale), math.nan, value), y, a, b)


def _are_wrong(a, b, scale):
    return (a <= 0) | (b <= 0) | (scale <= 0)


@composite(broadcasts=True)
def pdf(x, a, b, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.beta.pdf(wnp.array([0.0, 0.5, 1.0]), 2.0, 2.0).round(3)
      Array([0. , 1.5, 0. ], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@composite(broadcasts=True)
def cdf(x, a, b, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.beta.cdf(wnp.array([0.0, 0.5, 1.0]), 2.0, 2.0).round(3)
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    x, a, b, loc, scale = sample("beta.cdf", x, a, b, loc, scale)
    value = special.betainc(a, b, _within((x - loc) / scale))
    return jnp.where(_are_wrong(a, b, scale), math.nan, value)


@composite(broadcasts=True)
def logcdf(x, a, b, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.beta.logcdf(wnp.array([0.0, 0.5, 1.0]), 2.0, 2.0).round(3)
      Array([  -inf, -0.693,  0.   ], dtype=float32)
    """
    return jnp.log(cdf(x, a, b, loc, scale))


@composite(broadcasts=True)
def sf(x, a, b, loc=0, scale=1):
    """The probability of a value above x.

    Examples:
      >>> weft.scipy.stats.beta.sf(wnp.array([0.0, 0.5, 1.0]), 2.0, 2.0).round(3)
      Array([1. , 0.5, 0. ], dtype=float32)
    """
    x, a, b, loc, scale = sample("beta.sf", x, a, b, loc, scale)
    value = special.betainc(b, a, 1 - _within((x - loc) / scale))
    return jnp.where(_are_wrong(a, b, scale), math.nan, value)


@composite(broadcasts=True)
def logsf(x, a, b, loc=0, scale=1):
    """Logarithm of the probability of a value above x.

    Examples:
      >>> weft.scipy.stats.beta.logsf(wnp.array([0.0, 0.5, 1.0]), 2.0, 2.0).round(3)
      Array([ 0.   , -0.693,   -inf], dtype=float32)
    """
    return jnp.log(sf(x, a, b, loc, scale))


_open_to_users(__name__)
