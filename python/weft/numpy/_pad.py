"""`pad`: adds elements at the ends of axes, by constants or from the array itself."""

import math
from typing import Any

import numpy as np

from weft import _core
from weft._arguments import shape_of, static_int
from weft._dims import is_symbolic_dim, to_size
from weft._jit import composite
from weft.dtypes import dtype_of, is_integer
from weft.errors import ArgumentTypeError, AttributeValueError, ShapeError
from weft.lax import _shape as lax_shape
from weft.lax._slice import sliced
from weft.numpy import _ufuncs as u
from weft.numpy._floats import rint
from weft.numpy._matrices import linspace
from weft.numpy._moments import mean
from weft.numpy._reductions import max as array_max, min as array_min


def pad(array, pad_width, mode="constant", **kwargs):
    """The array with elements added at both ends of each axis.

    Args:
      array: the array.
      pad_width: how many: a number, a pair `(before, after)` for all axes, or a sequence of pairs.
      mode: where the elements come from.
        "constant": `constant_values`, given like `pad_width`.
        "empty": unspecified values.
        "edge": the outermost elements.
        "reflect": mirrored at the outermost elements, which are not repeated.
        "symmetric": mirrored at the border, so that the outermost elements are repeated.
        "wrap": the elements at the other end.
        "linear_ramp": a line from the outermost elements to `end_values`, given like `pad_width`.
        "maximum", "minimum", "mean", "median": that of the elements along the axis, of only so many
          at each end as `stat_length` says, given like `pad_width`.
        A function: it is called with each vector along each axis, with zeros at its ends, the
          pair of widths, the axis and the dict of further keywords, and returns the vector.
      kwargs: what the mode takes: `constant_values`, by default 0; `end_values`, by default 0;
        `stat_length`, by default all; for the two mirrors `reflect_type`, "even", or "odd" for
        mirroring also the differences from the outermost elements.

    Raises:
      NotImplementedError: for a mode that there is not.
      ValueError: for keywords that a mode does not take.

    Examples:
      >>> wnp.pad(wnp.array([1, 2, 3]), (1, 2), constant_values=9)
      Array([9, 1, 2, 3, 9, 9], dtype=int32)
      >>> wnp.pad(wnp.array([1, 2, 3]), 2, mode="reflect")
      Array([3, 2, 1, 2, 3, 2, 1], dtype=int32)
    """
    shape = shape_of(array)
    widths = _pairs(pad_width, len(shape), "pad_width")
    numbers = [n for pair in widths for n in pair if not is_symbolic_dim(n)]
    if not all(is_integer(np.asarray(n).dtype) for n in numbers):
        raise TypeError(f"[pad] expected integers as pad_width; got {pad_width}")
    if any(n < 0 for n in numbers):
        raise AttributeValueError(
            f"[pad] expected non-negative integers as pad_width; got {pad_width}"
        )
    widths = tuple((to_size(low), to_size(high)) for low, high in widths)
    if callable(mode):
        return _by_function(array, widths, mode, kwargs)
    if mode not in _MODES:
        raise NotImplementedError(
            f"[pad] expected a mode of {', '.join(map(repr, _MODES))}; got {mode!r}"
        )
    extra = kwargs.keys() - {_KEYWORDS.get(mode)}
    if extra:
        raise AttributeValueError(
            f"[pad] expected {_KEYWORDS.get(mode, 'no keywords')} in mode {mode!r}; got "
            f"{', '.join(sorted(extra))}"
        )
    if mode not in ("constant", "empty"):
        for axis, (size, width) in enumerate(zip(shape, widths, strict=True)):
            if size == 0 and any(width):
                raise ShapeError(
                    f"[pad] expected elements to pad from in mode {mode!r}; got size 0 of axis "
                    f"{axis}"
                )
    values = None
    if mode in ("constant", "linear_ramp"):
        values = kwargs.get(_KEYWORDS[mode], 0)
        if mode != "constant" or not _is_scalar(values):
            values = _pairs(values, len(shape), _KEYWORDS[mode])
    lengths = kwargs.get("stat_length")
    if lengths is not None:
        lengths = _pairs(lengths, len(shape), "stat_length")
        lengths = tuple(tuple(_length(n) for n in pair) for pair in lengths)
    reflect_type = kwargs.get("reflect_type", "even")
    if reflect_type not in ("even", "odd"):
        raise AttributeValueError(
            f"[pad] expected reflect_type 'even' or 'odd'; got {reflect_type!r}"
        )
    how = lengths if lengths is not None else reflect_type == "odd"
    return _pad(array, values, widths=widths, mode=mode, how=how)


