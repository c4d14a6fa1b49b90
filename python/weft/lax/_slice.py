"""Slices of arrays at static and at computed positions.

Static positions are checked. Computed ones are clamped so that the slice lies within the array;
negative ones count from the end.
"""

import builtins
import operator

import numpy as np

from weft import _core
from weft._arguments import (
    check_one_dtype,
    listed,
    ndim_of,
    normalize_axis,
    shape_of,
    static_int,
    static_ints,
    static_shape,
    weak_as,
)
from weft._dims import slice_extent
from weft._jit import composite
from weft.dtypes import default_int, dtype_of, is_integer
from weft.errors import AttributeValueError, DTypeError, IndexOutOfBoundsError, ShapeError
from weft.lax._shape import broadcast_in_dim, squeeze


def slice(operand, start_indices, limit_indices, strides=None):
    """The elements from `start_indices` up to `limit_indices` (excluded), at steps of `strides`.

    Args:
      operand: array of any dtype.
      start_indices, limit_indices: an integer for each axis, with 0 <= start <= limit <= size.
      strides: a positive integer for each axis; None for 1 everywhere.

    Examples:
      >>> lax.slice(wnp.arange(10), (2,), (9,), strides=(3,))
      Array([2, 5, 8], dtype=int32)
    """
    listed(start_indices, "slice", "start_indices")
    if strides is not None:
        strides = static_ints(strides, "slice", "strides")
    return _core.bind(
        "slice",
        operand,
        start_indices=static_ints(start_indices, "slice", "start_indices"),
        limit_indices=static_ints(limit_indices, "slice", "limit_indices"),
        strides=strides,
    )


def slice_in_dim(operand, start_index, limit_index, stride=1, axis=0):
    """Elements `start_index` to `limit_index` along one axis, for a positive stride.

    None stands for the ends of the axis; negative indices count from its end.

    Raises AttributeValueError (a ValueError and a TypeError) for a stride that is not positive, and
    for indices beyond the axis or a limit before the start.

    Examples:
      >>> lax.slice_in_dim(wnp.array([[1, 2, 3], [4, 5, 6]]), 1, None, axis=1)
      Array([[2, 3],
             [5, 6]], dtype=int32)
    """
    shape = shape_of(operand)
    axis = normalize_axis(axis, len(shape), "slice_in_dim")
    size = shape[axis]
    ends = []
    for what, index, default in (("start", start_index, 0), ("limit", limit_index, size)):
        index = default if index is None else static_int(index, "slice_in_dim", f"{what}_index")
        ends.append(index + size if index < 0 else index)
    if not 0 <= ends[0] <= ends[1] <= size:
        raise AttributeValueError(
            f"[slice_in_dim] expected 0 <= start <= limit <= {size}, the size of axis {axis}; "
            f"got {start_index} and {limit_index}"
        )
    return sliced(operand, ends[0], ends[1], stride, axis)


def sliced(operand, start_index, limit_index, stride=1, axis=0):
    """As Python's `x[start:limit:stride]` along one axis, for a positive stride."""
    shape = shape_of(operand)
    axis = normalize_axis(axis, len(shape), "slice_in_dim")
    stride = static_int(stride, "slice_in_dim", "stride")
    if stride < 1:
        raise AttributeValueError(f"[slice_in_dim] expected a positive stride; got {stride}")
    start, count, _ = slice_extent(builtins.slice(start_index, limit_index), shape[axis])
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], strides[axis] = start, start + count, stride
    return slice(operand, starts, limits, None if stride == 1 else strides)


def index_in_dim(operand, index, axis=0, keepdims=True):
    """Element `index` along an axis, as a slice of size 1, or without the axis.

    Raises IndexOutOfBoundsError (an IndexError) for an index beyond the axis. Without `keepdims`
    the axis is dropped.

    Examples:
      >>> lax.index_in_dim(wnp.array([[1, 2], [3, 4]]), 1, keepdims=False)
      Array([3, 4], dtype=int32)
    """
    shape = shape_of(operand)
    axis = normalize_axis(axis, len(shape), "index_in_dim")
    index = static_int(index, "index_in_dim", "index")
    if not -shape[axis] <= index < shape[axis]:
        raise IndexOutOfBoundsError(
            f"[index_in_dim] index {index} is out of bounds for axis {axis} with size {shape[axis]}"
        )
    index %= shape[axis]
    result = slice_in_dim(operand, index, index + 1, axis=axis)
    return result if keepdims else squeeze(result, (axis,))


