"""Operations of `weft.lax` that rearrange elements or change the shape."""

import math

from weft import _core
from weft._arguments import (
    counted_axes,
    listed,
    ndim_of,
    normalize_axes,
    normalize_axis,
    shape_of,
    static_int,
    static_ints,
    static_shape,
)
from weft.dtypes import dtype_of
from weft.errors import AttributeValueError, DTypeError, ShapeError
from weft.lax._sharding import split_as


def broadcast_shapes(*shapes):
    """The shape that arrays of the given shapes have after NumPy broadcasting.

    ShapeError if two of them have, counted from the last axis, different sizes of which none is 1.

    Examples:
      >>> lax.broadcast_shapes((5, 1), (3,))
      (5, 3)
    """
    shapes = [static_shape(shape, "broadcast_shapes") for shape in shapes]
    return common_shape(shapes, "broadcast_shapes")


def common_shape(shapes, function):
    """As `broadcast_shapes`, of tuples of ints; NumPy's own stops at 32 axes."""
    result = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        offset = len(result) - len(shape)
        for axis, size in enumerate(shape, offset):
            if result[axis] == 1:
                result[axis] = size
            elif size not in (1, result[axis]):
                listed = ", ".join(map(str, shapes))
                raise ShapeError(
                    f"[{function}] expected shapes that broadcast together; got {listed}"
                )
    return tuple(result)


