"""Products of vectors, matrices and stacks of them."""

import operator
from typing import Any

from weft import _core
from weft._arguments import (
    ndim_of,
    normalize_axes,
    normalize_axis,
    shape_of,
    static_ints,
    strong,
)
from weft._jit import composite
from weft._surface import eager_entry
from weft.dtypes import requested_dtype
from weft.errors import AttributeValueError, ShapeError
from weft.lax import _shape as lax_shape
from weft.lax._dot import precision_name
from weft.lax._sharding import split_as
from weft.lax._slice import index_in_dim
from weft.numpy import _ufuncs as u
from weft.numpy._products import dot_general, flattened, product
from weft.numpy._reductions import reject_out
from weft.numpy._shape import moveaxis


def _options(function, precision, preferred_element_type):
    if preferred_element_type is not None:
        preferred_element_type = requested_dtype(preferred_element_type, function)
    return precision_name(precision), preferred_element_type


# Dimension numbers of products of vectors and matrices, by the numbers of axes.
_PLAIN = {
    (1, 1): (((0,), (0,)), ((), ())),
    (1, 2): (((0,), (0,)), ((), ())),
    (2, 1): (((1,), (0,)), ((), ())),
    (2, 2): (((1,), (0,)), ((), ())),
}


def _plain_product(a, b):
    """The product of vectors and matrices of one dtype, the common case; else None."""
    a_shape, a_dtype, _ = _core.typeof(a)
    b_shape, b_dtype, _ = _core.typeof(b)
    numbers = _PLAIN.get((len(a_shape), len(b_shape)))
    if numbers is None or a_dtype != b_dtype or a_shape[-1] != b_shape[0]:
        return None
    return dot_general(a, b, numbers, None, None)


def _axes(x, name):
    """Labels for all axes of an array, different from those of arrays of another name."""
    return tuple((name, axis) for axis in range(ndim_of(x)))


def _batch(count):
    """Labels for leading axes that broadcast together, numbered from the last one."""
    return tuple(range(count - 1, -1, -1))


def _others(lhs, rhs):
    """The labels that only one of the operands has."""
    return (*(x for x in lhs if x not in rhs), *(x for x in rhs if x not in lhs))


def _require_axes(function, *arrays, least: Any = 1):
    if any(ndim_of(x) < n for x, n in zip(arrays, _counts(least, arrays), strict=True)):
        shapes = " and ".join(str(shape_of(x)) for x in arrays)
        raise ShapeError(f"[{function}] expected arrays with more axes; got shapes {shapes}")


def _counts(least, arrays):
    return (least,) * len(arrays) if isinstance(least, int) else least


