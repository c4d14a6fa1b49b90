"""Functions that join, split and repeat arrays."""

import math
import operator

import numpy as np

from weft import _core
from weft._arguments import (
    from_whole_float,
    ndim_of,
    normalize_axes,
    normalize_axis,
    shape_of,
    static_int,
    static_ints,
)
from weft._array import Array
from weft._dims import is_symbolic_dim, max_dim, min_dim
from weft._jit import composite
from weft._types.avals import typeof
from weft.dtypes import is_bool, is_integer, requested_dtype
from weft.errors import (
    AttributeValueError,
    ConcretizationTypeError,
    DTypeError,
    OperandError,
    ShapeError,
    ShardingError,
)
from weft.lax import _creation as lax_creation, _shape as lax_shape
from weft.lax._cumulative import cumsum
from weft.lax._sharding import split_as
from weft.lax._slice import dynamic_slice_in_dim, sliced
from weft.numpy import _indexing as indexing
from weft.numpy._division_powers import remainder
from weft.numpy._shape import atleast_1d, atleast_2d, atleast_3d, ravel, reshape


def _at_least_one(arrays, function, axis=0):
    """The arrays to join, as a tuple; tells those who gave them one by one to make a sequence."""
    if isinstance(axis, Array) and ndim_of(axis):
        raise OperandError(
            f"[{function}] expected one sequence of arrays, and an axis; got an array as the axis\n"
            f"  Write {function}([a, b])."
        )
    try:
        arrays = tuple(arrays)
    except TypeError:
        # Where an array without axes came, the sequence is of the right type but has no elements.
        error = AttributeValueError if isinstance(arrays, Array) else OperandError
        raise error(
            f"[{function}] expected a sequence of arrays; got {type(arrays).__name__}: "
            f"{arrays!r:.60}\n  Write {function}([a, b])."
        ) from None
    if not arrays:
        raise AttributeValueError(f"[{function}] expected at least one array; got none")
    return arrays


def _join(function, arrays, prepare, axis, dtype):
    dtype = None if dtype is None else requested_dtype(dtype, function)
    return _joined(arrays, prepare=prepare, axis=axis, dtype=dtype)


@composite(static_argnames=("prepare", "axis", "dtype"))
def _joined(arrays, *, prepare, axis, dtype):
    """Concatenates arrays of a common dtype, after `prepare` has given each its axes."""
    if dtype is None:
        arrays = _core.promote_dtypes(*arrays)
    else:
        arrays = [_core.astype(x, dtype) for x in arrays]
    return lax_shape.concatenate([prepare(x, axis) for x in arrays], axis)


def concatenate(arrays, axis=0, dtype=None):
    """Joins arrays along an axis.

    Args:
      arrays: sequence of at least one array; the sizes agree except along `axis`. Dtypes are
        promoted.
      axis: the axis; None joins the flattened arrays.
      dtype: dtype of the result.

    Raises ShapeError for arrays without axes, or of shapes that differ elsewhere.

    Examples:
      >>> wnp.concatenate([wnp.array([[1, 2]]), wnp.array([[3, 4]])])
      Array([[1, 2],
             [3, 4]], dtype=int32)
      >>> wnp.concatenate([wnp.array([[1, 2]]), wnp.array([[3, 4]])], axis=1)
      Array([[1, 2, 3, 4]], dtype=int32)
    """
    arrays = _at_least_one(arrays, "concatenate", axis)
    if axis is None:
        return _join("concatenate", arrays, _raveled, 0, dtype)
    if any(not shape_of(x) for x in arrays):
        raise ShapeError("[concatenate] expected arrays with at least one axis; got a scalar")
    axis = normalize_axis(axis, ndim_of(arrays[0]), "concatenate")
    return _join("concatenate", arrays, _unchanged, axis, dtype)


def concat(arrays, /, *, axis=0):
    """Joins arrays along an axis; None joins the flattened arrays. See `concatenate`.

    Examples:
      >>> wnp.concat([wnp.array([1, 2]), wnp.array([3.5])])
      Array([1. , 2. , 3.5], dtype=float32)
    """
    return concatenate(arrays, axis)


def _raveled(x, _):
    return ravel(x)


def _unchanged(x, _):
    return x


