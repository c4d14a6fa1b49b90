"""The negative binomial distribution: failures before `n` successes of probability `p`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype. `loc` moves the distribution.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy import special
from weft.scipy.special._evaluate import sample, with_nan
from weft.scipy.special._saddle_point import LEAST, log_binomial

__all__ = [
    "logpmf",
    "pmf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite(broadcasts=True)
def logpmf(k, n, p, loc=0):
    """Logarithm of the probability of k.

    Examples:
      >>> weft.scipy.stats.nbinom.logpmf(wnp.array([0, 1, 2]), 2, 0.5).round(3)
      Array([-1.386, -1.386, -1.674], dtype=float32)
    """
    k, n, p, loc = sample("nbinom.logpmf", k, n, p, loc)
    y = k - loc
    outside = y < 0
    y = jnp.where(outside, 0, y)
    large = (y >= LEAST) & (n >= LEAST)
    first, second = (jnp.where(large, each, LEAST) for each in (n, y))
    many = log_binomial(first, second, jnp.where(large, p, 0.5)) - jnp.log1p(y / n)
    choices = -jnp.log(n + y) - special.betaln(n, y + 1)
    chance = jnp.where(large, 0.5, p)
    few = choices + special.xlogy(n, chance) + special.xlog1py(y, -chance)
    return with_nan(jnp.where(outside, -math.inf, jnp.where(large, many, few)), n, p)


@composite(broadcasts=True)
def pmf(k, n, p, loc=0):
    """The probability of k.

    Examples:
      >>> weft.scipy.stats.nbinom.pmf(wnp.array([0, 1, 2]), 2, 0.5).round(4)
      Array([0.25  , 0.25  , 0.1875], dtype=float32)
    """
    return jnp.exp(logpmf(k, n, p, loc))


_open_to_users(__name__)
