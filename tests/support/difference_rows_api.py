"""Python numbers beside integers, defaults of custom rules, shardings, interchange."""

import numpy as np
from differences import Difference

_N = 0x9E3779B9
_WIDE = 2**63 + 5


def _u32(jnp):
    return jnp.array([1, 2, 3], "uint32")


def _u8(jnp):
    return jnp.array([1, 44, 255], "uint8")


ROWS = [
    Difference(
        name="int_beside_uint32",
        subject="Python numbers",
        says="Python integers that fit `uint32` go with arrays of it: `x ^ 0x9E3779B9`",
        jax="OverflowError: they are taken as int32",
        run=lambda m, jnp: _u32(jnp) ^ _N,
        right=np.array([1, 2, 3], np.uint32) ^ np.uint32(_N),
    ),
    Difference(
        name="where_uint32",
        subject="Python numbers",
        says="so they do in `where`, `select`, `clip`, `pad`, `searchsorted`, ...",
        jax="OverflowError",
        run=lambda m, jnp: jnp.where(_u32(jnp) > 1, _u32(jnp), _N),
        right=np.array([_N, 2, 3], np.uint32),
    ),
    Difference(
        name="clip_uint64",
        subject="Python numbers",
        says="and those of 64 bits beside `uint64`",
        jax="OverflowError",
        run=lambda m, jnp: jnp.clip(jnp.asarray(2**64 - 1, "uint64"), 0, _WIDE),
        right=np.array(_WIDE, np.uint64),
        x64=True,
    ),
    Difference(
        name="less_than_300",
        subject="Python numbers",
        says="comparisons with Python integers are exact, as in NumPy: `uint8_array < 300`",
        jax="300 wraps around to 44",
        run=lambda m, jnp: _u8(jnp) < 300,
        right=np.array([True, True, True]),
    ),
    Difference(
        name="equal_to_minus_one",
        subject="Python numbers",
        says="no unsigned number equals -1",
        jax="the greatest does",
        run=lambda m, jnp: _u8(jnp) == -1,
        right=np.array([False, False, False]),
    ),
    Difference(
        name="clip_beyond_dtype",
        subject="Python numbers",
        says="`clip(x, 0, 300)` leaves `uint8` as it is, as in NumPy",
        jax="the bound wraps around to 44",
        run=lambda m, jnp: jnp.clip(_u8(jnp), 0, 300),
        right=np.array([1, 44, 255], np.uint8),
    ),
    Difference(
        name="searchsorted_beyond_dtype",
        subject="Python numbers",
        says="`searchsorted(x, 300)` is behind all elements of `uint8`",
        jax="where 44 is",
        run=lambda m, jnp: jnp.searchsorted(_u8(jnp), 300),
        right=np.array(3, np.int32),
    ),
    Difference(
        name="isin_beyond_dtype",
        subject="Python numbers",
        says="`isin(x, 300)` is false for `uint8`",
        jax="true for 44",
        run=lambda m, jnp: jnp.isin(_u8(jnp), 300),
        right=np.array([False, False, False]),
    ),
    Difference(
        name="class_attributes",
        subject="Arrays",
        says="attributes of the class take arrays: `map(Array.sum, xs)`",
        jax="NotImplementedError",
        run=lambda m, jnp: m.Array.sum(jnp.ones(3)),
        right=np.array(3.0, np.float32),
    ),
]