def stack(arrays, axis=0, out=None, dtype=None):
    """Joins arrays of one shape along a new axis; dtypes are promoted.

    `dtype` is that of the result, by default what the arrays promote to. Raises NotImplementedError
    for `out`, ShapeError for shapes that differ.

    Examples:
      >>> wnp.stack([wnp.array([1, 2]), wnp.array([3, 4])], axis=1)
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError("[stack] arrays are immutable: out must be None")
    arrays = _at_least_one(arrays, "stack", axis)
    shapes = {shape_of(x) for x in arrays}
    if len(shapes) > 1:
        raise ShapeError(f"[stack] expected arrays of one shape; got {sorted(shapes)}")
    axis = normalize_axis(axis, ndim_of(arrays[0]) + 1, "stack")
    return _join("stack", arrays, _with_new_axis, axis, dtype)


def _with_new_axis(x, axis):
    return lax_shape.expand_dims(x, (axis,))


def vstack(tup, dtype=None):
    """Joins arrays along the first of at least two axes; vectors become rows.

    `dtype` is that of the result, by default what the arrays promote to.

    Examples:
      >>> wnp.vstack([wnp.array([1, 2]), wnp.array([[3, 4], [5, 6]])])
      Array([[1, 2],
             [3, 4],
             [5, 6]], dtype=int32)
    """
    return _join("vstack", _at_least_one(tup, "vstack"), _as_rows, 0, dtype)


def _as_rows(x, _):
    return atleast_2d(x)


def hstack(tup, dtype=None):
    """Joins arrays along the second axis, vectors along their only one.

    `dtype` is that of the result, by default what the arrays promote to.

    Examples:
      >>> wnp.hstack([wnp.array([1, 2]), wnp.array([3])])
      Array([1, 2, 3], dtype=int32)
    """
    arrays = _at_least_one(tup, "hstack")
    return _join("hstack", arrays, _as_vectors, 0 if ndim_of(arrays[0]) <= 1 else 1, dtype)


def _as_vectors(x, _):
    return atleast_1d(x)


def dstack(tup, dtype=None):
    """Joins arrays along the third of at least three axes; see `atleast_3d`.

    `dtype` is that of the result, by default what the arrays promote to.

    Examples:
      >>> wnp.dstack([wnp.array([1, 2]), wnp.array([3, 4])])
      Array([[[1, 3],
              [2, 4]]], dtype=int32)
    """
    return _join("dstack", _at_least_one(tup, "dstack"), _as_planes, 2, dtype)


def _as_planes(x, _):
    return atleast_3d(x)


def column_stack(tup):
    """Joins arrays along the second axis; vectors become columns.

    Examples:
      >>> wnp.column_stack([wnp.array([1, 2]), wnp.array([3, 4])])
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    return _join("column_stack", _at_least_one(tup, "column_stack"), _as_columns, 1, None)


def _as_columns(x, _):
    return reshape(x, (-1, 1)) if ndim_of(x) < 2 else x


def append(arr, values, axis=None):
    """`values` joined to the end of `arr` along an axis; None joins the flattened arrays.

    Examples:
      >>> wnp.append(wnp.array([[1, 2], [3, 4]]), 5)
      Array([1, 2, 3, 4, 5], dtype=int32)
    """
    if axis is None:
        return _join("append", (arr, values), _raveled, 0, None)
    return concatenate((arr, values), axis)


