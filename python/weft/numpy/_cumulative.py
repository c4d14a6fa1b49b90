"""Running sums and products."""

import numpy as np

from weft import _core
from weft._arguments import ndim_of, normalize_axis, shape_of
from weft._jit import composite
from weft._surface import eager_entry
from weft.dtypes import default_int, dtype_of, is_bool, is_inexact, requested_dtype
from weft.errors import AttributeValueError
from weft.lax import _cumulative as lax_cumulative
from weft.lax._shape import concatenate
from weft.numpy import _ufuncs as u
from weft.numpy._products import flattened
from weft.numpy._reductions import compute_dtype, reject_out, sum_dtype
from weft.numpy._select import choose

_KINDS = {"cumsum": (lax_cumulative.cumsum, 0), "cumprod": (lax_cumulative.cumprod, 1)}


def _running(function, kind, a, axis, dtype, skips_nan=False, starts=False):
    if axis is not None:
        # As in jax, a number of Python has one axis here, and an array without axes has none.
        shape, _, weak = _core.typeof(a)
        axis = normalize_axis(axis, 1 if weak and not shape else len(shape), function)
    if dtype is not None:
        dtype = requested_dtype(dtype, function)
    else:
        dtype = default_int() if is_bool(dtype_of(a)) else dtype_of(a)
    return _scanned(a, kind=kind, axis=axis, dtype=dtype, skips_nan=skips_nan, starts=starts)


@composite(static_argnames=("kind", "axis", "dtype", "skips_nan", "starts"))
def _scanned(a, *, kind, axis, dtype, skips_nan, starts):
    scan, identity = _KINDS[kind]
    if axis is None or ndim_of(a) == 0:
        a, axis = flattened(a), 0
    if skips_nan and is_inexact(dtype_of(a)):
        a = choose(u.isnan(a), _core.astype(identity, dtype_of(a)), a)
    working = np.dtype("int32") if is_bool(dtype) else compute_dtype(dtype)
    result = _core.astype(scan(_core.astype(_core.astype(a, dtype), working), axis), dtype)
    if not starts:
        return result
    shape = [1 if i == axis else size for i, size in enumerate(shape_of(a))]
    first = _core.broadcast_to(_core.astype(identity, dtype), tuple(shape))
    return concatenate((first, result), axis)


@eager_entry(1, "axis")
def cumsum(a, axis=None, dtype=None, out=None):
    """Sums of the elements so far along an axis.

    Args:
      a: array or number.
      axis: the axis; None for the flattened array.
      dtype: dtype of the result and of the additions; else that of `a`, the default integer dtype
        for bool.
      out: not supported, must be None.

    Examples:
      >>> wnp.cumsum(wnp.array([[1, 2], [3, 4]]), axis=1)
      Array([[1, 3],
             [3, 7]], dtype=int32)
      >>> wnp.cumsum(wnp.array([[1, 2], [3, 4]]))
      Array([ 1,  3,  6, 10], dtype=int32)
    """
    reject_out("cumsum", out)
    return _running("cumsum", "cumsum", a, axis, dtype)


@eager_entry(1, "axis")
def cumprod(a, axis=None, dtype=None, out=None):
    """Products of the elements so far along an axis; for the arguments see `cumsum`.

    Examples:
      >>> wnp.cumprod(wnp.array([1, 2, 3, 4]))
      Array([ 1,  2,  6, 24], dtype=int32)
    """
    reject_out("cumprod", out)
    return _running("cumprod", "cumprod", a, axis, dtype)


@eager_entry(1, "axis")
def nancumsum(a, axis=None, dtype=None, out=None):
    """As `cumsum`, with NaN taken as 0.

    Examples:
      >>> wnp.nancumsum(wnp.array([1.0, np.nan, 2.0]))
      Array([1., 1., 3.], dtype=float32)
    """
    reject_out("nancumsum", out)
    return _running("nancumsum", "cumsum", a, axis, dtype, skips_nan=True)


@eager_entry(1, "axis")
def nancumprod(a, axis=None, dtype=None, out=None):
    """As `cumprod`, with NaN taken as 1.

    Examples:
      >>> wnp.nancumprod(wnp.array([3.0, np.nan, 2.0]))
      Array([3., 3., 6.], dtype=float32)
    """
    reject_out("nancumprod", out)
    return _running("nancumprod", "cumprod", a, axis, dtype, skips_nan=True)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Sums of the elements so far along an axis.

    Args:
      x: array with at least one axis.
      axis: the axis; it may be None for one-dimensional arrays.
      dtype: dtype of the result and of the additions; else that of `x`, widened for integers as the
        array API standard has it (`cumsum` and `cumprod` leave it).
      include_initial: whether the result begins with the sum of no elements, 0.

    Examples:
      >>> wnp.cumulative_sum(wnp.array([1, 2, 3]), include_initial=True)
      Array([0, 1, 3, 6], dtype=int32)
    """
    return _standard("cumulative_sum", "cumsum", x, axis, dtype, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Products of the elements so far along an axis; for the arguments see `cumulative_sum`.

    Examples:
      >>> wnp.cumulative_prod(wnp.array([2, 3, 4]), include_initial=True)
      Array([ 1,  2,  6, 24], dtype=int32)
    """
    return _standard("cumulative_prod", "cumprod", x, axis, dtype, include_initial)


def _standard(function, kind, x, axis, dtype, include_initial):
    ndim = ndim_of(x)
    if ndim == 0 or (axis is None and ndim != 1):
        raise AttributeValueError(
            f"[{function}] expected an axis of an array, or a one-dimensional array; got axis "
            f"{axis} and shape {shape_of(x)}"
        )
    axis = 0 if axis is None else axis
    if dtype is None:
        dtype = sum_dtype(function, x, None, True)
    return _running(function, kind, x, axis, dtype, starts=bool(include_initial))
