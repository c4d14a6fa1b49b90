"""Programs of jax whose modules and jaxprs weft reads, and what jax gives for them.

`python tests/support/read_programs.py` lowers and runs them with jax, and keeps modules, jaxprs,
arguments, results and gradients in golden/modules_of_jax.xz. Gradients are those of the sum of
all float results, each weighted by numbers that are drawn.
"""

import json
import lzma
from pathlib import Path

import numpy as np

FILE = Path(__file__).parents[1] / "golden" / "modules_of_jax.xz"


def is_float(x):
    return np.issubdtype(x.dtype, np.floating)


def weights(results):
    rng = np.random.default_rng(1)
    return [rng.normal(size=y.shape).astype(y.dtype) for y in results]


def packed(x):
    x = np.asarray(x)
    return [x.dtype.name, list(x.shape), x.tobytes().hex()]


def unpacked(kept):
    dtype, shape, data = kept
    return np.frombuffer(bytes.fromhex(data), dtype).reshape(shape)


def kept_programs():
    """By name: module (pretty), generic (the same with locations), jaxpr, its consts, args,
    results, and grads or None."""
    programs = json.loads(lzma.decompress(FILE.read_bytes()))
    for program in programs.values():
        for part in ("consts", "args", "results", "grads"):
            if program[part] is not None:
                program[part] = [unpacked(x) for x in program[part]]
    return programs


