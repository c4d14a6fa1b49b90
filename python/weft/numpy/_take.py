"""Functions that take elements by their indices along an axis."""

from weft import _core
from weft._arguments import ndim_of, normalize_axis, shape_of
from weft._dims import min_dim
from weft._jit import composite
from weft._surface import eager_entry
from weft.dtypes import default_int, dtype_of, is_bool, is_integer
from weft.errors import AttributeValueError, DTypeError, IndexOutOfBoundsError, ShapeError
from weft.lax._gather import GatherDimensionNumbers, GatherScatterMode, gather
from weft.numpy import _indexing as indexing
from weft.numpy._division_powers import remainder
from weft.numpy._shape import ravel


@eager_entry(2, "axis", "mode", "unique_indices", "indices_are_sorted")
def take(
    a,
    indices,
    axis=None,
    out=None,
    mode=None,
    unique_indices=False,
    indices_are_sorted=False,
    fill_value=None,
):
    """Elements along an axis; the axes of `indices` take the place of the axis.

    Args:
      a: array or number.
      indices: array of integers, or one.
      axis: the axis; None takes from the flattened array.
      mode: what to do about indices out of bounds: "fill" (the default) gives `fill_value`, "clip"
        takes the nearest element, "wrap" the remainder. Negative indices count from the end, but
        with "clip" they are out of bounds.
      unique_indices, indices_are_sorted: promises about the indices.
      fill_value: by default NaN, the lowest value of signed and the highest of unsigned integers,
        and True.

    Raises NotImplementedError for `out` and mode "raise", AttributeValueError (a ValueError) for
    another mode, DTypeError for indices that are no integers, IndexOutOfBoundsError (an IndexError)
    for an axis without elements.

    Examples:
      >>> wnp.take(wnp.array([10, 20, 30]), wnp.array([[2, 0], [0, 1]]))
      Array([[30, 10],
             [10, 20]], dtype=int32)
      >>> wnp.take(wnp.array([10.0, 20.0, 30.0]), wnp.array([1, 5]))
      Array([20., nan], dtype=float32)
    """
    if out is not None:
        raise NotImplementedError("[take] arrays are immutable: out must be None")
    if mode == "raise":
        raise NotImplementedError("[take] expected a mode other than 'raise': programs run on")
    if mode not in (None, "fill", "clip", "wrap"):
        raise AttributeValueError(f"[take] expected mode 'fill', 'clip' or 'wrap'; got {mode!r}")
    if is_bool(dtype_of(indices)):
        indices = _core.astype(indices, default_int())
    if not is_integer(dtype_of(indices)):
        raise DTypeError(f"[take] expected integer indices; got {dtype_of(indices)}")
    if axis is None:
        a, axis = ravel(a), 0
    axis = normalize_axis(axis, ndim_of(a), "take")
    size = shape_of(a)[axis]
    if not size and 0 not in shape_of(indices):
        raise IndexOutOfBoundsError(
            f"[take] expected an axis with elements; got axis {axis} of an array of shape "
            f"{shape_of(a)}"
        )
    wrap = mode != "clip"
    if mode == "wrap" and size:
        if dtype_of(indices).itemsize < 4:  # it may not hold the size
            indices = _core.astype(indices, indexing.index_dtype([indices]))
        indices, mode = remainder(indices, size), "promise_in_bounds"
    index = (*(slice(None),) * axis, indices)
    flags = {"unique": unique_indices, "ordered": indices_are_sorted, "wrap": wrap}
    return indexing.getitem(a, index, mode or "fill", fill_value, **flags)


def take_along_axis(
    arr, indices, axis=-1, mode=None, fill_value=None, *, wrap_negative_indices=None
):
    """For each line along an axis the elements that the matching line of `indices` says.

    Args:
      arr: array.
      indices: array of integers with as many axes; sizes other than along `axis` agree, or are 1.
      axis: the axis; None takes from the flattened array.
      mode: what to do about indices out of bounds, as in `x.at[...].get`; "fill" by default.
        "one_hot" is "fill" with zeros, whatever `fill_value` is.
      fill_value: for mode "fill"; see `take`.
      wrap_negative_indices: whether negative indices count from the end, as they do by default;
        else they are out of bounds.

    Raises DTypeError for indices that are no integers, ShapeError for indices whose other axes do
    not fit.

    Examples:
      >>> x = wnp.array([[3, 1, 2], [6, 4, 5]])
      >>> wnp.take_along_axis(x, wnp.argsort(x, axis=1), axis=1)
      Array([[1, 2, 3],
             [4, 5, 6]], dtype=int32)
    """
    if not is_integer(dtype_of(indices)):
        raise DTypeError(f"[take_along_axis] expected integer indices; got {dtype_of(indices)}")
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = normalize_axis(axis, ndim_of(arr), "take_along_axis")
    shape, wanted = shape_of(arr), shape_of(indices)
    fits = len(shape) == len(wanted) and all(
        n == m or 1 in (n, m) or i == axis
        for i, (n, m) in enumerate(zip(shape, wanted, strict=False))
    )
    if not fits:
        raise ShapeError(
            f"[take_along_axis] expected indices of the shape {shape} of the array, but for axis "
            f"{axis}; got {wanted}"
        )
    if mode == "one_hot":
        mode, fill_value = "fill", 0
    mode = GatherScatterMode.from_any(mode).value
    fill_value = indexing.known_fill(fill_value)
    wrap = wrap_negative_indices is None or bool(wrap_negative_indices)
    return _take_along_axis(arr, indices, axis=axis, mode=mode, fill_value=fill_value, wrap=wrap)


@composite(static_argnames=("axis", "mode", "fill_value", "wrap"))
def _take_along_axis(arr, indices, *, axis, mode, fill_value, wrap):
    shape, wanted = shape_of(arr), shape_of(indices)
    taken = tuple(
        m if i == axis or n == 1 else n for i, (n, m) in enumerate(zip(shape, wanted, strict=True))
    )
    if 0 in shape and 0 in taken:  # nothing is read, of slices that would be empty
        return indexing.like(_core.broadcast_to(_core.astype(0, dtype_of(arr)), taken), arr)
    at = indexing.wrapped(indices, shape[axis] if wrap else 0, indexing.index_dtype([indices]))
    # Along an axis of size 1 of the indices all is taken; along one of the array, always the
    # first element; along other axes array and indices go in step.
    offset = tuple(i for i, n in enumerate(wanted) if i != axis and n == 1 and shape[i] != 1)
    repeated = tuple(i for i, n in enumerate(shape) if i != axis and n == 1)
    paired = tuple(i for i in range(len(shape)) if i not in (axis, *offset, *repeated))
    vectors = tuple(i for i in range(len(shape)) if i not in offset)
    at = _core.bind("reshape", at, new_sizes=(*(wanted[i] for i in vectors), 1))
    sizes = tuple(n if i in offset else min_dim(n, 1) for i, n in enumerate(shape))
    result = gather(
        arr,
        at,
        GatherDimensionNumbers(
            offset,
            tuple(sorted((axis, *repeated))),
            (axis,),
            paired,
            tuple(vectors.index(i) for i in paired),
        ),
        sizes,
        mode=mode,
        fill_value=fill_value,
    )
    return indexing.like(result, arr)
