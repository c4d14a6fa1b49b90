"""Recomputation in the backward pass: checkpoint, its policies, and names for values."""

from weft._checkpoint import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint,
    checkpoint_name,
    checkpoint_policies,
    print_saved_residuals,
    remat,
)
from weft._surface import public as _public

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
]
__getattr__, __dir__ = _public(__name__, __all__)
