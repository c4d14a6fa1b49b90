"""Keys of the random number generator, and the bits that they stand for.

A key is an array of two 32-bit words. The generator, threefry2x32, enciphers a counter under a
key: element i of a random array comes from the counter i, so that all elements are independent of
how the array is computed. The streams are those that JAX made standard.
"""

import math

import numpy as np

from weft import _core
from weft._arguments import shape_of, static_shape
from weft._jit import composite
from weft.dtypes import as_dtype, canonicalize_dtype, dtype_of, is_bool, is_integer, x64_enabled
from weft.errors import AttributeValueError, DTypeError, ShapeError
from weft.lax._shape import reshape

_U32 = np.dtype("uint32")
_MASK = 0xFFFFFFFF


def key(seed, *, impl=None):
    """The key for a seed: an integer, or an integer array without axes.

    With 64-bit dtypes off only the lowest 32 bits of the seed count.
    """
    _check_impl(impl, "key")
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, np.bool_):
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise OverflowError(f"[key] expected a seed of at most 64 bits; got {seed}")
        high = (seed >> 32) & _MASK if x64_enabled() else 0
        return _core.asarray(np.array([high, seed & _MASK], np.uint32))
    shape, dtype, _ = _core.typeof(seed)
    if not (is_integer(dtype) or is_bool(dtype)):
        raise DTypeError(f"[key] expected an integer seed; got {dtype}")
    if shape:
        raise ShapeError(
            f"[key] expected one seed; got an array of shape {shape}. For several keys use "
            "weft.vmap(weft.random.key)"
        )
    return _key(seed)


PRNGKey = key


@composite
def _key(seed):
    dtype = dtype_of(seed)
    high = np.uint32(0)
    if dtype.itemsize == 8:
        shifted = _core.bind("shift_right_logical", seed, dtype.type(32))
        high = _core.astype(shifted, _U32)
    return pair(high, _core.astype(seed, _U32))


def pair(first, second):
    """Two arrays of one shape along a new last axis."""
    shape = shape_of(first)
    shape = shape if shape else shape_of(second)
    words = [
        _core.bind(
            "broadcast_in_dim",
            word,
            shape=(*shape, 1),
            broadcast_dimensions=tuple(range(len(shape_of(word)))),
        )
        for word in (first, second)
    ]
    return _core.bind("concatenate", *words, dimension=len(shape))


def key_data(keys):
    """The words of keys: the array itself."""
    return _core.asarray(keys)


def _check_impl(impl, function):
    if impl not in (None, "threefry2x32", "fry"):
        raise AttributeValueError(f"[{function}] expected impl 'threefry2x32'; got {impl!r}")


def wrap_key_data(key_bits_array, *, impl=None):
    """Keys from their words, the last axis of an array of uint32; `impl` as for `key`."""
    _check_impl(impl, "wrap_key_data")
    key_bits_array = _core.asarray(key_bits_array)
    if dtype_of(key_bits_array) != _U32 or shape_of(key_bits_array)[-1:] != (2,):
        raise DTypeError(
            "[wrap_key_data] expected uint32 words along a last axis of size 2; got "
            f"{dtype_of(key_bits_array)}{list(shape_of(key_bits_array))}"
        )
    return key_bits_array


def checked_key(key, function):
    """Raises unless `key` is one key."""
    shape, dtype, _ = _core.typeof(key)
    if dtype != _U32 or shape[-1:] != (2,):
        raise DTypeError(
            f"[{function}] expected a key as weft.random.key gives it, uint32[2]; "
            f"got {dtype}{list(shape)}"
        )
    if len(shape) != 1:
        raise ShapeError(
            f"[{function}] expected one key; got an array of keys of shape {shape[:-1]}. Use "
            f"weft.vmap(weft.random.{function})"
        )
    return key


def split(key, num=2):
    """New keys from one, an array of shape `(num, 2)`; `num` may also be a shape.

    The key itself should not be used again.
    """
    return _split(checked_key(key, "split"), shape=static_shape(num, "split"))


@composite(static_argnames=("shape",))
def _split(key, *, shape):
    return pair(*words(key, shape))


def fold_in(key, data):
    """The key that belongs to a key and an integer of 32 bits."""
    key = checked_key(key, "fold_in")
    if isinstance(data, (int, np.integer)):
        if not 0 <= data <= _MASK:
            raise OverflowError(f"[fold_in] expected an integer of 32 bits; got {data}")
        data = np.uint32(data)
    if shape_of(data):
        raise ShapeError(
            f"[fold_in] expected one integer; got an array of shape {shape_of(data)}. Use weft.vmap"
        )
    return _fold_in(key, data)


@composite
def _fold_in(key, data):
    data = _core.astype(data, _U32)
    return pair(*_threefry(key, np.uint32(0), data))


def _threefry(key, high, low):
    return _core.bind("threefry2x32", key[0], key[1], high, low)


def words(key, shape):
    """Two words of random bits for each element of a shape."""
    size = math.prod(shape)
    if size > 2**32:
        raise AttributeValueError(
            f"[random] expected a shape of at most 2**32 elements; got {shape}"
        )
    count = _core.bind("iota", dtype=_U32, shape=(size,), dimension=0)
    # Flat until here: XLA takes long for operations on arrays of many axes.
    return tuple(reshape(word, shape) for word in _threefry(key, np.uint32(0), count))


def bits(key, shape=(), dtype=None):
    """Random bits, as unsigned integers.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: an unsigned integer dtype; by default the widest that is enabled, uint32 or uint64.
    """
    dtype = canonicalize_dtype(np.uint64 if dtype is None else dtype)
    if as_dtype(dtype).kind != "u":
        raise DTypeError(f"[bits] expected an unsigned integer dtype; got {dtype}")
    return _bits(checked_key(key, "bits"), shape=static_shape(shape, "bits"), dtype=dtype)


@composite(static_argnames=("shape", "dtype"))
def _bits(key, *, shape, dtype):
    return random_bits(key, shape, dtype)


def random_bits(key, shape, dtype):
    """`bits`, for use in composites."""
    first, second = words(key, shape)
    if dtype.itemsize < 8:
        return _core.astype(_core.bind("xor", first, second), dtype)
    first, second = (_core.astype(word, dtype) for word in (first, second))
    return _core.bind("or", _core.bind("shift_left", first, dtype.type(32)), second)
