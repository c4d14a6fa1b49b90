"""Slices of an array at places given by an array of index vectors, and updates there.

`weft.numpy` indexing (`x[i]`, `x.at[i].set(y)`) is the convenient form of these functions.
"""

import enum
from typing import Any, NamedTuple

import numpy as np

from weft import _core
from weft._arguments import normalize_axes, shape_of, static_ints, static_shape
from weft._jit import jit
from weft._types.avals import ShapedArray
from weft.dtypes import dtype_of, is_complex, is_inexact, is_integer
from weft.errors import AttributeValueError, ConcretizationTypeError, DTypeError, ShapeError


class GatherDimensionNumbers(NamedTuple):
    """How `gather` relates the axes of operand, indices and result.

    The last axis of the indices holds the index vectors; the other ones are axes of the result.

    Attributes:
      offset_dims: axes of the result that run within a slice, increasing.
      collapsed_slice_dims: axes of the operand that slices have size 1 along and the result lacks.
      start_index_map: the axis of the operand that each component of an index vector counts along.
      operand_batching_dims, start_indices_batching_dims: axes of the operand and of the indices
        that go in step. The result has them where the indices do.
    """

    offset_dims: tuple
    collapsed_slice_dims: tuple
    start_index_map: tuple
    operand_batching_dims: tuple = ()
    start_indices_batching_dims: tuple = ()


class ScatterDimensionNumbers(NamedTuple):
    """How `scatter` relates the axes of operand, indices and updates.

    The last axis of the indices holds the index vectors; the other ones are axes of the updates.

    Attributes:
      update_window_dims: axes of the updates that run within a window, increasing.
      inserted_window_dims: axes of the operand that windows have size 1 along and updates lack.
      scatter_dims_to_operand_dims: the axis of the operand that each component of an index vector
        counts along.
      operand_batching_dims, scatter_indices_batching_dims: axes of the operand and of the indices
        that go in step.
    """

    update_window_dims: tuple
    inserted_window_dims: tuple
    scatter_dims_to_operand_dims: tuple
    operand_batching_dims: tuple = ()
    scatter_indices_batching_dims: tuple = ()


