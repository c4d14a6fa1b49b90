"""Random integers, bools, and choices among things."""

import math
from collections.abc import Sequence

import numpy as np

from weft import _core
from weft._arguments import is_beyond, ndim_of, normalize_axis, shape_of, static_int, static_shape
from weft._jit import composite
from weft.dtypes import (
    canonicalize_dtype,
    default_int,
    dtype_of,
    iinfo,
    is_float,
    is_integer,
    requested_dtype,
)
from weft.errors import (
    AttributeValueError,
    DTypeError,
    IndexOutOfBoundsError,
    OperandError,
    ShapeError,
)
from weft.lax._creation import full
from weft.lax._cumulative import cumsum
from weft.lax._reduce import argmax
from weft.lax._shape import reshape
from weft.lax._sharding import can_be_split
from weft.lax._sort import sort_key_val, top_k
from weft.numpy import _ufuncs as u
from weft.numpy._select import choose
from weft.numpy._shape import moveaxis
from weft.numpy._sorting import searchsorted
from weft.numpy._take import take
from weft.random._continuous import GUMBEL_MODES, gumbel, mode_of, two_uniforms, uniform_within
from weft.random._keys import checked_key, random_bits, split
from weft.random._parameters import bounds_in, integer_dtype, result_shape, shapes_in, spread


@can_be_split
def randint(key, shape, minval, maxval, dtype=None, *, out_sharding=None):
    """Integers evenly spread over minval <= x < maxval.

    Args:
      key: a key.
      shape: shape of the result.
      minval, maxval: bounds, integers or arrays that broadcast to the shape. Where maxval is not
        above minval the result is minval. Bounds beyond the range of the dtype move to it;
        OverflowError for Python's numbers of neither `dtype` nor the default integer dtype.
      dtype: an integer dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Raises DTypeError for a dtype that is no integer one.

    Examples:
      >>> dice = weft.random.randint(weft.random.key(0), (1000,), 1, 7)
      >>> wnp.unique(dice)
      Array([1, 2, 3, 4, 5, 6], dtype=int32)
    """
    dtype = default_int() if dtype is None else requested_dtype(dtype, "randint")
    if not is_integer(dtype):
        raise DTypeError(f"[randint] expected an integer dtype; got {dtype}")
    shape = static_shape(shape, "randint")
    bounds_in(shape, (minval, maxval), "randint")
    key = checked_key(key, "randint")
    bounds = (_as_integers(x, dtype) for x in (minval, maxval))
    return _randint(key, *bounds, shape=shape, dtype=dtype)


def _as_integers(x, dtype):
    """Bounds in an integer dtype of at least 32 bits: the default one, or `dtype` where that holds
    a Python integer that the default does not. OverflowError for those that neither holds."""
    x = _core.astype(x, dtype) if is_beyond(x, default_int()) else _core.asarray(x)
    own = dtype_of(x)
    if not is_integer(own) or own.itemsize < 4:
        return _core.astype(x, default_int())
    return _clipped(x, canonicalize_dtype(own))


@composite(static_argnames=("shape", "dtype"))
def _randint(key, minval, maxval, *, shape, dtype):
    limits = iinfo(dtype)
    # Dtypes of fewer bits are drawn as 32 bits.
    bits = np.dtype(f"uint{max(limits.bits, 32)}")
    beyond = False  # whether maxval is one past the largest number
    if limits.max < iinfo(dtype_of(maxval)).max:
        beyond = _core.bind("gt", maxval, dtype_of(maxval).type(limits.max))
    minval, maxval = (_core.astype(_clipped(x, dtype), bits) for x in (minval, maxval))
    minval, maxval = _core.broadcast_arrays(minval, maxval)
    signed = bits if limits.min == 0 else np.dtype(f"int{iinfo(bits).bits}")
    empty = _core.bind("le", _core.astype(maxval, signed), _core.astype(minval, signed))
    span = _select(empty, bits.type(1), _core.bind("sub", maxval, minval))
    if beyond is not False:
        longer = _core.bind("and", *_core.broadcast_arrays(beyond, _core.bind("not", empty)))
        span = _select(longer, _core.bind("add", span, bits.type(1)), span)
    span = _core.broadcast_to(span, shape)
    keys = split(key)
    high, low = (random_bits(keys[i], shape, bits) for i in range(2))
    if beyond is False or bits.itemsize > dtype.itemsize:
        offset = _remainder(high, low, span)
    else:
        # A span of all numbers of the dtype has wrapped to 0: any bits will do.
        all_numbers = _core.bind("eq", span, bits.type(0))
        span = _core.bind("max", span, _core.broadcast_to(bits.type(1), shape))
        offset = _select(all_numbers, low, _remainder(high, low, span))
    return _core.astype(_core.bind("add", _core.broadcast_to(minval, shape), offset), dtype)


