"""Short programs over transforms, stages, control flow and host functions, and what jax makes of
them.

A row is Python code; its result is its last expression, or the error that it raises. `describe`
says of it what two libraries should agree on: dtypes, weak types, shapes and values of arrays,
trees, text, and of errors the built-in classes. `python tests/support/surface_rows.py` (with jax)
writes golden/surface_rows.json.
"""

import ast
import builtins
import functools
import importlib
import json
import os
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "surface_rows.json"
_BUILTIN = {
    value
    for value in vars(builtins).values()
    if isinstance(value, type) and issubclass(value, Exception)
}


def rows():
    """The rows of surface_rows.txt, which blank lines separate; lines with # are comments."""
    text = (HERE / "surface_rows.txt").read_text()
    blocks = ("\n".join(x for x in b.splitlines() if x[:1] != "#") for b in text.split("\n\n"))
    return [b.strip("\n") for b in blocks if b.strip()]


@functools.cache
def _names(package):
    root = importlib.import_module(package)
    names = {"jax": root, "np": np, "partial": functools.partial}
    modules = {
        "jnp": "numpy",
        "lax": "lax",
        "random": "random",
        "core": "core",
        "stages": "stages",
        "checkify": "experimental.checkify",
        "cd": "custom_derivatives",
        "exp": "experimental",
        "errors": "errors",
        "ode": "experimental.ode",
    }
    for short, name in modules.items():
        names[short] = importlib.import_module(f"{package}.{name}")
    jnp = names["jnp"]
    return names | {
        "v": jnp.array([1.0, -2.0, 0.5]),
        "x": jnp.arange(6.0).reshape(2, 3),
        "k": jnp.arange(3),
        "w": jnp.asarray(2.0),
    }


def _run(row, package):
    names = dict(_names(package))
    tree = ast.parse(row)
    last = tree.body.pop()
    exec(compile(tree, "<row>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<row>", "eval"), names)


def describe(value):
    """A value as JSON."""
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(describe, value)]
    if isinstance(value, dict):
        return {str(key): describe(item) for key, item in value.items()}
    if type(value).__name__ in ("ShapeDtypeStruct", "ShapedArray"):
        return ["type", list(value.shape), str(value.dtype), bool(value.weak_type)]
    if isinstance(value, np.dtype):
        return ["dtype", value.name]
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        if value.dtype.names is not None or value.dtype == [("float0", "V")]:
            return ["float0", list(value.shape)]
        numbers = np.asarray(value)
        if numbers.dtype.kind == "c":
            numbers = np.stack([numbers.real, numbers.imag])
        shown = numbers.astype(np.float64).ravel().tolist()
        weak = bool(getattr(value, "weak_type", False))
        return ["array", value.dtype.name, list(value.shape), weak, shown]
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float, complex)):  # as the array that they stand for
        kind = {int: "int32", float: "float32", complex: "complex64"}
        name = next(name for base, name in kind.items() if isinstance(value, base))
        parts = [value.real, value.imag] if isinstance(value, complex) else [value]
        return ["array", name, [], True, [float(np.float32(part)) for part in parts]]
    return ["object", type(value).__name__]


def outcome(row, package):
    """What a row gives, as JSON: its value, or the built-in classes of its error."""
    try:
        return ["value", describe(_run(row, package))]
    except Exception as error:
        return ["error", *(c.__name__ for c in type(error).__mro__ if c in _BUILTIN)]


def write():
    os.environ["JAX_PLATFORMS"] = "cpu"
    golden = {row: outcome(row, "jax") for row in rows()}
    lines = (f"{json.dumps(row)}: {json.dumps(made)}" for row, made in golden.items())
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
