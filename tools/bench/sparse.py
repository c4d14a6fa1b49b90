#!/usr/bin/env python3
"""Products of sparse arrays, and sparse Hessians: weft beside JAX and SciPy.

usage: PYTHONPATH=python python tools/bench/sparse.py

Products: a matrix of 10,000 x 10,000 with 10 elements in each row, times a vector and times 64
columns; microseconds, the best of many calls, all in one process, one after the other. Hessians: a
banded one of n = 10,000, in units of the time of one gradient.
"""

import functools
import time

import numpy as np
import scipy.sparse

import weft
import weft.numpy as wnp
from weft.experimental import sparse

N, IN_ROW, COLUMNS = 10_000, 10, 64


def best(f, calls=30):
    f()
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        f()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e6


def frameworks():
    """(name, asarray, jit, its module of sparse arrays) of what is installed."""
    yield "weft", wnp.asarray, weft.jit, sparse
    try:
        import jax
        import jax.experimental.sparse
    except ImportError:
        return
    jax.config.update("jax_enable_x64", True)
    yield "jax", jax.numpy.asarray, jax.jit, jax.experimental.sparse


def products(dtype):
    rng = np.random.default_rng(0)
    columns = np.stack([rng.choice(N, IN_ROW, replace=False) for _ in range(N)]).ravel()
    places = np.repeat(np.arange(N), IN_ROW), columns
    values = rng.normal(size=N * IN_ROW).astype(dtype)
    matrix = scipy.sparse.csr_matrix((values, places), shape=(N, N))
    operands = rng.normal(size=N).astype(dtype), rng.normal(size=(N, COLUMNS)).astype(dtype)
    print(f"{dtype}: scipy", *(f"{best(lambda x=x: matrix @ x):.0f}" for x in operands))
    for name, asarray, jit, module in frameworks():
        for cls in (module.BCOO, module.BCSR):
            mat = cls.from_scipy_sparse(matrix)
            product = jit(lambda a, b: a @ b)

            def run(x, product=product, mat=mat):
                product(mat, x).block_until_ready()

            times = [best(functools.partial(run, x)) for x in map(asarray, operands)]
            print(f"{dtype}: {name} {cls.__name__}", *(f"{t:.0f}" for t in times))


def hessian():
    def energy(x):
        return ((x[1:] - x[:-1] ** 2) ** 2).sum() + (wnp.cos(x[2:]) * x[:-2]).sum()

    x = wnp.linspace(-1, 1, N)
    gradient = weft.jit(weft.grad(energy))
    of_gradient = best(lambda: gradient(x).block_until_ready())
    whole = weft.sparse_hessian(energy)
    begin = time.perf_counter()
    nse = whole(x).nse
    first = time.perf_counter() - begin
    of_hessian = best(lambda: whole(x).data.block_until_ready())
    print(f"hessian, {nse} elements: gradient {of_gradient:.0f} us, hessian {of_hessian:.0f} us, "
          f"{of_hessian / of_gradient:.1f} gradients; the first call {first:.1f} s")  # fmt: skip


if __name__ == "__main__":
    with weft.enable_x64(True):
        for dtype in ("float32", "float64"):
            products(dtype)
    hessian()
