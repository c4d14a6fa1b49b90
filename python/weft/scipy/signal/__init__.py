"""Signals: convolutions, trends, and spectra."""

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.scipy.signal._convolutions import (
    convolve,
    convolve2d,
    correlate,
    correlate2d,
    fftconvolve,
)
from weft.scipy.signal._spectra import csd, detrend, istft, stft, welch

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "istft",
    "stft",
    "welch",
]
__getattr__, __dir__ = _public(__name__, __all__)

_open_to_users(__name__)
