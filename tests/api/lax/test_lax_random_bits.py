"""rng_bit_generator and rng_uniform: bits as jax's, keys, lanes, mistakes."""

import numpy as np
import pytest
from oracle import check, lines, needs_jax

import weft
from weft import lax
from weft.errors import AttributeValueError, DTypeError, OperandError, ShapeError

KEY = np.array([1, 2, 3, 4], np.uint32)
# Bits of each algorithm, dtype and shape; the key as words of 32 and of 64 bits; lanes.
CASES = lines(
    "\n".join(
        f"lax.rng_bit_generator(jnp.arange(1,5,dtype='uint32'),{shape},'{dtype}',"
        f"lax.RandomAlgorithm.{algorithm})"
        for algorithm in ("RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX")
        for dtype in ("uint8", "uint16", "uint32", "uint64")
        for shape in ((), (7,), (2, 0), (3, 5))
    )
    + """
    lax.rng_bit_generator(jnp.array([5,2**40],dtype='uint64'),(3,),'uint64')
    """
)


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_bits_are_those_of_jax(case):
    check(CASES, case, x64=True)


def test_the_next_key_gives_other_bits():
    for algorithm in lax.RandomAlgorithm:
        key, first = lax.rng_bit_generator(KEY, (100,), algorithm=algorithm)
        assert key.dtype == np.uint32 and key.shape == (4,)
        _, second = lax.rng_bit_generator(key, (100,), algorithm=algorithm)
        assert len(np.unique(np.concatenate([first, second]))) == 200
        mean = np.mean(np.asarray(lax.rng_bit_generator(KEY, 10000, "uint8", algorithm)[1]))
        assert abs(mean - 127.5) < 3


def test_lanes_draw_from_the_first_key():
    keys = np.arange(8, dtype=np.uint32).reshape(2, 4)
    next_key, bits = lax.rng_bit_generator(keys[0], (2, 3))

    def draw(key):
        return lax.rng_bit_generator(key, (3,))

    for keys_, axis in [(keys, 0), (keys.T, 1)]:
        next_keys, lanes = weft.jit(weft.vmap(draw, in_axes=axis))(keys_)
        np.testing.assert_array_equal(lanes, bits)
        np.testing.assert_array_equal(next_keys, [next_key, keys[1]])
    one, _ = weft.vmap(draw)(keys[:1])
    np.testing.assert_array_equal(one, [lax.rng_bit_generator(keys[0], (1, 3))[0]])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "bfloat16", "float16", "float32"])
def test_uniform_numbers_stay_within_bounds(dtype):
    low, high = np.array([3, 9]).astype(dtype)
    draw = weft.jit(lambda low, high: [lax.rng_uniform(low, high, (50, 2)) for _ in range(2)])
    first, second = draw(low, high)
    assert first.dtype == dtype and first.shape == (50, 2)
    for x in (first, second):
        wide = np.asarray(x).astype(np.float64)
        assert wide.min() >= 3 and wide.max() <= 9
    assert (first != second).any(), "two draws of a program are two"
    assert (first != draw(low, high)[0]).any(), "runs differ"


def test_a_derivative_takes_the_number_that_was_drawn():
    value, slope = weft.value_and_grad(lambda x: x * lax.rng_uniform(0.0, 1.0, ()))(2.0)
    assert value == 2 * slope


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lax.rng_bit_generator(KEY, (3,), "int32"), DTypeError, "dtype=int32"),
        (lambda: lax.rng_bit_generator(KEY[:2], (3,)), OperandError, r"u32\[4\] or u64\[2\]"),
        (lambda: lax.rng_bit_generator(KEY, (-3,)), ShapeError, "non-negative"),
        (lambda: lax.rng_bit_generator(KEY, 3, algorithm=7), AttributeValueError, "algorithm=7"),
        (lambda: lax.rng_bit_generator(KEY, 3, algorithm="philox"), TypeError, "algorithm"),
        (lambda: lax.rng_uniform(0, 1.0, 3), DTypeError, "one dtype"),
        (lambda: lax.rng_uniform(0j, 1j, 3), DTypeError, "integer or float"),
        (lambda: lax.rng_uniform(np.zeros(2, "f4"), 1.0, 3), ShapeError, "scalars as bounds"),
        (lambda: weft.grad(lambda x: lax.rng_uniform(x, 2.0, ()))(1.0), NotImplementedError, "rng"),
    ],
)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call()
