"""Functions that rearrange, join and repeat arrays."""

import math

from weft import _core
from weft._arguments import (
    ndim_of,
    normalize_axes,
    normalize_axis,
    shape_of,
    static_int,
    static_ints,
    static_shape,
)
from weft._dims import is_symbolic_dim
from weft._jit import composite
from weft.errors import AttributeValueError, ShapeError
from weft.lax import _shape as lax_shape
from weft.lax._shape import broadcast_shapes as broadcast_shapes
from weft.lax._sharding import can_be_split


@can_be_split
def reshape(a, shape, order="C", *, copy=None, out_sharding=None):
    """The elements of `a` in another shape of the same size.

    Args:
      a: array or number.
      shape: an integer or a sequence; one of them may be -1 and follows from the size.
      order: "C" to read and fill with the last axis fastest, "F" with the first.
      copy: ignored, arrays never change.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Raises NotImplementedError for order "A", AttributeValueError (a ValueError) for another one,
    ShapeError for a shape of another size.

    Examples:
      >>> wnp.reshape(wnp.arange(6), (2, -1))
      Array([[0, 1, 2],
             [3, 4, 5]], dtype=int32)
      >>> wnp.reshape(wnp.arange(6), (2, 3), order="F")
      Array([[0, 2, 4],
             [1, 3, 5]], dtype=int32)
    """
    if order == "A":
        raise NotImplementedError("[reshape] expected order 'C' or 'F'; got 'A'")
    if order not in ("C", "F"):
        raise AttributeValueError(f"[reshape] expected order 'C' or 'F'; got {order!r}")
    new = _with_inferred_size(shape_of(a), shape)
    if order == "C":
        return lax_shape.reshape(a, new)
    return _reshape_fortran(a, shape=new)


