"""Student's distribution of `df` degrees of freedom, moved by `loc` and scaled by `scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy import special
from weft.scipy.special._evaluate import log1p_of_square, sample

__all__ = [
    "logpdf",
    "pdf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite(broadcasts=True)
def logpdf(x, df, loc=0, scale=1):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.t.logpdf(wnp.array([0.0, 1.0]), 1).round(3)
      Array([-1.145, -1.838], dtype=float32)
    """
    x, df, loc, scale = sample("t.logpdf", x, df, loc, scale)
    y = (x - loc) / scale
    half = 0.5 * df
    value = -0.5 * jnp.log(df) - special.betaln(half, 0.5) - jnp.log(jnp.abs(scale))
    return value - (half + 0.5) * log1p_of_square(y / jnp.sqrt(df))


@composite(broadcasts=True)
def pdf(x, df, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.t.pdf(wnp.array([0.0, 1.0]), 1).round(3)
      Array([0.318, 0.159], dtype=float32)
    """
    return jnp.exp(logpdf(x, df, loc, scale))


_open_to_users(__name__)
