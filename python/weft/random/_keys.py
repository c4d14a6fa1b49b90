"""Keys of the random number generators, and the bits that they stand for.

A typed key is an element of an array of dtype `key<fry>`, or that of another implementation. An
untyped key is an array of its words, uint32, for the default implementation. Functions take both,
and give new keys of the kind that they got.
"""

import functools
import math
import sys
from typing import NewType

import numpy as np

from weft import _core
from weft._arguments import shape_of, static_shape
from weft._jit import composite
from weft._types.keys import keys as _known
from weft._warnings import warn
from weft.dtypes import (
    canonicalize_dtype,
    dtype_of,
    is_complex,
    is_integer,
    is_key,
    issubdtype,
    requested_dtype,
    x64_enabled,
)
from weft.errors import AttributeValueError, DTypeError, ForeignArrayError, OperandError, ShapeError
from weft.lax._shape import reshape
from weft.lax._sharding import can_be_split
from weft.random._implementations import (
    RBG_IMPL,
    THREEFRY,
    are_plain,
    default_impl,
    dtype_of_impl,
    impl_of,
    is_named,
    partitionable,
    resolve,
    sequential,
    setting,
)

Key = NewType("Key", _core.Array)
Key.__doc__ = """What annotations call a random key: an array, at run time.

Examples:
  >>> def draw(key: weft.random.Key):
  ...     return weft.random.uniform(key, (2,)).shape
  >>> draw(weft.random.key(0))
  (2,)
"""
_U32 = np.dtype("uint32")
_MAKING_KEYS = "\n  A key comes first: key = weft.random.key(0) makes one."
_MASK = 0xFFFFFFFF


# ---- typed keys and their words


def wrapped(words, impl):
    """Typed keys from their words."""
    key_shape = impl.key_shape
    if len(key_shape) != 1 or key_shape == (1,):
        outer = shape_of(words)[: -len(key_shape)]
        size = math.prod(key_shape)
        words = reshape(words, outer if size == 1 else (*outer, size))
    return _core.bind("bitcast_convert_type", words, new_dtype=dtype_of_impl(impl))


def unwrapped(keys):
    """The words of typed keys."""
    dtype = dtype_of(keys)
    key_shape = impl_of(dtype).key_shape
    words = _core.bind("bitcast_convert_type", keys, new_dtype=_U32)
    if len(key_shape) != 1 or key_shape == (1,):
        words = reshape(words, (*shape_of(keys), *key_shape))
    return words


def _parts(key):
    """The implementation of a key, its words, and what makes keys of its kind from words."""
    dtype = dtype_of(key)
    if not is_key(dtype):
        return THREEFRY, key, lambda words: words
    impl = impl_of(dtype)
    return impl, unwrapped(key), lambda words: wrapped(words, impl)


def has_bits_of_lanes(key):
    """Whether each lane of vmap gets the bits of its own key, as it would alone; not with rbg."""
    return _parts(key)[0].random_bits is not RBG_IMPL.random_bits


def _type_of(keys, function):
    try:
        return _core.typeof(keys)[:2]
    except ForeignArrayError:
        raise
    except OperandError:
        raise OperandError(
            f"[{function}] expected a key; got {type(keys).__name__}: {keys!r:.60}{_MAKING_KEYS}"
        ) from None


def checked_key(key, function):
    """The key, for use in composites: what is untyped is one of threefry2x32 there.

    Raises unless `key` is one key.
    """
    if are_plain():
        shape, dtype = _type_of(key, function)
        if not shape if is_key(dtype) else dtype is _U32 and shape == (2,):
            return key
    shape, dtype = _checked_keys(key, function)
    typed = is_key(dtype)
    impl = impl_of(dtype) if typed else default_impl()
    outer = shape if typed else shape[: -len(impl.key_shape)]
    if outer:
        raise ShapeError(
            f"[{function}] expected one key; got an array of keys of shape {outer}. Use "
            f"weft.vmap(weft.random.{function})"
        )
    if typed and function != "fold_in" and setting("weft_debug_key_reuse"):
        from weft.random import _reuse  # circle: it reads words of keys

        _reuse.note_use(key, function, sys._getframe(1))
    if not setting("weft_threefry_partitionable"):
        impl, words = sequential(impl), unwrapped(key) if typed else key
        return wrapped(words, impl)
    return key if typed or impl is THREEFRY else wrapped(key, impl)


