"""Counts of values: of whole numbers, and in bins along one or several axes."""

import math
import operator
from typing import Any

from weft import _core
from weft._arguments import ndim_of, shape_of, static_int
from weft._jit import composite
from weft.dtypes import default_int, dtype_of, is_bool, is_integer
from weft.errors import AttributeValueError, DTypeError, ShapeError
from weft.lax._creation import full
from weft.lax._shape import expand_dims, stack
from weft.lax._sharding import split_as
from weft.numpy import _indexing as indexing, _reductions as r, _ufuncs as u
from weft.numpy._calculus import diff
from weft.numpy._counted import cut, known
from weft.numpy._creation import asarray
from weft.numpy._matrices import linspace
from weft.numpy._products import flattened
from weft.numpy._select import choose
from weft.numpy._sorting import insertion_points


def bincount(x, weights=None, minlength=0, *, length=None, out_sharding=None):
    """How often each of the numbers 0, 1, 2, ... occurs.

    Args:
      x: one-dimensional array of integers or bools; negative ones count as 0.
      weights: what to add up for each element instead of 1, of the shape of `x`.
      minlength: least size of the result.
      length: its size, which tracing needs; greater numbers are left out. Without it, it is one
        more than the greatest number.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array of the dtype of the weights, or of the default integer dtype.

    Raises:
      ConcretizationTypeError: for a traced array without `length`.

    Examples:
      >>> wnp.bincount(wnp.array([0, 2, 2, 3]))
      Array([1, 0, 2, 1], dtype=int32)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding, "bincount", lambda: bincount(x, weights, minlength, length=length)
        )
    dtype = dtype_of(x)
    if not is_integer(dtype) and not is_bool(dtype):
        raise DTypeError(f"[bincount] expected integers; got dtype {dtype}")
    if ndim_of(x) != 1:
        raise ShapeError(f"[bincount] expected a one-dimensional array; got shape {shape_of(x)}")
    if weights is not None:
        _check_weights("bincount", weights, shape_of(x))
        if is_bool(dtype_of(weights)):
            raise DTypeError("[bincount] expected numbers as weights; got dtype bool")
    minlength = static_int(minlength, "bincount", "minlength")
    if length is not None:
        return _bincount(x, weights, length=max(static_int(length, "bincount", "length"), 0))
    way_out = "Pass length=n, the size of the result."
    values = known(x, "bincount", way_out)
    length = max(int(values.max()) + 1 if values.size else 0, minlength, 0)
    # One program for many lengths.
    room = 1 << (length - 1).bit_length() if length else 0
    return cut(_bincount(x, weights, length=room), length)


@composite(static_argnames=("length",))
def _bincount(x, weights, *, length):
    at = u.maximum(_core.astype(x, "int32") if is_bool(dtype_of(x)) else x, 0)
    return _counts(at, weights, length, default_int())


def _check_weights(function, weights, shape):
    if shape_of(weights) != shape:
        raise ShapeError(
            f"[{function}] expected a weight for each element, of shape {shape}; got shape "
            f"{shape_of(weights)}"
        )


def _counts(at, weights, length, dtype):
    """How often each position occurs; those that are no less than the length are left out."""
    if weights is None:
        weights = _core.broadcast_to(dtype.type(1), shape_of(at))
    return indexing.spread_out("add", length, 0, at, weights)


# ---- bins


def _bin_option(function, bins):
    """The number of bins, or an array of their borders."""
    if isinstance(bins, str):
        kind = NotImplementedError if function == "histogram_bin_edges" else TypeError  # as in jax
        raise kind(f"[{function}] expected a number of bins or borders; got {bins!r}")
    if ndim_of(bins) == 0:
        count = static_int(bins, function, "bins")
        if count < 0:
            raise AttributeValueError(f"[{function}] expected a number of bins; got {count}")
        return count, None
    if ndim_of(bins) > 1:
        raise ShapeError(
            f"[{function}] expected a number of bins or one-dimensional borders; got shape "
            f"{shape_of(bins)}"
        )
    return None, bins


def _range_option(function, limits):
    """The limits as a pair; None as it is."""
    if limits is None:
        return None
    pair = tuple(limits)
    if len(pair) != 2 or any(shape_of(x) for x in pair):
        raise AttributeValueError(f"[{function}] expected a range of two numbers; got {limits!r}")
    return pair


def _need_elements(function, shape, limits):
    if 0 in shape and limits is None:
        raise AttributeValueError(f"[{function}] expected elements, or a range; got shape {shape}")


def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The borders of the bins of a histogram.

    Args:
      a: the values, of any shape.
      bins: the number of bins, or their borders in increasing order.
      range: the first and the last border, for a number of bins; by default the least and the
        greatest value.
      weights: has no effect.

    Returns:
      One-dimensional array of a float dtype, with one element more than there are bins.

    Examples:
      >>> wnp.histogram_bin_edges(wnp.array([0.0, 1.0, 4.0]), bins=4)
      Array([0., 1., 2., 3., 4.], dtype=float32)
    """
    count, borders = _bin_option("histogram_bin_edges", bins)
    limits = _range_option("histogram_bin_edges", range)
    if borders is None:
        _need_elements("histogram_bin_edges", shape_of(a), limits)
    return _bin_edges(a, borders, limits, count=count)


