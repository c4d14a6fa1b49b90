"""Initial values of the weights of neural networks.

Functions without a key make an initializer, which is a function of a key, a shape and a dtype:

    init = weft.nn.initializers.he_normal()
    weights = init(weft.random.key(0), (784, 128))

The numbers of a key are the same as those that other frameworks with these initializers draw.
"""

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.nn._initializers import (
    Initializer,
    constant,
    delta_orthogonal,
    glorot_normal,
    glorot_uniform,
    he_normal,
    he_uniform,
    kaiming_normal,
    kaiming_uniform,
    lecun_normal,
    lecun_uniform,
    normal,
    ones,
    orthogonal,
    truncated_normal,
    uniform,
    variance_scaling,
    xavier_normal,
    xavier_uniform,
    zeros,
)

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]
__getattr__, __dir__ = _public(__name__, __all__)
_open_to_users(__name__)
