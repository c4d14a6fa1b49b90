"""The gamma function, its logarithm, and what is made of them."""

import math

import numpy as np

from weft import _core, lax, numpy as jnp
from weft._arguments import ndim_of, static_int, weak_as
from weft._custom_rules import custom_jvp
from weft._jit import composite
from weft.dtypes import default_float, dtype_of, is_complex
from weft.errors import AttributeValueError, DTypeError
from weft.scipy.special._evaluate import computed, fitted, horner, inexact, is_double, reals
from weft.scipy.special._polynomials import GAMMA, GAMMA_SHORT

LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)

# B(2k) / (2k (2k - 1)), of Stirling's series for the logarithm; DLMF 5.11.1
_STIRLING = [
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
]


def stirling_rest(x):
    """log(gamma(x)) less (x - 1/2) log(x) - x + log(2 pi) / 2, for x of at least 10."""
    inverse = 1 / x
    return inverse * horner(inverse * inverse, _STIRLING[::-1])


def _is_pole(x):
    return (x <= 0) & (x == jnp.floor(x))


@composite
def gammasgn(x):
    """The sign of the gamma function: NaN at its poles, and that of x at zeros.

    Args:
      x: real array or number.

    Returns:
      Array of the shape of `x` and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.gammasgn(wnp.array([-0.5, -1.5, 2.0]))
      Array([-1.,  1.,  1.], dtype=float32)
    """
    return computed(_gammasgn, *reals("gammasgn", x))


def _gammasgn(x):
    odd = jnp.fmod(jnp.floor(x), 2) != 0
    sign = jnp.where((x < 0) & odd, -1, jnp.ones_like(x))
    sign = jnp.where(_is_pole(x), math.nan, sign)
    sign = jnp.where(x == 0, jnp.copysign(1, x), sign)
    return jnp.where(jnp.isnan(x), x, sign)


def _sin_pi(x):
    """sin(pi x) for |x| of any size, exact at integers."""
    nearest = jnp.round(x)
    sine = jnp.sin(math.pi * (x - nearest))
    return jnp.where(jnp.fmod(nearest, 2) == 0, sine, -sine)


def _gamma_plus_one(w):
    """gamma(1 + w) for w from 0 to 1."""
    return fitted(w, 0.5, GAMMA, GAMMA_SHORT)


def _gamma_and_next(x):
    """gamma(x) and gamma(1 + x) for x >= 0, each without the rounding error of a sum 1 + x.

    By steps down to the interval from 1 to 2, from 10 on by Stirling's formula.
    """
    large, below = x >= 10, x < 1
    z, product = jnp.where(large, 1, x), jnp.ones_like(x)
    for _ in range(8):
        high = z >= 2
        z = jnp.where(high, z - 1, z)
        product = jnp.where(high, product * z, product)
    near = _gamma_plus_one(jnp.where(below, x, z - 1))
    value = jnp.where(below, near / jnp.where(below, x, 1), near * product)
    # The power is taken in two steps, which do not overflow before the result does. Its exponent,
    # and that of e, have no rounding error.
    z = jnp.clip(x, 10, 180 if is_double(x) else 40)
    root = jnp.power(z, 0.5 * z - 0.25)
    far = root * jnp.exp(-z) * (math.sqrt(2 * math.pi) * jnp.exp(stirling_rest(z))) * root
    value = jnp.where(large, far, value)
    return value, jnp.where(below, near, x * value)


@custom_jvp
def _gamma(x):
    size = jnp.abs(x)
    value, following = _gamma_and_next(size)
    reflected = -math.pi / (_sin_pi(size) * following)
    value = jnp.where(x < 0, reflected, value)
    value = jnp.where(_is_pole(x) | (x == -math.inf), math.nan, value)
    return jnp.where(x == 0, jnp.copysign(math.inf, x), value)


@_gamma.defjvp
def _gamma_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    value = _gamma(x)
    return value, dx * value * lax.digamma(x)


def _log_gamma_right(z):
    """For complex numbers whose real part is at least 1/2."""
    shifts = jnp.zeros_like(z)
    for k in range(8):
        shifts = shifts + jnp.log(z + k)
    z = z + 8
    return (z - 0.5) * jnp.log(z) - z + LOG_ROOT_TWO_PI + stirling_rest(z) - shifts


