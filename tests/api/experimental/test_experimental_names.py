"""weft.experimental: LSTM networks against NumPy, hints that change nothing, pjit,
compiled programs as bytes."""

import pickle
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax
from weft.experimental import (
    buffer_callback,
    compute_on,
    layout,
    overlap,
    rnn,
    roofline,
    scheduling_groups,
    topologies,
    xla_metadata,
)
from weft.experimental.pjit import pjit
from weft.experimental.serialize_executable import deserialize_and_load, serialize
from weft.sharding import PartitionSpec as P


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference(x, h, c, layers, lengths, num_layers, directions):
    """An LSTM network step by step, sequence by sequence."""
    h, c = np.array(h), np.array(c)
    for layer in range(num_layers):
        y = np.zeros((*x.shape[:2], directions * h.shape[-1]), np.float32)
        for direction in range(directions):
            number = layer * directions + direction
            w_ih, w_hh, b_ih, b_hh = (np.asarray(kind[number]) for kind in layers)
            for lane, length in enumerate(lengths):
                for t in range(length)[:: -1 if direction else 1]:
                    gates = w_ih @ x[lane, t] + b_ih + w_hh @ h[number, lane] + b_hh
                    i, f, g, o = np.split(gates, 4)
                    c[number, lane] = sigmoid(f) * c[number, lane] + sigmoid(i) * np.tanh(g)
                    h[number, lane] = sigmoid(o) * np.tanh(c[number, lane])
                    width = h.shape[-1]
                    y[lane, t, direction * width : (direction + 1) * width] = h[number, lane]
        x = y
    return x, h, c


