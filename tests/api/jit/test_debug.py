"""Callbacks with effects: debug.callback, debug.print, io_callback, effects_barrier."""

import bdb
import functools
import io
import subprocess
import sys
import textwrap
import threading

import kept_answers
import numpy as np
import pytest
from oracle import needs_jax

import weft
import weft.numpy as wnp
from weft import errors, lax
from weft.experimental import io_callback

X = np.arange(3, dtype=np.float32)
F32 = weft.ShapeDtypeStruct((), np.float32)

LOG = []


def note(*values):
    LOG.append(tuple(float(v) for v in values) if len(values) != 1 else float(values[0]))


@pytest.fixture(autouse=True)
def empty_log():
    LOG.clear()
    yield
    LOG.clear()


def seen():
    """What has been noted since the last time, after all callbacks have run."""
    weft.effects_barrier()
    out = list(LOG)
    LOG.clear()
    return out


def spy(x, ordered=False):
    weft.debug.callback(note, x, ordered=ordered)


def doubled(x, ordered=False):
    spy(x, ordered)
    return x * 2


both_orders = pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
both_ways = pytest.mark.parametrize("wrap", [weft.jit, lambda f: f], ids=["jit", "eager"])


# ---- How often, and where


def loop(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]


def while_below(f, limit=20.0):
    return lambda x: lax.while_loop(lambda c: c < limit, f, x)


def watched_condition(f):
    def condition(c):
        f(c)
        return c < 5.0

    return lambda x: lax.while_loop(condition, lambda c: c * 2, x)


DOUBLINGS = [1.0, 2.0, 4.0, 8.0, 16.0]
# name: (f -> program, what it notes when called with 1.0)
PROGRAMS = {
    "plain": (lambda f: f, [1.0]),
    "result unused": (lambda f: lambda x: (f(x), x)[1], [1.0]),
    "jit unused": (lambda f: lambda x: (weft.jit(f)(x), x)[1], [1.0]),
    "jit": (lambda f: lambda x: weft.jit(f)(weft.jit(f)(x)), [1.0, 2.0]),
    "equal calls": (lambda f: lambda x: f(x) + f(x), [1.0, 1.0]),
    "scan": (loop, [1.0, 2.0, 4.0]),
    "while": (while_below, DOUBLINGS),
    "condition": (watched_condition, [1.0, 2.0, 4.0, 8.0]),
    "branch": (lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x), [1.0]),
    "other branch": (lambda f: lambda x: lax.cond(x < 0, f, lambda x: x * 2, x), []),
    "switch": (lambda f: lambda x: lax.switch(1, [lambda x: x, f, lambda x: x], x), [1.0]),
    "forwarded": (
        lambda f: lambda x: lax.cond(x > 0, lambda x: (f(x), x)[1], lambda x: x, x),
        [1.0],
    ),
    "fixed carry": (
        lambda f: lambda x: lax.fori_loop(0, 3, lambda i, c: (f(c), c)[1], x),
        [1.0, 1.0, 1.0],
    ),
    "loop of branches": (
        lambda f: loop(lambda c: lax.cond(c > 1.5, f, lambda c: c * 2, c)),
        [2.0, 4.0],
    ),
    "checkpoint": (lambda f: weft.checkpoint(lambda x: wnp.sin(weft.jit(f)(f(x)))), [1.0, 2.0]),
    "checkpointed loop": (
        lambda f: weft.checkpoint(lambda x: wnp.sin(loop(lambda c: wnp.sin(f(c)) + c)(x)).sum()),
        None,
    ),
    "constants of a loop": (
        lambda f: lambda x: lax.scan(lambda c, _: (c * wnp.sin(weft.jit(f)(x)), None), x, X)[0],
        [1.0, 1.0, 1.0],
    ),
}
FORWARD_ONLY = {"while", "condition"}


@both_orders
@both_ways
@pytest.mark.parametrize("name", PROGRAMS)
def test_calls(name, wrap, ordered):
    make, want = PROGRAMS[name]
    f = wrap(make(lambda x: doubled(x, ordered)))
    for _ in range(2):
        f(1.0)
        got = seen()
        if want is not None:
            assert got == want
        assert len(got) == (3 if want is None else len(want))


