"""Reading and updating parts of arrays by NumPy's indices: what `x[...]` and `x.at[...]` do."""

import numpy as np

from weft import _core
from weft._arguments import is_beyond, shape_of, wrapped as modulo
from weft._jit import composite
from weft._warnings import warn
from weft.dtypes import canonicalize_dtype, default_int, dtype_of, is_bool, is_complex
from weft.errors import AttributeValueError, DTypeError, IndexOutOfBoundsError, ShapeError
from weft.lax._creation import full
from weft.lax._gather import (
    GatherDimensionNumbers,
    GatherScatterMode,
    gather,
    scalar_graph,
    scatter_operation,
)
from weft.lax._sharding import placed_like
from weft.lax._slice import sliced
from weft.numpy._creation import asarray
from weft.numpy._division_powers import power
from weft.numpy._index_plan import (
    Position,
    Positions,
    block_of,
    is_basic,
    plan_of,
    read_index,
)
from weft.numpy._ufuncs import minimum


def getitem(x, index, mode=None, fill_value=None, unique=False, ordered=False, wrap=True):
    """Elements of an array; see `weft.numpy.ndarray.at`.

    Without a mode indices are taken to be in bounds; in effect, those that are not clamp. With
    `wrap`, negative ones count from the end.
    """
    shape = shape_of(x)
    entries, place = read_index(shape, index)
    mode = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    fills = mode is GatherScatterMode.FILL_OR_DROP
    if is_basic(entries) and wrap and not fills:
        return _core.asarray(x)[index]
    plan, operands = plan_of(shape, entries, place, wrap)
    if 0 in plan.result:
        return like(full(plan.result, 0, dtype_of(x)), x)
    for axis in plan.collapsed:
        if shape[axis] == 0:
            several = any(isinstance(entry, Positions) and entry.shape for entry in entries)
            raise (ShapeError if several else IndexOutOfBoundsError)(_no_elements(axis, shape))
    fill_value = known_fill(fill_value) if fills else None
    return _get(
        x,
        operands,
        plan=plan,
        mode=mode.value,
        fill_value=fill_value,
        flags=(bool(unique), bool(ordered)),
    )


def _no_elements(axis, shape):
    return (
        f"[index] expected an axis with elements; got an index into axis {axis} of an array of "
        f"shape {shape}"
    )


def _check_elements(entries, shape):
    """IndexOutOfBoundsError for a known position along an axis without elements."""
    for entry in entries:
        if isinstance(entry, Position) and isinstance(entry.at, int) and not shape[entry.axis]:
            raise IndexOutOfBoundsError(_no_elements(entry.axis, shape))


def known_fill(value):
    """A fill value as a hashable number; NaN, the default where it is possible, as None."""
    if value is None:
        return None
    value = np.asarray(value)
    if value.dtype.kind == "V":
        value = value.astype(np.float32)
    if value.ndim:
        raise AttributeValueError(
            f"[get] expected a number as fill_value; got an array of shape {value.shape}"
        )
    if value.dtype.kind not in "biufc":
        raise DTypeError(f"[get] expected a number as fill_value; got {value.item()!r:.60}")
    value = value.item()
    return None if value != value else value


@composite(static_argnames=("plan", "mode", "fill_value", "flags"))
def _get(x, operands, *, plan, mode, fill_value, flags):
    unique, ordered = flags
    dims = (plan.offset, plan.collapsed, tuple(c.axis for c in plan.components))
    result = gather(
        x,
        _index_vectors(plan, operands),
        GatherDimensionNumbers(*dims),
        plan.sizes,
        unique_indices=unique,
        indices_are_sorted=ordered,
        mode=mode,
        fill_value=fill_value,
    )
    if plan.new_axes:
        kept = tuple(i for i in range(len(plan.result)) if i not in plan.new_axes)
        result = _core.bind(
            "broadcast_in_dim", result, shape=plan.result, broadcast_dimensions=kept
        )
    return like(result, x)


def like(result, x):
    """The result with the weak type of x."""
    return _core.astype(result, dtype_of(result), _core.typeof(x)[2])


def index_dtype(operands):
    wide = any(dtype_of(each).itemsize == 8 for each in operands)
    return np.dtype(np.int64 if wide else np.int32)


def wrapped(at, size, dtype):
    """An index operand of a dtype, negative ones counted from the end."""
    own = dtype_of(at)
    signed = own.kind == "i"
    if not signed and own.itemsize >= dtype.itemsize:
        at = _core.bind("min", at, int(np.iinfo(dtype).max))
    at = _core.astype(at, dtype)
    if not size or not signed:
        return at
    negative = _core.bind("lt", at, 0)
    return _core.bind("select_n", negative, at, _core.bind("add", at, size))


