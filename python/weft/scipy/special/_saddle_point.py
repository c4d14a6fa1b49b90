"""Probabilities by the distance from their greatest value, without cancellation.

C. Loader, "Fast and accurate computation of binomial probabilities" (2000).
"""

from weft import numpy as jnp
from weft._custom_rules import custom_jvp
from weft.scipy.special._evaluate import horner, is_double
from weft.scipy.special._gamma import LOG_ROOT_TWO_PI, digamma_rest, stirling_rest

# From here on Stirling's series has all digits.
LEAST = 10


def _deviance(x, m):
    """x log(x / m) + m - x for positive x."""
    ratio = (x - m) / (x + m)
    near = jnp.abs(ratio) < 0.25
    v = jnp.where(near, ratio, 0)
    terms = [2 / (2 * j + 1) for j in range(14 if is_double(x) else 6, 0, -1)]
    close = v * ((x - m) + x * (v * v * horner(v * v, terms)))
    return jnp.where(near, close, x * jnp.log(x / m) + (m - x))


def _log_ratio(m, x):
    """log(m / x) for positive x."""
    gap = (m - x) / x
    near = jnp.abs(gap) < 0.5
    return jnp.where(near, jnp.log1p(jnp.where(near, gap, 0)), jnp.log(jnp.where(near, 1, m / x)))


@custom_jvp
def log_poisson(x, m):
    """x log(m) - m - log(gamma(x + 1)), for x of at least LEAST."""
    return -_deviance(x, m) - stirling_rest(x) - 0.5 * jnp.log(x) - LOG_ROOT_TWO_PI


@log_poisson.defjvp
def _log_poisson_jvp(primals, tangents):
    (x, m), (dx, dm) = primals, tangents
    slope = _log_ratio(m, x) - 1 / x - digamma_rest(x)  # log(m) - digamma(x + 1)
    return log_poisson(x, m), slope * dx + (x - m) / m * dm


def log_binomial(a, b, p):
    """Logarithm of the probability of a successes and b failures, both at least LEAST."""
    n = a + b
    return log_poisson(a, n * p) + log_poisson(b, n * (1 - p)) - log_poisson(n, n)
