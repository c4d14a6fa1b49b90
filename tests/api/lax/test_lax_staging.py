"""What stands around operations: composites, platforms, tokens, sinks, places."""

from types import SimpleNamespace

import numpy as np
import pytest

import weft
from weft import compiler, lax, numpy as wnp
from weft.errors import AttributeValueError, ControlFlowTypeError, OperandError, ShapeError


def scaled(x, *, scale=2.0, **_):
    return {"y": wnp.sin(x) * scale}


named = lax.composite(scaled, "test.scaled", version=3)


def text(f, *xs):
    return weft.jit(f).lower(*xs).as_text()


def test_composites_are_emitted_with_their_attributes():
    attributes = {
        "a": 1, "b": 2.5, "c": True, "d": 's"\\é', "e": None, "f": (1, 2), "g": [1.5, "z"],
        "h": np.arange(3), "i": np.float32(2), "j": {"u": 1, "v w": (True,)}, "k": np.dtype("int8"),
        "l": np.ones((2, 2), np.float32), "m": [], "n": np.array([True, False]),
        "o": np.zeros((0, 2), np.int8), "scale": 3.0,
    }  # fmt: skip
    program = text(lambda x: named(x, **attributes), 1.0)
    for part in (
        'stablehlo.composite "test.scaled" %arg0', "version = 3 : i32", "a = 1 : i64", "c = true",
        r'd = "s\22\5C\C3\A9"', "f = [1 : i64, 2 : i64]", 'j = {u = 1 : i64, "v w" = [true]}',
        "h = dense<[0, 1, 2]> : tensor<3xi64>", "o = dense<> : tensor<0x2xi8>", "k = i8",
        "n = dense<[true, false]> : tensor<2xi1>", "b = 0x4004000000000000 : f64",
    ):  # fmt: skip
        assert part in program
    assert ", e = " not in program
    np.testing.assert_allclose(named(0.5, **attributes)["y"], 3 * np.sin(0.5), rtol=1e-6)


def test_transforms_of_composites_are_those_of_the_decomposition():
    x = np.linspace(0, 1, 3, dtype=np.float32)
    f = lambda x: named(named(x)["y"])["y"]
    plain = lambda x: scaled(scaled(x)["y"])["y"]
    for transform in (weft.vmap, lambda f: weft.vmap(weft.grad(f)), weft.jacfwd, weft.hessian):
        np.testing.assert_allclose(transform(f)(x), transform(plain)(x), rtol=1e-5)
    assert "composite" not in text(weft.vmap(f), x)
    assert text(f, x).count("stablehlo.composite") == 2


def test_linear_composites_are_transposed():
    f = lax.composite(lambda x: 3 * x, "test.linear")
    np.testing.assert_allclose(
        weft.linear_transpose(f, np.ones(2, "f4"))(np.ones(2, "f4")), [[3, 3]]
    )


def test_composites_keep_operands_and_results_that_nobody_uses():
    f = lax.composite(lambda x, y: (x + 1, x - 1), "test.pair")
    program = text(lambda x, y: f(x, y)[0], 1.0, 2.0)
    assert "(tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)" in program
    assert f(1.0, 2.0) == (2, 0)


def test_composites_close_over_arrays():
    c = wnp.arange(3.0)
    f = lax.composite(lambda x: x * c, "test.closure")
    np.testing.assert_array_equal(f(2.0), [0, 2, 4])
    np.testing.assert_array_equal(weft.jit(weft.grad(lambda x: f(x).sum()))(1.0), 3)


def test_programs_with_composites_are_read_back():
    graph = weft.jit(lambda x: named(x, scale=1.5)).trace(1.0).graph
    assert str(compiler.parse(str(graph))) == str(graph)


@pytest.mark.parametrize("name", ["foo", "", "1.x", "a b.c", "a.", "a..b", '"', "a\n.b", "é.x"])
def test_names_of_composites(name):
    with pytest.raises(AttributeValueError, match="my_namespace.my_op"):
        lax.composite(lambda x: x + 1, name)(1.0)


