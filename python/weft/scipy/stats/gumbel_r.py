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


@composite
def logpdf(x, loc=0, scale=1):
    """Logarithm of the density at x."""
    x, loc, scale = reals("gumbel_r.logpdf", x, loc, scale)
    z = (x - loc) / jnp.where(scale > 0, scale, math.nan)
    growth = jnp.exp(-z)
    value = -jnp.log(scale) - (z + growth)
    return jnp.where(growth == math.inf, -math.inf, value)


@composite
def pdf(x, loc=0, scale=1):
    """The density at x."""
    return jnp.exp(logpdf(x, loc, scale))


@composite
def logcdf(x, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x."""
    x, loc, scale = reals("gumbel_r.logcdf", x, loc, scale)
    z = (x - loc) / jnp.where(scale > 0, scale, math.nan)
    return -jnp.exp(-z)


@composite
def cdf(x, loc=0, scale=1):
    """The probability of a value of at most x."""
    return jnp.exp(logcdf(x, loc, scale))


@composite
def sf(x, loc=0, scale=1):
    """The probability of a value above x."""
    x, loc, scale = sample("gumbel_r.sf", x, loc, scale)
    return -jnp.expm1(logcdf(x, loc, scale))


@composite
def logsf(x, loc=0, scale=1):
    """Logarithm of the probability of a value above x."""
    return jnp.log(-jnp.expm1(logcdf(x, loc, scale)))


@composite
def ppf(p, loc=0, scale=1):
    """The value that is not exceeded with probability p."""
    p, loc, scale = reals("gumbel_r.ppf", p, loc, scale)
    return loc - scale * jnp.log(-jnp.log(p))


_open_to_users(__name__)
