"""Ranges, grids and constant matrices; triangles and diagonals of matrices."""

import math
import operator

import numpy as np

from weft import _core
from weft._arguments import ndim_of, normalize_axis, shape_of, static_int, strong
from weft._dims import is_symbolic_dim, max_dim, min_dim, to_size
from weft._jit import composite
from weft.dtypes import (
    default_float,
    default_int,
    dtype_of,
    is_inexact,
    is_integer,
    requested_dtype,
    to_inexact_dtype,
)
from weft.errors import AttributeValueError, ShapeError
from weft.lax._creation import broadcasted_iota, iota
from weft.lax._shape import broadcast_in_dim, concatenate, expand_dims, pad, reshape, transpose
from weft.lax._sharding import placed
from weft.lax._slice import slice as lax_slice
from weft.numpy import _ufuncs as u
from weft.numpy._creation import on_host
from weft.numpy._division_powers import power
from weft.numpy._reductions import sum as array_sum
from weft.numpy._select import choose

_INT32 = np.dtype("int32")
_NUMBERS = (int, float, complex)


def _count(num, function):
    num = static_int(num, function, "num")
    if num < 0:
        raise AttributeValueError(f"[{function}] expected num to be at least 0; got {num}")
    return num


def linspace(
    start,
    stop,
    num=50,
    endpoint=True,
    retstep=False,
    dtype=None,
    axis=0,
    *,
    device=None,
):
    """`num` evenly spaced numbers from `start` to `stop`.

    Args:
      start, stop: numbers or arrays, which broadcast together.
      num: how many.
      endpoint: whether `stop` is the last of them, or the one after the last.
      retstep: whether to return also the distance between two, as a pair.
      dtype: dtype of the result, in which, or in the float dtype of whose precision, it is
        computed; else the float dtype that `start` and `stop` promote to.
      axis: axis of the result along which the numbers stand, if `start` and `stop` have axes.
      device: where the result is to be: one of `weft.devices()`, or None for the default one.

    Examples:
      >>> wnp.linspace(0.0, 1.0, 5)
      Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
      >>> wnp.linspace(0.0, 1.0, 4, endpoint=False)
      Array([0.  , 0.25, 0.5 , 0.75], dtype=float32)
    """
    num = _count(num, "linspace")
    dtype = _requested_or_inexact("linspace", start, stop, dtype)
    computed = to_inexact_dtype(dtype)
    if isinstance(start, _NUMBERS) and isinstance(stop, _NUMBERS) and on_host(num):
        values, step = np.linspace(start, stop, num, endpoint, retstep=True)
        values = np.floor(values) if is_integer(dtype) else values
        values = _core.asarray(values.astype(dtype))
        step = _core.astype(step, computed) if retstep else None
    else:
        values = _linspace(
            start, stop, num=num, endpoint=bool(endpoint), computed=computed, dtype=dtype, axis=axis
        )
        if retstep:
            step = _spacing(start, stop, intervals=num - bool(endpoint), dtype=computed)
    values = placed(values, device)
    return (values, step) if retstep else values


def _requested_or_inexact(function, start, stop, dtype):
    """The dtype that is asked for, else the inexact one that both ends promote to."""
    _ = shape_of(start), shape_of(stop)  # a name of a dtype would promote too
    if dtype is not None:
        return requested_dtype(dtype, function)
    return to_inexact_dtype(_core.result_type(start, stop)[0])


@composite(static_argnames=("intervals", "dtype"))
def _spacing(start, stop, *, intervals, dtype):
    if intervals < 1:
        return _core.astype(math.nan, dtype)
    return u.divide(u.subtract(_core.astype(stop, dtype), _core.astype(start, dtype)), intervals)