def programs(jax):
    """By name: a function and its arguments. Those of names that begin with V have no gradients."""
    jnp, lax, nn = jax.numpy, jax.lax, jax.nn
    r = np.random.default_rng(0)

    def f(*shape):
        return r.normal(size=shape).astype(np.float32)

    found = {}

    def add(name, fn, *args):
        found[name] = (fn, args)

    x43 = f(4, 3)
    x44 = f(4, 4)
    spd = x44 @ x44.T + 4 * np.eye(4, dtype=np.float32)
    add("add", lambda x, y: x + y * 2 - x / (2 + y * y), x43, f(4, 3))
    add(
        "unary",
        lambda x: (
            jnp.sin(x) * jnp.cos(x)
            + jnp.exp(-x * x)
            + jnp.tanh(x)
            + jnp.log1p(x * x)
            + jnp.expm1(x)
            + nn.sigmoid(x)
            + jnp.sqrt(1 + x * x)
            + lax.rsqrt(1 + x * x)
            + jnp.cbrt(x + 5)
            + jnp.abs(x)
        ),
        x43,
    )
    add(
        "special",
        lambda x: (
            jax.scipy.special.erf(x)
            + lax.lgamma(1 + x * x)
            + lax.digamma(1 + x * x)
            + jax.scipy.special.erfc(x)
            + lax.erf_inv(jnp.tanh(x) * 0.9)
        ),
        x43,
    )
    add(
        "hyper",
        lambda x: (
            jnp.arcsinh(x)
            + jnp.arctan(x)
            + jnp.sinh(x)
            + jnp.cosh(x)
            + jnp.arctanh(jnp.tanh(x) * 0.5)
            + jnp.arccosh(2 + x * x)
            + jnp.arcsin(jnp.tanh(x) * 0.5)
            + jnp.tan(x * 0.3)
            + jnp.arctan2(x, 2.0 + x * x)
        ),
        x43,
    )
    add("pow", lambda x, y: (1 + x * x) ** y + x**3 + 2.0**x, x43, f(4, 3))
    add(
        "minmax",
        lambda x, y: (
            jnp.maximum(x, y)
            + jnp.minimum(x, 0.5)
            + jnp.clip(y, -0.5, 0.5)
            + jnp.where(x > y, x, 2 * y)
        ),
        x43,
        f(4, 3),
    )
    add(
        "mlp",
        lambda w1, b1, w2, x: nn.log_softmax(jnp.tanh(x @ w1 + b1) @ w2),
        f(3, 8),
        f(8),
        f(8, 5),
        x43,
    )
    add("softmax", lambda x: nn.softmax(x, axis=-1), x43)
    add(
        "gelu",
        lambda x: (
            nn.gelu(x)
            + nn.gelu(x, approximate=False)
            + nn.silu(x)
            + nn.softplus(x)
            + nn.elu(x)
            + nn.relu(x)
        ),
        x43,
    )
    add(
        "layernorm",
        lambda x, g: (
            (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * g
        ),
        x43,
        f(3),
    )

    def attn(q, k, v):
        s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 2.0
        m = jnp.tril(jnp.ones((5, 5), bool))
        return jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(jnp.where(m, s, -1e9), -1), v)

    add("attention", attn, f(2, 2, 5, 4), f(2, 2, 5, 4), f(2, 2, 5, 4))
    add(
        "conv",
        lambda x, w: lax.conv_general_dilated(x, w, (2, 1), "SAME", rhs_dilation=(1, 2)),
        f(2, 3, 8, 8),
        f(4, 3, 3, 3),
    )
    add(
        "conv_nhwc",
        lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=2
        ),
        f(2, 6, 6, 4),
        f(3, 3, 2, 6),
    )
    add(
        "conv_t",
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        f(1, 4, 4, 2),
        f(3, 3, 2, 3),
    )
    add(
        "maxpool",
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        f(2, 4, 4, 3),
    )
    add(
        "avgpool",
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME"),
        f(2, 4, 4, 3),
    )
    add(
        "dots",
        lambda a, b: lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,)))),
        f(2, 3, 4),
        f(2, 4, 5),
    )
    add("dot_hi", lambda a, b: jnp.dot(a, b, precision="highest"), x43, f(3, 2))
    add("einsum", lambda a, b, c: jnp.einsum("ij,jk,kl->il", a, b, c), x43, f(3, 5), f(5, 2))
    add("outer", lambda a, b: jnp.outer(a, b) + jnp.kron(a[:4], b[:2]).sum(), f(5), f(6))
    add(
        "reduce",
        lambda x: (
            x.sum(0)
            + x.prod(0)
            + x.max(0)
            + x.min(0)
            + x.mean(0)
            + x.std(0)
            + jnp.linalg.norm(x, axis=0)
        ),
        x43,
    )
    add("logsumexp", lambda x: jax.scipy.special.logsumexp(x, axis=1), x43)
    add(
        "cumsum",
        lambda x: jnp.cumsum(x, 0) + jnp.cumprod(x, 1) + lax.cummax(x, 0) + lax.cumlogsumexp(x, 1),
        x43,
    )
    add("sort", lambda x: jnp.sort(x, 0) * jnp.arange(12.0).reshape(4, 3), x43)
    add("argsort", lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1) * jnp.arange(3.0), x43)
    add("sort2", lambda x, y: lax.sort((x, y), num_keys=1), f(6), f(6))
    add("topk", lambda x: lax.top_k(x, 2)[0], x43)
    add("argmax", lambda x: x[jnp.arange(4), jnp.argmax(x, 1)] + x[jnp.argmin(x, 0)[0]][0], x43)
    add("gather", lambda x: x[np.array([0, 2, 2])] + x[:3, [1]], x43)
    add(
        "gather_i",
        lambda x, i: x[i] * 2 + jnp.take(x, i, axis=0, mode="clip"),
        x43,
        np.array([1, -1, 3], np.int32),
    )
    add(
        "scatter",
        lambda x, u: x.at[np.array([0, 2, 2])].add(u).at[1].set(u[0]).at[3].mul(2.0),
        x43,
        f(3, 3),
    )
    add(
        "scatter_mm",
        lambda x, u: x.at[np.array([0, 2])].max(u[:2]).at[np.array([1, 3])].min(u[1:]),
        x43,
        f(3, 3),
    )
    add("segment", lambda x: jax.ops.segment_sum(x, np.array([0, 1, 0, 2]), 3), x43)
    add(
        "pad",
        lambda x: jnp.pad(x, ((1, 2), (0, 1))) + lax.pad(x, 0.0, ((2, 1, 0), (-1, 2, 0)))[:, :4],
        x43,
    )
    add("concat", lambda x, y: jnp.concatenate([x, y, x], 0) + jnp.stack([x[0]] * 12), x43, f(4, 3))
    add(
        "shape",
        lambda x: (
            jnp.transpose(x).reshape(2, 6)[:, ::-1].ravel()[::2]
            + jnp.tile(x, 2)[0, :6]
            + jnp.roll(x, 1, 0).ravel()[:6]
        ),
        x43,
    )
    add(
        "dynslice",
        lambda x, i: (
            lax.dynamic_slice(x, (i, 0), (2, 3))
            + lax.dynamic_update_slice(x, x[:1] * 2, (i, i))[:2]
        ),
        x43,
        np.int32(1),
    )

    def scan(x, w):
        def b(c, t):
            c = jnp.tanh(c @ w + t)
            return c, c * 2

        return lax.scan(b, x[0], x)

    add("scan", scan, f(5, 3), f(3, 3))
    add(
        "scan_rev",
        lambda x: lax.scan(lambda c, t: (c * 0.9 + t, c * t), x[0], x, reverse=True),
        f(5, 3),
    )
    add(
        "scan_none",
        lambda x: lax.scan(lambda c, _: (jnp.sin(c) * 1.1, None), x, None, length=7)[0],
        x43,
    )
    add("fori", lambda x: lax.fori_loop(0, 5, lambda i, c: c * 1.1 + jnp.sin(c) * i, x), x43)
    add(
        "fori_idx",
        lambda x: lax.fori_loop(1, 4, lambda i, c: c.at[i].set(c[i - 1] * 2 + c[i]), x),
        x43,
    )
    add(
        "scan_nest",
        lambda x: lax.scan(
            lambda c, t: (lax.scan(lambda d, u: (d * u, d + u), c, x)[0] + t, c), x[0], x
        ),
        x43,
    )
    add("map", lambda x: lax.map(lambda t: jnp.sin(t) * t.sum(), x), x43)
    add("assoc", lambda x: lax.associative_scan(jnp.multiply, x), f(7, 2))
    add(
        "while",
        lambda x: lax.while_loop(
            lambda c: c[1] < 100.0, lambda c: (c[0] * 1.1, c[1] * 2 + 1), (x, jnp.float32(1))
        )[0],
        x43,
    )
    add(
        "cond",
        lambda x, p: lax.cond(p > 0, lambda a: jnp.sin(a), lambda a: a * a, x),
        x43,
        np.int32(1),
    )
    add(
        "switch",
        lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, lambda a: a * 2], x),
        x43,
        np.int32(2),
    )
    add(
        "fft",
        lambda x: jnp.abs(jnp.fft.fft(x)) + jnp.fft.irfft(jnp.fft.rfft(x, axis=0), n=4, axis=0),
        x43,
    )
    add("fft2", lambda x: jnp.real(jnp.fft.ifft2(jnp.fft.fft2(x) * 2j)), x44)
    add(
        "complex",
        lambda x, y: (
            jnp.abs(jnp.exp(1j * x) * (y + 1j * x))
            + jnp.real(jnp.sqrt(x + 2j * y) * jnp.conj(lax.complex(x, y)))
        ),
        x43,
        f(4, 3),
    )
    add("cholesky", lambda a: jnp.linalg.cholesky(a), spd)
    add("solve", lambda a, b: jnp.linalg.solve(a, b), spd, x43)
    add("inv_det", lambda a: jnp.linalg.inv(a) + jnp.linalg.det(a) + jnp.linalg.slogdet(a)[1], spd)
    add("tri", lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True, trans=1), spd, x43)
    add("qr", lambda a: jnp.linalg.qr(a), x43)
    add("qr_wide", lambda a: jnp.linalg.qr(a.T), x43)
    add("eigh", lambda a: jnp.linalg.eigvalsh(a), spd)
    add("eigh_v", lambda a: jnp.abs(jnp.linalg.eigh(a)[1]), spd)
    add("svd", lambda a: jnp.linalg.svd(a, full_matrices=False)[1], x43)
    add("pinv", lambda a: jnp.linalg.pinv(a), x43)
    add("expm", lambda a: jax.scipy.linalg.expm(a * 0.1), x44)
    add("remat", lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x), x43)
    add("vmap", jax.vmap(lambda x: jnp.dot(x, x) * x), x43)
    add("grad", jax.grad(lambda x: (jnp.sin(x) ** 2).sum()), x43)
    add("hess", jax.hessian(lambda x: (jnp.sin(x) ** 2 * x.sum()).sum()), f(3))
    add("stop", lambda x: lax.stop_gradient(x) * x + lax.optimization_barrier(x), x43)
    add(
        "cast",
        lambda x: (
            (x.astype(jnp.bfloat16) * 2).astype(jnp.float32)
            + x.astype(jnp.float16).astype(jnp.float32)
        ),
        x43,
    )
    add(
        "rnn",
        lambda x, w, u: lax.scan(
            lambda c, t: ((nn.sigmoid(t @ u) * c + jnp.tanh(c @ w)),) * 2, jnp.zeros(3), x
        )[1].sum(0),
        f(6, 3),
        f(3, 3),
        f(3, 3),
    )
    add("interp", lambda x: jnp.interp(x, jnp.arange(5.0), jnp.arange(5.0) ** 2), np.abs(x43))
    add(
        "ode", lambda x: lax.fori_loop(0, 10, lambda i, y: y + 0.1 * (jnp.cos(y) - 0.1 * y), x), x43
    )
    add("conv1d", lambda x, w: jnp.convolve(x, w), f(8), f(3))
    add("bn", lambda x, g, b: nn.standardize(x, axis=0) * g + b, x43, f(3), f(3))
    add(
        "dropout",
        lambda x: jnp.where(jax.random.bernoulli(jax.random.key(3), 0.5, x.shape), x / 0.5, 0.0),
        x43,
    )
    add(
        "random",
        lambda x: (
            x * jax.random.normal(jax.random.key(1), x.shape)
            + jax.random.uniform(jax.random.key(2), x.shape)
        ),
        x43,
    )
    add(
        "reduce_multi",
        lambda x, y: lax.reduce(
            (x, y), (np.float32(0), np.float32(1)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)
        ),
        x43,
        f(4, 3),
    )
    add(
        "logical",
        lambda x: (
            jnp.where((x > 0) & ~(x > 1) | (x < -1), x, -x).sum(1)
            * jnp.any(x > 0, 1)
            * jnp.all(x > -5, 1)
        ),
        x43,
    )
    # values only
    add(
        "V_int",
        lambda x, y: (
            x // y,
            x % y,
            x << 2,
            x >> 1,
            x ^ y,
            ~x,
            lax.population_count(x),
            lax.clz(x),
            x.astype(jnp.int8),
            jnp.sign(x),
        ),
        np.arange(-5, 7, dtype=np.int32),
        np.full(12, 3, np.int32),
    )
    add(
        "V_uint",
        lambda x: (x.sum(), x.max(), x * x, x.astype(jnp.float32), x.astype(jnp.int64)),
        np.arange(9, dtype=np.uint32),
    )
    add(
        "V_cmp",
        lambda x, y: (
            x == y,
            x != y,
            x < y,
            x <= y,
            x > y,
            x >= y,
            jnp.isnan(x),
            jnp.isinf(x),
            jnp.isfinite(x),
        ),
        x43,
        f(4, 3),
    )
    add(
        "V_bits",
        lambda k: jax.random.bits(jax.random.wrap_key_data(k), (5,)),
        np.array([1, 2], np.uint32),
    )
    add("V_rbg", lambda k: lax.rng_bit_generator(k, (4,))[1], np.array([1, 2, 3, 4], np.uint32))
    add(
        "V_perm",
        lambda k: jax.random.permutation(jax.random.wrap_key_data(k), 10),
        np.array([1, 2], np.uint32),
    )
    add("V_unique", lambda x: jnp.unique(x, size=4), np.array([3, 1, 3, 2, 1], np.int32))
    add(
        "V_round",
        lambda x: (
            jnp.round(x * 3),
            jnp.floor(x),
            jnp.ceil(x),
            jnp.trunc(x),
            lax.round(x * 3, lax.RoundingMethod.AWAY_FROM_ZERO),
            lax.nextafter(x, x + 1),
            lax.reduce_precision(x, 5, 7),
        ),
        x43,
    )
    add("V_search", lambda x, v: jnp.searchsorted(x, v), np.sort(f(9)), f(4))
    add(
        "V_bool",
        lambda x: (jnp.cumsum(x), x.sum(), ~x, x & x[::-1], jnp.nonzero(x, size=3)[0]),
        np.array([True, False, True, True]),
    )
    add(
        "V_sortd",
        lambda x: (lax.sort(x), jnp.sort(x, descending=True), jnp.argsort(-x)),
        np.array([2.0, -0.0, 0.0, np.nan, -np.inf, 1.0], np.float32),
    )
    add("V_bitcast", lambda x: lax.bitcast_convert_type(x, jnp.int32), x43)
    add("V_csort", lambda x: jnp.sort(x), (f(6) + 1j * f(6)))
    add(
        "V_cwhile",
        lambda n: lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 2, c[1] * 3), (np.int32(0), np.int32(1))
        ),
        np.int32(7),
    )
    add("V_hist", lambda x: jnp.histogram(x, bins=4, range=(-2.0, 2.0))[0], x43)
    add("V_eig", lambda x: jnp.linalg.eigvals(x), x44)
    return found


