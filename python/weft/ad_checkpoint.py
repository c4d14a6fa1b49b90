"""Recomputation in the backward pass: checkpoint, its policies, and names for values."""

from weft._checkpoint import (
    checkpoint,
    checkpoint_name,
    checkpoint_policies,
    remat,
)
from weft._surface import public as _public

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "remat"]
__getattr__, __dir__ = _public(__name__, __all__)
