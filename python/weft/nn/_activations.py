"""The activation functions of weft.nn, each a composite of weft.numpy and weft.lax."""

import math

import numpy as np

from weft import _core, lax, numpy as jnp
from weft._arguments import normalize_axis, strong, weak_as
from weft._custom_rules import custom_jvp
from weft._jit import composite
from weft.dtypes import (
    dtype_of,
    finfo,
    is_complex,
    is_inexact,
)
from weft.errors import PreconditionError

tanh = jnp.tanh


def inexact(x):
    """x as floating-point or complex numbers."""
    return _core.promote_dtypes_inexact(x)[0]


@composite
def identity(x):
    """x, as an array.

    Examples:
      >>> weft.nn.identity(3)
      Array(3, dtype=int32, weak_type=True)
    """
    return _core.asarray(x)


@composite
def relu(x):
    """max(x, 0), elementwise; the derivative at 0 is 0.

    Examples:
      >>> weft.nn.relu(wnp.array([-1.0, 0.0, 2.0]))
      Array([0., 0., 2.], dtype=float32)
      >>> weft.grad(weft.nn.relu)(0.0).item()
      0.0
    """
    x = _core.asarray(x)
    # What is not positive has no derivative, NaN included, which stays.
    return jnp.where(x > 0, x, lax.stop_gradient(jnp.maximum(x, 0)))


@composite
def relu6(x):
    """min(max(x, 0), 6), elementwise; the derivative at 0 and 6 is 0.

    Examples:
      >>> weft.nn.relu6(wnp.array([-1.0, 2.0, 9.0]))
      Array([0., 2., 6.], dtype=float32)
    """
    x = _core.asarray(x)
    limited = jnp.minimum(jnp.maximum(x, 0), 6.0)
    return jnp.where((x > 0) & (x < 6), x, lax.stop_gradient(limited))


@composite(broadcasts=True)
def leaky_relu(x, negative_slope=1e-2):
    """x where it is not negative, else negative_slope * x.

    Examples:
      >>> weft.nn.leaky_relu(wnp.array([-2.0, 3.0]), negative_slope=0.5)
      Array([-1.,  3.], dtype=float32)
    """
    x = _core.asarray(x)
    return jnp.where(x >= 0, x, negative_slope * x)


