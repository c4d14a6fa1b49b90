"""Typed random keys: streams equal to jax's to the last bit, under all transforms, and errors.

Answers of jax are in golden/random_keys.json; this file, run as a program, writes them.
"""

import copy
import json
import pickle

import numpy as np
import pytest
from conftest import GOLDEN

import weft
from weft import dtypes, lax, numpy as jnp, random
from weft.errors import DTypeError, KeyReuseError, TypePromotionError
from weft.extend import random as extended
from weft.random._implementations import counters

ANSWERS = GOLDEN / "random_keys.json"
IMPLS = ("threefry2x32", "rbg", "unsafe_rbg")
SHAPES = ((), (5,), (2, 3), (0, 2))
SEEDS = (
    "0",
    "-1",
    "2**31",
    "2**40 + 5",
    "-(2**63)",
    "2**63 - 1",
    "True",
    "np.int64(-5)",
    "np.uint64(2**63 + 3)",
    "np.int8(-5)",
    "np.array(7)",
    "jnp.int32(-5)",
    "jnp.uint8(200)",
)


def streams(x64, jnp, random):
    """Name -> uint32 or uint64 array: what both libraries are asked for."""
    out = {}
    for impl in IMPLS:
        for seed in SEEDS:
            out[f"{impl} key({seed})"] = random.key_data(
                random.key(eval(seed, {"np": np, "jnp": jnp}), impl=impl)
            )
        key = random.key(42, impl=impl)
        for shape in SHAPES:
            out[f"{impl} split{shape}"] = random.key_data(random.split(key, shape))
            for bits in (8, 16, 32, 64) if x64 else (8, 16, 32):
                out[f"{impl} bits{bits}{shape}"] = random.bits(key, shape, f"uint{bits}")
        for data in (0, 7, 2**32 - 1, np.int8(-3)):
            out[f"{impl} fold_in {data}"] = random.key_data(random.fold_in(key, data))
        out[f"{impl} default bits"] = random.bits(key, (3,))
    return out


def sequential(x64, lib, random):
    """As `streams`, for threefry_partitionable(False)."""
    out = {}
    with lib.threefry_partitionable(False):
        for impl in IMPLS[:2]:
            key = random.key(42, impl=impl)
            for shape in SHAPES[:3]:
                out[f"{impl} split{shape}"] = random.key_data(random.split(key, shape))
                for bits in (8, 16, 32, 64) if x64 else (8, 16, 32):
                    out[f"{impl} bits{bits}{shape}"] = random.bits(key, shape, f"uint{bits}")
    return out


def vmapped(lib, random):
    """Keys of several lanes; those of XLA's generator are not independent."""
    out = {}
    for impl in IMPLS:
        keys = random.split(random.key(3, impl=impl), 3)
        out[f"{impl} bits"] = lib.vmap(lambda k: random.bits(k, (2,)))(keys)
        out[f"{impl} split"] = random.key_data(lib.vmap(random.split)(keys))
        out[f"{impl} fold_in"] = random.key_data(lib.vmap(random.fold_in, (0, None))(keys, 5))
    return out


def write():
    import jax

    answers = {}
    for x64 in (False, True):
        with jax.enable_x64(x64):
            found = {
                "streams": streams(x64, jax.numpy, jax.random),
                "sequential": sequential(x64, jax, jax.random),
                "vmapped": vmapped(jax, jax.random),
            }
        answers[str(x64)] = {
            table: {name: np.asarray(v).tolist() for name, v in values.items()}
            for table, values in found.items()
        }
    ANSWERS.parent.mkdir(exist_ok=True)
    ANSWERS.write_text(json.dumps(answers, separators=(",", ":")) + "\n")


KEY = random.key(0)
KEYS = random.split(KEY, 6)
FRY = KEY.dtype


def words(keys):
    return np.asarray(random.key_data(keys))


DATA = words(KEYS)


def same(keys, expected):
    """Typed keys with these words."""
    assert isinstance(keys, weft.Array) and keys.dtype is FRY
    assert keys.shape == expected.shape[:-1]
    np.testing.assert_array_equal(words(keys), expected)


# ---- streams


@pytest.mark.parametrize("x64", [False, True])
def test_streams_are_those_of_jax(x64):
    answers = json.loads(ANSWERS.read_text())[str(x64)]
    with weft.enable_x64(x64):
        found = {
            # In one program, which compiles faster than each at once.
            "streams": weft.jit(lambda: streams(x64, jnp, random))(),
            "sequential": weft.jit(lambda: sequential(x64, weft, random))(),
            "vmapped": weft.jit(lambda: vmapped(weft, random))(),
        }
    for table, values in found.items():
        assert values.keys() == answers[table].keys()
        for name, value in values.items():
            expected = np.array(answers[table][name], value.dtype).reshape(value.shape)
            np.testing.assert_array_equal(np.asarray(value), expected, f"{table} {name}")


