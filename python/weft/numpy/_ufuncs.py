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
_EXAMPLE = """
    Examples:
      >>> wnp.{name}({operands}){rounded}
      Array({value}, dtype={dtype})
"""
_OPERANDS = {
    1: "x: array or number{dtypes}.",
    2: "{operands}: arrays or numbers{dtypes}, of shapes that broadcast together.",
}


def _example(name, text, dtype, rounded=""):
    """The last section of a docstring, of "[1, 2], 10 -> [11, 12]": an array, a number, the result.

    Private functions have none.
    """
    if text is None:
        return ""
    operands, value = text.split(" -> ")
    operands = "wnp.array(" + operands.replace("]", "])", 1)
    return _EXAMPLE.format(name=name, operands=operands, value=value, dtype=dtype, rounded=rounded)


def _make(
    op, policy, name, summary, count, dtypes, result, example="", bool_op=None, operands=None
):
    shown = ", ".join(operands or ("x1", "x2"))
    args = _OPERANDS[count].format(operands=shown, dtypes=dtypes)
    doc = _DOC.format(summary=summary, args=args, result=result) + example
    named = () if operands is None else (operands, False)
    return _core.elementwise(op, policy, name, doc, "weft.numpy", bool_op, *named)


def _unary(op, name, summary, example=None, dtypes=""):
    result = "Array of the shape and dtype of `x`."
    return _make(op, "numpy", name, summary, 1, dtypes, result, _example(name, example, "int32"))


def _binary(op, name, summary, example=None, dtypes="", bool_op=None):
    result = "Array of the promoted dtype and the broadcast shape."
    shown = _example(name, example, "int32")
    return _make(op, "numpy", name, summary, 2, dtypes, result, shown, bool_op)


def _compare(op, name, summary, example):
    result = "Bool array of the broadcast shape."
    shown = _example(name, example, "bool")
    return _make(op, "numpy", name, summary, 2, "", result, shown, operands=("x", "y"))


def _float(op, name, summary, example=None, count=1):
    result = "Array of a floating-point or complex dtype."
    shown = _example(name, example, "float32", ".round(3)")
    return _make(op, "inexact", name, summary, count, "", result, shown)


def _logical(op, name, summary, example, count=2):
    result = "Bool array of the broadcast shape."
    shown = _example(name, example, "bool")
    return _make(op, "bool", name, summary, count, "", result, shown)


_BITS = " of integer dtypes or bool"

# Arithmetic
add = _binary(
    "add", "add", "x1 + x2; logical or for two bools.", "[1, 2], 10 -> [11, 12]", bool_op="or"
)
subtract = _binary(
    "sub", "subtract", "x1 - x2; DTypeError for two bools.", "[1, 2], 10 -> [-9, -8]"
)
multiply = _binary(
    "mul",
    "multiply",
    "x1 * x2; logical and for two bools.",
    "[1, 2], 10 -> [10, 20]",
    bool_op="and",
)
divide = true_divide = _float(
    "div", "divide", "x1 / x2, as a float also for integers.", "[7, 8], 2 -> [3.5, 4. ]", 2
)
negative = _unary("neg", "negative", "-x; DTypeError for bool.", "[1, -2] -> [-1,  2]")
maximum = _binary(
    "max", "maximum", "The greater of x1 and x2; NaN if either is NaN.", "[1, 5], 3 -> [3, 5]"
)
minimum = _binary(
    "min", "minimum", "The smaller of x1 and x2; NaN if either is NaN.", "[1, 5], 3 -> [1, 3]"
)
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
    _example("nextafter", "[1.0], 2.0 -> [1.0000001]", "float32"),
    operands=("x", "y"),
)
sqrt = _float("sqrt", "sqrt", "Square root; NaN for negative numbers.", "[9.0, -1.0] -> [ 3., nan]")
cbrt = _float("cbrt", "cbrt", "Cube root.", "[8.0, -27.0] -> [ 2., -3.]")

# Exponentials and logarithms
exp = _float("exp", "exp", "e to the power x.", "[0.0, 1.0] -> [1.   , 2.718]")
exp2 = _float("exp2", "exp2", "2 to the power x.", "[3, -1] -> [8. , 0.5]")
expm1 = _float(
    "expm1", "expm1", "exp(x) - 1, accurate for small x.", "[0.0, 1.0] -> [0.   , 1.718]"
)
log = _float(
    "log",
    "log",
    "Natural logarithm; NaN for negative numbers, -inf at 0.",
    "[1.0, 0.0, -1.0] -> [  0., -inf,  nan]",
)
log1p = _float("log1p", "log1p", "log(1 + x), accurate for small x.", "[0.0, -1.0] -> [  0., -inf]")