TRANSFORMS = {
    "jvp": lambda f: lambda x: weft.jvp(f, (x,), (1.0,)),
    "linearize": lambda f: lambda x: [weft.linearize(f, x)[1](1.0)],
    "grad": weft.grad,
    "value_and_grad": weft.value_and_grad,
    "vjp": lambda f: lambda x: weft.vjp(f, x)[1](1.0),
    "grad of grad": lambda f: weft.grad(weft.grad(lambda x: f(x) ** 2)),
    "jacfwd": weft.jacfwd,
    "hessian": weft.hessian,
}


@both_orders
@both_ways
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_call_as_often_as_the_program(name, transform, wrap, ordered):
    if name in FORWARD_ONLY and transform not in ("jvp", "linearize", "jacfwd"):
        pytest.skip("a while loop has no reverse mode")
    make, _ = PROGRAMS[name]
    f = make(lambda x: doubled(x, ordered))
    f(1.0)
    want = seen()
    result = wrap(TRANSFORMS[transform](f))(1.0)
    assert seen() == want
    silent = make(lambda x: x * 2)
    for got, expected in zip(
        weft.tree.leaves(result),
        weft.tree.leaves(TRANSFORMS[transform](silent)(1.0)),
        strict=True,
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


@both_ways
def test_programs_without_results(wrap):
    wrap(lambda x: spy(x))(1.0)
    assert seen() == [1.0]
    wrap(lambda: spy(5.0))()
    assert seen() == [5.0]
    wrap(lambda x: lax.cond(x > 0, spy, lambda x: None, x))(2.0)
    assert seen() == [2.0]
    wrap(lambda x: lax.cond(True, spy, lambda x: None, x))(3.0)
    assert seen() == [3.0]
    for length in (3, 1, 0):
        wrap(lambda x: lax.scan(lambda _, x: (None, spy(x)), None, x)[1])(X[:length])
        assert seen() == list(X[:length])


def test_results_that_are_handed_through():
    f = weft.jit(lambda x: (spy(x), x)[1])
    x = wnp.asarray(3.0)
    assert f(x).unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert seen() == [3.0]


def test_values_on_demand_call_nothing():
    def f(x):
        y = weft.jit(doubled)(x)
        z = loop(doubled)(y)
        spy(z)
        return z if y > 0 and z > 0 else y

    assert weft.grad(f)(1.0) == 16.0
    assert seen() == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_structures_that_keep_changing_are_called_once():
    def f(x, n):
        for _ in range(n):
            x = doubled(x)
        return x

    for n in range(1, 8):  # the later ones run op by op
        assert weft.grad(f)(1.0, n) == 2.0**n
        assert sorted(seen()) == [2.0**i for i in range(n)]  # unordered: any order will do


@both_ways
def test_backward_rules_see_cotangents(wrap):
    @weft.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (x * 2, x), lambda x, ct: (weft.debug.callback(note, x, ct), (ct * 2,))[1])
    wrap(weft.grad(lambda x: f(x) * 3))(5.0)
    assert seen() == [(5.0, 3.0)]
    wrap(weft.grad(loop(f)))(5.0)
    assert seen() == [(20.0, 1.0), (10.0, 2.0), (5.0, 4.0)]
    wrap(weft.grad(weft.checkpoint(lambda x: f(x) * 3)))(5.0)
    assert seen() == [(5.0, 3.0)]


# ---- vmap


@both_ways
def test_vmap_calls_per_element(wrap):
    np.testing.assert_array_equal(wrap(weft.vmap(doubled))(X), 2 * X)
    assert sorted(seen()) == [0.0, 1.0, 2.0]
    wrap(weft.vmap(weft.vmap(doubled)))(np.stack([X, X]))
    assert sorted(seen()) == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    wrap(weft.vmap(weft.grad(doubled)))(X)
    assert sorted(seen()) == [0.0, 1.0, 2.0]
    wrap(weft.grad(lambda x: weft.vmap(doubled)(x).sum()))(X)
    assert sorted(seen()) == [0.0, 1.0, 2.0]
    pair = lambda x, y: weft.debug.callback(note, y, x[0])
    wrap(weft.vmap(pair, in_axes=(1, None)))(X[None], 7.0)
    assert sorted(seen()) == [(7.0, 0.0), (7.0, 1.0), (7.0, 2.0)]
    wrap(weft.vmap(lambda x: (spy(9.0), x)[1]))(X)
    assert seen() == [9.0]
    wrap(weft.vmap(doubled))(X[:0])
    assert seen() == []


