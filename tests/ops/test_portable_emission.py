"""Programs for other compilers: StableHLO's ops alone, with the values that weft has itself.

Every row of the op table is emitted so, or refused by name. Values are compared where the program
is another than what XLA is given, as the reader has it.
"""

import re

import numpy as np
import pytest
from conftest import verify_stablehlo
from op_table import EPS, Row, all_rows, widen

import weft
from weft import compiler, numpy as wnp
from weft.runtime.mlir import parse_module

# There is no algorithm in terms of other ops.
REFUSED = ("eig", "geqp3", "hessenberg", "schur", "tridiagonal", "tridiagonal_solve")
OTHER = re.compile(r"custom_call|chlo\.|mhlo|sdy\.|jax\.|tf\.|sharding")
VERSION = "1.4.0"
# Errors in units of the dtype's rounding error: elementwise functions, and algorithms on matrices.
ULPS, ULPS_OF_MATRICES = 8, 80
# Their value depends on the platform.
BY_PLATFORM = ("platform_index",)

ROWS = all_rows()


@pytest.fixture(autouse=True)
def x64():
    with weft.enable_x64(True):
        yield


def graph_of(row: Row):
    """One graph with all cases of a row, and its arguments."""
    args, tree = weft.tree_util.tree_flatten([xs for _, xs in row.cases()])

    def all_cases(*args):
        return [row.call(*xs) for xs in tree.unflatten(list(args))]

    return weft.jit(all_cases, keep_unused=True).trace(*args).graph, args


def body(text):
    return text[text.index("func.func public") :]


def for_xla(graph):
    """The program that XLA is given where it has no functions on the side, or nothing."""
    try:
        return body(compiler.emit_stablehlo(graph, platform="tpu"))
    except NotImplementedError:
        return None


def assert_close(y, ref, ulps):
    if y.dtype.name not in EPS:
        np.testing.assert_array_equal(widen(y), widen(ref))
        return
    rtol = 2 * EPS[y.dtype.name] * ulps
    np.testing.assert_allclose(widen(y), widen(ref), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_rows_are_plain_or_refused(row):
    graph, args = graph_of(row)
    try:
        text = compiler.emit_stablehlo(graph, target="portable")
    except NotImplementedError as error:
        assert str(error).startswith(tuple(f"[{op}]" for op in REFUSED))
        return
    assert not OTHER.search(text)
    verify_stablehlo(text)
    if body(text) == for_xla(graph) or row.op in BY_PLATFORM:
        return
    of_matrices = row.op not in ("square", "top_k") and "while" in text
    got, want = compiler.read(text)(*args), graph(*args)
    for y, ref in zip(got, want, strict=True):
        assert_close(np.asarray(y), np.asarray(ref), ULPS_OF_MATRICES if of_matrices else ULPS)


def test_few_ops_are_refused():
    """What is refused is not more than what is known to be."""
    for op in ("cholesky", "lu", "qr", "eigh", "svd", "erf_inv", "lgamma", "top_k", "nextafter"):
        rows = [row for row in ROWS if row.op == op and not row.attrs.get("pivoting")]
        assert rows
        for row in rows:
            compiler.emit_stablehlo(graph_of(row)[0], target="portable")


def test_version_of_stablehlo():
    from jaxlib.mlir.dialects import stablehlo

    def uses(x, i):
        y = wnp.take_along_axis(wnp.tan(x), i, 1)
        return weft.lax.top_k(y, 2), weft.scipy.special.erf(x), weft.lax.cumsum(x), x @ x.T

    graph = weft.jit(uses).trace(np.ones((3, 3), np.float32), np.ones((3, 3), np.int32)).graph
    text = compiler.emit_stablehlo(graph, target="portable")
    assert stablehlo.serialize_portable_artifact(parse_module(text), VERSION)


def portable(f, *args):
    """The results of what a function is emitted as."""
    graph = compiler.optimize(weft.jit(f).trace(*args).graph)
    text = compiler.emit_stablehlo(graph, target="portable")
    assert not OTHER.search(text)
    return [np.asarray(y) for y in compiler.read(text)(*args)]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (9, 9), (24, 24), (2, 6, 6), (7, 12), (12, 7)])
def test_matrices_of_any_size(shape, dtype):
    rng = np.random.default_rng(3)
    a = rng.normal(size=shape).astype(dtype)
    if dtype == "complex128":
        a = a + 1j * rng.normal(size=shape)
    adjoint = np.conj(np.swapaxes(a, -1, -2))
    u, s, vh = portable(lambda a: wnp.linalg.svd(a, full_matrices=False), a)
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, a, atol=1e-12)
    np.testing.assert_allclose(s, np.linalg.svd(a)[1], atol=1e-12)
    q, r = portable(wnp.linalg.qr, a)
    np.testing.assert_allclose(q @ r, a, atol=1e-12)
    np.testing.assert_allclose(np.abs(r), np.abs(np.linalg.qr(a)[1]), atol=1e-12)
    if shape[-1] != shape[-2]:
        return
    w, v = portable(wnp.linalg.eigh, a + adjoint)
    np.testing.assert_allclose((v * w[..., None, :]) @ np.conj(np.swapaxes(v, -1, -2)), a + adjoint,
                               atol=1e-11)  # fmt: skip
    np.testing.assert_allclose(w, np.linalg.eigh(a + adjoint)[0], atol=1e-11)
    positive = a @ adjoint + np.eye(shape[-1])
    (factor,) = portable(wnp.linalg.cholesky, positive)
    np.testing.assert_allclose(factor, np.linalg.cholesky(positive), atol=1e-11)
    b = rng.normal(size=(*shape[:-1], 3)).astype(dtype)
    (x,) = portable(wnp.linalg.solve, positive, b)
    np.testing.assert_allclose(positive @ x, b, atol=1e-9)


