"""Greatest common divisors, and bits packed into bytes."""

import numpy as np

from weft import _core
from weft._arguments import ndim_of, normalize_axis, shape_of, static_int, strong
from weft._jit import composite
from weft.dtypes import dtype_of, is_bool, is_integer
from weft.errors import AttributeValueError, DTypeError
from weft.lax._control import while_loop
from weft.lax._shape import concatenate, pad, reshape
from weft.lax._slice import sliced
from weft.numpy import _reductions as r, _ufuncs as u
from weft.numpy._products import flattened
from weft.numpy._select import choose
from weft.numpy._shape import moveaxis


def _integers(function, x1, x2):
    weak = _core.typeof(x1)[2] and _core.typeof(x2)[2]
    x1, x2 = _core.promote_dtypes(x1, x2)
    if not is_integer(dtype_of(x1)):
        raise AttributeValueError(
            f"[{function}] expected arrays of integers; got dtype {dtype_of(x1)}"
        )
    # A bool beside a Python integer makes no weak type here.
    return _core.broadcast_arrays(*(x if weak else strong(x) for x in (x1, x2)))


@composite(broadcasts=True)
def gcd(x1, x2):
    """Greatest common divisors of integers, not negative; gcd(0, x) is abs(x).

    A bool beside an integer counts as one.

    Examples:
      >>> wnp.gcd(wnp.array([12, 0]), wnp.array([-18, 5]))
      Array([6, 5], dtype=int32)
    """
    return _gcd(*_integers("gcd", x1, x2))


def _gcd(x1, x2):
    weak = _core.typeof(x1)[2] and _core.typeof(x2)[2]
    dtype = dtype_of(x1)

    def step(pair):
        a, b = pair
        # A remainder by 0 never counts.
        return b, choose(u.equal(b, 0), 0, _core.bind("rem", a, choose(u.equal(b, 0), 1, b)))

    pair = tuple(_core.astype(u.absolute(x), dtype) for x in (x1, x2))
    larger, smaller = u.maximum(*pair), u.minimum(*pair)

    def keeps(pair):
        a, b = step(pair)
        return choose(u.equal(pair[1], 0), pair[0], a), choose(u.equal(pair[1], 0), 0, b)

    result = while_loop(lambda pair: r.any(u.not_equal(pair[1], 0)), keeps, (larger, smaller))[0]
    return _core.astype(result, dtype, weak)


@composite(broadcasts=True)
def lcm(x1, x2):
    """Least common multiples of integers, not negative; lcm(0, x) is 0.

    Examples:
      >>> wnp.lcm(wnp.array([4, 0]), wnp.array([6, 5]))
      Array([12,  0], dtype=int32)
    """
    x1, x2 = _integers("lcm", x1, x2)
    divisor = _gcd(x1, x2)
    quotient = u._quotient(u.absolute(x1), choose(u.equal(divisor, 0), 1, divisor))
    return u.multiply(quotient, u.absolute(x2))


def _check_order(function, bitorder):
    if bitorder not in ("big", "little"):
        raise AttributeValueError(
            f"[{function}] expected bitorder 'big' or 'little'; got {bitorder!r}"
        )


def _weights(bitorder):
    weights = 1 << np.arange(8)
    return (weights if bitorder == "little" else weights[::-1]).astype(np.uint8)


def packbits(a, axis=None, bitorder="big"):
    """Bits packed into bytes, eight elements along an axis into one.

    Args:
      a: array of integers or bool; all but zero is a 1. Missing elements at the end are 0.
      axis: the axis; None for the flattened array.
      bitorder: whether the first element is the highest ("big") or lowest bit ("little").

    Returns:
      uint8 array, with an eighth of the size along the axis, rounded up.

    Raises DTypeError for other than integers and bools.

    Examples:
      >>> wnp.packbits(wnp.array([0, 0, 0, 0, 0, 1, 0, 1, 1]))
      Array([  5, 128], dtype=uint8)
    """
    if not (is_integer(dtype_of(a)) or is_bool(dtype_of(a))):
        raise DTypeError(f"[packbits] expected integers or bool; got dtype {dtype_of(a)}")
    _check_order("packbits", bitorder)
    if axis is not None:
        axis = normalize_axis(axis, ndim_of(a), "packbits")
    return _packbits(a, axis=axis, bitorder=bitorder)


@composite(static_argnames=("axis", "bitorder"))
def _packbits(a, *, axis, bitorder):
    if axis is None:
        a, axis = flattened(a), 0
    bits = moveaxis(_core.astype(u.not_equal(a, 0), "uint8"), axis, -1)
    missing = -shape_of(bits)[-1] % 8
    config = [(0, 0, 0)] * (ndim_of(bits) - 1) + [(0, missing, 0)]
    bits = pad(bits, _core.astype(0, "uint8"), config)
    *rest, size = shape_of(bits)
    bits = u.multiply(reshape(bits, (*rest, size // 8, 8)), _core.asarray(_weights(bitorder)))
    return moveaxis(r.sum(bits, -1, dtype="uint8"), -1, axis)


def unpackbits(a, axis=None, count=None, bitorder="big"):
    """The bits of bytes, eight elements along an axis for one.

    Args:
      a: uint8 array.
      axis: the axis; None for the flattened array.
      count: how many bits to return along the axis: missing ones are 0; as many as a negative
        number says are left out. None for all.
      bitorder: whether the highest ("big") or the lowest bit ("little") comes first.

    Returns:
      uint8 array of zeros and ones.

    Raises DTypeError for other than uint8.

    Examples:
      >>> wnp.unpackbits(wnp.array([5], dtype="uint8"))
      Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    if dtype_of(a) != np.uint8:
        raise DTypeError(f"[unpackbits] expected an array of uint8; got dtype {dtype_of(a)}")
    _check_order("unpackbits", bitorder)
    if axis is not None:
        axis = normalize_axis(axis, ndim_of(a), "unpackbits")
    if count is not None:
        count = static_int(count, "unpackbits", "count")
    return _unpackbits(a, axis=axis, count=count, bitorder=bitorder)


@composite(static_argnames=("axis", "count", "bitorder"))
def _unpackbits(a, *, axis, count, bitorder):
    if axis is None:
        a, axis = flattened(a), 0
    a = moveaxis(a, axis, -1)
    *rest, size = shape_of(a)
    bits = u.bitwise_and(a[..., None], _core.asarray(_weights(bitorder)))
    bits = reshape(_core.astype(u.not_equal(bits, 0), "uint8"), (*rest, size * 8))
    if count is not None:
        count = max(count, 0) if count >= 0 else max(size * 8 + count, 0)
        if count <= size * 8:
            bits = sliced(bits, 0, count, axis=-1)
        else:
            more = _core.broadcast_to(_core.astype(0, "uint8"), (*rest, count - size * 8))
            bits = concatenate((bits, more), ndim_of(bits) - 1)
    return moveaxis(bits, -1, axis)
