"""The functions of weft.nn, each a composite of weft.numpy and weft.lax."""

import math
import operator
from typing import Any

import numpy as np

from weft import _core, lax, numpy as jnp
from weft._arguments import normalize_axes, normalize_axis, static_int, strong, weak_as
from weft._custom_rules import custom_jvp
from weft._jit import composite
from weft._surface import eager_entry
from weft.dtypes import (
    default_float,
    dtype_of,
    finfo,
    is_bool,
    is_complex,
    is_inexact,
    real_dtype,
    requested_dtype,
)
from weft.errors import AttributeValueError, DTypeError, PreconditionError
from weft.numpy._reductions import compute_dtype, named_axes

tanh = jnp.tanh


def _inexact(x):
    return _core.promote_dtypes_inexact(x)[0]


def _wide(x):
    """x in the dtype in which sums of its elements are taken: they may exceed float16."""
    wide = compute_dtype(x.dtype)
    return x if wide == x.dtype else _core.astype(x, wide)


def _rounded(x, dtype):
    """What was computed in a wide dtype, as the result of a function."""
    return x if x.dtype == dtype else _core.astype(x, dtype)


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
    return jnp.logaddexp(x if x.dtype == np.bool_ else _inexact(x), 0.0)


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
    return _soft_sign(_inexact(x))


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
    x = strong(_inexact(x))
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
    return _log1mexp(_inexact(x))


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


def _hashable(axis):
    """Axes as a static argument: lists and arrays may name them too."""
    if isinstance(axis, list):
        return tuple(axis)
    return operator.index(axis) if isinstance(axis, _core.Array) else axis


def _for_axes(function, axis):
    """The composite; as a plain function if some of the axes are those of a vmap, by name."""
    return function.__wrapped__ if named_axes(axis)[0] else function


def _axes(axis, ndim, function) -> Any:
    """Axes as a tuple of numbers from 0 on, and names."""
    names, numbers = named_axes(axis)
    return (*names, *normalize_axes(numbers, ndim, function))


def _numbers(function, x):
    """x as floating-point or complex numbers; DTypeError for bools."""
    if is_bool(dtype_of(x)):
        raise DTypeError(f"[{function}] expected an array of numbers; got dtype bool")
    return _inexact(x)


def _in_mask(x, where):
    """x in the shape that it broadcasts to together with its mask."""
    return x if where is None else _core.broadcast_arrays(x, where)[0]


def _require_mask(where, function):
    if where is not None and dtype_of(where) != np.bool_:
        raise AttributeValueError(
            f"[{function}] expected where to be a mask of booleans; got dtype {dtype_of(where)}"
        )


def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None) -> Any:
    """log(sum(b * exp(a))) along axes, without overflow.

    Args:
      a: array of any numeric dtype; integers become floats.
      axis: axis or axes to reduce; all by default.
      b: weights, broadcastable to `a`.
      keepdims: keep reduced axes with size 1.
      return_sign: return (log of the absolute value, sign) of the sum; of complex numbers, the log
        is real, and the sign is a number of absolute value 1, or 0.
      where: elements to include, broadcastable to `a`.

    Examples:
      >>> wnp.exp(weft.nn.logsumexp(wnp.log(wnp.array([1.0, 3.0, 4.0])))).round(3)
      Array(8., dtype=float32)
    """
    _require_mask(where, "logsumexp")
    if b is not None:
        _core.check_ranks("logsumexp", (a, b))
    options = {"keepdims": bool(keepdims), "return_sign": bool(return_sign)}
    return _for_axes(_logsumexp, axis)(a, b, where, axis=_hashable(axis), **options)


