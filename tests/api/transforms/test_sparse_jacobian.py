"""sparse_jacobian and sparse_hessian against dense derivatives: patterns, colourings, values."""

import numpy as np
import pytest
import scipy.sparse

import weft
import weft.numpy as wnp
from weft import lax
from weft._sparsity import pattern as patterns
from weft._sparsity.colouring import column_colours, star_colours
from weft.experimental.sparse import BCOO

N = 6
X = np.linspace(0.5, 1.5, N).astype("float32")
INDEX = wnp.array([0, 2, 2, 5])
STENCIL = wnp.asarray(np.eye(N, k=1, dtype="f") - np.eye(N, dtype="f"))


@weft.custom_jvp
def straight(x):
    return wnp.round(x)


straight.defjvp(lambda p, t: (straight(*p), t[0]))


@weft.custom_vjp
def backwards(x):
    return wnp.sin(x)


backwards.defvjp(lambda x: (backwards(x), x), lambda x, ct: (ct * x,))


def sweep(x):
    return lax.fori_loop(0, N - 1, lambda i, c: c.at[i].set(c[i + 1] * x[i]), x)


def branch(x):
    return lax.cond(x[0] > 0, lambda x: x[::-1], lambda x: x * x, x)


# Functions with the number of places of their Jacobian's pattern.
JACOBIANS = {
    "neighbours": (lambda x: x[1:] * x[:-1], 10),
    "gather": (lambda x: wnp.sin(x)[INDEX] * x[1:5], 7),
    "computed index": (lambda x: x[wnp.argsort(x)[:2]], 12),
    "constant matrix": (lambda x: STENCIL @ wnp.sin(x) + x, 11),
    "from the left": (lambda x: x.reshape(2, 3) @ STENCIL[:3, :4], 12),
    "sweep": (sweep, 11),
    "scan": (lambda x: lax.scan(lambda c, y: (c * y, c + y), wnp.float32(1), x)[1], 21),
    "reverse scan": (lambda x: lax.scan(lambda c, y: (y, c * y), x[0], x, reverse=True)[1], 12),
    "while": (
        lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1],
        6,
    ),
    "branch": (branch, 12),
    "select": (lambda x: wnp.where(x > 1, x, x[::-1]), 12),
    "known select": (lambda x: wnp.where(wnp.arange(N) > 2, x, x[::-1]), 6),
    "sums": (lambda x: (x.reshape(2, 3) ** 2).sum(1), 6),
    "largest": (lambda x: x.reshape(2, 3).max(1), 6),
    "running sum": (lambda x: wnp.cumsum(x)[:2], 12),
    "sorted": (lambda x: wnp.sort(x.reshape(2, 3), 1).reshape(-1), 36),
    "padded": (lambda x: wnp.pad(x, (1, 2)) * 2, 6),
    "joined": (lambda x: wnp.concatenate([x[:2], wnp.ones(2), x[:1] * x[3:]]), 2 + 6),
    "scattered": (lambda x: wnp.zeros(4).at[INDEX % 3].add(x[:4]), 4),
    "overwritten": (lambda x: x.at[wnp.array([0, 1])].set(x[4:] ** 2), 6),
    "rounded": (lambda x: wnp.floor(x) + x[0], 6),
    "stopped": (lambda x: lax.stop_gradient(x[::-1]) * x, 6),
    "custom jvp": (straight, 6),
    "custom vjp": (backwards, 6),
    "called": (lambda x: weft.jit(lambda x: weft.checkpoint(wnp.sin)(x) * x)(x), 6),
    "dense": (lambda x: wnp.linalg.norm(x) * x, 36),
    "of matrices": (lambda x: wnp.linalg.inv(x[:4].reshape(2, 2) + 2 * wnp.eye(2)), 16),
    "nothing": (lambda x: wnp.ones(3), 0),
}


@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobian(name):
    f, places = JACOBIANS[name]
    found = weft.sparse_jacobian(f)(X)
    dense = weft.jit((weft.jacrev if f is backwards else weft.jacfwd)(f))(X)
    assert found.shape == dense.shape
    assert found.dtype == dense.dtype
    assert found.nse == places
    assert found.indices_sorted
    assert found.unique_indices
    np.testing.assert_allclose(found.todense(), dense, rtol=1e-5, atol=1e-6)


