"""Ordering that the compiler respects."""

from weft import _core
from weft.runtime.pytree import registry


def optimization_barrier(operand, /):
    """A tree of arrays, unchanged, across which the compiler moves no computation.

    All leaves are computed before any of the results is used. Derivatives and vectorised forms
    keep the barrier.
    """
    leaves, tree = registry.flatten(operand)
    if not leaves:
        return operand
    return tree.unflatten(_core.bind("optimization_barrier", *leaves))
