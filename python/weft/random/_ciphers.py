"""Generators that encipher a counter under a key: philox2x32, philox4x32 and threefry4x32.

Algorithms and constants are those of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
(2011): ten rounds of Philox, twenty of Threefry. Words of 32 bits are uint32, and products of two
are put together from halves, as there are no wider integers unless they are enabled.
"""

import math

import numpy as np

from weft import _core
from weft._jit import composite
from weft.lax._shape import reshape
from weft.random._implementations import PRNGImpl, counters, high_and_low, stacked

_U32 = np.dtype("uint32")
_ZERO = np.uint32(0)


def _bind(op, x, y):
    return _core.bind(op, *_core.broadcast_arrays(x, y))


def _add(x, y):
    return _bind("add", x, y)


def _xor(*words):
    total = words[0]
    for word in words[1:]:
        total = _bind("xor", total, word)
    return total


def _right(x, count):
    return _bind("shift_right_logical", x, np.uint32(count))


def _left(x, count):
    return _bind("shift_left", x, np.uint32(count))


def _low(x):
    return _bind("and", x, np.uint32(0xFFFF))


def _product(factor, x):
    """The high and the low word of a known number times x."""
    above, below = np.uint32(factor >> 16), np.uint32(factor & 0xFFFF)
    x_above, x_below = _right(x, 16), _low(x)
    lowest = _bind("mul", x_below, below)
    middle = _add(_bind("mul", x_above, below), _right(lowest, 16))
    other = _add(_bind("mul", x_below, above), _low(middle))
    high = _add(_bind("mul", x_above, above), _add(_right(middle, 16), _right(other, 16)))
    return high, _bind("mul", x, np.uint32(factor))


@composite
def _philox2x32(key, counter):
    (k,), (x, y) = key, counter
    for i in range(10):
        if i:
            k = _add(k, np.uint32(0x9E3779B9))
        high, low = _product(0xD256D193, x)
        x, y = _xor(high, k, y), low
    return x, y


@composite
def _philox4x32(key, counter):
    (k, m), (x, y, z, w) = key, counter
    for i in range(10):
        if i:
            k, m = _add(k, np.uint32(0x9E3779B9)), _add(m, np.uint32(0xBB67AE85))
        high, low = _product(0xD2511F53, x)
        other_high, other_low = _product(0xCD9E8D57, z)
        x, y, z, w = _xor(other_high, y, k), other_low, _xor(high, w, m), low
    return x, y, z, w


_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))


def _mixed(x, y, rotation):
    total = _add(x, y)
    rotated = _bind("or", _left(y, rotation), _right(y, 32 - rotation))
    return total, _xor(rotated, total)


@composite
def _threefry4x32(key, counter):
    keys = (*key, _xor(*key, np.uint32(0x1BD11BDA)))
    x = [_add(word, k) for word, k in zip(counter, key, strict=True)]
    for i in range(20):
        first, second = _ROTATIONS[i % 8]
        with_first, with_second = (3, 1) if i % 2 else (1, 3)
        x[0], x[with_first] = _mixed(x[0], x[with_first], first)
        x[2], x[with_second] = _mixed(x[2], x[with_second], second)
        if i % 4 == 3:
            step = i // 4 + 1
            x = [_add(word, keys[(step + j) % 5]) for j, word in enumerate(x)]
            x[3] = _add(x[3], np.uint32(step))
    return tuple(x)


def _implementation(cipher, words, lanes, name, tag, *, seeds_key=False, folds=False):
    """An implementation whose keys have a number of words, of a cipher of `lanes` words.

    A seed is enciphered, or the key under which zeros are. A number of 64 bits is the first two
    words, or folds all of them.
    """
    zeros = (_ZERO,) * (lanes - 2)

    def key_of(key):
        return tuple(key[i] for i in range(words))

    def seed(number):
        pair = high_and_low(number)
        if seeds_key:
            drawn = cipher((*pair, *zeros), (_ZERO,) * lanes)
        else:
            drawn = cipher((_ZERO,) * words, (*pair, *zeros))
        return stacked(*drawn[:words])

    def counted(key, shape, place):
        size = math.prod(shape)
        high, low = counters(size)
        drawn = cipher(key_of(key), place(_core.broadcast_to(high, (size,)), low))
        return [reshape(word, shape) for word in drawn]

    # New keys and elements of arrays come from counters in different words.
    def split(key, shape):
        return stacked(*counted(key, shape, lambda high, low: (*zeros, high, low))[:words])

    def fold_in(key, data):
        return stacked(*cipher(key_of(key), (*zeros, _ZERO, data))[:words])

    def random_bits(key, bit_width, shape):
        drawn = counted(key, shape, lambda high, low: (high, low, *zeros))
        dtype = np.dtype(f"uint{bit_width}")
        if bit_width < 64:
            return _core.astype(_xor(*drawn), dtype)
        if folds:
            drawn = _xor(drawn[0], drawn[2]), _xor(drawn[1], drawn[3])
        high, low = (_core.astype(word, dtype) for word in drawn[:2])
        return _core.bind("or", _core.bind("shift_left", high, dtype.type(32)), low)

    return PRNGImpl((words,), seed, split, random_bits, fold_in, name, tag)


IMPLEMENTATIONS = {
    impl.name: impl
    for impl in (
        _implementation(_philox2x32, 1, 2, "philox2x32", "phx2"),
        _implementation(_philox4x32, 2, 4, "philox4x32", "phx4"),
        _implementation(_threefry4x32, 4, 4, "threefry4x32", "fry4", seeds_key=True, folds=True),
    )
}
