"""Rows of the ops that move elements around: shape, layout, slicing; and of dot_general."""

import numpy as np
from op_table import COMPLEX, FLOATS, SAMPLE_NUMBERS, Arg, Row, bfloat16, structural

from weft import lax


def linear(op, fn, ref, *shapes, **options):
    """A row of an op that is linear in its first operand."""
    return structural(op, fn, ref, *shapes, diff=(0,), linear_in=((0,),), **options)


def broadcast_in_dim(x, shape, broadcast_dimensions):
    inner = [1] * len(shape)
    for size, d in zip(x.shape, broadcast_dimensions, strict=True):
        inner[d] = size
    return np.broadcast_to(x.reshape(inner), shape)


def pad(x, value, padding_config):
    for axis, (low, high, interior) in enumerate(padding_config):
        n = x.shape[axis]
        size = n + max(n - 1, 0) * interior
        shape = list(x.shape)
        shape[axis] = size
        spread = np.full(shape, value, x.dtype)
        at = [slice(None)] * x.ndim
        at[axis] = slice(None, None, interior + 1)
        spread[tuple(at)] = x
        before, after = list(shape), list(shape)
        before[axis], after[axis] = max(low, 0), max(high, 0)
        x = np.concatenate(
            [np.full(before, value, x.dtype), spread, np.full(after, value, x.dtype)], axis
        )
        at[axis] = slice(max(-low, 0), x.shape[axis] - max(-high, 0))
        x = x[tuple(at)]
    return x


def slice_ref(x, start_indices, limit_indices, strides=None):
    strides = strides or (1,) * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, strides))]


def clamped(starts, shape, sizes):
    return [min(max(int(s), 0), n - k) for s, n, k in zip(starts, shape, sizes, strict=True)]


def dynamic_slice(x, *starts, slice_sizes):
    starts = clamped(starts, x.shape, slice_sizes)
    return x[tuple(slice(s, s + k) for s, k in zip(starts, slice_sizes, strict=True))]


def dynamic_update_slice(x, update, *starts):
    out = np.array(x)
    starts = clamped(starts, x.shape, update.shape)
    out[tuple(slice(s, s + k) for s, k in zip(starts, update.shape, strict=True))] = update
    return out


def dot_general(x, y, dimension_numbers, preferred_element_type=None, precision=None):
    (xc, yc), (xb, yb) = dimension_numbers
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    xs, ys = [next(letters) for _ in x.shape], [next(letters) for _ in y.shape]
    for i, j in (*zip(xc, yc, strict=True), *zip(xb, yb, strict=True)):
        ys[j] = xs[i]
    out = [xs[i] for i in xb]
    out += [c for i, c in enumerate(xs) if i not in xc and i not in xb]
    out += [c for j, c in enumerate(ys) if j not in yc and j not in yb]
    result = np.einsum(f"{''.join(xs)},{''.join(ys)}->{''.join(out)}", x, y)
    return result if preferred_element_type is None else result.astype(preferred_element_type)


def iota_row(dtype, shape, dimension, label):
    def ref(dtype, shape, dimension):
        inner = [1] * len(shape)
        inner[dimension] = shape[dimension]
        return np.broadcast_to(np.arange(shape[dimension]).reshape(inner), shape).astype(dtype)

    attrs = {"dtype": np.dtype(dtype), "shape": shape, "dimension": dimension}
    return Row("iota", lax.broadcasted_iota, ref, ((),), attrs, label, ("float32",),
               lambda d: np.dtype(dtype), ulps=0, batch=False)  # fmt: skip


def index(value):
    return Arg((), dtype="int32", value=value)


def at(fn):
    """Dynamic slicing with its start indices as separate arguments, and clamped as they are."""
    options = {"allow_negative_indices": False}
    if fn is lax.dynamic_slice:
        return lambda x, *starts, **attrs: fn(x, starts, **attrs, **options)
    return lambda x, update, *starts: fn(x, update, starts, **options)


