"""Products of arrays described by axis labels: what all of dot, matmul, tensordot, einsum share.

An operand comes with one label for each axis. Axes that have the same label in both operands are
multiplied element by element; they are summed over if the label is not in the result.
"""

import functools
import math

from weft import _core
from weft._arguments import shape_of, strong
from weft._jit import composite
from weft.dtypes import dtype_of, is_bool, promote_types
from weft.errors import ShapeError
from weft.lax import _dot as lax_dot, _shape as lax_shape
from weft.lax._reduce import reduce_or, reduce_sum


@functools.lru_cache(4096)
def _plan(lhs, rhs, out):
    """Dimension numbers of a product, the labels of its result, and whether to swap operands.

    Swapping avoids a transposition where the result has the axes of the second operand first.
    """

    def numbers(x, y):
        batch = [label for label in out if label in x and label in y]
        summed = [label for label in x if label in y and label not in out]
        free = [label for label in (*x, *y) if (label in x) != (label in y)]
        axes = [
            tuple(z.index(label) for label in group) for group in (summed, batch) for z in (x, y)
        ]
        return ((axes[0], axes[1]), (axes[2], axes[3])), (*batch, *free)

    straight, swapped = numbers(lhs, rhs), numbers(rhs, lhs)
    if straight[1] != out and swapped[1] == out:
        return *swapped, True
    return *straight, False


def dot_general(lhs, rhs, numbers, precision, dtype):
    """The operation, with the dtype of the operands as the one to sum up in unless one is asked."""
    if dtype is not None:
        precision = lax_dot.Precision.__members__.get(precision, precision)
        return lax_dot.dot_general(lhs, rhs, numbers, precision, dtype)
    return _core.bind(
        "dot_general",
        lhs,
        rhs,
        dimension_numbers=numbers,
        precision=precision,
        preferred_element_type=dtype_of(lhs),
    )


def product(function, lhs, lhs_labels, rhs, rhs_labels, out, precision=None, dtype=None):
    """The product of two arrays; labels are distinct within each operand. One for which a dtype was
    asked is not weakly typed.

    Axes of size 1 broadcast against axes of the same label and another size.
    """
    lhs_shape, lhs_dtype, _ = _core.typeof(lhs)
    rhs_shape, rhs_dtype, _ = _core.typeof(rhs)
    lhs_sizes = dict(zip(lhs_labels, lhs_shape, strict=True))
    rhs_sizes = dict(zip(rhs_labels, rhs_shape, strict=True))
    broadcasts = False
    for label, size in lhs_sizes.items():
        other = rhs_sizes.get(label, size)
        if other != size:
            broadcasts = True
            if 1 not in (size, other) or label not in out:
                raise ShapeError(
                    f"[{function}] expected axes of equal sizes where they are multiplied; "
                    f"got shapes {lhs_shape} and {rhs_shape}"
                )
    if not broadcasts and lhs_dtype == rhs_dtype:
        numbers, labels, swap = _plan(lhs_labels, rhs_labels, out)
        if labels == out:
            pair = (rhs, lhs) if swap else (lhs, rhs)
            result = dot_general(*pair, numbers, precision, dtype)
            return result if dtype is None else strong(result)
    result = _product(
        lhs, rhs, labels=(lhs_labels, rhs_labels, out), precision=precision, dtype=dtype
    )
    return result if dtype is None else strong(result)


@composite(static_argnames=("labels", "precision", "dtype"))
def _product(lhs, rhs, *, labels, precision, dtype):
    lhs, rhs = _core.promote_dtypes(lhs, rhs)
    result, result_labels = contract(lhs, labels[0], rhs, labels[1], labels[2], precision, dtype)
    return ordered(result, result_labels, labels[2])


def contract(lhs, lhs_labels, rhs, rhs_labels, out, precision, dtype, dot=None):
    """The product with the axes in the order that comes without transposing, and their labels."""
    lhs, lhs_labels = _without_broadcast_axes(lhs, lhs_labels, rhs, rhs_labels)
    rhs, rhs_labels = _without_broadcast_axes(rhs, rhs_labels, lhs, lhs_labels)
    lhs, lhs_labels = sum_out(lhs, lhs_labels, {*out, *rhs_labels}, dtype)
    rhs, rhs_labels = sum_out(rhs, rhs_labels, {*out, *lhs_labels}, dtype)
    lhs, rhs = _core.promote_dtypes(lhs, rhs)
    numbers, labels, swap = _plan(lhs_labels, rhs_labels, out)
    pair = (rhs, lhs) if swap else (lhs, rhs)
    return (dot or dot_general)(*pair, numbers, precision, dtype), labels


def _without_broadcast_axes(x, labels, other, other_labels):
    """Drops axes of size 1 that stand against axes of another size."""
    sizes = dict(zip(other_labels, shape_of(other), strict=True))
    axes = [
        axis
        for axis, (label, size) in enumerate(zip(labels, shape_of(x), strict=True))
        if size == 1 and sizes.get(label, 1) != 1
    ]
    kept = tuple(label for axis, label in enumerate(labels) if axis not in axes)
    return lax_shape.squeeze(x, axes), kept


def sum_out(x, labels, needed, dtype=None):
    """Sums over the axes whose labels are not needed; of bools, whether any is true. A dtype that
    holds more than that of `x` is the one to sum up in."""
    axes = [axis for axis, label in enumerate(labels) if label not in needed]
    if axes and dtype is not None:
        x = _core.astype(x, promote_types(dtype_of(x), dtype))
    total = (reduce_or if is_bool(dtype_of(x)) else reduce_sum)(x, axes)
    return total, tuple(label for label in labels if label in needed)


def ordered(x, labels, out):
    """The axes brought into the order of `out`."""
    return lax_shape.transpose(x, [labels.index(label) for label in out])


def flattened(x):
    """The array with a single axis."""
    return lax_shape.reshape(x, (math.prod(shape_of(x)),))
