"""Sorting along an axis."""

from weft import _core
from weft._arguments import ndim_of, normalize_axis, static_int
from weft.errors import AttributeValueError


def sort(operand, dimension=-1, is_stable=True, num_keys=1):
    """Sorts an array, or several together, along an axis.

    Args:
      operand: array, or a sequence of arrays of one shape, which are reordered together.
      dimension: the axis.
      is_stable: keep the order of elements with equal keys.
      num_keys: how many of the arrays decide the order, the first one most.

    Returns:
      A sorted array, or a tuple of them. NaN comes last; complex numbers are ordered by their real,
      then by their imaginary parts.
    """
    several = isinstance(operand, (list, tuple))
    operands = tuple(operand) if several else (operand,)
    if not operands:
        raise AttributeValueError("[sort] expected at least one array; got none")
    results = _core.bind(
        "sort",
        *operands,
        dimension=normalize_axis(dimension, ndim_of(operands[0]), "sort"),
        is_stable=bool(is_stable),
        num_keys=static_int(num_keys, "sort", "num_keys"),
    )
    return tuple(results) if several else results[0]


def sort_key_val(keys, values, dimension=-1, is_stable=True):
    """Sorts keys along an axis and reorders values in the same way; a pair of arrays."""
    return sort((keys, values), dimension, is_stable)
