"""Random numbers of continuous distributions."""

import math
from typing import Any

import numpy as np

from weft import _core
from weft._arguments import shape_of, static_shape
from weft._jit import composite
from weft._surface import example_section
from weft.dtypes import (
    default_float,
    dtype_of,
    finfo,
    is_complex,
    is_float,
    real_dtype,
    requested_dtype,
)
from weft.errors import AttributeValueError, DTypeError
from weft.lax._elementwise import bitcast_convert_type
from weft.lax._sharding import can_be_split, split_as
from weft.numpy import _ufuncs as u
from weft.numpy._division_powers import hypot
from weft.numpy._select import choose
from weft.random._keys import checked_key, random_bits, split
from weft.random._parameters import checked

_NUMBERS = (int, float, np.generic)


@can_be_split
def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0, *, out_sharding=None):
    """Numbers evenly spread over minval <= x < maxval.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a float dtype.
      minval, maxval: bounds, numbers or arrays that broadcast to the shape. Where that is (), they
        may be arrays of one element, whose axes the result has.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> x = weft.random.uniform(weft.random.key(0), (1000,), minval=2, maxval=3)
      >>> wnp.all((x >= 2) & (x < 3))
      Array(True, dtype=bool)
    """
    shape = static_shape(shape, "uniform")
    key, options = checked("uniform", key, (minval, maxval), shape or _axes(minval, maxval), dtype)
    return _uniform(key, minval, maxval, **options)


def _axes(*bounds):
    shapes = [shape_of(bound) for bound in bounds]
    return max(shapes, key=len) if {size for shape in shapes for size in shape} <= {1} else ()


@composite(static_argnames=("shape", "dtype"))
def _uniform(key, minval, maxval, *, shape, dtype):
    return uniform_within(key, shape, dtype, minval, maxval)


def uniform_within(key, shape, dtype, minval=0.0, maxval=1.0):
    """`uniform`, for use in composites."""
    return _spread_over(_from_bits(key, shape, dtype), minval, maxval)


def _spread_over(share, minval: Any, maxval: Any):
    """Numbers in [0, 1) as numbers between bounds."""
    dtype, shape = dtype_of(share), shape_of(share)
    numbers = all(isinstance(bound, _NUMBERS) for bound in (minval, maxval))
    from_zero = numbers and 0 == minval <= maxval
    minval, maxval = (_core.broadcast_to(_core.astype(v, dtype), shape) for v in (minval, maxval))
    span = _core.bind("sub", maxval, minval)
    x = _core.bind("add", _core.bind("mul", share, span), minval)
    # XLA may add minval to a number of the bits first, and what is rounded then may be less.
    return x if from_zero else _core.bind("max", minval, x)


def _from_bits(key, shape, dtype):
    """Multiples of the rounding error in [0, 1): random bits as the mantissa of 1 <= x < 2."""
    info = finfo(dtype)
    container = np.dtype(f"uint{info.bits}")
    source = container if info.nmant >= 8 else np.dtype(np.uint8)
    bits = random_bits(key, shape, source)
    unused = source.itemsize * 8 - info.nmant
    mantissa = _core.bind("shift_right_logical", bits, source.type(unused))
    one = np.ones((), dtype).view(container)[()]
    x = _core.bind("or", _core.astype(mantissa, container), one)
    return _core.bind("sub", bitcast_convert_type(x, dtype), dtype.type(1))


@can_be_split
def normal(key, shape=(), dtype=None, *, out_sharding=None):
    """Numbers of the normal distribution with mean 0 and variance 1.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a float or complex dtype. Complex numbers have independent parts of variance 1/2.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Raises DTypeError for a dtype that is neither float nor complex.

    Examples:
      >>> x = weft.random.normal(weft.random.key(0), (10000,))
      >>> wnp.allclose(x.mean(), 0, atol=0.05), x.std().round(1)
      (Array(True, dtype=bool), Array(1., dtype=float32))
    """
    dtype = default_float() if dtype is None else requested_dtype(dtype, "normal")
    if not (is_float(dtype) or is_complex(dtype)):
        raise DTypeError(f"[normal] expected a float or complex dtype; got {dtype}")
    key = checked_key(key, "normal")
    return _normal(key, shape=static_shape(shape, "normal"), dtype=dtype)


