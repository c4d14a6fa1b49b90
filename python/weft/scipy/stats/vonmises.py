"""The von Mises distribution of the concentration `kappa`, on the circle.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy import special
from weft.scipy.special._evaluate import reals

__all__ = [
    "logpdf",
    "pdf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite
def logpdf(x, kappa):
    """Logarithm of the density at x."""
    x, kappa = reals("vonmises.logpdf", x, kappa)
    value = kappa * (jnp.cos(x) - 1) - jnp.log(2 * math.pi * special.i0e(kappa))
    return jnp.where(kappa > 0, value, math.nan)


@composite
def pdf(x, kappa):
    """The density at x."""
    return jnp.exp(logpdf(x, kappa))


_open_to_users(__name__)
