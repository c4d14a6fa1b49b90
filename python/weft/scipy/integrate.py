"""Integrals of functions given by their values."""

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.numpy._calculus import trapezoid

__all__ = ["trapezoid"]
__getattr__, __dir__ = _public(__name__, __all__)

_open_to_users(__name__)
