"""Convolutions: windows of weights that slide over arrays."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import _core
from weft._arguments import shape_of, static_int, static_ints
from weft.dtypes import dtype_of, is_complex, is_float, requested_dtype
from weft.errors import AttributeValueError, DTypeError, ShapeError
from weft.lax._creation import broadcasted_iota
from weft.lax._dot import dot_general, plain_precision_name
from weft.lax._elementwise import convert_element_type, eq
from weft.lax._shape import broadcast_in_dim, reshape, rev, transpose
from weft.lax._sharding import split_as
from weft.lax._windows import (
    dilated,
    explicit_padding,
    pads_of,
    per_dimension,
    window_places,
)


class ConvDimensionNumbers(NamedTuple):
    """Which axes of the operands and the result of a convolution mean what.

    Attributes:
      lhs_spec: axes of `lhs`: batch, features, then those under the window.
      rhs_spec: axes of `rhs`: output features, input features, then those of the window.
      out_spec: axes of the result: batch, features, then those of the window's places.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None


def _axis_orders(specs) -> Any:
    """The axes of three specs like "NCHW": two named ones, then the window's in rhs's order."""
    strings = isinstance(specs, (tuple, list)) and all(isinstance(spec, str) for spec in specs)
    if not strings or len(specs) != 3:
        raise AttributeValueError(
            "[conv_dimension_numbers] expected dimension_numbers to be None, ConvDimensionNumbers "
            f"or three strings, as in ('NCHW', 'OIHW', 'NCHW'); got {specs!r}"
        )
    named = ("NC", "OI", "NC")
    window = [c for c in specs[1] if c not in "OI"]
    for spec, names in zip(specs, named, strict=True):
        if sorted(spec) != sorted([*names, *window]) or len(set(spec)) != len(spec):
            raise AttributeValueError(
                "[conv_dimension_numbers] expected each of the dimension_numbers to have the "
                "letters N and C (O and I in the second) and the same others, each once; got "
                f"{tuple(specs)}"
            )
    return tuple(
        tuple(map(spec.index, [*names, *window])) for spec, names in zip(specs, named, strict=True)
    )