HESSIANS = {
    "neighbours": (lambda x: (wnp.sin(x[1:]) * x[:-1] ** 2).sum(), 16),
    "diagonal": (lambda x: (x**3).sum(), 6),
    "arrow": (lambda x: (x[0] * wnp.exp(x[1:])).sum(), 15),
    "linear": (lambda x: (x * wnp.arange(6.0)).sum(), 0),
    "dense": (lambda x: x.sum() ** 3, 36),
    "blocks": (lambda x: wnp.prod(x.reshape(2, 3), 1).sum(), None),
    "loop": (lambda x: sweep(x).sum(), None),
}


@pytest.mark.parametrize("name", HESSIANS)
def test_hessian(name):
    f, places = HESSIANS[name]
    found = weft.sparse_hessian(f)(X)
    assert places is None or found.nse == places
    np.testing.assert_allclose(found.todense(), weft.jit(weft.hessian(f))(X), rtol=1e-4, atol=1e-5)


def random_function(seed):
    """A random program of operations that move, mix and transform elements."""
    rng = np.random.default_rng(seed)
    steps = [
        lambda x, i: x + x[i % len(x)] * wnp.roll(x, i),
        lambda x, i: wnp.sin(x) * x[::-1],
        lambda x, i: x.at[i % len(x)].set(x[(2 * i) % len(x)] ** 2),
        lambda x, i: wnp.concatenate([x[:2] * 2, wnp.tanh(x[2:])]),
        lambda x, i: x * wnp.where(wnp.arange(len(x)) % 3 == 0, 0, 1) + x,
        lambda x, i: x.at[wnp.array([i % len(x), 1])].add(x[:2]),
        lambda x, i: x.reshape(-1, 2).sum(1).repeat(2),
        lambda x, i: (wnp.asarray(np.eye(len(x), k=i % 3 - 1, dtype="f")) @ x) + x,
        lambda x, i: wnp.where(x > 0.5, x, wnp.roll(x, i)),
        lambda x, i: lax.cond(x[0] > 9, lambda x: wnp.roll(x, 1), wnp.cos, x),
    ]
    chosen = [(steps[rng.integers(len(steps))], int(rng.integers(1, 8))) for _ in range(3)]

    def f(x):
        for step, i in chosen:
            x = step(x, i)
        return x

    return f


