"""Copies of arrays with elements replaced, inserted or left out."""

import math

import numpy as np

from weft import _core
from weft._arguments import ndim_of, normalize_axes, normalize_axis, shape_of, weak_as
from weft._jit import composite
from weft.dtypes import default_int, dtype_of, is_bool, is_integer
from weft.errors import (
    AttributeValueError,
    DTypeError,
    IndexOutOfBoundsError,
    ShapeError,
)
from weft.lax._creation import full, iota
from weft.lax._cumulative import cumsum
from weft.lax._gather import GatherScatterMode
from weft.lax._shape import expand_dims, reshape
from weft.lax._slice import slice as lax_slice
from weft.lax._sort import sort as lax_sort, sort_key_val
from weft.numpy import _indexing as indexing, _ufuncs as u
from weft.numpy._counted import known
from weft.numpy._division_powers import remainder
from weft.numpy._products import flattened
from weft.numpy._select import as_bool, choose
from weft.numpy._shape import moveaxis, ravel
from weft.numpy._sorting import insertion_points


def _reject_inplace(function, inplace):
    if inplace:
        raise AttributeValueError(
            f"[{function}] arrays are immutable: pass inplace=False for an updated copy"
        )


def place(arr, mask, vals, *, inplace=True):
    """A copy with the elements where a mask is true replaced, in order, by values.

    Args:
      arr: the array.
      mask: array with as many elements; anything but zero is true.
      vals: the values, repeated as often as needed, and converted to the dtype of `arr`.
      inplace: must be False.

    Raises AttributeValueError (a ValueError) for a mask of another size, and without values.

    Examples:
      >>> x = wnp.array([1, 2, 3, 4])
      >>> wnp.place(x, x % 2 == 0, wnp.array([10, 20]), inplace=False)
      Array([ 1, 10,  3, 20], dtype=int32)
    """
    _reject_inplace("place", inplace)
    sizes = [math.prod(shape_of(x)) for x in (arr, mask)]
    if sizes[0] != sizes[1]:
        raise AttributeValueError(
            f"[place] expected a mask with as many elements as the array; got shapes "
            f"{shape_of(arr)} and {shape_of(mask)}"
        )
    if 0 in shape_of(vals):
        raise AttributeValueError(f"[place] expected at least one value; got {shape_of(vals)}")
    return _place(arr, mask, vals)


@composite
def _place(arr, mask, vals):
    vals, mask = flattened(vals), as_bool(flattened(mask))
    if not shape_of(mask)[0]:
        return arr
    at = u.subtract(cumsum(_core.astype(mask, default_int())), 1)
    vals = indexing.getitem(vals, remainder(u.maximum(at, 0), shape_of(vals)[0]))
    result = choose(mask, _core.astype(vals, dtype_of(arr)), flattened(arr))
    return weak_as(reshape(result, shape_of(arr)), arr)


def put(a, ind, v, mode=None, *, inplace=True):
    """A copy with elements of the flattened array replaced by values.

    Args:
      a: the array.
      ind: positions in the flattened array, of any shape; negative ones count from the end.
      v: the values, repeated or cut off to the number of positions, and converted to the dtype of
        `a`.
      mode: what to do about positions out of bounds: None takes the nearest element, "clip" does
        so without counting from the end, "wrap" takes the remainder.
      inplace: must be False.

    Raises NotImplementedError for mode "raise", and unless `inplace=False`; AttributeValueError (a
    ValueError) for another mode; DTypeError for positions that are no integers.

    Examples:
      >>> wnp.put(wnp.array([1, 2, 3]), wnp.array([0, 2]), wnp.array([10, 30]), inplace=False)
      Array([10,  2, 30], dtype=int32)
    """
    _reject_inplace("put", inplace)
    if mode == "raise":
        raise NotImplementedError("[put] programs raise no errors: mode 'raise' is not supported")
    if mode not in (None, "clip", "wrap"):
        raise AttributeValueError(f"[put] expected mode None, 'clip' or 'wrap'; got {mode!r}")
    if not is_integer(dtype_of(ind)):
        raise DTypeError(f"[put] expected integer positions; got {dtype_of(ind)}")
    if any(0 in shape_of(x) for x in (a, ind, v)):
        return _core.apart(a)
    return _put(a, ind, v, mode=mode)


@composite(static_argnames=("mode",))
def _put(a, ind, v, *, mode):
    size, ind = math.prod(shape_of(a)), flattened(ind)
    ind = indexing.wrapped(ind, size if mode is None else 0, indexing.index_dtype([ind]))
    ind = remainder(ind, size) if mode == "wrap" else u.minimum(u.maximum(ind, 0), size - 1)
    v = _repeated(_core.astype(v, dtype_of(a)), shape_of(ind)[0])
    return reshape(indexing.update("set", flattened(a), ind, v), shape_of(a))


def _repeated(v, count):
    """The elements of an array, repeated or cut off to a count."""
    v = flattened(v)
    n = shape_of(v)[0]
    return v if n == count else indexing.getitem(v, np.arange(count, dtype=np.int32) % n)