@both_ways
def test_vmap_of_ordered_calls(wrap):
    def f(x):
        spy(x, True)
        spy(9.0, True)
        return doubled(x + 10, True)

    wrap(weft.vmap(f))(X)
    assert seen() == [0.0, 1.0, 2.0, 9.0, 10.0, 11.0, 12.0]


def test_vmap_of_functions_with_none():
    f = weft.vmap(lambda x, y: {"x": x, "n": None, "y": y}, in_axes=(0, None))
    assert f(X, None)["y"] is None
    np.testing.assert_array_equal(f(X, None)["x"], X)


# ---- Order


def chain(x):
    """Ordered calls in all kinds of graphs, and what they note for 3.0."""
    spy(x, True)

    def body(i, c):
        spy(c, True)
        first = lambda c: doubled(c + 100, True)
        second = lambda c: weft.jit(lambda c: doubled(c + 200, True))(c)
        c = lax.cond(c > 50, first, second, c)
        spy(i, True)
        return c

    x = lax.fori_loop(0, 2, body, x)
    spy(-1.0, True)
    lax.scan(lambda _, y: (None, spy(y, True)), None, wnp.arange(3.0), reverse=True)
    return x


CHAIN = [3.0, 3.0, 203.0, 0.0, 406.0, 506.0, 1.0, -1.0, 2.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "wrap",
    [
        weft.jit,
        lambda f: f,
        weft.grad,
        lambda f: weft.jit(weft.grad(f)),
        lambda f: weft.grad(weft.jit(f)),
        weft.checkpoint,
        lambda f: weft.jit(lambda x: f(x) * 0 + x),
    ],
)
def test_ordered_calls_follow_the_program(wrap):
    for _ in range(3):
        wrap(chain)(3.0)
        assert seen() == CHAIN


def test_order_is_kept_by_tokens():
    text = weft.jit(chain).lower(3.0).as_text()
    weft.compiler.verify_stablehlo(text)
    assert text.count("stablehlo.create_token") == 1
    calls = [line for line in text.splitlines() if "python_cpu_callback" in line]
    assert len(calls) == 7
    assert all("!stablehlo.token) -> !stablehlo.token" in line for line in calls)
    # Each takes a token of its own, that of the one before it; both branches the same.
    taken = [line.split(") <{")[0].split(", ")[-1] for line in calls]
    assert len(set(taken)) == len(calls) - 1, taken
    text = weft.jit(watched_condition(lambda c: spy(c, True))).lower(1.0).as_text()
    weft.compiler.verify_stablehlo(text)


def test_other_programs_have_no_tokens():
    text = weft.jit(lambda x: loop(doubled)(x)).lower(1.0).as_text()
    weft.compiler.verify_stablehlo(text)
    assert "token" not in text and "has_side_effect = true" in text


def test_order_of_programs():
    big = np.ones(1 << 20, np.float32)
    slow = weft.jit(lambda x: spy(wnp.sin(x).sum() * 0, True))
    quick = weft.jit(lambda x: spy(x, True))
    for _ in range(5):
        slow(big)
        quick(1.0)
        spy(2.0, True)
    assert seen() == [0.0, 1.0, 2.0] * 5


def test_recorded_calls_are_not_overtaken():
    def f(x):
        spy(x, True)
        spy(7.0, True)
        weft.jit(lambda y: spy(y, True))(8.0)
        lax.cond(True, lambda: spy(9.0, True), lambda: None)
        spy(x + 1, True)
        return x

    weft.grad(f)(1.0)
    assert seen() == [1.0, 7.0, 8.0, 9.0, 2.0]


# ---- Programs


def compiles(f):
    before = weft._core.cache_stats()["compiles"]
    f()
    return weft._core.cache_stats()["compiles"] - before


