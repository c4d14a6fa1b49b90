"""Reductions along axes: sums, products, extrema, logic, positions and counts.

Floats narrower than 32 bits are summed up in float32. Sums and products of bool and of integers
narrower than the default integer dtype are taken in the default integer dtype of their kind.
"""

import math
from typing import Any

import numpy as np

from weft import _core
from weft._arguments import is_beyond, normalize_axes, normalize_axis, shape_of
from weft._jit import composite
from weft._surface import eager_entry
from weft.dtypes import (
    canonicalize_dtype,
    default_int,
    dtype_of,
    highest_value,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    is_key,
    lowest_value,
    requested_dtype,
)
from weft.errors import AttributeValueError, NotImplementedRuleError, ShapeError
from weft.lax._shape import broadcast_in_dim, reshape
from weft.numpy import _ufuncs as u
from weft.numpy._select import as_bool, choose


def reject_out(function, out):
    """`out` exists in signatures for the sake of NumPy's callers only."""
    if out is not None:
        raise NotImplementedError(f"[{function}] arrays are immutable: out must be None")


def compute_dtype(dtype):
    """The dtype in which sums are taken whose result has `dtype`."""
    return np.dtype("float32") if is_float(dtype) and dtype.itemsize < 4 else dtype


def sum_dtype(function, a, dtype, promote_integers):
    own = dtype_of(a)
    if dtype is not None:
        return requested_dtype(dtype, function)
    if is_bool(own):
        return default_int()
    if is_integer(own) and promote_integers:
        wide = canonicalize_dtype("uint64" if own.kind == "u" else "int64")
        return wide if wide.itemsize > own.itemsize else own
    return own


def _lowest(dtype):
    return complex(-np.inf, -np.inf) if is_complex(dtype) else lowest_value(dtype)


def _highest(dtype):
    return complex(np.inf, np.inf) if is_complex(dtype) else highest_value(dtype)


def require_mask(function, where):
    """AttributeValueError if `where` is neither None nor of truth values."""
    if where is not None and not is_bool(dtype_of(where)):
        raise AttributeValueError(
            f"[{function}] expected where to be None or a bool array; got dtype {dtype_of(where)}"
        )


# The operation, the one that combines two results, the identity by dtype, and whether narrow floats
# are widened meanwhile.
_KINDS = {
    "sum": ("reduce_sum", u.add, lambda dtype: 0, True),
    "prod": ("reduce_prod", u.multiply, lambda dtype: 1, True),
    "max": ("reduce_max", u.maximum, _lowest, False),
    "min": ("reduce_min", u.minimum, _highest, False),
    "all": ("reduce_and", u.logical_and, lambda dtype: True, False),
    "any": ("reduce_or", u.logical_or, lambda dtype: False, False),
}


# What sums and products of truth values are.
_OF_BOOLS = {"sum": "any", "prod": "all"}


# What combines the lanes of axes that are given by name.
_OVER_LANES = {"sum": "psum", "max": "pmax", "min": "pmin"}


def named_axes(axis):
    """The names and the numbers among the axes of a reduction; ((), axis) if there are no names."""
    each = axis if isinstance(axis, (tuple, list)) else (axis,)
    names = tuple(a for a in each if isinstance(a, str))
    return (names, tuple(a for a in each if not isinstance(a, str))) if names else ((), axis)


def _over_lanes(kind, names, a):
    """Reduces over the lanes of mapped axes."""
    from weft.lax import _collectives

    if kind not in _OVER_LANES:
        raise NotImplementedRuleError(
            f"[{kind}] expected numbers of axes; only sum, mean, max and min take names of mapped "
            f"axes, got {', '.join(map(repr, names))}"
        )
    return getattr(_collectives, _OVER_LANES[kind])(a, names)


def _reduce(kind: Any, a, axis, dtype, keepdims, where=None, initial=None):
    names, axis = named_axes(axis)
    if names:
        return _over_lanes(kind, names, _reduce(kind, a, axis, dtype, keepdims, where, initial))
    shape, own, weak = _core.typeof(a)
    axes = normalize_axes(axis, len(shape), kind)
    if is_bool(dtype):
        kind = _OF_BOOLS.get(kind, kind)
    op, _, _, widen = _KINDS[kind]
    plain = where is None and initial is None and not keepdims and not weak and own == dtype
    if plain and not (widen and compute_dtype(dtype) != dtype):
        return _core.bind(op, a, axes=axes) if axes or is_key(own) else _core.asarray(a)
    return reduced(a, where, initial, kind=kind, axes=axes, dtype=dtype, keepdims=bool(keepdims))


