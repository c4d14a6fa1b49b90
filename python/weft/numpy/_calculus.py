"""Differences, trapezoid sums, polynomials, covariances, and blocks of arrays."""

import math
import operator

from weft import _core
from weft._arguments import ndim_of, normalize_axes, normalize_axis, shape_of, strong
from weft._jit import composite
from weft.dtypes import dtype_of, is_bool, is_inexact, is_integer, real_dtype, requested_dtype
from weft.errors import AttributeValueError, DTypeError, ObservationWeightsError, ShapeError
from weft.lax._shape import broadcast_to_rank, expand_dims
from weft.lax._slice import sliced
from weft.numpy import _ufuncs as u
from weft.numpy._join import concatenate
from weft.numpy._linalg import dot
from weft.numpy._matrices import diagonal
from weft.numpy._moments import average, mean
from weft.numpy._products import flattened
from weft.numpy._reductions import compute_dtype, sum as array_sum
from weft.numpy._shape import reshape, transpose


def diff(a, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours along an axis, taken `n` times; for bool, whether they differ.

    Args:
      a: array with at least one axis.
      n: how many times.
      axis: the axis, which gets shorter by `n`.
      prepend, append: values to join to the ends of the axis before.

    Raises AttributeValueError (a ValueError) for a negative `n`.

    Examples:
      >>> wnp.diff(wnp.array([1, 4, 9, 16]))
      Array([3, 5, 7], dtype=int32)
      >>> wnp.diff(wnp.array([1, 4, 9, 16]), n=2)
      Array([2, 2], dtype=int32)
    """
    n = operator.index(n)
    if n < 0:
        raise AttributeValueError(f"[diff] expected n to be at least 0; got {n}")
    axis = normalize_axis(axis, ndim_of(a), "diff")
    if n == 0:
        return _core.apart(a)
    return _diff(a, prepend, append, n=n, axis=axis)


@composite(static_argnames=("n", "axis"))
def _diff(a, prepend, append, *, n, axis):
    def widened(x):
        shape = list(shape_of(a))
        shape[axis] = 1
        return _core.broadcast_to(x, tuple(shape)) if ndim_of(x) == 0 else x

    parts = _core.promote_dtypes(*(x for x in (prepend, a, append) if x is not None))
    a = concatenate([*map(widened, parts)], axis) if len(parts) > 1 else parts[0]
    step = u.not_equal if is_bool(dtype_of(a)) else u.subtract
    # As many differences as there are elements leave none, and so do more.
    for _ in range(min(n, shape_of(a)[axis])):
        a = step(sliced(a, 1, None, axis=axis), sliced(a, 0, -1, axis=axis))
    return a


@composite
def ediff1d(ary, to_end=None, to_begin=None):
    """Differences of neighbours of the flattened array, with values joined to its ends.

    `to_begin` and `to_end` are converted to the dtype of the array. Raises DTypeError for bools.

    Examples:
      >>> wnp.ediff1d(wnp.array([1, 4, 9]), to_begin=0)
      Array([0, 3, 5], dtype=int32)
    """
    if is_bool(dtype_of(ary)):
        raise DTypeError("[ediff1d] expected an array of numbers; got dtype bool")
    parts = [diff(flattened(ary))]
    if to_begin is not None:
        parts.insert(0, flattened(_core.astype(to_begin, dtype_of(ary))))
    if to_end is not None:
        parts.append(flattened(_core.astype(to_end, dtype_of(ary))))
    return concatenate(parts)


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Integral along an axis of the line through the points `y`.

    Args:
      y: the values.
      x: the positions, of the size of the axis or of a shape that broadcasts with that of `y`; else
        they are `dx` apart.
      dx: the distance of neighbours.
      axis: the axis.

    Examples:
      >>> wnp.trapezoid(wnp.array([1.0, 3.0, 5.0]), dx=2.0)
      Array(12., dtype=float32)
    """
    own = normalize_axis(axis, ndim_of(y), "trapezoid")
    is_array = x is not None and ndim_of(x) > 1
    of_x = normalize_axis(axis, ndim_of(x), "trapezoid") if is_array else 0
    return _trapezoid(y, x, dx, axis=own, axis_of_x=of_x)


@composite(static_argnames=("axis", "axis_of_x"))
def _trapezoid(y, x, dx, *, axis, axis_of_x):
    if x is None:
        (y,) = _core.promote_dtypes_inexact(y)
    else:
        y, x = _core.promote_dtypes_inexact(y, x)
        dx = diff(x, axis=axis_of_x)
        if ndim_of(x) == 1:
            dx = reshape(dx, [-1 if i == axis else 1 for i in range(ndim_of(y))])
    neighbours = u.add(sliced(y, 1, None, axis=axis), sliced(y, 0, -1, axis=axis))
    return array_sum(u.multiply(u.multiply(neighbours, 0.5), dx), axis)


def gradient(f, *varargs, axis=None, edge_order=None):
    """Slopes along axes from the differences of neighbours, on one side at the ends.

    Args:
      f: the values, at least two along each axis.
      varargs: one for all axes, or one for each: the distance of neighbours, or the positions along
        the axis, an array of as many numbers as there are values.
      axis: an axis, several, or None for all.
      edge_order: 1 or None; higher orders are not supported.

    Returns:
      An array of the shape of `f`; a list of them for several axes.

    Raises ShapeError for axes with fewer than two values and for spacings of other shapes,
    AttributeValueError (a ValueError) for another number of spacings, NotImplementedError for
    another edge_order.

    Examples:
      >>> wnp.gradient(wnp.array([0.0, 1.0, 4.0, 9.0]))
      Array([1., 2., 4., 5.], dtype=float32)
    """
    if edge_order not in (None, 1):
        raise NotImplementedError(f"[gradient] expected edge_order 1 or None; got {edge_order}")
    axes = normalize_axes(axis, ndim_of(f), "gradient")
    if any(shape_of(f)[i] < 2 for i in axes):
        raise ShapeError(
            f"[gradient] expected at least two values along axes {axes}; got shape {shape_of(f)}"
        )
    spacings = varargs * len(axes) if len(varargs) == 1 else varargs or (None,) * len(axes)
    if len(spacings) != len(axes):
        raise AttributeValueError(
            f"[gradient] expected one spacing, or one for each of {len(axes)} axes; "
            f"got {len(spacings)}"
        )
    for i, h in zip(axes, spacings, strict=True):
        if h is not None and shape_of(h) not in ((), shape_of(f)[i : i + 1]):
            raise ShapeError(
                f"[gradient] expected a number as spacing of axis {i}, or {shape_of(f)[i]} "
                f"positions; got shape {shape_of(h)}"
            )
    slopes = [_slopes(f, h, axis=i) for i, h in zip(axes, spacings, strict=True)]
    return slopes[0] if len(slopes) == 1 else slopes


@composite(static_argnames=("axis",))
def _slopes(f, spacing, *, axis):
    weak = _core.typeof(f)[2]
    if spacing is None:
        (f,) = _core.promote_dtypes_inexact(f)
    else:
        weak = _core.result_type(f, spacing)[1]
        f, spacing = _core.promote_dtypes_inexact(f, spacing)

    def around(x, at):
        """Of each value but the first and last, the x before and the x behind."""
        return sliced(x, 0, -1, axis=at), sliced(x, 1, None, axis=at)

    steps = diff(f, axis=axis)
    positions = spacing is not None and ndim_of(spacing) == 1
    if positions:
        gaps = reshape(diff(spacing), [-1 if i == axis else 1 for i in range(ndim_of(f))])
        steps = u.divide(steps, gaps)
        (gap0, gap1), (step0, step1) = around(gaps, axis), around(steps, axis)
        weighted = u.add(u.multiply(gap1, step0), u.multiply(gap0, step1))
        inner = u.divide(weighted, u.add(gap0, gap1))
    else:
        behind = sliced(f, 0, -2, axis=axis)
        inner = u.multiply(u.subtract(sliced(f, 2, None, axis=axis), behind), 0.5)
    ends = sliced(steps, 0, 1, axis=axis), sliced(steps, -1, None, axis=axis)
    slopes = concatenate([ends[0], inner, ends[1]], axis)
    slopes = slopes if spacing is None or positions else u.divide(slopes, spacing)
    return slopes if weak else strong(slopes)


def polyval(p, x, *, unroll=16):
    """The polynomial with coefficients `p`, highest power first, at the points `x`.

    `unroll` is ignored: there is no loop.

    Examples:
      >>> wnp.polyval(wnp.array([1, 0, -2]), wnp.array([0, 1, 3]))
      Array([-2, -1,  7], dtype=int32)
    """
    return _polyval(p, x)


@composite
def _polyval(p, x):
    p, x = _core.promote_dtypes(p, x)
    result = _core.broadcast_to(_core.astype(0, dtype_of(x)), shape_of(x))
    for i in range(shape_of(p)[0]):
        result = u.add(u.multiply(result, x), p[i])
    return strong(result)


def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, dtype=None):
    """Covariance matrix of variables.

    Args:
      m: observations of several variables (rows), or of one.
      y: observations of more variables.
      rowvar: whether the rows are variables and the columns observations, or the reverse.
      bias: whether to divide by the number of observations, not by one less.
      ddof: what to subtract from that number instead.
      fweights: how often each observation was made, a vector of integers.
      aweights: how much each observation counts, a vector.
      dtype: dtype of the result, a float or complex one.

    Raises ObservationWeightsError (a RuntimeError) for weights of another number than that of the
    observations.

    Examples:
      >>> wnp.cov(wnp.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]))
      Array([[1., 2.],
             [2., 4.]], dtype=float32)
    """
    own, result = _covariances("cov", m, y, rowvar, bias, ddof, fweights, aweights, dtype)
    return result if dtype_of(result) == own else _core.astype(result, own)


