"""The uniform distribution from `loc` to `loc + scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import numpy as jnp
from weft._arguments import strong
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.special._evaluate import reals, with_nan

__all__ = [
    "cdf",
    "logpdf",
    "pdf",
    "ppf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite(broadcasts=True)
def logpdf(x, loc=0, scale=1):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.uniform.logpdf(wnp.array([0.5, 2.5]), 0, 2).round(3)
      Array([-0.693,   -inf], dtype=float32)
    """
    x, loc, scale = reals("uniform.logpdf", x, loc, scale)
    outside = (x < loc) | (x > loc + scale)
    return with_nan(jnp.where(outside, -math.inf, -jnp.log(scale)), x, loc, scale)


@composite(broadcasts=True)
def pdf(x, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.uniform.pdf(wnp.array([0.5, 2.5]), 0, 2).round(3)
      Array([0.5, 0. ], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@composite(broadcasts=True)
def cdf(x, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.uniform.cdf(wnp.array([0.5, 2.5]), 0, 2).round(3)
      Array([0.25, 1.  ], dtype=float32)
    """
    x, loc, scale = reals("uniform.cdf", x, loc, scale)
    return strong(jnp.clip((x - loc) / scale, 0, 1))


@composite(broadcasts=True)
def ppf(q, loc=0, scale=1):
    """The value that is not exceeded with probability q.

    Examples:
      >>> weft.scipy.stats.uniform.ppf(wnp.array([0.25, 1.0]), 0, 2).round(3)
      Array([0.5, 2. ], dtype=float32)
    """
    q, loc, scale = reals("uniform.ppf", q, loc, scale)
    value = q * scale + loc
    return jnp.where((q < 0) | (q > 1), math.nan, value)


_open_to_users(__name__)