def _remainder(high, low, span):
    """(2**n high + low) % span, in n bits."""
    dtype, shape = dtype_of(span), shape_of(span)
    half = _core.broadcast_to(dtype.type(1 << (4 * dtype.itemsize)), shape)
    half = _core.bind("rem", half, span)
    factor = _core.bind("rem", _core.bind("mul", half, half), span)
    offset = _core.bind("mul", _core.bind("rem", high, span), factor)
    offset = _core.bind("add", offset, _core.bind("rem", low, span))
    return _core.bind("rem", offset, span)


def _clipped(x, dtype):
    """Converted to a dtype, after moving to its range."""
    own, limits = dtype_of(x), iinfo(dtype)
    if limits.min > iinfo(own).min:
        x = _core.bind("max", x, int(limits.min))
    if limits.max < iinfo(own).max:
        x = _core.bind("min", x, int(limits.max))
    return _core.astype(x, dtype)


def _select(predicate, on_true, on_false):
    shape = shape_of(predicate)
    on_true, on_false = (_core.broadcast_to(x, shape) for x in (on_true, on_false))
    return _core.bind("select_n", predicate, on_false, on_true)


@can_be_split
def bernoulli(key, p=0.5, shape=None, mode="low", *, out_sharding=None):
    """Bools that are True with probability `p`.

    Args:
      key: a key.
      p: probabilities, a float or an array of floats that broadcasts to the shape.
      shape: shape of the result; None for that of `p`.
      mode: "low", or "high" for twice as many random bits, which tell smaller probabilities apart.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Raises DTypeError for integers as `p`, AttributeValueError (a ValueError) for another mode.

    Examples:
      >>> weft.random.bernoulli(weft.random.key(0), 0.25, (10000,)).mean().round(2)
      Array(0.25, dtype=float32)
    """
    shape = result_shape(shape, (p,), "bernoulli")
    if not is_float(dtype_of(p)):
        raise DTypeError(f"[bernoulli] expected p to be of a float dtype; got {dtype_of(p)}")
    if mode is None:
        raise AttributeValueError("[bernoulli] expected mode 'high' or 'low'; got None")
    key, mode = checked_key(key, "bernoulli"), mode_of(mode, "bernoulli", ("low", "high"))
    return _bernoulli(key, p, shape=shape, mode=mode)


@composite(static_argnames=("shape", "mode"))
def _bernoulli(key, p, *, shape, mode):
    dtype = canonicalize_dtype(dtype_of(p))
    p = _core.broadcast_to(_core.astype(p, dtype), shape)
    if mode == "low":
        return _core.bind("lt", uniform_within(key, shape, dtype), p)
    high, low = two_uniforms(key, shape, dtype)
    return _core.bind("lt", low, _core.bind("sub", p, high))


@can_be_split
def rademacher(key, shape=(), dtype=None, *, out_sharding=None):
    """Numbers that are 1 or -1, each with probability 1/2.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: dtype of the result, the default integer dtype if None.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> wnp.unique(weft.random.rademacher(weft.random.key(0), (100,)))
      Array([-1,  1], dtype=int32)
    """
    dtype = default_int() if dtype is None else requested_dtype(dtype, "rademacher")
    key = checked_key(key, "rademacher")
    return _rademacher(key, shape=static_shape(shape, "rademacher"), dtype=dtype)


@composite(static_argnames=("shape", "dtype"))
def _rademacher(key, *, shape, dtype):
    positive = _bernoulli(key, 0.5, shape=shape, mode="low")
    return _core.astype(2 * _core.astype(positive, dtype) - 1, dtype)


@can_be_split
def geometric(key, p, shape=None, dtype=None, *, out_sharding=None):
    """Numbers of trials up to the first success: P(k) = p (1 - p)**(k - 1) for k >= 1.

    Args:
      key: a key.
      p: probability of success, 0 < p <= 1; a number or an array that broadcasts to the shape.
      shape: shape of the result; None for that of `p`.
      dtype: an integer dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Raises AttributeValueError (a ValueError) for complex `p`.

    Examples:
      >>> weft.random.geometric(weft.random.key(0), 0.25, (10000,)).mean().round(1)
      Array(4., dtype=float32)
    """
    dtype = integer_dtype(dtype, "geometric")
    shape = result_shape(shape, (p,), "geometric")
    (p,) = _core.promote_dtypes_inexact(p)
    if not is_float(dtype_of(p)):
        raise AttributeValueError(f"[geometric] expected p to be real; got {dtype_of(p)}")
    return _geometric(checked_key(key, "geometric"), p, shape=shape, dtype=dtype)


