"""Programs compiled ahead of their first call: several at a time, in threads, at the end of a
process."""

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _core
from weft._pool import in_parallel
from weft.compiler import cache_stats
from weft.runtime import compile

X = np.ones((2, 3), np.float32)


def numbered(k):
    def f(x):
        return wnp.sin(x) * (k + 0.5)

    f.__name__ = f"f{k}"
    return f


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def test_several_programs_in_order():
    functions = [weft.jit(numbered(k)) for k in range(4)]
    kinds = [
        functions[0].lower(X),
        functions[1].trace(X),
        (functions[2], (weft.ShapeDtypeStruct((2, 3), np.float32),)),
        (lambda x, *, scale: x * scale - 7.25, [X], {"scale": 2.0}),
    ]
    before = cache_stats()["compiles"]
    compiled = weft.compile_all(iter(kinds))
    assert [type(c).__name__ for c in compiled] == ["Compiled"] * 4
    for k in range(3):
        np.testing.assert_allclose(compiled[k](X), np.sin(X) * (k + 0.5), rtol=1e-5)
    np.testing.assert_allclose(compiled[3](X, scale=2.0), X * 2 - 7.25)
    made = cache_stats()["compiles"] - before
    for f in functions[:3]:
        f(X)
    assert cache_stats()["compiles"] - before == made  # calls find what was compiled
    assert weft.compile_all([]) == []
    wait_for(lambda: not any(t.name == "weft-compile" for t in threading.enumerate()))


def fails(x):
    raise KeyError("here")


def test_errors_name_their_program():
    good = (numbered(5), (X,))
    with pytest.raises(KeyError) as caught:
        weft.compile_all([good, (fails, (X,)), good])
    assert caught.value.__notes__[-1] == "in weft.compile_all, program 1, 'fails'"
    bad_option = weft.jit(numbered(6), compiler_options={"xla_no_such_option": True})
    with pytest.raises(ExceptionGroup, match="3 of 4 programs") as caught:
        weft.compile_all([(fails, (X,)), good, (bad_option, (X,)), (good[0], X)])
    kinds = [type(e).__name__ for e in caught.value.exceptions]
    assert kinds == ["KeyError", "JaxRuntimeError", "TypeError"]
    assert "program 2, 'f6'" in caught.value.exceptions[1].__notes__[-1]
    outcomes = weft.compile_all([good, (fails, (X,))], return_exceptions=True)
    assert isinstance(outcomes[1], KeyError) and callable(outcomes[0])


def test_futures():
    lowered = weft.jit(numbered(8)).lower(X)
    future = lowered.compile_async()
    done = threading.Event()
    future.add_done_callback(lambda f: done.set())
    np.testing.assert_allclose(future.result()(X), np.sin(X) * 8.5, rtol=1e-5)
    assert done.wait(10) and future.done() and future.exception() is None
    assert lowered.compile_async({"xla_no_such_option": True}).exception(timeout=60) is not None

    async def waits():
        return await asyncio.wrap_future(weft.jit(numbered(9)).lower(X).compile_async())

    np.testing.assert_allclose(asyncio.run(waits())(X), np.sin(X) * 9.5, rtol=1e-5)


def test_settings_of_the_thread_that_asks():
    with weft.debug_nans(True):
        compiled = weft.jit(lambda x: wnp.log(x)).lower(X).compile_async().result()
    with pytest.raises(FloatingPointError):
        compiled(-X)


@pytest.fixture
def slow_compiler():
    """Compilations that end when they are let go, and how many begin."""
    begun, go = [], threading.Event()

    def slow(module):
        begun.append(threading.current_thread())
        assert go.wait(60)
        return compile.compile_module(module)

    _core.install(compile=slow)
    yield begun, go
    go.set()
    _core.install(compile=compile.compile_module)


def test_threads_are_bounded_and_what_waits_can_be_cancelled(slow_compiler):
    begun, go = slow_compiler
    futures = [weft.jit(numbered(20 + k)).lower(X).compile_async() for k in range(80)]
    wait_for(lambda: begun)
    time.sleep(0.1)
    assert len(begun) < 80 and len(set(begun)) == len(begun)
    cancelled = [f.cancel() for f in futures]
    assert cancelled.count(False) == len(begun)
    go.set()
    for future in futures:
        if not future.cancelled():
            future.result(60)
    wait_for(lambda: not any(t.is_alive() for t in begun))


def test_a_call_waits_for_the_program_that_is_being_compiled(slow_compiler):
    begun, go = slow_compiler
    f = weft.jit(numbered(200))
    future = f.lower(X).compile_async()
    wait_for(lambda: begun)
    threading.Timer(0.1, go.set).start()
    np.testing.assert_allclose(f(X), np.sin(X) * 200.5, rtol=1e-5)
    assert len(begun) == 1 and future.result(60) is not None


SLOW = """
    import os, signal, sys, time, threading, numpy as np, weft, weft.numpy as wnp
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's is ignored
    from weft import _core
    from weft.runtime import compile
    def f(x):
        for k in range(12):
            x = wnp.sort(x @ x.T + k, axis=k % 2) @ x
        return x
    def lowered(k):
        return weft.jit(lambda x: f(x) * k).lower(np.ones((8, 8), np.float32))
    def slow(module):
        os.write(1, b"begun\\n")  # in one piece: threads do it at once
        time.sleep(0.5)
        made = compile.compile_module(module)
        os.write(1, b"ended\\n")
        return made
    _core.install(compile=slow)
"""


def child(code, **options):
    text = textwrap.dedent(SLOW) + textwrap.dedent(code)
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", text], stdout=pipe, stderr=pipe, text=True)


def finish(process):
    try:
        return process.communicate(timeout=120)
    finally:
        process.kill()


def test_the_end_of_a_process_waits_for_what_has_begun():
    process = child("""
        futures = [lowered(k).compile_async() for k in range(20)]
        told = lambda f: os.write(1, f"cancelled {f.cancelled()}\\n".encode())  # in one piece
        futures[-1].add_done_callback(told)
        while not any(f.running() for f in futures): time.sleep(0.01)
        raise SystemExit(3)
    """)
    out, err = finish(process)
    assert process.returncode == 3 and not err, err
    assert out.count("begun") == out.count("ended") < 20 and "cancelled True" in out


def test_an_interrupt_within_a_collection_of_garbage():
    process = child("""
        import gc, signal
        unraisable = []
        sys.unraisablehook = unraisable.append
        def interrupt(*_): raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        lowered(0).compile()
        gc.freeze()
        caught = 0
        for _ in range(200):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005)
                while True: gc.collect()
            except KeyboardInterrupt:
                caught += 1
        print(caught, len(unraisable), file=sys.stderr)
    """)
    _, err = finish(process)
    assert process.returncode == 0 and err == "200 0\n", err


def test_work_on_all_cores_is_done_once_and_its_error_is_raised():
    done = []
    in_parallel(done.append, 50)
    assert sorted(done) == list(range(50))

    def fails(number):
        done.append(number)
        raise KeyError(number)

    del done[:]
    with pytest.raises(KeyError):
        in_parallel(fails, 1000)
    assert len(done) < 1000


def test_an_interrupt_of_compile_all():
    process = child("""
        try:
            weft.compile_all([lowered(k) for k in range(50)])
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    out = process.stdout.read()  # `communicate` loses what was read together with that line
    _, err = finish(process)
    assert process.returncode == 0 and "interrupted" in out, err
    assert 1 + out.count("begun") == out.count("ended") < 50
