"""Rules of users at later calls of un-jitted derivatives: when they are traced again."""

import functools
import gc
import random
import types
import weakref

import numpy as np
import pytest

import weft
import weft.numpy as wnp

module = types.ModuleType("settings")
module.scale = 2.0
factor = 2.0
table = {"scale": 2.0}


def helper(ct):
    return deeper(ct)


def deeper(ct):
    return ct * factor


class Settings:
    scale = 2.0


def with_rule(bwd, fun=lambda x: x * 1.0):
    f = weft.custom_vjp(fun)
    f.defvjp(lambda x: (fun(x), None), bwd)
    return f


def changing_closure():
    scale = 2.0

    def change():
        nonlocal scale
        scale = 3.0

    return lambda _, ct: (ct * scale,), change


def changing_list():
    scale = [2.0]
    return lambda _, ct: (ct * scale[0],), lambda: scale.__setitem__(0, 3.0)


def changing_dict():
    scale = {"a": {"b": 2.0}}
    return lambda _, ct: (ct * scale["a"]["b"],), lambda: scale["a"].update(b=3.0)


def changing_global():
    return lambda _, ct: (ct * factor,), lambda: globals().update(factor=3.0)


def changing_global_of_a_helper():
    return lambda _, ct: (helper(ct),), lambda: globals().update(factor=3.0)


def changing_helper():
    def change():
        globals()["deeper"] = lambda ct: ct * 3.0

    return lambda _, ct: (helper(ct),), change


def changing_module():
    return lambda _, ct: (ct * module.scale,), lambda: setattr(module, "scale", 3.0)


def changing_class():
    return lambda _, ct: (ct * Settings.scale,), lambda: setattr(Settings, "scale", 3.0)


def changing_instance():
    settings = Settings()
    return lambda _, ct: (ct * settings.scale,), lambda: setattr(settings, "scale", 3.0)


def changing_default():
    def bwd(_, ct, scale=2.0):
        return (ct * scale,)

    return lambda r, ct: bwd(r, ct), lambda: setattr(bwd, "__defaults__", (3.0,))


def changing_getattr():
    settings = Settings()
    return (
        lambda _, ct: (ct * getattr(settings, "sc" + "ale"),),
        lambda: setattr(settings, "scale", 3.0),
    )


def changing_method():
    class Model:
        def __init__(self):
            self.parts = [Settings()]

        def bwd(self, _, ct):
            return (ct * self.parts[0].scale,)

    model = Model()
    return model.bwd, lambda: setattr(model.parts[0], "scale", 3.0)


def changing_property():
    class Model:
        value = 2.0

        @property
        def scale(self):
            return self.value

    model = Model()
    return lambda _, ct: (ct * model.scale,), lambda: setattr(model, "value", 3.0)


def changing_numpy_array():
    scale = np.full(1, 2.0, np.float32)
    return lambda _, ct: (ct * scale[0],), lambda: scale.fill(3.0)


def changing_large_numpy_array():
    scale = np.full(100_000, 2.0, np.float32)
    return lambda _, ct: (ct * scale[0],), lambda: scale.fill(3.0)


def changing_array():
    scale = wnp.float32(2.0) + 0

    def change():
        nonlocal scale
        scale = scale + 1

    return lambda _, ct: (ct * scale,), change


def changing_partial():
    scale = [2.0]
    return functools.partial(lambda s, _, ct: (ct * s[0],), scale), lambda: scale.append(
        scale.pop() + 1
    )


def changing_generator():
    values = iter([2.0, 3.0, 4.0])
    return lambda _, ct: (ct * next(values),), lambda: None


def changing_inner_rule():
    scale = [2.0]
    inner = with_rule(lambda _, ct: (ct * scale[0],))
    outer = lambda _, ct: (weft.grad(inner)(1.0) * ct,)
    return outer, lambda: inner.defvjp(lambda x: (x, None), lambda _, ct: (ct * 3.0,))


CHANGES = [f for name, f in list(globals().items()) if name.startswith("changing_")]


@pytest.fixture(autouse=True)
def same_globals():
    saved = dict(globals())
    yield
    globals().update(saved)
    module.scale = Settings.scale = 2.0


@pytest.mark.parametrize("kind", ["vjp", "jvp"])
@pytest.mark.parametrize("make", CHANGES, ids=lambda f: f.__name__)
def test_what_a_rule_reads_has_changed(make, kind):
    bwd, change = make()
    if kind == "vjp":
        f = with_rule(bwd)
    else:
        f = weft.custom_jvp(lambda x: x * 1.0)
        f.defjvp(lambda p, t: (p[0] * 1.0, bwd(None, t[0])[0]))
    if make is not changing_generator:
        assert [float(weft.grad(f)(1.0)) for _ in range(3)] == [2, 2, 2]
        change()
        assert [float(weft.grad(f)(1.0)) for _ in range(3)] == [3, 3, 3]
    else:
        assert [float(weft.grad(f)(1.0)) for _ in range(3)] == [2, 3, 4]


