"""Threads, very long programs, and the cache of compiled programs."""

import functools
import gc
import itertools
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from in_threads import in_threads

import weft
import weft.numpy as wnp
from weft import _core
from weft.compiler import cache_stats
from weft.runtime import compile

THREADS = 8  # as many as in_threads starts


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


def test_long_programs_of_many_threads_are_compiled_at_once():
    def work(i):
        def f(x):
            for k in range(150):
                x = wnp.sin(x) * (0.1 + i / 16) + k % 3
            return wnp.where(x > 0, x, weft.jit(lambda v: v * 2)(x))

        return [weft.jit(f).lower(X).as_text(), np.asarray(weft.jit(f)(X)), f]

    for text, result, f in in_threads(work):
        assert weft.jit(f).lower(X).as_text() == text
        with weft.disable_jit():
            np.testing.assert_allclose(result, f(X), rtol=1e-3, atol=1e-3)


@pytest.fixture
def slow_compiler():
    """Lets other threads go on in the middle of every compilation."""

    def slow(module):
        time.sleep(0.2)
        return compile.compile_module(module)

    _core.install(compile=slow)
    yield
    _core.install(compile=compile.compile_module)


@pytest.mark.parametrize(
    "make",
    [
        lambda: weft.jit(lambda v: wnp.sin(v) * 1.25 - 3.5),
        lambda: weft.grad(lambda v: (wnp.sin(v) * 1.25 - 3.5).sum()),
        lambda: lambda v: wnp.hypot(v, v),
    ],
    ids=["jit", "grad", "eager"],
)
def test_threads_compile_one_structure_once(make, slow_compiler):
    weft.clear_caches()
    functions = [make() for _ in range(THREADS)]
    assert compiles(lambda: in_threads(lambda i: functions[i](X))) == 1
    _core.unload_executables(cache_stats()["loaded"])
    assert compiles(lambda: in_threads(lambda i: functions[i](X))) == 1


def test_first_calls_of_one_function_trace_it_and_compile_its_blocks_once(slow_compiler):
    traces = []

    @functools.partial(weft.jit, compile="blocks")
    def deep(weights, x):
        traces.append(x)
        for w in weights:
            x = x + wnp.tanh(x @ w + wnp.cos(x)) @ w
        return x

    weights = [np.full((3, 3), 0.1 * k, np.float32) for k in range(8)]
    made = compiles(lambda: in_threads(lambda i: deep(weights, weights[1])))
    (event,) = deep.explain().events
    assert len(traces) == 1 and event.programs[0].modules == made
    assert event.programs[0].blocks == made


def test_a_structure_that_was_forgotten_is_compiled_whole_again():
    gradient = weft.grad(lambda v: (wnp.sin(v) * wnp.cos(v)).sum())
    for _ in range(5):
        weft.clear_caches()
        assert compiles(lambda: gradient(X)) == 1


FRESH = itertools.count(1)


def long_graph():
    k = next(FRESH)
    return weft.jit(lambda x: functools.reduce(lambda v, _: wnp.sin(v) * k, range(4000), x)).trace(
        np.float32(1)
    )


LONG_WORK = {
    "text": lambda t: str(t.graph),
    "jaxpr": lambda t: str(t.jaxpr),
    "lower": lambda t: t.lower(),
    "linearize": lambda t: _core.linearize_graph(t.graph, [True]),
    "vmap": lambda t: _core.vmap_graph(t.graph, [0], 3),
    "vjp": lambda t: _core.vjp_graph(t.graph, [True]),
}


@pytest.mark.parametrize("work", LONG_WORK)
def test_other_threads_get_on_while_the_core_works(work):
    """The interpreter takes the lock from nobody here, so what moves was let."""
    ticks, done = [0], threading.Event()

    def tick():
        while not done.is_set():
            ticks[0] += 1
            time.sleep(1e-4)

    interval = sys.getswitchinterval()
    other = threading.Thread(target=tick)
    try:
        sys.setswitchinterval(1000)
        other.start()
        for _ in range(50):
            traced = long_graph()
            before = ticks[0]
            LONG_WORK[work](traced)
            moved = ticks[0] > before
            if moved:
                break
    finally:
        done.set()
        sys.setswitchinterval(interval)
        other.join()
    assert moved


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


# Keys of caches are compared by Python code, which may do anything.

CLEARING = """
import threading, time
import numpy as np
import weft, weft.numpy as wnp

class Callback:
    def __init__(self, k): self.k = k
    def __call__(self, a): return a
    def __hash__(self): return 7
    def __eq__(self, other):
        weft.clear_caches()
        return isinstance(other, Callback) and self.k == other.k

errors, calls = [], [0] * 8
stop = time.monotonic() + 4

def work(i):
    try:
        while time.monotonic() < stop:
            callback = Callback(calls[i] % 3)
            f = weft.jit(lambda v: weft.pure_callback(callback, v, v) + i)
            assert np.asarray(f(np.ones(3, np.float32))).tolist() == [1.0 + i] * 3
            g = weft.jit(lambda v, c: v + c.k, static_argnums=1)
            for k in range(3):
                assert float(g(1.0, Callback(k))) == 1.0 + k
            if i == 0:
                weft.clear_caches()
            weft.grad(lambda v: (v * v).sum())(wnp.ones(3))
            calls[i] += 1
    except BaseException as e:
        errors.append(repr(e))

threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(errors or "fine", min(calls) > 0)
"""


