"""What depends on captured arrays alone, or on nothing, is computed once and kept: values are those
of the whole program, memory is bounded and given back.
"""

import gc
import re
import threading

import numpy as np
import pytest
from conftest import EVERYTHING

import weft
import weft.numpy as jnp
from weft import _core, config, lax, random

RNG = np.random.default_rng(0)


def table(*shape):
    return jnp.asarray(RNG.standard_normal(shape).astype("f"))


@pytest.fixture
def kept():
    """Bytes that were kept since the test began."""
    gc.collect()
    before = _core.constants_kept()
    return lambda: gc.collect() and None or _core.constants_kept() - before


@pytest.fixture
def limit():
    before = config.weft_constants_kept
    yield lambda value: config.update("weft_constants_kept", value)
    config.update("weft_constants_kept", before)


def whole(f, *args, **options):
    """The result of a program that keeps nothing."""
    before = config.weft_constants_kept
    config.update("weft_constants_kept", 0)
    try:
        return weft.jit(lambda *args: f(*args), **options)(*args)
    finally:
        config.update("weft_constants_kept", before)


def check(f, *args, tolerance=1e-6, needed=True, **options):
    """The compiled program, whose results are the same with and without a prologue."""
    g = weft.jit(f, **options)
    compiled = g.lower(*args).compile()
    assert compiled.prologue or not needed, "expected something to be kept"
    want = weft.tree_util.tree_leaves(whole(f, *args, **options))
    for got in (g(*args), g(*args), compiled(*args)):
        for x, y in zip(weft.tree_util.tree_leaves(got), want, strict=True):
            assert (x.dtype, x.weak_type) == (y.dtype, y.weak_type)
            np.testing.assert_allclose(x, y, tolerance, tolerance)
    assert not compiled.prologue or compiled.prologue.kept
    return compiled


def count(graph, op):
    """How many ops of this name a graph has."""
    return len(re.findall(rf"= {op}\b", str(graph)))


def test_tables_leave_no_transcendental():
    tables = [table(64, 32) for _ in range(10)]

    def f(x):
        for t in tables:
            x = x * jnp.cos(t) + jnp.sin(t)
        return x

    compiled = check(f, table(64, 32))
    assert "cosine(" not in compiled.as_text() and "sine(" not in compiled.as_text()
    assert compiled.prologue.bytes == 20 * 64 * 32 * 4
    assert count(compiled.prologue.graph, "cos") == 10
    assert compiled.prologue.constants == list(range(10))


def test_of_nothing_and_of_keys():
    """Tables of iotas, random numbers of fixed and of captured keys, of both kinds."""
    typed, untyped = random.key(1), random.PRNGKey(2)

    def f(x):
        angles = jnp.arange(64.0)[:, None] * jnp.arange(64.0)
        noise = random.normal(random.key(0), (64, 64)) + random.normal(typed, (64, 64))
        return x * jnp.cos(angles) + noise + random.uniform(untyped, (64, 64))

    compiled = check(f, table(64, 64), tolerance=2e-5)
    assert "cosine(" not in compiled.as_text() and "xor(" not in compiled.as_text()


def test_indices_are_normalised_once():
    senders, receivers = (jnp.asarray(RNG.integers(-50, 50, 5000).astype("i4")) for _ in range(2))

    def f(nodes, w):
        for _ in range(2):
            sent = jnp.tanh(nodes[senders] @ w)
            nodes = nodes.at[receivers].add(sent) + jnp.cos(nodes)[receivers, senders % 8].sum()
        return nodes.sum()

    compiled = check(weft.grad(f, argnums=(0, 1)), table(50, 8), table(8, 8), tolerance=2e-3)
    assert "s32" in compiled.as_text() and " remainder(" not in compiled.as_text()
    assert " concatenate(" not in compiled.as_text()


def test_loops_and_functions_are_looked_into():
    angles, weights = table(64), table(64, 64)

    @weft.jit
    def layer(x, t):
        return jnp.tanh(x @ (weights @ weights)) * jnp.cos(angles) + jnp.sin(t)

    def looped(x):
        def body(c, t):
            return layer(c * jnp.exp(-(angles**2)), t), c.sum()

        return lax.scan(body, x, jnp.arange(20.0))

    compiled = check(looped, table(8, 64), tolerance=1e-5)
    assert count(compiled.prologue.graph, "dot_general") == 1
    assert "exponential(" not in compiled.as_text() and "cosine(" not in compiled.as_text()

    def called(x):
        for i in range(6):
            x = weft.checkpoint(layer)(x, x[0] * i)
        return x.sum()

    for f in (called, weft.grad(called)):
        assert count(check(f, table(8, 64), tolerance=1e-4).prologue.graph, "dot_general")


