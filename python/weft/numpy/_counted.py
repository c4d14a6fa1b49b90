"""Results whose sizes depend on values: positions of elements that are not zero, and selections.

A program makes each of them at a size that is known, the one that is given or the greatest that can
be, and counts how many elements are meant. Without a size the result is cut to the count, which
takes values: then, and only then, the functions cannot be traced.
"""

import math

import numpy as np

from weft import _core
from weft._arguments import ndim_of, normalize_axis, shape_of, static_int, weak_as
from weft._jit import composite
from weft.dtypes import default_int, dtype_of
from weft.errors import (
    AttributeValueError,
    ConcretizationTypeError,
    OperandError,
    ShapeError,
)
from weft.lax._creation import full, iota
from weft.lax._cumulative import cumsum
from weft.lax._shape import expand_dims, stack
from weft.lax._slice import sliced
from weft.numpy import _indexing as indexing, _reductions as reductions, _select as select
from weft.numpy._division_powers import floor_divide, remainder
from weft.numpy._products import flattened
from weft.numpy._select import as_bool, choose
from weft.numpy._shape import ravel, reshape
from weft.numpy._ufuncs import less, subtract

# ---- sizes

_PASS_SIZE = "Pass size=n, the number of elements that the result has."


def known(x, function, way_out):
    """The values of an array as a NumPy array; an error with the way out where it has none."""
    if isinstance(x, _core.Tracer):
        value = _core.concrete_value(x)
        if value is None:
            raise ConcretizationTypeError(
                f"[{function}] expected an array whose values are known; got a traced one of shape "
                f"{shape_of(x)}, and the shape of the result depends on its values\n  {way_out}"
            )
        x = value
    shape_of(x)  # refuses lists
    return np.asarray(x)


def known_size(size, function, *arrays):
    """The size that was asked for, None for as many as there are; that takes arrays with values."""
    if size is None:
        for x in arrays:
            if isinstance(x, _core.Tracer) and _core.concrete_value(x) is None:
                known(x, function, _PASS_SIZE)
        return None
    size = static_int(size, function, "size")
    if size < 0:
        raise AttributeValueError(f"[{function}] expected size to be at least 0; got {size}")
    return size


def cut(x, count, axis=0):
    """The first `count` slices along an axis; no program for each count, if there are values."""
    if count == shape_of(x)[axis]:
        return x
    if isinstance(x, _core.Tracer):
        return sliced(x, 0, count, axis=axis)
    kept = np.asarray(x)[(slice(None),) * axis + (slice(count),)]
    return _core.put(kept, x.weak_type, x._placement.whole, x.committed)


def counted(count, function):
    """A count that a program made, as an integer."""
    return int(known(count, function, _PASS_SIZE))


# ---- positions


def first_true(mask, size, fill=0):
    """The first `size` positions where a vector is True, then `fill`; and how many there are."""
    n, dtype = shape_of(mask)[0], default_int()
    if n == 0 or size == 0:
        return full((size,), fill, dtype), _core.astype(reductions.sum(mask), dtype)
    running = cumsum(_core.astype(mask, dtype))
    slots = choose(mask, subtract(running, 1), size)
    found = indexing.spread_out("set", size, fill, slots, iota(dtype, n))
    return found, running[n - 1]


def nonzero(a, *, size=None, fill_value=None):
    """The positions of the elements that are not zero, in row-major order.

    Args:
      a: array with at least one axis.
      size: how many to return, which tracing needs; None for as many as there are.
      fill_value: what stands in the place of those that are missing: a number, or a tuple with one
        for each axis; 0 by default. The results have a dtype that holds it.

    Returns:
      A tuple of index arrays, one for each axis.

    Raises:
      ConcretizationTypeError: for a traced array without `size`.

    Examples:
      >>> wnp.nonzero(wnp.array([[3, 0], [4, 5]]))
      (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
      >>> wnp.nonzero(wnp.array([0, 3]), size=3, fill_value=-1)
      (Array([ 1, -1, -1], dtype=int32),)
    """
    return _positions("nonzero", a, size, fill_value)