def test_caches_are_cleared_while_others_use_them(run_python):
    assert run_python(CLEARING).split() == ["fine", "True"]


def test_destructors_may_use_the_cache_that_drops_them(run_python):
    out = run_python(
        "import weft, weft.numpy as wnp\n"
        "class Static:\n"
        "    def __del__(self):\n"
        "        weft.clear_caches()\n"
        "        wnp.ones(2) + 1\n"
        "f = weft.jit(lambda x, s: x + 1, static_argnums=1)\n"
        "for i in range(20): f(1.0, Static())\n"
        "f.clear_cache()\n"
        "g = weft.jit(lambda x, s: x + 1, static_argnums=1)\n"
        "for i in range(20): g(1.0, Static())\n"
        "del g\n"
        "print(float(f(1.0, 2)))\n"
    )
    assert out.strip() == "2.0"


def test_equal_static_values_of_other_types_are_others():
    seen = []

    @functools.partial(weft.jit, static_argnums=1)
    def f(x, s):
        seen.append(s)
        return x

    values = [1, 1.0, True, (1,), (True,), (1.0,), 0.0, -0.0, (0.0,), (-0.0,), 0j, -0j, ((1,),)]
    for value in [*values, ((True,),), *values]:
        f(1.0, value)
    assert list(map(repr, seen)) == list(map(repr, [*values, ((True,),)]))


def test_a_call_of_a_graph_is_weak_as_its_function_is():
    weak = wnp.broadcast_to(wnp.asarray(2.0), (3,))
    double = weft.vmap(lambda v: v * 2)
    strong = weft.vmap(lambda v: (v * 2).astype(wnp.float32))
    assert double(weak).weak_type
    assert not strong(weak).weak_type
    assert double(weak).weak_type


# Compiled programs are dropped, and made again when they are called.


def test_programs_that_functions_hold_are_dropped_and_come_back():
    functions = [weft.jit(lambda v, k=k: v * k + 0.5) for k in range(6)]
    compiled = weft.jit(lambda v: v - 3).lower(X).compile()
    for f in functions:
        f(X)
    before = cache_stats()["loaded"]
    assert _core.unload_executables(before) == before
    assert cache_stats()["loaded"] == 0
    for k, f in enumerate(functions):
        np.testing.assert_allclose(f(X), X * k + 0.5)
    np.testing.assert_allclose(compiled(X), X - 3)
    assert cache_stats()["loaded"] >= 7


def test_the_least_recently_used_program_is_dropped_first():
    weft.clear_caches()
    old, new = weft.jit(lambda v: v * 41), weft.jit(lambda v: v * 43)
    for f in (old, new, old):
        f(X)
    _core.unload_executables(1)
    assert compiles(lambda: old(X)) == 0
    assert compiles(lambda: new(X)) == 1


class Maps:
    """Memory maps of a process in which each loaded program takes `each`, and others `rest`."""

    def __init__(self, rest, each=3, limit=4000):
        self.rest, self.each, self.limit = rest, each, limit

    def __call__(self):
        return self.rest + self.each * cache_stats()["loaded"], self.limit


def test_programs_make_room_for_memory_maps(monkeypatch):
    weft.clear_caches()
    held = [weft.jit(lambda v, k=k: v + k) for k in range(40)]
    for f in held:
        f(X)
    guard = compile._MapGuard()
    monkeypatch.setattr(compile, "_memory_maps", Maps(rest=10, each=60))
    guard.look()
    loaded = cache_stats()["loaded"]
    assert 0 < loaded <= 40 // 2  # well below, the newest are left
    assert compiles(lambda: held[-1](X)) == 0
    guard.look()
    assert cache_stats()["loaded"] == loaded


def test_maps_of_others_cost_no_programs_again_and_again(monkeypatch):
    weft.clear_caches()
    held = [weft.jit(lambda v, k=k: v - k) for k in range(40)]
    for f in held:
        f(X)
    guard = compile._MapGuard()
    monkeypatch.setattr(compile, "_memory_maps", Maps(rest=3000, each=0))
    guard.look()
    loaded = cache_stats()["loaded"]
    for _ in range(3):
        guard.look()
    assert cache_stats()["loaded"] == loaded > 0


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
    assert compiles(lambda: weft.jit(lambda v: (wnp.exp(v) - 17, wnp.sin(v))[0] * 1)(X)) == 0


def test_what_is_made_of_types_for_the_runtime_is_bounded():
    from weft.runtime.devices import Aval

    def count():
        return sum(type(o) is Aval for o in gc.get_objects())

    weft.clear_caches()
    gc.collect()
    before = count()  # what other tests hold
    for n in range(1200):
        wnp.asarray(np.zeros((n % 40, n // 40, 1), np.int8))
    assert count() - before < 1100


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
        # The peak of getrusage is that of the process that started this one, if that is larger.
        with open("/proc/self/status") as status:
            print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
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
