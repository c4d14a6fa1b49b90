"""weft.nn against jax.nn: values and derivatives, also of infinities, NaN and integers."""

import numpy as np
import oracle
import pytest
from oracle import needs_jax

import weft
from weft import nn

ACTIVATIONS = [
    *["relu", "relu6", "leaky_relu", "elu", "celu", "selu", "gelu", "silu", "swish", "softplus"],
    *["sigmoid", "log_sigmoid", "hard_sigmoid", "hard_tanh", "soft_sign", "tanh"],
]
SPECIAL = "jnp.array([-jnp.inf, -9.0, -3.0, -0.5, -0.0, 0.0, 0.5, 2.0, 6.0, 9.0, jnp.inf, jnp.nan])"
# jax has NaN there (docs/differences.md).
WITH_LIMITS = {"gelu": 0.0, "silu": 0.0, "swish": 0.0, "soft_sign": -1.0}
EXPRESSIONS = oracle.lines(
    """
    nn.gelu(x, approximate=False)
    nn.leaky_relu(x - 3, 0.5)
    nn.elu(x - 3, 2.0)
    nn.softmax(x)
    nn.softmax(x, axis=0)
    nn.softmax(x, axis=(0, 1))
    nn.softmax(x, where=x > 1, initial=0.0)
    nn.log_softmax(x)
    nn.log_softmax(b)
    nn.softmax(b)
    nn.softmax(x,axis='i')
    nn.log_softmax(x, axis=0)
    nn.log_softmax(jnp.array([1e30, 0.0, -1e30]))
    nn.logsumexp(x)
    nn.logsumexp(x, axis=1)
    nn.logsumexp(x, axis=1, keepdims=True)
    nn.logsumexp(x, b=x)
    nn.logsumexp(x, axis=0, b=-x, return_sign=True)
    nn.logsumexp(c, return_sign=True)
    nn.logsumexp(c, axis=0, keepdims=True, b=x, return_sign=True)
    nn.logsumexp(jnp.array([-jnp.inf, -jnp.inf]))
    nn.logsumexp(jnp.array([jnp.inf, 1.0]))
    nn.one_hot(k, 4)
    nn.one_hot(jnp.array([-1, 0, 9]), 3)
    nn.one_hot(k, 4, axis=0)
    nn.one_hot(k, 4, dtype="int32")
    nn.relu(k - 3)
    nn.relu(h - 3)
    nn.silu(h)
    """
)
EXPRESSIONS += tuple(
    f"nn.{name}({SPECIAL}{'[1:-2]' if name in WITH_LIMITS else ''})" for name in ACTIVATIONS
)


@pytest.mark.parametrize("name", WITH_LIMITS)
def test_limits(name):
    function, ends = getattr(nn, name), np.array([-np.inf, np.inf, np.nan], np.float32)
    at_infinity = 1.0 if name == "soft_sign" else np.inf
    np.testing.assert_array_equal(function(ends), [WITH_LIMITS[name], at_infinity, np.nan])


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_as_jax(expression):
    oracle.check(EXPRESSIONS, expression)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_staged(expression):
    oracle.check_staged(expression)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives(name):
    f = getattr(nn, name)
    with weft.enable_x64(True):
        x = np.array([-7.1, -2.3, -0.4, 0.3, 1.7, 4.2, 8.5])
        found = weft.vmap(weft.grad(f))(x)
        difference = (np.asarray(f(x + 1e-6)) - np.asarray(f(x - 1e-6))) / 2e-6
        np.testing.assert_allclose(found, difference, rtol=1e-5, atol=1e-7)


def test_sums_over_lanes_of_a_vmap():
    x = np.array([[1.0, 2.0, 0.5], [3.0, -1.0, 0.0]], np.float32)
    for function in (nn.softmax, nn.log_softmax):
        lanes = weft.vmap(lambda x, f=function: (f(x, "i"), f(x, ("i", 0))), axis_name="i")(x)
        np.testing.assert_allclose(lanes[0], function(x, 0), rtol=1e-5)
        np.testing.assert_allclose(lanes[1], function(x, None), rtol=1e-5)
    lanes = weft.vmap(lambda x: nn.logsumexp(x, "i"), axis_name="i")(x)
    np.testing.assert_allclose(lanes[1], nn.logsumexp(x, 0), rtol=1e-5)


@pytest.mark.parametrize("name", ["relu", "relu6"])
def test_derivatives_at_corners_are_zero(name):
    assert weft.grad(getattr(nn, name))(0.0) == 0
    assert weft.grad(nn.relu6)(6.0) == 0


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_softmax_of_large_values(shift):
    x = np.array([[1.0, 2.0, 4.0]], "f") + np.float32(shift)
    weights = np.exp(x - x.max())
    np.testing.assert_allclose(nn.softmax(x), weights / weights.sum(), rtol=1e-5)
    pull = weft.vjp(nn.softmax, x)[1]
    assert np.isfinite(pull(np.ones_like(x))[0]).all()


def test_squareplus_of_complex_numbers():
    z = np.array([1 + 2j, 3j, -2 + 0.5j, -1 - 1j])
    np.testing.assert_allclose(weft.nn.squareplus(z), (z + np.sqrt(z * z + 4)) / 2, rtol=1e-5)