@eager_entry(2)
def dot(a, b, *, precision=None, preferred_element_type=None, out_sharding=None):
    """Product summed over the last axis of `a` and the second-last (or only) axis of `b`.

    Args:
      a, b: arrays or numbers; with a number it is the product element by element.
      precision: see `weft.lax.Precision`.
      preferred_element_type: dtype in which to sum up, and of the result.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array with the other axes of `a`, then those of `b`.

    Examples:
      >>> wnp.dot(wnp.array([[1, 2], [3, 4]]), wnp.array([10, 1]))
      Array([12, 34], dtype=int32)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding,
            "dot",
            lambda: dot(a, b, precision=precision, preferred_element_type=preferred_element_type),
        )
    options = _options("dot", precision, preferred_element_type)
    if all(each is None for each in options) and (plain := _plain_product(a, b)) is not None:
        return plain
    lhs, rhs = _axes(a, "a"), _axes(b, "b")
    if lhs and rhs:
        summed = max(len(rhs) - 2, 0)
        rhs = (*rhs[:summed], lhs[-1], *rhs[summed + 1 :])
    return product("dot", a, lhs, b, rhs, _others(lhs, rhs), *options)


@eager_entry(2)
def matmul(a, b, *, precision=None, preferred_element_type=None, out_sharding=None):
    """Matrix product over the last two axes; the leading axes broadcast together.

    A vector as `a` is a row, as `b` a column, and its axis is dropped from the result.

    Args:
      a, b: arrays with at least one axis.
      precision: see `weft.lax.Precision`.
      preferred_element_type: dtype in which to sum up, and of the result.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array of shape `(*batch, m, n)` for operands of shapes `(*batch, m, k)` and `(*batch, k, n)`.

    Examples:
      >>> wnp.matmul(wnp.array([[1, 2], [3, 4]]), wnp.array([[0, 1], [1, 0]]))
      Array([[2, 1],
             [4, 3]], dtype=int32)
      >>> wnp.matmul(wnp.ones((5, 2, 3)), wnp.ones((3, 4))).shape
      (5, 2, 4)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding,
            "matmul",
            lambda: matmul(
                a, b, precision=precision, preferred_element_type=preferred_element_type
            ),
        )
    options = _options("matmul", precision, preferred_element_type)
    if all(each is None for each in options) and (plain := _plain_product(a, b)) is not None:
        return plain
    _require_axes("matmul", a, b)
    ndim_a, ndim_b = ndim_of(a), ndim_of(b)
    rows = ("m",) if ndim_a > 1 else ()
    columns = ("n",) if ndim_b > 1 else ()
    lhs = (*_batch(ndim_a - 2), *rows, "k")
    rhs = (*_batch(ndim_b - 2), "k", *columns)
    out = (*_batch(max(ndim_a, ndim_b) - 2), *rows, *columns)
    return product("matmul", a, lhs, b, rhs, out, *options)


@eager_entry(2)
def matvec(x1, x2, /):
    """Products of matrices `(..., m, n)` and vectors `(..., n)`: vectors `(..., m)`.

    Examples:
      >>> wnp.matvec(wnp.array([[1, 2], [3, 4]]), wnp.array([10, 1]))
      Array([12, 34], dtype=int32)
    """
    _require_axes("matvec", x1, x2, least=(2, 1))
    _core.check_ranks("matvec", (x1, x2), (2, 1))
    batch = max(ndim_of(x1) - 2, ndim_of(x2) - 1)
    lhs = (*_batch(ndim_of(x1) - 2), "m", "n")
    return product("matvec", x1, lhs, x2, (*_batch(ndim_of(x2) - 1), "n"), (*_batch(batch), "m"))


@eager_entry(2)
def vecmat(x1, x2, /):
    """Products of conjugated vectors `(..., m)` and matrices `(..., m, n)`: vectors `(..., n)`.

    Examples:
      >>> wnp.vecmat(wnp.array([10, 1]), wnp.array([[1, 2], [3, 4]]))
      Array([13, 24], dtype=int32)
    """
    _require_axes("vecmat", x1, x2, least=(1, 2))
    _core.check_ranks("vecmat", (x1, x2), (1, 2))
    batch = max(ndim_of(x1) - 1, ndim_of(x2) - 2)
    rhs = (*_batch(ndim_of(x2) - 2), "m", "n")
    lhs = (*_batch(ndim_of(x1) - 1), "m")
    return product("vecmat", u.conj(x1), lhs, x2, rhs, (*_batch(batch), "n"))


@eager_entry(2, "axis")
def vecdot(x1, x2, /, *, axis=-1, precision=None, preferred_element_type=None):
    """Products of vectors that stand along an axis, those of `x1` conjugated, summed over it.

    The other axes broadcast together.

    `precision` and `preferred_element_type` are those of `tensordot`.

    Examples:
      >>> wnp.vecdot(wnp.array([[1, 2], [3, 4]]), wnp.array([10, 1]))
      Array([12, 34], dtype=int32)
      >>> wnp.vecdot(wnp.array([1j]), wnp.array([1j]))
      Array(1.+0.j, dtype=complex64)
    """
    options = _options("vecdot", precision, preferred_element_type)
    _core.check_ranks("vecdot", (x1, x2))
    operands = [moveaxis(x, axis, -1) for x in (u.conj(x1), x2)]
    labels = [(*_batch(ndim_of(x) - 1), "n") for x in operands]
    out = _batch(max(map(ndim_of, operands)) - 1)
    return product("vecdot", operands[0], labels[0], operands[1], labels[1], out, *options)