@composite(static_argnames=("num", "endpoint", "computed", "dtype", "axis"), broadcasts=True)
def _linspace(start, stop, *, num, endpoint, computed, dtype, axis):
    start, stop = _core.broadcast_arrays(
        _core.astype(start, computed), _core.astype(stop, computed)
    )
    ndim = ndim_of(start) + 1
    axis = normalize_axis(axis, ndim, "linspace")
    intervals = max_dim(num - 1 if endpoint else num, 0)
    first, last = expand_dims(start, (axis,)), expand_dims(stop, (axis,))
    fraction = u.divide(iota(computed, intervals), max_dim(intervals, 1))
    fraction = reshape(fraction, [intervals if i == axis else 1 for i in range(ndim)])
    values = u.add(u.multiply(first, u.subtract(1, fraction)), u.multiply(last, fraction))
    if endpoint and num > 0:
        # The last one exactly.
        if is_symbolic_dim(num):
            end = _core.bind("select_n", u.greater(num, 1), first, last)
        else:
            end = last if num > 1 else first
        values = concatenate([values, end], axis)
    if is_integer(dtype):
        values = u.floor(values)
    return _core.astype(values, dtype)


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """`base` to the powers `linspace(start, stop, num)`.

    `endpoint`, `dtype` and `axis` are those of `linspace`.

    Examples:
      >>> wnp.logspace(0, 3, 4).round(3)
      Array([   1.,   10.,  100., 1000.], dtype=float32)
      >>> wnp.logspace(0, 3, 4, base=2).round(3)
      Array([1., 2., 4., 8.], dtype=float32)
    """
    dtype = _requested_or_inexact("logspace", start, stop, dtype)
    _core.check_ranks("logspace", (start, stop, base))
    exponents = linspace(start, stop, num, endpoint, dtype=to_inexact_dtype(dtype), axis=axis)
    return _core.astype(power(base, exponents), dtype)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """`num` numbers from `start` to `stop`, each the same multiple of the one before.

    The two have the same sign and are not zero; NaN otherwise. See `linspace` for the arguments.

    Examples:
      >>> wnp.geomspace(1, 8, 4).round(3)
      Array([1., 2., 4., 8.], dtype=float32)
    """
    num = _count(num, "geomspace")
    dtype = _requested_or_inexact("geomspace", start, stop, dtype)
    return _geomspace(start, stop, num=num, endpoint=bool(endpoint), dtype=dtype, axis=axis)


@composite(static_argnames=("num", "endpoint", "dtype", "axis"), broadcasts=True)
def _geomspace(start, stop, *, num, endpoint, dtype, axis):
    computed = to_inexact_dtype(dtype)
    start, stop = _core.broadcast_arrays(
        _core.astype(start, computed), _core.astype(stop, computed)
    )
    axis = normalize_axis(axis, ndim_of(start) + 1, "geomspace")
    zeros = u.multiply(start, 0)
    exponents = linspace(zeros, u.add(zeros, 1), num, endpoint, axis=axis)
    first = expand_dims(start, (axis,))
    ratio = expand_dims(u.divide(stop, start), (axis,))
    return _core.astype(u.multiply(first, power(ratio, exponents)), dtype)


def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """Coordinate arrays of the grid spanned by one-dimensional arrays.

    Args:
      xi: the coordinates along each axis; scalars count as one coordinate.
      copy: must be true.
      sparse: whether to leave axes of size 1 unbroadcast.
      indexing: "ij" for axes in the order of the arguments, "xy" for the first two exchanged.

    Returns:
      A tuple of as many arrays.

    Raises ShapeError for arrays that are not vectors, AttributeValueError (a ValueError) for
    another `indexing` or `copy`.

    Examples:
      >>> x, y = wnp.meshgrid(wnp.array([1, 2, 3]), wnp.array([10, 20]))
      >>> x
      Array([[1, 2, 3],
             [1, 2, 3]], dtype=int32)
      >>> y
      Array([[10, 10, 10],
             [20, 20, 20]], dtype=int32)
    """
    if not copy:
        raise AttributeValueError(f"[meshgrid] expected copy to be True; got {copy!r}")
    if indexing not in ("xy", "ij"):
        raise AttributeValueError(f"[meshgrid] expected indexing 'xy' or 'ij'; got {indexing!r}")
    if any(ndim_of(x) != 1 for x in xi):
        raise ShapeError(
            f"[meshgrid] expected one-dimensional arrays; got shapes {[shape_of(x) for x in xi]}"
        )
    order = list(range(len(xi)))
    if indexing == "xy" and len(xi) >= 2:
        order[:2] = [1, 0]
    sizes = [1] * len(xi)
    for x, axis in zip(xi, order, strict=True):
        sizes[axis] = shape_of(x)[0] if shape_of(x) else 1
    results = []
    for x, axis in zip(xi, order, strict=True):
        shape = [sizes[axis] if i == axis else 1 for i in range(len(xi))] if sparse else sizes
        x = reshape(x, (sizes[axis],))
        results.append(broadcast_in_dim(x, shape, (axis,)))
    return tuple(results)


