"""Types of the public surface: stubs against what runs, and what type checkers are told of values.

pyright itself runs in the test command (tools/test, step `types`).
"""

import ast
import importlib
import inspect
import re
import runpy
import textwrap
import types
import typing

import pytest
from conftest import ROOT

import weft

SURFACE = runpy.run_path(str(ROOT / "tests" / "types" / "surface.py"))
STUBS = runpy.run_path(str(ROOT / "tools" / "stubs"), run_name="stubs")


def is_of_type(value, kind):
    """Whether a value is of an annotated type, as far as containers tell."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is typing.Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(is_of_type(value, each) for each in arguments)
    if origin is None:
        return isinstance(value, kind)
    if not isinstance(value, origin):
        return False
    if origin is tuple and arguments[-1] is Ellipsis:
        return all(is_of_type(x, arguments[0]) for x in value)
    if origin is tuple:
        return len(value) == len(arguments) and all(map(is_of_type, value, arguments))
    if origin is list:
        return all(is_of_type(x, arguments[0]) for x in value)
    if origin is dict:
        return all(is_of_type(x, arguments[1]) for x in value.values())
    return True


@pytest.mark.parametrize("part", SURFACE["CHECKED"], ids=lambda part: part.__name__)
def test_values_have_the_types_that_checkers_are_told(part, monkeypatch):
    seen = []

    def checked(value, kind):
        assert is_of_type(value, kind), f"{value!r} is not of type {kind}"
        seen.append(kind)
        return value

    monkeypatch.setitem(part.__globals__, "assert_type", checked)
    part()
    assert seen


# ---- stubs and what runs


def functions(tree):
    """(name, definitions) of the functions of a stub, methods as Class.name."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            for name, nodes in functions(node).items():
                found[f"{node.name}.{name}"] = nodes
    return found


_GATHERING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def parameters(node):
    """(name, kind, whether it has a default) of each parameter of a definition."""
    arguments, P = node.args, inspect.Parameter
    plain = [*((a.arg, P.POSITIONAL_ONLY) for a in arguments.posonlyargs)]
    plain += [(a.arg, P.POSITIONAL_OR_KEYWORD) for a in arguments.args]
    first = len(plain) - len(arguments.defaults)
    found = [(name, kind, i >= first) for i, (name, kind) in enumerate(plain)]
    if arguments.vararg:
        found.append((arguments.vararg.arg, P.VAR_POSITIONAL, False))
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    found += [(a.arg, P.KEYWORD_ONLY, default is not None) for a, default in keywords]
    if arguments.kwarg:
        found.append((arguments.kwarg.arg, P.VAR_KEYWORD, False))
    return found


def agrees(written, running):
    """Whether a call that the definition allows is one that the function takes."""
    P, kinds = inspect.Parameter, {p.kind for p in running.values()}
    for name, kind, has_default in written:
        there = running.get(name)
        if there is None:
            gathers = P.VAR_POSITIONAL if kind is P.POSITIONAL_ONLY else P.VAR_KEYWORD
            if gathers not in kinds:
                return False
        else:
            narrower = kind is P.POSITIONAL_OR_KEYWORD and there.kind is not kind
            if narrower or (has_default and there.default is P.empty):
                return False
    named = {name for name, *_ in written}
    required = {n for n, p in running.items() if p.default is P.empty}
    return required - named <= {n for n, p in running.items() if p.kind in _GATHERING}


def spelled():
    """(name, definitions, function) of what the stubs have in full, not made from what runs."""
    for path, lines in STUBS["TYPES"].SPELLED.items():
        module, _, name = path.rpartition(".")
        nodes = functions(ast.parse("\n".join(lines)))[name]
        yield path, nodes, getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("path", STUBS["TYPES"].SPELLED)
