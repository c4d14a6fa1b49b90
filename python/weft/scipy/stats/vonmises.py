"""The von Mises distribution of the concentration `kappa`, on the circle.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy import special
from weft.scipy.special._evaluate import exp_or_nan, reals

__all__ = [
    "logpdf",
    "pdf",
]
__getattr__, __dir__ = _public(__name__, __all__)


def _log_density(function, x, kappa):
    """The logarithm of the density, and for which parameters it is one."""
    x, kappa = reals(f"vonmises.{function}", x, kappa)
    return kappa * (jnp.cos(x) - 1) - jnp.log(2 * math.pi * special.i0e(kappa)), kappa >= 0


@composite(broadcasts=True)
def logpdf(x, kappa):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.vonmises.logpdf(wnp.array([0.0, np.pi]), 1.0).round(3)
      Array([-1.074, -3.074], dtype=float32)
    """
    value, valid = _log_density("logpdf", x, kappa)
    return jnp.where(valid, value, math.nan)


@composite(broadcasts=True)
def pdf(x, kappa):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.vonmises.pdf(wnp.array([0.0, np.pi]), 1.0).round(3)
      Array([0.342, 0.046], dtype=float32)
    """
    return exp_or_nan(*_log_density("pdf", x, kappa))


_open_to_users(__name__)
