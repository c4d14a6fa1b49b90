"""Rows of the ops whose windows slide over arrays: convolutions and reductions of windows."""

import itertools

import numpy as np
from op_table import BOOL, FLOATS, INTS, SAMPLE_NUMBERS, Arg, Row, bind, structural

import weft
from weft import _core, lax


def spread(x, axes, dilations, fill=0):
    """x with `dilation - 1` places between its elements."""
    for axis, by in zip(axes, dilations, strict=True):
        shape = list(x.shape)
        shape[axis] = (shape[axis] - 1) * by + 1 if shape[axis] else 0
        out = np.full(shape, fill, x.dtype)
        out[(slice(None),) * axis + (slice(None, None, by),)] = x
        x = out
    return x


def padded(x, axes, padding, fill=0):
    for axis, (low, high) in zip(axes, padding, strict=True):
        widths = [(0, 0)] * x.ndim
        widths[axis] = (max(low, 0), max(high, 0))
        x = np.pad(x, widths, constant_values=fill)
        keep = slice(max(-low, 0), x.shape[axis] - max(-high, 0))
        x = x[(slice(None),) * axis + (keep,)]
    return x


def shifted(x, axes, offsets, places, strides):
    """The elements at `offsets` in each place of a window."""
    index = [slice(None)] * x.ndim
    for axis, offset, n, stride in zip(axes, offsets, places, strides, strict=True):
        index[axis] = slice(offset, offset + (n - 1) * stride + 1 if n else offset, stride)
    return x[tuple(index)]


