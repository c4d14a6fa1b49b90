"""Minima of functions of several variables."""

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.optimize._minimize import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
__getattr__, __dir__ = _public(__name__, __all__)

_open_to_users(__name__)
