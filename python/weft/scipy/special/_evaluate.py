"""What the algorithms of special functions share: promotion, working precision, polynomials."""

import functools
import math

import numpy as np

from weft import _core, numpy as jnp
from weft.dtypes import dtype_of, finfo, real_dtype
from weft.errors import DTypeError
from weft.numpy._division_powers import require_real
from weft.tree_util import tree_map

_SINGLE, _DOUBLE = np.dtype("float32"), np.dtype("float64")


def inexact(*xs):
    """The arguments promoted to one floating-point or complex dtype."""
    return _core.promote_dtypes_inexact(*xs)


def reals(function, *xs):
    """The arguments promoted to one floating-point dtype; DTypeError for complex ones."""
    xs = _core.promote_dtypes_inexact(*xs)
    require_real(function, *xs)
    return xs


def listed(*xs):
    """The arguments of functions that take lists of numbers as well, as arrays."""
    return [jnp.asarray(x) for x in xs]


def strong_array(x):
    """`x`, strongly typed if it has axes."""
    return _core.astype(x, x.dtype) if x.ndim else x


def exp_or_nan(x, valid):
    """e**x, NaN where it is not valid. The other way around, for a `valid` that is one for all, XLA
    on CPU takes the exponential of a NaN that it knows, which gives anything."""
    return jnp.where(valid, jnp.exp(x), math.nan)


def log1p_of_square(y):
    """log(1 + y^2), also where the square would overflow."""
    size = jnp.abs(y)
    large = size > 1
    at = jnp.where(large, size, 1)
    near = jnp.where(large, 0, y)
    far = 2 * jnp.log(at) + jnp.log1p(jnp.square(1 / at))
    return jnp.where(large, far, jnp.log1p(near * near))


def with_nan(value, *arguments):
    """`value`, but NaN where one of the arguments is. Comparisons take NaN for a number that is not
    inside of what they ask about."""
    missing = functools.reduce(jnp.logical_or, map(jnp.isnan, arguments))
    return jnp.where(missing, math.nan, value)


def sample(function, x, *parameters):
    """`reals`, where an array `x` with axes is strongly typed and so makes the result."""
    x, *parameters = reals(function, x, *parameters)
    return strong_array(x), *parameters


def singles_or_doubles(function, x):
    """An array of float32 or float64; DTypeError for other dtypes."""
    x = _core.asarray(x)
    if x.dtype not in (_SINGLE, _DOUBLE):
        raise DTypeError(f"[{function}] expected an array of float32 or float64; got {x.dtype}")
    return x


def singles(xs):
    """Arrays of half precision as float32, others as they are."""
    wide = dtype_of(xs[0]).itemsize >= 4
    return xs if wide else [_core.astype(x, _SINGLE) for x in xs]


def computed(kernel, *xs):
    """`kernel` of arrays of one dtype, which are broadcast together.

    Half precision is widened to float32 for the kernel. Results have the dtype of the arguments and
    are not weakly typed.
    """
    xs = _core.broadcast_arrays(*xs)
    dtype = dtype_of(xs[0])
    results = kernel(*(_core.astype(x, dtype_of(x)) for x in singles(xs)))
    return tree_map(lambda y: _core.astype(y, dtype), results)


def is_double(x):
    """Whether the working precision is that of float64."""
    return real_dtype(dtype_of(x)) == _DOUBLE


def epsilon(x):
    """The distance of 1 from the next float of the precision of `x`."""
    return float(finfo(real_dtype(dtype_of(x))).eps)


def horner(x, coefficients):
    """The polynomial whose coefficients are given, that of the highest power first."""
    total = coefficients[0]
    for each in coefficients[1:]:
        total = total * x + each
    return total


def fitted(x, middle, coefficients, short):
    """A polynomial of tools/fits, of as many terms as the precision of `x` needs."""
    return horner(x - middle, (coefficients if is_double(x) else short)[::-1])


def exp_of_square(x, factor):
    """exp(factor * x^2) for a factor of 1, -1 or -1/2, without the rounding error of the square.

    The square of a number of a few bits is exact, and the rest is small.
    """
    x = jnp.clip(x, -60, 60)  # beyond it is 0 or infinite
    grid = 2.0**20 if is_double(x) else 2.0**7
    high = jnp.round(x * grid) / grid
    rest = factor * (x - high) * (x + high)
    return jnp.exp(factor * high * high) * horner(rest, _EXP)


_EXP = [1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0]