def test_rules_are_traced_once():
    calls, count = [], 0

    @weft.custom_vjp
    def f(x, y):
        return wnp.sin(x) * y["w"]

    def fwd(x, y):
        nonlocal count
        count += 1
        calls.append("fwd")
        return f(x, y), (x, y)

    def bwd(res, ct):
        calls.append("bwd")
        return 5 * ct * res[0], {"w": ct}

    f.defvjp(fwd, bwd)

    def loss(x, y):
        return wnp.sum(f(x, y) * 2)

    for i in range(5):
        x = np.full(3, i, np.float32)
        gradient = weft.grad(loss)(x, {"w": x})
        np.testing.assert_allclose(gradient, 10 * x)
    assert calls == ["fwd", "bwd"] and count == 1
    weft.grad(loss)(np.ones(4, np.float32), {"w": np.ones(4, np.float32)})  # another type
    assert len(calls) == 4
    for i in range(3):
        value, gradients = weft.value_and_grad(loss, argnums=(0, 1))(x, {"w": x + i})
        np.testing.assert_allclose(gradients[1]["w"], [2, 2, 2])
        np.testing.assert_allclose(value, (np.sin(x) * (x + i)).sum() * 2, rtol=1e-5)
    assert len(calls) == 6


def test_rules_of_several_functions_and_within_others():
    traced = []

    def make(scale):
        f = weft.custom_jvp(lambda x: x * 1.0)

        @f.defjvp
        def rule(primals, tangents):
            traced.append(scale)
            return f(*primals), tangents[0] * scale

        return f

    f, g = make(2.0), make(3.0)
    inner = weft.jit(lambda x: g(x) + f(x))

    def h(x):
        return weft.lax.cond(x > 0, lambda x: f(g(x)), lambda x: g(x) * 7, x) + inner(x)

    for _ in range(3):
        assert float(weft.grad(h)(1.0)) == 11 and float(weft.grad(h)(-1.0)) == 26
        assert float(weft.jvp(h, (1.0,), (1.0,))[1]) == 11
    once = len(traced)
    for _ in range(3):
        assert float(weft.grad(h)(1.0)) == 11 and float(weft.grad(h)(-1.0)) == 26
    assert len(traced) == once


def test_derivatives_of_derivatives_and_batches():
    f = weft.custom_vjp(lambda x: x**3)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (3 * x**2 * ct,))
    for x in (1.0, 2.0, 3.0):
        assert float(weft.grad(f)(x)) == 3 * x**2
        assert float(weft.grad(weft.grad(f))(x)) == 6 * x
        assert float(weft.jit(weft.grad(f))(x)) == 3 * x**2
    np.testing.assert_allclose(weft.vmap(weft.grad(f))(np.arange(3.0)), [0, 3, 12])
    loss = weft.grad(lambda v: wnp.sum(weft.vmap(f)(v)))
    for _ in range(2):
        np.testing.assert_allclose(loss(np.arange(3.0)), [0, 3, 12])


def test_nondiff_values_and_settings_are_part_of_the_key():
    seen = []
    f = weft.custom_vjp(lambda n, x: x * 1.0, nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (x * 1.0, None), lambda n, _, ct: (seen.append(repr(n)) or ct * (n + 1),))
    for n in (1, True, 1.0, 0.0, -0.0, 1, True, 1.0, 0.0, -0.0):
        assert float(weft.grad(lambda x, n=n: f(n, x))(1.0)) == n + 1
    assert sorted(seen) == sorted(["1", "True", "1.0", "0.0", "-0.0"])
    model = Settings()
    for scale in (2.0, 3.0):
        model.scale = scale
        g = weft.custom_vjp(lambda m, x: x * 1.0, nondiff_argnums=(0,))
        g.defvjp(lambda m, x: (x * 1.0, None), lambda m, _, ct: (ct * m.scale,))
        assert float(weft.grad(lambda x: g(model, x))(1.0)) == scale  # noqa: B023


def test_random_numbers_of_python_are_drawn_at_each_call():
    f = with_rule(lambda _, ct: (ct * random.random(),))
    g = with_rule(lambda _, ct: (ct * np.random.rand(),))
    for h in (f, g):
        assert len({float(weft.grad(h)(1.0)) for _ in range(5)}) == 5


def test_what_rules_hold_is_freed_after_several_calls():
    def run():
        values = wnp.arange(4.0)

        @weft.custom_vjp
        def f(x):
            return x * values.sum()

        def fwd(x):
            return f(x), values

        f.defvjp(fwd, lambda res, ct: (ct * res.sum() * values[1],))
        loss = lambda x: f(x) * 2
        for x in (1.0, 2.0):
            assert float(weft.grad(loss)(x)) == 12
        return weakref.ref(values), weakref.ref(f)

    refs = run()
    gc.collect()
    assert [r() for r in refs] == [None, None]


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_a_rule_holds_no_values_of_the_trace(kind, monkeypatch):
    """Else a trace outlives its call, and its arguments are named for messages at every call."""
    f = getattr(weft, kind)(lambda p: p["a"] * 2.0)
    if kind == "custom_jvp":
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]["a"] * 2.0))
    else:
        f.defvjp(lambda p: (f(p), None), lambda _, ct: ({"a": ct * 2.0},))
    named = []
    monkeypatch.setattr("weft._autodiff.name_argument", lambda *args: named.append(args) or "x")
    for _ in range(3):
        assert float(weft.grad(f)({"a": 3.0})["a"]) == 2.0
    assert not named
