"""Special functions of mathematical physics and statistics.

Arguments are broadcast together and promoted to one floating-point dtype.
"""

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.special._operations import (
    betainc,
    digamma,
    erf,
    erfc,
    erfinv,
    expit,
    gammainc,
    gammaincc,
    gammaln,
    i0e,
    i1e,
)

__all__ = [
    "betainc",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0e",
    "i1e",
]
__getattr__, __dir__ = _public(__name__, __all__)

_open_to_users(__name__)
