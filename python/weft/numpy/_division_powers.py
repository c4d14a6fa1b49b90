"""Division with remainder, powers, logarithms and what is built from them."""

import math

import numpy as np

from weft import _core
from weft._arguments import ndim_of, strong
from weft._jit import composite
from weft.dtypes import dtype_of, is_complex, is_float, is_inexact, is_integer, itemsize_bits
from weft.errors import AttributeValueError, DTypeError
from weft.numpy import _ufuncs as u
from weft.numpy._select import choose


def require_real(function, *xs):
    """DTypeError if one of the arrays is complex."""
    for x in xs:
        if is_complex(dtype_of(x)):
            raise DTypeError(f"[{function}] expected real arrays; got dtype {dtype_of(x)}")


@composite(exact_ints=True, broadcasts=True)
def floor_divide(x1, x2, /):
    """x1 / x2 rounded down to an integer, in the promoted dtype. DTypeError for complex numbers.

    A signed integer divided by zero gives -2, zero itself -1; an unsigned one gives the greatest.
    Infinities and zeros are as the Python array API standard has them: the sign is that of the
    quotient, the quotient of an infinity is infinite, and that of a finite number by an infinity
    is a zero.

    Examples:
      >>> wnp.floor_divide(wnp.array([7, -7]), 2)
      Array([ 3, -4], dtype=int32)
    """
    return _floor_quotient("floor_divide", *u.as_numbers(x1, x2))


@composite(exact_ints=True, broadcasts=True)
def remainder(x1, x2, /):
    """x1 - x2 * floor(x1 / x2): the remainder that has the sign of x2. Also called `mod`.

    It is NaN for a float divided by zero, and 0 for an integer. A zero has the sign of x2 too.

    Examples:
      >>> wnp.remainder(wnp.array([7, -7]), 3)
      Array([1, 2], dtype=int32)
    """
    return _floor_remainder("remainder", *u.as_numbers(x1, x2))


mod = remainder


@composite(exact_ints=True, broadcasts=True)
def divmod(x1, x2, /):
    """The pair `(floor_divide(x1, x2), remainder(x1, x2))`.

    Examples:
      >>> wnp.divmod(wnp.array([7, -7]), 2)
      (Array([ 3, -4], dtype=int32), Array([1, 1], dtype=int32))
    """
    x1, x2 = u.as_numbers(x1, x2)
    return _floor_quotient("divmod", x1, x2), _floor_remainder("divmod", x1, x2)


@composite(exact_ints=True, broadcasts=True)
def fmod(x1, x2, /):
    """The remainder of x1 / x2 that has the sign of x1; 0 for an integer divided by zero.

    Examples:
      >>> wnp.fmod(wnp.array([7, -7]), 3)
      Array([ 1, -1], dtype=int32)
    """
    x1, x2 = u.as_numbers(x1, x2)
    return _remainder("fmod", x1, x2)[0]


def _remainder(function, x1, x2):
    """Remainder with the sign of x1, and the divisor used: 1 for an integer 0."""
    require_real(function, x1)
    if is_integer(dtype_of(x2)):
        x2 = choose(u.equal(x2, 0), 1, x2)
    return u._rem(x1, x2), x2


def _rounds_up(rem, divisor):
    """Where division rounded towards zero has rounded up: the signs differ."""
    signs_differ = u.not_equal(u.less(rem, 0), u.less(divisor, 0))
    return u.logical_and(u.not_equal(rem, 0), signs_differ)


def _floor_quotient(function, x1, x2):
    dtype = dtype_of(x1)
    if dtype.kind == "u":
        return u._quotient(x1, x2)
    if is_integer(dtype):
        # Over zero, the quotient is -1 and the remainder x1; it rounds up unless that is 0.
        quotient, rem = u._quotient(x1, x2), u._rem(x1, x2)
        signs_differ = u.logical_or(u.not_equal(u.less(rem, 0), u.less(x2, 0)), u.equal(x2, 0))
        rounds_up = u.logical_and(u.not_equal(rem, 0), signs_differ)
        return choose(rounds_up, u.subtract(quotient, 1), quotient)
    rem, divisor = _remainder(function, x1, x2)
    # Less the remainder, the quotient is an integer but for rounding. A zero divisor has a NaN
    # remainder.
    whole = choose(u.equal(x2, 0), x1, u.subtract(x1, rem))
    quotient = u._quotient(whole, x2)
    rounds_up = u.logical_and(_rounds_up(rem, divisor), u.isfinite(x2))
    quotient = choose(rounds_up, u.subtract(quotient, 1), quotient)
    rounded = _core.bind("round", quotient, rounding_method=0)
    special = u.logical_or(u.equal(x1, 0), u.logical_or(_is_infinite(x1), _is_infinite(x2)))
    return choose(special, _core.bind("stop_gradient", u._quotient(x1, x2)), rounded)


