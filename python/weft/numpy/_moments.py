"""Means, variances and standard deviations, and the reductions that leave out NaN."""

import math

from weft import _core
from weft._arguments import ndim_of, normalize_axes, normalize_axis, shape_of
from weft._dims import is_symbolic_dim
from weft._jit import composite
from weft._surface import eager_entry
from weft.dtypes import (
    dtype_of,
    highest_value,
    is_bool,
    is_complex,
    is_inexact,
    lowest_value,
    promote_types,
    real_dtype,
    requested_dtype,
    to_inexact_dtype,
)
from weft.errors import AttributeValueError, DTypeError, ShapeError
from weft.lax._shape import reshape, transpose
from weft.numpy import _reductions as r, _ufuncs as u
from weft.numpy._select import choose


def _mean_dtype(function, a, dtype):
    if dtype is None:
        return to_inexact_dtype(dtype_of(a))
    dtype = requested_dtype(dtype, function)
    if is_bool(dtype):
        raise DTypeError(f"[{function}] expected a dtype of numbers; got bool")
    return dtype


@eager_entry(1, "axis", "keepdims")
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """Arithmetic mean along axes; NaN over no elements.

    Args:
      a: array or number.
      axis: an axis, several, or None for all.
      dtype: dtype of the result; else that of `a`, a float dtype for integers.
      out: not supported, must be None.
      keepdims: whether the reduced axes stay, with size 1.
      where: mask that broadcasts to `a`; elements where it is false are left out.

    Examples:
      >>> wnp.mean(wnp.array([[1, 2], [3, 6]]), axis=1)
      Array([1.5, 4.5], dtype=float32)
    """
    r.reject_out("mean", out)
    dtype = _mean_dtype("mean", a, dtype)
    if r.named_axes(axis)[0]:
        working = r.compute_dtype(to_inexact_dtype(dtype))
        counted = _core.broadcast_to(True if where is None else where, shape_of(a))
        total = r.sum(a, axis, working, keepdims=keepdims, where=where)
        return _core.astype(u.divide(total, r.sum(counted, axis, keepdims=keepdims)), dtype)
    axes = normalize_axes(axis, len(shape_of(a)), "mean")
    return _mean(a, where, axes=axes, dtype=dtype, keepdims=bool(keepdims))


@composite(static_argnames=("axes", "dtype", "keepdims"))
def _mean(a, where, *, axes, dtype, keepdims):
    # Integer means are taken in floats as well.
    working = r.compute_dtype(to_inexact_dtype(dtype))
    total = r.reduced(a, where, None, kind="sum", axes=axes, dtype=working, keepdims=keepdims)
    count = _count(shape_of(a), where, axes, working, keepdims)
    return _core.astype(u.divide(total, count), dtype)


def _count(shape, where, axes, dtype, keepdims):
    """How many elements enter a reduction: a number, or an array if there is a mask."""
    if where is None:
        count = math.prod(shape[axis] for axis in axes)
        return count if is_symbolic_dim(count) else float(count)
    mask = _core.broadcast_to(where, shape)
    return r.reduced(
        mask, None, None, kind="sum", axes=axes, dtype=real_dtype(dtype), keepdims=keepdims
    )


def average(a, axis=None, weights=None, returned=False, keepdims=False):
    """Weighted mean along axes.

    Args:
      a: array or number.
      axis: an axis, several, or None for all.
      weights: array of the shape of `a`, or of its sizes along `axis`; None for equal weights.
      returned: whether to return also the sum of the weights, as a pair.
      keepdims: whether the reduced axes stay, with size 1.

    Examples:
      >>> wnp.average(wnp.array([1.0, 2.0]), weights=wnp.array([3.0, 1.0]))
      Array(1.25, dtype=float32)
    """
    shape = shape_of(a)
    axes = normalize_axes(axis, len(shape), "average")
    if weights is not None:
        check_weights("average", weights, shape, axes, axis)
    mean, total = _average(a, weights, axes=axes, keepdims=bool(keepdims))
    return (mean, total) if returned else mean