@composite(static_argnames=("kind", "axes", "dtype", "keepdims"))
def reduced(a, where, initial, *, kind, axes, dtype, keepdims):
    """The general reduction: conversion, mask, reduction, initial value, kept axes."""
    op, combine, identity, widen = _KINDS[kind]
    shape = shape_of(a)
    require_mask(kind, where)
    if initial is not None and shape_of(initial):
        raise ShapeError(f"[{kind}] expected a scalar as initial; got shape {shape_of(initial)}")
    working = compute_dtype(dtype) if widen else dtype
    a = as_bool(a) if is_bool(dtype) else _core.astype(a, working)
    if where is not None:
        neutral = _core.astype(identity(working), working)
        a = choose(where, a, neutral)
        shape = shape_of(a)  # that of the mask, if it is larger
    if axes:
        a = _core.bind(op, a, axes=axes)
    if initial is not None:
        a = combine(_core.astype(initial, working), a)
    return restore_axes(_core.astype(a, dtype), shape, axes, keepdims)


def restore_axes(a, shape, axes, keepdims):
    """Puts the reduced axes back with size 1, if they are to be kept."""
    if not keepdims or not axes:
        return a
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    return broadcast_in_dim(
        a, [1 if axis in axes else size for axis, size in enumerate(shape)], kept
    )


@eager_entry(1, "axis", "keepdims", "promote_integers")
def sum(
    a,
    axis=None,
    dtype=None,
    out=None,
    keepdims=False,
    initial=None,
    where=None,
    promote_integers=True,
):
    """Sum of the elements along axes.

    Args:
      a: array or number.
      axis: an axis, several, or None for all. The name of a mapped axis (of `vmap`) among them
        stands for its lanes; `mean`, `max` and `min` take names as well.
      dtype: dtype of the result and of the additions; else that of `a`, widened for integers.
      out: not supported, must be None.
      keepdims: whether the reduced axes stay, with size 1.
      initial: scalar to be added.
      where: bool array that broadcasts to `a`; elements where it is false are left out.
      promote_integers: whether integers narrower than the default dtype are widened to it.

    Examples:
      >>> wnp.sum(wnp.array([[1, 2], [3, 4]]), axis=0)
      Array([4, 6], dtype=int32)
      >>> wnp.sum(wnp.array([True, True, False]))
      Array(2, dtype=int32)
    """
    reject_out("sum", out)
    dtype = sum_dtype("sum", a, dtype, promote_integers)
    return _reduce("sum", a, axis, dtype, keepdims, where, initial)


@eager_entry(1, "axis", "keepdims", "promote_integers")
def prod(
    a,
    axis=None,
    dtype=None,
    out=None,
    keepdims=False,
    initial=None,
    where=None,
    promote_integers=True,
):
    """Product of the elements along axes; for the arguments see `sum`.

    Examples:
      >>> wnp.prod(wnp.array([[1, 2], [3, 4]]), axis=1)
      Array([ 2, 12], dtype=int32)
    """
    reject_out("prod", out)
    dtype = sum_dtype("prod", a, dtype, promote_integers)
    return _reduce("prod", a, axis, dtype, keepdims, where, initial)


def _extremum(kind, a, axis, out, keepdims, initial, where):
    reject_out(kind, out)
    shape, dtype, _ = _core.typeof(a)
    if initial is None:
        if where is not None:
            raise AttributeValueError(
                f"[{kind}] expected an initial value together with where: there is no identity"
            )
        for axis_number in normalize_axes(named_axes(axis)[1], len(shape), kind):
            if shape[axis_number] == 0:
                raise ShapeError(
                    f"[{kind}] expected an initial value for a reduction over axis {axis_number} "
                    f"of size 0; got an array of shape {shape}"
                )
    elif is_beyond(initial, dtype):
        initial = _core.astype(initial, dtype)  # which refuses it
    return _reduce(kind, a, axis, dtype, keepdims, where, initial)


