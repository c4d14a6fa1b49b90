"""Rounding, and functions that look at the representation of floats."""

import math
import operator

import numpy as np

from weft import _core
from weft._arguments import ndim_of, strong
from weft._jit import composite
from weft.dtypes import (
    default_float,
    dtype_of,
    finfo,
    highest_value,
    iinfo,
    is_bool,
    is_complex,
    is_float,
    is_inexact,
    is_integer,
    itemsize_bits,
    lowest_value,
)
from weft.errors import AttributeValueError, DTypeError
from weft.numpy import _ufuncs as u
from weft.numpy._division_powers import rad2deg, require_real
from weft.numpy._reductions import reject_out
from weft.numpy._select import choose

_INT32, _FLOAT32 = np.dtype("int32"), np.dtype("float32")


@composite
def rint(x, /):
    """Nearest integer as a float; halfway cases go to the even one.

    Examples:
      >>> wnp.rint(wnp.array([0.5, 1.5, 1.6]))
      Array([0., 2., 2.], dtype=float32)
    """
    return _round_even(x if is_inexact(dtype_of(x)) else _core.astype(x, float))


def _round_even(x):
    if is_complex(dtype_of(x)):
        return _core.bind("complex", _round_even(u.real(x)), _round_even(u.imag(x)))
    return _core.bind("round", x, rounding_method=1)


