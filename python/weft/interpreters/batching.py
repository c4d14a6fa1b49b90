"""Vectorisation rules of primitives."""

from weft import lax
from weft._surface import public as _public
from weft.interpreters._rules import Rules
from weft.lax._shape import move_axis

__all__ = [
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
]
__getattr__, __dir__ = _public(__name__, __all__)


not_mapped = None
primitive_batchers = Rules("batching", lambda p, rule: p.def_batching(rule))


def _mapped_size(args, dims):
    return next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not not_mapped)


def _define_with_size(p, rule):
    p.def_batching(
        lambda args, dims, **params: rule(
            _mapped_size(args, dims), None, None, args, dims, **params
        )
    )


# Of rules that take the size of the mapped axis, its name and a kind of trace first; the latter two
# are None.
axis_primitive_batchers = Rules("batching", _define_with_size)


def moveaxis(x, source, destination):
    """x with one axis moved."""
    return move_axis(x, source, destination)


def broadcast(x, sz, axis, mesh_axis=None):
    """x with an axis of size `sz` along which it is repeated; `mesh_axis` has no effect."""
    shape = (*x.shape[:axis], sz, *x.shape[axis:])
    return lax.broadcast_in_dim(x, shape, [i for i in range(len(shape)) if i != axis])


def bdim_at_front(x, bdim, size, mesh_axis=None):
    """x with its mapped axis in front; one of that size is made where there is none.

    `mesh_axis` has no effect.
    """
    return broadcast(x, size, 0) if bdim is not_mapped else moveaxis(x, bdim, 0)


def defvectorized(prim):
    """For a primitive that works element by element on operands of one shape."""
    _def_elementwise(prim, lambda size: size)


def defbroadcasting(prim):
    """For one that works element by element, and broadcasts axes of size 1."""
    _def_elementwise(prim, lambda size: 1)


def _def_elementwise(prim, size_of_unmapped):
    def rule(args, dims, **params):
        to = next(d for d in dims if d is not not_mapped)
        size = size_of_unmapped(_mapped_size(args, dims))
        aligned = [
            broadcast(a, size, to) if d is not_mapped else moveaxis(a, d, to)
            for a, d in zip(args, dims, strict=True)
        ]
        result = prim.bind(*aligned, **params)
        return result, [to] * len(result) if prim.multiple_results else to

    primitive_batchers[prim] = rule


def defreducer(prim):
    """For a primitive of one operand that reduces the axes which its parameter `axes` gives."""

    def rule(args, dims, *, axes, **params):
        (x,), (dim,) = args, dims
        shifted = tuple(a + (a >= dim) for a in axes)
        result = prim.bind(x, axes=shifted, **params)
        to = dim - sum(a < dim for a in shifted)
        return result, [to] * len(result) if prim.multiple_results else to

    primitive_batchers[prim] = rule
