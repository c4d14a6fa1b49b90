"""Sorting along an axis, and the greatest elements."""

from weft import _core
from weft._arguments import ndim_of, normalize_axis, static_int, weak_as
from weft.dtypes import dtype_of, is_float
from weft.errors import AttributeValueError, DTypeError
from weft.lax._elementwise import neg


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

    Raises AttributeValueError (a ValueError) without arrays.

    Examples:
      >>> lax.sort(wnp.array([3, 1, 2]))
      Array([1, 2, 3], dtype=int32)
      >>> lax.sort((wnp.array([3, 1, 2]), wnp.array([30, 10, 20])))
      (Array([1, 2, 3], dtype=int32), Array([10, 20, 30], dtype=int32))
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
    return tuple(map(weak_as, results, operands)) if several else results[0]


def sort_key_val(keys, values, dimension=-1, is_stable=True):
    """Sorts keys along an axis and reorders values in the same way; a pair of arrays.

    `dimension` and `is_stable` are those of `sort`.

    Examples:
      >>> keys, values = lax.sort_key_val(wnp.array([3, 1, 2]), wnp.array([30, 10, 20]))
      >>> values
      Array([10, 20, 30], dtype=int32)
    """
    return sort((keys, values), dimension, is_stable)


def top_k(operand, k, *, axis=-1):
    """The greatest elements along an axis, in decreasing order, and their indices.

    Args:
      operand: array of a real dtype or bool, with at least one axis.
      k: how many; a Python integer of at most the size of the axis.
      axis: the axis.

    Returns:
      `[values, indices]`, arrays with `k` elements along the axis; the indices are int32. Of equal
      elements the first comes first, NaN comes before all numbers, and 0 before -0.

    Raises:
      DTypeError: for complex numbers.
      AttributeValueError: for a `k` or an axis that the array does not have.

    Examples:
      >>> lax.top_k(wnp.array([5, 9, 7]), 2)
      [Array([9, 7], dtype=int32), Array([1, 2], dtype=int32)]
    """
    values, indices = _core.bind(
        "top_k",
        operand,
        k=static_int(k, "top_k", "k"),
        axis=normalize_axis(axis, ndim_of(operand), "top_k"),
    )
    return [values, indices]


def approx_max_k(
    operand,
    k,
    reduction_dimension=-1,
    recall_target=0.95,
    reduction_input_size_override=-1,
    aggregate_to_topk=True,
):
    """The greatest elements along an axis, some of which may be missed, and their indices.

    On the platforms that weft supports none is missed: this is `top_k` of floats.

    Args:
      operand: array of floats.
      k: how many; a Python integer from 1 to the size of the axis.
      reduction_dimension: the axis.
      recall_target: the share of the greatest elements that must be found, above 0 and at most 1;
        has no effect, since all are.
      reduction_input_size_override: the size to work the recall out for; has no effect.
      aggregate_to_topk: whether to return exactly `k` elements in order; has no effect, since
        they always are.

    Returns:
      `[values, indices]`, arrays with `k` elements along the axis; the indices are int32.

    Examples:
      >>> lax.approx_max_k(wnp.array([5.0, 9.0, 7.0]), 2)
      [Array([9., 7.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    _check_approximate("approx_max_k", operand, k, recall_target)
    return top_k(operand, k, axis=reduction_dimension)


def approx_min_k(
    operand,
    k,
    reduction_dimension=-1,
    recall_target=0.95,
    reduction_input_size_override=-1,
    aggregate_to_topk=True,
):
    """The smallest elements along an axis, in increasing order, and their indices.

    As `approx_max_k`, with NaN after all numbers.

    Args:
      operand: array of floats.
      k: how many; a Python integer from 1 to the size of the axis.
      reduction_dimension: the axis.
      recall_target: has no effect.
      reduction_input_size_override: has no effect.
      aggregate_to_topk: has no effect.

    Returns:
      `[values, indices]`, arrays with `k` elements along the axis; the indices are int32.

    Examples:
      >>> lax.approx_min_k(wnp.array([5.0, 9.0, 7.0]), 2)
      [Array([5., 7.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    _check_approximate("approx_min_k", operand, k, recall_target)
    values, indices = top_k(neg(operand), k, axis=reduction_dimension)
    return [neg(values), indices]


def _check_approximate(function, operand, k, recall_target):
    if not is_float(dtype_of(operand)):
        raise DTypeError(f"[{function}] expected floats; got {dtype_of(operand).name}")
    if static_int(k, function, "k") < 1:
        raise AttributeValueError(f"[{function}] expected k to be at least 1; got {k}")
    if not 0 < recall_target <= 1:
        raise AttributeValueError(
            f"[{function}] expected recall_target above 0 and at most 1; got {recall_target}"
        )
