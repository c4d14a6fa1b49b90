"""How the entries of a BCOO array are stored: order, duplicates, and which axes are which."""

import math
import warnings

from weft import lax, numpy as wnp
from weft._jit import composite
from weft.errors import AttributeValueError
from weft.experimental.sparse import _entries
from weft.experimental.sparse._base import SparseEfficiencyError, SparseEfficiencyWarning


def batch_shape(mat):
    return mat.shape[: mat.n_batch]


def sparse_shape(mat):
    return mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]


def dense_shape(mat):
    return mat.shape[mat.n_batch + mat.n_sparse :]


@composite
def bcoo_sort_indices(mat):
    """The array with its entries in lexicographic order of their indices.

    Args:
      mat: BCOO.
    """

    def one(data, indices):
        ordered, order = _entries.sorting(indices)
        return data[order], ordered

    data, indices = _entries.over_batch(one, mat.n_batch)(mat.data, mat.indices)
    return mat._like(data, indices, mat.shape, True, mat.unique_indices)


@composite
def _grouped(mat):
    def one(indices):
        return _entries.grouped(indices, sparse_shape(mat))

    number, count = _entries.over_batch(one, mat.n_batch)(mat.indices)
    return number, count.max(initial=0)


@composite(static_argnames="nse")
def _summed(mat, number, *, nse):
    def one(data, indices, number):
        return (
            _entries.collected(data, number, nse),
            _entries.places(indices, number, nse, sparse_shape(mat)),
        )

    data, indices = _entries.over_batch(one, mat.n_batch)(mat.data, mat.indices, number)
    return mat._like(data, indices, mat.shape, True, True)


@composite
def _without_zeros(mat):
    kept = (mat.data != 0).any(tuple(range(mat.n_batch + 1, mat.n_batch + 1 + mat.n_dense)))
    sizes = sparse_shape(mat)
    indices = _entries.moved(mat.indices, kept & _entries.are_inside(mat.indices, sizes), sizes)
    return mat._like(mat.data, indices, mat.shape, False, mat.unique_indices)


def bcoo_sum_duplicates(mat, nse=None):
    """The array with one entry for each place, in lexicographic order.

    Args:
      mat: BCOO.
      nse: how many entries are stored: padding where there are fewer places, and the last ones are
        left out where there are more. None for as many as needed, which is known only of arrays
        whose indices are: not under `jit`.

    Raises ValueError without `nse` where indices are traced.
    """
    number, count = _grouped(mat)
    if nse is None:
        nse = _entries.known(count)
        if nse is None:
            raise AttributeValueError(
                "[bcoo_sum_duplicates] expected nse: how many entries there are without duplicates "
                "depends on the values of traced indices"
            )
    return _summed(mat, number, nse=int(nse))


def with_unique_indices(mat):
    """The array with padding in place of duplicates."""
    return mat if mat.unique_indices else bcoo_sum_duplicates(mat, mat.nse)


def bcoo_eliminate_zeros(mat, nse=None):
    """`bcoo_sum_duplicates` of the entries that are not zero.

    Args:
      mat: BCOO.
      nse: as there.
    """
    return bcoo_sum_duplicates(_without_zeros(mat), nse)


def capped(mat):
    """The array with no more entries than it has places."""
    limit = math.prod(sparse_shape(mat))
    return bcoo_sum_duplicates(mat, limit) if mat.nse > limit else mat


