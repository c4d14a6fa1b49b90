"""Discrete cosine transforms, by Fourier transforms of the same length (Makhoul, 1980)."""

import math

import numpy as np

from weft import _core, numpy as jnp
from weft._arguments import ndim_of, normalize_axes, normalize_axis, shape_of, static_ints
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.dtypes import dtype_of, is_complex, to_complex_dtype, to_wide_dtype
from weft.errors import AttributeValueError, NotImplementedRuleError, ShapeError
from weft.numpy._fft import _of_size

__all__ = ["dct", "dctn", "idct", "idctn"]
__getattr__, __dir__ = _public(__name__, __all__)


def dct(x, type=2, n=None, axis=-1, norm=None):
    """Discrete cosine transform along an axis: 2 sum_k x[k] cos(pi i (2 k + 1) / (2 n)).

    Args:
      x: array.
      type: 2.
      n: how many elements to transform: the axis is cut or extended with zeros; None for all.
      axis: the axis.
      norm: "ortho" for an orthonormal transform; "backward" or None.

    Returns:
      Array of a floating-point dtype of at least 32 bits.

    Examples:
      >>> weft.scipy.fft.dct(wnp.ones(3))[0].round(3)
      Array(6., dtype=float32)
    """
    axis = normalize_axis(axis, ndim_of(x), "dct")
    return _transform("dct", x, type, None if n is None else (n,), (axis,), norm)


def idct(x, type=2, n=None, axis=-1, norm=None):
    """Inverse of `dct`; see there for the arguments.

    Examples:
      >>> weft.scipy.fft.idct(weft.scipy.fft.dct(wnp.array([1.0, 2.0, 4.0]))).round(3)
      Array([1., 2., 4.], dtype=float32)
    """
    axis = normalize_axis(axis, ndim_of(x), "idct")
    return _transform("idct", x, type, None if n is None else (n,), (axis,), norm)


def dctn(x, type=2, s=None, axes=None, norm=None):
    """Discrete cosine transform over several axes.

    Args:
      x: array.
      type: 2.
      s: how many elements to transform, for the first axes or all; None for all elements.
      axes: an axis or several. None for all, or for the last ones, as many as `s` has lengths.
      norm: see `dct`.

    Returns:
      Array of a floating-point dtype of at least 32 bits.

    Examples:
      >>> weft.scipy.fft.dctn(wnp.ones((2, 3)))[0, 0].round(2)
      Array(24., dtype=float32)
    """
    return _transform("dctn", x, type, s, _axes("dctn", x, s, axes), norm)


def idctn(x, type=2, s=None, axes=None, norm=None):
    """Inverse of `dctn`; see there for the arguments.

    Examples:
      >>> x = wnp.array([[1.0, 2.0], [3.0, 5.0]])
      >>> weft.scipy.fft.idctn(weft.scipy.fft.dctn(x)).round(3)
      Array([[1., 2.],
             [3., 5.]], dtype=float32)
    """
    return _transform("idctn", x, type, s, _axes("idctn", x, s, axes), norm)


def _axes(function, x, s, axes):
    ndim = ndim_of(x)
    if axes is None and s is not None:
        axes = range(ndim - len(static_ints(s, function, "the lengths")), ndim)
    return normalize_axes(axes, ndim, function)


def _transform(function, x, type, s, axes, norm):
    if type != 2:
        raise NotImplementedRuleError(f"[{function}] expected type=2; got {type!r}")
    if norm not in (None, "backward", "ortho"):
        raise AttributeValueError(
            f"[{function}] expected norm 'ortho', 'backward' or None; got {norm!r}"
        )
    lengths = [shape_of(x)[axis] for axis in axes]
    if s is not None:
        given = static_ints(s, function, "the lengths")
        lengths[: len(given)] = given
    if len(lengths) != len(axes) or any(n < 1 for n in lengths):
        raise ShapeError(
            f"[{function}] expected at most {len(axes)} lengths, each of at least 1; got {lengths}"
        )
    return _over_axes(
        x,
        inverse=function.startswith("i"),
        lengths=tuple(lengths),
        axes=axes,
        ortho=norm == "ortho",
    )


@composite(static_argnames=("inverse", "lengths", "axes", "ortho"))
def _over_axes(x, *, inverse, lengths, axes, ortho):
    (x,) = _core.promote_dtypes_inexact(x)
    x = x.astype(to_wide_dtype(dtype_of(x)))
    for axis, n in zip(axes, lengths, strict=True):
        x = jnp.moveaxis(_of_size(x, axis, n), axis, -1)
        if is_complex(dtype_of(x)):
            x = _along_last(x.real, inverse, ortho) + 1j * _along_last(x.imag, inverse, ortho)
        else:
            x = _along_last(x, inverse, ortho)
        x = jnp.moveaxis(x, -1, axis)
    return x


def _along_last(x, inverse, ortho):
    n, dtype = shape_of(x)[-1], dtype_of(x)
    wide = to_complex_dtype(dtype)
    turn = jnp.asarray(np.exp(-0.5j * np.pi * np.arange(n) / n), dtype=wide)
    # An orthonormal transform is the plain one times these.
    scale = np.full(n, math.sqrt(1 / (2 * n)))
    scale[0] /= math.sqrt(2)
    # The transform of the elements at even places followed by those at odd ones backwards.
    places = np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)[::-1]])
    if not inverse:
        spectrum = jnp.fft.fft(x[..., places].astype(wide))
        result = 2 * (spectrum * turn).real
        return result * jnp.asarray(scale, dtype=dtype) if ortho else result
    if ortho:
        x = x / jnp.asarray(scale, dtype=dtype)
    # Of a real array the spectrum is the transform minus i times the transform reversed.
    reverse = jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., :0:-1]], -1)
    spectrum = (x.astype(wide) - 1j * reverse.astype(wide)) * jnp.conj(turn) / 2
    return jnp.fft.ifft(spectrum).real[..., np.argsort(places)]


_open_to_users(__name__)