@pytest.mark.parametrize(
    ("value", "error"),
    [(1j, TypeError), (object(), TypeError), (wnp.ones(2), weft.errors.UnexpectedTracerError)],
)
def test_attributes_of_composites(value, error):
    with pytest.raises(error, match="attribute 'a' of 'test.scaled'"):
        named(1.0, a=value)


def on_platform(x):
    return lax.platform_dependent(
        x, cuda=lambda x: x - 1, cpu=lambda x: {"y": x * x}["y"], default=lambda x: x + 1
    )


def test_the_branch_of_the_platform_runs():
    assert on_platform(3.0) == 9
    assert weft.jit(on_platform)(3.0) == 9
    assert weft.grad(on_platform)(3.0) == 6
    np.testing.assert_array_equal(weft.vmap(on_platform)(np.arange(3.0)), [0, 1, 4])
    np.testing.assert_array_equal(weft.vmap(weft.hessian(on_platform))(np.arange(3.0)), [2, 2, 2])


def test_only_the_branch_of_the_platform_is_emitted():
    graph = weft.jit(on_platform).trace(1.0).graph
    for platform, op, others in [
        ("cpu", "multiply", ("add", "subtract")),
        ("cuda", "subtract", ("add", "multiply")),
        ("tpu", "add", ("subtract", "multiply")),
    ]:
        program = compiler.emit_stablehlo(compiler.optimize(graph), platform=platform)
        assert f"stablehlo.{op} " in program and "case" not in program
        assert not any(f"stablehlo.{other} " in program for other in others)


def test_platforms_in_loops_and_branches():
    def loop(x):
        return lax.scan(lambda c, y: (on_platform(c) * y, c), x, np.arange(1.0, 4.0, dtype="f4"))[0]

    plain = lambda x: ((x**2) ** 2 * 2) ** 2 * 3
    np.testing.assert_allclose(loop(1.5), plain(1.5), rtol=1e-5)
    slope = weft.jit(weft.grad(loop))
    np.testing.assert_allclose(slope(1.5), weft.grad(plain)(1.5), rtol=1e-5)
    assert "case" not in slope.lower(1.5).as_text()
    chosen = weft.jit(lambda p, x: lax.cond(p, on_platform, lambda x: x, x))
    assert chosen(True, 3.0) == 9 and chosen(False, 3.0) == 3


def test_a_platform_without_a_branch():
    x = np.ones(2, np.float32)
    for f in (
        lambda x: lax.platform_dependent(x, cuda=lambda x: x),
        lambda x: lax.platform_dependent(x, cuda=lambda x: x + 1, tpu=lambda x: x + 1),
        lambda x: lax.platform_dependent(x) or x,
    ):
        for call in (f, weft.jit(f), weft.vmap(f), weft.grad(lambda x, f=f: f(x).sum())):
            with pytest.raises(NotImplementedError, match="branch for platform cpu"):
                call(x)
    assert lax.platform_dependent(2.0, cpu=lambda x: x + 1) == 3
    shared = lambda x: x + 1
    assert lax.platform_dependent(2.0, cuda=shared, cpu=shared, default=lambda x: x) == 3


@pytest.mark.parametrize(
    ("branches", "error", "words"),
    [
        ({"gpu": lambda x: x}, AttributeValueError, "cuda or rocm; got gpu"),
        ({"cpu": 3}, TypeError, "for cpu"),
        ({"cpu": lambda x: x, "default": lambda x: 2}, ControlFlowTypeError, "default"),
    ],
)
def test_mistakes_with_platforms(branches, error, words):
    with pytest.raises(error, match=words):
        lax.platform_dependent(1.0, **branches)


def test_tokens():
    token = lax.after_all(lax.create_token(), lax.create_token(1))
    assert token.shape == (0,)
    assert lax.after_all().shape == (0,)
    assert weft.jit(lambda t: lax.after_all(t, lax.create_token()))(token).shape == (0,)
    with pytest.raises(OperandError, match="expected tokens"):
        lax.after_all(1.0)


