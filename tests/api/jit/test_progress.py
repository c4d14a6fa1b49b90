"""What is shown, and where, of compilations and loops that take long."""

import contextlib
import itertools
import os
import pty
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest

import weft
import weft.numpy as wnp
from weft.runtime import progress

# Python's own loop, one that weft compiles, and a compilation.
PROGRAM = """
    import threading, time, weft, weft.numpy as wnp
    from weft import _core
    from weft.runtime import compile, progress
    progress._AFTER, progress._LINE_EVERY = 0.3, 0.2
    def slow(module):
        if "slow_step" in module.text:
            time.sleep(0.8)
        return compile._compile_module(module)
    _core.install(compile=progress.shown(slow, compile._name_of))
    def quick_step(x): return x * 2.5
    def slow_step(x): return x * 3.5
    weft.jit(quick_step)(1.0)
    weft.jit(slow_step)(1.0)
    assert [t.name for t in threading.enumerate()] == ["MainThread"]

    def body(i, x):
        weft.debug.progress(i, 8, "sampling")
        weft.debug.callback(lambda: time.sleep(0.1), ordered=True)
        return x + 1
    weft.lax.fori_loop(0, 8, body, 0)
"""


def shown_on_a_terminal(**env):
    main, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        stderr=end,
        env={**os.environ, "TERM": "xterm", **env},
    )
    os.close(end)
    assert process.wait(120) == 0
    text = b""
    with contextlib.suppress(OSError):  # the end of what a terminal has
        while part := os.read(main, 4096):
            text += part
    os.close(main)
    return text.decode()


def test_a_terminal():
    text = shown_on_a_terminal()
    *compiling, sampling = text.split("\r\x1b[K\r")  # a line goes
    assert any("weft: compiling slow_step, 0." in line for line in compiling)
    assert not any("\n" in line for line in compiling)
    assert sampling.startswith("sampling: ") and " of 8, 0." in sampling
    last = sampling.split("\r")[-2]
    assert last.startswith("sampling: 8 of 8, ") and text.endswith("\r\n")


def test_settings_turn_it_off():
    assert shown_on_a_terminal(WEFT_COMPILE_PROGRESS="0", WEFT_LOOP_PROGRESS="0") == ""


def test_pipes_and_files_get_nothing():
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == done.stderr == ""


@pytest.fixture
def lines(monkeypatch):
    """What is shown, and when; each look at the clock takes a second."""
    found = []

    class Place:
        def show(self, text):
            found.append(text)

        def close(self, text=""):
            found.append(text)

    clock = itertools.count()
    monkeypatch.setattr(progress, "_place", lambda: Place)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    progress._loop.cache_clear()
    weft.clear_caches()
    weft.config.update("weft_compile_progress", False)
    yield found
    weft.config.update("weft_compile_progress", True)


def repeated(x, total=20, every=5):
    def body(x, i):
        weft.debug.progress(i, total, "loop", every=every)
        return wnp.sin(x), None

    return weft.lax.scan(body, x, wnp.arange(total))[0]


LINES = [
    "loop: 10 of 20, 2.0 s, about 2.2 s more",
    "loop: 15 of 20, 3.0 s, about 1.1 s more",
    "loop: 20 of 20, 4.0 s",
]


@pytest.mark.parametrize(
    "function",
    [
        repeated,
        weft.jit(repeated),
        weft.grad(repeated),
        weft.jit(weft.grad(repeated)),
        weft.grad(weft.checkpoint(repeated)),
        weft.grad(weft.grad(repeated)),
        lambda x: weft.vmap(repeated)(wnp.ones(3) * x),
        weft.jit(lambda x: weft.vmap(weft.grad(repeated))(wnp.ones(3) * x)),
        lambda x: weft.jvp(repeated, (x,), (x,)),
    ],
)
def test_a_loop_shows_one_line_for_its_forward_pass(lines, function):
    weft.block_until_ready(function(1.0))
    weft.effects_barrier()
    assert lines == LINES
    weft.block_until_ready(function(1.0))  # another run
    weft.effects_barrier()
    assert lines == LINES * 2


def test_python_loops(lines):
    for i in range(20):
        weft.debug.progress(i, 20, every=5)
    assert lines == LINES


def test_elements_of_a_batch_that_are_unequally_far(lines):
    def counted(start):
        def body(i):
            weft.debug.progress(i, 20, every=5)
            return i + 1

        return weft.lax.while_loop(lambda i: i < 20, body, start)

    assert weft.vmap(counted)(wnp.array([10, 0, 5])).tolist() == [20, 20, 20]
    weft.effects_barrier()
    assert lines == LINES


def test_a_loop_calls_the_host_a_limited_number_of_times(lines, monkeypatch):
    calls = []
    monkeypatch.setattr(progress._Loop, "__call__", lambda self, done: calls.append(int(done)))
    repeated(1.0, 10_000, None)
    weft.effects_barrier()
    assert calls[:3] == [1, 20, 40] and len(calls) == 501 and calls[-1] == 10_000


def test_a_program_has_nothing_of_it_where_nobody_would_see_it(lines, monkeypatch):
    plain = str(weft.make_jaxpr(lambda x: repeated(x))(1.0))
    assert "debug_callback" in plain
    monkeypatch.setattr(progress, "_place", lambda: None)
    assert "debug_callback" not in str(weft.make_jaxpr(lambda x: repeated(x))(1.0))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="expected a positive total; got 0"):
        weft.debug.progress(0, 0)
    with pytest.raises(TypeError, match=r"expected an integer for the step; got float32\[\]"):
        weft.debug.progress(0.5, 3)
    with pytest.raises(TypeError, match=r"int32\[2\]"):
        weft.debug.progress(wnp.arange(2), 3)


def test_stages_of_a_compilation(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    program = progress._Program("step")
    clock[0] = 3.0
    assert str(program) == "optimising step, 3.0 s"
    program.compiles((100, 400, 300))
    monkeypatch.setattr(progress, "_rate", progress._Rate())
    clock[0] = 3.5
    assert str(program) == "compiling step, 0 of 3 blocks, 3.5 s, about 1.1 s more"
    clock[0], program.done = 7.0, 1
    assert str(program) == "compiling step, 1 of 3 blocks, 7.0 s, about 4.0 s more"
    clock[0], program.done = 200.0, 3
    assert str(program) == "compiling step, 3 of 3 blocks, 3 min 20 s"


def test_the_core_tells_of_stages(monkeypatch):
    told = []

    def compilation(name, operations):
        told.append((name, operations))
        return told.append

    weft._core.install(compilation=compilation)
    try:
        step = weft.jit(lambda x: wnp.sin(x) * 3.25 + wnp.cos(x))
        step(1.0)
        step.clear_cache()
        step(1.0)  # compiled already
    finally:
        weft._core.install(compilation=progress.compilation)
    assert told == [("<lambda>", 4), (4,), None, ("<lambda>", 4), (), None]