def _checked_keys(keys, function, impl=None):
    """Shape and dtype of keys; raises unless they are keys, of `impl` if they are untyped."""
    shape, dtype = _type_of(keys, function)
    if impl is None:
        if is_key(dtype):
            return shape, dtype
        if setting("weft_legacy_prng_key") != "allow":
            _reject_untyped(function)
        impl = default_impl()
    if dtype != _U32 or not shape or shape[-len(impl.key_shape) :] != impl.key_shape:
        raise DTypeError(
            f"[{function}] expected a key as weft.random.key gives it, or its words, uint32 of "
            f"shape {impl.key_shape}; got {getattr(dtype, 'name', dtype)}{list(shape)}"
            f"{_MAKING_KEYS}"
        )
    return shape, dtype


def _reject_untyped(function):
    policy = setting("weft_legacy_prng_key")
    text = (
        f"[{function}] expected a typed key, as weft_legacy_prng_key={policy!r} says; got one of "
        "uint32 words\n  Make keys with weft.random.key, or of words with "
        "weft.random.wrap_key_data."
    )
    if policy == "error":
        raise AttributeValueError(text)
    warn(text)


used_words = set()  # (dtype, bytes), of keys that were used where weft_debug_key_reuse was on


def _fresh(keys):
    """Keys that were made just now."""
    if used_words and is_key(dtype_of(keys)):
        from weft.random import _reuse  # circle: it reads words of keys

        _reuse.note_new(keys)
    return keys


# ---- making keys


def key(seed, *, impl=None, dtype=None):
    """A key for a seed: an integer, or an integer array without axes.

    With 64-bit dtypes off only the lowest 32 bits of the seed count.

    Args:
      seed: the seed. `vmap` makes keys of several.
      impl: the implementation: "threefry2x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32",
        "threefry4x32", a dtype of keys or what
        `weft.extend.random.define_prng_impl` returned; by default that of the setting
        weft_default_prng_impl.
      dtype: in place of `impl`, the dtype of the key.

    Returns an array of shape () and dtype `key<fry>`, or that of another implementation.
    Raises TypeError for a seed that is no integer or has axes, OverflowError for one of more than
    64 bits, ValueError for an unknown implementation.

    Examples:
      >>> weft.random.key(7).dtype
      key<fry>
    """
    impl = _chosen(impl, dtype, "key")
    return _fresh(wrapped(_seeded(seed, impl, "key"), impl))


def key_dtype(impl_spec=None):
    """The dtype of the keys of an implementation, `impl_spec`, given as for `key`.

    It is `key<fry>` for None, unless the setting weft_default_prng_impl says otherwise.

    Examples:
      >>> weft.random.key_dtype() == weft.random.key(0).dtype
      True
    """
    return dtype_of_impl(resolve(impl_spec, "key_dtype"))


def PRNGKey(seed, *, impl=None):
    """As `key`, but the words of the key: uint32 of shape (2,), or (4,) for "rbg".

    A typed key where the setting weft_enable_custom_prng is on.

    Examples:
      >>> weft.random.PRNGKey(7)
      Array([0, 7], dtype=uint32)
    """
    impl = _chosen(impl, None, "PRNGKey")
    words = _seeded(seed, impl, "PRNGKey")
    typed = setting("weft_enable_custom_prng")
    return wrapped(words, impl) if typed else _core.asarray(words)


