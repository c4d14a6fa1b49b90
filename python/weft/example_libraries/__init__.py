"""Small libraries built of the public functions: optimizers, and layers of neural networks."""

from weft._surface import public as _public

__all__ = ["optimizers", "stax"]
_LATER = {"weft.example_libraries.optimizers": (), "weft.example_libraries.stax": ()}
__getattr__, __dir__ = _public(__name__, __all__, later=_LATER)
