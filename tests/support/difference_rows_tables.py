"""Differences that a walk over functions, dtypes and derivatives found."""

import numpy as np
from differences import Difference


def _squareplus(m, jnp):
    return m.nn.squareplus(jnp.asarray(-89.0, "float16"))


def _eigenvalue_slopes(m, jnp):
    a = jnp.asarray([[2.0, 5.0], [1.0, 3.0]])
    total = lambda a: m.lax.linalg.eigh(a, symmetrize_input=False)[1][1]
    return m.grad(total)(a)[0, 1]


ROWS = [
    Difference(
        name="clip_unsigned_between_int_and_float",
        subject="Python numbers",
        says="`clip` of unsigned integers between a negative number and a float leaves 0 at 0",
        jax="1.5 for `clip(uint16(0), -1, float32(1.5))`: the lower bound wraps around",
        run=lambda m, jnp: jnp.clip(jnp.asarray(0, "uint16"), -1, np.float32(1.5)),
        right=0.0,
        tolerance=0.0,
        x64=False,
    ),
    Difference(
        name="squareplus_of_negative_float16",
        subject="Special functions",
        says="`nn.squareplus` of a negative number far from 0 has all its digits",
        jax="0 for -89 in float16",
        run=_squareplus,
        right=0.0112331,
        tolerance=1e-3,
        x64=False,
    ),
    Difference(
        name="eigh_slope_of_the_triangle_not_read",
        subject="Linear algebra",
        says="without `symmetrize_input`, `eigh` has slope 0 by the triangle that it does not read",
        jax="half of the slope on either side",
        run=_eigenvalue_slopes,
        right=0.0,
        tolerance=0.0,
        x64=False,
    ),
]