def put_along_axis(arr, indices, values, axis, inplace=True, *, mode=None):
    """A copy with elements of each line along an axis replaced: what `take_along_axis` would take.

    Args:
      arr: the array.
      indices: array of integers with as many axes; sizes other than along `axis` agree, or are 1.
      values: the values, which broadcast to `indices` and are converted to the dtype of `arr`.
      axis: the axis; None means the flattened array.
      inplace: must be False.
      mode: what to do about indices out of bounds, as in `x.at[...].set`.

    Raises DTypeError for indices that are no integers, ShapeError for another number of axes.

    Examples:
      >>> x = wnp.array([[1, 5], [9, 4]])
      >>> largest = wnp.argmax(x, axis=1, keepdims=True)
      >>> wnp.put_along_axis(x, largest, 0, axis=1, inplace=False)
      Array([[1, 0],
             [0, 4]], dtype=int32)
    """
    _reject_inplace("put_along_axis", inplace)
    if not is_integer(dtype_of(indices)):
        raise DTypeError(f"[put_along_axis] expected integer indices; got {dtype_of(indices)}")
    mode = GatherScatterMode.from_any(mode).value
    if axis is None:
        flat = put_along_axis(ravel(arr), indices, values, 0, False, mode=mode)
        return reshape(flat, shape_of(arr))
    if ndim_of(arr) != ndim_of(indices):
        raise ShapeError(
            f"[put_along_axis] expected indices with as many axes as the array; got shapes "
            f"{shape_of(indices)} and {shape_of(arr)}"
        )
    axis = normalize_axis(axis, ndim_of(arr), "put_along_axis")
    return _put_along_axis(arr, indices, values, axis=axis, mode=mode)


@composite(static_argnames=("axis", "mode"))
def _put_along_axis(arr, indices, values, *, axis, mode):
    ndim = ndim_of(arr)

    def own(i, n):
        return expand_dims(iota("int32", n), [j for j in range(ndim) if j != i])

    at = tuple(indices if i == axis else own(i, n) for i, n in enumerate(shape_of(arr)))
    return indexing.update("set", arr, at, _core.astype(values, dtype_of(arr)), mode)


