"""Convolutions of arrays of any number of axes."""

from weft import _core, numpy as jnp
from weft._arguments import ndim_of, normalize_axes, shape_of, weak_as
from weft._jit import composite
from weft.dtypes import dtype_of, is_complex
from weft.errors import AttributeValueError, NotImplementedRuleError, ShapeError
from weft.lax._conv import conv_general_dilated

_MODES = ("full", "same", "valid")


def convolve(in1, in2, mode="full", method="auto", precision=None):
    """Sums of the products of `in1` and `in2`, reversed, in each place that they overlap.

    Args:
      in1, in2: arrays with as many axes, and with elements.
      mode: "full" for all places, "same" for as many as `in1` has elements, in their middle,
        "valid" for those where one lies within the other.
      method: "direct" (or "auto") for a convolution, "fft" for Fourier transforms.
      precision: see `weft.lax.Precision`; no effect on method "fft".

    Returns:
      Array of a floating-point dtype.

    Examples:
      >>> weft.scipy.signal.convolve(wnp.array([1, 2, 3]), wnp.array([1, 10]))
      Array([ 1., 12., 23., 30.], dtype=float32)
    """
    _check_method("convolve", method)
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    return _direct("convolve", in1, in2, mode, precision, True)


def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0, precision=None):
    """`convolve` for matrices.

    Args:
      in1, in2, mode: see `convolve`.
      boundary: "fill"; what lies outside is zero.
      fillvalue: 0.
      precision: see `weft.lax.Precision`.

    Examples:
      >>> weft.scipy.signal.convolve2d(wnp.ones((2, 2)), wnp.ones((2, 2)))
      Array([[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]], dtype=float32)
    """
    _check_matrices("convolve2d", in1, in2, boundary, fillvalue)
    return _direct("convolve2d", in1, in2, mode, precision, True)


def correlate(in1, in2, mode="full", method="auto", precision=None):
    """Sums of the products of `in1` and the conjugate of `in2`, moved to each place that they
    overlap; for the arguments see `convolve`.

    Examples:
      >>> weft.scipy.signal.correlate(wnp.array([1, 2, 3]), wnp.array([1, 10]))
      Array([10., 21., 32.,  3.], dtype=float32)
    """
    _check_method("correlate", method)
    if method == "fft":
        return fftconvolve(in1, jnp.flip(jnp.conj(in2)), mode)
    return _direct("correlate", in1, in2, mode, precision, False)


def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0, precision=None):
    """`correlate` for matrices; for the arguments see `convolve2d`.

    Examples:
      >>> weft.scipy.signal.correlate2d(wnp.eye(2), wnp.eye(2), mode="valid")
      Array([[2.]], dtype=float32)
    """
    _check_matrices("correlate2d", in1, in2, boundary, fillvalue)
    if mode == "same":
        # In the middle of an even number of columns or rows SciPy chooses the other place here.
        return _direct("correlate2d", in1, in2, "same after", precision, False)
    result = _direct("correlate2d", in1, in2, mode, precision, False)
    if mode == "valid" and shape_of(in1) < shape_of(in2):
        return jnp.conj(result)  # SciPy takes the conjugate of the smaller one
    return result


def _check_method(function, method):
    if method not in ("auto", "direct", "fft"):
        raise AttributeValueError(
            f"[{function}] expected method 'auto', 'direct' or 'fft'; got {method!r}"
        )


def _check_mode(function, mode):
    if mode not in _MODES:
        raise AttributeValueError(
            f"[{function}] expected mode 'full', 'same' or 'valid'; got {mode!r}"
        )


def _check_matrices(function, in1, in2, boundary, fillvalue):
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedRuleError(
            f"[{function}] expected boundary='fill' and fillvalue=0; got {boundary!r} and "
            f"{fillvalue!r}"
        )
    if ndim_of(in1) != 2 or ndim_of(in2) != 2:
        raise ShapeError(
            f"[{function}] expected matrices; got shapes {shape_of(in1)} and {shape_of(in2)}"
        )


def _check_within(function, shape1, shape2):
    """ShapeError unless one array is at least as large as the other along every axis."""
    pairs = list(zip(shape1, shape2, strict=True))
    if not (all(n >= m for n, m in pairs) or all(n <= m for n, m in pairs)):
        raise ShapeError(
            f"[{function}] expected, for mode 'valid', one array to be at least as large along "
            f"every axis; got shapes {shape1} and {shape2}"
        )