@composite(static_argnames=("shape", "dtype"))
def _normal(key, *, shape, dtype):
    if not is_complex(dtype):
        return _real_normal(key, shape, dtype)
    part = real_dtype(dtype)
    keys = split(key)
    parts = [_real_normal(keys[i], shape, part) for i in range(2)]
    return _core.bind("div", _core.bind("complex", *parts), dtype.type(np.sqrt(2)))


def _real_normal(key, shape, dtype):
    low = np.nextafter(dtype.type(-1), dtype.type(0), dtype=dtype)
    u = uniform_within(key, shape, dtype, low, 1.0)
    return _core.bind("mul", dtype.type(np.sqrt(2)), _core.bind("erf_inv", u))


@can_be_split
def truncated_normal(key, lower, upper, shape=None, dtype=None, *, out_sharding=None):
    """Numbers of the normal distribution of mean 0 and variance 1, between bounds.

    By the inverse of erf. In a tail, beyond 4 in float32, 7.5 in float64 and 0.7 in float16, erf
    tells too few numbers apart, and the logarithm of the tail is inverted: there the numbers drawn
    are others than those of JAX.

    Args:
      key: a key.
      lower, upper: bounds, numbers or arrays.
      shape: shape of the result; None for the broadcast shape of the bounds.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> x = weft.random.truncated_normal(weft.random.key(0), -1.0, 2.0, (1000,))
      >>> wnp.all((x > -1) & (x < 2))
      Array(True, dtype=bool)
    """
    bounds = lower, upper
    key, options = checked("truncated_normal", key, bounds, shape, dtype)
    tails = _may_be_tails(*bounds, options["dtype"])
    return _truncated_normal(key, lower, upper, tails=tails, **options)


# From these bounds on `erf` has fewer than about a thousand values left below 1; for dtypes of less
# precision everywhere.
_TAIL_FROM = {"float64": 7.5, "float32": 4.0, "float16": 0.7}


def _tail_from(dtype):
    return _TAIL_FROM.get(dtype.name, 0.0)


def _may_be_tails(lower: Any, upper: Any, dtype):
    """Whether the bounds may be those of a tail; True of arrays, whose values are not looked at."""
    numbers = all(isinstance(bound, _NUMBERS) for bound in (lower, upper))
    return not numbers or bool(lower >= _tail_from(dtype) or upper <= -_tail_from(dtype))


@composite(static_argnames=("shape", "dtype", "tails"))
def _truncated_normal(key, lower, upper, *, shape, dtype, tails):
    lower, upper = (_core.astype(bound, dtype) for bound in (lower, upper))
    low, high = lower, upper
    if tails:
        start = dtype.type(_tail_from(dtype))
        above, below = u.greater_equal(lower, start), u.less_equal(upper, -start)
        in_tail = u.logical_and(u.logical_or(above, below), u.less(lower, upper))
        # The other way to a number is not taken there, and has finite slopes.
        low, high = choose(in_tail, -1, lower), choose(in_tail, 1, upper)
    root = dtype.type(np.sqrt(2))
    # The product, since it is what XLA makes of the quotient in JAX, which draws the same numbers.
    inverse = dtype.type(1) / root
    low, high = (_core.bind("erf", _core.bind("mul", bound, inverse)) for bound in (low, high))
    share = _from_bits(key, shape, dtype)
    number = _spread_over(share, low, high)
    # What is rounded to 1 stands for no finite number.
    largest = dtype.type(1 - finfo(dtype).epsneg)
    number = _core.bind(
        "clamp", _like(number, -largest, dtype), number, _like(number, largest, dtype)
    )
    x = _core.bind("mul", root, _core.bind("erf_inv", number))
    if tails:
        nearest = choose(above, lower, u.negative(upper))
        farthest = choose(above, upper, u.negative(lower))
        size = _sizes_in_tail(choose(in_tail, nearest, 1), choose(in_tail, farthest, 2), share)
        x = choose(in_tail, choose(above, size, u.negative(size)), x)
    lower, upper = (_core.bind("stop_gradient", bound) for bound in (lower, upper))
    above = _core.bind("nextafter", lower, _like(lower, np.inf, dtype))
    below = _core.bind("nextafter", upper, _like(upper, -np.inf, dtype))
    above, below = (_core.broadcast_to(bound, shape) for bound in (above, below))
    return _core.bind("clamp", above, x, below)


