"""weft.nn: attention, products with scales, initializers, the newer activations; against jax.

The rows are expressions, as in `oracle.py`; by default each sixth of a function is run.
"""

import numpy as np
import oracle
import pytest
from oracle import needs_jax

import weft
from weft import nn, numpy as jnp
from weft.test_util import check_grads

Q = "jnp.sin(jnp.arange(240.0)).reshape(2, 4, 6, 5)"
K = "jnp.cos(jnp.arange(140.0)).reshape(2, 7, 2, 5)"
V = "jnp.sin(3 * jnp.arange(140.0)).reshape(2, 7, 2, 5)"
MASK = "(jnp.sin(jnp.arange(336.0)) > -0.4).reshape(2, 6, 4, 7)"
ATTENTION = f"nn.dot_product_attention({Q}, {K}, {V}, "
KERNEL = "jnp.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, jnp.nan])"
RANDOM = "(random.PRNGKey(3), (2, 3, 4))"
CASES = oracle.lines(
    f"""
    {ATTENTION}is_causal=True, return_residual=True)
    {ATTENTION}jnp.sin(jnp.arange(28.0)).reshape(1, 1, 4, 7), {MASK})
    {ATTENTION}local_window_size=(1, 2), scale=2)
    {ATTENTION}query_seq_lengths=jnp.array([2, 4]), key_value_seq_lengths=jnp.array([0, 5]))
    {ATTENTION}mask={MASK}.astype(float))
    {ATTENTION}mask=jnp.ones((2, 5, 4, 7), bool))
    {ATTENTION}local_window_size=(1, 2, 3))
    {ATTENTION}query_seq_lengths=jnp.array([2]))
    {ATTENTION}query_seq_lengths=jnp.array([2.0, 4.0]))
    {ATTENTION}implementation="foo")
    nn.dot_product_attention({Q}[0], {K}[0], {V}[0], return_residual=True)
    nn.dot_product_attention({Q}, {K}, {V}[:, :4])
    nn.dot_product_attention({Q}.astype("bfloat16"), {K}.astype("bfloat16"), {V}.astype("bfloat16"))
    nn.dot_product_attention({Q}, {K}.astype("float16"), {V}.astype("float16"))
    nn.scaled_matmul(x[None], x[None, :1], x[None, :, :1], x[:1, :1])
    nn.get_scaled_dot_general_config("mxfp4")
    nn.hard_silu({KERNEL})
    nn.hard_silu(k)
    nn.hard_swish(h)
    nn.identity(wi)
    nn.log1mexp({KERNEL})
    nn.log1mexp(k)
    nn.logmeanexp(x, axis=1)
    nn.logmeanexp(x, where=x > 1, keepdims=True)
    nn.mish({KERNEL})
    nn.sparse_plus({KERNEL})
    nn.sparse_sigmoid({KERNEL})
    nn.squareplus({KERNEL})
    nn.squareplus(k, 2)
    nn.silu(k)
    nn.sigmoid(b)
    nn.softplus(b)
    nn.celu(x - 3, 2)
    nn.glu(u[:, :2], 1)
    nn.softmax(x, where=False)
    nn.softmax(x, axis=[0])
    nn.standardize(x, 0)
    nn.standardize(x, mean=1.0, variance=x, epsilon=0)
    nn.standardize(x + 100, algorithm="stable", where=x > 1)
    nn.standardize(x, algorithm="exact")
    nn.one_hot([1, 2], 3)
    nn.initializers.constant(2.5, "int32"){RANDOM}
    nn.initializers.zeros{RANDOM}
    nn.initializers.ones(None, (2,), "int8")
    nn.initializers.uniform(2.0, "float16"){RANDOM}
    nn.initializers.normal(){RANDOM}
    nn.initializers.truncated_normal(0.5, None, -1.0, 2.0){RANDOM}
    nn.initializers.glorot_normal(){RANDOM}
    nn.initializers.glorot_uniform(0, 2){RANDOM}
    nn.initializers.lecun_normal((0, 1), 2){RANDOM}
    nn.initializers.lecun_uniform(batch_axis=0){RANDOM}
    nn.initializers.he_normal(dtype="complex64"){RANDOM}
    nn.initializers.he_uniform(dtype="complex64"){RANDOM}
    nn.initializers.he_normal()(random.PRNGKey(0), (3,))
    nn.initializers.variance_scaling(2, "fan_geo_avg", "normal"){RANDOM}
    nn.initializers.variance_scaling(2, "fan_out", "foo"){RANDOM}
    nn.initializers.variance_scaling(2, "foo", "normal"){RANDOM}
    """
)


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("expression", oracle.sampled(CASES, 6))
def test_as_jax(expression):
    oracle.check(oracle.sampled(CASES, 6), expression)


