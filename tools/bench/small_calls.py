"""Un-jitted calls of functions on small arrays, and calls of jitted ones, weft against jax.

usage: small_calls.py [--rounds N] [--json OUT]    compares; prints a table of medians and ratios
       small_calls.py --measure FRAMEWORK          one round in this process; prints JSON
"""

import importlib

import numpy as np
import sitting

ASKED = 0.9


def calls(name):
    """{what it is: a function without arguments}."""
    fw, jnp, nn, random, tree = (
        importlib.import_module(name + part) for part in ("", ".numpy", ".nn", ".random", ".tree")
    )
    host = np.arange(8, dtype=np.float32)
    x, other = jnp.asarray(host), jnp.asarray(host[::-1].copy())
    matrix = jnp.asarray(np.ones((4, 8), np.float32))
    places, mask, key = jnp.asarray(np.arange(8)), x > 3, random.key(0)
    leaves = {f"p{i}": x for i in range(50)}
    by_position = fw.jit(lambda x, n: x * n, static_argnums=1)
    by_name = fw.jit(lambda x, y: x * y)
    shift = fw.jit(lambda t: {k: v + 1 for k, v in t.items()})
    inner = fw.jit(lambda x: x * 2 + 1)
    gradient = fw.grad(lambda x: jnp.sum(inner(x)))
    mapped = fw.vmap(lambda x: inner(x))
    double, state = fw.jit(lambda x: x * 2, donate_argnums=0), [x + 0]

    def donate():
        state[0] = double(state[0])

    return {
        "jit call, a static argument": lambda: by_position(x, 3),
        "jit call, keyword arguments": lambda: by_name(x=x, y=x),
        "jit call, a donated argument": donate,
        "jit call, dict of 50 arrays": lambda: shift(leaves),
        "grad of a jitted function": lambda: gradient(x),
        "vmap of a jitted function": lambda: mapped(matrix),
        "x.at[2].set(1.0)": lambda: x.at[2].set(1.0),
        "where": lambda: jnp.where(mask, x, other),
        "concatenate of 3": lambda: jnp.concatenate([x, other, x]),
        "x.T": lambda: matrix.T,
        "x.reshape(32)": lambda: matrix.reshape(32),
        "x.astype(int32)": lambda: x.astype(jnp.int32),
        "zeros": lambda: jnp.zeros((8,)),
        "full": lambda: jnp.full((8,), 2.0),
        "arange": lambda: jnp.arange(10),
        "take": lambda: jnp.take(x, places),
        "cumsum": lambda: jnp.cumsum(x),
        "linalg.norm": lambda: jnp.linalg.norm(x),
        "mean": lambda: jnp.mean(matrix),
        "einsum": lambda: jnp.einsum("ij,ij->i", matrix, matrix),
        "nn.softmax": lambda: nn.softmax(matrix),
        "nn.log_softmax": lambda: nn.log_softmax(matrix),
        "random.key": lambda: random.key(0),
        "random.split": lambda: random.split(key),
        "random.normal": lambda: random.normal(key, (8,)),
        "tree.map, 50 leaves": lambda: tree.map(lambda v: v, leaves),
        "device_put of NumPy": lambda: fw.device_put(host),
    }


def measure(name):
    return {what: sitting.call_time(call) for what, call in calls(name).items()}


if __name__ == "__main__":
    rows = {what: (what, "us", 1e6, ASKED) for what in calls("weft")}
    sitting.run(__doc__, __file__, rows, measure, rounds=3)