def test_typed_and_untyped_keys_have_one_stream():
    old = random.PRNGKey(7)
    assert old.dtype == np.uint32
    new = random.wrap_key_data(old)
    assert new.dtype is FRY
    np.testing.assert_array_equal(words(random.split(new)), random.split(old))
    for draw in (random.normal, random.bits, lambda k: random.permutation(k, 9)):
        np.testing.assert_array_equal(draw(new), draw(old))
    np.testing.assert_array_equal(words(random.fold_in(new, 3)), random.fold_in(old, 3))


# ---- what an array of keys can do

MOVES = {
    "x[2]": lambda x: x[2],
    "x[-1]": lambda x: x[-1],
    "x[7]": lambda x: x[jnp.array(7)],
    "x[1:3]": lambda x: x[1:3],
    "x[::-2]": lambda x: x[::-2],
    "x[None]": lambda x: x[None],
    "x[[0, 2]]": lambda x: x[jnp.array([0, 2])],
    "x[mask]": lambda x: x[np.array([True, False, True, False, False, True])],
    "reshape": lambda x: x.reshape(2, 3, *x.shape[1:]),
    "ravel": lambda x: x[:, None][:, 0],
    "concatenate": lambda x: jnp.concatenate([x, x[:2]]),
    "stack": lambda x: jnp.stack([x[0], x[3]]),
    "append": lambda x: jnp.concatenate([x, x[1][None]]),
    "broadcast": lambda x: jnp.broadcast_to(x, (2, *x.shape)),
    "roll": lambda x: jnp.roll(x, 2, 0),
    "flip": lambda x: jnp.flip(x, 0),
    "tile": lambda x: jnp.tile(x, (2, *(1,) * (x.ndim - 1))),
    "repeat": lambda x: jnp.repeat(x, 2, 0),
    "take": lambda x: jnp.take(x, jnp.array([1, 9]), 0),
    "moveaxis": lambda x: jnp.moveaxis(x.reshape(2, 3, *x.shape[1:]), 0, 1),
    "at.set": lambda x: x.at[1].set(x[4]),
    "at[].set": lambda x: x.at[jnp.array([0, 5])].set(x[2:4]),
    "dynamic_slice": lambda x: lax.dynamic_slice_in_dim(x, 1, 2),
    "dynamic_update": lambda x: lax.dynamic_update_slice_in_dim(x, x[:2], 3, 0),
    "split": lambda x: jnp.split(x, 2)[1],
    "optimization_barrier": lambda x: lax.optimization_barrier(x),
    "stop_gradient": lambda x: lax.stop_gradient(x),
    "zeros_like": lambda x: jnp.zeros_like(x),
    "full_like": lambda x: lax.full_like(x[:1], 5),
    "cond": lambda x: lax.cond(x.shape[0] > 2, lambda y: y[::-1], lambda y: y, x),
    "switch": lambda x: lax.switch(jnp.int32(1), [lambda y: y, lambda y: y[::-1]], x),
    "scan": lambda x: lax.scan(lambda c, y: (y, c), x[0], x)[1],
    "map": lambda x: lax.map(lambda y: y, x),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1][::-1]), (0, x))[
        1
    ],
    "fori": lambda x: lax.fori_loop(0, 2, lambda i, c: c.at[i].set(c[5 - i]), x),
    "checkpoint": weft.checkpoint(lambda x: x[1:]),
    "vmap": lambda x: weft.vmap(lambda y: y[None], out_axes=1)(x),
    "jit": weft.jit(lambda x: x[::-1]),
    "device_put": lambda x: weft.device_put(x),
}


def test_keys_move_as_their_words_do():
    """Each at once, and all of them in one program, also under vmap."""
    expected = {name: np.asarray(f(jnp.asarray(DATA))) for name, f in MOVES.items()}
    for name, move in MOVES.items():
        same(move(KEYS), expected[name])
    for name, keys in weft.jit(lambda x: {n: f(x) for n, f in MOVES.items()})(KEYS).items():
        same(keys, expected[name])
    lanes = weft.vmap(
        lambda x: {n: f(x) for n, f in MOVES.items() if n not in ("x[mask]", "device_put")}
    )(jnp.stack([KEYS, KEYS[::-1]]))
    for name, keys in lanes.items():
        same(keys[0], expected[name])