@eager_entry(2)
def inner(a, b, *, precision=None, preferred_element_type=None):
    """Product summed over the last axes of both; with a number, element by element.

    For the arguments see `dot`. The result has the other axes of `a`, then those of `b`.

    Examples:
      >>> wnp.inner(wnp.array([[1, 2], [3, 4]]), wnp.array([[10, 1], [0, 1]]))
      Array([[12,  2],
             [34,  4]], dtype=int32)
    """
    options = _options("inner", precision, preferred_element_type)
    lhs, rhs = _axes(a, "a"), _axes(b, "b")
    if lhs and rhs:
        rhs = (*rhs[:-1], lhs[-1])
    return product("inner", a, lhs, b, rhs, _others(lhs, rhs), *options)


@eager_entry(2)
def vdot(a, b, *, precision=None, preferred_element_type=None):
    """Sum of the products of all elements, those of `a` conjugated, in row-major order.

    For the arguments see `dot`; the arrays have the same number of elements.

    Examples:
      >>> wnp.vdot(wnp.array([[1, 2], [3, 4]]), wnp.array([[10, 1], [0, 1]]))
      Array(16, dtype=int32)
    """
    options = _options("vdot", precision, preferred_element_type)
    return _vdot(a, b, options=options)


@composite(static_argnames=("options",))
def _vdot(a, b, *, options):
    return product("vdot", flattened(u.conj(a)), ("i",), flattened(b), ("i",), (), *options)


@eager_entry(2)
def outer(a, b, out=None):
    """Matrix of the products of each element of `a` (rows) with each of `b` (columns).

    `out` must be None.

    Examples:
      >>> wnp.outer(wnp.array([1, 2]), wnp.array([3, 4, 5]))
      Array([[ 3,  4,  5],
             [ 6,  8, 10]], dtype=int32)
    """
    reject_out("outer", out)
    return _outer(a, b)


@composite
def _outer(a, b):
    _core.result_type(a, b)  # strict promotion forbids some
    rows = lax_shape.expand_dims(flattened(a), (1,))
    return u.multiply(rows, lax_shape.expand_dims(flattened(b), (0,)))