def test_programs_are_shared_by_function():
    def program(callback, fmt, *static):
        def f(x):
            weft.debug.callback(callback, x, *static)
            weft.debug.print(fmt, x)
            return x * 3.75

        return lambda: weft.jit(f)(1.0)

    other_log = []
    other = lambda x, *rest: other_log.append((float(x), *rest))
    assert compiles(program(note, "{}")) == 1
    assert compiles(program(note, "{}")) == 0
    assert compiles(program(note, "{:.1f}")) == 1
    assert compiles(program(other, "{}")) == 1
    assert compiles(program(other, "{}", "a")) == 1
    assert compiles(program(other, "{}", "b")) == 1
    assert compiles(program(other, "{}", "a")) == 0
    assert seen() == [1.0] * 3
    assert other_log == [(1.0,), (1.0, "a"), (1.0, "b"), (1.0, "a")]


def test_what_cannot_be_hashed():
    class Unhashable:
        __hash__ = None

        def __init__(self, tag):
            self.tag = tag

        def __call__(self, x, other=None):
            LOG.append((self.tag, float(x), other))

    first, second = Unhashable("a"), Unhashable("b")
    f = weft.jit(lambda x: weft.debug.callback(first, x, other={"k": second}))
    f(1.0)
    weft.jit(lambda x: weft.debug.callback(second, x))(2.0)
    assert seen() == [("a", 1.0, {"k": second}), ("b", 2.0, None)]


def test_jaxprs_show_effects():
    jaxpr = weft.make_jaxpr(lambda x: (doubled(x), doubled(x, True)))(1.0)
    assert "debug_callback[callback=note ordered=True] a" in str(jaxpr)
    assert jaxpr.effects == {"unordered", "ordered"}
    assert weft.make_jaxpr(loop(doubled))(1.0).effects == {"unordered"}
    assert seen() == []


def test_arguments():
    got = []
    f = weft.jit(
        lambda x: weft.debug.callback(
            lambda pair, *, flag, name, nothing: got.append((pair, flag, name, nothing)),
            {"x": x, "n": 3},
            flag=True,
            name="net",
            nothing=None,
        )
    )
    f(X)
    weft.effects_barrier()
    [(pair, flag, name, nothing)] = got
    assert isinstance(pair["x"], weft.Array)
    np.testing.assert_array_equal(pair["x"], X)
    assert (int(pair["n"]), bool(flag), name, nothing) == (3, True, "net", None)


# ---- print


@both_ways
def test_print(wrap, capsys):
    wrap(lambda x: weft.debug.print("x={} {1:.2f} {s!r}".replace("{}", "{0}"), X, x, s="a"))(1.5)
    wrap(lambda x: weft.debug.print("{} {k[n]} {{}} {:{w}d}", x, 3, k={"n": 2}, w=4))(1.5)
    wrap(lambda x: weft.debug.print(ordered=True)("{x.shape}", x=x))(X)
    wrap(lambda: weft.debug.print("nothing"))()
    wrap(lambda x: weft.debug.print("{!r} {!r:>40}", [x], x.astype("bfloat16")))(X)
    weft.effects_barrier()
    lines = capsys.readouterr().out.splitlines()
    reprs = "[Array([0., 1., 2.], dtype=float32)]         Array([0, 1, 2], dtype=bfloat16)"
    assert sorted(lines) == sorted(
        ["x=[0. 1. 2.] 1.50 'a'", "1.5 2 {}    3", "(3,)", "nothing", reprs]
    )


@both_ways
def test_print_keeps_the_options_of_numpy(wrap, capsys):
    def f(x):
        with np.printoptions(precision=2, suppress=True):
            weft.debug.print("{}", x)
        weft.debug.print("{}", x)

    wrap(f)(np.float32([1.2345, 1e-7]))
    weft.effects_barrier()
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "[1.23 0.  ]",
        "[1.2345e+00 1.0000e-07]",
    ]


