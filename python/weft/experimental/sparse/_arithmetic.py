"""Sums and element-wise operations of BCOO arrays."""

from weft import numpy as wnp
from weft._arguments import normalize_axes
from weft._jit import composite
from weft.errors import NotImplementedRuleError
from weft.experimental.sparse import _entries
from weft.experimental.sparse._base import is_sparse
from weft.experimental.sparse._layout import (
    bcoo_update_layout,
    sparse_shape,
    with_unique_indices,
)
from weft.experimental.sparse._products import promoted
from weft.experimental.sparse._shape import bcoo_broadcast_in_dim, bcoo_transpose

_DENSE = "the result would have values where none is stored: sparse.todense() makes an array first"


def with_data(mat, data):
    """The array with other values at the same places."""
    return mat._like(data, mat.indices, mat.shape, mat.indices_sorted, mat.unique_indices)


def bcoo_reduce_sum(mat, *, axes):
    """The sums of the elements along some axes.

    Args:
      mat: BCOO.
      axes: ints.

    Returns a BCOO array without these axes.
    """
    axes = normalize_axes(axes, mat.ndim, "bcoo_reduce_sum")
    return _reduced(mat, axes=tuple(sorted(axes)))


@composite(static_argnames="axes")
def _reduced(mat, *, axes):
    kept = [i for i in range(mat.n_batch) if i not in axes]
    if len(kept) < mat.n_batch:
        summed = [i for i in range(mat.n_batch) if i in axes]
        order = (*kept, *summed, *range(mat.n_batch, mat.ndim))
        mat = bcoo_transpose(mat, permutation=order)
        mat = bcoo_update_layout(mat, n_batch=len(kept), on_inefficient=None)
        axes = [order.index(i) for i in axes]
    n, m = mat.n_batch, mat.n_batch + mat.n_sparse
    data = mat.data
    over = tuple(i - m + n + 1 for i in axes if i >= m)
    data = data.any(over) if data.dtype == bool else data.sum(over, dtype=data.dtype)
    inside = _entries.are_inside(mat.indices, sparse_shape(mat))
    columns = [i for i in range(mat.n_sparse) if n + i not in axes]
    sizes = tuple(sparse_shape(mat)[i] for i in columns)
    indices = _entries.moved(mat.indices[..., columns], inside, sizes)
    if not sizes:
        data = _entries.masked(data, inside)
    shape = tuple(size for i, size in enumerate(mat.shape) if i not in axes)
    unique = mat.unique_indices and len(columns) == mat.n_sparse
    return mat._like(data, indices, shape, False, unique)


def bcoo_multiply_dense(sp_mat, v):
    """The values of sp_mat * v, an array of the shape of `sp_mat.data`.

    Args:
      sp_mat: BCOO.
      v: array that broadcasts to the shape of `sp_mat`.

    Raises NotImplementedRuleError for arguments that do not fit.
    """
    sp_mat, v = promoted(sp_mat, v)
    shape = wnp.shape(v)
    if wnp.broadcast_shapes(shape, sp_mat.shape) != tuple(sp_mat.shape):
        raise NotImplementedRuleError(
            f"[bcoo_multiply_dense] expected an array that broadcasts to {sp_mat.shape}; got shape "
            f"{shape}. bcoo_broadcast_in_dim makes a sparse array of another shape"
        )
    return _multiplied(sp_mat, v)


@composite
def _multiplied(mat, v):
    return mat.data * _beside(mat, v, 0)


def _beside(mat, v, fill):
    """The elements of an array that stand where those of `mat.data` do; `fill` beside padding."""
    if v.ndim == 0:
        return v
    v = v.reshape((1,) * (mat.ndim - v.ndim) + v.shape)
    v = wnp.broadcast_to(v, (*mat.shape[: mat.n_batch], *v.shape[mat.n_batch :]))
    sizes = v.shape[mat.n_batch : mat.n_batch + mat.n_sparse]

    def one(v, indices):
        return _entries.taken(v, _at_broadcast(indices, sparse_shape(mat), sizes), fill)

    return _entries.over_batch(one, mat.n_batch)(v, mat.indices)


def _at_broadcast(indices, sizes, other):
    """Where to look in an array of `other` sizes, some of which may be 1 in place of `sizes`."""
    inside = _entries.are_inside(indices, sizes)
    single = wnp.asarray([size == 1 for size in other], bool)
    return _entries.moved(wnp.where(single, 0, indices), inside, other)


def bcoo_multiply_sparse(lhs, rhs):
    """The element-wise product of two BCOO arrays, which stores no more entries than one of them.

    Args:
      lhs, rhs: BCOO arrays, one of which broadcasts to the shape of the other.
    """
    lhs, rhs = promoted(lhs, rhs)
    shape = wnp.broadcast_shapes(lhs.shape, rhs.shape)
    if tuple(lhs.shape) != shape or (tuple(rhs.shape) == shape and rhs.nse < lhs.nse):
        lhs, rhs = rhs, lhs
    if tuple(lhs.shape) != shape:
        lhs = _broadcast_to(lhs, shape)
    rhs = _expanded(rhs, lhs.ndim)
    lhs, rhs = _alike(lhs, rhs)
    return _multiplied_sparse(lhs, rhs)


def _expanded(mat, ndim):
    """The array with axes of size 1 in front."""
    new = ndim - mat.ndim
    if not new:
        return mat
    shape = (*[1] * new, *mat.shape)
    return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=range(new, ndim))