def random_program(rng):
    """A function of one (32, 32) array that mixes it with captured ones, in all kinds of ops."""
    tables = [jnp.asarray(rng.standard_normal((32, 32)).astype("f")) for _ in range(3)]
    index = jnp.asarray(rng.integers(-32, 32, 32).astype("i4"))
    mask = jnp.asarray(rng.random((32, 32)) < 0.5)
    unary = [jnp.cos, jnp.tanh, lambda v: v.T, lambda v: v[index], lambda v: v / (1 + v * v)]
    unary += [
        lambda v: jnp.where(mask, v, 0.5),
        lambda v: v @ v / 8,
        lambda v: jnp.cumsum(v, 0) / 8,
    ]
    unary += [lambda v: jnp.sort(v, axis=1), lambda v: jnp.tril(v), lambda v: v.sum(0) / 6 + v * 0]
    unary += [lambda v: lax.scan(lambda c, t: (c * 0.5 + v, c[0]), v, None, length=3)[0]]
    unary += [lambda v: lax.cond(v[0, 0] > 0, jnp.sin, lambda w: w * 2, v)]
    unary += [lambda v: lax.fori_loop(0, 3, lambda i, w: jnp.sin(w) + v * i, v)]
    unary += [weft.jit(lambda v: jnp.exp(-v * v)), weft.checkpoint(lambda v: jnp.sin(v) * v)]
    binary = [jnp.add, jnp.multiply, jnp.subtract, lambda a, b: a @ b / 8, jnp.maximum]
    binary += [lambda a, b: a.at[index].add(b), lambda a, b: jnp.concatenate([a[:16], b[16:]])]
    choice = rng.integers(100, size=(12, 3)).tolist()

    def f(x):
        values = [x, jnp.cos(tables[0]) @ tables[1], *tables]
        for a, b, kind in choice:
            v = values[a % len(values)]
            if kind < 50:
                values.append(unary[b % len(unary)](v))
            else:
                values.append(binary[b % len(binary)](v, values[b % len(values)]))
        return sum(jnp.tanh(v) for v in values)

    return f


@pytest.mark.parametrize("seed", range(60 if EVERYTHING else 2))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    found = 0
    summed = lambda f: lambda x: f(x).sum()
    for transform in (lambda f: f, lambda f: weft.grad(summed(f)), weft.vmap):
        f = transform(random_program(rng))
        x = table(2, 32, 32) if transform is weft.vmap else table(32, 32)
        found += bool(check(f, x, tolerance=2e-3, needed=False).prologue)
    assert found


def test_refs_are_not_constants():
    ref, fixed = weft.new_ref(table(64, 64)), table(64, 64)

    def f(x):
        ref[...] = ref[...] * 2
        return x + jnp.cos(ref[...]) + jnp.cos(fixed)

    g, x = weft.jit(f), table(64, 64)
    start = np.asarray(ref[...])
    for i in range(1, 4):
        want = np.asarray(x) + np.cos(start * 2**i) + np.cos(np.asarray(fixed))
        np.testing.assert_allclose(g(x), want, 1e-4, 1e-4)
    ref[...] = fixed
    np.testing.assert_allclose(g(x), x + jnp.cos(fixed * 2) + jnp.cos(fixed), 1e-5, 1e-5)
    assert len(g.lower(x).compile().prologue.constants) == 1


def test_deleted_arrays(kept):
    t, x = table(64, 64), table(64, 64)
    f = weft.jit(lambda x: x + jnp.cos(t))
    f(x)
    assert kept() == 64 * 64 * 4
    t.delete()
    assert kept() == 0
    with pytest.raises(RuntimeError, match="deleted"):
        f(x)


def test_donated_arguments():
    t = table(64, 64)
    f = weft.jit(lambda x, y: (x + jnp.cos(t), y @ t), donate_argnums=0)
    want = whole(lambda x, y: (x + jnp.cos(t), y @ t), jnp.ones((64, 64)), t)
    for _ in range(2):
        x = jnp.ones((64, 64)) * 1
        got = f(x, t)
        assert x.is_deleted() and not t.is_deleted()
        np.testing.assert_allclose(got[0], want[0], 1e-6)
        np.testing.assert_allclose(got[1], want[1], 1e-5, 1e-5)
    with pytest.raises(ValueError, match="donated"):
        f(t, t)


