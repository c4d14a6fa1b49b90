"""Error functions of scaled and of complex arguments, Dawson's and Fresnel's integrals.

All but erfcx of real numbers are the Faddeeva function w(z) = exp(-z^2) erfc(-iz) along some line,
which is computed in the upper half-plane by the rational approximation of J. A. C. Weideman,
"Computation of the complex error function", SIAM J. Numer. Anal. 31 (1994).
"""

import functools
import math

import numpy as np

from weft import lax, numpy as jnp
from weft._arguments import weak_as
from weft._custom_rules import custom_jvp
from weft._jit import composite
from weft.dtypes import dtype_of, is_complex
from weft.scipy.special._evaluate import (
    computed,
    exp_of_square,
    fitted,
    horner,
    inexact,
    is_double,
    reals,
)
from weft.scipy.special._polynomials import ERFCX, ERFCX_SHORT, ERFCX_SLOPE, ERFCX_SLOPE_SHORT

_ROOT_PI = math.sqrt(math.pi)


@functools.cache
def _weideman(n):
    """The length L and the n coefficients, the highest power of (L + iz) / (L - iz) first."""
    length = math.sqrt(n / math.sqrt(2))
    t = length * np.tan(np.arange(1 - 2 * n, 2 * n) * np.pi / (4 * n))
    values = np.append(0.0, np.exp(-t * t) * (length**2 + t * t))
    powers = np.fft.fft(np.fft.fftshift(values)).real / (4 * n)
    return length, powers[n:0:-1].tolist()


def _rational(iz):
    """w(z) where the real part of iz is not positive."""
    length, coefficients = _weideman(40 if is_double(iz) else 20)
    below = length - iz
    ratio = (length + iz) / below
    return (2 * horner(ratio, coefficients) / below + 1 / _ROOT_PI) / below


@custom_jvp
def _wofz(z):
    x, y = jnp.real(z), jnp.imag(z)
    below = y < 0
    up = jnp.where(below, -z, z)  # w(z) = 2 exp(-z^2) - w(-z)
    finite = jnp.isfinite(x) & jnp.isfinite(y)
    up = jnp.where(finite, up, 1)
    value = _rational(lax.complex(-jnp.imag(up), jnp.real(up)))
    # Close to the real axis the real part is exponentially small.
    real = jnp.where(y == 0, exp_of_square(x, -1), jnp.real(value))
    value = lax.complex(real, jnp.imag(value))
    size, angle = 2 * jnp.exp((y - x) * (y + x)), 2 * x * y
    exponential = lax.complex(size * jnp.cos(angle), -size * jnp.sin(angle))
    value = jnp.where(below, exponential - value, value)
    vanishes = (jnp.isinf(x) | jnp.isinf(y)) & (y >= 0)
    return jnp.where(finite, value, jnp.where(vanishes, 0, complex(math.nan, math.nan)))


@_wofz.defjvp
def _wofz_jvp(primals, tangents):
    (z,), (dz,) = primals, tangents
    w = _wofz(z)
    return w, (2j / _ROOT_PI - 2 * z * w) * dz


@composite
def wofz(z):
    """The Faddeeva function, exp(-z^2) erfc(-iz) (Weideman, 1994).

    Args:
      z: array or number, real or complex.

    Returns:
      Complex array of the shape of `z`.

    Examples:
      >>> weft.scipy.special.wofz(wnp.array([0j, 1j])).round(3)
      Array([1.   +0.j, 0.428+0.j], dtype=complex64)
    """
    (z,) = inexact(z)
    if not is_complex(dtype_of(z)):
        z = z.astype("complex128" if is_double(z) else "complex64")
    return computed(_wofz, z)


def _spread(x):
    """x >= 0 in the interval from -1 to 1."""
    x = jnp.minimum(x, 2.0**60)
    return (x - 3) / (x + 3)


