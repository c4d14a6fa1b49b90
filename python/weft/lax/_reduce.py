"""Reductions along axes."""

from weft import _core
from weft._arguments import ndim_of, normalize_axes, normalize_axis
from weft.dtypes import requested_dtype


def _reduction(op, summary, dtypes, empty):
    doc = f"""{summary}

    Args:
      operand: array of {dtypes}.
      axes: the axes to reduce over, which the result lacks.

    Over axes of size 0 the result is {empty}.
    """

    def function(operand, axes):
        axes = normalize_axes(axes, ndim_of(operand), op)
        return _core.bind(op, operand, axes=axes) if axes else _core.asarray(operand)

    function.__name__ = function.__qualname__ = op
    function.__doc__ = doc
    return function


_NUMBER = "a number dtype"
_BITS = "bool or an integer dtype"
reduce_sum = _reduction("reduce_sum", "Sum of the elements.", _NUMBER, "0")
reduce_prod = _reduction("reduce_prod", "Product of the elements.", _NUMBER, "1")
reduce_max = _reduction(
    "reduce_max", "Greatest element; NaN if there is one.", "any dtype", "the lowest value"
)
reduce_min = _reduction(
    "reduce_min", "Smallest element; NaN if there is one.", "any dtype", "the highest value"
)
reduce_and = _reduction("reduce_and", "Bitwise (for bool: logical) and.", _BITS, "all ones")
reduce_or = _reduction("reduce_or", "Bitwise (for bool: logical) or.", _BITS, "zero")
reduce_xor = _reduction("reduce_xor", "Bitwise (for bool: logical) exclusive or.", _BITS, "zero")


def argmax(operand, axis, index_dtype):
    """Position of the greatest element along an axis, the first of several.

    NaN counts as greater than any number. The result has dtype `index_dtype` and lacks the axis,
    which must not be empty.
    """
    return _arg_reduction("argmax", operand, axis, index_dtype)


def argmin(operand, axis, index_dtype):
    """Position of the smallest element along an axis, the first of several.

    NaN counts as smaller than any number. The result has dtype `index_dtype` and lacks the axis,
    which must not be empty.
    """
    return _arg_reduction("argmin", operand, axis, index_dtype)


def _arg_reduction(op, operand, axis, index_dtype):
    axis = normalize_axis(axis, ndim_of(operand), op)
    return _core.bind(op, operand, axes=(axis,), index_dtype=requested_dtype(index_dtype, op))
