"""Rows of the running reductions, of threefry2x32 and of optimization_barrier."""

import numpy as np
from op_table import FLOATS, SAMPLE, SAMPLE_NUMBERS, Arg, bind, structural

from weft import lax


def running(accumulate):
    def reference(x, axis=0, reverse=False):
        x = np.flip(x, axis) if reverse else x
        y = accumulate(x, axis)
        return np.flip(y, axis) if reverse else y

    return reference


REAL = ("int8", "uint32", "bfloat16", "float32", "float64")
RUNNING = [
    structural(op, fn, running(ref), Arg(shape, domain), attrs={"axis": axis, "reverse": reverse},
               label=f"{label}{'_reverse' if reverse else ''}", dtypes=dtypes, ulps=ulps,
               diff=(0,), linear_in=((0,),) if op == "cumsum" else ())
    for op, fn, ref, domain, dtypes, ulps in [
        ("cumsum", lax.cumsum, lambda x, axis: np.cumsum(x, axis, x.dtype), "real",
         SAMPLE_NUMBERS, 64),
        ("cumprod", lax.cumprod, lambda x, axis: np.cumprod(x, axis, x.dtype), "nonzero",
         ("int32", "uint32", "float32", "float64", "complex64"), 64),
        ("cummax", lax.cummax, np.maximum.accumulate, "distinct", REAL, 0),
        ("cummin", lax.cummin, np.minimum.accumulate, "distinct", REAL, 0),
        ("cumlogsumexp", lax.cumlogsumexp, np.logaddexp.accumulate, "small", FLOATS, 32),
    ]
    for label, shape, axis in [
        ("vector", (7,), 0), ("first", (4, 3), 0), ("last", (4, 3), 1), ("middle", (2, 5, 2), 1),
        ("one", (3, 1), 1), ("empty", (0, 2), 0), ("long", (70,), 0),
    ]
    for reverse in (False, True)
    # So many factors would leave the range of small dtypes.
    if (op, label) != ("cumprod", "long")
]  # fmt: skip


def threefry2x32(key0, key1, x0, x1):
    """The published algorithm on 64-bit integers."""
    mask = np.uint64(0xFFFFFFFF)
    key0, key1, x0, x1 = (np.asarray(v).astype(np.uint64) for v in (key0, key1, x0, x1))
    keys = [key0, key1, key0 ^ key1 ^ np.uint64(0x1BD11BDA)]
    x0, x1 = (x0 + keys[0]) & mask, (x1 + keys[1]) & mask
    for i in range(20):
        n = np.uint64((13, 15, 26, 6, 17, 29, 16, 24)[i % 8])
        x0 = (x0 + x1) & mask
        x1 = ((x1 << n) | (x1 >> (np.uint64(32) - n))) & mask ^ x0
        if i % 4 == 3:
            group = i // 4 + 1
            x0 = (x0 + keys[group % 3]) & mask
            x1 = (x1 + keys[(group + 1) % 3] + np.uint64(group)) & mask
    shape = np.broadcast_shapes(*(v.shape for v in (key0, key1, x0, x1)))
    return tuple(np.broadcast_to(v, shape).astype(np.uint32) for v in (x0, x1))


def two(d):
    return (d, d)


ROWS = [
    *RUNNING,
    *[
        structural("threefry2x32", bind("threefry2x32"), threefry2x32, *shapes, domain="bits",
                   dtypes=("uint32",), label=label, wide=False, out=two)
        for label, shapes in [
            ("vector", ((5,),) * 4), ("scalar", ((),) * 4), ("one_key", ((), (), (2, 3), (2, 3))),
            ("keys", ((3,), (3,), (), ())), ("empty", ((), (), (0,), (0,))),
        ]
    ],
    structural("optimization_barrier", lambda *xs: lax.optimization_barrier(xs), lambda *xs: xs,
               (2, 3), (), dtypes=SAMPLE, diff=(0, 1), linear_in=((0, 1),), out=two),
]  # fmt: skip