def test_print_checks_the_format(capsys):
    for f in (weft.debug.print, weft.jit(weft.debug.print, static_argnums=0)):
        with pytest.raises(ValueError, match="leaves out 0(.|\n)*An f-string"):
            f("a", 1.0)
        with pytest.raises(IndexError, match=r"expected an argument for \{1\}; got 1 by position"):
            f("{} {}", 1.0)
        with pytest.raises(ValueError, match="a text for str.format; got '{'"):
            f("{", 1.0)
        with pytest.raises(TypeError, match="expected a format string; got 3"):
            f(3, 1.0)
    with pytest.raises(KeyError, match=r"\{x\}; got 0 by position, and by name y"):
        weft.debug.print("{x}", y=1.0)
    with pytest.raises(ValueError, match="leaves out 'y'"):
        weft.debug.print("{x}", x=1, y=1.0)
    weft.debug.print("a", 1.0, skip_format_check=True)
    assert capsys.readouterr().out == "a\n"


def test_options_first():
    weft.jit(lambda x: weft.debug.callback(ordered=True)(note, x))(2.0)
    assert seen() == [2.0]
    with pytest.raises(TypeError, match="expected a first argument"):
        weft.debug.callback(None, 1.0)
    with pytest.raises(TypeError, match="expected a first argument"):
        weft.debug.print(x=1.0)
    with pytest.raises(TypeError, match="expected a function; got 3"):
        weft.debug.callback(3, 1.0)


# ---- Errors


def fails(x):
    raise ValueError(f"no {float(x)}")


def test_errors_of_callbacks():
    with pytest.raises(ValueError, match=r"no 1\.0"):
        weft.debug.callback(fails, 1.0)
    f = weft.jit(lambda x: (weft.debug.callback(fails, x), x + 1)[1])
    for _ in range(3):
        with pytest.raises(ValueError, match=r"^no 1\.0$") as caught:
            f(1.0)
            weft.effects_barrier()
        assert caught.traceback[-1].name == "fails"
    weft.effects_barrier()  # each error is raised once
    assert weft.jit(lambda x: x + 1)(1.0) == 2.0


def test_errors_do_not_get_lost_among_others():
    big = np.ones(1 << 22, np.float32)
    slow = weft.jit(lambda x: weft.debug.callback(fails, wnp.sin(x).sum() * 0))
    with pytest.raises(ValueError, match="^no 0"):
        slow(big)
        weft.jit(spy)(1.0)
        weft.effects_barrier()
    weft.effects_barrier()


def test_a_callback_cannot_wait_for_itself():
    f = weft.jit(lambda x: weft.debug.callback(lambda x: weft.effects_barrier(), x))
    with pytest.raises(RuntimeError, match="expected to be called by the program that waits"):
        f(1.0)
        weft.effects_barrier()
    # What calls it in turn may call programs, with effects too.
    inner = weft.jit(doubled)

    def outer(x):
        note(inner(float(x)) + 1)
        spy(9.0, True)

    weft.jit(lambda x: weft.debug.callback(outer, x))(1.0)
    assert seen() == [1.0, 3.0, 9.0]


def test_computations_of_reductions_have_no_effects():
    f = lambda x: lax.reduce(x, np.float32(0), lambda a, b: doubled(a) * b, (0,))
    with pytest.raises(errors.NotImplementedRuleError, match="a graph without effects") as e:
        weft.jit(f)(X)
    assert __file__ in str(e.value)


def test_other_platforms():
    graph = weft.jit(doubled).trace(1.0).graph
    with pytest.raises(errors.NotImplementedRuleError, match="platform cpu"):
        weft._core.emit_stablehlo(graph, platform="cuda")


def test_many_runs_that_nobody_waits_for():
    f = weft.jit(lambda x: spy(x))
    for i in range(300):
        f(float(i))
    assert seen() == [float(i) for i in range(300)]


