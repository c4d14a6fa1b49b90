"""Costs of differentiating and vectorising long programs, weft against jax, in one sitting.

usage: transforms.py [--rounds N] [--json OUT]     compares; prints a table of medians and ratios
       transforms.py --measure FRAMEWORK           one round in this process; prints JSON

The chains are traced, transformed and lowered to StableHLO. The last row is a function of 5,000
operations of many kinds, and the time that differentiating it adds to tracing it:

- jax transforms while it traces, so this is the time of `make_jaxpr(grad(f))` less that of
  `make_jaxpr(f)`. The difference of the times of `jit(...).lower` would be larger, since it has the
  lowering of the longer program in it.
- weft transforms the recorded graph: this is the time of the call into the core that does so.

Both frameworks could remember what they did for an equal program, so every time is that of a
program with another constant in it.
"""

import importlib
import itertools
import statistics
import time

import numpy as np
import sitting

ROWS = {
    "grad": ("trace + lower of jit(grad(f)), 10,000 sin", "ms", 1e3, 1 / 30),
    "vmap_grad": ("the same, vmap(grad(f))", "ms", 1e3, 1 / 30),
    "grad_grad": ("the same, grad(grad(f))", "ms", 1e3, 1 / 50),
    "transform": ("the transform alone, 5,000 operations of many kinds", "ms", 1e3, 1 / 20),
}
CHAIN = 10_000
BLOCKS = 357  # of 14 operations


def chain(xnp, x, factor):
    x = x * factor
    for _ in range(CHAIN):
        x = xnp.sin(x)
    return x


def mixed(xnp, lax, w, x, factor):
    """A scalar function of x, f32[8], with a matrix w of shape (4, 4)."""
    x = x * factor
    for _ in range(BLOCKS):
        h = xnp.tanh(lax.reshape(x, (2, 4)) @ w)
        y = lax.reshape(h, (8,))
        y = lax.concatenate([y[4:], y[:4]], 0)
        x = xnp.where(y > 0.1, lax.sin(y), x) + lax.exp(y)
        x = x - xnp.sum(x)
    return xnp.sum(x)


def elapsed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(name):
    fw = importlib.import_module(name)
    xnp = importlib.import_module(f"{name}.numpy")
    lax = importlib.import_module(f"{name}.lax")
    x, xs = xnp.asarray(np.float32(0.5)), xnp.asarray(np.arange(8, dtype=np.float32))
    factors = (1 + i / 64 for i in itertools.count())

    def lower_time(transform, argument, repeats):
        def once(factor):
            fw.jit(transform(lambda v: chain(xnp, v, factor))).lower(argument)

        return statistics.median(elapsed(lambda: once(next(factors))) for _ in range(repeats))

    result = {
        "grad": lower_time(fw.grad, x, 3),
        "vmap_grad": lower_time(lambda f: fw.vmap(fw.grad(f)), xs, 3),
        "grad_grad": lower_time(lambda f: fw.grad(fw.grad(f)), x, 1),
    }

    w = xnp.asarray(np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32))

    def trace(transform):
        factor = next(factors)
        return fw.make_jaxpr(transform(lambda v: mixed(xnp, lax, w, v, factor)))(xs)

    def transform_time():
        plain = lambda f: f
        if name == "jax":
            return elapsed(lambda: trace(fw.grad)) - elapsed(lambda: trace(plain))
        graph = trace(plain).graph
        captured = len(graph.in_types) - 1
        return elapsed(lambda: fw._core.vjp_graph(graph, [False] * captured + [True], [True]))

    trace(fw.grad)  # what the first use of an operation costs
    result["transform"] = statistics.median(transform_time() for _ in range(5))
    return result


if __name__ == "__main__":
    sitting.run(__doc__, __file__, ROWS, measure, rounds=3)
