"""Arithmetic under jit is that of its operations: XLA's algebraic simplifier would make
other arithmetic of it (src/emit/exact.h)."""

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.fixture(autouse=True)
def x64():
    with weft.enable_x64(True):
        yield


def same(got, wanted):
    """Equal, where XLA's kernels take subnormal results for zeros."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.dtype == wanted.dtype
    if got.dtype.kind != "c":
        tiny = ml_dtypes.finfo(got.dtype).tiny
        got, wanted = (np.where(abs(v) < tiny, v.dtype.type(0), v) for v in (got, wanted))
    np.testing.assert_array_equal(got, wanted)


# Functions of an array of 48 elements and a number: quotients whose divisor is a broadcast in some
# form, and the same in NumPy.
QUOTIENTS = {
    "number": (lambda x, s: x / s, lambda x, s: x / s),
    "constant": (lambda x, s: x / 41, lambda x, s: x / x.dtype.type(41)),
    "largest": (lambda x, s: x / x.max(), lambda x, s: x / x.max()),
    "constant by number": (lambda x, s: 7 / s + 0 * x, lambda x, s: x.dtype.type(7) / s + 0 * x),
    "range by number": (
        lambda x, s: wnp.arange(48).astype(x.dtype) / s,
        lambda x, s: np.arange(48).astype(x.dtype) / s,
    ),
    "rows": (
        lambda x, s: (x.reshape(6, 8) / x.reshape(6, 8).max(1, keepdims=True)).ravel(),
        lambda x, s: (x.reshape(6, 8) / x.reshape(6, 8).max(1, keepdims=True)).ravel(),
    ),
    "columns": (
        lambda x, s: (x.reshape(6, 8) / x.reshape(6, 8)[5]).ravel(),
        lambda x, s: (x.reshape(6, 8) / x.reshape(6, 8)[5]).ravel(),
    ),
    "computed": (lambda x, s: x / wnp.maximum(s, s * 2), lambda x, s: x / np.maximum(s, s * 2)),
    "root": (lambda x, s: x / wnp.sqrt(abs(x)), lambda x, s: x / np.sqrt(abs(x))),
    "twice": (lambda x, s: x / (x + s) / 3, lambda x, s: x / (x + s) / x.dtype.type(3)),
    "by quotient": (lambda x, s: s / (x / 3), lambda x, s: s / (x / x.dtype.type(3))),
    "nested": (
        lambda x, s: weft.jit(lambda a, b: a / b)(x, s),
        lambda x, s: x / s,
    ),
    "nested constant": (
        lambda x, s: weft.jit(lambda a, b: a / b)(x, wnp.asarray(41, x.dtype)),
        lambda x, s: x / x.dtype.type(41),
    ),
    "loop": (
        lambda x, s: lax.fori_loop(0, 3, lambda i, v: v / s, x),
        lambda x, s: x / s / s / s,
    ),
    "scan": (lambda x, s: lax.scan(lambda c, v: (c, v / c), s, x)[1], lambda x, s: x / s),
    "branch": (
        lambda x, s: lax.cond(s > 0, lambda v: v / s, lambda v: v, x),
        lambda x, s: x / s,
    ),
    "derivative": (
        lambda x, s: weft.vjp(lambda v: v / s, x)[1](x)[0],
        lambda x, s: x / s,
    ),
    "checkpoint": (
        lambda x, s: weft.vjp(weft.checkpoint(lambda v: v / s), x)[1](x)[0],
        lambda x, s: x / s,
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_quotients_by_what_is_broadcast(dtype):
    x = np.arange(1, 49).astype(dtype)
    x[5] = 41
    x[40] = ml_dtypes.finfo(dtype).max
    s = dtype(41)

    def all_of(x, s):
        return {name: f(x, s) for name, (f, _) in QUOTIENTS.items()}

    with np.errstate(all="ignore"):
        wanted = {name: g(x, s) for name, (_, g) in QUOTIENTS.items()}
    got = weft.jit(all_of)(x, s)
    for name, value in wanted.items():
        try:
            same(got[name], value)
        except AssertionError as error:
            raise AssertionError(f"{name} in {np.dtype(dtype)}: {error}") from None
    same(weft.device_put(x) / s, x / s)
    same(weft.device_put(x) / 41, x / s)
    same(weft.jit(weft.vmap(lambda v: v / s))(x), x / s)
    same(weft.jit(weft.vmap(lambda v, d: v / d, (None, 0)))(x, x)[:, 7], x[7] / x)


def test_quotients_of_complex_numbers():
    x = (np.arange(1, 9) + 2j).astype(np.complex64)
    s = np.complex64(41 + 3j)
    eager = np.stack([np.asarray(lax.div(v, s)) for v in weft.device_put(x)])
    same(weft.jit(lambda x, s: x / s)(x, s), eager)
    large = np.full(3, 2e38 + 0j, np.complex64)
    np.testing.assert_allclose(weft.jit(lambda x: x / x[0])(large), np.ones(3), rtol=1e-6)


def test_means_and_floors():
    k = np.arange(10000, dtype=np.float32)
    same(weft.jit(lambda k: wnp.floor(k / 41))(k), np.floor(k / np.float32(41)))
    same(wnp.floor_divide(wnp.asarray(k), 41), np.floor_divide(k, np.float32(41)))
    i = np.arange(10000)
    same(weft.jit(lambda i: i / 41)(i), i / 41)
    ones = np.ones((2, 41), np.float32)
    for mean in (
        wnp.mean,
        wnp.average,
        weft.jit(lambda x, axis: wnp.mean(x, axis), static_argnums=1),
    ):
        same(mean(ones, 1), np.ones(2, np.float32))
    same(wnp.full(3, np.float32(41)) / 41, np.ones(3, np.float32))
    same(weft.jit(lambda: wnp.full(3, np.float32(41)) / 41)(), np.ones(3, np.float32))


# What the simplifier joins, or looks through; it may see the two operations in several ways.
CHAINS = {
    "sum": lambda x, c: (x + 12582912.0) - 12582912.0,
    "sum in a call": lambda x, c: weft.jit(lambda v: v - 12582912.0)(x + 12582912.0),
    "sum of arguments": lambda x, c: weft.jit(lambda v, d: (v + d) - d)(x, wnp.float32(12582912.0)),
    "result of a call": lambda x, c: weft.jit(lambda v: v + 12582912.0)(x) - 12582912.0,
    "sum, then loop": lambda x, c: lax.fori_loop(0, 1, lambda i, v: v - 3e7, x + 3e7),
    "loop of sums": lambda x, c: lax.fori_loop(0, 2, lambda i, v: (v + 3e7) - 3e7, x),
    "moved sum": lambda x, c: ((x + 3e7).reshape(4, -1).T - 3e7).ravel(),
    "difference": lambda x, c: 3e7 - (3e7 - x),
    "product": lambda x, c: x * 1e30 * 1e30 * 1e-30 * 1e-30,
    "product by a number": lambda x, c: x * 1e30 * c,
    "log of exp": lambda x, c: wnp.log(wnp.exp(x)),
    "moved exp": lambda x, c: wnp.log(wnp.exp(x).reshape(4, -1).T),
    "log of power": lambda x, c: wnp.log(x**1.5),
    "log of root": lambda x, c: wnp.log(lax.rsqrt(x)),
    "root of square": lambda x, c: wnp.sqrt(x * x),
    "power of square": lambda x, c: (x * x) ** 0.5,
    "product of exps": lambda x, c: wnp.exp(x) * wnp.exp(-x),
    "power of exp": lambda x, c: wnp.exp(x) ** c,
    "by exp": lambda x, c: x / wnp.exp(x),
    "by power": lambda x, c: c / x**1.5,
    "by logistic": lambda x, c: x / weft.nn.sigmoid(x),
    "quotients": lambda x, c: x / (c / x) / (x + c),
}


def test_chains_give_what_their_operations_give():
    x = np.array(
        [0.1, 1, -1, 3.3, 88.5, -90, 1000, 2e19, 1e30, 3e38, 1e-30, 41, 0.3, 7, np.inf, np.nan],
        np.float32,
    )
    c = np.float32(1e9)
    got = weft.jit(lambda x, c: {name: f(x, c) for name, f in CHAINS.items()})(x, c)
    with weft.disable_jit():
        for name, f in CHAINS.items():
            wanted = np.asarray(f(weft.device_put(x), c))
            np.testing.assert_allclose(
                np.asarray(got[name]), wanted, rtol=3e-7, atol=0, err_msg=name
            )


def test_bfloat16_is_rounded_after_each_operation():
    x = (np.random.default_rng(0).standard_normal(64) + 2).astype(ml_dtypes.bfloat16)
    same(weft.jit(lambda x: x * x * x + x)(x), x * x * x + x)
    y = x.astype(np.float32) * np.float32(1.001)
    rounded = (y * y).astype(ml_dtypes.bfloat16).astype(np.float32)
    same(weft.jit(lambda y: (y * y).astype("bfloat16").astype("float32"))(y), rounded)


# ---- random chains


CONSTANTS = [1e30, 1e-30, 3.7, 12582912.0, -41.0, 0.1, 3e38, 1.0]
UNARY = {
    "neg": lambda m, v: -v,
    "abs": lambda m, v: m.abs(v),
    "sqrt": lambda m, v: m.sqrt(v),
    "floor": lambda m, v: m.floor(v),
    "exp": lambda m, v: m.exp(v),
    "log": lambda m, v: m.log(v),
}
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}
LIBM = {"exp", "log"}  # vectors and single numbers have functions of their own: some ulp apart


def random_chain(rng):
    """A list of (name, operand): operands are constants, "x" (the chain's argument), "s" (a number
    that is broadcast) or, as what stands on the left, the same with a minus before the name."""
    chain = []
    for _ in range(rng.integers(2, 6)):
        if rng.random() < 0.35:
            chain.append((str(rng.choice(list(UNARY))), None))
        else:
            operand = rng.choice(["x", "s", *map(str, CONSTANTS)], p=[0.1, 0.15, *[0.75 / 8] * 8])
            swap = "-" if rng.random() < 0.3 else ""
            chain.append((swap + str(rng.choice(list(BINARY))), str(operand)))
    return chain


def apply_chain(chain, x, s, between=lambda v: v):
    v = x
    for name, operand in chain:
        if operand is None:
            v = UNARY[name](wnp, v)
        else:
            other = {"x": x, "s": s}.get(operand)
            other = np.float32(operand) if other is None else other
            f = BINARY[name.removeprefix("-")]
            v = f(other, v) if name.startswith("-") else f(v, other)
        v = between(v)
    return v


def is_comparable(chain):
    """A product that is summed up may be rounded once with the sum (LLVM fuses the two). And what
    comes after a function of libm is some ulp apart, which only later products and quotients bear.
    """
    names = [name.removeprefix("-") for name, _ in chain]
    fused = any(a == "mul" and b in ("add", "sub", "neg") for a, b in pairwise(names))
    first = next((i for i, name in enumerate(names) if name in LIBM), len(names))
    return not fused and all(name in ("mul", "div", "neg", "abs") for name in names[first + 1 :])


@pytest.mark.parametrize("seed", range(3))
def test_random_chains_give_what_their_operations_give(seed):
    rng = np.random.default_rng(seed)
    limits = [0, -0.0, 1, -1, 41, 88, -90, 1000, np.inf, -np.inf, np.nan, 3e38]
    size = np.sign(rng.standard_normal(52)) * 10 ** rng.uniform(-30, 30, 52)
    size = np.concatenate([limits, size])
    x, s = size.astype(np.float32), np.float32(41)
    chains = [c for c in (random_chain(rng) for _ in range(120)) if is_comparable(c)][:50]
    got = weft.jit(lambda x, s: [apply_chain(c, x, s) for c in chains])(x, s)
    at_device, number = weft.device_put(x), weft.device_put(s)
    for chain, result in zip(chains, got, strict=True):
        wanted = np.asarray(apply_chain(chain, at_device, number))
        rtol = 5e-7 if any(name in LIBM for name, _ in chain) else 0
        result = np.asarray(result)
        np.testing.assert_allclose(result, wanted, rtol=rtol, atol=0, err_msg=str(chain))
        if not rtol:
            signs = np.isnan(wanted) | (np.signbit(result) == np.signbit(wanted))
            assert signs.all(), (chain, result[~signs], wanted[~signs])


# ---- the setting


def test_fast_arithmetic_is_asked_for():
    x = np.arange(42, dtype=np.float32)
    f = weft.jit(lambda x: x / x.max())
    exact = x / x.max()
    same(f(x), exact)
    text = f.lower(x).as_text()
    assert "stablehlo.clamp" in text
    try:
        weft.config.update("weft_fast_arithmetic", True)
        assert "stablehlo.clamp" not in f.lower(x).as_text()
        fast = np.asarray(f(x))
        assert not np.array_equal(fast, exact)
        np.testing.assert_allclose(fast, exact, rtol=1e-6)
    finally:
        weft.config.update("weft_fast_arithmetic", False)
    same(f(x), exact)
    assert f.lower(x).as_text() == text


def test_what_needs_no_guard_has_none():
    # A product of small matrices is a sum of products, of which more is seen.
    x = np.ones((16, 20), np.float32)
    plain = weft.jit(lambda x, y: wnp.tanh(x @ y.T + 1) * 2 / (x @ x.T) + x.sum())
    assert "clamp" not in plain.lower(x, x).as_text()
    whole = weft.jit(lambda n: (n + 1 - 1) * 2 // 3)
    assert "clamp" not in whole.lower(np.arange(3)).as_text()


# ---- integers that overflow


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, m: abs(x * x),
        lambda x, m: x * x < 0,
        lambda x, m: (x * x) // 2,
        lambda x, m: x**4 < 0,
        lambda x, m: m.square(x) >> 1,
        lambda x, m: (x * x).astype("float64") < 0,
        lambda x, m: m.maximum(x * x, 0),
        lambda x, m: m.sqrt(m.abs(x).astype("float64")) >= 0,
        lambda x, m: m.abs(x) < 0,
        lambda x, m: m.abs(x) // 2,
        lambda x, m: m.abs(m.abs(x) * m.abs(x)),
    ],
)
def test_squares_and_magnitudes_that_overflow(dtype, f):
    """XLA's simplifier takes squares and absolute values for numbers of at least 0."""
    least = np.iinfo(dtype).min
    bits = 8 * np.dtype(dtype).itemsize
    x = np.array([least, least + 1, 3, -7, 1 << (bits // 2), 3 << (bits // 2 - 1), -13], dtype)
    with weft.enable_x64(True), np.errstate(all="ignore"):
        expected = f(x, np)
        for got in (weft.jit(lambda x: f(x, wnp))(x), f(wnp.asarray(x), wnp)):
            np.testing.assert_array_equal(got, expected)


@weft.jit
def _kept(x, y):
    """Large enough to stay a function that is called."""
    z = x
    for k in range(40):
        z = (z ^ (z >> (k % 7))) + y * (k + 3)
    return x * y, z


SQUARES = {
    "arguments": lambda x: _kept(x, x)[0] | (_kept(x + 1, x + 1)[1] & 0),
    "einsum": lambda x: wnp.einsum("i,i->i", x, x),
    "dot": lambda x: wnp.einsum("ij,ij->i", x[:, None], x[:, None]),
    "prod": lambda x: wnp.prod(wnp.stack([x, x]), 0, dtype=x.dtype),
    "cumprod": lambda x: wnp.cumprod(wnp.stack([x, x]), 0)[1],
    "associative_scan": lambda x: lax.associative_scan(wnp.multiply, wnp.stack([x, x]))[1],
    "reduce": lambda x: lax.reduce(wnp.stack([x, x]), np.int32(1), lax.mul, (0,)),
    "scatter": lambda x: x.at[wnp.arange(4)].multiply(x),
    "loop": lambda x: lax.fori_loop(0, 1, lambda _, c: (c[0] * c[1], c[0]), (x, x))[0],
    "branch": lambda x: lax.cond(x[0] > 0, wnp.multiply, wnp.add, x, x),
    "vmap": weft.vmap(lambda x: x * x),
}


@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize("kernels", ["never", "always"])
def test_squares_that_only_xla_sees(name, kernels):
    x = np.array([46341, 70000, -50000, 3], np.int32)
    with np.errstate(over="ignore"):
        square = x * x
    negative, size = weft.jit(
        lambda x: (SQUARES[name](x) < 0, abs(SQUARES[name](x))), kernels=kernels
    )(x)
    np.testing.assert_array_equal(negative, square < 0)
    np.testing.assert_array_equal(size, abs(square))


# ---- reductions of many axes


def test_reductions_of_many_axes_stay_out_of_the_library():
    """XLA's library for reductions does not survive some of many axes."""

    def of(shape):
        f = weft.jit(lambda x, y: (x * y).sum(tuple(range(1, len(shape), 2))))
        x = np.ones(shape, np.float32)
        return f.lower(x, x).compile().as_text()

    assert "ynn_fusion" in of((64, 64))  # else the test says nothing
    assert "ynn_fusion" in of((8, 8, 8, 8, 8))  # as attention has, and survives
    assert "ynn_fusion" not in of((8, 8, 8, 8, 8, 8))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("y", [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
def test_powers_that_are_made_of_roots(dtype, y):
    with weft.enable_x64(True):
        largest = float(np.finfo(dtype).max)
        x = np.exp(np.random.default_rng(0).uniform(-1, 1, 2000) * np.log(largest) / 3.6)
        x = x.astype(dtype)
        true = np.power(x.astype(np.longdouble), y)
        made = np.asarray(weft.jit(lambda x: x**y)(x))
        assert (np.abs(made - true) <= 2.5 * np.spacing(true.astype(dtype))).all()
        odd = np.array([0, -0.0, np.inf, -np.inf, -1, np.nan], dtype)
        made = np.asarray(weft.jit(lambda x: x**y)(odd))
        limits = [0, 0, np.inf, np.inf] if y > 0 else [np.inf, np.inf, 0, 0]
        np.testing.assert_array_equal(made, [*limits, np.nan, np.nan])
        assert not np.signbit(made[:4]).any()  # IEEE 754, 9.2.1: pow(-0, y) is +0 for such y
        slopes = weft.jit(weft.vmap(weft.grad(lambda x: x**y)))(x)
        np.testing.assert_allclose(slopes, y * np.power(x.astype(np.longdouble), y - 1), 1e-6)


@pytest.mark.parametrize("reduce", ["sum", "max", "prod", "all"])
def test_arrays_of_hundreds_of_axes(reduce):
    """The time that XLA takes grows steeply with the number of axes that are reduced."""
    x = np.array([[1, 2, 3], [4, 5, 0]], bool if reduce == "all" else np.float32)
    wide = weft.lax.broadcast(x, (1,) * 200)
    for axes in (None, (0, 200), (1, 201), 201):
        kept = None if axes is None else tuple(a - 200 for a in np.atleast_1d(axes) if a >= 200)
        got = getattr(wide, reduce)(axis=axes)
        assert got.ndim == (0 if axes is None else 202 - np.size(axes))
        np.testing.assert_array_equal(got.ravel(), np.ravel(getattr(x, reduce)(axis=kept)))


def test_complex_extremes_and_general_reductions_of_hundreds_of_axes():
    x = np.array([[1, 2, 3], [4, 5, 0]], np.float32)
    wide = weft.lax.broadcast(x, (1,) * 200)
    turned = wide * (1 + 1j)
    assert wnp.max(turned) == 5 + 5j and wnp.min(turned) == 0
    np.testing.assert_array_equal(wnp.max(turned, (0, 201)).ravel(), [3 + 3j, 5 + 5j])

    def five_more(axes):
        return weft.lax.reduce(wide, np.float32(5), weft.lax.add, axes)

    assert five_more(tuple(range(202))) == 20
    np.testing.assert_array_equal(five_more((0, 200)).ravel(), [10, 12, 8])
    assert five_more((0,)).shape == (1,) * 199 + (2, 3)
    sums, products = weft.lax.reduce(
        (wide, wide),
        (np.float32(0), np.float32(1)),
        lambda a, b: (a[0] + b[0], a[1] * b[1]),
        tuple(range(1, 202)),
    )
    assert sums.shape == products.shape == (1,) and sums[0] == 15 and products[0] == 0
