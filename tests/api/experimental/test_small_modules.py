"""weft.ops, flatten_util, image, dlpack, typing, monitoring, profiler, custom_batching,
experimental.ode and example_libraries: a table against jax, and what each promises."""

import typing

import numpy as np
import oracle
import pytest
from conftest import EVERYTHING
from oracle import needs_jax

import weft
import weft.numpy as jnp
from weft import custom_batching, image, lax, monitoring, ops
from weft.example_libraries import optimizers, stax
from weft.experimental.ode import odeint
from weft.flatten_util import ravel_pytree

IDS = np.int32([0, 2, 2, 1, -1, 7])
DATA = np.arange(6, dtype=np.float32)


@pytest.mark.parametrize(
    ("function", "empty", "combine"),
    [
        (ops.segment_sum, 0, np.add),
        (ops.segment_prod, 1, np.multiply),
        (ops.segment_max, -np.inf, np.maximum),
        (ops.segment_min, np.inf, np.minimum),
    ],
)
def test_segments(function, empty, combine):
    wanted = np.full(4, empty, np.float32)
    for i, x in zip(IDS, DATA, strict=True):
        if 0 <= i < 4:
            wanted[i] = combine(wanted[i], x)

    def every(data, ids):
        whole = function(data, ids, 4)
        rows = function(jnp.stack([data, data], 1), ids, 4)
        return whole, function(data, ids, 4, bucket_size=4), rows[:, 1]

    for got in weft.jit(every)(DATA, IDS):
        np.testing.assert_array_equal(got, wanted)
    assert function(DATA, IDS).shape == (8,)
    assert function(DATA[:0], IDS[:0], 2).tolist() == [empty, empty]
    assert function(DATA, IDS, 0).shape == (0,)
    assert function(DATA.astype("int8"), IDS, 4).dtype == np.int8
    clipped = function(DATA, IDS, 4, mode="clip")
    assert clipped[3] == 5


def test_segments_without_a_count_need_values():
    with pytest.raises(TypeError, match="num_segments"):
        weft.jit(ops.segment_sum)(DATA, IDS)
    for bad in ({"num_segments": -1}, {"bucket_size": 0}, {"mode": "foo"}):
        with pytest.raises(ValueError, match="expected"):
            ops.segment_sum(DATA, IDS, **bad)
    with pytest.raises(ValueError, match="segment number"):
        ops.segment_sum(DATA, IDS[:3])
    with pytest.raises(TypeError, match="integers"):
        ops.segment_sum(DATA, DATA)
    with pytest.raises(IndexError, match="got a mask"):
        ops.segment_sum(DATA, IDS == 1, 2)
    with pytest.raises(weft.errors.NonConcreteBooleanIndexError):
        weft.jit(lambda ids: ops.segment_sum(DATA, ids, 2))(IDS == 1)


def test_segment_sums_are_differentiated_and_mapped():
    weights = np.float32([1, 2, 3, 4])
    slopes = weft.grad(lambda x: ops.segment_sum(x, IDS, 4) @ weights)(DATA)
    assert slopes.tolist() == [1, 3, 3, 2, 0, 0]
    lanes = weft.vmap(lambda i: ops.segment_max(DATA, i, 3))(np.stack([IDS, 2 - IDS]))
    np.testing.assert_array_equal(lanes[1], ops.segment_max(DATA, 2 - IDS, 3))


@pytest.mark.parametrize("bucket_size", [None, 2])
def test_segment_products_are_differentiated(bucket_size):
    ids, data = np.int32([0, 0, 1, 1, 1, -1, 7]), np.float32([2, 3, 0, 4, 5, 6, 7])
    product = lambda x: ops.segment_prod(x, ids, 2, bucket_size=bucket_size)
    slopes = weft.grad(lambda x: product(x).sum())
    assert slopes(data).tolist() == [3, 2, 20, 0, 0, 0, 0]
    lanes = weft.vmap(slopes)(np.stack([data, np.ones(7, np.float32)]))
    assert lanes[1].tolist() == [1, 1, 1, 1, 1, 0, 0]
    second = weft.hessian(lambda x: product(x)[1])(data)[2:5, 2:5]
    assert second.tolist() == [[0, 5, 4], [5, 0, 0], [4, 0, 0]]
    rows = np.stack([data, data], 1)
    slopes = weft.grad(lambda x: product(x)[:, 1].sum())(rows)
    assert slopes[:, 0].tolist() == [0] * 7 and slopes[:, 1].tolist() == [3, 2, 20, 0, 0, 0, 0]


