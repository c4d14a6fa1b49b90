"""The table of ops: what a row says, the domains that arguments are drawn from, and all rows.

One row per op and case drives the tests test_ops_*.py, which name no op. A row gives the function
under test (of weft.lax), a NumPy or SciPy reference, the arguments, the attributes, and what is
known about derivatives. Adding an op means adding a row; test_table_complete.py insists.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from weft import _core

bfloat16 = np.dtype(ml_dtypes.bfloat16)
BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
FLOATS = ("bfloat16", "float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INEXACT = FLOATS + COMPLEX
NUMBERS = INTS + INEXACT
ANY = BOOL + NUMBERS
# Enough for ops that move elements around without looking at them.
SAMPLE = ("bool", "int8", "uint32", "bfloat16", "float32", "float64", "complex64")
SAMPLE_NUMBERS = ("int8", "uint32", "int64", "bfloat16", "float32", "float64", "complex64")

# Shapes that element-wise rows run on, besides those with scalar operands.
SHAPES = ((), (0,), (1,), (7,), (2, 1, 3, 2))

EPS = {
    "bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53,
    "complex64": 2.0**-24, "complex128": 2.0**-53,
}  # fmt: skip


@dataclass(frozen=True)
class Arg:
    """One argument: its shape, where its values come from, and its dtype (the row's if None)."""

    shape: tuple[int, ...]
    domain: str = "real"
    dtype: str | None = None
    # A value in place of a domain.
    value: Any = None

    def dtype_in(self, dtype: str) -> np.dtype:
        return np.dtype(self.dtype or dtype)

    def draw(self, rng: np.random.Generator, dtype: str) -> np.ndarray:
        target = self.dtype_in(dtype)
        if self.value is not None:
            return np.broadcast_to(np.asarray(self.value), self.shape).astype(target)
        return DOMAINS[self.domain](rng, self.shape, target)


@dataclass(frozen=True)
class Row:
    op: str
    fn: Callable[..., Any]
    ref: Callable[..., Any]
    # The argument lists that the row runs with; a shape stands for Arg(shape, domain).
    args: tuple[tuple[Arg, ...], ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    dtypes: tuple[str, ...] = FLOATS
    # The result's dtype as a function of the row's; for several results a tuple.
    out: Callable[[np.dtype], Any] = lambda d: d
    # Relative error allowed, in units of the dtype's rounding error; 0 asks for equality.
    ulps: float = 4
    # Whether the reference computes in float64 and complex128, then rounds once.
    wide: bool = True
    # Arguments (of the first operand) and results with infinities, NaN and zeros.
    special: tuple[float, ...] = ()
    # Which arguments the op is differentiable in, at the points of their domains.
    diff: tuple[int, ...] = ()
    # Sets of arguments in which it is linear, the others held fixed: ((0,), (1,)) for mul.
    linear_in: tuple[tuple[int, ...], ...] = ()
    # Whether vmap over any choice of arguments must work.
    batch: bool = True

    @property
    def id(self) -> str:
        return self.op + (f"-{self.label}" if self.label else "")

    def call(self, *xs: Any) -> Any:
        return self.fn(*xs, **self.attrs)

    def reference(self, *xs: np.ndarray) -> Any:
        """The reference in the widest dtype of the kind; integers stay as they are, to wrap."""
        with np.errstate(all="ignore"):
            return self.ref(*[widen(x) if self.wide else x for x in xs], **self.attrs)

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(zlib.crc32(self.id.encode()))

    def cases(self) -> list[tuple[str, list[np.ndarray]]]:
        """(dtype, arguments) of every case."""
        rng = self.rng()
        out = [(d, [a.draw(rng, d) for a in args]) for d in self.dtypes for args in self.args]
        if self.special:
            for d in self.dtypes:
                if d in FLOATS:
                    first = np.array(self.special).astype(d)
                    rest = [np.full(first.shape, 0.5, a.dtype_in(d)) for a in self.args[0][1:]]
                    out.append((d, [first, *rest]))
        return out


def widen(x: np.ndarray) -> np.ndarray:
    if x.dtype in (np.float16, np.float32, bfloat16):
        return x.astype(np.float64)
    return x.astype(np.complex128) if x.dtype == np.complex64 else x


def _real(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "u":
        return rng.integers(0, 12, shape).astype(dtype)
    if dtype.kind == "i":
        return rng.integers(-9, 10, shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return (2 * rng.normal(size=shape)).astype(dtype)


def _uniform(low: float, high: float, complex_scale: float = 1.0) -> Callable[..., np.ndarray]:
    def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        x = rng.uniform(low, high, shape)
        if dtype.kind == "c":
            x = x + 1j * complex_scale * rng.uniform(low, high, shape)
        return np.asarray(x).astype(dtype)

    return draw


def _nonzero(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype.kind in "iu":
        sign = rng.choice([-1, 1], shape) if dtype.kind == "i" else 1
        return np.asarray(rng.integers(1, 9, shape) * sign).astype(dtype)
    x = rng.uniform(0.3, 3.0, shape) * rng.choice([-1.0, 1.0], shape)
    if dtype.kind == "c":
        x = x + 1j * rng.uniform(0.3, 2.0, shape)
    return np.asarray(x).astype(dtype)


def _distinct(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """No two elements are near each other: maxima and orders are stable under small changes."""
    if dtype.kind == "b":
        return _real(rng, shape, dtype)
    n = int(np.prod(shape))
    x = rng.permutation(n) * 0.5 if dtype.kind in "fV" else rng.permutation(n)
    if dtype.kind in "fiV":
        x = x - n // 4
    return np.asarray(x).reshape(shape).astype(dtype)


def _definite(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Hermitian matrices with positive eigenvalues."""
    x = _real(rng, shape, np.dtype(np.complex128 if dtype.kind == "c" else np.float64))
    return (x @ np.conj(np.swapaxes(x, -1, -2)) / 4 + 2 * np.eye(shape[-1])).astype(dtype)


def _spread(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Matrices whose eigenvalues and singular values are apart from each other and from 0."""
    x = _real(rng, shape, np.dtype(np.complex128 if dtype.kind == "c" else np.float64))
    diagonal = np.arange(2, 2 + shape[-1]) * np.eye(*shape[-2:])
    return (0.3 * x + 1.5 * diagonal).astype(dtype)


DOMAINS: dict[str, Callable[..., np.ndarray]] = {
    "real": _real,
    "positive": _uniform(0.1, 4.0),
    "unit": _uniform(-0.9, 0.9, 0.5),  # inside (-1, 1)
    "above_one": _uniform(1.1, 4.0),
    "fraction": _uniform(0.1, 0.9),  # inside (0, 1)
    "small": _uniform(-1.5, 1.5),
    "nonzero": _nonzero,
    "distinct": _distinct,
    "halfway_free": lambda rng, shape, dtype: (
        (rng.integers(-5, 5, shape) + rng.uniform(0.1, 0.4, shape)).astype(dtype)
    ),
    "ties": lambda rng, shape, dtype: (rng.integers(-5, 5, shape) + 0.5).astype(dtype),
    "wide": _uniform(-20.0, 20.0),
    "definite": _definite,
    "spread": _spread,
    "order": lambda rng, shape, dtype: rng.integers(1, 4, shape).astype(dtype),
    "shift": lambda rng, shape, dtype: rng.integers(0, 7, shape).astype(dtype),
    "bits": lambda rng, shape, dtype: np.frombuffer(
        rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype
    ).reshape(shape),
}  # fmt: skip


def bind(op: str) -> Callable[..., Any]:
    """The op itself, for those that weft.lax has no function for."""
    return lambda *xs, **attrs: _core.bind(op, *xs, **attrs)


def elementwise(
    op: str,
    fn: Callable[..., Any],
    ref: Callable[..., Any],
    dtypes: tuple[str, ...] = FLOATS,
    *,
    arity: int = 1,
    domain: str | tuple[str, ...] = "real",
    shapes: tuple[tuple[int, ...], ...] = SHAPES,
    arg_dtypes: tuple[str | None, ...] | None = None,
    **options: Any,
) -> Row:
    """A row for an op whose operands all have the result's shape."""
    domains = (domain,) * arity if isinstance(domain, str) else domain
    given = arg_dtypes or (None,) * arity
    args = tuple(
        tuple(Arg(shape, d, t) for d, t in zip(domains, given, strict=True)) for shape in shapes
    )
    return Row(op, fn, ref, args, dtypes=dtypes, **options)


def structural(
    op: str,
    fn: Callable[..., Any],
    ref: Callable[..., Any],
    *shapes: tuple[int, ...] | Arg,
    dtypes: tuple[str, ...] = SAMPLE,
    domain: str = "real",
    ulps: float = 0,
    **options: Any,
) -> Row:
    """A row with one list of arguments, given by their shapes; attributes are `attrs`."""
    args = tuple(s if isinstance(s, Arg) else Arg(s, domain) for s in shapes)
    return Row(op, fn, ref, (args,), dtypes=dtypes, ulps=ulps, **options)


def all_rows() -> list[Row]:
    import op_rows_control
    import op_rows_elementwise
    import op_rows_gather
    import op_rows_linalg
    import op_rows_random
    import op_rows_reduce
    import op_rows_shape
    import op_rows_spectral
    import op_rows_windows

    return [
        *op_rows_elementwise.ROWS,
        *op_rows_shape.ROWS,
        *op_rows_reduce.ROWS,
        *op_rows_gather.ROWS,
        *op_rows_windows.ROWS,
        *op_rows_linalg.ROWS,
        *op_rows_random.ROWS,
        *op_rows_spectral.ROWS,
        *op_rows_control.ROWS,
    ]


# Ops without a row, with the reason.
NO_ROW = {
    "checkpoint": "a call of a graph; test_checkpoint.py covers it",
    "constant": "made where a rule closes over an array; test_custom_rules.py covers it",
    "custom_jvp_call": "a call of a graph; test_custom_rules.py covers it",
    "custom_lin": "made by differentiating custom_vjp_call; test_custom_rules.py covers it",
    "custom_vjp_call": "a call of a graph; test_custom_rules.py covers it",
    "mapped_call": "made by vmap of functions with checks; test_checkify.py covers it",
    "dim_as_value": "it has no operands; test_symbolic_dims.py covers it",
    "ffi_call": "it calls functions of other libraries; test_ffi.py covers it",
    "fusion": "made by the fuse pass only; tests/ir covers it",
    "kernel": "made by the kernels pass only; test_kernels.py and tests/ir cover it",
    "jit": "a call of a graph; test_jit.py covers it",
    **dict.fromkeys(
        [
            "all_gather",
            "all_to_all",
            "axis_index",
            "pbroadcast",
            "pmax",
            "pmin",
            "ppermute",
            "psum",
            "reduce_scatter",
        ],
        "there only within vmap(axis_name=...); test_collectives.py covers it",
    ),
    **dict.fromkeys(
        ["pullback", "pushforward", "pvary", "shard_map", "vary_cast", "vary_like"],
        "it is for programs on a mesh; test_shard_map.py covers it",
    ),
    **dict.fromkeys(
        ["device_put", "sharding_constraint"],
        "it is for programs on a mesh; test_sharding.py covers it",
    ),
    "pure_callback": "its function is of Python; test_callback.py covers it",
    "inspect_sharding": "its function is of Python; test_seeing.py covers it",
    "io_callback": "its function is of Python; test_debug.py covers it",
    "dce_sink": "it has no result; test_lax_staging.py covers it",
    "require_platform": "it has no result; test_lax_staging.py covers it",
    "rng_bit_generator": "its bits are XLA's; test_lax_random_bits.py covers it",
    "rng_uniform": "its numbers differ from run to run; test_lax_random_bits.py covers it",
    "debug_callback": "its function is of Python; test_debug.py covers it",
    "check": "its error is an object of Python; test_checkify.py covers it",
}
# Rules that ops lack, with the reason.
MISSING_RULES = {
    "checkpoint": (("cost",), "its cost is its body's"),
    "composite": (("cost",), "its cost is its body's"),
    "constant": (("batch",), "without operands, nothing of it is ever mapped"),
    "custom_jvp_call": (("cost",), "its cost is its body's"),
    **dict.fromkeys(
        ["pullback", "pushforward"],
        (("jvp", "cost"), "it is replaced when the graph it stands in is complete"),
    ),
    "custom_vjp_call": (("cost",), "its cost is its body's"),
    "dim_as_value": (("batch",), "without operands, nothing of it is ever mapped"),
    "iota": (("batch",), "without operands, nothing of it is ever mapped"),
    "jit": (("cost",), "its cost is its body's"),
    "kernel": (("cost",), "its cost is its body's"),
    "mapped_call": (("cost",), "it is written out as what vmap makes of its body"),
    "create_token": (("batch",), "without operands, nothing of it is ever mapped"),
    "platform_index": (("batch",), "without operands, nothing of it is ever mapped"),
    "require_platform": (("batch",), "without operands, nothing of it is ever mapped"),
    "rng_uniform": (("jvp", "batch"), "its numbers are not a function of its bounds"),
    "select_and_scatter": (
        ("jvp",),
        "what its functions do to an element has no derivative in general",
    ),
    "eig": (("transpose",), "it is linear in nothing"),
    "geqp3": (("jvp",), "qr has derivatives; this is a part of it"),
    "geqrf": (("jvp",), "qr has derivatives; this is a part of it"),
    "hessenberg": (("jvp",), "its factors are reflectors; none in jax either"),
    "householder_product": (("jvp",), "qr has derivatives; this is a part of it"),
    "schur": (("jvp",), "none in jax either"),
    "svd": (("transpose",), "it is linear in nothing"),
    "tridiagonal": (("jvp",), "its factors are reflectors; none in jax either"),
    "sort": (("transpose",), "it is linear in nothing; a part of a jvp only"),
    "scatter-apply": (("jvp",), "an element may have the function applied more than once"),
}