@composite(broadcasts=True)
def elu(x, alpha=1.0):
    """x where it is positive, else alpha * (exp(x) - 1).

    Examples:
      >>> weft.nn.elu(wnp.array([-1.0, 0.0, 2.0])).round(3)
      Array([-0.632,  0.   ,  2.   ], dtype=float32)
    """
    x = _core.asarray(x)
    # exp only of what is selected, so that its derivative cannot overflow.
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@composite(broadcasts=True)
def celu(x, alpha=1.0):
    """max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1), elementwise.

    Examples:
      >>> weft.nn.celu(wnp.array([-1.0, 0.0, 2.0]), alpha=2.0).round(3)
      Array([-0.787,  0.   ,  2.   ], dtype=float32)
    """
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@composite
def selu(x):
    """The scaled elu of self-normalizing networks (Klambauer et al., 2017).

    Examples:
      >>> weft.nn.selu(wnp.array([-1.0, 0.0, 1.0])).round(3)
      Array([-1.111,  0.   ,  1.051], dtype=float32)
    """
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def sigmoid(x):
    """1 / (1 + exp(-x)), elementwise, of floating-point or complex `x`.

    Examples:
      >>> weft.nn.sigmoid(wnp.array([-np.inf, 0.0, np.inf]))
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    return lax.logistic(x)


@composite
def log_sigmoid(x):
    """log(sigmoid(x)), without overflow.

    Examples:
      >>> weft.nn.log_sigmoid(-1000.0).item()
      -1000.0
    """
    return -softplus(-_core.asarray(x))


@composite
def softplus(x):
    """log(1 + exp(x)), without overflow.

    Examples:
      >>> weft.nn.softplus(1000.0).item()
      1000.0
    """
    x = _core.asarray(x)
    # A bool takes the weak type of the number, other dtypes keep theirs.
    return jnp.logaddexp(x if x.dtype == np.bool_ else inexact(x), 0.0)


@composite
def sparse_plus(x):
    """0 up to -1, (x + 1)**2 / 4 up to 1, then x: a softplus that reaches both.

    Its derivative is `sparse_sigmoid`.

    Examples:
      >>> weft.nn.sparse_plus(wnp.array([-2.0, 0.0, 1.0, 5.0]))
      Array([0.  , 0.25, 1.  , 5.  ], dtype=float32)
    """
    x = _core.asarray(x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@composite
def sparse_sigmoid(x):
    """0 up to -1, (x + 1) / 2 up to 1, then 1 (Blondel, Martins and Niculae, 2019).

    Examples:
      >>> weft.nn.sparse_sigmoid(wnp.array([-2.0, 0.0, 0.5, 5.0]))
      Array([0.  , 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return 0.5 * jnp.clip(_core.asarray(x) + 1.0, 0.0, 2.0)


@composite(broadcasts=True)
def squareplus(x, b=4):
    """(x + sqrt(x**2 + b)) / 2 (Barron, 2021); `b` says how smooth it is.

    Examples:
      >>> weft.nn.squareplus(wnp.array([-1.5, 0.0, 1.5]))
      Array([0.5, 1. , 2. ], dtype=float32)
    """
    like = jnp.sqrt(jnp.add(x, b))
    x, b = _core.promote_dtypes_inexact(x, b)
    half = 0.5 * x
    if is_complex(dtype_of(x)):
        return weak_as(half + jnp.sqrt(half * half + 0.25 * b), like)
    root = jnp.hypot(half, 0.5 * jnp.sqrt(b))
    # The sum of a negative number and the root would lose its digits, or overflow.
    positive = x >= 0
    other = 0.25 * b / (root - jnp.where(positive, -1, half))
    return weak_as(jnp.where(positive, half + root, other), like)


@composite
def soft_sign(x):
    """x / (1 + |x|).

    Examples:
      >>> weft.nn.soft_sign(wnp.array([-3.0, 0.0, 1.0]))
      Array([-0.75,  0.  ,  0.5 ], dtype=float32)
    """
    return _soft_sign(inexact(x))


@custom_jvp
def _soft_sign(x):
    size = jnp.abs(x)
    return jnp.where(jnp.isinf(size), jnp.sign(x), x / (size + 1))


@_soft_sign.defjvp
def _soft_sign_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    inverse = 1 / (jnp.abs(x) + 1)
    return _soft_sign(x), dx * (inverse * inverse)


@composite
def silu(x):
    """x * sigmoid(x), elementwise, of floating-point or complex `x`; also called swish.

    Examples:
      >>> weft.nn.silu(wnp.array([-1.0, 0.0, 1.0])).round(3)
      Array([-0.269,  0.   ,  0.731], dtype=float32)
    """
    if is_complex(dtype_of(x)):
        return x * lax.logistic(x)
    return _relu_outside(800.0, lambda x: x * lax.logistic(x), x)


swish = silu


def _relu_outside(limit, function, x):
    """`function` of x; where |x| is at the limit or above, relu, which equals it in working
    precision: there the formula or its slopes would multiply infinities by 0."""
    if not is_inexact(dtype_of(x)):
        return function(x)
    limit = min(limit, float(finfo(dtype_of(x)).max))
    x, low, high = _core.promote_dtypes(x, -limit, limit)
    return jnp.where(x >= high, x, function(lax.clamp(low, x, high)))


@composite
def mish(x):
    """x * tanh(softplus(x)) (Misra, 2019).

    Examples:
      >>> weft.nn.mish(wnp.array([-1.0, 0.0, 1.0])).round(3)
      Array([-0.303,  0.   ,  0.865], dtype=float32)
    """
    return _relu_outside(800.0, lambda x: x * jnp.tanh(softplus(x)), x)


@composite
def hard_tanh(x):
    """x limited to the interval from -1 to 1.

    Examples:
      >>> weft.nn.hard_tanh(wnp.array([-4.0, 0.5, 4.0]))
      Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    x, one = _core.promote_dtypes(x, 1)
    return jnp.where(x > 1, one, jnp.where(x < -1, -one, x))


@composite
def hard_sigmoid(x):
    """relu6(x + 3) / 6.

    Examples:
      >>> weft.nn.hard_sigmoid(wnp.array([-4.0, 0.0, 1.5, 4.0]))
      Array([0.  , 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return relu6(_core.asarray(x) + 3.0) / 6.0


@composite
def hard_silu(x):
    """x * hard_sigmoid(x) (Howard et al., 2019); also called hard_swish.

    Examples:
      >>> weft.nn.hard_silu(wnp.array([-1.0, 0.0, 3.0])).round(3)
      Array([-0.333,  0.   ,  3.   ], dtype=float32)
    """
    # The limit is above 3, where the function becomes relu.
    return _relu_outside(4.0, lambda x: x * hard_sigmoid(x), x)


hard_swish = hard_silu


@composite(static_argnames=("approximate",))
def gelu(x, approximate=True):
    """x * P(N(0, 1) <= x), elementwise (Hendrycks and Gimpel, 2016).

    With `approximate`, by the formula with tanh; else by erf.

    Examples:
      >>> weft.nn.gelu(wnp.array([-1.0, 0.0, 1.0])).round(3)
      Array([-0.159,  0.   ,  0.841], dtype=float32)
    """
    x = strong(inexact(x))
    if is_complex(dtype_of(x)):
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1.0 + jnp.tanh(inner))
    return (
        _relu_outside(25.0, _gelu_by_tanh, x)
        if approximate
        else _relu_outside(40.0, _gelu_by_erf, x)
    )


def _gelu_by_tanh(x):
    # (1 + tanh(y)) / 2 is logistic(2y), which has its digits where tanh(y) is close to -1.
    return x * lax.logistic(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))


def _gelu_by_erf(x):
    return 0.5 * x * lax.erfc(-x * math.sqrt(0.5))


@composite(static_argnames=("axis",))
def glu(x, axis=-1):
    """The first half of `x` along an axis times the sigmoid of the second half.

    `x` is floating-point or complex, its size along the axis even; else PreconditionError.

    Examples:
      >>> weft.nn.glu(wnp.array([8.0, 6.0, 0.0, np.inf]))
      Array([4., 6.], dtype=float32)
    """
    x = _core.asarray(x)
    size = x.shape[normalize_axis(axis, x.ndim, "glu")]
    if size % 2:
        raise PreconditionError(f"[glu] expected an even size of axis {axis}; got {size}")
    a, b = jnp.split(x, 2, axis)
    return a * lax.logistic(b)


@composite
def log1mexp(x):
    """log(1 - exp(-x)) of x >= 0, as exact for small x as for large (Mächler, 2012).

    Examples:
      >>> weft.nn.log1mexp(wnp.log(2.0)).round(3)
      Array(-0.693, dtype=float32, weak_type=True)
    """
    return _log1mexp(inexact(x))


@custom_jvp
def _log1mexp(x):
    is_small = x < math.log(2)
    return jnp.where(is_small, jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))


@_log1mexp.defjvp
def _log1mexp_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    # exp(x) in the denominator would overflow, and its slope.
    positive = x > 0
    at, other = jnp.where(positive, x, 1), jnp.where(positive, -1, x)
    slope = jnp.where(positive, jnp.exp(-at) / -jnp.expm1(-at), 1 / jnp.expm1(other))
    return _log1mexp(x), dx * slope