def _loggamma(z):
    # D. E. G. Hare, "Computing the principal branch of log-Gamma", J. Algorithms 25 (1997).
    below = jnp.signbit(jnp.imag(z))
    left = jnp.real(z) < 0.5
    up = jnp.where(below, jnp.conj(z), z)
    right = _log_gamma_right(jnp.where(left, 1 - up, up))
    # log(sin(pi z)) in the upper half-plane, on the branch that is real on the axis from 0 to 1.
    a = jnp.where(left, up, 0.5)
    turn = lax.complex(jnp.fmod(jnp.real(a), 1), jnp.imag(a))
    wave = jnp.log1p(-jnp.exp(2j * math.pi * turn))
    log_sine = 1j * math.pi * (0.5 - a) - math.log(2) + wave
    value = jnp.where(left, math.log(math.pi) - log_sine - right, right)
    value = jnp.where(below, jnp.conj(value), value)
    at_pole = _is_pole(jnp.real(z)) & (jnp.imag(z) == 0)
    return jnp.where(at_pole, complex(math.nan, math.nan), value)


def _complex_gamma(z):
    return jnp.exp(_loggamma(z))


@composite
def gamma(x):
    """The gamma function: NaN at negative integers, infinite at zeros; NaN at complex zeros.

    By Stirling's formula, the recurrence and the reflection formula (DLMF 5.5, 5.11).

    Args:
      x: array or number, real or complex.

    Returns:
      Array of the shape of `x` and of a floating-point or complex dtype.

    Examples:
      >>> weft.scipy.special.gamma(wnp.array([0.5, 1.0, 5.0])).round(3)
      Array([ 1.772,  1.   , 24.   ], dtype=float32)
    """
    (x,) = inexact(x)
    return computed(_complex_gamma if is_complex(dtype_of(x)) else _gamma, x)


@composite
def loggamma(x):
    """The principal branch of the logarithm of the gamma function; NaN for negative real x and at
    the poles in the complex plane.

    D. E. G. Hare, "Computing the principal branch of log-Gamma", J. Algorithms 25 (1997).

    Args:
      x: array or number, real or complex.

    Returns:
      Array of the shape of `x` and of a floating-point or complex dtype.

    Examples:
      >>> weft.scipy.special.loggamma(3 + 0j).real.round(3)  # log(2)
      Array(0.693, dtype=float32)
    """
    (x,) = inexact(x)
    if is_complex(dtype_of(x)):
        return computed(_loggamma, x)
    return jnp.where(x < 0, math.nan, lax.lgamma(x))


def factorial(n, exact=False):
    """gamma(n + 1), elementwise; 0 for negative n.

    Args:
      n: real array or number.
      exact: must be False: NotImplementedError otherwise.

    Returns:
      Array of the shape of `n` and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.factorial(wnp.array([0, 3, 5])).round(2)
      Array([  1.,   6., 120.], dtype=float32)
    """
    if exact:
        raise NotImplementedError("[factorial] exact=True is not supported")
    return _factorial(n)


@composite
def _factorial(n):
    (n,) = reals("factorial", n)
    value = computed(_factorial_of, jnp.where(n < 0, 0, n))
    return jnp.where(n < 0, 0, weak_as(value, n))


@custom_jvp
def _factorial_of(n):
    return _gamma_and_next(n)[1]


@_factorial_of.defjvp
def _factorial_of_jvp(primals, tangents):
    (n,), (dn,) = primals, tangents
    value = _factorial_of(n)
    return value, dn * value * lax.digamma(n + 1)


def _log_gamma_step(a, b):
    """log(gamma(b) / gamma(a + b)) for b of at least 10, without cancellation."""
    total = a + b
    rest = stirling_rest(b) - stirling_rest(total)
    return rest - (total - 0.5) * jnp.log1p(a / b) - a * (jnp.log(b) - 1)


@custom_jvp
def _betaln(a, b):
    a, b = jnp.minimum(a, b), jnp.maximum(a, b)
    total = a + b
    plain = lax.lgamma(a) + (lax.lgamma(b) - lax.lgamma(total))
    large, both = (b >= 10) & (total > 9) & jnp.isfinite(b), a >= 10
    safe_a, safe_b = jnp.where(large, a, 1), jnp.where(large, b, 10)
    step = lax.lgamma(safe_a) + _log_gamma_step(safe_a, safe_b)
    top_a, top_b = jnp.where(both & large, a, 10), jnp.where(both & large, b, 10)
    total = top_a + top_b
    rest = stirling_rest(top_a) + stirling_rest(top_b) - stirling_rest(total)
    high = (top_a - 0.5) * jnp.log(top_a / total) - top_b * jnp.log1p(top_a / top_b)
    high = high + rest - 0.5 * jnp.log(top_b) + LOG_ROOT_TWO_PI
    value = jnp.where(large, jnp.where(both, high, step), plain)
    return jnp.where((b == math.inf) & (a > 0), -math.inf, value)