def test_threads():
    f = weft.jit(lambda x: loop(lambda c: doubled(c, True))(x))
    threads = [threading.Thread(target=lambda: [f(1.0) for _ in range(20)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(seen()) == sorted([1.0, 2.0, 4.0] * 80)


def run_script(code):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )


def test_the_end_of_the_process_waits():
    code = """
        import time
        import numpy as np, weft, weft.numpy as wnp

        def late(x):
            time.sleep(0.2)
            print("late", int(x), flush=True)

        f = weft.jit(lambda x: weft.debug.callback(late, wnp.sin(x).max() * 0))
        for _ in range(3):
            f(np.ones(1 << 22, np.float32))
    """
    run = run_script(code)
    assert (run.returncode, run.stdout) == (0, "late 0\n" * 3), run.stderr


def test_the_end_of_the_process_shows_errors():
    code = """
        import numpy as np, weft, weft.numpy as wnp

        def fails(x):
            raise ValueError("never seen")

        f = weft.jit(lambda x: weft.debug.callback(fails, wnp.sin(x).max() * 0))
        f(np.ones(1 << 22, np.float32))
    """
    run = run_script(code)
    assert "ValueError: never seen" in run.stderr
    assert run.returncode in (0, 1)


# ---- io_callback


class Counter:
    def __init__(self):
        self.n = 0

    def __call__(self, *_):
        self.n += 1
        return np.float32(self.n)


@both_orders
@both_ways
def test_io_callback(wrap, ordered):
    count = Counter()
    read = lambda *xs: io_callback(count, F32, *xs, ordered=ordered)
    first, second = wrap(lambda: (read(), read()))()
    assert {float(first), float(second)} == {1.0, 2.0}
    assert not ordered or first == 1.0
    wrap(lambda: (read(), None)[1])()
    weft.effects_barrier()
    assert count.n == 3
    got = wrap(lambda: lax.scan(lambda c, _: (c, read()), 0, None, length=4)[1])()
    np.testing.assert_array_equal(got, [4.0, 5.0, 6.0, 7.0])
    with pytest.raises((RuntimeError, errors.CallbackError), match=r"as promised; got int8\[2\]"):
        wrap(lambda: io_callback(lambda: np.zeros(2, np.int8), F32, ordered=ordered))()
        weft.effects_barrier()


def test_io_callback_under_transforms():
    count = Counter()
    got = weft.vmap(lambda x: io_callback(lambda x: x + 1, F32, x))(X)
    np.testing.assert_array_equal(got, X + 1)
    with pytest.raises(errors.NotImplementedRuleError, match="expected ordered=False"):
        weft.vmap(lambda x: io_callback(note, F32, x, ordered=True))(X)
    with pytest.raises(errors.NotImplementedRuleError, match="no derivative"):
        weft.grad(lambda x: io_callback(note, F32, x))(1.0)
    f = lambda x: lax.scan(lambda c, _: (c * io_callback(count, F32), None), x, X)[0]
    for wrap in (lambda f: f, weft.jit, weft.checkpoint):
        count.n = 0
        assert weft.grad(wrap(f))(1.0) == 6.0
        assert count.n == 3
    count.n = 0
    assert weft.grad(weft.checkpoint(lambda x: (x * io_callback(count, F32)) ** 2))(1.0) == 2.0
    assert count.n == 1
    loop = lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * io_callback(count, F32), x)
    with pytest.raises(errors.NotImplementedRuleError, match="to be computed once"):
        weft.linearize(loop, 1.0)


CHOSEN_BY_LANES = {
    "cond": lambda io, x: lax.cond(x > 1, io, lambda x: x, x),
    "cond, one value for all": lambda io, x: lax.cond(x > 1, lambda: io(2.0), lambda: 0.0),
    "cond, in a call": lambda io, x: lax.cond(x > 1, weft.jit(io), lambda x: x, x),
    "cond in cond": lambda io, x: lax.cond(
        x > 1, lambda x: lax.cond(True, io, wnp.sin, x), lambda x: x, x
    ),
    "switch": lambda io, x: lax.switch(x.astype(int), [wnp.sin, io, io], x),
    "while": lambda io, x: lax.while_loop(lambda c: c < 3, lambda c: io(c) + 1, x),
    "while, condition": lambda io, x: lax.while_loop(lambda c: io(c) < 3, lambda c: c + 1, x),
    "fori": lambda io, x: lax.fori_loop(0, x.astype(int), lambda i, c: io(c), 1.0),
    "max_steps": lambda io, x: lax.while_loop(lambda c: c < 3, lambda c: io(c) + 1, x, max_steps=5),
    "scan": lambda io, x: lax.scan(
        lambda c, _: (lax.cond(c > 1, io, wnp.sin, c) + 1, None), x, length=2
    )[0],
}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", CHOSEN_BY_LANES)
def test_io_callback_runs_for_no_lane_that_did_not_choose_it(name, ordered):
    calls = []

    def io(x):
        return io_callback(lambda x: (calls.append(0), x)[1], F32, x, ordered=ordered)

    f = lambda x: CHOSEN_BY_LANES[name](io, x)
    twice = lambda x: weft.vmap(weft.vmap(f))(x[None])
    for mapped in (weft.vmap(f), weft.jit(weft.vmap(f)), twice):
        with pytest.raises(errors.NotImplementedRuleError) as caught:
            mapped(X)
        assert "test_debug.py" in str(caught.value)
    assert not calls
    # One lane after the other, each gets what the function alone gives.
    np.testing.assert_allclose(lax.map(f, X), [f(x) for x in X])


@both_ways
def test_io_callback_in_what_all_lanes_choose(wrap):
    calls = []
    io = lambda x: io_callback(lambda x: (calls.append(float(x)), x)[1], F32, x)
    f = lambda p, x: lax.cond(p, io, wnp.sin, x)
    np.testing.assert_array_equal(wrap(weft.vmap(f, (None, 0)))(True, X), X)
    weft.effects_barrier()
    assert sorted(calls) == list(X)
    loop = lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, io(c[1])), (0, x))[1]
    np.testing.assert_array_equal(wrap(weft.vmap(loop))(X), X)
    weft.effects_barrier()
    assert sorted(calls) == sorted([*X, *X, *X])


