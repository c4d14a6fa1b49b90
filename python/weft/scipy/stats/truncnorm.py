"""The normal distribution limited to `loc + a * scale` to `loc + b * scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import _core, numpy as jnp
from weft._arguments import strong
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy import special
from weft.scipy.special._evaluate import exp_or_nan, reals, with_nan
from weft.scipy.stats import norm

__all__ = [
    "cdf",
    "logcdf",
    "logpdf",
    "logsf",
    "pdf",
    "sf",
]
__getattr__, __dir__ = _public(__name__, __all__)


def _log_difference(x, y):
    """log(exp(x) - exp(y)) for x > y."""
    return x + jnp.log(-jnp.expm1(y - x))


def _log_mass(a, b):
    """Logarithm of the probability between a and b, with a < b, of the standard distribution."""
    right = a > 0  # where the mirror image has the accurate tail
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    middle = high > 0
    tail_high = jnp.where(middle, -1, high)
    tail_low = jnp.where(middle, -2, low)
    tail = _log_difference(special.log_ndtr(tail_high), special.log_ndtr(tail_low))
    both = special.ndtr(jnp.where(middle, low, -1)) + special.ndtr(jnp.where(middle, -high, -1))
    return jnp.where(middle, jnp.log1p(-both), tail)


def _standardized(function, x, a, b, loc, scale):
    x, a, b, loc, scale = reals(f"truncnorm.{function}", x, a, b, loc, scale)
    return *_core.broadcast_arrays((x - loc) / scale, a, b), scale


def _safe(a, b):
    """a and b with another interval where theirs is empty, and where it is not."""
    valid = a < b
    return jnp.where(valid, a, -1), jnp.where(valid, b, 1), valid


def _log_density(function, x, a, b, loc, scale):
    """The logarithm of the density, and for which parameters it is one."""
    y, a, b, scale = _standardized(function, x, a, b, loc, scale)
    a, b, valid = _safe(a, b)
    value = norm.logpdf(y) - _log_mass(a, b) - jnp.log(scale)
    return jnp.where((y < a) | (y > b), -math.inf, value), valid


@composite(broadcasts=True)
def logpdf(x, a, b, loc=0, scale=1):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.truncnorm.logpdf(wnp.array([0.0, 3.0]), -1.0, 1.0).round(3)
      Array([-0.537,   -inf], dtype=float32)
    """
    value, valid = _log_density("logpdf", x, a, b, loc, scale)
    return strong(jnp.where(valid, value, math.nan))


@composite(broadcasts=True)
def pdf(x, a, b, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.truncnorm.pdf(wnp.array([0.0, 3.0]), -1.0, 1.0).round(3)
      Array([0.584, 0.   ], dtype=float32)
    """
    return strong(exp_or_nan(*_log_density("pdf", x, a, b, loc, scale)))


def _log_lower(y, lowest, highest):
    """Logarithm of the probability of a value of at most y."""
    a, b, valid = _safe(lowest, highest)
    below, above = y <= a, y >= b
    inside = jnp.where(below | above, 0.5 * (a + b), y)
    inside = jnp.where((inside > a) & (inside < b), inside, jnp.where(jnp.isinf(a), b - 1, a + 1))
    inside = jnp.where(jnp.isinf(a) & jnp.isinf(b) & (below | above), 0, inside)
    total = _log_mass(a, b)
    value = _log_mass(a, inside) - total
    # Near 1, by the upper tail.
    upper = _log_mass(inside, b) - total
    value = jnp.where(value > -0.1, jnp.log1p(-jnp.exp(jnp.minimum(upper, -0.1))), value)
    value = jnp.where(y > lowest, jnp.where(valid, value, math.nan), 0)
    value = jnp.where(y <= lowest, -math.inf, jnp.where(y >= highest, 0, value))
    return with_nan(jnp.where(lowest >= highest, math.nan, value), y, lowest, highest)


@composite(broadcasts=True)
def logcdf(x, a, b, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.truncnorm.logcdf(wnp.array([0.0, 3.0]), -1.0, 1.0).round(3)
      Array([-0.693,  0.   ], dtype=float32)
    """
    y, a, b, _ = _standardized("logcdf", x, a, b, loc, scale)
    return strong(_log_lower(y, a, b))


@composite(broadcasts=True)
def cdf(x, a, b, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.truncnorm.cdf(wnp.array([0.0, 3.0]), -1.0, 1.0).round(3)
      Array([0.5, 1. ], dtype=float32)
    """
    return jnp.exp(logcdf(x, a, b, loc, scale))


@composite(broadcasts=True)
def logsf(x, a, b, loc=0, scale=1):
    """Logarithm of the probability of a value above x.

    Examples:
      >>> weft.scipy.stats.truncnorm.logsf(wnp.array([0.0, 3.0]), -1.0, 1.0).round(3)
      Array([-0.693,   -inf], dtype=float32)
    """
    y, a, b, _ = _standardized("logsf", x, a, b, loc, scale)
    return strong(_log_lower(-y, -b, -a))


@composite(broadcasts=True)
def sf(x, a, b, loc=0, scale=1):
    """The probability of a value above x.

    Examples:
      >>> weft.scipy.stats.truncnorm.sf(wnp.array([0.0, 3.0]), -1.0, 1.0).round(3)
      Array([0.5, 0. ], dtype=float32)
    """
    return jnp.exp(logsf(x, a, b, loc, scale))


_open_to_users(__name__)
