"""Fourier transforms: arguments of every dtype, mistakes, derivatives of higher order."""

import numpy as np
import pytest

import weft
from weft import lax
from weft.errors import AttributeValueError, DTypeError, ShapeError


@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        ("bool", "complex64"),
        ("int8", "complex64"),
        ("int64", "complex128"),
        ("float64", "complex128"),
    ],
)
def test_numbers_become_complex(dtype, result):
    x = np.array([1, 0, 1, 1], dtype)
    with weft.enable_x64(True):
        for kind in (lax.FftType.FFT, "rfft"):
            y = lax.fft(x, kind, (4,))
            assert y.dtype == result
            np.testing.assert_allclose(y, np.fft.fft(x)[: y.size], atol=1e-6)
        assert lax.fft(np.zeros(3, "float16"), "IFFT", (3,)).dtype == "complex64"


def test_no_lengths_give_the_array_back():
    assert lax.fft(2.0, "fft", ()) == 2 + 0j
    assert lax.fft(np.ones(3, np.float32), "rfft", ()).dtype == "float32"


@pytest.mark.parametrize(
    ("kind", "x", "lengths", "error", "words"),
    [
        ("fft", np.ones((2, 3)), (4,), ShapeError, r"shape \(2, 4\) for FFT.*c64\[2,3\]"),
        ("irfft", np.ones((2, 3)), (3,), ShapeError, r"shape \(2, 2\) for IRFFT"),
        ("rfft", np.ones(3), (3, 4), ShapeError, "an axis for each"),
        ("rfft", np.ones(0), (0,), ShapeError, "at least one element"),
        ("fft", np.ones((1,) * 4), (1,) * 4, AttributeValueError, "between 1 and 3"),
        ("fft", np.ones(3), (-3,), AttributeValueError, "at least 0"),
        ("Fft", np.ones(3), (3,), AttributeValueError, "'IRFFT'; got 'Fft'"),
        ("rfft", np.ones(3, "complex64"), (3,), DTypeError, "real numbers for RFFT; got complex64"),
        ("rfft", np.ones(3, "float16"), (3,), DTypeError, "float32 or float64"),
        (2, np.ones(3), (3,), TypeError, "an FftType or its name"),
        ("fft", np.ones(3), 3.5, TypeError, "fft_lengths to be integers"),
    ],
)
def test_mistakes(kind, x, lengths, error, words):
    with pytest.raises(error, match=words):
        lax.fft(x, kind, lengths)


def test_power_of_a_spectrum_has_the_hessian_of_parseval():
    x = np.arange(5, dtype=np.float32)
    weights = np.array([1, 2, 2])  # the other elements stand for two each

    def power(x):
        return (weights * abs(lax.fft(x, "rfft", (5,))) ** 2).sum()

    np.testing.assert_allclose(weft.hessian(power)(x), 10 * np.eye(5), atol=1e-4)