def conv_general_permutations(dimension_numbers):
    """The orders of axes that three strings like ('NHWC', 'HWIO', 'NHWC') describe.

    Returns:
      For lhs, rhs and the result: a permutation that brings batch (or output features) and features
      (or input features) first, then the axes of the window in the order in which rhs has them.

    Examples:
      >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
      ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    return _axis_orders(dimension_numbers)


def conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers):
    """The `ConvDimensionNumbers` for what users may give as dimension numbers.

    Args:
      lhs_shape, rhs_shape: shapes of the operands, of equal length.
      dimension_numbers: `ConvDimensionNumbers`; None for batch (or output features), features (or
        input features) and the window's axes in this order; or three strings, for lhs, rhs and the
        result, with a letter for each axis: N for batch, C for features, O and I for output and
        input features, and others for the axes of the window.

    Raises ShapeError for operands of different ranks, AttributeValueError (a ValueError) for
    letters that do not name the axes.

    Examples:
      >>> shapes = (8, 32, 32, 3), (3, 3, 3, 16)
      >>> numbers = lax.conv_dimension_numbers(*shapes, ("NHWC", "HWIO", "NHWC"))
      >>> numbers.lhs_spec, numbers.rhs_spec
      ((0, 3, 1, 2), (3, 2, 0, 1))
    """
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise ShapeError(
            "[conv_dimension_numbers] expected lhs and rhs of one rank; got shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}"
        )
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        order = tuple(range(rank))
        return ConvDimensionNumbers(order, order, order)
    orders = _axis_orders(dimension_numbers)
    if len(orders[0]) != rank:
        raise AttributeValueError(
            f"[conv_dimension_numbers] expected a letter for each of {rank} axes; got "
            f"{tuple(dimension_numbers)}"
        )
    return ConvDimensionNumbers(*orders)


def _axes(numbers, lhs_shape, rhs_shape, function) -> Any:
    """The three lists of axes, checked as far as this module relies on them."""
    rank = len(lhs_shape)
    if rank < 2:
        raise ShapeError(
            f"[{function}] expected operands with axes for batch and features; got shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}"
        )
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, numbers)
    orders = tuple(static_ints(spec, function, "dimension_numbers") for spec in numbers)
    if any(sorted(order) != list(range(rank)) for order in orders):
        raise AttributeValueError(
            f"[{function}] expected dimension_numbers of three orders of the axes 0 to "
            f"{rank - 1}; got {numbers}"
        )
    return orders


def _picked(shape, axes):
    return tuple(shape[axis] for axis in axes)


def conv_general_dilated(
    lhs,
    rhs,
    window_strides,
    padding,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    feature_group_count=1,
    batch_group_count=1,
    precision=None,
    preferred_element_type=None,
    out_sharding=None,
):
    """Convolution over any number of axes: a window of weights slides over an array, and in each
    place the products under it are summed up. The window is not reversed.

    Args:
      lhs: array of rank n + 2.
      rhs: weights, of the same dtype and rank.
      window_strides: n integers, the steps of the window along its dimensions.
      padding: "VALID", "SAME", "SAME_LOWER" (see `padtype_to_pads`), or n pairs (low, high) of
        places before and behind lhs, which may be negative.
      lhs_dilation, rhs_dilation: n integers; so many places apart stand the elements of lhs, and
        of the window. None for 1.
      dimension_numbers: which axes mean what; see `conv_dimension_numbers`. What is given for each
        dimension of the window is in the order in which rhs has them.
      feature_group_count: into how many groups the features of lhs and the output features of rhs
        are divided; each group of outputs sees its group of features.
      batch_group_count: as many groups of the batch of lhs and of output features; the batch of the
        result is that of one group.
      precision: as for `dot_general`.
      preferred_element_type: dtype in which to sum up, and of the result.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array of rank n + 2.

    Raises AttributeValueError (a ValueError) for padding by name together with lhs_dilation.

    Examples:
      >>> x, window = wnp.array([[[1, 2, 3, 4]]]), wnp.array([[[1, -1]]])
      >>> lax.conv_general_dilated(x, window, window_strides=(1,), padding="VALID")
      Array([[[-1, -1, -1]]], dtype=int32)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding,
            "conv_general_dilated",
            lambda: conv_general_dilated(
                lhs,
                rhs,
                window_strides,
                padding,
                lhs_dilation,
                rhs_dilation,
                dimension_numbers,
                feature_group_count,
                batch_group_count,
                precision,
                preferred_element_type,
            ),
        )
    function = "conv_general_dilated"
    lhs_shape, rhs_shape = shape_of(lhs), shape_of(rhs)
    axes = _axes(dimension_numbers, lhs_shape, rhs_shape, function)
    count = len(lhs_shape) - 2
    strides = per_dimension(window_strides, count, function, "window_strides")
    lhs_dilation = per_dimension(lhs_dilation, count, function, "lhs_dilation")
    rhs_dilation = per_dimension(rhs_dilation, count, function, "rhs_dilation")
    if isinstance(padding, str):
        if any(by != 1 for by in lhs_dilation):
            raise AttributeValueError(
                f"[{function}] expected explicit padding with lhs_dilation; got {padding!r} and "
                f"lhs_dilation={lhs_dilation}\n  Use conv_transpose, or pairs (low, high)."
            )
        window = dilated(_picked(rhs_shape, axes[1][2:]), rhs_dilation)
        padding = pads_of(padding, _picked(lhs_shape, axes[0][2:]), window, strides, function)
    else:
        padding = explicit_padding(padding, count, function)
    if preferred_element_type is not None:
        preferred_element_type = requested_dtype(preferred_element_type, function)
        own = max(map(dtype_of, (lhs, rhs)), key=lambda dtype: (_level(dtype), dtype.itemsize))
        level = _level(own), _level(preferred_element_type)
        if level not in _SUMMED_IN or preferred_element_type.itemsize < own.itemsize:
            raise DTypeError(
                f"[{function}] expected a preferred_element_type no narrower than {own}, and an "
                f"integer one only for integers; got {preferred_element_type}"
            )
    return _core.bind(
        function,
        lhs,
        rhs,
        window_strides=strides,
        padding=tuple(padding),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=axes,
        feature_group_count=static_int(feature_group_count, function, "feature_group_count"),
        batch_group_count=static_int(batch_group_count, function, "batch_group_count"),
        precision=plain_precision_name(precision, function),
        preferred_element_type=preferred_element_type,
    )


