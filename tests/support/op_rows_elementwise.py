"""Rows of the element-wise ops: arithmetic, transcendental and special functions, comparison."""

import math

import numpy as np
import scipy.special
from op_table import (
    ANY,
    BOOL,
    COMPLEX,
    FLOATS,
    INEXACT,
    INTS,
    NUMBERS,
    SHAPES,
    SIGNED,
    Arg,
    Row,
    bfloat16,
    bind,
    elementwise,
)

from weft import lax

INF, NAN = math.inf, math.nan
REALS = INTS + FLOATS
SPECIAL = (0.0, -0.0, 1.0, -1.0, INF, -INF, NAN)


def real_of(dtype: np.dtype) -> np.dtype:
    return np.dtype({"c8": "f4", "c16": "f8"}.get(dtype.str[1:], dtype))


def bool_of(dtype: np.dtype) -> np.dtype:
    return np.dtype(bool)


def unary(op, ref, dtypes=FLOATS, fn=None, **options):
    return elementwise(op, fn or getattr(lax, op), ref, dtypes, **options)


def binary(op, ref, dtypes=FLOATS, fn=None, **options):
    """A binary row, with each operand a scalar in turn besides equal shapes."""
    row = elementwise(op, fn or getattr(lax, op), ref, dtypes, arity=2, **options)
    (a, b) = row.args[0]
    scalars = tuple(
        (Arg(s, a.domain, a.dtype), Arg(t, b.domain, b.dtype))
        for s, t in (((), (4,)), ((2, 3), ()))
    )
    return Row(**{**vars(row), "args": row.args + scalars})


def linear(**options):
    return {"diff": (0,), "linear_in": ((0,),), **options}


# Division and remainder of integers round toward zero, as in C.
def c_div(x, y):
    return x / y if x.dtype.kind in "fcV" else np.trunc(x.astype(object) / y).astype(x.dtype)


def reduce_precision(x, exponent_bits, mantissa_bits):
    scale = 2.0 ** (mantissa_bits + 1)
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(mantissa * scale) / scale, exponent)


def convert(x, new_dtype):
    if np.dtype(new_dtype).kind in "iu" and x.dtype.kind == "f":
        x = np.trunc(x)
    if x.dtype.kind == "c" and np.dtype(new_dtype).kind != "c":
        x = x.real
    return x.astype(new_dtype)


def shift(op, amount_domain="shift"):
    ref = {
        "shift_left": np.left_shift,
        "shift_right_arithmetic": lambda x, y: np.right_shift(
            x.view(x.dtype.str.replace("u", "i")), y.astype(x.dtype.str.replace("u", "i"))
        ).view(x.dtype),
        "shift_right_logical": lambda x, y: np.right_shift(
            x.view(x.dtype.str.replace("i", "u")), y.astype(x.dtype.str.replace("i", "u"))
        ).view(x.dtype),
    }[op]
    return binary(op, ref, INTS, domain=("bits", amount_domain), ulps=0)


def comparison(op, ref, dtypes):
    return binary(op, ref, dtypes, out=bool_of, ulps=0, domain="real")