def _chosen(impl, dtype, function):
    if impl is not None and dtype is not None:
        raise AttributeValueError(
            f"[{function}] expected impl or dtype; got both, {impl!r} and {dtype!r}"
        )
    if dtype is not None and not is_key(dtype):
        raise TypeError(f"[{function}] expected a dtype of keys; got {dtype!r}")
    return resolve(dtype if impl is None else impl, function)


def _seeded(seed, impl, function):
    """The words of a key."""
    offset = setting("weft_random_seed_offset")
    if isinstance(seed, int):
        seed, offset = int(seed) + offset, 0
        if not -(2**63) <= seed < 2**63:
            raise OverflowError(f"[{function}] expected a seed of at most 64 bits; got {seed}")
        if impl is THREEFRY:
            high = (seed >> 32) & _MASK if x64_enabled() else 0
            return np.array([high, seed & _MASK], np.uint32)
        if not x64_enabled():
            seed &= _MASK
            seed = np.int32(seed - 2**32 if seed >= 2**31 else seed)
    elif seed is None or isinstance(seed, (list, tuple)):
        raise OperandError(f"[{function}] expected an integer seed; got {seed!r}")
    shape, dtype, _ = _core.typeof(seed)
    if is_key(dtype):
        raise DTypeError(f"[{function}] expected an integer seed; got a key")
    if not is_integer(dtype):
        raise DTypeError(f"[{function}] expected an integer seed; got {dtype}")
    if shape:
        raise ShapeError(
            f"[{function}] expected one seed; got an array of shape {shape}. For several keys use "
            f"weft.vmap(weft.random.{function})"
        )
    if offset:
        seed = _core.asarray(seed) + offset
    return _seed(seed, impl=impl)


def seeded_keys(seeds, impl):
    """Typed keys for an array of seeds."""
    from weft._vmap import vmap

    make = functools.partial(key, impl=impl)
    for _ in shape_of(seeds):
        make = vmap(make)
    return make(seeds)


@composite(static_argnames=("impl",))
def _seed(seed, *, impl):
    return impl.seed(seed)


def key_data(keys):
    """The words of keys, uint32: of shape (2,) for each key of threefry2x32, (4,) for rbg.

    Untyped keys are returned as they are. TypeError for what are no keys.

    Examples:
      >>> weft.random.key_data(weft.random.key(7))
      Array([0, 7], dtype=uint32)
    """
    _, dtype = _checked_keys(keys, "key_data")
    return unwrapped(keys) if is_key(dtype) else _core.asarray(keys)


def wrap_key_data(key_bits_array, *, impl=None, dtype=None):
    """Typed keys from their words, the last axis of an array of uint32.

    `impl` and `dtype` as for `key`. TypeError for another dtype or size of the last axis.

    Examples:
      >>> words = weft.random.key_data(weft.random.key(7))
      >>> weft.random.wrap_key_data(words) == weft.random.key(7)
      Array(True, dtype=bool)
    """
    impl = _chosen(impl, dtype, "wrap_key_data")
    _checked_keys(key_bits_array, "wrap_key_data", impl)
    return _fresh(wrapped(_core.asarray(key_bits_array), impl))


def key_impl(keys):
    """The implementation of keys: its name, or for one of a user's the implementation itself.

    Examples:
      >>> str(weft.random.key_impl(weft.random.key(0, impl="rbg")))
      'rbg'
    """
    _, dtype = _checked_keys(keys, "key_impl")
    impl = impl_of(dtype) if is_key(dtype) else default_impl()
    return impl.name if is_named(impl) else impl


def clone(key):
    """The same keys, which may be used once more where the setting weft_debug_key_reuse is on.

    Any other array or number is copied.

    Examples:
      >>> key = weft.random.key(0)
      >>> weft.random.clone(key) == key
      Array(True, dtype=bool)
    """
    made = _core.asarray(key).copy()
    if setting("weft_debug_key_reuse") and is_key(dtype_of(made)):
        from weft.random import _reuse  # circle: it reads words of keys

        _reuse.note_clone(made)
    return made


