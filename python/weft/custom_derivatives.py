"""Derivatives that users write, under the names of the module that JAX has for them."""

from weft._custom_rules import (
    CustomVJPPrimal,
    SymbolicZero,
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
)
from weft._surface import public as _public

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
]
__getattr__, __dir__ = _public(__name__, __all__)