@composite(static_argnames=("axis", "keepdims", "return_sign"))
def _logsumexp(a, b, where, *, axis, keepdims, return_sign):
    if b is not None:
        a, b = _core.broadcast_arrays(*_core.promote_dtypes_inexact(a, b))
        a = jnp.where(b != 0, a, -jnp.inf)
        b = _wide(b)
    else:
        a = _inexact(a)
    dtype, a = a.dtype, _wide(_in_mask(a, where))
    axes = _axes(axis, a.ndim, "logsumexp")
    shown = a if where is None else jnp.where(where, a, -jnp.inf)
    top = jnp.max(jnp.real(shown), axis=axes, keepdims=True, initial=-jnp.inf)
    top = lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0.0))
    terms = jnp.exp(shown - top)
    if b is not None:
        terms = b * terms
    total = jnp.sum(terms, axis=axes, keepdims=True, where=where)
    sign = jnp.sign(total)
    magnitude = jnp.abs(total) if return_sign else total
    out = _rounded(jnp.log(magnitude) + top, real_dtype(dtype) if return_sign else dtype)
    sign = _rounded(sign, dtype)
    if not keepdims:
        dropped = named_axes(axes)[1]
        out, sign = jnp.squeeze(out, dropped), jnp.squeeze(sign, dropped)
    return (out, sign) if return_sign else out


def logmeanexp(x, axis=None, where=None, keepdims=False):
    """log(mean(exp(x))) along axes, without overflow.

    Args:
      x: array of any numeric dtype; integers become floats.
      axis: axis or axes to reduce; all by default.
      where: elements to include, broadcastable to `x`.
      keepdims: keep reduced axes with size 1.

    Examples:
      >>> weft.nn.logmeanexp(wnp.array([1000.0, 1000.0]))
      Array(1000., dtype=float32)
    """
    _require_mask(where, "logmeanexp")
    return _logmeanexp(x, where, axis=axis, keepdims=bool(keepdims))


@composite(static_argnames=("axis", "keepdims"))
def _logmeanexp(x, where, *, axis, keepdims):
    x = _inexact(x)
    total = logsumexp(_wide(x), axis=axis, where=where, keepdims=keepdims)
    shape = x.shape
    if where is None:
        count = math.prod(shape[each] for each in normalize_axes(axis, len(shape), "logmeanexp"))
    else:
        ones = _core.broadcast_to(_core.astype(1, total.dtype), shape)
        count = jnp.sum(ones, axis=axis, keepdims=keepdims, where=where)
    return _rounded(total - jnp.log(count), x.dtype)


@eager_entry(1, "axis")
def softmax(x, axis: Any = -1, where=None):
    """exp(x) / sum(exp(x)) along an axis or axes, without overflow.

    Where the mask `where` is False, the result is 0.

    Examples:
      >>> weft.nn.softmax(wnp.log(wnp.array([1.0, 3.0, 4.0]))).round(3)
      Array([0.125, 0.375, 0.5  ], dtype=float32)
    """
    _require_mask(where, "softmax")
    return _for_axes(_softmax, axis)(x, where, axis=_hashable(axis))


@composite(static_argnames=("axis",))
def _softmax(x, where, *, axis):
    x = _in_mask(_numbers("softmax", x), where)
    dtype, x = x.dtype, _wide(x)
    axes = _axes(axis, x.ndim, "softmax")
    shown = x if where is None else jnp.where(where, x, -jnp.inf)
    top = lax.stop_gradient(jnp.max(shown, axis=axes, keepdims=True, initial=-jnp.inf))
    terms = jnp.exp(shown - top)
    # Each term has an error of its own already, so one reciprocal of the sum will do.
    result = _rounded(terms * (1.0 / jnp.sum(terms, axis=axes, keepdims=True, where=where)), dtype)
    return result if where is None else jnp.where(where, result, 0)


@eager_entry(1, "axis")
def log_softmax(x, axis: Any = -1, where=None):
    """log(softmax(x)) along an axis or axes, without overflow.

    Where the mask `where` is False, the result is -inf.

    Examples:
      >>> weft.nn.log_softmax(wnp.array([0.0, 1000.0]))
      Array([-1000.,     0.], dtype=float32)
    """
    _require_mask(where, "log_softmax")
    return _for_axes(_log_softmax, axis)(x, where, axis=axis)


@composite(static_argnames=("axis",))
def _log_softmax(x, where, *, axis):
    x = _in_mask(_numbers("log_softmax", x), where)
    dtype, x = x.dtype, _wide(x)
    axes = _axes(axis, x.ndim, "log_softmax")
    shown = x if where is None else jnp.where(where, x, -jnp.inf)
    top = lax.stop_gradient(jnp.max(shown, axis=axes, keepdims=True, initial=-jnp.inf))
    shifted = shown - top
    total = jnp.sum(jnp.exp(shifted), axis=axes, keepdims=True, where=where)
    result = _rounded(shifted - jnp.log(total), dtype)
    return result if where is None else jnp.where(where, result, -jnp.inf)