# ---- using keys


def split(key, num=2):
    """New keys from one: `num` of them, or an array of keys of the shape `num`.

    The key itself should not be used again. Untyped keys give their words along a last axis.

    Examples:
      >>> keys = weft.random.split(weft.random.key(0), 3)
      >>> keys.shape
      (3,)
    """
    shape = static_shape(num, "split")
    return _as_given(key, _split(checked_key(key, "split"), shape=shape))


def _as_given(key, new):
    """New keys as they are for users: typed only if `key` is, and of the same implementation."""
    if are_plain() and not used_words:
        return new
    made, given = dtype_of(new), dtype_of(key)
    if made == given and (is_key(given) or not setting("weft_enable_custom_prng")):
        return _fresh(new)
    impl = partitionable(impl_of(made)) if is_key(made) else THREEFRY
    words = unwrapped(new) if is_key(made) else new
    typed = is_key(given) or setting("weft_enable_custom_prng")
    return _fresh(wrapped(words, impl) if typed else words)


@composite(static_argnames=("shape",))
def _split(key, *, shape):
    impl, words, rewrap = _parts(key)
    return rewrap(impl.split(words, shape))


def fold_in(key, data):
    """The key that belongs to a key and an integer of 32 bits.

    OverflowError for a Python integer beyond uint32; other numbers are converted to uint32.

    Examples:
      >>> key = weft.random.key(0)
      >>> weft.random.fold_in(key, 1) == weft.random.fold_in(key, 2)
      Array(False, dtype=bool)
    """
    given, key = key, checked_key(key, "fold_in")
    if isinstance(data, int):
        if not 0 <= data <= _MASK:
            raise OverflowError(f"[fold_in] expected an integer of 32 bits; got {data}")
        data = np.uint32(data)
    if is_complex(dtype_of(data)):
        raise DTypeError(f"[fold_in] expected an integer; got {dtype_of(data)}")
    if shape_of(data):
        raise ShapeError(
            f"[fold_in] expected one integer; got an array of shape {shape_of(data)}. Use weft.vmap"
        )
    return _as_given(given, _fold_in(key, data))


@composite
def _fold_in(key, data):
    impl, words, rewrap = _parts(key)
    return rewrap(impl.fold_in(words, _core.astype(data, _U32)))


@can_be_split
def bits(key, shape=(), dtype=None, *, out_sharding=None):
    """Random bits, as unsigned integers.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: an unsigned integer dtype; by default the widest that is enabled, uint32 or uint64.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    ValueError for another dtype. Those of 2 and 4 bits stand for uint8.

    Examples:
      >>> weft.random.bits(weft.random.key(0), (2, 3), "uint8").shape
      (2, 3)
    """
    dtype = canonicalize_dtype(np.uint64) if dtype is None else requested_dtype(dtype, "bits")
    if is_key(dtype) or not issubdtype(dtype, np.unsignedinteger):
        raise AttributeValueError(f"[bits] expected an unsigned integer dtype; got {dtype}")
    dtype = np.dtype(f"u{dtype.itemsize}")
    return _bits(checked_key(key, "bits"), shape=static_shape(shape, "bits"), dtype=dtype)


@composite(static_argnames=("shape", "dtype"))
def _bits(key, *, shape, dtype):
    return random_bits(key, shape, dtype)


def random_bits(key, shape, dtype):
    """`bits`, for use in composites."""
    impl, words, _ = _parts(key)
    return impl.random_bits(words, 8 * dtype.itemsize, shape)


def _lanes(fun, args, kwargs):
    from weft.random import _reuse  # circle: it reads words of keys

    return _reuse.of_lanes(fun, args, kwargs)


_known.words, _known.lanes = unwrapped, _lanes
_known.wrapped = lambda words, dtype: wrap_key_data(words, dtype=dtype)