def test_ravel_pytree_and_back():
    tree = {"a": np.arange(2), "b": (np.ones((2, 1), np.float32), 2.0), "c": np.float16(3)}
    vector, unravel = ravel_pytree(tree)
    assert vector.tolist() == [0, 1, 1, 1, 2, 3] and vector.dtype == np.float32
    back = weft.jit(unravel)(vector)
    assert back["a"].dtype == np.int32 and back["c"].dtype == np.float16
    assert back["b"][0].shape == (2, 1)
    assert unravel == ravel_pytree(tree)[1] and hash(unravel) == hash(ravel_pytree(tree)[1])
    with pytest.raises(TypeError, match="dtype"):
        unravel(vector.astype("float16"))
    with pytest.raises(ValueError, match="6 elements"):
        unravel(vector[:3])
    assert ravel_pytree([np.ones(2, "f")])[1](np.arange(2))[0].dtype == np.int32
    assert ravel_pytree(())[0].shape == (0,) and ravel_pytree(())[1](vector[:0]) == ()
    slopes = weft.grad(lambda t: (ravel_pytree(t)[0] ** 2).sum())({"x": 3.0, "y": np.ones(2, "f")})
    assert slopes["x"] == 6 and slopes["y"].tolist() == [2, 2]


PICTURE = "jnp.sin(jnp.arange(20.0)).reshape(4, 5)"
METHODS = ["linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area"]
RESIZED = "[image.resize({0}, {1}, {2!r}, {3}) for {1} in [(8, 3), (2, 2), (4, 9), (1, 1)]]"
CASES = tuple(
    RESIZED.format(PICTURE, "shape", method, antialias)
    for method in ["nearest", *METHODS]
    for antialias in (True, False)
)
CASES += tuple(
    f"image.scale_and_translate({PICTURE}, (6, 3), (1, 0), jnp.array([0.7, 1.5]), "
    f"jnp.array([-0.5, 1.0]), {method!r})"
    for method in METHODS
)

SAMPLE = CASES if EVERYTHING else CASES[::7]


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("expression", SAMPLE)
def test_images_as_jax(expression):
    oracle.check(SAMPLE, expression)


ONE = np.ones(1, np.float32)


def test_images_keep_what_they_must():
    x = np.sin(np.arange(24, dtype=np.float32)).reshape(1, 4, 6, 1)
    resized = weft.jit(lambda x: [image.resize(x, (1, 7, 3, 1), m) for m in ("nearest", *METHODS)])(
        jnp.ones_like(x)
    )
    for each in resized:
        np.testing.assert_allclose(each, np.ones((1, 7, 3, 1)), rtol=1e-5)
    halved = image.resize(x, (1, 2, 3, 1), "area")[0, :, :, 0]
    np.testing.assert_allclose(halved, x.reshape(2, 2, 3, 2).mean((1, 3)), rtol=1e-5)
    doubled = image.resize(np.float32([0, 1]), (4,), "bilinear")
    np.testing.assert_allclose(doubled, [0, 0.25, 0.75, 1], rtol=1e-6)
    assert image.resize(np.arange(4), (2,), image.ResizeMethod.NEAREST).tolist() == [1, 3]
    moved = image.scale_and_translate(np.float32([1, 2, 3]), (3,), (0,), ONE, ONE, "linear")
    assert moved.tolist() == [0, 1, 2]
    pull = lambda t: image.scale_and_translate(x[0, :, 0, 0], (4,), (0,), np.ones(1), t, "linear")
    slope = weft.grad(lambda t: (pull(t) ** 2).sum())(np.float32([0.25]))
    ends = [(np.asarray(pull(np.float32([0.25 + d]))) ** 2).sum() for d in (-0.01, 0.01)]
    np.testing.assert_allclose(slope[0], (ends[1] - ends[0]) / 0.02, rtol=1e-2)
    for bad in [(x, (3, 3), "linear"), (x, (1, 4, 4, 1), "sharp"), (x, (1, 4, -4, 1), "linear")]:
        with pytest.raises(ValueError, match="expected"):
            image.resize(*bad)
    with pytest.raises(ValueError, match="nearest"):
        image.scale_and_translate(x, x.shape, (1,), np.ones(1), np.ones(1), "nearest")
    with pytest.raises(AssertionError, match="scale and translation"):
        image.scale_and_translate(x, x.shape, (1,), np.ones(2), np.ones(1), "linear")