@composite(static_argnames=("shape", "dtype"))
def _geometric(key, p, *, shape, dtype):
    (p,) = spread((p,), shape, dtype_of(p))
    x = uniform_within(key, shape, p.dtype)
    log = u.log(choose(x == 0, 1, x))
    return _core.astype(u.floor(log / u.log1p(-p)) + 1, dtype)


@can_be_split
def permutation(key, x, axis=0, independent=False, *, out_sharding=None):
    """The elements of an array in random order along an axis.

    Args:
      key: a key.
      x: array; or an integer n, for the numbers 0 to n - 1.
      axis: the axis.
      independent: order each line along the axis on its own, not all in the same way.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Raises OperandError (a TypeError) for other than an array or an integer.

    Examples:
      >>> shuffled = weft.random.permutation(weft.random.key(0), 5)
      >>> wnp.sort(shuffled)
      Array([0, 1, 2, 3, 4], dtype=int32)
    """
    key = checked_key(key, "permutation")
    if not shape_of(x):
        if not is_integer(dtype_of(x)):
            raise OperandError(f"[permutation] expected an array or an integer; got {x!r}")
        normalize_axis(axis, 1, "permutation")
        return _random_order(key, count=max(0, static_int(x, "permutation", "x")))
    axis = normalize_axis(axis, ndim_of(x), "permutation")
    return _permutation(key, x, axis=axis, independent=bool(independent))


@composite(static_argnames=("count",))
def _random_order(key, *, count):
    return _shuffled(key, _numbers(count), 0)


def _numbers(count):
    return _core.bind("iota", dtype=default_int(), shape=(count,), dimension=0)


@composite(static_argnames=("axis", "independent"))
def _permutation(key, x, *, axis, independent):
    if independent or ndim_of(x) == 1:
        return _shuffled(key, x, axis)
    order = _shuffled(key, _numbers(shape_of(x)[axis]), 0)
    return take(x, order, axis, unique_indices=True, mode="clip")


def _shuffled(key, x, axis):
    """Sorts by random keys, often enough that equal ones hardly leave a trace."""
    size = max(1, math.prod(shape_of(x)))
    for _ in range(math.ceil(3 * math.log(size) / math.log(2**32 - 1))):
        keys = split(key)
        key, bits = keys[0], random_bits(keys[1], shape_of(x), np.dtype(np.uint32))
        x = sort_key_val(bits, x, axis)[1]
    return x


@can_be_split
def categorical(key, logits, axis=-1, shape=None, replace=True, mode=None, *, out_sharding=None):
    """Indices along an axis, drawn with probabilities proportional to exp(logits).

    Those are where logits with Gumbel noise are largest (Kool, van Hoof and Welling, "Stochastic
    beams and where to find them", 2019).

    Args:
      key: a key.
      logits: unnormalised logarithms of probabilities.
      axis: the axis whose indices are drawn.
      shape: shape of the result. It ends in the shape of the logits without the axis, or in one
        that broadcasts from it, and may have more axes in front; None for that shape itself.
      replace: whether an index may be drawn more than once along the axes in front.
      mode: of the noise, "low", "high" or "highest"; see `gumbel`. None is "low".
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Raises AttributeValueError (a ValueError) for integers as logits, and for more draws without
    replacement than there are categories; ShapeError for a shape that does not fit.

    Examples:
      >>> logits = wnp.log(wnp.array([0.0, 1.0, 0.0]))
      >>> weft.random.categorical(weft.random.key(0), logits, shape=(4,))
      Array([1, 1, 1, 1], dtype=int32)
    """
    key, mode = checked_key(key, "categorical"), mode_of(mode, "categorical", GUMBEL_MODES)
    if not is_float(dtype_of(logits)):
        raise AttributeValueError(f"[categorical] expected float logits; got {dtype_of(logits)}")
    axis = _axis_of_outcomes(axis, ndim_of(logits))
    rest = tuple(n for i, n in enumerate(shape_of(logits)) if i != axis)
    shape = rest if shape is None else static_shape(shape, "categorical")
    shapes_in(shape, [rest], "categorical")
    front = shape[: len(shape) - len(rest)]
    if not replace and math.prod(front) > shape_of(logits)[axis]:
        raise AttributeValueError(
            f"[categorical] expected to draw at most {shape_of(logits)[axis]} different indices; "
            f"got {math.prod(front)}"
        )
    if not replace and shape[len(front) :] != rest:
        raise ShapeError(
            f"[categorical] expected a shape that ends in {rest} where indices may not repeat; "
            f"got {shape}"
        )
    replace = bool(replace)
    return _categorical(key, logits, axis=axis, shape=shape, replace=replace, mode=mode)