@composite(static_argnames=("axes", "keepdims"))
def _average(a, weights, *, axes, keepdims):
    shape = shape_of(a)
    if weights is None:
        result = mean(a, axes, keepdims=keepdims)
        count = _core.astype(math.prod(shape[axis] for axis in axes), dtype_of(result))
        return result, _core.broadcast_to(count, shape_of(result))
    dtype, weak = _core.result_type(*_core.promote_dtypes_inexact(a, weights))
    working = r.compute_dtype(dtype)
    a, weights = (_core.astype(x, working, weak) for x in (a, weights))
    weights = aligned_weights(weights, shape, axes)
    total = r.sum(_core.broadcast_to(weights, shape), axes, keepdims=keepdims)
    result = u.divide(r.sum(u.multiply(a, weights), axes, keepdims=keepdims), total)
    return _core.astype(result, dtype, weak), _core.astype(total, dtype, weak)


def check_weights(function, weights, shape, axes, axis):
    """ShapeError unless there is a weight for each element, or for each one along the axes."""
    if shape_of(weights) not in (shape, tuple(shape[i] for i in axes)):
        raise ShapeError(
            f"[{function}] expected weights of the shape of the array, or of its sizes along "
            f"axis; got shapes {shape} and {shape_of(weights)}, and axis {axis}"
        )


def aligned_weights(weights, shape, axes):
    """Weights that broadcast to the shape."""
    if shape_of(weights) == shape:
        return weights
    # The axes of the weights stand in the order in which `axes` lists them.
    weights = transpose(weights, sorted(range(len(axes)), key=lambda i: axes[i]))
    return reshape(weights, [n if i in axes else 1 for i, n in enumerate(shape)])


def _ddof(function, ddof, correction):
    if correction is None:
        return float(ddof)
    if ddof != 0:
        raise AttributeValueError(f"[{function}] expected ddof or correction; got both")
    return float(correction)


@eager_entry(1, "axis", "ddof", "keepdims", "correction")
def var(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=False,
    *,
    where=None,
    mean=None,
    correction=None,
):
    """Variance along axes: the mean square distance from the mean; real also for complex `a`.

    Args:
      a: array or number.
      axis: an axis, several, or None for all.
      dtype: dtype of the result; else that of the real part of `a`, a float dtype for integers.
      out: not supported, must be None.
      ddof: the sum of squares is divided by the number of elements less this; NaN if that is not
        positive.
      keepdims: whether the reduced axes stay, with size 1.
      where: mask that broadcasts to `a`; elements where it is false are left out.
      mean: the mean along the axes, with the axes kept, if it is known already.
      correction: another name for `ddof`.

    Examples:
      >>> wnp.var(wnp.array([1.0, 3.0]))
      Array(1., dtype=float32)
      >>> wnp.var(wnp.array([1.0, 3.0]), ddof=1)
      Array(2., dtype=float32)
    """
    r.reject_out("var", out)
    return _spread("var", a, axis, dtype, ddof, keepdims, where, mean, correction)


@eager_entry(1, "axis", "ddof", "keepdims", "correction")
def std(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=False,
    *,
    where=None,
    mean=None,
    correction=None,
):
    """Standard deviation along axes: the square root of the variance. See `var`.

    Examples:
      >>> wnp.std(wnp.array([1.0, 5.0]))
      Array(2., dtype=float32)
    """
    r.reject_out("std", out)
    return _spread("std", a, axis, dtype, ddof, keepdims, where, mean, correction)


def _spread(function, a, axis, dtype, ddof, keepdims, where, mean, correction):
    own = to_inexact_dtype(dtype_of(a))
    given = dtype is not None
    dtype = requested_dtype(dtype, function) if given else real_dtype(own)
    if not is_inexact(dtype):
        raise DTypeError(f"[{function}] expected a floating-point dtype; got {dtype}")
    if is_complex(own) and given and not is_complex(dtype):
        raise DTypeError(f"[{function}] expected a complex dtype for complex numbers; got {dtype}")
    return _variance(
        a,
        where,
        mean,
        axes=normalize_axes(axis, len(shape_of(a)), function),
        dtype=dtype,
        ddof=_ddof(function, ddof, correction),
        keepdims=bool(keepdims),
        root=function == "std",
    )