@eager_entry(2, "axes")
def tensordot(
    a, b, axes: Any = 2, *, precision=None, preferred_element_type=None, out_sharding=None
):
    """Product summed over several axes.

    Args:
      a, b: arrays.
      axes: a number n for the last n axes of `a` with the first n of `b`, none if it is negative;
        or a pair of axes, or of sequences of axes, of `a` and of `b`, that belong together.
      precision: see `weft.lax.Precision`.
      preferred_element_type: dtype in which to sum up, and of the result.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array with the other axes of `a`, then those of `b`.

    Raises AttributeValueError (a ValueError) for another number of axes of one than of the other,
    ShapeError for more axes than there are.

    Examples:
      >>> wnp.tensordot(wnp.ones((2, 3, 4)), wnp.ones((4, 3, 5)), axes=([1, 2], [1, 0])).shape
      (2, 5)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding,
            "tensordot",
            lambda: tensordot(
                a, b, axes, precision=precision, preferred_element_type=preferred_element_type
            ),
        )
    options = _options("tensordot", precision, preferred_element_type)
    lhs, rhs = _axes(a, "a"), list(_axes(b, "b"))
    try:
        count = operator.index(axes)
    except TypeError:
        if len(axes) != 2:
            raise AttributeValueError(
                f"[tensordot] expected a number or a pair as axes; got {axes}"
            ) from None
        axes_a, axes_b = (static_ints(each, "tensordot", "axes") for each in axes)
    else:
        count = max(count, 0)
        if count > min(len(lhs), len(rhs)):
            raise ShapeError(
                f"[tensordot] expected axes of at most the number of axes of both arrays; "
                f"got axes={count} for shapes {shape_of(a)} and {shape_of(b)}"
            )
        axes_a, axes_b = range(len(lhs) - count, len(lhs)), range(count)
    if len(axes_a) != len(axes_b):
        raise AttributeValueError(
            f"[tensordot] expected as many axes of a as of b; got {axes_a} and {axes_b}"
        )
    axes_a = normalize_axes(axes_a, len(lhs), "tensordot")
    axes_b = normalize_axes(axes_b, len(rhs), "tensordot")
    for axis_a, axis_b in zip(axes_a, axes_b, strict=True):
        rhs[axis_b] = lhs[axis_a]
    return product("tensordot", a, lhs, b, tuple(rhs), _others(lhs, rhs), *options)


@composite
def kron(a, b):
    """Kronecker product: each element of `a` replaced by its product with all of `b`.

    An operand with fewer axes is extended with ones in front.

    Examples:
      >>> wnp.kron(wnp.array([1, 10]), wnp.array([1, 2, 3]))
      Array([ 1,  2,  3, 10, 20, 30], dtype=int32)
    """
    _core.result_type(a, b)  # which strict promotion may forbid
    rank = max(ndim_of(a), ndim_of(b))
    a, b = lax_shape.broadcast_to_rank(a, rank), lax_shape.broadcast_to_rank(b, rank)
    shape = [m * n for m, n in zip(shape_of(a), shape_of(b), strict=True)]
    a = lax_shape.expand_dims(a, range(1, 2 * rank, 2))
    b = lax_shape.expand_dims(b, range(0, 2 * rank, 2))
    return lax_shape.reshape(u.multiply(a, b), shape)


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Cross products of vectors with two or three components.

    Args:
      a, b: arrays of vectors; the axes other than those of the components broadcast together.
      axisa, axisb: the axes of the components.
      axisc: the axis of the components of the result.
      axis: stands for all three, if given.

    Returns:
      Array of vectors with three components; of numbers (the third component) if both vectors have
      two.

    Raises ShapeError for vectors of other than two or three components.

    Examples:
      >>> wnp.cross(wnp.array([1, 0, 0]), wnp.array([0, 1, 0]))
      Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    axisa = normalize_axis(axisa, ndim_of(a), "cross")
    axisb = normalize_axis(axisb, ndim_of(b), "cross")
    if not {shape_of(a)[axisa], shape_of(b)[axisb]} <= {2, 3}:
        raise ShapeError(
            "[cross] expected vectors with two or three components; got shapes "
            f"{shape_of(a)} and {shape_of(b)} with axes {axisa} and {axisb}"
        )
    return _cross(a, b, axisa=axisa, axisb=axisb, axisc=operator.index(axisc))


@composite(static_argnames=("axisa", "axisb", "axisc"))
def _cross(a, b, *, axisa, axisb, axisc):
    def components(x, axis):
        size = shape_of(x)[axis]
        return [index_in_dim(x, i, axis, keepdims=False) for i in range(size)]

    a, b = _core.promote_dtypes(a, b)
    a, b = components(a, axisa), components(b, axisb)
    third = u.subtract(u.multiply(a[0], b[1]), u.multiply(a[1], b[0]))
    if len(a) == len(b) == 2:
        return strong(third)
    if len(a) == 2:
        first, second = u.multiply(a[1], b[2]), u.negative(u.multiply(a[0], b[2]))
    elif len(b) == 2:
        first, second = u.negative(u.multiply(a[2], b[1])), u.multiply(a[2], b[0])
    else:
        first = u.subtract(u.multiply(a[1], b[2]), u.multiply(a[2], b[1]))
        second = u.subtract(u.multiply(a[2], b[0]), u.multiply(a[0], b[2]))
    return strong(lax_shape.stack([first, second, third], axisc))
