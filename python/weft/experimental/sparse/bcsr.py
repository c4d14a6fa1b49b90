"""BCSR: sparse matrices by rows, in batches, of dense blocks."""

import numpy as np

from weft import _core, numpy as wnp
from weft._arguments import static_shape
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import AttributeValueError, NotImplementedRuleError, OperandError, ShapeError
from weft.experimental.sparse import _entries
from weft.experimental.sparse._base import JAXSparse, is_sparse, matrix_product_dims
from weft.experimental.sparse.bcoo import (
    BCOO,
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dot_general,
    bcoo_fromdense,
    bcoo_sort_indices,
)
from weft.tree_util import register_pytree_node_class

__all__ = [
    "BCSR",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_extract",
    "bcsr_fromdense",
    "bcsr_sum_duplicates",
    "bcsr_todense",
]
__getattr__, __dir__ = _public(__name__, __all__)


@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse matrix whose entries are stored row by row.

    Entries of row i are those from `indptr[i]` to `indptr[i + 1]`; those from `indptr[-1]` on are
    padding. As in BCOO, batch axes come before the two sparse axes, and dense axes after. Operators
    go by way of BCOO.

    A pytree with leaves `data`, `indices` and `indptr`. Under vmap, batch axes are mapped.

    Attributes:
      data: array (*batch, nse, *dense).
      indices: integer array (*batch, nse), the columns.
      indptr: integer array (*batch, rows + 1), where rows begin.
      shape: tuple of ints, (*batch, rows, columns, *dense).
      n_batch, n_sparse, n_dense, nse: ints; n_sparse is 2.
      indices_sorted, unique_indices: what is known of the columns of a row.

    Examples:
      >>> a = weft.experimental.sparse.BCSR.fromdense(wnp.array([[0.0, 2.0], [0.0, 0.0]]))
      >>> a.indptr, a @ wnp.array([1.0, 3.0])
      (Array([0, 1, 1], dtype=int32), Array([6., 0.], dtype=float32))
    """

    n_sparse = 2

    def __init__(self, args, *, shape, indices_sorted=False, unique_indices=False):
        """Args:
        args: triple (data, indices, indptr) of arrays.
        shape: ints, the shape of the array.
        indices_sorted, unique_indices: what is known of the columns; not checked.

        Raises ShapeError if these do not fit, DTypeError for indices that are not integers.
        """
        data, indices, indptr = (_core.asarray(x) for x in args)
        shape = static_shape(shape, "BCSR")
        if not all(wnp.issubdtype(x.dtype, np.integer) for x in (indices, indptr)):
            raise OperandError(
                "[BCSR] expected integers as indices and indptr; got "
                f"{indices.dtype.name} and {indptr.dtype.name}"
            )
        n_batch = indptr.ndim - 1
        batch, dense = shape[:n_batch], shape[n_batch + 2 :]
        if (
            len(shape) < n_batch + 2
            or indices.ndim != n_batch + 1
            or indptr.shape[-1] != shape[n_batch] + 1
            or data.shape[n_batch:] != (indices.shape[-1], *dense)
        ):
            raise ShapeError(
                "[BCSR] expected data (*batch, nse, *dense), indices (*batch, nse) and indptr "
                f"(*batch, rows + 1) of an array of shape {shape}; got shapes {data.shape}, "
                f"{indices.shape} and {indptr.shape}"
            )
        self.data, self.indices, self.indptr = (
            wnp.broadcast_to(x, (*batch, *x.shape[n_batch:])) if x.shape[:n_batch] != batch else x
            for x in (data, indices, indptr)
        )
        self._set(shape[n_batch:], indices_sorted, unique_indices)

    def _set(self, own_shape, indices_sorted, unique_indices):
        self._own_shape = tuple(own_shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)

    shape = property(lambda self: (*self.indptr.shape[:-1], *self._own_shape))
    n_batch = property(lambda self: self.indptr.ndim - 1)
    n_dense = property(lambda self: len(self._own_shape) - 2)
    nse = property(lambda self: self.indices.shape[-1])
    _bufs = property(lambda self: (self.data, self.indices, self.indptr))

    def tree_flatten(self):
        return self._bufs, (self._own_shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, facts, children):
        new = object.__new__(cls)
        new.data, new.indices, new.indptr = children
        new._set(*facts)
        return new

    @classmethod
    def fromdense(cls, mat, *, nse=None, index_dtype=np.int32, n_dense=0, n_batch=0):
        """The elements of an array that are not zero; see `bcsr_fromdense`."""
        return bcsr_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(cls, mat, *, index_dtype=None, n_dense=0, n_batch=0):
        """The same array as a SciPy sparse array or matrix, without batch and dense axes."""
        if n_dense or n_batch:
            raise AttributeValueError("[from_scipy_sparse] expected n_dense=0 and n_batch=0")
        mat = mat.tocsr()
        indices, indptr = (x.astype(index_dtype or np.int32) for x in (mat.indices, mat.indptr))
        return cls(tuple(map(_core.asarray, (mat.data, indices, indptr))), shape=mat.shape)

    @classmethod
    def from_bcoo(cls, arr):
        """The same array as a BCOO array with two sparse axes."""
        if arr.n_sparse != 2:
            raise NotImplementedRuleError(
                f"[from_bcoo] expected an array with 2 sparse axes; got {arr!r}"
            )
        return _by_rows(arr if arr.indices_sorted else bcoo_sort_indices(_tidied(arr)))

    def to_bcoo(self):
        """The same array as BCOO."""
        indices = _row_indices(self)
        flags = {"indices_sorted": self.indices_sorted, "unique_indices": self.unique_indices}
        return BCOO((self.data, indices), shape=self.shape, **flags)

    def todense(self):
        """The array with all its elements."""
        return self.to_bcoo().todense()

    def sum_duplicates(self, nse=None, remove_zeros=True):
        """The array with one entry for each place; see `BCOO.sum_duplicates`."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def transpose(self, axes=None):
        """The array with its axes in another order, the reverse if `axes` is None."""
        return BCSR.from_bcoo(self.to_bcoo().transpose(axes))

    def sum(self, axis=None, dtype=None, keepdims=False):
        """The sum of the elements; see `BCOO.sum`."""
        return self.to_bcoo().sum(axis, dtype, keepdims)

    def __getitem__(self, item):
        return _by_rows_again(self.to_bcoo()[item])

    def __neg__(self):
        return _by_rows_again(-self.to_bcoo())

    def __mul__(self, other):
        return _by_rows_again(self.to_bcoo() * _as_bcoo(other))

    def __rmul__(self, other):
        return self * other

    def __add__(self, other):
        return _by_rows_again(self.to_bcoo() + _as_bcoo(other))

    def __radd__(self, other):
        return self + other

    def __sub__(self, other):
        return _by_rows_again(self.to_bcoo() - _as_bcoo(other))

    def __rsub__(self, other):
        return _by_rows_again(_as_bcoo(other) - self.to_bcoo())

    def __matmul__(self, other):
        numbers = matrix_product_dims(self.ndim, np.ndim(other), "matmul")
        return bcsr_dot_general(self, other, dimension_numbers=numbers)

    def __rmatmul__(self, other):
        numbers = matrix_product_dims(np.ndim(other), self.ndim, "matmul")
        return bcsr_dot_general(other, self, dimension_numbers=numbers)