def _covariances(function, m, y, rowvar, bias, ddof, fweights, aweights, dtype):
    """The dtype of the result, and the covariances in the dtype in which sums are taken."""
    if ndim_of(m) > 2 or (y is not None and ndim_of(y) > 2):
        raise ShapeError(f"[{function}] expected arrays with at most two axes")
    if dtype is not None:
        dtype = requested_dtype(dtype, function)
        if not is_inexact(dtype):
            raise AttributeValueError(
                f"[{function}] expected a float or complex dtype; got {dtype}"
            )
    if fweights is not None and not is_integer(dtype_of(fweights)):
        raise DTypeError(f"[{function}] expected integer fweights; got {dtype_of(fweights)}")
    shape = shape_of(m)
    rows = rowvar or len(shape) < 2
    count = ((1, 1, *shape)[-1] if rows else shape[0],)
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None and shape_of(weights) != count:
            raise ObservationWeightsError(
                f"[{function}] expected {name} of shape {count}, one for each observation; got "
                f"{shape_of(weights)}"
            )
    ddof = (0 if bias else 1) if ddof is None else ddof
    given = [x for x in (m, y) if x is not None]
    _core.check_ranks(function, tuple(given))
    own = dtype_of(_core.promote_dtypes_inexact(*given)[0]) if dtype is None else dtype
    return own, _cov(m, y, fweights, aweights, rowvar=bool(rowvar), ddof=float(ddof), dtype=dtype)


