"""Symbolic dimensions: shapes, programs exported with them, and what calls make of sizes."""

import numpy as np
import pytest

import weft
from weft import export, lax, nn, numpy as wnp, random
from weft.core import max_dim, min_dim
from weft.errors import InconclusiveDimensionOperation

SIZES = ({"b": 3, "n": 5, "k": 2}, {"b": 1, "n": 3, "k": 1}, {"b": 4, "n": 2, "k": 7})

# Name: shapes of the arguments, shape of the result, program. JAX gives these shapes.
PROGRAMS = {
    "reshape_m1": ("b, n", "(b*n,)", lambda x: x.reshape(-1)),
    "reshape_b_m1": ("b, n, 4", "(b,4*n)", lambda x: x.reshape(x.shape[0], -1)),
    "reshape_m1_2": ("b, n, 4", "(2*b,2,n)", lambda x: x.reshape(-1, 2, x.shape[1])),
    "reshape_split": ("b, 2*n", "(b,2,n)", lambda x: x.reshape(x.shape[0], 2, -1)),
    "bcast": ("b, n", "(2,b,n)", lambda x: wnp.broadcast_to(x, (2,) + x.shape)),
    "bcast2": ("b, 1", "(b,b)", lambda x: wnp.broadcast_to(x, (x.shape[0], x.shape[0]))),
    "add_col": ("b, n; b", "(b,n)", lambda x, y: x + y[:, None]),
    "concat0": ("b, n; k, n", "(k+b,n)", lambda x, y: wnp.concatenate([x, y], 0)),
    "concat1": (
        "b, n",
        "(b,2*n+1)",
        lambda x: wnp.concatenate([x, x, wnp.zeros((x.shape[0], 1))], 1),
    ),
    "stack": ("b, n", "(2,b,n)", lambda x: wnp.stack([x, x])),
    "tile": ("b, n", "(2*b,3*n)", lambda x: wnp.tile(x, (2, 3))),
    "repeat": ("b, n", "(3*b,n)", lambda x: wnp.repeat(x, 3, axis=0)),
    "split": ("2*b, n", "(b,n)", lambda x: wnp.split(x, 2, axis=0)[1]),
    "pad": ("b, n", "(b+3,n+3)", lambda x: wnp.pad(x, ((1, 2), (0, 3)), constant_values=5.0)),
    "pad_sym": ("b, n", "(2*b,n)", lambda x: wnp.pad(x, ((0, x.shape[0]), (0, 0)))),
    "laxpad": ("b, n", "(2*b+1,3*n-2)", lambda x: lax.pad(x, 0.0, ((1, 1, 1), (0, 0, 2)))),
    "flip": ("b, n", "(b,n)", lambda x: wnp.flip(x, 0)),
    "roll": ("b, n", "(b,n)", lambda x: wnp.roll(x, 1, axis=0)),
    "rot90": ("b, n", "(n,b)", lambda x: wnp.rot90(x)),
    "slice1": ("b, n", "(b-1,n)", lambda x: x[1:]),
    "slice_m1": ("b, n", "(b-1,n)", lambda x: x[:-1]),
    "slice_step": ("b, n", "(floordiv(b+1,2),n)", lambda x: x[::2]),
    "slice_rev": ("b, n", "(b,n)", lambda x: x[::-1]),
    "slice_first": ("b, n", "(n,)", lambda x: x[0]),
    "slice_last": ("b, n", "(n,)", lambda x: x[-1]),
    "slice_mid": ("b, n", "(-floordiv(b,2)+b,n)", lambda x: x[x.shape[0] // 2 :]),
    "slice_dyn": ("b, n", "(1,n)", lambda x: lax.dynamic_slice(x, (0, 0), (1, x.shape[1]))),
    "dus": (
        "b, n",
        "(b,n)",
        lambda x: lax.dynamic_update_slice(x, wnp.ones((1, x.shape[1])), (0, 0)),
    ),
    "at_add": ("b, n", "(b,n)", lambda x: x.at[wnp.array([0, 0])].add(1.0)),
    "take": ("b, n", "(b,3)", lambda x: wnp.take(x, wnp.array([0, 0, 1]), axis=1, mode="clip")),
    "take_along": (
        "b, n",
        "(b,n)",
        lambda x: wnp.take_along_axis(x, wnp.argsort(x, axis=1), axis=1),
    ),
    "gather_idx": ("b, n", "(b,n)", lambda x: x[wnp.arange(x.shape[0])]),
    "gather2": ("b, n", "(b,)", lambda x: x[wnp.arange(x.shape[0]), 0]),
    "idx_arr": ("b, n", "(b,2)", lambda x: x[:, wnp.array([0, 0])]),
    "sum": ("b, n", "()", lambda x: x.sum()),
    "mean": ("b, n", "(b,)", lambda x: x.mean(1)),
    "var": ("b, n", "(n,)", lambda x: x.var(0)),
    "max": ("b, n", "(n,)", lambda x: x.max(0)),
    "argmax": ("b, n", "(n,)", lambda x: wnp.argmax(x, 0)),
    "all": ("b, n", "(n,)", lambda x: wnp.all(x > 0, axis=0)),
    "cumsum": ("b, n", "(b,n)", lambda x: wnp.cumsum(x, 0)),
    "sort": ("b, n", "(b,n)", lambda x: wnp.sort(x, 0)),
    "argsort": ("b, n", "(b,n)", lambda x: wnp.argsort(x, 1)),
    "topk": ("b, 5", "(b,2)", lambda x: lax.top_k(x, 2)[0]),
    "logsumexp": ("b, n", "(b,)", lambda x: nn.logsumexp(x, axis=1)),
    "softmax": ("b, n", "(b,n)", lambda x: nn.softmax(x)),
    "gelu": ("b, n", "(b,n)", lambda x: nn.gelu(x)),
    "onehot": ("b", "(b,4)", lambda x: nn.one_hot(x.astype(int), 4)),
    "onehot_sym": ("b, n", "(b,n)", lambda x: nn.one_hot(wnp.argmax(x, 1), x.shape[1])),
    "matmul_b": ("b, n, k; b, k, 4", "(b,n,4)", lambda x, y: x @ y),
    "einsum": ("b, n, k; b, k, 4", "(b,n,4)", lambda x, y: wnp.einsum("bnk,bkd->bnd", x, y)),
    "tensordot": ("b, n, k; n, k", "(b,)", lambda x, y: wnp.tensordot(x, y, 2)),
    "trace": ("b, b", "()", lambda x: wnp.trace(x)),
    "diag": ("b, b", "(b,)", lambda x: wnp.diagonal(x)),
    "tril": ("b, b", "(b,b)", lambda x: wnp.tril(x)),
    "triu": ("b, n", "(b,n)", lambda x: wnp.triu(x, 1)),
    "eye": ("b, n", "(b,n)", lambda x: wnp.eye(x.shape[0]) @ x),
    "arange": ("b, n", "(b,)", lambda x: wnp.arange(x.shape[0])),
    "arange2": ("b", "(b,)", lambda x: wnp.arange(1, 2 * x.shape[0], 2)),
    "zeros_like": ("b, n", "(b,n)", lambda x: wnp.zeros_like(x)),
    "full": ("b, n", "(n,)", lambda x: wnp.full((x.shape[1],), x.shape[0])),
    "biota": ("b, n", "(b,n)", lambda x: lax.broadcasted_iota("int32", x.shape, 1)),
    "meshgrid": ("b; n", "(n,b)", lambda x, y: wnp.meshgrid(x, y)[0]),
    "dimval": ("b, n", "()", lambda x: wnp.array(x.shape[0])),
    "dimdiv": ("b, n", "(n,)", lambda x: x.sum(0) / x.shape[0]),
    "dimmul": ("b, n", "(b,n)", lambda x: x * x.shape[1] + x.size),
    "dimsub": ("b, n", "()", lambda x: wnp.float32(1.0) * (x.shape[0] - x.shape[1])),
    "where": ("b, n", "(b,n)", lambda x: wnp.where(x > 0, x, 0.0)),
    "conv1": (
        "b, 3, n",
        "(b,4,n)",
        lambda x: lax.conv_general_dilated(x, wnp.ones((4, 3, 1)), (1,), "VALID"),
    ),
    "conv2": (
        "b, n, n, 3",
        "(b,n,n,2)",
        lambda x: lax.conv_general_dilated(
            x, wnp.ones((1, 1, 3, 2)), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
    ),
    "conv3": (
        "b, 8, 8, 3",
        "(b,4,4,2)",
        lambda x: lax.conv_general_dilated(
            x, wnp.ones((3, 3, 3, 2)), (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
    ),
    "pool": (
        "b, 8, 8, 3",
        "(b,4,4,3)",
        lambda x: lax.reduce_window(x, -wnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    ),
    "pool_sym": (
        "b, n+2",
        "(b,n+1)",
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), "VALID"),
    ),
    "rfft": ("b, 8", "(b,5)", lambda x: wnp.abs(wnp.fft.rfft(x))),
    "vmap": ("b, n", "(b,)", lambda x: weft.vmap(lambda r: (r * r).sum())(x)),
    "vmapin1": (
        "b, n",
        "(b,n)",
        lambda x: weft.vmap(lambda r: r - r.mean(), in_axes=1, out_axes=1)(x),
    ),
    "grad": ("b, n", "(b,n)", lambda x: weft.grad(lambda y: (wnp.tanh(y) ** 2).mean())(x)),
    "grad_sl": ("b, n", "(b,n)", lambda x: weft.grad(lambda y: (y[1:] * y[:-1]).sum())(x)),
    "grad_mm": (
        "b, n; n, k",
        "(n,k)",
        lambda x, y: weft.grad(lambda y: (wnp.tanh(x @ y)).sum())(y),
    ),
    "grad_ga": (
        "b, n",
        "(b,n)",
        lambda x: weft.grad(lambda z: wnp.sin(z[:, wnp.array([0, 0])]).sum())(x),
    ),
    "grad_cat": (
        "b, n",
        "(b,n)",
        lambda x: weft.grad(lambda z: (wnp.concatenate([z, z * z]) ** 2).sum())(x),
    ),
    "grad_pad": ("b, n", "(b,n)", lambda x: weft.grad(lambda z: (wnp.pad(z, 1) ** 2).sum())(x)),
    "grad_conv": (
        "b, 8, 8, 3",
        "(b,8,8,3)",
        lambda x: weft.grad(
            lambda z: (
                lax.conv_general_dilated(
                    z,
                    wnp.ones((3, 3, 3, 2)),
                    (2, 2),
                    "SAME",
                    dimension_numbers=("NHWC", "HWIO", "NHWC"),
                )
                ** 2
            ).sum()
        )(x),
    ),
    "grad_cumsum": (
        "b, n",
        "(b,n)",
        lambda x: weft.grad(lambda z: (wnp.cumsum(z, 0) ** 2).sum())(x),
    ),
    "jvp": ("b, n", "(b,n)", lambda x: weft.jvp(wnp.sin, (x,), (x,))[1]),
    "scan": ("b, n", "(b,n)", lambda x: lax.scan(lambda c, r: (c + r.sum(), r * c), 0.0, x)[1]),
    "scan_grad": (
        "b, n",
        "(b,n)",
        lambda x: weft.grad(
            lambda z: lax.scan(lambda c, r: (wnp.tanh(c + r), c), wnp.zeros(z.shape[1]), z)[0].sum()
        )(x),
    ),
    "map": ("b, n", "(b,)", lambda x: lax.map(lambda r: r.sum(), x)),
    "fori": (
        "b, n",
        "(n,)",
        lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], wnp.zeros(x.shape[1])),
    ),
    "while": (
        "b, n",
        "(b,n)",
        lambda x: lax.while_loop(
            lambda s: s[0] < x.shape[0], lambda s: (s[0] + 1, s[1] * 0.5), (0, x)
        )[1],
    ),
    "cond": ("b, n", "(b,n)", lambda x: lax.cond(x.sum() > 0, lambda z: z, lambda z: -z, x)),
    "random": ("b, n", "(b,n)", lambda x: random.normal(random.key(0), x.shape) * 1.0),
    "jit": ("b, n", "(n,)", lambda x: weft.jit(lambda z: z.sum(0))(x)),
    "checkpoint": (
        "b, n",
        "(b,n)",
        lambda x: weft.grad(lambda z: weft.checkpoint(lambda w: wnp.sin(w).sum())(z))(x),
    ),
    "norm": ("b, n", "(b,)", lambda x: wnp.linalg.norm(x, axis=1)),
    "attn": (
        "b, n, 4",
        "(b,n,1,4)",
        lambda x: nn.dot_product_attention(x[:, :, None, :], x[:, :, None, :], x[:, :, None, :]),
    ),
    "segsum": (
        "b, n",
        "(2,n)",
        lambda x: weft.ops.segment_sum(x, wnp.zeros(x.shape[0], int), num_segments=2),
    ),
    "segsum_sym": (
        "b, n",
        "(b,n)",
        lambda x: weft.ops.segment_sum(x, wnp.zeros(x.shape[0], int), num_segments=x.shape[0]),
    ),
    "median": ("b, 5", "(b,)", lambda x: wnp.median(x, axis=1)),
    "maxdim": ("b, n", "(max(b,n),)", lambda x: wnp.ones(max_dim(x.shape[0], x.shape[1]))),
    "floordiv": ("b, n", "(floordiv(b,2)+1,)", lambda x: wnp.ones((x.shape[0] // 2 + 1,))),
    "mod": ("b, n", "(mod(b,3)+1,)", lambda x: wnp.ones((x.shape[0] % 3 + 1,))),
    "diff": ("b + 1, n", "(b,n)", lambda x: wnp.diff(x, axis=0)),
    "einsum3": ("b, n; n, k; k, 2", "(b,2)", lambda x, y, z: wnp.einsum("ab,bc,cd->ad", x, y, z)),
    "at_last": ("b, n", "(b,n)", lambda x: x.at[-1].set(0.0)),
    "repeat_sym": ("b, n", "(b^2,n)", lambda x: wnp.repeat(x, x.shape[0], axis=0)),
    "tril_sym": ("b, n", "(b,n)", lambda x: wnp.tril(x, x.shape[1] - 2)),
    "resize": (
        "b, n",
        "(2*b,n+1)",
        lambda x: weft.image.resize(x, (2 * x.shape[0], x.shape[1] + 1), "linear"),
    ),
    "cummax_vmap": ("b, n", "(b,n)", lambda x: weft.vmap(lax.cummax)(x)),
    "cumprod_grad": (
        "b, 5",
        "(b,5)",
        lambda x: weft.grad(lambda z: (wnp.cumprod(z, 1) ** 2).sum())(x),
    ),
    "topk_grad": ("b, 5", "(b,5)", lambda x: weft.grad(lambda z: lax.top_k(z, 2)[0].sum())(x)),
    "topk_sym": ("b + 2, 2", "(2,b+1)", lambda x: lax.top_k(x.T, x.shape[0] - 1)[0]),
    "buckets": (
        "b, n",
        "(2,n)",
        lambda x: weft.ops.segment_sum(
            x, wnp.zeros(x.shape[0], int), num_segments=2, bucket_size=x.shape[1]
        ),
    ),
    "rbg": ("b, n", "(b,n)", lambda x: random.normal(random.key(0, impl="rbg"), x.shape) + x),
    "draws": ("b, n", "(b,)", lambda x: random.categorical(random.key(0), x)),
    "windows": (
        "b, n",
        "(-floordiv(b,2)+b,n)",
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 1), (2, 1), "SAME"),
    ),
}


def specs(shapes, **options):
    scope = options.pop("scope", None) or export.SymbolicScope(**options)
    return [
        weft.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), "float32")
        for shape in shapes.split(";")
    ]


def exported(f, shapes, **options):
    return export.export(weft.jit(f))(*specs(shapes, **options))


def arrays(shapes, sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [
        wnp.asarray(rng.normal(size=eval(f"({shape},)", dict(sizes))).astype("float32"))
        for shape in shapes.split(";")
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    shapes, result, f = PROGRAMS[name]
    assert str(weft.eval_shape(f, *specs(shapes)).shape).replace(" ", "") == result
    made = exported(f, shapes)
    again = export.deserialize(made.serialize())
    for sizes in SIZES:
        xs = arrays(shapes, sizes)
        expected = weft.jit(f)(*xs)
        for e in (made, again):
            got = e.call(*xs)
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


ARITHMETIC = {
    "b+n*2+3-k": "2*n - k + b + 3",
    "b*b+n*b+2": "b*n + b^2 + 2",
    "b//2": "floordiv(b, 2)",
    "b%3": "mod(b, 3)",
    "(2*b+5)//2": "b + 2",
    "(3*b+4)%3": "1",
    "b*n//n": "b",
    "b-(b//2)*2": "- 2*floordiv(b, 2) + b",
    "-b": "- b",
    "b**2": "b^2",
    "divmod(b, 2)": "(floordiv(b, 2), mod(b, 2))",
    "max_dim(b, 3)": "max(b, 3)",
    "max_dim(b, 1)": "b",
    "max_dim(b, b+1)": "b + 1",
    "min_dim(b, b*n)": "b",
}


@pytest.mark.parametrize("text", ARITHMETIC)
def test_arithmetic(text):
    b, n, k = export.symbolic_shape("b, n, k")
    names = {"b": b, "n": n, "k": k, "max_dim": max_dim, "min_dim": min_dim}
    assert str(eval(text, names)) == ARITHMETIC[text]
    values = {"b": 7, "n": 4, "k": 2, "max_dim": max, "min_dim": min}
    if ARITHMETIC[text].isdigit():
        assert eval(text, dict(values)) == int(ARITHMETIC[text])


def test_comparisons_are_decided_by_bounds_and_constraints():
    b, n = export.symbolic_shape("b, n")
    assert b >= 1 and b > 0 and not b < 1 and b + 1 > b and b * n >= b
    assert b != n and b == n + b - n and b != 1
    assert b % 3 <= 2 and (b // 2) * 2 <= b and min_dim(b, n) <= n <= max_dim(b, n)
    for unknown in (lambda: b >= 2, lambda: b < n, lambda: bool(b - 1), lambda: int(b)):
        with pytest.raises(InconclusiveDimensionOperation):
            unknown()
    with pytest.raises(InconclusiveDimensionOperation, match='constraints=\\["n >= b"\\]'):
        _ = b <= n
    b, n = export.symbolic_shape("b, n", constraints=["b >= 8", "n >= b", "n <= 20"])
    assert b >= 8 and n >= 8 and b <= 20 and n - b >= 0
    a, c = export.symbolic_shape("a, c", constraints=["a == 2*c"])
    assert str(a) == "2*c" and a // 2 == c


def test_symbolic_shape_reads():
    assert export.symbolic_shape("(2, 3)") == (2, 3)
    assert str(export.symbolic_shape("+ 2, + a - b, -a + 5")) == "(2, - b + a, - a + 5)"
    scope = export.SymbolicScope()
    b, two = export.symbolic_shape("b, _", like=(9, 2), scope=scope)
    assert export.is_symbolic_dim(b) and two == 2 and b.scope is scope
    assert str(
        export.symbolic_shape("max(a, b), floordiv(a, 2), mod(a, 3), a^2, ...", like=range(6))
    )
    assert export.symbolic_shape("b", scope=scope)[0] == b
    assert export.symbolic_shape("b")[0] != b
    with pytest.raises(ValueError, match="mixing of symbolic scopes"):
        _ = b + export.symbolic_shape("b")[0]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a+", {}),
        ("2a", {}),
        ("b, _", {}),
        ("...", {}),
        ("3", {"like": (2,)}),
        ("b", {"constraints": ["b*2"]}),
        ("b, c", {"constraints": ["b + c == 3"]}),
        ("b", {"scope": export.SymbolicScope(), "constraints": ["b >= 2"]}),
    ],
)
def test_symbolic_shape_rejects(text, options):
    with pytest.raises(ValueError, match="."):
        export.symbolic_shape(text, **options)


def test_symbolic_args_specs():
    args = {"x": wnp.ones((2, 3)), "y": (wnp.ones(4, "int32"),)}
    made = export.symbolic_args_specs(args, {"x": "b, ...", "y": "2*b"}, constraints=["b >= 2"])
    assert str(made["x"].shape) == "(b, 3)" and str(made["y"][0].shape) == "(2*b,)"
    assert made["y"][0].dtype == "int32" and made["x"].shape[0] >= 2
    assert export.symbolic_args_specs(args, None)["x"].shape == (2, 3)


def test_calls_with_sizes_that_do_not_fit():
    e = exported(lambda x, y: x @ y, "b, 2*n; 2*n, 3", constraints_str=["b <= 4"])
    assert e.call(wnp.ones((2, 4)), wnp.ones((4, 3))).shape == (2, 3)
    for x, y, message in (
        ((2, 4), (6, 3), r"args\[1\].*expected \(2\*n, 3\); got \(6, 3\).*n = 2"),
        ((2, 5), (5, 3), r"args\[0\].*expected \(b, 2\*n\); got \(2, 5\)"),
        ((2, 4), (4, 2), r"args\[1\].*expected \(2\*n, 3\)"),
        ((5, 4), (4, 3), "constraint b <= 4.*b = 5"),
        ((0, 4), (4, 3), "at least 1.*b = 0"),
    ):
        with pytest.raises(ValueError, match=message):
            e.call(wnp.ones(x), wnp.ones(y))
    with pytest.raises(ValueError, match="Cannot solve"):
        exported(lambda x: x, "floordiv(b, 2)").call(wnp.ones(2))
    with pytest.raises(NotImplementedError, match="symbolic"):
        e.mlir_module()


def test_constraints_are_kept_in_the_bytes():
    e = exported(lambda x: x[:8], "b", constraints_str=["b >= 8"])
    again = export.deserialize(e.serialize(vjp_order=1))
    assert str(again) == str(e)
    with pytest.raises(ValueError, match="b >= 8"):
        again.call(wnp.ones(3))
    np.testing.assert_array_equal(again.vjp().call(wnp.ones(9), wnp.ones(8))[0], [1] * 8 + [0])


def test_derivatives_of_exported_functions():
    def f(x, y):
        return (wnp.tanh(x @ y)[1:] ** 2).sum()

    e = export.deserialize(exported(f, "b, n; n, k").serialize(vjp_order=2))
    for sizes in SIZES:
        xs = arrays("b, n; n, k", sizes)
        for got, want in zip(
            weft.grad(e.call, (0, 1))(*xs), weft.grad(f, (0, 1))(*xs), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_exported_functions_within_symbolic_ones():
    inner = exported(lambda x: wnp.concatenate([x, x]), "b")
    (spec,) = specs("c + 1")
    assert str(weft.eval_shape(inner.call, spec).shape) == "(2*c + 2,)"
    outer = export.export(weft.jit(lambda x: inner.call(x) * x.shape[0]))(spec)
    np.testing.assert_array_equal(outer.call(wnp.ones(3)), [3] * 6)
    narrow = exported(lambda x: x, "b", constraints_str=["b >= 8"])
    with pytest.raises(ValueError, match="b"):
        weft.eval_shape(narrow.call, spec)


def test_a_size_is_a_value_of_the_program():
    (spec,) = specs("b, n")
    out = weft.eval_shape(lambda x: (wnp.array(x.shape[0]), x.shape[1] / x, 2 * x.size + x), spec)
    assert [o.dtype for o in out] == ["int32", "float32", "float32"]
    assert "dim_as_value[dim=b*n" in str(weft.make_jaxpr(lambda x: x * x.size)(spec))
    (b, _) = spec.shape
    with pytest.raises(InconclusiveDimensionOperation, match="no value"):
        wnp.ones(2) * b


@pytest.mark.parametrize(
    "f",
    [
        weft.grad(lambda x: wnp.cumprod(x, 0).sum()),
        weft.grad(lambda x: x.prod()),
        weft.jacrev(wnp.sin),
        weft.grad(lambda x: abs(wnp.fft.rfft(x)).sum()),
    ],
)
def test_rules_that_compute_with_numbers_refuse(f):
    with pytest.raises(NotImplementedError, match="sizes that are numbers"):
        weft.eval_shape(f, *specs("b, b"))


@pytest.mark.parametrize(
    "f",
    [
        weft.grad(lambda x: (wnp.sort(x, 0) * wnp.arange(x.shape[0])[:, None]).sum()),
        weft.grad(lambda x: (lax.cumsum(x, 1) ** 3).sum()),
        weft.grad(lambda x: x.at[wnp.zeros(x.shape[0], int)].max(0.1).sum()),
        weft.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 1), "SAME").sum()),
        weft.vmap(lambda r: wnp.sort(r)[::-1]),
    ],
)
def test_rules_that_compute_with_sizes(f):
    e = exported(f, "b, 4")
    for sizes in SIZES:
        (x,) = arrays("b, 4", sizes)
        np.testing.assert_allclose(e.call(x), f(x), rtol=1e-4, atol=1e-5)