def scaled_erfcx(x):
    """(1 + 2x) erfcx(x) for x >= 0: M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation
    of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf", Mathematics of Computation 36 (1981).
    """
    return fitted(_spread(x), 0, ERFCX, ERFCX_SHORT)


def scaled_erfcx_slope(x):
    """-(1 + 2x)^2 times the derivative of erfcx at x >= 0, likewise."""
    return fitted(_spread(x), 0, ERFCX_SLOPE, ERFCX_SLOPE_SHORT)


@custom_jvp
def _erfcx(x):
    size = jnp.abs(x)
    value = scaled_erfcx(size) / (1 + 2 * size)
    return jnp.where(x < 0, 2 * exp_of_square(x, 1) - value, value)


@_erfcx.defjvp
def _erfcx_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    value = _erfcx(x)
    # 2x erfcx(x) - 2 / sqrt(pi) would lose its digits for large x.
    right = x > 0.5
    far, near = jnp.where(right, x, 1), jnp.where(right, 0, x)
    inverse = 1 / (1 + 2 * far)
    slope = -scaled_erfcx_slope(far) * inverse * inverse
    return value, jnp.where(right, slope, 2 * near * value - 2 / _ROOT_PI) * dx


def _complex_erfcx(z):
    return _wofz(lax.complex(-jnp.imag(z), jnp.real(z)))


@composite
def erfcx(x):
    """exp(x^2) erfc(x), which neither underflows nor loses digits for large x.

    Real numbers: Shepherd and Laframboise (1981); complex ones: Weideman (1994).

    Args:
      x: array or number, real or complex.

    Returns:
      Array of the shape of `x` and of a floating-point or complex dtype.

    Examples:
      >>> weft.scipy.special.erfcx(wnp.array([0.0, 100.0])).round(4)
      Array([1.    , 0.0056], dtype=float32)
    """
    (x,) = inexact(x)
    return computed(_complex_erfcx if is_complex(dtype_of(x)) else _erfcx, x)


@custom_jvp
def _erfinv_double(x):
    """A step of Newton's method on XLA's own, by whichever of erf and erfc keeps its digits."""
    first = lax.erf_inv(x)
    size, y = jnp.abs(x), jnp.abs(first)
    rest = jnp.where(size < 0.5, lax.erf(y) - size, (1 - size) - lax.erfc(y))
    root = y - rest * jnp.exp(jnp.square(y)) * (_ROOT_PI / 2)
    inside = (size < 1) & (size > 2.0**-500)
    return jnp.where(inside, jnp.copysign(root, x), first)


@_erfinv_double.defjvp
def _erfinv_double_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    value = _erfinv_double(x)
    return value, dx * ((_ROOT_PI / 2) * jnp.exp(jnp.square(value)))


@composite
def erfinv(x):
    """Inverse of the error function, elementwise; NaN outside -1..1.

    Args:
      x: real array or number.

    Returns:
      Array of the shape of `x` and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.erfinv(wnp.array([0.0, 1.0, 2.0]))
      Array([ 0., inf, nan], dtype=float32)
    """
    (x,) = reals("erfinv", x)
    return weak_as(_erfinv_double(x), x) if is_double(x) else lax.erf_inv(x)


@custom_jvp
def _dawsn(x):
    small = jnp.abs(x) < 0.5
    near = jnp.where(small, x, 0)
    square = near * near
    series = 1
    for k in range(14, 0, -1):
        series = 1 - series * square * (2 / (2 * k + 1))
    finite = jnp.isfinite(x)
    w = _rational(lax.complex(jnp.zeros_like(x), jnp.where(small | ~finite, 1, x)))
    far = jnp.where(finite, (_ROOT_PI / 2) * jnp.imag(w), 1 / x)
    return jnp.where(small, near * series, far)


