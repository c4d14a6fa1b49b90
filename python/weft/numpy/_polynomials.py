"""Polynomials, as vectors of their coefficients, that of the highest power first."""

import math

import numpy as np

from weft import _core
from weft._arguments import ndim_of, shape_of, static_int, strong
from weft._jit import composite
from weft.dtypes import dtype_of, finfo, to_complex_dtype
from weft.errors import AttributeValueError, AxisError, ShapeError
from weft.lax import linalg as lax_linalg
from weft.lax._creation import broadcasted_iota
from weft.lax._shape import concatenate
from weft.lax._sort import sort
from weft.numpy import _reductions as r, _ufuncs as u
from weft.numpy._join import roll
from weft.numpy._matrices import eye, vander
from weft.numpy._products import flattened
from weft.numpy._select import choose
from weft.numpy._signal import convolve
from weft.numpy._solvers import inv, lstsq
from weft.numpy._take import take_along_axis


def _require_vectors(function, **arrays):
    for name, x in arrays.items():
        if ndim_of(x) != 1:
            raise ShapeError(
                f"[{function}] expected {name} to be one-dimensional; got shape {shape_of(x)}"
            )


def _zeros(shape, dtype):
    return _core.broadcast_to(_core.astype(0, dtype), shape)


def _without_leading_zeros(p, tolerance=0.0):
    """The coefficients from the first on that is above `tolerance`, or NaN; they must be known."""
    known = u.logical_not(u.less_equal(u.absolute(p), tolerance)).tolist()
    return p[known.index(True) if True in known else len(known) :]


def poly(seq_of_zeros):
    """The polynomial, with the leading coefficient 1, of given zeros.

    Args:
      seq_of_zeros: the zeros `[n]`; or a square matrix, for its characteristic polynomial, which is
        complex.

    Returns:
      Array `[n + 1]` of a floating-point dtype.

    Raises ShapeError for other than a vector or a square matrix.

    Examples:
      >>> wnp.poly(wnp.array([1.0, 2.0]))
      Array([ 1., -3.,  2.], dtype=float32)
    """
    shape = shape_of(seq_of_zeros)
    if len(shape) > 2 or (len(shape) == 2 and (shape[0] != shape[1] or not shape[0])):
        raise ShapeError(f"[poly] expected a vector of zeros or a square matrix; got shape {shape}")
    return _poly(seq_of_zeros)


@composite
def _poly(zeros):
    (zeros,) = _core.promote_dtypes_inexact(zeros)
    if ndim_of(zeros) == 2:
        zeros = lax_linalg.eig(
            zeros, compute_left_eigenvectors=False, compute_right_eigenvectors=False
        )[0]
    zeros = flattened(zeros)
    if not shape_of(zeros)[0]:
        return _core.astype(1, dtype_of(zeros))
    result = _core.broadcast_to(_core.astype(1, dtype_of(zeros)), (1,))
    nothing = _zeros((1,), dtype_of(zeros))
    for i in range(shape_of(zeros)[0]):
        shifted = concatenate((nothing, u.multiply(result, zeros[i])), 0)
        result = u.subtract(concatenate((result, nothing), 0), shifted)
    return result


def _sum(function, a1, a2, combine):
    for x in (a1, a2):
        if ndim_of(x) < 1:
            raise AxisError(f"[{function}] expected vectors; got shape {shape_of(x)}")
    return _aligned(a1, a2, combine=combine)


@composite(static_argnames=("combine",))
def _aligned(a1, a2, *, combine):
    a1, a2 = _core.promote_dtypes(a1, a2)
    longest, *rest = shape_of(a1 if shape_of(a1)[0] >= shape_of(a2)[0] else a2)

    def extended(x):
        length = shape_of(x)[0]
        x = _core.broadcast_to(x, (length, *rest))
        return concatenate((_zeros((longest - length, *rest), dtype_of(x)), x), 0)

    _, dtype, weak = _core.typeof(a1)
    return _core.astype(combine(extended(a1), extended(a2)), dtype, weak)


def polyadd(a1, a2):
    """The sum of two polynomials; with more axes, of several that have theirs along the first.

    The shorter one is broadcast to the shape that the other has but for the length.

    Examples:
      >>> wnp.polyadd(wnp.array([1, 2, 3]), wnp.array([10, 20]))
      Array([ 1, 12, 23], dtype=int32)
    """
    return _sum("polyadd", a1, a2, u.add)


def polysub(a1, a2):
    """The difference of two polynomials; with more axes, as `polyadd`.

    Examples:
      >>> wnp.polysub(wnp.array([1, 2, 3]), wnp.array([10, 20]))
      Array([  1,  -8, -17], dtype=int32)
    """
    return _sum("polysub", a1, a2, u.subtract)


