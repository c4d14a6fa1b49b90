"""Positions in flattened arrays as indices along the axes, and back."""

import functools

from weft import _core
from weft._arguments import static_ints, strong
from weft._jit import composite
from weft.dtypes import default_int, dtype_of, is_bool, is_integer, requested_dtype
from weft.errors import AttributeValueError, DTypeError
from weft.numpy import _indexing as indexing, _ufuncs as u
from weft.numpy._counted import known
from weft.numpy._division_powers import floor_divide, remainder
from weft.numpy._select import where


def unravel_index(indices, shape):
    """The indices along the axes of elements whose positions in the flattened array are given.

    Args:
      indices: integers; negative ones count from the end, those out of bounds stand for the ends.
      shape: the shape of the array; its sizes may be traced.

    Returns:
      A tuple of arrays of the shape of `indices`, one for each axis, of the dtype that `indices`
      and the size of the axis promote to.

    Raises DTypeError for indices that are no integers.

    Examples:
      >>> wnp.unravel_index(wnp.array([0, 5]), (2, 3))
      (Array([0, 1], dtype=int32), Array([0, 2], dtype=int32))
    """
    if isinstance(shape, int) or not getattr(shape, "ndim", 1):
        shape = (shape,)
    given = tuple(shape)
    sizes = [_axis_size(n) for n in given]
    dtype = dtype_of(indices)
    if not is_integer(dtype) and not is_bool(dtype):
        raise DTypeError(f"[unravel_index] expected integers; got dtype {dtype}")
    axes = zip(_unravel_index(indices, sizes), given, strict=True)
    return tuple(_core.astype(at, *_core.result_type(indices, size)) for at, size in axes)


def _axis_size(n):
    """The size of an axis: a Python integer, or an integer that is traced."""
    if isinstance(n, _core.Tracer) and is_integer(n.dtype) and not n.ndim:
        return n
    return static_ints(n, "unravel_index", "the shape")[0]


@composite
def _unravel_index(indices, sizes):
    own = dtype_of(indices)
    if is_bool(own):
        own = default_int()
        indices = _core.astype(indices, own, True)
    dtype = indexing.index_dtype([indices])
    sizes = [_core.astype(n, dtype) for n in sizes]
    size = functools.reduce(u.multiply, sizes, 1)
    at = indexing.wrapped(indices, 0, dtype)
    at = u.minimum(where(u.less(at, 0), u.add(at, size), at), u.subtract(size, 1))
    at = u.maximum(at, 0)
    results = []
    for n in map(_at_least_one, reversed(sizes)):
        results.append(remainder(at, n))
        at = floor_divide(at, n)
    return [indexing.like(_core.astype(each, own), indices) for each in reversed(results)]


def _at_least_one(n):
    return u.maximum(n, 1)


_MODES = ("raise", "wrap", "clip", "ignore")


def ravel_multi_index(multi_index, dims, mode="raise", order="C", *, dtype=None):
    """The positions in the flattened array of elements whose indices along the axes are given.

    Args:
      multi_index: a sequence of arrays of integers, one for each axis.
      dims: the shape of the array.
      mode: what to do about indices out of bounds: "raise" an error, which takes indices with
        values, "wrap" them round, "clip" them to the ends, or "ignore" that they are.
      order: "C" for row-major order, "F" for column-major order.
      dtype: dtype of the result; else the one that the indices promote to.

    Raises AttributeValueError (a ValueError) for another number of index arrays, indices that are
    no integers or, with mode "raise", out of bounds, and for another mode or order.

    Examples:
      >>> wnp.ravel_multi_index((wnp.array([0, 1]), wnp.array([2, 2])), (2, 3))
      Array([2, 5], dtype=int32)
    """
    dims = static_ints(dims, "ravel_multi_index", "dims")
    indices = tuple(multi_index)
    if len(indices) != len(dims):
        raise AttributeValueError(
            f"[ravel_multi_index] expected {len(dims)} index arrays; got {len(indices)}"
        )
    if mode not in _MODES:
        raise AttributeValueError(
            f"[ravel_multi_index] expected a mode of {', '.join(_MODES)}; got {mode!r}"
        )
    if order not in ("C", "F"):
        raise AttributeValueError(f"[ravel_multi_index] expected order 'C' or 'F'; got {order!r}")
    for each in indices:
        if not is_integer(dtype_of(each)):
            raise AttributeValueError(
                f"[ravel_multi_index] expected integer indices; got {dtype_of(each)}"
            )
    if mode == "raise":
        way_out = "Pass mode='clip', 'wrap' or 'ignore'."
        for each, n in zip(indices, dims, strict=True):
            values = known(each, "ravel_multi_index", way_out)
            if ((values < 0) | (values >= n)).any():
                raise AttributeValueError(
                    f"[ravel_multi_index] expected indices within the shape {dims}; got {each!r}"
                )
    if not indices:
        return _core.asarray(default_int().type(0))
    if dtype is None:
        dtype = _core.result_type(*indices)[0]
    else:
        dtype = requested_dtype(dtype, "ravel_multi_index")
    return _ravel_multi_index(indices, dims=dims, mode=mode, order=order, dtype=dtype)


@composite(static_argnames=("dims", "mode", "order", "dtype"), broadcasts=True)
def _ravel_multi_index(indices, *, dims, mode, order, dtype):
    pairs = list(zip(indices, dims, strict=True))
    result, stride = dtype.type(0), 1
    for at, n in pairs if order == "F" else reversed(pairs):
        if mode == "wrap":
            at = remainder(at, n)
        elif mode == "clip":
            at = u.maximum(u.minimum(at, n - 1), 0)
        result = u.add(result, u.multiply(_core.astype(at, dtype), stride))
        stride *= n
    return strong(result)
