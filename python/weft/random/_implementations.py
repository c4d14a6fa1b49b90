"""What a generator of random numbers is made of, and those that there are.

An implementation is a record of four functions on the words of keys, arrays of uint32 with the
shape `key_shape`; its keys have a dtype of their own. The streams are those that JAX made standard:

- threefry2x32 (`fry`) enciphers a counter under a key of two words (Salmon et al., "Parallel random
  numbers: as easy as 1, 2, 3", 2011): element i of a random array comes from the counter i, so that
  all elements are independent of how the array is computed;
- rbg takes bits from XLA's generator, which is fast, but differs between platforms and, under vmap,
  gives all lanes bits of the first key; new keys are two of threefry side by side;
- unsafe_rbg makes new keys with XLA's generator, too;
- philox2x32, philox4x32 and threefry4x32 are in `_ciphers`.
"""

import importlib
import math
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from weft import _core
from weft._arguments import shape_of
from weft._dims import is_symbolic_dim
from weft._settings import SETTINGS
from weft.dtypes import FRY, RBG, UNSAFE_RBG, KeyDType, dtype_of
from weft.errors import AttributeValueError
from weft.lax._rng import rng_bit_generator
from weft.lax._shape import reshape

_U32 = np.dtype("uint32")


class PRNGImpl(NamedTuple):
    """A generator of random numbers; `weft.extend.random.define_prng_impl` says what is what."""

    key_shape: tuple
    seed: Callable
    split: Callable
    random_bits: Callable
    fold_in: Callable
    name: str = "<unnamed>"
    tag: str = "?"

    def __str__(self):
        return self.tag


def stacked(*words):
    """Arrays of one shape, or without axes, along a new last axis."""
    words = _core.broadcast_arrays(*words)
    shape = shape_of(words[0])
    words = [reshape(word, (*shape, 1)) for word in words]
    return _core.bind("concatenate", *words, dimension=len(shape))


def high_and_low(numbers):
    """The high and the low words of integers; the high one of narrow integers is 0, one for all."""
    dtype = dtype_of(numbers)
    high = np.uint32(0)
    if dtype.itemsize == 8:
        # Made of a narrow number: the counters are wide where 64-bit dtypes are off, too.
        pair = _core.broadcast_arrays(numbers, _core.astype(np.uint32(32), dtype))
        high = _core.astype(_core.bind("shift_right_logical", *pair), _U32)
    return high, _core.astype(numbers, _U32)


def counters(size):
    """The high and the low words of the numbers below `size`."""
    dtype = _U32 if is_symbolic_dim(size) or size <= 2**32 else np.dtype("uint64")
    return high_and_low(_core.bind("iota", dtype=dtype, shape=(size,), dimension=0))


# ---- threefry2x32


def _fry_seed(seed):
    return stacked(*high_and_low(seed))


def _fry_split(words, shape):
    return stacked(*_counted(words, shape))


def _fry_fold_in(words, data):
    return stacked(*_threefry(words, np.uint32(0), data))


def _fry_bits(words, bit_width, shape):
    first, second = _counted(words, shape)
    dtype = np.dtype(f"uint{bit_width}")
    if bit_width < 64:
        return _core.astype(_core.bind("xor", first, second), dtype)
    first, second = (_core.astype(word, dtype) for word in (first, second))
    return _core.bind("or", _core.bind("shift_left", first, dtype.type(32)), second)


def _threefry(words, high, low):
    return _core.bind("threefry2x32", words[0], words[1], high, low)


def _counted(words, shape):
    """Two words of random bits for each element of a shape."""
    # Flat until here: XLA takes long for operations on arrays of many axes.
    return tuple(reshape(word, shape) for word in _threefry(words, *counters(math.prod(shape))))


def sequential_words(words, count):
    """The numbers `count`, one axis of them, enciphered: the first half together with the other.

    The last number of an odd size has 0 beside it.
    """
    (size,) = shape_of(count)
    half = (size + 1) // 2
    if size % 2:
        count = _joined(count, np.zeros(1, np.uint32))
    return _joined(*_threefry(words, count[:half], count[half:]))[:size]


def _sequential_words(words, size):
    """The streams of before each element had a counter of its own."""
    return sequential_words(words, _core.bind("iota", dtype=_U32, shape=(size,), dimension=0))


def _sequential_split(words, shape):
    return reshape(_sequential_words(words, 2 * math.prod(shape)), (*shape, 2))


