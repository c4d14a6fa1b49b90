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
    """Logarithm of the density at x."""
    x, b, loc, scale = sample("pareto.logpdf", x, b, loc, scale)
    y = (x - loc) / scale
    value = jnp.log(b / scale) - (b + 1) * jnp.log(y)
    return with_nan(jnp.where(y < 1, -math.inf, value), b)


@composite(broadcasts=True)
def pdf(x, b, loc=0, scale=1):
    """The density at x."""
    return jnp.exp(logpdf(x, b, loc, scale))


@composite(broadcasts=True)
def logsf(x, b, loc=0, scale=1):
    """Logarithm of the probability of a value above x."""
    x, b, loc, scale = sample("pareto.logsf", x, b, loc, scale)
    y = (x - loc) / scale
    return -b * jnp.log(jnp.where(y <= 1, 1, y))


@composite(broadcasts=True)
def sf(x, b, loc=0, scale=1):
    """The probability of a value above x."""
    return jnp.exp(logsf(x, b, loc, scale))


@composite(broadcasts=True)
def cdf(x, b, loc=0, scale=1):
    """The probability of a value of at most x."""
    return -jnp.expm1(logsf(x, b, loc, scale))


@composite(broadcasts=True)
def logcdf(x, b, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x."""
    return jnp.log(cdf(x, b, loc, scale))


@composite(broadcasts=True)
def ppf(q, b, loc=0, scale=1):
    """The value that is not exceeded with probability q."""
    q, b, loc, scale = sample("pareto.ppf", q, b, loc, scale)
    value = jnp.exp(-jnp.log1p(-q) / b) * scale + loc
    return jnp.where((q < 0) | (q > 1), math.nan, value)


_open_to_users(__name__)
