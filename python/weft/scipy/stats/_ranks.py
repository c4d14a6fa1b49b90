"""Modes, ranks and the standard error of the mean."""

import math
from typing import NamedTuple

from weft import _core, lax, numpy as jnp
from weft._arguments import ndim_of, normalize_axis, shape_of
from weft._jit import composite
from weft.dtypes import default_float, default_int, dtype_of, is_float
from weft.errors import AttributeValueError, AxisError
from weft.numpy._reductions import compute_dtype

_POLICIES = ("propagate", "omit", "raise")


class ModeResult(NamedTuple):
    """What `mode` returns: the values and how often they occur."""

    mode: _core.Array
    count: _core.Array


def _check_policy(function, policy):
    if policy not in _POLICIES:
        raise AttributeValueError(
            f"[{function}] expected nan_policy to be one of {', '.join(_POLICIES)}; got {policy!r}"
        )
    if policy != "propagate":
        raise NotImplementedError(f"[{function}] nan_policy={policy!r} is not supported")


def _firsts(ordered):
    """Where the values of a sorted array, along its last axis, are not those before them."""
    before, after = ordered[..., :-1], ordered[..., 1:]
    new = (before != after) & ((before == before) | (after == after))  # NaNs are equal
    return jnp.concatenate([jnp.ones_like(ordered[..., :1], dtype=bool), new], axis=-1)


def mode(a, axis=0, nan_policy="propagate", keepdims=False):
    """The most frequent value along an axis, the smallest of those that are equally frequent.

    Args:
      a: array or number. NaNs are taken as equal.
      axis: the axis; None for all elements.
      nan_policy: "propagate"; NotImplementedError for "omit" and "raise".
      keepdims: keep reduced axes with size 1.

    Returns:
      ModeResult: the values, of the dtype of `a`, and their counts, integers. NaN and 0.0 where
      there are no elements.

    Examples:
      >>> weft.scipy.stats.mode(wnp.array([3, 1, 3, 1, 2]))
      ModeResult(mode=Array(1, dtype=int32), count=Array(2, dtype=int32))
    """
    _check_policy("mode", nan_policy)
    shape = shape_of(a) or (1,)
    if axis is not None:
        axis = normalize_axis(axis, len(shape), "mode")
    return ModeResult(*_mode(a, axis=axis, keepdims=keepdims))


@composite(static_argnames=("axis", "keepdims"))
def _mode(a, *, axis, keepdims):
    a = jnp.asarray(a)
    rank = a.ndim
    a = jnp.ravel(a) if axis is None or not rank else jnp.moveaxis(a, axis, -1)
    if a.shape[-1]:
        ordered = jnp.sort(a, axis=-1)
        places = lax.broadcasted_iota(default_int(), a.shape, a.ndim - 1)
        first = jnp.where(_firsts(ordered), places, 0)
        runs = places + 1 - lax.cummax(first, axis=a.ndim - 1)
        best = jnp.argmax(runs, axis=-1, keepdims=True)
        results = [jnp.take_along_axis(each, best, axis=-1) for each in (ordered, runs)]
    else:
        shape = (*a.shape[:-1], 1)
        results = [jnp.full(shape, math.nan, default_float()), jnp.zeros(shape, default_float())]
    if not keepdims:
        return [each[..., 0] for each in results]
    if axis is None:
        return [jnp.reshape(each, (1,) * rank) for each in results]
    return [jnp.moveaxis(each, -1, axis) for each in results] if rank else results


_METHODS = ("average", "min", "max", "dense", "ordinal")


