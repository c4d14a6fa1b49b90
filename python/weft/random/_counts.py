"""Numbers of events: Poisson, binomial and multinomial distributions."""

import numpy as np

from weft import _core, lax, numpy as jnp
from weft._arguments import shape_of, static_shape
from weft._jit import composite
from weft.dtypes import default_float, dtype_of, iinfo, is_float, requested_dtype
from weft.errors import AttributeValueError, ShapeError
from weft.lax import _control as control
from weft.lax._sharding import can_be_split
from weft.random._continuous import uniform_within
from weft.random._keys import checked_key, split
from weft.random._parameters import bounds_in, checked, integer_dtype, result_shape, spread

_F32 = np.dtype("float32")


@can_be_split
def poisson(key, lam, shape=None, dtype=None, *, out_sharding=None):
    """Numbers of the Poisson distribution: p(k) = lam**k exp(-lam) / k!.

    Below lam = 10 the number of uniform factors until their product is less than exp(-lam) (Knuth,
    "The Art of Computer Programming", volume 2); else the method PTRS of Hörmann, "The transformed
    rejection method for generating Poisson random variables" (1993).

    Args:
      key: a key.
      lam: the mean, not negative; a number or an array that broadcasts to the shape. It counts in
        float32. Of an infinite mean all numbers are the greatest of the dtype; of NaN and of a
        negative one they are -1.
      shape: shape of the result; None for that of `lam`.
      dtype: an integer dtype.
      out_sharding: None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> weft.random.poisson(weft.random.key(0), 4.0, (10000,)).mean().round(1)
      Array(4., dtype=float32)
    """
    dtype = integer_dtype(dtype, "poisson")
    key = checked_key(key, "poisson")
    return _poisson(key, lam, shape=result_shape(shape, (lam,), "poisson"), dtype=dtype)


@composite(static_argnames=("shape", "dtype"))
def _poisson(key, lam, *, shape, dtype):
    (lam,) = spread((lax.stop_gradient(lam),), shape, _F32)
    small, endless = jnp.isnan(lam) | (lam < 10), jnp.isinf(lam)
    few = _product_count(key, jnp.where(small, lam, 0), dtype)
    many = _poisson_by_rejection(key, jnp.where(small | endless, 1e5, lam))
    many = jnp.where(endless, iinfo(dtype).max, _core.astype(many, dtype))
    return jnp.where(lam == 0, 0, jnp.where(small, few, many))


def _product_count(key, lam, dtype):
    def step(state):
        key, count, log = state
        keys = split(key)
        count = jnp.where(log > -lam, count + 1, count)
        return keys[0], count, log + jnp.log(uniform_within(keys[1], lam.shape, lam.dtype))

    start = key, jnp.zeros(lam.shape, dtype), jnp.zeros(lam.shape, lam.dtype)
    return control.while_loop(lambda state: jnp.any(state[2] > -lam), step, start)[1] - 1


def _poisson_by_rejection(key, lam):
    log = jnp.log(lam)
    b = 0.931 + 2.53 * jnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def propose(u, v):
        centre = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / centre + b) * u + lam + 0.43)
        inside = (centre >= 0.07) & (v <= v_r)
        outside = (k < 0) | ((centre < 0.013) & (v > centre))
        density = jnp.log(v * inverse_alpha / (a / (centre * centre) + b))
        return k, inside | (~outside & (density <= -lam + k * log - lax.lgamma(k + 1)))

    return _until_accepted(key, lam.shape, lam.dtype, propose)


def _until_accepted(key, shape, dtype, propose):
    """Proposals for two uniform numbers, until each element has had one that was accepted.

    The streams that JAX made standard keep the last of those for an element, not the first.
    """

    def step(state):
        key, k, done = state
        keys = split(key, 3)
        u = uniform_within(keys[1], shape, dtype) - 0.5
        proposal, accepted = propose(u, uniform_within(keys[2], shape, dtype))
        return keys[0], jnp.where(accepted, proposal, k), done | accepted

    start = key, jnp.full(shape, -1, dtype), jnp.zeros(shape, bool)
    return control.while_loop(lambda state: ~jnp.all(state[2]), step, start)[1]


def binomial(key, n, p, shape=None, dtype=None):
    """Numbers of the binomial distribution: P(k) = n! / (k! (n - k)!) p**k (1 - p)**(n - k).

    Where the smaller of n p and n (1 - p) is at most 10, the number of geometric variates until
    their sum exceeds n (Devroye, "Non-uniform random variate generation", 1986, X.4); else the
    method BTRS of Hörmann, "The generation of binomial random variates" (1993). NaN for n < 0 and
    p outside of 0 ... 1.

    Args:
      key: a key.
      n: number of trials, a number or an array that broadcasts to the shape.
      p: probability of success, a number or an array that broadcasts to the shape.
      shape: shape of the result; None for the broadcast shape of the parameters.
      dtype: a float dtype.

    Examples:
      >>> weft.random.binomial(weft.random.key(0), 10, 0.3, (10000,)).mean().round(1)
      Array(3., dtype=float32)
    """
    key, options = checked("binomial", key, (n, p), shape, dtype)
    return _binomial(key, n, p, **options)


