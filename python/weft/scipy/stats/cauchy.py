"""The Cauchy distribution of median `loc` and half width `scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.special._evaluate import log1p_of_square, sample

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
      >>> weft.scipy.stats.cauchy.logpdf(wnp.array([0.0, 1.0])).round(3)
      Array([-1.145, -1.838], dtype=float32)
    """
    x, loc, scale = sample("cauchy.logpdf", x, loc, scale)
    y = (x - loc) / scale
    return -jnp.log(math.pi * scale) - log1p_of_square(y)


@composite(broadcasts=True)
def pdf(x, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.cauchy.pdf(wnp.array([0.0, 1.0])).round(3)
      Array([0.318, 0.159], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def _far(y):
    """Where y > 1, 1/y there, and arctan(1/y) / pi."""
    far = y > 1
    inverse = 1 / jnp.where(far, y, 1)
    return far, inverse, jnp.arctan(inverse) / math.pi


def _tail(y):
    """The probability of a value above y, of the standard distribution."""
    far, _, tail = _far(y)
    return jnp.where(far, tail, 0.5 - jnp.arctan(jnp.where(far, 0, y)) / math.pi)


def _log_tail(y):
    far, inverse, tail = _far(y)
    below, _, rest = _far(-y)
    # The probability may be too small for a number.
    vanishes = inverse == 0
    ratio = jnp.where(vanishes, 1 / math.pi, tail / jnp.where(vanishes, 1, inverse))
    log_far = jnp.log(ratio) - jnp.log(jnp.where(far, y, 1))
    middle = jnp.where(far | below, 0, y)
    near = jnp.where(below, jnp.log1p(-rest), jnp.log(0.5 - jnp.arctan(middle) / math.pi))
    return jnp.where(far, log_far, near)


@composite(broadcasts=True)
def cdf(x, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.cauchy.cdf(wnp.array([0.0, 1.0])).round(3)
      Array([0.5 , 0.75], dtype=float32)
    """
    x, loc, scale = sample("cauchy.cdf", x, loc, scale)
    return _tail((loc - x) / scale)


@composite(broadcasts=True)
def logcdf(x, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.cauchy.logcdf(wnp.array([0.0, 1.0])).round(3)
      Array([-0.693, -0.288], dtype=float32)
    """
    x, loc, scale = sample("cauchy.logcdf", x, loc, scale)
    return _log_tail((loc - x) / scale)


@composite(broadcasts=True)
def sf(x, loc=0, scale=1):
    """The probability of a value above x.

    Examples:
      >>> weft.scipy.stats.cauchy.sf(wnp.array([0.0, 1.0])).round(3)
      Array([0.5 , 0.25], dtype=float32)
    """
    x, loc, scale = sample("cauchy.sf", x, loc, scale)
    return _tail((x - loc) / scale)


@composite(broadcasts=True)
def logsf(x, loc=0, scale=1):
    """Logarithm of the probability of a value above x.

    Examples:
      >>> weft.scipy.stats.cauchy.logsf(wnp.array([0.0, 1.0])).round(3)
      Array([-0.693, -1.386], dtype=float32)
    """
    x, loc, scale = sample("cauchy.logsf", x, loc, scale)
    return _log_tail((x - loc) / scale)


@composite(broadcasts=True)
def ppf(q, loc=0, scale=1):
    """The value that is not exceeded with probability q.

    Examples:
      >>> weft.scipy.stats.cauchy.ppf(wnp.array([0.5, 0.75])).round(3)
      Array([0., 1.], dtype=float32)
    """
    q, loc, scale = sample("cauchy.ppf", q, loc, scale)
    return jnp.tan(math.pi * q - math.pi / 2) * scale + loc


@composite(broadcasts=True)
def isf(q, loc=0, scale=1):
    """The value that is exceeded with probability q.

    Examples:
      >>> weft.scipy.stats.cauchy.isf(wnp.array([0.5, 0.75])).round(3)
      Array([ 0., -1.], dtype=float32)
    """
    q, loc, scale = sample("cauchy.isf", q, loc, scale)
    return jnp.tan(math.pi / 2 - math.pi * q) * scale + loc


_open_to_users(__name__)