def standardize(
    x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None, *, algorithm="fast"
):
    """(x - mean) / sqrt(variance + epsilon).

    Args:
      x: array; integers become floats.
      axis: axis or axes that mean and variance are taken along; None for all.
      mean, variance: arrays that broadcast with `x`; None for those of `x`.
      epsilon: keeps the divisor from 0.
      where: mask of the elements that mean and variance are those of.
      algorithm: "fast" takes the variance as mean(x**2) - mean(x)**2, which loses digits where the
        mean is large; "stable" as mean((x - mean)**2).

    Returns:
      Array of the shape of `x`, where the others do not broadcast it to a larger one.

    Raises AttributeValueError (a ValueError) for another algorithm.

    Examples:
      >>> weft.nn.standardize(wnp.array([1.0, 3.0, 1.0, 3.0])).round(3)
      Array([-1.,  1., -1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise AttributeValueError(
            f"[standardize] expected algorithm 'fast' or 'stable'; got {algorithm!r}"
        )
    _require_mask(where, "standardize")
    _core.check_ranks("standardize", (x, *(v for v in (mean, variance) if v is not None)))
    return _standardize(x, mean, variance, epsilon, where, axis=axis, algorithm=algorithm)


@composite(static_argnames=("axis", "algorithm"))
def _standardize(x, mean, variance, epsilon, where, *, axis, algorithm):
    x = _inexact(x)
    given = [each for each in (mean, variance, epsilon) if each is not None]
    dtype = _core.result_type(x, *given)[0]
    x = _wide(x)

    def average(values):
        return jnp.mean(values, axis=axis, keepdims=True, where=where)

    if mean is None:
        mean = average(x)
    if variance is None and algorithm == "fast":
        variance = jnp.clip(average(jnp.square(x)) - jnp.square(mean), 0)
    elif variance is None:
        variance = average(jnp.square(x - mean))
    return _rounded(jnp.subtract(x, mean) * lax.rsqrt(jnp.add(variance, epsilon)), dtype)


def one_hot(x, num_classes, *, dtype=None, axis=-1):
    """1 at the position that each element of x names, 0 elsewhere, along a new axis.

    Args:
      x: array of shape s, or lists of numbers. Positions outside of 0..num_classes-1 give zeros
        only.
      num_classes: size of the new axis.
      dtype: of the result; None for the default float.
      axis: where the new axis stands; or the name of a mapped axis of that size, each index of
        which gets what stands there.

    Returns an array of rank ndim(s) + 1, or ndim(s) for a mapped axis.

    Raises AttributeValueError (a ValueError) where `axis` names a mapped axis of another size.

    Examples:
      >>> weft.nn.one_hot(wnp.array([2, 0, 7]), 3)
      Array([[0., 0., 1.],
             [1., 0., 0.],
             [0., 0., 0.]], dtype=float32)
    """
    if isinstance(x, (list, tuple)):
        x = jnp.array(x)
    count = static_int(num_classes, "one_hot", "num_classes")
    dtype = default_float() if dtype is None else requested_dtype(dtype, "one_hot")
    if not isinstance(axis, str):
        axis = normalize_axis(axis, len(_core.typeof(x)[0]) + 1, "one_hot")
        return _one_hot(x, count=count, dtype=dtype, axis=axis)
    here = lax.axis_index(axis)
    if lax.axis_size(axis) != count:
        raise AttributeValueError(
            f"[one_hot] expected num_classes to be the size of the axis {axis!r}, "
            f"{lax.axis_size(axis)}; got {count}"
        )
    return jnp.equal(x, here).astype(dtype)


@composite(static_argnames=("count", "dtype", "axis"))
def _one_hot(x, *, count, dtype, axis):
    x = _core.asarray(x)
    shape = [1] * (x.ndim + 1)
    shape[axis] = count
    classes = _core.bind("iota", dimension=axis, dtype=x.dtype, shape=tuple(shape))
    return (jnp.expand_dims(x, axis) == classes).astype(dtype)
