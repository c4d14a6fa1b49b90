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

MATRICES = (16, 128, 512)


def matrix(n):
    return (np.random.default_rng(n).standard_normal((n, n)).astype("f"),)


def definite(n):
    (x,) = matrix(n)
    return (x @ x.T / n + np.eye(n, dtype="f"),)


def system(n):
    return (np.tril(*matrix(n)) + n * np.eye(n, dtype="f"), *matrix(n))


CASES = {
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
        for n in sizes:
            program = fw.jit(lambda *xs, function=function: function(fw, *xs))
            xs = [fw.numpy.asarray(x) for x in make(n)]
            times[f"{name}_{n}"] = sitting.call_time(
                lambda program=program, xs=xs: fw.block_until_ready(program(*xs))
            )
    return times


def main():
    if "--only" in sys.argv:
        at = sys.argv.index("--only")
        os.environ[CHOICE] = sys.argv[at + 1]
        del sys.argv[at : at + 2]
    rows = {
        f"{name}_{n}": (f"{name}, size {n}", "us", 1e6, TARGET)
        for name, (sizes, _, _) in chosen().items()
        for n in sizes
    }
    sitting.run(__doc__, __file__, rows, measure, rounds=5)


if __name__ == "__main__":
    main()