def test_io_callback_of_a_recorded_value():
    def f(x):
        y = io_callback(lambda x: x, F32, lax.stop_gradient(x))
        return x * 2 if y > 0 else x

    with pytest.raises(errors.ConcretizationTypeError):
        weft.grad(f)(1.0)


# ---- As jax

ORACLE = """
import numpy as np
import {lib} as jax
import {lib}.numpy as jnp
from {lib} import lax

out = []
note = lambda *xs: out.append([float(x) for x in xs])
spy = lambda *xs, **options: jax.debug.callback(note, *xs, **options)
double = lambda x: (spy(x), x * 2)[1]
X = np.arange(3, dtype=np.float32)
cases = [
    lambda: jax.jit(double)(1.0),
    lambda: jax.grad(double)(1.0),
    lambda: jax.jit(jax.grad(double))(1.0),
    lambda: jax.vmap(double)(X),
    lambda: jax.vmap(lambda x: (spy(2.0), x)[1])(X),
    lambda: jax.vmap(lambda x, y: spy(y, x), in_axes=(0, None))(X, 4.0),
    lambda: jax.vmap(lambda x: lax.cond(x > 0, double, lambda x: x, x))(X),
    lambda: jax.vmap(lambda x: lax.while_loop(lambda c: c < 2, lambda c: double(c) + 1, x))(X),
    lambda: jax.jit(lambda x: lax.scan(lambda c, x: (double(c), x), x, None, length=3))(1.0),
    lambda: jax.grad(lambda x: lax.scan(lambda c, _: (double(c), 0), x, None, length=3)[0])(1.0),
    lambda: jax.jvp(lambda x: lax.while_loop(lambda c: c < 9, double, x), (1.0,), (1.0,)),
    lambda: jax.jit(lambda x: lax.cond(x > 0, double, lambda x: x, x))(1.0),
    lambda: jax.jacfwd(lambda x: double(x) * x)(2.0),
    lambda: jax.jit(lambda x: (spy(x, ordered=True), spy(x + 1, ordered=True)))(1.0),
    lambda: jax.vmap(lambda x: spy(x, ordered=True))(X),
]
for case in cases:
    out.clear()
    try:
        case()
        jax.effects_barrier()
        print(sorted(out))
    except Exception:
        print("error")
"""


@needs_jax
@pytest.mark.oracle
def test_calls_are_those_of_jax():
    def printed(libs):
        ran = [run_script(ORACLE.format(lib=lib)) for lib in libs]
        assert not any(done.returncode for done in ran), ran
        return [done.stdout.splitlines() for done in ran]

    assert printed(["weft"]) == kept_answers.answers(ORACLE, ["jax"], printed)


