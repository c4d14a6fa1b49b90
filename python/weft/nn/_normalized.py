"""Sums of exponentials, softmax, standardized and one-hot arrays: composites."""

import math
import operator
from typing import Any

import numpy as np

from weft import _core, lax, numpy as jnp
from weft._arguments import normalize_axes, normalize_axis, static_int
from weft._jit import composite
from weft._surface import eager_entry
from weft.dtypes import (
    default_float,
    dtype_of,
    is_bool,
    real_dtype,
    requested_dtype,
)
from weft.errors import AttributeValueError, DTypeError
from weft.nn._activations import inexact
from weft.numpy._reductions import compute_dtype, named_axes


def _wide(x):
    """x in the dtype in which sums of its elements are taken: they may exceed float16."""
    wide = compute_dtype(x.dtype)
    return x if wide == x.dtype else _core.astype(x, wide)


def _rounded(x, dtype):
    """What was computed in a wide dtype, as the result of a function."""
    return x if x.dtype == dtype else _core.astype(x, dtype)


def _hashable(axis):
    """Axes as a static argument: lists and arrays may name them too."""
    if isinstance(axis, list):
        return tuple(axis)
    return operator.index(axis) if isinstance(axis, _core.Array) else axis


def _for_axes(function, axis):
    """The composite; as a plain function if some of the axes are those of a vmap, by name."""
    return function.__wrapped__ if named_axes(axis)[0] else function


def _axes(axis, ndim, function) -> Any:
    """Axes as a tuple of numbers from 0 on, and names."""
    names, numbers = named_axes(axis)
    return (*names, *normalize_axes(numbers, ndim, function))


def _numbers(function, x):
    """x as floating-point or complex numbers; DTypeError for bools."""
    if is_bool(dtype_of(x)):
        raise DTypeError(f"[{function}] expected an array of numbers; got dtype bool")
    return inexact(x)


def _in_mask(x, where):
    """x in the shape that it broadcasts to together with its mask."""
    return x if where is None else _core.broadcast_arrays(x, where)[0]


def _require_mask(where, function):
    if where is not None and dtype_of(where) != np.bool_:
        raise AttributeValueError(
            f"[{function}] expected where to be a mask of booleans; got dtype {dtype_of(where)}"
        )


def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None) -> Any:
    """log(sum(b * exp(a))) along axes, without overflow.

    Args:
      a: array of any numeric dtype; integers become floats.
      axis: axis or axes to reduce; all by default.
      b: weights, broadcastable to `a`.
      keepdims: keep reduced axes with size 1.
      return_sign: return (log of the absolute value, sign) of the sum; of complex numbers, the log
        is real, and the sign is a number of absolute value 1, or 0.
      where: elements to include, broadcastable to `a`.

    Examples:
      >>> wnp.exp(weft.nn.logsumexp(wnp.log(wnp.array([1.0, 3.0, 4.0])))).round(3)
      Array(8., dtype=float32)
    """
    _require_mask(where, "logsumexp")
    if b is not None:
        _core.check_ranks("logsumexp", (a, b))
    options = {"keepdims": bool(keepdims), "return_sign": bool(return_sign)}
    return _for_axes(_logsumexp, axis)(a, b, where, axis=_hashable(axis), **options)


@composite(static_argnames=("axis", "keepdims", "return_sign"))
def _logsumexp(a, b, where, *, axis, keepdims, return_sign):
    if b is not None:
        a, b = _core.broadcast_arrays(*_core.promote_dtypes_inexact(a, b))
        a = jnp.where(b != 0, a, -jnp.inf)
        b = _wide(b)
    else:
        a = inexact(a)
    dtype, a = a.dtype, _wide(_in_mask(a, where))
    axes = _axes(axis, a.ndim, "logsumexp")
    shown = a if where is None else jnp.where(where, a, -jnp.inf)
    top = jnp.max(jnp.real(shown), axis=axes, keepdims=True, initial=-jnp.inf)
    top = lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0.0))
    terms = jnp.exp(shown - top)
    if b is not None:
        terms = b * terms
    total = jnp.sum(terms, axis=axes, keepdims=True, where=where)
    sign = jnp.sign(total)
    magnitude = jnp.abs(total) if return_sign else total
    out = _rounded(jnp.log(magnitude) + top, real_dtype(dtype) if return_sign else dtype)
    sign = _rounded(sign, dtype)
    if not keepdims:
        dropped = named_axes(axes)[1]
        out, sign = jnp.squeeze(out, dropped), jnp.squeeze(sign, dropped)
    return (out, sign) if return_sign else out