# Trigonometric and hyperbolic functions
sin = _float("sin", "sin", "Sine of x radians.", "[0.0, np.pi / 2] -> [0., 1.]")
cos = _float("cos", "cos", "Cosine of x radians.", "[0.0, np.pi] -> [ 1., -1.]")
tan = _float("tan", "tan", "Tangent of x radians.", "[0.0, np.pi / 4] -> [0., 1.]")
arcsin = asin = _float(
    "asin",
    "arcsin",
    "Arc sine in radians; NaN outside -1..1.",
    "[0.0, 1.0, 2.0] -> [0.   , 1.571,   nan]",
)
arccos = acos = _float(
    "acos",
    "arccos",
    "Arc cosine in radians; NaN outside -1..1.",
    "[1.0, 0.0, 2.0] -> [0.   , 1.571,   nan]",
)
arctan = atan = _float(
    "atan", "arctan", "Arc tangent in radians.", "[0.0, np.inf] -> [0.   , 1.571]"
)
arctan2 = atan2 = _float(
    "atan2",
    "arctan2",
    "Angle of the point (x2, x1), in -pi..pi.",
    "[1.0, -1.0], -1.0 -> [ 2.356, -2.356]",
    2,
)
sinh = _float("sinh", "sinh", "Hyperbolic sine.", "[0.0, 1.0] -> [0.   , 1.175]")
cosh = _float("cosh", "cosh", "Hyperbolic cosine.", "[0.0, 1.0] -> [1.   , 1.543]")
tanh = _float("tanh", "tanh", "Hyperbolic tangent.", "[0.0, np.inf] -> [0., 1.]")
arcsinh = asinh = _float(
    "asinh", "arcsinh", "Inverse hyperbolic sine.", "[0.0, 1.0] -> [0.   , 0.881]"
)
arccosh = acosh = _float(
    "acosh", "arccosh", "Inverse hyperbolic cosine; NaN below 1.", "[1.0, 0.5] -> [ 0., nan]"
)
arctanh = atanh = _float(
    "atanh",
    "arctanh",
    "Inverse hyperbolic tangent; NaN outside -1..1.",
    "[0.0, 1.0, 2.0] -> [ 0., inf, nan]",
)

# Bits
bitwise_and = _binary(
    "and", "bitwise_and", "Bits set in x1 and in x2.", "[12, 5], 6 -> [4, 4]", _BITS
)
bitwise_or = _binary(
    "or", "bitwise_or", "Bits set in x1 or in x2.", "[12, 5], 6 -> [14,  7]", _BITS
)
bitwise_xor = _binary(
    "xor", "bitwise_xor", "Bits set in exactly one of x1 and x2.", "[12, 5], 6 -> [10,  3]", _BITS
)
bitwise_not = invert = bitwise_invert = _unary(
    "not", "bitwise_not", "Each bit inverted; logical not for bool.", "[0, 5] -> [-1, -6]", _BITS
)
_shift_left = _binary("shift_left", "left_shift", "")
_shift_right_arithmetic = _binary("shift_right_arithmetic", "right_shift", "")
_shift_right_logical = _binary("shift_right_logical", "right_shift", "")
_population_count = _unary("population_count", "bitwise_count", "Number of bits set.")

# Comparisons and logic
equal = _compare("eq", "equal", "x == y.", "[1, 2, 3], 2 -> [False,  True, False]")
not_equal = _compare(
    "ne", "not_equal", "x != y; true if either is NaN.", "[1, 2, 3], 2 -> [ True, False,  True]"
)
less = _compare(
    "lt",
    "less",
    "x < y; complex numbers go by real, then by imaginary part.",
    "[1, 2, 3], 2 -> [ True, False, False]",
)
less_equal = _compare(
    "le",
    "less_equal",
    "x <= y; complex numbers go by real, then by imaginary part.",
    "[1, 2, 3], 2 -> [ True,  True, False]",
)
greater = _compare(
    "gt",
    "greater",
    "x > y; complex numbers go by real, then by imaginary part.",
    "[1, 2, 3], 2 -> [False, False,  True]",
)
greater_equal = _compare(
    "ge",
    "greater_equal",
    "x >= y; complex numbers go by real, then by imaginary part.",
    "[1, 2, 3], 2 -> [False,  True,  True]",
)
logical_and = _logical(
    "and", "logical_and", "Whether x1 and x2 are both true.", "[0, 2], 1 -> [False,  True]"
)
logical_or = _logical(
    "or", "logical_or", "Whether x1 or x2 is true, or both.", "[0, 2], 0 -> [False,  True]"
)
logical_xor = _logical(
    "xor", "logical_xor", "Whether exactly one of x1 and x2 is true.", "[0, 2], 1 -> [ True, False]"
)
logical_not = _logical(
    "not", "logical_not", "Whether x is zero or False.", "[0, 2] -> [ True, False]", 1
)
_is_finite = _unary("is_finite", "isfinite", "")

# Complex numbers
_real = _unary("real", "real", "")
_imag = _unary("imag", "imag", "")
_conj = _unary("conj", "conj", "")


def positive(x, /):
    """`x` itself, as an array.

    Examples:
      >>> wnp.positive(wnp.array([1, -2]))
      Array([ 1, -2], dtype=int32)
    """
    return _core.apart(x)


