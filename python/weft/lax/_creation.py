"""Operations of `weft.lax` that make arrays."""

import numpy as np

from weft import _core
from weft._arguments import (
    counted_axes,
    normalize_axis,
    shape_of,
    static_shape,
    type_of,
    wrapped,
)
from weft._types.avals import ShapeDtypeStruct
from weft.dtypes import dtype_of, is_bool, is_complex, is_integer, is_key, requested_dtype
from weft.errors import DTypeError, ShapeError
from weft.lax._sharding import placed, placed_like, split_as


def iota(dtype, size):
    """The numbers 0, 1, ..., size - 1.

    Examples:
      >>> lax.iota("int32", 4)
      Array([0, 1, 2, 3], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype, shape, dimension, *, out_sharding=None):
    """An array whose elements are their index along the axis `dimension`.

    Args:
      dtype: a number dtype.
      shape: shape of the result, with at least one axis.
      dimension: the axis.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> lax.broadcasted_iota("int32", (2, 3), dimension=1)
      Array([[0, 1, 2],
             [0, 1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding, "broadcasted_iota", lambda: broadcasted_iota(dtype, shape, dimension)
        )
    dtype = requested_dtype(dtype, "broadcasted_iota")
    shape = static_shape(shape, "broadcasted_iota")
    (dimension,) = counted_axes((dimension,), "broadcasted_iota")
    dimension = normalize_axis(dimension, len(shape), "broadcasted_iota")
    return _core.bind("iota", dtype=dtype, shape=shape, dimension=dimension)


def full(shape, fill_value, dtype=None, *, sharding=None):
    """An array of the given shape with all elements equal to a scalar.

    Without `dtype` it has that of `fill_value`, weak for a Python number. `sharding` is None, or
    where the result lies: a sharding, or a PartitionSpec where a mesh is set.

    Raises ShapeError for a fill_value that is no scalar.

    Examples:
      >>> lax.full((2, 3), 7)
      Array([[7, 7, 7],
             [7, 7, 7]], dtype=int32, weak_type=True)
    """
    if sharding is not None:
        return placed(full(shape, fill_value, dtype), sharding, "full")
    shape = static_shape(shape, "full")
    if shape_of(fill_value):
        raise ShapeError(f"[full] expected a scalar fill_value; got shape {shape_of(fill_value)}")
    if is_key(dtype):
        return full_of_keys(shape, fill_value, dtype)
    weak = dtype is None and type(fill_value) is int
    if dtype is not None:
        dtype = requested_dtype(dtype, "full")
        if type(fill_value) is complex:
            check_number(fill_value, dtype, "full")
    elif weak:
        dtype = dtype_of(fill_value)
    if dtype is not None:
        fill_value = _core.astype(wrapped(fill_value, dtype), dtype, weak)
    if not shape:
        return _core.asarray(fill_value)
    return _core.bind("broadcast_in_dim", fill_value, shape=shape, broadcast_dimensions=())


def check_number(value, dtype, function="array"):
    """What Python and NumPy say of numbers that the dtype has no place for.

    TypeError for complex numbers as real ones, ValueError for NaN and OverflowError for infinities
    and numbers beyond the range as integers.
    """
    if isinstance(value, complex) and not (is_complex(dtype) or is_bool(dtype)):
        raise DTypeError(f"[{function}] expected a real number for dtype {dtype}; got {value}")
    if isinstance(value, float) and is_integer(dtype):
        _core.astype(int(value), dtype)


def full_of_keys(shape, fill_value, dtype):
    """Keys, all equal to `fill_value`: a key, or an integer that all words are."""
    if dtype_of(fill_value) != dtype:
        words = full((*shape, dtype.itemsize // 4), fill_value, np.uint32)
        return _core.bind("bitcast_convert_type", words, new_dtype=dtype)
    return _core.broadcast_to(fill_value, shape)


def full_like(x, fill_value, dtype=None, shape=None, sharding=None):
    """As `full`, with the shape and dtype of `x`, and where that is, unless others are given.

    `x` may be a ShapeDtypeStruct.

    Examples:
      >>> lax.full_like(wnp.arange(3), 7)
      Array([7, 7, 7], dtype=int32)
    """
    if sharding is not None:
        return placed(full_like(x, fill_value, dtype, shape), sharding, "full_like")
    own_shape, own_dtype, weak = type_of(x)
    shape = own_shape if shape is None else static_shape(shape, "full_like")
    if dtype is not None or is_key(own_dtype):
        result = full(shape, fill_value, own_dtype if dtype is None else dtype)
    else:
        if type(fill_value) is complex and not weak:
            check_number(fill_value, own_dtype, "full_like")
        result = full(shape, _core.astype(wrapped(fill_value, own_dtype), own_dtype, weak))
    return placed_like(result, x)


def empty(shape, dtype, *, out_sharding=None):
    """An array of zeros; the values are unspecified by contract, so do not rely on them.

    `out_sharding` is None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> lax.empty((2, 3), "float32").shape
      (2, 3)
    """
    if out_sharding is not None:
        return split_as(out_sharding, "empty", lambda: empty(shape, dtype))
    return full(shape, 0, dtype)


def dtype(x):
    """The dtype of an array, a number or a type of arrays; of a dtype, or what names one, that
    which arrays of it have.

    Examples:
      >>> lax.dtype(1.0), lax.dtype(wnp.arange(3))
      (dtype('float32'), dtype('int32'))
    """
    if isinstance(x, (str, type, np.dtype)):
        return requested_dtype(x, "dtype")
    return x.dtype if isinstance(x, ShapeDtypeStruct) else dtype_of(x)


def shape_as_value(shape):
    """A shape as a NumPy array of one axis: int32, or int64 if a size needs it.

    Examples:
      >>> lax.shape_as_value((2, 3))
      array([2, 3], dtype=int32)
    """
    shape = static_shape(shape, "shape_as_value")
    wide = any(size > np.iinfo(np.int32).max for size in shape)
    return np.array(shape, np.int64 if wide else np.int32)
