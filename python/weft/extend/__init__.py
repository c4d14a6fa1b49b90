"""What programs that extend weft build on: its programs as objects, and primitives of their own."""

from weft._surface import public as _public
from weft.extend import core

__all__ = ["backend", "core", "random"]
__getattr__, __dir__ = _public(
    __name__, __all__, later={"weft.extend.backend": (), "weft.extend.random": ()}
)
