"""Calls of compiled operations, weft against jax, measured in one sitting.

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


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("f")


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
                lambda program=program, xs=xs: fw.block_until_ready(program(*xs))
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
