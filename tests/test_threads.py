"""Threads, very long programs, and the cache of compiled programs."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.compiler import cache_stats

THREADS = 8


def in_threads(work, count=THREADS):
    """Runs work(i) in threads that start together; returns the results."""
    barrier = threading.Barrier(count)

    def start(i):
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(start, range(count)))


def test_one_function_in_eight_threads():
    traces = []

    @weft.jit
    def f(x, y):
        traces.append(threading.get_ident())
        return wnp.tanh(x) @ y

    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)

    def work(i):
        return [np.asarray(f(x + i + k, x.T)) for k in range(50)]

    for i, results in enumerate(in_threads(work)):
        for k, result in enumerate(results):
            np.testing.assert_allclose(result, np.tanh(x + i + k) @ x.T, rtol=1e-5, atol=1e-6)
    assert 1 <= len(traces) <= THREADS


def test_different_functions_in_eight_threads():
    def work(i):
        f = weft.jit(lambda x: wnp.sum(x * i) + i)
        return [float(f(np.full(n, 2.0, np.float32))) for n in range(1, 20)]

    for i, results in enumerate(in_threads(work)):
        assert results == [2.0 * i * n + i for n in range(1, 20)]


def test_eager_ops_in_eight_threads():
    def work(i):
        x = wnp.arange(10.0) + i
        for k in range(100):
            x = x + k * 0.5 - k * 0.5
        return (float(x[3]), x.shape, [float(v) for v in x[:3]])

    for i, result in enumerate(in_threads(work)):
        assert result == (3.0 + i, (10,), [i, i + 1.0, i + 2.0])


def test_tracing_in_eight_threads_keeps_contexts_apart():
    def work(i):
        graphs = []
        for k in range(30):
            graph = weft.jit(lambda x, k=k: (x * i + k) @ x).trace(np.ones(4, np.float32)).graph
            graphs.append(str(graph))
        return graphs

    results = in_threads(work)
    for i, graphs in enumerate(results):
        for k, text in enumerate(graphs):
            assert f"mul a {float(i)}:f32[]" in text and f" {float(k)}:f32[]" in text


def test_settings_of_a_thread_are_its_own():
    def work(i):
        with weft.enable_x64(i % 2 == 0):
            return str((wnp.arange(3.0) + 1).dtype)

    results = in_threads(work)
    assert results == ["float64" if i % 2 == 0 else "float32" for i in range(THREADS)]
    assert wnp.arange(3.0).dtype == np.float32


def test_errors_in_threads():
    @weft.jit
    def f(x):
        if x.shape[0] % 2:
            raise ValueError(f"odd {x.shape[0]}")
        return x + 1

    def work(i):
        try:
            return np.asarray(f(np.zeros(i, np.float32))).shape
        except ValueError as e:
            return str(e)

    assert in_threads(work) == [(i,) if i % 2 == 0 else f"odd {i}" for i in range(THREADS)]


def test_arrays_die_in_other_threads():
    arrays = [weft.device_put(np.full(100, i, np.float32)) for i in range(200)]
    sums = in_threads(lambda i: [float(arrays.pop().sum()) for _ in range(25)])
    assert sorted(v for s in sums for v in s) == [100.0 * i for i in range(200)]


# The cache of compiled programs is keyed by structure.


def compiles(work):
    before = cache_stats()["compiles"]
    work()
    return cache_stats()["compiles"] - before


X = np.arange(7, dtype=np.float32)


def test_fresh_lambda_does_not_compile_again():
    def call():
        return weft.jit(lambda v: wnp.sin(v) * 3.25 + 0.125)(X)

    assert compiles(call) == 1
    for _ in range(3):
        assert compiles(call) == 0


def test_renamed_helpers_do_not_compile_again():
    def first():
        @weft.jit
        def helper(v):
            return wnp.cos(v) * 1.75

        return weft.jit(lambda v: helper(v) + helper(v * 2))(X)

    def second():
        @weft.jit
        def renamed(u):
            return wnp.cos(u) * 1.75

        def outer(argument):
            a = renamed(argument)
            return a + renamed(argument * 2)

        return weft.jit(outer)(X)

    assert compiles(first) == 1
    assert compiles(second) == 0


def test_what_differs_compiles():
    call = lambda f, *args: lambda: weft.jit(f)(*args)
    assert compiles(call(lambda v: v * 1.1 + 9, X)) == 1
    assert compiles(call(lambda v: v * 1.2 + 9, X)) == 1
    assert compiles(call(lambda v: v * 1.1 + 9, X[:3])) == 1
    assert compiles(call(lambda v: v * 1.1 + 9, X.astype(np.int32))) == 1
    assert compiles(call(lambda v: (v * 1.1 + 9, v - 5), X)) == 1
    assert compiles(call(lambda v: v * 1.1 + 9, X)) == 0


def test_equal_after_optimisation_does_not_compile_again():
    assert compiles(lambda: weft.jit(lambda v: wnp.exp(v) - 17)(X)) == 1
    assert compiles(lambda: weft.jit(lambda v: (wnp.exp(v) - 17, wnp.sin(v))[0] + 0)(X)) == 0


def test_captured_arrays_are_arguments():
    a, b = (weft.device_put(np.full(7, c, np.float32)) for c in (5, 6))
    make = lambda c: weft.jit(lambda v: v * c + wnp.tanh(v))
    results = []
    assert compiles(lambda: results.append(make(a)(X))) == 1
    assert compiles(lambda: results.append(make(b)(X))) == 0
    np.testing.assert_allclose(results[1] - results[0], X, rtol=1e-5)


def test_eager_scalars_do_not_compile_per_value():
    x = wnp.arange(11.0)
    x * 1.5 + 2
    before = cache_stats()
    for k in range(50):
        x * (1.5 + k) + k
    after = cache_stats()
    assert after["eager_misses"] == before["eager_misses"]
    assert after["compiles"] == before["compiles"]


def test_eager_indexing_does_not_compile_per_index():
    x = wnp.arange(40.0)
    [x[i] for i in range(3)]
    before = cache_stats()["eager_misses"]
    assert [float(x[i]) for i in range(-40, 40)] == [float(i % 40) for i in range(-40, 40)]
    assert cache_stats()["eager_misses"] == before


# A program of a million ops.


@pytest.mark.slow
def test_million_ops_within_4_gib(run_python):
    out = run_python(
        """
        import resource, time
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
        import weft
        from weft import compiler

        n = 1_000_000

        def chain(x):
            for _ in range(n // 2):
                x = x * 1.5 + 1.0
            return x

        graph = weft.jit(chain).trace(1.0).graph
        assert graph.num_ops == n
        again = weft.jit(chain).trace(1.0).graph
        assert hash(graph) == hash(again) and graph == again
        del again
        text = str(graph)
        assert text.count(" = mul ") == n // 2
        assert compiler.parse(text) == graph
        del text
        assert compiler.emit_stablehlo(graph).count("stablehlo.multiply") == n // 2
        optimized = compiler.optimize(graph)
        assert optimized.num_ops == n
        del graph, optimized
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        """,
        timeout=300,
    )
    assert int(out) * 1024 < 4 << 30


PENDING_AT_EXIT = """
import weft, weft.numpy as wnp
def block(x):
    for _ in range(24):
        x = wnp.sin(x @ wnp.eye(8))
    return wnp.sum(x)
weft.grad(weft.checkpoint(block))(wnp.ones((16, 8)))
weft.jit(lambda a: wnp.sin(a @ a @ a))(wnp.ones((LARGE, LARGE)))
"""


@pytest.mark.parametrize("large", (8, 700))
def test_a_process_may_end_while_computations_run(large):
    for _ in range(2):
        program = PENDING_AT_EXIT.replace("LARGE", str(large))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
        assert done.returncode == 0, (done.returncode, done.stderr.decode()[-2000:])