@composite(static_argnames=("rowvar", "ddof", "dtype"))
def _cov(m, y, fweights, aweights, *, rowvar, ddof, dtype):
    def rows(x):
        x = x if dtype is None else _core.astype(x, dtype)
        matrix = broadcast_to_rank(x, 2)
        return matrix if rowvar or ndim_of(x) < 2 else transpose(matrix)

    if y is None:
        m = rows(*_core.promote_dtypes_inexact(m))
    else:
        m = concatenate([rows(x) for x in _core.promote_dtypes_inexact(m, y)])
    m = _core.astype(m, compute_dtype(dtype_of(m)))
    weights, divisor = _observations(m, fweights, aweights, ddof)
    center = mean(m, 1, keepdims=True) if weights is None else average(m, 1, weights, False, True)
    centered = u.subtract(m, center)
    conjugated = u.conj(transpose(centered))
    if weights is not None:
        conjugated = u.multiply(conjugated, expand_dims(weights, (1,)))
    result = u.divide(dot(centered, conjugated), divisor)
    return result[0, 0] if shape_of(result) == (1, 1) else result


def _observations(m, fweights, aweights, ddof):
    """The weights of the observations, None for equal ones, and what their sum is divided by."""
    real = real_dtype(dtype_of(m))
    given = [None if w is None else _core.astype(u.absolute(w), real) for w in (fweights, aweights)]
    if given == [None, None]:
        return None, shape_of(m)[1] - ddof if shape_of(m)[1] else math.nan
    weights = given[0] if given[1] is None else given[1]
    if None not in given:
        weights = u.multiply(*given)
    total = array_sum(weights)
    if given[1] is None:
        return weights, u.subtract(total, ddof)
    lost = u.divide(array_sum(u.multiply(weights, given[1])), total)
    return weights, u.subtract(total, u.multiply(lost, ddof))


def corrcoef(x, y=None, rowvar=True, dtype=None):
    """Correlation coefficients of variables: the covariances of variables of variance 1.

    For the arguments see `cov`.

    Examples:
      >>> wnp.corrcoef(wnp.array([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]])).round(3)
      Array([[ 1., -1.],
             [-1.,  1.]], dtype=float32)
    """
    own, c = _covariances("corrcoef", x, y, rowvar, False, None, None, None, dtype)
    result = _correlations(c)
    return result if dtype_of(result) == own else _core.astype(result, own)


@composite
def _correlations(c):
    if ndim_of(c) == 0:
        return u.divide(c, c)
    scale = u.sqrt(u.real(diagonal(c)))
    return u.divide(u.divide(c, expand_dims(scale, (1,))), expand_dims(scale, (0,)))


def block(arrays):
    """Joins nested lists of arrays: the innermost along the last axis, the next along the one
    before, and so on.

    Raises AttributeValueError (a ValueError) for lists of different depths.

    Examples:
      >>> a, b = wnp.ones((2, 1)), wnp.zeros((2, 2))
      >>> wnp.block([[a, b], [b, a]])
      Array([[1., 0., 0.],
             [1., 0., 0.],
             [0., 0., 1.],
             [0., 0., 1.]], dtype=float32)
    """

    def depth(x):
        return 1 + max(map(depth, x)) if isinstance(x, list) and x else int(isinstance(x, list))

    def rank(x):
        return max(map(rank, x)) if isinstance(x, list) else ndim_of(x)

    levels = depth(arrays)
    ndim = max(rank(arrays), levels)

    def joined(x, level):
        if isinstance(x, list) == (level == levels):
            raise AttributeValueError(
                "[block] expected lists of arrays, or lists of lists, but not both in one list"
            )
        if level == levels:
            return broadcast_to_rank(x, ndim)
        return concatenate([joined(part, level + 1) for part in x], level - levels)

    return joined(arrays, 0)