@pytest.mark.parametrize("seed", range(12))
def test_random_functions(seed):
    f = random_function(seed)
    x = np.random.default_rng(seed).normal(size=8).astype("f")

    def scalar(x):
        return (f(x) ** 2).sum()

    jacobian, hessian, dense = weft.jit(
        lambda x: (
            weft.sparse_jacobian(f)(x),
            weft.sparse_hessian(scalar)(x),
            (weft.jacfwd(f)(x), weft.hessian(scalar)(x)),
        )
    )(x)
    np.testing.assert_allclose(jacobian.todense(), dense[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(hessian.todense(), dense[1], rtol=1e-3, atol=1e-3)


def test_pattern_holds_for_all_values():
    def f(x):
        return wnp.where(x[0] > 0, x * 0, x[::-1]) * x

    jacobian = weft.sparse_jacobian(f)
    for x in (X, -X, 0 * X):
        np.testing.assert_allclose(jacobian(x).todense(), weft.jacfwd(f)(x))


def test_trees_and_argnums():
    def f(p, s, y):
        return {"a": p["w"][:, None] * y[:2], "b": wnp.sum(p["v"]) * s}, p["w"]

    args = ({"w": X[:3], "v": X[:2]}, np.float32(2), X)
    found, aux = weft.sparse_jacobian(f, (0, 2), has_aux=True)(*args)
    dense, _ = weft.jacfwd(f, (0, 2), has_aux=True)(*args)
    np.testing.assert_array_equal(aux, X[:3])
    leaves, tree = weft.tree_util.tree_flatten(found, is_leaf=lambda x: isinstance(x, BCOO))
    expected, expected_tree = weft.tree_util.tree_flatten(dense)
    assert tree == expected_tree
    for x, y in zip(leaves, expected, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x.todense(), y, rtol=1e-6)

    def g(p):
        return (p["w"] * p["v"][0] ** 2).sum()

    found = weft.sparse_hessian(g)(args[0])
    dense = weft.hessian(g)(args[0])
    for i in dense:
        for j in dense[i]:
            np.testing.assert_allclose(found[i][j].todense(), dense[i][j], rtol=1e-5)


def test_modes_and_transforms():
    def f(x):
        return x[:1] * x

    for mode in ("forward", "reverse", "auto"):
        found = weft.sparse_jacobian(f, mode=mode)(X)
        np.testing.assert_allclose(found.todense(), weft.jacfwd(f)(X), rtol=1e-6)
    batch = np.stack([X, 2 * X])
    found = weft.vmap(weft.sparse_jacobian(f))(batch)
    assert found.n_batch == 1
    np.testing.assert_allclose(found.todense(), weft.vmap(weft.jacfwd(f))(batch), rtol=1e-6)

    def total(x):
        return (weft.sparse_jacobian(f)(x) @ x).sum()

    expected = weft.grad(lambda x: (weft.jacfwd(f)(x) @ x).sum())(X)
    np.testing.assert_allclose(weft.grad(total)(X), expected, rtol=1e-5)
    with pytest.raises(TypeError, match="reverse mode"):
        weft.sparse_jacobian(backwards, mode="forward")(X)


def test_given_pattern():
    def f(x):
        return x[1:] * x[:-1]

    pattern = np.eye(N - 1, N) + np.eye(N - 1, N, 1)
    expected = weft.jacfwd(f)(X)
    for given in (pattern, scipy.sparse.csr_matrix(pattern), BCOO.fromdense(pattern)):
        found = weft.sparse_jacobian(f, pattern=given)(X)
        assert found.nse == 10
        np.testing.assert_allclose(found.todense(), expected)
    square = np.eye(N) + np.eye(N, k=1)
    found = weft.sparse_hessian(lambda x: f(x).sum(), pattern=square)(X)
    np.testing.assert_allclose(found.todense(), weft.hessian(lambda x: f(x).sum())(X))
    with pytest.raises(ValueError, match=r"shape \(5, 6\)"):
        weft.sparse_jacobian(f, pattern=square)(X)


def test_mistakes():
    with pytest.raises(TypeError, match="real floats"):
        weft.sparse_jacobian(lambda x: x)(X.astype("complex64"))
    with pytest.raises(TypeError, match="real floats"):
        weft.sparse_jacobian(lambda x: x)(np.arange(3))
    with pytest.raises(ValueError, match="scalar"):
        weft.sparse_hessian(lambda x: x)(X)
    with pytest.raises(ValueError, match="mode"):
        weft.sparse_jacobian(lambda x: x, mode="both")


def banded(n, width):
    rows = np.repeat(np.arange(n), 2 * width + 1)
    columns = rows + np.tile(np.arange(-width, width + 1), n)
    kept = (columns >= 0) & (columns < n)
    return rows[kept], columns[kept]


def test_colourings():
    rows, columns = banded(200, 2)
    assert column_colours(rows, columns, (200, 200)).max() + 1 == 5
    arrow = np.ones((30, 30)) * np.eye(30) + 0
    arrow[0] = arrow[:, 0] = 1
    assert star_colours(*np.nonzero(arrow), 30)[0].max() + 1 == 2
    rng = np.random.default_rng(0)
    for size in (1, 5, 20, 40):
        pattern = rng.random((size, size)) < 0.1
        colours = column_colours(*np.nonzero(pattern), pattern.shape)
        for colour in range(colours.max() + 1):
            assert pattern[:, colours == colour].sum(1).max() <= 1
        pattern |= pattern.T
        rows, columns = np.nonzero(pattern)
        colours, count = star_colours(rows, columns, size)
        off = rows != columns
        assert (colours[rows[off]] != colours[columns[off]]).all()
        from_row = count[rows[off], colours[columns[off]]] == 1
        from_column = count[columns[off], colours[rows[off]]] == 1
        assert (from_row | from_column).all()


def test_long_loops(monkeypatch):
    monkeypatch.setattr(patterns, "_MAX_STEPS", 2)
    for name in ("scan", "sweep", "reverse scan"):
        f, places = JACOBIANS[name]
        found = weft.sparse_jacobian(f)(X)
        assert found.nse > places
        np.testing.assert_allclose(found.todense(), weft.jacfwd(f)(X), rtol=1e-5)


def test_large_band_takes_few_products():
    def energy(x):
        return ((x[1:] - x[:-1] ** 2) ** 2).sum() + (wnp.cos(x[2:]) * x[:-2]).sum()

    x = np.linspace(-1, 1, 10_000).astype("f")
    found = weft.sparse_hessian(energy)(x)
    assert found.nse <= 5 * len(x)
    v = np.random.default_rng(0).normal(size=len(x)).astype("f")
    expected = weft.jvp(weft.grad(energy), (x,), (v,))[1]
    np.testing.assert_allclose(found @ v, expected, rtol=1e-3, atol=1e-3)
