"""The functions of weft.ops: scatters into an array with one element for each segment."""

import math

import numpy as np

from weft import _core, numpy as jnp
from weft._arguments import ndim_of, shape_of, static_int
from weft._jit import composite
from weft._surface import example_section
from weft.dtypes import dtype_of, iinfo, is_integer
from weft.errors import (
    AttributeValueError,
    ConcretizationTypeError,
    DTypeError,
    JAXIndexError,
    NonConcreteBooleanIndexError,
    ShapeError,
)
from weft.lax._creation import broadcasted_iota
from weft.lax._gather import GatherScatterMode, ScatterDimensionNumbers, scatter_operation
from weft.lax._shape import concatenate
from weft.lax._sharding import split_as


def _extreme(dtype, lowest):
    """What every element is above (or below): the result for a segment without elements."""
    if dtype == np.bool_:
        return not lowest
    if is_integer(dtype):
        info = iinfo(dtype)
        return int(info.min if lowest else info.max)
    return -math.inf if lowest else math.inf


_KINDS = {
    "sum": ("scatter-add", "The sums of segments", "0", lambda dtype: 0, jnp.sum, "[7, 7]"),
    "prod": ("scatter-mul", "The products of segments", "1", lambda dtype: 1, jnp.prod, "[10, 12]"),
    "max": (
        "scatter-max",
        "The greatest elements of segments",
        "the lowest value of the dtype",
        lambda dtype: _extreme(dtype, True),
        jnp.max,
        "[5, 4]",
    ),
    "min": (
        "scatter-min",
        "The least elements of segments",
        "the highest value of the dtype",
        lambda dtype: _extreme(dtype, False),
        jnp.min,
        "[2, 3]",
    ),
}


@composite(static_argnames=("kind", "count", "bucket_size", "sorted", "unique", "mode"))
def _segments(data, ids, *, kind, count, bucket_size, sorted, unique, mode):
    op, _, _, empty, reduce, _ = _KINDS[kind]
    dtype = dtype_of(data)
    rest = shape_of(data)[1:]
    data = _core.broadcast_to(data, (*shape_of(ids), *rest))
    if not count:
        return _core.broadcast_to(_core.astype(empty(dtype), dtype), (0, *rest))
    ndim = ndim_of(ids)
    index, shape = [ids[..., None]], (count,)
    if bucket_size is not None and ndim:
        # Sums of parts of the data, which are less in each other's way and lose fewer digits.
        size = shape_of(ids)[-1]
        part = broadcasted_iota(np.int32, (*shape_of(ids), 1), ndim - 1) // bucket_size
        index.insert(0, part.astype(dtype_of(ids)))
        shape = (-(-size // bucket_size), count)
    numbers = ScatterDimensionNumbers(
        tuple(range(ndim, ndim + len(rest))),
        tuple(range(len(shape))),
        tuple(range(len(shape))),
    )
    result = scatter_operation(
        op,
        _core.broadcast_to(_core.astype(empty(dtype), dtype), (*shape, *rest)),
        concatenate(index, ndim),
        data,
        numbers,
        indices_are_sorted=sorted,
        unique_indices=unique,
        mode=mode,
    )
    return result if len(shape) == 1 else reduce(result, axis=0).astype(dtype)


def _segment_function(kind):
    function = f"segment_{kind}"

    def segment(
        data,
        segment_ids,
        num_segments=None,
        indices_are_sorted=False,
        unique_indices=False,
        bucket_size=None,
        mode=None,
        out_sharding=None,
    ):
        options = (num_segments, indices_are_sorted, unique_indices, bucket_size, mode)
        if out_sharding is not None:
            return split_as(out_sharding, function, lambda: segment(data, segment_ids, *options))
        data, ids = _core.asarray(data), _core.asarray(segment_ids)
        if dtype_of(ids) == np.bool_:
            traced = isinstance(ids, _core.Tracer)
            error = NonConcreteBooleanIndexError if traced else JAXIndexError
            raise error(f"[{function}] expected segment_ids of integers; got a mask")
        if not is_integer(dtype_of(ids)):
            raise DTypeError(f"[{function}] expected segment_ids of integers; got {dtype_of(ids)}")
        if dtype_of(data) == np.bool_ and kind in ("sum", "prod"):
            raise DTypeError(f"[{function}] expected numbers; got dtype bool")
        _require_fit(function, shape_of(data), shape_of(ids))
        if bucket_size is not None:
            bucket_size = static_int(bucket_size, function, "bucket_size")
            if bucket_size <= 0:
                raise AttributeValueError(
                    f"[{function}] expected a positive bucket_size; got {bucket_size}"
                )
        return _segments(
            data,
            ids,
            kind=kind,
            count=_count(function, ids, num_segments),
            bucket_size=bucket_size,
            sorted=bool(indices_are_sorted),
            unique=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode),
        )

    _, summary, empty, _, _, shown = _KINDS[kind]
    call = f"weft.ops.{function}(wnp.array([5, 2, 3, 4]), wnp.array([0, 0, 1, 1]))"
    segment.__name__ = segment.__qualname__ = function
    segment.__doc__ = f"""{summary}: of the elements with the same number.

    Args:
      data: array `[n, ...]`.
      segment_ids: integers `[n]`: the number of the segment of each element along the first axis.
        Elements with a number that is negative, or not below `num_segments`, are left out.
      num_segments: how many segments there are; None for the greatest number and 1, which needs
        the values of segment_ids: under jit it must be given.
      indices_are_sorted: promise that segment_ids are in ascending order.
      unique_indices: promise that no number occurs twice.
      bucket_size: how many elements are put together at a time, before the results of these groups
        are: sums of many elements are more exact so. None for all.
      mode: for numbers that are out of bounds, as `weft.lax.GatherScatterMode`; None drops them.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array `[num_segments, ...]` of the dtype of data; {empty} for a segment without elements.

    Raises:
      ConcretizationTypeError: without num_segments where segment_ids are traced.

    {example_section(call, f"Array({shown}, dtype=int32)", "    ")}
    """
    return segment


def _require_fit(function, data, ids):
    wanted = ids + data[1:]
    missing = len(wanted) - len(data)
    if missing < 0 or any(n not in (1, m) for n, m in zip(data, wanted[missing:], strict=True)):
        raise ShapeError(
            f"[{function}] expected a segment number for each element along the first axis of the "
            f"data; got shapes {data} and {ids}"
        )


def _count(function, ids, num_segments):
    if num_segments is not None:
        count = static_int(num_segments, function, "num_segments")
        if count < 0:
            raise AttributeValueError(
                f"[{function}] expected num_segments of at least 0; got {count}"
            )
        return count
    if isinstance(ids, _core.Tracer):
        raise ConcretizationTypeError(
            f"[{function}] the number of segments is not known while tracing\n  Give num_segments=."
        )
    if 0 in shape_of(ids):
        raise ShapeError(f"[{function}] expected num_segments where there are no segment_ids")
    return max(int(jnp.max(ids)) + 1, 0)


segment_sum, segment_prod, segment_max, segment_min = map(
    _segment_function, ("sum", "prod", "max", "min")
)
