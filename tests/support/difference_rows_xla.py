"""Arithmetic that XLA's compiler for CPUs would replace by other arithmetic."""

import numpy as np
from differences import Difference

_X = np.array([0.3, 1000.0, 1e30], np.float32)


_BLOCK = np.arange(16, dtype=np.float32)


def _slice_of_slice(m, jnp):
    cut = lambda x, at, size: m.lax.dynamic_slice(x, (at,), (size,))
    return m.jit(lambda x, i, j: cut(cut(x, i, 4), j, 1))(_BLOCK, 2, 9)


def _dropped(m, jnp):
    block = lambda x, i: m.lax.dynamic_slice(x, (i,), (4,))
    return m.jit(lambda x, i, at: block(x, i).at[at].add(1))(_BLOCK, 2, np.array([9]))


ROWS = [
    Difference(
        name="slice_of_a_slice",
        subject="Indexing",
        says="the start of a `dynamic_slice` of a `dynamic_slice` is clamped under `jit`",
        jax="an element outside of the inner slice is read",
        run=_slice_of_slice,
        right=np.array([5], np.float32),
    ),
    Difference(
        name="dropped_update_of_a_slice",
        subject="Indexing",
        says="an update out of bounds of a `dynamic_slice` is dropped under `jit`",
        jax="its last element is overwritten",
        run=_dropped,
        right=np.array([2, 3, 4, 5], np.float32),
    ),
    Difference(
        name="quotient_by_constant",
        subject="Arithmetic",
        says="`full(3, 41.) / 41` is 1: quotients are those of IEEE 754",
        jax="0.99999994, the product with the reciprocal",
        run=lambda m, jnp: jnp.full(3, np.float32(41)) / 41,
        right=np.ones(3, np.float32),
    ),
    Difference(
        name="quotient_by_largest",
        subject="Arithmetic",
        says="`x / x.max()` is right for large numbers",
        jax="0 for all of x above 8.5e37, since the reciprocal is subnormal",
        run=lambda m, jnp: m.jit(lambda x: x / x.max())(np.full(4, 2e38, np.float32)),
        right=np.ones(4, np.float32),
    ),
    Difference(
        name="quotient_along_axis",
        subject="Arithmetic",
        says="`x / x.max(1, keepdims=True)` is 1 at the largest element",
        jax="0.99999994 for 41",
        run=lambda m, jnp: m.jit(lambda x: x / x.max(1, keepdims=True))(
            np.full((4, 4), 41, np.float32)
        ),
        right=np.ones((4, 4), np.float32),
    ),
    Difference(
        name="mean_of_ones",
        subject="Arithmetic",
        says="`mean(ones((2, 41)), 1)` is 1",
        jax="0.99999994",
        run=lambda m, jnp: jnp.mean(jnp.ones((2, 41)), 1),
        right=np.ones(2, np.float32),
    ),
    Difference(
        name="floor_of_quotient",
        subject="Arithmetic",
        says="`floor(k / 41)` is right for all k below 10000, under `jit`, too",
        jax="one less for 94 of them",
        run=lambda m, jnp: m.jit(lambda k: jnp.floor(k / 41))(np.arange(10000, dtype=np.float32)),
        right=np.floor(np.arange(10000, dtype=np.float32) / np.float32(41)),
    ),
    Difference(
        name="sum_with_constants",
        subject="Arithmetic",
        says="`(x + 12582912.) - 12582912.` rounds x to an integer under `jit`, as it does alone",
        jax="x",
        run=lambda m, jnp: m.jit(lambda x: (x + 12582912.0) - 12582912.0)(_X[:1]),
        right=np.zeros(1, np.float32),
    ),
    Difference(
        name="product_with_constants",
        subject="Arithmetic",
        says="`x * 1e30 * 1e30 * 1e-30 * 1e-30` is infinite under `jit`, as it is alone",
        jax="nan: the constants are multiplied first",
        run=lambda m, jnp: m.jit(lambda x: x * 1e30 * 1e30 * 1e-30 * 1e-30)(_X),
        right=np.full(3, np.inf, np.float32),
    ),
    Difference(
        name="log_of_exp",
        subject="Arithmetic",
        says="`log(exp(1000.))` is infinite under `jit`, as it is alone",
        jax="1000",
        run=lambda m, jnp: m.jit(lambda x: jnp.log(jnp.exp(x)))(_X[1:2]),
        right=np.full(1, np.inf, np.float32),
    ),
    Difference(
        name="root_of_square",
        subject="Arithmetic",
        says="`sqrt(x * x)` overflows under `jit`, as it does alone",
        jax="abs(x)",
        run=lambda m, jnp: m.jit(lambda x: jnp.sqrt(x * x))(_X[2:]),
        right=np.full(1, np.inf, np.float32),
    ),
    Difference(
        name="quotient_of_quotient",
        subject="Arithmetic",
        says="`x / x / x` is 1 / x under `jit`, as it is alone",
        jax="`x / (x * x)`, 0 for 1e30",
        run=lambda m, jnp: m.jit(lambda x: x / x / x)(_X[2:]),
        right=np.float32(1) / _X[2:],
    ),
    Difference(
        name="bfloat16_rounded",
        subject="Arithmetic",
        says="results in bfloat16 are rounded after every operation, under `jit`, too",
        jax="what the next operation uses is not rounded",
        run=lambda m, jnp: m.jit(lambda x: (x * x * x).astype("float32"))(
            jnp.array([1.015625], "bfloat16")
        ),
        right=np.array([1.046875], np.float32),
    ),
    Difference(
        name="square_that_overflows",
        subject="Arithmetic",
        says="a square of integers that overflows may be negative under `jit`, as in NumPy",
        jax="`x * x < 0` is False, `abs(x * x)` is negative",
        run=lambda m, jnp: m.jit(lambda x: abs(x * x))(np.array([46341, 50000], np.int32)),
        right=np.array([2147479015, 1794967296], np.int32),
    ),
]