# B(2k) / (2k), of the series for the digamma function; DLMF 5.11.2
_DIGAMMA_SERIES = [0.0, 1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12]


def digamma_rest(x):
    """digamma(x) less log(x), for x of at least 10."""
    inverse = 1 / x
    return -inverse * (0.5 + inverse * horner(inverse * inverse, _DIGAMMA_SERIES[:0:-1]))


def _digamma_step(x, step):
    """digamma(x + step) - digamma(x), which loses no digits where both are positive.

    The recurrence 5.5.2 of the DLMF takes both to 10 or more. There it is the difference of the two
    series, term by term. A difference of powers has that of their arguments as a factor.
    """
    size = jnp.abs(step)
    low = jnp.minimum(x, x + step)
    is_positive = low > 0
    low, size = jnp.where(is_positive, low, 1), jnp.where(is_positive, size, 1)
    total = jnp.zeros_like(low)
    for i in range(10):
        total = total + 1 / ((low + i) * (1 + (low + i) / size))
    low = low + 10
    inverse, other = 1 / low, 1 / (low + size)
    gap = inverse / (1 + low / size)  # inverse - other
    value, slope = 0.0, 0.0  # of the polynomial; its difference by that of its arguments
    for c in reversed(_DIGAMMA_SERIES):
        slope = slope * (other * other) + value
        value = value * (inverse * inverse) + c
    far = jnp.log1p(size / low) + gap / 2 + gap * (inverse + other) * slope
    plain = lax.digamma(x + step) - lax.digamma(x)
    return jnp.where(is_positive, jnp.copysign(total + far, step), plain)


@_betaln.defjvp
def _betaln_jvp(primals, tangents):
    (a, b), (da, db) = primals, tangents
    return _betaln(a, b), -_digamma_step(a, b) * da - _digamma_step(b, a) * db


@composite(broadcasts=True)
def betaln(a, b):
    """Logarithm of the absolute value of the beta function.

    For large arguments by differences of Stirling's series, as A. R. DiDonato and A. H. Morris,
    "Algorithm 708", ACM Trans. Math. Softw. 18 (1992).

    Args:
      a, b: real arrays or numbers that broadcast together.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> wnp.exp(weft.scipy.special.betaln(2.0, 3.0)).round(4)
      Array(0.0833, dtype=float32, weak_type=True)
    """
    xs = reals("betaln", a, b)
    return weak_as(computed(_betaln, *xs), xs[0])


def _beta(a, b):
    sign = _gammasgn(a) * _gammasgn(b) * _gammasgn(a + b)
    return sign * jnp.exp(_betaln(a, b))


@composite(broadcasts=True)
def beta(a, b):
    """The beta function, gamma(a) gamma(b) / gamma(a + b).

    Args:
      a, b: real arrays or numbers that broadcast together.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.beta(2.0, 3.0).round(4)  # 1! 2! / 4!
      Array(0.0833, dtype=float32)
    """
    return computed(_beta, *reals("beta", a, b))


@custom_jvp
def _poch(z, m):
    total = z + m
    near = (z >= 10) & (total >= 10)
    logarithm = -_log_gamma_step(jnp.where(near, m, 0), jnp.where(near, z, 10))
    plain = lax.lgamma(total) - lax.lgamma(z)
    sign = _gammasgn(total) * _gammasgn(z)
    value = jnp.where(near, jnp.exp(logarithm), sign * jnp.exp(plain))
    zero = _is_pole(z) & ~_is_pole(total)
    # Of two poles, gamma(z + m) / gamma(z) is the limit of a product of |m| factors.
    both = _is_pole(z) & _is_pole(total)
    flipped = jnp.exp(
        lax.lgamma(1 - jnp.where(both, z, 0)) - lax.lgamma(1 - jnp.where(both, total, 0))
    )
    flipped = jnp.where(jnp.fmod(jnp.where(both, m, 0), 2) == 0, flipped, -flipped)
    value = jnp.where(both, flipped, jnp.where(zero, 0, value))
    return jnp.where(m == 0, 1, value)


