"""Public modules: what they show, and what they say of names of the JAX API that weft lacks."""

import ast
import importlib
import inspect
import pydoc
import runpy
import subprocess
import sys
import textwrap
import traceback
import types

import numpy as np
import pytest
from conftest import ROOT
from oracle import needs_jax
from public_modules import MODULES

import weft
import weft.numpy as wnp
import weft.test_util
from weft import _absent


@pytest.mark.parametrize("name", MODULES)
def test_a_module_shows_its_public_names_only(name):
    module = MODULES[name]
    assert sorted(module.__all__) == dir(module)
    assert len(set(module.__all__)) == len(module.__all__)
    for each in module.__all__:
        assert not each.startswith("_")
        value = getattr(module, each)
        if isinstance(value, types.ModuleType):
            assert value.__name__ == f"{name}.{each}", "an import shows"


@pytest.mark.parametrize("name", MODULES)
def test_star_imports_give_the_public_names(name):
    names = {}
    exec(f"from {name} import *", names)
    assert {n for n in names if n != "__builtins__"} == set(MODULES[name].__all__)


@pytest.mark.parametrize("name", MODULES)
def test_functions_of_public_modules_have_docstrings(name):
    for each in MODULES[name].__all__:
        value = getattr(MODULES[name], each)
        ours = getattr(value, "__module__", "").startswith("weft")
        if ours and isinstance(value, (types.FunctionType, type)):
            assert value.__doc__, f"{name}.{each}"


def test_modules_have_an_attribute_only_if_they_have_it():
    assert not hasattr(wnp, "float6_e2m3fn")
    assert getattr(weft, "api_util", None) is None
    assert hasattr(weft.lax, "add_p") and not hasattr(weft.lax, "no_such_p")


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        ("wnp.no_such_name", AttributeError, ["module 'weft.numpy' has no attribute"]),
        ("from weft.numpy import no_such_name", ImportError, ["cannot import name"]),
        ("wnp.summ", AttributeError, ["no attribute 'summ'. Did you mean: 'sum'?"]),
        ("from weft.lax import tanhh", ImportError, ["'weft.lax'. Did you mean: 'tanh'?"]),
        ("weft.scan", AttributeError, ["Did you mean: 'weft.lax.scan'?"]),
        ("from weft.numpy import relu", ImportError, ["Did you mean: 'weft.nn.relu'?"]),
        ("wnp.random", AttributeError, ["Did you mean: 'weft.random'?"]),
        ("wnp.cat", AttributeError, ["Did you mean: 'weft.numpy.concatenate'?"]),
        ("import weft.no_such_module", ModuleNotFoundError, ["No module named"]),
        ("weft.debug.builtin", AttributeError, ["module 'weft.debug' has no attribute"]),
        ("x.no_such_method", AttributeError, ["'weft.Array' object has no attribute"]),
    ],
)
def test_other_names_are_just_unknown(statement, error, words):
    with pytest.raises(error) as info:
        exec(statement, {"weft": weft, "wnp": wnp, "x": wnp.ones(3)})
    assert all(word in str(info.value) for word in words)
    assert "yet" not in str(info.value)


@pytest.mark.parametrize("section", ["jax.lax", "jax.lax.linalg", "jax.ffi"])
def test_operations_are_there_or_have_a_reason_not_to_be(section):
    path = section.removeprefix("jax.")
    owner = importlib.import_module(f"weft.{path}")
    absent = [
        f"{path}.{name}" for name in _absent.jax_names()[1][section] if not hasattr(owner, name)
    ]
    assert not [name for name in absent if not (_absent.reason(name) or _absent.instead(name))]


@pytest.mark.parametrize("name", ["float6_e2m3fn", "summ"])
def test_python_adds_no_guess_to_the_message(name):
    with pytest.raises(AttributeError) as info:
        getattr(wnp, name)
    last = traceback.format_exception_only(info.value)  # where Python guesses
    assert "".join(last) == f"AttributeError: {info.value}\n"


def test_names_of_other_frameworks_stand_for_names_of_weft():
    for name, meant in _absent.ELSEWHERE.items():
        owner, _, last = meant.rpartition(".")
        assert callable(getattr(importlib.import_module(owner), last))
        with pytest.raises(AttributeError, match=f"'{meant}'"):
            getattr(weft.tree, name)


