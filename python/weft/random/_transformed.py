"""Continuous distributions that are functions of uniform, normal or exponential numbers."""

import numpy as np

from weft import _core, numpy as jnp
from weft._arguments import shape_of, static_shape
from weft._jit import composite
from weft.dtypes import (
    default_float,
    finfo,
    is_complex,
    is_float,
    requested_dtype,
)
from weft.errors import AttributeValueError
from weft.lax._shape import common_shape
from weft.lax._sharding import can_be_split
from weft.random._continuous import exponential, normal, uniform_within
from weft.random._discrete import rademacher
from weft.random._keys import checked_key, split
from weft.random._parameters import checked, lossless_in, result_shape, spread


@can_be_split
def cauchy(key, shape=(), dtype=None, *, out_sharding=None):
    """Numbers of the Cauchy distribution: p(x) ~ 1 / (x**2 + 1).

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> x = weft.random.cauchy(weft.random.key(0), (10000,))
      >>> (abs(x) < 1).mean().round(1)
      Array(0.5, dtype=float32)
    """
    shape = static_shape(shape, "cauchy")
    key, options = checked("cauchy", key, (), shape, dtype)
    return _cauchy(key, **options)


@composite(static_argnames=("shape", "dtype"))
def _cauchy(key, *, shape, dtype):
    u = uniform_within(key, shape, dtype, dtype.type(finfo(dtype).eps))
    return jnp.tan(dtype.type(np.pi) * (u - 0.5))


@can_be_split
def lognormal(key, sigma=np.float32(1.0), shape=None, dtype=None, *, out_sharding=None):  # noqa: B008
    """Numbers whose logarithm has the normal distribution with mean 0.

    p(x) ~ exp(-log(x)**2 / (2 sigma**2)) / x for x > 0.

    Args:
      key: a key.
      sigma: the standard deviation of the logarithm; a number or an array that broadcasts to the
        shape. Its promotion with the dtype must be the dtype.
      shape: shape of the result; None for that of `sigma`.
      dtype: a float or complex dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Raises AttributeValueError (a ValueError) for another dtype.

    Examples:
      >>> x = weft.random.lognormal(weft.random.key(0), 2.0, (10000,))
      >>> wnp.log(x).std().round(1)
      Array(2., dtype=float32)
    """
    key = checked_key(key, "lognormal")
    dtype = default_float() if dtype is None else requested_dtype(dtype, "lognormal")
    if not (is_float(dtype) or is_complex(dtype)):
        raise AttributeValueError(f"[lognormal] expected a float or complex dtype; got {dtype}")
    lossless_in(dtype, (sigma,), "lognormal")
    return _lognormal(key, sigma, shape=result_shape(shape, (sigma,), "lognormal"), dtype=dtype)


@composite(static_argnames=("shape", "dtype"))
def _lognormal(key, sigma, *, shape, dtype):
    return jnp.exp(normal(key, shape, dtype) * spread((sigma,), shape, dtype)[0])


@can_be_split
def maxwell(key, shape=(), dtype=None, *, out_sharding=None):
    """Numbers of the Maxwell distribution: p(x) ~ x**2 exp(-x**2 / 2) for x >= 0.

    The lengths of vectors of three normal numbers.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> weft.random.maxwell(weft.random.key(0), (10000,)).mean().round(1)
      Array(1.6, dtype=float32)
    """
    shape = static_shape(shape, "maxwell")
    key, options = checked("maxwell", key, (), shape, dtype)
    return _maxwell(key, **options)


@composite(static_argnames=("shape", "dtype"))
def _maxwell(key, *, shape, dtype):
    x = normal(key, (*shape, 3), dtype)
    return jnp.sqrt(jnp.sum(x * x, -1))


def double_sided_maxwell(key, loc, scale, shape=(), dtype=None):
    """Numbers of the Maxwell distribution with a random sign, scaled and moved.

    p(x) ~ z**2 exp(-z**2 / 2) where z = (x - loc) / scale.

    Args:
      key: a key.
      loc: the centre, a number or an array.
      scale: the scale, positive; a number or an array.
      shape: axes of the result in front of those to which the parameters broadcast. An empty one
        stands for that shape, which the result then has twice.
      dtype: a float dtype, which is promoted with those of the parameters.

    Examples:
      >>> weft.random.double_sided_maxwell(weft.random.key(0), 5.0, 1.0, (10000,)).mean().round(1)
      Array(5., dtype=float32)
    """
    name = "double_sided_maxwell"
    own = common_shape([shape_of(loc), shape_of(scale)], name)
    front = static_shape(shape, name) or own
    key, options = checked(name, key, (), (*front, *own), dtype)
    return _double_sided_maxwell(key, loc, scale, **options)


@composite(static_argnames=("shape", "dtype"))
def _double_sided_maxwell(key, loc, scale, *, shape, dtype):
    keys = split(key)
    x = _maxwell(keys[0], shape=shape, dtype=dtype)
    return rademacher(keys[1], shape, dtype) * x * scale + loc