def _positions(function, a, size, fill_value):
    ndim = ndim_of(a)
    if ndim == 0:
        raise AttributeValueError(
            f"[{function}] expected an array with axes; got a scalar: use weft.numpy.atleast_1d(x)"
        )
    if fill_value is not None:
        fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * ndim
        if len(fills) != ndim or any(shape_of(fill) for fill in fills):
            raise AttributeValueError(
                f"[{function}] expected as fill_value a number or a tuple of {ndim}; "
                f"got {fill_value!r}"
            )
    size = known_size(size, function, a)
    if size is None:
        found = (known(a, function, "") != 0).nonzero()
        size = len(found[0])
        if fill_value is None or size == 0:
            return tuple(_core.asarray(each.astype(default_int())) for each in found)
    return tuple(_nonzero(a, None if fill_value is None else fills, size=size))


@composite(static_argnames=("size",))
def _nonzero(a, fills, *, size):
    shape = shape_of(a)
    flat, count = first_true(as_bool(flattened(a)), size)
    results, stride = [], 1
    for n in reversed(shape):
        at = floor_divide(flat, stride) if stride > 1 else flat
        results.append(remainder(at, n) if n else at)
        stride *= n
    results.reverse()
    if fills is None or size == 0 or 0 in shape:
        return results
    there = less(iota(default_int(), size), count)
    return [choose(there, at, fill) for at, fill in zip(results, fills, strict=True)]


def _reshaped(a, shape):
    """An array in another shape; one that has values while others are traced keeps them."""
    return a.reshape(shape) if isinstance(a, np.ndarray) else reshape(a, shape)


def flatnonzero(a, *, size=None, fill_value=None):
    """The positions in the flattened array of the elements that are not zero; see `nonzero`.

    Examples:
      >>> wnp.flatnonzero(wnp.array([[3, 0], [4, 5]]))
      Array([0, 2, 3], dtype=int32)
    """
    return _positions("flatnonzero", _reshaped(a, (-1,)), size, fill_value)[0]


def argwhere(a, *, size=None, fill_value=None):
    """The positions of the elements that are not zero, as the rows of a matrix; see `nonzero`.

    Examples:
      >>> wnp.argwhere(wnp.array([[3, 0], [4, 5]]))
      Array([[0, 0],
             [1, 0],
             [1, 1]], dtype=int32)
    """
    found = _positions("argwhere", _reshaped(a, shape_of(a) or (1,)), size, fill_value)
    return stack(_core.promote_dtypes(*found), 1)[:, : ndim_of(a)]


def mask_indices(n, mask_func, k=0, *, size=None):
    """The positions in an n by n matrix of the elements that a function leaves.

    Args:
      n: size of the matrix.
      mask_func: a function of a matrix and `k`, such as `triu`.
      k: passed to the function.
      size: see `nonzero`.

    Returns:
      The row numbers and the column numbers.

    Examples:
      >>> wnp.mask_indices(3, wnp.triu, 1)
      (Array([0, 0, 1], dtype=int32), Array([1, 2, 2], dtype=int32))
    """
    n = static_int(n, "mask_indices", "n")
    return _positions("mask_indices", mask_func(full((n, n), 1, np.float32), k), size, None)


def where(condition, x=None, y=None, /, *, size=None, fill_value=None):
    """`x` where `condition` is true, `y` elsewhere; without them, `nonzero(condition)`.

    Args:
      condition: array or number; anything but zero is true.
      x, y: arrays or numbers, both or none.
      size, fill_value: see `nonzero`; only without `x` and `y`.

    Returns:
      Array of the promoted dtype of `x` and `y` and of the broadcast shape of all three.

    Raises OperandError (a TypeError) for one of `x` and `y` alone, AttributeValueError (a
    ValueError) for size or fill_value with three arguments.

    Examples:
      >>> wnp.where(wnp.array([1, -2, 3]) > 0, wnp.array([10, 20, 30]), 0)
      Array([10,  0, 30], dtype=int32)
    """
    if x is None and y is None:
        return _positions("where", condition, size, fill_value)
    if x is None or y is None:
        missing = "x" if x is None else "y"
        raise OperandError(f"[where] expected x and y, or neither; got None for {missing!r}")
    if size is not None or fill_value is not None:
        raise AttributeValueError("[where] size and fill_value are for one argument; got three")
    return select.where(condition, x, y)