def spd(x):
    return x @ x.mT + 5 * wnp.eye(x.shape[-1])


MATRICES = {
    "cholesky": lambda x: wnp.linalg.cholesky(spd(x)),
    "eigh": lambda x: wnp.linalg.eigh(spd(x))[0],
    "eig": lambda x: wnp.sort(abs(wnp.linalg.eigvals(x)), -1),
    "lu": lax.linalg.lu,
    "qr": wnp.linalg.qr,
    "solve": lambda x: wnp.linalg.solve(spd(x), x),
    "svd": lambda x: wnp.linalg.svd(x, compute_uv=False),
    "vmap": weft.vmap(
        lambda x: weft.scipy.linalg.cho_solve((wnp.linalg.cholesky(spd(x)), True), x)
    ),
}


@pytest.mark.parametrize("shape", ["b, 5, 5", "b, n, n"])
@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name, shape):
    f = MATRICES[name]

    def derivative(x):
        return weft.grad(lambda x: sum(abs(y).sum() for y in weft.tree.leaves(f(x))))(x)

    both = lambda x: (f(x), () if name == "eig" else derivative(x))
    (x,) = arrays(shape, {"b": 3, "n": 4})
    got, want = exported(both, shape).call(x), weft.jit(both)(x)
    for a, b in zip(weft.tree.leaves(got), weft.tree.leaves(want), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


def test_matrices_that_are_not_square():
    for f in (wnp.linalg.qr, lambda x: lax.linalg.lu(x)[0], wnp.linalg.svd):
        for shape in ("b, 3, 5", "b, 5, 3"):
            (x,) = arrays(shape, {"b": 2})
            got, want = exported(f, shape).call(x), f(x)
            for a, b in zip(weft.tree.leaves(got), weft.tree.leaves(want), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_programs_are_lowered_for_numbers_only():
    (spec,) = specs("b, n")
    with pytest.raises(NotImplementedError, match=r"f32\[b,n\].*\n.*weft.export"):
        weft.jit(wnp.sin).lower(spec)
    with pytest.raises(ValueError, match="first axis"):
        weft.eval_shape(list, spec)
    with pytest.raises(ValueError, match="first axis"):
        weft.eval_shape(len, spec)


def transformer(x, weights):
    for w in weights:
        h = x - x.mean(-1, keepdims=True)
        q, k, v = (h @ w[name] for name in "qkv")
        q, k, v = (y.reshape(*y.shape[:2], 2, -1).swapaxes(1, 2) for y in (q, k, v))
        scores = wnp.einsum("bhid,bhjd->bhij", q, k) / wnp.sqrt(q.shape[-1])
        seen = wnp.arange(x.shape[1])[:, None] >= wnp.arange(x.shape[1])
        mixed = wnp.einsum("bhij,bhjd->bhid", nn.softmax(wnp.where(seen, scores, -1e9)), v)
        x = x + mixed.swapaxes(1, 2).reshape(x.shape) @ w["o"]
        x = x + nn.gelu(x @ w["up"]) @ w["down"]
    return x.mean(1)


def test_transformer_with_symbolic_batch_and_length():
    rng = np.random.default_rng(0)
    sizes = {**dict.fromkeys("qkvo", (8, 8)), "up": (8, 16), "down": (16, 8)}
    weights = [
        {name: (rng.normal(size=s) / 3).astype("float32") for name, s in sizes.items()}
        for _ in range(2)
    ]
    (spec,) = specs("b, length, 8")
    e = export.export(weft.jit(lambda x: transformer(x, weights)))(spec)
    e = export.deserialize(e.serialize())
    for batch, length in zip(
        (1, 2, 3, 4, 5, 1, 7, 2, 3, 6), (1, 3, 8, 2, 5, 9, 1, 7, 4, 6), strict=True
    ):
        x = rng.normal(size=(batch, length, 8)).astype("float32")
        np.testing.assert_allclose(e.call(x), transformer(x, weights), rtol=2e-4, atol=2e-5)
