"""Products of arrays one axis of which is made of groups of different sizes, or with scales."""

from typing import NamedTuple

from weft._arguments import shape_of, static_ints
from weft.dtypes import dtype_of, is_integer, requested_dtype
from weft.errors import AttributeValueError, DTypeError, NotImplementedRuleError, ShapeError
from weft.lax._creation import broadcasted_iota, full_like
from weft.lax._cumulative import cumsum
from weft.lax._dot import dot_general
from weft.lax._elementwise import bitwise_and, convert_element_type, ge, lt, mul, select, sub
from weft.lax._shape import broadcast_in_dim, reshape, transpose
from weft.lax._sharding import split_as


class RaggedDotDimensionNumbers(NamedTuple):
    """Which axes of the operands of `ragged_dot_general` mean what.

    Attributes:
      dot_dimension_numbers: those of `dot_general`.
      lhs_ragged_dimensions: the axis of lhs that is made of groups, a list of one.
      rhs_group_dimensions: the axis of rhs that counts the groups, a list of one; empty where the
        groups divide a contracted or a batch axis.
    """

    dot_dimension_numbers: tuple
    lhs_ragged_dimensions: tuple
    rhs_group_dimensions: tuple


def ragged_dot(
    lhs,
    rhs,
    group_sizes,
    precision=None,
    preferred_element_type=None,
    group_offset=None,
    out_sharding=None,
):
    """Products of groups of rows with a matrix for each group.

    Args:
      lhs: array of shape (m, k), whose rows are those of group 0, then of group 1, and so on.
      rhs: array of shape (g, k, n).
      group_sizes: integers of shape (g,). Rows after all groups give zeros.
      precision, preferred_element_type: as for `dot_general`.
      group_offset: None.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array of shape (m, n).

    Raises ShapeError for operands of other shapes.

    Examples:
      >>> rows, matrices = wnp.ones((3, 1)), wnp.array([[[2.0]], [[5.0]]])
      >>> lax.ragged_dot(rows, matrices, wnp.array([1, 2]))
      Array([[2.],
             [5.],
             [5.]], dtype=float32)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding,
            "ragged_dot",
            lambda: ragged_dot(
                lhs, rhs, group_sizes, precision, preferred_element_type, group_offset
            ),
        )
    if len(shape_of(lhs)) != 2 or len(shape_of(rhs)) != 3:
        raise ShapeError(
            "[ragged_dot] expected lhs of shape (m, k) and rhs of shape (g, k, n); got shapes "
            f"{shape_of(lhs)} and {shape_of(rhs)}"
        )
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return _ragged(
        "ragged_dot",
        lhs,
        rhs,
        group_sizes,
        numbers,
        precision,
        preferred_element_type,
        group_offset,
    )


def ragged_dot_general(
    lhs,
    rhs,
    group_sizes,
    ragged_dot_dimension_numbers,
    precision=None,
    preferred_element_type=None,
    group_offset=None,
    out_sharding=None,
):
    """As `dot_general`, with an axis of lhs that is made of groups.

    Where that axis is a free one of lhs, rhs has an axis of groups, and each group is multiplied
    with its part of rhs; what comes after all groups gives zeros. Where it is contracted, the
    products of each group are summed up apart, and the result has a leading axis of groups. Where
    it is a batch axis, the groups change nothing.

    Args:
      lhs, rhs: arrays.
      group_sizes: integers of shape (g,); or with leading axes, those of the batch axes of lhs,
        then of the axes of the ragged one's kind before it (for a batch axis only these).
      ragged_dot_dimension_numbers: a `RaggedDotDimensionNumbers`.
      precision, preferred_element_type: as for `dot_general`.
      group_offset: None.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array of the shape that `dot_general` gives, after g where groups divide a contracted axis.

    Examples:
      >>> numbers = lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0])
      >>> rows, matrices = wnp.ones((3, 1)), wnp.array([[[2.0]], [[5.0]]])
      >>> lax.ragged_dot_general(rows, matrices, wnp.array([1, 2]), numbers)
      Array([[2.],
             [5.],
             [5.]], dtype=float32)
    """
    function = "ragged_dot_general"

    def product():
        return _ragged(
            function,
            lhs,
            rhs,
            group_sizes,
            ragged_dot_dimension_numbers,
            precision,
            preferred_element_type,
            group_offset,
        )

    return product() if out_sharding is None else split_as(out_sharding, function, product)


def _ragged(
    function,
    lhs,
    rhs,
    group_sizes,
    numbers,
    precision,
    preferred_element_type,
    group_offset,
):
    if group_offset is not None:
        raise NotImplementedRuleError(f"[{function}] expected group_offset to be None")
    if not is_integer(dtype_of(group_sizes)):
        raise DTypeError(
            f"[{function}] expected integer group_sizes; got dtype {dtype_of(group_sizes)}"
        )
    (contracted, batch), ragged, groups = numbers
    lhs_contracted, rhs_contracted, lhs_batch, rhs_batch = (
        static_ints(axes, function, "dot_dimension_numbers") for axes in (*contracted, *batch)
    )
    ragged = static_ints(ragged, function, "lhs_ragged_dimensions")
    groups = static_ints(groups, function, "rhs_group_dimensions")
    rank = len(shape_of(lhs))
    if len(ragged) != 1 or not 0 <= ragged[0] < rank:
        raise AttributeValueError(
            f"[{function}] expected lhs_ragged_dimensions of one axis of lhs; got {ragged} for "
            f"shape {shape_of(lhs)}"
        )
    is_free = ragged[0] not in (*lhs_contracted, *lhs_batch)
    if len(groups) != int(is_free):
        raise AttributeValueError(
            f"[{function}] expected rhs_group_dimensions of "
            f"{'one axis' if is_free else 'no axis'}, since the ragged axis of lhs is "
            f"{'a free one' if is_free else 'contracted or a batch axis'}; got {groups}"
        )
    own = _axes_of_kind(rank, ragged[0], lhs_contracted, lhs_batch)
    prefix = own[: own.index(ragged[0])]
    if ragged[0] not in lhs_batch:
        prefix = (*lhs_batch, *prefix)
    count = _number_of_groups(function, lhs, group_sizes, prefix)
    if is_free and (not 0 <= groups[0] < len(shape_of(rhs)) or shape_of(rhs)[groups[0]] != count):
        raise ShapeError(
            f"[{function}] expected an axis of rhs with a size of {count}, the number of groups; "
            f"got rhs_group_dimensions={groups} for shape {shape_of(rhs)}"
        )
    options = (precision, preferred_element_type)
    if ragged[0] in lhs_batch:
        axes = ((lhs_contracted, rhs_contracted), (lhs_batch, rhs_batch))
        return dot_general(lhs, rhs, axes, *options)
    parts = _by_group(lhs, group_sizes, ragged[0], prefix, count)
    moved = [tuple(axis + 1 for axis in axes) for axes in (lhs_contracted, lhs_batch)]
    if is_free:
        axes = (((0, *moved[0]), (*groups, *rhs_contracted)), (moved[1], rhs_batch))
        return dot_general(parts, rhs, axes, *options)
    axes = ((moved[0], rhs_contracted), (moved[1], rhs_batch))
    result = dot_general(parts, rhs, axes, *options)
    order = list(range(len(shape_of(result))))
    order.insert(0, order.pop(len(lhs_batch)))
    return transpose(result, order)


def _axes_of_kind(rank, axis, contracted, batch):
    """The axes that are contracted, batch or free ones, as this one is, in their order."""
    for axes in (contracted, batch):
        if axis in axes:
            return tuple(axes)
    return tuple(each for each in range(rank) if each not in (*contracted, *batch))


def _number_of_groups(function, lhs, group_sizes, prefix):
    shape = shape_of(group_sizes)
    expected = tuple(shape_of(lhs)[axis] for axis in prefix)
    if len(shape) != 1 and (not shape or shape[:-1] != expected):
        raise ShapeError(
            f"[{function}] expected group_sizes of shape (g,) or {(*expected, 'g')}; got {shape}"
        )
    return shape[-1]


def _by_group(lhs, group_sizes, ragged, prefix, count):
    """lhs once for each group, along a new first axis, with zeros outside of the group."""
    shape = (count, *shape_of(lhs))
    dtype = dtype_of(group_sizes)
    last = len(shape_of(group_sizes)) - 1
    if last == 0:
        prefix = ()
    sorted_prefix = sorted(range(last), key=lambda i: prefix[i])
    ends = cumsum(group_sizes, last)
    starts = sub(ends, group_sizes)

    def spread(bounds):
        bounds = transpose(bounds, (last, *sorted_prefix))
        return broadcast_in_dim(bounds, shape, (0, *(axis + 1 for axis in sorted(prefix))))

    at = broadcasted_iota(dtype, shape, ragged + 1)
    inside = bitwise_and(ge(at, spread(starts)), lt(at, spread(ends)))
    copies = broadcast_in_dim(lhs, shape, tuple(range(1, len(shape))))
    return select(inside, copies, full_like(copies, 0))


def scaled_dot(
    lhs,
    rhs,
    *,
    lhs_scale=None,
    rhs_scale=None,
    dimension_numbers=None,
    preferred_element_type=None,
):
    """`dot_general` of operands that are multiplied with scales, one for each block of a contracted
    axis.

    Args:
      lhs, rhs: arrays.
      lhs_scale, rhs_scale: arrays of the operands' shapes, but for contracted axes, whose sizes
        divide those of the operands, at least twice; None for 1.
      dimension_numbers: as for `dot_general`; None for the product of two matrices, or of two
        batches of them.
      preferred_element_type: bfloat16 (the default) or float32: the dtype of factors and result.

    Raises DTypeError for another preferred_element_type, ShapeError for operands of other shapes.

    Examples:
      >>> x, y, scale = wnp.ones((1, 4)), wnp.ones((4, 1)), wnp.array([[10.0, 1.0]])
      >>> lax.scaled_dot(x, y, lhs_scale=scale, preferred_element_type="float32")
      Array([[22.]], dtype=float32)
    """
    function = "scaled_dot"
    rank = len(shape_of(lhs))
    if dimension_numbers is None:
        if rank not in (2, 3) or len(shape_of(rhs)) != rank:
            raise ShapeError(
                f"[{function}] expected matrices, batches of matrices or dimension_numbers; got "
                f"shapes {shape_of(lhs)} and {shape_of(rhs)}"
            )
        batch = tuple(range(rank - 2))
        dimension_numbers = (((rank - 1,), (rank - 2,)), (batch, batch))
    dtype = requested_dtype(
        "bfloat16" if preferred_element_type is None else preferred_element_type, function
    )
    if dtype.name not in ("bfloat16", "float32"):
        raise DTypeError(
            f"[{function}] expected preferred_element_type bfloat16 or float32; got {dtype}"
        )
    (lhs_contracted, rhs_contracted), _ = dimension_numbers
    lhs = _scaled(function, lhs, lhs_scale, lhs_contracted, dtype)
    rhs = _scaled(function, rhs, rhs_scale, rhs_contracted, dtype)
    return dot_general(lhs, rhs, dimension_numbers, preferred_element_type=dtype)


def _scaled(function, x, scale, contracted, dtype):
    factors = convert_element_type(x, dtype)
    if scale is None:
        return factors
    shape, blocks = shape_of(x), shape_of(scale)
    contracted = static_ints(contracted, function, "dimension_numbers")
    fits = len(shape) == len(blocks) and all(
        b > 0 and n % b == 0 and n // b >= 2 if axis in contracted else n == b
        for axis, (n, b) in enumerate(zip(shape, blocks, strict=True))
    )
    if not fits:
        raise ShapeError(
            f"[{function}] expected a scale of the operand's shape {shape}, but for divisors "
            f"of the sizes of contracted axes {contracted}, at most half of them; got {blocks}"
        )
    # Each block becomes an axis of blocks and one within them.
    inner, kept = [], []
    for n, b in zip(shape, blocks, strict=True):
        kept.append(len(inner))
        inner += [b, n // b if b else 1]
    scales = broadcast_in_dim(convert_element_type(scale, dtype), inner, kept)
    return mul(factors, reshape(scales, shape))
