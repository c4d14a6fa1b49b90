"""Soak test: threads call jitted functions, eager operations and grad while caches are cleared,
garbage is collected and functions raise; then come fresh lambdas, recompilations, fresh shapes.
Memory and memory maps are compared from round to round: after the first ones they may not grow.

usage: python tests/support/soak.py [--threads 8] [--calls 100000] [--lambdas 10000]
                                    [--recompiles 2000] [--shapes 10000]

Takes half an hour at these numbers on two cores; `tests/system/test_soak.py` runs a short form.
Prints a table; exits with 1 if a figure grows by more than its allowance, or if a call
gave a wrong value.
"""

import argparse
import contextlib
import ctypes
import gc
import sys
import threading
import time

import numpy as np

import weft
import weft.numpy as wnp
from weft.compiler import cache_stats

# What the last round may have more than the one after warm-up: allocators keep pages for later.
MEMORY_KIB = 24 * 1024
MAPS = 600


def measured():
    """Resident memory in KiB and memory maps, with nothing held that could be let go."""
    weft.clear_caches()
    for _ in range(2):
        gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    with open("/proc/self/statm") as f:
        pages = int(f.read().split()[1])
    with open("/proc/self/maps", "rb") as f:
        maps = sum(1 for _ in f)
    return pages * 4, maps


class Odd(Exception):
    """What functions of the test raise on purpose."""


def odd(x):
    raise Odd(x)


class Worker(threading.Thread):
    """Calls everything `calls` times, with an upset now and then."""

    def __init__(self, number, calls):
        super().__init__()
        self.number, self.calls, self.error = number, calls, None

    def run(self):
        try:
            self.work()
        except BaseException as error:
            self.error = error

    def work(self):
        x = np.arange(4, dtype=np.float32) + self.number
        array = wnp.asarray(x)

        @weft.jit
        def f(v, w):
            return wnp.sin(v) * w["a"] + w["b"]

        def g(v):
            return (v * v).sum()

        tree = {"a": array, "b": array}
        jitted = np.sin(x) * x + x
        for i in range(self.calls):
            out = f(array, tree)
            total = (array + array) * 2.0
            slope = weft.grad(g)(array)
            if i % 97 == 0:
                np.testing.assert_allclose(out, jitted, rtol=1e-5)
                np.testing.assert_array_equal(total, x * 4)
                np.testing.assert_array_equal(slope, x * 2)
            if i % 1000 == self.number:
                self.upset(i)

    def upset(self, i):
        if self.number % 4 == 0:
            weft.clear_caches()
        elif self.number % 4 == 1:
            gc.collect()
        elif self.number % 4 == 2:
            for function in (weft.jit(odd), weft.grad(odd), weft.vmap(odd)):
                with contextlib.suppress(Odd):
                    function(np.float32([i]))
        else:
            box = []
            box.append(weft.jit(lambda v, b: v + 1, static_argnums=1)(1.0, Held(box)))


class Held:
    """A static argument in a cycle with what it is an argument of."""

    def __init__(self, box):
        self.box = box


def in_threads(threads, calls):
    workers = [Worker(i, calls) for i in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    for w in workers:
        if w.error is not None:
            raise w.error


def fresh_lambdas(count):
    x = np.ones(3, np.float32)
    for i in range(count):
        assert float(weft.jit(lambda v: (v * 2).sum())(x)) == 6.0
        if i % 50 == 0:
            weft.jit(lambda v: weft.pure_callback(lambda a: a, v, v))(x)


def recompiles(count):
    x = np.ones(3, np.float32)
    for _ in range(count):
        k = recompiles.next = recompiles.next + 1
        assert float(weft.jit(lambda v, k=k: v[0] * k)(x)) == k


recompiles.next = 1


def fresh_shapes(count):
    for _ in range(count):
        n = fresh_shapes.next = fresh_shapes.next + 1
        x = wnp.asarray(np.zeros((n % 300, n // 300), np.int8))
        assert weft.eval_shape(lambda v: v.T, x).shape == x.shape[::-1]


fresh_shapes.next = 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--lambdas", type=int, default=10_000)
    parser.add_argument("--recompiles", type=int, default=2_000)
    parser.add_argument("--shapes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    phases = [
        ("threads", lambda n: in_threads(options.threads, n), options.calls),
        ("fresh lambdas", fresh_lambdas, options.lambdas),
        ("recompiles", recompiles, options.recompiles),
        ("fresh shapes", fresh_shapes, options.shapes),
    ]
    failed = False
    print(f"{'phase':<16}{'done':>9}{'seconds':>9}{'memory MiB':>12}{'maps':>7}")
    for name, work, total in phases:
        rounds = []
        for r in range(options.rounds):
            start = time.monotonic()
            work(max(1, total // options.rounds))
            seconds = time.monotonic() - start
            rounds.append(measured())
            memory, maps = rounds[-1]
            done = total // options.rounds * (r + 1)
            print(f"{name:<16}{done:>9}{seconds:>9.1f}{memory / 1024:>12.1f}{maps:>7}", flush=True)
        warm, last = rounds[min(1, len(rounds) - 1)], rounds[-1]
        if last[0] - warm[0] > MEMORY_KIB or last[1] - warm[1] > MAPS:
            print(f"{name}: grew by {(last[0] - warm[0]) / 1024:.1f} MiB, {last[1] - warm[1]} maps")
            failed = True
    print(cache_stats())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
