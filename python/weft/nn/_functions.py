"""The functions of weft.nn, each a composite of weft.numpy and weft.lax."""

import math

from weft import _core, lax, numpy as jnp
from weft._arguments import normalize_axis, static_int, strong
from weft._jit import composite

tanh = jnp.tanh


def _inexact(x):
    return _core.promote_dtypes_inexact(x)[0]


@composite
def relu(x):
    """max(x, 0), elementwise; the derivative at 0 is 0."""
    x, zero = _core.promote_dtypes(x, 0)
    return jnp.where(x <= 0, zero, x)  # NaN stays


@composite
def relu6(x):
    """min(max(x, 0), 6), elementwise, as a float; the derivative at 0 and 6 is 0."""
    x, six = _core.promote_dtypes(x, 6.0)
    return jnp.where((x <= 0) | (x >= 6), jnp.where(x <= 0, 0.0, six), x)  # NaN stays


@composite
def leaky_relu(x, negative_slope=1e-2):
    """x where it is not negative, else negative_slope * x."""
    x = _core.asarray(x)
    return jnp.where(x >= 0, x, negative_slope * x)


@composite
def elu(x, alpha=1.0):
    """x where it is positive, else alpha * (exp(x) - 1)."""
    x = _core.asarray(x)
    # exp only of what is selected, so that its derivative cannot overflow.
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@composite
def celu(x, alpha=1.0):
    """x where it is positive, else alpha * (exp(x / alpha) - 1)."""
    x = _core.asarray(x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x) / alpha))


@composite
def selu(x):
    """The scaled elu of self-normalizing networks (Klambauer et al., 2017)."""
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def sigmoid(x):
    """1 / (1 + exp(-x)), elementwise."""
    return lax.logistic(_inexact(x))


@composite
def log_sigmoid(x):
    """log(sigmoid(x)), without overflow."""
    return -softplus(-_inexact(x))


@composite
def softplus(x):
    """log(1 + exp(x)), without overflow."""
    return jnp.logaddexp(_inexact(x), 0.0)


@composite
def soft_sign(x):
    """x / (1 + |x|)."""
    x = _inexact(x)
    return x / (jnp.abs(x) + 1)


@composite
def silu(x):
    """x * sigmoid(x), elementwise; also called swish."""
    x = _inexact(x)
    return x * lax.logistic(x)


swish = silu


@composite
def hard_tanh(x):
    """x limited to the interval from -1 to 1."""
    x, one = _core.promote_dtypes(x, 1)
    return jnp.where(x > 1, one, jnp.where(x < -1, -one, x))


@composite
def hard_sigmoid(x):
    """relu6(x + 3) / 6."""
    return relu6(_core.asarray(x) + 3.0) / 6.0


@composite(static_argnames=("approximate",))
def gelu(x, approximate=True):
    """x * P(N(0, 1) <= x), elementwise (Hendrycks and Gimpel, 2016).

    With `approximate`, by the formula with tanh; else by erf.
    """
    x = strong(_inexact(x))
    if not approximate:
        return 0.5 * x * lax.erfc(-x * math.sqrt(0.5))
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1.0 + jnp.tanh(inner))


@composite(static_argnames=("axis",))
def glu(x, axis=-1):
    """The first half of x along an axis times the sigmoid of the second half."""
    x = _inexact(x)
    a, b = jnp.split(x, 2, axis)
    return a * lax.logistic(b)


def _axes(axis, ndim):
    if axis is None:
        return tuple(range(ndim))
    return tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)


@composite(static_argnames=("axis", "keepdims", "return_sign"))
def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None):
    """log(sum(b * exp(a))) along axes, without overflow.

    Args:
      a: array of any numeric dtype; integers become floats.
      axis: axis or axes to reduce; all by default.
      b: weights, broadcastable to `a`.
      keepdims: keep reduced axes with size 1.
      return_sign: return (log of the absolute value, sign) of the sum.
      where: elements to include, broadcastable to `a`.
    """
    if b is not None:
        a, b = _core.broadcast_arrays(*_core.promote_dtypes_inexact(a, b))
        a = jnp.where(b != 0, a, -jnp.inf)
    else:
        a = _inexact(a)
    axes = _axes(axis, a.ndim)
    shown = a if where is None else jnp.where(where, a, -jnp.inf)
    top = jnp.max(jnp.real(shown), axis=axes, keepdims=True, initial=-jnp.inf)
    top = lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0.0))
    terms = jnp.exp(shown - top)
    if b is not None:
        terms = b * terms
    total = jnp.sum(terms, axis=axes, keepdims=True, where=where)
    sign = jnp.sign(total)
    magnitude = jnp.abs(total) if return_sign else total
    out = jnp.log(magnitude) + top
    if not keepdims:
        out, sign = jnp.squeeze(out, axes), jnp.squeeze(sign, axes)
    return (out, sign) if return_sign else out


@composite(static_argnames=("axis",))
def softmax(x, axis=-1, where=None):
    """exp(x) / sum(exp(x)) along an axis or axes, without overflow.

    Where the mask `where` is False, the result is 0.
    """
    x = _inexact(x)
    axes = _axes(axis, x.ndim)
    shown = x if where is None else jnp.where(where, x, -jnp.inf)
    top = lax.stop_gradient(jnp.max(shown, axis=axes, keepdims=True, initial=-jnp.inf))
    terms = jnp.exp(shown - top)
    return terms / jnp.sum(terms, axis=axes, keepdims=True, where=where)


@composite(static_argnames=("axis",))
def log_softmax(x, axis=-1, where=None):
    """log(softmax(x)) along an axis or axes, without overflow.

    Where the mask `where` is False, the result is -inf.
    """
    x = _inexact(x)
    axes = _axes(axis, x.ndim)
    shown = x if where is None else jnp.where(where, x, -jnp.inf)
    top = lax.stop_gradient(jnp.max(shown, axis=axes, keepdims=True, initial=-jnp.inf))
    shifted = shown - top
    total = jnp.sum(jnp.exp(shifted), axis=axes, keepdims=True, where=where)
    return shifted - jnp.log(total)


@composite(static_argnames=("axis",))
def standardize(x, axis=-1, epsilon=1e-5, where=None):
    """(x - mean) / sqrt(var + epsilon) along an axis or axes."""
    x = _inexact(x)
    mean = jnp.mean(x, axis=axis, keepdims=True, where=where)
    var = jnp.mean(jnp.square(x - mean), axis=axis, keepdims=True, where=where)
    return (x - mean) * lax.rsqrt(var + epsilon)


@composite(static_argnames=("num_classes", "dtype", "axis"))
def one_hot(x, num_classes, *, dtype=float, axis=-1):
    """1 at the position that each element of x names, 0 elsewhere, along a new axis.

    Args:
      x: integer array of shape s. Positions outside of 0..num_classes-1 give zeros only.
      num_classes: size of the new axis.
      dtype: of the result.
      axis: where the new axis stands.

    Returns an array of rank ndim(s) + 1.
    """
    x = _core.asarray(x)
    axis = normalize_axis(axis, x.ndim + 1, "one_hot")
    shape = [1] * (x.ndim + 1)
    shape[axis] = static_int(num_classes, "one_hot", "num_classes")
    classes = _core.bind("iota", dimension=axis, dtype=x.dtype, shape=tuple(shape))
    return (jnp.expand_dims(x, axis) == classes).astype(dtype)