def absolute(x, /):
    """Absolute value: of the real dtype for complex `x`, otherwise of the dtype of `x`.

    Examples:
      >>> wnp.absolute(wnp.array([-3, 4]))
      Array([3, 4], dtype=int32)
      >>> wnp.absolute(wnp.array([3 + 4j]))
      Array([5.], dtype=float32)
    """
    dtype = dtype_of(x)
    return _core.apart(x) if is_bool(dtype) or dtype.name.startswith("u") else _abs(x)


abs = absolute


@composite
def fabs(x, /):
    """Absolute value as a float, for real numbers.

    Raises TypeError for complex numbers.

    Examples:
      >>> wnp.fabs(wnp.array([-3, 4]))
      Array([3., 4.], dtype=float32)
    """
    if is_complex(dtype_of(x)):
        raise TypeError(f"[fabs] expected a real array; got dtype {dtype_of(x)}")
    return _abs(*_core.promote_dtypes_inexact(x))


def square(x, /):
    """x * x, in the dtype of `x` (int32 for bool).

    Examples:
      >>> wnp.square(wnp.array([-3, 4]))
      Array([ 9, 16], dtype=int32)
    """
    return _square(as_number(x))


def floor(x, /):
    """Largest integer that is not greater than x, as a float; integers are returned unchanged.

    Examples:
      >>> wnp.floor(wnp.array([1.7, -1.2]))
      Array([ 1., -2.], dtype=float32)
    """
    return _floor(x) if is_float(dtype_of(x)) else unrounded(x, "floor")


def ceil(x, /):
    """Smallest integer that is not less than x, as a float; integers are returned unchanged.

    Examples:
      >>> wnp.ceil(wnp.array([1.2, -1.7]))
      Array([ 2., -1.], dtype=float32)
    """
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


@composite(broadcasts=True)
def left_shift(x, y, /):
    """x shifted left by y bits, for integers; bits that leave on the left are lost.

    Examples:
      >>> wnp.left_shift(wnp.array([1, 3]), 2)
      Array([ 4, 12], dtype=int32)
    """
    return _shift_left(*as_numbers(x, y))


@composite(broadcasts=True)
def right_shift(x1, x2, /):
    """x1 shifted right by x2 bits; copies of the sign bit move in for signed dtypes, else zeros.

    Examples:
      >>> wnp.right_shift(wnp.array([12, -12]), 2)
      Array([ 3, -3], dtype=int32)
    """
    x1, x2 = as_numbers(x1, x2)
    unsigned = dtype_of(x1).name.startswith("u")
    return (_shift_right_logical if unsigned else _shift_right_arithmetic)(x1, x2)


bitwise_left_shift = left_shift
bitwise_right_shift = right_shift


def bitwise_count(x, /):
    """Number of bits set in the absolute value of each integer, as uint8.

    Examples:
      >>> wnp.bitwise_count(wnp.array([7, 8, -1]))
      Array([3, 1, 1], dtype=uint8)
    """
    count = x if is_bool(dtype_of(x)) else _population_count(absolute(x))
    return _core.astype(count, _core.canonical_dtype("uint8"))


def isnan(x, /):
    """Whether each element is NaN.

    Examples:
      >>> wnp.isnan(wnp.array([1.0, np.nan, np.inf]))
      Array([False,  True, False], dtype=bool)
    """
    return not_equal(x, x)


def isfinite(x, /):
    """Whether each element is neither infinite nor NaN (for complex x: both of its parts).

    Examples:
      >>> wnp.isfinite(wnp.array([1.0, np.nan, np.inf]))
      Array([ True, False, False], dtype=bool)
    """
    shape, dtype, weak = _core.typeof(x)
    if is_complex(dtype):
        finite = logical_and(_is_finite(_real(x)), _is_finite(_imag(x)))
        return _core.astype(finite, np.dtype(bool), weak)
    return _is_finite(x) if is_inexact(dtype) else _core.broadcast_to(True, shape)


def real(val, /):
    """Real part; `val` itself if it is real.

    Examples:
      >>> wnp.real(wnp.array([1 + 2j, 3.0]))
      Array([1., 3.], dtype=float32)
    """
    return _real(val) if is_complex(dtype_of(val)) else _numbers(val, "real")


def imag(val, /):
    """Imaginary part; zeros if `val` is real.

    Examples:
      >>> wnp.imag(wnp.array([1 + 2j, 3.0]))
      Array([2., 0.], dtype=float32)
    """
    shape, dtype, weak = _core.typeof(val)
    if is_complex(dtype):
        return _imag(val)
    return _core.broadcast_to(_core.astype(0, real_dtype(dtype), weak), shape)


def conj(x, /):
    """Complex conjugate; `x` itself if it is real.

    Examples:
      >>> wnp.conj(wnp.array([1 + 2j, 3.0]))
      Array([1.-2.j, 3.-0.j], dtype=complex64)
    """
    return _conj(x) if is_complex(dtype_of(x)) else _numbers(x, "conj")


def _numbers(x, function):
    """An array, of anything but random keys."""
    if is_key(dtype_of(x)):
        raise DTypeError(f"[{function}] expected an array of numbers; got {dtype_of(x)}")
    return _core.apart(x)


conjugate = conj