RESHAPE = [
    *[
        linear("reshape", lax.reshape, lambda x, new_sizes: x.reshape(new_sizes), shape,
               attrs={"new_sizes": new}, label=label)
        for label, shape, new in [
            ("flatten", (2, 3), (6,)), ("split", (6,), (3, 2)), ("scalar", (1, 1), ()),
            ("from_scalar", (), (1,)), ("empty", (0, 3), (3, 0, 2)),
            ("rank4", (2, 6), (2, 1, 3, 2)),
        ]
    ],
    linear("reshape", lax.reshape,
           lambda x, new_sizes, dimensions: x.transpose(dimensions).reshape(new_sizes), (2, 3),
           attrs={"new_sizes": (6,), "dimensions": (1, 0)}, label="dimensions"),
    *[
        linear("broadcast_in_dim", lax.broadcast_in_dim, broadcast_in_dim, shape,
               attrs={"shape": new, "broadcast_dimensions": dims}, label=label)
        for label, shape, new, dims in [
            ("scalar", (), (2, 3), ()), ("leading", (3,), (2, 3), (1,)),
            ("trailing", (3,), (3, 3), (0,)), ("both", (3,), (3, 3), (1,)),
            ("ones", (1, 3), (4, 3), (0, 1)), ("rank4", (2, 1), (2, 5, 3, 1), (0, 3)),
            ("empty", (0,), (2, 0), (1,)), ("same", (2, 3), (2, 3), (0, 1)),
        ]
    ],
    *[
        linear("transpose", lax.transpose, lambda x, permutation: x.transpose(permutation), shape,
               attrs={"permutation": p}, label="".join(map(str, p)) or "scalar")
        for shape, p in [
            ((2, 3), (1, 0)), ((2, 3), (0, 1)), ((2, 3, 4, 1), (2, 0, 3, 1)),
            ((2, 3, 4, 1), (3, 2, 1, 0)), ((), ()), ((0, 3, 2), (1, 2, 0)),
        ]
    ],
    *[
        linear("squeeze", lax.squeeze, lambda x, dimensions: np.squeeze(x, dimensions), shape,
               attrs={"dimensions": d}, label=label)
        for label, shape, d in [
            ("first", (1, 3, 1), (0,)), ("last", (1, 3, 1), (2,)), ("both", (1, 3, 1), (0, 2)),
            ("none", (2, 3), ()), ("to_scalar", (1,), (0,)), ("empty", (0, 1), (1,)),
        ]
    ],
    *[
        linear("broadcast_in_dim", lax.expand_dims,
               lambda x, dimensions: np.expand_dims(x, dimensions), shape,
               attrs={"dimensions": d}, label=f"expand_{label}")
        for label, shape, d in [
            ("first", (3, 2), (0,)), ("two", (3,), (0, 2)), ("scalar", (), (0,)),
        ]
    ],
    *[
        linear("rev", lax.rev, lambda x, dimensions: np.flip(x, dimensions), shape,
               attrs={"dimensions": d}, label=label)
        for label, shape, d in [
            ("rows", (3, 4), (0,)), ("columns", (3, 4), (1,)), ("both", (3, 4), (0, 1)),
            ("empty", (0, 2), (0,)), ("none", (3,), ()),
        ]
    ],
    iota_row("int32", (5,), 0, "vector"),
    iota_row("int32", (3, 3), 0, "rows"),
    iota_row("int32", (3, 3), 1, "columns"),
    iota_row("uint8", (3, 3), 0, "uint8"),
    iota_row("float32", (0, 2), 1, "empty"),
    iota_row(bfloat16, (2, 1, 3, 2), 2, "rank4"),
    iota_row("complex64", (4,), 0, "complex"),
]  # fmt: skip

CONCATENATION = [
    *[
        structural("concatenate", lambda *xs, dimension: lax.concatenate(xs, dimension),
                   lambda *xs, dimension: np.concatenate(xs, dimension), *shapes,
                   attrs={"dimension": d}, label=label, diff=tuple(range(len(shapes))),
                   linear_in=(tuple(range(len(shapes))),))
        for label, shapes, d in [
            ("rows", ((2, 3), (2, 3)), 0), ("columns", ((2, 3), (2, 3)), 1),
            ("uneven", ((1, 2), (1, 0), (1, 5)), 1), ("one", ((3,),), 0),
            ("rank4", ((2, 1, 3, 2), (2, 4, 3, 2), (2, 1, 3, 2)), 1),
        ]
    ],
    *[
        structural("pad", lax.pad, pad, shape, Arg(()), attrs={"padding_config": config},
                   label=label, diff=(0, 1), linear_in=((0, 1),))
        for label, shape, config in [
            ("edges", (2, 3), ((1, 2, 0), (0, 1, 0))), ("interior", (3,), ((0, 0, 2),)),
            ("negative", (5,), ((-1, -2, 0),)), ("mixed", (4, 2), ((-1, 2, 1), (1, -1, 3))),
            ("empty", (0, 2), ((2, 1, 0), (0, 0, 1))), ("none", (3,), ((0, 0, 0),)),
            ("scalar", (), ()), ("rank4", (1, 2, 1, 2), ((0, 1, 0),) * 4),
        ]
    ],
    *[
        structural("split", lax.split,
                   lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis), shape,
                   attrs={"sizes": sizes, "axis": axis}, label=label, diff=(0,),
                   linear_in=((0,),), out=lambda d, sizes=sizes: (d,) * len(sizes))
        for label, shape, sizes, axis in [
            ("even", (4, 4), (2, 2), 0), ("columns", (4, 4), (2, 2), 1),
            ("uneven", (4, 4), (1, 3), 0), ("one", (3,), (3,), 0), ("empty_part", (3,), (0, 3), 0),
        ]
    ],
]  # fmt: skip