def _is_infinite(x):
    return u.equal(u._abs(x), math.inf)


def _floor_remainder(function, x1, x2):
    rem, divisor = _remainder(function, x1, x2)
    if dtype_of(x1).kind == "u":
        return rem
    result = choose(_rounds_up(rem, divisor), u.add(rem, divisor), rem)
    if is_integer(dtype_of(x1)):
        return result
    # Where the remainder is a zero, the difference is one too; it has the slope of the remainder.
    zero = choose(u.less(x2, 0), -0.0, 0.0)
    change = u.subtract(_core.bind("stop_gradient", result), result)
    return choose(u.equal(result, 0), u.subtract(zero, change), result)


def power(x1, x2, /):
    """x1 to the power x2.

    A known integer as exponent, of Python or an array without axes, is applied by repeated
    multiplication, is differentiated as the polynomial it is, and the result has the dtype of the
    base; a negative one needs a floating-point base. For arrays of integers the result is an
    integer, which wraps around, and is rounded towards zero where an exponent is negative (0 for a
    zero base).

    Examples:
      >>> wnp.power(wnp.array([2, 3]), 3)
      Array([ 8, 27], dtype=int32)
      >>> wnp.power(2.0, wnp.array([-1.0, 0.5])).round(3)
      Array([0.5  , 1.414], dtype=float32)
    """
    exponent = _known_integer(x2)
    if exponent is not None and -(2**31) < exponent < 2**31:
        return _integer_power(x1, exponent)
    _check_promotion("power", x1, x2)
    base, exponent = dtype_of(x1), dtype_of(x2)
    if not (is_inexact(base) or is_inexact(exponent)):
        return _integer_array_power(x1, x2)
    if is_float(base) and is_integer(exponent):
        return _float_to_integer_power(x1, x2)
    power = _pow(x1, x2)
    weak_exponent = _core.typeof(x2)[2]
    return strong(power) if is_integer(exponent) and not weak_exponent else power


pow = power


def _check_promotion(function, x, y):
    _core.result_type(x, y)  # strict promotion forbids some
    _core.check_ranks(function, (x, y))


def _known_integer(x):
    """The integer that a number, or an array without axes, is known to be; else None."""
    if type(x) in (int, bool):
        return int(x)
    known = isinstance(x, (np.integer, np.ndarray, _core.Array)) and x.ndim == 0
    return int(x) if known and is_integer(x.dtype) else None


def _integer_power(x, y):
    x = u.as_number(x)
    if y < 0 and is_integer(dtype_of(x)):
        raise DTypeError(
            f"[power] expected a floating-point base for the exponent {y}; got {dtype_of(x)}"
        )
    return _core.bind("integer_pow", x, y=y)


_pow = u._float("pow", "power", "x1 to the power x2.", count=2)


@composite
def _float_to_integer_power(x1, x2):
    return _core.bind("pow", *_core.broadcast_arrays(x1, x2))


@composite
def _integer_array_power(x1, x2):
    base, exponent = u.as_numbers(x1, x2)
    if is_inexact(dtype_of(base)):  # that is what a signed and the widest unsigned dtype have
        return _pow(base, exponent)
    base, exponent = strong(base), strong(exponent)
    inverted = u.less(exponent, 0)
    result, square = choose(_odd(exponent), base, 1), base
    # Square and multiply, over every bit of the exponent: the powers of an odd base wrap around and
    # never vanish.
    for _ in range(1, itemsize_bits(dtype_of(base))):
        square = u.multiply(square, square)
        exponent = u._shift_right_logical(exponent, 1)
        result = choose(_odd(exponent), u.multiply(result, square), result)
    # With a negative exponent, 1 and -1 are their own inverses.
    own_inverse = u.equal(u.multiply(base, base), 1)
    return choose(u.logical_and(inverted, u.logical_not(own_inverse)), 0, result)


def _odd(x):
    return u.equal(u.bitwise_and(x, 1), 1)


def float_power(x, y, /):
    """x to the power y as a float or complex number, also for integers.

    Examples:
      >>> wnp.float_power(wnp.array([2, 4]), -1).round(3)
      Array([0.5 , 0.25], dtype=float32)
    """
    _check_promotion("float_power", x, y)
    return _pow(x, y)