def test_images_in_64_bits():
    x = np.array([1.0, 2.0, 4.0, 9.0])
    with weft.enable_x64(True):
        # Each is a mean, weighted by a triangle that reaches 4/3 to each side.
        middle = (np.arange(3) + 0.5) * 4 / 3 - 0.5
        weights = np.maximum(1 - np.abs(middle - np.arange(4)[:, None]) * 3 / 4, 0)
        right = x @ (weights / weights.sum(0))
        resized = image.resize(x, (3,), "linear")
        ratio = np.float32([0.75])
        scaled = image.scale_and_translate(x, (3,), (0,), ratio, np.float32([0]), "linear")
        for each in (resized, scaled):
            assert each.dtype == np.float64
            np.testing.assert_allclose(each, right, rtol=1e-15)


def test_dlpack_and_typing():
    shared = weft.dlpack.from_dlpack(np.arange(3, dtype=np.float32))
    assert shared.tolist() == [0, 1, 2]
    supported = weft.dlpack.is_supported_dtype
    assert supported(np.float32) and supported("bool") and not supported("int4")
    with pytest.raises(TypeError):
        supported(None)
    assert isinstance(shared, typing.get_args(weft.typing.ArrayLike))
    assert np.dtype in typing.get_args(weft.typing.DTypeLike)


def test_monitoring():
    heard = []
    kinds = {
        "event": (monitoring.record_event, ()),
        "event_duration_secs": (monitoring.record_event_duration_secs, (1.5,)),
        "event_time_span": (monitoring.record_event_time_span, (1.0, 2.0)),
        "scalar": (monitoring.record_scalar, (3,)),
    }
    listener = lambda *values, **tags: heard.append((*values, tags))
    for kind, (record, values) in kinds.items():
        getattr(monitoring, f"register_{kind}_listener")(listener)
        record("/e", *values, tag="x")
        getattr(monitoring, f"unregister_{kind.replace('_secs', '')}_listener")(listener)
        record("/e", *values)
    assert heard == [("/e", *values, {"tag": "x"}) for _, values in kinds.values()]
    monitoring.register_event_listener(listener)
    monitoring.clear_event_listeners()
    with pytest.raises(ValueError, match="registered"):
        monitoring.unregister_event_listener(listener)


@pytest.fixture
def product():
    """x * y, but x * y + 1 under vmap."""

    @custom_batching.custom_vmap
    def product(x, y=2.0):
        return x * y

    @product.def_vmap
    def rule(axis_size, in_batched, x, y):
        product.seen.append((axis_size, in_batched, np.shape(x)))
        return x * y + 1, in_batched[0] or in_batched[1]

    product.seen = []
    return product


X = np.float32([0, 1, 2])


def test_custom_vmap(product):
    assert product(3.0, 4.0) == 12 and weft.jit(product)(3.0) == 6
    assert weft.vmap(product, (0, None))(X, 2.0).tolist() == [1, 3, 5]
    assert product.seen.pop() == (3, [True, False], (3,))
    assert weft.jit(weft.vmap(product, 1))(np.stack([X, X])).tolist() == [[1, 1], [3, 3], [5, 5]]
    assert weft.vmap(weft.vmap(product))(np.stack([X, X])).tolist() == [[1, 3, 5]] * 2
    looped = weft.vmap(lambda x: lax.scan(lambda c, y: (product(c, y), c), 1.0, x)[0])
    assert looped(np.stack([X, X])).tolist() == [5, 5]
    chosen = weft.vmap(lambda x: lax.cond(x > 1, product, lambda x: x, x))
    assert chosen(X).tolist() == [0, 1, 5]