def _length(n):
    n = static_int(n, "pad", "stat_length")
    if n < 1:
        raise AttributeValueError(f"[pad] expected a positive stat_length; got {n}")
    return n


def _by_function(array, widths, function, options):
    from weft.numpy._vectorize import apply_along_axis

    array = _pad(array, 0, widths=widths, mode="constant", how=False)
    for axis, width in enumerate(widths):

        def padded(vector, width=width, axis=axis):
            return function(vector, width, axis, options)

        array = apply_along_axis(padded, axis, array)
    return array


def _is_scalar(value):
    if isinstance(value, (_core.Array, _core.Tracer, np.ndarray)):
        return value.ndim == 0
    return not isinstance(value, (list, tuple))


def _pairs(value, ndim, name):
    """`value`, given for all axes and ends, for all axes, or for each, as pairs for each axis."""
    if _is_scalar(value):
        return ((value, value),) * ndim
    rows: list[Any] = [row if _is_scalar(row) else list(row) for row in value]
    lengths = {None if _is_scalar(row) else len(row) for row in rows}
    if len(lengths) > 1:
        raise ArgumentTypeError(f"[pad] expected {name} with rows of one length; got {value}")
    if lengths <= {None}:
        rows = [rows * 2 if len(rows) == 1 else rows]
    elif lengths == {1} and name == "constant_values":  # as in jax, only there
        rows = [row * 2 for row in rows]
    fits = len(rows) in (1, ndim) and all(
        len(row) == 2 and all(map(_is_scalar, row)) for row in rows
    )
    if not fits:
        raise AttributeValueError(
            f"[pad] expected {name} as a value, a pair, or a pair for each of {ndim} axes; "
            f"got {value}"
        )
    rows = rows * ndim if len(rows) == 1 else rows
    return tuple(map(tuple, rows))


@composite(static_argnames=("widths", "mode", "how"))
def _pad(array, values, *, widths, mode, how):
    if widths and mode == "constant" and not isinstance(values, tuple):
        value = _core.astype(values, *_core.typeof(array)[1:])
        return lax_shape.pad(array, value, [(low, high, 0) for low, high in widths])
    _, dtype, weak = _core.typeof(array)
    for axis, (low, high) in enumerate(widths):
        if low or high:
            ends = None if values is None else values[axis]
            array = _MODES[mode](array, axis, low, high, ends, how)
    return _core.apart(_core.astype(array, dtype, weak))


def _pad_constant(array, axis, low, high, ends, odd):
    dtype = dtype_of(array)
    for value, config in zip(ends, ((low, 0, 0), (0, high, 0)), strict=True):
        padding = [(0, 0, 0)] * array.ndim
        padding[axis] = config
        array = lax_shape.pad(array, _core.astype(value, dtype), padding)
    return array


def _pad_empty(array, axis, low, high, ends, odd):
    return _pad_constant(array, axis, low, high, (0, 0), odd)


def _joined(axis, *parts):
    return lax_shape.concatenate([x for x in parts if shape_of(x)[axis] > 0], axis)


def _edges(array, axis):
    size = shape_of(array)[axis]
    return (
        sliced(array, 0, 1, axis=axis),
        sliced(array, size - 1, size, axis=axis),
    )


