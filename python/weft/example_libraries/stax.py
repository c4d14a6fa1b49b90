"""Layers of neural networks, as pairs of functions.

A layer is `(init, apply)`: `init(key, input_shape)` gives the shape of the output and the
parameters, `apply(params, inputs, **kwargs)` the output. `serial` and `parallel` make layers of
layers:

    init, apply = stax.serial(stax.Dense(64), stax.Relu, stax.Dense(10), stax.LogSoftmax)
    _, params = init(weft.random.key(0), (-1, 784))

Shapes have -1, or any size, for the batch. `apply` takes a key as `rng` for layers that draw
numbers.
"""

import functools as _functools
import math as _math
from typing import Any

from weft import lax as _lax, nn as _nn, numpy as _jnp, random as _random
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import AttributeValueError as _AttributeValueError
from weft.nn.initializers import glorot_normal, normal, ones, zeros

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "elu",
    "gelu",
    "glorot",
    "glorot_normal",
    "leaky_relu",
    "log_softmax",
    "logsoftmax",
    "normal",
    "ones",
    "parallel",
    "randn",
    "relu",
    "selu",
    "serial",
    "shape_dependent",
    "sigmoid",
    "softmax",
    "softplus",
    "standardize",
    "zeros",
]
__getattr__, __dir__ = _public(__name__, __all__)

elu, gelu, leaky_relu, relu, selu = _nn.elu, _nn.gelu, _nn.leaky_relu, _nn.relu, _nn.selu
sigmoid, softmax, softplus, standardize = _nn.sigmoid, _nn.softmax, _nn.softplus, _nn.standardize
logsoftmax = log_softmax = _nn.log_softmax
glorot, randn = glorot_normal, normal


def Dense(out_dim, W_init=glorot_normal(), b_init=normal()):  # noqa: B008
    """The layer inputs @ W + b, with `out_dim` outputs.

    `W_init` and `b_init` are initializers of the weights and of the offsets.
    """

    def init(rng, input_shape):
        k1, k2 = _random.split(rng)
        weights = W_init(k1, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (weights, b_init(k2, (out_dim,)))

    def apply(params, inputs, **kwargs):
        weights, bias = params
        return _jnp.dot(inputs, weights) + bias

    return init, apply


def _convolution(transposed, numbers, out_chan, filter_shape, strides, padding, W_init, b_init):
    lhs_spec, rhs_spec, out_spec = numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

    def init(rng, input_shape):
        sizes = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[lhs_spec.index("C")]}
        shape = [channels[c] if c in channels else next(sizes) for c in rhs_spec]
        of_output = _lax.conv_transpose_shape_tuple if transposed else _lax.conv_general_shape_tuple
        output_shape = of_output(input_shape, shape, strides, padding, numbers)
        bias_shape = [out_chan if c == "C" else 1 for c in out_spec]
        k1, k2 = _random.split(rng)
        return tuple(output_shape), (W_init(k1, shape), b_init(k2, bias_shape))

    def apply(params, inputs, **kwargs):
        weights, bias = params
        if transposed:
            out = _lax.conv_transpose(inputs, weights, strides, padding, dimension_numbers=numbers)
        else:
            out = _lax.conv_general_dilated(
                inputs, weights, strides, padding, (1,) * len(strides), (1,) * len(strides), numbers
            )
        return out + bias

    return init, apply


def GeneralConv(
    dimension_numbers,
    out_chan,
    filter_shape,
    strides=None,
    padding="VALID",
    W_init=None,
    b_init=normal(1e-6),  # noqa: B008
):
    """The layer of a convolution, with the axes in the order that `dimension_numbers` gives.

    Args:
      dimension_numbers: as for `weft.lax.conv_general_dilated`.
      out_chan: how many features the result has.
      filter_shape: the sizes of the window.
      strides: how far apart windows begin, 1 by default.
      padding: as for `weft.lax.conv_general_dilated`.
      W_init, b_init: initializers of the weights and of the offsets.
    """
    return _convolution(
        False, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


def GeneralConvTranspose(
    dimension_numbers,
    out_chan,
    filter_shape,
    strides=None,
    padding="VALID",
    W_init=None,
    b_init=normal(1e-6),  # noqa: B008
):
    """The layer of a transposed convolution; as `GeneralConv`."""
    return _convolution(
        True, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


def _with_axes(layer, *dimension_numbers):
    made = _functools.partial(layer, dimension_numbers)
    axes = ", ".join(dimension_numbers)
    made.__doc__ = f"`{layer.__name__}` with axes in the orders {axes}; its other arguments."
    return made


Conv = _with_axes(GeneralConv, "NHWC", "HWIO", "NHWC")
Conv1DTranspose = _with_axes(GeneralConvTranspose, "NHC", "HIO", "NHC")
ConvTranspose = _with_axes(GeneralConvTranspose, "NHWC", "HWIO", "NHWC")


def BatchNorm(
    axis=(0, 1, 2), epsilon=1e-5, center=True, scale=True, beta_init=zeros, gamma_init=ones
):
    """The layer that gives its inputs mean 0 and variance 1 along axes, then gamma and beta.

    Args:
      axis: the axis or axes along which the mean and the variance are taken.
      epsilon: what is added to the variance.
      center, scale: whether there is a beta to add, and a gamma to multiply by.
      beta_init, gamma_init: initializers of these.
    """
    axis = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng, input_shape):
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axis)
        k1, k2 = _random.split(rng)
        beta = beta_init(k1, shape) if center else ()
        gamma = gamma_init(k2, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply(params, x, **kwargs):
        beta, gamma = params
        kept = tuple(None if i in axis else slice(None) for i in range(_jnp.ndim(x)))
        out = standardize(x, axis, epsilon=epsilon)
        if scale:
            out = gamma[kept] * out
        return out + beta[kept] if center else out

    return init, apply


def elementwise(fun, **fun_kwargs):
    """The layer of a function without parameters."""
    return lambda rng, input_shape: (input_shape, ()), (
        lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)
    )


