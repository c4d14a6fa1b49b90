"""Gamma variates, and the distributions that are made of them."""

import functools

from weft import _core, lax, numpy as jnp
from weft._arguments import shape_of, static_int, static_shape
from weft._custom_rules import custom_jvp
from weft._jit import composite
from weft._vmap import vmap
from weft.dtypes import finfo
from weft.errors import ShapeError
from weft.lax import _control as control
from weft.lax._sharding import can_be_split
from weft.random._continuous import exponential, normal, uniform_within
from weft.random._discrete import rademacher
from weft.random._keys import checked_key, has_bits_of_lanes, split
from weft.random._parameters import checked, float_dtype, shapes_in, spread


@can_be_split
def gamma(key, a, shape=None, dtype=None, *, out_sharding=None):
    """Numbers of the gamma distribution with scale 1: p(x) ~ x**(a - 1) exp(-x) for x >= 0.

    Made by the rejection method of Marsaglia and Tsang, "A simple method for generating gamma
    variables" (2000); each element has its own key. The derivative with respect to `a` is that of
    the value whose cumulative probability stays the same (Figurnov et al., "Implicit
    reparameterization gradients", 2018).

    Args:
      key: a key.
      a: the parameter, positive; a number or an array that broadcasts to the shape.
      shape: shape of the result; None for that of `a`.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> weft.random.gamma(weft.random.key(0), 3.0, (10000,)).mean().round(1)
      Array(3., dtype=float32)
    """
    key, options = checked("gamma", key, (a,), shape, dtype)
    return _gamma(key, a, log_space=False, **options)


@can_be_split
def loggamma(key, a, shape=None, dtype=None, *, out_sharding=None):
    """Logarithms of `gamma`, exact also where that is too close to zero: for small `a`.

    Args:
      key, a, shape, dtype, out_sharding: as for `gamma`.

    Examples:
      >>> wnp.exp(weft.random.loggamma(weft.random.key(0), 3.0, (10000,))).mean().round(1)
      Array(3., dtype=float32)
    """
    key, options = checked("loggamma", key, (a,), shape, dtype)
    return _gamma(key, a, log_space=True, **options)


@composite(static_argnames=("shape", "dtype", "log_space"))
def _gamma(key, a, *, shape, dtype, log_space):
    (a,) = spread((a,), shape, dtype)
    return gamma_samples(key, a, log_space)


def gamma_samples(key, a, log_space=False):
    """A gamma variate, or its logarithm, for each element of an array."""
    return _samples(log_space, key, a)


def _draw(log_space, key, a):
    if not a.size:
        return a
    if has_bits_of_lanes(key):
        draw = functools.partial(_marsaglia_tsang, log_space)
        return vmap(draw)(split(key, a.size), a.reshape(-1)).reshape(a.shape)
    return _draw_in_turn(log_space)(key[None], a[None])[0]


@functools.cache
def _draw_in_turn(log_space):
    """A function of keys and one array for each, which stays a loop over all elements under vmap.

    Lanes of a loop would get the bits of one key.
    """
    # They are not needed where keys have bits of their own.
    from weft._custom_batching import custom_vmap

    def draw(keys, a):
        each = vmap(lambda key: split(key, a[0].size))(keys).reshape(-1), a.reshape(-1)
        return control.map(lambda pair: _marsaglia_tsang(log_space, *pair), each).reshape(a.shape)

    many = custom_vmap(draw)

    @many.def_vmap
    def rule(axis_size, in_batched, keys, a):
        keys, a = (
            x if mapped else jnp.broadcast_to(x, (axis_size, *x.shape))
            for x, mapped in zip((keys, a), in_batched, strict=True)
        )
        drawn = many(keys.reshape(-1), a.reshape(-1, *a.shape[2:]))
        return drawn.reshape(a.shape), True

    return many


_samples = custom_jvp(_draw, nondiff_argnums=(0,))


@_samples.defjvp
def _samples_jvp(log_space, primals, tangents):
    (key, a), (_, da) = primals, tangents
    samples = gamma_samples(key, a, log_space)
    if not log_space:
        return samples, da * lax.random_gamma_grad(a, samples)
    x = jnp.exp(samples)
    x = jnp.where(x == 0, a.dtype.type(finfo(a.dtype).tiny), x)
    return samples, da * (lax.random_gamma_grad(a, x) / x)


