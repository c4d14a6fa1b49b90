"""COO: sparse matrices as a list of elements with their rows and columns."""

import abc

import numpy as np

from weft import _core, numpy as wnp
from weft._arguments import static_shape
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import AttributeValueError, ShapeError
from weft.experimental.sparse._base import JAXSparse
from weft.experimental.sparse.bcoo import BCOO, bcoo_fromdense
from weft.tree_util import register_pytree_node_class

__all__ = ["COO", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense"]
__getattr__, __dir__ = _public(__name__, __all__)


def check_matrix(shape, name):
    shape = static_shape(shape, name)
    if len(shape) != 2:
        raise ShapeError(f"[{name}] expected the shape of a matrix; got {shape}")
    return shape


class Matrix(JAXSparse):
    """A sparse matrix that is multiplied with dense arrays only, and is BCOO there."""

    _leaves: tuple[str, ...]

    nse = property(lambda self: _core.typeof(self.data)[0][0])

    @abc.abstractmethod
    def _as_bcoo(self) -> BCOO:
        """The same matrix."""

    @classmethod
    def tree_unflatten(cls, facts, children):
        new = object.__new__(cls)
        vars(new).update(zip(cls._leaves, children, strict=True))
        vars(new).update(facts)
        return new

    @property
    def _bufs(self):
        return tuple(getattr(self, name) for name in self._leaves)

    def todense(self):
        """The matrix with all its elements."""
        return self._as_bcoo().todense()

    def __matmul__(self, other):
        return self._as_bcoo() @ other

    def check_axes(self, axes):
        if axes is not None and tuple(axes) != (1, 0):
            raise AttributeValueError(f"[transpose] expected axes to be None or (1, 0); got {axes}")


@register_pytree_node_class
class COO(Matrix):
    """A sparse matrix: values, with their rows and columns. BCOO can do more.

    A pytree with leaves `data`, `row` and `col`.

    Attributes:
      data: vector of values.
      row, col: vectors of integers.
      shape: pair of ints.
      nse: int, the length of the vectors.
    """

    _leaves = ("data", "row", "col")

    def __init__(self, args, *, shape, rows_sorted=False, cols_sorted=False):
        """Args:
        args: triple (data, row, col) of vectors.
        shape: pair of ints.
        rows_sorted, cols_sorted: what is known of the order; not checked.
        """
        self.data, self.row, self.col = map(_core.asarray, args)
        self.shape = check_matrix(shape, "COO")
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted

    def tree_flatten(self):
        facts = (
            ("shape", self.shape),
            ("_rows_sorted", self._rows_sorted),
            ("_cols_sorted", self._cols_sorted),
        )
        return self._bufs, facts

    @classmethod
    def fromdense(cls, mat, *, nse=None, index_dtype=np.int32):
        """The elements of a matrix that are not zero; see `bcoo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def _as_bcoo(self):
        return BCOO((self.data, wnp.stack([self.row, self.col], -1)), shape=self.shape)

    def transpose(self, axes=None):
        """The matrix with rows and columns exchanged."""
        self.check_axes(axes)
        return COO(
            (self.data, self.col, self.row),
            shape=self.shape[::-1],
            rows_sorted=self._cols_sorted,
            cols_sorted=self._rows_sorted,
        )


def coo_fromdense(mat, *, nse=None, index_dtype=np.int32):
    """The elements of a matrix that are not zero, as COO.

    Args:
      mat: array with two axes.
      nse, index_dtype: as of `bcoo_fromdense`.
    """
    found = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    shape = check_matrix(found.shape, "coo_fromdense")
    row, col = found.indices[:, 0], found.indices[:, 1]
    return COO((found.data, row, col), shape=shape, rows_sorted=True)


def coo_todense(mat):
    """The matrix with all its elements.

    Args:
      mat: COO.
    """
    return mat.todense()


def coo_matvec(mat, v, transpose=False):
    """The product of a COO matrix, or its transpose, and a vector.

    Args:
      mat: COO.
      v: array with one axis.
      transpose: whether the transpose of `mat` is meant.
    """
    return (mat.T if transpose else mat) @ v


def coo_matmat(mat, B, *, transpose=False):
    """The product of a COO matrix, or its transpose, and a matrix.

    Args:
      mat: COO.
      B: array with two axes.
      transpose: whether the transpose of `mat` is meant.
    """
    return (mat.T if transpose else mat) @ B


_open_to_users(__name__)
