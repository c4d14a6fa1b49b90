"""Discrete Fourier transforms."""

import enum

from weft import _core
from weft._arguments import listed, static_ints
from weft.dtypes import dtype_of, is_complex, to_complex_dtype, to_inexact_dtype
from weft.errors import AttributeValueError, DTypeError


class FftType(enum.IntEnum):
    """What `fft` computes."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def _fft_type(value):
    if isinstance(value, FftType):
        return value
    if not isinstance(value, str):
        raise TypeError(f"[fft] expected fft_type to be an FftType or its name; got {value!r}")
    try:
        return FftType[value if value.isupper() else value.upper() if value.islower() else ""]
    except KeyError:
        names = ", ".join(f"{kind.name!r}" for kind in FftType)
        raise AttributeValueError(
            f"[fft] expected fft_type to be one of {names}; got {value!r}"
        ) from None


def fft(x, fft_type, fft_lengths):
    """Discrete Fourier transform over the last axes of an array.

    Args:
      x: array. For RFFT real: of float32 or float64, or of integers or bool, which become floats.
        For the others complex, or of another dtype, which becomes complex.
      fft_type: `FftType` or its name ("FFT", "ifft"). FFT and IFFT take complex numbers to complex
        numbers. RFFT gives the first `n // 2 + 1` elements along the last axis of the spectrum of
        real numbers; IRFFT takes such a spectrum, and gives real numbers. The inverse ones divide
        by the number of elements.
      fft_lengths: sizes of the last axes, one to three; those of the result for IRFFT, else those
        of `x`. Without any, `x` is returned.

    Returns:
      Complex array of the shape of `x`, except that RFFT changes the size of the last axis to
      `fft_lengths[-1] // 2 + 1`, and IRFFT gives real numbers and changes it to `fft_lengths[-1]`.

    Raises:
      DTypeError: if `x` is complex, float16 or bfloat16 for RFFT.
      ShapeError: if `x` lacks an axis, or `fft_lengths` are not the sizes of its axes.

    Examples:
      >>> lax.fft(wnp.array([1, 0, 0, 0], "complex64"), "fft", (4,))
      Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    kind = _fft_type(fft_type)
    fft_lengths = listed(fft_lengths, "fft", "fft_lengths")
    lengths = static_ints(fft_lengths, "fft", "fft_lengths")
    dtype = dtype_of(x)
    if kind is FftType.RFFT:
        if is_complex(dtype):
            raise DTypeError(f"[fft] expected real numbers for RFFT; got {dtype.name}")
        dtype = to_inexact_dtype(dtype)
    else:
        dtype = to_complex_dtype(to_inexact_dtype(dtype))
    x = _core.astype(x, dtype)
    if not lengths:
        return x
    return _core.bind("fft", x, fft_type=int(kind), fft_lengths=lengths)
