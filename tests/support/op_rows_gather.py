"""Rows of gather and the scatter family.

The reference walks over index vectors one by one, as the dimension numbers say.
"""

import itertools

import numpy as np
from op_table import SAMPLE, SAMPLE_NUMBERS, Arg, structural

from weft import lax


def windows(x_shape, indices, kept, index_map, batching, indices_batching, sizes, mode):
    """For each index vector its position, and the slices of x that it addresses or None."""
    for at in np.ndindex(indices.shape[:-1]):
        start = [0] * len(x_shape)
        for axis, k in zip(index_map, indices[at], strict=True):
            start[axis] = int(k)
        for axis, i in zip(batching, indices_batching, strict=True):
            start[axis] = at[i]
        room = [n - k for n, k in zip(x_shape, sizes, strict=True)]
        if mode == "clip":
            start = [min(max(s, 0), r) for s, r in zip(start, room, strict=True)]
        inside = all(0 <= s <= r for s, r in zip(start, room, strict=True))
        block = tuple(
            slice(s, s + k) if axis in kept else s
            for axis, (s, k) in enumerate(zip(start, sizes, strict=True))
        )
        yield at, block if inside else None


def kept_axes(rank, dropped, batching):
    return [i for i in range(rank) if i not in dropped and i not in batching]


def block_index(at, window_axes, rank):
    rest = iter(at)
    return tuple(slice(None) if i in window_axes else next(rest) for i in range(rank))


def default_fill(dtype):
    if dtype.kind == "b":
        return True
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.min if dtype.kind == "i" else info.max
    return np.nan


def gather(x, indices, dimension_numbers, slice_sizes, mode=None, fill_value=None, **_):
    offset, dropped, index_map, batching, indices_batching = dimension_numbers
    kept = kept_axes(x.ndim, dropped, batching)
    rank = len(offset) + indices.ndim - 1
    shape = [0] * rank
    for axis, n in zip(offset, [slice_sizes[i] for i in kept], strict=True):
        shape[axis] = n
    for axis, n in zip((i for i in range(rank) if i not in offset), indices.shape, strict=False):
        shape[axis] = n
    out = np.full(shape, default_fill(x.dtype) if fill_value is None else fill_value, x.dtype)
    for at, block in windows(
        x.shape, indices, kept, index_map, batching, indices_batching, slice_sizes, mode
    ):
        if block is not None:
            out[block_index(at, offset, rank)] = x[block]
    return out


def scatter_with(combine):
    def scatter(x, indices, updates, dimension_numbers, mode=None, **_):
        window, dropped, index_map, batching, indices_batching = dimension_numbers
        kept = kept_axes(x.ndim, dropped, batching)
        sizes = [1] * x.ndim
        for axis, i in zip(kept, window, strict=True):
            sizes[axis] = updates.shape[i]
        out = np.array(x)
        for at, block in windows(
            x.shape, indices, kept, index_map, batching, indices_batching, sizes, mode
        ):
            if block is not None:
                update = updates[block_index(at, window, updates.ndim)]
                with np.errstate(all="ignore"):
                    out[block] = combine(out[block], update)
        return out

    return scatter


def index_arg(values, dtype="int32"):
    values = np.asarray(values)
    return Arg(values.shape, dtype=dtype, value=values)


def numbers(*axes):
    return (*axes, *((),) * (5 - len(axes)))


# label, shape of x, indices, dimension numbers, slice sizes
GATHERS = [
    ("elements", (5,), [[3], [0], [3]], numbers((), (0,), (0,)), (1,)),
    ("rows", (4, 3), [[2], [0]], numbers((1,), (0,), (0,)), (1, 3)),
    ("columns", (4, 3), [[2], [0]], numbers((0,), (1,), (1,)), (4, 1)),
    ("points", (4, 3), [[2, 0], [1, 2], [3, 1]], numbers((), (0, 1), (0, 1)), (1, 1)),
    ("swapped_points", (4, 3), [[2, 0], [1, 2]], numbers((), (0, 1), (1, 0)), (1, 1)),
    ("windows", (5, 4), [[[1, 0], [2, 1]]], numbers((1, 3), (), (0, 1)), (2, 3)),
    ("one_window", (5, 4), [1, 2], numbers((0, 1), (), (0, 1)), (2, 2)),
    ("outside", (4, 3), [[-1], [2], [4], [9]], numbers((1,), (0,), (0,)), (1, 3)),
    ("partly_outside", (5,), [[-1], [3], [4]], numbers((1,), (), (0,)), (2,)),
    ("batched", (2, 4, 3), [[[1], [3]], [[0], [2]]], ((2,), (1,), (1,), (0,), (0,)), (1, 1, 3)),
    ("batched_inside", (3, 2), [[[1], [1], [0]], [[0], [1], [0]]],
     ((), (1,), (1,), (0,), (1,)), (1, 1)),
    ("no_indices", (4, 3), np.zeros((0, 1)), numbers((1,), (0,), (0,)), (1, 3)),
    ("empty_windows", (4, 3), [[1]], numbers((1, 2), (), (0,)), (2, 0)),
    ("scalar", (), np.zeros((2, 0)), numbers((), (), ()), ()),
]  # fmt: skip
DTYPED = [("int8", "int8"), ("uint8", "uint8"), ("int64", "int64"), ("uint32", "uint32")]


def gather_row(label, shape, indices, dims, sizes, mode, dtype="int32", **options):
    attrs = {"dimension_numbers": dims, "slice_sizes": sizes, "mode": mode}
    attrs.update(options)
    linear_in = ((0,),) if mode == "clip" or "outside" not in label else ()
    args = (Arg(shape), index_arg(indices, dtype))
    return structural("gather", lax.gather, gather, *args, attrs=attrs, label=label, diff=(0,),
                      wide=False, linear_in=linear_in)  # fmt: skip


