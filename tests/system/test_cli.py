"""The weft command: what it prints, and that every mistake ends in a short message and status 2."""

import json
import os
import re
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import weft
from weft._view.page import data_of
from weft.cli import main
from weft.cli.values import Reader

MODEL = '''\
"""A small model."""
import weft
import weft.numpy as wnp


def double(x):
    return x * 2


def affine(w, x, *, scale=1.0):
    return wnp.tanh(x @ w) * scale


def tree(params, x):
    return {"out": x @ params["w"], "pair": (x, params["b"])}


def power(x, n):
    return x**n


def no_arguments():
    return wnp.arange(3)


def outer(x):
    return inner(x)


def inner(x):
    return wnp.dot(x, x)  # the user's line


def branches(x):
    if x > 0:  # asks for a value
        return x
    return -x


def raises(x):
    raise ValueError("first line\\nsecond line")


def deep(x):
    raise RuntimeError("\\n".join(f"line {i}" for i in range(100)))


def prints(x):
    print("hello from the function")
    return x


@weft.jit
def jitted(x):
    return x + 1


def square_sum(x):
    return wnp.sum(x * x)


def product(x, y):
    return x * y


class Model:
    @staticmethod
    def call(x):
        return x - 1

    def method(self, x):
        return x - self.shift

    shift = 2


model = Model()


constant = 3
one = (weft.ShapeDtypeStruct((2, 3), "float32"),)


def example_args():
    return {"w": wnp.ones((3, 2)), "b": wnp.zeros(2)}, wnp.ones((4, 3))


not_a_tuple = [1, 2]
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    # Files of the same name in other tests' folders are other modules.
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith(("model", "broken", "helper", "numpy (")):
            del sys.modules[name]


@pytest.fixture
def cli(folder, capsys):
    """cli(*arguments) -> standard output; the command must succeed and complain about nothing."""

    def run(*arguments):
        status = main(list(arguments))
        out, err = capsys.readouterr()
        assert status == 0, err
        assert err == ""
        return out

    return run


@pytest.fixture
def complaint(folder, capsys):
    """complaint(*arguments) -> standard error; the command must fail with a short message."""

    def run(*arguments):
        status = main(list(arguments))
        out, err = capsys.readouterr()
        assert status == 2
        assert out == ""
        assert "Traceback" not in err
        assert os.path.join("weft", "cli") not in err
        assert len(err.splitlines()) <= 20
        return err

    return run


def line_of(text):
    return MODEL.split("\n").index(next(s for s in MODEL.split("\n") if text in s)) + 1


# What is printed.


def test_graph_is_the_default(cli):
    out = cli("lower", "model.py:double", "--arg", "f32[8,128]")
    assert out == "{ lambda ; a:f32[8,128]. let b:f32[8,128] = mul a 2.0:f32[] in (b,) }\n"


def test_stablehlo(cli):
    out = cli("lower", "model.py:double", "--arg", "f32[8,128]", "--emit", "stablehlo")
    assert "func.func public @main(%arg0: tensor<8x128xf32>" in out
    assert "stablehlo.multiply" in out


def test_hlo(cli):
    out = cli("lower", "model.py:double", "--arg", "f32[8,128]", "--emit", "hlo")
    assert out.startswith("HloModule") and "multiply" in out


def test_passes_by_name(cli):
    traced = cli("lower", "model.py:power", "--arg", "f32[4]", "--arg", "2", "--static", "n")
    assert "integer_pow[y=2] a" in traced
    none = cli("lower", "model.py:power", "--arg", "f32[4]", "--arg", "2", "--static", "1",
               "--passes", "")  # fmt: skip
    assert none == traced
    for passes in ("fold,simplify,cse,dce", "default"):
        out = cli("lower", "model.py:double", "--arg", "f32[4]", "--passes", passes)
        assert "mul a 2.0" in out or "add a a" in out


def test_passes_reach_the_emitted_text(cli, folder):
    (folder / "helper.py").write_text(
        "def f(x):\n    y = x * 3\n    return x * 3 + y * 0 + x * 3\n"
    )
    arguments = ["lower", "helper.py:f", "--arg", "i32[4]", "--emit", "stablehlo"]
    plain = cli(*arguments, "--passes", "")
    merged = cli(*arguments, "--passes", "cse,dce")
    assert plain.count("stablehlo.multiply") > merged.count("stablehlo.multiply")


def test_locations(cli):
    out = cli("lower", "model.py:double", "--arg", "f32[2]", "--locations")
    assert f"model.py:{line_of('return x * 2')} (double)" in out
    out = cli("lower", "model.py:double", "--arg", "f32[2]", "--locations", "--emit", "stablehlo")
    assert "model.py" in out


def test_output_file(cli, folder):
    assert cli("lower", "model.py:double", "--arg", "f32[2]", "-o", "out.txt") == ""
    assert (folder / "out.txt").read_text().startswith("{ lambda ;")


def test_bytes(cli, complaint, folder, monkeypatch):
    from weft.runtime.mlir import artifact_text, parse_module

    arguments = ["lower", "model.py:double", "--arg", "f32[2]", "--emit"]
    assert cli(*arguments, "artifact", "-o", "out.mlirbc") == ""
    data = (folder / "out.mlirbc").read_bytes()
    assert data.startswith(b"ML\xefR") and "stablehlo.multiply" in artifact_text(data)
    command = [sys.executable, "-m", "weft", *arguments, "bytecode"]
    data = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True).stdout
    assert data.startswith(b"ML\xefR") and "stablehlo.multiply" in str(parse_module(data))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for form in ("artifact", "bytecode"):
        assert "not for a terminal" in complaint(*arguments, form)
    with pytest.raises(ValueError, match="malformed"):
        weft.compiler.to_bytecode("module {")


def test_dotted_names_and_jitted_functions(cli):
    assert "sub a 1.0" in cli("lower", "model.py:Model.call", "--arg", "f32[]")
    assert "add a 1.0" in cli("lower", "model.py:jitted", "--arg", "f32[]")
    assert "iota" in cli("lower", "model.py:no_arguments")


def test_keyword_arguments(cli):
    out = cli("lower", "model.py:affine", "--arg", "f32[3,2]", "--arg", "f32[4,3]",
              "--kwarg", "scale=f32[]")  # fmt: skip
    assert "c:f32[]. let" in out


def test_trees_through_args(cli):
    out = cli("lower", "model.py:tree", "--args", "model.py:example_args")
    assert "a:f32[2] b:f32[3,2] c:f32[4,3]" in out
    assert "a:f32[2,3]" in cli("lower", "model.py:double", "--args", "model.py:one")


@pytest.mark.parametrize(
    ("spec", "printed"),
    [
        ("f32[2]", "a:f32[2]"),
        ("bf16[ 2, 3 ]", "a:bf16[2,3]"),
        ("float16[2]", "a:f16[2]"),
        ("i8[]", "a:i8[]"),
        ("uint8[0]", "a:u8[0]"),
        ("c64[2]", "a:c64[2]"),
        ("f8_e4m3fn[2]", "a:f8_e4m3fn[2]"),
        ("i32[]=3", "a:i32[]"),
        ("f32[2,2]=[[1, 2], [3, 4]]", "a:f32[2,2]"),
        ("3.5", "a:f32[]"),
        ("3", "a:i32[]"),
    ],
)
def test_specs(cli, folder, spec, printed):
    (folder / "helper.py").write_text("def same(x):\n    return x\n")
    assert printed in cli("lower", "helper.py:same", "--arg", spec)


def test_bool_spec(cli, folder):
    (folder / "helper.py").write_text("def invert(x):\n    return ~x\n")
    assert "a:bool[2]" in cli("lower", "helper.py:invert", "--arg", "bool[2]")


def test_x64(cli):
    assert "a:f64[2]" in cli("lower", "model.py:double", "--arg", "f64[2]", "--x64")
    assert not weft.config.weft_enable_x64


def test_run_prints_results(cli):
    out = cli("run", "model.py:double", "--arg", "i32[3]=[1, 2, 3]")
    assert out == "out: int32[3]\n[2 4 6]\n"


def test_run_prints_json(cli):
    out = cli("run", "model.py:tree", "--args", "model.py:example_args", "--json")
    found = json.loads(out)
    assert sorted(found) == ["out", "pair.0", "pair.1"]
    assert found["pair.1"] == {"dtype": "float32", "shape": [2], "values": [0.0, 0.0]}
    for spec, values in (
        ("f32[3]=[1, nan, -inf]", [2.0, "nan", "-inf"]),
        ("c64[]=1+2j", [2.0, 4.0]),
        ("bf16[]=1.5", 3.0),
        ("i32[1,1]=4", [[8]]),
    ):
        out = cli("run", "model.py:double", "--arg", spec, "--json")
        assert json.loads(out)["out"]["values"] == values
    assert (
        json.loads(cli("run", "model.py:prints", "--arg", "bool[]=1", "--json").split("\n")[1])[
            "out"
        ]["values"]
        is True
    )


def test_run_fills_a_shape_with_one_number(cli):
    assert "[[6. 6.]\n [6. 6.]]" in cli("run", "model.py:double", "--arg", "f32[2,2]=3")


def test_run_with_files(cli, folder):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save("x.npy", x)
    np.savez("weights.npz", w=np.ones((3, 2), np.float32), other=np.zeros(1))
    assert cli("run", "model.py:affine", "--arg", "@weights.npz:w", "--arg", "@x.npy",
               "--kwarg", "scale=2.0", "-o", "out.npz") == ""  # fmt: skip
    with np.load("out.npz") as saved:
        np.testing.assert_allclose(saved["out"], 2 * np.tanh(x @ np.ones((3, 2))), rtol=1e-6)


def test_run_names_the_leaves_of_a_tree(cli, folder):
    cli("run", "model.py:tree", "--args", "model.py:example_args", "-o", "out.npz")
    with np.load("out.npz") as saved:
        assert sorted(saved) == ["out", "pair.0", "pair.1"]
        assert saved["out"].shape == (4, 2)


def test_run_saves_bfloat16_as_float32(cli, folder):
    cli("run", "model.py:double", "--arg", "bf16[2]=1.5", "-o", "out.npz")
    with np.load("out.npz") as saved:
        assert saved["out"].dtype == np.float32
        np.testing.assert_array_equal(saved["out"], [3, 3])


def test_run_reads_bfloat16_values(cli):
    out = cli("run", "model.py:double", "--arg", "bf16[2]=[1, 2.5]")
    assert out.startswith("out: bfloat16[2]") and str(ml_dtypes.bfloat16(5)) in out


def test_output_of_the_function_comes_first(cli):
    assert cli("run", "model.py:prints", "--arg", "1").startswith("hello from the function\n")


def test_files_import_their_neighbours_and_may_be_named_like_modules(cli, folder):
    (folder / "helper.py").write_text("def same(x):\n    return x\n")
    (folder / "numpy.py").write_text("import helper\nf = helper.same\n")
    assert "a:f32[2]" in cli("lower", "numpy.py:f", "--arg", "f32[2]")
    assert sys.modules["numpy"] is np


def test_ops(cli):
    out = cli("ops")
    assert "dot_general" in out and out.splitlines()[-1].endswith("ops")
    assert len(cli("ops", "--missing").splitlines()) < len(out.splitlines())
    assert cli("ops", "add").startswith("add: ")
    assert "attributes: " in cli("ops", "slice")


def test_ops_tells_signature_dtypes_attributes_and_rules(cli):
    out = cli("ops", "eq", "slice", "sin")
    assert "y = eq a b  (element-wise)" in out and "float32" in out and "-> bool" in out
    assert "y = slice[limit_indices=... start_indices=...] a\n" in out
    reduced = cli("ops", "reduce_sum", "reduce_and", "integer_pow", "dot_general").split("\n\n")
    assert "float16" in reduced[0] and "dtypes: bool, int2" in reduced[1] and "int8" in reduced[2]
    assert "dtypes:" not in reduced[3]
    assert "strides: ints = None" in out and "limit_indices: ints\n" in out
    assert "slice(x) of every element -> x  (slice_all)" in out
    for rule in ("jvp", "transpose", "batch", "emit", "cost"):
        assert re.search(rf"^    {rule} ", out, re.MULTILINE)


def test_ops_as_json(cli):
    (found,) = json.loads(cli("ops", "integer_pow", "--json"))
    assert found["name"] == "integer_pow" and ["float32", "float32"] in found["dtypes"]
    assert [a["name"] for a in found["attributes"]] == ["y"]
    assert len(json.loads(cli("ops", "--json"))) == len(weft.compiler.registry())


def test_version(folder, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    for name in (
        f"weft {weft.__version__}",
        "jaxlib ",
        "numpy ",
        "Python 3.",
        "platform ",
        "cpu: ",
    ):
        assert re.search(f"^{re.escape(name)}", out, re.MULTILINE), name


def test_help_has_examples(folder, capsys):
    for command in ([], ["lower"], ["run"], ["report"], ["ops"], ["cache"], ["completion"]):
        with pytest.raises(SystemExit) as stop:
            main([*command, "--help"])
        assert stop.value.code == 0
        assert "\nexamples:\n  weft " in capsys.readouterr().out


def test_modules(cli, complaint, folder):
    (folder / "helper_package").mkdir()
    (folder / "helper_package" / "__init__.py").write_text("")
    (folder / "helper_package" / "inner.py").write_text(
        "from . import other\nf = other.f\n\nclass C:\n    g = staticmethod(f)\n"
    )
    (folder / "helper_package" / "other.py").write_text("def f(x):\n    return x + 1\n")
    (folder / "helper_broken.py").write_text("import no_such_module\n")
    assert "add a 1.0" in cli("lower", "helper_package.inner:f", "--arg", "f32[2]")
    assert "add a 1.0" in cli("lower", "helper_package.inner:C.g", "--arg", "f32[2]")
    assert "mul a 2.0" in cli("lower", "model:double", "--arg", "f32[2]")
    assert str(folder) not in sys.path
    missing = complaint("lower", "helper_package.innr:f")
    assert "no module named 'helper_package.innr'" in missing
    assert "has no 'ff'; did you mean 'f'?" in complaint("lower", "helper_package.inner:ff")
    assert "package.module:NAME" in complaint("lower", "helper_package/inner.py:f")
    # What a module imports in vain is an error in the module.
    assert "helper_broken.py:1" in complaint("lower", "helper_broken:f")


def test_file_that_ends_the_process(complaint, folder):
    (folder / "broken.py").write_text("import sys\nsys.exit(3)\n")
    assert "broken.py ended the process when it was imported" in complaint("lower", "broken.py:f")


# Values.


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("f32[2,2]=zeros", np.zeros((2, 2), np.float32)),
        ("i8[3]=ones", np.ones(3, np.int8)),
        ("bool[2]=ones", np.ones(2, bool)),
        ("i32[2,3]=arange", np.arange(6, dtype=np.int32).reshape(2, 3)),
        ("f32[3]=arange(1, 0.5)", np.float32([1, 1.5, 2])),
        ("u8[2]=[0, 255]", np.uint8([0, 255])),
        ("i4[2]=[-8, 7]", np.array([-8, 7], ml_dtypes.int4)),
        ("bool[3]=[True, 0, 1]", np.array([True, False, True])),
        ("i32[]=2.0", np.int32(2)),
        ("f32[3]=[nan, inf, -inf]", np.float32([np.nan, np.inf, -np.inf])),
        ("f16[]=65504", np.float16(65504)),
        ("f16[]=65505", np.float16(65504)),  # rounded
        ("c64[2]=[1+2j, 3]", np.complex64([1 + 2j, 3])),
        ("f32[0]=[]", np.zeros(0, np.float32)),
        ("u64[]=18446744073709551615", np.uint64(2**64 - 1)),
        (f"f8_e8m0fnu[]={2**100}", np.array(2.0**100, ml_dtypes.float8_e8m0fnu)),
        ("f32[2,0]=7", np.zeros((2, 0), np.float32)),
    ],
)
def test_values(spec, expected):
    with weft.enable_x64():
        found = Reader().read(spec, "--arg")
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("i4[3]=9", "9 is no value of dtype int4: it holds -8 to 7"),
        ("i4[1]=-9", "it holds -8 to 7"),
        ("u4[]=16", "it holds 0 to 15"),
        ("i8[2]=[0, 128]", "128 is no value of dtype int8: it holds -128 to 127"),
        ("u8[]=-1", "-1 is no value of dtype uint8: it holds 0 to 255"),
        ("u32[]=4294967296", "it holds 0 to 4294967295"),
        ("i32[]=2147483648", "it holds -2147483648 to 2147483647"),
        ("i32[]=1e300", "it holds"),
        ("i32[]=2.5", "it is not a whole number"),
        ("i32[]=nan", "it is not a whole number"),
        ("i32[]=inf", "it is not a whole number"),
        ("i32[]=1j", "it is complex"),
        ("i32[]=None", "expected a number; got NoneType"),
        ("bool[]=2", "2 is no value of dtype bool: it holds 0 to 1"),
        ("bool[]=0.5", "it is not a whole number"),
        ("f16[]=65520", "its largest number is 65504"),
        ("f16[]=-1e5", "its largest number is 65504"),
        ("bf16[]=1e39", "its largest number is 3.38953e+38"),
        ("f32[]=1e39", "its largest number is 3.40282e+38"),
        (f"f32[]={10**400}", "its largest number is"),
        ("f32[]=1j", "it is complex"),
        ("f8_e4m3fn[]=500", "its largest number is 448"),
        ("f8_e4m3fn[]=inf", "it has no infinity"),
        ("f8_e5m2[]=1e6", "its largest number is 57344"),
        ("float4_e2m1fn[]=7", "its largest number is 6"),
        ("float4_e2m1fn[]=nan", "it has no NaN"),
        ("float8_e8m0fnu[]=-1", "it has no negative numbers"),
        ("c64[]=1e39", "its largest number is 3.40282e+38"),
        ("c64[]=1e39j", "its largest number is 3.40282e+38"),
        ("i4[9]=arange", "8 is no value of dtype int4"),
        ("u8[]=randint(-5,-1)", "it holds 0 to 255"),
        ("i32[2]=normal", "normal: expected a float or complex dtype; got int32"),
        ("f32[2]=normal(1,2,3)", "expected numbers for normal(mean=0.0, std=1.0)"),
        ("f32[2]=normal('x')", "expected numbers for normal"),
        ("f32[2]=normal(0,-1)", "normal: "),
        ("i32[2]=randint(3,3)", "expected whole numbers, low < high; got 3 and 3"),
        ("f32[2]=gaussian", "one of zeros, ones, arange, normal, uniform, randint"),
        ("f32[2,2]=[[1,2],[3]]", "the value has shape (2,), the type says (2, 2)"),
        ("f32[2]=[[1,2],[3]]", "expected a number; got list"),
        ("f32[999999999999999]=zeros", "more than fit into memory"),
    ],
)
def test_values_that_are_refused(complaint, spec, message):
    for command in ("lower", "run"):
        text = complaint(command, "model.py:double", "--arg", spec)
        assert message in text and spec in text


def test_random_values_follow_from_the_seed(cli):
    arguments = ["run", "model.py:affine", "--arg", "f32[3,2]=normal", "--arg", "f32[4,3]=uniform"]
    one = cli(*arguments)
    assert cli(*arguments) == one == cli(*arguments, "--seed", "0")
    assert cli(*arguments, "--seed", "1") != one


def test_random_values_are_what_they_are_called():
    read = Reader(3).read
    x = read("f32[20000]=normal", "")
    assert x.dtype == np.float32 and abs(x.mean()) < 0.05 and abs(x.std() - 1) < 0.05
    x = read("bf16[20000]=normal(10, 2)", "").astype(np.float32)
    assert abs(x.mean() - 10) < 0.1 and abs(x.std() - 2) < 0.1
    x = read("c64[20000]=normal", "")
    assert abs(np.abs(x).std() ** 2 + np.abs(x).mean() ** 2 - 1) < 0.05
    x = read("f32[20000]=uniform(-1, 3)", "")
    assert -1 <= x.min() < -0.9 and 2.9 < x.max() <= 3
    assert set(read("i8[200]=randint", "").tolist()) == set(range(10))
    assert set(read("i32[200]=randint(-1, 2)", "").tolist()) == {-1, 0, 1}
    assert set(read("bool[200]=randint", "").tolist()) == {True, False}
    assert not np.array_equal(read("f32[8]=normal", ""), read("f32[8]=normal", ""))


def test_files_whose_values_would_change(complaint, cli, folder):
    np.save("large.npy", np.array([2**40]))
    np.save("fits.npy", np.array([2**30]))
    np.save("huge.npy", np.array([1e300]))
    np.save("text.npy", np.array(["a"]))
    assert "int32 cannot hold" in complaint("run", "model.py:double", "--arg", "@large.npy")
    assert "float32 cannot hold" in complaint("run", "model.py:double", "--arg", "@huge.npy")
    assert "no dtype of arrays" in complaint("run", "model.py:double", "--arg", "@text.npy")
    assert "1073741824" in cli("run", "model.py:prints", "--arg", "@fits.npy")


# Transforms, statistics, reports.


def test_grad(cli, complaint):
    assert "[4.]" in cli("run", "model.py:square_sum", "--arg", "f32[1]=2", "--grad")
    out = cli("run", "--grad", "model.py:product", "--arg", "3.0", "--arg", "5.0")
    assert out == "out: float32[]\n5.0\n"
    out = cli("run", "model.py:product", "--grad=0,1", "--arg", "3.0", "--arg", "5.0")
    assert out == "0: float32[]\n5.0\n1: float32[]\n3.0\n"
    assert "3.0" in cli("run", "model.py:product", "--grad", "1", "--arg", "3.0", "--arg", "5.0")
    message = complaint("run", "model.py:double", "--grad", "--arg", "f32[3]=1")
    assert "scalar" in message


def test_vmap(cli, complaint):
    args = ["model.py:product", "--arg", "f32[2]=[1,2]", "--arg", "f32[2]=[3,4]"]
    assert "[3. 8.]" in cli("run", *args, "--vmap")
    assert "[[3. 4.]\n [6. 8.]]" in cli("run", *args, "--vmap", "None,0", "--vmap", "0,None")
    assert "[[3. 6.]\n [4. 8.]]" in cli("run", *args, "--vmap=None,0", "--vmap=0,None->1")
    # In the order given: gradients of each, not the gradient of all.
    each = cli("run", "model.py:square_sum", "--arg", "f32[2]=[1,2]", "--grad", "--vmap")
    assert "[2. 4.]" in each
    assert "axes" in complaint("run", *args, "--vmap", "0,0,0")


def test_flags_without_a_value_may_stand_anywhere(cli):
    for arguments in (
        ["lower", "--grad", "model.py:square_sum", "--arg", "f32[2]"],
        ["lower", "--grad", "--vmap", "model.py:square_sum", "--arg", "f32[2]"],
        ["lower", "model.py:square_sum", "--arg", "f32[2]", "--vmap"],
    ):
        assert "let" in cli(*arguments)


def test_stats(folder, capsys):
    assert main(["run", "model.py:double", "--arg", "f32[2]=1", "--stats"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("out: float32[2]")
    for stage in ("load", "trace", "passes", "emit", "compile", "run"):
        assert re.search(rf"^{stage} +[0-9.]+ ms$", err, re.MULTILINE), stage
    assert re.search(r"^  dce +[0-9.]+ ms  1 -> 1 ops$", err, re.MULTILINE)
    assert main(["lower", "model.py:double", "--arg", "f32[2]", "--stats"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("{ lambda ;") and "compile" not in err and "trace" in err


def test_report(cli, complaint):
    arguments = ["report", "model.py:affine", "--arg", "f32[3,2]", "--arg", "f32[4,3]"]
    out = cli(*arguments)
    w, x = weft.ShapeDtypeStruct((3, 2), "float32"), weft.ShapeDtypeStruct((4, 3), "float32")
    assert out == str(weft.compiler.analyze(sys.modules["model"].affine, w, x)) + "\n"
    assert re.search(r"^flops +56$", out, re.MULTILINE)  # 2*4*3*2, and 8 of `* scale`
    assert re.search(r"^  tanh +1 +0 +8 +64$", out, re.MULTILINE)
    assert f"model.py:{line_of('wnp.tanh(x @ w)')}" in out
    assert "fusion" in cli(*arguments, "--passes", "fuse")
    assert "ShapeError" in complaint("report", *arguments[1:-1], "f32[4,5]")
    figures = json.loads(cli(*arguments, "--json"))
    assert (figures["flops"], figures["critical_path"]) == (56, 3)
    tanh = {"ops": 1, "flops": 0, "transcendentals": 8, "bytes": 64}
    assert figures["by_op"]["tanh"] == tanh


def test_pages(cli, complaint, folder):
    arguments = ["model.py:affine", "--arg", "f32[3,2]", "--arg", "f32[4,3]"]
    assert cli("view", *arguments) == "affine.html\n"
    page = data_of((folder / "affine.html").read_text())
    assert (page["title"], page["tab"], page["inputs"]) == ("affine", "graph", ["w", "x"])
    assert cli("view", *arguments, "-o", "other.html") == "other.html\n"
    assert cli("report", *arguments, "--html", "report.html") == "report.html\n"
    page = data_of((folder / "report.html").read_text())
    assert (page["title"], page["tab"]) == ("affine", "cost")
    assert "cannot write" in complaint("view", *arguments, "-o", "none/page.html")


# Mistakes.


def test_mistakes_in_the_target(complaint):
    assert "no such file: missing.py" in complaint("lower", "missing.py:f")
    assert "expected FILE.py:NAME; got 'model.py'" in complaint("lower", "model.py")
    message = complaint("lower", "model.py:doubl", "--arg", "f32[2]")
    assert "model.py has no 'doubl'; did you mean 'double'?" in message
    assert "model.py.Model has no 'cal'" in complaint("lower", "model.py:Model.cal")
    assert "is no function; it is of type int" in complaint("lower", "model.py:constant")


def test_not_a_python_file(complaint, folder):
    (folder / "data.txt").write_text("x")
    assert "data.txt is no Python file" in complaint("lower", "data.txt:f")


def test_syntax_error_in_the_file(complaint, folder):
    (folder / "broken.py").write_text("x = 1\ndef f(:\n    pass\n")
    message = complaint("lower", "broken.py:f")
    assert "broken.py:2" in message and "def f(:" in message and "SyntaxError" in message


def test_error_while_the_file_is_imported(complaint, folder):
    (folder / "broken.py").write_text("x = 1\ny = x / 0\n")
    message = complaint("lower", "broken.py:f")
    assert "broken.py:2" in message and "y = x / 0" in message and "ZeroDivisionError" in message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("f33[2]", "no such dtype: 'f33'"),
        ("str[2]", "no dtype of arrays"),
        ("f32[2", "expected a type like f32[8,128]"),
        ("f32[a]", "expected sizes like [8,128]; got [a]"),
        ("f32[-1]", "expected sizes like [8,128]; got [-1]"),
        ("f32[99999999999999999999]", "expected sizes below 2**63"),
        ("f32[2000000,2000000,1000000]", "fewer than 2**60 bytes"),
        ("i32[2]=[1,2,3]", "the value has shape (3,), the type says (2,)"),
        ("i32[]=x", "got 'x'"),
        ("i32[]='x'", "'x' is no value of dtype int32"),
        ("f64[2]", "float64 needs --x64"),
        ("@missing.npy", "missing.npy"),
        ("@model.py", "expected a .npy or .npz file"),
        ("hello", "got 'hello'"),
    ],
)
def test_mistakes_in_specs(complaint, spec, message):
    text = complaint("lower", "model.py:double", "--arg", spec)
    assert message in text and (spec in text or "ShapeError" in text)


def test_mistakes_in_files(complaint, folder):
    np.savez("two.npz", a=np.ones(2), b=np.ones(2))
    (folder / "bad.npy").write_bytes(b"not an array")
    assert "it has ['a', 'b']" in complaint("lower", "model.py:double", "--arg", "@two.npz")
    assert "it has ['a', 'b']" in complaint("lower", "model.py:double", "--arg", "@two.npz:c")
    assert "@bad.npy" in complaint("lower", "model.py:double", "--arg", "@bad.npy")


def test_arguments_that_do_not_fit(complaint):
    message = complaint("lower", "model.py:affine", "--arg", "f32[2]")
    assert "missing a required argument: 'x'" in message
    assert f"model.py:{line_of('def affine')}" in message
    message = complaint("lower", "model.py:double", "--arg", "1", "--kwarg", "y=2")
    assert "unexpected keyword argument 'y'" in message
    assert "expected --kwarg NAME=SPEC" in complaint("lower", "model.py:double", "--kwarg", "f32[]")
    message = complaint("lower", "model.py:tree", "--args", "model.py:one", "--arg", "1")
    assert "--args gives all positional arguments" in message
    message = complaint("lower", "model.py:tree", "--args", "model.py:not_a_tuple")
    assert "gives list; expected a tuple" in message


def test_run_needs_values(complaint):
    message = complaint("run", "model.py:double", "--arg", "f32[2]")
    assert "has no value: write 'f32[2]=VALUE' or @FILE.npy" in message


def test_shape_mismatch_shows_the_users_line(complaint):
    message = complaint("lower", "model.py:affine", "--arg", "f32[3,2]", "--arg", "f32[4,5]")
    assert f"model.py:{line_of('wnp.tanh(x @ w)')}, in affine" in message
    assert "return wnp.tanh(x @ w) * scale" in message
    assert "ShapeError" in message and "(4, 5)" in message and "(3, 2)" in message


def test_callers_are_listed(complaint):
    message = complaint("lower", "model.py:outer", "--arg", "f32[2,3]")
    assert f"model.py:{line_of('# the user')}, in inner" in message
    assert f"called from {os.path.join(os.getcwd(), 'model.py')}:" in message
    assert "left out" not in message
    assert "in outer" in message


def test_error_of_the_function(complaint):
    message = complaint("lower", "model.py:raises", "--arg", "f32[]")
    assert "ValueError: first line\nsecond line" in message
    assert f"model.py:{line_of('raise ValueError')}" in message


def test_long_messages_are_cut(complaint):
    assert re.search(
        r"\.\.\. \(\d+ more lines\)", complaint("lower", "model.py:deep", "--arg", "1")
    )


def test_value_asked_of_a_tracer(complaint):
    message = complaint("lower", "model.py:branches", "--arg", "f32[]")
    assert "TracerBoolConversionError" in message and "if x > 0:" in message


def test_unknown_pass_and_unwritable_output(complaint):
    message = complaint("lower", "model.py:double", "--arg", "f32[]", "--passes", "foldd")
    assert "foldd" in message and "fold" in message and "dce" in message
    assert "cannot write" in complaint("lower", "model.py:double", "--arg", "f32[]", "-o", "no/dir")
    assert "expected -o OUT.npz" in complaint(
        "run", "model.py:double", "--arg", "1.0", "-o", "out.txt"
    )


def test_unknown_op(complaint):
    message = complaint("ops", "dott_general")
    assert "no such op: dott_general; did you mean 'dot_general'?" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lower", "modl.py:double"], "no such file: modl.py; did you mean 'model.py'?"),
        (["--arg", "fp32[3]"], "no such dtype: 'fp32' (examples: f32, bf16, i32, bool); did you "
         "mean 'f32'?"),
        (["--arg", "flaot32[3]"], "did you mean 'float32'?"),
        (["--arg", "f32"], "did you mean 'f32[]'?"),
        (["--arg", "f32(3, 4)"], "did you mean 'f32[3,4]'?"),
        (["--arg", "f32[3x4]"], "did you mean [3,4]?"),
        (["--arg", "x.npy"], "did you mean '@x.npy'?"),
        (["--arg", "x=f32[3]"], "did you mean --kwarg 'x=f32[3]'?"),
        (["--arg", "none"], "did you mean 'None'?"),
        (["--arg", "f32[3]=norml"], "got 'norml'; did you mean 'normal' or"),
        (["--arg", "f32[]", "--passes", "foldd"], "pass is called 'foldd'; did you mean 'fold'?"),
        (["lower", "model.py:affine", "--arg", "1.0", "--arg", "1.0", "--kwarg", "scal=2.0"],
         "got 2 positional, scal=...; did you mean 'scale'?"),
        (["lower", "model.py:Model.method", "--arg", "1.0"], "is a method without its instance"),
    ],
)  # fmt: skip
def test_what_was_meant(complaint, arguments, message):
    if arguments[0] != "lower":
        arguments = ["lower", "model.py:double", *arguments]
    assert message in complaint(*arguments)


def test_methods_of_instances(cli, folder):
    assert "sub a 2.0" in cli("lower", "model.py:model.method", "--arg", "f32[]")
    (folder / "helper.py").write_text("import model\nargs = (model.Model(), 1.0)\n")
    assert "sub a 2.0" in cli("lower", "model.py:Model.method", "--args", "helper.py:args",
                              "--static", "0")  # fmt: skip


def test_static_on_a_jitted_function(complaint):
    assert "--static" in complaint("lower", "model.py:jitted", "--arg", "1", "--static", "0")


def test_usage_errors_end_with_status_2(folder, capsys):
    for arguments, message in (
        (["lower"], "weft lower: error: the following arguments are required: FILE.py:FUNCTION"),
        (["lower", "model.py:f", "--emit", "asm"], "weft lower: error: argument --emit: expected "
         "graph, stablehlo, portable, iree, hlo, bytecode or artifact; got 'asm'\n"),
        (["lower", "model.py:f", "--emit", "grph"], "got 'grph'; did you mean 'graph'?"),
        (["lowr"], "weft: error: argument COMMAND: expected lower, "),
        (["lowr"], "got 'lowr'; did you mean 'lower'?"),
        (["cache", "lst"], "weft cache: error: argument action: expected where, list, "),
        (["run", "model.py:f", "--grad=x"], "weft run: error: argument --grad: expected positions"),
        (["run", "model.py:f", "--vmap=x"], "weft run: error: argument --vmap: expected axes"),
        (["run", "model.py:f", "--seed", "-1"], "weft run: error: argument --seed: expected a "),
        (["run", "model.py:f", "f32[3]"], "weft run: error: unrecognized arguments: f32[3] "
         "(arguments of the function go behind --arg)\n"),
        (["ops", "add", "--fast"], "weft ops: error: unrecognized arguments: --fast\n"),
        (["lower", "model.py:f", "--pases=x"], "unrecognized arguments: --pases=x; did you mean "
         "'--passes'?"),
        (["--x64", "lower", "model.py:f"], "weft lower: error: unrecognized arguments: --x64 (it "
         "goes behind `weft lower`)"),
    ):  # fmt: skip
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
        err = capsys.readouterr().err
        assert err.startswith("usage: weft") and message in err


def test_without_a_command_the_help_is_shown(folder, capsys):
    assert main([]) == 2
    err = capsys.readouterr().err
    assert err.startswith("usage: weft") and "print the program that a function becomes" in err


def test_traceback_shows_all(folder, capsys):
    with pytest.raises(ValueError, match="first line"):
        main(["lower", "model.py:raises", "--arg", "f32[]", "--traceback"])


# What shells complete.


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("low", ["lower"]),
        ("", ["lower", "run", "report", "ops", "cache", "completion"]),
        ("--ver", ["--version"]),
        (
            "lower model.py:f --emit ",
            ["graph", "stablehlo", "portable", "iree", "hlo", "bytecode", "artifact"],
        ),
        ("lower model.py:f --emit g", ["graph"]),
        ("lower --lo", ["--locations"]),
        ("lower mod", []),  # bash completes names of files
        ("lower model.py : ra", ["raises"]),  # bash takes the colon for a word
        ("run model.py :", ["affine", "jitted", "raises"]),
        ("run model.py:rai", ["model.py:raises"]),  # zsh does not
        ("run f.py:f --args model.py : rai", ["raises"]),
        ("lower absent.py : f", []),
        ("lower --grad --lo", ["--locations"]),
        ("cache c", ["clear"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("ops --j", ["--json"]),
    ],
)
def test_completion_by_bash(cli, folder, typed, expected):
    (folder / "complete.sh").write_text(cli("completion", "bash"))
    words = " ".join(f"'{word}'" for word in f"weft {typed}".split(" "))
    script = f"""source complete.sh
        COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        $(complete -p weft | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=folder)
    assert done.stderr == ""
    assert set(expected) <= set(done.stdout.split())
    assert expected == [] or typed[-1:] in ("", ":") or done.stdout.split() == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_scripts(cli, shell):
    script = cli("completion", shell)
    assert "--emit" in script or "-l emit" in script
    for word in ("lower", "portable", "verify"):
        assert word in script
    if shutil.which(shell):
        done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


# As a process.


# PYTHONPATH may be relative, and the processes run elsewhere.
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(weft.__file__))}


def process(folder, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "weft", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def test_process_statuses(folder):
    good = process(folder, "lower", "model.py:double", "--arg", "f32[2]")
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("{ lambda ;")
    bad = process(folder, "lower", "model.py:raises", "--arg", "f32[2]")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "ValueError: first line" in bad.stderr and "Traceback" not in bad.stderr
    shown = process(folder, "lower", "model.py:raises", "--arg", "f32[2]", "--traceback")
    assert "Traceback" in shown.stderr and "cli/lower.py" in shown.stderr


def test_reader_that_goes_away(folder):
    command = f"{sys.executable} -m weft ops | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.stderr == "" and len(done.stdout.splitlines()) == 1


# Programs in files.

SQUARES = """
func.func @main(%x: tensor<3xf32>) -> tensor<f32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %x : tensor<3xf32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0]
    : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
"""


def test_files_with_stablehlo(cli, complaint, folder):
    (folder / "squares.mlir").write_text(SQUARES)
    assert "a:f32[3]" in cli("lower", "squares.mlir")
    located = cli("lower", "squares.mlir", "--locations")
    assert "squares.mlir:4" in located
    run = cli("run", "squares.mlir", "--arg", "f32[3]=[1,2,3]", "--grad")
    assert "[2. 4. 6.]" in run
    mapped = cli("lower", "squares.mlir", "--vmap", "--arg", "f32[2,3]")
    assert "f32[2]" in mapped
    assert "flops" in cli("report", "squares.mlir")
    (folder / "squares.txt").write_text(cli("lower", "squares.mlir"))
    assert "mul" in cli("lower", "squares.txt")
    (folder / "wrong.mlir").write_text(SQUARES.replace("multiply", "frob"))
    assert "line 4, column 8: [stablehlo.frob]" in complaint("lower", "wrong.mlir")
