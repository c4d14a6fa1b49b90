"""The multinomial distribution: how often each of several outcomes comes in `n` trials."""

import math

from weft import _core, numpy as jnp
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.dtypes import dtype_of, is_integer
from weft.errors import DTypeError
from weft.scipy import special
from weft.scipy.special._evaluate import reals, with_nan

__all__ = [
    "logpmf",
    "pmf",
]
__getattr__, __dir__ = _public(__name__, __all__)


@composite
def logpmf(x, n, p):
    """Logarithm of the probability that the outcomes come x times; -inf unless x sums to n.

    Args:
      x: integer array `[k]` of counts.
      n: integer array or number of trials.
      p: array `[k]` of the probabilities of the outcomes.

    Returns:
      Array of the shape of `n` and of a floating-point dtype.

    Raises:
      DTypeError: where `x` or `n` are not integers.

    Examples:
      >>> weft.scipy.stats.multinomial.logpmf(wnp.array([1, 2]), 3, wnp.array([0.5, 0.5])).round(3)
      Array(-0.981, dtype=float32)
    """
    for name, each in (("x", x), ("n", n)):
        if not is_integer(dtype_of(each)):
            raise DTypeError(f"[multinomial] expected {name} of integers; got {dtype_of(each)}")
    (p,) = reals("multinomial.logpmf", p)
    counts, trials = _core.astype(x, p.dtype), _core.astype(n, p.dtype)
    terms = special.xlogy(counts, p) - special.gammaln(counts + 1)
    value = special.gammaln(trials + 1) + jnp.sum(terms, axis=-1)
    return with_nan(jnp.where(jnp.equal(jnp.sum(x), n), value, -math.inf), jnp.sum(p))


@composite
def pmf(x, n, p):
    """The probability that the outcomes come x times: the exponential of `logpmf`.

    Examples:
      >>> weft.scipy.stats.multinomial.pmf(wnp.array([1, 2]), 3, wnp.array([0.5, 0.5])).round(3)
      Array(0.375, dtype=float32)
    """
    return jnp.exp(logpmf(x, n, p))


_open_to_users(__name__)
