"""CSR and CSC: sparse matrices by rows or by columns."""

import numpy as np

from weft import _core
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.experimental.sparse.bcsr import BCSR, bcsr_fromdense
from weft.experimental.sparse.coo import Matrix, check_matrix
from weft.tree_util import register_pytree_node_class

__all__ = ["CSC", "CSR", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense"]
__getattr__, __dir__ = _public(__name__, __all__)


class _Compressed(Matrix):
    _leaves = ("data", "indices", "indptr")

    def __init__(self, args, *, shape):
        """Args:
        args: triple (data, indices, indptr) of vectors.
        shape: pair of ints.
        """
        self.data, self.indices, self.indptr = map(_core.asarray, args)
        self.shape = check_matrix(shape, type(self).__name__)

    def tree_flatten(self):
        return self._bufs, (("shape", self.shape),)


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix whose entries are stored row by row. BCSR can do more.

    A pytree with leaves `data`, `indices` (the columns) and `indptr` (where rows begin).
    """

    @classmethod
    def fromdense(cls, mat, *, nse=None, index_dtype=np.int32):
        """The elements of a matrix that are not zero; see `bcoo_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def _as_bcoo(self):
        return BCSR(self._bufs, shape=self.shape).to_bcoo()

    def transpose(self, axes=None):
        """The transpose, a CSC matrix of the same arrays."""
        self.check_axes(axes)
        return CSC(self._bufs, shape=self.shape[::-1])


@register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix whose entries are stored column by column.

    A pytree with leaves `data`, `indices` (the rows) and `indptr` (where columns begin).
    """

    @classmethod
    def fromdense(cls, mat, *, nse=None, index_dtype=np.int32):
        """The elements of a matrix that are not zero; see `bcoo_fromdense`."""
        return csr_fromdense(_core.asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    def _as_bcoo(self):
        return self.transpose()._as_bcoo().transpose()

    def transpose(self, axes=None):
        """The transpose, a CSR matrix of the same arrays."""
        self.check_axes(axes)
        return CSR(self._bufs, shape=self.shape[::-1])


def csr_fromdense(mat, *, nse=None, index_dtype=np.int32):
    """The elements of a matrix that are not zero, as CSR.

    Args:
      mat: array with two axes.
      nse, index_dtype: as of `bcoo_fromdense`.
    """
    found = bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return CSR(found._bufs, shape=found.shape)


def csr_todense(mat):
    """The matrix with all its elements.

    Args:
      mat: CSR.
    """
    return mat.todense()


def csr_matvec(mat, v, transpose=False):
    """The product of a CSR matrix, or its transpose, and a vector.

    Args:
      mat: CSR.
      v: array with one axis.
      transpose: whether the transpose of `mat` is meant.
    """
    return (mat.T if transpose else mat) @ v


def csr_matmat(mat, B, *, transpose=False):
    """The product of a CSR matrix, or its transpose, and a matrix.

    Args:
      mat: CSR.
      B: array with two axes.
      transpose: whether the transpose of `mat` is meant.
    """
    return (mat.T if transpose else mat) @ B


_open_to_users(__name__)
