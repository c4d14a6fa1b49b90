"""Products of arrays summed over axes."""

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import _core
from weft._arguments import shape_of, static_ints
from weft.config import config
from weft.dtypes import (
    SUPPORTED,
    as_dtype,
    bfloat16,
    dtype_of,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    itemsize_bits,
    requested_dtype,
)
from weft.errors import AttributeValueError, DTypeError, ShapeError
from weft.lax._elementwise import real
from weft.lax._sharding import split_as

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

    Examples:
      >>> lax.dot(wnp.ones(2), wnp.ones(2), precision=lax.Precision.HIGHEST)
      Array(2., dtype=float32)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: Any):
        return cls(_ALIASES[value]) if value in _ALIASES else None

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"{self.__class__.__name__}.{self.name}"


class DotAlgorithm(NamedTuple):
    """How a product computes: what it rounds to, adds up in, and how many products of parts stand
    for one. Platforms have those of `DotAlgorithmPreset` only.

    Attributes:
      lhs_precision_type, rhs_precision_type: dtypes that the operands are rounded to.
      accumulation_type: dtype of the sums.
      lhs_component_count, rhs_component_count: into how many parts operands are split.
      num_primitive_operations: how many products of parts are added up.
      allow_imprecise_accumulation: whether some sums may be less exact.

    Examples:
      >>> algorithm = lax.DotAlgorithm("float32", "float32", "float32")
      >>> lax.dot(wnp.ones(2), wnp.ones(2), precision=algorithm)
      Array(2., dtype=float32)
    """

    lhs_precision_type: object
    rhs_precision_type: object
    accumulation_type: object
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """The algorithms that some platform has, named after what the operands are rounded to and
    what is added up in; a number at the end counts the products that stand for one.

    A product with one of them converts its operands to a dtype that the algorithm takes, and its
    result to the dtype that it would have without. ANY_F8 takes floats of 8 bits only. A CPU has
    F16_F16_F16, BF16_BF16_F32 and its X3 and X6 (where it rounds no operands), F32_F32_F32 and
    F64_F64_F64; a program for a platform that lacks the algorithm raises NotImplementedRuleError.
    Convolutions have none: they take DEFAULT instead.

    Examples:
      >>> lax.dot(wnp.ones(2), wnp.ones(2), precision=lax.DotAlgorithmPreset.F32_F32_F32)
      Array(2., dtype=float32)
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self):
        return f"{self.__class__.__name__}.{self.name}"

    def __str__(self):
        return self.name

    def _words(self):
        """The dtype that operands are rounded to, that of sums, and the number of products."""
        operands, _, rest = self.name.removeprefix("ANY_").partition("_")
        accumulation, *ends = rest.removeprefix("ANY_").removeprefix(operands + "_").split("_")
        products = next((int(end[1:]) for end in ends if end[0] == "X"), 1)
        return operands, accumulation, products

    @property
    def supported_lhs_types(self):
        """The dtypes that operands may have without being converted; None for any."""
        operands, _, products = self._words()
        if operands in ("DEFAULT", "F8"):
            return None
        if operands == "BF16" and products == 1:
            return (bfloat16, np.float32)
        return (_WORDS.get(operands, np.float32) if products == 1 else np.float32,)

    supported_rhs_types = supported_lhs_types

    @property
    def accumulation_type(self):
        """The dtype of the sums; None where the result's dtype decides."""
        return _WORDS.get(self._words()[1])

    def supported_output_types(self, lhs_dtype, rhs_dtype):
        """The dtypes that the result may have without being converted from that of the sums, for
        operands of these dtypes; None for any."""
        total = self.accumulation_type
        if total is None:
            return None
        if self.supported_lhs_types is None:
            small = [d.type for d in SUPPORTED if is_float(d) and itemsize_bits(d) in (8, 16)]
            return (total, *small)
        narrow = _WORDS.get(self._words()[0], total)
        is_narrow = lhs_dtype == rhs_dtype == narrow != total and self._words()[2] == 1
        return (total, narrow) if is_narrow else (total,)

    def _algorithm(self):
        """The DotAlgorithm with these dtypes; None where NumPy lacks one or any will do."""
        operands, _, products = self._words()
        dtype = _WORDS.get(operands)
        if dtype is None:
            return None
        return DotAlgorithm(dtype, dtype, self.accumulation_type, 1, 1, products)


_WORDS = {"BF16": bfloat16, "F16": np.float16, "F32": np.float32, "F64": np.float64}
_PRESETS = {
    preset._algorithm(): preset for preset in DotAlgorithmPreset if preset._algorithm() is not None
}


def _preset(algorithm, function):
    """The preset that a DotAlgorithm describes."""
    lhs, rhs, total = (as_dtype(each) for each in algorithm[:3])
    same = algorithm._replace(
        lhs_precision_type=lhs.type, rhs_precision_type=rhs.type, accumulation_type=total.type
    )
    if same in _PRESETS:
        return _PRESETS[same]
    if total == np.float32 and all(is_float(d) and itemsize_bits(d) == 8 for d in (lhs, rhs)):
        name = "ANY_F8_ANY_F8_F32" + ("_FAST_ACCUM" if algorithm[6] else "")
        if algorithm[3:6] == (1, 1, 1):
            return DotAlgorithmPreset[name]
    raise AttributeValueError(
        f"[{function}] expected an algorithm that some platform has: "
        f"{', '.join(preset.name for preset in DotAlgorithmPreset)}; got {algorithm}"
    )


