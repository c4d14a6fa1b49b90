"""Element-wise operations of `weft.lax`.

No dtype promotion: operands have one dtype, and a Python number has its default one. Operands have
one rank, and along each axis one size or 1; scalars (arrays without dimensions, Python numbers)
combine with arrays of any shape.
"""

import builtins
import enum

import numpy as np

from weft import _core
from weft._arguments import check_one_dtype, shape_of, static_int, weak_as, wrapped
from weft._surface import example_section
from weft._warnings import warn
from weft.dtypes import dtype_of, is_bool, is_complex, is_integer, is_key, requested_dtype
from weft.errors import DTypeError, ShapeError
from weft.lax._shape import common_shape
from weft.tree_util import tree_map

_INEXACT = "a floating-point or complex dtype"
_FLOAT = "a floating-point dtype"
_NUMBER = "a number dtype"
_REAL = "an integer or floating-point dtype"
_INTEGER = "an integer dtype"
_BITS = "an integer dtype or bool"
_ANY = "any dtype"


def _function(op, name, doc, parameters):
    return _core.elementwise(op, "lax", name, doc, "weft.lax", None, parameters)


def _unary(op, summary, dtypes, *, example, name=None, result="Same shape and dtype."):
    doc = f"{summary}\n\nArgs:\n  x: array of {dtypes}.\n\nReturns:\n  {result}\n"
    doc += f"\nRaises:\n  DTypeError: for an array of another dtype.\n\n{example_section(*example)}"
    return _function(op, name or op, doc, ("x",))


def _binary(
    op,
    summary,
    dtypes,
    *,
    example,
    name=None,
    result="Array of their shape and dtype.",
    parameters=("x", "y"),
):
    x, y = parameters
    doc = (
        f"{summary}\n\nArgs:\n  {x}, {y}: arrays of one dtype, {dtypes}, and of one rank, with "
        f"equal sizes or 1 along each\n    axis; either may be a scalar.\n\nReturns:\n  {result}\n"
        "\nRaises:\n  DTypeError: for different or other dtypes.\n"
        "  ShapeError: for shapes that do not go together.\n"
        f"\n{example_section(*example)}"
    )
    return _function(op, name or op, doc, parameters)