def dynamic_slice(operand, start_indices, slice_sizes, *, allow_negative_indices=True):
    """A slice of static size at a computed position.

    Args:
      operand: array of any dtype.
      start_indices: one integer scalar for each axis, or a one-dimensional array of them.
      slice_sizes: the shape of the result, no axis larger than the operand's.
      allow_negative_indices: whether negative starts count from the end of their axis; a bool, or
        one for each axis.

    Starts are clamped to 0..size - slice_size, so that the result lies within the operand.

    Examples:
      >>> lax.dynamic_slice(wnp.arange(10), (wnp.array(3),), (2,))
      Array([3, 4], dtype=int32)
      >>> lax.dynamic_slice(wnp.arange(10), (9,), (2,))  # moved so that it lies within
      Array([8, 9], dtype=int32)
    """
    sizes = static_shape(slice_sizes, "dynamic_slice")
    starts, wrapped = _starts("dynamic_slice", operand, start_indices, allow_negative_indices)
    if wrapped:
        result = _dynamic_slice(operand, starts, sizes=sizes, wrapped=wrapped)
    else:
        result = _core.bind("dynamic_slice", operand, *starts, slice_sizes=sizes)
    return weak_as(result, operand)


def dynamic_slice_in_dim(operand, start_index, slice_size, axis=0, *, allow_negative_indices=True):
    """`slice_size` elements from a computed position along one axis; see `dynamic_slice`.

    Examples:
      >>> lax.dynamic_slice_in_dim(wnp.arange(10), 3, 2)
      Array([3, 4], dtype=int32)
    """
    shape = shape_of(operand)
    axis = normalize_axis(axis, len(shape), "dynamic_slice_in_dim")
    starts, sizes = _zeros(len(shape), start_index), list(shape)
    starts[axis] = start_index
    sizes[axis] = static_int(slice_size, "dynamic_slice_in_dim", "slice_size")
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(operand, index, axis=0, keepdims=True, *, allow_negative_indices=True):
    """The element at a computed position along one axis, as a slice of size 1 or without it.

    Without `keepdims` the axis is dropped. A negative position counts from the end, unless
    `allow_negative_indices` is False.

    Examples:
      >>> lax.dynamic_index_in_dim(wnp.array([[1, 2], [3, 4]]), 1, keepdims=False)
      Array([3, 4], dtype=int32)
    """
    axis = normalize_axis(axis, ndim_of(operand), "dynamic_index_in_dim")
    result = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return result if keepdims else squeeze(result, (axis,))


def dynamic_update_slice(operand, update, start_indices, *, allow_negative_indices=True):
    """The operand with a block of elements replaced by `update`, at a computed position.

    Args:
      operand: array of any dtype.
      update: array of the same dtype and number of axes, no axis larger than the operand's.
      start_indices: as in `dynamic_slice`; clamped so that the block lies within the operand.
      allow_negative_indices: as in `dynamic_slice`.

    Examples:
      >>> lax.dynamic_update_slice(wnp.zeros(5), wnp.array([7.0, 8.0]), (2,))
      Array([0., 0., 7., 8., 0.], dtype=float32)
    """
    starts, wrapped = _starts(
        "dynamic_update_slice", operand, start_indices, allow_negative_indices
    )
    if wrapped:
        return _dynamic_update_slice(operand, update, starts, wrapped=wrapped)
    return _core.bind("dynamic_update_slice", operand, update, *starts)


def dynamic_update_slice_in_dim(operand, update, start_index, axis, *, allow_negative_indices=True):
    """`dynamic_update_slice` at a computed position along one axis and at 0 along the others.

    Examples:
      >>> lax.dynamic_update_slice_in_dim(wnp.zeros(5), wnp.array([7.0, 8.0]), 2, axis=0)
      Array([0., 0., 7., 8., 0.], dtype=float32)
    """
    shape = shape_of(operand)
    axis = normalize_axis(axis, len(shape), "dynamic_update_slice_in_dim")
    starts = _zeros(len(shape), start_index)
    starts[axis] = start_index
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(operand, update, index, axis, *, allow_negative_indices=True):
    """Replaces the element at a computed position along one axis.

    `update` has the axis with size 1, or lacks it.

    A negative position counts from the end, unless `allow_negative_indices` is False. Raises
    ShapeError for an update of another shape.

    Examples:
      >>> lax.dynamic_update_index_in_dim(wnp.zeros((2, 2)), wnp.array([7.0, 8.0]), 1, axis=0)
      Array([[0., 0.],
             [7., 8.]], dtype=float32)
    """
    shape = shape_of(operand)
    axis = normalize_axis(axis, len(shape), "dynamic_update_index_in_dim")
    update_shape = shape_of(update)
    if len(update_shape) == len(shape) - 1:
        kept = [i for i in range(len(shape)) if i != axis]
        expanded = list(update_shape)
        expanded.insert(axis, 1)
        update = broadcast_in_dim(update, expanded, kept)
    elif len(update_shape) != len(shape) or update_shape[axis] != 1:
        raise ShapeError(
            f"[dynamic_update_index_in_dim] expected an update of shape {shape} with axis {axis} "
            f"of size 1 or left out; got {update_shape}"
        )
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )


