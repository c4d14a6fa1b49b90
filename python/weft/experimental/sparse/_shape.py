"""Operations that move the elements of BCOO arrays."""

import math
import operator
from typing import Any

from weft import lax, numpy as wnp
from weft._arguments import normalize_axes, normalize_axis
from weft._jit import composite
from weft._vmap import vmap
from weft.errors import AttributeValueError, NotImplementedRuleError, OperandError, ShapeError
from weft.experimental.sparse import _entries
from weft.experimental.sparse._layout import (
    batch_shape,
    bcoo_update_layout,
    capped,
    dense_shape,
    sparse_shape,
)


def _ints(values):
    return tuple(map(operator.index, values))


def _parts(mat, per_axis):
    """A tuple with one item per axis, split into those of batch, sparse and dense axes."""
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    return per_axis[:n], per_axis[n:m], per_axis[m:]


def bcoo_transpose(mat, *, permutation):
    """The array with its axes in another order.

    Args:
      mat: BCOO.
      permutation: for each axis of the result, which one of `mat` it is. Batch axes stay batch
        axes, sparse ones sparse and dense ones dense: `bcoo_update_layout` changes that.

    Raises NotImplementedRuleError for other permutations.
    """
    permutation = _ints(permutation)
    if sorted(permutation) != list(range(mat.ndim)):
        raise AttributeValueError(
            f"[bcoo_transpose] expected a permutation of {mat.ndim} axes; got {permutation}"
        )
    kinds = zip(_parts(mat, permutation), _parts(mat, range(mat.ndim)), strict=True)
    if any(sorted(found) != list(kept) for found, kept in kinds):
        raise NotImplementedRuleError(
            "[bcoo_transpose] expected a permutation that keeps batch, sparse and dense axes apart "
            f"(n_batch={mat.n_batch}, n_dense={mat.n_dense}); got {permutation}. "
            "bcoo_update_layout changes which axes are which"
        )
    return _transposed(mat, permutation=permutation)


@composite(static_argnames="permutation")
def _transposed(mat, *, permutation):
    batch, sparse, dense = _parts(mat, permutation)
    at = mat.n_batch
    data = mat.data.transpose(*batch, at, *(i - mat.n_sparse + 1 for i in dense))
    indices = mat.indices.transpose(*batch, at, at + 1)
    indices = wnp.stack([indices[..., i - at] for i in sparse], -1) if sparse else indices
    shape = tuple(mat.shape[i] for i in permutation)
    is_sorted = mat.indices_sorted and list(sparse) == sorted(sparse)
    return mat._like(data, indices, shape, is_sorted, mat.unique_indices)


def bcoo_slice(mat, *, start_indices, limit_indices, strides=None):
    """The elements from `start_indices` to `limit_indices`, as lax.slice has them.

    Args:
      mat: BCOO.
      start_indices, limit_indices: ints, one per axis.
      strides: positive ints, one per axis; None for ones.

    Raises AttributeValueError for arguments that do not fit.
    """
    start, limit = _ints(start_indices), _ints(limit_indices)
    strides = (1,) * mat.ndim if strides is None else _ints(strides)
    if not len(start) == len(limit) == len(strides) == mat.ndim:
        raise AttributeValueError(
            f"[bcoo_slice] expected {mat.ndim} start_indices, limit_indices and strides; got "
            f"{start}, {limit}, {strides}"
        )
    for begin, end, step, size in zip(start, limit, strides, mat.shape, strict=True):
        if not 0 <= begin <= end <= size or step < 1:
            raise AttributeValueError(
                f"[bcoo_slice] expected 0 <= start <= limit <= {size} and stride > 0; got {begin}, "
                f"{end}, {step}"
            )
    return capped(_sliced(mat, start=start, limit=limit, strides=strides))


