"""Arrays from text: `i32[3]=[1,2,3]`, `f32[8,3]=normal`, `@x.npy`.

A value that its dtype cannot hold is refused: numbers out of range, fractions of integers, NaN and
infinity where there are none. Floats are rounded to the dtype.
"""

import ast
import inspect
import math
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from weft import dtypes
from weft._types.avals import ShapeDtypeStruct
from weft.cli.failures import CliError, did_you_mean

SPEC = re.compile(r"([A-Za-z]\w*)\[([^\]]*)\](?:\s*=\s*(.+))?", re.DOTALL)
CALL = re.compile(r"([a-z]+)(?:\((.*)\))?", re.DOTALL)
BOOL = np.dtype("bool")
SHORT_NAMES = {
    "f": "float", "bf": "bfloat", "i": "int", "u": "uint", "c": "complex",
}  # fmt: skip


class Reader:
    """Reads the values of one command; random ones follow from the seed, in order."""

    def __init__(self, seed: int = 0):
        self.random = np.random.default_rng(seed)

    def read(self, text: str, where: str, need_value: bool = False) -> Any:
        """The value that a spec describes; a ShapeDtypeStruct where it names a type only."""
        text = text.strip()
        if text.startswith("@"):
            return load_array(text[1:], where)
        match = SPEC.fullmatch(text)
        if not match:
            return literal(text, where)
        dtype, shape = parse_dtype(match[1], where), parse_shape(match[2], where)
        if match[3] is not None:
            return self.filled(match[3], dtype, shape, where)
        if need_value:
            raise CliError(
                f"{where} has no value: write '{text}=VALUE' or @FILE.npy; "
                f"VALUE is a number, a list or one of {known()}"
            )
        return ShapeDtypeStruct(shape, dtype)

    def filled(self, text: str, dtype: np.dtype, shape: tuple[int, ...], where: str) -> np.ndarray:
        if math.prod(shape) > 2**40:
            raise CliError(f"{where}: {math.prod(shape)} elements are more than fit into memory")
        call = CALL.fullmatch(text.strip())
        if call and call[1] in FILLS:
            values = self.generated(call[1], call[2] or "", dtype, shape, where)
        elif call and call[1] not in ("nan", "inf"):
            raise CliError(
                f"{where}: expected a number, a list or one of {known()}; got {text!r}"
                f"{did_you_mean(call[1], FILLS)}"
            )
        else:
            values = np.array(literal(text, where), dtype=object)
            if values.shape not in ((), shape):
                raise CliError(
                    f"{where}: the value has shape {values.shape}, the type says {shape}"
                )
        return np.broadcast_to(cast(values, dtype, where), shape).copy()

    def generated(self, name, arguments, dtype, shape, where) -> np.ndarray:
        fill = FILLS[name]
        given = literal(f"({arguments},)", where) if arguments.strip() else ()
        parameters = [
            p for p in inspect.signature(fill).parameters.values() if p.kind is p.KEYWORD_ONLY
        ]
        if len(given) > len(parameters) or not all(type(x) in (int, float) for x in given):
            expected = ", ".join(f"{p.name}={p.default}" for p in parameters)
            raise CliError(
                f"{where}: expected numbers for {name}({expected}); got {name}({arguments})"
            )
        values = {p.name: x for p, x in zip(parameters, given, strict=False)}
        try:
            return fill(self.random, dtype, shape, **values)
        except ValueError as error:
            raise CliError(f"{where}: {name}: {error}") from None


# What fills a shape, by name. The keyword-only parameters may be given in parentheses.


def zeros(random, dtype, shape):
    return np.zeros((), np.int64)


def ones(random, dtype, shape):
    return np.ones((), np.int64)


def arange(random, dtype, shape, *, start=0, step=1):
    return start + step * np.arange(math.prod(shape)).reshape(shape)


def normal(random, dtype, shape, *, mean=0.0, std=1.0):
    if dtypes.issubdtype(dtype, np.complexfloating):
        parts = random.normal(0.0, std * math.sqrt(0.5), (2, *shape))
        return mean + parts[0] + 1j * parts[1]
    floats_only(dtype)
    return random.normal(mean, std, shape)