def test_derivatives_of_custom_vmap(product):
    square = lambda x: product(x, x)
    both = lambda x: weft.jvp(square, (x,), (1.0,))
    for values, tangents in (weft.vmap(both)(X), weft.jvp(weft.vmap(square), (X,), (X * 0 + 1,))):
        assert values.tolist() == [1, 2, 5] and tangents.tolist() == [0, 2, 4]
    second = weft.vmap(lambda x: weft.jvp(lambda x: both(x)[1], (x,), (1.0,))[1])
    assert second(X).tolist() == [2, 2, 2]
    assert weft.grad(lambda x: weft.vmap(square)(x).sum())(X).tolist() == [0, 2, 4]
    with pytest.raises(ValueError, match="reverse mode"):
        weft.grad(square)(1.0)
    reverse = weft.custom_vjp(product)
    reverse.defvjp(lambda x, y: (product(x, y), (x, y)), lambda r, g: (g * r[1], g * r[0]))
    assert weft.vmap(weft.grad(reverse))(X, X + 1).tolist() == [1, 2, 3]


def test_custom_vmap_of_a_function_with_a_keyword_only_default():
    f = custom_batching.custom_vmap(lambda x, *, scale=2.0: x * scale)
    f.def_vmap(lambda size, mapped, x: (x * 3.0, True))
    assert f(1.0) == f(x=1.0) == 2
    np.testing.assert_array_equal(weft.vmap(f)(np.ones(2)), [3, 3])
    with pytest.raises(TypeError, match="custom_vmap: expected arguments.*positions; got scale"):
        f(1.0, scale=3.0)
    with pytest.raises(TypeError, match="custom_vmap: call of.*missing a required argument: 'x'"):
        f()


def test_rules_of_a_wrapped_function_are_set_on_the_one_around_it():
    double = weft.custom_vjp(custom_batching.custom_vmap(lambda x: 2 * x))
    double.def_vmap(lambda size, batched, x: (2 * x + 1, True))
    double.defvjp(lambda x: (double(x), None), lambda _, g: (g * 3,))
    assert weft.vmap(double)(X).tolist() == [1, 3, 5] and weft.grad(double)(1.0) == 3
    outer = custom_batching.custom_vmap(weft.custom_jvp(lambda x: 2 * x))
    outer.def_vmap(lambda size, batched, x: (2 * x + 1, True))
    outer.defjvp(lambda x, t: (2 * x[0], 5 * t[0]))
    assert weft.jvp(outer, (1.0,), (1.0,))[1] == 5 and weft.vmap(outer)(X).tolist() == [1, 3, 5]
    assert not hasattr(weft.custom_vjp(lambda x: x), "def_vmap")


def test_mistakes_with_custom_vmap(product):
    bare = custom_batching.custom_vmap(lambda x: x)
    with pytest.raises(AttributeError, match="def_vmap"):
        bare(1.0)
    for rule, words in [
        (lambda n, b, x: x, "pair"),
        (lambda n, b, x: ((x, x), True), "results of the structure"),
        (lambda n, b, x: (x, (True,)), "out_batched of the structure"),
        (lambda n, b, x: (x[0], True), "mapped at 0"),
    ]:
        bare.def_vmap(rule)
        with pytest.raises(ValueError, match=words):
            weft.vmap(bare)(X)

    def closing(x):
        inner = custom_batching.custom_vmap(lambda y: x * y)
        inner.def_vmap(lambda n, b, y: (x * y, True))
        return inner(1.0)

    with pytest.raises(ValueError, match="closes over"):
        weft.vmap(weft.jit(closing))(X)


def test_sequential_vmap_calls_lane_by_lane():
    shapes = []

    @custom_batching.sequential_vmap
    def double(x, y):
        shapes.append(x.shape)
        return 2 * x + y

    assert weft.vmap(double, (0, None))(np.ones((2, 3), "f"), 1.0).tolist() == [[3] * 3] * 2
    assert set(shapes) == {(3,)}
    assert weft.vmap(weft.vmap(double))(np.ones((2, 2), "f"), np.ones((2, 2), "f")).shape == (2, 2)


TIMES = np.linspace(0, 2, 5).astype(np.float32)


