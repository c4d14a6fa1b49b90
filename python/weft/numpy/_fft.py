"""Discrete Fourier transforms with NumPy's arguments: lengths, axes and norms."""

import math
from collections.abc import Iterable

from weft import _core
from weft._arguments import ndim_of, normalize_axes, shape_of, static_int, static_ints, strong
from weft._jit import composite
from weft.dtypes import (
    default_float,
    dtype_of,
    is_complex,
    real_dtype,
    requested_dtype,
    to_complex_dtype,
    to_inexact_dtype,
)
from weft.errors import ArgumentTypeError, AttributeValueError, ShapeError
from weft.lax._fft import FftType, fft as lax_fft
from weft.lax._shape import pad
from weft.lax._sharding import placed
from weft.lax._slice import sliced
from weft.numpy import _ufuncs as u
from weft.numpy._creation import arange, asarray
from weft.numpy._join import roll
from weft.numpy._shape import moveaxis

_INVERSE = (FftType.IFFT, FftType.IRFFT)
_MOST_AXES = 3  # of one operation


def _norm(function, norm):
    norms = ("backward", "ortho", "forward")
    if norm is None:
        return "backward"
    if norm not in norms:
        raise AttributeValueError(
            f"[{function}] expected norm to be None or one of {', '.join(map(repr, norms))}; got "
            f"{norm!r}"
        )
    return norm


def _lengths(function, s, count):
    lengths = static_ints(s, function, "the lengths")
    if len(lengths) != count:
        raise ShapeError(
            f"[{function}] expected as many lengths as axes, {count}; got {len(lengths)}"
        )
    if any(n < 1 for n in lengths):
        raise AttributeValueError(f"[{function}] expected lengths of at least 1; got {lengths}")
    return lengths


def transform(function, kind, a, s, axes, norm):
    """A transform over several axes; `s` and `axes` may be None."""
    norm = _norm(function, norm)
    for name, value in (("s", s), ("axes", axes)):
        if value is not None and not isinstance(value, Iterable):
            raise ArgumentTypeError(
                f"[{function}] expected {name} to be a sequence of integers; got {value!r}"
            )
    shape = shape_of(a)
    if axes is None and s is not None:
        count = len(static_ints(s, function, "the lengths"))
        if count > len(shape):
            raise ShapeError(
                f"[{function}] expected at most as many lengths as axes; got {count} for an array "
                f"of shape {shape}"
            )
        axes = range(len(shape) - count, len(shape))
    axes = normalize_axes(axes, len(shape), function)
    if kind is FftType.RFFT and is_complex(dtype_of(a)):
        raise AttributeValueError(f"[{function}] expected a real array; got dtype {dtype_of(a)}")
    if kind is FftType.RFFT and dtype_of(a).name in ("float16", "bfloat16"):
        raise AttributeValueError(
            f"[{function}] expected floats of 32 or 64 bits; got dtype {dtype_of(a)}"
        )
    if s is not None:
        s = _lengths(function, s, len(axes))
    else:
        s = tuple(shape[axis] for axis in axes)
        if kind is FftType.IRFFT and s:
            s = (*s[:-1], max(2 * (s[-1] - 1), 0))
    return _transform(a, kind=kind, lengths=s, axes=axes, norm=norm)


