"""Convolutions of sequences, window functions, and the Bessel function that one of them needs."""

import math

import numpy as np

from weft import _core
from weft._arguments import from_whole_float, shape_of, static_int
from weft._jit import composite
from weft.dtypes import default_float, dtype_of, is_complex, is_integer, requested_dtype
from weft.errors import AttributeValueError, ShapeError
from weft.lax._conv import conv_general_dilated
from weft.lax._elementwise import bessel_i0e
from weft.lax._shape import rev
from weft.numpy import _ufuncs as u
from weft.numpy._creation import arange


def convolve(a, v, mode="full", *, precision=None, preferred_element_type=None):
    """Sums of the products of `a` and `v`, reversed, in each place that they overlap.

    Args:
      a, v: one-dimensional arrays with at least one element.
      mode: "full" for all places, "same" for as many as the longer one has elements, in the middle,
        "valid" for those where one lies within the other.
      precision: see `weft.lax.Precision`.
      preferred_element_type: dtype in which to sum up, and of the result.

    Examples:
      >>> wnp.convolve(wnp.array([1, 2, 3]), wnp.array([1, 10]))
      Array([ 1., 12., 23., 30.], dtype=float32)
      >>> wnp.convolve(wnp.array([1, 2, 3]), wnp.array([1, 10]), mode="valid")
      Array([12., 23.], dtype=float32)
    """
    return _checked("convolve", a, v, mode, precision, preferred_element_type)


def correlate(a, v, mode="valid", *, precision=None, preferred_element_type=None):
    """Sums of the products of `a` and the conjugate of `v`, moved to each place that they overlap.

    For the arguments see `convolve`.

    Examples:
      >>> wnp.correlate(wnp.array([1, 2, 3]), wnp.array([1, 10]))
      Array([21., 32.], dtype=float32)
    """
    return _checked("correlate", a, v, mode, precision, preferred_element_type)


def _checked(function, a, v, mode, precision, dtype):
    if mode not in ("full", "same", "valid"):
        raise AttributeValueError(
            f"[{function}] expected mode 'full', 'same' or 'valid'; got {mode!r}"
        )
    shapes = shape_of(a), shape_of(v)
    if any(len(shape) != 1 or shape[0] == 0 for shape in shapes):
        raise ShapeError(
            f"[{function}] expected one-dimensional arrays with elements; got shapes {shapes[0]} "
            f"and {shapes[1]}"
        )
    dtype = None if dtype is None else requested_dtype(dtype, function)
    return _correlation(
        a, v, mode=mode, flips=function == "convolve", precision=precision,
        dtype=dtype,
    )  # fmt: skip


@composite(static_argnames=("mode", "flips", "precision", "dtype"))
def _correlation(a, v, *, mode, flips, precision, dtype):
    counts = dtype is not None and all(is_integer(x) for x in (dtype, dtype_of(a), dtype_of(v)))
    promoted = _core.promote_dtypes if counts else _core.promote_dtypes_inexact
    a, v = promoted(a, v)
    weak = dtype is None and _core.typeof(a)[2] and _core.typeof(v)[2]
    v = rev(v, (0,)) if flips else u.conj(v)
    # The window is the shorter one. A convolution is the same then, a correlation reversed.
    swapped = shape_of(a)[0] < shape_of(v)[0]
    if swapped:
        a, v = (rev(v, (0,)), rev(a, (0,))) if flips else (v, a)
    n = shape_of(v)[0]
    low, high = {"full": (n - 1, n - 1), "same": (n // 2, n - n // 2 - 1), "valid": (0, 0)}[mode]
    result = conv_general_dilated(
        a[None, None],
        v[None, None],
        (1,),
        [(low, high)],
        precision=precision,
        preferred_element_type=dtype,
    )[0, 0]
    result = rev(result, (0,)) if swapped and not flips else result
    return _core.astype(result, dtype_of(result), weak)


def i0(x):
    """The modified Bessel function of the first kind of order 0, of real numbers.

    Raises AttributeValueError (a ValueError) for complex numbers.

    Examples:
      >>> wnp.i0(wnp.array([0.0, 1.0])).round(3)
      Array([1.   , 1.266], dtype=float32)
    """
    if is_complex(dtype_of(x)):
        raise AttributeValueError(f"[i0] expected real numbers; got dtype {dtype_of(x)}")
    return _i0(x)


@composite
def _i0(x):
    from weft.scipy.special._bessel import i0

    return i0(x)


def _window(function, M, values):
    """The window of M points that `values(k, M)` gives, k from 0 to M - 1; 1 for a single point."""
    M = static_int(int(M) if isinstance(M, np.bool_) else from_whole_float(M), function, "M")
    if M < 0:
        raise AttributeValueError(f"[{function}] expected M of at least 0; got {M}")
    dtype = default_float()
    if M <= 1:
        return _core.broadcast_to(_core.astype(1, dtype), (M,))
    return values(arange(M, dtype=dtype))


def bartlett(M):
    """The Bartlett window of M points, a triangle.

    Examples:
      >>> wnp.bartlett(5).round(3)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """

    def values(k):
        return u.subtract(1, u.absolute(u.subtract(u.multiply(k, 2 / (M - 1)), 1)))

    return _window("bartlett", M, values)


def _cosines(function, M, *factors):
    """The sum of factors[i] cos(2 pi i k / (M - 1))."""

    def values(k):
        angle = u.multiply(k, 2 * math.pi / (M - 1))
        total = factors[0]
        for i, factor in enumerate(factors[1:], 1):
            total = u.add(total, u.multiply(factor, u.cos(u.multiply(angle, i))))
        return total

    return _window(function, M, values)


def blackman(M):
    """The Blackman window of M points.

    Examples:
      >>> abs(wnp.blackman(5)).round(3)
      Array([0.  , 0.34, 1.  , 0.34, 0.  ], dtype=float32)
    """
    return _cosines("blackman", M, 0.42, -0.5, 0.08)


def hamming(M):
    """The Hamming window of M points.

    Examples:
      >>> wnp.hamming(5).round(3)
      Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)
    """
    return _cosines("hamming", M, 0.54, -0.46)


def hanning(M):
    """The Hann window of M points.

    Examples:
      >>> wnp.hanning(5).round(3)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _cosines("hanning", M, 0.5, -0.5)


def kaiser(M, beta):
    """The Kaiser window of M points with the shape `beta`, a number.

    Examples:
      >>> wnp.kaiser(5, 0.0).round(3)
      Array([1., 1., 1., 1., 1.], dtype=float32)
      >>> wnp.kaiser(5, 8.0).round(3)
      Array([0.002, 0.369, 1.   , 0.369, 0.002], dtype=float32)
    """

    def values(k):
        t = u.subtract(u.multiply(k, 2 / (M - 1)), 1)
        root = u.sqrt(u.maximum(u.subtract(1, u.square(t)), 0))
        shape = _core.astype(beta, dtype_of(k))
        # exp(|beta root|) / exp(|beta|) is taken at once: neither overflows.
        widths = u.absolute(u.multiply(shape, root))
        decay = u.exp(u.subtract(widths, u.absolute(shape)))
        return u.divide(u.multiply(decay, bessel_i0e(widths)), bessel_i0e(shape))

    return _window("kaiser", M, values)
