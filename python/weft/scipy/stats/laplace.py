"""The Laplace distribution of mean `loc` and decay length `scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.special._evaluate import sample

__all__ = [
    "cdf",
    "logpdf",
    "pdf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite(broadcasts=True)
def logpdf(x, loc=0, scale=1):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.laplace.logpdf(wnp.array([0.0, 1.0])).round(3)
      Array([-0.693, -1.693], dtype=float32)
    """
    x, loc, scale = sample("laplace.logpdf", x, loc, scale)
    return -jnp.abs(x - loc) / scale - jnp.log(2 * scale)


@composite(broadcasts=True)
def pdf(x, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.laplace.pdf(wnp.array([0.0, 1.0])).round(3)
      Array([0.5  , 0.184], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


@composite(broadcasts=True)
def cdf(x, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.laplace.cdf(wnp.array([0.0, 1.0])).round(3)
      Array([0.5  , 0.816], dtype=float32)
    """
    x, loc, scale = sample("laplace.cdf", x, loc, scale)
    z = (x - loc) / scale
    tail = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z <= 0, tail, 1 - tail)


_open_to_users(__name__)