def bcoo_update_layout(mat, *, n_batch=None, n_dense=None, on_inefficient: str | None = "error"):
    """The array with other numbers of batch and dense axes.

    Args:
      mat: BCOO.
      n_batch, n_dense: ints; None to keep the number.
      on_inefficient: what happens where a sparse axis becomes a batch axis, which repeats all
        entries for each of its elements, or dense, which stores zeros, and more is stored than
        before: "error", "warn", or None.

    Raises SparseEfficiencyError (a ValueError) as said; ValueError for numbers that do not fit.
    """
    n_batch = mat.n_batch if n_batch is None else int(n_batch)
    n_dense = mat.n_dense if n_dense is None else int(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise AttributeValueError(
            f"[bcoo_update_layout] expected n_batch and n_dense of sum up to {mat.ndim}; got "
            f"n_batch={n_batch}, n_dense={n_dense}"
        )
    if on_inefficient not in ("error", "warn", None):
        raise AttributeValueError(
            "[bcoo_update_layout] expected on_inefficient to be 'error', 'warn' or None; got "
            f"{on_inefficient!r}"
        )
    made = _laid_out(mat, n_batch=n_batch, n_dense=n_dense)
    grows = (n_batch > mat.n_batch or n_dense > mat.n_dense) and stored(made) > stored(mat)
    if on_inefficient and grows:
        text = (
            f"[bcoo_update_layout] {mat!r} as n_batch={n_batch}, n_dense={n_dense} stores more "
            "than before; on_inefficient=None allows it"
        )
        if on_inefficient == "error":
            raise SparseEfficiencyError(text)
        warnings.warn(text, SparseEfficiencyWarning, stacklevel=2)
    return made


def stored(mat):
    """How many numbers are stored, values and indices."""
    return math.prod(mat.data.shape) + math.prod(mat.indices.shape)


@composite(static_argnames=("n_batch", "n_dense"))
def _laid_out(mat, *, n_batch, n_dense):
    # What becomes sparse first, so that a batch axis may become dense and the reverse.
    while mat.n_dense > n_dense:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > n_batch:
        mat = _batch_to_sparse(mat)
    while mat.n_batch < n_batch:
        mat = _sparse_to_batch(mat)
    while mat.n_dense < n_dense:
        mat = _sparse_to_dense(mat)
    return mat


def _dense_to_sparse(mat):
    """The first dense axis as the last sparse one."""
    at, size = mat.n_batch, dense_shape(mat)[0]
    nse = mat.nse * size
    data = mat.data.reshape(*batch_shape(mat), nse, *dense_shape(mat)[1:])
    column = lax.broadcasted_iota(
        mat.indices.dtype, (*mat.indices.shape[: at + 1], size, 1), at + 1
    )
    rest = wnp.broadcast_to(mat.indices[..., None, :], (*column.shape[:-1], mat.n_sparse))
    indices = wnp.concatenate([rest, column], -1).reshape(*batch_shape(mat), nse, mat.n_sparse + 1)
    sizes = (*sparse_shape(mat), size)
    return mat._like(data, _entries.tidied(indices, sizes), mat.shape, False, mat.unique_indices)


def _batch_to_sparse(mat):
    """The last batch axis as the first sparse one."""
    at = mat.n_batch - 1
    outer, size = mat.shape[:at], mat.shape[at]
    nse = mat.nse * size
    data = mat.data.reshape(*outer, nse, *dense_shape(mat))
    column = lax.broadcasted_iota(mat.indices.dtype, (*mat.indices.shape[:-1], 1), at)
    indices = wnp.concatenate([column, mat.indices], -1).reshape(*outer, nse, mat.n_sparse + 1)
    sizes = (size, *sparse_shape(mat))
    return mat._like(data, _entries.tidied(indices, sizes), mat.shape, False, mat.unique_indices)


def _sparse_to_batch(mat):
    """The first sparse axis as the last batch one, which has all entries for each element."""
    at, size = mat.n_batch, mat.shape[mat.n_batch]

    def one(data, indices):
        own = wnp.arange(size, dtype=indices.dtype)[:, None] == indices[None, :, 0]
        sizes = sparse_shape(mat)[1:]
        rest = indices[:, 1:]
        inside = own & _entries.are_inside(rest, sizes)
        data = wnp.broadcast_to(data, (size, *data.shape))
        rest = wnp.broadcast_to(rest, (size, *rest.shape))
        if not sizes:
            data = _entries.masked(data, inside)
        return data, _entries.moved(rest, inside, sizes)

    data, indices = _entries.over_batch(one, at)(mat.data, mat.indices)
    return capped(mat._like(data, indices, mat.shape, False, mat.unique_indices))


def _sparse_to_dense(mat):
    """The last sparse axis as the first dense one, with zeros beside each value."""
    at = mat.n_batch + mat.n_sparse - 1
    size, sizes = mat.shape[at], mat.shape[mat.n_batch : at]

    def one(data, indices):
        own = indices[:, -1:] == wnp.arange(size, dtype=indices.dtype)
        own &= _entries.are_inside(indices, (*sizes, size))[:, None]
        return _entries.masked(wnp.broadcast_to(data[:, None], (*own.shape, *data.shape[1:])), own)

    data = _entries.over_batch(one, mat.n_batch)(mat.data, mat.indices)
    indices = _entries.moved(
        mat.indices[..., :-1], _entries.are_inside(mat.indices, (*sizes, size)), sizes
    )
    return capped(mat._like(data, indices, mat.shape, False, False))