def test_odeint():
    decay = lambda y, t, a: -a * y

    def every(a):
        tree = odeint(lambda y, t: {"s": y["c"], "c": -a * a * y["s"]}, {"s": 0.0, "c": a}, TIMES)
        complex_valued = odeint(lambda y, t: 1j * a * y, 1j, TIMES)
        return odeint(decay, 1.0, TIMES, a), tree["s"], complex_valued

    got, sine, turned = weft.jit(every)(2.0)
    np.testing.assert_allclose(got, np.exp(-2 * TIMES), rtol=1e-5)
    np.testing.assert_allclose(sine, np.sin(2 * TIMES), atol=1e-5)
    np.testing.assert_allclose(turned, 1j * np.exp(2j * TIMES), atol=1e-5)
    slopes = weft.grad(lambda y, t, a: odeint(decay, y, t, a)[-1], (0, 1, 2))(1.0, TIMES, 2.0)
    end = np.exp(-4)
    np.testing.assert_allclose(slopes[0], end, rtol=1e-4)
    np.testing.assert_allclose(slopes[1], [2 * end, 0, 0, 0, -2 * end], rtol=1e-4)
    np.testing.assert_allclose(slopes[2], -2 * end, rtol=1e-4)
    closed = weft.grad(lambda a: odeint(lambda y, t: -a * y, 1.0, TIMES)[2])(2.0)
    np.testing.assert_allclose(closed, -np.exp(-2), rtol=1e-4)
    lanes = weft.vmap(lambda a: odeint(decay, 1.0, TIMES, a))(np.float32([1, 2]))
    np.testing.assert_allclose(lanes, np.exp(-np.outer([1, 2], TIMES)), rtol=1e-4)


