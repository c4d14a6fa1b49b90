"""Functions that choose between values: where, select, clip, comparisons within a tolerance."""

import numpy as np

from weft import _core
from weft._arguments import is_beyond, ndim_of, strong
from weft._jit import composite
from weft.dtypes import dtype_of, finfo, is_bool, is_complex, is_inexact, is_key, real_dtype
from weft.errors import AttributeValueError, ShapeError
from weft.lax._shape import common_shape
from weft.numpy import _ufuncs as u
from weft.numpy._creation import asarray


@composite
def where(condition, x, y):
    """`x` where `condition` is true, `y` elsewhere.

    Args:
      condition: array or number; anything but zero is true.
      x, y: arrays or numbers.

    Returns:
      Array of the promoted dtype of `x` and `y` and of the broadcast shape of all three.
    """
    return choose(condition, x, y)


def choose(condition, x, y):
    """`where` without a program of its own, for use in composites."""
    condition = as_bool(condition)
    x, y = _core.promote_dtypes(x, y)
    if ndim_of(condition) == 0:
        x, y = _core.broadcast_arrays(x, y)
    else:
        condition, x, y = _core.broadcast_arrays(condition, x, y)
    return _core.bind("select_n", condition, y, x)


def as_bool(x):
    """`x != 0`, or `x` itself if it is bool."""
    return x if is_bool(dtype_of(x)) else u.not_equal(x, 0)


def select(condlist, choicelist, default=0):
    """For each element the choice whose condition is the first true one.

    Args:
      condlist: conditions, as many as choices and at least one.
      choicelist: arrays or numbers.
      default: value where no condition is true.

    Returns:
      Array of the promoted dtype of choices and default, and of the broadcast shape.

    Raises AttributeValueError (a ValueError) for as many choices as there are no conditions.

    Examples:
      >>> x = wnp.arange(5)
      >>> wnp.select([x < 2, x > 3], [x, 10 * x], default=-1)
      Array([ 0,  1, -1, -1, 40], dtype=int32)
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise AttributeValueError(
            "[select] expected as many conditions as choices, and at least one; "
            f"got {len(condlist)} and {len(choicelist)}"
        )
    return _select(tuple(condlist), tuple(choicelist), default)


@composite
def _select(conditions, choices, default):
    *choices, result = _core.promote_dtypes(*choices, default)
    pairs = list(zip(conditions, choices, strict=True))
    for condition, choice in reversed(pairs):
        result = choose(condition, choice, result)
    return result


def clip(arr=None, /, min=None, max=None):
    """`arr` limited to the interval from `min` to `max`; None leaves that side open.

    Where `min > max` the result is `max`. Raises DTypeError for complex numbers, OverflowError
    where the result would be a Python integer that the dtype of `arr` does not hold.

    Examples:
      >>> wnp.clip(wnp.array([-1, 2, 9]), 0, 5)
      Array([0, 2, 5], dtype=int32)
    """
    if arr is None:
        raise AttributeValueError("[clip] expected an array; got None")
    for x in (arr, min, max):
        if x is not None and is_complex(dtype_of(x)):
            raise AttributeValueError(f"[clip] expected real arrays; got dtype {dtype_of(x)}")
    dtype = dtype_of(arr)
    if is_beyond(min, dtype) < 0:
        min = None
    if is_beyond(max, dtype) > 0:
        max = None
    if min is None and max is None:
        return _core.apart(arr)
    return _clip(arr, min, max)


@composite(exact_ints=True, broadcasts=True)
def _clip(arr, min, max):
    # Strict promotion forbids some.
    _core.result_type(*(x for x in (arr, min, max) if x is not None))
    if min is not None:
        arr = u.maximum(min, arr)
    return arr if max is None else u.minimum(max, arr)


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether abs(a - b) <= atol + rtol * abs(b), or both are the same infinity.

    Args:
      a, b: arrays or numbers. Random keys are close if they are equal.
      rtol, atol: relative and absolute tolerance.
      equal_nan: whether NaN is close to NaN.

    Examples:
      >>> wnp.isclose(wnp.array([1.0, 1.1]), 1.000001)
      Array([ True, False], dtype=bool)
    """
    return _isclose(a, b, rtol, atol, equal_nan=bool(equal_nan))


