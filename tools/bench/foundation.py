"""Costs of the foundation, weft against jax, measured in one sitting.

usage: foundation.py [--rounds N] [--json OUT]     compares; prints a table of medians and ratios
       foundation.py --measure FRAMEWORK           one round in this process; prints JSON
"""

import dataclasses
import importlib
import os
import subprocess
import sys
import time
import typing

import numpy as np
import sitting

# name: (what it is, unit, factor from seconds, the ratio asked for)
ROWS = {
    "trace_sin": ("make_jaxpr + lower, 10,000 sin", "ms", 1e3, 1 / 25),
    "trace_affine": ("make_jaxpr + lower, 10,000 x*1.5+1.0", "ms", 1e3, 1 / 25),
    "trace_text": ("the same with as_text", "ms", 1e3, None),
    "jit_2": ("jit call, 2 arrays", "us", 1e6, 1.0),
    "jit_dict": ("jit call, dict of 100 arrays", "us", 1e6, 0.9),
    "jit_kwargs": ("jit call, keyword arguments", "us", 1e6, 0.95),
    "jit_static": ("jit call, a static argument", "us", 1e6, 0.95),
    "jit_tuple": ("jit call, a named tuple of arrays", "us", 1e6, 0.95),
    "jit_data": ("jit call, a dataclass of arrays", "us", 1e6, 0.95),
    "grad_custom": ("un-jitted grad of a function with a custom_vjp", "us", 1e6, 1 / 10),
    "eager_add": ("eager x + x", "us", 1e6, 0.6),
    "eager_index": ("eager x[3]", "us", 1e6, 0.3),
    "import": ("import of the package", "ms", 1e3, 0.6),
}
CHAIN = 10_000


def chains():
    def sin_chain(sin, x):
        for _ in range(CHAIN):
            x = sin(x)
        return x

    def affine_chain(x):
        for _ in range(CHAIN // 2):
            x = x * 1.5 + 1.0
        return x

    return sin_chain, affine_chain


def trace_time(fw, f, x, text=False, repeats=3):
    """make_jaxpr and lower of a function that no cache has seen."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        fw.make_jaxpr(lambda v: f(v))(x)
        lowered = fw.jit(lambda v: f(v)).lower(x)
        if text:
            lowered.as_text()
        times.append(time.perf_counter() - start)
    return min(times)


def import_time(name):
    """Seconds of `import NAME` in a fresh process, of several the best; with bytecode on disk."""
    code = f"import time; t = time.perf_counter(); import {name}; print(time.perf_counter() - t)"
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    run = [sys.executable, "-c", code]
    return min(
        float(subprocess.run(run, capture_output=True, text=True, check=True, env=env).stdout)
        for _ in range(3)
    )


class Pair(typing.NamedTuple):
    first: object
    second: object


@dataclasses.dataclass
class State:
    params: object
    step: object
    name: str = dataclasses.field(default="state", metadata={"static": True})


def measure_calls(fw, x):
    """Calls of functions whose arguments are no positional arrays."""
    fw.tree_util.register_dataclass(State, ["params", "step"], ["name"])
    named = fw.jit(lambda x, *, scale, shift: x * scale + shift)
    static = fw.jit(lambda x, n, mode: x * n, static_argnums=1, static_argnames="mode")
    pair = fw.jit(lambda p: p.first + p.second)
    data = fw.jit(lambda s: s.params + s.step)
    two, state = Pair(x, x), State(x, x)
    return {
        "jit_kwargs": sitting.call_time(lambda: named(x, scale=x, shift=x), 3000),
        "jit_static": sitting.call_time(lambda: static(x, 3, mode="train"), 3000),
        "jit_tuple": sitting.call_time(lambda: pair(two), 3000),
        "jit_data": sitting.call_time(lambda: data(state), 3000),
    }


def measure_custom_rule(fw, xnp, x):
    @fw.custom_vjp
    def f(x):
        return xnp.sin(x) * 2.0

    f.defvjp(lambda x: (f(x), xnp.cos(x)), lambda c, g: (g * c * 2.0,))
    gradient = fw.grad(lambda x: xnp.sum(f(x)))
    return {"grad_custom": sitting.call_time(lambda: gradient(x), 100)}


def measure(name):
    result = {"import": import_time(name)}
    fw = importlib.import_module(name)
    xnp = importlib.import_module(f"{name}.numpy")
    x = xnp.asarray(np.arange(8, dtype=np.float32))
    sin_chain, affine_chain = chains()
    result["trace_sin"] = trace_time(fw, lambda v: sin_chain(xnp.sin, v), x)
    result["trace_affine"] = trace_time(fw, affine_chain, x)
    result["trace_text"] = trace_time(fw, affine_chain, x, text=True)
    add = fw.jit(lambda a, b: a + b)
    result["jit_2"] = sitting.call_time(lambda: add(x, x), 5000)
    tree = {f"p{i}": x for i in range(100)}
    shift = fw.jit(lambda t: {k: v + 1 for k, v in t.items()})
    result["jit_dict"] = sitting.call_time(lambda: shift(tree), 300)
    result |= measure_calls(fw, x) | measure_custom_rule(fw, xnp, x)
    result["eager_add"] = sitting.call_time(lambda: x + x, 5000)
    result["eager_index"] = sitting.call_time(lambda: x[3], 1000)
    return result


if __name__ == "__main__":
    sitting.run(__doc__, __file__, ROWS, measure, rounds=5)
