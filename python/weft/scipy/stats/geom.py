"""The geometric distribution: the number of trials of probability `p` up to the first success.

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
def logpmf(k, p, loc=0):
    """Logarithm of the probability of k.

    Examples:
      >>> weft.scipy.stats.geom.logpmf(wnp.array([0, 1, 2]), 0.5).round(3)
      Array([  -inf, -0.693, -1.386], dtype=float32)
    """
    k, p, loc = sample("geom.logpmf", k, p, loc)
    y = k - loc
    value = special.xlog1py(y - 1, -p) + jnp.log(p)
    return with_nan(jnp.where(y <= 0, -math.inf, value), p)


@composite(broadcasts=True)
def pmf(k, p, loc=0):
    """The probability of k.

    Examples:
      >>> weft.scipy.stats.geom.pmf(wnp.array([0, 1, 2]), 0.5).round(3)
      Array([0.  , 0.5 , 0.25], dtype=float32)
    """
    return jnp.exp(logpmf(k, p, loc))


_open_to_users(__name__)
