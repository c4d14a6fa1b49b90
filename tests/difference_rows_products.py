"""Sums, ranks and integer division."""

import numpy as np
from differences import Difference

ROWS = [
    Difference(
        name="softmax_of_integers",
        subject="Neural networks",
        says="`nn.softmax` of integers whose differences overflow is right",
        jax="the difference wraps around: `softmax([2**31 - 1, -2])` is `[0, 1]`",
        run=lambda m, jnp: m.nn.softmax(jnp.array([2**31 - 1, -2])),
        right=np.array([1.0, 0.0], np.float32),
    ),
    Difference(
        name="matrix_rank_rtol",
        subject="Linear algebra",
        says="`linalg.matrix_rank(a, rtol=)` is relative to the largest singular value",
        jax="it is an absolute tolerance",
        run=lambda m, jnp: jnp.linalg.matrix_rank(jnp.diag(jnp.array([1e4, 1.0])), rtol=1e-2),
        right=np.array(1),
    ),
    Difference(
        name="index_none_false",
        subject="Indexing",
        says="`x[None, False]` has the shape that NumPy gives it",
        jax="another shape",
        run=lambda m, jnp: jnp.ones(3)[None, False].shape,
        right=np.ones(3)[None, False].shape,
    ),
    Difference(
        name="sum_initial",
        subject="Reductions",
        says="`x.sum(initial=)` adds the initial value",
        jax="the method ignores it",
        run=lambda m, jnp: jnp.ones(3).sum(initial=2.0),
        right=np.array(5.0, np.float32),
    ),
]
