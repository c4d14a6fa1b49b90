"""What the methods of `ufunc` do: in terms of reductions where there is one, else by a scan."""

import math

import numpy as np

from weft import _core
from weft._arguments import ndim_of, normalize_axes, normalize_axis, shape_of, static_int
from weft._jit import composite
from weft.dtypes import dtype_of, is_bool, is_inexact, is_integer, promote_types, requested_dtype
from weft.errors import AttributeValueError, DTypeError, ShapeError
from weft.lax._control import scan
from weft.lax._shape import concatenate, expand_dims
from weft.numpy import _indexing as indexing, _reductions as reductions, _ufuncs as u
from weft.numpy._creation import arange
from weft.numpy._cumulative import cumprod, cumsum
from weft.numpy._division_powers import logaddexp
from weft.numpy._indexing import getitem
from weft.numpy._products import flattened
from weft.numpy._select import as_bool, choose
from weft.numpy._shape import moveaxis
from weft.numpy._take import take


def _require_binary(ufunc, method):
    if ufunc.nin != 2:
        raise AttributeValueError(
            f"[{ufunc.__name__}.{method}] expected a function of two numbers; it is one of "
            f"{ufunc.nin}"
        )
    if ufunc.nout != 1:
        raise AttributeValueError(
            f"[{ufunc.__name__}.{method}] expected a function with one result; got {ufunc.nout}"
        )


def _requested(ufunc, method, dtype):
    return None if dtype is None else requested_dtype(dtype, f"{ufunc.__name__}.{method}")


def reduce(ufunc, a, axis, dtype, keepdims, initial, where):
    """See `ufunc.reduce`."""
    _require_binary(ufunc, "reduce")
    if where is not None and initial is None and ufunc.identity is None:
        raise AttributeValueError(
            f"[{ufunc.__name__}.reduce] expected an initial value together with where: there is no "
            "identity"
        )
    own = ufunc._own["reduce"]
    if own is not None:
        options = {} if dtype is None else {"dtype": dtype}
        return own(a, axis=axis, keepdims=keepdims, initial=initial, where=where, **options)
    if isinstance(axis, tuple):
        raise NotImplementedError(
            f"[{ufunc.__name__}.reduce] expected one axis or None; got {axis}"
        )
    if axis is not None:
        axis = normalize_axis(axis, ndim_of(a), f"{ufunc.__name__}.reduce")
    shape = shape_of(a)
    size = int(np.prod(shape)) if axis is None else shape[axis]
    if not size and initial is None and ufunc.identity is None:
        raise AttributeValueError(
            f"[{ufunc.__name__}.reduce] expected elements to begin with: there is no identity; got "
            f"shape {shape}"
        )
    return _reduce(
        a,
        initial,
        where,
        ufunc=ufunc,
        axis=axis,
        dtype=_requested(ufunc, "reduce", dtype),
        keepdims=bool(keepdims),
    )


@composite(static_argnames=("ufunc", "axis", "dtype", "keepdims"))
def _reduce(a, initial, where, *, ufunc, axis, dtype, keepdims):
    shape = shape_of(a)
    if where is not None:
        where = _core.broadcast_to(as_bool(where), shape)
    if axis is None:
        a, where = flattened(a), None if where is None else flattened(where)
    else:
        a, where = moveaxis(a, axis, 0), None if where is None else moveaxis(where, axis, 0)
    a, dtype = _elements(ufunc, a, dtype)
    if initial is None:
        initial = ufunc.identity
    first = a[0] if initial is None else _core.astype(initial, dtype)
    if initial is None:
        a = a[1:]
    first = _core.broadcast_to(first, shape_of(a)[1:])

    def step(total, element):
        x, chosen = element
        combined = _kept(ufunc, ufunc(total, x), dtype)
        return combined if chosen is None else choose(chosen, combined, total), None

    total, _ = scan(step, _core.astype(first, dtype), (a, where))
    axes = tuple(range(len(shape))) if axis is None else (axis,)
    return reductions.restore_axes(total, shape, axes, keepdims)


def _elements(ufunc, a, dtype):
    """The elements in the dtype that results have, and this dtype."""
    if dtype is None:
        one = np.zeros((), dtype_of(a))
        dtype = dtype_of(ufunc(_core.asarray(one), _core.asarray(one)))
    return (as_bool(a) if is_bool(dtype) else _core.astype(a, dtype)), dtype


def _kept(ufunc, combined, dtype):
    """What the function made of two elements, in the dtype of elements; it may not be wider."""
    if promote_types(dtype_of(combined), dtype) != dtype:
        raise DTypeError(
            f"[{ufunc.__name__}] expected a function that gives {dtype} for elements of this "
            f"dtype; got {dtype_of(combined)}"
        )
    return _core.astype(combined, dtype)


