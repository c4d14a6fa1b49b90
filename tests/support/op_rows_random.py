"""Rows of the running reductions, of threefry2x32, sort and top_k, of barriers and tokens."""

import numpy as np
from op_table import BOOL, FLOATS, INTS, SAMPLE, SAMPLE_NUMBERS, Arg, Row, bind, structural

from weft import lax
from weft.experimental.shard_alike import shard_alike


def running(accumulate):
    def reference(x, axis=0, reverse=False):
        x = np.flip(x, axis) if reverse else x
        y = accumulate(x, axis)
        return np.flip(y, axis) if reverse else y

    return reference


def log_add_exp(x, axis):
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis)
    return np.log(np.cumsum(np.exp(x), axis))


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
        ("cummax", lax.cummax, np.maximum.accumulate, "distinct", (*REAL, "complex64"), 0),
        ("cummin", lax.cummin, np.minimum.accumulate, "distinct", (*REAL, "complex64"), 0),
        ("cumlogsumexp", lax.cumlogsumexp, log_add_exp, "small", (*FLOATS, "complex64"), 32),
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


def sort(*xs, dimension=-1, is_stable=True, num_keys=1):
    """By the last key first: later stable sorts keep the order among equals."""
    order = np.broadcast_to(
        np.arange(xs[0].shape[dimension]).reshape([-1] + [1] * (xs[0].ndim - dimension - 1)),
        xs[0].shape,
    )
    for key in reversed(xs[:num_keys]):
        by = np.take_along_axis(key, order, dimension)
        by = by.astype(np.float32) if by.dtype.kind == "V" else by
        order = np.take_along_axis(order, np.argsort(by, dimension, kind="stable"), dimension)
    return tuple(np.take_along_axis(x, order, dimension) for x in xs)


def top_k(x, k, axis=-1):
    """NaN first; of equals the first."""
    by = -x.astype(np.float64)
    by[np.isnan(by)] = -np.inf
    order = np.argsort(by, axis, kind="stable").take(np.arange(k), axis)
    return np.take_along_axis(x, order, axis), order


def copies(count):
    return lambda d: (d,) * count


two = copies(2)


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
    *[
        structural("sort", lambda *xs, **kw: lax.sort(xs, **kw), sort, *shapes, domain=domain,
                   attrs={"dimension": axis, "num_keys": num_keys, **options}, dtypes=dtypes,
                   label=label, wide=False, diff=tuple(range(len(shapes))),
                   out=copies(len(shapes)))
        for label, shapes, axis, num_keys, domain, dtypes, options in [
            ("vector", ((9,),), 0, 1, "distinct", SAMPLE, {}),
            ("rows", ((4, 3),), 0, 1, "distinct", SAMPLE, {}),
            ("columns", ((4, 3),), 1, 1, "distinct", SAMPLE, {}),
            ("carried", ((4, 3), (4, 3)), 0, 1, "distinct", SAMPLE, {}),
            ("two_keys", ((4, 3), (4, 3)), 0, 2, "distinct", SAMPLE, {}),
            ("unstable", ((4, 3),), 0, 1, "distinct", SAMPLE, {"is_stable": False}),
            ("empty", ((0, 3),), 0, 1, "real", ("float32",), {}), ("one", ((2, 1),), 1, 1, "real",
                                                                   ("float32",), {}),
        ]
    ],
    structural("sort", lambda *xs, **kw: lax.sort(xs, **kw), sort,
               Arg((12,), value=[0, 1, 2, 1, 0, 2, 1, 0, 1, 2, 0, 2]), (12,), (12,),
               attrs={"dimension": 0, "num_keys": 2}, dtypes=("int32", "float32", "complex64"),
               label="equal_keys", wide=False, out=copies(3)),
    structural("sort", lambda *xs, **kw: lax.sort(xs, **kw), sort,
               Arg((6,), value=[2.0, np.nan, -np.inf, np.inf, np.nan, -1.0]),
               Arg((6,), "distinct"), attrs={"dimension": 0}, dtypes=("float32", "bfloat16"),
               label="special", wide=False, out=two),
    *[
        structural("top_k", lax.top_k, top_k, Arg(shape, domain), attrs={"k": k, "axis": axis},
                   dtypes=dtypes, label=label, wide=False, diff=() if domain == "order" else (0,),
                   out=lambda d: (d, np.dtype("int32")))
        for label, shape, k, axis, domain, dtypes in [
            ("vector", (9,), 4, 0, "distinct", BOOL + INTS + FLOATS),
            ("rows", (4, 3), 2, 0, "distinct", REAL),
            ("more_rows", (4, 3), 3, 0, "distinct", ("float32",)),
            ("columns", (2, 3, 5), 5, 2, "distinct", REAL),
            ("middle", (2, 4, 3), 2, 1, "distinct", REAL), ("equal", (40,), 9, 0, "order", REAL),
            ("none", (3, 2), 0, 1, "real", ("float32",)), ("one", (1,), 1, 0, "real", REAL),
            ("empty", (0, 3), 2, 1, "real", ("float32", "int8")),
        ]
    ],
    structural("top_k", lax.top_k, top_k, Arg((6,), value=[2.0, np.nan, -np.inf, np.inf, 1, -1.0]),
               attrs={"k": 5}, dtypes=FLOATS, label="special", wide=False,
               out=lambda d: (d, np.dtype("int32"))),
    structural("after_all", lax.after_all, lambda *_: np.zeros(0, bool), Arg((0,), dtype="bool"),
               Arg((0,), dtype="bool"), dtypes=("bool",), wide=False),
    Row("create_token", lax.create_token, lambda: np.zeros(0, bool), ((),), dtypes=("bool",)),
    structural("optimization_barrier", lambda *xs: lax.optimization_barrier(xs), lambda *xs: xs,
               (2, 3), (), dtypes=SAMPLE, diff=(0, 1), linear_in=((0, 1),), out=two),
    structural("optimization_barrier", bind("optimization_barrier"), lambda *xs, prevent_cse: xs,
               (2, 3), (), dtypes=SAMPLE, diff=(0, 1), linear_in=((0, 1),), out=two,
               label="prevent_cse", attrs={"prevent_cse": True}),
    structural("optimization_barrier", bind("optimization_barrier"), lambda *xs, prevent_cse: xs,
               (2, 3), (), dtypes=SAMPLE, diff=(0, 1), linear_in=((0, 1),), out=two,
               label="plain", attrs={"prevent_cse": False}),
    structural("shard_alike", shard_alike, lambda *xs: xs, (2, 3), (2, 3), dtypes=SAMPLE,
               diff=(0, 1), linear_in=((0, 1),), out=two),
]  # fmt: skip