def _marsaglia_tsang(log_space, key, a):
    """One variate. That of a < 1 is made of one of a + 1."""
    dtype = a.dtype
    third = dtype.type(1 / 3)
    boosted = ~(a >= 1)
    d = jnp.where(boosted, a + 1, a) - third
    c = third / jnp.sqrt(d)
    keys = split(key)

    def draw(state):
        keys = split(state[0])
        x = normal(keys[1], (), dtype)
        return keys[0], x, 1 + x * c

    def propose(state):
        keys = split(state[0], 3)
        start = keys[1], jnp.zeros((), dtype), -jnp.ones((), dtype)
        _, x, root = control.while_loop(lambda state: state[2] <= 0, draw, start)
        x, v = x * x, root * root * root
        u = uniform_within(keys[2], (), dtype)
        outside = u >= 1 - dtype.type(0.0331) * (x * x)
        outside &= jnp.log(u) >= x * 0.5 + d * (1 - v + jnp.log(v))
        return keys[0], v, ~outside

    start = keys[0], jnp.ones((), dtype), jnp.zeros((), bool)
    _, v, _ = control.while_loop(lambda state: ~state[2], propose, start)
    if not log_space:
        boost = (1 - uniform_within(keys[1], (), dtype)) ** (1 / a)
        return d * v * jnp.where(boosted, boost, 1)
    boost = -exponential(keys[1], (), dtype)
    boost = jnp.where(boosted & (boost != 0), boost * (1 / a), 0)
    return jnp.log(d) + jnp.log(v) + boost


@can_be_split
def beta(key, a, b, shape=None, dtype=None, *, out_sharding=None):
    """Numbers of the beta distribution: p(x) ~ x**(a - 1) (1 - x)**(b - 1) for 0 <= x <= 1.

    Made of two gamma variates g, as g(a) / (g(a) + g(b)).

    Args:
      key: a key.
      a, b: the parameters, positive; numbers or arrays that broadcast to the shape. Their promotion
        with the dtype must be the dtype.
      shape: shape of the result; None for the broadcast shape of the parameters.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> weft.random.beta(weft.random.key(0), 1.0, 3.0, (10000,)).mean().round(2)
      Array(0.25, dtype=float32)
    """
    key, options = checked("beta", key, (a, b), shape, dtype, lossless=True)
    return _beta(key, a, b, **options)


@composite(static_argnames=("shape", "dtype"))
def _beta(key, a, b, *, shape, dtype):
    keys = split(key)
    a, b = spread((a, b), shape, dtype)
    logs = [gamma_samples(keys[i], each, log_space=True) for i, each in enumerate((a, b))]
    top = jnp.maximum(*logs)
    first, second = (jnp.exp(each - top) for each in logs)
    return first / (first + second)


@can_be_split
def dirichlet(key, alpha, shape=None, dtype=None, *, out_sharding=None):
    """Vectors of the Dirichlet distribution: p(x) ~ prod(x**(alpha - 1)), where sum(x) = 1.

    Made of gamma variates, divided by their sum.

    Args:
      key: a key.
      alpha: the parameters, positive, of shape (..., n).
      shape: shape of the result without its last axis, to which that of `alpha` without its last
        axis broadcasts; None for that one.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array of shape (*shape, n).

    Raises ShapeError for an `alpha` without axes.

    Examples:
      >>> x = weft.random.dirichlet(weft.random.key(0), wnp.array([1.0, 2.0, 3.0]), (4,))
      >>> x.shape, x.sum(axis=1).round(3)
      ((4, 3), Array([1., 1., 1., 1.], dtype=float32))
    """
    key, dtype = checked_key(key, "dirichlet"), float_dtype(dtype, "dirichlet")
    own = shape_of(alpha)
    if not own:
        raise ShapeError("[dirichlet] expected alpha to have an axis; got a number")
    shape = own[:-1] if shape is None else static_shape(shape, "dirichlet")
    shapes_in(shape, [own[:-1]], "dirichlet")
    return _dirichlet(key, alpha, shape=(*shape, own[-1]), dtype=dtype)


@composite(static_argnames=("shape", "dtype"))
def _dirichlet(key, alpha, *, shape, dtype):
    logs = gamma_samples(key, *spread((alpha,), shape, dtype), log_space=True)
    top = lax.stop_gradient(jnp.max(logs, -1, keepdims=True, initial=-jnp.inf))
    parts = jnp.exp(logs - top)
    return parts / jnp.sum(parts, -1, keepdims=True)


@can_be_split
def chisquare(key, df, shape=None, dtype=None, *, out_sharding=None):
    """Numbers of the chi-square distribution: p(x) ~ x**(df / 2 - 1) exp(-x / 2) for x > 0.

    Args:
      key: a key.
      df: degrees of freedom, positive; a number or an array that broadcasts to the shape. Its
        promotion with the dtype must be the dtype.
      shape: shape of the result; None for that of `df`.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> weft.random.chisquare(weft.random.key(0), 4.0, (10000,)).mean().round(1)
      Array(4., dtype=float32)
    """
    key, options = checked("chisquare", key, (df,), shape, dtype, lossless=True)
    return _chisquare(key, df, **options)


@composite(static_argnames=("shape", "dtype"))
def _chisquare(key, df, *, shape, dtype):
    return _squares(key, *spread((df,), shape, dtype))


def _squares(key, df):
    return jnp.exp(gamma_samples(key, df / 2, log_space=True)) * 2