GATHER = [
    *[gather_row(f"{label}_{mode}", shape, indices, dims, sizes, mode)
      for label, shape, indices, dims, sizes in GATHERS for mode in ("clip", "fill")],
    *[gather_row(f"outside_{mode}_{name}", (300, 2), [[0], [100], [90]],
                 numbers((1,), (0,), (0,)), (1, 2), mode, dtype)
      for name, dtype in DTYPED for mode in ("clip", "fill")],
    gather_row("rows_promise", (4, 3), [[2], [0]], numbers((1,), (0,), (0,)), (1, 3),
               "promise_in_bounds", unique_indices=True),
    gather_row("sorted", (4, 3), [[0], [2]], numbers((1,), (0,), (0,)), (1, 3), "clip",
               indices_are_sorted=True),
    gather_row("outside_value", (4, 3), [[2], [7]], numbers((1,), (0,), (0,)), (1, 3), "fill",
               fill_value=1),
]  # fmt: skip

# label, shape of x, indices, shape of the updates, dimension numbers
SCATTERS = [
    ("elements", (5,), [[3], [0], [3], [3]], (4,), numbers((), (0,), (0,))),
    ("rows", (4, 3), [[2], [0]], (2, 3), numbers((1,), (0,), (0,))),
    ("part_of_rows", (4, 3), [[2], [0]], (2, 2), numbers((1,), (0,), (0,))),
    ("points", (4, 3), [[2, 0], [1, 2], [2, 0]], (3,), numbers((), (0, 1), (0, 1))),
    ("windows", (5, 4), [[1, 0], [2, 1]], (2, 2, 3), numbers((1, 2), (), (0, 1))),
    ("one_window", (5, 4), [1, 2], (2, 2), numbers((0, 1), (), (0, 1))),
    ("outside", (4, 3), [[-1], [2], [4], [9]], (4, 3), numbers((1,), (0,), (0,))),
    ("partly_outside", (5,), [[-1], [3], [4]], (3, 2), numbers((1,), (), (0,))),
    ("batched", (2, 4, 3), [[[1], [3]], [[0], [0]]], (2, 2, 3), ((2,), (1,), (1,), (0,), (0,))),
    ("no_indices", (4, 3), np.zeros((0, 1)), (0, 3), numbers((1,), (0,), (0,))),
    ("scalar", (), np.zeros((1, 0)), (1,), numbers((), (), ())),
]  # fmt: skip
ORDERED = ("int8", "uint32", "bfloat16", "float64", "complex64")
# op, function, what it does with old and new; the arguments it is linear in, its dtypes
FAMILY = [
    ("scatter", lax.scatter, lambda _, new: new, ((0, 2),), SAMPLE),
    ("scatter-add", lax.scatter_add, lambda old, new: old + new, ((0, 2),), SAMPLE_NUMBERS),
    ("scatter-sub", lax.scatter_sub, lambda old, new: old - new, ((0, 2),), SAMPLE_NUMBERS),
    ("scatter-mul", lax.scatter_mul, lambda old, new: old * new, ((0,),), SAMPLE_NUMBERS),
    ("scatter-min", lax.scatter_min, np.minimum, (), ORDERED),
    ("scatter-max", lax.scatter_max, np.maximum, (), ORDERED),
]


def scatter_row(member, label, shape, indices, updates, dims, mode, dtype="int32", **options):
    op, fn, combine, linear_in, dtypes = member
    attrs = {"dimension_numbers": dims, "mode": mode, **options}
    args = (Arg(shape, "distinct"), index_arg(indices, dtype), Arg(updates))
    return structural(op, fn, scatter_with(combine), *args, attrs=attrs, label=label, diff=(0, 2),
                      linear_in=linear_in, dtypes=dtypes, wide=False, ulps=4)  # fmt: skip


SCATTER = [
    *[scatter_row(member, f"{label}_{mode}", *case, mode)
      for member in FAMILY for (label, *case), mode in itertools.product(SCATTERS, ("clip", "fill"))
      if member[0] in ("scatter", "scatter-add") or mode == "fill"],
    *[scatter_row(member, "unique", (4, 3), [[2], [0]], (2, 3), numbers((1,), (0,), (0,)), "fill",
                  unique_indices=True, indices_are_sorted=False) for member in FAMILY],
    *[scatter_row(FAMILY[1], f"outside_{mode}_{name}", (300, 2), [[0], [100], [90]], (3, 2),
                  numbers((1,), (0,), (0,)), mode, dtype)
      for name, dtype in DTYPED for mode in ("clip", "fill")],
]  # fmt: skip


def apply_row(label, x, indices, update_shape, dims, mode):
    scatter = scatter_with(lambda old, _: old * 2 + 1)
    attrs = {"dimension_numbers": dims, "mode": mode}
    return structural("scatter-apply",
                      lambda *xs, **kw: lax.scatter_apply(*xs, lambda old: old * 2 + 1,
                                                          update_shape=update_shape, **kw),
                      lambda x, i, **kw: scatter(x, i, np.zeros(update_shape, x.dtype), **kw),
                      Arg(x), index_arg(indices), attrs=attrs, label=f"{label}_{mode}",
                      dtypes=("int32", "float32", "complex64"), wide=False, ulps=4)  # fmt: skip


APPLY = [apply_row(*case, mode) for case in SCATTERS for mode in ("clip", "fill")]

ROWS = [*GATHER, *SCATTER, *APPLY]