def test_what_is_spelled_out_is_what_runs(path):
    ((nodes, function),) = [(n, f) for p, n, f in spelled() if p == path]
    running = inspect.signature(function).parameters
    for node in nodes:
        assert agrees(parameters(node), running), ast.unparse(node)
    named = {name for node in nodes for name, *_ in parameters(node)}
    positional = {p.name for p in running.values() if p.kind is p.POSITIONAL_ONLY}
    assert {*running} - positional <= named, "a parameter is missing"


def test_tables_of_types_name_what_there_is():
    """An entry for a function or a parameter that does not exist says nothing."""
    kinds = STUBS["TYPES"]
    for path in [*kinds.FUNCTIONS, *kinds.RETURNS, *kinds.RETURNS_BY_MODULE]:
        owner = weft
        for part in path.split(".")[1:]:
            owner = getattr(owner, part)
    used = set()
    for module in STUBS["public_modules"](weft, {}).values():
        for name in module.__all__:
            signature = STUBS["signature_of"](getattr(module, name))
            names = [] if signature is None else [*signature.parameters]
            path = f"{module.__name__}.{name}"
            while path:
                used |= {(path, each) for each in names}
                path = path.rpartition(".")[0]
    unused = [
        (path, name)
        for path, table in kinds.FUNCTIONS.items()
        for name in table
        if (path, name) not in used
    ]
    assert unused == []
    assert {*kinds.PARAMETERS} <= {name for _, name in used}


def test_stubs_hold_the_names_that_modules_show():
    for name, module in STUBS["public_modules"](weft, {}).items():
        path = STUBS["stub_path"](module)
        if not path.exists():
            continue
        held = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                held.add(node.name)
            elif isinstance(node, ast.AnnAssign):
                held.add(node.target.id)
            elif isinstance(node, ast.ImportFrom):
                held |= {a.asname for a in node.names}
        assert {*module.__all__} <= held, name


# ---- docstrings


def public_functions():
    """(module, name, function) of all public functions, each once."""
    seen = set()
    for module in STUBS["public_modules"](weft, {}).values():
        for name in module.__all__:
            value = getattr(module, name)
            plain = isinstance(value, (type, types.ModuleType)) or name.endswith("_p")
            ours = getattr(inspect.unwrap(value), "__module__", None) or ""
            if plain or not callable(value) or not ours.startswith("weft"):
                continue
            if id(inspect.unwrap(value)) not in seen:
                seen.add(id(inspect.unwrap(value)))
                yield module, name, value


FUNCTIONS = list(public_functions())


def found(path, *owners):
    """What a name with dots means in one of some modules, or None."""
    for value in owners:
        try:
            for part in path.split("."):
                value = getattr(value, part)
        except AttributeError:
            continue
        return value
    return None


def said(value, module, seen):
    """The docstring of a function, and of those that it refers to."""
    seen.add(id(value))
    text = inspect.getdoc(value) or ""
    for path in re.findall(r"`(?:weft\.)?([\w.]+)`", text):
        other = found(path, module, weft)
        if callable(other) and id(other) not in seen:
            text += "\n" + said(other, module, seen)
    return text


def test_docstrings_name_the_options():
    """Parameters with a default are told of by the function, its module, or what it refers to."""
    missing = []
    for module, name, value in FUNCTIONS:
        signature = STUBS["signature_of"](value)
        text = (module.__doc__ or "") + said(value, module, set())
        for p in signature.parameters.values() if signature else ():
            told = re.search(rf"(?<!\w){re.escape(p.name)}(?!\w)", text)
            if p.default is not p.empty and not p.name.startswith("_") and not told:
                missing.append(f"{module.__name__}.{name}: {p.name}")
    assert missing == []


def raises(value):
    """Whether the source of a function has it raise errors of its own."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(value))))
    except (OSError, TypeError, SyntaxError):
        return False
    return any(isinstance(node, ast.Raise) and node.exc for node in ast.walk(tree))


def test_docstrings_name_the_errors():
    silent = [
        f"{module.__name__}.{name}"
        for module, name, value in FUNCTIONS
        if raises(value) and not re.search(r"Raises|Error\b", inspect.getdoc(value) or "")
    ]
    assert silent == []