@composite(static_argnames=("start", "limit", "strides"))
def _sliced(mat, *, start, limit, strides):
    shape = tuple(-(-(b - a) // s) for a, b, s in zip(start, limit, strides, strict=True))
    slices = [slice(*each) for each in zip(start, limit, strides, strict=True)]
    batch, _, dense = _parts(mat, slices)
    data = mat.data[(*batch, slice(None), *dense)]
    indices = mat.indices[tuple(batch)]
    first, last, step = (_parts(mat, x)[1] for x in (start, limit, strides))
    new_sizes = _parts(mat, shape)[1]
    first, last, step = (_entries.sizes_like(x, indices) for x in (first, last, step))
    offset = indices - first
    inside = ((offset >= 0) & (indices < last) & (offset % step == 0)).all(-1)
    return _kept(mat, data, offset // step, inside, new_sizes, shape)


def _kept(mat, data, indices, inside, sizes, shape, unique=None):
    """Those of the entries that are inside, all others as padding."""
    if not sizes:
        data = _entries.masked(data, inside)
    unique = mat.unique_indices if unique is None else unique
    return mat._like(data, _entries.moved(indices, inside, sizes), shape, False, unique)


def bcoo_dynamic_slice(mat, start_indices, slice_sizes):
    """`slice_sizes` elements from computed places on, as lax.dynamic_slice has them.

    Args:
      mat: BCOO.
      start_indices: integer scalars, one per axis; clamped so that the slice is in the array.
      slice_sizes: ints, one per axis.

    Raises AttributeValueError for arguments that do not fit.
    """
    sizes = _ints(slice_sizes)
    starts = list(start_indices)
    if len(starts) != mat.ndim or len(sizes) != mat.ndim:
        raise AttributeValueError(
            f"[bcoo_dynamic_slice] expected {mat.ndim} start_indices and slice_sizes; got "
            f"{len(starts)} and {len(sizes)}"
        )
    if any(not 0 <= size <= full for size, full in zip(sizes, mat.shape, strict=True)):
        raise AttributeValueError(
            f"[bcoo_dynamic_slice] expected slice_sizes within {mat.shape}; got {sizes}"
        )
    return capped(_dynamically_sliced(mat, starts, sizes=sizes))


@composite(static_argnames="sizes")
def _dynamically_sliced(mat, starts, *, sizes):
    dtype = mat.indices.dtype
    starts = [
        wnp.clip(wnp.asarray(x), 0, full - size).astype(dtype)
        for x, size, full in zip(starts, sizes, mat.shape, strict=True)
    ]
    zero = wnp.zeros((), dtype)
    batch, sparse, dense = _parts(mat, starts)
    batch_sizes, new_sizes, dense_sizes = _parts(mat, sizes)
    data = lax.dynamic_slice(
        mat.data, (*batch, zero, *dense), (*batch_sizes, mat.nse, *dense_sizes)
    )
    indices = lax.dynamic_slice(
        mat.indices, (*batch, zero, zero), (*batch_sizes, mat.nse, mat.n_sparse)
    )
    inside = _entries.are_inside(indices, sparse_shape(mat))
    if sparse:
        indices = indices - wnp.stack(sparse)
    inside &= _entries.are_inside(indices, new_sizes)
    return _kept(mat, data, indices, inside, new_sizes, sizes)


def bcoo_squeeze(arr, *, dimensions):
    """The array without some axes of size 1.

    Args:
      arr: BCOO.
      dimensions: ints.

    Raises ShapeError for arguments that do not fit.
    """
    dimensions = normalize_axes(dimensions, arr.ndim, "bcoo_squeeze")
    if any(arr.shape[i] != 1 for i in dimensions):
        raise ShapeError(
            f"[bcoo_squeeze] expected axes of size 1; got axes {tuple(dimensions)} of {arr.shape}"
        )
    return _squeezed(arr, dimensions=tuple(dimensions))


@composite(static_argnames="dimensions")
def _squeezed(mat, *, dimensions):
    batch, sparse, dense = _parts(mat, [i not in dimensions for i in range(mat.ndim)])
    dropped_batch = [i for i, kept in enumerate(batch) if not kept]
    dropped_dense = [mat.n_batch + 1 + i for i, kept in enumerate(dense) if not kept]
    data = lax.squeeze(mat.data, (*dropped_batch, *dropped_dense))
    indices = lax.squeeze(mat.indices, dropped_batch)
    inside = _entries.are_inside(indices, sparse_shape(mat))
    columns = [i for i, kept in enumerate(sparse) if kept]
    shape = tuple(n for i, n in enumerate(mat.shape) if i not in dimensions)
    sizes = tuple(sparse_shape(mat)[i] for i in columns)
    indices = wnp.take(indices, wnp.asarray(columns, int), -1)
    return _kept(mat, data, indices, inside, sizes, shape)


def bcoo_rev(operand, dimensions):
    """The array with the elements along some axes in reverse.

    Args:
      operand: BCOO.
      dimensions: ints.
    """
    dimensions = normalize_axes(dimensions, operand.ndim, "bcoo_rev")
    return _reversed(operand, dimensions=tuple(dimensions))


@composite(static_argnames="dimensions")
def _reversed(mat, *, dimensions):
    batch, sparse, dense = _parts(mat, [i in dimensions for i in range(mat.ndim)])
    of_batch = [i for i, turned in enumerate(batch) if turned]
    of_dense = [mat.n_batch + 1 + i for i, turned in enumerate(dense) if turned]
    data = lax.rev(mat.data, (*of_batch, *of_dense))
    indices = lax.rev(mat.indices, of_batch)
    sizes = sparse_shape(mat)
    inside = _entries.are_inside(indices, sizes)
    last = _entries.sizes_like([n - 1 for n in sizes], indices)
    turned = wnp.where(wnp.asarray(sparse, bool), last - indices, indices)
    return _kept(mat, data, turned, inside, sizes, mat.shape)


def bcoo_reshape(mat, *, new_sizes, dimensions=None, sharding=None):
    """The array with the same elements, in row-major order, in another shape.

    Args:
      mat: BCOO.
      new_sizes: ints.
      dimensions: the order of the axes in which elements are read, a permutation; None for as they
        stand.
      sharding: None.

    Raises ValueError where axes of different kinds (batch, sparse, dense) would have to be joined.
    """
    if sharding is not None:
        raise NotImplementedRuleError("[bcoo_reshape] expected sharding=None")
    new_sizes = _ints(new_sizes)
    if math.prod(new_sizes) != mat.size:
        raise ShapeError(f"[bcoo_reshape] expected sizes for {mat.shape}; got {new_sizes}")
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    n_batch = _joined(batch_shape(mat), new_sizes)
    n_dense = _joined(dense_shape(mat)[::-1], new_sizes[::-1])
    if n_batch is None or n_dense is None or n_batch + n_dense > len(new_sizes):
        raise ShapeError(
            "[bcoo_reshape] expected sizes that keep batch, sparse and dense axes apart "
            f"(n_batch={mat.n_batch}, n_dense={mat.n_dense}); got {mat.shape} and {new_sizes}"
        )
    return _reshaped(mat, shape=new_sizes, counts=(n_batch, n_dense))


def _joined(sizes, new_sizes):
    """How many of the first new sizes make up as many elements as `sizes`; None if no number."""
    if not sizes:
        return 0
    wanted, product = math.prod(sizes), 1
    for count, size in enumerate(new_sizes, 1):
        product *= size
        if product == wanted:
            return count
    return 0 if wanted == 1 else None


@composite(static_argnames=("shape", "counts"))
def _reshaped(mat, *, shape, counts):
    n_batch, n_dense = counts
    batch, sizes = shape[:n_batch], shape[n_batch : len(shape) - n_dense]
    data = mat.data.reshape(*batch, mat.nse, *shape[len(shape) - n_dense :])
    indices = mat.indices.reshape(*batch, mat.nse, mat.n_sparse)
    inside = _entries.are_inside(indices, sparse_shape(mat))
    columns: list[Any] = [None] * len(sizes)
    for old, new in _groups(sparse_shape(mat), sizes):
        number = wnp.zeros(indices.shape[:-1], indices.dtype)
        _entries.check_countable([sparse_shape(mat)[i] for i in old], indices)
        for i in old:
            number = number * sparse_shape(mat)[i] + indices[..., i]
        for i in reversed(new):
            columns[i] = number % max(sizes[i], 1)
            number = number // max(sizes[i], 1)
    empty = wnp.zeros((*indices.shape[:-1], 0), indices.dtype)
    indices = wnp.stack(columns, -1) if columns else empty
    return _kept(mat, data, indices, inside, sizes, shape)


def _groups(old, new):
    """Neighbouring axes of the two shapes that have as many elements: pairs of lists."""
    i = j = 0
    while i < len(old) or j < len(new):
        first, second, products = [], [], [1, 1]
        while (i < len(old) or j < len(new)) and (
            not (first or second) or products[0] != products[1]
        ):
            if i < len(old) and (products[0] <= products[1] or j == len(new)):
                products[0] *= old[i]
                first.append(i)
                i += 1
            else:
                products[1] *= new[j]
                second.append(j)
                j += 1
        yield first, second


def bcoo_concatenate(operands, *, dimension):
    """Arrays one after the other along an axis.

    Args:
      operands: sequence of BCOO arrays whose batch and dense axes are the same.
      dimension: int, the axis. Along a dense one, zeros are stored beside each value.

    Raises OperandError or ShapeError for arguments that do not fit.
    """
    operands = list(operands)
    if not operands:
        raise OperandError("[bcoo_concatenate] expected arrays; got none")
    first = operands[0]
    dimension = normalize_axis(dimension, first.ndim, "bcoo_concatenate")
    for mat in operands:
        if (mat.ndim, mat.n_batch, mat.n_dense) != (first.ndim, first.n_batch, first.n_dense):
            raise ShapeError(
                "[bcoo_concatenate] expected arrays with the same numbers of axes, batch axes and "
                f"dense axes; got {first!r} and {mat!r}"
            )
        pairs = enumerate(zip(mat.shape, first.shape, strict=True))
        if any(a != b for i, (a, b) in pairs if i != dimension):
            raise ShapeError(
                f"[bcoo_concatenate] expected arrays that differ along axis {dimension} only; got "
                f"shapes {first.shape} and {mat.shape}"
            )
    return _concatenated(operands, dimension=dimension)


@composite(static_argnames="dimension")
def _concatenated(operands, *, dimension):
    first = operands[0]
    at = first.n_batch
    shape = list(first.shape)
    shape[dimension] = sum(mat.shape[dimension] for mat in operands)
    if dimension < at:
        nse = max(mat.nse for mat in operands)
        padded = [_padded(mat, nse) for mat in operands]
        data = wnp.concatenate([x for x, _ in padded], dimension)
        indices = wnp.concatenate([x for _, x in padded], dimension)
        return first._like(data, indices, shape, False, all(m.unique_indices for m in operands))
    sizes = tuple(shape[at : at + first.n_sparse])
    parts, begin, axis = [], 0, dimension - at
    for mat in operands:
        data, indices = mat.data, mat.indices
        inside = _entries.are_inside(indices, sparse_shape(mat))
        if axis < first.n_sparse:
            indices = indices + _entries.sizes_like(
                [begin if i == axis else 0 for i in range(first.n_sparse)], indices
            )
        else:
            widths = [(0, 0)] * data.ndim
            after = shape[dimension] - begin - mat.shape[dimension]
            widths[dimension - first.n_sparse + 1] = (begin, after)
            data = wnp.pad(data, widths)
        parts.append((data, _entries.moved(indices, inside, sizes)))
        begin += mat.shape[dimension]
    data = wnp.concatenate([x for x, _ in parts], at)
    indices = wnp.concatenate([x for _, x in parts], at)
    unique = axis < first.n_sparse and all(mat.unique_indices for mat in operands)
    return first._like(data, indices, shape, False, unique)


def _padded(mat, nse):
    """Data and indices with padding up to `nse` entries."""
    more, at = nse - mat.nse, mat.n_batch
    data = wnp.pad(mat.data, [(0, more if i == at else 0) for i in range(mat.data.ndim)])
    padding = _entries.sizes_like(sparse_shape(mat), mat.indices)
    padding = wnp.broadcast_to(padding, (*batch_shape(mat), more, mat.n_sparse))
    return data, wnp.concatenate([mat.indices, padding], at)


def bcoo_broadcast_in_dim(mat, *, shape, broadcast_dimensions, sharding=None):
    """The array in a shape with more or longer axes, along which elements are repeated.

    Args:
      mat: BCOO.
      shape: ints.
      broadcast_dimensions: for each axis of `mat` the axis of `shape` that it becomes, in
        increasing order. Its size is that one or 1.
      sharding: None.

    New axes before all sparse ones are batch axes; new ones after the sparse ones are dense if
    `mat` has dense axes. Others are sparse: entries are stored once for each of their elements.

    Raises NotImplementedRuleError or ShapeError for arguments that do not fit.
    """
    if sharding is not None:
        raise NotImplementedRuleError("[bcoo_broadcast_in_dim] expected sharding=None")
    shape, dims = _ints(shape), _ints(broadcast_dimensions)
    if (
        len(dims) != mat.ndim
        or list(dims) != sorted(set(dims))
        or any(not 0 <= i < len(shape) for i in dims)
        or any(n not in (1, shape[i]) for n, i in zip(mat.shape, dims, strict=True))
    ):
        raise ShapeError(
            f"[bcoo_broadcast_in_dim] expected broadcast_dimensions in increasing order that bring "
            f"{mat.shape} to {shape}; got {dims}"
        )
    return _broadcast(mat, shape=shape, dims=dims)


@composite(static_argnames=("shape", "dims"))
def _broadcast(mat, *, shape, dims):
    batch, sparse, dense = _parts(mat, dims)
    ndim = len(shape)
    n_batch = sparse[0] if sparse else (batch[-1] + 1 if batch else 0)
    first_dense = ndim if not dense else sparse[-1] + 1 if sparse else max(n_batch, 0)
    sizes = shape[n_batch:first_dense]
    at = (*batch, n_batch)
    data = lax.broadcast_in_dim(
        mat.data,
        (*shape[:n_batch], mat.nse, *shape[first_dense:]),
        (*at, *(i - first_dense + n_batch + 1 for i in dense)),
    )
    indices = lax.broadcast_in_dim(
        mat.indices, (*shape[:n_batch], mat.nse, mat.n_sparse), (*at, n_batch + 1)
    )
    inside = _entries.are_inside(indices, sparse_shape(mat))
    columns: list[Any] = [None] * len(sizes)
    for i, to in enumerate(sparse):
        if mat.shape[mat.n_batch + i] == shape[to]:
            columns[to - n_batch] = indices[..., i]
    repeated = [i for i, column in enumerate(columns) if column is None]
    times = math.prod(sizes[i] for i in repeated)
    full = (*shape[:n_batch], mat.nse, times)
    columns = [None if c is None else wnp.broadcast_to(c[..., None], full) for c in columns]
    number = lax.broadcasted_iota(indices.dtype, full, len(full) - 1)
    for i in reversed(repeated):
        columns[i] = number % max(sizes[i], 1)
        number = number // max(sizes[i], 1)
    nse = mat.nse * times
    empty = wnp.zeros((*full, 0), indices.dtype)
    indices = wnp.stack(columns, -1) if columns else empty
    indices = indices.reshape(*shape[:n_batch], nse, len(sizes))
    inside = wnp.broadcast_to(inside[..., None], full).reshape(*shape[:n_batch], nse)
    data = wnp.repeat(data, times, n_batch)
    return _kept(mat, data, indices, inside, sizes, shape)


def bcoo_gather(
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
    """Slices at computed places, as lax.gather has them.

    Args:
      operand: BCOO.
      start_indices: integer array (..., k), as lax.gather takes it. Its leading axes are batch
        axes of the result; where `dimension_numbers` puts other axes before them, sparse ones.
      dimension_numbers: lax.GatherDimensionNumbers, without batching dimensions.
      slice_sizes: ints, one per axis.
      unique_indices, indices_are_sorted: no effect.
      mode: places outside of the array are clamped, unless it is "fill".
      fill_value: no effect.

    Raises NotImplementedRuleError for batching dimensions, and for mode "fill".
    """
    numbers = dimension_numbers
    if getattr(numbers, "operand_batching_dims", ()):
        raise NotImplementedRuleError("[bcoo_gather] expected no operand_batching_dims")
    if mode is not None and lax.GatherScatterMode.from_any(mode) == (
        lax.GatherScatterMode.FILL_OR_DROP
    ):
        raise NotImplementedRuleError(
            "[bcoo_gather] expected a mode that keeps indices in the array; got mode='fill'"
        )
    sizes = _ints(slice_sizes)
    start_indices = wnp.asarray(start_indices)
    axes = _ints(numbers.start_index_map)

    def one(start):
        starts = [0] * operand.ndim
        for i, axis in enumerate(axes):
            starts[axis] = start[i]
        piece = bcoo_dynamic_slice(operand, starts, sizes)
        return bcoo_squeeze(piece, dimensions=numbers.collapsed_slice_dims)

    found = one
    n_indices = start_indices.ndim - 1
    for _ in range(n_indices):
        found = vmap(found)
    result = found(start_indices)
    offsets = _ints(numbers.offset_dims)
    others = [i for i in range(result.ndim) if i not in offsets]
    source = dict(zip([*others, *offsets], range(result.ndim), strict=True))
    permutation = [source[i] for i in range(result.ndim)]
    if permutation != list(range(result.ndim)):
        result = bcoo_update_layout(result, n_batch=0, n_dense=0, on_inefficient=None)
        result = bcoo_transpose(result, permutation=permutation)
    return result