class GatherScatterMode(enum.Enum):
    """What happens to slices and windows that do not lie within the array.

    CLIP moves them to where they do. FILL_OR_DROP reads a fill value, and drops updates.
    PROMISE_IN_BOUNDS asserts that there are none; what happens otherwise is undefined.
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"

    @staticmethod
    def from_any(mode):
        """The mode for a member, a name ("clip", "fill", "drop", "promise_in_bounds") or None."""
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode is None or mode == "drop":
            return GatherScatterMode.FILL_OR_DROP
        try:
            return GatherScatterMode(mode)
        except ValueError:
            raise AttributeValueError(
                f"expected mode 'clip', 'fill', 'drop' or 'promise_in_bounds'; got {mode!r}"
            ) from None


def gather(
    operand,
    start_indices,
    dimension_numbers,
    slice_sizes,
    *,
    unique_indices=False,
    indices_are_sorted=False,
    mode=None,
    fill_value=None,
):
    """Slices of an array, each starting where an index vector says.

    Args:
      operand: array of any dtype.
      start_indices: integers; the last axis holds the index vectors.
      dimension_numbers: GatherDimensionNumbers.
      slice_sizes: the size of all slices along each axis of the operand.
      unique_indices: promise that slices do not overlap.
      indices_are_sorted: promise that the index vectors are in lexicographic order.
      mode: for slices that are not within the operand, as GatherScatterMode; None promises that
        there are none.
      fill_value: with mode "fill", what is read there. By default NaN, the lowest value of signed
        and the highest of unsigned integers, and True.

    Raises ShapeError for slices of size 0 along collapsed axes.

    Examples:
      >>> numbers = lax.GatherDimensionNumbers((1,), (), (0,))
      >>> lax.gather(wnp.arange(10), wnp.array([[2], [6]]), numbers, slice_sizes=(3,))
      Array([[2, 3, 4],
             [6, 7, 8]], dtype=int32)
    """
    mode = "promise_in_bounds" if mode is None else GatherScatterMode.from_any(mode).value
    if mode == "fill" and fill_value is not None:
        fill_value, exact = _as_float(fill_value, dtype_of(operand))
    else:
        fill_value, exact = None, True
    attrs = {
        **_dims(dimension_numbers, GatherDimensionNumbers, "gather"),
        "slice_sizes": static_shape(slice_sizes, "gather"),
        "mode": mode,
        "unique_indices": bool(unique_indices),
        "indices_are_sorted": bool(indices_are_sorted),
    }
    for axis in attrs["collapsed_slice_dims"]:
        if 0 <= axis < len(attrs["slice_sizes"]) and attrs["slice_sizes"][axis] == 0:
            raise ShapeError(
                f"[gather] expected slices of size 1 along axis {axis}, which they lack; got "
                f"slice_sizes={attrs['slice_sizes']}"
            )
    if exact:
        return _core.bind("gather", operand, start_indices, fill_value=fill_value, **attrs)
    # A value that no float holds: find out what is filled by a second gather.
    x = _core.bind("gather", operand, start_indices, fill_value=0, **attrs)
    everywhere = _core.broadcast_to(np.True_, shape_of(operand))
    inside = _core.bind("gather", everywhere, start_indices, fill_value=0, **attrs)
    return _core.bind("select_n", inside, _core.broadcast_to(fill_value, shape_of(x)), x)


def _as_float(value: Any, dtype):
    """The value in a dtype, as a float if one holds it; and whether one does."""
    value = np.asarray(value)
    if value.dtype.kind == "c" and not is_complex(dtype):
        raise DTypeError(f"[gather] expected a real fill_value for dtype {dtype}; got {value}")
    value = value.astype(dtype)[()]
    if is_complex(dtype):
        return (float(value.real), True) if value.imag == 0 else (value, False)
    number = float(value)
    exact = is_inexact(dtype) or int(number) == int(value)
    return (number, True) if exact else (value, False)


def _dims(numbers, kind, function):
    numbers = kind(*numbers)
    return {
        name: static_ints(axes, function, name)
        for name, axes in zip(kind._fields, numbers, strict=True)
    }


def scatter_operation(
    op,
    operand,
    indices,
    updates,
    dimension_numbers,
    *,
    indices_are_sorted=False,
    unique_indices=False,
    mode=None,
    **attrs,
):
    """Any member of the scatter family, by the name of its operation."""
    return _core.bind(
        op,
        operand,
        indices,
        updates,
        **_dims(dimension_numbers, ScatterDimensionNumbers, op),
        mode=GatherScatterMode.from_any(mode).value,
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        **attrs,
    )


def _scatter(op, summary, repeated, result):
    name = op.replace("-", "_")

    def function(
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        *,
        indices_are_sorted=False,
        unique_indices=False,
        mode=None,
    ):
        return scatter_operation(
            op,
            operand,
            scatter_indices,
            updates,
            dimension_numbers,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    Args:
      operand: array.
      scatter_indices: integers; the last axis holds the index vectors, the starts of the windows.
      updates: array of the operand's dtype; along the axes that are not within a window it has the
        shape of the indices.
      dimension_numbers: ScatterDimensionNumbers.
      indices_are_sorted: promise that the index vectors are in lexicographic order.
      unique_indices: promise that windows do not overlap.
      mode: for windows that are not within the operand, as GatherScatterMode; None drops them.

    {repeated}

    Examples:
      >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
      >>> lax.{name}(wnp.array([5, 5, 5]), wnp.array([[0], [2]]), wnp.array([2, 9]), numbers)
      {result}
    """
    return function


scatter = _scatter(
    "scatter",
    "The operand with windows of it replaced by updates.",
    "Of several updates of one element any may win.",
    "Array([2, 5, 9], dtype=int32)",
)
scatter_add = _scatter(
    "scatter-add",
    "The operand with updates added to windows of it.",
    "Several updates of one element add up, in any order.",
    "Array([ 7,  5, 14], dtype=int32)",
)
scatter_sub = _scatter(
    "scatter-sub",
    "The operand with updates subtracted from windows of it.",
    "Several updates of one element are all subtracted, in any order.",
    "Array([ 3,  5, -4], dtype=int32)",
)
scatter_mul = _scatter(
    "scatter-mul",
    "The operand with windows of it multiplied by updates.",
    "Several updates of one element multiply, in any order.",
    "Array([10,  5, 45], dtype=int32)",
)
scatter_min = _scatter(
    "scatter-min",
    "The operand with windows of it replaced by the lesser of them and the updates.",
    "Of several updates of one element the least counts.",
    "Array([2, 5, 5], dtype=int32)",
)
scatter_max = _scatter(
    "scatter-max",
    "The operand with windows of it replaced by the greater of them and the updates.",
    "Of several updates of one element the greatest counts.",
    "Array([5, 5, 9], dtype=int32)",
)


