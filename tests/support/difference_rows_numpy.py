"""Functions of weft.numpy, weft.nn and indexing."""

import numpy as np
from differences import Difference

ROWS = [
    Difference(
        name="log_softmax_of_integers",
        subject="Neural networks",
        says="`nn.log_softmax` and `nn.standardize` of integers compute in floats",
        jax="differences wrap around: `log_softmax([2**31 - 1, -2])` is `[-inf, -inf]`",
        run=lambda m, jnp: [
            m.nn.log_softmax(jnp.array([2**31 - 1, -2])),
            m.nn.standardize(jnp.array([2**31 - 1, -(2**31)])),
        ],
        right=np.array([[0.0, -(2.0**31)], [1.0, -1.0]]),
        tolerance=1e-6,
    ),
    Difference(
        name="vector_norm_of_integers",
        subject="Linear algebra",
        says="`linalg.vector_norm` of integers is a float",
        jax="truncated: `vector_norm([1, 2], ord=3)` is 1",
        run=lambda m, jnp: jnp.linalg.vector_norm(jnp.array([1, 2]), ord=3),
        right=9.0 ** (1 / 3),
        tolerance=1e-6,
    ),
    Difference(
        name="grids_are_tuples",
        subject="Arrays",
        says="`meshgrid`, `broadcast_arrays` and `ogrid` give tuples, as NumPy does",
        jax="lists, until JAX 0.12",
        run=lambda m, jnp: [
            isinstance(made, tuple)
            for made in (
                jnp.meshgrid(jnp.arange(2), jnp.arange(3)),
                jnp.broadcast_arrays(jnp.arange(2), 1),
                jnp.ogrid[:2, :3],
            )
        ],
        right=np.array([True, True, True]),
    ),
    Difference(
        name="softmax_of_integers",
        subject="Neural networks",
        says="`nn.softmax` of integers whose differences overflow is right",
        jax="the difference wraps around: `softmax([2**31 - 1, -2])` is `[0, nan]`",
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
    Difference(
        name="tri_dtype",
        subject="Arrays",
        says="`numpy.tri` gives the default float dtype, float64 with `enable_x64`",
        jax="float32; float64 from 0.11 on",
        run=lambda m, jnp: jnp.tri(2).dtype.itemsize,
        right=8,
        x64=True,
    ),
]
