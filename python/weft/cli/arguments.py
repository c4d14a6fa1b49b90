"""Arguments of the function on the command line: `--arg`, `--kwarg`, `--args`.

f32[8,128]       an array known by type only (enough for `weft lower`)
i32[]=3          an array with a value; one number fills the shape, a nested list must fit it
@x.npy           an array from a file; @x.npz:name one of several
3, 'mean', None  a Python literal, passed as it is
"""

import argparse
import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import weft
from weft.cli.load import load
from weft.cli.report import CliError

SPEC = re.compile(r"([A-Za-z]\w*)\[([^\]]*)\](?:\s*=\s*(.+))?", re.DOTALL)
SHORT_NAMES = {
    "f": "float", "bf": "bfloat", "i": "int", "u": "uint", "c": "complex",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="FILE.py:FUNCTION", help="the function")
    parser.add_argument(
        "--arg", action="append", default=[], metavar="SPEC", help="the next positional argument: "
        "'f32[8,128]', 'i32[]=3', @x.npy, @x.npz:name or a Python literal",
    )  # fmt: skip
    parser.add_argument(
        "--kwarg", action="append", default=[], metavar="NAME=SPEC", help="a keyword argument"
    )
    parser.add_argument(
        "--args", metavar="FILE.py:NAME", help="all positional arguments (any pytrees): a tuple, "
        "or a function that returns one",
    )  # fmt: skip
    parser.add_argument(
        "--static", action="append", default=[], metavar="WHICH",
        help="an argument, by position or name, that is part of the program and not its input",
    )  # fmt: skip
    parser.add_argument("--x64", action="store_true", help="64-bit dtypes stay as they are")
    parser.add_argument("--traceback", action="store_true", help="show tracebacks of errors")


def jitted(function: Callable[..., Any], static: list[str]) -> Any:
    """jit of a function, which may be jitted already."""
    if hasattr(function, "lower") and hasattr(function, "trace"):
        if static:
            raise CliError("--static cannot be added to a function that is jitted already")
        return function
    numbers = tuple(int(s) for s in static if s.lstrip("-").isdigit())
    names = tuple(s for s in static if not s.lstrip("-").isdigit())
    return weft.jit(function, static_argnums=numbers, static_argnames=names)


def read_arguments(
    options: argparse.Namespace, function: Callable[..., Any], *, need_values: bool
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and keyword arguments that the command line describes."""
    if options.args and options.arg:
        raise CliError("--args gives all positional arguments; --arg cannot add to it")
    if options.args:
        args = positional_arguments(options.args)
    else:
        args = tuple(parse_spec(s, f"--arg {s!r}", need_values) for s in options.arg)
    kwargs = {}
    for text in options.kwarg:
        name, equals, spec = text.partition("=")
        if not equals or not name.isidentifier():
            raise CliError(f"expected --kwarg NAME=SPEC; got {text!r}")
        kwargs[name] = parse_spec(spec, f"--kwarg {text!r}", need_values)
    check_signature(options.target, function, args, kwargs)
    return args, kwargs


def positional_arguments(target: str) -> tuple[Any, ...]:
    found = load(target)
    if callable(found):
        found = found()
    if not isinstance(found, tuple):
        raise CliError(
            f"--args {target} gives {type(found).__name__}; expected a tuple of the positional "
            "arguments (for one argument x: `(x,)`)"
        )
    return found


def check_signature(
    target: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        name = target.rpartition(":")[2]
        given = [f"{len(args)} positional", *(f"{k}=..." for k in kwargs)]
        raise CliError(
            f"the arguments do not fit `def {name}{signature}`{definition_of(function)}: {error}; "
            f"got {', '.join(given)}"
        ) from None


def definition_of(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f" ({code.co_filename}:{code.co_firstlineno})" if code else ""


def parse_spec(text: str, where: str, need_value: bool = False) -> Any:
    text = text.strip()
    if text.startswith("@"):
        return load_array(text[1:], where)
    match = SPEC.fullmatch(text)
    if match:
        dtype, shape = parse_dtype(match[1], where), parse_shape(match[2], where)
        if match[3] is not None:
            return filled(literal(match[3], where), dtype, shape, where)
        if need_value:
            raise CliError(f"{where} has no value: write '{text}=VALUE' or @FILE.npy")
        return weft.ShapeDtypeStruct(shape, dtype)
    return literal(text, where)


def parse_dtype(name: str, where: str) -> np.dtype:
    match = re.fullmatch(r"(bf|[fiuc])(\d+)(_\w+)?", name)
    full = SHORT_NAMES[match[1]] + match[2] + (match[3] or "") if match else name
    try:
        # weft.numpy registers the names of ml_dtypes ("bfloat16") with NumPy.
        dtype = np.dtype(full)
    except TypeError:
        raise CliError(
            f"{where}: no such dtype: {name!r} (examples: f32, bf16, i32, bool)"
        ) from None
    if dtype.kind not in "biufcV":
        raise CliError(f"{where}: {dtype.name} is no dtype of arrays on a device")
    if (
        dtype.name in ("float64", "int64", "uint64", "complex128")
        and not weft.config.weft_enable_x64
    ):
        raise CliError(f"{where}: {dtype.name} needs --x64 (or WEFT_ENABLE_X64=1)")
    return dtype


def parse_shape(text: str, where: str) -> tuple[int, ...]:
    sizes = [s.strip() for s in text.split(",")] if text.strip() else []
    if not all(s.isdigit() for s in sizes):
        raise CliError(f"{where}: expected sizes like [8,128]; got [{text}]")
    return tuple(map(int, sizes))


def literal(text: str, where: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise CliError(
            f"{where}: expected a type like f32[8,128], a file like @x.npy or a Python literal; "
            f"got {text!r}"
        ) from None


def filled(value: Any, dtype: np.dtype, shape: tuple[int, ...], where: str) -> np.ndarray:
    try:
        array = np.asarray(value).astype(dtype)
    except (TypeError, ValueError) as error:
        raise CliError(f"{where}: {value!r} is no value of dtype {dtype.name}: {error}") from None
    if array.shape not in ((), shape):
        raise CliError(f"{where}: the value has shape {array.shape}, the type says {shape}")
    return np.broadcast_to(array, shape).copy()


def load_array(name: str, where: str) -> np.ndarray:
    filename, _, key = name.partition(":")
    path = Path(filename)
    if path.suffix not in (".npy", ".npz"):
        raise CliError(f"{where}: expected a .npy or .npz file; got {filename!r}")
    try:
        data = np.load(path)
    except (OSError, ValueError, EOFError) as error:
        raise CliError(f"{where}: {error}") from None
    if isinstance(data, np.ndarray):
        return data
    keys = list(data)
    if not key and len(keys) == 1:
        key = keys[0]
    if key not in keys:
        raise CliError(f"{where}: name one array of the file, @{filename}:NAME; it has {keys}")
    return data[key]
