"""Element-wise functions that are one operation each.

Dtypes are promoted and shapes broadcast. Functions made with `_float` convert integers and bools to
floats first; those made with `_logical` take everything but zero as true.
"""

import numpy as np

from weft import _core
from weft._jit import composite
from weft.dtypes import dtype_of, is_bool, is_complex, is_float, is_inexact, is_key, real_dtype
from weft.errors import DTypeError

_INT32 = np.dtype("int32")
_DOC = """{summary}

    Args:
      {args}

    Returns:
      {result}
"""
_OPERANDS = {
    1: "x: array or number{dtypes}.",
    2: "{operands}: arrays or numbers{dtypes}, of shapes that broadcast together.",
}


def _make(op, policy, name, summary, count, dtypes, result, bool_op=None, operands=None):
    shown = ", ".join(operands or ("x1", "x2"))
    args = _OPERANDS[count].format(operands=shown, dtypes=dtypes)
    doc = _DOC.format(summary=summary, args=args, result=result)
    named = () if operands is None else (operands, False)
    return _core.elementwise(op, policy, name, doc, "weft.numpy", bool_op, *named)


def _unary(op, name, summary, dtypes=""):
    return _make(op, "numpy", name, summary, 1, dtypes, "Array of the shape and dtype of `x`.")


def _binary(op, name, summary, dtypes="", bool_op=None):
    result = "Array of the promoted dtype and the broadcast shape."
    return _make(op, "numpy", name, summary, 2, dtypes, result, bool_op)


def _compare(op, name, summary):
    result = "Bool array of the broadcast shape."
    return _make(op, "numpy", name, summary, 2, "", result, operands=("x", "y"))


def _float(op, name, summary, count=1):
    result = "Array of a floating-point or complex dtype."
    return _make(op, "inexact", name, summary, count, "", result)


def _logical(op, name, summary, count=2):
    return _make(op, "bool", name, summary, count, "", "Bool array of the broadcast shape.")


_BITS = " of integer dtypes or bool"

# Arithmetic
add = _binary("add", "add", "x1 + x2; logical or for two bools.", bool_op="or")
subtract = _binary("sub", "subtract", "x1 - x2; DTypeError for two bools.")
multiply = _binary("mul", "multiply", "x1 * x2; logical and for two bools.", bool_op="and")
divide = true_divide = _float("div", "divide", "x1 / x2, as a float also for integers.", 2)
negative = _unary("neg", "negative", "-x; DTypeError for bool.")
maximum = _binary("max", "maximum", "The greater of x1 and x2; NaN if either is NaN.")
minimum = _binary("min", "minimum", "The smaller of x1 and x2; NaN if either is NaN.")
sign = _unary("sign", "sign", "-1, 0 or 1 as x is; x / abs(x) for complex numbers.")
_quotient = _binary("div", "divide", "x1 / x2, rounded towards zero for integers.")
_rem = _binary("rem", "fmod", "Remainder of x1 / x2, with the sign of x1.")
_square = _unary("square", "square", "x * x.")
_abs = _unary("abs", "absolute", "Absolute value.")
_floor = _float("floor", "floor", "Largest integer that is not greater than x.")
_ceil = _float("ceil", "ceil", "Smallest integer that is not less than x.")
nextafter = _make(
    "nextafter",
    "inexact",
    "nextafter",
    "The float next to x in the direction of y.",
    2,
    "",
    "Array of a floating-point dtype.",
    operands=("x", "y"),
)
sqrt = _float("sqrt", "sqrt", "Square root; NaN for negative numbers.")
cbrt = _float("cbrt", "cbrt", "Cube root.")

# Exponentials and logarithms
exp = _float("exp", "exp", "e to the power x.")
exp2 = _float("exp2", "exp2", "2 to the power x.")
expm1 = _float("expm1", "expm1", "exp(x) - 1, accurate for small x.")
log = _float("log", "log", "Natural logarithm; NaN for negative numbers, -inf at 0.")
log1p = _float("log1p", "log1p", "log(1 + x), accurate for small x.")

# Trigonometric and hyperbolic functions
sin = _float("sin", "sin", "Sine of x radians.")
cos = _float("cos", "cos", "Cosine of x radians.")
tan = _float("tan", "tan", "Tangent of x radians.")
arcsin = asin = _float("asin", "arcsin", "Arc sine in radians; NaN outside -1..1.")
arccos = acos = _float("acos", "arccos", "Arc cosine in radians; NaN outside -1..1.")
arctan = atan = _float("atan", "arctan", "Arc tangent in radians.")
arctan2 = atan2 = _float("atan2", "arctan2", "Angle of the point (x2, x1), in -pi..pi.", 2)
sinh = _float("sinh", "sinh", "Hyperbolic sine.")
cosh = _float("cosh", "cosh", "Hyperbolic cosine.")
tanh = _float("tanh", "tanh", "Hyperbolic tangent.")
arcsinh = asinh = _float("asinh", "arcsinh", "Inverse hyperbolic sine.")
arccosh = acosh = _float("acosh", "arccosh", "Inverse hyperbolic cosine; NaN below 1.")
arctanh = atanh = _float("atanh", "arctanh", "Inverse hyperbolic tangent; NaN outside -1..1.")