def test_selection_and_comparison():
    pick = jnp.array([True, False, True, True, False, True])
    chosen = np.where(np.asarray(pick)[:, None], DATA, words(KEY))
    same(jnp.where(pick, KEYS, KEY), chosen)
    same(lax.select(pick, KEYS, jnp.broadcast_to(KEY, 6)), chosen)
    same(weft.vmap(lambda p, k: lax.cond(p, lambda: k, lambda: KEY))(pick, KEYS), chosen)
    assert (KEYS == KEYS[2]).tolist() == [False, False, True, False, False, False]
    assert (KEYS != KEYS[2]).tolist() == [True, True, False, True, True, True]
    assert bool(weft.jit(lambda a, b: jnp.array_equal(a, b))(KEYS, KEYS))
    half = random.wrap_key_data(np.array([[1, 2], [1, 3], [4, 2]], np.uint32))
    assert (half == half[0]).tolist() == [True, False, False]
    assert (half != half[0]).tolist() == [False, True, True]


def test_attributes():
    assert (KEYS.shape, KEYS.ndim, KEYS.size, len(KEYS)) == ((6,), 1, 6, 6)
    assert (KEYS.itemsize, KEYS.nbytes, KEYS.T.shape) == (8, 48, (6,))
    assert str(FRY) == repr(FRY) == FRY.name == "key<fry>"
    assert FRY.type is dtypes.prng_key and FRY.itemsize == 8
    for kind in (dtypes.prng_key, dtypes.extended, np.generic, FRY):
        assert dtypes.issubdtype(FRY, kind)
    rbg = random.key(0, impl="rbg").dtype
    for kind in (np.integer, np.number, rbg, np.uint32):
        assert not dtypes.issubdtype(FRY, kind)
    assert not dtypes.issubdtype(np.uint32, dtypes.prng_key)
    assert FRY != rbg and FRY != np.uint32 and hash(FRY) == hash(KEYS.dtype)
    assert str(KEY) == repr(KEY) == f"{KEY}" == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert [words(k).tolist() for k in KEYS] == DATA.tolist()
    assert jnp.result_type(KEY, KEYS) is FRY
    a, b = random.split(KEY)
    same(jnp.array([a, b]), DATA[:2])


def test_copies():
    for again in (
        pickle.loads(pickle.dumps(KEYS)),
        copy.copy(KEYS),
        copy.deepcopy(KEYS),
        KEYS.copy(),
        random.clone(KEYS),
        weft.device_get(KEYS),
        weft.block_until_ready(KEYS),
        weft.tree.map(lambda k: k, [KEYS])[0],
    ):
        same(again, DATA)
    assert pickle.loads(pickle.dumps(FRY)) is FRY
    fresh = random.split(KEY, 6)
    own = random.key_data(fresh)
    fresh.delete()
    np.testing.assert_array_equal(own, DATA)
    donated = random.split(KEY, 6)
    same(weft.jit(lambda k: k[::-1], donate_argnums=0)(donated), DATA[::-1])
    assert donated.is_deleted()


def test_types_without_values():
    assert weft.typeof(KEYS) == weft.eval_shape(lambda: random.split(random.key(0), 6))
    spec = weft.ShapeDtypeStruct((3,), FRY)
    assert repr(spec) == "ShapeDtypeStruct(shape=(3,), dtype=key<fry>)"
    out = weft.eval_shape(lambda k: (random.key_data(k), weft.vmap(random.normal)(k)), spec)
    assert [(o.shape, o.dtype) for o in out] == [((3, 2), np.uint32), ((3,), np.float32)]
    assert "key<fry>[3]" in str(weft.make_jaxpr(lambda k: k)(spec))
    assert jnp.empty((2,), FRY).dtype is lax.full((2,), KEY).dtype is FRY
    same(jnp.ones(2, FRY), np.ones((2, 2), np.uint32))


def test_programs_have_words():
    lowered = weft.jit(lambda k: (random.split(k), random.normal(k))).lower(KEY)
    assert "key<" not in lowered.as_text() and "tensor<2xui32>" in lowered.as_text()
    normal, keys = weft.jit(lambda k: (random.normal(k), k))(KEY)
    assert normal == random.normal(KEY)
    same(keys, words(KEY))


# ---- transforms


def test_derivatives():
    def loss(x, key):
        return x * random.normal(key)

    slope = random.normal(KEY)
    assert weft.grad(loss)(1.0, KEY) == weft.jit(weft.grad(loss))(1.0, KEY) == slope
    assert weft.jacfwd(loss)(1.0, KEY) == slope
    dx, dk = weft.grad(loss, (0, 1), allow_int=True)(1.0, KEY)
    assert dx == slope and dk.dtype == dtypes.float0 and dk.shape == ()
    dx, dk = weft.vjp(loss, 1.0, KEY)[1](1.0)
    assert dx == slope and dk.dtype == dtypes.float0
    zero = np.zeros((), dtypes.float0)
    assert weft.jvp(loss, (1.0, KEY), (2.0, zero))[1] == 2 * slope
    assert weft.grad(weft.checkpoint(loss))(1.0, KEY) == slope
    with pytest.raises(TypeError, match="key<fry>"):
        weft.grad(lambda k: 1.0)(KEY)

    def walk(x):
        def step(carry, key):
            return carry * random.uniform(key), key

        end, keys = lax.scan(step, x, KEYS)
        return end, keys

    dx, keys = weft.grad(walk, has_aux=True)(1.0)
    np.testing.assert_allclose(dx, np.prod([random.uniform(k) for k in KEYS]), 1e-5)
    same(keys, DATA)