def accumulate(ufunc, a, axis, dtype):
    """See `ufunc.accumulate`."""
    _require_binary(ufunc, "accumulate")
    own = ufunc._own["accumulate"]
    if own is not None:
        return own(a, axis=axis, dtype=dtype)
    name = f"{ufunc.__name__}.accumulate"
    if axis is None:
        if ndim_of(a) != 1:
            raise AttributeValueError(f"[{name}] expected one axis; got None, of {ndim_of(a)} axes")
        axis = 0
    axis = normalize_axis(static_int(axis, name, "the axis"), ndim_of(a), name)
    dtype = _requested(ufunc, "accumulate", dtype)
    return _accumulate(a, ufunc=ufunc, axis=axis, dtype=dtype)


@composite(static_argnames=("ufunc", "axis", "dtype"))
def _accumulate(a, *, ufunc, axis, dtype):
    a, dtype = _elements(ufunc, moveaxis(a, axis, 0), dtype)
    if not shape_of(a)[0]:
        return moveaxis(a, 0, axis)

    def step(total, x):
        total = _kept(ufunc, ufunc(total, x), dtype)
        return total, total

    _, rest = scan(step, a[0], a[1:])
    return moveaxis(concatenate((expand_dims(a[0], (0,)), rest), 0), 0, axis)


def at(ufunc, a, indices, b):
    """See `ufunc.at`."""
    name = f"{ufunc.__name__}.at"
    if b is None and ufunc.nin != 1 or b is not None and ufunc.nin == 1:
        raise TypeError(
            f"[{name}] expected {ufunc.nin - 1} arrays to apply; got {int(b is not None)}"
        )
    own = ufunc._own["at"]
    if own is not None:
        return own(a, indices, b)
    shape, dtype, _ = _core.typeof(a)
    chosen = getitem(a, indices)
    operands = () if b is None else (_core.broadcast_to(b, shape_of(chosen)),)
    if dtype_of(ufunc(chosen, *operands)) != dtype:
        a = _core.astype(a, dtype_of(ufunc(chosen, *operands)))
    # Where each of the chosen elements stands, one after the other.
    count = int(np.prod(shape))
    places = getitem(arange(count).reshape(shape), indices, "fill", -1)
    return _at(a, flattened(places), [flattened(x) for x in operands], ufunc=ufunc)


@composite(static_argnames=("ufunc",))
def _at(a, places, operands, *, ufunc):
    shape, dtype, _ = _core.typeof(a)
    a = flattened(a)

    def step(a, element):
        place, operands = element
        x = getitem(a, place, "clip")
        updated = _core.astype(ufunc(x, *operands), dtype)
        return indexing.update("set", a, choose(u.less(place, 0), len(a), place), updated), None

    a, _ = scan(step, a, (places, operands))
    return a.reshape(shape)


def reduceat(ufunc, a, indices, axis, dtype):
    """See `ufunc.reduceat`."""
    _require_binary(ufunc, "reduceat")
    own = ufunc._own["reduceat"]
    if own is not None:
        return own(a, indices, axis=axis, dtype=dtype)
    name = f"{ufunc.__name__}.reduceat"
    if ndim_of(a) == 0:
        raise ShapeError(f"[{name}] expected an array with at least one axis; got {shape_of(a)}")
    if ndim_of(indices) != 1:
        raise ShapeError(
            f"[{name}] expected one-dimensional indices; got shape {shape_of(indices)}"
        )
    if not is_integer(dtype_of(indices)):
        raise AttributeValueError(f"[{name}] expected integer indices; got {dtype_of(indices)}")
    if axis is None or isinstance(axis, (tuple, list)):
        raise AttributeValueError(f"[{name}] expected one axis; got {axis}")
    axis = normalize_axis(axis, ndim_of(a), name)
    return _reduceat(a, indices, ufunc=ufunc, axis=axis)


@composite(static_argnames=("ufunc", "axis"))
def _reduceat(a, indices, *, ufunc, axis):
    a = moveaxis(a, axis, 0)
    dtype, size = dtype_of(a), shape_of(a)[0]
    first = take(a, indices, 0, mode="fill")
    ends = concatenate((indices[1:], _core.astype(np.full(1, size), dtype_of(indices))), 0)
    axes = tuple(range(1, ndim_of(a)))

    def step(total, element):
        place, x = element
        inside = u.logical_and(u.less(indices, place), u.less(place, ends))
        x = _core.broadcast_to(x, shape_of(total))
        combined = _kept(ufunc, ufunc(total, x), dtype)
        return choose(expand_dims(inside, axes), combined, total), None

    places = _core.astype(arange(size), dtype_of(indices))
    total, _ = scan(step, first, (places, a))
    return moveaxis(total, 0, axis)