def logmeanexp(x, axis=None, where=None, keepdims=False):
    """log(mean(exp(x))) along axes, without overflow.

    Args:
      x: array of any numeric dtype; integers become floats.
      axis: axis or axes to reduce; all by default.
      where: elements to include, broadcastable to `x`.
      keepdims: keep reduced axes with size 1.

    Examples:
      >>> weft.nn.logmeanexp(wnp.array([1000.0, 1000.0]))
      Array(1000., dtype=float32)
    """
    _require_mask(where, "logmeanexp")
    return _logmeanexp(x, where, axis=axis, keepdims=bool(keepdims))


@composite(static_argnames=("axis", "keepdims"))
def _logmeanexp(x, where, *, axis, keepdims):
    x = inexact(x)
    total = logsumexp(_wide(x), axis=axis, where=where, keepdims=keepdims)
    shape = x.shape
    if where is None:
        count = math.prod(shape[each] for each in normalize_axes(axis, len(shape), "logmeanexp"))
    else:
        ones = _core.broadcast_to(_core.astype(1, total.dtype), shape)
        count = jnp.sum(ones, axis=axis, keepdims=keepdims, where=where)
    return _rounded(total - jnp.log(count), x.dtype)


@eager_entry(1, "axis")
def softmax(x, axis: Any = -1, where=None):
    """exp(x) / sum(exp(x)) along an axis or axes, without overflow.

    Where the mask `where` is False, the result is 0.

    Examples:
      >>> weft.nn.softmax(wnp.log(wnp.array([1.0, 3.0, 4.0]))).round(3)
      Array([0.125, 0.375, 0.5  ], dtype=float32)
    """
    _require_mask(where, "softmax")
    return _for_axes(_softmax, axis)(x, where, axis=_hashable(axis))


def _below_top(function, x, where, axis):
    """x in a wide dtype, less its greatest element: (dtype of the result, axes, x - max(x))."""
    x = _in_mask(_numbers(function, x), where)
    dtype, x = x.dtype, _wide(x)
    axes = _axes(axis, x.ndim, function)
    shown = x if where is None else jnp.where(where, x, -jnp.inf)
    top = lax.stop_gradient(jnp.max(shown, axis=axes, keepdims=True, initial=-jnp.inf))
    return dtype, axes, shown - top


@composite(static_argnames=("axis",))
def _softmax(x, where, *, axis):
    dtype, axes, shifted = _below_top("softmax", x, where, axis)
    terms = jnp.exp(shifted)
    # Each term has an error of its own already, so one reciprocal of the sum will do.
    result = _rounded(terms * (1.0 / jnp.sum(terms, axis=axes, keepdims=True, where=where)), dtype)
    return result if where is None else jnp.where(where, result, 0)


@eager_entry(1, "axis")
def log_softmax(x, axis: Any = -1, where=None):
    """log(softmax(x)) along an axis or axes, without overflow.

    Where the mask `where` is False, the result is -inf.

    Examples:
      >>> weft.nn.log_softmax(wnp.array([0.0, 1000.0]))
      Array([-1000.,     0.], dtype=float32)
    """
    _require_mask(where, "log_softmax")
    return _for_axes(_log_softmax, axis)(x, where, axis=axis)


@composite(static_argnames=("axis",))
def _log_softmax(x, where, *, axis):
    dtype, axes, shifted = _below_top("log_softmax", x, where, axis)
    total = jnp.sum(jnp.exp(shifted), axis=axes, keepdims=True, where=where)
    result = _rounded(shifted - jnp.log(total), dtype)
    return result if where is None else jnp.where(where, result, -jnp.inf)