def _index_vectors(plan, operands):
    """The index vectors along the last axis of an array."""
    dtype = index_dtype(operands)
    parts = []
    for c in plan.components:
        known = c.operand is None
        start = dtype.type(c.start) if known else wrapped(operands[c.operand], c.wrap, dtype)
        at = start
        if c.step:
            count = plan.vectors[c.dims[0]]
            at = _core.bind("iota", dtype=dtype, shape=(count,), dimension=0)
            at = _core.bind("mul", at, c.step)
            at = _core.bind("add", at, _core.broadcast_to(start, (count,)))
        shape = (*plan.vectors, 1)
        parts.append(_core.bind("broadcast_in_dim", at, shape=shape, broadcast_dimensions=c.dims))
    if not parts:
        return full((*plan.vectors, 0), 0, dtype)
    if len(parts) == 1:
        return parts[0]
    return _core.bind("concatenate", *parts, dimension=len(plan.vectors))


def spread_out(kind, length, fill, at, values):
    """A vector of `length` times `fill`, updated with values at positions that are at least 0.

    Those that are beyond the end are left out: they have a place of their own, since they are no
    indices of a user's, whose bounds checkify would check.
    """
    wide = full((length + 1,), fill, dtype_of(values))
    return sliced(update(kind, wide, minimum(at, length), values), 0, length)


def update(kind, x, index, values, mode=None, unique=False, ordered=False):
    """The array with elements replaced by, or combined with, values; see `weft.numpy.ndarray.at`.

    `kind` is "set", "add", "sub", "mul", "div", "pow", "min" or "max".
    """
    shape = shape_of(x)
    mode = GatherScatterMode.from_any(mode)
    entries, place = read_index(shape, index)
    x = _core.asarray(x)
    dtype, weak = _core.typeof(x)[1:]
    values = _wrapped_around(kind, values, dtype) if type(values) is int else asarray(values)
    common = _core.result_type(x, values)[0]
    if kind in _WIDENED and common != dtype:
        _warn_of_conversion(kind, values, x, common)
        wide, values = _core.astype(x, common), _core.astype(values, common)
        result = update(kind, wide, index, values, mode, unique, ordered)
        return _core.astype(_real_for(dtype, result), dtype, weak)
    values = _converted(kind, values, x, common)
    if kind in ("div", "pow") and is_bool(dtype):
        x, values = _core.astype(x, default_int()), _core.astype(values, default_int())
    if is_basic(entries):
        _check_elements(entries, shape)
        block, operands = block_of(shape, entries)
        if not (0 in block.result or 0 in shape):
            _check_broadcast(values, block.result)
            return _update_block(x, operands, values, block=block, kind=kind, mode=mode.value)
    else:
        plan, operands = plan_of(shape, entries, place)
        if not (0 in plan.result or 0 in shape):
            _check_broadcast(values, plan.result)
            flags = (bool(unique), bool(ordered))
            return _update_windows(
                x, operands, values, plan=plan, kind=kind, mode=mode.value, flags=flags
            )
    return _unchanged(kind, x)


def _unchanged(kind, x):
    """The array after an update of none of its elements."""
    return _core.promote_dtypes_inexact(x)[0] if kind == "div" else x


# What is computed in the dtype of both, and then converted to that of the array.
_WIDENED = ("add", "sub", "mul", "min", "max")


def _warn_of_conversion(kind, values, x, common):
    dtype = dtype_of(x)
    if common not in (dtype, canonicalize_dtype(dtype, True)):
        warn(
            f"x.at[...].{kind}: values of dtype {dtype_of(values)} are converted to "
            f"{dtype}, the dtype of the array; convert them yourself with astype if that is meant"
        )


# Modulo a power of two, these give the same of numbers that have wrapped around.
_MODULAR = ("set", "add", "sub", "mul")


def _wrapped_around(kind, value, dtype):
    """A Python integer, which its conversion to `dtype` refuses where that does not hold it."""
    wraps = kind in _MODULAR and is_beyond(value, dtype) and not is_beyond(value, default_int())
    return modulo(value, dtype) if wraps else value


def _real_for(dtype, x):
    """The real part of a complex array that is to become real."""
    return _core.bind("real", x) if is_complex(dtype_of(x)) and not is_complex(dtype) else x


def _converted(kind, values, x, common):
    _warn_of_conversion(kind, values, x, common)
    return _core.astype(_real_for(dtype_of(x), values), dtype_of(x))


def _check_broadcast(values, shape):
    own = shape_of(values)
    missing = len(shape) - len(own)
    if missing < 0 or any(n not in (1, m) for n, m in zip(own, shape[missing:], strict=True)):
        raise ShapeError(
            f"[at] expected values that broadcast to {shape}, the shape of the indexed elements; "
            f"got shape {own}"
        )


_OPS = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "min": "min", "max": "max"}


def _combined(kind, old, values):
    if kind == "set":
        return values
    return power(old, values) if kind == "pow" else _core.bind(_OPS[kind], old, values)