def uniform(random, dtype, shape, *, low=0.0, high=1.0):
    if dtypes.issubdtype(dtype, np.complexfloating):
        return random.uniform(low, high, shape) + 1j * random.uniform(low, high, shape)
    floats_only(dtype)
    return random.uniform(low, high, shape)


def randint(random, dtype, shape, *, low=0, high=None):
    """Whole numbers from low to high, without high."""
    if high is None:
        high = low + (2 if dtype == BOOL else 10)
    if not low < high or low != int(low) or high != int(high):
        raise ValueError(f"expected whole numbers, low < high; got {low} and {high}")
    return random.integers(int(low), int(high), shape)


FILLS = {f.__name__: f for f in (zeros, ones, arange, normal, uniform, randint)}


def known() -> str:
    return ", ".join(FILLS)


def floats_only(dtype: np.dtype) -> None:
    if not dtypes.issubdtype(dtype, np.floating):
        raise ValueError(f"expected a float or complex dtype; got {dtype.name} (see randint)")


# Numbers in the dtype asked for.


def cast(values: np.ndarray, dtype: np.dtype, where: str) -> np.ndarray:
    """`values` (of any shape, NumPy's numbers or any objects) as `dtype`, if it can hold them."""
    for value in values.ravel() if values.dtype == object else representatives(values, dtype):
        problem = refusal(value, dtype)
        if problem:
            raise CliError(f"{where}: {value!r} is no value of dtype {dtype.name}: {problem}")
    if values.dtype == object and dtypes.issubdtype(dtype, np.floating):
        values = values.astype(np.float64)  # some dtypes of ml_dtypes take no large ints
    return values.astype(dtype)


def representatives(values: np.ndarray, dtype: np.dtype) -> list[Any]:
    """If a dtype holds these of many finite numbers, it holds all of them."""
    if not values.size:
        return []
    parts = [np.real(values), np.imag(values)] if values.dtype.kind == "c" else [values]
    found = [f(part) for part in parts for f in (np.min, np.max)]
    if values.dtype.kind == "f" and not dtypes.issubdtype(dtype, np.inexact):
        found += list(values[values != np.floor(values)][:1])
    return [x.item() for x in found]


def refusal(x: Any, dtype: np.dtype) -> str | None:
    """Why a dtype cannot hold a number; None if it can."""
    if not isinstance(x, (bool, int, float, complex)):
        return f"expected a number; got {type(x).__name__}"
    if dtypes.issubdtype(dtype, np.complexfloating):
        part = np.dtype("float32" if dtype == np.complex64 else "float64")
        return refusal_of_float(complex(x).real, part) or refusal_of_float(complex(x).imag, part)
    if isinstance(x, complex):
        return "it is complex"
    if dtypes.issubdtype(dtype, np.floating):
        return refusal_of_float(x, dtype)
    if isinstance(x, float) and not x.is_integer():
        return "it is not a whole number"
    if dtype == BOOL:
        low, high = 0, 1
    else:
        info = ml_dtypes.iinfo(dtype)
        low, high = int(info.min), int(info.max)
    return None if low <= x <= high else f"it holds {low} to {high}"


def refusal_of_float(x: float, dtype: np.dtype) -> str | None:
    largest = float(ml_dtypes.finfo(dtype).max)
    try:
        x = float(x)
        with np.errstate(all="ignore"):
            held = float(np.float64(x).astype(dtype))
    except OverflowError:
        return f"its largest number is {largest:g}"
    if math.isnan(x):
        return None if math.isnan(held) else "it has no NaN"
    if math.isinf(x):
        return None if held == x else "it has no infinity"
    if not math.isfinite(held) and abs(x) <= largest:
        return "it has no negative numbers"
    if not math.isfinite(held) or (abs(x) > largest and not has_infinity(dtype)):
        return f"its largest number is {largest:g}"
    return "it has no zero" if x == 0 != held else None


def has_infinity(dtype: np.dtype) -> bool:
    with np.errstate(all="ignore"):
        return math.isinf(float(np.float64(math.inf).astype(dtype)))


# The parts of a spec.


