"""Recomputation in the backward pass: checkpoint, its policies, and names for values."""

from weft._checkpoint import (
    checkpoint as checkpoint,
    checkpoint_name as checkpoint_name,
    checkpoint_policies as checkpoint_policies,
    remat as remat,
)