def broadcast_in_dim(operand, shape, broadcast_dimensions, *, out_sharding=None):
    """Broadcasts to `shape`, axis i of the operand becoming axis `broadcast_dimensions[i]`.

    Args:
      operand: array of any dtype.
      shape: shape of the result.
      broadcast_dimensions: as many different axes of the result as the operand has axes. The sizes
        must agree, or that of the operand be 1.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> lax.broadcast_in_dim(wnp.array([1, 2]), (2, 3), broadcast_dimensions=(0,))
      Array([[1, 1, 1],
             [2, 2, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding,
            "broadcast_in_dim",
            lambda: broadcast_in_dim(operand, shape, broadcast_dimensions),
        )
    shape = static_shape(shape, "broadcast_in_dim")
    dims = static_ints(broadcast_dimensions, "broadcast_in_dim", "broadcast_dimensions")
    if dims == tuple(range(len(shape))) and shape_of(operand) == shape:
        return _core.apart(operand)
    order = sorted(range(len(dims)), key=dims.__getitem__)
    if len(dims) == ndim_of(operand) and order != list(range(len(dims))):
        operand, dims = transpose(operand, order), tuple(sorted(dims))
    return _core.bind("broadcast_in_dim", operand, shape=shape, broadcast_dimensions=dims)


def broadcast(operand, sizes, *, out_sharding=None):
    """Adds leading axes of the given sizes.

    `out_sharding` is None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> lax.broadcast(wnp.array([1, 2]), (3,))
      Array([[1, 2],
             [1, 2],
             [1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return split_as(out_sharding, "broadcast", lambda: broadcast(operand, sizes))
    sizes = static_shape(listed(sizes, "broadcast", "the sizes"), "broadcast")
    shape = shape_of(operand)
    return broadcast_in_dim(operand, sizes + shape, range(len(sizes), len(sizes) + len(shape)))


def broadcast_to_rank(x, rank):
    """Adds leading axes of size 1 until the array has at least `rank` dimensions.

    Examples:
      >>> lax.broadcast_to_rank(wnp.array([1, 2]), 3).shape
      (1, 1, 2)
    """
    missing = static_int(rank, "broadcast_to_rank", "rank") - ndim_of(x)
    return broadcast(x, (1,) * missing) if missing > 0 else _core.apart(x)


def broadcast_like(arr, like_arr):
    """Broadcasts `arr` to the shape of `like_arr`, by NumPy's rules.

    Examples:
      >>> lax.broadcast_like(wnp.array([1, 2]), wnp.zeros((2, 2)))
      Array([[1, 2],
             [1, 2]], dtype=int32)
    """
    return _core.broadcast_to(arr, shape_of(like_arr))


def reshape(operand, new_sizes, dimensions=None, *, out_sharding=None):
    """The elements in row-major order, in another shape of the same size.

    Args:
      operand: array of any dtype.
      new_sizes: the new shape.
      dimensions: axes in the order in which they are read, if not in their own.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> lax.reshape(wnp.arange(4), (2, 2))
      Array([[0, 1],
             [2, 3]], dtype=int32)
    """
    if out_sharding is not None:
        return split_as(out_sharding, "reshape", lambda: reshape(operand, new_sizes, dimensions))
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    new_sizes = static_shape(new_sizes, "reshape")
    if new_sizes == shape_of(operand):
        return _core.apart(operand)
    return _core.bind("reshape", operand, new_sizes=new_sizes)


def collapse(operand, start_dimension, stop_dimension=None):
    """Merges the axes `start_dimension` to `stop_dimension` (excluded; None: to the last) to one.

    Both may be negative, and are then counted from the end. No axes merge to a new one of size 1.

    Raises AttributeValueError (a ValueError) for a start beyond the stop.

    Examples:
      >>> lax.collapse(wnp.zeros((2, 3, 4)), 0, 2).shape
      (6, 4)
    """
    shape = shape_of(operand)
    low, high, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if low > high:
        raise AttributeValueError(
            f"[collapse] expected start_dimension <= stop_dimension; got {start_dimension} and "
            f"{stop_dimension} for an array of shape {shape}"
        )
    return reshape(operand, shape[:low] + (math.prod(shape[low:high]),) + shape[high:])


def squeeze(array, dimensions):
    """Drops the given axes, whose size must be 1.

    Examples:
      >>> lax.squeeze(wnp.zeros((1, 3, 1)), (0,)).shape
      (3, 1)
    """
    dimensions = listed(dimensions, "squeeze", "dimensions")
    axes = tuple(sorted(normalize_axes(dimensions, ndim_of(array), "squeeze")))
    return _core.bind("squeeze", array, dimensions=axes) if axes else _core.apart(array)


def expand_dims(array, dimensions):
    """Inserts axes of size 1 so that they stand at `dimensions` of the result.

    Examples:
      >>> lax.expand_dims(wnp.zeros((2, 3)), (0, 3)).shape
      (1, 2, 3, 1)
    """
    shape = shape_of(array)
    dimensions = listed(dimensions, "expand_dims", "dimensions")
    dimensions = static_ints(dimensions, "expand_dims", "dimensions")
    rank = len(shape) + len(dimensions)
    new = normalize_axes(dimensions, rank, "expand_dims")
    kept = [axis for axis in range(rank) if axis not in new]
    result = [1] * rank
    for axis, size in zip(kept, shape, strict=True):
        result[axis] = size
    return broadcast_in_dim(array, result, kept)


def transpose(operand, permutation):
    """Reorders the axes: axis i of the result is axis `permutation[i]` of the operand.

    Axes are counted from the start.

    Examples:
      >>> lax.transpose(wnp.zeros((2, 3, 4)), (2, 0, 1)).shape
      (4, 2, 3)
    """
    ndim = ndim_of(operand)
    permutation = counted_axes(permutation, "transpose")
    if permutation == tuple(range(ndim)):
        return _core.apart(operand)
    return _core.bind("transpose", operand, permutation=permutation)


def move_axis(x, source, destination):
    """x with one axis moved; both are counted from the start."""
    order = [i for i in range(ndim_of(x)) if i != source]
    order.insert(destination, source)
    return transpose(x, order)


def rev(operand, dimensions):
    """Reverses the order of the elements along the given axes, counted from the start.

    Examples:
      >>> lax.rev(wnp.array([[1, 2], [3, 4]]), (1,))
      Array([[2, 1],
             [4, 3]], dtype=int32)
    """
    axes = normalize_axes(counted_axes(dimensions, "rev"), ndim_of(operand), "rev")
    return _core.bind("rev", operand, dimensions=axes) if axes else _core.apart(operand)


def concatenate(operands, dimension):
    """Joins arrays of one dtype along an axis.

    Args:
      operands: sequence of at least one array; the sizes agree except along `dimension`.
      dimension: the axis, counted from the start.

    Raises AttributeValueError (a ValueError) without arrays, ShapeError for shapes that differ
    elsewhere, DTypeError for dtypes that differ.

    Examples:
      >>> lax.concatenate([wnp.array([1, 2]), wnp.array([3])], 0)
      Array([1, 2, 3], dtype=int32)
    """
    operands = list(operands)
    if not operands:
        raise AttributeValueError("[concatenate] expected at least one array; got none")
    (dimension,) = counted_axes((dimension,), "concatenate")
    axis = normalize_axis(dimension, ndim_of(operands[0]), "concatenate")
    if len(operands) == 1:
        return _core.apart(operands[0])
    return _core.bind("concatenate", *operands, dimension=axis)


def stack(operands, axis=0):
    """Joins arrays of one shape and dtype along a new axis.

    Raises AttributeValueError (a ValueError) without arrays, ShapeError for shapes that differ.

    Examples:
      >>> lax.stack([wnp.array([1, 2]), wnp.array([3, 4])])
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    operands = list(operands)
    if not operands:
        raise AttributeValueError("[stack] expected at least one array; got none")
    axis = normalize_axis(axis, ndim_of(operands[0]) + 1, "stack")
    return concatenate([expand_dims(x, (axis,)) for x in operands], axis)


def split(operand, sizes, axis=0):
    """Cuts an array along an axis into consecutive pieces of the given sizes.

    Returns a list; the sizes must add up to the size of the axis.

    Examples:
      >>> lax.split(wnp.arange(5), (2, 3))
      [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    axis = normalize_axis(axis, ndim_of(operand), "split")
    sizes = static_shape(sizes, "split")
    if len(sizes) == 1 and sizes[0] == shape_of(operand)[axis]:
        return [_core.apart(operand)]
    return list(_core.bind("split", operand, axis=axis, sizes=sizes))


def unstack(x, axis=0):
    """The slices of an array along an axis, each without the axis, as a tuple.

    Examples:
      >>> lax.unstack(wnp.array([[1, 2], [3, 4]]))
      (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    axis = normalize_axis(axis, ndim_of(x), "unstack")
    count = shape_of(x)[axis]
    if count == 0:
        return ()
    return tuple(squeeze(piece, (axis,)) for piece in split(x, (1,) * count, axis))


def tile(operand, reps):
    """Repeats the array `reps[i]` times along axis i; `reps` has an entry for each axis.

    Raises AttributeValueError (a ValueError) unless there is a count for each axis.

    Examples:
      >>> lax.tile(wnp.array([1, 2]), (3,))
      Array([1, 2, 1, 2, 1, 2], dtype=int32)
    """
    shape = shape_of(operand)
    reps = static_shape(reps, "tile")
    if len(reps) != len(shape):
        raise AttributeValueError(
            f"[tile] expected {len(shape)} repetition counts, one for each axis; got {reps}"
        )
    repeated, kept = [], []
    for count, size in zip(reps, shape, strict=True):
        if count != 1:
            repeated.append(count)
        kept.append(len(repeated))
        repeated.append(size)
    tiled = broadcast_in_dim(operand, repeated, kept)
    return reshape(tiled, [count * size for count, size in zip(reps, shape, strict=True)])


def pad(operand, padding_value, padding_config):
    """Adds elements around and between those of an array.

    Args:
      operand: array of any dtype.
      padding_value: scalar of the same dtype.
      padding_config: for each axis `(low, high, interior)`: how many elements to add before, after,
        and between neighbours. Negative `low` and `high` remove elements.

    Raises AttributeValueError (a ValueError) unless there is a triple for each axis.

    Examples:
      >>> lax.pad(wnp.array([1, 2, 3]), 0, [(2, 1, 1)])
      Array([0, 0, 1, 0, 2, 0, 3, 0], dtype=int32)
      >>> lax.pad(wnp.array([1, 2, 3]), 0, [(-1, 0, 0)])
      Array([2, 3], dtype=int32)
    """
    config = [static_ints(entry, "pad", "padding_config") for entry in padding_config]
    if any(len(entry) != 3 for entry in config):
        raise AttributeValueError(
            f"[pad] expected (low, high, interior) for each axis; got {padding_config}"
        )
    if dtype_of(operand) != dtype_of(padding_value):
        raise DTypeError(
            f"[pad] expected a padding_value of the dtype {dtype_of(operand)} of the array; got "
            f"{dtype_of(padding_value)}"
        )
    return _core.bind("pad", operand, padding_value, padding_config=config)
