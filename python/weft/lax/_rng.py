"""Random bits and numbers that XLA makes; `weft.random` does not use them."""

import enum
from typing import Any

from weft import _core
from weft._arguments import static_int, static_shape
from weft.dtypes import requested_dtype
from weft.lax._sharding import split_as


class RandomAlgorithm(enum.IntEnum):
    """How `rng_bit_generator` makes bits."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def rng_bit_generator(
    key, shape, dtype: Any = "uint32", algorithm=RandomAlgorithm.RNG_DEFAULT, *, out_sharding=None
):
    """Random bits from a key, and the key for the next ones.

    The bits depend on the key, the shape, the dtype and the algorithm; those of the default one
    also on the platform. Under `vmap` over keys the bits of all lanes come from the first key, and
    only that key is changed.

    Args:
      key: array of four uint32, or of two uint64.
      shape: shape of the bits.
      dtype: uint8, uint16, uint32 or uint64.
      algorithm: `RandomAlgorithm`.
      out_sharding: None, or how the bits are split, a PartitionSpec or NamedSharding.

    Returns:
      `(next_key, bits)`.

    Raises:
      DTypeError: for another dtype.

    Examples:
      >>> key, bits = lax.rng_bit_generator(wnp.zeros(4, "uint32"), (2, 3))
      >>> key.shape, bits.dtype, bits.shape
      ((4,), dtype('uint32'), (2, 3))
    """
    next_key, bits = _core.bind(
        "rng_bit_generator",
        key,
        shape=static_shape(shape, "rng_bit_generator"),
        dtype=requested_dtype(dtype, "rng_bit_generator"),
        algorithm=static_int(algorithm, "rng_bit_generator", "algorithm"),
    )
    if out_sharding is not None:
        bits = split_as(out_sharding, "rng_bit_generator", lambda: bits)
    return next_key, bits


def rng_uniform(a, b, shape):
    """Random numbers from `a` up to, but not including, `b`; others each time that it runs.

    `weft.random.uniform` is the function whose numbers can be had again.

    Args:
      a, b: scalars of one real dtype.
      shape: shape of the result.

    Examples:
      >>> x = lax.rng_uniform(5.0, 6.0, (3,))
      >>> ((x >= 5) & (x < 6)).all()
      Array(True, dtype=bool)
    """
    return _core.bind("rng_uniform", a, b, shape=static_shape(shape, "rng_uniform"))