def lowered(jax, fn, args):
    stage = jax.jit(fn).lower(*args)
    module = stage.compiler_ir("stablehlo").operation
    results = [np.asarray(y) for y in jax.tree.leaves(jax.jit(fn)(*args))]
    floats = [i for i, x in enumerate(args) if np.asarray(x).dtype == np.float32]
    by = weights(results)

    def loss(*xs):
        all_args = list(args)
        for i, x in zip(floats, xs, strict=True):
            all_args[i] = x
        pairs = zip(jax.tree.leaves(fn(*all_args)), by, strict=True)
        return sum((jax.numpy.sum(y * c) for y, c in pairs if is_float(c)), np.float32(0))

    def grads():
        return jax.jit(jax.grad(loss, tuple(range(len(floats)))))(*[args[i] for i in floats])

    return stage.as_text(), module, results, grads


def keep(jax):
    kept = {}
    # What stop_gradient stops is not in a module, and a while loop of unknown length has none.
    without = ("stop", "while")
    for name, (fn, args) in programs(jax).items():
        text, module, results, grads = lowered(jax, fn, args)
        has_grads = not name.startswith("V") and name not in without
        jaxpr = jax.make_jaxpr(fn)(*args)
        kept[name] = {
            "module": text,
            "jaxpr": str(jaxpr),
            "consts": [packed(x) for x in jaxpr.consts],
            "generic": module.get_asm(print_generic_op_form=True, enable_debug_info=True),
            "args": [packed(x) for x in args],
            "results": [packed(y) for y in results],
            "grads": [packed(g) for g in grads()] if has_grads else None,
        }
    FILE.write_bytes(lzma.compress(json.dumps(kept).encode(), preset=9))


if __name__ == "__main__":
    import jax

    keep(jax)
