"""Calls of single operations, compiled, at three sizes each.

usage: operations.py [--rounds N] [--json OUT]     compares; prints a table of medians and ratios
       operations.py --measure FRAMEWORK           one round in this process; prints JSON

A case is a function of a framework and a size to (function, arguments). What is asked for is a call
in at most 1.05 of jax's time.
"""

import importlib
import statistics
import time

import numpy as np
import sitting

REPEATS = 15
SECONDS = 0.02  # of calls, at least, per repeat


def _normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def _conv(fw, size):
    n, side, c = size
    x, w = _normal(n, side, side, c), _normal(3, 3, c, c)

    def forward(x, w):
        return fw.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    return forward, x, w


def conv(fw, size):
    forward, x, w = _conv(fw, size)
    return forward, (x, w)


def conv_by_lhs(fw, size):
    forward, x, w = _conv(fw, size)
    return lambda ct, w: fw.vjp(lambda x: forward(x, w), x)[1](ct)[0], (x, w)


def conv_by_rhs(fw, size):
    forward, x, w = _conv(fw, size)
    return lambda ct, x: fw.vjp(lambda w: forward(x, w), w)[1](ct)[0], (x, x)


def _pool(fw, size, init, combine):
    n, side, c = size
    window = (1, 2, 2, 1)
    return lambda x: fw.lax.reduce_window(x, init, combine, window, window, "VALID")


def max_pool(fw, size):
    return _pool(fw, size, -np.inf, fw.lax.max), (_normal(size[0], size[1], size[1], size[2]),)


def max_pool_grad(fw, size):
    pool = _pool(fw, size, -np.inf, fw.lax.max)
    return fw.grad(lambda x: pool(x).sum()), (_normal(size[0], size[1], size[1], size[2]),)


def sum_pool(fw, size):
    return _pool(fw, size, 0.0, fw.lax.add), (_normal(size[0], size[1], size[1], size[2]),)


IMAGES = ((1, 8, 4), (8, 16, 16), (16, 32, 32))
CASES = {
    "conv": (conv, IMAGES),
    "conv, transpose by images": (conv_by_lhs, IMAGES),
    "conv, transpose by weights": (conv_by_rhs, IMAGES),
    "reduce_window max": (max_pool, IMAGES),
    "reduce_window max, gradient": (max_pool_grad, IMAGES),
    "reduce_window sum": (sum_pool, IMAGES),
}
ROWS = {
    f"{name} {size}": (f"{name}, {'x'.join(map(str, size))}", "us", 1e6, 1.05)
    for name, (_, sizes) in CASES.items()
    for size in sizes
}


def seconds_per_call(program, args):
    def calls(n):
        start = time.perf_counter()
        for _ in range(n):
            result = program(*args)
        result.block_until_ready()
        return (time.perf_counter() - start) / n

    calls(3)
    n = max(1, int(SECONDS / calls(3)))
    return statistics.median(calls(n) for _ in range(REPEATS))


def measure(framework):
    fw = importlib.import_module(framework)
    results = {}
    for name, (make, sizes) in CASES.items():
        for size in sizes:
            function, args = make(fw, size)
            program = fw.jit(function)
            arrays = [fw.numpy.asarray(x) for x in args]
            results[f"{name} {size}"] = seconds_per_call(program, arrays)
    return results


if __name__ == "__main__":
    sitting.run(__doc__, __file__, ROWS, measure, rounds=3)