def test_results_are_the_callers(kept):
    """What is a result is computed at each call: deleting it does not touch what is kept."""
    t = table(64, 64)
    f = weft.jit(lambda x: (x + jnp.cos(t), jnp.cos(t), t))
    x = table(64, 64)
    f(x)[1].delete()
    np.testing.assert_allclose(f(x)[1], jnp.cos(t), 1e-6)
    assert weft.jit(lambda: jnp.cos(t)).lower().compile().prologue is None


def test_released_with_the_function(kept):
    def make():
        t = table(64, 64)
        f = weft.jit(lambda x: x + jnp.cos(t))
        f(table(64, 64))
        return f

    f = make()
    assert kept() == 64 * 64 * 4
    del f
    assert kept() == 0
    f = make()
    weft.clear_caches()
    assert _core.constants_kept() == 0
    f(table(64, 64))


def test_bound(limit):
    weft.clear_caches()
    size = 64 * 64 * 4
    limit(2 * size)
    tables = [table(64, 64) for _ in range(4)]
    plus = lambda t: lambda x: x + jnp.cos(t)
    functions = [weft.jit(plus(t)) for t in tables]
    x = table(64, 64)
    for _ in range(2):
        for f, t in zip(functions, tables, strict=True):
            np.testing.assert_allclose(f(x), x + jnp.cos(t), 1e-6, 1e-6)
            assert _core.constants_kept() <= 2 * size
    assert _core.constants_kept() == 2 * size
    # One that would be too large computes a part at each call.
    many = lambda x: sum((x * jnp.cos(t) for t in tables), x)
    compiled = weft.jit(many).lower(x).compile()
    assert compiled.prologue is None or compiled.prologue.bytes <= 2 * size
    np.testing.assert_allclose(compiled(x), whole(many, x), 1e-5, 1e-5)
    limit(0)
    assert _core.constants_kept() == 0
    for f, t in zip(functions, tables, strict=True):
        np.testing.assert_allclose(f(x), x + jnp.cos(t), 1e-6, 1e-6)
    assert _core.constants_kept() == 0


def test_cheap_and_large_is_computed_again():
    row, x = table(256), table(256, 256)
    for f in (
        lambda x: x + jnp.broadcast_to(row, (256, 256)),
        lambda x: x @ x.T + row * 2,
        lambda x: jnp.where(jnp.arange(256)[:, None] >= jnp.arange(256), x, 0),
    ):
        assert weft.jit(f).lower(x).compile().prologue is None


def test_settings_and_checks():
    t = table(64, 64)
    f = lambda x: jnp.log(x) + jnp.cos(t)
    good = table(64, 64) ** 2 + 1
    with weft.debug_nans(True):
        g = weft.jit(f)
        g(good)
        with pytest.raises(FloatingPointError):
            g(good.at[0, 0].set(-1))
    with weft.enable_x64():
        wide = jnp.asarray(RNG.standard_normal((64, 64)))
        compiled = check(lambda x: x @ jnp.cos(wide), wide, tolerance=1e-12)
        assert compiled.out_info.dtype == "float64"
    from weft.experimental import checkify

    checked = checkify.checkify(weft.jit(f), errors=checkify.nan_checks)
    assert checked(good)[0].get() is None
    assert "nan" in checked(good.at[0, 0].set(-1))[0].get()


def test_effects_stay_in_order():
    t, seen = table(64, 64), []

    def f(x):
        x = x + jnp.cos(t)
        weft.debug.callback(lambda v: seen.append(float(v)), x[0, 0], ordered=True)
        x = x * 2
        weft.debug.callback(lambda v: seen.append(float(v)), x[0, 0], ordered=True)
        return x

    x = table(64, 64)
    got = weft.jit(f)(x)
    weft.effects_barrier()
    np.testing.assert_allclose(seen, [got[0, 0] / 2, got[0, 0]])


def test_blocks_take_what_is_kept():
    t = table(32, 32)
    weights = [table(32, 32) for _ in range(12)]

    def f(params, x):
        for w in params:
            h = jnp.tanh(x @ w) * jnp.cos(t) + jnp.sin(t)
            x = x + h - h.mean(-1, keepdims=True) * jnp.exp(-x * x) / (1 + x * x).sum(-1)[:, None]
        return (x**2).sum()

    compiled = check(weft.grad(f), weights, table(32, 32), tolerance=1e-3, compile="blocks")
    assert compiled.blocks and "cosine(" not in compiled.as_text()


def test_threads():
    t, x = table(128, 128), table(128, 128)
    want = np.asarray(x + jnp.cos(t))
    f, wrong = weft.jit(lambda x: x + jnp.cos(t)), []

    def work():
        for _ in range(50):
            if not np.allclose(f(x), want, 1e-6, 1e-6):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