def total_order(op, ref):
    """-NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""

    def key(x):
        bits = as_unsigned(x.astype(np.float64)).view(np.int64)
        return np.where(bits < 0, np.iinfo(np.int64).min - bits - 1, bits)

    values = (-NAN, -INF, -1.0, -0.0, 0.0, 1.0, INF, NAN)
    args = ((Arg((8,), value=values), Arg((8,), value=values)),
            (Arg((8,), value=values), Arg((8,), value=values[::-1])),
            (Arg((8,), value=values), Arg((), value=0.0)))  # fmt: skip
    return Row(op, bind(op), lambda x, y: ref(key(x), key(y)), args, dtypes=("float32", "float64"),
               out=bool_of, ulps=0)  # fmt: skip


def bit_count(x):
    return np.array([bin(int(v)).count("1") for v in as_unsigned(x).ravel()], x.dtype).reshape(
        x.shape
    )


def leading_zeros(x):
    bits = x.dtype.itemsize * 8
    values = [bits - int(v).bit_length() for v in as_unsigned(x).ravel()]
    return np.array(values, x.dtype).reshape(x.shape)


def as_unsigned(x):
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}").reshape(x.shape)


def mulhi(x, y):
    width = 8 * x.dtype.itemsize
    high = np.multiply(x.astype(object), y.astype(object)) // 2**width
    return np.asarray(high).astype(x.dtype)


ARITHMETIC = [
    unary("neg", np.negative, NUMBERS, ulps=0, special=SPECIAL, **linear()),
    unary("sign", np.sign, REALS, ulps=0, special=SPECIAL),
    unary("sign", np.sign, COMPLEX, label="complex", domain="nonzero"),
    unary("floor", np.floor, ulps=0, special=SPECIAL, domain="halfway_free"),
    unary("ceil", np.ceil, ulps=0, special=SPECIAL, domain="halfway_free"),
    unary(
        "round", lambda x, rounding_method: np.trunc(x + np.copysign(0.5, x)), domain="ties",
        attrs={"rounding_method": 0}, label="away", ulps=0, special=(0.5, -0.5, INF, -INF, NAN),
    ),
    unary(
        "round", lambda x, rounding_method: np.rint(x), domain="ties",
        attrs={"rounding_method": 1}, label="even", ulps=0, special=(0.5, -0.5, INF, -INF, NAN),
    ),
    unary("is_finite", np.isfinite, out=bool_of, ulps=0, special=SPECIAL),
    unary("abs", np.abs, SIGNED + FLOATS, ulps=0, special=SPECIAL, domain="nonzero", diff=(0,)),
    unary("abs", np.abs, COMPLEX, label="complex", domain="nonzero", out=real_of, diff=(0,)),
    unary("square", np.square, NUMBERS, special=SPECIAL, ulps=8, diff=(0,)),
    unary("one_less_square", lambda x: (1 - x) * (1 + x), INEXACT, fn=bind("one_less_square"),
          special=SPECIAL, ulps=8, diff=(0,)),
    unary("sqrt", np.sqrt, INEXACT, domain="positive", special=SPECIAL, ulps=8, diff=(0,)),
    unary(
        "rsqrt", lambda x: 1 / np.sqrt(x), INEXACT, domain="positive", special=(1.0, 0.0, INF, NAN),
        ulps=16, diff=(0,),
    ),
    unary("cbrt", np.cbrt, domain="nonzero", special=SPECIAL, diff=(0,)),
    *[
        unary(
            "integer_pow", lambda x, y: x**y, dtypes, domain="nonzero", attrs={"y": y},
            label=f"{y}".replace("-", "minus_") + suffix, ulps=abs(y) * 16 + 4, diff=(0,),
        )
        for y, dtypes, suffix in [
            (2, NUMBERS, ""), (3, ("int32", "float32", "complex64"), ""), (0, NUMBERS, ""),
            (1, ("float32",), ""), (7, ("float64",), ""), (-1, INEXACT, ""), (-3, ("float32",), ""),
        ]
    ],
    unary("real", np.real, COMPLEX, out=real_of, ulps=0, **linear()),
    unary("imag", np.imag, COMPLEX, out=real_of, ulps=0, **linear()),
    unary("conj", np.conj, COMPLEX, ulps=0, **linear()),
    binary("complex", lambda x, y: x + 1j * y, ("float32", "float64"), ulps=0,
           out=lambda d: np.result_type(d, np.complex64), diff=(0, 1), linear_in=((0, 1),)),
    binary("add", np.add, NUMBERS, ulps=8, special=SPECIAL, diff=(0, 1), linear_in=((0, 1),)),
    binary("add_any", np.add, NUMBERS, fn=bind("add_any"), ulps=8, diff=(0, 1),
           linear_in=((0, 1),)),
    binary("sub", np.subtract, NUMBERS, ulps=8, special=SPECIAL, diff=(0, 1), linear_in=((0, 1),)),
    binary("mul", np.multiply, NUMBERS, ulps=8, special=SPECIAL, diff=(0, 1),
           linear_in=((0,), (1,))),
    binary("mulhi", mulhi, INTS, domain="bits", ulps=0),
    binary("div", c_div, NUMBERS, domain="nonzero", ulps=16, special=SPECIAL, diff=(0, 1),
           linear_in=((0,),)),
    binary("rem", np.fmod, REALS, domain="nonzero", ulps=2, special=(0.0, 1.0, -1.3, INF, NAN),
           diff=(0, 1)),
    binary("max", np.maximum, REALS, domain="real", ulps=0, special=SPECIAL, diff=(0, 1)),
    binary("min", np.minimum, REALS, domain="real", ulps=0, special=SPECIAL, diff=(0, 1)),
    binary("pow", np.power, FLOATS, domain=("positive", "small"), ulps=64,
           special=(0.0, 1.0, INF, NAN), diff=(0, 1)),
    binary("pow", np.power, COMPLEX, label="complex", domain=("nonzero", "nonzero"), ulps=256,
           diff=(0, 1)),
    binary("pow", np.power, ("float32", "float64"), label="integer_exponent",
           domain=("nonzero", "shift"), arg_dtypes=(None, "int32"), ulps=64, diff=(0,)),
    binary("atan2", np.arctan2, FLOATS, domain="nonzero", ulps=8, special=SPECIAL, diff=(0, 1)),
    binary("nextafter", np.nextafter, ("float32", "float64"), ulps=0, wide=False),
]  # fmt: skip

BITS = [
    unary("not", np.invert, BOOL + INTS, fn=lax.bitwise_not, domain="real", ulps=0),
    binary("and", np.bitwise_and, BOOL + INTS, fn=lax.bitwise_and, ulps=0),
    binary("or", np.bitwise_or, BOOL + INTS, fn=lax.bitwise_or, ulps=0),
    binary("xor", np.bitwise_xor, BOOL + INTS, fn=lax.bitwise_xor, ulps=0),
    unary("population_count", bit_count, INTS, domain="bits", ulps=0),
    unary("clz", leading_zeros, INTS, domain="bits", ulps=0),
    shift("shift_left"),
    shift("shift_right_arithmetic"),
    shift("shift_right_logical"),
]

CONVERSION = [
    *[
        unary(
            "convert_element_type", convert, dtypes, attrs={"new_dtype": np.dtype(target)},
            label=f"{np.dtype(target).name}", out=lambda d, t=target: np.dtype(t), ulps=ulps,
            diff=diff, linear_in=((0,),) if diff else (), shapes=((), (0,), (7,)),
        )
        for target, dtypes, ulps, diff in [
            ("int32", ANY[:-2], 0, ()), ("uint8", ("bool", "uint32"), 0, ()),
            ("bool", BOOL + REALS, 0, ()), ("float32", ANY[:-2], 0.5, (0,)),
            (bfloat16, ANY[:-2], 1, (0,)), ("float16", REALS, 1, (0,)),
            ("complex64", ANY, 1, (0,)), ("float64", REALS, 0, (0,)),
        ]
    ],
    *[
        unary(
            "bitcast_convert_type", lambda x, new_dtype: x.view(new_dtype),
            (source,), attrs={"new_dtype": np.dtype(target)}, label=f"{source}_{np.dtype(target)}",
            out=lambda d, t=target: np.dtype(t), ulps=0,
            domain="real" if source == "float32" else "bits", shapes=((), (0,), (7,)), wide=False,
        )
        for source, target in [("int32", "uint32"), ("float32", "int32"), ("uint32", "int32")]
    ],
    unary("bitcast_convert_type", lambda x, new_dtype: x.reshape(*x.shape, 1).view(new_dtype),
          ("int32",), attrs={"new_dtype": np.dtype("int8")}, label="narrower", ulps=0,
          domain="bits", out=lambda d: np.dtype("int8"), shapes=((), (3,), (2, 3))),
    unary("bitcast_convert_type", lambda x, new_dtype: x.view(new_dtype).reshape(x.shape[:-1]),
          ("int8",), attrs={"new_dtype": np.dtype("int32")}, label="wider", ulps=0,
          domain="bits", out=lambda d: np.dtype("int32"), shapes=((4,), (3, 4))),
    unary("copy", np.array, ANY, fn=bind("copy"), ulps=0, **linear()),
    *[
        unary("name", lambda x, name: x.copy(), ANY, fn=bind("name"), attrs={"name": name},
              label=name, ulps=0, **linear())
        for name in ("one", "other")
    ],
    unary("stop_gradient", np.array, ANY, fn=bind("stop_gradient"), ulps=0),
    *[
        unary("reduce_precision", reduce_precision, ("float32", "float64"), ulps=0,
              attrs={"exponent_bits": e, "mantissa_bits": m}, label=f"{e}_{m}", **linear())
        for e, m in [(8, 7), (8, 10), (5, 10)]
    ],
]  # fmt: skip


TRANSCENDENTAL = [
    unary("exp", np.exp, INEXACT, domain="small", special=SPECIAL, ulps=8, diff=(0,)),
    unary("exp2", np.exp2, INEXACT, domain="small", special=SPECIAL, ulps=16, diff=(0,)),
    unary("expm1", np.expm1, INEXACT, domain="small", special=SPECIAL, ulps=16, diff=(0,)),
    unary("log", np.log, INEXACT, domain="positive", special=SPECIAL, ulps=32, diff=(0,)),
    unary("log1p", np.log1p, INEXACT, domain="positive", special=SPECIAL, ulps=16, diff=(0,)),
    unary("logistic", lambda x: 1 / (1 + np.exp(-x)), INEXACT, domain="small", ulps=16,
          special=SPECIAL, diff=(0,)),
    unary("tanh", np.tanh, INEXACT, domain="small", special=SPECIAL, ulps=16, diff=(0,)),
    unary("sin", np.sin, INEXACT, domain="small", special=SPECIAL, ulps=16, diff=(0,)),
    unary("cos", np.cos, INEXACT, domain="small", special=SPECIAL, ulps=16, diff=(0,)),
    unary("tan", np.tan, INEXACT, domain="unit", special=SPECIAL, ulps=16, diff=(0,)),
    unary("asin", np.arcsin, INEXACT, domain="unit", special=SPECIAL, ulps=32, diff=(0,)),
    unary("acos", np.arccos, INEXACT, domain="unit", special=SPECIAL, ulps=32, diff=(0,)),
    unary("atan", np.arctan, INEXACT, domain="unit", special=SPECIAL, ulps=32, diff=(0,)),
    unary("sinh", np.sinh, INEXACT, domain="small", special=SPECIAL, ulps=16, diff=(0,)),
    unary("cosh", np.cosh, INEXACT, domain="small", special=SPECIAL, ulps=16, diff=(0,)),
    unary("asinh", np.arcsinh, INEXACT, domain="nonzero", special=SPECIAL, ulps=32, diff=(0,)),
    unary("acosh", np.arccosh, INEXACT, domain="above_one", special=SPECIAL, ulps=64, diff=(0,)),
    unary("atanh", np.arctanh, INEXACT, domain="unit", special=SPECIAL, ulps=64, diff=(0,)),
]  # fmt: skip


def gammainc_da(a, x):
    """The derivative of the incomplete gamma function in its first argument, by differences."""
    h = 1e-3
    f = lambda k: scipy.special.gammainc(a + k * h, x)
    return (8 * (f(1) - f(-1)) - (f(2) - f(-2))) / (12 * h)


def gamma_density(a, x):
    return np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))


def beta_density(a, b, x):
    log_density = (a - 1) * np.log(x) + (b - 1) * np.log1p(-x)
    return np.exp(log_density - scipy.special.betaln(a, b))


SPECIAL_FUNCTIONS = [
    unary("erf", scipy.special.erf, domain="small", special=SPECIAL, ulps=16, diff=(0,)),
    unary("erfc", scipy.special.erfc, domain="small", special=SPECIAL, ulps=64, diff=(0,)),
    unary("erf_inv", scipy.special.erfinv, domain="unit", special=(0.0, 1.0, -1.0, 2.0, NAN),
          ulps=64, diff=(0,)),
    unary("lgamma", scipy.special.gammaln, domain="positive", special=(0.5, 1.0, 2.0, INF, NAN),
          ulps=64, diff=(0,)),
    unary("digamma", scipy.special.digamma, domain="positive", special=(0.5, 1.0, 2.0, NAN),
          ulps=64, diff=(0,)),
    binary("polygamma", scipy.special.polygamma, fn=bind("polygamma"), ulps=256,
           domain=("order", "above_one"), dtypes=("float32", "float64"), diff=(1,)),
    binary("zeta", scipy.special.zeta, fn=bind("zeta"), ulps=256, domain="above_one",
           dtypes=("float32", "float64"), diff=(1,)),
    unary("bessel_i0e", scipy.special.i0e, fn=bind("bessel_i0e"), domain="wide", ulps=64,
          special=(0.0, INF, NAN), diff=(0,)),
    unary("bessel_i1e", scipy.special.i1e, fn=bind("bessel_i1e"), domain="wide", ulps=64,
          special=(0.0, NAN), diff=(0,)),
    *[
        elementwise(op, bind(op), ref, (dtype,), arity=2, domain="positive", label=dtype,
                    ulps=ulps, diff=diff)
        for op, ref, diff, doubles in [
            ("igamma", scipy.special.gammainc, (0, 1), 256),
            ("igammac", scipy.special.gammaincc, (0, 1), 256),
            # These references are good to ten digits.
            ("igamma_grad_a", gammainc_da, (0, 1), 1e6),
            ("random_gamma_grad", lambda a, x: -gammainc_da(a, x) / gamma_density(a, x), (0, 1),
             1e6),
        ]
        for dtype, ulps in [("float32", 256), ("float64", doubles)]
    ],
    *[
        elementwise("igamma_grad_x", bind("igamma_grad_x"), gamma_density, (dtype,), arity=2,
                    domain="positive", label=dtype, ulps=256, diff=(0, 1))
        for dtype in ("float32", "float64")
    ],
    elementwise("regularized_incomplete_beta_grad_x", bind("regularized_incomplete_beta_grad_x"),
                beta_density, ("float32", "float64"), arity=3, ulps=1024,
                domain=("positive", "positive", "fraction"), diff=(0, 1, 2)),
    elementwise("regularized_incomplete_beta", bind("regularized_incomplete_beta"),
                scipy.special.betainc, ("float32", "float64"), arity=3, ulps=1024,
                domain=("positive", "positive", "fraction"), diff=(0, 1, 2)),
    # The function and the operands by which it is differentiated are attributes.
    elementwise("derivative", bind("derivative"), lambda a, x, **attrs: gammainc_da(a, x),
                ("float64",), arity=2, domain="positive", shapes=((3,),), ulps=1e6, diff=(0, 1),
                attrs={"function": "igamma", "by": (0,)}),
    elementwise("derivative", bind("derivative"), lambda a, x, **attrs: -gammainc_da(a, x),
                ("float64",), arity=2, domain="positive", shapes=((3,),), ulps=1e6, label="upper",
                attrs={"function": "igammac", "by": (0,)}, diff=(0, 1)),
]  # fmt: skip

COMPARISON = [
    comparison("eq", np.equal, ANY),
    comparison("ne", np.not_equal, ANY),
    comparison("lt", np.less, BOOL + REALS),
    comparison("le", np.less_equal, BOOL + REALS),
    comparison("gt", np.greater, BOOL + REALS),
    comparison("ge", np.greater_equal, BOOL + REALS),
    total_order("eq_to", np.equal),
    total_order("lt_to", np.less),
    total_order("le_to", np.less_equal),
]


def also_scalar(shape):
    return {shape: 0, (): 0}


def select_ref(which, *cases):
    return np.select([which == i for i in range(len(cases))], cases, cases[-1]).astype(
        cases[0].dtype
    )


SELECTION = [
    Row("select_n", lax.select_n, lambda p, x, y: np.where(p, y, x),
        tuple((Arg(p, dtype="bool"), Arg(s), Arg(s)) for s in SHAPES for p in also_scalar(s)),
        dtypes=ANY, ulps=0, diff=(1, 2), linear_in=((1, 2),)),
    Row("select_n", lax.select_n, select_ref,
        tuple((Arg(s, dtype="int32", value=v), Arg(s), Arg(s), Arg(s))
              for s, v in [((), 1), ((3,), [2, 0, 1]), ((0,), 0)]),
        dtypes=("bool", "int32", "float32", "complex64"), ulps=0, label="three",
        diff=(1, 2, 3), linear_in=((1, 2, 3),)),
    Row("clamp", lax.clamp, lambda lo, x, hi: np.minimum(np.maximum(x, lo), hi),
        tuple((Arg(b, value=2), Arg(s), Arg(b, value=5)) for s in SHAPES for b in also_scalar(s)),
        dtypes=REALS, ulps=0, diff=(0, 1, 2)),
]  # fmt: skip


ROWS = [
    *ARITHMETIC,
    *BITS,
    *CONVERSION,
    *TRANSCENDENTAL,
    *SPECIAL_FUNCTIONS,
    *COMPARISON,
    *SELECTION,
]
