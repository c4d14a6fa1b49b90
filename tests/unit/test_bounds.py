"""Every table of the process keeps to its limit, and nothing depends on what it has dropped."""

import functools
import gc
import weakref

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _core

LIMIT = 2


def some_shape(i):
    return np.zeros((i + 1, 3), np.float32) + i


def jit_with_callback(x, i):
    return weft.jit(lambda v: weft.pure_callback(lambda a: a + np.float32(i), v, v))(x)


def run(source, x, i):
    """Runs a line, as line i of a program."""
    exec("\n" * i + source, {"weft": weft, "wnp": wnp, "x": x, "i": i})


DTYPES = ("int8", "int16", "uint8", "uint16", "float16")  # one handler serves arrays of a dtype
# What makes an entry of each table; the second argument is a number that is new each time.
FILLS = {
    "avals": lambda x, i: wnp.asarray(some_shape(i)),
    "scalars": lambda x, i: x[0] * (i + 0.5),
    "result_handlers": lambda x, i: weft.jit(lambda v: v.astype(DTYPES[i % len(DTYPES)]))(x),
    "executables": lambda x, i: weft.jit(lambda v: v * (i + 2))(x),
    "executables_with_host_calls": jit_with_callback,
    "entries_holding_objects": jit_with_callback,
    "structures_by_place": functools.partial(run, "weft.grad(lambda v: (v * (i + 0.5)).sum())(x)"),
    "eager_programs": lambda x, i: weft.lax.broadcast(x, (i,)),
    "shaped_arrays": lambda x, i: weft.make_jaxpr(wnp.sin)(some_shape(i)).in_avals,
    "code_objects": functools.partial(run, "weft.make_jaxpr(lambda v: v + i)(x)"),
    "traced_code": functools.partial(run, "weft.jit(lambda v: v + i)(x)"),
    "recorded_graphs": lambda x, i: weft.grad(lambda v: (v * (i + 1)).sum())(x),
    "layouts": lambda x, i: weft.grad(lambda t: t[f"k{i}"].sum())({f"k{i}": x}),
}


@pytest.fixture
def limited():
    """Sets the limit of a table; all are as before at the end."""
    x = wnp.arange(3.0)
    for i, fill in enumerate(FILLS.values()):
        fill(x, i)
    before = {name: limit for name, (_, limit) in _core.tables().items()}
    yield _core.limit_table
    for name, limit in before.items():
        _core.limit_table(name, limit)


def test_every_table_has_a_way_to_fill_it(limited):
    assert set(_core.tables()) == set(FILLS)
    with pytest.raises(ValueError, match="expected a table"):
        _core.limit_table("no table", 1)


def test_tables_keep_to_their_limits(limited):
    x = wnp.arange(3.0)
    for name, fill in FILLS.items():
        limited(name, LIMIT)
        for i in range(100, 100 + 2 * LIMIT):
            fill(x, i)
            size, limit = _core.tables()[name]
            assert size <= limit == LIMIT, name
        assert size == LIMIT, name


def test_nothing_depends_on_what_tables_have_dropped(limited):
    for name in FILLS:
        limited(name, 1)

    @weft.custom_vjp
    def f(x):
        return wnp.sin(x)

    f.defvjp(lambda x: (f(x), wnp.cos(x)), lambda c, g: (2 * c * g,))
    jitted = weft.jit(
        lambda t: {"a": f(t["a"]) * 2, "b": weft.pure_callback(np.cos, t["b"], t["b"])}
    )
    for _ in range(2):
        for n in (2, 3):
            x = np.arange(n, dtype=np.float32)
            np.testing.assert_allclose(weft.grad(lambda v: f(v).sum())(x), 2 * np.cos(x), rtol=1e-6)
            out = jitted({"a": x, "b": x})
            np.testing.assert_allclose(out["a"], 2 * np.sin(x), rtol=1e-6)
            np.testing.assert_allclose(out["b"], np.cos(x), rtol=1e-6)
            np.testing.assert_allclose(wnp.asarray(x)[::-1] + 1.5, x[::-1] + 1.5)
            value, pull = weft.vjp(lambda t: t["a"] * t["b"], {"a": x, "b": x})
            np.testing.assert_allclose(pull(value)[0]["a"], x**3, rtol=1e-6)


class Held:
    pass


@pytest.mark.parametrize("kind", ["callback", "rule"])
def test_functions_in_cycles_through_their_own_programs_are_bounded(kind):
    """The collector does not see what graphs hold of users'."""
    limit = _core.tables().get("entries_holding_objects", (0, 256))[1]
    alive = weakref.WeakSet()

    def make():
        held = Held()
        alive.add(held)

        def host(x):
            return (jitted, held, x)[2]

        if kind == "callback":
            jitted = weft.jit(lambda x: weft.pure_callback(host, x, x))
        else:
            rule = weft.custom_jvp(lambda x: host(x) * 1.0)
            rule.defjvp(lambda p, t: (rule(*p), host(t[0]) * 3.0))
            jitted = weft.jit(lambda x: rule(x))
        jitted.eval_shape(1.0)
        return jitted

    first = make()
    assert float(first(2.0)) == 2.0
    for _ in range(limit + 50):
        make()
    gc.collect()
    assert len(alive) <= limit + 2
    # One whose entry was dropped is traced again.
    assert first.cache_info().currsize == 0
    assert float(first(2.0)) == 2.0
    if kind == "rule":
        assert float(weft.grad(first)(2.0)) == 3.0