# Kinds of dtypes, as `_level` says, and those that products of them can be summed up in.
_SUMMED_IN = {(0, 0), (0, 1), (1, 1), (2, 2)}


def _level(dtype):
    return 2 if is_complex(dtype) else int(is_float(dtype))


def conv(lhs, rhs, window_strides, padding, precision=None, preferred_element_type=None):
    """`conv_general_dilated` of arrays whose axes are batch (or output features), features (or
    input features), and those of the window.

    Examples:
      >>> lax.conv(wnp.ones((1, 1, 4)), wnp.ones((1, 1, 2)), window_strides=(1,), padding="VALID")
      Array([[[2., 2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs,
    rhs,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    precision=None,
    preferred_element_type=None,
):
    """As `conv`, with dilations.

    Examples:
      >>> x, window = wnp.array([[[1, 2, 3, 4]]]), wnp.array([[[1, 1]]])
      >>> lax.conv_with_general_padding(x, window, (1,), [(0, 0)], (1,), (2,))
      Array([[[4, 6]]], dtype=int32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


_TRANSPOSE_DEFAULTS = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def _transpose_padding(window, stride, padding, function):
    """Padding of an array, spread out by `stride`, under the transpose of a padded window."""
    name = padding.upper() if isinstance(padding, str) else padding
    if name == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif name == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    else:
        raise AttributeValueError(
            f"[{function}] expected padding 'SAME', 'VALID' or pairs (low, high); got {padding!r}"
        )
    return low, total - low


def conv_transpose(
    lhs,
    rhs,
    strides,
    padding,
    rhs_dilation=None,
    dimension_numbers=None,
    transpose_kernel=False,
    precision=None,
    preferred_element_type=None,
    use_consistent_padding=False,
):
    """Convolution with fractional strides: elements of lhs stand `strides` places apart.

    Args:
      lhs: array of rank n + 2.
      rhs: weights, of the same dtype and rank.
      strides: n integers.
      padding: "SAME" for results of size `size * stride`, "VALID" for all places that the
        convolution of that padding reaches, or n pairs (low, high).
      rhs_dilation: n integers; so many places apart stand the weights. None for 1.
      dimension_numbers: see `conv_dimension_numbers`; None for axes in the order batch, window's,
        features, and window's, input features, output features.
      transpose_kernel: reverse the window and exchange input and output features of rhs: the result
        is then the transpose of `conv_general_dilated` with this rhs.
      precision, preferred_element_type: as for `conv_general_dilated`.
      use_consistent_padding: take explicit padding as that of the convolution that this one is the
        transpose of, instead of padding of the spread lhs.

    Returns:
      Array of rank n + 2.

    Raises AttributeValueError (a ValueError) without dimension_numbers for operands that have none
    by default.

    Examples:
      >>> x, window = wnp.array([[[1], [2]]]), wnp.array([[[1]], [[1]]])
      >>> lax.conv_transpose(x, window, strides=(2,), padding="VALID")[0, :, 0]
      Array([1, 1, 2, 2], dtype=int32)
    """
    function = "conv_transpose"
    lhs_shape, rhs_shape = shape_of(lhs), shape_of(rhs)
    if dimension_numbers is None:
        if len(lhs_shape) not in _TRANSPOSE_DEFAULTS:
            raise AttributeValueError(
                f"[{function}] expected dimension_numbers, or operands with 0 to 3 axes besides "
                f"batch and features; got shapes {lhs_shape} and {rhs_shape}"
            )
        dimension_numbers = _TRANSPOSE_DEFAULTS[len(lhs_shape)]
    axes = _axes(dimension_numbers, lhs_shape, rhs_shape, function)
    count = len(lhs_shape) - 2
    strides = per_dimension(strides, count, function, "strides")
    rhs_dilation = per_dimension(rhs_dilation, count, function, "rhs_dilation")
    window = dilated(_picked(rhs_shape, axes[1][2:]), rhs_dilation)
    if isinstance(padding, str):
        pads = [
            _transpose_padding(k, s, padding, function)
            for k, s in zip(window, strides, strict=True)
        ]
    else:
        pads = explicit_padding(padding, count, function)
        if use_consistent_padding:
            pads = [
                (k - 1 - low, k - 1 - high) for k, (low, high) in zip(window, pads, strict=True)
            ]
    if transpose_kernel:
        rhs = rev(rhs, axes[1][2:])
        axes = (axes[0], (axes[1][1], axes[1][0], *axes[1][2:]), axes[2])
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * count,
        pads,
        lhs_dilation=strides,
        rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(*axes),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _patches_kernel(channels, filter_shape, dtype):
    """Weights (channels * size, 1, *filter_shape) that pick the elements under a window."""
    size = int(np.prod(filter_shape, dtype=int))
    grid = (size, size)
    same = eq(broadcasted_iota("int32", grid, 0), broadcasted_iota("int32", grid, 1))
    picks = broadcast_in_dim(convert_element_type(same, dtype), (channels, *grid), (1, 2))
    return reshape(picks, (channels * size, 1, *filter_shape))


def conv_general_dilated_patches(
    lhs,
    filter_shape,
    window_strides,
    padding,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    precision=None,
    preferred_element_type=None,
):
    """What lies under a window in each of its places, as features.

    Args:
      lhs: array of rank n + 2.
      filter_shape: n integers, the sizes of the window, in the order in which the second of the
        dimension_numbers has its axes.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision,
        preferred_element_type: as for `conv_general_dilated`.

    Returns:
      Array of rank n + 2, whose features are the features of lhs times the elements of the window,
      those of the window running faster.

    Examples:
      >>> x = wnp.array([[[1, 2, 3, 4]]])
      >>> lax.conv_general_dilated_patches(x, (2,), window_strides=(1,), padding="VALID")
      Array([[[1, 2, 3],
              [2, 3, 4]]], dtype=int32)
    """
    function = "conv_general_dilated_patches"
    lhs_shape = shape_of(lhs)
    filter_shape = per_dimension(filter_shape, max(len(lhs_shape) - 2, 0), function, "filter_shape")
    axes = _axes(dimension_numbers, lhs_shape, lhs_shape, function)
    channels = lhs_shape[axes[0][1]]
    kernel = _patches_kernel(channels, filter_shape, dtype_of(lhs))
    order = tuple(range(len(lhs_shape)))
    return conv_general_dilated(
        lhs,
        kernel,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        ConvDimensionNumbers(axes[0], order, axes[2]),
        feature_group_count=channels,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs,
    rhs,
    window_strides,
    padding,
    filter_shape,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    precision=None,
):
    """As `conv_general_dilated`, with weights of its own for each place of the window.

    Args:
      lhs: array of rank n + 2.
      rhs: weights of rank n + 2. The axes of the window are here those of its places; input
        features are those of `conv_general_dilated_patches`.
      filter_shape: n integers, the sizes of the window.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as for
        `conv_general_dilated`.

    Returns:
      Array of rank n + 2.

    Examples:
      >>> x, windows = wnp.ones((1, 1, 3)), wnp.array([[[1.0, 10.0], [1.0, 10.0]]])
      >>> lax.conv_general_dilated_local(x, windows, (1,), "VALID", filter_shape=(2,))
      Array([[[ 2., 20.]]], dtype=float32)
    """
    lhs_shape, rhs_shape = shape_of(lhs), shape_of(rhs)
    axes = _axes(dimension_numbers, lhs_shape, rhs_shape, "conv_general_dilated_local")
    _, rhs_axes, out_axes = axes
    patches = conv_general_dilated_patches(
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        ConvDimensionNumbers(*axes),
        precision,
    )
    contracted = ((out_axes[1],), (rhs_axes[1],))
    product = dot_general(
        patches, rhs, (contracted, (out_axes[2:], rhs_axes[2:])), precision
    )  # places, batch, output features
    n = len(out_axes) - 2
    position = dict(zip(out_axes, (n, n + 1, *range(n)), strict=True))
    return transpose(product, [position[axis] for axis in range(n + 2)])


def conv_shape_tuple(lhs_shape, rhs_shape, strides, pads, batch_group_count=1):
    """The shape of the result of `conv` of operands of these shapes.

    Args:
      strides: an integer for each dimension of the window.
      pads: "VALID", "SAME", "SAME_LOWER", or a pair (low, high) for each of them.
      batch_group_count: as for `conv_general_dilated`.

    Raises AttributeValueError (a ValueError) for a batch_group_count that does not divide the
    batch.

    Examples:
      >>> lax.conv_shape_tuple((8, 3, 32), (16, 3, 5), (1,), [(0, 0)])
      (8, 16, 28)
    """
    function = "conv_shape_tuple"
    count = len(lhs_shape) - 2
    strides = per_dimension(strides, count, function, "strides")
    if isinstance(pads, str):
        pads = pads_of(pads, lhs_shape[2:], rhs_shape[2:], strides, function)
    else:
        pads = explicit_padding(pads, count, function)
    if batch_group_count < 1 or lhs_shape[0] % batch_group_count:
        raise AttributeValueError(
            f"[{function}] expected a batch_group_count that divides {lhs_shape[0]}; got "
            f"{batch_group_count}"
        )
    places = window_places(lhs_shape[2:], rhs_shape[2:], strides, pads, function)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *places)