def eye(N, M=None, k=0, dtype=None, *, device=None):
    """An N by M matrix with ones on diagonal `k` (above the main one if positive), else zeros.

    With a device, the result is there; see `full`.

    Raises AttributeValueError (a ValueError) for negative sizes, and for a `k` that is no integer,
    which may be traced.

    Examples:
      >>> wnp.eye(2, 3, k=1)
      Array([[0., 1., 0.],
             [0., 0., 1.]], dtype=float32)
    """
    dtype = default_float() if dtype is None else requested_dtype(dtype, "eye")
    n = static_int(N, "eye", "N")
    m = n if M is None else static_int(M, "eye", "M")
    if n < 0 or m < 0:
        raise AttributeValueError(f"[eye] expected non-negative sizes; got {n} and {m}")
    if shape_of(k) or is_inexact(dtype_of(k)):
        raise AttributeValueError(f"[eye] expected k to be an integer; got {k!r}")
    if isinstance(k, _core.Tracer):
        k = _core.astype(k, _INT32)
    else:
        k = min_dim(max_dim(operator.index(k), -n), m)  # beyond the matrix there are none
        if on_host(n * m):
            return placed(_core.asarray(np.eye(n, m, k).astype(dtype)), device)
    return placed(_core.astype(_triangle_mask(n, m, k, "eq"), dtype), device)


def identity(n, dtype=None):
    """The n by n identity matrix.

    `dtype` is that of the result, the default float dtype if None.

    Examples:
      >>> wnp.identity(2, dtype="int32")
      Array([[1, 0],
             [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    """An N by M matrix with ones on and below diagonal `k`, zeros above.

    `dtype` is that of the result, the default float dtype if None. Raises OverflowError for a `k`
    beyond the default integer dtype.

    Examples:
      >>> wnp.tri(3, dtype="int32")
      Array([[1, 0, 0],
             [1, 1, 0],
             [1, 1, 1]], dtype=int32)
    """
    dtype = requested_dtype(float if dtype is None else dtype, "tri")
    n = static_int(N, "tri", "N")
    m = n if M is None else static_int(M, "tri", "M")
    if isinstance(k, _core.Tracer):
        k = _core.astype(k, _INT32)
    else:
        k = _within(k, n, m)
        if on_host(n * m):
            return _core.asarray(np.tri(n, m, k).astype(dtype))
    return _core.astype(_triangle_mask(n, m, k, "ge"), dtype)


def _within(k, n, m):
    """The number of a diagonal, or of the nearest one at an n by m matrix; OverflowError for one
    beyond the default integer dtype, as in jax."""
    if is_symbolic_dim(k):
        return k
    k = operator.index(k)
    dtype = default_int()
    if not np.iinfo(dtype).min <= k <= np.iinfo(dtype).max:
        raise OverflowError(f"expected the number of a diagonal in the range of {dtype}; got {k}")
    return k if is_symbolic_dim(n) or is_symbolic_dim(m) else min(max(k, -n - 1), m)


def _triangle_mask(n, m, k, comparison):
    """row + k compared with column, for an n by m matrix."""
    rows = broadcasted_iota(_INT32, (n, m), 0)
    columns = broadcasted_iota(_INT32, (n, m), 1)
    if isinstance(k, _core.Tracer) or is_symbolic_dim(k):
        rows = _core.bind("add", rows, _core.broadcast_to(_core.astype(k, _INT32), (n, m)))
    elif k:
        rows = _core.bind("add", rows, k)
    return _core.bind(comparison, rows, columns)


def tril(m, k=0):
    """The last two axes with the elements above diagonal `k` set to zero.

    Examples:
      >>> wnp.tril(wnp.array([[1, 2], [3, 4]]))
      Array([[1, 0],
             [3, 4]], dtype=int32)
    """
    return _triangle("tril", m, to_size(k))


def triu(m, k=0):
    """The last two axes with the elements below diagonal `k` set to zero.

    Examples:
      >>> wnp.triu(wnp.array([[1, 2], [3, 4]]))
      Array([[1, 2],
             [0, 4]], dtype=int32)
    """
    return _triangle("triu", m, to_size(k))


def _triangle(function, m, k):
    if ndim_of(m) < 2:
        raise ShapeError(f"[{function}] expected at least two axes; got shape {shape_of(m)}")
    return _masked_triangle(m, k=k, comparison="ge" if function == "tril" else "le")


@composite(static_argnames=("k", "comparison"))
def _masked_triangle(m, *, k, comparison):
    rows, columns = shape_of(m)[-2:]
    mask = _triangle_mask(rows, columns, _within(k, rows, columns), comparison)
    return choose(mask, m, _core.astype(0, dtype_of(m)))


def diag(v, k=0):
    """Diagonal `k` of a matrix; or for a one-dimensional array the matrix that has it there.

    Raises ShapeError for other than one or two axes.

    Examples:
      >>> wnp.diag(wnp.array([[1, 2], [3, 4]]))
      Array([1, 4], dtype=int32)
      >>> wnp.diag(wnp.array([1, 2]))
      Array([[1, 0],
             [0, 2]], dtype=int32)
    """
    ndim = ndim_of(v)
    if ndim == 1:
        return _diagonal_matrix(v, k=operator.index(k))
    if ndim == 2:
        return diagonal(v, k)
    raise ShapeError(f"[diag] expected one or two axes; got shape {shape_of(v)}")


def diagflat(v, k=0):
    """The matrix that has the flattened array on diagonal `k`.

    Examples:
      >>> wnp.diagflat(wnp.array([[1], [2]]))
      Array([[1, 0],
             [0, 2]], dtype=int32)
    """
    return strong(_diagonal_matrix(v, k=operator.index(k)))


@composite(static_argnames=("k",))
def _diagonal_matrix(v, *, k):
    v = reshape(v, (math.prod(shape_of(v)),))
    before, after = max(-k, 0), max(k, 0)
    zero = _core.astype(0, dtype_of(v), _core.typeof(v)[2])
    rows = pad(v, zero, [(before, after, 0)])
    n = shape_of(rows)[0]
    rows = broadcast_in_dim(rows, (n, n), (0,))
    return choose(_triangle_mask(n, n, k, "eq"), rows, zero)


def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonal of the matrices that stand along two axes.

    Args:
      a: array with at least two axes.
      offset: which diagonal, counted upwards from the main one.
      axis1, axis2: the axes of rows and of columns.

    Returns:
      Array without the two axes, with the diagonal as last axis.

    Raises ShapeError for fewer than two axes, or one axis twice.

    Examples:
      >>> wnp.diagonal(wnp.array([[1, 2, 3], [4, 5, 6]]), offset=1)
      Array([2, 6], dtype=int32)
    """
    ndim = ndim_of(a)
    if ndim < 2:
        raise ShapeError(f"[diagonal] expected at least two axes; got shape {shape_of(a)}")
    axis1 = normalize_axis(axis1, ndim, "diagonal")
    axis2 = normalize_axis(axis2, ndim, "diagonal")
    if axis1 == axis2:
        raise ShapeError(f"[diagonal] expected two different axes; got {axis1} twice")
    return _diagonal(a, offset=operator.index(offset), axis1=axis1, axis2=axis2)


