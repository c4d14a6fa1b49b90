"""Rows of the Fourier transforms."""

import numpy as np
from op_table import Arg, structural

from weft import lax

COMPLEX = ("complex64", "complex128")
REAL = ("float32", "float64")


def fft(x, fft_type, fft_lengths):
    axes = range(-len(fft_lengths), 0)
    if fft_type is lax.FftType.FFT:
        return np.fft.fftn(x, axes=axes)
    if fft_type is lax.FftType.IFFT:
        return np.fft.ifftn(x, axes=axes)
    if fft_type is lax.FftType.RFFT:
        return np.fft.rfftn(x, axes=axes)
    return np.fft.irfftn(x, fft_lengths, axes)


def part(d):
    return np.zeros(0, d).real.dtype


def whole(d):
    return np.result_type(d, np.complex64)


KINDS = {
    "FFT": (COMPLEX, lambda d: d),
    "IFFT": (COMPLEX, lambda d: d),
    "RFFT": (REAL, whole),
    "IRFFT": (COMPLEX, part),
}


def row(kind, label, shape, lengths):
    dtypes, out = KINDS[kind]
    if kind == "IRFFT":
        shape = (*shape[:-1], lengths[-1] // 2 + 1)
    return structural("fft", lax.fft, fft, Arg(shape),
                      attrs={"fft_type": lax.FftType[kind], "fft_lengths": lengths},
                      label=f"{kind.lower()}_{label}", dtypes=dtypes, out=out, ulps=64, diff=(0,),
                      linear_in=((0,),))  # fmt: skip


ROWS = [
    row(kind, label, shape, lengths)
    for kind in KINDS
    for label, shape, lengths in [
        ("even", (8,), (8,)), ("odd", (3, 7), (7,)), ("one", (2, 1), (1,)),
        ("plane", (2, 3, 4), (3, 4)), ("odd_plane", (4, 5), (4, 5)),
        ("space", (2, 2, 3, 6), (2, 3, 6)), ("empty_batch", (0, 4), (4,)),
    ]
]  # fmt: skip
