"""Linear operators given by their products."""

from weft._surface import public as _public

__all__ = ["linalg"]
__getattr__, __dir__ = _public(__name__, __all__, later={"weft.scipy.sparse.linalg": ()})