@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm(bidirectional):
    sizes, directions = (3, 2, 2, bidirectional), 2 if bidirectional else 1
    count = rnn.get_num_params_in_lstm(*sizes)
    assert count == (240 if bidirectional else 104)
    weights = rnn.init_lstm_weight(weft.random.key(0), *sizes)
    assert weights.shape == (count,) and weights.dtype == np.float32
    assert 0.5 < np.abs(weights).max() < np.sqrt(0.5)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3, 4, 3)).astype(np.float32)
    h, c = rng.normal(size=(2, 2 * directions, 3, 2)).astype(np.float32)
    lengths = np.array([2, 4, 1], np.int32)
    layers = rnn.unpack_lstm_weights(weights, *sizes)
    assert [kind[0].shape for kind in layers] == [(8, 3), (8, 2), (8,), (8,)]
    got = rnn.lstm(x, h, c, weights, lengths, 3, 2, 2, 0.0, bidirectional)
    for a, b in zip(got, reference(x, h, c, layers, lengths, 2, directions), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    again = rnn.lstm_ref(x, h, c, *layers, lengths, 3, 2, 2, 0.0, bidirectional)
    np.testing.assert_allclose(again[0], got[0], atol=1e-6)

    swapped = rnn.swap_lstm_gates(weights, *sizes)
    np.testing.assert_array_equal(rnn.swap_lstm_gates(swapped, *sizes), weights)
    rows = np.asarray(rnn.unpack_lstm_weights(swapped, *sizes)[0][1])
    np.testing.assert_array_equal(rows[[0, 4, 6]], np.asarray(layers[0][1])[[0, 6, 4]])

    if bidirectional:

        def total(w):
            return rnn.lstm(x, h, c, w, lengths, 3, 2, 2, 0.0, True)[0].sum()

        gradient = np.asarray(weft.grad(total)(weights))
        step = 1e-2 * np.eye(count, dtype=np.float32)[np.abs(gradient).argmax()]
        slope = (total(weights + step) - total(weights - step)) / 2e-2
        np.testing.assert_allclose(gradient[step > 0][0], slope, rtol=1e-2)


def test_what_lstm_refuses():
    weights, zeros = wnp.zeros(104), wnp.zeros((2, 1, 2))
    x, lengths = wnp.zeros((1, 4, 3)), np.array([4], np.int32)
    with pytest.raises(NotImplementedError, match="no dropout"):
        rnn.lstm(x, zeros, zeros, weights, lengths, 3, 2, 2, 0.5, False)
    with pytest.raises(NotImplementedError, match="int32"):
        rnn.lstm(x, zeros, zeros, weights, wnp.ones(1), 3, 2, 2, 0, False)
    with pytest.raises(ValueError, match=r"weights of shape \(104,\)"):
        rnn.lstm(x, zeros, zeros, weights[1:], lengths, 3, 2, 2, 0, False)


def test_hints_change_nothing():
    @weft.jit
    @compute_on.compute_on("device_host")
    @scheduling_groups.scheduling_group("g")
    def f(x):
        with xla_metadata.set_xla_metadata(a=1), compute_on.compute_on("gpu_stream:1"):
            y = xla_metadata.set_xla_metadata(x + 1, b="2")
        host = compute_on.compute_on2(compute_type="device", out_memory_spaces=None)
        return scheduling_groups.xla_metadata_call(host(wnp.sin), c=3)(y)

    np.testing.assert_allclose(f(1.0), np.sin(2.0), rtol=1e-6)
    for wrong, error in ((1, TypeError), ("moon", ValueError)):
        with pytest.raises(error, match="compute_type"):
            compute_on.compute_on(wrong)


def test_pjit():
    f = pjit(lambda x, n: x * n, static_argnums=1)
    assert float(f(2.0, 3)) == 6 and isinstance(f, weft.stages.Wrapped)


OFFSET = wnp.arange(3.0)
KEY = weft.random.key(3)


def compiled():
    @weft.jit(donate_argnums=0, donate_argnames="y")
    def f(x, *, y, k):
        total = wnp.tanh(x) * y + OFFSET
        return {"sum": total, "keys": weft.random.split(k), "more": y + 1}

    return f.lower(wnp.ones(3), y=wnp.ones(3), k=KEY).compile()


LOADS = """
    import pickle, sys
    import numpy as np
    import weft, weft.numpy as wnp
    from weft.experimental.serialize_executable import deserialize_and_load
    from weft.runtime import compile

    made, ways = [], {name: getattr(compile, name) for name in ("_compiled", "_loaded")}

    def noted(name):
        return lambda *args: made.append(name) or ways[name](*args)

    for name in ways:
        setattr(compile, name, noted(name))
    with open(sys.argv[1], "rb") as file:
        stored = pickle.load(file)
    again = deserialize_and_load(*stored)
    assert made[-1] == "_loaded", made
    result = again(wnp.ones(3), y=2 * wnp.ones(3), k=weft.random.key(3))
    assert np.allclose(result["sum"], 2 * np.tanh(1) + np.arange(3)), result
    assert (weft.random.key_data(result["keys"]) == weft.random.key_data(
        weft.random.split(weft.random.key(3)))).all()
"""


def test_compiled_programs_as_bytes(tmp_path):
    here = compiled()
    data, in_tree, out_tree = serialize(here)
    again = deserialize_and_load(data, in_tree, out_tree, execution_devices=weft.devices()[:1])
    assert (again.in_tree, again.out_tree) == (here.in_tree, here.out_tree)
    assert again.donate_argnums == here.donate_argnums == (0, 2)
    assert str(again.out_avals) == str(here.out_avals)
    results = [f(wnp.ones(3), y=2 * wnp.ones(3), k=KEY)["sum"] for f in (here, again)]
    np.testing.assert_array_equal(*results)
    for wrong in (b"", data[:-1], data[:90] + bytes([data[90] ^ 1]) + data[91:]):
        with pytest.raises(ValueError, match="that serialize returned"):
            deserialize_and_load(wrong, in_tree, out_tree)
    with pytest.raises(TypeError, match="expected bytes"):
        deserialize_and_load("text", in_tree, out_tree)
    with pytest.raises(ValueError, match="structures of 3 arguments"):
        deserialize_and_load(data, weft.tree.structure(((0,), {})), out_tree)
    with pytest.raises(ValueError, match="expected one device"):
        deserialize_and_load(data, in_tree, out_tree, execution_devices=[None, None])
    callback = weft.jit(lambda x: weft.pure_callback(np.sin, x, x)).lower(1.0).compile()
    with pytest.raises(ValueError, match="this process"):
        serialize(callback)
    ref = weft.new_ref(1.0)
    with pytest.raises(NotImplementedError, match="refs"):
        serialize(weft.jit(lambda x: ref.__setitem__(..., x)).lower(1.0).compile())

    file = tmp_path / "compiled"
    file.write_bytes(pickle.dumps((data, in_tree, out_tree)))
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(LOADS), str(file)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr


def barriers_between(text):
    """The operations of a module in order, `|` for a barrier."""
    words = {"optimization_barrier": "|", "sine": "s", "cosine": "c", "multiply": "*", "tanh": "t"}
    names = re.findall(r"= stablehlo\.(\w+)", text)
    return "".join(words[name] for name in names if name in words)


def test_operations_in_the_order_of_the_program():
    def f(x, y):
        a = wnp.sin(x)
        b = wnp.cos(y)
        return a * b, y

    x = wnp.ones(3)
    free = barriers_between(weft.jit(f).lower(x, x).as_text())
    assert sorted(free) == ["*", "c", "s"]
    ordered = overlap.program_order(f, enforce=True)
    assert barriers_between(weft.jit(ordered).lower(x, x).as_text()) == "s|c|*"
    strict = overlap.program_order(enforce=True, strict_in_out=(True, True))(f)
    assert barriers_between(weft.jit(strict).lower(x, x).as_text()) == "|s|c|*|"
    for g in (ordered, strict, weft.jit(ordered), weft.vmap(ordered)):
        for got, expected in zip(g(x, 2 * x), f(x, 2 * x), strict=True):
            np.testing.assert_array_equal(got, expected)
    slope = weft.grad(lambda x: ordered(x, 2 * x)[0].sum())
    np.testing.assert_allclose(slope(x), weft.grad(lambda x: f(x, 2 * x)[0].sum())(x))


def test_a_free_part_of_an_ordered_program_is_one_operation():
    part = overlap.program_order(lambda x: wnp.sin(x) * wnp.tanh(x), enforce=False)
    whole = overlap.program_order(lambda x: wnp.cos(part(x)), enforce=True)
    text = barriers_between(weft.jit(whole).lower(wnp.ones(3)).as_text())
    assert text in ("st*|c", "ts*|c")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"enforce": True, "exclude_argnames": "x"}, "exclude_argnames"),
        ({"enforce": False, "strict_in_out": True}, "strict_in_out"),
        ({"enforce": False, "exclude_argnames": "z"}, "no parameter 'z'"),
    ],
)
def test_what_program_order_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        overlap.program_order(lambda x: x, **options)