@_poch.defjvp
def _poch_jvp(primals, tangents):
    (z, m), (dz, dm) = primals, tangents
    value = _poch(z, m)
    top = lax.digamma(z + m)
    return value, value * (_digamma_step(z, m) * dz + top * dm)


@composite(broadcasts=True)
def poch(z, m):
    """The rising factorial, gamma(z + m) / gamma(z), also called Pochhammer's symbol (DLMF 5.2.4).

    Args:
      z, m: real arrays or numbers that broadcast together.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.poch(3.0, 2.0).round(2)  # 3 * 4
      Array(12., dtype=float32)
    """
    return computed(_poch, *reals("poch", z, m))


@composite(static_argnames=("repetition",), broadcasts=True)
def comb(N, k, *, repetition=False):
    """The number of combinations of k out of N things; 0 unless 0 <= k <= N.

    Args:
      N, k: real arrays or numbers that broadcast together.
      repetition: whether a thing may be taken several times.

    Returns:
      Array of the broadcast shape and of a floating-point dtype.

    Examples:
      >>> weft.scipy.special.comb(5, wnp.arange(6)).round(2)
      Array([ 1.,  5., 10., 10.,  5.,  1.], dtype=float32)
    """
    N, k = reals("comb", N, k)
    nothing = (N == 0) & (k == 0)
    if repetition:
        valid = (N > 0) & (k >= 0)
        N = N + k - 1
    else:
        valid = (k >= 0) & (k <= N)
    N, k = jnp.where(valid, N, 1), jnp.where(valid, k, 1)
    value = jnp.exp(-jnp.log1p(N) - betaln(1 + N - k, 1 + k))
    return jnp.where(nothing, 1, jnp.where(valid, value, 0))


def multigammaln(a, d):
    """Logarithm of the multivariate gamma function of dimension d (DLMF 35.3.1).

    Args:
      a: real array or number.
      d: the dimension, a number that is known while tracing.

    Returns:
      Array of the shape of `a` and of a floating-point dtype.

    Raises DTypeError for a `d` that is no number.

    Examples:
      >>> special = weft.scipy.special
      >>> wnp.allclose(special.multigammaln(3.0, 1), special.gammaln(3.0))
      Array(True, dtype=bool)
    """
    if ndim_of(d):
        raise DTypeError(f"[multigammaln] expected d to be a number; got shape {d.shape}")
    return _multigammaln(a, int(d))


@composite(static_argnames=("d",))
def _multigammaln(a, d):
    (a,) = reals("multigammaln", a)
    total = _core.astype(jnp.full_like(a, d * (d - 1) / 4 * math.log(math.pi)), a.dtype)
    for j in range(d):
        total = total + lax.lgamma(a - j / 2)
    return total


def bernoulli(n):
    """The Bernoulli numbers B(0) to B(n), with B(1) = -1/2.

    Args:
      n: an integer that is known while tracing and not negative.

    Returns:
      Array `[n + 1]` of the default floating-point dtype.

    Raises AttributeValueError (a ValueError) for a negative `n`.

    Examples:
      >>> weft.scipy.special.bernoulli(4).round(4)
      Array([ 1.    , -0.5   ,  0.1667,  0.    , -0.0333], dtype=float32)
    """
    n = static_int(n, "bernoulli", "n")
    if n < 0:
        raise AttributeValueError(f"[bernoulli] expected n of at least 0; got {n}")
    numbers = np.zeros(n + 1)
    numbers[:2] = [1.0, -0.5][: n + 1]
    for k, tangent in enumerate(_tangent_numbers(n // 2), 1):
        four = 4**k
        try:
            size = 2 * k * tangent / (four * (four - 1))
        except OverflowError:
            size = math.inf
        numbers[2 * k] = size if k % 2 else -size
    with np.errstate(over="ignore"):
        return _core.asarray(numbers.astype(default_float()))


def _tangent_numbers(n):
    """The first n, by R. P. Brent and D. Harvey, "Fast computation of Bernoulli, Tangent and
    Secant numbers" (2011), algorithm TangentNumbers.
    """
    numbers = [math.factorial(k) for k in range(n)]
    for k in range(1, n):
        for j in range(k, n):
            numbers[j] = (j - k) * numbers[j - 1] + (j - k + 2) * numbers[j]
    return numbers
