"""Why functions were traced and compiled: `explain()`."""

import functools
import gc
import weakref

import numpy as np
import pytest

import weft
import weft.numpy as wnp

X = np.ones((2, 3), np.float32)
Y = np.ones(3, np.float32)


@functools.partial(weft.jit, static_argnames=("n", "mode"))
def f(p, x, *, n=1, mode=None):
    return wnp.tanh(x * p["w"]) * n


P = {"w": np.float32(2), "b": np.float32(1)}


def reasons(function=f):
    return function.explain().events[-1].reasons


def test_each_kind_of_difference_is_named():
    f.clear_cache()
    f.eval_shape(P, X, n=1, mode="a")
    assert reasons() == ["first call since the caches were cleared"]
    rows = [
        (lambda: f.eval_shape(P, Y, n=1, mode="a"), "argument x is f32[3], before f32[2,3]"),
        (
            lambda: f.eval_shape(P, X.astype(np.int32), n=1, mode="a"),
            "argument x is i32[2,3], before f32[",
        ),
        (
            lambda: f.eval_shape({"w": 2.0, "b": P["b"]}, X, n=1, mode="a"),
            "argument p['w'] is ~f32",
        ),
        (lambda: f.eval_shape(P, X, n=2, mode="a"), "static argument n is 2, before 1"),
        (lambda: f.eval_shape(P, X, n=1.0, mode="a"), "n is 1.0, before 1 (float, before int)"),
        (lambda: f.eval_shape(P, X, n=1), "static arguments are ('n',), before ('mode', 'n')"),
        (lambda: f.eval_shape({**P, "c": 1}, X, n=1, mode="a"), "keys ['b', 'c', 'w']"),
    ]
    for call, words in rows:
        call()
        assert reasons()[0].startswith("unlike the closest earlier call: ")
        assert any(words in reason for reason in reasons()), (words, reasons())
    with weft.enable_x64():
        f.eval_shape(P, X, n=1, mode="a")
    assert reasons() == ["unlike the closest earlier call: weft_enable_x64 is True, before False"]
    with weft.default_matmul_precision("highest"):
        f.eval_shape(P, X, n=1, mode="a")
    assert "weft_default_matmul_precision is highest, before None" in reasons()[0]
    assert "test_explain.py" in f.explain().events[-1].line
    many = {f"k{i}": np.float32(0) for i in range(20)}
    f.eval_shape(P | many, X)
    f.eval_shape(P | dict.fromkeys(many, 0), X)
    assert reasons()[-1] == "and 12 other arrays"


def test_a_program_is_served_by_xla_or_memory():
    def make():
        return weft.jit(lambda x: wnp.sin(x) * 7.125 + 3)

    g = make()
    g(X)
    g(X)
    (event,) = g.explain().events
    (made,) = event.programs
    assert (made.source, made.modules, made.in_memory, made.operations) == ("xla", 1, 0, 3)
    assert made.compile > 0 and event.trace > 0 and event.operations == 3 and not event.nested
    text = str(g.explain())
    for words in ("traced once, compiled once", "3 operations", "XLA", "test_explain.py"):
        assert words in text
    other = make()
    other(X)
    assert other.explain().events[0].programs[0].source == "memory"
    assert "found in memory" in repr(other.explain())
    same = weft.jit(lambda x: x)
    same(X)
    assert same.explain().events[0].programs[0].source == "nothing"
    with weft.debug_nans(True):
        g(X)
    assert "debug_nans" in g.explain().events[0].programs[1].why


def test_blocks_are_counted():
    @functools.partial(weft.jit, compile="blocks")
    def deep(weights, x):
        for w in weights:
            x = x + wnp.tanh(x @ w + wnp.cos(x)) @ w
        return x

    deep([np.full((3, 3), 0.1 * k, np.float32) for k in range(8)], X)
    made = deep.explain().events[0].programs[0]
    assert made.blocks == made.modules > 0 and "block" in str(made)


def test_what_would_become_of_a_call():
    g = weft.jit(lambda x: x * 1.5)
    assert g.explain(X).call == "traces" and not g.explain().events
    g.trace(X)
    assert g.explain(X).call == "compiles"
    g(X)
    assert g.explain(X).call == "runs"
    assert g.explain(weft.ShapeDtypeStruct((2, 3), np.float32)).call == "runs"
    question = g.explain(x=X)
    assert question.call == "traces" and "given otherwise" in question.reasons[0]
    assert "would be traced" in repr(question) and g.cache_info().misses == 1


def test_traces_that_no_later_call_can_use():
    def outer(x):
        inner = weft.jit(closes := lambda y: y * x)
        inner(x)
        inner(x)
        found.append(inner.explain())
        return closes(x)

    found = []
    weft.jit(outer)(Y)
    (explained,) = found
    assert [e.cause for e in explained.events] == ["first", "outer"]
    assert all(e.nested for e in explained.events)

    @weft.jit
    def fails(x):
        raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            fails(X)
    assert [e.cause for e in fails.explain().events] == ["first", "failed"]
    assert fails.explain().events[0].trace is None and "raised an error" in str(fails.explain())


def test_functions_made_anew():
    for _ in range(3):
        fresh = weft.jit(lambda x: x + 1)
        fresh.trace(X)
    assert fresh.explain().events[0].cause == "fresh"
    assert "2 other functions of the same code" in reasons(fresh)[0]


def test_the_history_is_bounded_and_holds_nothing_for_good():
    class Mode:
        pass

    g = weft.jit(lambda x, mode: x, static_argnums=1)
    for _ in range(70):
        g.trace(1.0, Mode())
    explained = g.explain()
    assert len(explained.events) == 64 and explained.forgotten == 6
    assert "traced 70 times" in repr(explained) and "argument mode is <" in reasons(g)[0]
    mode = Mode()
    g.trace(1.0, mode)
    g.trace(2, mode)
    mode.loop = g
    seen = weakref.ref(mode)
    del g, mode, explained
    gc.collect()
    assert seen() is None


def test_static_values_that_look_alike_or_cannot_be_shown():
    class Quiet:
        def __repr__(self):
            raise ValueError

    class Unequal:
        def __repr__(self):
            return "config"

    g = weft.jit(lambda x, mode: x, static_argnums=1)
    g.trace(1.0, Unequal())
    g.trace(1.0, Unequal())
    assert "though they look the same" in reasons(g)[0]
    g.trace(1.0, Quiet())
    assert "ValueError in repr" in reasons(g)[0]


def test_setting_in_the_environment(run_python):
    code = """
        import weft
        weft.jit(lambda x: x * 2.5 + 1)(1.0)
        assert weft.config.weft_explain_cache_misses
    """
    assert run_python(code, WEFT_EXPLAIN="1") == ""


def test_kernels_are_named():
    def walk(x):
        step = lambda x, _: (weft.numpy.sin(x) * 0.5 + x[::-1], x.sum())
        return weft.lax.scan(step, x, None, length=100)

    f = weft.jit(walk)
    f(np.ones(8, np.float32))
    (made,) = f.explain().events[-1].programs
    (kernel,) = made.kernels
    assert kernel.num_ops >= 4
    assert 0 < kernel.seconds < kernel.apart < 1e-3
    assert "test_explain.py" in kernel.line and "(walk)" in kernel.line
    assert f"kernel at {kernel.line}: {kernel.num_ops} operations" in str(f.explain())
    assert f.lower(np.ones(8, np.float32)).compile().kernels == [kernel]
    never = weft.jit(walk, kernels="never")
    never(np.ones(8, np.float32))
    assert not never.explain().events[-1].programs[-1].kernels
