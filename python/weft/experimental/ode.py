"""Ordinary differential equations: `odeint`."""

from weft._ode import odeint
from weft._surface import open_to_users as _open_to_users, public as _public

__all__ = ["odeint"]
__getattr__, __dir__ = _public(__name__, __all__)
_open_to_users(__name__)
