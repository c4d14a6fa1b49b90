"""Examples in docstrings: each gives what it says it gives, and most functions have one.

An example is written for doctest. It may use `weft`, `wnp` (weft.numpy), `lax` (weft.lax),
`np` (NumPy) and `P` (weft.sharding.PartitionSpec), and imports what else it needs.
"""

import doctest
import importlib
import inspect
import runpy
import types

import numpy as np
import pytest
from conftest import ROOT

import weft
import weft.numpy as wnp
from weft import lax
from weft.config import config
from weft.core import Primitive
from weft.sharding import PartitionSpec

STUBS = runpy.run_path(str(ROOT / "tools" / "stubs"), run_name="stubs")
NAMES = {"weft": weft, "wnp": wnp, "lax": lax, "np": np, "P": PartitionSpec}

# The share of the functions of a module, and of the methods of a class, that must have an example.
NEEDED = {
    "weft": 0.9,
    "weft.checkpoints": 1.0,
    "weft.compiler": 1.0,
    "weft.debug": 1.0,
    "weft.dlpack": 1.0,
    "weft.experimental.checkify": 1.0,
    "weft.experimental.mesh_utils": 1.0,
    "weft.experimental.multihost_utils": 0.5,
    "weft.experimental.rnn": 0.5,
    "weft.experimental.serialize_executable": 1.0,
    "weft.export": 1.0,
    "weft.lax": 1.0,
    "weft.nn": 1.0,
    "weft.numpy": 1.0,
    "weft.numpy.fft": 1.0,
    "weft.numpy.linalg": 1.0,
    "weft.ops": 1.0,
    "weft.random": 1.0,
    "weft.ref": 1.0,
    "weft.scipy.linalg": 1.0,
    "weft.scipy.signal": 1.0,
    "weft.scipy.special": 1.0,
    "weft.sharding": 0.6,
    "weft.test_util": 1.0,
    "weft.tree": 1.0,
    "weft.tree_util": 1.0,
}
NEEDED_OF_CLASSES = {
    "weft._core.Array": 0.9,
    "weft.export.Exported": 0.5,
    "weft.numpy._at.IndexedElements": 1.0,
}
# Functions for which an example makes no sense, and why.
WITHOUT = {
    "weft.numpy.fromfile": "always raises an error",
    "weft.numpy.fromiter": "always raises an error",
    "weft.debug.breakpoint": "waits for the user",
    "weft.debug.visualize_array_sharding": "draws what `visualize_sharding` draws",
}


def is_ours(value):
    """False for what a public module has of NumPy."""
    return (getattr(inspect.unwrap(value), "__module__", None) or "").startswith("weft")


def shown():
    """(module, public names) of the public modules, and of those of classes that users get."""
    for module in STUBS["public_modules"](weft, {}).values():
        yield module, module.__all__
    for name, classes in STUBS["PRIVATE"].items():
        yield importlib.import_module(name), classes


def original(value):
    """What several public objects with one docstring are made of."""
    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return inspect.unwrap(value)


def objects():
    """(module name, path, object): modules, their functions and classes, then the methods."""
    classes = []
    for module, names in shown():
        yield module.__name__, module.__name__, module
        for name in names:
            value, path = getattr(module, name), f"{module.__name__}.{name}"
            if isinstance(value, types.ModuleType) or not is_ours(value):
                continue
            yield module.__name__, path, value
            if isinstance(value, type):
                classes.append((module.__name__, path, value))
    for module, path, owner in classes:
        for name, value in vars(owner).items():
            if inspect.isroutine(value) or inspect.isdatadescriptor(value):
                yield module, f"{path}.{name}", value


def docstrings():
    """By module: (path, docstring) of what has examples, each object at the first place only."""
    found, seen = {}, set()
    for module, path, value in objects():
        text = inspect.getdoc(value) or ""
        if ">>>" in text and id(original(value)) not in seen:
            seen.add(id(original(value)))
            found.setdefault(module, []).append((path, text))
    return found


DOCSTRINGS = docstrings()
PARSER = doctest.DocTestParser()


@pytest.mark.parametrize("module", DOCSTRINGS)
def test_examples_give_what_they_say(module):
    report = []
    settings = config.describe()
    for path, text in DOCSTRINGS[module]:
        test = PARSER.get_doctest(text, dict(NAMES), path, None, 0)
        doctest.DocTestRunner(verbose=False).run(test, out=report.append)
        assert config.describe() == settings, f"{path} leaves settings changed"
    assert not report, "".join(report)


@pytest.mark.parametrize("module", DOCSTRINGS)
def test_examples_stand_last(module):
    for path, text in DOCSTRINGS[module]:
        pieces = PARSER.parse(text)
        assert "\nExamples:\n" in pieces[0] and not pieces[-1].strip(), path


def functions_of(name):
    """By path, the public functions of a module."""
    module = importlib.import_module(name)
    values = {f"{name}.{each}": getattr(module, each) for each in module.__all__}
    return {
        path: value
        for path, value in values.items()
        if callable(value) and is_ours(value) and not isinstance(value, (type, Primitive))
    }


def methods_of(path):
    """By path, the public methods of a class."""
    module, _, name = path.rpartition(".")
    owner = getattr(importlib.import_module(module), name)
    return {
        f"{path}.{each}": value
        for each, value in vars(owner).items()
        if callable(value) and not each.startswith("_")
    }


def lacking(functions):
    return [
        path
        for path, value in functions.items()
        if ">>>" not in (inspect.getdoc(value) or "") and path not in WITHOUT
    ]


@pytest.mark.parametrize("module", NEEDED)
def test_functions_have_examples(module):
    functions = functions_of(module)
    without = lacking(functions)
    assert len(without) <= (1 - NEEDED[module]) * len(functions), without


@pytest.mark.parametrize("owner", NEEDED_OF_CLASSES)
def test_methods_have_examples(owner):
    methods = methods_of(owner)
    without = lacking(methods)
    assert len(without) <= (1 - NEEDED_OF_CLASSES[owner]) * len(methods), without


def test_functions_without_examples_are_there_and_have_none():
    functions = {path: value for module in NEEDED for path, value in functions_of(module).items()}
    for path in WITHOUT:
        assert ">>>" not in (inspect.getdoc(functions[path]) or ""), path
