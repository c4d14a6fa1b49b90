"""SciPy's functions on weft's arrays. Each subpackage is loaded when it is first used."""

from weft._surface import public as _public

__all__ = [
    "special",
    "stats",
]
_LATER = {
    "weft.scipy.special": (),
    "weft.scipy.stats": (),
}
__getattr__, __dir__ = _public(__name__, __all__, later=_LATER)
