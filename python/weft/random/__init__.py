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
    permutation,
    randint,
)
from weft.random._keys import (
    PRNGKey,
    bits,
    clone,
    fold_in,
    key,
    key_data,
    key_impl,
    split,
    wrap_key_data,
)

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "choice",
    "clone",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "key_data",
    "key_impl",
    "laplace",
    "logistic",
    "normal",
    "permutation",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]
__getattr__, __dir__ = _public(__name__, __all__)
