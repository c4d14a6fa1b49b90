"""Special functions of mathematical physics and statistics.

Arguments are broadcast together and promoted to one floating-point dtype.
"""

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.nn._normalized import logsumexp
from weft.scipy.special._bessel import bessel_jn, i0, i1
from weft.scipy.special._entropy import (
    boxcox,
    boxcox1p,
    entr,
    kl_div,
    logit,
    rel_entr,
    xlog1py,
    xlogy,
)
from weft.scipy.special._error_functions import dawsn, erfcx, erfinv, fresnel, wofz
from weft.scipy.special._exponential_integrals import exp1, expi, expn, sici, spence
from weft.scipy.special._gamma import (
    bernoulli,
    beta,
    betaln,
    comb,
    factorial,
    gamma,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
)
from weft.scipy.special._hypergeometric import hyp1f1, hyp2f1
from weft.scipy.special._legendre import lpmn, lpmn_values
from weft.scipy.special._normal import erfcinv, log_ndtr, ndtr, ndtri, owens_t
from weft.scipy.special._operations import (
    betainc,
    digamma,
    erf,
    erfc,
    expit,
    gammainc,
    gammaincc,
    gammaln,
    i0e,
    i1e,
)
from weft.scipy.special._spherical import sph_harm_y
from weft.scipy.special._sums import log_softmax, polygamma, softmax, zeta

__all__ = [
    "bernoulli",
    "bessel_jn",
    "beta",
    "betainc",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
    "dawsn",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "expn",
    "factorial",
    "fresnel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "hyp1f1",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "lpmn",
    "lpmn_values",
    "multigammaln",
    "ndtr",
    "ndtri",
    "owens_t",
    "poch",
    "polygamma",
    "rel_entr",
    "sici",
    "softmax",
    "spence",
    "sph_harm_y",
    "wofz",
    "xlog1py",
    "xlogy",
    "zeta",
]
__getattr__, __dir__ = _public(__name__, __all__)

_open_to_users(__name__)