class AccuracyMode(enum.Enum):
    """How exact a function is to be, where XLA has several implementations of it."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """The error that a function may have: absolute, relative, in units in the last place.

    ValueError for negative ones, or if none is given.

    Examples:
      >>> lax.exp(0.0, accuracy=lax.Tolerance(ulps=2))
      Array(1., dtype=float32, weak_type=True)
    """

    def __init__(self, atol=0.0, rtol=0.0, ulps=0):
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError("[Tolerance] expected tolerances of at least 0")
        if not (atol or rtol or ulps):
            raise ValueError("[Tolerance] expected at least one of atol, rtol and ulps")
        self.atol = float(atol)
        self.rtol = float(rtol)
        self.ulps = static_int(ulps, "Tolerance", "ulps")

    def __repr__(self):
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"

    def _key(self):
        return self.atol, self.rtol, self.ulps

    def __eq__(self, other):
        return isinstance(other, Tolerance) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())


def _accuracy(value, function):
    """An accuracy as the attribute that operations have."""
    if value is AccuracyMode.DEFAULT:
        return None
    if value is AccuracyMode.HIGHEST:
        return value.name
    if isinstance(value, Tolerance):
        return f"atol = {value.atol:e}, rtol = {value.rtol:e}, ulps = {value.ulps}"
    raise TypeError(
        f"[{function}] expected accuracy to be an AccuracyMode or a Tolerance; got {value!r}"
    )


def _graded(op, summary, dtypes, *, example):
    plain = _function(op, op, "", ("x",))

    def function(x, *, accuracy=None):
        if accuracy is None:
            return plain(x)
        return _core.bind(op, x, accuracy=_accuracy(accuracy, op))

    function.__name__ = function.__qualname__ = op
    function.__doc__ = (
        f"{summary}\n\nArgs:\n  x: array of {dtypes}.\n"
        "  accuracy: AccuracyMode or Tolerance, among the implementations that XLA has.\n"
        "\nReturns:\n  Same shape and dtype.\n"
        "\nRaises:\n  DTypeError: for an array of another dtype.\n"
        f"\n{example_section(*example)}"
    )
    return function


_BOOL = "bool array of the same shape."

# Arithmetic and rounding
neg = _unary(
    "neg", "-x.", _NUMBER, example=("lax.neg(wnp.array([1, -2]))", "Array([-1,  2], dtype=int32)")
)
sign = _unary(
    "sign",
    "-1, 0 or 1 as x is; x / abs(x) for complex x, and 0 at 0.",
    _NUMBER,
    example=("lax.sign(wnp.array([-3, 0, 5]))", "Array([-1,  0,  1], dtype=int32)"),
)
floor = _unary(
    "floor",
    "Largest integer that is not greater than x.",
    _FLOAT,
    example=("lax.floor(wnp.array([1.5, -1.5]))", "Array([ 1., -2.], dtype=float32)"),
)
ceil = _unary(
    "ceil",
    "Smallest integer that is not less than x.",
    _FLOAT,
    example=("lax.ceil(wnp.array([1.5, -1.5]))", "Array([ 2., -1.], dtype=float32)"),
)
is_finite = _unary(
    "is_finite",
    "Whether x is neither infinite nor NaN.",
    _FLOAT,
    result=_BOOL,
    example=(
        "lax.is_finite(wnp.array([1.0, np.inf, np.nan]))",
        "Array([ True, False, False], dtype=bool)",
    ),
)
abs = _unary(
    "abs",
    "Absolute value; real for complex x.",
    _NUMBER,
    result="Real, same shape.",
    example=("lax.abs(wnp.array([3 + 4j, -2]))", "Array([5., 2.], dtype=float32)"),
)
square = _unary(
    "square",
    "x * x.",
    _NUMBER,
    example=("lax.square(wnp.array([-3, 4]))", "Array([ 9, 16], dtype=int32)"),
)
sqrt = _graded(
    "sqrt",
    "Square root; NaN for negative x.",
    _INEXACT,
    example=("lax.sqrt(wnp.array([9.0, -1.0]))", "Array([ 3., nan], dtype=float32)"),
)
rsqrt = _graded(
    "rsqrt",
    "1 / sqrt(x).",
    _INEXACT,
    example=("lax.rsqrt(wnp.array([4.0, 16.0])).round(3)", "Array([0.5 , 0.25], dtype=float32)"),
)
cbrt = _graded(
    "cbrt",
    "Cube root, negative for negative x.",
    _FLOAT,
    example=("lax.cbrt(wnp.array([27.0, -8.0])).round(3)", "Array([ 3., -2.], dtype=float32)"),
)
real = _unary(
    "real",
    "Real part.",
    "a complex dtype",
    result="Real, same shape.",
    example=("lax.real(wnp.array([1 + 2j]))", "Array([1.], dtype=float32)"),
)
imag = _unary(
    "imag",
    "Imaginary part.",
    "a complex dtype",
    result="Real, same shape.",
    example=("lax.imag(wnp.array([1 + 2j]))", "Array([2.], dtype=float32)"),
)
conj = _unary(
    "conj",
    "Complex conjugate.",
    _INEXACT,
    result="Complex, same shape.",
    example=("lax.conj(wnp.array([1 + 2j]))", "Array([1.-2.j], dtype=complex64)"),
)
add = _binary(
    "add",
    "x + y; integers wrap around.",
    _NUMBER,
    example=("lax.add(wnp.array([1, 2]), 10)", "Array([11, 12], dtype=int32)"),
)
sub = _binary(
    "sub",
    "x - y; integers wrap around.",
    _NUMBER,
    example=("lax.sub(wnp.array([1, 2]), 10)", "Array([-9, -8], dtype=int32)"),
)
_mul = _function("mul", "mul", "", ("x", "y"))
mulhi = _binary(
    "mulhi",
    "Upper half of the bits of x * y.",
    _INTEGER,
    example=("lax.mulhi(wnp.uint8(100), wnp.uint8(100))", "Array(39, dtype=uint8)"),
)
div = _binary(
    "div",
    "x / y; for integers the quotient rounded towards zero.",
    _NUMBER,
    example=("lax.div(wnp.array([7, -7]), 2)", "Array([ 3, -3], dtype=int32)"),
)
rem = _binary(
    "rem",
    "Remainder of x / y, with the sign of x.",
    _REAL,
    example=("lax.rem(wnp.array([7, -7]), 2)", "Array([ 1, -1], dtype=int32)"),
)
max = _binary(
    "max",
    "The greater of x and y; NaN if either is NaN.",
    _ANY,
    example=("lax.max(wnp.array([1.0, np.nan]), 2.0)", "Array([ 2., nan], dtype=float32)"),
)
min = _binary(
    "min",
    "The smaller of x and y; NaN if either is NaN.",
    _ANY,
    example=("lax.min(wnp.array([1.0, np.nan]), 2.0)", "Array([ 1., nan], dtype=float32)"),
)
nextafter = _binary(
    "nextafter",
    "The float next to x1 in the direction of x2.",
    _FLOAT,
    parameters=("x1", "x2"),
    example=('lax.nextafter(1.0, 2.0) - 1 == wnp.finfo("float32").eps', "Array(True, dtype=bool)"),
)
complex = _binary(
    "complex",
    "x + iy.",
    "float32 or float64",
    result="Complex, same shape.",
    example=("lax.complex(wnp.array([1.0]), 2.0)", "Array([1.+2.j], dtype=complex64)"),
)

# Bits
bitwise_not = _unary(
    "not",
    "Each bit inverted; logical not for bool.",
    _BITS,
    name="bitwise_not",
    example=("lax.bitwise_not(wnp.array([0, 5]))", "Array([-1, -6], dtype=int32)"),
)
bitwise_and = _binary(
    "and",
    "Bits set in x and in y.",
    _BITS,
    name="bitwise_and",
    example=("lax.bitwise_and(wnp.array([6, 7]), 3)", "Array([2, 3], dtype=int32)"),
)
bitwise_or = _binary(
    "or",
    "Bits set in x or in y.",
    _BITS,
    name="bitwise_or",
    example=("lax.bitwise_or(wnp.array([4, 5]), 3)", "Array([7, 7], dtype=int32)"),
)
bitwise_xor = _binary(
    "xor",
    "Bits set in exactly one of x and y.",
    _BITS,
    name="bitwise_xor",
    example=("lax.bitwise_xor(wnp.array([6, 7]), 3)", "Array([5, 4], dtype=int32)"),
)
population_count = _unary(
    "population_count",
    "Number of bits set in x.",
    _INTEGER,
    example=("lax.population_count(wnp.array([0, 7, 8]))", "Array([0, 3, 1], dtype=int32)"),
)
clz = _unary(
    "clz",
    "Number of zero bits before the highest bit set.",
    _INTEGER,
    example=('lax.clz(wnp.array([0, 1, 255], "uint8"))', "Array([8, 7, 0], dtype=uint8)"),
)
shift_left = _binary(
    "shift_left",
    "x shifted left by y bits.",
    _INTEGER,
    example=("lax.shift_left(wnp.array([1, 3]), 4)", "Array([16, 48], dtype=int32)"),
)
shift_right_arithmetic = _binary(
    "shift_right_arithmetic",
    "x shifted right by y bits, its sign bit moving in.",
    _INTEGER,
    example=("lax.shift_right_arithmetic(wnp.array([16, -16]), 2)", "Array([ 4, -4], dtype=int32)"),
)
shift_right_logical = _binary(
    "shift_right_logical",
    "x shifted right by y bits, zeros moving in.",
    _INTEGER,
    example=("lax.shift_right_logical(wnp.array([16, -1]), 28)", "Array([ 0, 15], dtype=int32)"),
)

# Exponentials and logarithms
exp = _graded(
    "exp",
    "e to the power x.",
    _INEXACT,
    example=("lax.exp(wnp.array([0.0, 1.0])).round(3)", "Array([1.   , 2.718], dtype=float32)"),
)
exp2 = _graded(
    "exp2",
    "2 to the power x.",
    _INEXACT,
    example=("lax.exp2(wnp.array([3.0, -1.0])).round(3)", "Array([8. , 0.5], dtype=float32)"),
)
expm1 = _graded(
    "expm1",
    "exp(x) - 1, accurate for small x.",
    _INEXACT,
    example=("lax.expm1(1e-12)", "Array(1.e-12, dtype=float32, weak_type=True)"),
)
log = _graded(
    "log",
    "Natural logarithm; NaN for negative x, -inf at 0.",
    _INEXACT,
    example=("lax.log(wnp.array([1.0, 0.0, -1.0]))", "Array([  0., -inf,  nan], dtype=float32)"),
)
log1p = _graded(
    "log1p",
    "log(1 + x), accurate for small x.",
    _INEXACT,
    example=("lax.log1p(1e-12)", "Array(1.e-12, dtype=float32, weak_type=True)"),
)
logistic = _graded(
    "logistic",
    "1 / (1 + exp(-x)).",
    _INEXACT,
    example=(
        "lax.logistic(wnp.array([-np.inf, 0.0, np.inf]))",
        "Array([0. , 0.5, 1. ], dtype=float32)",
    ),
)
_pow = _function("pow", "pow", "", ("x", "y"))

# Trigonometric and hyperbolic functions
sin = _graded(
    "sin",
    "Sine of x radians.",
    _INEXACT,
    example=("lax.sin(wnp.array([0.0, np.pi / 2])).round(3)", "Array([0., 1.], dtype=float32)"),
)
cos = _graded(
    "cos",
    "Cosine of x radians.",
    _INEXACT,
    example=("lax.cos(wnp.array([0.0, np.pi])).round(3)", "Array([ 1., -1.], dtype=float32)"),
)
tan = _graded(
    "tan",
    "Tangent of x radians.",
    _INEXACT,
    example=("lax.tan(wnp.array([0.0, np.pi / 4])).round(3)", "Array([0., 1.], dtype=float32)"),
)
asin = _unary(
    "asin",
    "Arc sine, in radians; NaN outside -1..1.",
    _INEXACT,
    example=(
        "lax.asin(wnp.array([0.0, 1.0, 2.0])).round(3)",
        "Array([0.   , 1.571,   nan], dtype=float32)",
    ),
)
acos = _unary(
    "acos",
    "Arc cosine, in radians; NaN outside -1..1.",
    _INEXACT,
    example=("lax.acos(wnp.array([1.0, 0.0])).round(3)", "Array([0.   , 1.571], dtype=float32)"),
)
atan = _unary(
    "atan",
    "Arc tangent, in radians.",
    _INEXACT,
    example=("lax.atan(wnp.array([1.0, np.inf])).round(3)", "Array([0.785, 1.571], dtype=float32)"),
)
sinh = _unary(
    "sinh",
    "Hyperbolic sine.",
    _INEXACT,
    example=("lax.sinh(wnp.array([0.0, 1.0])).round(3)", "Array([0.   , 1.175], dtype=float32)"),
)
cosh = _unary(
    "cosh",
    "Hyperbolic cosine.",
    _INEXACT,
    example=("lax.cosh(wnp.array([0.0, 1.0])).round(3)", "Array([1.   , 1.543], dtype=float32)"),
)
tanh = _graded(
    "tanh",
    "Hyperbolic tangent.",
    _INEXACT,
    example=(
        "lax.tanh(wnp.array([0.0, 1.0, np.inf])).round(3)",
        "Array([0.   , 0.762, 1.   ], dtype=float32)",
    ),
)
asinh = _unary(
    "asinh",
    "Inverse hyperbolic sine.",
    _INEXACT,
    example=("lax.asinh(lax.sinh(2.0)).round(3)", "Array(2., dtype=float32, weak_type=True)"),
)
acosh = _unary(
    "acosh",
    "Inverse hyperbolic cosine; NaN below 1.",
    _INEXACT,
    example=("lax.acosh(wnp.array([1.0, 0.5]))", "Array([ 0., nan], dtype=float32)"),
)
atanh = _unary(
    "atanh",
    "Inverse hyperbolic tangent; NaN outside -1..1.",
    _INEXACT,
    example=("lax.atanh(wnp.array([0.0, 1.0]))", "Array([ 0., inf], dtype=float32)"),
)
atan2 = _binary(
    "atan2",
    "Angle of the point (y, x): arc tangent of x / y by quadrant.",
    _FLOAT,
    example=(
        "lax.atan2(wnp.array([1.0, -1.0]), -1.0).round(3)",
        "Array([ 2.356, -2.356], dtype=float32)",
    ),
)

# Special functions
erf = _unary(
    "erf",
    "Error function.",
    _FLOAT,
    example=(
        "lax.erf(wnp.array([0.0, 1.0, np.inf])).round(3)",
        "Array([0.   , 0.843, 1.   ], dtype=float32)",
    ),
)
erfc = _unary(
    "erfc",
    "1 - erf(x), accurate for large x.",
    _FLOAT,
    example=("lax.erfc(wnp.array([0.0, np.inf]))", "Array([1., 0.], dtype=float32)"),
)
erf_inv = _unary(
    "erf_inv",
    "Inverse of the error function; NaN outside -1..1.",
    _FLOAT,
    example=("lax.erf_inv(lax.erf(0.5)).round(3)", "Array(0.5, dtype=float32, weak_type=True)"),
)
lgamma = _unary(
    "lgamma",
    "Logarithm of the absolute value of the gamma function.",
    _FLOAT,
    example=("lax.lgamma(wnp.array([4.0, 6.0])).round(3)", "Array([1.792, 4.787], dtype=float32)"),
)
digamma = _unary(
    "digamma",
    "Derivative of lgamma.",
    _FLOAT,
    example=("lax.digamma(1.0).round(3)", "Array(-0.577, dtype=float32, weak_type=True)"),
)
polygamma = _binary(
    "polygamma",
    "Derivative of order m of digamma at x.",
    _FLOAT,
    parameters=("m", "x"),
    example=("lax.polygamma(1.0, 1.0).round(3)", "Array(1.645, dtype=float32, weak_type=True)"),
)
zeta = _binary(
    "zeta",
    "Hurwitz zeta function: the sum of (n + q) ** -x over n >= 0.",
    _FLOAT,
    parameters=("x", "q"),
    example=("lax.zeta(2.0, 1.0).round(3)", "Array(1.645, dtype=float32, weak_type=True)"),
)
_GAMMA = ("a", "x")
igamma = _binary(
    "igamma",
    "Lower incomplete gamma function of a at x, over gamma(a).",
    _FLOAT,
    parameters=_GAMMA,
    example=(
        "lax.igamma(1.0, wnp.array([0.0, 1.0])).round(3)",
        "Array([0.   , 0.632], dtype=float32)",
    ),
)
igammac = _binary(
    "igammac",
    "1 - igamma(a, x), accurate for large x.",
    _FLOAT,
    parameters=_GAMMA,
    example=(
        "lax.igammac(1.0, wnp.array([0.0, 1.0])).round(3)",
        "Array([1.   , 0.368], dtype=float32)",
    ),
)
igamma_grad_a = _binary(
    "igamma_grad_a",
    "Derivative of igamma with respect to a.",
    _FLOAT,
    parameters=_GAMMA,
    example=(
        "lax.igamma_grad_a(1.0, 1.0).round(3)",
        "Array(-0.432, dtype=float32, weak_type=True)",
    ),
)
random_gamma_grad = _binary(
    "random_gamma_grad",
    "Derivative of a gamma variate x of shape a with respect to a.",
    _FLOAT,
    parameters=_GAMMA,
    example=(
        "lax.random_gamma_grad(1.0, 0.5).round(3)",
        "Array(0.807, dtype=float32, weak_type=True)",
    ),
)
bessel_i0e = _unary(
    "bessel_i0e",
    "Modified Bessel function of order 0, times exp(-|x|).",
    _FLOAT,
    example=(
        "lax.bessel_i0e(wnp.array([0.0, 1.0])).round(3)",
        "Array([1.   , 0.466], dtype=float32)",
    ),
)
bessel_i1e = _unary(
    "bessel_i1e",
    "Modified Bessel function of order 1, times exp(-|x|).",
    _FLOAT,
    example=(
        "lax.bessel_i1e(wnp.array([0.0, 1.0])).round(3)",
        "Array([0.   , 0.208], dtype=float32)",
    ),
)


betainc = _function(
    "regularized_incomplete_beta",
    "betainc",
    """Regularized incomplete beta function with parameters `a` and `b` at `x` in 0..1.

    The operands have one floating-point dtype and one rank, with equal sizes or 1 along each axis,
    or are scalars.

    Examples:
      >>> lax.betainc(1.0, 2.0, wnp.array([0.0, 0.5, 1.0])).round(3)
      Array([0.  , 0.75, 1.  ], dtype=float32)
    """,
    ("a", "b", "x"),
)


def mul(x, y, *, out_dtype=None):
    """x * y; integers wrap around.

    Args:
      x, y: arrays of one number dtype, and of one rank, with equal sizes or 1 along each axis;
        either may be a scalar.
      out_dtype: dtype that the operands, which may then have different ones, are converted to
        first, and that the result has.

    Returns:
      Array of their shape, and of their dtype or `out_dtype`.

    Raises DTypeError for random keys and bools.

    Examples:
      >>> lax.mul(wnp.array([1, 2]), 10)
      Array([10, 20], dtype=int32)
      >>> lax.mul(wnp.array([100], "int8"), wnp.array([2], "int8"), out_dtype="int32")
      Array([200], dtype=int32)
    """
    if out_dtype is None:
        return _mul(x, y)
    dtype = requested_dtype(out_dtype, "mul")
    for each in (x, y):
        if is_bool(dtype_of(each)):
            raise DTypeError(f"[mul] expected {_NUMBER}; got {dtype_of(each)}")
    return _mul(convert_element_type(x, dtype), convert_element_type(y, dtype))


# Comparisons
eq = _binary(
    "eq",
    "x == y.",
    _ANY,
    result=_BOOL,
    example=("lax.eq(wnp.array([1, 2, 3]), 2)", "Array([False,  True, False], dtype=bool)"),
)
ne = _binary(
    "ne",
    "x != y; true if either is NaN.",
    _ANY,
    result=_BOOL,
    example=(
        "lax.ne(wnp.array([1.0, np.nan]), wnp.array([1.0, np.nan]))",
        "Array([False,  True], dtype=bool)",
    ),
)
lt = _binary(
    "lt",
    "x < y.",
    "a real dtype",
    result=_BOOL,
    example=("lax.lt(wnp.array([1, 2, 3]), 2)", "Array([ True, False, False], dtype=bool)"),
)
le = _binary(
    "le",
    "x <= y.",
    "a real dtype",
    result=_BOOL,
    example=("lax.le(wnp.array([1, 2, 3]), 2)", "Array([ True,  True, False], dtype=bool)"),
)
gt = _binary(
    "gt",
    "x > y.",
    "a real dtype",
    result=_BOOL,
    example=("lax.gt(wnp.array([1, 2, 3]), 2)", "Array([False, False,  True], dtype=bool)"),
)
ge = _binary(
    "ge",
    "x >= y.",
    "a real dtype",
    result=_BOOL,
    example=("lax.ge(wnp.array([1, 2, 3]), 2)", "Array([False,  True,  True], dtype=bool)"),
)


def pow(x, y):
    """x to the power y.

    Args:
      x: array of a floating-point or complex dtype.
      y: array of the dtype of `x` or of an integer dtype. Either may be a scalar, else both have
        one rank, with equal sizes or 1 along each axis.

    Returns:
      Array of their common shape and of the dtype of `x`.

    Examples:
      >>> lax.pow(wnp.array([2.0, 3.0]), 2)
      Array([4., 9.], dtype=float32)
    """
    if not is_integer(dtype_of(y)):
        return _pow(x, y)
    shapes = shape_of(x), shape_of(y)
    if shapes[0] != shapes[1] and len(shapes[0]) == len(shapes[1]):
        shape = common_shape(shapes, "pow")
        x, y = _core.broadcast_to(x, shape), _core.broadcast_to(y, shape)
    return _core.bind("pow", x, y)


class RoundingMethod(enum.IntEnum):
    """What `round` does with values halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):
    """Nearest integer, as a float.

    Args:
      x: array of a floating-point dtype.
      rounding_method: `RoundingMethod`, which decides halfway cases.

    Returns:
      Array of the shape and dtype of `x`.

    Examples:
      >>> lax.round(wnp.array([0.5, 1.5, 2.5]))
      Array([1., 2., 3.], dtype=float32)
      >>> lax.round(wnp.array([0.5, 1.5, 2.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
      Array([0., 2., 2.], dtype=float32)
    """
    return _core.bind("round", x, rounding_method=int(RoundingMethod(rounding_method)))


