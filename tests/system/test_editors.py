"""What editors show of functions that were jitted, mapped or differentiated, by Jedi.

pyright sees the types in the stubs: tests/types, in the step `types` of tools/test.
"""

from pathlib import Path

import pytest

import weft
import weft.numpy as wnp

jedi = pytest.importorskip("jedi")

CODE = '''\
from functools import partial

import weft
import weft.numpy as wnp


def plain(x: wnp.ndarray, scale: float = 1.0) -> wnp.ndarray:
    """Scales an array."""
    return x * scale


@weft.jit
def jitted(x: wnp.ndarray, scale: float = 1.0) -> wnp.ndarray:
    """Scales an array."""
    return x * scale


@partial(weft.jit, static_argnames="scale")
def with_options(x: wnp.ndarray, scale: float = 1.0) -> wnp.ndarray:
    """Scales an array."""
    return x * scale


@weft.jit(static_argnames="scale")
def by_options(x: wnp.ndarray, scale: float = 1.0) -> wnp.ndarray:
    """Scales an array."""
    return x * scale


class Model:
    @weft.jit
    def jitted(self, x: wnp.ndarray, scale: float = 1.0) -> wnp.ndarray:
        """Scales an array."""
        return x * scale


model = Model()
'''
FUNCTIONS = [
    "plain", "jitted", "with_options", "by_options", "model.jitted", "weft.jit(plain)",
    "weft.vmap(plain)", "weft.grad(plain)", "weft.value_and_grad(plain)", "weft.jacrev(plain)",
    "weft.hessian(plain)",
    "weft.checkpoint(plain)", "weft.jit(weft.grad(plain))", "weft.jit(weft.vmap(jitted))",
    "partial(weft.jit, static_argnums=1)(plain)", "weft.jit(plain, donate_argnums=0)",
]  # fmt: skip


def script(line):
    package = Path(weft.__file__).parent.parent
    project = jedi.Project(package, added_sys_path=[str(package)], load_unsafe_extensions=False)
    return jedi.Script(CODE + line, project=project)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_signatures_and_completions_are_those_of_the_function(function):
    signatures = script(f"{function}(").get_signatures()
    assert signatures
    for signature in signatures:
        assert [p.name for p in signature.params] == ["x", "scale"]
        assert [p.description for p in signature.params][1] == "param scale: float=1.0"
    names = {completion.name for completion in script(f"{function}(wnp.ones(3)).resh").complete()}
    assert "reshape" in names


@pytest.mark.parametrize("function", ["jitted", "with_options", "by_options", "weft.jit(plain)"])
def test_jitted_functions_show_their_methods(function):
    assert [c.name for c in script(f"{function}.lo").complete()] == ["lower"]


@pytest.mark.parametrize(
    "function", ["plain", "jitted", "with_options", "by_options", "model.jitted"]
)
def test_hovers_show_the_docstring(function):
    line = len(CODE.splitlines()) + 1
    (found,) = script(function).help(line, len(function) - 1)
    assert found.docstring(raw=True) == "Scales an array."


@pytest.mark.parametrize("transform", [weft.jit, weft.vmap, weft.grad, weft.checkpoint])
def test_notebooks_ask_the_objects(transform):
    def scaled(x, scale: float = 1.0):
        """Scales an array."""
        return x * scale

    names = [{"made": transform(scaled), "wnp": wnp}]
    (signature,) = jedi.Interpreter("made(", names).get_signatures()
    assert signature.to_string().endswith("(x, scale: float=1.0)")
    (found,) = jedi.Interpreter("made", names).help(1, 1)
    assert found.docstring(raw=True) == "Scales an array."


@pytest.mark.parametrize(
    ("function", "parameters"), [("wnp.tanh", ["x"]), ("weft.lax.add", ["x", "y"])]
)
def test_functions_of_weft(function, parameters):
    (signature,) = script(f"{function}(").get_signatures()
    assert [p.name for p in signature.params if p.name != "/"] == parameters