def _broadcast_to(mat, shape):
    if tuple(mat.shape) == tuple(shape):
        return mat
    dims = range(len(shape) - mat.ndim, len(shape))
    return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=dims)


def _alike(*operands):
    """The arrays with as many batch and dense axes as the one that has fewest."""
    n_batch, n_dense = (min(getattr(x, n) for x in operands) for n in ("n_batch", "n_dense"))
    return [
        bcoo_update_layout(x, n_batch=n_batch, n_dense=n_dense, on_inefficient=None)
        for x in operands
    ]


@composite
def _multiplied_sparse(lhs, rhs):
    n = lhs.n_batch
    batch = lhs.shape[:n]
    rhs_data, rhs_indices = (
        wnp.broadcast_to(x, (*batch, *x.shape[n:])) for x in (rhs.data, rhs.indices)
    )
    sizes = sparse_shape(rhs)

    def one(lhs_data, lhs_indices, rhs_data, rhs_indices):
        looked_up = _at_broadcast(lhs_indices, sparse_shape(lhs), sizes)
        number, count = _entries.grouped(wnp.concatenate([looked_up, rhs_indices]), sizes)
        values = _entries.collected(rhs_data, number[lhs.nse :], lhs.nse + rhs.nse)
        # The number that padding has stands for no place.
        inside = number[: lhs.nse] < count
        data = lhs_data * values.at[number[: lhs.nse]].get(mode="fill", fill_value=0)
        return data, _entries.moved(lhs_indices, inside, sparse_shape(lhs))

    f = _entries.over_batch(one, n)
    data, indices = f(lhs.data, lhs.indices, rhs_data, rhs_indices)
    flags = lhs.indices_sorted, lhs.unique_indices
    return lhs._like(data, indices, lhs.shape, *flags)


def add(lhs, rhs):
    """The sum of two operands of which at least one is BCOO."""
    if is_sparse(lhs) and is_sparse(rhs):
        lhs, rhs = promoted(lhs, rhs)
        shape = wnp.broadcast_shapes(lhs.shape, rhs.shape)
        lhs, rhs = _alike(*(_broadcast_to(x, shape) for x in (lhs, rhs)))
        return _joined(lhs, rhs)
    if is_sparse(rhs):
        lhs, rhs = rhs, lhs
    shape = wnp.shape(rhs)
    if wnp.broadcast_shapes(lhs.shape, shape) != shape:
        raise NotImplementedRuleError(
            f"[add] expected an array that {tuple(lhs.shape)} broadcasts to; got shape {shape}: "
            f"{_DENSE}"
        )
    return _add_dense(*promoted(lhs, rhs))


@composite
def _joined(lhs, rhs):
    at = lhs.n_batch
    sizes = sparse_shape(lhs)
    data = wnp.concatenate([lhs.data, rhs.data], at)
    indices = wnp.concatenate([lhs.indices, rhs.indices], at)
    return lhs._like(data, _entries.tidied(indices, sizes), lhs.shape, False, False)


@composite
def _add_dense(mat, array):
    dense = mat.todense()
    return dense | array if array.dtype == bool else dense + array


def subtract(lhs, rhs):
    """The difference of two operands of which at least one is BCOO."""
    return add(lhs, negative(rhs)) if is_sparse(rhs) else add(lhs, -wnp.asarray(rhs))


def negative(mat):
    return with_data(mat, -mat.data)


def multiply(lhs, rhs):
    """The element-wise product of two operands of which at least one is BCOO."""
    if is_sparse(lhs) and is_sparse(rhs):
        return bcoo_multiply_sparse(lhs, rhs)
    if is_sparse(rhs):
        lhs, rhs = rhs, lhs
    shape = wnp.broadcast_shapes(lhs.shape, wnp.shape(rhs))
    lhs = _broadcast_to(lhs, shape)
    return with_data(lhs, bcoo_multiply_dense(lhs, rhs))


def divide(lhs, rhs):
    """A BCOO array divided by an array."""
    if is_sparse(rhs):
        raise NotImplementedRuleError(f"[divide] expected an array as divisor; {_DENSE}")
    lhs, rhs = promoted(lhs, rhs)
    lhs = _broadcast_to(lhs, wnp.broadcast_shapes(lhs.shape, rhs.shape))
    return with_data(lhs, _quotients(lhs, rhs))


@composite
def _quotients(mat, v):
    return wnp.true_divide(mat.data, _beside(mat, v, 1))


def elementwise(function, mat):
    """`function`, which takes 0 to 0, of each element; duplicates are added up before."""
    mat = with_unique_indices(mat)
    inside = _entries.are_inside(mat.indices, sparse_shape(mat))
    inside = inside.reshape(*inside.shape, *[1] * mat.n_dense)
    # Between 0 and 1, derivatives of such functions are finite.
    data = wnp.where(inside, mat.data, wnp.asarray(0.5).astype(mat.dtype))
    return with_data(mat, wnp.where(inside, function(data), 0))


def power(mat, exponent):
    """Each element to a power above 0."""
    if is_sparse(exponent) or not isinstance(exponent, (int, float)):
        raise NotImplementedRuleError("[power] expected a number as exponent of a sparse array")
    if exponent <= 0:
        raise NotImplementedRuleError(
            f"[power] expected an exponent above 0; got {exponent}: {_DENSE}"
        )
    return elementwise(lambda data: data**exponent, mat)