def attention(q, k, v, allowed):
    """By its definition, in NumPy."""
    k, v = (np.repeat(x, q.shape[2] // x.shape[2], 2) for x in (k, v))
    logits = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[3])
    weights = np.exp(logits) * allowed
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bnts,bsnh->btnh", weights, v)


@pytest.mark.parametrize("heads", [1, 2, 6])
def test_attention_in_its_forms(heads):
    rng = np.random.default_rng(0)
    q, k, v = (
        rng.normal(size=(2, n, h, 5)).astype("f") for n, h in ((4, 6), (7, heads), (7, heads))
    )
    i, j = np.arange(4)[:, None], np.arange(7)
    forms = [
        ({}, np.ones((4, 7))),
        ({"is_causal": True}, j <= i),
        ({"local_window_size": 1}, abs(i - j) <= 1),
        ({"key_value_seq_lengths": np.int32([3, 7])}, (j < [[3], [7]])[:, None, None]),
        ({"mask": (j % 2 == 0)[None, None, None]}, j % 2 == 0),
    ]

    def every(q, k, v):
        return [nn.dot_product_attention(q, k, v, **options) for options, _ in forms]

    for got, (_, allowed) in zip(weft.jit(every)(q, k, v), forms, strict=True):
        np.testing.assert_allclose(got, attention(q, k, v, allowed), rtol=1e-4, atol=1e-5)


def test_attention_is_differentiated_and_mapped():
    q, k = (jnp.sin(jnp.arange(float(n))).reshape(1, -1, 2, 3) for n in (24, 30))

    def loss(q, k, v, bias):
        return (nn.dot_product_attention(q, k, v, bias, is_causal=True) ** 2).sum()

    check_grads(loss, (q, k, k, jnp.zeros((1, 2, 4, 5))), 1, ["rev"], rtol=2e-2)
    lanes = [jnp.stack([x, 2 * x]) for x in (q, k, k)]
    got = weft.vmap(lambda *a: nn.dot_product_attention(*a, is_causal=True))(*lanes)
    wanted = nn.dot_product_attention(2 * q, 2 * k, 2 * k, is_causal=True)
    np.testing.assert_allclose(got[1], wanted, rtol=1e-5)


def test_attention_with_cudnn_is_refused():
    x = jnp.ones((1, 2, 2, 4))
    with pytest.raises(NotImplementedError, match="xla"):
        nn.dot_product_attention(x, x, x, implementation="cudnn")


DIMENSIONS = (((2,), (2,)), ((0,), (0,)))


def test_scaled_products_multiply_blocks_first():
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, (2, n, 6)).astype("f") for n in (3, 4))
    a_scales, b_scales = (2.0 ** rng.integers(-2, 3, (2, n, 2)).astype("f") for n in (3, 4))
    got = nn.scaled_matmul(a, b, a_scales, b_scales)
    wanted = np.einsum("bmk,bnk->bmn", a * a_scales.repeat(3, 2), b * b_scales.repeat(3, 2))
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("mode", "tolerance"), [("mxfp8", 0.1), ("nvfp4", 0.35)])
def test_rounded_products_are_near_and_exact_for_few_bits(mode, tolerance):
    rng = np.random.default_rng(2)
    x, y = (rng.normal(size=(2, 32, 64)).astype("f") for _ in range(2))
    configs = [nn.get_scaled_dot_general_config(mode)] * 3
    dot = lambda x, y: nn.scaled_dot_general(x, y, DIMENSIONS, configs=configs)
    exact = np.einsum("bmk,bnk->bmn", x, y)
    error = np.abs(np.asarray(dot(x, y)) - exact).mean() / np.abs(exact).mean()
    assert error < tolerance
    # Multiples of a half up to 6 stand in both formats, with the scale that 6 asks for.
    few = np.float32([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])[rng.integers(0, 8, (2, 32, 64))]
    few[..., ::16] = 6.0
    np.testing.assert_allclose(dot(few, few), np.einsum("bmk,bnk->bmn", few, few), rtol=1e-6)
    got = weft.grad(lambda x: (dot(x, y) * exact).sum())(x)
    wanted = np.einsum("bmn,bnk->bmk", exact, y)
    assert np.abs(np.asarray(got) - wanted).mean() / np.abs(wanted).mean() < tolerance