def conv(lhs, rhs, strides, padding, lhs_dilation, rhs_dilation, specs, groups=1, batch_groups=1):
    lhs, rhs = np.transpose(lhs, specs[0]), np.transpose(rhs, specs[1])
    axes = range(2, lhs.ndim)
    lhs = padded(spread(lhs, axes, lhs_dilation), axes, padding)
    extents = [(k - 1) * by + 1 for k, by in zip(rhs.shape[2:], rhs_dilation, strict=True)]
    places = [
        max((n - k) // s + 1, 0) for n, k, s in zip(lhs.shape[2:], extents, strides, strict=True)
    ]
    parts = []
    for g in range(groups * batch_groups):
        outputs = rhs.shape[0] // (groups * batch_groups)
        own = rhs[g * outputs : (g + 1) * outputs]
        x = np.split(lhs, groups, 1)[g] if groups > 1 else np.split(lhs, batch_groups, 0)[g]
        out = np.zeros((x.shape[0], outputs, *places), np.result_type(lhs, rhs))
        for at in np.ndindex(*rhs.shape[2:]):
            offsets = [i * by for i, by in zip(at, rhs_dilation, strict=True)]
            seen = shifted(x, axes, offsets, places, strides)
            out += np.einsum("nc...,oc->no...", seen, own[(..., *at)]).astype(out.dtype)
        parts.append(out)
    return np.transpose(np.concatenate(parts, 1), np.argsort(specs[2]))


# Derivatives are compiled for these only.
DIFFERENTIATED = ("image", "all", "groups", "depthwise", "batch_groups", "points", "empty")


def conv_row(label, lhs, rhs, specs, dtypes=("float32",), **options):
    n = len(lhs) - 2
    smooth = label in DIFFERENTIATED
    given = {"window_strides": (1,) * n, "padding": ((0, 0),) * n, "lhs_dilation": (1,) * n,
             "rhs_dilation": (1,) * n, "feature_group_count": 1, "batch_group_count": 1,
             "dimension_numbers": lax.ConvDimensionNumbers(*specs), **options}  # fmt: skip

    def ref(x, w, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
            feature_group_count, batch_group_count):  # fmt: skip
        return conv(x, w, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
                    feature_group_count, batch_group_count)  # fmt: skip

    return structural("conv_general_dilated", lax.conv_general_dilated, ref, lhs, rhs,
                      attrs=given, label=label, dtypes=dtypes, ulps=64, domain="small",
                      diff=(0, 1) if smooth else (),
                      linear_in=((0,), (1,)) if smooth else ())  # fmt: skip


def plain(rank):
    return (tuple(range(rank)),) * 3


CHANNELS_LAST = ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
CONV = [
    conv_row("line", (2, 3, 5), (4, 3, 2), plain(3), (*SAMPLE_NUMBERS, "float16")),
    conv_row("line_strided", (2, 3, 5), (4, 3, 2), plain(3), window_strides=(2,)),
    conv_row("line_padded", (2, 3, 5), (4, 3, 2), plain(3), padding=((-1, 3),)),
    conv_row("line_spread", (2, 3, 5), (4, 3, 2), plain(3), lhs_dilation=(2,)),
    conv_row("line_dilated", (2, 3, 5), (4, 3, 2), plain(3), rhs_dilation=(3,)),
    conv_row("image", (2, 5, 4, 3), (3, 2, 3, 2), CHANNELS_LAST, ("float32", "complex64"),
             window_strides=(2, 1), padding=((1, 1), (0, 2))),
    conv_row("all", (2, 4, 3, 5), (3, 2, 2, 4), ((3, 1, 2, 0), (0, 3, 2, 1), (2, 0, 3, 1)),
             window_strides=(2, 3), padding=((2, 1), (-1, 2)), lhs_dilation=(2, 1),
             rhs_dilation=(1, 2), feature_group_count=1),
    conv_row("groups", (2, 4, 4), (6, 2, 2), plain(3), window_strides=(2,), padding=((1, 0),),
             feature_group_count=2),
    conv_row("depthwise", (2, 4, 4, 3), (2, 2, 1, 6), CHANNELS_LAST, feature_group_count=3),
    conv_row("batch_groups", (4, 3, 4), (6, 3, 2), plain(3), window_strides=(2,),
             padding=((1, 0),), batch_group_count=2),
    conv_row("points", (2, 3), (4, 3), plain(2)),
    conv_row("one_place", (3, 2, 6, 3), (4, 3, 2, 2), ((1, 0, 2, 3), (0, 1, 2, 3), (2, 1, 0, 3)),
             ("float32", "int32", "complex64"), padding=((-1, -1), (0, 0)), rhs_dilation=(3, 2)),
    conv_row("solid", (1, 2, 3, 3, 3), (2, 2, 2, 1, 2), plain(5)),
    conv_row("empty", (0, 3, 5), (4, 3, 2), plain(3)),
    conv_row("no_places", (1, 1, 2), (1, 1, 3), plain(3)),
]  # fmt: skip


def windows(x, fill, window, strides, padding, base, dilation):
    """The elements under a window, a list over its offsets of arrays over its places."""
    axes = range(x.ndim)
    x = padded(spread(x, axes, base, fill), axes, padding, fill)
    places = [
        max((n - (k - 1) * by - 1) // s + 1, 0)
        for n, k, by, s in zip(x.shape, window, dilation, strides, strict=True)
    ]
    steps = [[i * by for i in range(k)] for k, by in zip(window, dilation, strict=True)]
    return [shifted(x, axes, at, places, strides) for at in itertools.product(*steps)]


def lowest(dtype):
    return np.iinfo(dtype).min if dtype.kind in "iu" else dtype.kind != "b" and -np.inf


def highest(dtype):
    return np.iinfo(dtype).max if dtype.kind in "iu" else dtype.kind == "b" or np.inf


MONOIDS = {
    "sum": (np.add, lambda dtype: 0),
    "max": (np.maximum, lowest),
    "min": (np.minimum, highest),
}
WINDOW_CASES = {
    "pairs": ((6,), (2,), (2,), ((0, 0),), (1,), (1,)),
    "overlapping": ((6,), (3,), (1,), ((1, 2),), (1,), (1,)),
    "cropped": ((6,), (3,), (2,), ((-1, 2),), (1,), (1,)),
    "spread": ((6,), (2,), (1,), ((0, 1),), (2,), (1,)),
    "dilated": ((6,), (2,), (1,), ((1, 0),), (1,), (2,)),
    "image": ((1, 4, 5, 2), (1, 2, 3, 1), (1, 2, 2, 1), ((0, 0), (0, 1), (1, 1), (0, 0)),
              (1,) * 4, (1,) * 4),
    "wide": ((31,), (17,), (2,), ((0, 0),), (1,), (1,)),
    "scalar": ((), (), (), (), (), ()),
    "empty": ((0, 3), (1, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
    "no_places": ((2,), (3,), (1,), ((0, 0),), (1,), (1,)),
}  # fmt: skip
NAMES = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")


def window_attrs(case):
    shape, *rest = WINDOW_CASES[case]
    return shape, dict(zip(NAMES, rest, strict=True))


def named(kind, case, dtypes, **options):
    ufunc, identity = MONOIDS[kind]
    shape, attrs = window_attrs(case)

    def ref(x, **attrs):
        seen = windows(x, identity(x.dtype), *attrs.values())
        return np.asarray(ufunc.reduce(np.stack(seen), 0, dtype=x.dtype))

    return structural(f"reduce_window_{kind}", bind(f"reduce_window_{kind}"), ref, shape,
                      attrs=attrs, label=case, dtypes=dtypes, diff=(0,), **options)  # fmt: skip


def by_function(case, computation, init, ref, label, dtypes=("float32",), **options):
    shape, attrs = window_attrs(case)
    return Row("reduce_window",
               lambda x, i, **attrs: lax.reduce_window(x, i, computation, **attrs),
               lambda x, i, **attrs: ref(np.stack(windows(x, i[()], *attrs.values()))),
               ((Arg(shape, "small"), Arg((), value=init)),), attrs, label, dtypes, ulps=64,
               **options)  # fmt: skip


def picked(compare):
    """Values of t where x has the extreme of each window, the first of several."""

    def ref(t, x, **attrs):
        attrs.pop("select_prim")
        attrs = {"base_dilation": (1,) * x.ndim, "window_dilation": (1,) * x.ndim} | attrs
        args = [attrs[name] for name in NAMES]
        worst = -np.inf if compare == "ge" else np.inf
        seen = np.stack(windows(x, worst, *args))
        at = (seen.argmax(0) if compare == "ge" else seen.argmin(0))[None]
        return np.take_along_axis(np.stack(windows(t, 0, *args)), at, 0)[0]

    return ref


def spilled(compare):
    """The transpose of `picked` over windows without dilations."""

    def ref(source, x, **attrs):
        out = np.zeros_like(x)
        for at in np.ndindex(*source.shape):
            unit = np.zeros_like(source)
            unit[at] = 1
            for where in np.ndindex(*x.shape):
                t = np.zeros_like(x)
                t[where] = 1
                out[where] += source[at] * picked(compare)(t, x, **attrs)[at]
        return out

    return ref


def gather_add(case, select):
    shape, attrs = window_attrs(case)
    diff = (0,) if case != "dilated" else ()
    return structural("select_and_gather_add", bind("select_and_gather_add"), picked(select),
                      Arg(shape), Arg(shape, "distinct"),
                      attrs={**attrs, "select_prim": select}, label=f"{case}_{select}",
                      dtypes=("float32", "float64"), diff=diff,
                      linear_in=((0,),) if diff else ())  # fmt: skip


def scatter_add(case, select):
    shape, attrs = window_attrs(case)
    del attrs["base_dilation"], attrs["window_dilation"]
    places = windows(np.zeros(shape), 0, *window_attrs(case)[1].values())[0].shape
    return structural("select_and_scatter_add", bind("select_and_scatter_add"), spilled(select),
                      Arg(places), Arg(shape, "distinct"),
                      attrs={**attrs, "select_prim": select}, label=f"{case}_{select}",
                      dtypes=("float32",), ulps=8, diff=(0,), linear_in=((0,),))  # fmt: skip


def select_and_scatter(x, source, **attrs):
    scalar = np.float32(0)
    ge = graph(lax.ge, scalar)
    return _core.bind("select_and_scatter", x, source, scalar, select_jaxpr=ge,
                      scatter_jaxpr=graph(lax.add, scalar), **attrs)  # fmt: skip


def graph(fn, scalar):
    return weft.jit(fn).trace(scalar, scalar).graph


def scatter_by_graphs(case):
    shape, attrs = window_attrs(case)
    del attrs["base_dilation"], attrs["window_dilation"]
    places = windows(np.zeros(shape), 0, *window_attrs(case)[1].values())[0].shape

    def ref(x, source, **attrs):
        return spilled("ge")(source, x, select_prim="ge", **attrs)

    return structural("select_and_scatter", select_and_scatter, ref,
                      Arg(shape, "distinct"), Arg(places), attrs=attrs, label=case,
                      dtypes=("float32",), ulps=8)  # fmt: skip


def joint(a, b):
    """(1 + a) (1 + b) - 1"""
    return a + b + a * b


def joint_of(seen):
    return np.prod(1 + seen, 0) - 1


ROWS = [
    *CONV,
    *[named("sum", case, SAMPLE_NUMBERS if case == "pairs" else ("float32",), ulps=8,
            linear_in=((0,),), domain="small") for case in WINDOW_CASES],
    *[named("max", case, BOOL + INTS + FLOATS if case == "pairs" else ("float32",),
            domain="distinct")
      for case in ("pairs", "cropped", "dilated", "image", "scalar", "no_places")],
    *[named("min", case, BOOL + INTS + FLOATS if case == "pairs" else ("float32",),
            domain="distinct")
      for case in ("pairs", "overlapping")],
    *[by_function(case, joint, 0, joint_of, case, diff=(0,))
      for case in ("overlapping", "spread", "dilated", "scalar")],
    by_function("overlapping", lax.mul, 1, lambda seen: np.prod(seen, 0), "prod",
                ("float32", "int32", "complex64"), diff=(0,)),
    *[gather_add(case, select) for case, select in
      [("pairs", "ge"), ("pairs", "le"), ("overlapping", "ge"), ("cropped", "le"),
       ("dilated", "ge"), ("image", "ge")]],
    *[scatter_add(case, select) for case, select in
      [("pairs", "ge"), ("pairs", "le"), ("overlapping", "ge"), ("cropped", "le"),
       ("image", "ge"), ("wide", "ge"), ("scalar", "ge"), ("no_places", "ge")]],
    scatter_by_graphs("pairs"),
    scatter_by_graphs("cropped"),
    scatter_by_graphs("image"),
]  # fmt: skip