def _direct(function, in1, in2, mode, precision, flips):
    if mode != "same after":
        _check_mode(function, mode)
    shapes = shape_of(in1), shape_of(in2)
    if len(shapes[0]) != len(shapes[1]) or 0 in (*shapes[0], *shapes[1]):
        raise ShapeError(
            f"[{function}] expected arrays with as many axes, and with elements; got shapes "
            f"{shapes[0]} and {shapes[1]}"
        )
    if mode == "valid":
        _check_within(function, *shapes)
    return _convolution(in1, in2, mode=mode, precision=precision, flips=flips)


@composite(static_argnames=("mode", "precision", "flips"))
def _convolution(x, y, *, mode, precision, flips):
    weak = _core.result_type(x, y)[1]
    x, y = _core.promote_dtypes_inexact(x, y)
    if ndim_of(x) == 0:
        return x * (y if flips else jnp.conj(y))
    sizes = shape_of(x)
    # The window is the smaller one, where one lies within the other.
    swapped = mode == "valid" and any(n < m for n, m in zip(sizes, shape_of(y), strict=True))
    window, x = (x, y) if swapped else (y, x)
    if flips:
        window = jnp.flip(window)
    elif is_complex(dtype_of(window)) and not swapped:
        window = jnp.conj(window)
    elif swapped:
        x = jnp.conj(x)
    padding = [
        {
            "full": (m - 1, m - 1),
            "same": (m // 2, (m - 1) // 2),
            "same after": ((m - 1) // 2, m // 2),
            "valid": (0, 0),
        }[mode]
        for m in shape_of(window)
    ]
    result = conv_general_dilated(
        x[None, None], window[None, None], (1,) * ndim_of(x), padding, precision=precision
    )[0, 0]
    result = jnp.flip(result) if swapped and not flips else result
    return weak_as(result, x) if weak else result


def fftconvolve(in1, in2, mode="full", axes=None):
    """`convolve` by Fourier transforms.

    Args:
      in1, in2: arrays with as many axes, and of the same sizes along the axes not in `axes`.
      mode: see `convolve`.
      axes: an axis, or several, to convolve along; None for all.

    Returns:
      Array of a floating-point dtype.

    Raises ShapeError for different numbers of axes, or sizes along other axes than those.

    Examples:
      >>> weft.scipy.signal.fftconvolve(wnp.array([1.0, 2.0, 3.0]), wnp.array([1.0, 10.0])).round(2)
      Array([ 1., 12., 23., 30.], dtype=float32)
    """
    _check_mode("fftconvolve", mode)
    shapes = shape_of(in1), shape_of(in2)
    if len(shapes[0]) != len(shapes[1]):
        raise ShapeError(f"[fftconvolve] expected arrays with as many axes; got shapes {shapes}")
    axes = normalize_axes(axes, len(shapes[0]), "fftconvolve") if axes != () else ()
    others = [i for i in range(len(shapes[0])) if i not in axes]
    if any(shapes[0][i] != shapes[1][i] for i in others):
        raise ShapeError(
            f"[fftconvolve] expected equal sizes along axes other than {axes}; got shapes "
            f"{shapes[0]} and {shapes[1]}"
        )
    if mode == "valid":
        _check_within("fftconvolve", *shapes)
    return _fftconvolve(in1, in2, mode=mode, axes=tuple(sorted(axes)))


@composite(static_argnames=("mode", "axes"))
def _fftconvolve(x, y, *, mode, axes):
    x, y = _core.promote_dtypes_inexact(x, y)
    if not axes:
        return x * y
    full = [shape_of(x)[i] + shape_of(y)[i] - 1 for i in axes]
    if 0 in (*shape_of(x), *shape_of(y)):
        shape = list(shape_of(x))
        for axis, n in zip(axes, full, strict=True):
            shape[axis] = max(n, 0)
        result = jnp.zeros(shape, dtype_of(x))
    elif is_complex(dtype_of(x)):
        spectrum = jnp.fft.fftn(x, full, axes) * jnp.fft.fftn(y, full, axes)
        result = jnp.fft.ifftn(spectrum, full, axes)
    else:
        spectrum = jnp.fft.rfftn(x, full, axes) * jnp.fft.rfftn(y, full, axes)
        result = jnp.fft.irfftn(spectrum, full, axes).astype(dtype_of(x))
    index = [slice(None)] * ndim_of(x)
    for axis, n in zip(axes, full, strict=True):
        first, second = shape_of(x)[axis], shape_of(y)[axis]
        kept = {"full": n, "same": first, "valid": max(first, second) - min(first, second) + 1}
        start = (n - kept[mode]) // 2
        index[axis] = slice(start, start + kept[mode])
    return result[tuple(index)]
