"""Functions on the host within programs: pure_callback."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import errors

X = np.arange(3, dtype=np.float32)
S = weft.ShapeDtypeStruct


def host_sin(x):
    assert isinstance(x, weft.Array) and x.device.platform == "cpu"
    return np.sin(x)


def call(x, **options):
    return weft.pure_callback(host_sin, S(x.shape, x.dtype), x, **options)


def compiles(f):
    before = weft._core.cache_stats()["compiles"]
    f()
    return weft._core.cache_stats()["compiles"] - before


def test_values():
    np.testing.assert_allclose(call(X), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(weft.jit(call)(X), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(
        weft.jit(lambda x: wnp.exp(call(x * 2)) + 1)(X), np.exp(np.sin(2 * X)) + 1, rtol=1e-6
    )
    text = str(weft.make_jaxpr(call)(X))
    assert "callback=host_sin" in text and "result_avals=(f32[3],)" in text


@pytest.mark.parametrize("call_host", [weft.pure_callback, weft.experimental.io_callback])
def test_sharding_is_that_of_a_device(call_host):
    def f(x, sharding):
        return call_host(host_sin, S((3,), np.float32), x, sharding=sharding)

    one = weft.sharding.SingleDeviceSharding(weft.devices()[0])
    for g in (f, weft.jit(f, static_argnums=1)):
        np.testing.assert_allclose(g(X, one), np.sin(X), rtol=1e-6)
        with pytest.raises(NotImplementedError, match="expected sharding to be a SingleDevice"):
            g(X, "cpu")


def test_trees_and_dtypes():
    def host(pair, *, scale):
        return {"sum": pair[0] + pair[1] * scale, "n": np.int32(len(pair)), "empty": pair[0][:0]}

    shapes = {"sum": X, "n": S((), np.int32), "empty": S((0,), np.float32)}
    f = lambda x, y: weft.pure_callback(host, shapes, (x, y), scale=2.0)
    for out in (f(X, X), weft.jit(f)(X, X)):
        np.testing.assert_array_equal(out["sum"], 3 * X)
        assert (out["n"].dtype, int(out["n"])) == (np.int32, 2)
        assert out["empty"].shape == (0,)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "complex64"])
def test_dtypes_go_through(dtype):
    x = wnp.asarray([0, 1, 1]).astype(dtype)
    got = weft.jit(lambda x: weft.pure_callback(lambda a: a[::-1], x, x))(x)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(got), np.asarray(x)[::-1])


def test_64_bits_are_narrowed_as_elsewhere():
    out = weft.jit(lambda x: weft.pure_callback(lambda a: np.asarray(a, np.float64), x, x))(X)
    assert out.dtype == np.float32
    assert weft.jit(lambda: weft.pure_callback(lambda: 2.5, S((), np.float32)))() == 2.5
    with weft.enable_x64(True):
        f = weft.jit(lambda x: weft.pure_callback(lambda a: np.asarray(a, np.float64), x, x))
        with pytest.raises(RuntimeError, match=r"float32\[3\], as promised; got float64\[3\]"):
            f(X).block_until_ready()


def test_arguments_may_be_kept_and_are_not_aliased():
    kept = []
    f = weft.jit(lambda x: weft.pure_callback(lambda a: kept.append(a) or a, x, x * 2))
    for i in range(20):
        f(X + i).block_until_ready()
    for i, a in enumerate(kept):
        np.testing.assert_array_equal(a, 2 * (X + i))


def test_arguments_are_no_transfers():
    f, x = weft.jit(call), weft.device_put(X)
    with weft.transfer_guard("disallow_explicit"):
        y = f(x)
    np.testing.assert_allclose(y, np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("wrap", [weft.jit, lambda f: f], ids=["jit", "eager"])
def test_arguments_are_read_only(wrap):
    def host(a):
        a[0] = 5
        return a

    x = X.copy()
    with pytest.raises(TypeError, match="immutable"):
        wrap(lambda x: weft.pure_callback(host, x, x))(x).block_until_ready()
    np.testing.assert_array_equal(x, X)


def test_programs_are_shared_by_function():
    f = lambda n: weft.jit(lambda x: weft.pure_callback(host_sin, x, x) * n)
    f(3.25)(X)
    assert compiles(lambda: f(3.25)(X)) == 0
    other = lambda x: np.cos(x)
    g = weft.jit(lambda x: weft.pure_callback(other, x, x) * 3.25)
    assert compiles(lambda: np.testing.assert_allclose(g(X), 3.25 * np.cos(X), rtol=1e-6)) == 1
    two = weft.jit(lambda x: weft.pure_callback(host_sin, x, x) - weft.pure_callback(other, x, x))
    np.testing.assert_allclose(two(X), np.sin(X) - np.cos(X), rtol=1e-6)


def test_unused_and_equal_calls_are_dropped():
    log = []

    def host(x):
        log.append(1)
        return x

    @weft.jit
    def f(x):
        weft.pure_callback(host, x, x + 1)
        return weft.pure_callback(host, x, x) + weft.pure_callback(host, x, x)

    np.testing.assert_array_equal(f(X), 2 * X)
    assert len(log) == 1


METHODS = {
    "expand_dims": [((4, 3), (1, 3))],
    "broadcast_all": [((4, 3), (4, 3))],
    "legacy_vectorized": [((4, 3), (3,))],
    "sequential": [((3,), (3,))] * 4,
    "sequential_unrolled": [((3,), (3,))] * 4,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wrap", [weft.jit, lambda f: f])
def test_vmap(method, wrap):
    shapes = []

    def host(x, y):
        shapes.append((x.shape, y.shape))
        return x * y, (x + y).sum(-1)

    def f(x, y):
        out = (S((3,), np.float32), S((), np.float32))
        return weft.pure_callback(host, out, x, y, vmap_method=method)

    xs = np.arange(12, dtype=np.float32).reshape(3, 4)
    product, total = wrap(weft.vmap(f, in_axes=(1, None)))(xs, X)
    np.testing.assert_array_equal(product, xs.T * X)
    np.testing.assert_array_equal(total, (xs.T + X).sum(-1))
    assert shapes == METHODS[method]


@pytest.mark.parametrize("method", METHODS)
def test_vmap_twice_and_over_nothing(method):
    xs = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    f = weft.vmap(lambda x: call(x, vmap_method=method))
    np.testing.assert_allclose(weft.vmap(f)(xs), np.sin(xs), rtol=1e-6)
    assert f(xs[:0]).shape == (0, 3, 4)


def test_vmap_errors():
    with pytest.raises(errors.NotImplementedRuleError, match="vmap_method to be given"):
        weft.vmap(call)(X)
    with pytest.raises(ValueError, match="vmap_method: expected one of None, 'sequential'"):
        call(X, vmap_method="parallel")


def test_derivatives():
    with pytest.raises(errors.NotImplementedRuleError, match="custom_jvp") as e:
        weft.grad(lambda x: call(x).sum())(X)
    assert __file__ in str(e.value)

    @weft.custom_jvp
    def sin(x):
        return call(x, vmap_method="expand_dims")

    sin.defjvp(lambda xs, ts: (sin(xs[0]), wnp.cos(xs[0]) * ts[0]))
    for wrap in (lambda f: f, weft.jit):
        np.testing.assert_allclose(wrap(weft.vmap(weft.grad(sin)))(X), np.cos(X), rtol=1e-6)


def test_nested_programs_in_a_callback():
    inner = weft.jit(lambda x: wnp.cos(x) + call(x))
    f = weft.jit(lambda x: weft.pure_callback(inner, x, wnp.exp(x)))
    for size in (3, 100_000):
        x = np.linspace(0, 1, size, dtype=np.float32)
        np.testing.assert_allclose(f(x), np.cos(np.exp(x)) + np.sin(np.exp(x)), atol=1e-5)


def boom(x):
    raise ValueError("boom from the host")


WRONG = {
    "shape": (lambda x: x[:1], r"result 0 to be float32\[3\], as promised; got float32\[1\]"),
    "large": (lambda x: np.ones(10**6, np.float32), r"got float32\[1000000\]"),
    "dtype": (lambda x: x.astype(np.int32), r"got int32\[3\]"),
    "tree": (lambda x: [x, x], "to return the tree"),
    "object": (lambda x: object(), r"got object\[\]"),
    "raise": (boom, "boom from the host"),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("wrap", [weft.jit, lambda f: f], ids=["jit", "eager"])
def test_wrong_results_never_reach_the_device(kind, wrap):
    function, message = WRONG[kind]
    f = wrap(lambda x: weft.pure_callback(function, x, x))
    for _ in range(3):
        with pytest.raises((RuntimeError, ValueError, TypeError), match=message):
            f(X).block_until_ready()
    # The process is well.
    np.testing.assert_allclose(weft.jit(call)(X), np.sin(X), rtol=1e-6)


class OwnError(Exception):
    def __init__(self, code):
        super().__init__("own", code)
        self.code = code


@pytest.mark.parametrize("size", [3, 1 << 20])
@pytest.mark.parametrize("error", [OwnError, KeyboardInterrupt, SystemExit])
def test_errors_of_the_function_arrive_as_they_are(error, size):
    raised = []

    def fails(x):
        raised.append(error(7))
        raise raised[-1]

    x = np.ones(size, np.float32)
    f = weft.jit(lambda x: wnp.cos(weft.pure_callback(fails, x, wnp.sin(x))))
    for use in (lambda y: y.block_until_ready(), np.asarray, lambda y: float(y[0])):
        with pytest.raises(error) as caught:
            use(weft.jit(lambda y: y + 1)(f(x)))
        assert caught.value is raised[-1]
        names = [entry.name for entry in caught.traceback]
        assert names[-1] == "fails" and names.count("fails") == 1
    effect = weft.jit(lambda x: weft.debug.callback(fails, x, partitioned=True))
    with pytest.raises(error):
        effect(x)
        weft.effects_barrier()


def test_errors_of_functions_within_functions():
    inner = weft.jit(lambda x: weft.pure_callback(boom, x, x))
    outer = weft.jit(lambda x: weft.pure_callback(lambda x: np.asarray(inner(x)), x, x))
    with pytest.raises(ValueError, match="^boom from the host$") as caught:
        outer(X).block_until_ready()
    assert caught.traceback[-1].name == "boom"


def test_wrong_results_name_the_line():
    with pytest.raises(RuntimeError, match=f"as promised(.|\n)*at {__file__}"):
        weft.jit(lambda x: weft.pure_callback(lambda a: a[:1], x, x))(X).block_until_ready()


def test_wrong_arguments():
    with pytest.raises(TypeError, match="expected a function"):
        weft.pure_callback(3, X, X)
    with pytest.raises(errors.ArgumentTypeError, match="argument 0 of 'host_sin'"):
        weft.pure_callback(host_sin, X, "x")


def test_program_text():
    lowered = weft.jit(call).lower(X)
    assert "xla_ffi_python_cpu_callback" in lowered.as_text()
    weft.compiler.verify_stablehlo(lowered.as_text())
    np.testing.assert_allclose(lowered.compile()(X), np.sin(X), rtol=1e-6)
    graph = weft.jit(call).trace(X).graph
    with pytest.raises(errors.NotImplementedRuleError, match="platform cpu"):
        weft._core.emit_stablehlo(graph, platform="cuda")
    with pytest.raises(errors.ParseError, match="got an object"):
        weft._core.parse(str(graph))


def test_promised_64_bit_types_are_refused_where_those_are_off():
    promised = weft.ShapeDtypeStruct((), np.float64)
    assert promised.dtype == np.float64
    with pytest.raises(errors.DTypeError, match="32-bit"):
        weft.pure_callback(lambda: np.float64(1), promised)
    with weft.enable_x64(True):
        assert weft.pure_callback(lambda: np.float64(1), promised).dtype == np.float64


def test_subnormal_numbers_within_host_functions():
    tiny, seen = np.float64(1e-310), []

    def host(x):
        inner = float(weft.jit(lambda x: x * 2)(np.float32(1.5)))  # leaves the thread as it was
        made = float("1e-310"), tiny / 2, np.float32(1e-40), inner
        seen.append((*made, bool(np.asarray(x) > 0), weft._core.flushes_subnormals()))
        return np.float32(made[2])

    shape = S((), np.float32)
    subnormal = np.float32(1e-42)
    programs = {
        "pure": lambda x: weft.pure_callback(host, shape, x),
        "io": lambda x: weft.experimental.io_callback(host, shape, x, ordered=True),
        "debug": lambda x: (weft.debug.callback(host, x), x + 1)[1],
        "loop": lambda x: weft.lax.fori_loop(0, 2, lambda i, c: call_in_loop(c), x),
        "vmap": lambda x: weft.vmap(
            lambda y: weft.pure_callback(host, shape, y, vmap_method="sequential")
        )(x[None])[0],
    }

    def call_in_loop(x):
        return weft.pure_callback(host, shape, x)

    for name, f in programs.items():
        result = weft.jit(f)(subnormal)
        weft.effects_barrier()
        assert seen, name
        assert set(seen) == {(1e-310, tiny / 2, np.float32(1e-40), 3.0, True, False)}, name
        seen.clear()
        if name in ("pure", "io", "vmap"):
            assert np.asarray(result) == np.float32(1e-40)
    assert not weft._core.flushes_subnormals()


def test_an_error_in_a_host_function_leaves_the_thread_as_it_was():
    def host(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        weft.jit(lambda x: weft.pure_callback(host, S((3,), np.float32), x))(X).block_until_ready()
    assert not weft._core.flushes_subnormals()
    test_values()


def test_a_call_without_a_result_is_refused_where_lanes_differ():
    """It would run for lanes that do not choose it, or that have ended."""
    seen = []
    note = lambda x: weft.experimental.io_callback(seen.append, None, x)
    chosen = weft.vmap(lambda p, x: weft.lax.cond(p, note, lambda x: None, x))
    counted = weft.vmap(
        lambda i: weft.lax.while_loop(lambda i: i < 5, lambda i: (note(i), i + 1)[1], i)
    )
    for call in (
        lambda: chosen(np.array([True, False]), np.arange(2)),
        lambda: counted(np.array([3, 4])),
        lambda: weft.jit(counted)(np.array([3, 4])),
    ):
        with pytest.raises(NotImplementedError, match="expected no io_callback"):
            call()
    assert not seen


def test_calls_in_a_shard_map_over_one_device():
    P, mesh = weft.sharding.PartitionSpec, weft.make_mesh((1,), ("x",))
    mapped = lambda f, out: weft.jit(weft.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=out))
    add_one = lambda x: weft.pure_callback(lambda x: x + 1, x, x)
    np.testing.assert_array_equal(mapped(add_one, P("x"))(np.arange(3.0)), [1, 2, 3])
    np.testing.assert_array_equal(weft.pmap(add_one)(np.ones((1, 2), np.float32)), [[2, 2]])
    seen = []
    note = lambda x: weft.experimental.io_callback(seen.append, None, x, ordered=True)
    mapped(lambda x: (note(x[0]), note(x[1]))[0], None)(np.arange(2.0))
    weft.effects_barrier()
    assert [float(x) for x in seen] == [0, 1]


@pytest.mark.parametrize("wrap", [weft.jit, lambda f: f])
@pytest.mark.parametrize("call", [weft.pure_callback, weft.experimental.io_callback])
def test_errors_of_the_function_are_logged(call, wrap, caplog):
    def bad(x):
        raise ValueError("of mine")

    with pytest.raises(ValueError, match="of mine"):
        wrap(lambda x: call(bad, weft.ShapeDtypeStruct((), "float32"), x))(1.0).block_until_ready()
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("weft", "ERROR")
    assert record.getMessage() == f"{call.__name__} of 'bad' failed"
    assert "of mine" in str(record.exc_info[1])