@composite(static_argnames=("kind", "lengths", "axes", "norm"))
def _transform(a, *, kind, lengths, axes, norm):
    dtype = to_inexact_dtype(dtype_of(a))
    if kind is not FftType.RFFT:
        dtype = to_complex_dtype(dtype)
    a = _core.astype(a, dtype)
    if not lengths:
        return a
    if 0 in lengths and kind is FftType.IRFFT:  # of a spectrum of one element
        sizes = dict(zip(axes, lengths, strict=True))
        shape = [sizes.get(i, n) for i, n in enumerate(shape_of(a))]
        return _core.broadcast_to(_core.astype(0, real_dtype(dtype)), tuple(shape))
    needed = lengths
    if kind is FftType.IRFFT:
        needed = (*lengths[:-1], lengths[-1] // 2 + 1)
    for axis, size in zip(axes, needed, strict=True):
        a = _of_size(a, axis, size)
    last = range(ndim_of(a) - len(axes), ndim_of(a))
    a = _over_last_axes(moveaxis(a, axes, last), kind, lengths)
    return moveaxis(_normalized(a, kind, math.prod(lengths), norm), last, axes)


def _of_size(a, axis, size):
    """The array cut, or extended with zeros, at the end of an axis."""
    missing = size - shape_of(a)[axis]
    if missing < 0:
        return sliced(a, 0, size, axis=axis)
    if missing == 0:
        return a
    config = [(0, missing if i == axis else 0, 0) for i in range(ndim_of(a))]
    return pad(a, _core.astype(0, dtype_of(a)), config)


def _over_last_axes(a, kind, lengths):
    if len(lengths) <= _MOST_AXES:
        return lax_fft(a, kind, lengths)
    # The real side is the last axis alone: first there for RFFT, last for IRFFT.
    steps = [(kind, lengths[-_MOST_AXES:], 0)]
    full = {FftType.RFFT: FftType.FFT, FftType.IRFFT: FftType.IFFT}.get(kind, kind)
    rest = lengths[:-_MOST_AXES]
    while rest:
        steps.append((full, rest[-_MOST_AXES:], len(lengths) - len(rest)))
        rest = rest[:-_MOST_AXES]
    if kind is FftType.IRFFT:
        steps.reverse()
    for step, sizes, after in steps:
        stop = ndim_of(a) - after
        axes, last = range(stop - len(sizes), stop), range(ndim_of(a) - len(sizes), ndim_of(a))
        a = moveaxis(lax_fft(moveaxis(a, axes, last), step, sizes), last, axes)
    return a


def _normalized(a, kind, count, norm):
    """The operation divides by the number of elements in the inverse direction."""
    inverse = kind in _INVERSE
    if norm == "ortho":
        scale = math.sqrt(count) if inverse else 1 / math.sqrt(max(count, 1))
    elif norm == "forward":
        scale = count if inverse else 1 / max(count, 1)
    else:
        return a
    return u.multiply(a, float(scale))


def _along_one_axis(function, kind, a, n, axis, norm):
    if isinstance(axis, (tuple, list)):
        raise AttributeValueError(f"[{function}] expected one axis; got {axis}")
    axes = None if axis is None else (axis,)
    return transform(function, kind, a, None if n is None else (n,), axes, norm)


def _over_two_axes(function, kind, a, s, axes, norm):
    if len(axes) != 2:
        raise AttributeValueError(f"[{function}] expected two axes; got {axes}")
    return transform(function, kind, a, s, axes, norm)


def fft(a, n=None, axis=-1, norm=None):
    """Discrete Fourier transform along an axis.

    Args:
      a: array, real or complex.
      n: how many elements to transform: `a` is cut or extended with zeros; None for all.
      axis: the axis.
      norm: "backward" (or None) to divide the inverse transform by `n`, "forward" to divide this
        one, "ortho" to divide both by its square root.

    Returns:
      Complex array, of size `n` along the axis.

    Raises:
      AttributeValueError: for another norm, `n` below 1, or an axis that `a` lacks.

    Examples:
      >>> wnp.fft.fft(wnp.array([1.0, 2.0, 3.0, 4.0])).real.round(3)
      Array([10., -2., -2., -2.], dtype=float32)
    """
    return _along_one_axis("fft", FftType.FFT, a, n, axis, norm)


def ifft(a, n=None, axis=-1, norm=None):
    """Inverse of `fft` along an axis; see there for the arguments.

    Examples:
      >>> wnp.fft.ifft(wnp.array([10.0, 0.0, 0.0, 0.0])).real.round(3)
      Array([2.5, 2.5, 2.5, 2.5], dtype=float32)
    """
    return _along_one_axis("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a, n=None, axis=-1, norm=None):
    """The first `n // 2 + 1` elements of the transform of a real array along an axis.

    For the arguments see `fft`. Raises AttributeValueError for a complex array, or floats of 16
    bits.

    Examples:
      >>> wnp.fft.rfft(wnp.array([1.0, 2.0, 3.0, 4.0])).real.round(3)
      Array([10., -2., -2.], dtype=float32)
    """
    return _along_one_axis("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a, n=None, axis=-1, norm=None):
    """Inverse of `rfft` along an axis, a real array.

    For the arguments see `fft`; `n` is the size of the result, 2 * (m - 1) for m elements if it is
    None.

    Examples:
      >>> wnp.fft.irfft(wnp.fft.rfft(wnp.array([1.0, 2.0, 3.0])), n=3).round(3)
      Array([1., 2., 3.], dtype=float32)
    """
    return _along_one_axis("irfft", FftType.IRFFT, a, n, axis, norm)


_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(a, n=None, axis=-1, norm=None):
    """Real transform, of size `n`, of the first half of a sequence that is Hermitian.

    For the arguments see `irfft`.

    Examples:
      >>> wnp.fft.hfft(wnp.array([1.0, 2.0, 4.0])).round(3)
      Array([ 9., -3.,  1., -3.], dtype=float32)
    """
    return irfft(u.conj(a), n, axis, _OPPOSITE[_norm("hfft", norm)])


def ihfft(a, n=None, axis=-1, norm=None):
    """Inverse of `hfft`: the first half of a Hermitian sequence; see `rfft` for the arguments.

    Examples:
      >>> wnp.fft.ihfft(wnp.array([4.0, 0.0, 0.0, 0.0])).real.round(3)
      Array([1., 1., 1.], dtype=float32)
    """
    return u.conj(rfft(asarray(a), n, axis, _OPPOSITE[_norm("ihfft", norm)]))


def fft2(a, s=None, axes=(-2, -1), norm=None):
    """Discrete Fourier transform over two axes; for the arguments see `fftn`.

    Examples:
      >>> abs(wnp.fft.fft2(wnp.ones((2, 3)))).round(3)
      Array([[6., 0., 0.],
             [0., 0., 0.]], dtype=float32)
    """
    return _over_two_axes("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(a, s=None, axes=(-2, -1), norm=None):
    """Inverse of `fft2`; for the arguments see `fftn`.

    Examples:
      >>> wnp.fft.ifft2(wnp.fft.fft2(wnp.array([[1.0, 2.0], [3.0, 4.0]]))).real.round(3)
      Array([[1., 2.],
             [3., 4.]], dtype=float32)
    """
    return _over_two_axes("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(a, s=None, axes=(-2, -1), norm=None):
    """Transform of a real array over two axes, half of it along the last; see `rfftn`.

    Examples:
      >>> wnp.fft.rfft2(wnp.zeros((4, 6))).shape
      (4, 4)
    """
    return _over_two_axes("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(a, s=None, axes=(-2, -1), norm=None):
    """Inverse of `rfft2`, a real array; see `irfftn`.

    Examples:
      >>> wnp.fft.irfft2(wnp.fft.rfft2(wnp.array([[1.0, 2.0], [3.0, 4.0]]))).round(3)
      Array([[1., 2.],
             [3., 4.]], dtype=float32)
    """
    return _over_two_axes("irfft2", FftType.IRFFT, a, s, axes, norm)


def fftn(a, s=None, axes=None, norm=None):
    """Discrete Fourier transform over several axes.

    Args:
      a: array, real or complex.
      s: how many elements to transform along each of the axes; None for all.
      axes: the axes, all different; None for the last `len(s)`, or for all.
      norm: see `fft`.

    Returns:
      Complex array, of the sizes `s` along the axes.

    Raises:
      ShapeError: if there are not as many lengths as axes.
      AttributeValueError: for another norm, a length below 1, or an axis that `a` lacks.

    Examples:
      >>> wnp.fft.fftn(wnp.ones((2, 2, 2)))[0, 0, 0].real.round(3)
      Array(8., dtype=float32)
    """
    return transform("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(a, s=None, axes=None, norm=None):
    """Inverse of `fftn`; see there for the arguments.

    Examples:
      >>> wnp.fft.ifftn(wnp.fft.fftn(wnp.array([[1.0, 2.0], [3.0, 4.0]]))).real.round(3)
      Array([[1., 2.],
             [3., 4.]], dtype=float32)
    """
    return transform("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(a, s=None, axes=None, norm=None):
    """Transform of a real array over several axes, `n // 2 + 1` elements along the last of them.

    For the arguments see `fftn`. Raises AttributeValueError for a complex array, or floats of 16
    bits.

    Examples:
      >>> wnp.fft.rfftn(wnp.zeros((4, 6, 8))).shape
      (4, 6, 5)
    """
    return transform("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(a, s=None, axes=None, norm=None):
    """Inverse of `rfftn`, a real array.

    For the arguments see `fftn`; the last length is that of the result, 2 * (m - 1) for m elements
    if `s` is None.

    Examples:
      >>> wnp.fft.irfftn(wnp.zeros((4, 6, 5), dtype="complex64")).shape
      (4, 6, 8)
    """
    return transform("irfftn", FftType.IRFFT, a, s, axes, norm)


def fftfreq(n, d=1.0, *, dtype=None, device=None):
    """The frequencies that the elements of `fft` stand for: 0, 1, ... and the negative ones, over
    n d.

    Args:
      n: how many elements were transformed, an integer.
      d: the distance between them, a number.
      dtype: dtype of the result; the default float dtype if None.
      device: where the result is to be.

    Examples:
      >>> wnp.fft.fftfreq(4, d=0.5)
      Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """
    n = _number_of_elements("fftfreq", n)
    return _frequencies("fftfreq", n, d, dtype, device, -(n // 2), n)


def rfftfreq(n, d=1.0, *, dtype=None, device=None):
    """The frequencies that the elements of `rfft` stand for: 0, 1, ... n // 2, over n d.

    For the arguments see `fftfreq`.

    Examples:
      >>> wnp.fft.rfftfreq(4, d=0.5)
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    n = _number_of_elements("rfftfreq", n)
    return _frequencies("rfftfreq", n, d, dtype, device, 0, n // 2 + 1)


def _number_of_elements(function, n):
    if isinstance(n, (tuple, list)):
        raise AttributeValueError(f"[{function}] expected n to be an integer; got {n}")
    return static_int(n, function, "n")


def _frequencies(function, n, d, dtype, device, first, count):
    """`count` numbers from `first` on, over n d; rolled so that 0 comes first."""
    dtype = default_float() if dtype is None else requested_dtype(dtype, function)
    if isinstance(d, (tuple, list)) or shape_of(d):
        raise AttributeValueError(f"[{function}] expected d to be a number; got {d}")
    return placed(_quotients(d, n=n, dtype=dtype, first=first, count=count), device)


@composite(static_argnames=("n", "dtype", "first", "count"))
def _quotients(d, *, n, dtype, first, count):
    k = roll(arange(first, first + max(count, 0), dtype=dtype), first)
    return strong(_core.astype(u.divide(k, u.multiply(d, n)), dtype))


def fftshift(x, axes=None):
    """The frequencies reordered so that they ascend, 0 in the middle of each axis.

    Args:
      x: array.
      axes: an axis, several, or None for all.

    Examples:
      >>> wnp.fft.fftshift(wnp.array([0, 1, 2, -2, -1]))
      Array([-2, -1,  0,  1,  2], dtype=int32)
    """
    return _shift(x, axes, "fftshift", lambda size: size // 2)


def ifftshift(x, axes=None):
    """The inverse of `fftshift`; see there for the arguments.

    Examples:
      >>> wnp.fft.ifftshift(wnp.array([-2, -1, 0, 1, 2]))
      Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    return _shift(x, axes, "ifftshift", lambda size: -(size // 2))


def _shift(x, axes, function, places):
    shape = shape_of(x)
    axes = normalize_axes(axes, len(shape), function)
    return _rolled(x, places=tuple(places(shape[axis]) for axis in axes), axes=axes)


@composite(static_argnames=("places", "axes"))
def _rolled(x, *, places, axes):
    return roll(x, places, axes)
