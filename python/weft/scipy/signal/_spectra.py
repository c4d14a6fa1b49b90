"""Trends, and spectra of segments of a signal that overlap (Welch, 1967)."""

import numpy as np

from weft import _core, lax, numpy as jnp
from weft._arguments import (
    ndim_of,
    normalize_axis,
    shape_of,
    static_int,
    static_ints,
    weak_as,
)
from weft._jit import composite
from weft.dtypes import (
    default_float,
    dtype_of,
    is_complex,
    real_dtype,
    to_complex_dtype,
    to_wide_dtype,
)
from weft.errors import AttributeValueError, NotImplementedRuleError, ShapeError
from weft.scipy.signal._windows import window_of


def detrend(data, axis=-1, type="linear", bp=0, overwrite_data=None):
    """A signal less its trend along an axis.

    Args:
      data: array.
      axis: the axis.
      type: "linear" for the line that fits best, "constant" for the mean.
      bp: where a line ends and a new one begins, a position or several; no effect on "constant".
      overwrite_data: None.

    Returns:
      Array of the shape of `data` and of a floating-point dtype.

    Raises AttributeValueError (a ValueError) for another type and for breaks out of bounds,
    NotImplementedRuleError for `overwrite_data`.

    Examples:
      >>> x = weft.scipy.signal.detrend(wnp.array([1.0, 2.0, 6.0]), type="constant")
      >>> x.round(3)
      Array([-2., -1.,  3.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedRuleError(
            f"[detrend] expected overwrite_data=None: arrays never change; got {overwrite_data!r}"
        )
    if type not in ("linear", "constant"):
        raise AttributeValueError(f"[detrend] expected type 'linear' or 'constant'; got {type!r}")
    data = jnp.asarray(data)
    axis = normalize_axis(axis, ndim_of(data), "detrend")
    if type == "constant":
        return _centered(data, axis=axis)
    n = shape_of(data)[axis]
    places = static_ints(bp, "detrend", "bp")
    if any(not 0 <= place <= n for place in places):
        raise AttributeValueError(f"[detrend] expected bp within 0 and {n}; got {bp!r}")
    return _without_lines(data, axis=axis, ends=tuple(sorted({0, *places, n})))


@composite(static_argnames=("axis",))
def _centered(data, *, axis):
    (data,) = _core.promote_dtypes_inexact(data)
    return data - jnp.mean(data, axis, keepdims=True)


@composite(static_argnames=("axis", "ends"))
def _without_lines(data, *, axis, ends):
    (data,) = _core.promote_dtypes_inexact(data)
    data = jnp.moveaxis(data, axis, -1)
    parts = []
    for start, stop in zip(ends, ends[1:], strict=False):
        part = data[..., start:stop]
        n = stop - start
        # The mean, and the slope, are coefficients of two orthogonal functions.
        line = np.arange(n) - (n - 1) / 2
        line = line / max(np.linalg.norm(line), 1e-300)
        line = jnp.asarray(line, dtype=real_dtype(dtype_of(data)))
        slope = jnp.sum(part * line, -1, keepdims=True)
        parts.append(part - jnp.mean(part, -1, keepdims=True) - slope * line)
    result = jnp.concatenate(parts, -1) if parts else data
    return weak_as(jnp.moveaxis(result, -1, axis), data)


# ---- segments

_NAMED = (str, tuple, int, float)  # windows that are not arrays


def _integer(function, value, name):
    """An integer; floats are cut, as SciPy cuts them."""
    return static_int(int(value) if isinstance(value, float) else value, function, name)


def _segment(function, window, nperseg, size):
    """The window as an array, and its length, at most `size`."""
    if nperseg is not None:
        nperseg = _integer(function, nperseg, "nperseg")
        if nperseg < 1:
            raise AttributeValueError(f"[{function}] expected nperseg of at least 1; got {nperseg}")
    if isinstance(window, _NAMED):
        nperseg = 256 if nperseg is None else nperseg
        nperseg = nperseg if size is None else min(nperseg, size)
        return window_of(function, window, nperseg), nperseg
    shape = shape_of(window)
    if len(shape) != 1 or (size is not None and shape[0] > size):
        raise ShapeError(
            f"[{function}] expected a window of one axis, no longer than the signal; got shape "
            f"{shape}"
        )
    if nperseg is not None and nperseg != shape[0]:
        raise AttributeValueError(
            f"[{function}] expected nperseg to be the length {shape[0]} of the window; got "
            f"{nperseg}"
        )
    return window, shape[0]


def _lengths(function, nperseg, noverlap, nfft):
    """(noverlap, nfft), checked."""
    nfft = nperseg if nfft is None else _integer(function, nfft, "nfft")
    if nfft < nperseg:
        raise AttributeValueError(
            f"[{function}] expected nfft of at least nperseg, {nperseg}; got {nfft}"
        )
    noverlap = nperseg // 2 if noverlap is None else _integer(function, noverlap, "noverlap")
    if noverlap >= nperseg:
        raise AttributeValueError(
            f"[{function}] expected noverlap below nperseg, {nperseg}; got {noverlap}"
        )
    return noverlap, nfft


def _extended(x, count, boundary):
    """The signal with `count` elements more at both ends of the last axis."""
    if boundary is None or not count:
        return x
    if boundary in ("zeros", "constant"):
        width = [(0, 0)] * (ndim_of(x) - 1) + [(count, count)]
        return jnp.pad(x, width, mode="edge" if boundary == "constant" else "constant")
    left, right = jnp.flip(x[..., 1 : count + 1], -1), jnp.flip(x[..., -count - 1 : -1], -1)
    if boundary == "odd":
        left, right = 2 * x[..., :1] - left, 2 * x[..., -1:] - right
    return jnp.concatenate([left, x, right], -1)


def _detrending(function, kind):
    """What `detrend` may be: a function of segments, the name of a trend, or False for none."""
    if callable(kind):
        return kind
    if kind and kind not in ("linear", "constant"):
        raise AttributeValueError(
            f"[{function}] expected detrend 'linear', 'constant', False or a function; got {kind!r}"
        )
    return kind or None


def _segments(x, window, nperseg, noverlap, nfft, trend, onesided):
    """The spectra of segments along the last axis, `[..., segment, frequency]`."""
    step = nperseg - noverlap
    count = (shape_of(x)[-1] - noverlap) // step
    at = np.arange(count)[:, None] * step + np.arange(nperseg)
    parts = x[..., at]
    if callable(trend):
        parts = trend(parts)
    elif trend is not None:
        parts = detrend(parts, type=trend)
    parts = parts * window
    return jnp.fft.rfft(parts, nfft) if onesided else jnp.fft.fft(parts, nfft)


def _frequencies(fs, nfft, onesided, dtype):
    frequencies = np.fft.rfftfreq(nfft) if onesided else np.fft.fftfreq(nfft)
    return jnp.asarray(frequencies, dtype=dtype) * _core.astype(fs, dtype)


def _inexact(x):
    (x,) = _core.promote_dtypes_inexact(x)
    return x.astype(to_wide_dtype(dtype_of(x)))


def stft(
    x,
    fs=1.0,
    window="hann",
    nperseg=256,
    noverlap=None,
    nfft=None,
    detrend=False,
    return_onesided=True,
    boundary="zeros",
    padded=True,
    axis=-1,
):
    """Spectra of short segments of a signal that overlap.

    Args:
      x: array.
      fs: how many elements there are in a unit of time.
      window: what segments are multiplied with: an array, the name of a window, or a tuple of a
        name and parameters, as in `scipy.signal.get_window`.
      nperseg: how many elements a segment has, at most as many as there are.
      noverlap: how many elements segments that follow each other share; None for half.
      nfft: how many elements to transform, with zeros behind a segment; None for none.
      detrend: the type of trend to take from each segment, see `detrend`; False for none; or a
        function of the segments.
      return_onesided: whether negative frequencies are left out, for real `x`.
      boundary: how to go on at both ends, by half a segment: "zeros", "constant", "even" or "odd",
        or None for not at all.
      padded: whether to add zeros behind, so that the last segment is a whole one.
      axis: the axis of time.

    Returns:
      Triple of the frequencies `[m]`, the times of the middles of the segments `[n]`, and the
      spectra, complex: the frequencies lie along `axis`, the times along the last axis.

    Raises AttributeValueError (a ValueError) for another boundary.

    Examples:
      >>> frequencies, times, spectra = weft.scipy.signal.stft(wnp.ones(64), nperseg=16)
      >>> frequencies.shape, times.shape, spectra.shape
      ((9,), (9,), (9, 9))
    """
    if boundary not in (None, "zeros", "constant", "even", "odd"):
        raise AttributeValueError(
            f"[stft] expected boundary 'zeros', 'constant', 'even', 'odd' or None; got {boundary!r}"
        )
    axis = normalize_axis(axis, ndim_of(x), "stft")
    # A signal without elements has no segments; what is asked for is checked all the same.
    size = shape_of(x)[axis] if 0 not in shape_of(x) else None
    window, nperseg = _segment("stft", window, nperseg, size)
    noverlap, nfft = _lengths("stft", nperseg, noverlap, nfft)
    trend = _detrending("stft", detrend)
    if size is None:
        empty = jnp.zeros(shape_of(x), default_float())
        return empty, empty, empty.astype(to_complex_dtype(default_float()))
    return _stft(
        x,
        fs,
        window,
        nperseg=nperseg,
        noverlap=noverlap,
        nfft=nfft,
        trend=trend,
        onesided=bool(return_onesided) and not is_complex(dtype_of(x)),
        boundary=boundary,
        padded=bool(padded),
        axis=axis,
    )


_OPTIONS = ("nperseg", "noverlap", "nfft", "trend", "onesided", "axis")


@composite(static_argnames=(*_OPTIONS, "boundary", "padded"))
def _stft(x, fs, window, *, nperseg, noverlap, nfft, trend, onesided, boundary, padded, axis):
    x = jnp.moveaxis(_inexact(x), axis, -1)
    dtype = real_dtype(dtype_of(x))
    window = jnp.asarray(window, dtype=dtype)
    x = _extended(x, nperseg // 2, boundary)
    step = nperseg - noverlap
    if padded:
        missing = -(shape_of(x)[-1] - nperseg) % step % nperseg
        x = jnp.pad(x, [(0, 0)] * (ndim_of(x) - 1) + [(0, missing)])
    spectra = _segments(x, window, nperseg, noverlap, nfft, trend, onesided)
    spectra = spectra / jnp.abs(jnp.sum(window)).astype(dtype_of(spectra))
    start = nperseg / 2 if boundary is None else nperseg / 2 - nperseg / 2
    times = jnp.asarray(np.arange(shape_of(spectra)[-2]) * step + start, dtype=dtype)
    spectra = jnp.moveaxis(jnp.matrix_transpose(spectra), -2, axis)
    return _frequencies(fs, nfft, onesided, dtype), times / _core.astype(fs, dtype), spectra


def csd(
    x,
    y,
    fs=1.0,
    window="hann",
    nperseg=None,
    noverlap=None,
    nfft=None,
    detrend="constant",
    return_onesided=True,
    scaling="density",
    axis=-1,
    average="mean",
):
    """Cross spectral density of two signals: the mean over segments of conj(X) Y.

    Args:
      x, y: arrays with as many axes, the shorter one extended with zeros; the other axes broadcast.
        None as `y` stands for `x`.
      nperseg: how many elements a segment has; None for 256, or all if there are fewer.
      scaling: "density" for a density over frequency, "spectrum" for the squares of amplitudes.
      average: "mean", or "median" for the median over segments, which outliers change less.
      fs, window, noverlap, nfft, detrend, return_onesided, axis: see `stft`.

    Returns:
      Pair of the frequencies `[m]` and the density, with the frequencies along `axis`: complex, or
      real if `y` is None.

    Raises ShapeError for signals with different numbers of axes, AttributeValueError (a ValueError)
    for another scaling or average.

    Examples:
      >>> x = wnp.sin(wnp.arange(64) * wnp.pi / 4)  # one period in 8 samples
      >>> frequencies, density = weft.scipy.signal.csd(x, x, nperseg=32)
      >>> frequencies[wnp.argmax(abs(density))].item()
      0.125
    """
    if scaling not in ("density", "spectrum"):
        raise AttributeValueError(
            f"[csd] expected scaling 'density' or 'spectrum'; got {scaling!r}"
        )
    if average not in ("mean", "median"):
        raise AttributeValueError(f"[csd] expected average 'mean' or 'median'; got {average!r}")
    given = [x] if y is None else [x, y]
    if ndim_of(given[0]) != ndim_of(given[-1]):
        raise ShapeError(
            f"[csd] expected signals with as many axes; got shapes {shape_of(x)} and {shape_of(y)}"
        )
    axis = normalize_axis(axis, ndim_of(x), "csd")
    sizes = [shape_of(each)[axis] for each in given]
    some = all(0 not in shape_of(each) for each in given)
    window, nperseg = _segment("csd", window, nperseg, max(sizes) if some else None)
    noverlap, nfft = _lengths("csd", nperseg, noverlap, nfft)
    trend = _detrending("csd", detrend)
    if not some:
        empty = jnp.zeros(shape_of(given[-1]), default_float())
        return empty, empty if y is None else empty.astype(to_complex_dtype(empty.dtype))
    return _csd(
        x,
        y,
        fs,
        window,
        nperseg=nperseg,
        noverlap=noverlap,
        nfft=nfft,
        trend=trend,
        onesided=bool(return_onesided) and not any(is_complex(dtype_of(each)) for each in given),
        scaling=scaling,
        axis=axis,
        average=average,
    )


@composite(static_argnames=(*_OPTIONS, "scaling", "average"))
def _csd(
    x,
    y,
    fs,
    window,
    *,
    nperseg,
    noverlap,
    nfft,
    trend,
    onesided,
    scaling,
    axis,
    average,
):
    signals = [x] if y is None else _core.promote_dtypes(x, y)
    signals = [jnp.moveaxis(_inexact(each), axis, -1) for each in signals]
    size = max(shape_of(each)[-1] for each in signals)
    dtype = real_dtype(dtype_of(signals[0]))
    window = jnp.asarray(window, dtype=dtype)
    fs = _core.astype(fs, dtype)
    spectra = []
    for each in signals:
        missing = size - shape_of(each)[-1]
        each = jnp.pad(each, [(0, 0)] * (ndim_of(each) - 1) + [(0, missing)])
        spectra.append(_segments(each, window, nperseg, noverlap, nfft, trend, onesided))
    density = jnp.conj(spectra[0]) * spectra[-1]
    density = jnp.real(density) if y is None else density
    if scaling == "density":
        norm = fs * jnp.sum(jnp.square(window))
    else:
        norm = jnp.square(jnp.sum(window))
    density = density / norm.astype(dtype_of(density))
    if onesided:  # negative frequencies count as well; 0 and the highest one have none
        twice = np.full(shape_of(density)[-1], 2.0)
        twice[0] = 1
        if nfft % 2 == 0:
            twice[-1] = 1
        density = density * jnp.asarray(twice, dtype=dtype_of(density))
    density = _averaged(density, average)
    return _frequencies(fs, nfft, onesided, dtype), jnp.moveaxis(density, -1, axis)


def _averaged(x, average):
    """The mean or the median over the segments, `[..., segment, frequency]`."""
    if average == "mean":
        return jnp.mean(x, -2)
    if is_complex(dtype_of(x)):
        middle = lax.complex(jnp.median(jnp.real(x), -2), jnp.median(jnp.imag(x), -2))
    else:
        middle = jnp.median(x, -2)
    # The median of as many squares of normal variables as there are segments (Allen et al., 2012).
    even = 2 * np.arange(1, (shape_of(x)[-2] - 1) // 2 + 1)
    return middle / float(1 + np.sum(1 / (even + 1) - 1 / even))


def welch(
    x,
    fs=1.0,
    window="hann",
    nperseg=None,
    noverlap=None,
    nfft=None,
    detrend="constant",
    return_onesided=True,
    scaling="density",
    axis=-1,
    average="mean",
):
    """Power spectral density of a signal: `csd` with itself.

    Args:
      x: array.
      fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average: see
        `csd`.

    Returns:
      Pair of the frequencies `[m]` and the density, real, with the frequencies along `axis`.

    Examples:
      >>> x = wnp.sin(wnp.arange(64) * wnp.pi / 4)  # one period in 8 samples
      >>> frequencies, density = weft.scipy.signal.welch(x, nperseg=32)
      >>> frequencies[wnp.argmax(density)].item()
      0.125
    """
    return csd(
        x,
        None,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        scaling,
        axis,
        average,
    )


def istft(
    Zxx,
    fs=1.0,
    window="hann",
    nperseg=None,
    noverlap=None,
    nfft=None,
    input_onesided=True,
    boundary=True,
    time_axis=-1,
    freq_axis=-2,
):
    """The signal that `stft` makes spectra of, where its windows overlap (Griffin and Lim, 1984).

    Args:
      Zxx: spectra, an array with two axes at least.
      fs, window, noverlap: see `stft`.
      nperseg: how many elements a segment has; None for what the number of frequencies says.
      nfft: how many elements were transformed; None for the same.
      input_onesided: whether negative frequencies are left out.
      boundary: whether half a segment is to be left out at both ends.
      time_axis, freq_axis: the axes of the times and of the frequencies.

    Returns:
      Pair of times, as many as the first axis of the signal has elements, and of the signal, real
      if `input_onesided`. It lies along the axis of the times, without that of the frequencies.

    Raises ShapeError for spectra with fewer than two axes, AttributeValueError (a ValueError) for
    one axis as both.

    Examples:
      >>> x = wnp.arange(64.0)
      >>> frequencies, times, spectra = weft.scipy.signal.stft(x, nperseg=16)
      >>> times, y = weft.scipy.signal.istft(spectra, nperseg=16)
      >>> wnp.allclose(x, y, atol=1e-3)
      Array(True, dtype=bool)
    """
    ndim = ndim_of(Zxx)
    if ndim < 2:
        raise ShapeError(f"[istft] expected spectra with two axes; got shape {shape_of(Zxx)}")
    time_axis, freq_axis = (normalize_axis(i, ndim, "istft") for i in (time_axis, freq_axis))
    if time_axis == freq_axis:
        raise AttributeValueError(
            f"[istft] expected time_axis and freq_axis to differ; got {time_axis} for both"
        )
    count = shape_of(Zxx)[freq_axis]
    transformed = 2 * (count - 1) if input_onesided else count
    if nperseg is None:
        nperseg = transformed
    # Other than a name, an array takes part in promotion.
    dtype = None
    if not isinstance(window, _NAMED):
        dtype = real_dtype(_core.promote_dtypes(_inexact(Zxx), window)[0].dtype)
    window, nperseg = _segment("istft", window, nperseg, None)
    if nfft is None:
        odd = input_onesided and nperseg == transformed + 1
        nfft = nperseg if odd else transformed
    noverlap, nfft = _lengths("istft", nperseg, noverlap, nfft)
    return _istft(
        Zxx,
        fs,
        window,
        nperseg=nperseg,
        noverlap=noverlap,
        nfft=nfft,
        onesided=bool(input_onesided),
        trimmed=bool(boundary),
        axes=(time_axis, freq_axis),
        dtype=dtype,
    )


@composite(static_argnames=("nperseg", "noverlap", "nfft", "onesided", "trimmed", "axes", "dtype"))
def _istft(spectra, fs, window, *, nperseg, noverlap, nfft, onesided, trimmed, axes, dtype):
    (spectra,) = _core.promote_dtypes_inexact(spectra)
    spectra = jnp.moveaxis(spectra, axes, (-2, -1))
    spectra = spectra.astype(to_complex_dtype(dtype_of(spectra)))
    dtype = real_dtype(dtype_of(spectra)) if dtype is None else dtype
    window = jnp.asarray(window, dtype=dtype)
    parts = jnp.fft.irfft(spectra, nfft) if onesided else jnp.fft.ifft(spectra, nfft)
    parts = parts[..., :nperseg] * window * jnp.sum(window)
    count, step = shape_of(parts)[-2], nperseg - noverlap
    size = nperseg + (count - 1) * step
    at = np.arange(count)[:, None] * step + np.arange(nperseg)
    x = jnp.zeros((*shape_of(parts)[:-2], size), dtype_of(parts)).at[..., at].add(parts)
    weight = jnp.zeros(size, dtype).at[at].add(jnp.square(window))
    if trimmed:
        kept = slice(nperseg // 2, size - nperseg // 2)
        x, weight = x[..., kept], weight[kept]
    x = x / jnp.where(weight > 1e-10, weight, 1)
    time_axis, freq_axis = axes
    x = jnp.moveaxis(x, -1, time_axis - (freq_axis < time_axis))
    times = jnp.asarray(np.arange(shape_of(x)[0]), dtype=dtype)
    return times / _core.astype(fs, dtype), x