def at_breakpoint(commands, function, *args):
    """What a prompt shows for some commands, and the result."""
    given, shown = io.StringIO("\n".join(commands) + "\n"), io.StringIO()
    stop = functools.partial(weft.debug.breakpoint, stdin=given, stdout=shown)
    result = function(stop, *args)
    weft.effects_barrier()
    return result, [line for text in shown.getvalue().split("(weft) ") for line in text.split("\n")]


def test_breakpoint():
    def stopped(stop, x):
        held = {"sine": wnp.sin(x), "name": "b"}
        stop(backend="cli", ordered=True)
        return held["sine"]

    def outer(stop, x):
        last = x * 3
        return wnp.sum(stopped(stop, x) + last)

    commands = ["p x", "x + 1", "pp held", "no_name", "", "l", "u", "p last", "u", "d", "d", "d"]

    def through(wrap):
        def program(stop, x):
            return wrap(lambda x: outer(stop, x))(x)

        return at_breakpoint([*commands, "bt", "h", "c"], program, 2.0)[1]

    for wrap in (weft.jit, weft.grad, lambda f: f):
        shown = through(wrap)
        text = "\n".join(shown)
        assert "0.909297" in text and "'name': 'b'" in text and "6." in text
        assert "*** NameError: name 'no_name' is not defined" in shown
        assert any(line.startswith("->") and "stop(backend=" in line for line in shown)
        assert any(line.startswith("->") and "stopped(stop, x) + last" in line for line in shown)
        assert "At bottommost frame." in shown
        assert any("continue" in line for line in shown) and " stopped" in text
    assert shown.count("At topmost frame.") == 0
    result, shown = at_breakpoint(["u", "p x"], lambda stop, x: stop(token=x, num_frames=1), 4.0)
    assert result == 4.0 and "At topmost frame." in shown and "4.0" in shown
    looped = weft.jit(
        lambda stop, x: lax.fori_loop(0, 2, lambda i, c: stop(token=c) + x, x), static_argnums=0
    )
    result, shown = at_breakpoint(["p c", "c", "p (c, x)", "c"], looped, 1.0)
    assert result == 3.0 and "Array(1., dtype=float32)" in shown and "Array(2." in "".join(shown)
    with pytest.raises(bdb.BdbQuit, match="ended at a breakpoint"):
        at_breakpoint(["q"], lambda stop, x: weft.jit(lambda x: (stop(), x)[1])(x), 1.0)


def test_arguments_of_breakpoint():
    with pytest.raises(ValueError, match="'cli' as backend; got 'web'"):
        weft.debug.breakpoint(backend="web")
    with pytest.raises(TypeError, match="stdin and stdout as options"):
        weft.debug.breakpoint(output=None)


@pytest.mark.parametrize(
    "program, times",
    [
        (lambda f: weft.jit(lambda x: (f(x), x)[1])(1.0), 1),
        (lambda f: weft.jit(lambda x: weft.jit(f)(x))(1.0), 1),
        (lambda f: weft.jit(weft.grad(lambda x: (f(x), x * x)[1]))(1.0), 1),
        (lambda f: weft.jvp(lambda x: f(x) * x, (1.0,), (1.0,)), 1),
        (lambda f: weft.jit(lambda x: weft.jvp(f, (x,), (x,)))(1.0), 1),
        (lambda f: weft.jit(weft.vmap(lambda x: (f(x), x)[1]))(wnp.ones(3)), 10),
        (lambda f: weft.vmap(lambda x: weft.jvp(f, (x,), (x,)))(wnp.ones(3)), 10),
        (lambda f: weft.jit(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 4)[0])(1.0), 4),
    ],
)
def test_callbacks_of_a_custom_vmap_function_run_once(program, times):
    """Whether its result is used or not, and once for a value and its tangent."""
    calls = []

    @weft.custom_batching.custom_vmap
    def f(x):
        weft.debug.callback(lambda _: calls.append(1), x)
        return x * 2

    @f.def_vmap
    def of_many(size, mapped, x):
        weft.debug.callback(lambda _: calls.append(10), x)
        return x * 2, True

    program(f)
    weft.effects_barrier()
    assert sum(calls) == times
