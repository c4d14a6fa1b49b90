"""SciPy's functions on weft's arrays. Each subpackage is loaded when it is first used."""

from weft._surface import public as _public

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]
_LATER = {f"{__name__}.{name}": () for name in __all__}
__getattr__, __dir__ = _public(__name__, __all__, later=_LATER)