@composite(static_argnames=("axes", "dtype", "ddof", "keepdims", "root"))
def _variance(a, where, given_mean, *, axes, dtype, ddof, keepdims, root):
    working = r.compute_dtype(promote_types(to_inexact_dtype(dtype_of(a)), dtype))
    a = _core.astype(a, working)
    center = given_mean
    if center is None:
        center = _mean(a, where, axes=axes, dtype=working, keepdims=True)
    centered = u.subtract(a, center)
    if is_complex(working):
        squares = u.real(u.multiply(centered, u.conj(centered)))
    else:
        squares = u.square(centered)
    real = dtype_of(squares)
    total = r.reduced(squares, where, None, kind="sum", axes=axes, dtype=real, keepdims=keepdims)
    count = _count(shape_of(a), where, axes, real, keepdims)
    result = _divided(total, count, ddof)
    result = u.sqrt(result) if root else result
    return _core.astype(result, dtype)


def _divided(total, count, ddof):
    """total / (count - ddof), NaN where that is not positive."""
    if isinstance(count, float):
        return u.divide(total, count - ddof if count > ddof else math.nan)
    divisor = u.subtract(count, ddof)
    return choose(u.greater(divisor, 0), u.divide(total, divisor), math.nan)


def _present(a):
    """Mask of the elements that are not NaN; None if there can be no NaN."""
    return u.logical_not(u.isnan(a)) if is_inexact(dtype_of(a)) else None


def _without_nan(function, a, axis, keepdims, where, dtype=None, ddof=0, **arrays):
    """Calls a reduction with a mask that leaves out NaN."""
    axes = normalize_axes(axis, len(shape_of(a)), "nan" + function.__name__)
    dtype = None if dtype is None else requested_dtype(dtype, "nan" + function.__name__)
    options = {"axis": axes, "keepdims": bool(keepdims)}
    if dtype is not None:
        options["dtype"] = dtype
    if ddof:
        options["ddof"] = ddof
    return _masked(a, where, arrays, function=function, options=tuple(options.items()))


@composite(static_argnames=("function", "options"))
def _masked(a, where, arrays, *, function, options):
    mask = _present(a)
    if mask is not None:
        a = choose(mask, a, 0)  # the slope of what is left out would be NaN times 0
    if where is not None:
        r.require_mask("nan" + function.__name__, where)
        mask = where if mask is None else u.logical_and(where, mask)
    return function(a, where=mask, **arrays, **dict(options))


@eager_entry(1, "axis", "keepdims")
def nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Sum along axes of the elements that are not NaN; see `sum`.

    Examples:
      >>> wnp.nansum(wnp.array([1.0, np.nan, 2.0]))
      Array(3., dtype=float32)
    """
    r.reject_out("nansum", out)
    return _without_nan(r.sum, a, axis, keepdims, where, dtype, initial=initial)


@eager_entry(1, "axis", "keepdims")
def nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Product along axes of the elements that are not NaN; see `prod`.

    Examples:
      >>> wnp.nanprod(wnp.array([3.0, np.nan, 2.0]))
      Array(6., dtype=float32)
    """
    r.reject_out("nanprod", out)
    return _without_nan(r.prod, a, axis, keepdims, where, dtype, initial=initial)


@eager_entry(1, "axis", "keepdims")
def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, where=None):
    """Mean along axes of the elements that are not NaN; see `mean`.

    Examples:
      >>> wnp.nanmean(wnp.array([1.0, np.nan, 2.0]))
      Array(1.5, dtype=float32)
    """
    r.reject_out("nanmean", out)
    return _without_nan(mean, a, axis, keepdims, where, dtype)