def test_topologies():
    topology = topologies.get_attached_topology("cpu")
    assert topology.devices == weft.devices("cpu")
    mesh = topologies.make_mesh(topology, (len(topology.devices), 1), ("x", "y"))
    assert list(mesh.devices.flat) == topology.devices
    with pytest.raises(ValueError, match="positions"):
        topologies.make_mesh(topology, (len(topology.devices) + 1,), ("x",))
    with pytest.raises(NotImplementedError, match="cpu"):
        topologies.get_topology_desc(platform="cpu")
    with pytest.raises(RuntimeError, match="TPU"):
        topologies.get_topology_desc("v4:2x2")


def test_explicit_layouts_are_checked():
    f = layout.explicit_layout(lambda x, y: x @ y, in_layouts=layout.Layout((1, 0)))
    np.testing.assert_array_equal(weft.jit(f)(wnp.ones((2, 2)), wnp.ones((2, 2))), 2.0)
    with pytest.raises(ValueError, match="layout of 1 axes"):
        f(wnp.ones(2), wnp.ones((2, 2)))
    later = layout.explicit_layout(lambda x: x + 1)
    assert later(wnp.zeros(1), in_layouts=layout.Layout((0,)))[0] == 1
    with pytest.raises(TypeError, match="in_layouts"):
        later(wnp.zeros(1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: xla_metadata.xla_metadata_call(wnp.sin, note=[1]),
        lambda: xla_metadata.xla_metadata_call2(3),
        lambda: xla_metadata.xla_metadata_call2(wnp.sin, metadata=3),
        lambda: xla_metadata.xla_metadata_call2(wnp.sin, {"a": 1}, ad_metadata="all"),
    ],
)
def test_metadata_are_checked(call):
    with pytest.raises(TypeError, match="xla_metadata_call expected"):
        call()


def sum_of(context, out, x, y):
    assert context.stage is buffer_callback.ExecutionStage.EXECUTE
    assert (x.writeable, y.writeable, out["sum"].writeable) == (False, False, True)
    assert out["sum"].dtype == np.float32 and out["sum"].ndim == len(out["sum"].shape)
    np.add(np.from_dlpack(x), y, out=np.asarray(out["sum"]))


SUM = {"sum": weft.ShapeDtypeStruct((3,), "float32")}