def integer_pow(x, y):
    """x to the power of a static integer `y`, by repeated multiplication.

    Args:
      x: array of a number dtype.
      y: Python integer; negative ones need a floating-point or complex `x`.

    Examples:
      >>> lax.integer_pow(wnp.array([2.0, 4.0]), -1)
      Array([0.5 , 0.25], dtype=float32)
    """
    return _core.bind("integer_pow", x, y=static_int(y, "integer_pow", "y"))


def reciprocal(x):
    """1 / x, for an array of a floating-point or complex dtype.

    Examples:
      >>> lax.reciprocal(wnp.array([2.0, 4.0]))
      Array([0.5 , 0.25], dtype=float32)
    """
    return integer_pow(x, -1)


def converted(x, dtype):
    """What a user asks for by a dtype; a warning says that imaginary parts are lost."""
    if is_complex(dtype_of(x)) and not (is_complex(dtype) or is_bool(dtype)):
        warn(
            f"complex numbers become {dtype}, without their imaginary parts; x.real takes the real "
            "part without this warning",
            np.exceptions.ComplexWarning,
        )
    return _core.astype(x, dtype)


def convert_element_type(operand, new_dtype):
    """The array with elements converted to `new_dtype`; the result is never weakly typed.

    Floats are rounded towards zero when they become integers, complex numbers lose their imaginary
    part, and anything but zero becomes True. Integers that the dtype has no place for wrap around.

    Raises DTypeError for a complex Python number and a real dtype.

    Examples:
      >>> lax.convert_element_type(wnp.array([1.9, -1.9]), "int32")
      Array([ 1, -1], dtype=int32)
    """
    dtype = requested_dtype(new_dtype, "convert_element_type")
    if type(operand) is builtins.complex and not (is_complex(dtype) or is_bool(dtype)):
        raise DTypeError(
            f"[convert_element_type] expected a real number for {dtype}; got {operand}"
        )
    return converted(wrapped(operand, dtype), dtype)


