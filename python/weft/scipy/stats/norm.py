"""The normal distribution of mean `loc` and standard deviation `scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import _core, numpy as jnp
from weft._arguments import weak_as
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.dtypes import dtype_of, is_complex
from weft.scipy import special
from weft.scipy.special._evaluate import computed, inexact, reals, strong_array
from weft.scipy.special._normal import bell

_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)

__all__ = [
    "cdf",
    "isf",
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
      >>> weft.scipy.stats.norm.logpdf(wnp.array([0.0, 1.0])).round(3)
      Array([-0.919, -1.419], dtype=float32)
    """
    x, loc, scale = inexact(x, loc, scale)
    # Squares of a small or a large scale would not be finite numbers.
    z = (strong_array(x) - loc) / scale
    return -0.5 * jnp.square(z) - (jnp.log(jnp.abs(scale)) + _LOG_ROOT_TWO_PI)


@composite(broadcasts=True)
def pdf(x, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.norm.pdf(wnp.array([0.0, 1.0])).round(3)
      Array([0.399, 0.242], dtype=float32)
    """
    x, loc, scale = inexact(x, loc, scale)
    if is_complex(dtype_of(x)):
        return jnp.exp(logpdf(x, loc, scale))
    z = (strong_array(x) - loc) / scale
    density = computed(bell, z) / (math.sqrt(2 * math.pi) * jnp.abs(scale))
    return weak_as(density, z)


@composite(broadcasts=True)
def logcdf(x, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.norm.logcdf(wnp.array([0.0, 1.0])).round(3)
      Array([-0.693, -0.173], dtype=float32)
    """
    x, loc, scale = reals("norm.logcdf", x, loc, scale)
    return special.log_ndtr((x - loc) / scale)


@composite(broadcasts=True)
def cdf(x, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.norm.cdf(wnp.array([0.0, 1.0])).round(3)
      Array([0.5  , 0.841], dtype=float32)
    """
    x, loc, scale = reals("norm.cdf", x, loc, scale)
    return special.ndtr((x - loc) / scale)


@composite(broadcasts=True)
def logsf(x, loc=0, scale=1):
    """Logarithm of the probability of a value above x.

    Examples:
      >>> weft.scipy.stats.norm.logsf(wnp.array([0.0, 1.0])).round(3)
      Array([-0.693, -1.841], dtype=float32)
    """
    x, loc, scale = reals("norm.logsf", x, loc, scale)
    return special.log_ndtr((loc - x) / scale)


@composite(broadcasts=True)
def sf(x, loc=0, scale=1):
    """The probability of a value above x.

    Examples:
      >>> weft.scipy.stats.norm.sf(wnp.array([0.0, 1.0])).round(3)
      Array([0.5  , 0.159], dtype=float32)
    """
    x, loc, scale = reals("norm.sf", x, loc, scale)
    return special.ndtr((loc - x) / scale)


@composite(broadcasts=True)
def ppf(q, loc=0, scale=1):
    """The value that is not exceeded with probability q.

    Examples:
      >>> weft.scipy.stats.norm.ppf(wnp.array([0.5, 0.975])).round(3)
      Array([0.  , 1.96], dtype=float32)
    """
    q, loc, scale = _core.promote_dtypes(q, loc, scale)
    return special.ndtri(q) * scale + loc


@composite(broadcasts=True)
def isf(q, loc=0, scale=1):
    """The value that is exceeded with probability q.

    Examples:
      >>> weft.scipy.stats.norm.isf(wnp.array([0.5, 0.975])).round(3)
      Array([ 0.  , -1.96], dtype=float32)
    """
    q, loc, scale = _core.promote_dtypes(q, loc, scale)
    return loc - special.ndtri(q) * scale


_open_to_users(__name__)