def _widened(array, axis, width):
    shape = list(shape_of(array))
    shape[axis] = width
    return _core.broadcast_to(array, tuple(shape))


def _pad_edge(array, axis, low, high, ends, odd):
    first, last = _edges(array, axis)
    return _joined(axis, _widened(first, axis, low), array, _widened(last, axis, high))


def _pad_wrap(array, axis, low, high, ends, odd):
    size = shape_of(array)[axis]
    copies = math.ceil(low / size), math.ceil(high / size)
    tiled = lax_shape.concatenate([array] * (copies[0] + 1 + copies[1]), axis)
    start = copies[0] * size - low
    return sliced(tiled, start, start + low + size + high, axis=axis)


def _pad_reflect(array, axis, low, high, ends, odd):
    return _mirrored(array, axis, low, high, odd, skip=1)


def _pad_symmetric(array, axis, low, high, ends, odd):
    return _mirrored(array, axis, low, high, odd, skip=0)


def _mirrored(array, axis, low, high, odd, skip):
    """Mirrors ends of the array, again and again until they are as wide as wanted.

    `skip` is 1 if the outermost elements are not repeated.
    """
    if shape_of(array)[axis] == 1 and skip:
        return _pad_edge(array, axis, low, high, None, odd)
    while low > 0 or high > 0:
        size = shape_of(array)[axis]
        for at_end, wanted in ((False, low), (True, high)):
            width = min(wanted, size - skip)
            if width <= 0:
                continue
            current = shape_of(array)[axis]
            start = current - skip - width if at_end else skip
            part = sliced(array, start, start + width, axis=axis)
            part = lax_shape.rev(part, (axis,))
            if odd:
                edge = _edges(array, axis)[at_end]
                part = u.subtract(u.multiply(edge, 2), part)
            array = _joined(axis, *((array, part) if at_end else (part, array)))
            if at_end:
                high -= width
            else:
                low -= width
    return array


def _pad_ramp(array, axis, low, high, ends, odd):
    dtype = dtype_of(array)
    parts = []
    for edge, end, width in zip(_edges(array, axis), ends, (low, high), strict=True):
        edge = lax_shape.squeeze(edge, (axis,))
        end = _core.astype(end, dtype)
        ramp = linspace(end, edge, width, endpoint=False, dtype=dtype, axis=axis)
        parts.append(_core.astype(ramp, dtype))
    return _joined(axis, parts[0], array, lax_shape.rev(parts[1], (axis,)))


def _pad_statistic(function):
    def pad_statistic(array, axis, low, high, ends, lengths):
        dtype, size = dtype_of(array), shape_of(array)[axis]

        def of(start, stop):
            value = function(sliced(array, start, stop, axis=axis), axis, keepdims=True)
            return _core.astype(rint(value) if is_integer(dtype) else value, dtype)

        first, last = lengths[axis] if lengths else (size, size)
        parts = of(0, min(first, size)), of(max(size - last, 0), size)
        return _joined(axis, _widened(parts[0], axis, low), array, _widened(parts[1], axis, high))

    return pad_statistic


def _median(array, axis, keepdims):
    from weft.numpy._quantiles import median

    return median(array, axis, keepdims=keepdims)


# The keyword that a mode takes.
_KEYWORDS = {
    "constant": "constant_values",
    "linear_ramp": "end_values",
    "maximum": "stat_length",
    "mean": "stat_length",
    "median": "stat_length",
    "minimum": "stat_length",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
}
_MODES = {
    "constant": _pad_constant,
    "empty": _pad_empty,
    "edge": _pad_edge,
    "reflect": _pad_reflect,
    "symmetric": _pad_symmetric,
    "wrap": _pad_wrap,
    "linear_ramp": _pad_ramp,
    "maximum": _pad_statistic(array_max),
    "minimum": _pad_statistic(array_min),
    "mean": _pad_statistic(mean),
    "median": _pad_statistic(_median),
}