def _out_shape(shape, order):
    out = [0] * len(shape)
    for size, axis in zip(shape, order, strict=True):
        out[axis] = size
    return tuple(out)


def conv_general_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers):
    """The shape of the result of `conv_general_dilated` of operands of these shapes.

    Examples:
      >>> shapes = (8, 32, 32, 3), (3, 3, 3, 16)
      >>> lax.conv_general_shape_tuple(*shapes, (1, 1), "VALID", ("NHWC", "HWIO", "NHWC"))
      (8, 30, 30, 16)
    """
    lhs, rhs, out = _axes(dimension_numbers, lhs_shape, rhs_shape, "conv_general_shape_tuple")
    shape = conv_shape_tuple(
        _picked(lhs_shape, lhs), _picked(rhs_shape, rhs), window_strides, padding
    )
    return _out_shape(shape, out)


def conv_transpose_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers):
    """The shape of the result of `conv_transpose` of operands of these shapes.

    Examples:
      >>> shapes = (8, 32, 3), (2, 3, 16)
      >>> lax.conv_transpose_shape_tuple(*shapes, (2,), "VALID", ("NWC", "WIO", "NWC"))
      (8, 64, 16)
    """
    function = "conv_transpose_shape_tuple"
    lhs, rhs, out = _axes(dimension_numbers, lhs_shape, rhs_shape, function)
    window = _picked(rhs_shape, rhs[2:])
    strides = per_dimension(window_strides, len(window), function, "window_strides")
    if isinstance(padding, str):
        pads = [
            _transpose_padding(k, s, padding, function)
            for k, s in zip(window, strides, strict=True)
        ]
    else:
        pads = explicit_padding(padding, len(window), function)
    spread = dilated(_picked(lhs_shape, lhs[2:]), strides)
    places = window_places(spread, window, (1,) * len(window), pads, function)
    return _out_shape((lhs_shape[lhs[0]], rhs_shape[rhs[0]], *places), out)