@composite(static_argnames=("offset", "axis1", "axis2"))
def _diagonal(a, *, offset, axis1, axis2):
    others = [axis for axis in range(ndim_of(a)) if axis not in (axis1, axis2)]
    a = transpose(a, [*others, axis1, axis2])
    *batch, rows, columns = shape_of(a)
    if rows == columns and offset == 0:  # the standard's rule for weak types here
        a = strong(a)
    top, left = max(-offset, 0), max(offset, 0)
    length = max_dim(0, min_dim(rows - top, columns - left))
    start = [0] * len(batch) + [min_dim(top, rows), min_dim(left, columns)]
    limit = [*batch, start[-2] + length, start[-1] + length]
    square = lax_slice(a, start, limit)
    # Of a flattened square matrix the diagonal is every (length + 1)-th element.
    flat = reshape(square, [*batch, length * length])
    if length in (0, 1):
        return flat
    strides = [1] * len(batch) + [length + 1]
    return lax_slice(flat, [0] * (len(batch) + 1), shape_of(flat), strides)


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """Sum of the diagonal of the matrices that stand along two axes; see `diagonal` and `sum`.

    Examples:
      >>> wnp.trace(wnp.array([[1, 2], [3, 4]]))
      Array(5, dtype=int32)
    """
    return array_sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


