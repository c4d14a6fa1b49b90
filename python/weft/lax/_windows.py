"""Windows that slide over arrays: their padding and places, and reductions of what they show."""

from typing import Any

from weft import _core
from weft._arguments import listed, shape_of, static_ints
from weft._dims import max_dim, to_size
from weft.dtypes import dtype_of, is_complex
from weft.errors import AttributeValueError, PaddingError, ShapeError
from weft.lax._reduce import Reduction

_PADDINGS = ("VALID", "SAME", "SAME_LOWER")


def padtype_to_pads(in_shape, window_shape, window_strides, padding):
    """The padding that a name stands for.

    Args:
      in_shape, window_shape, window_strides: an integer for each dimension of the window.
      padding: "VALID" for none; "SAME" for as much as makes results of size
        ceil(size / stride), the odd one behind; "SAME_LOWER" for the same, the odd one before.

    Returns:
      A list of pairs (low, high).

    Examples:
      >>> lax.padtype_to_pads((5,), (3,), (1,), "SAME")
      [(1, 1)]
    """
    return pads_of(padding, in_shape, window_shape, window_strides, "padtype_to_pads")


def pads_of(padding, in_shape, window_shape, window_strides, function):
    name = padding.upper() if isinstance(padding, str) else padding
    if not isinstance(name, str) or name not in _PADDINGS:
        raise PaddingError(
            f"[{function}] expected padding 'VALID', 'SAME' or 'SAME_LOWER'; got {padding!r}"
        )
    window = per_dimension(window_shape, len(in_shape), function, "the window's shape")
    strides = per_dimension(window_strides, len(in_shape), function, "window_strides")
    pads, sizes = [], map(to_size, in_shape)
    for size, extent, stride in zip(sizes, window, strides, strict=True):
        if stride < 1:
            raise AttributeValueError(f"[{function}] expected positive strides; got {strides}")
        total = (
            0 if name == "VALID" else max_dim((-(-size // stride) - 1) * stride + extent - size, 0)
        )
        less, more = total // 2, total - total // 2
        pads.append((less, more) if name == "SAME" else (more, less))
    return pads


def explicit_padding(padding, count, function) -> Any:
    """Pairs of integers, one for each of `count` dimensions, as a tuple of tuples."""
    try:
        pairs = [static_ints(pair, function, "padding") for pair in padding]
    except TypeError:
        pairs = []
        if count:
            raise AttributeValueError(
                f"[{function}] expected padding to be a name or a pair (low, high) for each of the "
                f"{count} dimensions of the window; got {padding!r}"
            ) from None
    if len(pairs) != count or any(len(pair) != 2 for pair in pairs):
        raise AttributeValueError(
            f"[{function}] expected padding to be a name or a pair (low, high) for each of the "
            f"{count} dimensions of the window; got {padding!r}"
        )
    return tuple(pairs)


def per_dimension(values, count, function, name):
    """Integers for each dimension of a window; None stands for 1 each."""
    if values is None:
        return (1,) * count
    values = static_ints(listed(values, function, name), function, name)
    if len(values) != count:
        raise AttributeValueError(
            f"[{function}] expected {name} to be {count} integers, one for each dimension of the "
            f"window; got {values}"
        )
    return values


def dilated(sizes, dilations):
    """From the first to the last of elements that stand so many places apart."""
    pairs = zip(sizes, dilations, strict=True)
    return tuple((size - 1) * by + 1 if size else 0 for size, by in pairs)


def window_places(sizes, window, strides, padding, function):
    """In how many places a window stands on padded axes."""
    places = []
    for size, extent, stride, (low, high) in zip(sizes, window, strides, padding, strict=True):
        if stride < 1:
            raise AttributeValueError(f"[{function}] expected positive strides; got {strides}")
        if size + low + high < 0:
            raise ShapeError(
                f"[{function}] expected padding that leaves no negative size; got "
                f"{tuple(padding)} for sizes {tuple(sizes)}"
            )
        places.append(max((size + low + high - extent) // stride + 1, 0))
    return tuple(places)


def reduce_window_shape_tuple(
    operand_shape,
    window_dimensions,
    window_strides,
    padding,
    base_dilation=None,
    window_dilation=None,
):
    """The shape of the result of `reduce_window`.

    Args:
      operand_shape, window_dimensions, window_strides: an integer for each axis.
      padding: a pair (low, high) for each axis.
      base_dilation, window_dilation: an integer for each axis; None for 1.

    Examples:
      >>> lax.reduce_window_shape_tuple((10,), (3,), (2,), [(0, 0)])
      (4,)
    """
    function = "reduce_window_shape_tuple"
    count = len(operand_shape)
    window = per_dimension(window_dimensions, count, function, "window_dimensions")
    strides = per_dimension(window_strides, count, function, "window_strides")
    base = per_dimension(base_dilation, count, function, "base_dilation")
    dilation = per_dimension(window_dilation, count, function, "window_dilation")
    return window_places(
        dilated(operand_shape, base),
        dilated(window, dilation),
        strides,
        explicit_padding(padding, count, function),
        function,
    )


_REDUCTIONS = {
    "add": "reduce_window_sum",
    "max": "reduce_window_max",
    "min": "reduce_window_min",
}


def reduce_window(
    operand,
    init_value,
    computation,
    window_dimensions,
    window_strides=None,
    padding="VALID",
    base_dilation=None,
    window_dilation=None,
):
    """Reduces what lies under a window, in each of its places, with a function of two scalars.

    Args:
      operand: an array, or a tree of arrays of one shape.
      init_value: a scalar for each array, of the same dtype, in a tree of the same structure. It
        also stands where the window reaches beyond the array.
      computation: function of two trees of scalars to one. It is associative, with the initial
        values as identity: in which order elements are combined, and how often the initial values
        enter, is not specified. It may not close over arrays.
      window_dimensions: a positive integer for each axis.
      window_strides: the steps of the window along each axis; None for 1.
      padding: "VALID", "SAME", "SAME_LOWER" (see `padtype_to_pads`, which gets the shape of the
        array without dilation), or a pair (low, high) of places before and behind the array for
        each axis, which may be negative.
      base_dilation, window_dilation: so many places apart stand the elements of the array, and of
        the window, along each axis; None for 1.

    Returns:
      A tree of arrays of the structure of `operand`.

    Examples:
      >>> lax.reduce_window(wnp.array([1, 2, 3, 4]), 0, lax.add, window_dimensions=(2,))
      Array([3, 5, 7], dtype=int32)
    """
    function = "reduce_window"
    given = Reduction(operand, init_value, computation, function)
    shape = shape_of(given.arrays[0])
    count = len(shape)
    window = per_dimension(window_dimensions, count, function, "window_dimensions")
    strides = per_dimension(window_strides, count, function, "window_strides")
    base = per_dimension(base_dilation, count, function, "base_dilation")
    dilation = per_dimension(window_dilation, count, function, "window_dilation")
    if isinstance(padding, str):
        padding = pads_of(padding, shape, dilated(window, dilation), strides, function)
    attrs = {
        "window_dimensions": window,
        "window_strides": strides,
        "padding": explicit_padding(padding, count, function),
        "base_dilation": base,
        "window_dilation": dilation,
    }
    if given.monoid in _REDUCTIONS and not is_complex(dtype_of(given.arrays[0])):
        results = [_core.bind(_REDUCTIONS[given.monoid], given.arrays[0], **attrs)]
    else:
        results = _core.bind(function, *given.arrays, *given.inits, jaxpr=given.graph, **attrs)
    return given.results(results)