def _axis_of_outcomes(axis, ndim):
    if not -ndim <= static_int(axis, "categorical", "the axis") < ndim:
        raise IndexOutOfBoundsError(
            f"[categorical] expected an axis of the logits, which have {ndim} dimensions; "
            f"got {axis}"
        )
    return axis % ndim


@composite(static_argnames=("axis", "shape", "replace", "mode"))
def _categorical(key, logits, *, axis, shape, replace, mode):
    logits = _core.astype(logits, canonicalize_dtype(dtype_of(logits)))
    own = shape_of(logits)
    front = shape[: len(shape) - (len(own) - 1)]
    if not replace:
        noisy = _core.bind("add", gumbel(key, own, dtype_of(logits), mode), logits)
        order = top_k(noisy, math.prod(front), axis=axis)[1]
        return reshape(moveaxis(order, axis, 0), shape)
    # Broadcast the logits to the shape that was asked for, the axis included.
    wanted = list(shape)
    at = len(front) + axis
    wanted.insert(at, own[axis])
    noise = gumbel(key, tuple(wanted), dtype_of(logits), mode)
    noisy = _core.bind("add", noise, _core.broadcast_to(logits, tuple(wanted)))
    return argmax(noisy, at, default_int())


def choice(key, a, shape=(), replace=True, p=None, axis=0, mode=None):
    """Elements drawn from an array along an axis.

    Args:
      key: a key.
      a: array; or an integer n, for the numbers 0 to n - 1.
      shape: how many; these axes take the place of the axis.
      replace: whether an element may be drawn more than once.
      p: probabilities of the elements, an array with one axis; None for equal ones.
      axis: the axis.
      mode: "low", "high" or "highest", for the noise by which weighted elements are drawn without
        replacement; see `gumbel`. None is "low". No effect elsewhere.

    Raises AttributeValueError (a ValueError) with nothing to choose from and for more draws without
    replacement than that, ShapeError for `p` of another shape, TypeError for a shape that is no
    sequence of integers.

    Examples:
      >>> cards = weft.random.choice(weft.random.key(0), wnp.arange(52), (5,), replace=False)
      >>> wnp.unique(cards).shape
      (5,)
    """
    key = checked_key(key, "choice")
    if not isinstance(shape, Sequence):
        raise TypeError(f"[choice] expected the shape to be a sequence of integers; got {shape!r}")
    shape = static_shape(shape, "choice")
    if shape_of(a):
        axis = normalize_axis(axis, ndim_of(a), "choice")
        size = shape_of(a)[axis]
    else:
        size = static_int(a, "choice", "a")
    draws = math.prod(shape)
    if not draws:
        return full(shape, 0, dtype_of(a))
    if size < 1:
        raise AttributeValueError("[choice] expected something to choose from; got nothing")
    if not replace and draws > size:
        raise AttributeValueError(
            f"[choice] expected at most {size} draws without replacement; got {draws}"
        )
    if p is not None and shape_of(p) != (size,):
        raise ShapeError(f"[choice] expected p of shape ({size},); got {shape_of(p)}")
    if replace and p is None:
        order = randint(key, shape, 0, size)
    elif p is None:
        order = reshape(_random_order(key, count=size)[:draws], shape)
    else:
        mode = "low" if replace else mode_of(mode, "choice", GUMBEL_MODES)
        order = _weighted(key, p, shape=shape, replace=bool(replace), mode=mode)
    return take(a, order, axis, mode="clip") if shape_of(a) else order


@composite(static_argnames=("shape", "replace", "mode"))
def _weighted(key, p, *, shape, replace, mode):
    (p,) = _core.promote_dtypes_inexact(p)
    if not replace:
        noisy = gumbel(key, p.shape, p.dtype, mode) + u.log(p)
        order = reshape(top_k(noisy, math.prod(shape))[1], shape)
        return _core.astype(order, default_int())
    total = cumsum(p)
    x = total[-1] * (1 - uniform_within(key, shape, p.dtype))
    return _core.astype(searchsorted(total, x), default_int())