def _zeros(count, start):
    """Starts along the other axes, of the dtype of one."""
    dtype = dtype_of(start)
    return [dtype.type(0) if is_integer(dtype) else 0] * count


def _starts(function, operand, start_indices, allow_negative):
    """Start positions as a list of scalars of one dtype, and the (axis, size) of those that may be
    negative and are not known yet."""
    shape = shape_of(operand)
    starts = _as_scalars(function, start_indices)
    if len(starts) != len(shape):
        raise AttributeValueError(
            f"[{function}] expected a start index for each of the {len(shape)} axes; "
            f"got {len(starts)}"
        )
    if isinstance(allow_negative, bool):
        allow_negative = (allow_negative,) * len(shape)
    dtype = _index_dtype(function, starts)
    wrapped = []
    for axis, (start, allow) in enumerate(zip(starts, allow_negative, strict=True)):
        static = _static_index(start)
        if static is None:
            starts[axis] = _core.astype(start, dtype)
            if allow and dtype.kind != "u":
                wrapped.append((axis, shape[axis]))
        else:
            if static < 0 and not allow:
                raise AttributeValueError(
                    f"[{function}] expected no negative start along axis {axis}, as "
                    f"allow_negative_indices says; got {static}"
                )
            # Within the dtype's range the value is as good as any beyond the array.
            wrapped_start = static + shape[axis] if static < 0 and allow else static
            limits = np.iinfo(dtype)
            start = dtype.type(min(max(wrapped_start, limits.min), limits.max))
            # A NumPy scalar is no wider than the settings allow, but the starts that are arrays may
            # be.
            starts[axis] = _core.astype(start, dtype) if dtype.itemsize == 8 else start
    return starts, tuple(wrapped)


def _as_scalars(function, start_indices):
    if not isinstance(start_indices, (list, tuple)) and hasattr(start_indices, "ndim"):
        if start_indices.ndim != 1:
            raise ShapeError(
                f"[{function}] expected start indices as a sequence of scalars or an array with "
                f"one axis; got shape {start_indices.shape}"
            )
        return [start_indices[i] for i in range(start_indices.shape[0])]
    starts = list(start_indices)
    for start in starts:
        if shape_of(start):
            raise ShapeError(
                f"[{function}] expected scalar start indices; got shape {shape_of(start)}"
            )
    return starts


def _static_index(start):
    return operator.index(start) if isinstance(start, (int, np.integer)) else None


def _index_dtype(function, starts):
    for start in starts:
        if not is_integer(dtype_of(start)):
            raise DTypeError(f"[{function}] expected integer start indices; got {dtype_of(start)}")
    given = [_core.canonical_dtype(dtype_of(start)) for start in starts]
    check_one_dtype(given, function, "start indices")
    computed = [start for start in starts if _static_index(start) is None]
    dtype = _core.result_type(*computed)[0] if computed else default_int()
    if any(dtype_of(start).itemsize > dtype.itemsize for start in computed):
        return np.dtype(np.int64)  # 64-bit arrays while 64-bit dtypes are off
    # A narrower one may not hold the sizes that are added to negative indices.
    return dtype if dtype.itemsize >= 4 else np.dtype(np.int32)


def _wrap(starts, wrapped):
    """Adds the size of the axis to the starts that are negative."""
    starts = list(starts)
    for axis, size in wrapped:
        start = starts[axis]
        negative = _core.bind("lt", start, 0)
        starts[axis] = _core.bind("select_n", negative, start, _core.bind("add", start, size))
    return starts


@composite(static_argnames=("sizes", "wrapped"))
def _dynamic_slice(operand, starts, *, sizes, wrapped):
    return _core.bind("dynamic_slice", operand, *_wrap(starts, wrapped), slice_sizes=sizes)


@composite(static_argnames=("wrapped",))
def _dynamic_update_slice(operand, update, starts, *, wrapped):
    return _core.bind("dynamic_update_slice", operand, update, *_wrap(starts, wrapped))
