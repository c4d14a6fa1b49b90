"""Lines through points, and phases without jumps."""

import math

from weft import _core
from weft._arguments import ndim_of, normalize_axis, shape_of, strong
from weft._jit import composite
from weft.dtypes import dtype_of, is_bool, is_complex, is_integer
from weft.errors import AttributeValueError, ShapeError
from weft.lax._creation import iota
from weft.lax._cumulative import cumsum
from weft.lax._shape import concatenate
from weft.lax._slice import sliced
from weft.lax._sort import sort_key_val
from weft.numpy import _indexing as indexing, _ufuncs as u
from weft.numpy._calculus import diff
from weft.numpy._division_powers import floor_divide, remainder
from weft.numpy._select import choose
from weft.numpy._sorting import insertion_points

_EXTRAPOLATE = "extrapolate"


def interp(x, xp, fp, left=None, right=None, period=None):
    """The line through the points `(xp, fp)` at the positions `x`.

    Args:
      x: the positions, of any shape; real.
      xp: the positions of the points, a vector in increasing order.
      fp: their values, a vector of the same size.
      left, right: value before the first and after the last point; by default theirs, and with
        "extrapolate" on the first and the last line prolonged.
      period: the period of the positions, which need not be in order then; left and right have no
        effect.

    Raises ShapeError unless `xp` and `fp` are vectors of one size, AttributeValueError (a
    ValueError) for complex `x` or `xp`, for other texts than 'extrapolate', and for a period that
    has axes.

    Examples:
      >>> x, y = wnp.array([0.0, 1.0, 2.0]), wnp.array([0.0, 10.0, 30.0])
      >>> wnp.interp(wnp.array([0.5, 1.5, 9.0]), x, y)
      Array([ 5., 20., 30.], dtype=float32)
    """
    for name, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != _EXTRAPOLATE:
            raise AttributeValueError(
                f"[interp] expected {name} to be a number or 'extrapolate'; got {value!r}"
            )
    if ndim_of(xp) != 1 or shape_of(xp) != shape_of(fp) or not shape_of(xp)[0]:
        raise ShapeError(
            f"[interp] expected xp and fp to be vectors of one size, not 0; got shapes "
            f"{shape_of(xp)} and {shape_of(fp)}"
        )
    if any(is_complex(dtype_of(each)) for each in (x, xp)):
        raise AttributeValueError("[interp] expected real x and xp; got complex numbers")
    if period is not None and ndim_of(period):
        raise AttributeValueError(
            f"[interp] expected period to be a number; got shape {shape_of(period)}"
        )
    prolonged = (isinstance(left, str), isinstance(right, str))
    left, right = (None if isinstance(each, str) else each for each in (left, right))
    return _interp(x, xp, fp, left, right, period, prolonged=prolonged)


@composite(static_argnames=("prolonged",))
def _interp(x, xp, fp, left, right, period, *, prolonged):
    x, xp = _core.promote_dtypes_inexact(x, xp)
    (fp,) = _core.promote_dtypes_inexact(fp)
    if period is not None:
        period = u.absolute(_core.astype(period, dtype_of(x)))
        x, xp = remainder(x, period), remainder(xp, period)
        xp, order = sort_key_val(xp, iota("int32", shape_of(xp)[0]))
        fp = indexing.getitem(fp, order)
        xp = concatenate([u.subtract(xp[-1:], period), xp, u.add(xp[:1], period)], 0)
        fp = concatenate([fp[-1:], fp, fp[:1]], 0)
    last = shape_of(xp)[0] - 1
    after = u.maximum(u.minimum(insertion_points(xp, x, True), last), min(1, last))
    before = u.maximum(u.subtract(after, 1), 0)
    start, end = (indexing.getitem(xp, at) for at in (before, after))
    low, high = (indexing.getitem(fp, at) for at in (before, after))
    width, offset = u.subtract(end, start), u.subtract(x, start)
    flat = u.equal(width, 0)
    slope = u.divide(offset, choose(flat, 1, width))
    result = choose(flat, low, u.add(low, u.multiply(slope, u.subtract(high, low))))
    if period is None:
        if not prolonged[0]:
            result = choose(u.less(x, xp[0]), fp[0] if left is None else left, result)
        if not prolonged[1]:
            result = choose(u.greater(x, xp[last]), fp[last] if right is None else right, result)
    return strong(result)


def unwrap(p, discont=None, axis=-1, period=2 * math.pi):
    """Phases along an axis with multiples of the period added so that neighbours are near.

    Args:
      p: array of real numbers.
      discont: differences less than this are kept; at least, and by default, half the period.
      axis: the axis.
      period: what phases are equal by.

    Raises AttributeValueError (a ValueError) for complex numbers.

    Examples:
      >>> wnp.unwrap(wnp.array([170.0, -175.0, -160.0]), period=360.0)
      Array([170., 185., 200.], dtype=float32)
    """
    if is_complex(dtype_of(p)):
        raise AttributeValueError(f"[unwrap] expected real numbers; got dtype {dtype_of(p)}")
    return _unwrap(p, discont, period, axis=normalize_axis(axis, ndim_of(p), "unwrap"))


@composite(static_argnames=("axis",))
def _unwrap(p, discont, period, *, axis):
    p, period = _core.promote_dtypes(p, period)
    steps = diff(p, axis=axis)
    whole = is_integer(dtype_of(p)) or is_bool(dtype_of(p))
    half = floor_divide(period, 2) if whole else u.divide(period, 2)
    near = u.subtract(remainder(u.add(steps, half), period), half)
    # Of the two steps that are as near, the one in the direction of the step.
    tied = u.logical_and(u.equal(near, u.negative(half)), u.greater(steps, 0))
    if whole:
        tied = u.logical_and(tied, u.equal(remainder(period, 2), 0))
    near = choose(tied, half, near)
    change = u.subtract(near, steps)
    limit = u.divide(period, 2) if discont is None else discont
    change = choose(u.less(u.absolute(steps), limit), 0, change)
    moved = u.add(sliced(p, 1, None, axis=axis), cumsum(change, axis))
    return strong(concatenate([sliced(p, 0, 1, axis=axis), moved], axis))