def bitcast_convert_type(operand, new_dtype):
    """The bits of the array read as another dtype.

    For dtypes of one width the shape stays. Widening needs a last axis of as many elements as make
    up one new element, and drops it; narrowing appends such an axis.

    Raises DTypeError for random keys.

    Examples:
      >>> hex(lax.bitcast_convert_type(wnp.float32(1), "uint32").item())
      '0x3f800000'
    """
    dtype = requested_dtype(new_dtype, "bitcast_convert_type")
    if is_key(dtype) or is_key(dtype_of(operand)):
        raise DTypeError(
            "[bitcast_convert_type] expected numbers; got random keys\n  weft.random.key_data "
            "gives the words of keys, weft.random.wrap_key_data makes keys of them."
        )
    return _core.bind("bitcast_convert_type", operand, new_dtype=dtype)


def reduce_precision(operand, exponent_bits, mantissa_bits):
    """Rounds floats to a format with fewer exponent and mantissa bits, keeping the dtype.

    Values beyond the range of the format become infinite, those too small become zero.

    Examples:
      >>> lax.reduce_precision(1.999, exponent_bits=8, mantissa_bits=1)
      Array(2., dtype=float32, weak_type=True)
    """
    return _core.bind(
        "reduce_precision",
        operand,
        exponent_bits=static_int(exponent_bits, "reduce_precision", "exponent_bits"),
        mantissa_bits=static_int(mantissa_bits, "reduce_precision", "mantissa_bits"),
    )