@composite(static_argnames=("equal_nan",), broadcasts=True)
def _isclose(a, b, rtol, atol, *, equal_nan):
    if is_key(dtype_of(a)) and is_key(dtype_of(b)):
        return u.equal(a, b)
    a, b = _core.promote_dtypes_inexact(a, b)
    tolerance_dtype = real_dtype(dtype_of(a))
    rtol, atol = (_core.astype(t, tolerance_dtype) for t in (rtol, atol))
    within = u.less_equal(
        u.absolute(u.subtract(a, b)), u.add(atol, u.multiply(rtol, u.absolute(b)))
    )
    close = u.logical_or(u.equal(a, b), u.logical_and(u.isfinite(b), within))
    if equal_nan:
        close = u.logical_or(close, u.logical_and(u.isnan(a), u.isnan(b)))
    return close


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements of `a` and `b` are close; see `isclose`. A bool array without axes.

    Examples:
      >>> wnp.allclose(wnp.array([1.0, 1.1]), 1.000001)
      Array(False, dtype=bool)
    """
    return _allclose(a, b, rtol, atol, equal_nan=bool(equal_nan))


@composite(static_argnames=("equal_nan",), broadcasts=True)
def _allclose(a, b, rtol, atol, *, equal_nan):
    return _all(_isclose(a, b, rtol, atol, equal_nan=equal_nan))


def _all(x):
    return _core.bind("reduce_and", x, axes=tuple(range(ndim_of(x)))) if ndim_of(x) else x


def array_equal(a1, a2, equal_nan=False):
    """Whether two arrays have the same shape and equal elements. A bool array without axes.

    With `equal_nan`, NaN equals NaN. Lists are taken as arrays.

    Examples:
      >>> wnp.array_equal(wnp.array([1, 2]), wnp.array([[1, 2]]))
      Array(False, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    if _core.typeof(a1)[0] != _core.typeof(a2)[0]:
        return _core.asarray(False)
    return _array_equal(a1, a2, equal_nan=bool(equal_nan))


def array_equiv(a1, a2):
    """Whether two arrays, or lists, are equal after broadcasting. A bool array without axes.

    Examples:
      >>> wnp.array_equiv(wnp.array([1, 2]), wnp.array([[1, 2]]))
      Array(True, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    try:
        common_shape([_core.typeof(a1)[0], _core.typeof(a2)[0]], "array_equiv")
    except ShapeError:
        return _core.asarray(False)
    return _array_equal(a1, a2, equal_nan=False)


@composite(static_argnames=("equal_nan",))
def _array_equal(a1, a2, *, equal_nan):
    same = u.equal(a1, a2)
    if equal_nan:
        same = u.logical_or(same, u.logical_and(u.isnan(a1), u.isnan(a2)))
    return strong(_all(same))


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """`x` with NaN and infinities replaced by numbers.

    Args:
      x: array or number; complex numbers are treated part by part.
      copy: ignored, arrays never change.
      nan: value for NaN.
      posinf, neginf: values for the infinities; None for the largest and smallest finite number.

    Examples:
      >>> wnp.nan_to_num(wnp.array([1.0, np.nan, np.inf]), posinf=9.0)
      Array([1., 0., 9.], dtype=float32)
    """
    if not is_inexact(dtype_of(x)):
        return _core.apart(x)
    return _nan_to_num(x, nan, posinf, neginf)


@composite
def _nan_to_num(x, nan, posinf, neginf):
    dtype = dtype_of(x)
    if is_complex(dtype):
        parts = (_nan_to_num(part(x), nan, posinf, neginf) for part in (u.real, u.imag))
        return _core.bind("complex", *parts)
    limits = finfo(dtype)
    posinf = limits.max if posinf is None else posinf
    neginf = limits.min if neginf is None else neginf
    x = _core.astype(x, dtype)
    x = choose(u.isnan(x), _core.astype(nan, dtype), x)
    x = choose(u.equal(x, np.inf), _core.astype(posinf, dtype), x)
    return choose(u.equal(x, -np.inf), _core.astype(neginf, dtype), x)