def _sizes_in_tail(nearest, farthest, share):
    """Numbers of the normal distribution between positive bounds: where Q is the upper tail, the x
    for which Q(x) = Q(nearest) - share (Q(nearest) - Q(farthest)), by Newton's method for log(Q).

    The start, sqrt(nearest**2 - 2 log(Q(x) / Q(nearest))), is greater than x, because in
    Q(x) = erfcx(x / sqrt(2)) exp(-x**2 / 2) / 2 the first factor falls (Marsaglia, "Generating a
    variable from the tail of the normal distribution", 1964). From there on the steps approach x,
    because log(Q) is concave.
    """
    from weft.scipy.special import erfcx
    from weft.scipy.special._evaluate import singles

    dtype = dtype_of(share)
    nearest, farthest, share = singles(_core.broadcast_arrays(nearest, farthest, share))
    # Limits that change nothing: numbers so large have no neighbours within the tail, and what is
    # so much farther is never reached.
    nearest = u.minimum(nearest, 1e15)
    farthest = u.minimum(farthest, u.add(nearest, 40.0))

    def scaled(x):
        return erfcx(u.multiply(x, math.sqrt(0.5)))

    def log_ratio(x):  # log(Q(x) / Q(nearest))
        squares = u.multiply(u.subtract(x, nearest), u.multiply(0.5, u.add(x, nearest)))
        return u.subtract(u.log(u.divide(scaled(x), scaled(nearest))), squares)

    wanted = u.log1p(u.multiply(share, u.expm1(log_ratio(farthest))))
    x = hypot(nearest, u.sqrt(u.multiply(-2.0, wanted)))
    for _ in range(5):
        x = _core.bind("stop_gradient", x)  # its slope is that of the last step
        slope = u.divide(math.sqrt(2 / math.pi), scaled(x))
        x = u.add(x, u.divide(u.subtract(log_ratio(x), wanted), slope))
    return _core.astype(x, dtype)


def _like(x, value, dtype):
    return _core.broadcast_to(dtype.type(value), shape_of(x))


