"""Rows for control flow. What random programs of it compute is in test_control_flow_random.py."""

import numpy as np
from op_table import Arg, Row, bind, structural

from weft import lax, numpy as wnp

DTYPES = ("float32", "float64", "complex64", "int32")
FLOATS = ("float32", "float64")


def scan(carry, xs, *, scale=2, **attrs):
    def body(c, x):
        c = c * scale + x
        return c, c * x

    return lax.scan(body, carry, xs, **attrs)


def scan_ref(carry, xs, *, scale=2, reverse=False, unroll=1):
    order = range(len(xs))
    ys = np.zeros_like(xs)
    for i in reversed(order) if reverse else order:
        carry = (carry * scale + xs[i]).astype(carry.dtype)
        ys[i] = carry * xs[i]
    return carry, ys


# The carry of integers stays small, so that no reference overflows.
SCAN_ARGS = (Arg((3,), "small"), Arg((4, 3), "small"))


def scan_row(label, **attrs):
    return structural(
        "scan",
        scan,
        scan_ref,
        *SCAN_ARGS,
        dtypes=DTYPES,
        ulps=16,
        attrs=attrs,
        label=label,
        out=lambda d: (d, d),
        diff=(0, 1),
    )


def scan_sums(w, carry, xs):
    """Linear in carry and xs together, and in w."""
    return lax.scan(lambda c, x: (c + x, c * 2), carry * w, xs * w)


def scan_sums_ref(w, carry, xs):
    before = np.concatenate([carry[None] * w, xs * w]).cumsum(0)
    return before[-1], before[:-1] * 2


def choose(index, x, y, *, swapped=False):
    branches = [lambda x, y: x * y, lambda x, y: wnp.sin(x) + y[0], lambda x, y: y]
    return lax.switch(index, branches[::-1] if swapped else branches, x, y)


def choose_ref(index, x, y, *, swapped=False):
    results = [x * y, np.sin(x) + y[0], y]
    return (results[::-1] if swapped else results)[int(np.clip(index, 0, 2))]


def cond_row(label, index, **attrs):
    return structural(
        "cond",
        choose,
        choose_ref,
        Arg((), value=index, dtype="int32"),
        (3,),
        (3,),
        dtypes=(*FLOATS, "complex64"),
        ulps=16,
        attrs=attrs,
        label=label,
        diff=(1, 2),
    )


def repeat(n, x, *, step=1):
    """Squares of x, some times."""
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + step, s[1] * s[1]), (0, x))[1]


def repeat_ref(n, x, *, step=1):
    for _ in range(0, int(n), step):
        x = x * x
    return x


def while_row(label, n, **attrs):
    return structural(
        "while",
        repeat,
        repeat_ref,
        Arg((), value=n, dtype="int32"),
        (3,),
        dtypes=DTYPES,
        domain="unit",
        ulps=64,
        attrs=attrs,
        label=label,
    )


def solve(a, b, *, symmetric=False):
    """The 2 x 2 system of 3 I + a, or with `symmetric` of 3 I + a + a^T, by the inverse."""

    def matvec(x):
        return 3 * x + a @ x + (x @ a if symmetric else 0 * x)

    def invert(matvec, b):
        second = wnp.arange(2).astype(b.dtype)
        (p, r), (q, s) = matvec(1 - second), matvec(second)  # the columns
        return wnp.stack([s * b[0] - q * b[1], p * b[1] - r * b[0]]) / (p * s - q * r)

    transposed = None if symmetric else invert
    return lax.custom_linear_solve(matvec, b, invert, transposed, symmetric)


def solve_ref(a, b, *, symmetric=False):
    return np.linalg.solve(3 * np.eye(2) + a + (a.T if symmetric else 0), b)


def solve_row(label, **attrs):
    return structural(
        "custom_linear_solve",
        solve,
        solve_ref,
        Arg((2, 2), "unit"),
        (2,),
        dtypes=(*FLOATS, "complex64"),
        ulps=64,
        attrs=attrs,
        label=label,
        diff=(0, 1),
        linear_in=((1,),),
    )


def polynomial(x, *, scale):
    return x * x * scale


def composite(x, *, scale):
    return lax.composite(polynomial, name="test.polynomial", version=2)(x, scale=scale)


def for_platform(x):
    return lax.platform_dependent(
        x, cuda=lambda x: x - 1, cpu=lambda x: x * x, default=lambda x: x + 1
    )


ROWS = [
    *[
        structural("composite", composite, polynomial, (2, 3), domain="small", dtypes=DTYPES,
                   attrs={"scale": scale}, label=label, ulps=8, diff=(0,))
        for label, scale in [("twice", 2), ("thrice", 3)]
    ],
    *[
        Row("platform_index", bind("platform_index"), lambda index=index, **_: np.int32(index),
            ((),), {"platforms": platforms}, label, ("int32",))
        for label, platforms, index in [
            ("first", "cpu;cuda", 0), ("second", "cuda,rocm;tpu,cpu", 1), ("none", "cuda;tpu", 2)
        ]
    ],
    structural("cond", for_platform, lambda x: x * x, (3,), dtypes=FLOATS, label="platform",
               ulps=4, diff=(0,)),
    scan_row("plain"),
    scan_row("scale", scale=3),
    scan_row("reverse", reverse=True),
    scan_row("unroll", unroll=3),
    scan_row("unrolled", reverse=True, unroll=4),
    structural(
        "scan", scan, scan_ref, Arg((3,), "small"), (0, 3), dtypes=DTYPES, label="none",
        out=lambda d: (d, d), diff=(0, 1),
    ),
    structural(
        "scan", scan_sums, scan_sums_ref, (), (3,), (4, 3), dtypes=FLOATS, label="linear",
        ulps=16, out=lambda d: (d, d), diff=(0, 1, 2), linear_in=((0,), (1, 2)),
    ),
    cond_row("first", 0, swapped=False),
    cond_row("second", 1),
    cond_row("beyond", 7),
    cond_row("before", -7),
    cond_row("swapped", 0, swapped=True),
    while_row("never", 0),
    while_row("thrice", 3, step=1),
    while_row("by_two", 3, step=2),
    solve_row("general"),
    solve_row("symmetric", symmetric=True),
]  # fmt: skip