def test_custom_rules():
    @weft.custom_vjp
    def noisy(x, key):
        return x + random.normal(key)

    noisy.defvjp(lambda x, k: (noisy(x, k), k), lambda k, ct: (ct * random.uniform(k), None))
    assert weft.grad(noisy)(1.0, KEY) == random.uniform(KEY)

    @weft.custom_jvp
    def drawn(x, key):
        return x * random.normal(key)

    @drawn.defjvp
    def _(primals, tangents):
        return drawn(*primals), 3 * tangents[0]

    assert weft.grad(drawn)(1.0, KEY) == 3
    np.testing.assert_array_equal(weft.vmap(weft.grad(drawn))(jnp.ones(6), KEYS), 3)


def test_loops_carry_keys():
    def step(state, _):
        state, key = random.split(state)
        return state, random.normal(key)

    state, drawn = lax.scan(step, KEY, None, 3)
    expected = KEY
    for i in range(3):
        expected, key = random.split(expected)
        assert drawn[i] == random.normal(key)
    same(state, words(expected))
    final = lax.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, random.fold_in(c[1], c[0])), (0, KEY)
    )[1]
    same(final, words(random.fold_in(random.fold_in(KEY, 0), 1)))
    lanes = weft.vmap(
        lambda n, k: lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, random.split(c[1])[0]), (0, k)
        )[1]
    )(jnp.array([0, 1]), KEYS[:2])
    same(lanes, np.stack([DATA[0], words(random.split(KEYS[1])[0])]))


# ---- implementations


def linear_impl(name="linear"):
    """A generator whose words can be foretold."""
    return extended.define_prng_impl(
        key_shape=(3, 1),
        seed=lambda seed: jnp.full((3, 1), seed.astype(np.uint32)),
        split=lambda words, shape: (
            words + jnp.arange(np.prod(shape, dtype=int), dtype=np.uint32).reshape(*shape, 1, 1)
        ),
        random_bits=lambda words, width, shape: jnp.full(shape, words[0, 0], f"uint{width}"),
        fold_in=lambda words, data: words + data,
        name=name,
        tag="lin",
    )