@composite
def reciprocal(x, /):
    """1 / x, as a float also for integers.

    Examples:
      >>> wnp.reciprocal(wnp.array([2.0, 4.0]))
      Array([0.5 , 0.25], dtype=float32)
    """
    return _core.bind("integer_pow", *_core.promote_dtypes_inexact(x), y=-1)


def _strong_unless_number(x):
    # So jax marks them: a weakly typed array meets constants of its dtype.
    return strong(x) if ndim_of(x) else x


def _scaled(x, factor):
    return _strong_unless_number(u.multiply(*_core.promote_dtypes_inexact(x), factor))


@composite
def deg2rad(x, /):
    """Degrees to radians. Integers become floats.

    Examples:
      >>> wnp.deg2rad(wnp.array([0.0, 180.0])).round(3)
      Array([0.   , 3.142], dtype=float32)
    """
    return _scaled(x, math.pi / 180)


@composite
def rad2deg(x, /):
    """Radians to degrees. Integers become floats.

    Examples:
      >>> wnp.rad2deg(wnp.array([0.0, np.pi])).round(3)
      Array([  0., 180.], dtype=float32)
    """
    return _scaled(x, 180 / math.pi)


radians, degrees = deg2rad, rad2deg


@composite
def log2(x, /):
    """Logarithm to base 2.

    Examples:
      >>> wnp.log2(wnp.array([1, 8])).round(3)
      Array([0., 3.], dtype=float32)
    """
    return _scaled_log(x, u.divide, math.log(2))


@composite
def log10(x, /):
    """Logarithm to base 10.

    Examples:
      >>> wnp.log10(wnp.array([0.1, 1000.0])).round(3)
      Array([-1.,  3.], dtype=float32)
    """
    return _scaled_log(x, u.multiply, 1 / math.log(10))


def _scaled_log(x, scale, factor):
    logarithm = u.log(x)
    if not is_complex(dtype_of(logarithm)):
        return strong(scale(logarithm, factor))
    # By parts: a complex factor times an infinite part would make the other one NaN.
    parts = (scale(part(logarithm), factor) for part in (u.real, u.imag))
    return strong(_core.bind("complex", *parts))


@composite(broadcasts=True)
def logaddexp(x1, x2, /):
    """log(exp(x1) + exp(x2)), computed without overflow; of complex numbers the principal value,
    NaN where the greater one is infinite.

    Examples:
      >>> wnp.logaddexp(wnp.array([0.0, 100.0]), 0.0).round(3)
      Array([  0.693, 100.   ], dtype=float32)
    """
    return _log_of_sum(x1, x2, u.exp, u.log1p, math.pi)


@composite(broadcasts=True)
def logaddexp2(x1, x2, /):
    """log2(2**x1 + 2**x2), computed without overflow; of complex numbers the principal value.

    Examples:
      >>> wnp.logaddexp2(wnp.array([3.0, 1000.0]), 3.0).round(3)
      Array([   4., 1000.], dtype=float32)
    """
    scale = 1 / math.log(2)
    total = _log_of_sum(x1, x2, u.exp2, lambda x: u.multiply(u.log1p(x), scale), math.pi * scale)
    return _strong_unless_number(total)


def _log_of_sum(x1, x2, exp, log1p, half_turn):
    x1, x2 = _core.promote_dtypes_inexact(x1, x2)
    if is_complex(dtype_of(x1)):
        top = choose(u.greater_equal(x1, x2), x1, x2)
        gap = u.add(u.subtract(x1, top), u.subtract(x2, top))  # NaN for an infinite top
        total = u.add(top, log1p(exp(gap)))
        angle = _floor_remainder("logaddexp", u.add(u.imag(total), half_turn), 2 * half_turn)
        return _core.bind("complex", u.real(total), u.subtract(angle, half_turn))
    difference = u.subtract(x1, x2)
    # Equal infinities have a NaN difference; their sum is right then, and NaN for a NaN operand,
    # where the slopes are NaN as well.
    undefined = u.isnan(difference)
    both = u.add(choose(undefined, x1, 0), choose(undefined, x2, 0))
    unknown = u.isnan(both)
    # With a slope, of which there are slopes again.
    both = choose(unknown, u.multiply(exp(choose(unknown, both, 0)), math.nan), both)
    gap = choose(undefined, 0, difference)
    # One choice for both terms, so that their slopes add up to the right one where x1 == x2.
    first = u.greater_equal(gap, 0)
    tail = log1p(exp(choose(first, u.negative(gap), gap)))
    return choose(undefined, both, u.add(choose(first, x1, x2), tail))