def parse_dtype(name: str, where: str) -> np.dtype:
    dtype = named_dtype(name)
    if dtype is None:
        raise CliError(
            f"{where}: no such dtype: {name!r} (examples: f32, bf16, i32, bool)"
            f"{did_you_mean(name, [x for d in dtypes.SUPPORTED for x in (short_name(d), d.name)])}"
        )
    check_dtype(dtype, where)
    if dtype != dtypes.canonicalize_dtype(dtype):
        raise CliError(f"{where}: {dtype.name} needs --x64 (or WEFT_ENABLE_X64=1)")
    return dtype


def named_dtype(name: str) -> np.dtype | None:
    match = re.fullmatch(r"(bf|[fiuc])(\d+)(_\w+)?", name)
    full = SHORT_NAMES[match[1]] + match[2] + (match[3] or "") if match else name
    try:
        # weft.numpy registers the names of ml_dtypes ("bfloat16") with NumPy.
        return np.dtype(full)
    except TypeError:
        return None


def short_name(dtype: np.dtype) -> str:
    for short, name in SHORT_NAMES.items():
        if dtype.name.startswith(name):
            return short + dtype.name.removeprefix(name)
    return dtype.name


def check_dtype(dtype: np.dtype, where: str) -> None:
    if dtype not in dtypes.SUPPORTED:
        raise CliError(f"{where}: {dtype.name} is no dtype of arrays on a device")


def parse_shape(text: str, where: str) -> tuple[int, ...]:
    sizes = [s.strip() for s in text.split(",")] if text.strip() else []
    if not all(s.isdecimal() for s in sizes):
        digits = re.fullmatch(r"\(?\d+([\sx*,;]+\d+)*,?\)?", text.strip())
        meant = f"; did you mean {shape_in(text)}?" if digits else ""
        raise CliError(f"{where}: expected sizes like [8,128]; got [{text}]{meant}")
    shape = tuple(map(int, sizes))
    if any(size >= 2**63 for size in shape):
        raise CliError(f"{where}: expected sizes below 2**63; got [{text}]")
    return shape


class _Constants(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(float(node.id)) if node.id in ("nan", "inf") else node


def literal(text: str, where: str) -> Any:
    """A Python literal; `nan` and `inf` are numbers."""
    try:
        return ast.literal_eval(_Constants().visit(ast.parse(text.strip(), mode="eval")))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise CliError(
            f"{where}: expected a type like f32[8,128], a file like @x.npy or a Python literal; "
            f"got {text!r}{spec_meant(text)}"
        ) from None


def shape_in(text: str) -> str:
    return f"[{','.join(re.findall('[0-9]+', text))}]"


def spec_meant(text: str) -> str:
    """What may be meant by text that is no value: f32(8,128), f32, x.npy, x=f32[3]."""
    text = text.strip()
    array = re.fullmatch(r"([A-Za-z]\w*)\s*[(<{]?([\d\s,x*]*)[)>}]?", text)
    if array and named_dtype(array[1]) is not None:
        return f"; did you mean '{array[1]}{shape_in(array[2])}'?"
    if re.search(r"\.np[yz](:|$)", text):
        return f"; did you mean '@{text}'?"
    if re.match(r"[A-Za-z_]\w*=", text):
        return f"; did you mean --kwarg {text!r}?"
    return did_you_mean(text, ["None", "True", "False"])


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
        return checked(data, where)
    keys = list(data)
    if not key and len(keys) == 1:
        key = keys[0]
    if key not in keys:
        raise CliError(
            f"{where}: name one array of the file, @{filename}:NAME; it has {keys}"
            f"{did_you_mean(key, keys)}"
        )
    return checked(data[key], where)


def checked(array: np.ndarray, where: str) -> np.ndarray:
    """An array of a file, refused if its values change when 64-bit dtypes become 32-bit ones."""
    check_dtype(array.dtype, where)
    narrow = dtypes.canonicalize_dtype(array.dtype)
    if narrow != array.dtype:
        with np.errstate(all="ignore"):
            after = array.astype(narrow)
        same = after == array if array.dtype.kind in "iu" else np.isinf(after) == np.isinf(array)
        if not np.all(same):
            raise CliError(f"{where}: has values that {narrow.name} cannot hold; it needs --x64")
    return array