@composite(static_argnames=("shape", "dtype"))
def _binomial(key, n, p, *, shape, dtype):
    (p,) = _core.promote_dtypes_inexact(p)  # whatever the dtype of the result
    n, p = lax.stop_gradient(spread((n, p), shape, dtype_of(p)))
    rare = p < 0.5
    q = jnp.where(rare, p, 1 - p)
    bad_n = jnp.isnan(n) | (n < 0)
    bad_q = jnp.isnan(q) | (q < 0)
    endless = jnp.isinf(n)
    q = jnp.where(bad_q, 0.01, q)
    small = bad_n | (n * q <= 10)
    trials = jnp.floor(n)
    few = _geometric_count(key, jnp.where(small, trials, 0), q)
    ended = small | endless
    many = _binomial_by_rejection(key, jnp.where(ended, 1e4, trials), jnp.where(ended, 0.5, q))
    count = _core.astype(jnp.where(small, few, many), dtype)
    trials = _core.astype(trials, dtype)
    count = jnp.where(bad_q | bad_n, jnp.nan, jnp.where(endless, jnp.inf, count))
    return jnp.where(rare | bad_n | jnp.isnan(p) | endless, count, trials - count)


def _geometric_count(key, n, p):
    scale = jnp.log1p(-p)

    def step(state):
        key, count, total = state
        keys = split(key)
        count = jnp.where(total <= n, count + 1, count)
        log = jnp.log(uniform_within(keys[0], n.shape, n.dtype))
        # The sign of a scale of zero must not count, or the total would never exceed n.
        return keys[1], count, total + jnp.ceil(jnp.abs(log / scale))

    start = key, jnp.zeros(n.shape, n.dtype), jnp.zeros(n.shape, n.dtype)
    return control.while_loop(lambda state: jnp.any(state[2] <= n), step, start)[1] - 1


def _binomial_by_rejection(key, n, p):
    deviation = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    ratio = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = jnp.floor((n + 1) * p)

    def propose(u, v):
        centre = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / centre + b) * u + c)
        inside = (centre >= 0.07) & (v <= v_r)
        outside = (k < 0) | (k > n)
        density = jnp.log(v * alpha / (a / (centre * centre) + b))
        bound = (m + 0.5) * jnp.log((m + 1) / (ratio * (n - m + 1)))
        bound += (n + 1) * jnp.log((n - m + 1) / (n - k + 1))
        bound += (k + 0.5) * jnp.log(ratio * (n - k + 1) / (k + 1))
        bound = bound + _stirling_error(m) + _stirling_error(n - m)
        bound = bound - _stirling_error(k) - _stirling_error(n - k)
        return k, inside | (~outside & (density <= bound))

    return _until_accepted(key, n.shape, n.dtype, propose)


# log(k!) less Stirling's formula for it, for k = 0 ... 9.
_STIRLING_ERRORS = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.0207906721037650,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
)


def _stirling_error(k):
    known = jnp.clip(k, 0, 9)
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    table = jnp.asarray(np.array(_STIRLING_ERRORS), k.dtype)
    listed = table.at[_core.astype(known, np.dtype("int32"))].get(mode="promise_in_bounds")
    return jnp.where(k <= 9, listed, series)


def multinomial(key, n, p, *, shape=None, dtype=None, unroll=1):
    """Vectors of the multinomial distribution: how often each of several outcomes occurs.

    P(x) = n! / prod(x!) prod(p**x). Made of binomial variates, outcome by outcome.

    Args:
      key: a key.
      n: number of trials, a number or an array that broadcasts to the shape without its last axis.
      p: probabilities of the outcomes along the last axis, in any scale.
      shape: shape of the result, the axis of the outcomes included, to which that of `p`
        broadcasts; None for that of `p`.
      dtype: dtype of the result, the default float dtype if None. The numbers are drawn in that of
        the parameters.
      unroll: as for `weft.lax.scan`.

    Raises AttributeValueError (a ValueError) for complex arguments, ShapeError for a `p` without
    axes.

    Examples:
      >>> counts = weft.random.multinomial(weft.random.key(0), 20, wnp.array([0.5, 0.25, 0.25]))
      >>> counts.shape, counts.sum().item()
      ((3,), 20.0)
    """
    key = checked_key(key, "multinomial")
    dtype = default_float() if dtype is None else requested_dtype(dtype, "multinomial")
    n, p = _core.promote_dtypes_inexact(n, p)
    if not is_float(dtype_of(p)):
        raise AttributeValueError(f"[multinomial] expected real n and p; got {dtype_of(p)}")
    if not shape_of(p):
        raise ShapeError("[multinomial] expected p to have an axis; got a number")
    shape = shape_of(p) if shape is None else static_shape(shape, "multinomial")
    bounds_in(shape, (p,), "multinomial")
    bounds_in(shape[:-1], (n,), "multinomial")
    return _multinomial(key, n, p, shape=shape, dtype=dtype, unroll=unroll)


@composite(static_argnames=("shape", "dtype", "unroll"))
def _multinomial(key, n, p, *, shape, dtype, unroll):
    n, p = lax.stop_gradient((n, p))
    n = _core.broadcast_to(n, shape[:-1])
    p = jnp.moveaxis(_core.broadcast_to(p, shape), -1, 0)
    rest = lax.cumsum(p, reverse=True)
    ratios = p / jnp.where(rest == 0, 1, rest)

    def draw(n, given):
        key, p = given
        count = _binomial(key, n, jnp.clip(p, 0, 1), shape=n.shape, dtype=n.dtype)
        return n - count, count

    keys = split(key, shape[-1])
    _, counts = control.scan(draw, n, (keys, ratios), unroll=unroll)
    return _core.astype(jnp.moveaxis(counts, 0, -1), dtype)