def outer(ufunc, a, b):
    """See `ufunc.outer`."""
    _require_binary(ufunc, "outer")
    ndim = ndim_of(a)
    a = expand_dims(_core.asarray(a), tuple(range(ndim, ndim + ndim_of(b))))
    return ufunc(a, b)


# What weft.numpy's own functions do in place of going through the elements.
add_reduce, multiply_reduce = reductions.sum, reductions.prod
add_accumulate, multiply_accumulate = cumsum, cumprod


def _update(kind, of_bools):
    def update(a, indices, b):
        a = _core.asarray(a)
        return indexing.update(of_bools if is_bool(dtype_of(a)) else kind, a, indices, b)

    return update


# What adding and multiplying truth values is.
add_at, subtract_at, multiply_at = map(_update, ("add", "sub", "mul"), ("max", "sub", "min"))


def _extremum(function):
    def reduction(a, axis=0, dtype=None, **options):
        a = a if dtype is None else _core.astype(a, requested_dtype(dtype, function.__name__))
        return function(a, axis, **options)

    return reduction


maximum_reduce, minimum_reduce = _extremum(reductions.max), _extremum(reductions.min)


def _all_ones(dtype):
    return np.invert(np.zeros((), dtype))


# The operation, the function of two elements, what changes no element, and whether elements are
# taken as true or false.
_BITS = {
    "bitwise_and": (
        "reduce_and",
        u.bitwise_and,
        _all_ones,
        False,
    ),
    "bitwise_or": ("reduce_or", u.bitwise_or, lambda dtype: 0, False),
    "bitwise_xor": ("reduce_xor", u.bitwise_xor, lambda dtype: 0, False),
    "logical_and": ("reduce_and", u.bitwise_and, lambda dtype: 1, True),
    "logical_or": ("reduce_or", u.bitwise_or, lambda dtype: 0, True),
    "logical_xor": ("reduce_xor", u.bitwise_xor, lambda dtype: 0, True),
}


def _of_bits(name):
    def reduction(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        axes = normalize_axes(axis, ndim_of(a), f"{name}.reduce")
        own, logical = dtype_of(a), _BITS[name][-1]
        if not logical and not (is_bool(own) or is_integer(own)):
            raise AttributeValueError(f"[{name}.reduce] expected integers or bools; got {own}")
        if dtype is None:
            dtype = np.dtype(bool) if logical else own
        else:
            dtype = requested_dtype(dtype, f"{name}.reduce")
        if is_inexact(dtype):
            raise DTypeError(f"[{name}.reduce] expected a dtype of integers or bool; got {dtype}")
        return _reduce_bits(
            a, initial, where, name=name, axes=axes, dtype=dtype, keepdims=bool(keepdims)
        )

    return reduction


@composite(static_argnames=("name", "axes", "dtype", "keepdims"))
def _reduce_bits(a, initial, where, *, name, axes, dtype, keepdims):
    op, function, identity, logical = _BITS[name]
    shape = shape_of(a)
    working = np.dtype(bool) if logical else dtype

    def converted(x):
        return as_bool(x) if is_bool(working) else _core.astype(x, working)

    a = converted(a)
    if where is not None:
        neutral = converted(identity(working))
        a = _core.broadcast_to(choose(where, a, neutral), shape)
    if axes:
        a = _core.bind(op, a, axes=axes)
    if initial is not None:
        a = function(converted(initial), a)
    return reductions.restore_axes(_core.astype(a, dtype), shape, axes, keepdims)


bitwise_and_reduce, logical_and_reduce = _of_bits("bitwise_and"), _of_bits("logical_and")
bitwise_or_reduce, logical_or_reduce = _of_bits("bitwise_or"), _of_bits("logical_or")
bitwise_xor_reduce, logical_xor_reduce = _of_bits("bitwise_xor"), _of_bits("logical_xor")


def logaddexp_reduce(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
    """log(sum(exp(a))); `dtype` has no effect."""
    from weft.nn._normalized import logsumexp

    total = logsumexp(a, axis, keepdims=keepdims, where=where)
    return total if initial is None else logaddexp(initial, total)


def logaddexp2_reduce(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
    """log2(sum(2**a)); `dtype` has no effect."""
    scale = math.log(2)
    initial = None if initial is None else u.multiply(initial, scale)
    total = logaddexp_reduce(u.multiply(a, scale), axis, None, keepdims, initial, where)
    return u.divide(total, scale)