@pytest.mark.parametrize("has_side_effect", [False, True])
def test_buffers_are_written(has_side_effect):
    f = buffer_callback.buffer_callback(sum_of, SUM, has_side_effect=has_side_effect)
    x = wnp.arange(3.0)
    for call in (f, weft.jit(f)):
        np.testing.assert_array_equal(call(x, 2 * x)["sum"], [0, 3, 6])
        np.testing.assert_array_equal(x, [0, 1, 2])


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [(3,), (3,)]),
        ("sequential_unrolled", [(3,), (3,)]),
        ("expand_dims", [(1, 2, 3), (4, 1, 3)]),
        ("broadcast_all", [(4, 2, 3), (4, 2, 3)]),
    ],
)
def test_buffers_under_vmap(method, shapes):
    seen = []

    def add(context, out, x, y):
        seen.append([x.shape, y.shape])
        sum_of(context, out, x, y)

    f = buffer_callback.buffer_callback(add, SUM, vmap_method=method)
    x, y = np.ones((2, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
    got = weft.vmap(weft.vmap(f, (0, None)), (None, 0))(x, y)["sum"]
    np.testing.assert_array_equal(got, x + y[:, None])
    assert seen[0] == shapes


def test_buffers_of_results_begin_with_arguments():
    def double(context, out, x):
        np.multiply(out, 2, out=np.asarray(out))

    many = weft.ShapeDtypeStruct((100_000,), "float32")  # memory that is not used again
    f = buffer_callback.buffer_callback(double, many, input_output_aliases={0: 0})
    x = wnp.arange(100_000.0)
    np.testing.assert_array_equal(weft.jit(f)(x), 2 * np.arange(100_000))
    np.testing.assert_array_equal(x, np.arange(100_000))
    x = wnp.arange(3.0)
    for aliases, shape in [({1: 0}, 3), ({0: 1}, 3), ({0: 0}, 4)]:
        wrong = weft.ShapeDtypeStruct((shape,), "float32")
        with pytest.raises(ValueError, match="aliases"):
            buffer_callback.buffer_callback(double, wrong, input_output_aliases=aliases)(x)


def test_what_functions_of_buffers_must_not_do():
    def returns(context, out, x):
        return x

    def writes_arguments(context, out, x):
        np.asarray(x)[0] = 1

    def asks_for_a_stream(context, out, x):
        return context.stream

    x = wnp.arange(3.0)
    for function, error in [
        (returns, "return nothing"),
        (writes_arguments, "read-only"),
        (asks_for_a_stream, "no streams"),
    ]:
        with pytest.raises(RuntimeError, match=error):
            weft.jit(buffer_callback.buffer_callback(function, SUM["sum"]))(x).block_until_ready()
    with pytest.raises(NotImplementedError, match="custom_jvp"):
        weft.grad(lambda x: buffer_callback.buffer_callback(returns, SUM["sum"])(x).sum())(x)


def shape(*sizes, dtype="float32"):
    return weft.ShapeDtypeStruct(sizes, dtype)


ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
ADDED = lax.ScatterDimensionNumbers((1,), (0,), (0,))
INDICES = shape(4, 1, dtype="int32")
# What JAX counts: flops, unfused_flops, hbm_bytes, peak_hbm_bytes, unfused_hbm_bytes.
COUNTS = {
    "elementwise": (lambda x, y: x * y + 2.0, [(3, 4), (3, 4)], (0, 24, 0, 96, 244)),
    "layers": (
        lambda x, w, v: wnp.sum(wnp.sin(x @ w) @ v),
        [(8, 16), (16, 32), (32, 4)],
        (10240, 10527, 5248, 3072, 7428),
    ),
    "batch": (
        lambda x, y: wnp.einsum("bij,bjk->bik", x, y),
        [(2, 3, 4), (2, 4, 5)],
        (240, 240, 376, 256, 376),
    ),
    "running": (
        lambda x: lax.cumsum(x, 0) + lax.cumlogsumexp(x, 1),
        [(3, 5)],
        (0, 28, 0, 120, 420),
    ),
    "convolution": (
        lambda x, w: lax.conv_general_dilated(
            x, w, (2, 1), [(1, 2), (0, 3)], lhs_dilation=(1, 2), rhs_dilation=(2, 1)
        ),
        [(2, 3, 9, 8), (4, 3, 3, 2)],
        (0, 7200, 0, 2176, 4192),
    ),
    "grouped": (
        lambda x, w: lax.conv_general_dilated(
            x,
            w,
            (1, 1),
            "SAME",
            feature_group_count=3,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        ),
        [(2, 9, 8, 3), (3, 2, 1, 6)],
        (0, 9000, 0, 3456, 5328),
    ),
    "select": (lambda x: lax.select(x > 0, x, x), [(3, 5)], (0, 30, 0, 75, 154)),
    "gather": (
        lambda x, i: lax.gather(x, i, ROWS, (1, 5), mode="fill"),
        [(9, 5), INDICES],
        (0, 36, 0, 196, 176),
    ),
    "scatter": (
        lambda x, i, u: lax.scatter_add(x, i, u, ADDED, mode="clip"),
        [(9, 5), INDICES, (4, 5)],
        (0, 20, 0, 276, 256),
    ),
    "loop": (lambda x: lax.scan(lambda c, y: (c * y, c), x[0], x)[0], [(5, 3)], (0, 3, 0, 72, 36)),
    "calls": (
        weft.checkpoint(lambda x: weft.jit(lambda x: wnp.sin(wnp.cos(x)))(x)),
        [(5, 3)],
        (0, 30, 0, 60, 240),
    ),
}


def counts(result):
    names = ("flops", "unfused_flops", "hbm_bytes", "peak_hbm_bytes", "unfused_hbm_bytes")
    return tuple(getattr(result, name) for name in names)


@pytest.mark.parametrize("name", COUNTS)
def test_rooflines(name):
    function, given, expected = COUNTS[name]
    args = [shape(*s) if isinstance(s, tuple) else s for s in given]
    shapes, result = roofline.roofline(function)(*args)
    assert counts(result) == expected
    assert shapes.shape == weft.eval_shape(function, *args).shape
    assert (result.ici_bytes, result.ici_latency) == ({}, {})


# What JAX counts: bytes and steps by axis, along axes x of 2 devices and y of 4.
SENT = {
    "psum": (lambda x: lax.psum(x, "y"), P("x"), {"y": 96}, {"y": 8}),
    "both": (lambda x: lax.psum(x, ("x", "y")), P(), {"x": 56, "y": 56}, {"x": 16, "y": 16}),
    "pmax": (lambda x: lax.pmax(x, "y"), P("x"), {"y": 12}, {"y": 4}),
    "all_gather": (
        lambda x: lax.all_gather(x, "y", tiled=True),
        P("x", "y"),
        {"y": 192},
        {"y": 4},
    ),
    "psum_scatter": (
        lambda x: lax.psum_scatter(x, "y", tiled=True, scatter_dimension=1),
        P("x", "y"),
        {"y": 48},
        {"y": 4},
    ),
    "all_to_all": (
        lambda x: lax.all_to_all(x, "y", 0, 1, tiled=True),
        P("x", "y"),
        {"y": 64},
        {"y": 2},
    ),
    "ppermute": (
        lambda x: lax.ppermute(x, "y", [(0, 1), (1, 3), (2, 2), (3, 0)]),
        P("x", "y"),
        {"y": 64},
        {"y": 2},
    ),
}


@pytest.mark.parametrize("name", SENT)
def test_rooflines_of_communication(name):
    function, out_spec, sent, steps = SENT[name]
    mesh = weft.sharding.AbstractMesh((2, 4), ("x", "y"))
    count = roofline.roofline(function, mesh, P("x", "y"), out_spec)
    shapes, result = count(shape(8, 16))
    assert (result.ici_bytes, result.ici_latency) == (sent, steps)
    assert shapes.sharding.spec == out_spec


def test_rules_of_rooflines(caplog, capsys):
    double = weft.extend.core.Primitive("double")
    double.def_abstract_eval(lambda x: x)
    count = roofline.roofline(lambda x: double.bind(x) + 1.0, print_jaxpr=True)
    assert count(shape(3))[1].unfused_flops == 3
    assert "no rule for double" in caplog.text and "= double" in capsys.readouterr().out

    @roofline.register_roofline(double)
    def rule(context, x):
        assert context.primitive is double and context.avals_out[0].shape == x.shape
        return roofline.RooflineResult(unfused_flops=10 * x.size, hbm_bytes=x.bytes)

    result = count(shape(3))[1]
    assert (result.unfused_flops, result.hbm_bytes) == (33, 12)
    roofline.register_standard_roofline(double)
    assert count(shape(3))[1].unfused_flops == 3

    total = 2 * result + roofline.RooflineResult(ici_bytes={"x": 1}, peak_hbm_bytes=1)
    assert (total.unfused_flops, total.hbm_bytes, total.ici_bytes) == (66, 24, {"x": 1})
    assert total.peak_hbm_bytes == 2 * result.peak_hbm_bytes


def test_rooflines_of_derivatives():
    mesh = weft.sharding.AbstractMesh((2, 4), ("x", "y"))
    count = roofline.roofline_and_grad(
        lambda x, w: lax.psum(x @ w, "y"), mesh, (P("x", "y"), P("y")), P("x")
    )
    _, result, of_product = count(shape(8, 16), shape(16, 4))
    assert result.flops == 128
    assert of_product.flops == 256  # of two products, neither of which is that of the function
    x = shape(8, 16), shape(16, 4)
    pinned = roofline.roofline(lambda x, w: x @ w, pin_lhs_in_vmem=True)(*x)[1]
    assert pinned.hbm_bytes == 16 * 4 * 4
    pinned = roofline.roofline(lambda x, w: x @ w, pin_rhs_in_vmem=True)(*x)[1]
    assert pinned.hbm_bytes == (8 * 16 + 8 * 4) * 4
