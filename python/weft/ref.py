"""Refs, mutable arrays: making, reading, writing and ending them."""

from weft._refs import (
    Ref,
    addupdate,
    empty_ref,
    free_ref,
    freeze,
    get,
    new_ref,
    set,
    swap,
)
from weft._surface import public as _public
from weft._types.avals import AbstractRef

__all__ = [
    "AbstractRef",
    "Ref",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]
__getattr__, __dir__ = _public(__name__, __all__)