def _as_bcoo(x):
    return x.to_bcoo() if isinstance(x, BCSR) else x


def _by_rows_again(x):
    """A result by way of BCOO as BCSR, if it is sparse and has rows."""
    return BCSR.from_bcoo(x) if is_sparse(x) and x.n_sparse == 2 else x


@composite
def _tidied(mat):
    sizes = mat.shape[mat.n_batch : mat.n_batch + 2]
    indices = _entries.tidied(mat.indices, sizes)
    return mat._like(mat.data, indices, mat.shape, False, mat.unique_indices)


@composite
def _by_rows(mat):
    """A BCOO matrix in order as BCSR."""
    rows = mat.shape[mat.n_batch]

    def begin(indices):
        counts = wnp.zeros(rows, indices.dtype).at[indices[:, 0]].add(1, mode="drop")
        return wnp.concatenate(
            [wnp.zeros(1, indices.dtype), wnp.cumsum(counts, dtype=counts.dtype)]
        )

    indptr = _entries.over_batch(begin, mat.n_batch)(mat.indices)
    flags = {"indices_sorted": True, "unique_indices": mat.unique_indices}
    return BCSR((mat.data, mat.indices[..., 1], indptr), shape=mat.shape, **flags)


@composite
def _row_indices(mat):
    """Index vectors of all entries."""
    indptr = mat.indptr.astype(mat.indices.dtype)
    return _core.bind("csr_places", indptr, mat.indices)


