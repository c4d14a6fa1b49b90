"""Recomputation in the backward pass: checkpoint, its policies, and names for values."""

from weft._checkpoint import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint,
    checkpoint_name,
    checkpoint_name_fwd,
    checkpoint_policies,
    print_saved_residuals,
    remat,
)
from weft._surface import public as _public
from weft._types.primitives import primitive_named as _primitive_named

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_name_fwd",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
]


def _primitive(name):
    return _primitive_named(name) if name == "name_p" else None


__getattr__, __dir__ = _public(__name__, __all__, _primitive)