def test_matrices_that_fail():
    bad = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert np.isnan(np.diag(portable(wnp.linalg.cholesky, bad)[0])).all()
    assert np.isnan(portable(wnp.linalg.eigh, np.full((5, 5), np.nan))[0]).all()


def test_equal_eigenvalues():
    """Vectors of equal ones are a basis all the same, also of complex matrices."""
    q = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)) * (1 + 2j))[0]
    a = (q * [1, 1, 1, 2, 2, 5]) @ q.conj().T
    w, v = portable(wnp.linalg.eigh, a)
    np.testing.assert_allclose(v.conj().T @ v, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(w, [1, 1, 1, 2, 2, 5], atol=1e-12)


def test_derivatives():
    a = np.random.default_rng(5).normal(size=(5, 5))

    def f(a):
        q, r = wnp.linalg.qr(a)
        w, _ = wnp.linalg.eigh(a @ a.T)
        return wnp.sum(q * r) + wnp.log(w).sum() + weft.scipy.special.erf(a).sum()

    np.testing.assert_allclose(portable(weft.grad(f), a)[0], weft.grad(f)(a), rtol=1e-9)


def test_edges_of_functions():
    x = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 1e-300, 1e300, np.inf, -np.inf, np.nan, 0.3, -7.5])
    y = np.roll(x, 3)
    names = ("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh")
    with np.errstate(all="ignore"):
        for name in names:
            (got,) = portable(getattr(wnp, name), x)
            np.testing.assert_allclose(got, getattr(np, name)(x), rtol=1e-15, err_msg=name)
        (got,) = portable(wnp.nextafter, x, y)
        np.testing.assert_array_equal(got, np.nextafter(x, y))
        assert (np.signbit(got) == np.signbit(np.nextafter(x, y)))[~np.isnan(got)].all()


def test_what_is_refused():
    x = np.ones(3)
    callback = weft.jit(
        lambda x: weft.pure_callback(np.sin, weft.ShapeDtypeStruct((3,), "float64"), x)
    )
    for target in ("portable", "iree"):
        with pytest.raises(NotImplementedError, match=r"\[pure_callback\]"):
            compiler.emit_stablehlo(callback.trace(x).graph, target=target)
        eig = weft.jit(wnp.linalg.eigvals).trace(np.ones((3, 3))).graph
        with pytest.raises(NotImplementedError, match=rf"\[eig\].*got {target}"):
            compiler.emit_stablehlo(eig, target=target)
    with pytest.raises(ValueError, match="expected target None, 'portable' or 'iree'; got 'tvm'"):
        compiler.emit_stablehlo(callback.trace(x).graph, target="tvm")


def test_what_iree_gets_wrong_is_avoided():
    """Its forms have the same values: powers of signed numbers, stable sorts, indices outside."""
    x = np.array([-2, -2, -2, 2, 0, -0.0, -8, -np.inf, -np.inf, np.nan, np.inf], np.float32)
    y = np.array([3, 2, 0.5, 0.5, 0, 3, -1, 3, 0.5, 0, -np.inf], np.float32)
    keys = np.array([1, 0, 1, 0, 1, 0, 0] * 9, np.int32)
    numbers, places = np.arange(5, dtype=np.float32), np.array([0, 4, 5, 9, -1, -9], np.int32)

    def uses(x, y, keys, numbers, places):
        found = [numbers.at[places].get(mode=mode) for mode in ("clip", "fill")]
        return wnp.power(x, y), wnp.argsort(keys), weft.lax.top_k(keys, 9), numbers[places], found

    args = (x, y, keys, numbers, places)
    graph = weft.jit(uses).trace(*args).graph
    text = compiler.emit_stablehlo(graph, target="iree")
    assert text != compiler.emit_stablehlo(graph, target="portable")
    for got, want in zip(compiler.read(text)(*args), graph(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_float64_is_warned_of_for_iree():
    wide, narrow = (weft.jit(wnp.sin).trace(np.ones(2, t)).graph for t in ("float64", "float32"))
    with pytest.warns(UserWarning, match="iree-input-demote-f64-to-f32=false"):
        compiler.emit_stablehlo(wide, target="iree")
    compiler.emit_stablehlo(narrow, target="iree")  # warnings are errors in tests
