"""The Bernoulli distribution: 1 with probability `p`, otherwise 0, both moved by `loc`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy import special
from weft.scipy.special._evaluate import sample, with_nan

__all__ = [
    "cdf",
    "logpmf",
    "pmf",
    "ppf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite(broadcasts=True)
def logpmf(k, p, loc=0):
    """Logarithm of the probability of k.

    Examples:
      >>> weft.scipy.stats.bernoulli.logpmf(wnp.array([0, 1, 2]), 0.25).round(3)
      Array([-0.288, -1.386,   -inf], dtype=float32)
    """
    k, p, loc = sample("bernoulli.logpmf", k, p, loc)
    k = k - loc
    value = special.xlogy(k, p) + special.xlog1py(1 - k, -p)
    return with_nan(jnp.where((k < 0) | (k > 1), -math.inf, value), k, p)


@composite(broadcasts=True)
def pmf(k, p, loc=0):
    """The probability of k.

    Examples:
      >>> weft.scipy.stats.bernoulli.pmf(wnp.array([0, 1, 2]), 0.25).round(3)
      Array([0.75, 0.25, 0.  ], dtype=float32)
    """
    return jnp.exp(logpmf(k, p, loc))


@composite(broadcasts=True)
def cdf(k, p):
    """The probability of a value of at most k.

    Examples:
      >>> weft.scipy.stats.bernoulli.cdf(wnp.array([0, 1, 2]), 0.25).round(3)
      Array([0.75, 1.  , 1.  ], dtype=float32)
    """
    k, p = sample("bernoulli.cdf", k, p)
    value = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, jnp.ones_like(k)))
    return jnp.where(jnp.isnan(k) | ~((p >= 0) & (p <= 1)), math.nan, value)


@composite(broadcasts=True)
def ppf(q, p):
    """The value that is not exceeded with probability q.

    Examples:
      >>> weft.scipy.stats.bernoulli.ppf(wnp.array([0.5, 0.9]), 0.25).round(3)
      Array([0., 1.], dtype=float32)
    """
    q, p = sample("bernoulli.ppf", q, p)
    valid = (q >= 0) & (q <= 1) & (p >= 0) & (p <= 1)
    return jnp.where(valid, jnp.where(q <= 1 - p, jnp.zeros_like(q), 1), math.nan)


_open_to_users(__name__)