@can_be_split
def f(key, dfnum, dfden, shape=None, dtype=None, *, out_sharding=None):
    """Numbers of Fisher's F distribution, the ratio of two chi-square variates per degree.

    p(x) ~ x**(dfnum / 2 - 1) (1 + dfnum / dfden x)**(-(dfnum + dfden) / 2) for x > 0.

    Args:
      key: a key.
      dfnum, dfden: degrees of freedom above and below, positive; numbers or arrays that broadcast
        to the shape. Their promotion with the dtype must be the dtype.
      shape: shape of the result; None for the broadcast shape of the parameters.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> weft.random.f(weft.random.key(0), 4.0, 12.0, (10000,)).mean().round(1)
      Array(1.2, dtype=float32)
    """
    key, options = checked("f", key, (dfnum, dfden), shape, dtype, lossless=True)
    return _f(key, dfnum, dfden, **options)


@composite(static_argnames=("shape", "dtype"))
def _f(key, dfnum, dfden, *, shape, dtype):
    keys = split(key)
    dfnum, dfden = spread((dfnum, dfden), shape, dtype)
    return (_squares(keys[1], dfnum) / dfnum) / (_squares(keys[0], dfden) / dfden)


@can_be_split
def t(key, df, shape=None, dtype=None, *, out_sharding=None):
    """Numbers of Student's t distribution: p(x) ~ (1 + x**2 / df)**(-(df + 1) / 2).

    Args:
      key: a key.
      df: degrees of freedom, positive; a number or an array that broadcasts to the shape. Its
        promotion with the dtype must be the dtype.
      shape: shape of the result; None for that of `df`.
      dtype: a float dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> x = weft.random.t(weft.random.key(0), 5.0, (10000,))
      >>> (x > 0).mean().round(1)
      Array(0.5, dtype=float32)
    """
    key, options = checked("t", key, (df,), shape, dtype, lossless=True)
    return _t(key, df, **options)


@composite(static_argnames=("shape", "dtype"))
def _t(key, df, *, shape, dtype):
    keys = split(key)
    half = spread((df,), shape, dtype)[0] / 2
    return normal(keys[0], shape, dtype) * jnp.sqrt(half / gamma_samples(keys[1], half))


@can_be_split
def generalized_normal(key, p, shape=(), dtype=None, *, out_sharding=None):
    """Numbers of the generalized normal distribution: p(x) ~ exp(-abs(x)**p).

    Args:
      key: a key.
      p: the exponent, positive; a number or an array that broadcasts to the shape.
      shape: shape of the result.
      dtype: a float dtype, which is promoted with that of `p`.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> x = weft.random.generalized_normal(weft.random.key(0), 1.0, (10000,))
      >>> abs(x).mean().round(1)
      Array(1., dtype=float32)
    """
    shape = static_shape(shape, "generalized_normal")
    key, options = checked("generalized_normal", key, (p,), shape, dtype)
    return _generalized_normal(key, p, **options)


@composite(static_argnames=("shape", "dtype"))
def _generalized_normal(key, p, *, shape, dtype):
    keys = split(key)
    inverse = 1 / _core.asarray(p)
    size = gamma_samples(keys[0], *spread((inverse,), shape, dtype))
    return rademacher(keys[1], shape, dtype) * size**inverse


@can_be_split
def ball(key, d, p=2, shape=(), dtype=None, *, out_sharding=None):
    """Points evenly spread over the unit ball of the p-norm, where sum(abs(x)**p) <= 1.

    Made as Barthe, Guédon, Mendelson and Naor do, "A probabilistic approach to the geometry of the
    l_p^n-ball" (2005): of generalized normal and exponential numbers.

    Args:
      key: a key.
      d: the dimension, an integer.
      p: the exponent of the norm, positive; a number or an array that broadcasts to the shape.
      shape: shape of the result without its last axis.
      dtype: a float dtype, which is promoted with that of `p`.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Returns:
      Array of shape (*shape, d).

    Examples:
      >>> points = weft.random.ball(weft.random.key(0), 3, shape=(100,))
      >>> points.shape, wnp.all(wnp.sum(points**2, axis=1) <= 1)
      ((100, 3), Array(True, dtype=bool))
    """
    shape = static_shape(shape, "ball")
    whole = static_shape((*shape, static_int(d, "ball", "d")), "ball")
    key, options = checked("ball", key, (p,), whole, dtype)
    return _ball(key, p, **options)


@composite(static_argnames=("shape", "dtype"))
def _ball(key, p, *, shape, dtype):
    keys = split(key)
    p = _core.asarray(p)
    x = _generalized_normal(keys[0], p, shape=shape, dtype=dtype)
    total = jnp.sum(jnp.abs(x) ** p, -1) + exponential(keys[1], shape[:-1], dtype)
    return x / (total ** (1 / p))[..., None]