def index_take(src, idxs, axes):
    """Slices of an array at positions given axis by axis: result `n` is at `idxs[..][n]`.

    Args:
      src: array.
      idxs: for each of `axes`, integers of one shape `(n,)`. They count modulo the size of the
        axis, so that none is out of bounds.
      axes: distinct axes of `src`, at least one.

    Returns:
      Array of shape `(n, ...)` with the other axes of `src`.

    Raises AttributeValueError (a ValueError) for as many indices as there are no axes, ShapeError
    for indices that are no vectors of integers, and for an axis without elements.

    Examples:
      >>> x = wnp.array([[1, 2], [3, 4]])
      >>> lax.index_take(x, (wnp.array([0, 1]), wnp.array([1, 1])), axes=(0, 1))
      Array([2, 4], dtype=int32)
    """
    axes = normalize_axes(axes, len(shape_of(src)), "index_take")
    idxs = tuple(idxs)
    if not axes or len(idxs) != len(axes):
        raise AttributeValueError(
            f"[index_take] expected indices for each of at least one axis; got {len(idxs)} for "
            f"axes {axes}"
        )
    columns = []
    for index, axis in zip(idxs, axes, strict=True):
        shape, dtype, _ = _core.typeof(index)
        if len(shape) != 1 or not is_integer(dtype):
            raise ShapeError(
                f"[index_take] expected integers along one axis; got {dtype}{list(shape)}"
            )
        size = shape_of(src)[axis]
        if size == 0 and shape[0]:
            raise ShapeError(f"[index_take] expected an axis with elements; got {shape_of(src)}")
        if dtype.itemsize < 4:
            index = _core.astype(index, "int32")
        index = _core.bind("rem", index, max(size, 1))
        if dtype.kind == "i":
            wrapped = _core.bind("add", index, size)
            index = _core.bind("select_n", _core.bind("lt", index, 0), index, wrapped)
        index = _core.astype(index, "int32" if size < 2**31 else "int64")
        columns.append(
            _core.bind("broadcast_in_dim", index, shape=(*shape, 1), broadcast_dimensions=(0,))
        )
    sizes = [1 if axis in axes else size for axis, size in enumerate(shape_of(src))]
    offset = tuple(range(1, len(sizes) - len(axes) + 1))
    numbers = GatherDimensionNumbers(offset, tuple(sorted(axes)), axes)
    indices = _core.bind("concatenate", *columns, dimension=1)
    return gather(src, indices, numbers, sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)


def scatter_apply(
    operand,
    scatter_indices,
    func,
    dimension_numbers,
    *,
    update_shape=(),
    indices_are_sorted=False,
    unique_indices=False,
    mode=None,
):
    """The operand with a function applied to windows of it; several times where they overlap.

    Args:
      operand: array.
      scatter_indices: integers; the last axis holds the index vectors, the starts of the windows.
      func: function of a scalar to a scalar of the same dtype; it may not close over arrays.
      dimension_numbers: ScatterDimensionNumbers.
      update_shape: the shape that updates would have in `scatter`.
      indices_are_sorted: promise that the index vectors are in lexicographic order.
      unique_indices: promise that windows do not overlap.
      mode: for windows that are not within the operand, as GatherScatterMode; None drops them.

    It cannot be differentiated.

    Examples:
      >>> numbers, at = lax.ScatterDimensionNumbers((), (0,), (0,)), wnp.array([[1], [3]])
      >>> lax.scatter_apply(wnp.arange(4), at, lambda x: 10 * x, numbers, update_shape=(2,))
      Array([ 0, 10,  2, 30], dtype=int32)
    """
    dtype = dtype_of(operand)
    updates = _core.broadcast_to(dtype.type(0), static_shape(update_shape, "scatter_apply"))
    return scatter_operation(
        "scatter-apply",
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
        jaxpr=scalar_graph(func, dtype),
    )


def scalar_graph(func, dtype):
    """The graph of a function of one scalar; the result is converted to the scalar's dtype."""

    def of_scalar(x):
        y = func(x)
        if shape_of(y):
            raise ShapeError(f"[apply] expected a function to a scalar; got shape {shape_of(y)}")
        return _core.astype(y, dtype)

    traced = jit(of_scalar).trace(ShapedArray((), dtype))
    if traced.consts:
        raise ConcretizationTypeError(
            "[apply] expected a function that does not close over arrays; "
            f"got one that closes over {len(traced.consts)}"
        )
    return traced.graph