def test_a_sink_keeps_what_nobody_else_needs():
    def f(x):
        lax.dce_sink({"a": wnp.sin(x), "b": wnp.cos(x)}, prevent_mlir_dce=True)
        return x + 1

    ops = compiler.optimize(weft.jit(f).trace(1.0).graph).op_names()
    assert {"sin", "cos"} <= set(ops)
    assert f(1.0) == 2 and weft.grad(f)(1.0) == 1
    np.testing.assert_array_equal(weft.jit(weft.vmap(f))(np.ones(2)), [2, 2])


def test_staged_numbers_are_values_of_the_program():
    assert isinstance(lax.stage(2), weft.Array)
    assert "copy" in weft.jit(lambda: lax.stage(2)).trace().graph.op_names()
    assert weft.grad(lambda x: lax.stage(x) ** 2)(3.0) == 6


def test_constraints_to_one_device_hold():
    device = weft.devices()[0]
    one = SimpleNamespace(device_set={device})
    x = {"a": np.ones(2, "f4"), "b": (1.0, 2)}
    for places in (device, one, {"a": one, "b": device}):
        y = lax.with_sharding_constraint(x, places)
        assert y["a"].device == device and y["b"] == (1, 2)
    assert weft.jit(lambda x: lax.with_sharding_constraint(x, one))(1.0) == 1
    assert weft.grad(lambda x: lax.with_sharding_constraint(x, device) ** 2)(3.0) == 6
    for place in (None, "cpu", SimpleNamespace(device_set={1, 2}), object()):
        with pytest.raises(ValueError, match=r"weft.devices\(\) or a sharding"):
            lax.with_sharding_constraint(1.0, place)


def test_indices_of_index_take_count_modulo_the_size():
    x = np.arange(24.0, dtype="f4").reshape(2, 3, 4)
    i, j = np.array([-1, 5, 2], "int8"), np.array([7, 1, 300], "uint32")
    for axes, at in [
        ((0, 2), lambda i, j: x[i % 2, :, j % 4]),
        ((2, 1), lambda i, j: x[:, j % 3, i % 4].T),
    ]:
        np.testing.assert_array_equal(
            lax.index_take(x, (i, j), axes), at(i.astype(int), j.astype(int))
        )
    assert lax.index_take(x, [np.zeros(0, int)], [1]).shape == (0, 2, 4)
    np.testing.assert_array_equal(
        weft.grad(lambda x: lax.index_take(x, [np.array([2, -1])], [1]).sum())(x)[0, 2],
        2 * np.ones(4),
    )
    with pytest.raises(AttributeValueError, match="for each of at least one axis"):
        lax.index_take(x, [i], (0, 1))
    with pytest.raises(ShapeError, match="integers along one axis"):
        lax.index_take(x, [i[None]], (0,))
    with pytest.raises(ShapeError, match="axis with elements"):
        lax.index_take(x[:0], [i], (0,))


@pytest.mark.parametrize(
    "op",
    ["cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt"]
    + ["tan", "tanh"],
)
def test_accuracies_reach_the_compiler(op):
    f = getattr(lax, op)
    highest = lambda x: f(x, accuracy=lax.AccuracyMode.HIGHEST)
    loose = lambda x: f(x, accuracy=lax.Tolerance(1e-3, 1e-2, 4))
    x = np.float32(0.5)
    assert "result_accuracy_mode<HIGHEST>" in text(highest, x)
    assert "atol = 1.000000e-03, rtol = 1.000000e-02, ulps = 4, mode" in text(loose, x)
    assert "accuracy" not in text(lambda x: f(x, accuracy=lax.AccuracyMode.DEFAULT), x)
    np.testing.assert_allclose([highest(x), loose(x)], f(x), rtol=1e-3)
    np.testing.assert_allclose(weft.vmap(weft.grad(highest))(x[None]), weft.grad(f)(x), rtol=1e-5)


def test_mistakes_with_accuracies():
    with pytest.raises(TypeError, match="AccuracyMode or a Tolerance; got 'high'"):
        lax.exp(1.0, accuracy="high")
    with pytest.raises(AttributeValueError, match="got accuracy=high"):
        lax.exp_p.bind(1.0, accuracy="high")
    assert lax.Tolerance(0.5) == lax.Tolerance(atol=0.5) != lax.Tolerance(rtol=0.5)
