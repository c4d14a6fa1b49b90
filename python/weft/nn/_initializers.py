"""The functions of weft.nn.initializers."""

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from weft import _core, lax, numpy as jnp, random
from weft._arguments import (
    normalize_axis,
    static_ints,
    static_shape,
)
from weft._surface import example_section
from weft.dtypes import (
    default_float,
    is_complex,
    is_float,
    real_dtype,
    requested_dtype,
)
from weft.errors import AttributeValueError, ShapeError
from weft.lax._sharding import split_as


@runtime_checkable
class Initializer(Protocol):
    """What the functions of this module return: called as init(key, shape, dtype).

    Examples:
      >>> isinstance(weft.nn.initializers.ones, weft.nn.initializers.Initializer)
      True
    """

    def __call__(
        self, key: _core.Array, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None
    ) -> _core.Array:
        raise NotImplementedError


def _dtype(dtype, function, floating=False):
    dtype = default_float() if dtype is None else requested_dtype(dtype, function)
    if floating and not (is_float(dtype) or is_complex(dtype)):
        raise AttributeValueError(f"[{function}] expected a float or complex dtype; got {dtype}")
    return dtype


def _initializer(function, default, draw, floating=True):
    """An initializer from draw(key, shape, dtype)."""

    def init(key, shape, dtype=default, out_sharding=None):
        if out_sharding is not None:
            return split_as(out_sharding, function, lambda: init(key, shape, dtype))
        return draw(key, static_shape(shape, function), _dtype(dtype, function, floating))

    return init


def zeros(key, shape, dtype=None, out_sharding=None):
    """Zeros of a shape and dtype. An initializer itself; the key is ignored, out_sharding says how
    the result is split.

    Examples:
      >>> weft.nn.initializers.zeros(weft.random.key(0), (2, 3))
      Array([[0., 0., 0.],
             [0., 0., 0.]], dtype=float32)
    """
    if out_sharding is not None:
        return split_as(out_sharding, "zeros", lambda: zeros(key, shape, dtype))
    return jnp.zeros(shape, _dtype(dtype, "zeros"))


def ones(key, shape, dtype=None, out_sharding=None):
    """Ones of a shape and dtype. An initializer itself; the key is ignored, out_sharding says how
    the result is split.

    Examples:
      >>> weft.nn.initializers.ones(weft.random.key(0), (2, 3))
      Array([[1., 1., 1.],
             [1., 1., 1.]], dtype=float32)
    """
    if out_sharding is not None:
        return split_as(out_sharding, "ones", lambda: ones(key, shape, dtype))
    return jnp.ones(shape, _dtype(dtype, "ones"))


def constant(value, dtype=None):
    """Initializer with one value everywhere: a number, or an array that broadcasts to the shape.

    `dtype` is used where a call names none; None is the default float dtype.

    Examples:
      >>> init = weft.nn.initializers.constant(wnp.array([1.0, 2.0]))
      >>> init(weft.random.key(0), (3, 2))
      Array([[1., 2.],
             [1., 2.],
             [1., 2.]], dtype=float32)
    """
    return _initializer(
        "constant", dtype, lambda key, shape, dtype: jnp.full(shape, value, dtype), floating=False
    )


def uniform(scale=1e-2, dtype=None):
    """Initializer with numbers evenly spread over 0 <= x < scale, of a float dtype.

    Examples:
      >>> w = weft.nn.initializers.uniform(scale=0.5)(weft.random.key(0), (100, 100))
      >>> wnp.all((w >= 0) & (w < 0.5))
      Array(True, dtype=bool)
    """

    def draw(key, shape, dtype):
        return random.uniform(key, shape, dtype) * _core.astype(scale, dtype)

    return _initializer("uniform", dtype, draw)


def normal(stddev=1e-2, dtype=None):
    """Initializer with normal numbers of mean 0 and a standard deviation.

    `stddev` is the standard deviation, and `dtype` the float dtype used where a call names none.

    Examples:
      >>> weft.nn.initializers.normal(stddev=0.1)(weft.random.key(0), (100, 100)).std().round(2)
      Array(0.1, dtype=float32)
    """

    def draw(key, shape, dtype):
        return random.normal(key, shape, dtype) * _core.astype(stddev, dtype)

    return _initializer("normal", dtype, draw)


def truncated_normal(stddev=1e-2, dtype=None, lower=-2.0, upper=2.0):
    """Initializer with normal numbers of mean 0 between bounds.

    Args:
      stddev: the standard deviation, before numbers beyond the bounds are left out.
      dtype: a float dtype; None for the default one.
      lower, upper: the bounds, times `stddev`.

    Examples:
      >>> w = weft.nn.initializers.truncated_normal(stddev=1.0)(weft.random.key(0), (100, 100))
      >>> wnp.all(abs(w) <= 2)
      Array(True, dtype=bool)
    """

    def draw(key, shape, dtype):
        numbers = random.truncated_normal(key, lower, upper, shape, dtype)
        return numbers * _core.astype(stddev, dtype)

    return _initializer("truncated_normal", dtype, draw)