@can_be_split
def pareto(key, b, shape=None, dtype=None, *, out_sharding=None):
    """Numbers of the Pareto distribution: p(x) = b / x**(b + 1) for x >= 1.

    Args:
      key: a key.
      b: the exponent, positive; a number or an array that broadcasts to the shape. Its promotion
        with the dtype must be the dtype.
      shape: shape of the result; None for that of `b`.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> weft.random.pareto(weft.random.key(0), 5.0, (10000,)).mean().round(2)
      Array(1.25, dtype=float32)
    """
    key, options = checked("pareto", key, (b,), shape, dtype, lossless=True)
    return _pareto(key, b, **options)


@composite(static_argnames=("shape", "dtype"))
def _pareto(key, b, *, shape, dtype):
    return jnp.exp(exponential(key, shape, dtype) / spread((b,), shape, dtype)[0])


@can_be_split
def rayleigh(key, scale, shape=None, dtype=None, *, out_sharding=None):
    """Numbers of the Rayleigh distribution: p(x) ~ x exp(-x**2 / (2 scale**2)) for x >= 0.

    Args:
      key: a key.
      scale: the scale, positive; a number or an array that broadcasts to the shape. Its promotion
        with the dtype must be the dtype.
      shape: shape of the result; None for that of `scale`.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> weft.random.rayleigh(weft.random.key(0), 2.0, (10000,)).mean().round(1)
      Array(2.5, dtype=float32)
    """
    key, options = checked("rayleigh", key, (scale,), shape, dtype, lossless=True)
    return _rayleigh(key, scale, **options)


@composite(static_argnames=("shape", "dtype"))
def _rayleigh(key, scale, *, shape, dtype):
    log = jnp.log(uniform_within(key, shape, dtype))
    return spread((scale,), shape, dtype)[0] * jnp.sqrt(log * -2)


@can_be_split
def triangular(key, left, mode, right, shape=None, dtype=None, *, out_sharding=None):
    """Numbers whose density grows linearly from `left` to `mode`, and falls so to `right`.

    Args:
      key: a key.
      left, mode, right: where left <= mode <= right and left < right; numbers or arrays that
        broadcast to the shape. Their promotion with the dtype must be the dtype.
      shape: shape of the result; None for the broadcast shape of the parameters.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> weft.random.triangular(weft.random.key(0), 0.0, 1.0, 5.0, (10000,)).mean().round(1)
      Array(2., dtype=float32)
    """
    parameters = left, mode, right
    key, options = checked("triangular", key, parameters, shape, dtype, lossless=True)
    return _triangular(key, *parameters, **options)


@composite(static_argnames=("shape", "dtype"))
def _triangular(key, left, mode, right, *, shape, dtype):
    left, mode, right = spread((left, mode, right), shape, dtype)
    u = uniform_within(key, shape, dtype)
    width, rise, fall = right - left, mode - left, right - mode
    rising = left + jnp.sqrt(u * width * rise)
    falling = right - jnp.sqrt((1 - u) * width * fall)
    return jnp.where(u < rise / width, rising, falling)


@can_be_split
def wald(key, mean, shape=None, dtype=None, *, out_sharding=None):
    """Numbers of the Wald (inverse Gaussian) distribution with scale 1.

    p(x) = exp(-(x - mean)**2 / (2 mean**2 x)) / sqrt(2 pi x**3) for x > 0. Made as
    Michael, Schucany and Haas do, "Generating random variates using transformations with multiple
    roots" (1976).

    Args:
      key: a key.
      mean: the mean, positive; a number or an array that broadcasts to the shape. Its promotion
        with the dtype must be the dtype.
      shape: shape of the result; None for that of `mean`.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> weft.random.wald(weft.random.key(0), 1.0, (10000,)).mean().round(1)
      Array(1., dtype=float32)
    """
    key, options = checked("wald", key, (mean,), shape, dtype, lossless=True)
    return _wald(key, mean, **options)


@composite(static_argnames=("shape", "dtype"))
def _wald(key, mean, *, shape, dtype):
    keys = split(key)
    (mean,) = spread((mean,), shape, dtype)
    y = jnp.square(normal(keys[0], shape, dtype))
    u = uniform_within(keys[1], shape, dtype)
    squared = jnp.square(mean)
    root = jnp.sqrt(4 * mean * y + squared * jnp.square(y))
    x = mean + squared * y / 2 - mean / 2 * root
    return jnp.where(u <= mean / (mean + x), x, squared / x)


def weibull_min(key, scale, concentration, shape=(), dtype=None):
    """Numbers of the Weibull distribution.

    p(x) ~ x**(concentration - 1) exp(-(x / scale)**concentration) for x >= 0.

    Args:
      key: a key.
      scale, concentration: the parameters, positive; numbers or arrays that broadcast with the
        shape.
      shape: shape of the random numbers that the parameters transform; the result has the shape
        that it and those of the parameters broadcast to.
      dtype: a float dtype, which is promoted with those of the parameters.

    Examples:
      >>> weft.random.weibull_min(weft.random.key(0), 3.0, 1.0, (10000,)).mean().round(1)
      Array(3., dtype=float32)
    """
    key, options = checked("weibull_min", key, (), static_shape(shape, "weibull_min"), dtype)
    return _weibull_min(key, scale, concentration, **options)


@composite(static_argnames=("shape", "dtype"))
def _weibull_min(key, scale, concentration, *, shape, dtype):
    x = -jnp.log1p(-uniform_within(key, shape, dtype))
    return x ** (1 / _core.asarray(concentration)) * scale