@composite(broadcasts=True)
def hypot(x1, x2, /):
    """sqrt(x1**2 + x2**2), computed without overflow; inf if either is infinite.

    Raises AttributeValueError (a ValueError) for complex numbers.

    Examples:
      >>> wnp.hypot(wnp.array([3.0, 5.0]), wnp.array([4.0, 12.0])).round(3)
      Array([ 5., 13.], dtype=float32)
    """
    if is_complex(dtype_of(x1)) or is_complex(dtype_of(x2)):
        raise AttributeValueError("[hypot] expected real arrays; got complex ones")
    x1, x2 = map(u.absolute, _core.promote_dtypes_inexact(x1, x2))
    top = u.maximum(x1, x2)
    infinite = u.logical_or(u.equal(x1, math.inf), u.equal(x2, math.inf))
    # An infinite part alone has a slope, of 1, and a NaN beside it does not count.
    endless = choose(u.isnan(top), math.inf, top)
    # One choice for both, so that they are still different numbers to a second derivative where
    # they are equal.
    first = u.greater_equal(x1, x2)
    large = choose(infinite, 1, choose(first, x1, x2))
    small = choose(infinite, 0, choose(first, x2, x1))
    at_zero = u.equal(top, 0)  # False for a NaN beside 0
    ratio = u.divide(small, choose(at_zero, 1, large))
    length = u.multiply(large, u.sqrt(u.add(u.square(ratio), 1)))
    return _strong_unless_number(choose(infinite, endless, choose(at_zero, top, length)))


@composite
def sinc(x, /):
    """sin(pi x) / (pi x), and 1 at 0.

    Examples:
      >>> wnp.sinc(wnp.array([0.0, 0.5])).round(3)
      Array([1.   , 0.637], dtype=float32)
    """
    (x,) = _core.promote_dtypes_inexact(x)
    # The Taylor series, whose derivatives near 0 have all their digits.
    near = u.less(u.absolute(x), 0.25)
    square = u._square(u.multiply(choose(near, x, 0), math.pi))
    series = 1
    for k in range(18, 0, -2):
        series = u.subtract(1, u.multiply(u.multiply(square, 1 / (k * (k + 1))), series))
    x = choose(near, 1, x)
    if is_complex(dtype_of(x)):
        angle = u.multiply(x, math.pi)
        return _strong_unless_number(choose(near, series, u.divide(u.sin(angle), angle)))
    # sin(pi x) by the distance from a whole number, which is exact.
    whole = _core.bind("round", x, rounding_method=1)
    sine = u.sin(u.multiply(u.subtract(x, whole), math.pi))
    sine = choose(u.equal(u._rem(whole, 2), 0), sine, u.negative(sine))
    far = u.divide(u.divide(sine, math.pi), x)
    return _strong_unless_number(choose(near, series, far))


@composite(broadcasts=True)
def heaviside(x1, x2, /):
    """0 for negative x1, 1 for positive, x2 at 0, NaN for NaN.

    Examples:
      >>> wnp.heaviside(wnp.array([-2.0, 0.0, 3.0]), 0.5)
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    require_real("heaviside", x1, x2)
    x1, x2 = _core.promote_dtypes_inexact(x1, x2)
    weak = ndim_of(x1) == 0 and _core.typeof(x1)[2]  # as in jax
    rest = choose(u.isnan(x1), x1, x2)
    step = choose(u.less(x1, 0), 0, choose(u.greater(x1, 0), 1, rest))
    return _core.astype(step, x1.dtype, weak)


@composite(exact_ints=True, broadcasts=True)
def fmax(x1, x2):
    """The greater of x1 and x2, ignoring a NaN if the other is a number.

    Examples:
      >>> wnp.fmax(wnp.array([1.0, np.nan]), 0.0)
      Array([1., 0.], dtype=float32)
    """
    x1, x2 = _core.promote_dtypes(x1, x2)
    return choose(u.logical_or(u.greater(x1, x2), u.isnan(x2)), x1, x2)


@composite(exact_ints=True, broadcasts=True)
def fmin(x1, x2):
    """The smaller of x1 and x2, ignoring a NaN if the other is a number.

    Examples:
      >>> wnp.fmin(wnp.array([1.0, np.nan]), 0.0)
      Array([0., 0.], dtype=float32)
    """
    x1, x2 = _core.promote_dtypes(x1, x2)
    return choose(u.logical_or(u.less(x1, x2), u.isnan(x2)), x1, x2)
