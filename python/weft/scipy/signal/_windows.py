"""Windows by name, as arrays of NumPy's.

All are symmetric about the middle of one point more than they have, so that they go on
periodically; the formulas are those in Harris, "On the use of windows for harmonic analysis with
the discrete Fourier transform" (1978), and those of Nuttall (1981).
"""

import math

import numpy as np

from weft.errors import AttributeValueError


def _cosines(*weights):
    """The sum of weights[k] cos(k pi x), for x from -1 to 1."""

    def window(x, n):
        return sum(w * np.cos(k * math.pi * x) for k, w in enumerate(weights))

    return window


def _parzen(x, n):
    y = np.abs(x) * n / (n + 1)
    return np.where(y <= 0.5, 1 - 6 * y**2 + 6 * y**3, 2 * np.clip(1 - y, 0, None) ** 3)


def _bohman(x, n):
    y = np.abs(x)
    return (1 - y) * np.cos(math.pi * y) + np.sin(math.pi * y) / math.pi


def _triangle(x, n):
    # The ends lie outside.
    reach = (n + 1) / n if (n + 1) % 2 == 0 else (n + 2) / n
    return 1 - np.abs(x) / reach


def _barthann(x, n):
    return 0.62 - 0.24 * np.abs(x) + 0.38 * np.cos(math.pi * x)


def _cosine(x, n):
    return np.cos(math.pi / 2 * x * n / (n + 1))


def _tukey(x, n, alpha=0.5):
    alpha = min(max(alpha, 0.0), 1.0)
    if alpha == 0:
        return np.ones_like(x)
    y = np.clip((np.abs(x) - (1 - alpha)) / alpha, 0, 1)
    return 0.5 * (1 + np.cos(math.pi * y))


def _kaiser(x, n, beta):
    return np.i0(beta * np.sqrt(np.clip(1 - x**2, 0, None))) / np.i0(beta)


def _gaussian(x, n, std):
    return np.exp(-0.5 * (x * n / 2 / std) ** 2)


def _general_gaussian(x, n, p, sig):
    return np.exp(-0.5 * np.abs(x * n / 2 / sig) ** (2 * p))


def _general_hamming(x, n, alpha):
    return alpha + (1 - alpha) * np.cos(math.pi * x)


def _general_cosine(x, n, weights):
    return _cosines(*weights)(x, n)


def _exponential(x, n, center=None, tau=1.0):
    middle = n / 2 if center is None else center
    return np.exp(-np.abs(n / 2 * (x + 1) - middle) / tau)


_WINDOWS = {
    "barthann": _barthann,
    "bartlett": lambda x, n: 1 - np.abs(x),
    "blackman": _cosines(0.42, 0.5, 0.08),
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "bohman": _bohman,
    "boxcar": lambda x, n: np.ones_like(x),
    "cosine": _cosine,
    "exponential": _exponential,
    "flattop": _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "gaussian": _gaussian,
    "general_cosine": _general_cosine,
    "general_gaussian": _general_gaussian,
    "general_hamming": _general_hamming,
    "hamming": _cosines(0.54, 0.46),
    "hann": _cosines(0.5, 0.5),
    "kaiser": _kaiser,
    "lanczos": lambda x, n: np.sinc(x),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "parzen": _parzen,
    "triang": _triangle,
    "tukey": _tukey,
}
_WITH_PARAMETERS = ("gaussian", "general_cosine", "general_gaussian", "general_hamming", "kaiser")


def window_of(function, window, n):
    """The window of n points that a name means, or a tuple of a name and parameters, or a number:
    the parameter of a Kaiser window."""
    if isinstance(window, (int, float)):
        window = ("kaiser", window)
    name, *parameters = (window,) if isinstance(window, str) else window
    if name not in _WINDOWS or (name in _WITH_PARAMETERS and not parameters):
        raise AttributeValueError(
            f"[{function}] expected as window an array, or one of {', '.join(_WINDOWS)}, in a "
            f"tuple with its parameters if it has some; got {window!r}"
        )
    if n == 1:
        return np.ones(1)
    x = np.arange(n) * 2 / n - 1
    return _WINDOWS[name](x, n, *parameters)
