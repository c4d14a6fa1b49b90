"""The chi-squared distribution of `df` degrees of freedom, moved by `loc` and scaled by `scale`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.special._evaluate import sample
from weft.scipy.stats import gamma

__all__ = [
    "cdf",
    "logcdf",
    "logpdf",
    "logsf",
    "pdf",
    "sf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite(broadcasts=True)
def logpdf(x, df, loc=0, scale=1):
    """Logarithm of the density at x.

    Examples:
      >>> weft.scipy.stats.chi2.logpdf(wnp.array([-1.0, 2.0]), 2).round(3)
      Array([  -inf, -1.693], dtype=float32)
    """
    x, df, loc, scale = sample("chi2.logpdf", x, df, loc, scale)
    return gamma.logpdf(x, 0.5 * df, loc, 2 * scale)


@composite(broadcasts=True)
def pdf(x, df, loc=0, scale=1):
    """The density at x.

    Examples:
      >>> weft.scipy.stats.chi2.pdf(wnp.array([-1.0, 2.0]), 2).round(3)
      Array([0.   , 0.184], dtype=float32)
    """
    x, df, loc, scale = sample("chi2.pdf", x, df, loc, scale)
    return gamma.pdf(x, 0.5 * df, loc, 2 * scale)


@composite(broadcasts=True)
def cdf(x, df, loc=0, scale=1):
    """The probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.chi2.cdf(wnp.array([-1.0, 2.0]), 2).round(3)
      Array([0.   , 0.632], dtype=float32)
    """
    x, df, loc, scale = sample("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, 0.5 * df, loc, 2 * scale)


@composite(broadcasts=True)
def logcdf(x, df, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x.

    Examples:
      >>> weft.scipy.stats.chi2.logcdf(wnp.array([-1.0, 2.0]), 2).round(3)
      Array([  -inf, -0.459], dtype=float32)
    """
    x, df, loc, scale = sample("chi2.logcdf", x, df, loc, scale)
    return gamma.logcdf(x, 0.5 * df, loc, 2 * scale)


@composite(broadcasts=True)
def sf(x, df, loc=0, scale=1):
    """The probability of a value above x.

    Examples:
      >>> weft.scipy.stats.chi2.sf(wnp.array([-1.0, 2.0]), 2).round(3)
      Array([1.   , 0.368], dtype=float32)
    """
    x, df, loc, scale = sample("chi2.sf", x, df, loc, scale)
    return gamma.sf(x, 0.5 * df, loc, 2 * scale)


@composite(broadcasts=True)
def logsf(x, df, loc=0, scale=1):
    """Logarithm of the probability of a value above x.

    Examples:
      >>> weft.scipy.stats.chi2.logsf(wnp.array([-1.0, 2.0]), 2).round(3)
      Array([ 0., -1.], dtype=float32)
    """
    x, df, loc, scale = sample("chi2.logsf", x, df, loc, scale)
    return gamma.logsf(x, 0.5 * df, loc, 2 * scale)


_open_to_users(__name__)
