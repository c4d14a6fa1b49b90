"""The binomial distribution: the number of successes in `n` trials of probability `p`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype. `loc` moves the distribution.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy import special
from weft.scipy.special._evaluate import reals, with_nan
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
      >>> weft.scipy.stats.binom.logpmf(wnp.array([0, 1, 2]), 2, 0.5).round(3)
      Array([-1.386, -0.693, -1.386], dtype=float32)
    """
    k, n, p, loc = reals("binom.logpmf", k, n, p, loc)
    y = k - loc
    inside = (y >= 0) & (y < n + 1)
    given, y = y, jnp.where(inside, y, 0)
    rest = n - y
    large = (y >= LEAST) & (rest >= LEAST)
    first, second = (jnp.where(large, each, LEAST) for each in (y, rest))
    many = log_binomial(first, second, jnp.where(large, p, 0.5))
    choices = -jnp.log1p(n) - special.betaln(rest + 1, y + 1)
    chance = jnp.where(large, 0.5, p)
    few = choices + special.xlogy(y, chance) + special.xlog1py(rest, -chance)
    value = jnp.where(large, many, few)
    return with_nan(jnp.where(inside, value, -math.inf), given, n, p)


@composite(broadcasts=True)
def pmf(k, n, p, loc=0):
    """The probability of k.

    Examples:
      >>> weft.scipy.stats.binom.pmf(wnp.array([0, 1, 2]), 2, 0.5).round(3)
      Array([0.25, 0.5 , 0.25], dtype=float32)
    """
    return jnp.exp(logpmf(k, n, p, loc))


_open_to_users(__name__)