def test_rounded_products_refuse_what_has_no_blocks():
    configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    x = jnp.ones((2, 3, 30))
    with pytest.raises(ValueError, match="multiple of 32"):
        nn.scaled_dot_general(x, x, DIMENSIONS, configs=configs)
    np.testing.assert_array_equal(nn.scaled_dot_general(x, x, DIMENSIONS), np.full((2, 3, 3), 30))


def test_derivatives_at_corners_and_of_nan():
    x = jnp.array([-1.0, 0.0, 1.0, 3.0, 6.0, np.nan])
    both = weft.jit(lambda x: [weft.vmap(weft.grad(f))(x) for f in (nn.relu, nn.relu6)])(x)
    assert both[0].tolist() == [0, 0, 1, 1, 1, 0]
    assert both[1].tolist() == [0, 0, 1, 1, 0, 0]
    slopes = weft.vmap(weft.grad(nn.log1mexp))(jnp.array([1e-30, 0.3, 5.0, 30.0]))
    np.testing.assert_allclose(slopes, 1 / np.expm1([1e-30, 0.3, 5.0, 30.0]), rtol=1e-5, atol=0)


def test_one_hot_along_a_mapped_axis():
    f = weft.vmap(lambda i: nn.one_hot(i, 3, axis="i"), in_axes=None, axis_size=3, axis_name="i")
    assert f(jnp.array([0, 2])).tolist() == [[1, 0], [0, 0], [0, 1]]


@pytest.mark.skipif(not hasattr(weft.random, "orthogonal"), reason="needs random.orthogonal")
def test_orthogonal_initializers():
    key = weft.random.key(0)
    tall = np.asarray(nn.initializers.orthogonal(2.0)(key, (2, 3, 4))).reshape(6, 4)
    np.testing.assert_allclose(tall.T @ tall, 4 * np.eye(4), atol=1e-5)
    flat = np.asarray(nn.initializers.orthogonal(column_axis=0)(key, (5, 3)))
    np.testing.assert_allclose(flat.T @ flat, np.eye(3), atol=1e-5)
    delta = np.asarray(nn.initializers.delta_orthogonal()(key, (3, 4, 5)))
    np.testing.assert_allclose(delta[1] @ delta[1].T, np.eye(4), atol=1e-5)
    assert not delta[::2].any()
    with pytest.raises(ValueError, match="as many inputs"):
        nn.initializers.delta_orthogonal()(key, (3, 5, 4))
    assert isinstance(nn.initializers.zeros, nn.initializers.Initializer)


def test_corners_as_jax():
    """Values and classes of errors that jax gives."""
    nan, inf = np.nan, np.inf
    x, mask = jnp.arange(1.0, 4), jnp.array([[True, False, True], [True, True, False]])
    functions = {
        "logsumexp": lambda: nn.logsumexp(2.0, where=mask[0]),  # a mask wider than the array
        "logsumexp rows": lambda: nn.logsumexp(x, 0, where=mask),
        "softmax": lambda: nn.softmax(2.0, None, mask[0]),
        "softplus": lambda: weft.vmap(weft.grad(nn.softplus))(jnp.array([nan, -inf, inf, 0])),
        "log1mexp": lambda: weft.vmap(weft.grad(nn.log1mexp))(jnp.array([-inf, inf, 1.0])),
    }
    expected = {
        "logsumexp": 2.6931472,
        "logsumexp rows": [1.6931472, 2, 3],
        "softmax": [0.5, 0, 0.5],
        "softplus": [nan, 0, 1, 0.5],
        "log1mexp": [-1, 0, 0.5819767],
    }
    for name, got in weft.jit(lambda: {k: f() for k, f in functions.items()})().items():
        np.testing.assert_allclose(got, expected[name], rtol=1e-6, err_msg=name)
    assert nn.softmax(mask * 1.0, jnp.int32(1)).shape == (2, 3)  # an array names an axis
    with pytest.raises(ValueError, match="hashable"):
        nn.log_softmax(x, [0])
    with pytest.raises(ValueError, match="mask of booleans"):
        nn.standardize(x, where=x)
    with pytest.raises(AssertionError, match="even size"):
        nn.glu(x)
    q, k = jnp.ones((2, 4, 4, 3)), jnp.ones((2, 5, 2, 3))
    with pytest.raises(AssertionError, match="broadcasts to"):
        nn.dot_product_attention(q, k, k, jnp.ones((2, 2, 4, 5)))
    assert nn.dot_product_attention(q, k, k, query_seq_lengths=[1, 2]).shape == q.shape
    with pytest.raises(ZeroDivisionError):
        nn.initializers.he_normal()(weft.random.key(0), (0, 3))
    with pytest.raises(NotImplementedError):
        nn.initializers.orthogonal()(weft.random.key(0), (3, 3), "float16")