def test_a_generator_of_ones_own():
    impl = linear_impl()
    key = random.key(4, impl=impl)
    assert repr(key) == "Array((), dtype=key<lin>) overlaying:\n[[4]\n [4]\n [4]]"
    assert key.itemsize == 12 and random.key_impl(key) is impl
    assert random.key_data(random.split(key, (2, 2))).shape == (2, 2, 3, 1)
    assert words(random.split(key, 3))[:, 0, 0].tolist() == [4, 5, 6]
    assert words(random.fold_in(key, 3)).ravel().tolist() == [7, 7, 7]
    assert random.bits(key, (2,), "uint8").tolist() == [4, 4]
    lanes = weft.vmap(lambda k: random.bits(random.fold_in(k, 1), ()))(random.split(key, 3))
    assert lanes.tolist() == [5, 6, 7]
    assert random.normal(key, (3,)).shape == (3,)
    assert extended.seed_with_impl(impl, 4) == key
    seeded = extended.random_seed(jnp.arange(6).reshape(2, 3), impl)
    assert words(seeded)[:, :, 2, 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert random.PRNGKey(4, impl=impl).shape == (3, 1)
    other = random.key(4, impl=linear_impl("other"))
    assert str(other.dtype) == "key<lin>" and other.dtype != key.dtype
    with pytest.raises(TypePromotionError):
        jnp.stack([key, other])
    one = extended.define_prng_impl(
        key_shape=(1,),
        seed=lambda seed: seed.astype(np.uint32)[None],
        split=lambda words, shape: jnp.broadcast_to(words, (*shape, 1)),
        random_bits=lambda words, width, shape: jnp.full(shape, words[0], f"uint{width}"),
        fold_in=lambda words, data: words + data,
    )
    assert words(random.split(random.fold_in(random.key(4, impl=one), 2))).tolist() == [[6], [6]]
    assert str(random.key(4, impl=one).dtype) == "key<?>"


def test_enciphering():
    count = np.arange(6, dtype=np.uint32).reshape(2, 3)
    found = extended.threefry_2x32(np.array([1, 2], np.uint32), count)
    assert found.tolist() == [
        [2052595727, 3504730591, 1038787879],
        [1880214352, 1914734168, 1027009547],
    ]
    pair = (np.uint32(1), np.uint32(2))
    assert int(extended.threefry_2x32(pair, np.uint32(5))) == 4189447344
    with pytest.raises(TypeError, match="uint32"):
        extended.threefry_2x32((1, 2), count)


def test_names_of_implementations():
    assert [random.key_impl(random.key(0, impl=n)) for n in IMPLS] == list(IMPLS)
    assert random.key_impl(random.PRNGKey(0)) == "threefry2x32"
    rbg = random.key(3, impl="rbg")
    assert random.key(3, impl=rbg.dtype) == random.key(3, dtype=rbg.dtype) == rbg
    assert random.key(3, impl=extended.rbg_prng_impl) == rbg
    assert random.PRNGKey(3, impl="rbg").tolist() == words(rbg).tolist()


# ---- settings


def test_default_implementation():
    with weft.default_prng_impl("rbg"):
        assert str(random.key(3).dtype) == "key<rbg>"
        old = random.PRNGKey(3)
        assert old.shape == (4,) and random.key_impl(old) == "rbg"
        np.testing.assert_array_equal(
            random.split(old), words(random.split(random.key(3, impl="rbg")))
        )
        assert random.bits(old) == random.bits(random.key(3))
        with pytest.raises(TypeError, match=r"shape \(4,\)"):
            random.split(DATA[0])
        same(random.split(KEY, 6), DATA)
    assert weft.config.jax_default_prng_impl == "threefry2x32"
    with pytest.raises(ValueError, match="expected one of"):
        weft.config.update("jax_default_prng_impl", "nope")


@pytest.mark.parametrize("impl", ["threefry2x32", "philox4x32", "rbg"])
def test_arrays_of_more_elements_than_a_word_counts(impl):
    def draw(seed):
        return random.normal(random.key(seed, impl=impl), (10**6, 10**6))

    assert weft.eval_shape(draw, 0).shape == (10**6, 10**6)
    weft.jit(draw).lower(0)


def test_counters_of_more_elements_than_a_word_counts():
    last = weft.jit(lambda: [word[2**32 - 1 :] for word in counters(2**32 + 2)])()
    np.testing.assert_array_equal(last, [[0, 1, 1], [2**32 - 1, 0, 1]])


def test_untyped_keys_may_be_refused():
    old = random.PRNGKey(0)
    with weft.legacy_prng_key("warn"), pytest.warns(UserWarning, match="typed key"):
        random.normal(old)
    with weft.legacy_prng_key("error"):
        for use in (random.split, random.bits, random.normal, random.key_data, random.key_impl):
            with pytest.raises(ValueError, match="typed key"):
                use(old)
        random.normal(random.wrap_key_data(random.clone(old)))
    with weft.enable_custom_prng(True):
        assert random.PRNGKey(3).dtype is random.split(old).dtype is FRY
    with pytest.raises(ValueError):
        weft.config.update("jax_legacy_prng_key", "nope")


def test_reuse_is_found():
    draw = weft.jit(lambda k: random.normal(k))
    uses = [random.normal, random.split, random.bits, draw]
    uses.append(lambda k: weft.grad(lambda x: x * random.normal(k))(1.0))
    uses.append(lambda k: random.randint(k, (2,), 0, 5))
    with weft.debug_key_reuse(True):
        for first in uses:
            for second in (random.normal, draw):
                key = random.key(5)
                first(key)
                with pytest.raises(KeyReuseError, match="not used before"):
                    second(key)
        key = random.key(5)
        for free in (lambda k: random.fold_in(k, 1), random.key_data, random.clone, repr):
            free(key)
            free(key)
        a, b = random.split(key)
        random.normal(a), random.normal(random.clone(a)), random.normal(b)
        keys = random.split(random.key(6))
        random.normal(keys[0]), random.normal(keys[1])
        with pytest.raises(KeyReuseError):
            random.normal(keys[0])
        with pytest.raises(KeyReuseError):
            weft.jit(lambda k: random.normal(k) + random.uniform(k))(random.key(0))
    random.normal(key), random.normal(key)
    made_outside = random.key(0), random.split(random.key(6))[0]
    with weft.debug_key_reuse(True):
        for key in made_outside:
            random.normal(key)
            with pytest.raises(KeyReuseError):
                random.normal(key)


def test_a_clone_is_used_for_itself():
    with weft.debug_key_reuse(True):
        key = random.key(7)
        copy = random.clone(key)
        random.normal(copy)
        random.normal(key)
        with pytest.raises(KeyReuseError):
            random.normal(copy)


ONCE = [
    lambda k: random.choice(k, 3),
    lambda k: random.choice(k, 3, (2,), replace=False),
    lambda k: random.gamma(k, 1.0),
    lambda k: random.beta(k, 1.0, 2.0),
    lambda k: random.categorical(k, jnp.ones(3)),
    lambda k: random.multivariate_normal(k, jnp.ones(2), jnp.eye(2)),
    lambda k: random.dirichlet(k, jnp.ones(2)),
    lambda k: random.poisson(k, 3.0),
    lambda k: random.binomial(k, 3, 0.5),
    lambda k: random.t(k, 3.0),
    lambda k: random.permutation(k, 3),
    lambda k: random.truncated_normal(k, 0.0, 1.0),
    lambda k: random.orthogonal(k, 2),
    lambda k: random.ball(k, 2),
    lambda k: random.rademacher(k),
    lambda k: weft.nn.initializers.glorot_normal()(k, (2, 2)),
]


@pytest.mark.parametrize("draw", ONCE)
def test_what_functions_do_with_their_key_is_one_use(draw):
    with weft.debug_key_reuse(True):
        for run in (draw, weft.jit(draw)):
            key = random.key(3)
            run(key)
            with pytest.raises(KeyReuseError):
                random.bits(key)


def test_reuse_in_loops_is_found():
    draw = random.uniform

    def closed_over(k):
        return lax.scan(lambda c, _: (c + draw(k), None), 0.0, None, length=3)

    def closed_over_while(k):
        return lax.while_loop(lambda c: c < 2, lambda c: c + draw(k) + 0.1, 0.0)

    def carried(k):
        return lax.fori_loop(0, 3, lambda _, c: (c[0], c[1] + draw(c[0])), (k, 0.0))

    def twice(k):
        return lax.scan(lambda k, _: (random.split(k)[0], draw(k)), k, None, length=3)

    def used_after(k):
        return split(k), draw(k)

    def split(k):
        def body(k, _):
            k, new = random.split(k)
            return k, draw(new)

        return lax.scan(body, k, None, length=3)

    def folded(k):
        return lax.scan(lambda c, i: (c, draw(random.fold_in(k, i))), 0.0, jnp.arange(3)), draw(k)

    def cloned(k):
        return lax.scan(lambda c, _: (c, draw(random.clone(k))), 0.0, None, length=3)

    with weft.debug_key_reuse(True):
        for seed, run in enumerate((lambda f: f, weft.jit)):
            for again in (closed_over, closed_over_while, carried, twice, used_after):
                with pytest.raises(KeyReuseError):
                    run(again)(random.key(seed))
            for once in (split, folded, cloned):
                run(once)(random.key(seed))


def test_reuse_in_lanes_of_vmap_is_found():
    def drawn(keys):
        return weft.vmap(random.bits)(keys)

    with weft.debug_key_reuse(True):
        keys = random.split(random.key(8))
        drawn(keys)
        drawn(random.clone(keys))
        for again in (drawn, lambda keys: weft.vmap(weft.vmap(random.bits))(keys[None])):
            with pytest.raises(KeyReuseError):
                again(keys)
        with pytest.raises(KeyReuseError):
            weft.vmap(lambda k: random.bits(k) + random.bits(k))(random.split(random.key(9)))


# ---- mistakes

MISTAKES = {
    "k + k": (lambda k: k + k, TypeError),
    "k + 1": (lambda k: k + 1, TypeError),
    "-k": (lambda k: -k, TypeError),
    "k < k": (lambda k: k < k, TypeError),
    "k & k": (lambda k: k & k, TypeError),
    "k == 1": (lambda k: k == 1, TypeError),
    "sin": (lambda k: jnp.sin(k), TypeError),
    "sum": (lambda k: jnp.sum(k), TypeError),
    "sort": (lambda k: jnp.sort(k[None]), TypeError),
    "max": (lambda k: jnp.max(k[None]), TypeError),
    "dot": (lambda k: jnp.dot(k, k), TypeError),
    "astype": (lambda k: k.astype("uint32"), TypeError),
    "to key": (lambda k: jnp.zeros(2).astype(k.dtype), TypeError),
    "convert": (lambda k: lax.convert_element_type(k, "uint32"), TypeError),
    "bitcast": (lambda k: lax.bitcast_convert_type(k, "uint32"), TypeError),
    "view": (lambda k: k[None].view("uint32"), TypeError),
    "clip": (lambda k: lax.clamp(k, k, k), TypeError),
    "index": (lambda k: jnp.arange(3)[k], TypeError),
    "set": (lambda k: k[None].at[0].set(1), TypeError),
    "add": (lambda k: k[None].at[0].add(k), TypeError),
    "where": (lambda k: jnp.where(True, k, 0), ValueError),
    "mixed": (lambda k: jnp.stack([k, random.key(0, impl="rbg")]), ValueError),
    "iota": (lambda k: lax.iota(k.dtype, 3), TypeError),
    "dtype": (lambda k: random.normal(k, dtype=k.dtype), TypeError),
    "wrap": (lambda k: random.wrap_key_data(np.zeros((3, 3), np.uint32)), TypeError),
    "wrap int": (lambda k: random.wrap_key_data(np.zeros(2, np.int32)), TypeError),
    "key of key": (lambda k: random.key(k), TypeError),
    "fold float array": (lambda k: random.fold_in(k, jnp.zeros(2)), TypeError),
    "fold key": (lambda k: random.fold_in(k, k), TypeError),
    "reduce": (lambda k: lax.reduce(k[None], k, lambda a, b: a, (0,)), TypeError),
}
CONCRETE = {
    "int": (lambda k: int(k), TypeError),
    "float": (lambda k: float(k), TypeError),
    "bool": (lambda k: bool(k), TypeError),
    "hash": (lambda k: hash(k), TypeError),
    "numpy": (lambda k: np.asarray(k), TypeError),
    "len": (lambda k: len(k), TypeError),
    "item": (lambda k: k.item(), TypeError),
    "keys": (lambda k: random.normal(k[None]), ValueError),
    "keys split": (lambda k: random.split(k[None]), ValueError),
    "no key": (lambda k: random.split(1), TypeError),
    "list": (lambda k: random.split([0, 0]), TypeError),
    "impl": (lambda k: random.key(0, impl="nope"), ValueError),
    "impl 1": (lambda k: random.key(0, impl=1), TypeError),
    "both": (lambda k: random.key(0, impl="rbg", dtype=k.dtype), ValueError),
    "seed": (lambda k: random.key(1.5), TypeError),
    "seeds": (lambda k: random.key(np.arange(2)), TypeError),
    "large": (lambda k: random.key(2**63), OverflowError),
    "bits": (lambda k: random.bits(k, dtype="int32"), ValueError),
    "fold": (lambda k: random.fold_in(k, -1), OverflowError),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    use, error = MISTAKES[name]
    with pytest.raises(error):
        use(KEY)
    with pytest.raises(error):
        weft.eval_shape(use, KEY)


@pytest.mark.parametrize("name", CONCRETE)
def test_mistakes_with_values(name):
    use, error = CONCRETE[name]
    with pytest.raises(error):
        use(KEY)
    assert issubclass(DTypeError, TypeError)


def test_functions_on_the_host_get_words(capfd):
    shape = weft.ShapeDtypeStruct((2,), np.uint32)
    call = weft.jit(lambda k: weft.pure_callback(lambda w: np.asarray(w), shape, k))
    assert call(KEYS[1]).tolist() == DATA[1].tolist()
    weft.jit(lambda k: weft.debug.print("key {}", k))(KEY)
    weft.effects_barrier()
    assert "key [0 0]" in capfd.readouterr().out


if __name__ == "__main__":
    write()


# Of keys whose words are 1, 2, ...: what jax gives as words of key(0), key(-1), fold_in(w, 7),
# split(w)[1], bits of 32 and of 8 bits, and the words of the second number of 64 bits.
CIPHERS = {
    "philox2x32": (
        [4280135257],
        [2246910722],
        [3354647087],
        [2127719656],
        [3469030295, 4162165488, 1483689709],
        [151, 240, 237],
        [2261251608, 2127719656],
    ),
    "philox4x32": (
        [1713891541, 3781805453],
        [4130576541, 252180694],
        [3320919281, 469223834],
        [2678699385, 3232560645],
        [1358092377, 1316901982, 107820245],
        [89, 94, 213],
        [1231179899, 1088181077],
    ),
    "threefry4x32": (
        [2624366954, 3783175782, 4228967636, 1381410776],
        [2535856969, 757880446, 1703251539, 2659320],
        [2760783358, 774879915, 1421503577, 2780816378],
        [1273695912, 394132291, 2562522599, 3151574376],
        [3902968672, 1870787322, 3056255188],
        [96, 250, 212],
        [1349073175, 1072221165],
    ),
}


@pytest.mark.parametrize("impl", CIPHERS)
def test_streams_of_other_ciphers(impl):
    seeded, of_minus_one, folded, new, bits, narrow, wide = CIPHERS[impl]
    random = weft.random

    @weft.jit
    def drawn(words):
        key = random.wrap_key_data(words, impl=impl)
        data = [random.key(0, impl=impl), random.key(-1, impl=impl), random.fold_in(key, 7)]
        data.append(random.split(key)[1])
        return [random.key_data(k) for k in data], random.bits(key, (3,)), random.normal(key, (4,))

    words = np.arange(1, 1 + len(seeded), dtype="uint32")
    data, got, _ = drawn(words)
    assert [x.tolist() for x in data] == [seeded, of_minus_one, folded, new]
    assert got.tolist() == bits
    key = random.wrap_key_data(words, impl=impl)
    assert random.bits(key, (3,), "uint8").tolist() == narrow
    assert str(random.key_impl(key)) == impl
    many = weft.vmap(lambda k: random.bits(k, (2,)))(random.split(key, 3))
    assert many.tolist() == [random.bits(k, (2,)).tolist() for k in random.split(key, 3)]
    with weft.enable_x64(True):
        got = np.asarray(random.bits(random.wrap_key_data(words, impl=impl), (2,), "uint64"))
        assert got[1:].view("uint32").tolist() == wide


def test_gamma_variates_of_rbg_are_drawn_one_by_one():
    """Each element with the bits of its own key, as by jax on CPUs."""
    drawn = random.gamma(random.key(0, impl="rbg"), 1.5, (3,))
    np.testing.assert_allclose(drawn, [1.5287193, 0.63207537, 0.7304986], rtol=1e-6)


def test_gamma_variates_of_rbg_have_the_bits_of_their_lanes():
    keys = random.split(random.key(5, impl="rbg"), 3)
    drawn, twice = weft.jit(
        lambda keys: (
            weft.vmap(lambda k: random.gamma(k, 0.7))(keys),
            weft.vmap(weft.vmap(lambda k: random.gamma(k, 0.7)))(keys[None]),
        )
    )(keys)
    # By jax on CPUs.
    np.testing.assert_allclose(drawn, [0.3622880, 0.4961259, 0.3411505], rtol=1e-6)
    np.testing.assert_array_equal(twice[0], drawn)


def test_custom_vmap_takes_and_gives_keys():
    keys = random.split(random.key(3))
    closed = random.key(4)
    parts = weft.custom_batching.custom_vmap(lambda key, x: (random.split(key), x))
    parts.def_vmap(
        lambda size, flags, keys, x: ((weft.vmap(random.split)(keys), x), (flags[0], flags[1]))
    )
    one_by_one = weft.custom_batching.sequential_vmap(
        lambda key: random.normal(key) + random.normal(closed)
    )

    @weft.jit
    def run(keys):
        split, x = weft.vmap(parts, in_axes=(0, None))(keys, 2.0)
        numbers, tangents = weft.jvp(
            lambda x: weft.vmap(one_by_one)(keys) * x, (jnp.ones(2),), (jnp.full(2, 2.0),)
        )
        return split, x, parts(keys[0], 1.0)[0], numbers, tangents

    split, x, first, numbers, tangents = run(keys)
    wanted = [random.split(k) for k in keys]
    assert split.dtype == keys.dtype and (split == jnp.stack(wanted)).all()
    assert x.tolist() == [2.0, 2.0] and (first == wanted[0]).all()
    wanted = [random.normal(k) + random.normal(closed) for k in keys]
    np.testing.assert_allclose(numbers, wanted, rtol=1e-6)
    np.testing.assert_allclose(tangents, 2 * numbers)


def test_stateful_rng():
    """Answers are jax's."""
    rng = weft.experimental.random.stateful_rng(42)
    drawn = [rng.uniform(), rng.uniform(), weft.jit(rng.uniform)()]
    np.testing.assert_allclose(drawn, [0.5302608, 0.72766423, 0.6672406], rtol=1e-6)
    assert rng._counter[...] == 3

    def made():
        return weft.experimental.random.stateful_rng(0)

    assert random.key_data(made().key(2)).tolist() == [
        [4165894930, 804218099],
        [1353695780, 2116000888],
    ]
    assert [r.key().shape for r in made().spawn(2)] == [(), ()]
    drawn = [made().normal(1, 2, (2,)), made().uniform(jnp.arange(2.0), 5), made().random(2)]
    wanted = [[3.0080285, -0.8126744], [4.2115707, 1.7295146], [0.8423141, 0.18237865]]
    np.testing.assert_allclose(drawn, wanted, rtol=1e-6)
    assert made().integers(0, 10, 2).tolist() == made().integers(10, size=2).tolist() == [1, 1]
    many = weft.vmap(lambda r, x: x + r.uniform())(
        weft.experimental.random.stateful_rng(123).split(3), jnp.zeros(3)
    )
    np.testing.assert_allclose(many, [0.35525954, 0.21937883, 0.5336956], rtol=1e-6)
    with pytest.raises(TypeError, match="a seed; got None"):
        weft.jit(lambda: weft.experimental.random.stateful_rng().random())()
