"""Generators of random numbers: the built-in ones, and those that users define."""

import math

import numpy as np

from weft._arguments import shape_of
from weft._surface import public as _public
from weft.dtypes import dtype_of
from weft.errors import DTypeError
from weft.extend.core.primitives import threefry2x32_p
from weft.lax._shape import reshape
from weft.random import _keys
from weft.random._implementations import (
    RBG_IMPL as rbg_prng_impl,
    THREEFRY as threefry_prng_impl,
    UNSAFE_RBG_IMPL as unsafe_rbg_prng_impl,
    PRNGImpl as _PRNGImpl,
    sequential_words as _sequential_words,
)

__all__ = [
    "define_prng_impl",
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry2x32_p",
    "threefry_2x32",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]
__getattr__, __dir__ = _public(__name__, __all__)


def define_prng_impl(*, key_shape, seed, split, random_bits, fold_in, name="<unnamed>", tag="?"):
    """A generator of random numbers of one's own, for `impl=` of `weft.random.key`.

    The functions are traced. They take and return words of keys: uint32 of the shape `key_shape`.

    Args:
      key_shape: shape of the words of a key.
      seed: takes an integer array without axes; returns the words of a key.
      split: takes the words of a key and a shape; returns the words of so many new keys, of shape
        `(*shape, *key_shape)`.
      random_bits: takes the words of a key, 8, 16, 32 or 64, and a shape; returns an array of that
        shape of unsigned integers with so many bits.
      fold_in: takes the words of a key and a uint32 without axes; returns the words of a key.
      name: for messages.
      tag: for the dtype of the keys, which prints as `key<tag>`.

    Returns an object that stands for the generator, equal to another one of the same parts.
    ValueError if the words are not from 1 to 65536, or there are 200 generators already.
    """
    shape = tuple(int(size) for size in key_shape)
    return _PRNGImpl(shape, seed, split, random_bits, fold_in, name, tag)


def seed_with_impl(impl, seed):
    """A typed key of the generator `impl` for a seed, an integer."""
    return _keys.key(seed, impl=impl)


def random_seed(seeds, impl):
    """Typed keys of the generator `impl`, one for each of an array of integers."""
    return _keys.seeded_keys(seeds, impl)


def threefry_2x32(keypair, count):
    """The numbers `count`, uint32, enciphered with threefry2x32 (20 rounds).

    Half of them are enciphered together with the other half, in the order of their positions.

    Args:
      keypair: two words, an array of uint32 of shape (2,) or a pair of numbers.
      count: array of uint32.

    Returns an array like `count`. Raises DTypeError for other dtypes.
    """
    first, second = keypair[0], keypair[1]
    for x in (first, second, count):
        if dtype_of(x) != np.uint32:
            raise DTypeError(f"[threefry_2x32] expected uint32 arguments; got {dtype_of(x)}")
    shape = shape_of(count)
    flat = reshape(count, (math.prod(shape),))
    return reshape(_sequential_words((first, second), flat), shape)
