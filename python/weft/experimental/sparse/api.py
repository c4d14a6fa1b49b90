"""Sparse arrays of every format: empty ones, and unit matrices."""

import operator

import numpy as np

from weft import numpy as wnp
from weft._arguments import static_shape
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import AttributeValueError
from weft.experimental.sparse.bcoo import BCOO, bcoo_fromdense
from weft.experimental.sparse.bcsr import BCSR
from weft.experimental.sparse.coo import COO
from weft.experimental.sparse.csr import CSC, CSR

__all__ = ["empty", "eye"]
__getattr__, __dir__ = _public(__name__, __all__)


def _in_format(mat, sparse_format):
    """A BCOO array in another format."""
    if sparse_format == "bcoo":
        return mat
    if sparse_format == "bcsr":
        return BCSR.from_bcoo(mat)
    if mat.ndim != 2:
        raise AttributeValueError(f"expected two axes for {sparse_format!r}; got {mat.shape}")
    if sparse_format == "coo":
        return COO((mat.data, mat.indices[:, 0], mat.indices[:, 1]), shape=mat.shape)
    if sparse_format == "csr":
        return CSR(BCSR.from_bcoo(mat)._bufs, shape=mat.shape)
    if sparse_format == "csc":
        return CSC(BCSR.from_bcoo(mat.T)._bufs, shape=mat.shape)
    raise AttributeValueError(
        f"expected sparse_format to be 'bcoo', 'bcsr', 'coo', 'csr' or 'csc'; got {sparse_format!r}"
    )


def empty(
    shape, dtype=None, index_dtype="int32", sparse_format="bcoo", *, nse=0, n_batch=0, n_dense=0
):
    """A sparse array of zeros.

    Args:
      shape: ints.
      dtype: of the elements; None for float32 (float64 if 64-bit dtypes are on).
      index_dtype: integer dtype.
      sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
      nse: how many entries are stored, all of them padding.
      n_batch, n_dense: how many axes are batch and dense axes.

    Raises AttributeValueError for arguments that do not fit.
    """
    shape = static_shape(shape, "empty")
    n_sparse = len(shape) - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0 or nse < 0:
        raise AttributeValueError(
            f"[empty] expected n_batch and n_dense of sum up to {len(shape)} and nse of 0 or more; "
            f"got {n_batch}, {n_dense} and {nse}"
        )
    batch, sizes = shape[:n_batch], shape[n_batch : n_batch + n_sparse]
    data = wnp.zeros((*batch, nse, *shape[n_batch + n_sparse :]), dtype)
    padding = wnp.asarray(np.asarray(sizes, index_dtype))
    indices = wnp.broadcast_to(padding, (*batch, nse, n_sparse))
    flags = {"indices_sorted": True, "unique_indices": nse == 0}
    return _in_format(BCOO((data, indices), shape=shape, **flags), sparse_format)


def eye(
    N, M=None, k=0, dtype=None, index_dtype="int32", sparse_format="bcoo", *, n_batch=0, n_dense=0
):
    """A sparse matrix with ones along a diagonal.

    Args:
      N, M: ints, the numbers of rows and columns; M=None for as many as rows.
      k: int, which diagonal: above the main one if positive.
      dtype: of the elements; None for float32 (float64 if 64-bit dtypes are on).
      index_dtype: integer dtype.
      sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
      n_batch, n_dense: how many axes are batch and dense axes.

    Examples:
      >>> weft.experimental.sparse.eye(3).todense()
      Array([[1., 0., 0.],
             [0., 1., 0.],
             [0., 0., 1.]], dtype=float32)
    """
    N, k = operator.index(N), operator.index(k)
    M = N if M is None else operator.index(M)
    if n_batch or n_dense:
        # At most one element of a row is not zero.
        mat = wnp.eye(N, M, k, dtype)
        one = 1 if n_batch else None
        mat = bcoo_fromdense(
            mat, nse=one, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
        )
        return _in_format(mat, sparse_format)
    rows = np.arange(max(-k, 0), max(min(N, M - k), max(-k, 0)))
    indices = np.stack([rows, rows + k], 1).astype(index_dtype)
    flags = {"indices_sorted": True, "unique_indices": True}
    data = wnp.ones(len(rows), dtype)
    return _in_format(BCOO((data, wnp.asarray(indices)), shape=(N, M), **flags), sparse_format)


_open_to_users(__name__)