# Bits
bitwise_and = _binary("and", "bitwise_and", "Bits set in x1 and in x2.", _BITS)
bitwise_or = _binary("or", "bitwise_or", "Bits set in x1 or in x2.", _BITS)
bitwise_xor = _binary("xor", "bitwise_xor", "Bits set in exactly one of x1 and x2.", _BITS)
bitwise_not = invert = bitwise_invert = _unary(
    "not", "bitwise_not", "Each bit inverted; logical not for bool.", _BITS
)
_shift_left = _binary("shift_left", "left_shift", "")
_shift_right_arithmetic = _binary("shift_right_arithmetic", "right_shift", "")
_shift_right_logical = _binary("shift_right_logical", "right_shift", "")
_population_count = _unary("population_count", "bitwise_count", "Number of bits set.")

# Comparisons and logic
equal = _compare("eq", "equal", "x == y.")
not_equal = _compare("ne", "not_equal", "x != y; true if either is NaN.")
less = _compare("lt", "less", "x < y; complex numbers go by real, then by imaginary part.")
less_equal = _compare(
    "le", "less_equal", "x <= y; complex numbers go by real, then by imaginary part."
)
greater = _compare("gt", "greater", "x > y; complex numbers go by real, then by imaginary part.")
greater_equal = _compare(
    "ge", "greater_equal", "x >= y; complex numbers go by real, then by imaginary part."
)
logical_and = _logical("and", "logical_and", "Whether x1 and x2 are both true.")
logical_or = _logical("or", "logical_or", "Whether x1 or x2 is true, or both.")
logical_xor = _logical("xor", "logical_xor", "Whether exactly one of x1 and x2 is true.")
logical_not = _logical("not", "logical_not", "Whether x is zero or False.", 1)
_is_finite = _unary("is_finite", "isfinite", "")

# Complex numbers
_real = _unary("real", "real", "")
_imag = _unary("imag", "imag", "")
_conj = _unary("conj", "conj", "")


def positive(x, /):
    """`x` itself, as an array."""
    return _core.apart(x)


def absolute(x, /):
    """Absolute value: of the real dtype for complex `x`, otherwise of the dtype of `x`."""
    dtype = dtype_of(x)
    return _core.apart(x) if is_bool(dtype) or dtype.name.startswith("u") else _abs(x)


abs = absolute


@composite
def fabs(x, /):
    """Absolute value as a float, for real numbers.

    Raises TypeError for complex numbers.
    """
    if is_complex(dtype_of(x)):
        raise TypeError(f"[fabs] expected a real array; got dtype {dtype_of(x)}")
    return _abs(*_core.promote_dtypes_inexact(x))


def square(x, /):
    """x * x, in the dtype of `x` (int32 for bool)."""
    return _square(as_number(x))


def floor(x, /):
    """Largest integer that is not greater than x, as a float; integers are returned unchanged."""
    return _floor(x) if is_float(dtype_of(x)) else unrounded(x, "floor")


def ceil(x, /):
    """Smallest integer that is not less than x, as a float; integers are returned unchanged."""
    return _ceil(x) if is_float(dtype_of(x)) else unrounded(x, "ceil")


def unrounded(x, function):
    """Integers and bools, which need no rounding."""
    if is_complex(dtype_of(x)):
        raise TypeError(f"[{function}] expected a real array; got dtype {dtype_of(x)}")
    return _numbers(x, function)


def as_number(x):
    """`x` with bool converted to int32."""
    return _core.astype(x, _INT32) if is_bool(dtype_of(x)) else x


def as_numbers(x1, x2):
    """The operands of their common dtype, which is int32 for two bools."""
    return map(as_number, _core.promote_dtypes(x1, x2))


@composite
def left_shift(x, y, /):
    """x shifted left by y bits, for integers; bits that leave on the left are lost."""
    return _shift_left(*as_numbers(x, y))


@composite
def right_shift(x1, x2, /):
    """x1 shifted right by x2 bits; copies of the sign bit move in for signed dtypes, else zeros."""
    x1, x2 = as_numbers(x1, x2)
    unsigned = dtype_of(x1).name.startswith("u")
    return (_shift_right_logical if unsigned else _shift_right_arithmetic)(x1, x2)


bitwise_left_shift = left_shift
bitwise_right_shift = right_shift


def bitwise_count(x, /):
    """Number of bits set in the absolute value of each integer, as uint8."""
    count = x if is_bool(dtype_of(x)) else _population_count(absolute(x))
    return _core.astype(count, _core.canonical_dtype("uint8"))


def isnan(x, /):
    """Whether each element is NaN."""
    return not_equal(x, x)


def isfinite(x, /):
    """Whether each element is neither infinite nor NaN (for complex x: both of its parts)."""
    shape, dtype, weak = _core.typeof(x)
    if is_complex(dtype):
        finite = logical_and(_is_finite(_real(x)), _is_finite(_imag(x)))
        return _core.astype(finite, np.dtype(bool), weak)
    return _is_finite(x) if is_inexact(dtype) else _core.broadcast_to(True, shape)


def real(val, /):
    """Real part; `val` itself if it is real."""
    return _real(val) if is_complex(dtype_of(val)) else _numbers(val, "real")


def imag(val, /):
    """Imaginary part; zeros if `val` is real."""
    shape, dtype, weak = _core.typeof(val)
    if is_complex(dtype):
        return _imag(val)
    return _core.broadcast_to(_core.astype(0, real_dtype(dtype), weak), shape)


def conj(x, /):
    """Complex conjugate; `x` itself if it is real."""
    return _conj(x) if is_complex(dtype_of(x)) else _numbers(x, "conj")


def _numbers(x, function):
    """An array, of anything but random keys."""
    if is_key(dtype_of(x)):
        raise DTypeError(f"[{function}] expected an array of numbers; got {dtype_of(x)}")
    return _core.apart(x)


conjugate = conj
