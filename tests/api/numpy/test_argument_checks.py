"""What functions of arrays and keys do with odd arguments: results, dtypes and kinds of errors.

Each row is an expression and what JAX gives: the text of the value with its dtype, or the built-in
classes of which the error is one.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax, random

X = jnp.arange(6.0).reshape(2, 3)
NAMES = {
    "np": np,
    "jnp": jnp,
    "lax": lax,
    "random": random,
    "weft": weft,
    "x": X,
    "k": X.astype("int32"),
    "c": X + 1j * X[::-1],
    "e": jnp.zeros((0, 3)),
    "key": random.key(7),
    "numbers": (((1,), (1,)), ((0,), (0,))),
    "ones": jnp.ones((1, 1, 3)),
    "take_rows": lax.GatherDimensionNumbers((1,), (0,), (0,)),
}

VALUES = {
    # Operands of any dtype may hold the identity of a known reduction.
    "lax.reduce_window(x, jnp.int32(0), lax.add, (1, 2))": ([[1, 3], [7, 9]], "float32"),
    "lax.reduce_window(x, 1.0, lax.mul, (1, 2))": ([[0, 2], [12, 20]], "float32"),
    "lax.reduce_window(c, jnp.inf + 0j, lax.min, (1, 2))": (
        [[3j, 1 + 4j], [3, 4 + 1j]],
        "complex64",
    ),
    "lax.reduce(k, -jnp.inf, lax.max, (0,))": ([3, 4, 5], "int32"),
    # Sums in the dtype of the operands are converted to an integer one.
    "lax.dot_general(x * 1.5, x * 1.5, numbers, preferred_element_type='int32')": (
        [11, 112],
        "int32",
    ),
    "lax.dot_general(c, c, numbers, preferred_element_type='float32')": ([-45, 45], "float32"),
    "jnp.matmul(k, k.T, preferred_element_type='float32')": ([[5, 14], [14, 50]], "float32"),
    # Axes of `...` that the result lacks are summed over.
    "jnp.einsum('...j->j', x)": ([3, 5, 7], "float32"),
    "jnp.einsum(x, [..., 1], [1])": ([3, 5, 7], "float32"),
    "c.astype(bool)": ([[True] * 3] * 2, "bool"),
    "jnp.select(x, x)": ([3, 1, 2], "float32"),
    "jnp.split(x, 2.0)[1]": ([[3, 4, 5]], "float32"),
    "jnp.hanning(2.0)": ([0, 0], "float32"),
    "jnp.fromfunction(lambda i: i, (2,), dtype=None)": ([0, 1], "int32"),
    "jnp.linalg.matrix_rank(x)": (2, "int32"),
    "e.at[jnp.array([0])].set(1)": (np.zeros((0, 3)), "float32"),
    "random.bits(key, (5,), 'uint4')": ([11, 0, 170, 48, 134], "uint8"),
    "random.clone(jnp.zeros(2))": ([0, 0], "float32"),
    "lax.full((2,), 300, 'uint8')": ([44, 44], "uint8"),
    "lax.full((2,), 2**40)": ([0, 0], "int32"),
    # As in NumPy, a copy of a masked array has no mask.
    "jnp.array(np.ma.array([1, 2], mask=[True, False]))": ([1, 2], "int32"),
    "jnp.copy(np.ma.array([1.5, 2], mask=True))": ([1.5, 2], "float32"),
    "jnp.array(np.array([1.5, 2], '>f8'), 'float32')": ([1.5, 2], "float32"),
    "jnp.array([2**64], float)": ([2.0**64], "float32"),
    "jnp.array([-(2**70), 1.5, 2j])": ([-(2.0**70), 1.5, 2j], "complex64"),
    "lax.pow(x, 2)": (X**2, "float32"),
    # A known integer as exponent has no say in the dtype.
    "k.astype('int8') ** jnp.int32(2)": (X**2, "int8"),
    "jnp.power(k.astype('uint8'), np.int32(2))": (X**2, "uint8"),
    "lax.select_n(jnp.uint8(1), k, k + 1)": (X + 1, "int32"),
    "lax.dynamic_slice_in_dim(k, jnp.uint8(1), 1, 1)": ([[1], [4]], "int32"),
    "jnp.repeat(3, 2, axis=0)": ([3, 3], "int32"),
    "jnp.float32(2.5).repeat(np.array([2]), axis=-1)": ([2.5, 2.5], "float32"),
    "(x > 1) << (x > 2)": ([[0, 0, 1], [2, 2, 2]], "int32"),
    "True << (x > 4)": ([[1, 1, 1], [1, 1, 2]], "int32"),
    "x.astype(dtype='int8', copy=True)": (X, "int8"),
    "x.astype('int8', True, weft.devices()[0])": (X, "int8"),
    "x.to_device(device=weft.devices()[0])": (X, "float32"),
}

DTYPES = {
    ("int64", "int8"): "int64",
    (None, "float32"): "float64",
    (int, "int8"): "int8",
    ("int16", "uint32"): "int32",
    (int, float): "float64",
    ("float64", "bfloat16"): "float64",
}

ERRORS = {
    "lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), 'full')": RuntimeError,
    "lax.conv_general_dilated(ones, ones, (1,), 'full')": RuntimeError,
    "lax.padtype_to_pads((5,), (2,), (1,), 'full')": RuntimeError,
    "lax.reduce_window(x, jnp.float16(3), lax.add, (1, 2))": TypeError,
    "lax.reduce(x, 1, lax.add, (0,))": TypeError,
    "lax.dot_general(k, k, numbers, preferred_element_type='bfloat16')": TypeError,
    "lax.conv(ones, ones, (1,), 'SAME', preferred_element_type='int32')": TypeError,
    "lax.conv(ones, ones, (1,), 'SAME', preferred_element_type='float16')": TypeError,
    "lax.gather(x, jnp.array([[0]]), take_rows, (0, 1))": TypeError,
    # Python numbers have their default dtypes.
    "lax.add(x, 1)": TypeError,
    "lax.lt(jnp.asarray(1.0), jnp.asarray(1))": TypeError,
    "lax.mul(x.astype('bfloat16'), 2.5)": TypeError,
    "lax.clamp(0, x, 1)": TypeError,
    "lax.pad(x, 0, [(0, 0, 0)] * 2)": TypeError,
    "lax.select(x > 1, 1, 2)": TypeError,
    "lax.convert_element_type(1j, float)": TypeError,
    "lax.sin(2**40)": OverflowError,
    "x + 2**40": OverflowError,
    "jnp.array([2**64])": OverflowError,
    "jnp.array([2**64, 1.5], int)": OverflowError,
    "jnp.asarray(np.ma.array([1, 2], mask=True))": ValueError,
    "jnp.asarray(np.array([1.5], '>f4'))": TypeError,
    "x[2**40]": OverflowError,
    "k ** jnp.int32(-1)": TypeError,
    # No negative axes, no integer for a sequence of one.
    "lax.transpose(x, (-1, 0))": TypeError,
    "lax.rev(x, 0)": TypeError,
    "lax.concatenate([x, x], -1)": TypeError,
    "lax.reduce_sum(x, axes=(-1,))": ValueError,
    "lax.argmax(x, -1, 'int32')": ValueError,
    "lax.fft(c, 'FFT', 3)": TypeError,
    "lax.conv(ones, ones, 1, 'SAME')": TypeError,
    "lax.dynamic_slice(x, (jnp.int8(1), 1), (1, 1))": TypeError,
    "lax.dynamic_slice(x, (-1, 0), (1, 2), allow_negative_indices=False)": ValueError,
    "x.at[5].set(jnp.ones(2))": ValueError,
    "k.at[[0, 5]].min(1, wrap_negative_indices=False)": TypeError,
    "e[jnp.array([0])]": TypeError,
    "e[0]": IndexError,
    "e.at[0].get(mode='fill')": IndexError,
    "jnp.take(e, 0)": IndexError,
    "x[np.array([0, 1], object)]": TypeError,
    "x.at[np.array(['a'])].set(0)": TypeError,
    "x.at[np.datetime64('2020-01-01')].get()": TypeError,
    "x.at[9].get(mode='fill', fill_value=[1.0])": ValueError,
    "jnp.take(x, 9, fill_value=jnp.ones(1))": ValueError,
    "x.at[9].get(mode='fill', fill_value='a')": TypeError,
    "x.at[9].get(mode='fill', fill_value=1j)": TypeError,
    "k.at[9].get(mode='fill', fill_value=1j)": TypeError,
    "jnp.repeat(3, 2, axis=1)": ValueError,
    "jnp.roll(x, jnp.array([[1]]))": ValueError,
    "jnp.copy([1])": TypeError,
    "jnp.trunc(key)": TypeError,
    "key.real": NotImplementedError,
    "key.conj()": NotImplementedError,
    "bool(random.split(key))": TypeError,
    # NumPy would make arrays of its own of these.
    "x + np.array([1, 2, 3], object)": TypeError,
    "np.array([1, 2, 3], object) * x": TypeError,
    "k << np.array([1, 2, 3], object)": TypeError,
    "x // np.longdouble(2)": TypeError,
    "np.longdouble(2) - x": TypeError,
    "x @ np.array([1, 2, 3], object)": TypeError,
    "x == np.array('a')": TypeError,
    "np.datetime64('2020-01-01') != x": TypeError,
    "random.gamma(key, None)": ValueError,
    "random.fold_in(key, 1j)": TypeError,
}


@pytest.mark.parametrize("text", VALUES)
def test_values(text):
    value, dtype = VALUES[text]
    result = eval(text, NAMES)
    assert result.dtype == dtype
    np.testing.assert_array_equal(np.asarray(result), value)


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text):
    with pytest.raises(ERRORS[text]):
        eval(text, NAMES)


def test_lists_of_results():
    for results in (lax.top_k(X, 1), lax.approx_min_k(X, 1), lax.linalg.lu(X)):
        assert type(results) is list


def test_promotion_keeps_64_bits():
    for pair, expected in DTYPES.items():
        assert jnp.promote_types(*pair) == expected
    assert jnp.promote_types(X, "int8") == "float32"
    assert weft.dtypes.scalar_type_of(jnp.dtype("bool")) is bool


def test_integers_that_depend_on_the_setting():
    with weft.enable_x64(True):
        assert jnp.linalg.matrix_rank(jnp.ones((2, 3))).dtype == "int64"
        k = jnp.ones((2, 3), int)
        assert X.at[::2].get(mode="drop").shape == (1, 3)
        assert jnp.matmul(k, k.T, preferred_element_type="float64").dtype == "float64"