def test_odeint_limits_and_mistakes():
    fall = lambda y, t: -y
    coarse = odeint(fall, 1.0, TIMES, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(coarse, np.exp(-TIMES), atol=3e-2)
    few = odeint(lambda y, t: -40 * y, 1.0, TIMES, mxstep=1)
    assert abs(few[1] - np.exp(-20)) > 1e-3
    for args, error in [
        ((fall, 1, TIMES), TypeError),
        ((fall, 1.0, np.arange(3)), TypeError),
        ((fall, 1.0, TIMES[None]), ValueError),
        ((fall, 1.0, TIMES, "a"), TypeError),
        ((lambda y, t: (y, y), 1.0, TIMES), ValueError),
    ]:
        with pytest.raises(error, match="odeint"):
            odeint(*args)


# The first element of the parameters after three steps with one gradient, as jax has it.
STEPS = {
    "sgd(0.1)": 0.85,
    "momentum(0.1, 0.9)": 0.7195,
    "nesterov(0.1, 0.9)": 0.59755,
    "adagrad(0.1)": 0.9536915,
    "rmsprop(0.1)": 0.2622619,
    "rmsprop_momentum(0.1)": -0.4849615,
    "adam(0.1)": 0.7,
    "adamax(0.1)": 0.7,
    "sm3(0.1)": 0.9536915,
    "adam(optimizers.exponential_decay(0.1, 2, 0.5))": 0.7792909,
}


def test_optimizers():
    start = {"a": np.float32([1, 2]), "b": np.ones((2, 2), "f"), "c": np.float32(1)}
    gradient = {"a": np.float32([0.5, -1]), "b": np.full((2, 2), 0.3, "f"), "c": np.float32(0.5)}

    def every(gradient):
        ends = []
        for name in STEPS:
            optimizer = eval(f"optimizers.{name}")
            state = optimizer.init_fn(start)
            for i in range(3):
                state = optimizer.update_fn(i, gradient, state)
            ends.append(optimizer.params_fn(state))
        return ends

    for end, wanted in zip(weft.jit(every)(gradient), STEPS.values(), strict=True):
        np.testing.assert_allclose([end["a"][0], end["c"]], wanted, rtol=1e-5)
        assert end["b"].shape == (2, 2)
    optimizer = optimizers.adam(0.1)
    state = optimizer.init_fn(start)
    packed = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    assert packed.tree_def == state.tree_def and packed.subtree_defs == state.subtree_defs
    with pytest.raises(ValueError, match="structure of the parameters"):
        optimizer.update_fn(0, (1.0,), state)


def test_schedules_and_clipping():
    at = lambda schedule: [round(float(schedule(i)), 6) for i in (0, 2, 9)]
    assert at(optimizers.constant(0.1)) == [0.1, 0.1, 0.1]
    assert at(optimizers.inverse_time_decay(0.1, 2, 0.5)) == [0.1, 0.066667, 0.030769]
    assert at(optimizers.inverse_time_decay(0.1, 2, 0.5, True)) == [0.1, 0.066667, 0.033333]
    assert at(optimizers.polynomial_decay(0.1, 4, 0.01, 2.0)) == [0.1, 0.0325, 0.01]
    assert at(optimizers.piecewise_constant([1, 3], [0.1, 0.2, 0.3])) == [0.1, 0.2, 0.3]
    with pytest.raises(ValueError, match="one more"):
        optimizers.piecewise_constant([1, 3], [0.1])
    with pytest.raises(TypeError, match="schedule|number"):
        optimizers.make_schedule("fast")
    tree = {"a": np.float32([3, 4])}
    assert optimizers.l2_norm(tree) == 5
    np.testing.assert_allclose(optimizers.clip_grads(tree, 1.0)["a"], [0.6, 0.8], rtol=1e-6)
    assert optimizers.clip_grads(tree, 9.0)["a"].tolist() == [3, 4]


def test_layers():
    branch = stax.serial(stax.AvgPool((2, 2), padding="SAME"), stax.Identity)
    init, apply = stax.serial(
        stax.Conv(3, (2, 2)),
        stax.BatchNorm(),
        stax.Relu,
        stax.MaxPool((2, 2)),
        stax.FanOut(2),
        stax.parallel(branch, stax.SumPool((1, 1))),
        stax.FanInConcat(),
        stax.ConvTranspose(2, (2, 2)),
        stax.Flatten,
        stax.Dropout(0.5),
        stax.shape_dependent(lambda shape: stax.Dense(shape[-1] // 10)),
        stax.LogSoftmax,
    )
    key = weft.random.PRNGKey(0)
    shape, params = init(key, (2, 6, 6, 1))
    out = weft.jit(apply)(params, np.ones((2, 6, 6, 1), "f"), rng=key)
    assert out.shape == shape == (2, 5)
    assert type(params[5]) is tuple and len(params[5]) == 2  # of `parallel`, as in jax
    np.testing.assert_allclose(np.exp(out).sum(1), [1, 1], rtol=1e-5)
    with pytest.raises(ValueError, match="rng="):
        apply(params, np.ones((2, 6, 6, 1), "f"))


def test_profiles(tmp_path):
    profiler = weft.profiler
    double = profiler.annotate_function(weft.jit(lambda x: x + x), name="doubling")
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        with pytest.raises(RuntimeError, match="stop_trace"):
            profiler.start_trace(tmp_path)
        with profiler.StepTraceAnnotation("step", step_num=1):
            assert double(DATA)[1] == 2
    (run,) = (tmp_path / "plugins" / "profile").iterdir()
    assert (run / "perfetto_trace.json.gz").exists()
    (planes,) = run.glob("*.xplane.pb")
    profile = profiler.ProfileData.from_file(str(planes))
    host = next(plane for plane in profile.planes if plane.name == "/host:CPU")
    assert {"doubling", "step"} <= {event.name for line in host.lines for event in line.events}
    for stop, error in [(profiler.stop_trace, RuntimeError), (profiler.stop_server, ValueError)]:
        with pytest.raises(error, match="there is none"):
            stop()
    with profiler.ProfileSession() as session:
        assert session.is_running and session.profile_data is None
        with pytest.raises(RuntimeError, match="stop it first"):
            session.export_profile_data(tmp_path)
        assert double(DATA)[1] == 2
    host = session.profile_data.find_plane_with_name("/host:CPU")
    lines = list(host.lines)
    assert "doubling" in {event.name for line in lines for event in line.events}
    assert all(isinstance(line, profiler.ProfileLine) for line in lines)
    with pytest.raises(RuntimeError, match="start it first"):
        session.stop()
    profiler.export_profile_data(session, tmp_path / "again", create_perfetto_trace=True)
    (run,) = (tmp_path / "again" / "plugins" / "profile").iterdir()
    assert (run / "perfetto_trace.json.gz").exists()
    with pytest.raises(TypeError, match="got 3"):
        profiler.export_profile_data(3, tmp_path)
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert (tmp_path / "memory.prof").stat().st_size
