"""The Poisson distribution of mean `mu`, moved by `loc`.

Arguments are real arrays or numbers that broadcast together; results have the promoted
floating-point dtype.
"""

import math

from weft import numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.lax import _control as control
from weft.scipy import special
from weft.scipy.special._evaluate import computed, horner, reals, sample, with_nan
from weft.scipy.special._saddle_point import LEAST, log_poisson

__all__ = [
    "cdf",
    "entropy",
    "logpmf",
    "pmf",
]
__getattr__, __dir__ = _public(__name__, __all__)

# Means from which the expansion is as exact as the dtype is
_LARGE, _LARGE_IN_FLOAT32 = 100, 20
# Of the powers of 1 / mu, the highest first
_EXPANSION = [-1375 / 1008, -863 / 2520, -9 / 80, -19 / 360, -1 / 24, -1 / 12, 0]


def _entropy(mu):
    least = _LARGE if mu.dtype.itemsize > 4 else _LARGE_IN_FLOAT32
    large = mu > least
    small = jnp.where(large | ~(mu > 0), 1, mu)

    def add(k, total):
        k = jnp.asarray(k, mu.dtype)
        value = k * jnp.log(small) - special.gammaln(k + 1) - small
        return total - jnp.exp(value) * value

    by_sum = control.fori_loop(0, 230, add, jnp.zeros_like(mu))
    top = jnp.where(large, mu, least)
    inverse = jnp.where(jnp.isinf(top), 0, 1 / top)
    by_expansion = 0.5 * jnp.log(2 * math.pi * math.e * top) + horner(inverse, _EXPANSION)
    value = jnp.where(large, by_expansion, jnp.where(mu == 0, 0, by_sum))
    return jnp.where(mu >= 0, value, math.nan)


@composite(broadcasts=True)
def logpmf(k, mu, loc=0):
    """Logarithm of the probability of k.

    Examples:
      >>> weft.scipy.stats.poisson.logpmf(wnp.array([0, 1, 2]), 1.0).round(3)
      Array([-1.   , -1.   , -1.693], dtype=float32)
    """
    k, mu, loc = reals("poisson.logpmf", k, mu, loc)
    y = k - loc
    large = y >= LEAST
    many = log_poisson(jnp.where(large, y, LEAST), jnp.where(large, mu, LEAST))
    few, rate = jnp.where(large, 1, y), jnp.where(large, 1, mu)
    value = special.xlogy(few, rate) - special.gammaln(few + 1) - rate
    value = jnp.where(large, many, value)
    return with_nan(jnp.where((y < 0) | (y != jnp.round(y)), -math.inf, value), y, mu)


@composite(broadcasts=True)
def pmf(k, mu, loc=0):
    """The probability of k.

    Examples:
      >>> weft.scipy.stats.poisson.pmf(wnp.array([0, 1, 2]), 1.0).round(3)
      Array([0.368, 0.368, 0.184], dtype=float32)
    """
    return jnp.exp(logpmf(k, mu, loc))


@composite(broadcasts=True)
def cdf(k, mu, loc=0):
    """The probability of a value of at most k.

    Examples:
      >>> weft.scipy.stats.poisson.cdf(wnp.array([0, 1, 2]), 1.0).round(3)
      Array([0.368, 0.736, 0.92 ], dtype=float32)
    """
    k, mu, loc = sample("poisson.cdf", k, mu, loc)
    y = k - loc
    value = special.gammaincc(jnp.floor(jnp.where(y < 0, 0, y)) + 1, mu)
    return with_nan(jnp.where(y < 0, 0, value), mu)


@composite(broadcasts=True)
def entropy(mu, loc=0):
    """The entropy, in nats. `loc` has no effect: it moves the distribution.

    By summation, for means above 100 (in float32 above 20) by the expansion of R. J. Evans and
    J. Boersma, "The entropy of a Poisson distribution", SIAM Review 30 (1988).

    Examples:
      >>> weft.scipy.stats.poisson.entropy(1.0).round(3)
      Array(1.305, dtype=float32)
    """
    mu, loc = reals("poisson.entropy", mu, loc)
    return with_nan(computed(_entropy, mu), loc)


_open_to_users(__name__)