Tanh = elementwise(_jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(_jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = elementwise(lambda x: x)


def _pool(reducer, initial, window_shape, strides, padding, spec, rescale=None):
    window = list(window_shape)
    strides = list(strides or (1,) * len(window))
    if spec is None:
        at = (0, len(window) + 1)
    else:
        at = sorted((spec.index("N"), spec.index("C")))
    for i in at:
        window.insert(i, 1)
        strides.insert(i, 1)

    def init(rng, input_shape):
        pads = _lax.padtype_to_pads(input_shape, window, strides, padding)
        ones = (1,) * len(window)
        shape = _lax.reduce_window_shape_tuple(input_shape, window, strides, pads, ones, ones)
        return tuple(shape), ()

    def apply(params, inputs, **kwargs):
        out = _lax.reduce_window(inputs, initial, reducer, window, strides, padding)
        return rescale(out, inputs, window, strides, padding) if rescale else out

    return init, apply


def MaxPool(window_shape, strides=None, padding="VALID", spec=None):
    """The layer of the greatest elements of windows. `spec` names the axes, "NHWC" by default.

    Args:
      window_shape: the sizes of the window along the axes that `spec` names besides N and C.
      strides: how far apart windows begin, 1 by default.
      padding: "VALID" or "SAME".
    """
    return _pool(_lax.max, -_jnp.inf, window_shape, strides, padding, spec)


def SumPool(window_shape, strides=None, padding="VALID", spec=None):
    """The layer of the sums of windows; as `MaxPool`."""
    return _pool(_lax.add, 0.0, window_shape, strides, padding, spec)


def _divide_by_count(out, inputs, window, strides, padding):
    spatial = [i for i, n in enumerate(window) if n != 1 or strides[i] != 1]
    ones = _jnp.ones([n if i in spatial else 1 for i, n in enumerate(inputs.shape)], inputs.dtype)
    return out / _lax.reduce_window(ones, 0.0, _lax.add, window, strides, padding)


def AvgPool(window_shape, strides=None, padding="VALID", spec=None):
    """The layer of the means of windows, of the elements that are there; as `MaxPool`."""
    return _pool(_lax.add, 0.0, window_shape, strides, padding, spec, _divide_by_count)


def _flatten():
    def init(rng, input_shape):
        return (input_shape[0], _math.prod(input_shape[1:])), ()

    return init, lambda params, inputs, **kwargs: _jnp.reshape(inputs, (inputs.shape[0], -1))


Flatten = _flatten()


def FanOut(num):
    """The layer that gives its input `num` times, for `parallel`."""
    return lambda rng, input_shape: ([input_shape] * num, ()), (
        lambda params, inputs, **kwargs: [inputs] * num
    )


FanInSum = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: sum(inputs),
)


def FanInConcat(axis=-1):
    """The layer that joins its inputs along an axis."""

    def init(rng, input_shape):
        at = axis % len(input_shape[0])
        joined = sum(shape[at] for shape in input_shape)
        return (*input_shape[0][:at], joined, *input_shape[0][at + 1 :]), ()

    return init, lambda params, inputs, **kwargs: _jnp.concatenate(inputs, axis)


def Dropout(rate, mode="train"):
    """The layer that keeps elements with probability `rate`, and divides by it; needs `rng`.

    With another mode than "train" it gives its input.

    Applying it without a key raises AttributeValueError (a ValueError).
    """

    def apply(params, inputs, **kwargs):
        rng = kwargs.get("rng")
        if rng is None:
            raise _AttributeValueError(
                "[Dropout] expected a key: pass it to the layer, apply(params, inputs, rng=key)"
            )
        if mode != "train":
            return inputs
        keep = _random.bernoulli(rng, rate, inputs.shape)
        return _jnp.where(keep, inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply


def _keys(rng, count):
    return _random.split(rng, count) if rng is not None else (None,) * count


def serial(*layers):
    """The layer of layers one after the other."""
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init(rng, input_shape):
        params = []
        for each in inits:
            rng, layer_rng = _random.split(rng)
            input_shape, param = each(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params, inputs, **kwargs):
        keys = _keys(kwargs.pop("rng", None), len(applies))
        for each, param, rng in zip(applies, params, keys, strict=True):
            inputs = each(param, inputs, rng=rng, **kwargs)
        return inputs

    return init, apply


def parallel(*layers):
    """The layer of layers side by side: a list of inputs gives a list of outputs."""
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init(rng, input_shape):
        keys = _random.split(rng, len(inits))
        made: list[Any] = [each(k, s) for each, k, s in zip(inits, keys, input_shape, strict=True)]
        return tuple(shape for shape, _ in made), tuple(param for _, param in made)

    def apply(params, inputs, **kwargs):
        keys = _keys(kwargs.pop("rng", None), len(applies))
        return [
            each(p, x, rng=k, **kwargs)
            for each, p, x, k in zip(applies, params, inputs, keys, strict=True)
        ]

    return init, apply


def shape_dependent(make_layer):
    """The layer that make_layer(input_shape) gives."""

    def init(rng, input_shape):
        return make_layer(input_shape)[0](rng, input_shape)

    def apply(params, inputs, **kwargs):
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init, apply


_open_to_users(__name__)