@composite(static_argnames=("count",))
def _bin_edges(a, borders, limits, *, count):
    (a,) = _core.promote_dtypes_inexact(a)
    return _edges(a, borders, limits, count)


def _edges(a, borders, limits, count):
    """The borders for values of an inexact dtype, in that dtype."""
    dtype = dtype_of(a)
    if borders is not None:
        return _core.astype(borders, dtype)
    low, high = (r.min(a), r.max(a)) if limits is None else limits
    low, high = (_core.astype(x, dtype) for x in (low, high))
    same = u.equal(low, high)
    low, high = choose(same, u.subtract(low, 0.5), low), choose(same, u.add(high, 0.5), high)
    return linspace(low, high, count + 1, dtype=dtype)


def _bin_of(values, edges):
    """The number of the bin of each value, not below zero and below their count if it is in one."""
    place = insertion_points(edges, values, True)
    count = shape_of(edges)[0] - 1
    # The last bin has both its borders.
    return choose(u.equal(values, edges[count]), count - 1, u.subtract(place, 1))


def histogram(a, bins=10, range=None, weights=None, density=None):
    """How many values fall into each of several bins.

    Args:
      a: the values, of any shape.
      bins, range: see `histogram_bin_edges`. A bin has its left border, the last one both.
      weights: what to add up for each value instead of 1, of the shape of `a`.
      density: whether to divide by the sum and by the widths of the bins.

    Returns:
      The counts, of a float dtype, and the borders.

    Examples:
      >>> counts, edges = wnp.histogram(wnp.array([0.5, 1.5, 1.7, 4.0]), bins=4, range=(0, 4))
      >>> counts
      Array([1., 2., 0., 1.], dtype=float32)
      >>> edges
      Array([0., 1., 2., 3., 4.], dtype=float32)
    """
    count, borders = _bin_option("histogram", bins)
    limits = _range_option("histogram", range)
    if borders is None:
        _need_elements("histogram", shape_of(a), limits)
    if weights is not None:
        _check_weights("histogram", weights, shape_of(a))
    return _histogram(a, weights, borders, limits, count=count, density=bool(density))


@composite(static_argnames=("count", "density"))
def _histogram(a, weights, borders, limits, *, count, density):
    if weights is None:
        (a,) = _core.promote_dtypes_inexact(a)
    else:
        a, weights = _core.promote_dtypes_inexact(a, weights)
        weights = flattened(weights)
    edges = _edges(a, borders, limits, count)
    if not shape_of(edges)[0] > 1:
        return full((0,), 0, dtype_of(a)), edges
    counts = _binned([flattened(a)], [edges], weights)
    counts = _core.astype(counts, dtype_of(a))
    return (_density(counts, [edges]) if density else counts), edges


def _binned(samples, edges, weights):
    """The sums of weights in the cells of a grid."""
    sizes = [shape_of(each)[0] - 1 for each in edges]
    cell, inside = 0, True
    for values, each, n in zip(samples, edges, sizes, strict=True):
        at = _bin_of(values, each)
        within = u.logical_and(u.greater_equal(at, 0), u.less(at, n))
        cell, inside = u.add(u.multiply(cell, n), at), u.logical_and(inside, within)
    total = math.prod(sizes)
    counts = _counts(choose(inside, cell, total), weights, total, default_int())
    return _core.bind("reshape", counts, new_sizes=tuple(sizes))


def _density(counts, edges):
    counts = u.divide(counts, r.sum(counts))
    for axis, each in enumerate(edges):
        widths = expand_dims(diff(each), [i for i in range(len(edges)) if i != axis])
        counts = u.divide(counts, widths)
    return counts


