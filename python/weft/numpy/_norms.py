"""Norms of vectors and matrices."""

import math

from weft import _core
from weft._arguments import ndim_of, normalize_axes, shape_of
from weft._jit import composite
from weft.dtypes import dtype_of, is_complex, is_inexact, real_dtype
from weft.errors import AttributeValueError, ShapeError
from weft.numpy import _reductions as r, _ufuncs as u
from weft.numpy._decompositions import require_matrices, svdvals
from weft.numpy._select import choose
from weft.numpy._shape import moveaxis
from weft.numpy._solvers import inv

_INF = math.inf
_MATRIX_ORDERS = ("fro", "nuc", 1, -1, 2, -2, _INF, -_INF)


def norm(x, ord=None, axis=None, keepdims=False):
    """Norms of vectors or matrices.

    Args:
      x: array.
      ord: which norm. Of vectors: None or 2, the root of the sum of squares; inf or -inf, the
        greatest or least absolute value; 0, how many elements are not zero; another number p, the
        sum of the powers p of the absolute values, to the power 1/p. Of matrices: None or "fro",
        as of vectors; "nuc", the sum of the singular values; 2 or -2, the greatest or least of
        them; 1 or -1, the greatest or least sum of the absolute values of a column; inf or -inf,
        of a row.
      axis: an axis, of vectors, or two, of matrices. None for all, of which there are at most two
        unless `ord` is None.
      keepdims: whether the axes stay, with size 1.

    Returns:
      Real array of a floating-point dtype.

    Raises:
      AttributeValueError: for another order, or number of axes.

    Examples:
      >>> x = wnp.array([[3.0, 4.0], [0.0, 0.0]])
      >>> wnp.linalg.norm(x).round(3)
      Array(5., dtype=float32)
      >>> wnp.linalg.norm(x, axis=1).round(3)
      Array([5., 0.], dtype=float32)
      >>> wnp.linalg.norm(x, ord=1)
      Array(4., dtype=float32)
    """
    axes = normalize_axes(axis, ndim_of(x), "norm")
    everything = axis is None and ord is None
    if not everything and len(axes) not in (1, 2):
        raise AttributeValueError(
            f"[norm] expected one axis for vectors or two for matrices; got axis={axis} for an "
            f"array of shape {shape_of(x)}"
        )
    if everything or len(axes) == 1:
        return _vector(x, ord=_vector_order("norm", ord), axes=axes, keepdims=bool(keepdims))
    return _matrix(x, ord=_matrix_order("norm", ord), axes=axes, keepdims=bool(keepdims))


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Norms of vectors.

    Args:
      x: array.
      axis: an axis, several that are taken as one, or None for all.
      keepdims: whether the axes stay, with size 1.
      ord: which norm, see `norm`. Those of orders 1, inf and -inf of integers are integers.

    Examples:
      >>> wnp.linalg.vector_norm(wnp.array([[3.0, 4.0], [5.0, 12.0]]), axis=1).round(3)
      Array([ 5., 13.], dtype=float32)
    """
    axes = normalize_axes(axis, ndim_of(x), "vector_norm")
    if ord in (1, _INF, -_INF) and not is_inexact(dtype_of(x)):
        return _integer_vector(x, ord=ord, axes=axes, keepdims=bool(keepdims))
    return _vector(x, ord=_vector_order("vector_norm", ord), axes=axes, keepdims=bool(keepdims))


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Norms of the matrices in the last two axes.

    Args:
      x: array `[..., m, n]`.
      keepdims: whether the axes stay, with size 1.
      ord: which norm, see `norm`.

    Examples:
      >>> wnp.linalg.matrix_norm(wnp.array([[1.0, -5.0], [2.0, 3.0]]), ord=np.inf)
      Array(6., dtype=float32)
    """
    require_matrices("matrix_norm", x)
    axes = (ndim_of(x) - 2, ndim_of(x) - 1)
    return _matrix(x, ord=_matrix_order("matrix_norm", ord), axes=axes, keepdims=bool(keepdims))


def _vector_order(function, order):
    if order is None:
        return 2
    if isinstance(order, str):
        raise AttributeValueError(f"[{function}] expected a number as order of a vector's norm; "
                                  f"got {order!r}")  # fmt: skip
    return float(order)