def clamp(min, x, max):
    """`x` limited to the interval from `min` to `max`.

    Args:
      min, max: arrays of the dtype and shape of `x`, or scalars.
      x: array of a real dtype.

    Examples:
      >>> lax.clamp(0, wnp.array([-5, 5, 50]), 9)
      Array([0, 5, 9], dtype=int32)
    """
    check_one_dtype([dtype_of(y) for y in (min, x, max)], "clamp", "operands")
    return _core.bind("clamp", min, x, max)


def _check_cases(function, which, cases):
    """Cases of one shape and dtype; `which` has their shape, or none."""
    shapes = [shape_of(x) for x in cases]
    if any(shape != shapes[0] for shape in shapes):
        found = ", ".join(map(str, shapes))
        raise ShapeError(f"[{function}] expected cases of one shape; got {found}")
    check_one_dtype([dtype_of(x) for x in cases], function, "operands")
    if shape_of(which) not in ((), shapes[0]):
        raise ShapeError(
            f"[{function}] expected a scalar or the shape {shapes[0]} of the cases to choose by; "
            f"got {shape_of(which)}"
        )


def select_n(which, *cases):
    """Element by element, the case whose number `which` holds.

    Args:
      which: array of integers, or bool for two cases (`False` takes the first), of the shape of the
        cases, or a scalar.
      cases: one or more arrays of one shape and dtype.

    Examples:
      >>> cases = wnp.array([1, 2, 3]), wnp.array([10, 20, 30]), wnp.array([100, 200, 300])
      >>> lax.select_n(wnp.array([2, 0, 1]), *cases)
      Array([100,   2,  30], dtype=int32)
    """
    if cases:
        _check_cases("select_n", which, cases)
    if cases and is_integer(dtype_of(which)):
        # The result has the dtype of the cases, and is as weak as they are.
        dtype = dtype_of(cases[0])
        which = _core.astype(which, "int32", not is_bool(dtype))
        cases = [weak_as(x, x) for x in cases]
    return _core.bind("select_n", which, *cases)


def select(pred, on_true, on_false):
    """`on_true` where `pred` is true, `on_false` elsewhere.

    `pred` is a bool array of the shape of the cases, or a scalar; the cases have one shape and
    dtype. This is `select_n(pred, on_false, on_true)`.

    Raises ShapeError for cases of two shapes.

    Examples:
      >>> lax.select(wnp.array([True, False]), wnp.array([1, 2]), wnp.array([10, 20]))
      Array([ 1, 20], dtype=int32)
    """
    if type(pred) is int:  # which would take the dtype of the cases
        pred = bool(pred)
    _check_cases("select", pred, (on_true, on_false))
    return _core.bind("select_n", pred, on_false, on_true)


def stop_gradient(x):
    """`x`, taken as a constant by derivatives. `x` may be a tree of arrays.

    Examples:
      >>> weft.grad(lambda x: x * lax.stop_gradient(x))(3.0).item()
      3.0
    """
    return tree_map(lambda leaf: _core.bind("stop_gradient", leaf), x)
