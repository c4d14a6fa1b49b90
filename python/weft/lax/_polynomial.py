"""Polynomials, 1 - x^2, and the logarithm to base 2."""

import math

from weft import _core
from weft._custom_rules import custom_jvp
from weft._jit import composite
from weft.dtypes import dtype_of, is_complex, is_inexact
from weft.errors import DTypeError
from weft.lax._creation import full_like
from weft.lax._elementwise import add, complex, imag, log, mul, real, sub


@composite(static_argnames=("unroll",))
def polynomial(x, coeffs, *, unroll=None):
    """The value of a polynomial, by Horner's rule.

    Args:
      x: array of a number dtype.
      coeffs: a sequence of coefficients, that of x^0 first: numbers, or arrays of the rank of `x`
        whose axes have its sizes, or 1.
      unroll: has no effect.

    Examples:
      >>> lax.polynomial(wnp.array([1.0, 2.0]), (1.0, 2.0, 3.0))
      Array([ 6., 17.], dtype=float32)
    """
    value = full_like(x, 0)
    for k, each in enumerate(reversed(coeffs)):
        each = _core.broadcast_arrays(each, x)[0]
        value = add(mul(value, x) if k else value, each)
    return value


@custom_jvp
def _one_minus_square(x):
    return mul(add(x, full_like(x, 1)), sub(full_like(x, 1), x))


@_one_minus_square.defjvp
def _one_minus_square_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _one_minus_square(x), mul(mul(full_like(x, -2), x), dx)


@composite
def one_minus_square(x):
    """1 - x^2, computed as (1 + x) (1 - x), with the derivative -2 x.

    Examples:
      >>> lax.one_minus_square(wnp.array([0.5, 3.0]))
      Array([ 0.75, -8.  ], dtype=float32)
    """
    return _one_minus_square(x)


@composite(static_argnames=("accuracy",))
def log2(x, *, accuracy=None):
    """Logarithm to base 2 of an array of a floating-point or complex dtype; DTypeError for others.

    `accuracy` is that of `log`.

    Examples:
      >>> lax.log2(wnp.array([8.0, 0.25]))
      Array([ 3., -2.], dtype=float32)
    """
    if not is_inexact(dtype_of(x)):
        raise DTypeError(f"[log2] expected floats or complex numbers; got {dtype_of(x)}")
    value = log(x, accuracy=accuracy)
    if not is_complex(dtype_of(x)):
        return _scaled(value)
    return complex(_scaled(real(value)), _scaled(imag(value)))


def _scaled(x):
    return _core.bind("div", x, full_like(x, math.log(2)))