def standardize(
    x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None, *, algorithm="fast"
):
    """(x - mean) / sqrt(variance + epsilon).

    Args:
      x: array; integers become floats.
      axis: axis or axes that mean and variance are taken along; None for all.
      mean, variance: arrays that broadcast with `x`; None for those of `x`.
      epsilon: keeps the divisor from 0.
      where: mask of the elements that mean and variance are those of.
      algorithm: "fast" takes the variance as mean(x**2) - mean(x)**2, which loses digits where the
        mean is large; "stable" as mean((x - mean)**2).

    Returns:
      Array of the shape of `x`, where the others do not broadcast it to a larger one.

    Raises AttributeValueError (a ValueError) for another algorithm.

    Examples:
      >>> weft.nn.standardize(wnp.array([1.0, 3.0, 1.0, 3.0])).round(3)
      Array([-1.,  1., -1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise AttributeValueError(
            f"[standardize] expected algorithm 'fast' or 'stable'; got {algorithm!r}"
        )
    _require_mask(where, "standardize")
    _core.check_ranks("standardize", (x, *(v for v in (mean, variance) if v is not None)))
    return _standardize(x, mean, variance, epsilon, where, axis=axis, algorithm=algorithm)


@composite(static_argnames=("axis", "algorithm"))
def _standardize(x, mean, variance, epsilon, where, *, axis, algorithm):
    x = inexact(x)
    given = [each for each in (mean, variance, epsilon) if each is not None]
    dtype = _core.result_type(x, *given)[0]
    x = _wide(x)

    def average(values):
        return jnp.mean(values, axis=axis, keepdims=True, where=where)

    if mean is None:
        mean = average(x)
    if variance is None and algorithm == "fast":
        variance = jnp.clip(average(jnp.square(x)) - jnp.square(mean), 0)
    elif variance is None:
        variance = average(jnp.square(x - mean))
    return _rounded(jnp.subtract(x, mean) * lax.rsqrt(jnp.add(variance, epsilon)), dtype)


def one_hot(x, num_classes, *, dtype=None, axis=-1):
    """1 at the position that each element of x names, 0 elsewhere, along a new axis.

    Args:
      x: array of shape s, or lists of numbers. Positions outside of 0..num_classes-1 give zeros
        only.
      num_classes: size of the new axis.
      dtype: of the result; None for the default float.
      axis: where the new axis stands; or the name of a mapped axis of that size, each index of
        which gets what stands there.

    Returns an array of rank ndim(s) + 1, or ndim(s) for a mapped axis.

    Raises AttributeValueError (a ValueError) where `axis` names a mapped axis of another size.

    Examples:
      >>> weft.nn.one_hot(wnp.array([2, 0, 7]), 3)
      Array([[0., 0., 1.],
             [1., 0., 0.],
             [0., 0., 0.]], dtype=float32)
    """
    if isinstance(x, (list, tuple)):
        x = jnp.array(x)
    count = static_int(num_classes, "one_hot", "num_classes")
    dtype = default_float() if dtype is None else requested_dtype(dtype, "one_hot")
    if not isinstance(axis, str):
        axis = normalize_axis(axis, len(_core.typeof(x)[0]) + 1, "one_hot")
        return _one_hot(x, count=count, dtype=dtype, axis=axis)
    here = lax.axis_index(axis)
    if lax.axis_size(axis) != count:
        raise AttributeValueError(
            f"[one_hot] expected num_classes to be the size of the axis {axis!r}, "
            f"{lax.axis_size(axis)}; got {count}"
        )
    return jnp.equal(x, here).astype(dtype)


@composite(static_argnames=("count", "dtype", "axis"))
def _one_hot(x, *, count, dtype, axis):
    x = _core.asarray(x)
    shape = [1] * (x.ndim + 1)
    shape[axis] = count
    classes = _core.bind("iota", dimension=axis, dtype=x.dtype, shape=tuple(shape))
    return (jnp.expand_dims(x, axis) == classes).astype(dtype)
