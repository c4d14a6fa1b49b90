"""Derivatives of what a select has left out."""

import numpy as np
from differences import Difference

VECTORS = np.array([[0, 0, 0], [1, 2, 2]], np.float32)


def _root_in_where(m, jnp):
    return m.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))(0.0)


def _logarithm_in_where(m, jnp):
    x = jnp.array([-1.0, 0.0, 1.0])
    return m.grad(lambda x: jnp.where(x > 0, x * jnp.log(x), 0.0).sum())(x)


def _unit_vectors(m, jnp):
    def f(x):
        length = jnp.sqrt((x * x).sum(-1, keepdims=True))
        return jnp.where(length > 0, x / length, 0.0)[:, 0].sum()

    return m.grad(f)(jnp.array(VECTORS))


def _root_of_relu(m, jnp):
    return m.jacfwd(lambda x: jnp.sqrt(m.nn.relu(x)))(-10.0)


def _root_of_maximum(m, jnp):
    return m.grad(lambda x: jnp.sqrt(jnp.maximum(x, 0.0)))(-10.0)


ROWS = [
    Difference(
        "root_in_where",
        "Derivatives",
        "`where(x > 0, sqrt(x), 0)` has the gradient 0 at x = 0: the root is not chosen there",
        "NaN, unless the argument of the root is replaced by another `where`",
        _root_in_where,
        right=0.0,
    ),
    Difference(
        "logarithm_in_where",
        "Derivatives",
        "`where(x > 0, x * log(x), 0)` has the gradient 0 where x <= 0",
        "NaN",
        _logarithm_in_where,
        right=[0.0, 0.0, 1.0],
    ),
    Difference(
        "unit_vectors",
        "Derivatives",
        "`where(length > 0, x / length, 0)` has the gradient 0 for a vector of zeros",
        "NaN",
        _unit_vectors,
        right=[[0, 0, 0], [8 / 27, -2 / 27, -2 / 27]],
        tolerance=1e-6,
    ),
    Difference(
        "root_of_relu",
        "Derivatives",
        "`sqrt(relu(x))` has the derivative 0 for x < 0 in forward mode too",
        "NaN",
        _root_of_relu,
        right=0.0,
    ),
    Difference(
        "root_of_maximum",
        "Derivatives",
        "`sqrt(maximum(x, 0))` has the gradient 0 for x < 0",
        "NaN",
        _root_of_maximum,
        right=0.0,
    ),
]
