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

__all__ = [
    "logpmf",
    "pmf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite(broadcasts=True)
def logpmf(k, n, p, loc=0):
    """Logarithm of the probability of k."""
    k, n, p, loc = sample("nbinom.logpmf", k, n, p, loc)
    y = k - loc
    choices = special.gammaln(y + n) - special.gammaln(n) - special.gammaln(y + 1)
    value = choices + special.xlogy(n, p) + special.xlog1py(y, -p)
    return with_nan(jnp.where(y < 0, -math.inf, value), n, p)


@composite(broadcasts=True)
def pmf(k, n, p, loc=0):
    """The probability of k."""
    return jnp.exp(logpmf(k, n, p, loc))


_open_to_users(__name__)