# ---- selections


def extract(condition, arr, *, size=None, fill_value=0):
    """The elements of the flattened array where the flattened condition is true; see `compress`.

    Examples:
      >>> wnp.extract(wnp.array([True, False, True]), wnp.array([10, 20, 30]))
      Array([10, 30], dtype=int32)
    """
    return _selected("extract", condition, ravel(arr), 0, size, fill_value)


def compress(condition, a, axis=None, *, size=None, fill_value=0, out=None):
    """The slices along an axis where a condition is true.

    Args:
      condition: one-dimensional array; anything but zero is true. Slices beyond its end are left
        out.
      a: array or number.
      axis: the axis; None selects from the flattened array.
      size: how many slices to return, which tracing needs; None for as many as there are.
      fill_value: what those that are missing consist of.
      out: not supported, must be None.

    Raises:
      ConcretizationTypeError: for a traced condition without `size`.

    Examples:
      >>> wnp.compress(wnp.array([False, True]), wnp.array([[1, 2], [3, 4]]), axis=0)
      Array([[3, 4]], dtype=int32)
    """
    reductions.reject_out("compress", out)
    if ndim_of(condition) != 1:
        raise ShapeError(
            f"[compress] expected a one-dimensional condition; got shape {shape_of(condition)}"
        )
    if axis is None:
        a, axis = ravel(a), 0
    axis = normalize_axis(axis, ndim_of(a), "compress")
    return _selected("compress", condition, a, axis, size, fill_value)


def _selected(function, condition, a, axis, size, fill_value):
    n, given = shape_of(a)[axis], math.prod(shape_of(condition))
    size = known_size(size, function, condition)
    true = None if size is not None else known(condition, function, _PASS_SIZE).ravel() != 0
    if true is not None and true[n:].any():
        raise AttributeValueError(
            f"[{function}] expected a condition that is true within the size {n}; got one of size "
            f"{given} that is true beyond it"
        )
    if size is not None and size > n:
        raise AttributeValueError(
            f"[{function}] expected a size of at most {n}, that of the axis; got {size}"
        )
    if true is None:
        return _select(condition, a, fill_value, axis=axis, size=size)
    count = int(true.sum())
    room = count if _core.in_trace() else n  # a program of its own for each count would be many
    return cut(_select(condition, a, fill_value, axis=axis, size=room), count, axis)


@composite(static_argnames=("axis", "size"))
def _select(condition, a, fill, *, axis, size):
    condition = flattened(condition)
    n = min(shape_of(condition)[0], shape_of(a)[axis])
    return kept(as_bool(sliced(condition, 0, n)), a, fill, size, axis)[0]


def kept(mask, a, fill, size, axis=0):
    """The first `size` slices where a mask is True, then `fill`; and how many there are.

    With None as the fill the first of them is repeated; it is zero if there are none.
    """
    at, count = first_true(mask, size)
    there = less(iota(default_int(), size), count)
    zero = _core.astype(0, dtype_of(a))
    if shape_of(a)[axis]:
        result = indexing.getitem(a, (*(slice(None),) * axis, at))
    else:
        shape = tuple(size if i == axis else n for i, n in enumerate(shape_of(a)))
        result = _core.broadcast_to(zero, shape)
    if fill is None:
        first = sliced(result, 0, 1, axis=axis) if size else result
        fill = choose(reductions.any(mask), first, zero)
    there = expand_dims(there, [i for i in range(ndim_of(a)) if i != axis])
    result = choose(there, result, _core.astype(fill, dtype_of(a)))
    return weak_as(result, a), count