def unstack(x, /, *, axis=0):
    """The slices of an array along an axis, each without the axis, as a tuple.

    Examples:
      >>> wnp.unstack(wnp.array([[1, 2], [3, 4]]), axis=1)
      (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    axis = normalize_axis(axis, ndim_of(x), "unstack")
    return tuple(_unstacked(x, axis=axis))


@composite(static_argnames=("axis",))
def _unstacked(x, *, axis):
    return lax_shape.unstack(x, axis)


def split(ary, indices_or_sections, axis=0):
    """Cuts an array along an axis into a list of consecutive pieces.

    Args:
      ary: the array.
      indices_or_sections: the number of pieces, which must divide the size of the axis; or the
        positions at which to cut.
      axis: the axis.

    Examples:
      >>> wnp.split(wnp.arange(6), 3)
      [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32), Array([4, 5], dtype=int32)]
      >>> wnp.split(wnp.arange(6), [1, 5])
      [Array([0], dtype=int32), Array([1, 2, 3, 4], dtype=int32), Array([5], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary, indices_or_sections, axis=0):
    """As `split`, but the number of pieces need not divide the size: the first ones are longer.

    Examples:
      >>> wnp.array_split(wnp.arange(5), 2)
      [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def vsplit(ary, indices_or_sections):
    """`split` along the first axis.

    Examples:
      >>> [part.shape for part in wnp.vsplit(wnp.zeros((4, 6)), 2)]
      [(2, 6), (2, 6)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def hsplit(ary, indices_or_sections):
    """`split` along the second axis, or the only one.

    Examples:
      >>> [part.shape for part in wnp.hsplit(wnp.zeros((4, 6)), 2)]
      [(4, 3), (4, 3)]
    """
    return _split("hsplit", ary, indices_or_sections, 0 if ndim_of(ary) == 1 else 1)


def dsplit(ary, indices_or_sections):
    """`split` along the third axis.

    Examples:
      >>> [part.shape for part in wnp.dsplit(wnp.zeros((4, 6, 8)), 2)]
      [(4, 6, 4), (4, 6, 4)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)


_MOST_EMPTY = 1 << 16  # pieces beside those with elements: each is an array


def _split(function, ary, indices_or_sections, axis):
    axis = normalize_axis(axis, ndim_of(ary), function)
    size = shape_of(ary)[axis]
    try:
        sections = operator.index(from_whole_float(indices_or_sections))
    except TypeError:
        cuts = static_ints(indices_or_sections, function, "the positions")
        bounds = [0, *(_within(cut, size) for cut in cuts), size]
    else:
        if sections < 1 or (function != "array_split" and size % sections):
            raise AttributeValueError(
                f"[{function}] expected a number of pieces that divides the size {size} of axis "
                f"{axis}; got {sections}"
            )
        if sections > _MOST_EMPTY and sections > size:
            raise AttributeValueError(
                f"[{function}] expected at most {max(size, _MOST_EMPTY)} pieces of an axis of size "
                f"{size}; got {sections}"
            )
        bounds = [i * (size // sections) + min_dim(i, size % sections) for i in range(sections + 1)]
    # A cut before the one to its left gives an empty piece.
    pieces = [(low, max_dim(low, high)) for low, high in zip(bounds, bounds[1:], strict=False)]
    if all(high == low for (_, high), (low, _) in zip(pieces, pieces[1:], strict=False)):
        return lax_shape.split(ary, [high - low for low, high in pieces], axis)
    return [sliced(ary, low, high, axis=axis) for low, high in pieces]


def _within(cut, size):
    """A position as slices take it: counted from the end if negative, at most the size."""
    return min_dim(max_dim(cut + size if cut < 0 else cut, 0), size)


def tile(A, reps):
    """The array repeated `reps[i]` times along axis i.

    If one of the array and `reps` has fewer axes, it is extended with ones in front.

    Examples:
      >>> wnp.tile(wnp.array([1, 2]), (2, 2))
      Array([[1, 2, 1, 2],
             [1, 2, 1, 2]], dtype=int32)
    """
    reps = static_ints(reps, "tile", "reps")
    rank = max(len(reps), ndim_of(A))
    return _tile(A, reps=(1,) * (rank - len(reps)) + reps)


@composite(static_argnames=("reps",))
def _tile(a, *, reps):
    return lax_shape.tile(lax_shape.broadcast_to_rank(a, len(reps)), reps)


def repeat(a, repeats, axis=None, *, total_repeat_length=None, out_sharding=None):
    """Each element repeated, along an axis.

    Args:
      a: array or number.
      repeats: how often, an integer or bool; or one for each element along the axis.
      axis: the axis; None repeats the elements of the flattened array. A number has one axis.
      total_repeat_length: the size of the result along the axis, with which `repeats` may be
        traced; what is beyond it is cut off, and what is missing repeats the last element,
        if there is one.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Raises:
      ConcretizationTypeError: for traced repeats without `total_repeat_length`.

    Examples:
      >>> wnp.repeat(wnp.array([1, 2]), 3)
      Array([1, 1, 1, 2, 2, 2], dtype=int32)
      >>> wnp.repeat(wnp.array([1, 2]), wnp.array([1, 3]))
      Array([1, 2, 2, 2], dtype=int32)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding,
            "repeat",
            lambda: repeat(a, repeats, axis, total_repeat_length=total_repeat_length),
        )
    if axis is None or not ndim_of(a):
        a, axis = ravel(a), axis or 0
    axis = normalize_axis(axis, ndim_of(a), "repeat")
    size = shape_of(a)[axis]
    if total_repeat_length is not None:
        length = static_int(total_repeat_length, "repeat", "total_repeat_length")
        _check_repeats(repeats, shape_of(repeats), _core.typeof(repeats)[1], size)
        if length < 0:
            raise AttributeValueError(
                f"[repeat] expected a total_repeat_length of 0 or more; got {length}"
            )
        return _repeat_to(a, repeats, axis=axis, length=length)
    if is_symbolic_dim(repeats):
        return _repeat(a, count=repeats, axis=axis)
    try:
        counts = np.asarray(repeats)
    except ConcretizationTypeError:
        raise ConcretizationTypeError(
            "[repeat] expected repeats whose values are known; got a traced array, and the shape "
            "of the result depends on them\n  Pass total_repeat_length=n, the size of the result."
        ) from None
    _check_repeats(repeats, counts.shape, counts.dtype, size)
    counts = counts.reshape(-1) if counts.size == 1 else counts
    if (counts < 0).any():
        raise ShapeError(f"[repeat] expected non-negative repeats; got {repeats}")
    split = _core.split_of(a)
    if split is not None and axis < len(split.dims) and split.dims[axis][0]:
        raise ShardingError(
            f"[repeat] expected an array that is not split along axis {axis}, over which it "
            f"repeats; got {typeof(a)}\n  Say with out_sharding= how the result is split."
        )
    if counts.size == 1 or (counts.size and (counts == counts[0]).all()):
        return _repeat(a, count=int(counts.flat[0]), axis=axis)
    index = np.repeat(np.arange(size, dtype=np.int32), counts)
    return indexing.getitem(a, (*(slice(None),) * axis, index))


def _check_repeats(repeats, shape, dtype, size):
    if not (is_integer(dtype) or is_bool(dtype)):
        raise DTypeError(f"[repeat] expected integer repeats; got dtype {dtype}")
    if math.prod(shape) != 1 and shape not in ((), (size,)):
        raise ShapeError(f"[repeat] expected a number of repeats, or {size} of them; got {repeats}")


@composite(static_argnames=("count", "axis"))
def _repeat(a, *, count, axis):
    return _repeat_equally(a, count, axis)


@composite(static_argnames=("axis", "length"))
def _repeat_to(a, repeats, *, axis, length):
    size = shape_of(a)[axis]
    if not length or not size:  # of no elements none is repeated
        return sliced(a, 0, 0, axis=axis)
    repeats = _core.astype(repeats, "int32")
    repeats = _core.broadcast_to(ravel(repeats), (size,))
    ends = sliced(cumsum(repeats), 0, -1)
    # The element changes wherever one ends.
    changes = indexing.spread_out("add", length, 0, ends, lax_creation.full_like(ends, 1))
    return indexing.getitem(a, (*(slice(None),) * axis, cumsum(changes)))


def _repeat_equally(a, count, axis):
    shape = shape_of(a)
    wide = [*shape[: axis + 1], count, *shape[axis + 1 :]]
    kept = [i for i in range(len(wide)) if i != axis + 1]
    a = lax_shape.broadcast_in_dim(a, wide, kept)
    return lax_shape.reshape(a, [*shape[:axis], shape[axis] * count, *shape[axis + 1 :]])


def flip(m, axis=None):
    """The elements in reverse order along an axis, several, or all of them.

    Examples:
      >>> wnp.flip(wnp.array([[1, 2], [3, 4]]))
      Array([[4, 3],
             [2, 1]], dtype=int32)
      >>> wnp.flip(wnp.array([[1, 2], [3, 4]]), axis=0)
      Array([[3, 4],
             [1, 2]], dtype=int32)
    """
    return lax_shape.rev(m, normalize_axes(axis, ndim_of(m), "flip"))


def flipud(m):
    """`flip` along the first axis.

    Examples:
      >>> wnp.flipud(wnp.array([[1, 2], [3, 4]]))
      Array([[3, 4],
             [1, 2]], dtype=int32)
    """
    return flip(m, 0)


def fliplr(m):
    """`flip` along the second axis.

    Examples:
      >>> wnp.fliplr(wnp.array([[1, 2], [3, 4]]))
      Array([[2, 1],
             [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def rot90(m, k=1, axes=(0, 1)):
    """The array turned by k times 90 degrees in the plane of two axes, from the first to the
    second.

    Raises AttributeValueError (a ValueError) for other than two axes.

    Examples:
      >>> wnp.rot90(wnp.array([[1, 2], [3, 4]]))
      Array([[2, 4],
             [1, 3]], dtype=int32)
    """
    axes = normalize_axes(axes, ndim_of(m), "rot90")
    if len(axes) != 2:
        raise AttributeValueError(f"[rot90] expected two axes; got {axes}")
    return _rot90(m, turns=operator.index(k) % 4, axes=axes)


@composite(static_argnames=("turns", "axes"))
def _rot90(m, *, turns, axes):
    if turns == 2:
        return lax_shape.rev(m, axes)
    if turns == 0:
        return m
    order = list(range(ndim_of(m)))
    order[axes[0]], order[axes[1]] = axes[1], axes[0]
    if turns == 1:
        return lax_shape.transpose(lax_shape.rev(m, axes[1:]), order)
    return lax_shape.rev(lax_shape.transpose(m, order), axes[1:])


def roll(a, shift, axis=None):
    """The elements moved on by `shift` places along an axis; those that fall off come in again.

    Args:
      a: array or number.
      shift: an integer, which may be traced; or several, in a tuple or array, one for each axis.
      axis: an axis or several; None rolls the flattened array and restores the shape.

    Raises AttributeValueError (a ValueError) for as many shifts as there are no axes.

    Examples:
      >>> wnp.roll(wnp.arange(5), 2)
      Array([3, 4, 0, 1, 2], dtype=int32)
    """
    is_array = not isinstance(shift, (tuple, list)) and ndim_of(shift) == 1
    if not is_array and not isinstance(shift, (tuple, list)) and ndim_of(shift):
        raise ShapeError(
            "[roll] expected a shift, or one for each axis; got an array of shape "
            f"{shape_of(shift)}"
        )
    shifts = tuple(shift) if is_array or isinstance(shift, (tuple, list)) else (shift,)
    if axis is None:
        shape = shape_of(a)
        flat = ravel(a)
        for each in shifts:
            flat = _roll_axis(flat, each, 0)
        return lax_shape.reshape(flat, shape)
    ndim = ndim_of(a)
    axes = tuple(normalize_axis(i, ndim, "roll") for i in static_ints(axis, "roll", "axis"))
    count = max(len(shifts), len(axes))
    if any(len(each) not in (1, count) for each in (shifts, axes)):
        raise AttributeValueError(
            f"[roll] expected as many shifts as axes; got {len(shifts)} and {len(axes)}"
        )
    for i in range(count):
        a = _roll_axis(a, shifts[i % len(shifts)], axes[i % len(axes)])
    return _core.apart(a)


def _roll_axis(a, shift, axis):
    size = shape_of(a)[axis]
    if size in (0, 1):
        return a
    if isinstance(shift, (int, np.integer)) and not is_symbolic_dim(size):
        places = int(shift) % size
        return _roll_static(a, places=places, axis=axis) if places else a
    if shape_of(shift) or not is_integer(_core.typeof(shift)[1]):
        raise DTypeError("[roll] expected an integer shift, or a tuple of them")
    return _roll_dynamic(a, shift, axis=axis)


@composite(static_argnames=("places", "axis"))
def _roll_static(a, *, places, axis):
    cut = shape_of(a)[axis] - places
    parts = [sliced(a, cut, None, axis=axis), sliced(a, 0, cut, axis=axis)]
    return lax_shape.concatenate(parts, axis)


@composite(static_argnames=("axis",))
def _roll_dynamic(a, shift, *, axis):
    size = shape_of(a)[axis]
    start = remainder(_core.bind("neg", shift), size)
    doubled = lax_shape.concatenate([a, a], axis)
    return dynamic_slice_in_dim(doubled, start, size, axis, allow_negative_indices=False)


def resize(a, new_shape):
    """The elements in row-major order, repeated or cut off as needed, in a new shape.

    Examples:
      >>> wnp.resize(wnp.array([1, 2, 3]), (2, 4))
      Array([[1, 2, 3, 1],
             [2, 3, 1, 2]], dtype=int32)
    """
    shape = static_ints(new_shape, "resize", "the shape")
    wanted, present = math.prod(shape), math.prod(shape_of(a))
    if present == 0:
        return lax_shape.broadcast_in_dim(_core.astype(0, _core.typeof(a)[1]), shape, ())
    flat = tile(ravel(a), -(-wanted // present))
    return lax_shape.reshape(sliced(flat, 0, wanted), shape)
