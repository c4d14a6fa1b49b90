"""The wrapped Cauchy distribution of the concentration `c`, on 0 to 2 pi.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.special._evaluate import reals

__all__ = [
    "logpdf",
    "pdf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite
def logpdf(x, c):
    """Logarithm of the density at x."""
    x, c = reals("wrapcauchy.logpdf", x, c)
    value = jnp.log1p(-c * c) - math.log(2 * math.pi) - jnp.log1p(c * (c - 2 * jnp.cos(x)))
    value = jnp.where((x >= 0) & (x <= 2 * math.pi), value, -math.inf)
    return jnp.where((c > 0) & (c < 1), value, math.nan)


@composite
def pdf(x, c):
    """The density at x."""
    return jnp.exp(logpdf(x, c))


_open_to_users(__name__)
