"""The logistic distribution of mean `loc` and scale `scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy import special
from weft.scipy.special._evaluate import reals, sample

__all__ = [
    "cdf",
    "isf",
    "logpdf",
    "pdf",
    "ppf",
    "sf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite(broadcasts=True)
def logpdf(x, loc=0, scale=1):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.logistic.logpdf(wnp.array([0.0, 1.0])).round(3)
      Array([-1.386, -1.627], dtype=float32)
    """
    x, loc, scale = sample("logistic.logpdf", x, loc, scale)
    z = (x - loc) / scale
    size = jnp.abs(z)
    return -size - 2 * jnp.log1p(jnp.exp(-size)) - jnp.log(scale)


@composite(broadcasts=True)
def pdf(x, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.logistic.pdf(wnp.array([0.0, 1.0])).round(3)
      Array([0.25 , 0.197], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@composite(broadcasts=True)
def cdf(x, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.logistic.cdf(wnp.array([0.0, 1.0])).round(3)
      Array([0.5  , 0.731], dtype=float32)
    """
    x, loc, scale = reals("logistic.cdf", x, loc, scale)
    z = (x - loc) / scale
    return special.expit(z)


@composite(broadcasts=True)
def sf(x, loc=0, scale=1):
    """The probability of a value above x.

    Examples:
      >>> weft.scipy.stats.logistic.sf(wnp.array([0.0, 1.0])).round(3)
      Array([0.5  , 0.269], dtype=float32)
    """
    x, loc, scale = reals("logistic.sf", x, loc, scale)
    z = (x - loc) / scale
    return special.expit(-z)


@composite(broadcasts=True)
def ppf(x, loc=0, scale=1):
    """The value that is not exceeded with probability x.

    Examples:
      >>> weft.scipy.stats.logistic.ppf(wnp.array([0.5, 1.0])).round(3)
      Array([ 0., inf], dtype=float32)
    """
    x, loc, scale = sample("logistic.ppf", x, loc, scale)
    return special.logit(x) * scale + loc


@composite(broadcasts=True)
def isf(x, loc=0, scale=1):
    """The value that is exceeded with probability x.

    Examples:
      >>> weft.scipy.stats.logistic.isf(wnp.array([0.5, 1.0])).round(3)
      Array([  0., -inf], dtype=float32)
    """
    x, loc, scale = sample("logistic.isf", x, loc, scale)
    return -special.logit(x) * scale + loc


_open_to_users(__name__)