PrecisionLike = (
    None
    | str
    | Precision
    | tuple[str, str]
    | tuple[Precision, Precision]
    | DotAlgorithm
    | DotAlgorithmPreset
)
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


def precision_name(precision, function="dot_general"):
    """The attribute for what users give: None, a Precision or its name, one for each operand, or
    an algorithm."""
    if precision is None:
        if not _core.get_setting("matmul_precision"):
            return None
        precision = config.weft_default_matmul_precision
    if isinstance(precision, DotAlgorithm):
        return _preset(precision, function).name
    if isinstance(precision, DotAlgorithmPreset):
        return precision.name
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return precision
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    try:
        lhs, rhs = map(Precision, pair)
    except (TypeError, ValueError):
        raise AttributeValueError(
            f"[{function}] expected None, a Precision, one of {', '.join(map(repr, _ALIASES))}, "
            f"a pair of these, a DotAlgorithm, or a DotAlgorithmPreset or its name as precision; "
            f"got {precision!r}"
        ) from None
    return max(lhs, rhs, key=lambda each: each.value).name


def plain_precision_name(precision, function):
    """The same for an operation that has no algorithms."""
    name = precision_name(precision, function)
    return name if name is None or name in Precision.__members__ else Precision.DEFAULT.name


def dot_general(
    lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None, *, out_sharding=None
):
    """Products summed over contracting axes, one for each index of the batch axes.

    Args:
      lhs, rhs: arrays.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`; axes that
        belong together have equal sizes.
      precision: None, a `Precision` or its name, a pair of these (the more exact one counts), or
        the algorithm: a `DotAlgorithm`, or a `DotAlgorithmPreset` or its name.
      preferred_element_type: dtype in which to sum up, and of the result.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array whose axes are the batch axes, the others of `lhs`, and the others of `rhs`.

    Raises DTypeError for integers with a preferred_element_type narrower than theirs, and for one
    narrower than the parts of complex numbers.

    Examples:
      >>> x, y = wnp.ones((5, 2, 3)), wnp.ones((5, 4, 3))
      >>> lax.dot_general(x, y, dimension_numbers=(([2], [2]), ([0], [0]))).shape
      (5, 2, 4)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding,
            "dot_general",
            lambda: dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type),
        )
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    lists = [
        static_ints(axes, "dot_general", "dimension_numbers")
        for axes in (lhs_contracting, rhs_contracting, lhs_batch, rhs_batch)
    ]
    if preferred_element_type is not None:
        preferred_element_type = requested_dtype(preferred_element_type, "dot_general")
        own = [dtype_of(lhs), dtype_of(rhs)]
        is_degree = precision_name(precision) in (None, "DEFAULT", "HIGH", "HIGHEST")
        if all(map(is_integer, own)):
            narrower = preferred_element_type.itemsize < max(each.itemsize for each in own)
            if is_degree and narrower:
                raise DTypeError(
                    "[dot_general] expected a preferred_element_type no narrower than the "
                    f"operands; got {preferred_element_type} for {own[0]} and {own[1]}"
                )
        elif is_bool(preferred_element_type) or is_integer(preferred_element_type):
            if all(map(is_bool, own)):
                return dot_general(
                    *(_core.astype(x, preferred_element_type) for x in (lhs, rhs)),
                    dimension_numbers,
                    precision,
                )
            # Summed up as it is, and converted then.
            result = dot_general(lhs, rhs, dimension_numbers, precision)
            result = real(result) if is_complex(dtype_of(result)) else result
            return _core.astype(result, preferred_element_type)
        elif any(map(is_complex, own)) and not is_complex(preferred_element_type):
            if 2 * preferred_element_type.itemsize < max(each.itemsize for each in own):
                raise DTypeError(
                    "[dot_general] expected a preferred_element_type no narrower than the parts of "
                    f"the operands; got {preferred_element_type} for {own[0]} and {own[1]}"
                )
            result = dot_general(lhs, rhs, dimension_numbers, precision)
            return _core.astype(real(result), preferred_element_type)
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

    `precision` and `preferred_element_type` are those of `dot_general`. Raises ShapeError for inner
    sizes that differ.

    Examples:
      >>> lax.dot(wnp.array([1, 2, 3]), wnp.array([4, 5, 6]))
      Array(32, dtype=int32)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding,
            "dot",
            lambda: dot(
                lhs,
                rhs,
                dimension_numbers=dimension_numbers,
                precision=precision,
                preferred_element_type=preferred_element_type,
            ),
        )
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
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs, rhs, precision=None):
    """Matrix product over the last two axes, for each index of the leading axes.

    Args:
      lhs: array of shape `(*batch, m, k)`.
      rhs: array of shape `(*batch, k, n)`.

    Returns:
      Array of shape `(*batch, m, n)`.

    `precision` is that of `dot_general`. Raises ShapeError for leading axes that differ.

    Examples:
      >>> lax.batch_matmul(wnp.ones((5, 2, 3)), wnp.ones((5, 3, 4))).shape
      (5, 2, 4)
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
