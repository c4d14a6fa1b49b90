"""The Gumbel distribution of maxima, with mode `loc` and scale `scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.special._evaluate import reals, sample

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
      >>> weft.scipy.stats.gumbel_r.logpdf(wnp.array([0.0, 1.0])).round(3)
      Array([-1.   , -1.368], dtype=float32)
    """
    x, loc, scale = reals("gumbel_r.logpdf", x, loc, scale)
    z = (x - loc) / jnp.where(scale > 0, scale, math.nan)
    growth = jnp.exp(-z)
    return -jnp.log(scale) - (jnp.where(z == -math.inf, 0, z) + growth)


@composite(broadcasts=True)
def pdf(x, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.gumbel_r.pdf(wnp.array([0.0, 1.0])).round(3)
      Array([0.368, 0.255], dtype=float32)
    """
    x, loc, scale = reals("gumbel_r.pdf", x, loc, scale)
    z = _where_not_zero(x, loc, scale)
    return jnp.exp(-(z + jnp.exp(-z))) / scale


def _where_not_zero(x, loc, scale):
    """The standardized x, but at least -7: there exp(-exp(7)) is 0, and so are its slopes, which
    would be products of 0 and infinity further on."""
    z = (x - loc) / jnp.where(scale > 0, scale, math.nan)
    return jnp.maximum(z, -7)


@composite(broadcasts=True)
def logcdf(x, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.gumbel_r.logcdf(wnp.array([0.0, 1.0])).round(3)
      Array([-1.   , -0.368], dtype=float32)
    """
    x, loc, scale = reals("gumbel_r.logcdf", x, loc, scale)
    z = (x - loc) / jnp.where(scale > 0, scale, math.nan)
    return -jnp.exp(-z)


@composite(broadcasts=True)
def cdf(x, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.gumbel_r.cdf(wnp.array([0.0, 1.0])).round(3)
      Array([0.368, 0.692], dtype=float32)
    """
    x, loc, scale = reals("gumbel_r.cdf", x, loc, scale)
    return jnp.exp(-jnp.exp(-_where_not_zero(x, loc, scale)))


@composite(broadcasts=True)
def sf(x, loc=0, scale=1):
    """The probability of a value above x.

    Examples:
      >>> weft.scipy.stats.gumbel_r.sf(wnp.array([0.0, 1.0])).round(3)
      Array([0.632, 0.308], dtype=float32)
    """
    x, loc, scale = sample("gumbel_r.sf", x, loc, scale)
    return -jnp.expm1(-jnp.exp(-_where_not_zero(x, loc, scale)))


@composite(broadcasts=True)
def logsf(x, loc=0, scale=1):
    """Logarithm of the probability of a value above x.

    Examples:
      >>> weft.scipy.stats.gumbel_r.logsf(wnp.array([0.0, 1.0])).round(3)
      Array([-0.459, -1.178], dtype=float32)
    """
    x, loc, scale = reals("gumbel_r.logsf", x, loc, scale)
    z = _where_not_zero(x, loc, scale)
    # From 40 on it is log(exp(-z)) to working precision, where exp(-z) may be 0.
    far = z > 40
    growth = jnp.exp(-jnp.where(far, 0, z))
    large = growth > math.log(2)
    below, above = jnp.where(large, 0.5, growth), jnp.where(large, growth, 1)
    near = jnp.where(large, jnp.log1p(-jnp.exp(-above)), jnp.log(-jnp.expm1(-below)))
    return jnp.where(far, -z, near)


@composite(broadcasts=True)
def ppf(p, loc=0, scale=1):
    """The value that is not exceeded with probability p.

    Examples:
      >>> weft.scipy.stats.gumbel_r.ppf(wnp.array([0.5, 1.0])).round(3)
      Array([0.367,   inf], dtype=float32)
    """
    p, loc, scale = reals("gumbel_r.ppf", p, loc, scale)
    return loc - scale * jnp.log(-jnp.log(p))


_open_to_users(__name__)