def _standard(name, summary, low, transform, example):
    """A distribution that is a function of one uniform number, at least low(finfo)."""

    @composite(static_argnames=("shape", "dtype"))
    def draw(key, *, shape, dtype):
        return transform(uniform_within(key, shape, dtype, dtype.type(low(finfo(dtype)))), dtype)

    def function(key, shape=(), dtype=None, *, out_sharding=None):
        if out_sharding is not None:
            return split_as(out_sharding, name, lambda: function(key, shape, dtype))
        shape = static_shape(shape, name)
        key, options = checked(name, key, (), shape, dtype)
        return draw(key, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    {example_section(*example, indent="    ")}
    """
    return function


def _minus_log_complement(u, dtype):
    return _core.bind("neg", _core.bind("log1p", _core.bind("neg", u)))


def _signed_log(u, dtype):
    log = _core.bind("log1p", _core.bind("neg", _core.bind("abs", u)))
    return _core.bind("mul", _core.bind("sign", u), log)


def _logit(u, dtype):
    complement = _core.bind("log1p", _core.bind("neg", u))
    return _core.bind("sub", _core.bind("log", u), complement)


exponential = _standard(
    "exponential",
    "Numbers of the exponential distribution with mean 1.",
    lambda info: 0,
    _minus_log_complement,
    (
        "weft.random.exponential(weft.random.key(0), (10000,)).mean().round(1)",
        "Array(1., dtype=float32)",
    ),
)
laplace = _standard(
    "laplace",
    "Numbers of the Laplace distribution with mean 0 and scale 1.",
    lambda info: -1 + info.epsneg,
    _signed_log,
    (
        "abs(weft.random.laplace(weft.random.key(0), (10000,))).mean().round(1)",
        "Array(1., dtype=float32)",
    ),
)
logistic = _standard(
    "logistic",
    "Numbers of the logistic distribution with mean 0 and scale 1.",
    lambda info: info.tiny,
    _logit,
    (
        "weft.nn.sigmoid(weft.random.logistic(weft.random.key(0), (10000,))).mean().round(1)",
        "Array(0.5, dtype=float32)",
    ),
)


@can_be_split
def gumbel(key, shape=(), dtype=None, mode=None, *, out_sharding=None):
    """Numbers of the Gumbel distribution: p(x) = exp(-(x + exp(-x))).

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a float dtype.
      mode: "low", or "high" for numbers made of twice as many random bits, whose largest are about
        twice as large: 32 in float32. "highest" takes 64 random bits for one of float32, whose
        rounding errors are small relative to the number at both ends; for other dtypes it is
        "high". None is "low".
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> weft.random.gumbel(weft.random.key(0), (10000,)).mean().round(1)
      Array(0.6, dtype=float32)
    """
    shape = static_shape(shape, "gumbel")
    key, options = checked("gumbel", key, (), shape, dtype)
    return _gumbel(key, mode=mode_of(mode, "gumbel", GUMBEL_MODES), **options)


GUMBEL_MODES = ("low", "high", "highest")


def mode_of(mode, function, modes):
    """One of the modes that a function has; None is "low"."""
    if mode is None:
        return "low"
    if mode not in modes:
        known = ", ".join(map(repr, modes))
        raise AttributeValueError(f"[{function}] expected as mode one of {known}; got {mode!r}")
    return mode


@composite(static_argnames=("shape", "dtype", "mode"))
def _gumbel(key, *, shape, dtype, mode):
    tiny = dtype.type(finfo(dtype).tiny)
    if mode == "low":
        exponential = _core.bind("neg", _core.bind("log", uniform_within(key, shape, dtype, tiny)))
    elif mode == "highest" and dtype == np.float32:
        exponential = _exponential_of_words(key, shape)
    else:
        high, low = two_uniforms(key, shape, dtype)
        fine = _core.bind("add", _core.bind("add", high, low), _core.broadcast_to(tiny, shape))
        at_least_half = _core.bind("ge", high, _core.broadcast_to(dtype.type(0.5), shape))
        exponential = _minus_log_complement(choose(at_least_half, high, fine), dtype)
    return _core.bind("neg", _core.bind("log", exponential))


def _exponential_of_words(key, shape):
    """-log(1 - x) in float32, for x in [0, 1) of 64 random bits."""
    word, dtype = np.dtype(np.uint32), np.dtype(np.float32)
    words = random_bits(key, (2, *shape), word)
    high, low = words[0], words[1]
    is_below_half = high < 1 << 31
    # Of x or 1 - x the lesser: its leading bits, cut off where a float32 ends.
    high = choose(is_below_half, high, ~high + _core.astype(low == 0, word))
    low = choose(is_below_half, low, ~low + 1)
    begins_low = high == 0
    first = choose(begins_low, low, high)
    unused = _core.bind("clz", first)
    bits = (first << unused) | (choose(begins_low, 0, low) >> (32 - unused))
    exponent = 126 - unused - choose(begins_low, word.type(32), word.type(0))
    lesser = bitcast_convert_type((exponent << 23) | ((bits >> 8) & 0x7FFFFF), dtype)
    of_complement = _core.bind("neg", _core.bind("log", lesser))
    return choose(is_below_half, _minus_log_complement(lesser, dtype), of_complement)


def two_uniforms(key, shape, dtype):
    """Uniform numbers, and as many that add random bits below their last ones."""
    both = uniform_within(key, (2, *shape), dtype)
    return both[0], _core.bind("mul", both[1], dtype.type(finfo(dtype).eps))
