"""Reading StableHLO: what jax lowers, what weft emits, bytes, messages."""

import io
import re

import numpy as np
import pytest
from op_table import Row, all_rows
from read_programs import is_float, kept_programs, weights

import weft
import weft.numpy as wnp
from weft import compiler
from weft.errors import NotImplementedRuleError, ParseError

PROGRAMS = kept_programs()
SQUARES = """
module @squares {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<f32> {
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<3xf32>
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0]
      : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}
"""


def assert_close(got, expected, tolerance):
    for x, y in zip(got, expected, strict=True):
        x = np.asarray(x)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if y.dtype.kind in "fc":
            finite = np.abs(y[np.isfinite(y)])
            size = max(1, finite.max()) if finite.size else 1
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * size)
        else:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", PROGRAMS)
def test_module_of_jax(name):
    program = PROGRAMS[name]
    graph = compiler.read(program["module"])
    args = program["args"]
    assert_close(weft.jit(graph.__call__)(*args), program["results"], 3e-5)
    # The generic form is the same program, with lines.
    assert compiler.read(program["generic"]) == graph
    if program["grads"] is None:
        return
    floats = [i for i, x in enumerate(args) if x.dtype == np.float32]
    by = weights(program["results"])

    def loss(*xs):
        given = list(args)
        for i, x in zip(floats, xs, strict=True):
            given[i] = x
        pairs = zip(graph(*given), by, strict=True)
        return sum((wnp.sum(y * c) for y, c in pairs if is_float(c)), np.float32(0))

    grads = weft.jit(weft.grad(loss, tuple(range(len(floats)))))(*[args[i] for i in floats])
    assert_close(grads, program["grads"], 3e-4)


# Programs whose jaxprs hold what no graph has, and what the error names.
JAXPRS_NOT_READ = {
    **dict.fromkeys(["dropout", "random"], "random_seed"),
    **dict.fromkeys(["V_bits", "V_perm"], "random_wrap"),
    "V_rbg": "RNG_DEFAULT",
    "inv_det": "pair",  # which platform a program is for
    "svd": '"_"',  # two values of this name, of which one is a result
    "expm": "2 operands",  # calls hide the arrays that their functions close over
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_jaxpr_of_jax(name):
    program = PROGRAMS[name]
    if name in JAXPRS_NOT_READ:
        with pytest.raises(ParseError, match=JAXPRS_NOT_READ[name]):
            compiler.parse(program["jaxpr"])
        return
    graph, args = compiler.parse(program["jaxpr"]), program["consts"] + program["args"]
    assert_close(weft.jit(graph.__call__)(*args), program["results"], 3e-5)


def test_enough_gradients_are_compared():
    assert sum(program["grads"] is not None for program in PROGRAMS.values()) >= 70


def unnamed(text):
    return re.sub(r"@\w+", "@f", text)


# What one process alone can run, or what is different at each run.
NOT_READ = {"pure_callback", "io_callback", "debug_callback", "rng_uniform"}


@pytest.mark.parametrize("row", [r for r in all_rows() if r.op not in NOT_READ], ids=lambda r: r.id)
def test_what_weft_emits(row: Row):
    with weft.enable_x64(True):
        dtype, args = row.cases()[0]
        graph = weft.jit(row.call).trace(*args).graph
        text = compiler.emit_stablehlo(graph)
        back = compiler.read(text)
        again = compiler.emit_stablehlo(back)
        if unnamed(again) == unnamed(text):
            return
        expected = [np.asarray(y) for y in graph(*args)]
        assert_close(
            [np.asarray(y).astype(np.float64) if y.dtype.kind == "V" else y for y in back(*args)],
            [y.astype(np.float64) if y.dtype.kind == "V" else y for y in expected],
            1e-2 if dtype in ("float16", "bfloat16") else 1e-5,
        )


def test_transforms_and_locations():
    graph = compiler.read(SQUARES, file="squares.mlir")
    x = np.arange(3, dtype=np.float32)
    assert "squares.mlir:5" in graph.to_text(locations=True)
    np.testing.assert_array_equal(weft.grad(lambda x: graph(x)[0])(x), 2 * x)
    np.testing.assert_array_equal(weft.vmap(graph)(np.stack([x, 2 * x]))[0], [5, 20])
    name = '#loc1 = loc("a.py":7:0)\n'
    located = SQUARES.replace("%arg0 : tensor<3xf32>", '%arg0 : tensor<3xf32> loc("s/f"(#loc1))')
    assert "a.py:7 (f)" in compiler.read(located + name).to_text(locations=True)


def test_bytes():
    from jaxlib.mlir.dialects import stablehlo

    from weft.runtime.mlir import parse_module

    graph = compiler.read(SQUARES)
    assert compiler.read(SQUARES.encode()) == graph
    module = parse_module(SQUARES)
    data = io.BytesIO()
    module.operation.write_bytecode(data)
    assert compiler.read(data.getvalue()) == graph
    version = stablehlo.get_current_version()
    assert compiler.read(stablehlo.serialize_portable_artifact(module, version)) == graph
    with pytest.raises(ParseError, match="bytecode"):
        compiler.read(b"ML\xefRgarbage")
    with pytest.raises(ParseError, match="other bytes"):
        compiler.read(b"\xff\xfe")
    with pytest.raises(TypeError, match="text or bytes; got int"):
        compiler.read(3)


def test_other_functions():
    text = SQUARES.replace("@main", "@first").replace("}\n}\n", "}\nOTHER}\n")
    other = "func.func @second(%x: tensor<f32>) -> tensor<f32> {\n return %x : tensor<f32>\n}\n"
    assert compiler.read(text.replace("OTHER", "")) == compiler.read(SQUARES)
    assert len(compiler.read(text.replace("OTHER", other), function="second").in_types) == 1
    with pytest.raises(ParseError, match="function @main; the module has @first, @second"):
        compiler.read(text.replace("OTHER", other))


def test_messages():
    def op(line):
        return SQUARES.replace("stablehlo.multiply %arg0, %arg0 : tensor<3xf32>", line)

    with pytest.raises(NotImplementedRuleError, match=r"line 5, column 10: \[stablehlo.frob\]"):
        compiler.read(op("stablehlo.frob %arg0 : tensor<3xf32>"))
    target = "xla_ffi_python_cpu_callback"
    call = f"stablehlo.custom_call @{target}(%arg0) : (tensor<3xf32>) -> tensor<3xf32>"
    with pytest.raises(NotImplementedRuleError, match=target):
        compiler.read(op(call))
    reduced = (
        '"stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({\n'
        "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n stablehlo.return %x : tensor<f32>\n"
        "}) : (tensor<3xf32>) -> tensor<3xf32>"
    )
    with pytest.raises(NotImplementedRuleError, match="groups of one device"):
        compiler.read(op(reduced))


def test_foreign_calls_are_kept():
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @mine(%x) {backend_config = {a = 1 : i64}, api_version = 4 : i32}
        : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    """
    graph = compiler.read(text)
    assert "ffi_call" in str(graph)
    assert "@mine" in compiler.emit_stablehlo(graph) or '"mine"' in compiler.emit_stablehlo(graph)
