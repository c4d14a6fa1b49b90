"""Rows of the reductions."""

import numpy as np
from op_table import ANY, BOOL, FLOATS, INTS, NUMBERS, Arg, Row, structural

from weft import lax

CASES = [
    ("rows", (3, 4), (0,)),
    ("columns", (3, 4), (1,)),
    ("all", (3, 4), (0, 1)),
    ("none", (3, 4), ()),
    ("scalar", (), ()),
    ("empty", (0, 4), (0,)),
    ("to_empty", (0, 4), (1,)),
    ("rank4", (2, 1, 3, 2), (3, 0, 2)),
]


def reducer(op, ref, dtypes, *, domain="small", ulps=32.0, **options):
    """A row per choice of axes; all dtypes for one of them, a few for the others."""
    few = tuple(d for d in dtypes if d in ("bool", "int32", "float32", "complex64"))
    return [
        structural(op, getattr(lax, op), lambda x, axes: ref(x, axis=axes), shape,
                   attrs={"axes": axes}, label=label, dtypes=dtypes if label == "rows" else few,
                   domain=domain, ulps=ulps, **options)
        for label, shape, axes in CASES
    ]  # fmt: skip


def with_identity(ufunc, lowest):
    """Maximum or minimum where an empty reduction gives the lowest or highest value."""

    def reduce(x, axis):
        if x.dtype.kind == "b":
            return ufunc.reduce(x, axis=axis, initial=lowest > 0)
        if x.dtype.kind in "iu":
            info = np.iinfo(x.dtype)
            return ufunc.reduce(x, axis=axis, initial=info.min if lowest < 0 else info.max)
        parts = complex(lowest, lowest) if x.dtype.kind == "c" else lowest
        return ufunc.reduce(x, axis=axis, initial=parts)

    return reduce


def same_dtype(ufunc):
    """Sum or product that stays in the dtype of the operand, and wraps."""
    return lambda x, axis: ufunc.reduce(x, axis=axis, dtype=x.dtype)


def arg_row(op, ref, shape, axis, index_dtype, label, **options):
    return structural(op, getattr(lax, op),
                      lambda x, axis, index_dtype: ref(x, axis).astype(index_dtype), shape,
                      attrs={"axis": axis, "index_dtype": np.dtype(index_dtype)}, label=label,
                      dtypes=BOOL + INTS + FLOATS, domain=options.pop("domain", "distinct"),
                      out=lambda d: np.dtype(index_dtype), **options)  # fmt: skip


ARG = [
    arg_row(op, ref, shape, axis, dtype, label, domain=domain)
    for op, ref in [("argmax", np.argmax), ("argmin", np.argmin)]
    for label, shape, axis, dtype, domain in [
        ("rows", (3, 3), 0, "int32", "distinct"),
        ("columns", (3, 3), 1, "int32", "distinct"),
        ("int64", (3, 3), 0, "int64", "distinct"),
        ("ties", (4, 5), 1, "int32", "real"),
        ("to_empty", (0, 4), 1, "int32", "real"),
        ("rank4", (2, 1, 3, 2), 2, "uint32", "distinct"),
    ]
]


def generic(label, computation, ref, shape, axes, init, dtypes):
    return Row("reduce", lambda x, i, dimensions: lax.reduce(x, i, computation, dimensions),
               lambda x, i, dimensions: ref(x, dimensions), ((Arg(shape), Arg((), value=init)),),
               {"dimensions": axes}, label, dtypes, ulps=64, diff=(0,))  # fmt: skip


def max_and_index(x, index, dimensions):
    """The maximum of x along the axes, with the value of `index` that stands beside it."""

    def combine(a, b):
        (x, i), (y, j) = a, b
        keep = lax.ge(x, y)
        return lax.select(keep, x, y), lax.select(keep, i, j)

    init = (np.asarray(-np.inf, np.float32), np.asarray(0, np.int32))
    return lax.reduce((x, index), init, combine, dimensions)


# lax.reduce of a monoid it knows becomes reduce_sum and the like; these are none.
GENERIC = [
    generic("hypot", lambda a, b: lax.sqrt(a * a + b * b),
            lambda x, axes: np.sqrt(np.sum(x * x, axes)), (3, 4), (0,), 0, ("float32", "float64")),
    generic("hypot_all", lambda a, b: lax.sqrt(a * a + b * b),
            lambda x, axes: np.sqrt(np.sum(x * x, axes)), (3, 4), (0, 1), 0, ("float32",)),
    generic("largest_size", lambda a, b: lax.max(lax.abs(a), lax.abs(b)),
            lambda x, axes: np.max(np.abs(x), axes), (3, 4), (1,), 0, ("int32", "float32")),
    Row("reduce", max_and_index,
        lambda x, i, dimensions: (
            x.max(dimensions[0]),
            np.take_along_axis(i, x.argmax(dimensions[0], keepdims=True), dimensions[0])[0],
        ),
        ((Arg((4, 3), "distinct"), Arg((4, 3), "real", "int32")),), {"dimensions": (0,)}, "pair",
        ("float32",), lambda d: (d, np.dtype("int32")), ulps=0),
]  # fmt: skip

ROWS = [
    *reducer("reduce_sum", same_dtype(np.add), NUMBERS, diff=(0,), linear_in=((0,),)),
    *reducer("reduce_prod", same_dtype(np.multiply), NUMBERS, diff=(0,), ulps=64),
    *reducer("reduce_max", with_identity(np.maximum, -np.inf), ANY,
             domain="distinct", ulps=0, diff=(0,)),
    *reducer("reduce_min", with_identity(np.minimum, np.inf), ANY,
             domain="distinct", ulps=0, diff=(0,)),
    *reducer("reduce_and", np.bitwise_and.reduce, BOOL + INTS, domain="real", ulps=0),
    *reducer("reduce_or", np.bitwise_or.reduce, BOOL + INTS, domain="real", ulps=0),
    *reducer("reduce_xor", np.bitwise_xor.reduce, BOOL + INTS, domain="real", ulps=0),
    *ARG,
    *GENERIC,
]  # fmt: skip
