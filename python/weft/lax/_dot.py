"""Products of arrays summed over axes."""

import enum
from collections.abc import Sequence

from weft import _core
from weft._arguments import shape_of, static_ints
from weft.dtypes import requested_dtype
from weft.errors import AttributeValueError, NotImplementedRuleError, ShapeError

_ALIASES = {
    "default": 0,
    "bfloat16": 0,
    "fastest": 0,
    "high": 1,
    "bfloat16_3x": 1,
    "tensorfloat32": 1,
    "highest": 2,
    "float32": 2,
}


class Precision(enum.Enum):
    """How exactly products are computed on devices that have faster, less exact units.

    CPUs compute all of them exactly. `Precision("high")` accepts the names in lower case, and
    "bfloat16", "bfloat16_3x" or "tensorfloat32", and "float32" for the three.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value):
        return cls(_ALIASES[value]) if value in _ALIASES else None

    def __repr__(self):
        return f"{self.__class__.__name__}.{self.name}"

    __str__ = __repr__


PrecisionLike = None | str | Precision | tuple[str, str] | tuple[Precision, Precision]
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


def precision_name(precision, function="dot_general"):
    """The attribute for what users give: None, a Precision or its name, or one for each operand."""
    if precision is None:
        return None
    if isinstance(precision, (tuple, list)):
        given = [each for each in precision if each is not None]
    else:
        given = [precision]
    try:
        chosen = [Precision(each) for each in given]
    except ValueError:
        raise AttributeValueError(
            f"[{function}] expected None, a Precision, one of {', '.join(map(repr, _ALIASES))}, "
            f"or a pair of these as precision; got {precision!r}"
        ) from None
    return max(chosen, key=lambda each: each.value).name if chosen else None


def without_sharding(out_sharding, function):
    """Programs run on one device: there is nothing to shard over."""
    if out_sharding is not None:
        raise NotImplementedRuleError(
            f"[{function}] expected out_sharding to be None, since programs do not run on several "
            f"devices yet; got {out_sharding!r}"
        )


def dot_general(
    lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None, *, out_sharding=None
):
    """Products summed over contracting axes, one for each index of the batch axes.

    Args:
      lhs, rhs: arrays.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`; axes that
        belong together have equal sizes.
      precision: None, a `Precision` or its name, or a pair of these (the more exact one counts).
      preferred_element_type: dtype in which to sum up, and of the result.
      out_sharding: None.

    Returns:
      Array whose axes are the batch axes, the others of `lhs`, and the others of `rhs`.
    """
    without_sharding(out_sharding, "dot_general")
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    lists = [
        static_ints(axes, "dot_general", "dimension_numbers")
        for axes in (lhs_contracting, rhs_contracting, lhs_batch, rhs_batch)
    ]
    if preferred_element_type is not None:
        preferred_element_type = requested_dtype(preferred_element_type, "dot_general")
    return _core.bind(
        "dot_general",
        lhs,
        rhs,
        dimension_numbers=((lists[0], lists[1]), (lists[2], lists[3])),
        precision=precision_name(precision),
        preferred_element_type=preferred_element_type,
    )


def dot(
    lhs,
    rhs,
    *,
    dimension_numbers=None,
    precision=None,
    preferred_element_type=None,
    out_sharding=None,
):
    """Product of vectors and matrices, or with `dimension_numbers` what `dot_general` does.

    Without them the last axis of `lhs` is contracted with the first of `rhs`, and both have one or
    two axes.
    """
    lhs_shape, rhs_shape = shape_of(lhs), shape_of(rhs)
    if dimension_numbers is None:
        fits = (
            len(lhs_shape) in (1, 2) and len(rhs_shape) in (1, 2) and lhs_shape[-1] == rhs_shape[0]
        )
        if not fits:
            raise ShapeError(
                "[dot] expected vectors or matrices whose inner sizes agree, or "
                f"dimension_numbers; got shapes {lhs_shape} and {rhs_shape}"
            )
        dimension_numbers = (((len(lhs_shape) - 1,), (0,)), ((), ()))
    without_sharding(out_sharding, "dot")
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs, rhs, precision=None):
    """Matrix product over the last two axes, for each index of the leading axes.

    Args:
      lhs: array of shape `(*batch, m, k)`.
      rhs: array of shape `(*batch, k, n)`.

    Returns:
      Array of shape `(*batch, m, n)`.
    """
    lhs_shape, rhs_shape = shape_of(lhs), shape_of(rhs)
    rank = len(lhs_shape)
    if rank < 2 or rank != len(rhs_shape) or lhs_shape[:-2] != rhs_shape[:-2]:
        raise ShapeError(
            "[batch_matmul] expected arrays with the same leading axes before the last two; "
            f"got shapes {lhs_shape} and {rhs_shape}"
        )
    batch = tuple(range(rank - 2))
    return dot_general(lhs, rhs, (((rank - 1,), (rank - 2,)), (batch, batch)), precision)
