"""Derivatives that users write, under the names of the module that JAX has for them."""

from weft._custom_rules import (
    CustomVJPPrimal,
    SymbolicZero,
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from weft._surface import public as _public
from weft.extend.core.primitives import custom_jvp_call_p, custom_vjp_call_p

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "linear_call",  # noqa: F822
    "zero_from_primal",
]
_LATER = {"weft._linear_call": ("linear_call",)}
__getattr__, __dir__ = _public(__name__, __all__, later=_LATER)