@eager_entry(1, "axis", "keepdims")
def max(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Greatest element along axes; NaN if there is one.

    Args:
      a: array or number.
      axis: an axis, several, or None for all.
      out: not supported, must be None.
      keepdims: whether the reduced axes stay, with size 1.
      initial: least value of the result; needed for axes of size 0 and with `where`.
      where: mask that broadcasts to `a`; elements where it is false are left out.

    Examples:
      >>> wnp.max(wnp.array([[1, 5], [3, 4]]), axis=1)
      Array([5, 4], dtype=int32)
      >>> wnp.max(wnp.array([]), initial=0.0)
      Array(0., dtype=float32)
    """
    return _extremum("max", a, axis, out, keepdims, initial, where)


@eager_entry(1, "axis", "keepdims")
def min(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Smallest element along axes; NaN if there is one. For the arguments see `max`.

    Examples:
      >>> wnp.min(wnp.array([[1, 5], [3, 4]]), axis=1, keepdims=True)
      Array([[1],
             [3]], dtype=int32)
    """
    return _extremum("min", a, axis, out, keepdims, initial, where)


amax, amin = max, min


def minmax(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Smallest and greatest element along axes, a tuple.

    `initial` is a number for both, or a tuple of the greatest value of the one and the least value
    of the other. For the other arguments see `max`.

    Examples:
      >>> wnp.minmax(wnp.array([[1, 5], [3, 4]]), axis=1)
      (Array([1, 3], dtype=int32), Array([5, 4], dtype=int32))
    """
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    return (
        _extremum("min", a, axis, out, keepdims, low, where),
        _extremum("max", a, axis, out, keepdims, high, where),
    )


@eager_entry(1, "axis", "keepdims")
def all(a, axis=None, out=None, keepdims=False, *, where=None):
    """Whether all elements along axes are true (not zero).

    Args:
      a: array or number.
      axis: an axis, several, or None for all.
      out: not supported, must be None.
      keepdims: whether the reduced axes stay, with size 1.
      where: mask that broadcasts to `a`; elements where it is false are left out.

    Examples:
      >>> wnp.all(wnp.array([[1, 0], [3, 4]]), axis=1)
      Array([False,  True], dtype=bool)
    """
    reject_out("all", out)
    return _reduce("all", a, axis, np.dtype(bool), keepdims, where)


@eager_entry(1, "axis", "keepdims")
def any(a, axis=None, out=None, keepdims=False, *, where=None):
    """Whether any element along axes is true (not zero). For the arguments see `all`.

    Examples:
      >>> wnp.any(wnp.array([[1, 0], [0, 0]]), axis=1)
      Array([ True, False], dtype=bool)
    """
    reject_out("any", out)
    return _reduce("any", a, axis, np.dtype(bool), keepdims, where)


@eager_entry(1, "axis", "keepdims")
def count_nonzero(a, axis=None, keepdims=False):
    """Number of elements along axes that are not zero, as the default integer dtype.

    `axis` (one, several, or None for all) and `keepdims` are those of `sum`.

    Examples:
      >>> wnp.count_nonzero(wnp.array([[1, 0], [3, 4]]), axis=1)
      Array([1, 2], dtype=int32)
    """
    axes = normalize_axes(axis, len(shape_of(a)), "count_nonzero")
    return _count_nonzero(a, axes=axes, keepdims=bool(keepdims))


@composite(static_argnames=("axes", "keepdims"))
def _count_nonzero(a, *, axes, keepdims):
    return sum(u.not_equal(a, 0), axes, keepdims=keepdims)


@eager_entry(1, "axis", "keepdims")
def ptp(a, axis=None, out=None, keepdims=False):
    """Difference of the greatest and the smallest element along axes.

    `axis`, `out` and `keepdims` are those of `max`.

    Examples:
      >>> wnp.ptp(wnp.array([[1, 5], [3, 4]]), axis=1)
      Array([4, 1], dtype=int32)
    """
    reject_out("ptp", out)
    if named_axes(axis)[0]:
        return u.subtract(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))
    axes = normalize_axes(axis, len(shape_of(a)), "ptp")
    return _ptp(a, axes=axes, keepdims=bool(keepdims))


@composite(static_argnames=("axes", "keepdims"))
def _ptp(a, *, axes, keepdims):
    return u.subtract(max(a, axes, keepdims=keepdims), min(a, axes, keepdims=keepdims))


@eager_entry(1, "axis", "keepdims")
def argmax(a, axis=None, out=None, keepdims=None):
    """Position of the greatest element, the first of several; of a NaN if there is one.

    Args:
      a: array with at least one element along the axis.
      axis: the axis; None for the position in the flattened array.
      out: not supported, must be None.
      keepdims: whether the axis (or all axes) stays, with size 1.

    Examples:
      >>> wnp.argmax(wnp.array([[1, 5, 5], [9, 4, 0]]), axis=1)
      Array([1, 0], dtype=int32)
      >>> wnp.argmax(wnp.array([[1, 5, 5], [9, 4, 0]]))
      Array(3, dtype=int32)
    """
    return _arg_extremum("argmax", a, axis, out, keepdims)


@eager_entry(1, "axis", "keepdims")
def argmin(a, axis=None, out=None, keepdims=None):
    """Position of the smallest element, the first of several; of a NaN if there is one.

    For the arguments see `argmax`.

    Examples:
      >>> wnp.argmin(wnp.array([[1, 5, 5], [9, 4, 0]]), axis=1)
      Array([0, 2], dtype=int32)
    """
    return _arg_extremum("argmin", a, axis, out, keepdims)


def _arg_extremum(op, a, axis, out, keepdims):
    reject_out(op, out)
    shape = shape_of(a)
    if axis is not None:
        axis = normalize_axis(axis, len(shape), op)
    if 0 in (shape if axis is None else shape[axis : axis + 1]):
        raise ShapeError(f"[{op}] expected at least one element; got an array of shape {shape}")
    if axis is None or keepdims:
        return _positions(a, op=op, axis=axis, keepdims=bool(keepdims))
    return _core.bind(op, a, axes=(axis,), index_dtype=default_int())


@composite(static_argnames=("op", "axis", "keepdims"))
def _positions(a, *, op, axis, keepdims):
    shape = shape_of(a)
    axes = tuple(range(len(shape))) if axis is None else (axis,)
    if axis is None:
        a, axis = reshape(a, (math.prod(shape),)), 0
    result = _core.bind(op, a, axes=(axis,), index_dtype=default_int())
    return restore_axes(result, shape, axes, keepdims)
