"""Calls of compiled operations, weft against jax, measured in one sitting.

A round measures the fastest of 15 times 20 ms of calls: noise of the machine only adds.

usage: operations.py [--rounds N] [--json OUT] [--only NAME]    compares; prints a table
       operations.py --measure FRAMEWORK [--only NAME]          one round in this process

An operation is a line of CASES: its name, the sizes, what makes the arguments for a size, and the
function of a framework (the modules `weft` and `jax` have the same names) and the arguments.
"""

import importlib
import os
import sys

import numpy as np
import sitting

IMAGES = ((1, 8, 4), (8, 16, 16), (16, 32, 32))  # number, side, channels
MATRICES = (16, 128, 512)
LENGTHS = (1000, 30_000, 1_000_000)


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("f")


def line(n):
    return (normal(n),)


def rows(n):
    return (normal(n // 100, 100),)


def complex_line(n):
    return ((normal(n) + 1j * normal(n)).astype("complex64"),)


def table_and_indices(n):
    return normal(n // 8, 8), np.random.default_rng(n).integers(0, n // 8, n // 8)


def indices_and_updates(n):
    table, indices = table_and_indices(n)
    return table, indices, normal(n // 8, 8)


def key_and_shape(n):
    return np.array([0, 7], "uint32"), np.zeros(n, "int8")


def image(size):
    n, side, channels = size
    return (normal(n, side, side, channels),)


def image_and_filter(size):
    return (*image(size), normal(3, 3, size[2], size[2]))


def image_and_result(size):
    return image(size) * 2


def matrix(n):
    return (np.random.default_rng(n).standard_normal((n, n)).astype("f"),)


def definite(n):
    (x,) = matrix(n)
    return (x @ x.T / n + np.eye(n, dtype="f"),)


def system(n):
    return (np.tril(*matrix(n)) + n * np.eye(n, dtype="f"), *matrix(n))


def conv(fw, x, w):
    return fw.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def conv_by_images(fw, ct, w):
    return fw.vjp(lambda x: conv(fw, x, w), ct)[1](ct)[0]


def conv_by_filter(fw, ct, x):
    w = fw.numpy.zeros((3, 3, x.shape[3], x.shape[3]))
    return fw.vjp(lambda w: conv(fw, x, w), w)[1](ct)[0]


def pool(fw, x, init, combine):
    window = (1, 2, 2, 1)
    return fw.lax.reduce_window(x, init, combine, window, window, "VALID")


def max_pool(fw, x):
    return pool(fw, x, -np.inf, fw.lax.max)


CASES = {
    "conv": (IMAGES, image_and_filter, conv),
    "conv, transpose by images": (IMAGES, image_and_filter, conv_by_images),
    "conv, transpose by filter": (IMAGES, image_and_result, conv_by_filter),
    "reduce_window max": (IMAGES, image, max_pool),
    "reduce_window max, gradient": (
        IMAGES,
        image,
        lambda fw, x: fw.grad(lambda x: max_pool(fw, x).sum())(x),
    ),
    "reduce_window sum": (IMAGES, image, lambda fw, x: pool(fw, x, 0.0, fw.lax.add)),
    "cumsum": (LENGTHS, line, lambda fw, x: fw.lax.cumsum(x)),
    "cumsum, rows": (LENGTHS, rows, lambda fw, x: fw.lax.cumsum(x, 1)),
    "sort": (LENGTHS, line, lambda fw, x: fw.lax.sort(x)),
    "sort, rows": (LENGTHS, rows, lambda fw, x: fw.lax.sort(x)),
    "top_k": (LENGTHS, line, lambda fw, x: fw.lax.top_k(x, 10)),
    "top_k, rows": (LENGTHS, rows, lambda fw, x: fw.lax.top_k(x, 10)),
    "gather": (LENGTHS, table_and_indices, lambda fw, x, i: x[i]),
    "scatter-add": (LENGTHS, indices_and_updates, lambda fw, x, i, y: x.at[i].add(y)),
    "fft": (LENGTHS, complex_line, lambda fw, x: fw.numpy.fft.fft(x)),
    "rfft, rows": (LENGTHS, rows, lambda fw, x: fw.numpy.fft.rfft(x)),
    "random bits": (LENGTHS, key_and_shape, lambda fw, k, x: fw.random.bits(k, x.shape)),
    "normal": (LENGTHS, key_and_shape, lambda fw, k, x: fw.random.normal(k, x.shape)),
    "cholesky": (MATRICES, definite, lambda fw, x: fw.lax.linalg.cholesky(x)),
    "triangular_solve": (
        MATRICES,
        system,
        lambda fw, a, b: fw.lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
    ),
    "lu": (MATRICES, matrix, lambda fw, x: fw.lax.linalg.lu(x)),
    "qr": (MATRICES, matrix, lambda fw, x: fw.lax.linalg.qr(x, full_matrices=False)),
    "svd": (MATRICES, matrix, lambda fw, x: fw.lax.linalg.svd(x, full_matrices=False)),
    "eigh": (MATRICES, definite, lambda fw, x: fw.lax.linalg.eigh(x)),
}
TARGET = 1.05
# Children measure the same operations: the choice is passed on in the environment.
CHOICE = "WEFT_BENCH_ONLY"


def chosen():
    only = os.environ.get(CHOICE)
    return {name: case for name, case in CASES.items() if only in (None, name)}


def measure(framework):
    fw = importlib.import_module(framework)
    times = {}
    for name, (sizes, make, function) in chosen().items():
        for size in sizes:
            program = fw.jit(lambda *xs, function=function: function(fw, *xs))
            xs = [fw.numpy.asarray(x) for x in make(size)]
            times[f"{name} {size}"] = sitting.call_time(
                lambda program=program, xs=xs: fw.block_until_ready(program(*xs)),
                repeats=15,
                pick=min,
            )
    return times


def main():
    if "--only" in sys.argv:
        at = sys.argv.index("--only")
        os.environ[CHOICE] = sys.argv[at + 1]
        del sys.argv[at : at + 2]
    rows = {
        f"{name} {size}": (f"{name}, {size}", "us", 1e6, TARGET)
        for name, (sizes, _, _) in chosen().items()
        for size in sizes
    }
    sitting.run(__doc__, __file__, rows, measure, rounds=5)


if __name__ == "__main__":
    main()