def _matrix_order(function, order):
    if order is None:
        return "fro"
    if order not in _MATRIX_ORDERS:
        raise AttributeValueError(
            f"[{function}] expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf as order of a matrix's "
            f"norm; got {order!r}"
        )
    return order


@composite(static_argnames=("ord", "axes", "keepdims"))
def _vector(x, *, ord, axes, keepdims):
    (x,) = _core.promote_dtypes_inexact(x)
    dtype = dtype_of(x)
    if r.compute_dtype(dtype) != dtype:
        # Sums of squares or powers may exceed the dtype, though their roots do not.
        x = _core.astype(x, r.compute_dtype(dtype))
        return _core.astype(_vector(x, ord=ord, axes=axes, keepdims=keepdims), dtype)
    options = {"axis": axes, "keepdims": keepdims}
    if ord == 2:
        return u.sqrt(r.sum(_squares(x), **options))
    if ord == 0:
        return r.sum(u.not_equal(x, 0), dtype=real_dtype(dtype_of(x)), **options)
    sizes = u.absolute(x)
    if ord == _INF:
        return r.max(sizes, initial=0, **options)
    if ord == -_INF:
        return r.min(sizes, **options)
    if ord == 1:
        return r.sum(sizes, **options)
    order = _core.astype(ord, dtype_of(sizes))
    total = r.sum(_core.bind("pow", *_core.broadcast_arrays(sizes, order)), **options)
    root = _core.astype(1 / ord, dtype_of(sizes))
    return _core.bind("pow", *_core.broadcast_arrays(total, root))


@composite(static_argnames=("ord", "axes", "keepdims"))
def _integer_vector(x, *, ord, axes, keepdims):
    sizes = u.absolute(x)
    if ord == 1:
        return r.sum(sizes, axes, keepdims=keepdims)
    if ord > 0:
        return r.max(sizes, axes, keepdims=keepdims, initial=0)
    return r.min(sizes, axes, keepdims=keepdims)


def _squares(x):
    return u.real(u.multiply(x, u.conj(x))) if is_complex(dtype_of(x)) else u.square(x)


@composite(static_argnames=("ord", "axes", "keepdims"))
def _matrix(x, *, ord, axes, keepdims):
    (x,) = _core.promote_dtypes_inexact(x)
    row, column = axes
    if ord == "fro":
        result = _vector(x, ord=2, axes=axes, keepdims=False)
    elif ord in (1, -1, _INF, -_INF):
        summed, other = (row, column) if abs(ord) == 1 else (column, row)
        sums = r.sum(u.absolute(x), summed, keepdims=True)
        result = r.max(sums, axes, initial=0) if ord > 0 else r.min(sums, axes)
    else:
        values = svdvals(moveaxis(x, axes, (-2, -1)))
        if ord == "nuc":
            result = r.sum(values, -1)
        else:
            result = r.max(values, -1, initial=0) if ord > 0 else r.min(values, -1)
    return r.restore_axes(result, shape_of(x), axes, keepdims)


def cond(x, p=None):
    """Condition numbers of matrices: the norm of each times that of its inverse.

    Args:
      x: array `[..., m, n]`, with as many rows as columns unless `p` is None, 2 or -2.
      p: which norm, see `norm`; None for the ratio of the greatest and least singular value.

    Raises ShapeError for matrices without elements.

    Examples:
      >>> wnp.linalg.cond(wnp.array([[4.0, 0.0], [0.0, 2.0]])).round(3)
      Array(2., dtype=float32)
    """
    require_matrices("cond", x, square=p not in (None, 2, -2))
    if 0 in shape_of(x):
        raise ShapeError(f"[cond] expected matrices with elements; got shape {shape_of(x)}")
    return _cond(x, order=2 if p is None else _matrix_order("cond", p))


@composite(static_argnames=("order",))
def _cond(x, *, order):
    (x,) = _core.promote_dtypes_inexact(x)
    if order in (2, -2):
        values = svdvals(x)
        first, last = values[..., 0], values[..., -1]
        if order == 2:
            return u.divide(first, last)
        result = u.divide(last, first)
    else:
        result = u.multiply(matrix_norm(x, ord=order), matrix_norm(inv(x), ord=order))
    undefined = u.logical_and(u.isnan(result), u.logical_not(r.any(u.isnan(x), (-2, -1))))
    return choose(undefined, _INF, result)