@composite(static_argnames=("block", "kind", "mode"))
def _update_block(x, operands, values, *, block, kind, mode):
    weak = _core.typeof(x)[2]
    if kind == "div":
        x, values = _core.promote_dtypes_inexact(x, values)
    starts, inside = _block_starts(block, operands, shape_of(x))
    cover = _core.bind("dynamic_slice", x, *starts, slice_sizes=block.covers)
    counts = tuple(-(-n // k) for n, k in zip(block.covers, block.strides, strict=True))
    values = _reversed(_block_values(values, block, counts), block.reverse)
    if counts == block.covers:
        new = _combined(kind, cover, values)
    else:
        old = _core.bind(
            "slice",
            cover,
            start_indices=(0,) * len(counts),
            limit_indices=block.covers,
            strides=block.strides,
        )
        new = _chosen(
            _spread(_core.broadcast_to(np.True_, counts), block),
            _spread(_combined(kind, old, values), block),
            cover,
        )
    dropped = mode == "fill" or (mode != "clip" and any(s.outside for s in block.starts))
    if inside is not None and dropped:
        new = _chosen(inside, new, cover)
    result = _core.bind("dynamic_update_slice", x, new, *starts)
    return _core.astype(result, dtype_of(result), weak)


def _chosen(condition, new, old):
    """`new` where the condition holds, else `old`. An unsplit `new` is split like `old`."""

    def placed(x):
        split = _core.split_of(x)
        return placed_like(x, old) if split is not None and split.is_replicated else x

    return _core.bind("select_n", placed(condition), old, placed(new))


def _block_values(values, block, counts):
    """Values that broadcast to the result, with the axes of the array."""
    if None in block.axes:
        values = _core.broadcast_to(values, block.result)
        return _core.bind("reshape", values, new_sizes=counts)
    missing = len(block.axes) - len(shape_of(values))
    return _core.bind(
        "broadcast_in_dim", values, shape=counts, broadcast_dimensions=block.axes[missing:]
    )


def _block_starts(block, operands, shape):
    """The start of a block along every axis, and whether all are in bounds (None: surely)."""
    dtype = index_dtype(operands)
    starts, inside = [_core.astype(0, dtype)] * len(shape), None
    for s in block.starts:
        at = wrapped(operands[s.operand], s.wrap, dtype)
        starts[s.axis] = at
        if s.checked:
            low, high = _core.bind("ge", at, 0), _core.bind("lt", at, shape[s.axis])
            within_axis = _core.bind("and", low, high)
            inside = within_axis if inside is None else _core.bind("and", inside, within_axis)
    return starts, inside


def _reversed(x, axes):
    return _core.bind("rev", x, dimensions=axes) if axes else x


def _spread(x, block):
    """Elements in steps, with zeros between them, over all that the block covers."""
    config = tuple((0, 0, step - 1) for step in block.strides)
    return _core.bind("pad", x, dtype_of(x).type(0), padding_config=config)


@composite(static_argnames=("plan", "kind", "mode", "flags"))
def _update_windows(x, operands, values, *, plan, kind, mode, flags):
    weak = _core.typeof(x)[2]
    values = _window_values(plan, values)
    if kind not in ("div", "pow"):
        op = "scatter" if kind == "set" else f"scatter-{kind}"
        result = _scatter(op, x, operands, values, plan, mode, flags)
        return _core.astype(result, dtype_of(x), weak)
    # Several updates of one element all count: their product is what x is divided by.
    ones = _core.broadcast_to(dtype_of(x).type(1), shape_of(x))
    factors = _scatter("scatter-mul", ones, operands, values, plan, mode, flags)
    if kind == "pow":
        result = power(x, factors)
    else:
        result = _core.bind("div", *_core.promote_dtypes_inexact(x, factors))
    return _core.astype(result, dtype_of(result), weak)


def _window_values(plan, values):
    values = _core.broadcast_to(values, plan.result)
    if not plan.new_axes:
        return values
    kept = tuple(n for i, n in enumerate(plan.result) if i not in plan.new_axes)
    return _core.bind("reshape", values, new_sizes=kept)


def _scatter(op, x, operands, values, plan, mode, flags, **attrs):
    unique, ordered = flags
    return scatter_operation(
        op,
        x,
        _index_vectors(plan, operands),
        values,
        (plan.offset, plan.collapsed, tuple(c.axis for c in plan.components)),
        mode=mode,
        unique_indices=unique,
        indices_are_sorted=ordered,
        **attrs,
    )


def apply(x, index, function, mode=None, unique=False, ordered=False):
    """The array with a function applied to elements; as often as an element is indexed."""
    shape = shape_of(x)
    entries, place = read_index(shape, index)
    if unique or is_basic(entries):
        values = function(getitem(x, index))
        return update("set", x, index, values, mode, unique, ordered)
    plan, operands = plan_of(shape, entries, place)
    if 0 in plan.result or 0 in shape:
        return _core.apart(x)
    return _apply(
        x,
        operands,
        plan=plan,
        graph=scalar_graph(function, dtype_of(x)),
        mode=GatherScatterMode.from_any(mode).value,
        flags=(False, bool(ordered)),
    )


@composite(static_argnames=("plan", "graph", "mode", "flags"))
def _apply(x, operands, *, plan, graph, mode, flags):
    values = _window_values(plan, dtype_of(x).type(0))
    result = _scatter("scatter-apply", x, operands, values, plan, mode, flags, jaxpr=graph)
    return like(result, x)