def histogramdd(sample, bins=10, range=None, weights=None, density=None):
    """How many points fall into each cell of a grid.

    Args:
      sample: matrix with a row for each point and a column for each of its D coordinates.
      bins: number of bins along every axis, or a sequence of D numbers or borders.
      range: None, or a sequence of D pairs of limits or None; see `histogram_bin_edges`.
      weights: what to add up for each point instead of 1.
      density: whether to divide by the sum and by the volumes of the cells.

    Returns:
      The counts, with D axes, and a list of the D arrays of borders. Counts are integers without
      weights and density.

    Raises AttributeValueError (a ValueError) for a sample that is no matrix.

    Examples:
      >>> points = wnp.array([[0.5, 0.5], [0.5, 1.5], [1.5, 1.5]])
      >>> counts, edges = wnp.histogramdd(points, bins=2, range=[(0, 2), (0, 2)])
      >>> counts
      Array([[1, 1],
             [0, 1]], dtype=int32)
    """
    if ndim_of(sample) != 2:
        raise AttributeValueError(
            f"[histogramdd] expected a matrix of points; got shape {shape_of(sample)}"
        )
    points, dims = shape_of(sample)
    return _histogramdd("histogramdd", sample, points, dims, bins, range, weights, density)


def _histogramdd(function, sample, points, dims, bins, limits, weights, density):
    try:
        bins = (operator.index(bins),) * dims
    except TypeError:
        bins = tuple(bins)
    if len(bins) != dims:
        raise AttributeValueError(
            f"[{function}] expected bins for each of {dims} axes; got {len(bins)}"
        )
    ranges = (None,) * dims if limits is None else tuple(limits)
    if len(ranges) != dims:
        raise AttributeValueError(
            f"[{function}] expected a range for each of {dims} axes; got {len(ranges)}"
        )
    ranges = tuple(_range_option(function, each) for each in ranges)
    options = [_bin_option(function, each) for each in bins]
    for (_, borders), each in zip(options, ranges, strict=True):
        if borders is None:
            _need_elements(function, (points,), each)
    if weights is not None:
        _check_weights(function, weights, (points,))
    counts, edges = _grid_histogram(
        sample,
        weights,
        tuple(borders for _, borders in options),
        ranges,
        counts=tuple(count for count, _ in options),
        density=bool(density),
    )
    return counts, list(edges)


@composite(static_argnames=("counts", "density"))
def _grid_histogram(sample, weights, borders, ranges, *, counts, density):
    if weights is None:
        (sample,) = _core.promote_dtypes_inexact(sample)
    else:
        sample, weights = _core.promote_dtypes_inexact(sample, weights)
    samples = [sample[:, i] for i in range(len(borders))]
    edges = [
        _edges(values, *options)
        for values, *options in zip(samples, borders, ranges, counts, strict=True)
    ]
    result = _binned(samples, edges, weights)
    if density:
        result = _core.astype(_density(result, edges), dtype_of(sample))
    return result, edges


def histogram2d(x, y, bins: Any = 10, range=None, weights=None, density=None):
    """How many points of a plane fall into each cell of a grid.

    Args:
      x, y: the coordinates of the points, two vectors.
      bins: number of bins, or their borders, for both axes; or a pair with one for each.
      range: None, or a pair of limits for each axis.
      weights: what to add up for each point instead of 1.
      density: whether to divide by the sum and by the areas of the cells.

    Returns:
      The counts, the borders along the first axis, and those along the second.

    Raises ShapeError unless `x` and `y` are vectors of one size.

    Examples:
      >>> x, y = wnp.array([0.5, 0.5, 1.5]), wnp.array([0.5, 1.5, 1.5])
      >>> counts, x_edges, y_edges = wnp.histogram2d(x, y, bins=2, range=[(0, 2), (0, 2)])
      >>> counts
      Array([[1, 1],
             [0, 1]], dtype=int32)
    """
    if ndim_of(x) != 1 or shape_of(x) != shape_of(y):
        raise ShapeError(
            f"[histogram2d] expected two vectors of one size; got shapes {shape_of(x)} and "
            f"{shape_of(y)}"
        )
    try:
        several = len(bins)
    except TypeError:
        several = 0
    if several > 2:  # borders for both
        bins = (asarray(bins),) * 2
    sample = stack(_core.promote_dtypes_inexact(x, y), 1)
    counts, edges = _histogramdd(
        "histogram2d", sample, shape_of(x)[0], 2, bins, range, weights, density
    )
    return counts, *edges