def _sequential_bits(words, bit_width, shape):
    size, dtype = math.prod(shape), np.dtype(f"uint{bit_width}")
    drawn = _sequential_words(words, -(-bit_width * size // 32))
    if bit_width == 64:
        high, low = (_core.astype(half, dtype) for half in (drawn[:size], drawn[size:]))
        drawn = _core.bind("or", _core.bind("shift_left", high, dtype.type(32)), low)
    elif bit_width < 32:
        shifts = np.arange(0, 32, bit_width, dtype=np.uint32)
        parts = _core.bind(
            "shift_right_logical",
            *_core.broadcast_arrays(reshape(drawn, (*shape_of(drawn), 1)), shifts),
        )
        drawn = reshape(_core.astype(parts, dtype), (math.prod(shape_of(parts)),))[:size]
    return reshape(drawn, shape)


# ---- XLA's generator


def _halves(words):
    return words[:2], words[2:]


def _joined(first, second):
    return _core.bind("concatenate", first, second, dimension=len(shape_of(first)) - 1)


def _rbg_seed(seed):
    half = _fry_seed(seed)
    return _joined(half, half)


def _rbg_split(words, shape, split=_fry_split):
    return _joined(*(split(half, shape) for half in _halves(words)))


def _sequential_rbg_split(words, shape):
    return _rbg_split(words, shape, _sequential_split)


def _rbg_fold_in(words, data):
    return _joined(*(_fry_fold_in(half, data) for half in _halves(words)))


def _rbg_bits(words, bit_width, shape):
    return rng_bit_generator(words, shape, np.dtype(f"uint{bit_width}"))[1]


_STRIDE = 10  # rows of bits, one of which is a new key


def _unsafe_split(words, shape):
    _, rows = rng_bit_generator(words, (_STRIDE * math.prod(shape), 4))
    return reshape(rows[::_STRIDE], (*shape, 4))


def _unsafe_fold_in(words, data):
    _, rows = rng_bit_generator(_rbg_seed(data), (_STRIDE, 4))
    return _core.bind("xor", words, rows[-1])


THREEFRY = PRNGImpl((2,), _fry_seed, _fry_split, _fry_bits, _fry_fold_in, "threefry2x32", "fry")
RBG_IMPL = PRNGImpl((4,), _rbg_seed, _rbg_split, _rbg_bits, _rbg_fold_in, "rbg", "rbg")
UNSAFE_RBG_IMPL = PRNGImpl(
    (4,), _rbg_seed, _unsafe_split, _rbg_bits, _unsafe_fold_in, "unsafe_rbg", "urbg"
)

# With the streams that weft_threefry_partitionable=False asks for.
_SEQUENTIAL = {
    THREEFRY: THREEFRY._replace(split=_sequential_split, random_bits=_sequential_bits),
    RBG_IMPL: RBG_IMPL._replace(split=_sequential_rbg_split),
}
_PARTITIONABLE = {new: old for old, new in _SEQUENTIAL.items()}

_NAMED = {impl.name: impl for impl in (THREEFRY, RBG_IMPL, UNSAFE_RBG_IMPL)}
_CIPHERS = ("philox2x32", "philox4x32", "threefry4x32")
_DTYPES = {THREEFRY: FRY, RBG_IMPL: RBG, UNSAFE_RBG_IMPL: UNSAFE_RBG}
_IMPLS = {dtype: impl for impl, dtype in _DTYPES.items()}


def impl_of(dtype):
    """The implementation whose keys have a dtype."""
    return _IMPLS[dtype]


def dtype_of_impl(impl):
    """The dtype of the keys of an implementation."""
    if impl not in _DTYPES:
        # Words of program text, and each of one dtype.
        tag = re.sub(r"\W", "_", impl.tag)
        core_name = f"key<{tag}.{len(_DTYPES)}>"
        dtype = KeyDType(impl.tag, math.prod(impl.key_shape), core_name)
        _DTYPES[impl], _IMPLS[dtype] = dtype, impl
    return _DTYPES[impl]


def setting(name):
    """The value of a setting, which the core has."""
    return SETTINGS[name].core.get()


def are_plain():
    """Whether all settings of weft.random are as they are by default; fast."""
    return _core.get_setting("random") == 0


def default_impl():
    """The implementation that keys have unless another one is asked for."""
    return _NAMED[setting("weft_default_prng_impl")]


def sequential(impl):
    """The implementation with the streams of weft_threefry_partitionable=False."""
    return _SEQUENTIAL.get(impl, impl)


def partitionable(impl):
    """The implementation that `sequential` was given."""
    return _PARTITIONABLE.get(impl, impl)


def is_named(impl):
    """Whether its name stands for the implementation."""
    return _NAMED.get(impl.name) is impl


def resolve(impl, function):
    """The implementation that a user named: by a name, a dtype of keys, or as it is.

    ValueError for an unknown name, TypeError for what names none.
    """
    if impl is None:
        return default_impl()
    if isinstance(impl, PRNGImpl):
        return impl
    if isinstance(impl, KeyDType):
        return impl_of(impl)
    if isinstance(impl, str):
        if impl in _CIPHERS and impl not in _NAMED:
            _NAMED.update(importlib.import_module("weft.random._ciphers").IMPLEMENTATIONS)
        if impl in _NAMED:
            return _NAMED[impl]
        known = ", ".join(map(repr, dict.fromkeys((*_NAMED, *_CIPHERS))))
        raise AttributeValueError(f"[{function}] expected impl to be one of {known}; got {impl!r}")
    raise TypeError(
        f"[{function}] expected impl to be a name, a dtype of keys or an implementation; "
        f"got {impl!r}"
    )
