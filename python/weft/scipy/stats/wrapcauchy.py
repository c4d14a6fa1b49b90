"""The wrapped Cauchy distribution of the concentration `c`, on 0 to 2 pi.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.special._evaluate import exp_or_nan, reals

__all__ = [
    "logpdf",
    "pdf",
]
__getattr__, __dir__ = _public(__name__, __all__)


def _log_density(function, x, c):
    """The logarithm of the density, and for which parameters it is one."""
    x, c = reals(f"wrapcauchy.{function}", x, c)
    value = jnp.log1p(-c * c) - math.log(2 * math.pi) - jnp.log1p(c * (c - 2 * jnp.cos(x)))
    value = jnp.where((x < 0) | (x > 2 * math.pi), -math.inf, value)
    return value, (c > 0) & (c < 1)


@composite(broadcasts=True)
def logpdf(x, c):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.wrapcauchy.logpdf(wnp.array([0.0, np.pi]), 0.5).round(3)
      Array([-0.739, -2.936], dtype=float32)
    """
    value, valid = _log_density("logpdf", x, c)
    return jnp.where(valid, value, math.nan)


@composite(broadcasts=True)
def pdf(x, c):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.wrapcauchy.pdf(wnp.array([0.0, np.pi]), 0.5).round(3)
      Array([0.477, 0.053], dtype=float32)
    """
    return exp_or_nan(*_log_density("pdf", x, c))


_open_to_users(__name__)
