"""Vectorisation rules of primitives."""

from weft import lax
from weft._surface import public as _public
from weft.interpreters._rules import Rules
from weft.lax._shape import move_axis

__all__ = ["defvectorized", "moveaxis", "not_mapped", "primitive_batchers"]
__getattr__, __dir__ = _public(__name__, __all__)


not_mapped = None
primitive_batchers = Rules("batching", lambda p, rule: p.def_batching(rule))


def moveaxis(x, source, destination):
    """x with one axis moved."""
    return move_axis(x, source, destination)


def defvectorized(primitive):
    """For a primitive that works element by element on operands of one shape."""

    def rule(args, dims, **params):
        to = next(d for d in dims if d is not not_mapped)
        size = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not not_mapped)
        aligned = [_aligned(a, d, to, size) for a, d in zip(args, dims, strict=True)]
        result = primitive.bind(*aligned, **params)
        return result, [to] * len(result) if primitive.multiple_results else to

    primitive_batchers[primitive] = rule


def _aligned(x, dim, to, size):
    if dim is not not_mapped:
        return x if dim == to else moveaxis(x, dim, to)
    shape = (*x.shape[:to], size, *x.shape[to:])
    return lax.broadcast_in_dim(x, shape, [i for i in range(len(shape)) if i != to])
