"""Rules of users at later calls of un-jitted derivatives: they run at each, as they are then."""

import contextlib
import functools
import gc
import random
import sys
import types
import weakref

import numpy as np
import pytest
from conftest import EVERYTHING
from readable_things import HEAD, THINGS, WAYS, restore

import weft
import weft.numpy as wnp
from weft.compiler import cache_stats

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


def changing_keyword_default():
    def bwd(_, ct, *, scale=2.0):
        return (ct * scale,)

    return lambda r, ct: bwd(r, ct), lambda: bwd.__kwdefaults__.update(scale=3.0)


def changing_code():
    def bwd(_, ct):
        return (ct * 2.0,)

    return bwd, lambda: setattr(bwd, "__code__", (lambda _, ct: (ct * 3.0,)).__code__)


def changing_function_attribute():
    def bwd(_, ct):
        return (ct * bwd.scale,)

    bwd.scale = 2.0
    return bwd, lambda: setattr(bwd, "scale", 3.0)


def changing_subclass():
    class Own(Settings):
        pass

    return lambda _, ct: (ct * Own.scale,), lambda: setattr(Own, "scale", 3.0)


def changing_module_imported_in_the_rule():
    def bwd(_, ct):
        import late_settings

        return (ct * late_settings.scale,)

    return bwd, lambda: setattr(sys.modules["late_settings"], "scale", 3.0)


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
def same_globals(tmp_path, monkeypatch):
    (tmp_path / "late_settings.py").write_text("scale = 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("late_settings", None)
    saved = dict(globals())
    yield
    globals().update(saved)
    module.scale = Settings.scale = 2.0


def pulled(f, x):
    value, pull = weft.vjp(f, x)
    return pull(value)[0]


def mapped(f, x):
    return weft.vmap(weft.grad(f))(wnp.stack([x, x]))[1]


def pushed(f, x):
    return weft.linearize(f, x)[1](1.0)


SLOPES = {"grad": weft.grad, "pulled": pulled, "jvp": "jvp", "mapped": mapped, "pushed": pushed}


@pytest.mark.parametrize(
    ("make", "slope"),
    [
        pytest.param(make, SLOPES[slope], id=f"{make.__name__}-{slope}")
        for i, make in enumerate(CHANGES)
        for k, slope in enumerate(SLOPES)
        if EVERYTHING or k < 2 or i % 4 == k - 2
    ],
)
def test_what_a_rule_reads_has_changed(make, slope):
    bwd, change = make()
    if slope in ("jvp", pushed):
        f = weft.custom_jvp(lambda x: x * 1.0)
        f.defjvp(lambda p, t: (p[0] * 1.0, bwd(None, t[0])[0]))
    else:
        f = with_rule(bwd)
    if slope in (weft.grad, "jvp"):
        take = lambda: float(weft.grad(f)(1.0))
    else:
        take = lambda: float(slope(f, 1.0))
    if make is not changing_generator:
        assert [take() for _ in range(3)] == [2, 2, 2]
        change()
        assert [take() for _ in range(3)] == [3, 3, 3]
    else:
        assert [take() for _ in range(3)] == [2, 3, 4]


@pytest.mark.parametrize("calls_before", [0, 1, 2])
def test_the_backward_rule_that_counts_is_that_of_the_call_of_vjps_result(calls_before):
    scale = 2.0
    f = with_rule(lambda _, ct: (ct * scale,))
    for _ in range(calls_before):
        assert float(pulled(f, 1.0)) == 2
    _, pull = weft.vjp(f, 1.0)
    scale = 3.0
    assert float(pull(1.0)[0]) == 3
    assert float(pulled(f, 1.0)) == 3


def test_a_rule_runs_at_each_call_of_every_transform():
    fwds = bwds = jvps = 0

    @weft.custom_vjp
    def f(x):
        return wnp.sin(x)

    def fwd(x):
        nonlocal fwds
        fwds += 1
        return wnp.sin(x), wnp.cos(x)

    def bwd(cos, ct):
        nonlocal bwds
        bwds += 1
        return (5 * cos * ct,)

    f.defvjp(fwd, bwd)
    g = weft.custom_jvp(lambda x: wnp.sin(x))

    @g.defjvp
    def rule(primals, tangents):
        nonlocal jvps
        jvps += 1
        return g(*primals), 5 * wnp.cos(*primals) * tangents[0]

    x = wnp.arange(3.0)
    expected = 5 * np.cos(np.arange(3.0))
    basis = wnp.eye(3)
    for slope in (
        lambda f: weft.vjp(f, x)[1](wnp.ones(3))[0],
        lambda f: weft.vjp(lambda x: (f(x), x + 1), x, has_aux=True)[1](wnp.ones(3))[0],
        lambda f: weft.vmap(weft.grad(f))(x),
        lambda f: weft.jacrev(f)(x).sum(0),
        lambda f: weft.vmap(weft.vjp(f, x)[1])(basis)[0].sum(0),
        lambda f: weft.jit(weft.vjp(f, x)[1])(wnp.ones(3))[0],
    ):
        for _ in range(3):
            before = fwds, bwds, jvps
            for h in (f, g):
                np.testing.assert_allclose(slope(h), expected, rtol=1e-6)
            assert all(now > then for now, then in zip((fwds, bwds, jvps), before, strict=True))
    before = jvps
    np.testing.assert_allclose(pushed(lambda x: g(x).sum(), x[1]), expected[1], rtol=1e-6)
    assert jvps > before
    with pytest.raises(TypeError, match="expected reverse mode"):
        pushed(lambda x: f(x).sum(), x[1])


def test_what_vjp_gives_runs_the_backward_rule_at_each_call():
    scale = 1.0
    f = with_rule(lambda _, ct: (ct * scale,))
    _, pull = weft.vjp(f, 1.0)
    _, pull_in_loop = weft.vjp(
        lambda x: weft.lax.scan(lambda c, _: (f(c), None), x, None, 2)[0], 1.0
    )
    for _ in range(3):
        scale += 1
        assert float(pull(1.0)[0]) == scale
        assert float(pull_in_loop(1.0)[0]) == scale**2
        assert float(weft.vmap(pull)(wnp.ones(2))[0][1]) == scale


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_a_rule_that_counts_its_calls(kind):
    class Counter:
        n = 0

        def __call__(self):
            self.n += 1
            return float(self.n)

    count = Counter()
    if kind == "custom_vjp":
        f = with_rule(lambda _, ct: (ct * count(),))
    else:
        f = weft.custom_jvp(lambda x: x * 1.0)
        f.defjvp(lambda p, t: (p[0] * 1.0, t[0] * count()))
    assert [float(weft.grad(f)(1.0)) for _ in range(4)] == [1, 2, 3, 4]


def test_a_repeated_call_compiles_nothing():
    """What is compiled is found by the structure of what the rules gave."""
    scale = 2.0
    values = wnp.arange(3.0)

    @weft.custom_vjp
    def f(x):
        return wnp.sin(x) * values

    f.defvjp(lambda x: (f(x), wnp.cos(x)), lambda c, ct: (ct * c * values * scale,))
    loss = lambda x: wnp.sum(f(x))
    others = [values + i for i in range(3)]
    weft.grad(loss)(values)
    before = cache_stats()["compiles"]
    for x in others:
        weft.grad(loss)(x)
    assert cache_stats()["compiles"] == before
    scale = 3.0
    expected = np.cos(values) * np.asarray(values) * 3
    np.testing.assert_allclose(weft.grad(loss)(values), expected, rtol=1e-6)
    assert cache_stats()["compiles"] > before


def test_a_rule_within_a_backward_rule_stays_one():
    """Also where the result of vjp is called in a trace, after calls outside of one."""
    inner = with_rule(lambda _, ct: (ct * 7.0,))
    f = with_rule(lambda _, ct: (inner(ct) * 3.0,))
    for _ in range(3):
        _, pull = weft.vjp(f, 1.0)
        assert float(pull(1.0)[0]) == 3
        assert float(weft.grad(lambda ct, pull=pull: pull(ct)[0])(1.0)) == 21
        assert float(weft.jit(weft.grad(lambda ct, pull=pull: pull(ct)[0]))(1.0)) == 21
        assert float(weft.grad(lambda ct: weft.vjp(f, 1.0)[1](ct)[0])(1.0)) == 21


def test_each_rule_runs_once_per_call():
    calls = []

    @weft.custom_vjp
    def f(x, y):
        return wnp.sin(x) * y["w"]

    def fwd(x, y):
        calls.append("fwd")
        return f(x, y), (x, y)

    def bwd(res, ct):
        calls.append("bwd")
        return 5 * ct * res[0], {"w": ct}

    f.defvjp(fwd, bwd)

    def loss(x, y):
        return wnp.sum(f(x, y) * 2)

    for i in range(3):
        x = np.full(3, i, np.float32)
        gradient = weft.grad(loss)(x, {"w": x})
        np.testing.assert_allclose(gradient, 10 * x)
    assert calls == ["fwd", "bwd"] * 3
    for i in range(3):
        value, gradients = weft.value_and_grad(loss, argnums=(0, 1))(x, {"w": x + i})
        np.testing.assert_allclose(gradients[1]["w"], [2, 2, 2])
        np.testing.assert_allclose(value, (np.sin(x) * (x + i)).sum() * 2, rtol=1e-5)
    assert calls == ["fwd", "bwd"] * 6


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
    assert set(traced) == {2.0, 3.0}


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


def test_nondiff_values_are_those_of_the_call():
    seen = []
    f = weft.custom_vjp(lambda n, x: x * 1.0, nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (x * 1.0, None), lambda n, _, ct: (seen.append(repr(n)) or ct * (n + 1),))
    for n in (1, True, 1.0, 0.0, -0.0, 1, True, 1.0, 0.0, -0.0):
        assert float(weft.grad(lambda x, n=n: f(n, x))(1.0)) == n + 1
    assert seen == ["1", "True", "1.0", "0.0", "-0.0"] * 2
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


SETTINGS = [
    (weft.default_matmul_precision, "highest"),
    (weft.numpy_dtype_promotion, "strict"),
    (weft.numpy_rank_promotion, "raise"),
    (weft.default_prng_impl, "rbg"),
    (weft.enable_x64, True),
]


@pytest.mark.parametrize("setting, value", SETTINGS, ids=lambda x: getattr(x, "__name__", x))
@pytest.mark.parametrize("rule", ["vjp", "jvp"])
def test_rules_are_traced_under_the_settings_of_the_call(rule, setting, value):
    traced = 0

    def note(*results):
        nonlocal traced
        traced += 1
        return results

    if rule == "vjp":
        f = weft.custom_vjp(lambda x: x @ x)
        f.defvjp(lambda x: (f(x), x), lambda x, ct: note(ct @ x))
        run = weft.grad(lambda x: f(x).sum())
    else:
        f = weft.custom_jvp(lambda x: x @ x)
        f.defjvp(lambda xs, ts: note(f(*xs), xs[0] @ ts[0]))
        run = weft.grad(lambda x: f(x).sum())
    x = np.ones((2, 2), np.float32)
    counts = []
    for under in (False, False, True, True, False):
        with setting(value) if under else contextlib.nullcontext():
            run(x)
        counts.append(traced)
    assert counts == sorted(set(counts))  # at each call
    with setting(value):
        inside = str(weft.make_jaxpr(run)(x))
    outside = str(weft.make_jaxpr(run)(x))
    if setting is weft.default_matmul_precision:
        assert ("HIGHEST" in inside, "HIGHEST" in outside) == (True, False)


def test_a_rule_fails_under_the_settings_that_refuse_it():
    f = weft.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (np.int32(3) * ct,))
    g = weft.grad(f)
    assert float(g(1.0)) == 3.0
    with weft.numpy_dtype_promotion("strict"), pytest.raises(weft.errors.TypePromotionError):
        g(1.0)


