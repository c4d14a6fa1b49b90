"""BCOO: sparse arrays as a list of elements with their indices, in batches, of dense blocks."""

import operator
from typing import Any

import numpy as np

from weft import _core, lax, numpy as wnp
from weft._arguments import normalize_axes, static_shape
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import AttributeValueError, OperandError, ShapeError
from weft.experimental.sparse import _arithmetic, _entries
from weft.experimental.sparse._arithmetic import (
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    bcoo_reduce_sum,
)
from weft.experimental.sparse._base import JAXSparse, matrix_product_dims
from weft.experimental.sparse._layout import (
    bcoo_eliminate_zeros,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_update_layout,
    sparse_shape,
)
from weft.experimental.sparse._products import bcoo_dot_general, bcoo_dot_general_sampled
from weft.experimental.sparse._shape import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_transpose,
)
from weft.experimental.sparse.transform import sparsify
from weft.tree_util import register_pytree_node_class

__all__ = [
    "BCOO",
    "bcoo_broadcast_in_dim",
    "bcoo_concatenate",
    "bcoo_dot_general",
    "bcoo_dot_general_sampled",
    "bcoo_dynamic_slice",
    "bcoo_eliminate_zeros",
    "bcoo_extract",
    "bcoo_fromdense",
    "bcoo_gather",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_reduce_sum",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
    "bcoo_sort_indices",
    "bcoo_squeeze",
    "bcoo_sum_duplicates",
    "bcoo_todense",
    "bcoo_transpose",
    "bcoo_update_layout",
]
__getattr__, __dir__ = _public(__name__, __all__)


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array: values, and for each the index vector that says where it stands.

    Axes of the array are, in order, n_batch batch axes, along which values and indices are stored
    for each element; n_sparse sparse axes, which have a column of `indices` each; and n_dense dense
    axes, along which values are stored without a gap. Values of one place are added up. An index
    vector outside of the sparse axes is padding: its value is not part of the array.

    A pytree with leaves `data` and `indices`. Under vmap, batch axes are mapped.

    Attributes:
      data: array (*batch, nse, *dense).
      indices: integer array (*batch, nse, n_sparse).
      shape: tuple of ints, (*batch, *sparse, *dense).
      n_batch, n_sparse, n_dense, nse: ints.
      indices_sorted: whether index vectors are known to be in lexicographic order.
      unique_indices: whether no two of them are known to be the same.

    Examples:
      >>> a = weft.experimental.sparse.BCOO.fromdense(wnp.array([[0.0, 2.0], [0.0, 0.0]]))
      >>> a
      BCOO(float32[2, 2], nse=1)
      >>> a @ wnp.array([1.0, 3.0])
      Array([6., 0.], dtype=float32)
    """

    def __init__(self, args, *, shape, indices_sorted=False, unique_indices=False):
        """Args:
        args: pair (data, indices) of arrays; batch axes of size 1 are broadcast.
        shape: ints, the shape of the array.
        indices_sorted, unique_indices: what is known of `indices`; not checked.

        Raises ShapeError if the three do not fit, DTypeError for indices that are not integers.
        """
        data, indices = (_core.asarray(x) for x in args)
        shape = static_shape(shape, "BCOO")
        if indices.ndim < 2 or not wnp.issubdtype(indices.dtype, np.integer):
            raise OperandError(
                "[BCOO] expected an integer array (*batch, nse, n_sparse) as indices; got "
                f"{indices.dtype.name}{list(indices.shape)}"
            )
        n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
        n_dense = len(shape) - n_batch - n_sparse
        batch, dense = shape[:n_batch], shape[n_batch + n_sparse :]
        fits = (
            n_dense >= 0
            and data.ndim == n_batch + 1 + n_dense
            and data.shape[n_batch:] == (indices.shape[n_batch], *dense)
            and all(
                size in (1, full)
                for x in (data, indices)
                for size, full in zip(x.shape[:n_batch], batch, strict=True)
            )
        )
        if not fits:
            raise ShapeError(
                "[BCOO] expected data (*batch, nse, *dense) and indices (*batch, nse, n_sparse) of "
                f"an array of shape {shape}; got data of shape {data.shape}, indices of shape "
                f"{indices.shape}"
            )
        if data.shape[:n_batch] != batch:
            data = wnp.broadcast_to(data, (*batch, *data.shape[n_batch:]))
        if indices.shape[:n_batch] != batch:
            indices = wnp.broadcast_to(indices, (*batch, *indices.shape[n_batch:]))
        self.data, self.indices = data, indices
        self._set(shape[n_batch:], n_dense, indices_sorted, unique_indices)

    def _set(self, own_shape, n_dense, indices_sorted, unique_indices):
        self._own_shape, self.n_dense = tuple(own_shape), n_dense
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)

    def _like(self, data, indices, shape, indices_sorted, unique_indices):
        """Another such array, of parts that are known to fit."""
        new = object.__new__(type(self))
        new.data, new.indices = data, indices
        n_batch = indices.ndim - 2
        n_dense = len(shape) - n_batch - indices.shape[-1]
        new._set(shape[n_batch:], n_dense, indices_sorted, unique_indices)
        return new

    # Batch axes are told from the leaves, so that vmap may take some away or add some.
    shape = property(lambda self: (*self.indices.shape[: self.n_batch], *self._own_shape))
    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    nse = property(lambda self: self.indices.shape[-2])
    _bufs = property(lambda self: (self.data, self.indices))

    def tree_flatten(self):
        facts = self._own_shape, self.n_dense, self.indices_sorted, self.unique_indices
        nse = self.nse if hasattr(self.indices, "shape") else None
        return (self.data, self.indices), (facts, nse)

    @classmethod
    def tree_unflatten(cls, facts, children):
        facts, nse = facts
        new = object.__new__(cls)
        new.data, new.indices = children
        new._set(*facts)
        if all(hasattr(x, "shape") for x in children) and not new._has_entries(nse):
            raise ShapeError(
                "[BCOO] expected the same entries in other batches; got data of shape "
                f"{new.data.shape} and indices of shape {new.indices.shape} for nse={nse}. Only "
                "batch axes can be mapped"
            )
        return new

    def _has_entries(self, nse):
        at = len(self.indices.shape) - 2
        own = self.indices.shape[at : at + 1], self.data.shape[at : at + 1]
        return at >= 0 and (nse is None or own == ((nse,), (nse,)))

    @classmethod
    def fromdense(cls, mat, *, nse=None, index_dtype=np.int32, n_dense=0, n_batch=0):
        """The elements of an array that are not zero; see `bcoo_fromdense`."""
        return bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(cls, mat, *, index_dtype=None, n_dense=0, n_batch=0):
        """The same array as a SciPy sparse array or matrix, without batch and dense axes."""
        if n_dense or n_batch:
            raise AttributeValueError("[from_scipy_sparse] expected n_dense=0 and n_batch=0")
        mat = mat.tocoo()
        indices = np.stack([mat.row, mat.col], 1).astype(index_dtype or np.int32)
        return cls((_core.asarray(mat.data), _core.asarray(indices)), shape=mat.shape)

    def todense(self):
        """The array with all its elements."""
        return bcoo_todense(self)

    def sort_indices(self):
        """The array with its entries in lexicographic order of their indices."""
        return bcoo_sort_indices(self)

    def sum_duplicates(self, nse=None, remove_zeros=True):
        """The array with one entry for each place; see `bcoo_sum_duplicates`.

        Args:
          nse: as there.
          remove_zeros: whether entries that are zero as they stand are left out. Sums that come to
            zero stay.
        """
        return (bcoo_eliminate_zeros if remove_zeros else bcoo_sum_duplicates)(self, nse)

    def update_layout(self, *, n_batch=None, n_dense=None, on_inefficient="error"):
        """The array with other numbers of batch and dense axes; see `bcoo_update_layout`."""
        return bcoo_update_layout(
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )

    def reshape(self, *args, **kwargs):
        """The array in another shape, ints or a tuple of them; see `bcoo_reshape`."""
        sizes = args[0] if len(args) == 1 and not hasattr(args[0], "__index__") else args
        sizes = list(kwargs.get("shape", sizes))
        if -1 in sizes:
            at = sizes.index(-1)
            rest = int(np.prod([n for i, n in enumerate(sizes) if i != at]))
            sizes[at] = self.size // rest if rest else 0
        return bcoo_reshape(self, new_sizes=sizes)

    def astype(self, dtype):
        """The array with elements of another dtype; duplicates are added up before."""
        dtype = _core.canonical_dtype(dtype)
        return _arithmetic.elementwise(lambda data: data.astype(dtype), self)

    def transpose(self, axes=None):
        """The array with its axes in another order, the reverse if `axes` is None."""
        axes = range(self.ndim)[::-1] if axes is None else axes
        return bcoo_transpose(self, permutation=axes)

    def sum(self, axis=None, dtype=None, keepdims=False):
        """The sum of the elements: an array over all axes, BCOO over some.

        Args:
          axis: int or ints; None for all axes.
          dtype: of the result; None for that of the elements.
          keepdims: whether the axes stay, of size 1.
        """
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        axes = normalize_axes(axes, self.ndim, "sum")
        mat = self if dtype is None else self.astype(dtype)
        mat = bcoo_reduce_sum(mat, axes=axes)
        if keepdims:
            shape = [1 if i in axes else n for i, n in enumerate(self.shape)]
            dims = [i for i in range(self.ndim) if i not in axes]
            return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=dims)
        return mat.todense() if not mat.shape else mat

    def __getitem__(self, item):
        return sparsify(operator.itemgetter(item))(self)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __neg__(self):
        return _arithmetic.negative(self)

    def __abs__(self):
        return _arithmetic.elementwise(abs, self)

    def __pow__(self, exponent):
        return _arithmetic.power(self, exponent)

    def __add__(self, other):
        return _arithmetic.add(self, other)

    def __radd__(self, other):
        return _arithmetic.add(other, self)

    def __sub__(self, other):
        return _arithmetic.subtract(self, other)

    def __rsub__(self, other):
        return _arithmetic.subtract(other, self)

    def __mul__(self, other):
        return _arithmetic.multiply(self, other)

    def __rmul__(self, other):
        return _arithmetic.multiply(other, self)

    def __truediv__(self, other):
        return _arithmetic.divide(self, other)

    def __rtruediv__(self, other):
        return _arithmetic.divide(other, self)

    def __matmul__(self, other):
        return _matmul(self, other)

    def __rmatmul__(self, other):
        return _matmul(other, self)


def _matmul(lhs, rhs):
    numbers = matrix_product_dims(np.ndim(lhs), np.ndim(rhs), "matmul")
    return bcoo_dot_general(lhs, rhs, dimension_numbers=numbers)


@composite
def bcoo_todense(mat):
    """The array with all its elements.

    Args:
      mat: BCOO.
    """

    def one(data, indices):
        return _entries.put(data, indices, sparse_shape(mat))

    return _entries.over_batch(one, mat.n_batch)(mat.data, mat.indices)


def bcoo_fromdense(mat, *, nse=None, n_batch=0, n_dense=0, index_dtype: Any = np.int32):
    """The elements of an array that are not zero, as BCOO.

    Args:
      mat: array. NaN are kept.
      nse: how many entries are stored (of each batch element): padding where there are fewer
        elements, and the last are left out where there are more. None for as many as needed, which
        is known only of arrays whose values are: not under `jit`.
      n_batch, n_dense: how many of the first axes are batch axes, and how many of the last dense.
      index_dtype: integer dtype.

    Raises ValueError without `nse` where values are traced.

    Examples:
      >>> weft.experimental.sparse.bcoo_fromdense(wnp.eye(3)).indices.T
      Array([[0, 1, 2],
             [0, 1, 2]], dtype=int32)
    """
    mat = _core.asarray(mat)
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise AttributeValueError(
            f"[bcoo_fromdense] expected n_batch and n_dense of sum up to {mat.ndim}; got "
            f"{n_batch} and {n_dense}"
        )
    if nse is None:
        nse = _entries.known(_count(mat, n_batch=n_batch, n_dense=n_dense))
        if nse is None:
            raise AttributeValueError(
                "[bcoo_fromdense] expected nse: how many elements are not zero depends on the "
                "values of a traced array"
            )
    data, indices = _found(
        mat,
        nse=operator.index(nse),
        n_batch=n_batch,
        n_dense=n_dense,
        index_dtype=_core.canonical_dtype(index_dtype),
    )
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def _stored(mat, n_batch, n_dense):
    return (mat != 0).any(tuple(range(mat.ndim - n_dense, mat.ndim)))


@composite(static_argnames=("n_batch", "n_dense"))
def _count(mat, *, n_batch, n_dense):
    stored = _stored(mat, n_batch, n_dense)
    return stored.sum(tuple(range(n_batch, stored.ndim))).max(initial=0)


@composite(static_argnames=("nse", "n_batch", "n_dense", "index_dtype"))
def _found(mat, *, nse, n_batch, n_dense, index_dtype):
    sizes = mat.shape[n_batch : mat.ndim - n_dense]

    def one(mat):
        stored = _stored(mat, 0, n_dense)
        if sizes:
            found = wnp.nonzero(stored, size=nse, fill_value=sizes)
            indices = wnp.stack(found, 1).astype(index_dtype)
            return _entries.taken(mat, indices), indices
        first = wnp.arange(nse) == 0
        indices = wnp.zeros((nse, 0), index_dtype)
        return _entries.masked(_entries.taken(mat, indices), first), indices

    return _entries.over_batch(one, n_batch)(mat)


def bcoo_extract(sparr, arr, *, assume_unique=None):
    """The elements of an array that stand where a BCOO array has entries, as BCOO.

    Args:
      sparr: BCOO.
      arr: array of the same shape.
      assume_unique: whether each of several entries of one place gets the element; else all but one
        get 0, so that their sum is the element. None for `sparr.unique_indices`.

    Raises ShapeError for arguments that do not fit.
    """
    arr = _core.asarray(arr)
    if tuple(arr.shape) != tuple(sparr.shape):
        raise ShapeError(
            f"[bcoo_extract] expected an array of shape {sparr.shape}; got {arr.shape}"
        )
    unique = sparr.unique_indices if assume_unique is None else bool(assume_unique)
    return _arithmetic.with_data(sparr, _extracted(sparr, arr, unique=unique))


@composite(static_argnames="unique")
def _extracted(sparr, arr, *, unique):
    def one(arr, indices):
        values = _entries.taken(arr, indices)
        if unique:
            return values
        number, _ = _entries.grouped(indices, sparse_shape(sparr))
        entry = lax.iota(number.dtype, sparr.nse)
        first = wnp.full(sparr.nse, sparr.nse, number.dtype).at[number].min(entry, mode="drop")
        return _entries.masked(values, first[number] == entry)

    return _entries.over_batch(one, sparr.n_batch)(arr, sparr.indices)


_open_to_users(__name__)