def vander(x, N=None, increasing=False):
    """The matrix of the powers 0 to N - 1 of a one-dimensional array, highest power first.

    The powers fall from left to right, or rise where `increasing`. Raises ShapeError for an array
    that is no vector, AttributeValueError (a ValueError) for a negative N.

    Examples:
      >>> wnp.vander(wnp.array([2, 3]), 3)
      Array([[4, 2, 1],
             [9, 3, 1]], dtype=int32)
    """
    if ndim_of(x) != 1:
        raise ShapeError(f"[vander] expected a one-dimensional array; got shape {shape_of(x)}")
    count = shape_of(x)[0] if N is None else static_int(N, "vander", "N")
    if count < 0:
        raise AttributeValueError(f"[vander] expected N of at least 0; got {count}")
    return _vander(x, count=count, increasing=bool(increasing))


@composite(static_argnames=("count", "increasing"))
def _vander(x, *, count, increasing):
    exponents = range(count) if increasing else range(count - 1, -1, -1)
    columns = [expand_dims(power(x, exponent), (1,)) for exponent in exponents]
    if not columns:
        return broadcast_in_dim(_core.astype(0, dtype_of(x)), (shape_of(x)[0], 0), ())
    return strong(concatenate(columns, 1))


def tril_indices(n, k=0, m=None):
    """Row and column numbers of the elements on and below diagonal `k` of an n by m matrix.

    Examples:
      >>> rows, columns = wnp.tril_indices(3, k=-1)
      >>> wnp.arange(9).reshape(3, 3)[rows, columns]
      Array([3, 6, 7], dtype=int32)
    """
    return _indices_of(np.tril_indices, n, k, m)


def triu_indices(n, k=0, m=None):
    """Row and column numbers of the elements on and above diagonal `k` of an n by m matrix.

    Examples:
      >>> rows, columns = wnp.triu_indices(3, k=1)
      >>> wnp.arange(9).reshape(3, 3)[rows, columns]
      Array([1, 2, 5], dtype=int32)
    """
    return _indices_of(np.triu_indices, n, k, m)


def _indices_of(triangle, n, k, m):
    numbers = (operator.index(x) for x in (n, k, n if m is None else m))
    return tuple(map(_core.asarray, triangle(*numbers)))


def diag_indices(n, ndim=2):
    """The index arrays of the main diagonal of an array with `ndim` axes of size `n`.

    Raises AttributeValueError (a ValueError) for negative numbers.

    Examples:
      >>> wnp.zeros((2, 2)).at[wnp.diag_indices(2)].set(7.0)
      Array([[7., 0.],
             [0., 7.]], dtype=float32)
    """
    if n < 0 or ndim < 0:
        raise AttributeValueError(
            f"[diag_indices] expected non-negative numbers; got n={n} and ndim={ndim}"
        )
    return (_core.asarray(np.arange(operator.index(n))),) * ndim


def tril_indices_from(arr, k=0):
    """`tril_indices` for the shape of a matrix.

    Examples:
      >>> x = wnp.array([[1, 2], [3, 4]])
      >>> x[wnp.tril_indices_from(x)]
      Array([1, 3, 4], dtype=int32)
    """
    return tril_indices(*_matrix_sizes("tril_indices_from", arr, k))


def triu_indices_from(arr, k=0):
    """`triu_indices` for the shape of a matrix.

    Examples:
      >>> x = wnp.array([[1, 2], [3, 4]])
      >>> x[wnp.triu_indices_from(x)]
      Array([1, 2, 4], dtype=int32)
    """
    return triu_indices(*_matrix_sizes("triu_indices_from", arr, k))


def _matrix_sizes(function, arr, k):
    """The arguments of `tril_indices` for a matrix."""
    shape = shape_of(arr)
    if len(shape) != 2:
        raise ShapeError(f"[{function}] expected a matrix; got shape {shape}")
    return shape[0], k, shape[1]


def diag_indices_from(arr):
    """`diag_indices` for the shape of an array whose axes have one size.

    Raises ShapeError for fewer than two axes, or axes of different sizes.

    Examples:
      >>> x = wnp.array([[1, 2], [3, 4]])
      >>> x[wnp.diag_indices_from(x)]
      Array([1, 4], dtype=int32)
    """
    shape = shape_of(arr)
    if len(shape) < 2 or len(set(shape)) > 1:
        raise ShapeError(
            f"[diag_indices_from] expected at least two axes of one size; got shape {shape}"
        )
    return diag_indices(shape[0], len(shape))
