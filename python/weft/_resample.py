"""The functions of weft.image: products with a matrix of weights along each axis."""

import enum

import numpy as np

from weft import _core, numpy as jnp
from weft._arguments import normalize_axes, shape_of, static_shape
from weft._jit import composite
from weft.dtypes import dtype_of, promote_types, real_dtype, to_inexact_dtype
from weft.errors import AttributeValueError, PreconditionError, ShapeError
from weft.lax._creation import iota
from weft.lax._dot import Precision
from weft.numpy._reductions import compute_dtype

_NAMES = {
    "nearest": "NEAREST",
    "linear": "LINEAR",
    "bilinear": "LINEAR",
    "trilinear": "LINEAR",
    "triangle": "LINEAR",
    "lanczos3": "LANCZOS3",
    "lanczos5": "LANCZOS5",
    "cubic": "CUBIC",
    "bicubic": "CUBIC",
    "tricubic": "CUBIC",
    "cubic-pytorch": "CUBIC_PYTORCH",
    "bicubic-pytorch": "CUBIC_PYTORCH",
    "area": "AREA",
}


class ResizeMethod(enum.Enum):
    """How a pixel follows from those of the given image.

    NEAREST takes the nearest one. LINEAR, CUBIC (Keys, 1981) and LANCZOS3, LANCZOS5 (Duchon, 1979)
    weigh those around it. CUBIC_PYTORCH is CUBIC, but without antialiasing has the parameter -0.75
    in place of -0.5 and repeats the pixels at the edges. AREA takes the mean over its area.
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s):
        """The method of a name; ValueError for another name."""
        if s not in _NAMES:
            raise AttributeValueError(f"expected a resize method of {', '.join(_NAMES)}; got {s!r}")
        return ResizeMethod[_NAMES[s]]


def _method(method, function):
    if isinstance(method, str):
        return ResizeMethod.from_string(method)
    if isinstance(method, ResizeMethod):
        return method
    raise AttributeValueError(
        f"[{function}] expected method to be a name or a ResizeMethod; got {method!r}"
    )


def _triangle(x):
    return jnp.maximum(1 - x, 0)


def _keys(x, a):
    """The cubic kernel of Keys with the slope `a` at 1."""
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return jnp.where(x >= 2, 0.0, jnp.where(x >= 1, outer, inner))


def _lanczos(x, radius):
    is_small = x <= 1e-3  # the quotient loses its digits there
    safe = jnp.where(is_small, 1, x)
    weights = radius * jnp.sin(np.pi * safe) * jnp.sin(np.pi * safe / radius)
    weights = weights / (np.pi**2 * safe * safe)
    return jnp.where(x > radius, 0.0, jnp.where(is_small, 1.0, weights))


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.CUBIC: lambda x: _keys(x, -0.5),
    ResizeMethod.CUBIC_PYTORCH: lambda x: _keys(x, -0.5),
    ResizeMethod.LANCZOS3: lambda x: _lanczos(x, 3.0),
    ResizeMethod.LANCZOS5: lambda x: _lanczos(x, 5.0),
}


def _weights(old, new, scale, translation, method, antialias):
    """The matrix `[old, new]` of what each old element counts for each new one."""
    dtype = dtype_of(scale)
    inverse = 1 / scale
    width = jnp.maximum(inverse, 1) if antialias else _core.astype(1, dtype)
    # Where the middle of each new element lies among the old ones.
    middle = (iota(dtype, new) + 0.5) * inverse - translation * inverse - 0.5
    places = iota(dtype, old)
    if method is ResizeMethod.AREA:
        start = iota(dtype, new) * inverse - translation * inverse
        end = jnp.minimum((start + inverse)[None, :], (places + 1)[:, None])
        weights = jnp.maximum(end - jnp.maximum(start[None, :], places[:, None]), 0)
    elif method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        # Elements beyond the edges, which the kernel reaches, are the ones at the edges.
        outside = iota(dtype, old + 4) - 2
        reached = _keys(jnp.abs(middle[None, :] - outside[:, None]), -0.75)
        at = jnp.clip(outside, 0, old - 1)[None, :] == places[:, None]
        weights = jnp.matmul(at.astype(dtype), reached, precision=Precision.HIGHEST)
    else:
        weights = _KERNELS[method](jnp.abs(middle[None, :] - places[:, None]) / width)
    total = jnp.sum(weights, axis=0, keepdims=True)
    counts = jnp.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    weights = jnp.where(counts, weights / jnp.where(total != 0, total, 1), 0)
    inside = (middle >= -0.5) & (middle <= old - 0.5)
    return jnp.where(inside[None, :], weights, 0)


@composite(static_argnames=("shape", "axes", "method", "antialias", "precision"))
def _scale_and_translate(image, scale, translation, *, shape, axes, method, antialias, precision):
    (image,) = _core.promote_dtypes_inexact(image)
    own = real_dtype(dtype_of(image))
    for i, axis in enumerate(axes):
        size = shape_of(image)[axis]
        ratio, offset = (
            _core.astype(x[i], promote_types(dtype_of(x[i]), own)) for x in (scale, translation)
        )
        weights = _weights(size, shape[axis], ratio, offset, method, antialias)
        image = jnp.moveaxis(
            jnp.tensordot(image, weights.astype(dtype_of(image)), (axis, 0), precision=precision),
            -1,
            axis,
        )
    return image


@composite(static_argnames=("shape",))
def _nearest(image, *, shape):
    for axis, (old, new) in enumerate(zip(shape_of(image), shape, strict=True)):
        if old != new:
            places = jnp.floor((iota(np.float32, new) + 0.5) * old / new).astype(np.int32)
            image = jnp.take(image, places, axis, mode="clip")
    return image


def _checked_shape(function, image, shape):
    shape = static_shape(shape, function)
    if len(shape) != len(shape_of(image)):
        raise ShapeError(
            f"[{function}] expected a shape of {len(shape_of(image))} axes, as many as the image "
            f"has; got {shape}"
        )
    return shape


def resize(image, shape, method, antialias=True, precision=Precision.HIGHEST):
    """An image of another size.

    Args:
      image: array of any number of axes.
      shape: the shape of the result; axes whose size is that of the image stay as they are, as for
        batches and channels.
      method: a `ResizeMethod`, or a name of one: "nearest", "linear" ("bilinear", "trilinear",
        "triangle"), "cubic" ("bicubic", "tricubic"), "cubic-pytorch" ("bicubic-pytorch"),
        "lanczos3", "lanczos5", "area".
      antialias: whether to weigh more pixels where the image becomes smaller.
      precision: of the products; see `weft.lax.Precision`.

    Returns:
      Array of the dtype of the image, for integers of a float dtype but with "nearest".

    Raises:
      ShapeError (a ValueError): for a shape with another number of axes.

    Examples:
      >>> weft.image.resize(wnp.array([[1, 2], [3, 4]]), (2, 4), method="nearest")
      Array([[1, 1, 2, 2],
             [3, 3, 4, 4]], dtype=int32)
    """
    image = _core.asarray(image)
    shape = _checked_shape("resize", image, shape)
    method = _method(method, "resize")
    old = shape_of(image)
    axes = tuple(axis for axis in range(len(shape)) if shape[axis] != old[axis])
    if any(old[axis] == 0 for axis in axes):
        raise ShapeError(f"[resize] expected an image that is not empty; got shape {old}")
    if method is ResizeMethod.NEAREST:
        return _nearest(image, shape=shape)
    dtype = compute_dtype(real_dtype(to_inexact_dtype(dtype_of(image)))).type
    scale = [_core.astype(shape[axis] / old[axis], dtype) for axis in axes]
    return _scale_and_translate(
        image,
        scale,
        [dtype(0)] * len(axes),
        shape=shape,
        axes=axes,
        method=method,
        antialias=bool(antialias),
        precision=precision,
    )


def scale_and_translate(
    image,
    shape,
    spatial_dims,
    scale,
    translation,
    method,
    antialias=True,
    precision=Precision.HIGHEST,
):
    """An image, scaled and moved.

    What is at `x` along an axis of the image comes to `scale * x + translation`, where pixel `i`
    takes the interval from `i` to `i + 1`. Pixels that come from outside of the image are 0. It can
    be differentiated with respect to image, scale and translation.

    Args:
      image: array of any number of axes.
      shape: the shape of the result; that of the image but for `spatial_dims`.
      spatial_dims: the axes that are scaled.
      scale, translation: arrays `[len(spatial_dims)]`.
      method: a `ResizeMethod` or its name, as for `resize`; not "nearest".
      antialias: whether to weigh more pixels where the image becomes smaller.
      precision: of the products; see `weft.lax.Precision`.

    Returns:
      Array of the dtype of the image, for integers of a float dtype.

    Raises:
      ShapeError (a ValueError): for shapes that do not fit.
      AttributeValueError (a ValueError): for the method "nearest".

    Examples:
      >>> move = wnp.array([1.0])
      >>> weft.image.scale_and_translate(
      ...     wnp.array([1.0, 2.0, 3.0]), (4,), (0,), wnp.ones(1), move, "linear"
      ... ).round(3)
      Array([0., 1., 2., 3.], dtype=float32)
    """
    function = "scale_and_translate"
    image = _core.asarray(image)
    shape = _checked_shape(function, image, shape)
    method = _method(method, function)
    if method is ResizeMethod.NEAREST:
        raise AttributeValueError(f"[{function}] expected another method than 'nearest'")
    axes = normalize_axes(tuple(spatial_dims), len(shape), function)
    scale, translation = _core.promote_dtypes_inexact(scale, translation)
    if shape_of(scale) != (len(axes),) or shape_of(translation) != (len(axes),):
        raise PreconditionError(
            f"[{function}] expected scale and translation of shape {(len(axes),)}; got "
            f"{shape_of(scale)} and {shape_of(translation)}"
        )
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    if any(shape[axis] != shape_of(image)[axis] for axis in kept):
        raise ShapeError(
            f"[{function}] expected a shape that is that of the image, {shape_of(image)}, but for "
            f"the axes {axes}; got {shape}"
        )
    return _scale_and_translate(
        image,
        scale,
        translation,
        shape=shape,
        axes=axes,
        method=method,
        antialias=bool(antialias),
        precision=precision,
    )