def rankdata(a, method="average", *, axis=None, nan_policy="propagate"):
    """The ranks of elements, from 1: their places in sorted order.

    Args:
      a: array or number.
      method: what equal elements get: the "average", "min" or "max" of their ranks; "dense": the
        number of different elements up to them; "ordinal": each its own, in their order.
      axis: the axis to rank along; None for all elements, flattened.
      nan_policy: "propagate": all ranks are NaN where there is a NaN. NotImplementedError for
        "omit" and "raise".

    Returns:
      Array of the default floating-point dtype, of the shape of `a` or flat.

    Examples:
      >>> weft.scipy.stats.rankdata(wnp.array([10, 30, 20, 20]))
      Array([1. , 4. , 2.5, 2.5], dtype=float32)
    """
    _check_policy("rankdata", nan_policy)
    if method not in _METHODS:
        raise AttributeValueError(
            f"[rankdata] expected the method to be one of {', '.join(_METHODS)}; got {method!r}"
        )
    if axis is not None:
        axis = normalize_axis(axis, ndim_of(a), "rankdata")
    return _rankdata(a, method=method, axis=axis)


@composite(static_argnames=("method", "axis"))
def _rankdata(a, *, method, axis):
    a = _core.asarray(a)
    a = jnp.ravel(a) if axis is None else jnp.moveaxis(a, axis, -1)
    last = a.ndim - 1
    order = jnp.argsort(a, axis=-1)
    ordered = jnp.take_along_axis(a, order, axis=-1)
    places = lax.broadcasted_iota(default_int(), a.shape, last)
    first = _firsts(ordered)
    if method == "ordinal":
        ranks = places + 1
    elif method == "dense":
        ranks = jnp.cumsum(first, axis=-1)
    else:
        low = 1 + lax.cummax(jnp.where(first, places, 0), axis=last)
        # The last place of a run is that before the next one begins.
        ends = jnp.concatenate([first[..., 1:], jnp.ones_like(first[..., :1])], axis=-1)
        high = 1 + lax.cummin(jnp.where(ends, places, a.shape[-1]), axis=last, reverse=True)
        ranks = {"min": low, "max": high, "average": (low + high) / 2}[method]
    ranks = _core.astype(ranks, default_float())
    ranks = jnp.take_along_axis(ranks, jnp.argsort(order, axis=-1), axis=-1)
    if is_float(a.dtype):
        ranks = jnp.where(jnp.any(jnp.isnan(a), axis=-1, keepdims=True), math.nan, ranks)
    return ranks if axis is None else jnp.moveaxis(ranks, -1, axis)


def sem(a, axis=0, ddof=1, nan_policy="propagate", *, keepdims=False):
    """The standard error of the mean: the standard deviation over the root of the count.

    Args:
      a: array of at least one axis.
      axis: the axis; None for all elements.
      ddof: what the count is less by in the variance.
      nan_policy: "propagate", or "omit" to leave out NaNs. ValueError for others.
      keepdims: keep reduced axes with size 1.

    Returns:
      Array of a floating-point dtype.

    Examples:
      >>> weft.scipy.stats.sem(wnp.array([1.0, 3.0, 1.0, 3.0]), ddof=0)
      Array(0.5, dtype=float32)
    """
    if nan_policy not in ("propagate", "omit"):
        raise AttributeValueError(
            f"[sem] expected nan_policy to be 'propagate' or 'omit'; got {nan_policy!r}"
        )
    shape = shape_of(a)
    if axis is not None:
        if not shape:
            raise AxisError("[sem] expected an array of an axis; got a number")
        axis = normalize_axis(axis, len(shape), "sem")
    return _sem(a, axis=axis, ddof=ddof, omit=nan_policy == "omit", keepdims=keepdims)


@composite(static_argnames=("axis", "ddof", "omit", "keepdims"))
def _sem(a, *, axis, ddof, omit, keepdims):
    (a,) = _core.promote_dtypes_inexact(a)
    dtype, a = a.dtype, _core.astype(a, compute_dtype(a.dtype))
    if omit:
        deviation = jnp.nanstd(a, axis=axis, ddof=ddof, keepdims=keepdims)
        count = jnp.sum(~jnp.isnan(a), axis=axis, keepdims=keepdims)
    else:
        deviation = jnp.std(a, axis=axis, ddof=ddof, keepdims=keepdims)
        count = a.size if axis is None else a.shape[axis]
    root = jnp.sqrt(_core.astype(count, dtype_of(deviation)))
    return _core.astype(deviation / root, dtype)