def bcsr_todense(mat):
    """The array with all its elements.

    Args:
      mat: BCSR.
    """
    return mat.todense()


def bcsr_fromdense(mat, *, nse=None, n_batch=0, n_dense=0, index_dtype=np.int32):
    """The elements of an array that are not zero, as BCSR.

    Args:
      mat: array with two axes beside batch and dense axes.
      nse, n_batch, n_dense, index_dtype: as of `bcoo_fromdense`.

    Raises ShapeError for arguments that do not fit.
    """
    mat = _core.asarray(mat)
    if mat.ndim != n_batch + n_dense + 2:
        raise ShapeError(
            f"[bcsr_fromdense] expected an array with n_batch + n_dense + 2 axes; got shape "
            f"{mat.shape}, n_batch={n_batch}, n_dense={n_dense}"
        )
    return BCSR.from_bcoo(
        bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    )


def bcsr_extract(indices, indptr, mat):
    """The elements of an array at the places of a BCSR array, (*batch, nse, *dense).

    Args:
      indices, indptr: as of BCSR.
      mat: array (*batch, rows, columns, *dense).
    """
    indices, indptr, mat = (_core.asarray(x) for x in (indices, indptr, mat))
    return _extracted(indices, indptr, mat)


@composite
def _extracted(indices, indptr, mat):
    n = indptr.ndim - 1
    values = wnp.zeros((*indices.shape, *mat.shape[n + 2 :]), mat.dtype)
    places = _row_indices(BCSR((values, indices, indptr), shape=mat.shape))
    return _entries.over_batch(_entries.taken, n)(mat, places)


def bcsr_dot_general(
    lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None
):
    """Product of two arrays of which at least one is BCSR, as `bcoo_dot_general` has it.

    Args:
      lhs, rhs: BCSR or array.
      dimension_numbers, precision, preferred_element_type, out_sharding: as there.

    Returns an array, or BCSR if both operands are.
    """
    return _by_rows_again(
        bcoo_dot_general(
            _as_bcoo(lhs),
            _as_bcoo(rhs),
            dimension_numbers=dimension_numbers,
            precision=precision,
            preferred_element_type=preferred_element_type,
            out_sharding=out_sharding,
        )
    )


def bcsr_sum_duplicates(mat, nse=None):
    """The array with one entry for each place; see `bcoo_sum_duplicates`.

    Args:
      mat: BCSR.
      nse: as there.
    """
    return mat.sum_duplicates(nse, remove_zeros=False)


def bcsr_broadcast_in_dim(mat, *, shape, broadcast_dimensions, sharding=None):
    """The array in a shape with more or longer axes; see `bcoo_broadcast_in_dim`.

    Args:
      mat: BCSR.
      shape, broadcast_dimensions, sharding: as there. The result has two sparse axes.
    """
    return BCSR.from_bcoo(
        bcoo_broadcast_in_dim(
            mat.to_bcoo(),
            shape=shape,
            broadcast_dimensions=broadcast_dimensions,
            sharding=sharding,
        )
    )


def bcsr_concatenate(operands, *, dimension):
    """Arrays one after the other along an axis; see `bcoo_concatenate`.

    Args:
      operands: sequence of BCSR arrays.
      dimension: int, the axis.
    """
    return BCSR.from_bcoo(
        bcoo_concatenate([mat.to_bcoo() for mat in operands], dimension=dimension)
    )


_open_to_users(__name__)
