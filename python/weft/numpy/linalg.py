"""Linear algebra: decompositions, systems of equations, norms, products.

Matrices lie in the last two axes of arrays; axes before these count matrices. Integers become
floats; decompositions are there for float32, float64, complex64 and complex128.
"""

from weft import _core
from weft._arguments import (
    ndim_of as _ndim_of,
    normalize_axis as _normalize_axis,
    shape_of as _shape_of,
)
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import ShapeError as _ShapeError
from weft.lax._sharding import split_as
from weft.numpy import _linalg, _matrices
from weft.numpy._decompositions import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    require_matrices as _require_matrices,
    svd,
    svdvals,
)
from weft.numpy._norms import cond, matrix_norm, norm, vector_norm
from weft.numpy._shape import matrix_transpose as _matrix_transpose
from weft.numpy._solvers import (
    det,
    inv,
    lstsq,
    matrix_power,
    matrix_rank,
    multi_dot,
    pinv,
    slogdet,
    solve,
    tensorinv,
    tensorsolve,
)

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]
__getattr__, __dir__ = _public(__name__, __all__)


def cross(x1, x2, /, *, axis=-1):
    """Cross products of vectors with three components along an axis.

    The other axes broadcast together. See `weft.numpy.cross` for vectors with two components.

    Raises AxisError for an axis that is not there, ShapeError for vectors of other than three
    components.

    Examples:
      >>> wnp.linalg.cross(wnp.array([[1], [0], [0]]), wnp.array([[0], [1], [0]]), axis=0)
      Array([[0],
             [0],
             [1]], dtype=int32)
    """
    for x in (x1, x2):
        if _shape_of(x)[_normalize_axis(axis, _ndim_of(x), "cross")] != 3:
            raise _ShapeError(
                f"[cross] expected vectors with three components along axis {axis}; got shapes "
                f"{_shape_of(x1)} and {_shape_of(x2)}"
            )
    return _linalg.cross(x1, x2, axis=axis)


def diagonal(x, /, *, offset=0):
    """The diagonals of matrices `[..., m, n]`, `offset` counted upwards from the main one.

    Examples:
      >>> wnp.linalg.diagonal(wnp.arange(8).reshape(2, 2, 2))
      Array([[0, 3],
             [4, 7]], dtype=int32)
    """
    _require_matrices("diagonal", x)
    return _matrices.diagonal(x, offset, -2, -1)


def matmul(x1, x2, /, *, precision=None, preferred_element_type=None):
    """Matrix product over the last two axes; see `weft.numpy.matmul`.

    Examples:
      >>> wnp.linalg.matmul(wnp.array([[1, 2], [3, 4]]), wnp.array([10, 1]))
      Array([12, 34], dtype=int32)
    """
    return _linalg.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


def matrix_transpose(x, /):
    """The last two axes exchanged.

    Examples:
      >>> wnp.linalg.matrix_transpose(wnp.zeros((2, 3, 4))).shape
      (2, 4, 3)
    """
    return _matrix_transpose(x)


def outer(x1, x2, /):
    """Matrix of the products of each element of `x1` (rows) with each of `x2` (columns).

    Raises ShapeError for other than two vectors.

    Examples:
      >>> wnp.linalg.outer(wnp.array([1, 2]), wnp.array([3, 4, 5]))
      Array([[ 3,  4,  5],
             [ 6,  8, 10]], dtype=int32)
    """
    if _ndim_of(x1) != 1 or _ndim_of(x2) != 1:
        raise _ShapeError(
            f"[outer] expected two vectors; got shapes {_shape_of(x1)} and {_shape_of(x2)}"
        )
    return _linalg.outer(x1, x2)


def tensordot(x1, x2, /, *, axes=2, precision=None, preferred_element_type=None, out_sharding=None):
    """Product summed over several axes; see `weft.numpy.tensordot`.

    `out_sharding` is None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> wnp.linalg.tensordot(wnp.ones((2, 3, 4)), wnp.ones((3, 4, 5))).shape
      (2, 5)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding,
            "tensordot",
            lambda: tensordot(
                x1,
                x2,
                axes=axes,
                precision=precision,
                preferred_element_type=preferred_element_type,
            ),
        )
    return _linalg.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type
    )


def trace(x, /, *, offset=0, dtype=None):
    """Sums of the diagonals of matrices `[..., m, n]`; see `weft.numpy.trace`.

    `dtype` is that of the sums.

    Examples:
      >>> wnp.linalg.trace(wnp.arange(8).reshape(2, 2, 2))
      Array([ 3, 11], dtype=int32)
    """
    _require_matrices("trace", x)
    return _matrices.trace(x, offset, -2, -1, dtype)


def vecdot(x1, x2, /, *, axis=-1, precision=None, preferred_element_type=None):
    """Products of vectors summed over an axis, `x1` conjugated; see `weft.numpy.vecdot`.

    `precision` and `preferred_element_type` are those of `tensordot`.

    Examples:
      >>> wnp.linalg.vecdot(wnp.array([[1, 2], [3, 4]]), wnp.array([10, 1]))
      Array([12, 34], dtype=int32)
    """
    _core.check_ranks("vecdot", (x1, x2))
    return _linalg.vecdot(
        x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type
    )


_open_to_users(__name__)