@_dawsn.defjvp
def _dawsn_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    value = _dawsn(x)
    # 1 - 2x D(x) loses its digits for large x; there it is -1 / (2x^2) (1 + 3 / (2x^2) + ...).
    far = jnp.abs(x) > 8
    inverse = 1 / jnp.where(far, x, 8)
    half = 0.5 * inverse * inverse
    series = 1
    for k in range(20, 0, -1):
        series = 1 + (2 * k + 1) * half * series
    near = jnp.where(far, 0, x)
    return value, jnp.where(far, -half * series, 1 - 2 * near * value) * dx


@composite
def dawsn(x):
    """Dawson's integral, exp(-x^2) times the integral of exp(t^2) over t from 0 to x.

    By its series for small x (DLMF 7.6.3), else from the Faddeeva function (Weideman, 1994).

    Args:
      x: real array or number.

    Returns:
      Array of the shape of `x` and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.dawsn(wnp.array([0.0, 1.0])).round(3)
      Array([0.   , 0.538], dtype=float32)
    """
    return computed(_dawsn, *reals("dawsn", x))


def _fresnel_series(first, power):
    """Coefficients of x^power (..), a series in (pi x^2 / 2)^2; DLMF 7.6.4 and 7.6.6."""
    terms = []
    for k in range(first, first + 36, 2):
        sign = -1 if (k // 2) % 2 else 1
        terms.append(sign / (math.factorial(k) * (2 * k + 1)))
    return terms[::-1]


def _fresnel_angle(x):
    """pi x^2 / 2 but for whole turns: x^2 modulo 4, with x = 2n + r, is that of 4n r + r^2."""
    n = jnp.round(x / 2)
    r = x - 2 * n
    return (math.pi / 2) * (4 * jnp.fmod(n * r, 1) + r * r)


@custom_jvp
def _fresnel(x):
    size = jnp.abs(x)
    small = size < 1.5
    near = jnp.where(small, x, 0)
    phase = (math.pi / 2) * near * near
    s = near * phase * horner(phase * phase, _fresnel_series(1, 3))
    c = near * horner(phase * phase, _fresnel_series(0, 1))
    # C + iS = (1 + i) / 2 (1 - exp(i pi x^2 / 2) w((1 + i) sqrt(pi) x / 2)); DLMF 7.5.8
    # From 2^70 on both are 1/2 to working precision, and products would overflow.
    finite = jnp.abs(x) < 2.0**70
    far = jnp.where(small | ~finite, 2, size)
    w = _rational(lax.complex(-far, far) * (_ROOT_PI / 2))
    angle = _fresnel_angle(far)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    a = cos * jnp.real(w) - sin * jnp.imag(w)
    b = cos * jnp.imag(w) + sin * jnp.real(w)
    a, b = jnp.where(finite, a, 0), jnp.where(finite, b, 0)
    sign = jnp.sign(x)  # NaN stays
    far_c, far_s = sign * (0.5 * (1 - a + b)), sign * (0.5 * (1 - a - b))
    return jnp.where(small, s, far_s), jnp.where(small, c, far_c)


@_fresnel.defjvp
def _fresnel_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    angle = _fresnel_angle(x)
    return _fresnel(x), (jnp.sin(angle) * dx, jnp.cos(angle) * dx)


@composite
def fresnel(x):
    """Fresnel's integrals: of sin(pi t^2 / 2) and of cos(pi t^2 / 2) over t from 0 to x.

    By their series for small x (DLMF 7.6), else from the Faddeeva function (Weideman, 1994).

    Args:
      x: real array or number.

    Returns:
      The pair (S, C) of arrays of the shape of `x` and of a floating-point dtype.

    Raises NotImplementedError for complex arrays.

    Examples:
      >>> of_sine, of_cosine = weft.scipy.special.fresnel(wnp.array([0.0, 1.0]))
      >>> of_sine.round(3)
      Array([0.   , 0.438], dtype=float32)
    """
    (x,) = inexact(x)
    if is_complex(dtype_of(x)):
        raise NotImplementedError("[fresnel] expected a real array; complex ones are not supported")
    return computed(_fresnel, x)