def round(a, decimals=0, out=None):
    """Rounds to a number of decimal places; halfway cases go to the even digit.

    Args:
      a: array or number.
      decimals: number of places after the point, negative for places before it.
      out: not supported, must be None.

    Raises NotImplementedError for `out`, AttributeValueError (a ValueError) for bools, DTypeError
    for random keys.

    Examples:
      >>> wnp.round(wnp.array([0.5, 1.5, 1.6]))
      Array([0., 2., 2.], dtype=float32)
      >>> wnp.round(wnp.array([1234, 5678]), -2)
      Array([1200, 5700], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError("[round] arrays are immutable: out must be None")
    decimals = operator.index(decimals)
    dtype = dtype_of(a)
    if is_bool(dtype):
        raise AttributeValueError("[round] expected an array of numbers; got dtype bool")
    if is_inexact(dtype):
        return _round_float(a, decimals=decimals)
    if not is_integer(dtype):
        raise DTypeError(f"[round] expected an array of numbers; got dtype {dtype}")
    return _core.apart(a) if decimals >= 0 else _round_integer(a, unit=10**-decimals)


around = round


@composite(static_argnames=("decimals",))
def _round_float(a, *, decimals):
    if decimals == 0:
        return _round_even(a)
    _, dtype, weak = _core.typeof(a)
    narrow = is_float(dtype) and dtype.itemsize < 4
    x = _core.astype(a, _FLOAT32) if narrow else a
    # Of a place beyond the range of the dtype nothing is rounded, or all.
    if abs(decimals) > math.floor(math.log10(finfo(dtype_of(x)).max)):
        return _core.apart(a) if decimals > 0 else u.multiply(a, 0)
    factor = 10.0 ** abs(decimals)
    if decimals > 0:
        x = u.divide(_round_even(u.multiply(x, factor)), factor)
    else:
        x = u.multiply(_round_even(u.divide(x, factor)), factor)
    return _core.astype(x, dtype, weak and ndim_of(a) == 0)


@composite(static_argnames=("unit",))
def _round_integer(a, *, unit):
    if unit > iinfo(dtype_of(a)).max:
        return u.multiply(a, 0)
    rest = u.subtract(a, u.multiply(u._quotient(a, unit), unit))
    quotient = u._quotient(u.subtract(a, rest), unit)
    # The remainder has the sign of `a`; halfway cases go to the even quotient.
    distance = u.absolute(rest)
    odd = u.equal(u.bitwise_and(quotient, 1), 1)
    half = unit // 2
    away = u.logical_or(u.greater(distance, half), u.logical_and(u.equal(distance, half), odd))
    quotient = choose(away, u.add(quotient, u.sign(a)), quotient)
    return u.multiply(quotient, unit)


def trunc(x):
    """The integer part, rounding towards zero, as a float; integers are returned unchanged.

    Examples:
      >>> wnp.trunc(wnp.array([1.7, -1.7]))
      Array([ 1., -1.], dtype=float32)
    """
    require_real("trunc", x)
    return _trunc(x) if is_float(dtype_of(x)) else u.unrounded(x, "trunc")


fix = trunc


@composite
def _trunc(x):
    return choose(u.less(x, 0), u.ceil(x), u.floor(x))


@composite
def modf(x, /, out=None):
    """The pair (fractional part, integer part), both floats with the sign of x.

    Infinities have no fraction: it is NaN. `out` must be None.

    Examples:
      >>> wnp.modf(wnp.array([2.5, -1.25]))
      (Array([ 0.5 , -0.25], dtype=float32), Array([ 2., -1.], dtype=float32))
    """
    reject_out("modf", out)
    require_real("modf", x)
    (x,) = _core.promote_dtypes_inexact(x)
    whole = _trunc(x)
    return u.subtract(x, whole), whole


def isinf(x, /):
    """Whether each element is infinite (for complex x: either of its parts).

    Examples:
      >>> wnp.isinf(wnp.array([np.inf, -np.inf, np.nan]))
      Array([ True,  True, False], dtype=bool)
    """
    shape, dtype, _ = _core.typeof(x)
    return strong(_isinf(x)) if _has_infinity(dtype) else _core.broadcast_to(False, shape)


def _has_infinity(dtype):
    return is_complex(dtype) or (is_float(dtype) and math.isinf(highest_value(dtype)))


@composite
def _isinf(x):
    if is_complex(dtype_of(x)):
        return u.logical_or(_isinf(u.real(x)), _isinf(u.imag(x)))
    return u.equal(u.absolute(x), math.inf)


def isposinf(x, /, out=None):
    """Whether each element is positive infinity; `out` must be None.

    Examples:
      >>> wnp.isposinf(wnp.array([np.inf, -np.inf, np.nan]))
      Array([ True, False, False], dtype=bool)
    """
    reject_out("isposinf", out)
    return _equals_float("isposinf", x, math.inf)


def isneginf(x, /, out=None):
    """Whether each element is negative infinity; `out` must be None.

    Examples:
      >>> wnp.isneginf(wnp.array([np.inf, -np.inf, np.nan]))
      Array([False,  True, False], dtype=bool)
    """
    reject_out("isneginf", out)
    return _equals_float("isneginf", x, -math.inf)


def _refuse_complex(function, x):
    if is_complex(dtype_of(x)):
        raise AttributeValueError(f"[{function}] expected a real array; got dtype {dtype_of(x)}")


def _equals_float(function, x, value):
    _refuse_complex(function, x)
    shape, dtype, _ = _core.typeof(x)
    return strong(u.equal(x, value)) if _has_infinity(dtype) else _core.broadcast_to(False, shape)


@composite
def isreal(x):
    """Whether the imaginary part of each element is zero.

    Examples:
      >>> wnp.isreal(wnp.array([1 + 2j, 3 + 0j]))
      Array([False,  True], dtype=bool)
    """
    return _of_scalars_weak(x, u.equal(u.imag(x), 0))


@composite
def iscomplex(x):
    """Whether the imaginary part of each element is not zero.

    Examples:
      >>> wnp.iscomplex(wnp.array([1 + 2j, 3 + 0j]))
      Array([ True, False], dtype=bool)
    """
    return _of_scalars_weak(x, u.not_equal(u.imag(x), 0))


def _of_scalars_weak(x, result):
    """The result, strongly typed unless `x` is a weakly typed number."""
    return result if ndim_of(x) == 0 and not is_bool(dtype_of(x)) else strong(result)


def angle(z, deg=False):
    """Angle of complex numbers in the plane, in radians or with `deg` in degrees.

    Real numbers have angle 0, or pi if they are negative.

    Examples:
      >>> wnp.angle(wnp.array([1.0, 1j]), deg=True).round(3)
      Array([ 0., 90.], dtype=float32)
    """
    return _angle(z, deg=bool(deg))


@composite(static_argnames=("deg",))
def _angle(z, *, deg):
    # As in jax, what is real has the default dtype, but for arrays of floats with axes.
    if not (is_complex(dtype_of(z)) or (is_float(dtype_of(z)) and ndim_of(z) > 0)):
        z = _core.astype(z, default_float())
    result = u.arctan2(u.imag(z), u.real(z))
    return rad2deg(result) if deg else result


def sign(x, /):
    """-1, 0 or 1 as x is, and 0 also for -0.0; x / abs(x) for complex numbers.

    Examples:
      >>> wnp.sign(wnp.array([-2.5, 0.0, 3.0]))
      Array([-1.,  0.,  1.], dtype=float32)
    """
    return _sign(x) if is_inexact(dtype_of(x)) else u.sign(x)


@composite
def _sign(x):
    return choose(u.equal(x, 0), 0, u.sign(x))


def signbit(x, /):
    """Whether the sign bit of each element is set: true for negative numbers and -0.0.

    Examples:
      >>> wnp.signbit(wnp.array([-1.0, -0.0, 0.0]))
      Array([ True,  True, False], dtype=bool)
    """
    require_real("signbit", x)
    shape, dtype, _ = _core.typeof(x)
    if is_float(dtype) and lowest_value(dtype) < 0:
        return _signbit(x)
    if is_integer(dtype) and dtype.kind != "u":
        return strong(u.less(x, 0))
    return _core.broadcast_to(False, shape)


def _bits(x):
    """The bits of floats as signed integers of the same width."""
    dtype = np.dtype(f"int{itemsize_bits(dtype_of(x))}")
    return _core.bind("bitcast_convert_type", x, new_dtype=dtype)


def _from_bits(bits, dtype):
    return _core.bind("bitcast_convert_type", bits, new_dtype=dtype)


@composite
def _signbit(x):
    return u.less(_bits(x), 0)


@composite(broadcasts=True)
def copysign(x1, x2, /):
    """abs(x1) with the sign of x2, as a float.

    Examples:
      >>> wnp.copysign(wnp.array([1.0, 2.0]), wnp.array([-0.0, 5.0]))
      Array([-1.,  2.], dtype=float32)
    """
    require_real("copysign", x1, x2)
    x1, x2 = _core.promote_dtypes_inexact(x1, x2)
    magnitude = u.absolute(x1)
    return choose(signbit(x2), u.negative(magnitude), magnitude)


@composite
def frexp(x, /):
    """Mantissa in 0.5..1 (in absolute value) and exponent: x = mantissa * 2**exponent.

    The exponent is int32; it is 0 for 0, infinities and NaN, which are their own mantissa.

    Examples:
      >>> wnp.frexp(wnp.array([8.0, 0.75]))
      (Array([0.5 , 0.75], dtype=float32), Array([4, 0], dtype=int32))
    """
    require_real("frexp", x)
    (x,) = _core.promote_dtypes_inexact(x)
    dtype = dtype_of(x)
    if dtype.itemsize == 1:
        mantissa, exponent = frexp(_core.astype(x, _FLOAT32))
        return _core.astype(mantissa, dtype), exponent
    info = finfo(dtype)
    # Subnormal numbers are scaled to normal ones first.
    tiny = u.less(u.absolute(x), float(info.tiny))
    bits = _bits(choose(tiny, u.multiply(x, 2.0**info.nmant), x))
    field = u.bitwise_and(u._shift_right_logical(bits, info.nmant), 2**info.nexp - 1)
    # Numbers in 0.5..1 have this in the exponent field.
    offset = 2 ** (info.nexp - 1) - 2
    exponent = u.subtract(_core.astype(field, _INT32), offset)
    exponent = u.subtract(exponent, choose(tiny, info.nmant, 0))
    cleared = u.bitwise_and(bits, ~((2**info.nexp - 1) << info.nmant))
    mantissa = _from_bits(u.bitwise_or(cleared, offset << info.nmant), dtype)
    special = u.logical_or(u.equal(x, 0), u.logical_not(u.isfinite(x)))
    exponent = choose(special, 0, exponent)
    # Bits have no derivative: that of x is scaled as x is.
    change = u.subtract(x, _core.bind("stop_gradient", x))
    mantissa = u.add(mantissa, ldexp(choose(special, 0, change), u.negative(exponent)))
    return choose(special, x, mantissa), exponent


@composite(broadcasts=True)
def ldexp(x1, x2, /):
    """x1 * 2**x2, for an array of integers x2, as a float.

    Raises AttributeValueError (a ValueError) for exponents that are no integers.

    Examples:
      >>> wnp.ldexp(wnp.array([1.0, 0.75]), wnp.array([3, 2]))
      Array([8., 3.], dtype=float32)
    """
    require_real("ldexp", x1)
    if is_inexact(dtype_of(x2)):
        raise AttributeValueError(f"[ldexp] expected integer exponents; got dtype {dtype_of(x2)}")
    (x,) = _core.promote_dtypes_inexact(x1)
    dtype = dtype_of(x)
    if dtype.itemsize == 1:
        return _core.astype(ldexp(_core.astype(x, _FLOAT32), x2), dtype)
    info = finfo(dtype)
    bits = np.dtype(f"int{info.bits}")
    bias = 2 ** (info.nexp - 1) - 1
    n = _core.astype(x2, _INT32)
    # Powers of two are made from their bits, in steps that the dtype can hold. Three cover the way
    # from its smallest to its greatest number.
    for _ in range(3):
        step = u.minimum(u.maximum(n, 1 - bias), bias)
        n = u.subtract(n, step)
        field = u.left_shift(_core.astype(u.add(step, bias), bits), info.nmant)
        x = u.multiply(x, _from_bits(field, dtype))
    return x


@composite
def spacing(x, /):
    """Distance from x to the next float away from zero, with the sign of x.

    Examples:
      >>> wnp.spacing(wnp.array([1.0, 2.0])) / wnp.finfo("float32").eps
      Array([1., 2.], dtype=float32)
    """
    _refuse_complex("spacing", x)
    (x,) = _core.promote_dtypes_inexact(x)
    following = u.nextafter(x, copysign(math.inf, x))
    # From bits, as a difference that is subnormal is taken for zero.
    info = finfo(dtype_of(x))
    bits = _bits(x)
    field = u.bitwise_and(u._shift_right_logical(bits, info.nmant), 2**info.nexp - 1)
    normal = u.left_shift(u.subtract(field, info.nmant), info.nmant)
    subnormal = u.left_shift(1, u.maximum(u.subtract(field, 1), 0))
    unit = choose(u.greater(field, info.nmant), normal, subnormal)
    sign = u.bitwise_and(bits, iinfo(dtype_of(bits)).min)
    distance = _from_bits(u.bitwise_or(sign, unit), dtype_of(x))
    return strong(choose(u.isfinite(following), distance, u.subtract(following, x)))
