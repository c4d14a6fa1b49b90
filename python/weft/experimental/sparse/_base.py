"""What all sparse arrays have in common, and what warns of layouts that waste memory."""

import abc
import math
from typing import Any

from weft import _core
from weft.errors import NotImplementedRuleError, ShapeError


class SparseEfficiencyWarning(UserWarning):
    """An operation gives a sparse array that stores much more than it has to."""


class SparseEfficiencyError(ValueError):
    """An operation would give a sparse array that stores much more than it has to."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation cannot use cuSPARSE. weft never gives it: none of its operations do."""


class JAXSparse(abc.ABC):
    """Base class of the sparse arrays: an array of which only some elements are stored.

    Attributes:
      shape: tuple of ints.
      dtype: the dtype of the elements.
      nse: int, the number of elements that are stored (of one batch element).
    """

    # NumPy's arrays leave binary operators to this class.
    __array_ufunc__ = None
    __array_priority__ = 100
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    # What each kind of sparse array has.
    shape: Any
    data: Any
    _bufs: Any

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def dtype(self):
        return _core.typeof(self.data)[1]

    @property
    @abc.abstractmethod
    def nse(self):
        """The number of elements that are stored."""

    @abc.abstractmethod
    def todense(self):
        """The array with all its elements."""

    @abc.abstractmethod
    def transpose(self, axes=None):
        """The array with its axes in another order."""

    @property
    def T(self):
        return self.transpose()

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of a sparse array without axes")
        return self.shape[0]

    def __repr__(self):
        try:
            text = f"{_core.typeof(self.data)[1].name}{list(self.shape)}, nse={self.nse}"
            text += "".join(
                f", {name}={value}"
                for name in ("n_batch", "n_dense")
                if (value := getattr(self, name, 0))
            )
        except Exception:  # leaves of a tree that are no arrays
            return f"{type(self).__name__}(<invalid>)"
        return f"{type(self).__name__}({text})"

    def __pos__(self):
        return self

    def _lacks(self, what):
        raise NotImplementedRuleError(
            f"[{type(self).__name__}] {what} is not implemented: sparse.todense() makes an array, "
            "and a BCOO array may have the operation"
        )

    def __neg__(self):
        self._lacks("negation")

    def __mul__(self, other):
        self._lacks("multiplication")

    def __rmul__(self, other):
        self._lacks("multiplication")

    def __add__(self, other):
        self._lacks("addition")

    def __radd__(self, other):
        self._lacks("addition")

    def __sub__(self, other):
        self._lacks("subtraction")

    def __rsub__(self, other):
        self._lacks("subtraction")

    def __matmul__(self, other):
        self._lacks("multiplication from the right")

    def __rmatmul__(self, other):
        self._lacks("multiplication from the left")

    def __getitem__(self, item):
        self._lacks("indexing")

    def _compare(self, other):
        self._lacks("comparison")

    __lt__ = __le__ = __gt__ = __ge__ = _compare
    __eq__ = __ne__ = _compare  # pyright: ignore[reportAssignmentType]

    def sum(self, axis=None, dtype=None, keepdims=False):
        """The sum of the elements, over all axes or some."""
        self._lacks("sum")

    def block_until_ready(self):
        """Waits until the arrays that it consists of are computed. Returns self."""
        for x in self._bufs:
            x.block_until_ready()
        return self


def is_sparse(x):
    """Whether a value is one of the sparse arrays."""
    return isinstance(x, JAXSparse)


def matrix_product_dims(lhs_ndim, rhs_ndim, name):
    """The dimension_numbers of `lhs @ rhs`, and whether it sums over all axes of `rhs`.

    Of stacks of matrices, both sides have the same leading axes.

    Raises ShapeError for arguments that do not fit.
    """
    if not lhs_ndim or not rhs_ndim:
        raise ShapeError(f"[{name}] expected operands with axes; got {lhs_ndim} and {rhs_ndim}")
    if lhs_ndim <= 2 or rhs_ndim == 1:
        return ([lhs_ndim - 1], [max(rhs_ndim - 2, 0)]), ([], [])
    if rhs_ndim == 2:
        return ([lhs_ndim - 1], [0]), ([], [])
    if lhs_ndim != rhs_ndim:
        raise ShapeError(
            f"[{name}] expected stacks of matrices with as many axes; got {lhs_ndim} and {rhs_ndim}"
        )
    batch = list(range(lhs_ndim - 2))
    return ([lhs_ndim - 1], [rhs_ndim - 2]), (batch, batch)