@eager_entry(1, "axis", "ddof", "keepdims")
def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """Variance along axes of the elements that are not NaN; see `var`.

    Examples:
      >>> wnp.nanvar(wnp.array([1.0, np.nan, 3.0]))
      Array(1., dtype=float32)
    """
    r.reject_out("nanvar", out)
    return _without_nan(var, a, axis, keepdims, where, dtype, ddof, mean=mean)


@eager_entry(1, "axis", "ddof", "keepdims")
def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """Standard deviation along axes of the elements that are not NaN; see `std`.

    Examples:
      >>> wnp.nanstd(wnp.array([1.0, np.nan, 5.0]))
      Array(2., dtype=float32)
    """
    r.reject_out("nanstd", out)
    return _without_nan(std, a, axis, keepdims, where, dtype, ddof, mean=mean)


@eager_entry(1, "axis", "keepdims")
def nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Greatest element along axes that is not NaN; NaN if all are. See `max`.

    Examples:
      >>> wnp.nanmax(wnp.array([[1.0, np.nan], [np.nan, np.nan]]), axis=1)
      Array([ 1., nan], dtype=float32)
    """
    r.reject_out("nanmax", out)
    axes = normalize_axes(axis, len(shape_of(a)), "nanmax")
    return _nan_extremum(a, where, initial, function=r.max, axes=axes, keepdims=bool(keepdims))


@eager_entry(1, "axis", "keepdims")
def nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Smallest element along axes that is not NaN; NaN if all are. See `min`.

    Examples:
      >>> wnp.nanmin(wnp.array([[1.0, np.nan], [np.nan, np.nan]]), axis=1)
      Array([ 1., nan], dtype=float32)
    """
    r.reject_out("nanmin", out)
    axes = normalize_axes(axis, len(shape_of(a)), "nanmin")
    return _nan_extremum(a, where, initial, function=r.min, axes=axes, keepdims=bool(keepdims))


@composite(static_argnames=("function", "axes", "keepdims"))
def _nan_extremum(a, where, initial, *, function, axes, keepdims):
    missing = u.isnan(a)
    filled = _nan_replaced(a, missing, lowest=function is r.max)
    result = function(filled, axes, None, keepdims, initial, where)
    if initial is not None or not is_inexact(dtype_of(a)):
        return result
    return choose(r.all(missing, axes, None, keepdims), math.nan, result)


def _nan_replaced(a, missing, lowest):
    dtype = dtype_of(a)
    if not is_inexact(dtype):
        return a
    limit = lowest_value if lowest else highest_value
    return choose(missing, limit(real_dtype(dtype)), a)


@eager_entry(1, "axis", "keepdims")
def nanargmax(a, axis=None, out=None, keepdims=None):
    """Position of the greatest element that is not NaN; -1 if all are. See `argmax`.

    Examples:
      >>> wnp.nanargmax(wnp.array([np.nan, 3.0, 5.0]))
      Array(2, dtype=int32)
    """
    return _nan_position("nanargmax", a, axis, out, keepdims)


@eager_entry(1, "axis", "keepdims")
def nanargmin(a, axis=None, out=None, keepdims=None):
    """Position of the smallest element that is not NaN; -1 if all are. See `argmin`.

    Examples:
      >>> wnp.nanargmin(wnp.array([np.nan, 3.0, 5.0]))
      Array(1, dtype=int32)
    """
    return _nan_position("nanargmin", a, axis, out, keepdims)


def _nan_position(name, a, axis, out, keepdims):
    r.reject_out(name, out)
    axis = None if axis is None else normalize_axis(axis, ndim_of(a), name)
    function = r.argmax if name == "nanargmax" else r.argmin
    return _nan_positions(a, function=function, axis=axis, keepdims=bool(keepdims))


@composite(static_argnames=("function", "axis", "keepdims"))
def _nan_positions(a, *, function, axis, keepdims):
    missing = u.isnan(a)
    filled = _nan_replaced(a, missing, lowest=function is r.argmax)
    position = function(filled, axis, None, keepdims)
    return choose(r.all(missing, axis, None, keepdims), -1, position)