def polymul(a1, a2, *, trim_leading_zeros=False):
    """The product of two polynomials.

    Args:
      a1, a2: vectors of coefficients.
      trim_leading_zeros: whether leading zeros of both are left out; their values must be known.

    Examples:
      >>> wnp.polymul(wnp.array([1, 1]), wnp.array([1, -1]))
      Array([ 1.,  0., -1.], dtype=float32)
    """
    _require_vectors("polymul", a1=a1, a2=a2)
    _core.result_type(a1, a2)  # which strict promotion may forbid
    if trim_leading_zeros:
        a1, a2 = _without_leading_zeros(a1), _without_leading_zeros(a2)
    empty = [x for x in (a1, a2) if not shape_of(x)[0]]
    if empty:
        a1, a2 = (_zeros((1,), dtype_of(x)) if not shape_of(x)[0] else x for x in (a1, a2))
    return convolve(a1, a2)


def polydiv(u, v, *, trim_leading_zeros=False):
    """The quotient of two polynomials, and the remainder.

    Args:
      u, v: vectors of coefficients.
      trim_leading_zeros: whether leading coefficients of the remainder are left out that are zero
        up to rounding, the root of the precision; its values must be known.

    Returns:
      Pair of the quotient and of the remainder, which has as many coefficients as `u`.

    Examples:
      >>> wnp.polydiv(wnp.array([1.0, 0.0, -1.0]), wnp.array([1.0, 1.0]))
      (Array([ 1., -1.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    _require_vectors("polydiv", u=u, v=v)
    quotient, remainder = _polydiv(u, v)
    if trim_leading_zeros:
        remainder = _without_leading_zeros(remainder, math.sqrt(finfo(dtype_of(remainder)).eps))
    return quotient, remainder


@composite
def _polydiv(x, y):
    x, y = _core.promote_dtypes_inexact(x, y)
    m, n = shape_of(x)[0], shape_of(y)[0]
    steps = max(m - n + 1, 0)
    if not steps:
        return _zeros((1,), dtype_of(x)), x
    quotient = []
    for i in range(steps):
        digit = u.divide(x[i], y[0])
        quotient.append(digit)
        x = concatenate((x[:i], u.subtract(x[i : i + n], u.multiply(digit, y)), x[i + n :]), 0)
    return strong(concatenate([each[None] for each in quotient], 0)), x


def _order(function, m):
    m = static_int(m, function, "m")
    if m < 0:
        raise AttributeValueError(f"[{function}] expected m of at least 0; got {m}")
    return m


def polyder(p, m=1):
    """The derivative of a polynomial, of order `m`.

    Examples:
      >>> wnp.polyder(wnp.array([1, 0, -2, 5]))
      Array([ 3.,  0., -2.], dtype=float32)
    """
    _require_vectors("polyder", p=p)
    return _polyder(p, m=_order("polyder", m))


@composite(static_argnames=("m",))
def _polyder(p, *, m):
    (p,) = _core.promote_dtypes_inexact(p)
    count = max(shape_of(p)[0] - m, 0)
    powers = range(shape_of(p)[0] - 1, shape_of(p)[0] - 1 - count, -1)
    return _times(p[:count], [float(math.perm(power, m)) for power in powers])


def _times(p, factors):
    """A vector times one of Python numbers."""
    return u.multiply(p, _core.astype(_core.asarray(np.asarray(factors)), dtype_of(p)))


def polyint(p, m=1, k=None):
    """The antiderivative of a polynomial, of order `m`.

    Args:
      p: vector of coefficients.
      m: how often to integrate.
      k: the constants of integration, of each step: a number, or a vector of one or `m`. None for
        0.

    Raises AttributeValueError (a ValueError) for constants of another shape.

    Examples:
      >>> wnp.polyint(wnp.array([3, 0, -2]), k=5)
      Array([ 1.,  0., -2.,  5.], dtype=float32)
    """
    _require_vectors("polyint", p=p)
    m = _order("polyint", m)
    k = 0 if k is None else k
    if ndim_of(k) > 1 or (ndim_of(k) == 1 and shape_of(k)[0] not in (1, m)):
        raise AttributeValueError(
            f"[polyint] expected k to be a number, or a vector of one or {m}; got shape "
            f"{shape_of(k)}"
        )
    return _polyint(p, k, m=m)


@composite(static_argnames=("m",))
def _polyint(p, k, *, m):
    p, k = _core.promote_dtypes_inexact(p, k)
    if m == 0:
        return p
    n = shape_of(p)[0]
    constants = _core.broadcast_to(k, (m,))
    divisors = [math.perm(power, m) for power in range(n + m - 1, m - 1, -1)]
    divisors += [math.factorial(power) for power in range(m - 1, -1, -1)]
    return _times(concatenate((p, constants), 0), [1 / divisor for divisor in divisors])


def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """The polynomial of degree `deg` that is nearest to points, by the sum of squares.

    Args:
      x: vector of the positions, of a floating-point dtype.
      y: the values there, a vector or a matrix with a column for each polynomial.
      deg: the degree, an integer.
      rcond: as for `weft.numpy.linalg.lstsq`; None for the precision times the number of points.
      full: whether to return the sums of squares, rank, singular values and rcond as well.
      w: weights of the points, a vector.
      cov: whether to return the covariance of the coefficients as well; "unscaled" for that of
        weights that are reciprocal standard deviations.

    Returns:
      The coefficients, `[deg + 1]` or `[deg + 1, k]`; a tuple with what else is asked for.

    Raises ShapeError for points or weights of other shapes, AttributeValueError (a ValueError) for
    a negative degree, integers as `x`, and too few points for `cov`.

    Examples:
      >>> wnp.polyfit(wnp.array([0.0, 1.0, 2.0]), wnp.array([1.0, 3.0, 5.0]), 1).round(2)
      Array([2., 1.], dtype=float32)
    """
    deg = static_int(deg, "polyfit", "deg")
    if deg < 0:
        raise AttributeValueError(f"[polyfit] expected deg of at least 0; got {deg}")
    _require_vectors("polyfit", x=x)
    points = shape_of(x)[0]
    if not points or ndim_of(y) not in (1, 2) or shape_of(y)[0] != points:
        raise ShapeError(
            "[polyfit] expected x and y with the same number of points, at least one, and y with "
            f"one axis or two; got shapes {shape_of(x)} and {shape_of(y)}"
        )
    if w is not None and shape_of(w) != (points,):
        raise ShapeError(f"[polyfit] expected w of shape ({points},); got {shape_of(w)}")
    if cov and not full and cov != "unscaled" and points <= deg + 1:
        raise AttributeValueError(
            f"[polyfit] expected more than {deg + 1} points for the covariance; got {points}"
        )
    own = dtype_of(x)
    if rcond is None:
        if own.kind in "iub":
            raise AttributeValueError(f"[polyfit] expected x of a floating-point dtype; got {own}")
        rcond = points * float(finfo(own).eps)
    coefficients, residuals, rank, s, base = _polyfit(x, y, rcond, w, deg=deg, scaled=cov is True)
    if full:
        return coefficients, residuals, rank, s, _core.promote_dtypes_inexact(rcond)[0]
    return (coefficients, base) if cov else coefficients


@composite(static_argnames=("deg", "scaled"))
def _polyfit(x, y, rcond, w, *, deg, scaled):
    x, y = _core.promote_dtypes_inexact(x, y)
    rows, values = vander(x, deg + 1), y
    if w is not None:
        w = _core.astype(w, dtype_of(x))
        rows = u.multiply(rows, w[:, None])
        values = u.multiply(values, w[:, None] if ndim_of(y) == 2 else w)
    scale = u.sqrt(r.sum(u.multiply(rows, u.conj(rows)), 0))
    rows = u.divide(rows, scale[None])
    c, residuals, rank, s = lstsq(rows, values, rcond)
    c = u.divide(c, scale[:, None] if ndim_of(c) == 2 else scale)
    base = u.divide(inv(_gram(rows)), u.multiply(scale[:, None], scale[None]))
    if ndim_of(y) == 2:
        base = base[..., None]
    if scaled:
        factor = u.divide(residuals, shape_of(x)[0] - (deg + 1))
        base = u.multiply(base, factor[(None,) * ndim_of(y)])
    return c, residuals, rank, s, base


def _gram(x):
    return _core.bind(
        "dot_general",
        x,
        x,
        dimension_numbers=(((0,), (0,)), ((), ())),
        precision="HIGHEST",
        preferred_element_type=dtype_of(x),
    )


def roots(p, *, strip_zeros=True):
    """The zeros of a polynomial, complex. On CPU only.

    Args:
      p: vector of coefficients.
      strip_zeros: whether leading zeros are left out, which needs their values. Without it, as many
        zeros at the end of the result are NaN.

    Raises ShapeError for coefficients that are no vector.

    Examples:
      >>> wnp.sort(wnp.roots(wnp.array([1.0, 0.0, 4.0])).imag).round(3)
      Array([-2.,  2.], dtype=float32)
    """
    p = _core.asarray(p)
    if ndim_of(p) > 1:
        raise ShapeError(f"[roots] expected a vector of coefficients; got shape {shape_of(p)}")
    p = flattened(p)
    if strip_zeros and shape_of(p)[0] > 1:
        p = _without_leading_zeros(p)
    return _roots(p, stripped=bool(strip_zeros))


@composite(static_argnames=("stripped",))
def _roots(p, *, stripped):
    (p,) = _core.promote_dtypes_inexact(p)
    count = shape_of(p)[0] - 1
    complex_dtype = to_complex_dtype(dtype_of(p))
    if count < 1:
        return _zeros((0,), complex_dtype)
    places = broadcasted_iota("int32", (count + 1,), 0)
    leading = r.min(choose(u.not_equal(p, 0), places, count + 1))
    if not stripped:
        p = roll(p, u.negative(leading))
    companion = concatenate(
        (u.divide(u.negative(p[1:]), p[0])[None], eye(count, dtype=dtype_of(p))[:-1]), 0
    )
    zeros = lax_linalg.eig(
        companion, compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )[0]
    if stripped:
        return zeros
    # What the shift has added are zeros; they go to the end.
    _, order = sort((_core.astype(u.equal(zeros, 0), "int32"), places[:-1]))
    zeros = take_along_axis(zeros, order, 0)
    is_missing = u.greater_equal(places[:-1], u.subtract(count, leading))
    return choose(is_missing, complex(math.nan, math.nan), zeros)