SLICING = [
    *[
        linear("slice", lax.slice, slice_ref, shape, label=label,
               attrs={"start_indices": start, "limit_indices": limit, "strides": strides})
        for label, shape, start, limit, strides in [
            ("plain", (5, 4), (1, 0), (4, 3), None), ("start", (5, 4), (0, 0), (4, 3), None),
            ("limit", (5, 4), (1, 0), (5, 3), None), ("strides", (5, 4), (1, 0), (4, 3), (2, 1)),
            ("empty", (5,), (3,), (3,), None), ("of_empty", (0, 2), (0, 1), (0, 2), None),
            ("scalar", (), (), (), None), ("rank4", (2, 3, 4, 5), (0, 1, 2, 0), (2, 3, 3, 5),
                                           (1, 2, 1, 3)), ("all", (3,), (0,), (3,), None),
        ]
    ],
    *[
        linear("dynamic_slice", at(lax.dynamic_slice), dynamic_slice, shape, *map(index, starts),
               attrs={"slice_sizes": sizes}, label=label)
        for label, shape, starts, sizes in [
            ("inside", (5, 4), (1, 2), (2, 2)), ("wider", (5, 4), (1, 2), (3, 2)),
            ("clamped", (5, 4), (9, -3), (2, 2)), ("all", (3,), (1,), (3,)),
            ("empty", (3,), (2,), (0,)), ("scalar", (), (), ()),
            ("rank4", (2, 3, 4, 2), (1, 1, 2, 0), (1, 2, 2, 2)),
        ]
    ],
    *[
        structural("dynamic_update_slice", at(lax.dynamic_update_slice), dynamic_update_slice,
                   shape, update, *map(index, starts), label=label, diff=(0, 1),
                   linear_in=((0, 1),))
        for label, shape, update, starts in [
            ("inside", (5, 4), (2, 2), (1, 2)), ("clamped", (5, 4), (2, 2), (9, -3)),
            ("all", (3,), (3,), (1,)), ("empty", (3,), (0,), (2,)), ("scalar", (), (), ()),
            ("rank4", (2, 3, 4, 2), (1, 2, 2, 2), (1, 1, 2, 0)),
        ]
    ],
]  # fmt: skip

MATMUL = (((1,), (0,)), ((), ()))
DOT = [
    structural("dot_general", lax.dot_general, dot_general, x, y, dtypes=dtypes, ulps=32,
               attrs={"dimension_numbers": dims, **attrs}, label=label, diff=(0, 1), domain="small",
               linear_in=((0,), (1,)), out=out)
    for label, x, y, dims, dtypes, attrs, out in [
        ("matmul", (3, 3), (3, 3), MATMUL, SAMPLE_NUMBERS, {}, lambda d: d),
        ("left", (3, 3), (3, 3), (((0,), (0,)), ((), ())), SAMPLE_NUMBERS, {}, lambda d: d),
        ("inner", (5,), (5,), (((0,), (0,)), ((), ())), FLOATS, {}, lambda d: d),
        ("outer", (2,), (3,), (((), ()), ((), ())), SAMPLE_NUMBERS, {}, lambda d: d),
        ("batch", (2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0,))), SAMPLE_NUMBERS, {},
         lambda d: d),
        ("narrow", (2, 3, 1, 4), (5, 1, 2, 3), (((0, 2), (2, 1)), ((1,), (3,))),
         ("float32", "float64", "bfloat16"), {}, lambda d: d),
        ("mixed", (3, 2, 4, 5), (5, 2, 4, 3), (((3, 0), (0, 3)), ((1,), (1,))),
         ("float32", *COMPLEX), {}, lambda d: d),
        ("across", (4, 32, 64), (32, 4, 64), (((0, 1), (1, 0)), ((), ())), ("float32", "float64"),
         {}, lambda d: d),
        ("across_batch", (4, 32, 32), (4, 16, 32), (((1,), (2,)), ((0,), (0,))),
         ("float32", "float64"), {}, lambda d: d),
        ("empty", (2, 0), (0, 3), MATMUL, ("float32", "int32"), {}, lambda d: d),
        ("scalar", (), (), (((), ()), ((), ())), ("float32",), {}, lambda d: d),
        ("accumulate", (3, 3), (3, 3), MATMUL, (bfloat16.name, "float16"),
         {"preferred_element_type": np.dtype(np.float32)}, lambda d: np.dtype(np.float32)),
        ("accumulate_int", (3, 3), (3, 3), MATMUL, ("int8",),
         {"preferred_element_type": np.dtype(np.int32)}, lambda d: np.dtype(np.int32)),
    ]
]  # fmt: skip

ROWS = [*RESHAPE, *CONCATENATION, *SLICING, *DOT]
