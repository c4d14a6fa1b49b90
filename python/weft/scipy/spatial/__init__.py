"""Geometry of space."""

from weft._surface import public as _public

__all__ = ["transform"]
__getattr__, __dir__ = _public(__name__, __all__, later={"weft.scipy.spatial.transform": ()})
