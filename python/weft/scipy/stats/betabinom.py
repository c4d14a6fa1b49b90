"""The beta-binomial distribution: binomial of `n` trials with a beta-distributed probability.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype. `loc` moves the distribution.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy import special
from weft.scipy.special._evaluate import sample, with_nan

__all__ = [
    "logpmf",
    "pmf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite(broadcasts=True)
def logpmf(k, n, a, b, loc=0):
    """Logarithm of the probability of k.

    Examples:
      >>> weft.scipy.stats.betabinom.logpmf(wnp.array([0, 1, 2]), 2, 1.0, 1.0).round(3)
      Array([-1.099, -1.099, -1.099], dtype=float32)
    """
    k, n, a, b, loc = sample("betabinom.logpmf", k, n, a, b, loc)
    y = jnp.floor(k) - loc
    value = special.betaln(y + a, n - y + b) - special.betaln(a, b)
    value = value - jnp.log1p(n) - special.betaln(n - y + 1, y + 1)
    value = jnp.where((y < 0) | (y > n), -math.inf, value)
    return with_nan(jnp.where((n < 0) | (a <= 0) | (b <= 0), math.nan, value), y, n, a, b)


@composite(broadcasts=True)
def pmf(k, n, a, b, loc=0):
    """The probability of k.

    Examples:
      >>> weft.scipy.stats.betabinom.pmf(wnp.array([0, 1, 2]), 2, 1.0, 1.0).round(3)
      Array([0.333, 0.333, 0.333], dtype=float32)
    """
    return jnp.exp(logpmf(k, n, a, b, loc))


_open_to_users(__name__)
