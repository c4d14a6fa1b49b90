"""Random numbers from explicit keys.

There is no hidden state: the same key always gives the same numbers. Make a key from a seed with
`key`, and new keys from it with `split`; use each once.

    key = weft.random.key(0)
    key, subkey = weft.random.split(key)
    x = weft.random.normal(subkey, (3,))
"""

from weft.random._continuous import (
    exponential as exponential,
    gumbel as gumbel,
    laplace as laplace,
    logistic as logistic,
    normal as normal,
    truncated_normal as truncated_normal,
    uniform as uniform,
)
from weft.random._discrete import (
    bernoulli as bernoulli,
    categorical as categorical,
    choice as choice,
    permutation as permutation,
    randint as randint,
)
from weft.random._keys import (
    PRNGKey as PRNGKey,
    bits as bits,
    fold_in as fold_in,
    key as key,
    key_data as key_data,
    split as split,
    wrap_key_data as wrap_key_data,
)
