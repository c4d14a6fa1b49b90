"""The generalized normal distribution of the exponent `beta`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy import special
from weft.scipy.special._evaluate import reals

__all__ = [
    "cdf",
    "logpdf",
    "pdf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite(broadcasts=True)
def logpdf(x, beta):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.gennorm.logpdf(wnp.array([0.0, 1.0]), 2.0).round(3)
      Array([-0.572, -1.572], dtype=float32)
    """
    x, beta = reals("gennorm.logpdf", x, beta)
    return jnp.log(0.5 * beta) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


@composite(broadcasts=True)
def pdf(x, beta):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.gennorm.pdf(wnp.array([0.0, 1.0]), 2.0).round(3)
      Array([0.564, 0.208], dtype=float32)
    """
    return jnp.exp(logpdf(x, beta))


@composite(broadcasts=True)
def cdf(x, beta):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.gennorm.cdf(wnp.array([0.0, 1.0]), 2.0).round(3)
      Array([0.5  , 0.921], dtype=float32)
    """
    x, beta = reals("gennorm.cdf", x, beta)
    tail = 0.5 * special.gammaincc(1 / beta, jnp.abs(x) ** beta)
    return jnp.where(x > 0, 1 - tail, tail)


_open_to_users(__name__)