def fill_diagonal(a, val, wrap=False, *, inplace=True):
    """A copy with the main diagonal replaced.

    Args:
      a: matrix, or array with more axes that all have one size.
      val: a number, or an array whose elements are repeated or cut off to the diagonal.
      wrap: not supported, must be False.
      inplace: must be False.

    Raises NotImplementedError for `wrap`, and unless `inplace=False`; ShapeError for axes of
    different sizes; AttributeValueError (a ValueError) without values.

    Examples:
      >>> wnp.fill_diagonal(wnp.zeros((2, 3)), 7, inplace=False)
      Array([[7., 0., 0.],
             [0., 7., 0.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError(
            "[fill_diagonal] arrays are immutable: pass inplace=False for an updated copy"
        )
    if wrap:
        raise NotImplementedError("[fill_diagonal] wrap is not supported and must be False")
    shape = shape_of(a)
    if len(shape) < 2:
        raise ShapeError(f"[fill_diagonal] expected at least two axes; got shape {shape}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError(f"[fill_diagonal] expected axes of one size; got shape {shape}")
    if 0 in shape_of(val):
        raise AttributeValueError("[fill_diagonal] expected at least one value; got none")
    return _fill_diagonal(a, val)


@composite
def _fill_diagonal(a, val):
    n = min(shape_of(a))
    if n == 0:
        return a
    at = (iota("int32", n),) * ndim_of(a)
    values = _repeated(_core.astype(val, dtype_of(a)), n)
    return indexing.update("set", a, at, values, unique=True, ordered=True)


# ---- other sizes


def insert(arr, obj, values, axis=None):
    """A copy with values inserted along an axis.

    Args:
      arr: the array.
      obj: in front of which positions: an integer, a one-dimensional array of integers, or a slice.
        Negative ones count from the end; those out of bounds stand for the ends.
      values: what to insert: one slice for each position, or several for a single one; they are
        converted to the dtype of `arr`.
      axis: the axis; None inserts into the flattened array.

    Raises AttributeValueError (a ValueError) for positions that are no integers or have more than
    one axis, ShapeError for values with more axes than `arr`.

    Examples:
      >>> wnp.insert(wnp.array([1, 2, 3]), 1, 10)
      Array([ 1, 10,  2,  3], dtype=int32)
    """
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = normalize_axis(axis, ndim_of(arr), "insert")
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(shape_of(arr)[axis]), dtype=np.int32)
    if not is_integer(dtype_of(obj)):
        raise AttributeValueError(f"[insert] expected integer positions; got {dtype_of(obj)}")
    if ndim_of(obj) > 1:
        raise AttributeValueError(
            f"[insert] expected positions with at most one axis; got shape {shape_of(obj)}"
        )
    if ndim_of(values) > ndim_of(arr):
        raise ShapeError(
            f"[insert] expected values with at most {ndim_of(arr)} axes; got {shape_of(values)}"
        )
    if 0 in shape_of(obj):
        return _core.apart(arr)
    return _insert(arr, obj, values, axis=axis)


@composite(static_argnames=("axis",))
def _insert(arr, obj, values, *, axis):
    shape = shape_of(arr)
    size = shape[axis]
    values = _core.astype(values, dtype_of(arr))
    missing = len(shape) - ndim_of(values)
    values = expand_dims(values, range(missing))
    if ndim_of(obj) == 0:  # its values need no axis of their own
        values = moveaxis(values, 0, axis)
    at = flattened(obj)
    at = indexing.wrapped(at, size, indexing.index_dtype([at]))
    at = u.minimum(u.maximum(at, 0), size)
    count = shape_of(at)[0]
    if count == 1:
        count = shape_of(values)[axis]
        at = u.add(_core.broadcast_to(at, (count,)), iota(dtype_of(at), count))
        order = None
    else:
        at, order = sort_key_val(at, iota("int32", count))
        at = u.add(at, iota(dtype_of(at), count))
    values = _core.broadcast_to(values, (*shape[:axis], count, *shape[axis + 1 :]))
    leading = (slice(None),) * axis
    if order is not None:
        values = indexing.getitem(values, (*leading, order))
    total = size + count
    added = indexing.update("set", full((total,), False, bool), at, True, unique=True)
    if not size:
        return values
    source = u.subtract(cumsum(_core.astype(u.logical_not(added), "int32")), 1)
    result = indexing.getitem(arr, (*leading, u.maximum(source, 0)))
    return indexing.update("set", result, (*leading, at), values, unique=True)


def delete(arr, obj, axis=None, *, assume_unique_indices=False):
    """A copy without some slices along an axis.

    Args:
      arr: the array.
      obj: which to leave out: an integer, a slice, an array of integers, or a mask.
      axis: the axis; None leaves out elements of the flattened array.
      assume_unique_indices: a promise that no integer occurs twice, with which they may be traced.

    Raises:
      ConcretizationTypeError: for traced integers without the promise, and for a traced mask.

    Examples:
      >>> wnp.delete(wnp.array([10, 20, 30]), 1)
      Array([10, 30], dtype=int32)
    """
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = normalize_axis(axis, ndim_of(arr), "delete")
    size = shape_of(arr)[axis]
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(size))
    dtype = dtype_of(obj)
    if not is_integer(dtype) and not is_bool(dtype):
        raise AttributeValueError(f"[delete] expected integers or a mask; got dtype {dtype}")
    traced = isinstance(obj, _core.Tracer) and _core.concrete_value(obj) is None
    if traced and assume_unique_indices and is_integer(dtype):
        return _without(arr, obj, axis=axis)
    left_out = known(obj, "delete", "Pass assume_unique_indices=True, for integers.")
    keep = np.ones(size, bool)
    if is_bool(dtype):
        if left_out.shape != (size,):
            raise AttributeValueError(
                f"[delete] expected a mask of shape {(size,)}; got shape {left_out.shape}"
            )
        keep = ~left_out
    else:
        outside = left_out[(left_out < -size) | (left_out >= size)]
        if outside.size:
            kind = IndexOutOfBoundsError if left_out.ndim else AttributeValueError
            raise kind(
                f"[delete] index {outside.flat[0]} is out of bounds for axis {axis} of size {size}"
            )
        keep[left_out] = False
    return indexing.getitem(arr, (*(slice(None),) * axis, keep))


@composite(static_argnames=("axis",))
def _without(arr, obj, *, axis):
    size, at = shape_of(arr)[axis], flattened(obj)
    count = shape_of(at)[0]
    at = lax_sort(indexing.wrapped(at, size, indexing.index_dtype([at])))
    # An element is moved by as many as are left out before it.
    kept = iota(dtype_of(at), max(size - count, 0))
    moved = insertion_points(u.subtract(at, iota(dtype_of(at), count)), kept, True)
    return indexing.getitem(arr, (*(slice(None),) * axis, u.add(kept, moved)))


def trim_zeros(filt, trim="fb", axis=None):
    """An array without the zeros at its ends.

    Args:
      filt: the array.
      trim: "f" to trim in front, "b" at the back, "fb" at both.
      axis: the axis along which to trim slices of zeros, several, or None for all.

    Raises:
      ConcretizationTypeError: for a traced array.

    Examples:
      >>> wnp.trim_zeros(wnp.array([0, 1, 0, 2, 0, 0]))
      Array([1, 0, 2], dtype=int32)
    """
    axes = normalize_axes(axis, ndim_of(filt), "trim_zeros")
    present = known(filt, "trim_zeros", "Trim it before.") != 0
    low, high = [0] * present.ndim, list(present.shape)
    for each in axes:
        others = tuple(i for i in range(present.ndim) if i != each)
        (found,) = present.any(axis=others).nonzero()
        if "f" in trim.lower():
            low[each] = found[0] if found.size else high[each]
        if "b" in trim.lower():
            high[each] = found[-1] + 1 if found.size else low[each]
    return lax_slice(filt, [int(n) for n in low], [int(n) for n in high])
