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
    """Logarithm of the density at x."""
    x, df, loc, scale = sample("chi2.logpdf", x, df, loc, scale)
    return gamma.logpdf(x, 0.5 * df, loc, 2 * scale)


@composite(broadcasts=True)
def pdf(x, df, loc=0, scale=1):
    """The density at x."""
    x, df, loc, scale = sample("chi2.pdf", x, df, loc, scale)
    return gamma.pdf(x, 0.5 * df, loc, 2 * scale)


@composite(broadcasts=True)
def cdf(x, df, loc=0, scale=1):
    """The probability of a value of at most x."""
    x, df, loc, scale = sample("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, 0.5 * df, loc, 2 * scale)


@composite(broadcasts=True)
def logcdf(x, df, loc=0, scale=1):
    """Logarithm of the probability of a value of at most x."""
    x, df, loc, scale = sample("chi2.logcdf", x, df, loc, scale)
    return gamma.logcdf(x, 0.5 * df, loc, 2 * scale)


@composite(broadcasts=True)
def sf(x, df, loc=0, scale=1):
    """The probability of a value above x."""
    x, df, loc, scale = sample("chi2.sf", x, df, loc, scale)
    return gamma.sf(x, 0.5 * df, loc, 2 * scale)


@composite(broadcasts=True)
def logsf(x, df, loc=0, scale=1):
    """Logarithm of the probability of a value above x."""
    x, df, loc, scale = sample("chi2.logsf", x, df, loc, scale)
    return gamma.logsf(x, 0.5 * df, loc, 2 * scale)


_open_to_users(__name__)