@pytest.mark.parametrize("function", [weft.grad, wnp.sum, weft.jit(wnp.sin)])
def test_help_shows_the_docstring(function):
    first = inspect.getdoc(function).split("\n")[0]
    assert first in pydoc.plain(pydoc.render_doc(function))


def absent_paths():
    """Names of jax that weft lacks: (path, whether it is a module)."""
    support = runpy.run_path(str(ROOT / "tools" / "support"), run_name="support")
    sections = _absent.jax_names()[1]
    for section, names in sections.items():
        path = section.removeprefix("jax").removeprefix(".")
        owner = support["owner_of"](section)
        if owner is None:
            yield path, None
        elif isinstance(owner, types.ModuleType):
            yield from ((f"{path}.{n}".strip("."), owner) for n in names if not hasattr(owner, n))


def test_every_absent_name_says_so():
    count = 0
    for path, owner in absent_paths():
        name = path.rpartition(".")[2]
        expected = f"weft.{path} is not in weft"
        if owner is not None:
            with pytest.raises(AttributeError) as info:
                getattr(owner, name)
            assert str(info.value).startswith(expected)
            with pytest.raises(ImportError) as info:
                exec(f"from {owner.__name__} import {name}", {})
            assert str(info.value).startswith(expected)
        else:
            with pytest.raises(ModuleNotFoundError) as info:
                importlib.import_module(f"weft.{path}")
            # Of a module in a package that is not there, the package is what is missing.
            missing = str(info.value).split(" ")[0]
            assert f"weft.{path}".startswith(missing) and " is not in weft" in str(info.value)
        count += 1
    assert count > 0


def test_absent_methods_of_arrays_say_so():
    x = wnp.ones((2, 2))
    for name in _absent.jax_names()[1]["jax.Array"]:
        for value in (x, *traced(x)):
            if name not in dir(value):
                with pytest.raises(AttributeError, match="is not in weft|a traced array has no"):
                    getattr(value, name)
                assert not hasattr(value, name)


def traced(x):
    kept = []
    weft.make_jaxpr(lambda y: kept.append(y) or y)(x)
    return kept


def test_a_traced_array_says_why_it_has_no_device():
    with pytest.raises(AttributeError, match="a traced array has no 'device'"):
        weft.jit(lambda x: x.device)(1.0)


def test_docs_support_is_up_to_date():
    support = runpy.run_path(str(ROOT / "tools" / "support"), run_name="support")
    assert support["stale"]() == [], "remove these from weft/_absent.py"
    assert (ROOT / "docs" / "support.md").read_text() == support["text"](), "run tools/support"


def test_stubs_are_up_to_date():
    stubs = runpy.run_path(str(ROOT / "tools" / "stubs"), run_name="stubs")
    for path, text in stubs["stubs"]().items():
        assert path.read_text() == text, "run tools/stubs"


@needs_jax
@pytest.mark.oracle
def test_the_names_are_those_of_the_jax_that_is_installed():
    import importlib.metadata

    versions, sections = _absent.jax_names()
    installed = importlib.metadata.version("jax")
    if installed not in versions:
        pytest.skip("another version of jax")
    names = runpy.run_path(str(ROOT / "tools" / "jax_names"), run_name="names")
    expected = names["collect"](sys.executable)["sections"]
    known = {s: {n for n in rows if installed in rows[n].versions} for s, rows in sections.items()}
    found = {section: {row["name"] for row in rows} for section, rows in expected.items()}
    assert known == {section: found.get(section, set()) for section in known}, "run tools/jax_names"
    assert found.keys() <= known.keys()


