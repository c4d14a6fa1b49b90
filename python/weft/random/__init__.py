"""Random numbers from explicit keys.

There is no hidden state: the same key always gives the same numbers. Make a key from a seed with
`key`, and new keys from it with `split`; use each once.

    key = weft.random.key(0)
    key, subkey = weft.random.split(key)
    x = weft.random.normal(subkey, (3,))
"""

from weft._surface import public as _public
from weft.random._continuous import (
    exponential,
    gumbel,
    laplace,
    logistic,
    normal,
    truncated_normal,
    uniform,
)
from weft.random._discrete import (
    bernoulli,
    categorical,
    choice,
    geometric,
    permutation,
    rademacher,
    randint,
)
from weft.random._keys import (
    Key,
    PRNGKey,
    bits,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)

_LATER = {
    "weft.random._gamma": (
        "ball",
        "beta",
        "chisquare",
        "dirichlet",
        "f",
        "gamma",
        "generalized_normal",
        "loggamma",
        "t",
    ),
    "weft.random._transformed": (
        "cauchy",
        "double_sided_maxwell",
        "lognormal",
        "maxwell",
        "pareto",
        "rayleigh",
        "triangular",
        "wald",
        "weibull_min",
    ),
    "weft.random._matrices": (
        "multivariate_normal",
        "orthogonal",
    ),
    "weft.random._counts": (
        "binomial",
        "multinomial",
        "poisson",
    ),
}

__all__ = [
    "Key",
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]
__getattr__, __dir__ = _public(__name__, __all__, later=_LATER)
