"""The Gumbel distribution of minima, with mode `loc` and scale `scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

from weft import numpy as jnp
from weft._arguments import weak_as
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.special._evaluate import reals
from weft.scipy.stats import gumbel_r as _gumbel_r

__all__ = [
    "cdf",
    "logcdf",
    "logpdf",
    "logsf",
    "pdf",
    "ppf",
    "sf",
]
__getattr__, __dir__ = _public(__name__, __all__)


def _mirrored(name, x, loc, scale):
    """The arguments of the distribution of maxima for that of minima, its mirror image."""
    x, loc, scale = reals(f"gumbel_l.{name}", x, loc, scale)
    return -x, -loc, scale


@composite(broadcasts=True)
def logpdf(x, loc=0, scale=1):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.gumbel_l.logpdf(wnp.array([0.0, 1.0])).round(3)
      Array([-1.   , -1.718], dtype=float32)
    """
    return _gumbel_r.logpdf(*_mirrored("logpdf", x, loc, scale))


@composite(broadcasts=True)
def pdf(x, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.gumbel_l.pdf(wnp.array([0.0, 1.0])).round(3)
      Array([0.368, 0.179], dtype=float32)
    """
    return _gumbel_r.pdf(*_mirrored("pdf", x, loc, scale))


@composite(broadcasts=True)
def logsf(x, loc=0, scale=1):
    """Logarithm of the probability of a value above x.

    Examples:
      >>> weft.scipy.stats.gumbel_l.logsf(wnp.array([0.0, 1.0])).round(3)
      Array([-1.   , -2.718], dtype=float32)
    """
    return _gumbel_r.logcdf(*_mirrored("logsf", x, loc, scale))


@composite(broadcasts=True)
def sf(x, loc=0, scale=1):
    """The probability of a value above x.

    Examples:
      >>> weft.scipy.stats.gumbel_l.sf(wnp.array([0.0, 1.0])).round(3)
      Array([0.368, 0.066], dtype=float32)
    """
    return _gumbel_r.cdf(*_mirrored("sf", x, loc, scale))


@composite(broadcasts=True)
def cdf(x, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.gumbel_l.cdf(wnp.array([0.0, 1.0])).round(3)
      Array([0.632, 0.934], dtype=float32)
    """
    x, loc, scale = _mirrored("cdf", x, loc, scale)
    return weak_as(_gumbel_r.sf(x, loc, scale), x)


@composite(broadcasts=True)
def logcdf(x, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.gumbel_l.logcdf(wnp.array([0.0, 1.0])).round(3)
      Array([-0.459, -0.068], dtype=float32)
    """
    return _gumbel_r.logsf(*_mirrored("logcdf", x, loc, scale))


@composite(broadcasts=True)
def ppf(p, loc=0, scale=1):
    """The value that is not exceeded with probability p.

    Examples:
      >>> weft.scipy.stats.gumbel_l.ppf(wnp.array([0.0, 0.5])).round(3)
      Array([  -inf, -0.367], dtype=float32)
    """
    p, loc, scale = reals("gumbel_l.ppf", p, loc, scale)
    return loc + scale * jnp.log(-jnp.log1p(-p))


_open_to_users(__name__)