def _fans(shape, in_axis, out_axis, batch_axis):
    """The numbers of inputs and of outputs of weights of a shape."""
    function = "variance_scaling"
    if len(shape) <= 1:
        for name, axis, default in (("in_axis", in_axis, -2), ("out_axis", out_axis, -1)):
            if isinstance(axis, int) and axis == default and len(shape) < -default:
                raise ShapeError(
                    f"[{function}] expected weights with at least two axes, or in_axis and "
                    f"out_axis to be given; got shape {shape} and {name}={axis}"
                )
    sizes = []
    for axes in (in_axis, out_axis, batch_axis):
        axes = static_ints(axes, function, "the axes")
        axes = [normalize_axis(axis, len(shape), function) for axis in axes]
        sizes.append(math.prod(shape[axis] for axis in axes))
    inputs, outputs, batch = sizes
    if not inputs * outputs * batch:
        raise ZeroDivisionError(
            f"[{function}] expected weights that are not empty; got shape {shape}"
        )
    field = math.prod(shape) / (inputs * outputs * batch)
    return inputs * field, outputs * field


_FANS = {
    "fan_in": lambda inputs, outputs: inputs,
    "fan_out": lambda inputs, outputs: outputs,
    "fan_avg": lambda inputs, outputs: (inputs + outputs) / 2,
    "fan_geo_avg": lambda inputs, outputs: (inputs * outputs) ** 0.5,
}
# Standard deviations of the normal distribution between -2 and 2, and of the complex one within 2.
_TRUNCATED = 0.87962566103423978
_COMPLEX_TRUNCATED = 0.95311164380491208


def _directions(key, shape, dtype):
    """Complex numbers of absolute value 1, evenly spread."""
    angles = random.uniform(key, shape, real_dtype(dtype)).astype(dtype)
    return jnp.exp(1j * (2 * np.pi * angles))


def _uniform_disc(key, shape, dtype):
    """Complex numbers evenly spread over those of absolute value up to 1."""
    of_radius, of_angle = random.split(key)
    real = real_dtype(dtype)
    radius = jnp.sqrt(2 * random.uniform(of_radius, shape, real)).astype(dtype)
    return radius * _directions(of_angle, shape, dtype)


def _truncated_complex_normal(key, upper, shape, dtype):
    """Complex normal numbers of variance 1 of absolute value up to `upper`."""
    of_radius, of_angle = random.split(key)
    numbers = random.uniform(of_radius, shape, real_dtype(dtype)).astype(dtype)
    area = 1 - jnp.exp(_core.astype(-(upper**2), dtype))
    radius = jnp.sqrt(-jnp.log(1 - area * numbers))
    return radius * _directions(of_angle, shape, dtype)


def _of_variance(key, shape, dtype, variance, distribution):
    if distribution == "normal":
        return random.normal(key, shape, dtype) * jnp.sqrt(variance)
    if distribution == "uniform":
        if is_complex(dtype):
            return _uniform_disc(key, shape, dtype) * jnp.sqrt(variance)
        return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)
    if is_complex(dtype):
        numbers = _truncated_complex_normal(key, 2, shape, dtype)
        return numbers * (jnp.sqrt(variance) / _core.astype(_COMPLEX_TRUNCATED, dtype))
    numbers = random.truncated_normal(key, -2, 2, shape, dtype)
    return numbers * (jnp.sqrt(variance) / _core.astype(_TRUNCATED, dtype))


def variance_scaling(scale, mode, distribution, in_axis=-2, out_axis=-1, batch_axis=(), dtype=None):
    """Initializer with numbers of mean 0 whose variance follows from the shape of the weights.

    The variance is scale / n. Axes that are neither in_axis nor out_axis nor batch_axis are those
    of a window: both the number of inputs and that of outputs is multiplied with their sizes.

    Args:
      scale: a positive number.
      mode: what n is: "fan_in", the number of inputs; "fan_out", that of outputs; "fan_avg", their
        mean; or "fan_geo_avg", their geometric mean.
      distribution: "truncated_normal" (between -2 and 2 standard deviations before truncation),
        "normal" or "uniform".
      in_axis, out_axis: axis or axes of inputs and of outputs.
      batch_axis: axis or axes that count independent weights.
      dtype: a float or complex dtype; None for the default float.

    Raises:
      ValueError: by the initializer, for another mode or distribution, or a shape without the axes.

    Examples:
      >>> init = weft.nn.initializers.variance_scaling(3.0, "fan_in", "uniform")
      >>> w = init(weft.random.key(0), (100, 50))  # within sqrt(3 * 3 / 100) of zero
      >>> w.shape, wnp.all(abs(w) < 0.3)
      ((100, 50), Array(True, dtype=bool))
    """

    def draw(key, shape, dtype):
        if mode not in _FANS:
            raise AttributeValueError(
                f"[variance_scaling] expected mode to be one of {', '.join(_FANS)}; got {mode!r}"
            )
        if distribution not in ("truncated_normal", "normal", "uniform"):
            raise AttributeValueError(
                "[variance_scaling] expected distribution 'truncated_normal', 'normal' or "
                f"'uniform'; got {distribution!r}"
            )
        count = _FANS[mode](*_fans(shape, in_axis, out_axis, batch_axis))
        variance = _core.astype(scale / count, dtype)
        return _of_variance(key, shape, dtype, variance, distribution)

    return _initializer("variance_scaling", dtype, draw)