def _with_inferred_size(old, shape):
    new = static_ints(shape, "reshape", "the shape")
    size = math.prod(old)
    unknown = [axis for axis, dim in enumerate(new) if dim == -1]
    known = math.prod(dim for dim in new if dim != -1)
    fits = size % known == 0 if unknown and known else size == known
    if (
        len(unknown) > 1
        or any(dim < -1 for dim in new if not is_symbolic_dim(dim))
        or not fits
        or (unknown and not known)
    ):
        raise ShapeError(
            f"[reshape] expected a shape of {size} elements, with at most one -1, for an array of "
            f"shape {old}; got {new}"
        )
    return tuple(size // known if dim == -1 else dim for dim in new)


@composite(static_argnames=("shape",))
def _reshape_fortran(a, *, shape):
    return _reversed_axes(lax_shape.reshape(_reversed_axes(a), shape[::-1]))


def _reversed_axes(a):
    return lax_shape.transpose(a, range(ndim_of(a) - 1, -1, -1))


@can_be_split
def ravel(a, order="C", *, out_sharding=None):
    """The elements as a one-dimensional array; see `reshape` for `order`.

    `out_sharding` is None, or how the result is split, a PartitionSpec or NamedSharding.

    Raises NotImplementedError for orders "A" and "K".

    Examples:
      >>> wnp.ravel(wnp.array([[1, 2], [3, 4]]))
      Array([1, 2, 3, 4], dtype=int32)
    """
    if order == "K":
        raise NotImplementedError("[ravel] expected order 'C' or 'F'; got 'K'")
    return reshape(a, -1, order)


def transpose(a, axes=None):
    """Reorders the axes: axis i of the result is axis `axes[i]` of `a`. None reverses them.

    Raises ShapeError for axes that are no permutation.

    Examples:
      >>> wnp.transpose(wnp.array([[1, 2, 3], [4, 5, 6]]))
      Array([[1, 4],
             [2, 5],
             [3, 6]], dtype=int32)
      >>> wnp.transpose(wnp.zeros((2, 3, 4)), (1, 2, 0)).shape
      (3, 4, 2)
    """
    if axes is None:
        return _reversed_axes(a)
    axes, ndim = static_ints(axes, "transpose", "the axes"), ndim_of(a)
    counted = [axis + ndim if axis < 0 else axis for axis in axes]
    if sorted(counted) != list(range(ndim)):
        raise ShapeError(f"[transpose] expected a permutation of {ndim} axes; got {axes}")
    return lax_shape.transpose(a, counted)


def permute_dims(a, /, axes):
    """The axes in another order, as `axes` lists them.

    Examples:
      >>> wnp.permute_dims(wnp.zeros((2, 3, 4)), (1, 2, 0)).shape
      (3, 4, 2)
    """
    return transpose(a, static_ints(axes, "permute_dims", "the axes"))


def matrix_transpose(x, /):
    """The last two axes exchanged.

    Raises ShapeError for fewer than two axes.

    Examples:
      >>> wnp.matrix_transpose(wnp.zeros((2, 3, 4))).shape
      (2, 4, 3)
    """
    if ndim_of(x) < 2:
        raise ShapeError(f"[matrix_transpose] expected at least two axes; got {shape_of(x)}")
    return swapaxes(x, -1, -2)


def swapaxes(a, axis1, axis2):
    """Two axes exchanged.

    Examples:
      >>> wnp.swapaxes(wnp.zeros((2, 3, 4)), 0, 2).shape
      (4, 3, 2)
    """
    ndim = ndim_of(a)
    order = list(range(ndim))
    i, j = normalize_axis(axis1, ndim, "swapaxes"), normalize_axis(axis2, ndim, "swapaxes")
    order[i], order[j] = j, i
    return lax_shape.transpose(a, order)


def moveaxis(a, source, destination):
    """Moves axes to other places; the others keep their order.

    Raises AttributeValueError (a ValueError) for as many sources as there are no destinations.

    Examples:
      >>> wnp.moveaxis(wnp.zeros((2, 3, 4)), 0, -1).shape
      (3, 4, 2)
    """
    ndim = ndim_of(a)
    source = normalize_axes(static_ints(source, "moveaxis", "source"), ndim, "moveaxis")
    destination = normalize_axes(
        static_ints(destination, "moveaxis", "destination"), ndim, "moveaxis"
    )
    if len(source) != len(destination):
        raise AttributeValueError(
            f"[moveaxis] expected as many sources as destinations; got {source} and {destination}"
        )
    order = [axis for axis in range(ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source, strict=True)):
        order.insert(to, axis)
    return lax_shape.transpose(a, order)


def rollaxis(a, axis, start=0):
    """Moves an axis back until it stands before the one at `start`.

    Raises AttributeValueError (a ValueError) for a start out of bounds.

    Examples:
      >>> wnp.rollaxis(wnp.zeros((2, 3, 4)), 2).shape
      (4, 2, 3)
    """
    ndim = ndim_of(a)
    axis = normalize_axis(axis, ndim, "rollaxis")
    start = static_int(start, "rollaxis", "start")
    if not -ndim <= start <= ndim:
        raise AttributeValueError(f"[rollaxis] expected a start in {-ndim}..{ndim}; got {start}")
    start += ndim if start < 0 else 0
    return moveaxis(a, axis, start - 1 if axis < start else start)


def squeeze(a, axis=None):
    """Drops axes of size 1: those given, or all of them.

    `axis` names one or several; None is all that have size 1.

    Examples:
      >>> wnp.squeeze(wnp.zeros((1, 3, 1))).shape
      (3,)
      >>> wnp.squeeze(wnp.zeros((1, 3, 1)), axis=0).shape
      (3, 1)
    """
    if axis is None:
        axis = [i for i, size in enumerate(shape_of(a)) if size == 1]
    return lax_shape.squeeze(a, static_ints(axis, "squeeze", "the axes"))


def expand_dims(a, axis):
    """Inserts axes of size 1, at the places `axis` of the result.

    Examples:
      >>> wnp.expand_dims(wnp.zeros((2, 3)), (0, -1)).shape
      (1, 2, 3, 1)
    """
    return lax_shape.expand_dims(a, static_ints(axis, "expand_dims", "the axes"))


@can_be_split
def broadcast_to(array, shape, *, out_sharding=None):
    """The array repeated along axes of size 1, and along new leading axes, to the given shape.

    `out_sharding` is None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> wnp.broadcast_to(wnp.array([1, 2, 3]), (2, 3))
      Array([[1, 2, 3],
             [1, 2, 3]], dtype=int32)
    """
    return _core.broadcast_to(array, static_shape(shape, "broadcast_to"))


def broadcast_arrays(*args):
    """The arrays broadcast to their common shape, as a tuple. Dtypes are left as they are.

    Examples:
      >>> wnp.broadcast_arrays(wnp.array([1, 2]), wnp.array([[3], [4]]))
      (Array([[1, 2],
             [1, 2]], dtype=int32), Array([[3, 3],
             [4, 4]], dtype=int32))
    """
    return tuple(_core.broadcast_arrays(*args))


def atleast_1d(*arys):
    """Each argument with at least one axis; a list if there are several.

    Examples:
      >>> wnp.atleast_1d(3.0)
      Array([3.], dtype=float32, weak_type=True)
    """
    return _each(arys, lambda x, shape: lax_shape.broadcast_to_rank(x, max(1, len(shape))))


def atleast_2d(*arys):
    """Each argument with at least two axes, missing ones in front; a list if there are several.

    Examples:
      >>> wnp.atleast_2d(wnp.array([1, 2]))
      Array([[1, 2]], dtype=int32)
    """
    return _each(arys, lambda x, shape: lax_shape.broadcast_to_rank(x, max(2, len(shape))))


def atleast_3d(*arys):
    """Each argument with at least three axes; a list if there are several.

    A vector becomes of shape `(1, n, 1)`, a matrix of shape `(m, n, 1)`.

    Examples:
      >>> wnp.atleast_3d(wnp.zeros(5)).shape
      (1, 5, 1)
      >>> wnp.atleast_3d(wnp.zeros((5, 6))).shape
      (5, 6, 1)
    """

    def expanded(x, shape):
        new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(len(shape), ())
        return lax_shape.expand_dims(x, new)

    return _each(arys, expanded)


def _each(arrays, function):
    results = [_core.asarray(function(x, shape_of(x))) for x in arrays]
    return results[0] if len(results) == 1 else results