# ---- Random changes


def changed_rule(number, tmp_path, monkeypatch):
    """A gradient after a random change of what its rule reads, and what is right."""
    draw = random.Random(number)
    thing = THINGS[number % len(THINGS)]
    before, after = thing.values if draw.random() < 0.5 else thing.values[::-1]
    around, expression = draw.choice(WAYS[:-1])
    name = f"rule{number}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for file, text in thing.file_texts("t", before).items():
        (folder / f"{file}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = types.ModuleType(f"{name}.main")
    module.__package__, module.__file__ = name, str(folder / "main.py")
    sys.modules[module.__name__] = module
    read = expression.replace("$", "w").replace("{e}", thing.reading("t"))
    parts = [
        HEAD,
        thing.text("t", before),
        around.replace("$", "w").replace("{e}", thing.reading("t")),
    ]
    exec("\n".join([*parts, f"def read(): return {read}"]), vars(module))

    def take():
        f = functions[draw.randrange(2)]
        return float(draw.choice([weft.grad, lambda f: lambda x: pulled(f, x)])(f)(1.0))

    with_jvp = weft.custom_jvp(lambda x: x * 1.0)
    with_jvp.defjvp(lambda p, t: (p[0] * 1.0, t[0] * module.read()))
    functions = with_rule(lambda _, ct: (ct * module.read(),)), with_jvp
    try:
        for f in (*functions, *functions):
            weft.grad(f)(1.0)
        for file, text in thing.file_texts("t", after).items():
            loaded = sys.modules.get(f"{name}.{file}")
            (folder / f"{file}.py").write_text(text + "\n")
            if loaded:
                exec(text, vars(loaded))
        exec(thing.change("t", after), vars(module))
        return take(), take() if thing.name == DRAWS else float(np.float32(module.read()))
    finally:
        restore(module)
        for loaded in [m for m in sys.modules if m.partition(".")[0] == name]:
            del sys.modules[loaded]


DRAWS = "random numbers"  # each reading gives another


@pytest.mark.parametrize("part", range(5))
def test_random_changes_of_what_rules_read(part, tmp_path, monkeypatch):
    count = 100 if EVERYTHING else 10
    for number in range(part * count, (part + 1) * count):
        thing = THINGS[number % len(THINGS)].name
        got, right = changed_rule(number, tmp_path, monkeypatch)
        assert got != right if thing == DRAWS else got == pytest.approx(right, rel=1e-6), thing
