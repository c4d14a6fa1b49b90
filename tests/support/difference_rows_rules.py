"""Rules of users, solvers, arrays of other libraries: what jax 0.10.2 refuses or gets wrong."""

import numpy as np
from differences import Difference


def _rule_under_vmap(m, jnp):
    def scaled(x, z):
        inner = m.custom_jvp(lambda y: x * y * y)
        inner.defjvp(lambda p, t: (inner(*p), 2 * x * p[0] * t[0]))
        return inner(z)

    def total(z):
        return m.vmap(lambda x: scaled(x, z))(jnp.arange(3.0)).sum()

    return m.grad(m.jit(total))(1.0)


def _root_beside_an_integer(m, jnp):
    def solve(f, x):
        return m.lax.fori_loop(0, 20, lambda i, x: x - f(x) / m.grad(f)(x), x), 3

    def root(square):
        return m.lax.custom_root(
            lambda x: x**2 - square, 1.0, solve, lambda g, y: y / g(1.0), has_aux=True
        )[0]

    return m.grad(root)(4.0)


ROWS = [
    Difference(
        name="rule_closes_over_mapped_value",
        subject="Rules of users",
        says="a `custom_jvp` rule may close over a value under `vmap`, also where `jit` is "
        "differentiated",
        jax="UnexpectedTracerError",
        run=_rule_under_vmap,
        right=6.0,
    ),
    Difference(
        name="derivative_of_solve_by_one_triangle",
        subject="Solvers",
        says="the derivative of `scipy.linalg.solve(a, b, assume_a='pos', lower=True)` is that of "
        "the solution, which depends on the lower triangle of `a` alone",
        jax="takes `a` to be symmetric, but counts both triangles as they are: [0, -0.125] for "
        "[-0.125, -0.125]",
        run=lambda m, jnp: m.jvp(
            lambda a: m.scipy.linalg.solve(a, jnp.ones(2), assume_a="pos", lower=True),
            (jnp.array([[2.0, 0.0], [0.0, 4.0]]),),
            (jnp.array([[0.0, 0.0], [1.0, 0.0]]),),
        )[1],
        right=np.float32([-0.125, -0.125]),
        tolerance=1e-6,
    ),
    Difference(
        name="custom_root_integer_aux",
        subject="Solvers",
        says="`lax.custom_root` with `has_aux=True` is differentiated where the second part of the "
        "solution is an integer",
        jax="TypeError",
        run=_root_beside_an_integer,
        right=0.25,
        tolerance=1e-6,
    ),
    Difference(
        name="from_dlpack_strided",
        subject="Arrays of other libraries",
        says="`np.from_dlpack` takes arrays with strides, such as every second column",
        jax="RuntimeError",
        run=lambda m, jnp: jnp.from_dlpack(np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::2]),
        right=np.float32([[0, 2], [3, 5]]),
    ),
]