def test_the_table_of_names_is_not_read_at_import():
    code = "import sys, weft; print('weft._absent' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_what_is_loaded_later_is_there_when_it_is_used():
    code = """
        import sys, weft, weft.numpy as wnp
        print("weft.numpy.fft" in sys.modules, "fft" in dir(wnp), "fft" in vars(wnp))
        fft = wnp.fft.fft
        print("fft" in vars(wnp), type(fft).__name__, sys.modules["weft.numpy.fft"] is wnp.fft)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True", "False", "True", "PublicFunction", "True"]
    code = "import weft.numpy.fft as f; print(type(f.fft).__name__, f.fft.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["PublicFunction", "fft"]


@pytest.mark.parametrize("name", MODULES)
def test_what_is_loaded_later_is_public(name):
    module = MODULES[name]
    for home, names in getattr(module, "_LATER", {}).items():
        assert {*names} <= {*module.__all__}
        for each in names or (home.rpartition(".")[2],):
            assert getattr(module, each) is vars(module)[each]
            assert hasattr(importlib.import_module(home), each) or home == f"{name}.{each}"


def test_numpy_functions_take_arrays_where_the_message_says_so():
    x = wnp.asarray([0.5, 1.5])
    assert np.interp(x, wnp.arange(3.0), wnp.arange(3.0) * 2).tolist() == [1.0, 3.0]


# ---- parameters


def unused_parameters():
    """(function, parameter) of public Python functions whose code does not use the parameter."""
    for module in MODULES.values():
        for name in module.__all__:
            function = inspect.unwrap(getattr(module, name))
            if type(function) is not types.FunctionType or "weft" not in function.__module__:
                continue
            tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
            if not isinstance(tree, ast.FunctionDef):
                continue
            used = {n.id for part in tree.body for n in ast.walk(part) if isinstance(n, ast.Name)}
            if "can_be_split" in map(ast.unparse, tree.decorator_list):
                used.add("out_sharding")
            arguments = tree.args
            for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                if each.arg not in used and not each.arg.startswith("_"):
                    yield function, each.arg


def test_parameters_have_an_effect_or_say_that_they_have_none():
    for function, parameter in unused_parameters():
        text = function.__doc__ or ""
        said = [line for line in text.split("\n") if parameter in line]
        assert any("ignored" in line or "no effect" in line for line in said), (
            f"{function.__module__}.{function.__name__} takes {parameter} and does nothing with it"
        )


@pytest.mark.parametrize(
    "call",
    [
        lambda: weft.grad(lambda x: x, reduce_axes=("i",)),
        lambda: weft.vjp(lambda x: x, 1.0, reduce_axes=("i",)),
        lambda: wnp.stack([wnp.ones(2)], out=wnp.ones((1, 2))),
    ],
)
def test_what_is_not_there_is_refused(call):
    with pytest.raises(NotImplementedError):
        call()


# ---- structure


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.py": "from weft import b\n", "b.py": "from weft.a import f\n"}, "a circle"),
        ({"a.py": "def f():\n    from weft import jit\n"}, "names from weft itself"),
        ({"runtime/devices.py": "from weft.runtime import x\n", "runtime/x.py": ""}, "a leaf"),
        (
            {"a.py": "def f():\n    from weft import b\n", "b.py": "from weft.a import f\n"},
            "a circle",
        ),
        ({"a.py": "def f():\n    from weft import b  # circle: b\n", "b.py": ""}, "no circle"),
    ],
)
def test_the_layout_check_finds(tmp_path, files, message):
    found = _layout_found("check_imports", tmp_path, files)
    assert len(found) == 1 and message in found[0]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"tree.py": "from weft import lax\n"}, "trees imports weft.lax of the later layer lax"),
        ({"tree.py": "def f():\n    from weft.lax import g\n"}, "of the later layer lax"),
        ({"lax/_x.py": "def f():\n    from weft import random\n"}, "of the later layer libraries"),
        ({"_x.py": ""}, "belongs to no layer"),
        ({"numpy/_signal.py": ""}, "no longer imports weft.scipy"),
    ],
)
def test_the_check_of_layers_finds(tmp_path, files, message):
    others = {f"{name}/__init__.py": "" for name in ("lax", "numpy", "random")}
    found = _layout_found("check_layers", tmp_path, {**others, **files})
    assert len(found) == 1 and message in found[0]


def test_the_check_of_layers_lets_pass(tmp_path):
    files = {
        "lax/__init__.py": "from weft import tree\n",
        "tree.py": "if TYPE_CHECKING:\n    from weft import lax\n",
    }
    assert not _layout_found("check_layers", tmp_path, files)
    files = {
        "a.py": "def f():\n    from weft import b  # circle: b stands on this\n",
        "b.py": "from weft.a import f\n",
    }
    assert not _layout_found("check_imports", tmp_path, files)


def _layout_found(check, root, files):
    for name, text in {"__init__.py": "", "runtime/__init__.py": "", **files}.items():
        path = root / "python" / "weft" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    checks = runpy.run_path(str(ROOT / "tools" / "check_layout"), run_name="layout")
    return [text for _, _, text in checks[check](root)]