def _scaled(name, scale, mode, distribution, source):
    count = {"fan_avg": "the mean of inputs and outputs", "fan_in": "the number of inputs"}[mode]

    def initializer(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None):
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    initializer.__name__ = initializer.__qualname__ = name
    call = f"weft.nn.initializers.{name}()(weft.random.key(0), (200, 200))"
    deviation = round((scale / 200) ** 0.5, 2)
    initializer.__doc__ = f"""Initializer of {source}: `variance_scaling` with {scale} / {count}.

    Args:
      in_axis, out_axis: axis or axes of inputs and of outputs.
      batch_axis: axis or axes that count independent weights.
      dtype: a float or complex dtype; None for the default float.

    {example_section(f"{call}.std().round(2)", f"Array({deviation}, dtype=float32)", "    ")}
    """
    return initializer


_GLOROT, _LECUN, _HE = "Glorot and Bengio (2010)", "LeCun et al. (1998)", "He et al. (2015)"
glorot_uniform = xavier_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal = xavier_normal = _scaled(
    "glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT
)
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
he_uniform = kaiming_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal = kaiming_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal", _HE)


def _orthogonal(key, shape, dtype, scale, column_axis):
    columns = shape[normalize_axis(column_axis, len(shape), "orthogonal")]
    rows = math.prod(shape) // columns if columns else 0
    matrix = random.orthogonal(key, rows, (), dtype, columns)
    others = list(shape)
    del others[column_axis]
    matrix = jnp.moveaxis(lax.reshape(matrix, (*others, columns)), -1, column_axis)
    return matrix * _core.astype(scale, dtype)


def orthogonal(scale=1.0, column_axis=-1, dtype=None):
    """Initializer with a matrix whose columns, or whose rows, are orthogonal and of one length.

    Args:
      scale: the length of the columns, or of the rows where these are fewer.
      column_axis: the axis that counts columns; the others together count rows.
      dtype: a float or complex dtype; None for the default float.

    Raises:
      ValueError: by the initializer, for a shape with less than two axes.

    Examples:
      >>> w = weft.nn.initializers.orthogonal(scale=2.0)(weft.random.key(0), (5, 3))
      >>> wnp.allclose(w.T @ w, 4 * wnp.eye(3), atol=1e-5)
      Array(True, dtype=bool)
    """

    def draw(key, shape, dtype):
        if len(shape) < 2:
            raise ShapeError(f"[orthogonal] expected at least two axes; got shape {shape}")
        return _orthogonal(key, shape, dtype, scale, column_axis)

    return _initializer("orthogonal", dtype, draw)


def delta_orthogonal(scale=1.0, column_axis=-1, dtype=None):
    """Initializer of convolutions that keep lengths (Xiao et al., 2018).

    It has zeros but in the middle of the window, where an orthogonal matrix stands.

    Args:
      scale: factor of the matrix.
      column_axis: as for `orthogonal`, of the last two axes.
      dtype: a float or complex dtype; None for the default float.

    Raises:
      ValueError: by the initializer, for a shape that has not three to five axes, or more inputs
        (the last axis but one) than outputs (the last one).

    Examples:
      >>> init = weft.nn.initializers.delta_orthogonal()
      >>> w = init(weft.random.key(0), (3, 4, 4))
      >>> wnp.allclose(w[1] @ w[1].T, wnp.eye(4), atol=1e-5), wnp.any(w[0] != 0)
      (Array(True, dtype=bool), Array(False, dtype=bool))
    """

    def draw(key, shape, dtype):
        if len(shape) not in (3, 4, 5):
            raise ShapeError(f"[delta_orthogonal] expected three to five axes; got shape {shape}")
        if shape[-1] < shape[-2]:
            raise ShapeError(
                f"[delta_orthogonal] expected at most as many inputs as outputs; got {shape[-2]} "
                f"and {shape[-1]}"
            )
        matrix = _orthogonal(key, shape[-2:], dtype, scale, column_axis)
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        return jnp.zeros(shape, dtype).at[middle].set(matrix)

    return _initializer("delta_orthogonal", dtype, draw)
