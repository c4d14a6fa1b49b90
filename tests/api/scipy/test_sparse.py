"""weft.experimental.sparse: operations, derivatives and transforms against dense arrays.

The arrays have duplicates and padding: at their shape, past it, negative, and in one column only.
"""

import functools
import itertools
import operator

import numpy as np
import oracle
import pytest
import scipy.sparse
from conftest import EVERYTHING
from oracle import needs_jax

import weft
import weft.numpy as wnp
from weft import lax
from weft.experimental import sparse
from weft.experimental.sparse import BCOO, BCSR

# n_batch and n_dense of arrays with three axes.
LAYOUTS = [(0, 0), (1, 1), (2, 0), (0, 2)]
if EVERYTHING:
    LAYOUTS += [(1, 0), (0, 1), (3, 0), (0, 3), (1, 2)]
SHAPE = (3, 4, 2)


def random_array(seed, shape=SHAPE, n_batch=0, n_dense=0, nse=7, dtype="float32", clean=False):
    """A BCOO array, and the array that it stands for. `clean`: without duplicates and padding."""
    rng = np.random.default_rng([seed, n_batch, n_dense, *shape])
    batch, sizes = shape[:n_batch], shape[n_batch : len(shape) - n_dense]
    data = rng.integers(-3, 4, (*batch, nse, *shape[len(shape) - n_dense :])).astype(dtype)
    if np.dtype(dtype).kind == "c":
        data = data + 1j * rng.integers(-3, 4, data.shape).astype(data.real.dtype)
    indices = (
        np.stack([rng.integers(0, n, (*batch, nse)) for n in sizes], -1)
        if sizes
        else (np.zeros((*batch, nse, 0)))
    )
    indices = indices.astype("int32")
    if not clean and sizes and nse > 4:
        indices[..., 1, :] = sizes
        indices[..., 2, 0] = -1
        indices[..., 3, -1] = sizes[-1] + 5
        indices[..., 4, :] = indices[..., 0, :]
    dense = np.zeros(shape, dtype)
    for at in np.ndindex(*batch):
        seen = set()
        for e in range(nse):
            place = tuple(indices[(*at, e)])
            if clean and place in seen:
                indices[(*at, e)] = sizes
                continue
            seen.add(place)
            if all(0 <= i < n for i, n in zip(place, sizes, strict=True)):
                dense[(*at, *place)] += data[(*at, e)]
    return BCOO((data, indices), shape=shape, unique_indices=clean), dense


def dense_of(x):
    return np.asarray(x.todense() if isinstance(x, sparse.JAXSparse) else x)


def check(found, expected, **tolerance):
    found, expected = dense_of(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, **{"rtol": 1e-5, "atol": 1e-5, **tolerance})


# Functions of an array that have one meaning for BCOO and dense arrays.
OPERATORS = {
    "neg": operator.neg,
    "twice": lambda x: 2 * x - x / 4,
    "abs": abs,
    "power": lambda x: x**2 + abs(x) ** 1.5,
    "sum": lambda x: x.sum(),
    "sum 0": lambda x: x.sum(0),
    "sum 1": lambda x: x.sum(1),
    "sum 2": lambda x: x.sum(2),
    "sum 0, 2": lambda x: x.sum((0, 2), keepdims=True),
    "plus itself": lambda x: x + x,
    "times itself": lambda x: x * x,
    "plus array": lambda x: x + wnp.arange(24.0).reshape(SHAPE) - x,
    "array minus": lambda x: wnp.arange(24.0).reshape(SHAPE) - x,
    "times array": lambda x: x * wnp.arange(24.0).reshape(SHAPE),
    "times column": lambda x: x * wnp.arange(4.0)[:, None],
    "times scalar array": lambda x: wnp.float32(3) * x,
    "over array": lambda x: x / (1 + wnp.arange(2.0)),
    "first": lambda x: x[0],
    "last column": lambda x: x[..., -1],
    "element": lambda x: x[1, 2, 0],
    "part": lambda x: x[1:, ::2, :1],
    "turned": lambda x: x[::-1, :, ::-1],
    "new axis": lambda x: x[None],
    "reshape last": lambda x: x.reshape(3, 4, 1, 2),
    "flattened": lambda x: x.reshape(-1),
    "halves": lambda x: x.reshape(6, 2, 2),
    "as int": lambda x: x.astype("int32"),
    "rows": lambda x: x[wnp.array([2, 0, 7])],
    "steps": lambda x: x[:, wnp.array([[0, 3], [1, 1]])],
}


# Axes of different kinds cannot be joined.
JOINED = {
    "flattened": [(1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (1, 2)],
    "halves": [(1, 0), (1, 1), (0, 2), (3, 0), (1, 2)],
}


def operators_of(layout):
    return {name: f for name, f in OPERATORS.items() if layout not in JOINED.get(name, ())}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operators_under_jit(layout):
    mat, dense = random_array(1, n_batch=layout[0], n_dense=layout[1])
    check(mat, dense)
    functions = operators_of(layout)
    found = weft.jit(lambda mat: {name: f(mat) for name, f in functions.items()})(mat)
    expected = weft.jit(lambda x: {name: f(x) for name, f in functions.items()})(dense)
    for name in functions:
        check(found[name], expected[name])
    for name in JOINED.keys() - functions.keys():
        with pytest.raises(ValueError, match="apart"):
            OPERATORS[name](mat)


def test_operators():
    mat, dense = random_array(2)
    expected = weft.jit(lambda x: {name: f(x) for name, f in OPERATORS.items()})(dense)
    for name, f in OPERATORS.items():
        check(f(mat), expected[name])


def test_padding_stays_outside():
    mat, _ = random_array(0)
    moved = {
        "slice": mat[1:, ::2],
        "reshape": mat.reshape(2, 12),
        "rev": mat[::-1],
        "squeeze": mat[:, :, 1],
        "concatenate": sparse.bcoo_concatenate([mat, mat], dimension=0),
        "update_layout": mat.update_layout(n_batch=1, on_inefficient=None),
        "sum": mat.sum(1),
        "bcsr": BCSR.from_bcoo(mat[..., 0]).to_bcoo(),
    }
    for name, x in moved.items():
        sizes = np.asarray(x.shape[x.n_batch : x.n_batch + x.n_sparse])
        indices = np.asarray(x.indices)
        inside = ((indices >= 0) & (indices < sizes)).all(-1)
        assert not inside.all(), name
        assert (indices[~inside] == sizes).all(), name


# ---- Products

NUMBERS = [
    # lhs_contract, rhs_contract, lhs_batch, rhs_batch of axes (3, 4, 2) and (2, 4, 3)
    (((2,), (0,)), ((), ())),
    (((1,), (1,)), ((0,), (2,))),
    (((), ()), ((1,), (1,))),
    (((0, 1, 2), (2, 1, 0)), ((), ())),
    (((2, 1), (0, 1)), ((0,), (2,))),
    (((1,), (1,)), ((2, 0), (0, 2))),
    (((), ()), ((), ())),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dot_general(layout):
    mat, dense = random_array(3, n_batch=layout[0], n_dense=layout[1])
    other = np.random.default_rng(0).integers(-3, 4, (2, 4, 3)).astype("float32")
    sparse_other, dense_other = random_array(4, (2, 4, 3), layout[1], layout[0])

    def all_products(dot, mat, other, sparse_other):
        found = []
        for numbers in NUMBERS:
            turned = tuple(pair[::-1] for pair in numbers)
            found.append(dot(mat, other, dimension_numbers=numbers))
            found.append(dot(other, mat, dimension_numbers=turned))
            found.append(dot(mat, sparse_other, dimension_numbers=numbers))
        return found

    products = functools.partial(all_products, sparse.bcoo_dot_general)
    expected = weft.jit(functools.partial(all_products, lax.dot_general))(dense, other, dense_other)
    for x, y in zip(weft.jit(products)(mat, other, sparse_other), expected, strict=True):
        check(x, y)


def test_product_of_sparse_arrays_stores_what_is_needed():
    diagonal = sparse.eye(100) * wnp.arange(1.0, 101.0)
    assert (diagonal @ diagonal).nse == 100
    assert (diagonal * diagonal).nse == 100
    assert weft.jit(lambda a: a * a)(diagonal).nse == 100
    check(diagonal @ diagonal, np.diag(np.arange(1.0, 101.0, dtype="float32") ** 2))


def test_dot_general_sampled():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4, 3)).astype("f"), rng.normal(size=(2, 3, 5)).astype("f")
    numbers = (((2,), (1,)), ((0,), (0,)))
    full = np.einsum("bij,bjk->bik", a, b)
    indices = rng.integers(0, 4, (6, 3))
    indices[:, 0] %= 2
    indices[3] = (2, 4, 5)
    f = functools.partial(sparse.bcoo_dot_general_sampled, dimension_numbers=numbers)
    expected = np.array([full[tuple(i)] if k != 3 else 0 for k, i in enumerate(indices)], "f")
    check(f(a, b, indices), expected)
    batched = rng.integers(0, 4, (2, 6, 2))
    expected = np.stack([full[i][tuple(batched[i].T)] for i in range(2)])
    check(f(a, b, batched), expected)
    check(f(a, b, batched[..., :1]), np.stack([full[i][batched[i, :, 0]] for i in range(2)]))
    check(f(a, b, batched[0, :, :1] % 2), full[batched[0, :, 0] % 2])


def test_absent_elements_meet_no_infinity():
    mat = BCOO((np.array([1.0, 0.0], "f"), np.array([[0, 0], [1, 2]])), shape=(2, 3))
    v = np.array([1, np.inf, np.nan], "f")
    np.testing.assert_array_equal(mat @ v, [1, np.nan])  # the stored zero is multiplied
    np.testing.assert_array_equal((mat * v).todense(), [[1, 0, 0], [0, 0, np.nan]])
    np.testing.assert_array_equal((mat * np.float32(np.inf)).data, [np.inf, np.nan])


def test_numpy_leaves_operators_to_sparse_arrays():
    mat, dense = random_array(0, (3, 4))
    left = np.ones((2, 3), "f")
    check(left @ mat, left @ dense)
    check(np.float32(2) * mat, 2 * dense)
    check(np.ones((3, 4), "f") + mat, 1 + dense)
    check(wnp.asarray(left) @ mat, left @ dense)


def test_matmul_of_stacks():
    mat, dense = random_array(0, (3, 4, 2), 1)
    other = np.random.default_rng(0).normal(size=(3, 2, 5)).astype("f")
    check(mat @ other, dense @ other)
    check(mat @ other[0], dense @ other[0])
    check(mat @ other[0, :, 0], dense @ other[0, :, 0])
    with pytest.raises(ValueError, match="matmul"):
        mat @ other[None]


def test_convolution():
    lhs, dense = random_array(0, (1, 1, 9), clean=True)
    rhs, kernel = random_array(1, (1, 1, 4), clean=True)
    for padding in ("SAME", "VALID", [(2, 0)]):
        found = sparse.bcoo_conv_general_dilated(lhs, rhs, window_strides=(1,), padding=padding)
        check(found, lax.conv_general_dilated(dense, kernel, (1,), padding))


# ---- Layouts


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    mat, dense = random_array(5, n_batch=layout[0], n_dense=layout[1])

    @weft.jit
    def made(mat):
        others = [mat.update_layout(n_batch=b, n_dense=d, on_inefficient=None) for b, d in LAYOUTS]
        n, m = mat.n_batch, mat.n_batch + mat.n_sparse
        orders = [
            (*a, *b, *c)
            for a in itertools.permutations(range(n))
            for b in itertools.permutations(range(n, m))
            for c in itertools.permutations(range(m, 3))
        ]
        turned = [(order, mat.transpose(order)) for order in orders]
        joined = [sparse.bcoo_concatenate([mat, mat * 2], dimension=i) for i in range(3)]
        shape = (2, 3, 4, 2)
        wide = sparse.bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=(1, 2, 3))
        middle = sparse.bcoo_broadcast_in_dim(
            mat[:, :, :1], shape=(3, 5, 4, 6), broadcast_dimensions=(0, 2, 3)
        )
        same = mat.sort_indices(), mat.sum_duplicates(nse=9), sparse.bcoo_todense(mat)
        return others, turned, joined, wide, middle, same

    others, turned, joined, wide, middle, same = made(mat)
    for (n_batch, n_dense), x in zip(LAYOUTS, others, strict=True):
        assert (x.n_batch, x.n_dense) == (n_batch, n_dense)
        check(x, dense)
    for order, x in turned:
        check(x, dense.transpose(tuple(map(int, order))))
    for i, x in enumerate(joined):
        check(x, np.concatenate([dense, 2 * dense], i))
    check(wide, np.broadcast_to(dense, (2, *SHAPE)))
    check(middle, np.broadcast_to(dense[:, None, :, :1], (3, 5, 4, 6)))
    for x in same:
        check(x, dense)
    assert same[1].nse == 9
    assert same[1].indices_sorted
    assert same[1].unique_indices


@pytest.mark.parametrize(
    "layout, dtype",
    [*((x, "float32") for x in LAYOUTS), *(((1, 1), x) for x in ("bool", "int8", "complex64"))],
)
def test_to_and_from_dense(layout, dtype):
    _, dense = random_array(6, n_batch=layout[0], n_dense=layout[1], dtype=dtype)
    kinds = {"n_batch": layout[0], "n_dense": layout[1]}
    mat = BCOO.fromdense(dense, **kinds)
    assert mat.indices.dtype == np.int32
    assert mat.indices_sorted
    assert mat.unique_indices
    check(mat, dense)
    more = weft.jit(lambda x: BCOO.fromdense(x, nse=30, **kinds))(dense)
    assert more.nse == 30
    check(more, dense)


def test_fromdense_cuts_and_keeps():
    x = np.array([[0, np.nan], [-0.0, 3]], "f")
    mat = BCOO.fromdense(x)
    np.testing.assert_array_equal(mat.indices, [[0, 1], [1, 1]])
    np.testing.assert_array_equal(BCOO.fromdense(x, nse=1).todense(), [[0, np.nan], [0, 0]])
    assert BCOO.fromdense(x, index_dtype="int8").indices.dtype == np.int8
    with pytest.raises(ValueError, match="expected nse"):
        weft.jit(BCOO.fromdense)(x)


def test_sum_duplicates():
    data = np.array([1.0, 0.0, 3.0, -1.0, 5.0], "f")
    indices = np.array([[0, 0], [1, 1], [0, 1], [0, 0], [2, 3]])
    mat = BCOO((data, indices), shape=(2, 3))
    found = mat.sum_duplicates()
    np.testing.assert_array_equal(found.data, [0, 3])  # the sum that is 0 stays
    np.testing.assert_array_equal(found.indices, [[0, 0], [0, 1]])
    np.testing.assert_array_equal(sparse.bcoo_sum_duplicates(mat).data, [0, 3, 0])
    more = mat.sum_duplicates(nse=4)
    np.testing.assert_array_equal(more.indices[2:], [[2, 3], [2, 3]])
    np.testing.assert_array_equal(more.data, [0, 3, 0, 0])
    np.testing.assert_array_equal(mat.sum_duplicates(nse=1).data, [0])
    with pytest.raises(ValueError, match="expected nse"):
        weft.jit(lambda m: m.sum_duplicates())(mat)


def test_inefficient_layouts():
    mat, _ = random_array(0, (20, 30))
    with pytest.raises(sparse.SparseEfficiencyError, match="n_batch=1"):
        mat.update_layout(n_batch=1)
    with pytest.warns(sparse.SparseEfficiencyWarning, match="n_batch=1"):
        mat.update_layout(n_batch=1, on_inefficient="warn")
    mat.update_layout(n_batch=1, on_inefficient=None)


def test_bool_stays_bool():
    mat = BCOO((np.array([True, True]), np.array([[1], [1]])), shape=(3,))
    check(mat, np.array([False, True, False]))
    check(mat.sum_duplicates(), np.array([False, True, False]))


def test_extract():
    for layout in LAYOUTS[:3]:
        mat, _ = random_array(7, n_batch=layout[0], n_dense=layout[1])
        array = np.random.default_rng(1).normal(size=SHAPE).astype("f")
        ones = BCOO((np.ones_like(mat.data), mat.indices), shape=SHAPE)
        check(sparse.bcoo_extract(mat, array), np.where(dense_of(ones) != 0, array, 0))


# ---- Derivatives, vmap, sparsify


def values_of(mat):
    def rebuilt(data):
        return BCOO((data, mat.indices), shape=mat.shape, unique_indices=mat.unique_indices)

    return rebuilt


DIFFERENTIABLE = {
    "times vector": lambda x: (x @ wnp.arange(2.0)).sum(),
    "of squares": lambda x: dense_or_same((x * x).sum((0, 2))) @ wnp.arange(4.0),
    "of root": lambda x: (abs(x) ** 0.5).sum(),
    "of both": lambda x: dense_or_same((x @ (x[0].T * 2))[1:, ::-1]).sum(),
    "plus dense": lambda x: (wnp.sin(wnp.ones(SHAPE) + x) ** 2).sum(),
}


def dense_or_same(x):
    return x.todense() if isinstance(x, sparse.JAXSparse) else x


@pytest.mark.parametrize("layout", [(0, 0), (1, 0)])
def test_derivatives(layout):
    mat, dense = random_array(8, n_batch=layout[0], n_dense=layout[1], clean=True)
    data = np.where(np.asarray(mat.data) == 0, 1, mat.data).astype("float32")
    mat = values_of(mat)(data)
    dense = dense_of(mat)
    rebuilt = values_of(mat)

    @weft.jit
    def both(data, dense):
        found = {}
        for name, f in DIFFERENTIABLE.items():
            of_data = lambda data, f=f: f(rebuilt(data))
            forward = weft.jvp(of_data, (data,), (wnp.cos(data),))[1]
            found[name] = weft.grad(of_data)(data), forward
        expected = {
            # sqrt has an infinite slope at the zeros that a dense array has.
            name: weft.grad(lambda x, f=f: f(wnp.where(dense == 0, 1e-30, x)))(dense)
            for name, f in DIFFERENTIABLE.items()
        }
        return found, expected

    found, expected = both(data, dense)
    stored = sparse.bcoo_extract(mat, np.ones(SHAPE, "f"))
    for name, (gradient, forward) in found.items():
        wanted = sparse.bcoo_extract(mat, expected[name])
        inside = np.asarray(stored.data) != 0
        np.testing.assert_allclose(gradient * inside, wanted.data, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.asarray(gradient)[~inside], 0)
        np.testing.assert_allclose(forward, np.vdot(gradient, np.cos(data)), rtol=1e-4)


def test_second_derivative_and_operand():
    mat, dense = random_array(9, (3, 4))
    v = np.arange(4.0, dtype="f")
    hessian = weft.hessian(lambda v: ((mat @ v) ** 2).sum())(v)
    np.testing.assert_allclose(hessian, 2 * dense.T @ dense, rtol=1e-5)
    jacobian = weft.jacfwd(lambda d: BCOO((d, mat.indices), shape=(3, 4)) @ v)(mat.data)
    np.testing.assert_allclose(
        jacobian, weft.jacrev(lambda d: BCOO((d, mat.indices), shape=(3, 4)) @ v)(mat.data)
    )


def test_gradient_of_duplicates_and_padding():
    indices = np.array([[0], [0], [2], [5]])
    data = np.array([1.0, 3.0, 4.0, np.nan], "f")

    def root(data):
        return BCOO((data, indices), shape=(3,))

    gradient = weft.grad(lambda d: (root(d) ** 0.5).sum())(data)
    np.testing.assert_allclose(gradient, [0.25, 0.25, 0.25, 0])
    padded = weft.jit(
        weft.grad(lambda d: sparse.sparsify(wnp.sqrt)(root(d).sum_duplicates(nse=8)).sum())
    )(data)
    np.testing.assert_allclose(padded, [0.25, 0.25, 0.25, 0])
    v = np.array([0.0, 1.0, 2.0], "f")
    for f in (lambda d: (root(d) / (v + 1)).sum(), lambda d: root(d) @ v):
        assert np.isfinite(weft.grad(f)(data)).all()


def test_sparse_gradients():
    mat, dense = random_array(10, (3, 4))
    v = np.arange(4.0, dtype="f")

    def f(mat, v):
        return ((mat @ v) ** 2).sum()

    for cls in (BCOO, BCSR, sparse.COO, sparse.CSR):
        own = mat if cls is BCOO else cls.fromdense(dense)
        value, (by_mat, by_v) = sparse.value_and_grad(f, (0, 1))(own, v)
        assert type(by_mat) is cls
        check(value, f(dense, v))
        np.testing.assert_allclose(by_v, weft.grad(f, 1)(dense, v), rtol=1e-5)
        stored = dense_of(BCOO((by_mat.data, mat.indices), shape=(3, 4))) if cls is BCOO else None
        if cls is not BCOO:
            stored, wanted = dense_of(by_mat), np.where(dense != 0, weft.grad(f)(dense, v), 0)
            np.testing.assert_allclose(stored, wanted, rtol=1e-5)
    found, aux = sparse.grad(lambda m: (f(m, v), m.nse), has_aux=True)(mat)
    assert (type(found), aux) == (BCOO, mat.nse)
    clean = BCOO.fromdense(dense)
    for transform in (sparse.jacfwd, sparse.jacrev, sparse.jacobian):
        found = transform(lambda m: {"y": m @ v})(clean)["y"]
        assert (found.shape, found.n_batch) == ((3, 3, 4), 1)
        wanted = np.asarray(weft.jacfwd(lambda m: m @ v)(dense)) * (dense != 0)
        check(found, wanted)
    with pytest.raises(TypeError, match="int32"):
        weft.grad(lambda m: f(m, v))(mat)


def test_vmap():
    mat, dense = random_array(11, (3, 4, 2), 1)
    other = np.arange(6.0, dtype="f").reshape(3, 2)
    check(weft.vmap(lambda m, v: m @ v)(mat, other), np.einsum("bij,bj->bi", dense, other))
    check(weft.vmap(lambda m: m @ other[0])(mat), dense @ other[0])
    check(weft.vmap(lambda v: mat @ v, out_axes=2)(other), dense @ other.T)
    out = weft.vmap(lambda m: m.T * 2)(mat)
    assert (out.n_batch, out.shape) == (1, (3, 2, 4))
    check(out, 2 * dense.transpose(0, 2, 1))
    inner = weft.vmap(lambda x: BCOO.fromdense(x, nse=8))(dense)
    assert inner.n_batch == 1
    check(inner, dense)
    both, expected = random_array(12, (3, 4, 2), 2)
    check(weft.vmap(lambda m: m.sum_duplicates(nse=2), 1)(both), expected.transpose(1, 0, 2))
    with pytest.raises(ValueError, match="batch"):
        weft.vmap(lambda m: m.todense())(random_array(0)[0])


def test_sparsify():
    mat, dense = random_array(13, (3, 4))
    v = np.arange(4.0, dtype="f")
    square, _ = random_array(14, (3, 3), clean=True)

    @weft.custom_jvp
    def smooth(x):
        return wnp.sin(x)

    smooth.defjvp(lambda p, t: (smooth(*p), t[0]))
    functions = [
        lambda a: a @ v + 1,
        lambda a: wnp.sin(a) * 2 - a,
        lambda a: weft.jit(lambda x: x.T @ wnp.ones(3))(a),
        lambda a: smooth(a).sum(0),
        lambda a: lax.fori_loop(0, 3, lambda i, x: x * 2, a),
        lambda a: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * v), (0, a))[1],
        lambda a: lax.cond(v[1] > 0, lambda x: x * 2, lambda x: x * 3, a),
        lambda a: wnp.concatenate([a, 2 * a], 1)[:, 1:6],
        lambda a: wnp.sqrt(wnp.abs(a)).astype("float32"),
        lambda a: sparse.todense(a) + 1,
        lambda a: {"sum": wnp.sum(a)}["sum"],
        lambda a: weft.checkpoint(lambda x: x**2)(a),
    ]
    for f in functions:
        check(sparse.sparsify(f)(mat), f(wnp.asarray(dense)))
    found = weft.jit(lambda m: [sparse.sparsify(f)(m) for f in functions])(mat)
    for x, f in zip(found, functions, strict=True):
        check(x, f(wnp.asarray(dense)))
    batched, rows = random_array(15, (3, 4), 1)
    total, products = sparse.sparsify(
        lambda a: lax.scan(lambda c, x: (c + x.sum(), x @ v), wnp.zeros(()), a)
    )(batched)
    check(total, rows.sum())
    check(products, rows @ v)
    assert isinstance(sparse.sparsify(lambda a: a @ a)(square), BCOO)
    for f in (
        wnp.exp,
        wnp.cos,
        lambda a: a > 0,
        lambda a: a == a,
        lambda a: a + 1,
        lambda a: 1 / a,
    ):
        with pytest.raises(NotImplementedError):
            sparse.sparsify(f)(mat)


def test_what_has_values_everywhere_is_refused():
    mat, _ = random_array(0, (3, 4))
    for f in (
        lambda: mat + 1,
        lambda: 1 - mat,
        lambda: 2 / mat,
        lambda: mat**0,
        lambda: mat == mat,
    ):
        with pytest.raises(NotImplementedError):
            f()
    with pytest.raises(TypeError):
        hash(mat)


# ---- Other formats


def test_bcsr():
    dense = random_array(16, (5, 6))[1]
    for mat in (BCSR.fromdense(dense), BCSR.fromdense(dense, nse=30)):
        check(mat, dense)
        check(mat @ np.ones(6, "f"), dense @ np.ones(6, "f"))
        check(np.ones((2, 5), "f") @ mat, np.ones((2, 5), "f") @ dense)
        for f in (lambda x: 2 * x - x, lambda x: x.T, lambda x: -x + x * np.arange(6.0, dtype="f")):
            assert isinstance(f(mat), BCSR)
            check(f(mat), f(dense))
        check(mat.sum(0), dense.sum(0))
        check(mat @ mat.T, dense @ dense.T)
        check(mat.to_bcoo(), dense)
        check(mat.sum_duplicates(), dense)
        check(sparse.bcsr_concatenate([mat, mat], dimension=0), np.concatenate([dense, dense]))
        check(weft.jit(lambda m: m @ np.eye(6, dtype="f"))(mat), dense)
        wide = sparse.bcsr_broadcast_in_dim(mat, shape=(2, 5, 6), broadcast_dimensions=(1, 2))
        check(wide, np.broadcast_to(dense, (2, 5, 6)))
        values = sparse.bcsr_extract(mat.indices, mat.indptr, dense)
        check(BCSR((values, mat.indices, mat.indptr), shape=mat.shape), dense)
    stacked = random_array(17, (2, 3, 4, 2))[1]
    mat = BCSR.fromdense(stacked, n_batch=1, n_dense=1)
    check(mat, stacked)
    check(weft.vmap(lambda m: m.sum(0))(mat), stacked.sum(1))
    unordered = random_array(18, (5, 6))
    check(BCSR.from_bcoo(unordered[0]), unordered[1])


@pytest.mark.parametrize("cls", [sparse.COO, sparse.CSR, sparse.CSC])
def test_matrices(cls):
    dense = random_array(19, (4, 5))[1]
    for mat in (cls.fromdense(dense), cls.fromdense(dense, nse=20)):
        check(mat, dense)
        check(mat.T, dense.T)
        check(weft.jit(lambda m: m @ np.ones(5, "f"))(mat), dense @ np.ones(5, "f"))
        check(mat @ np.eye(5, 2, dtype="f"), dense @ np.eye(5, 2, dtype="f"))
    with pytest.raises(NotImplementedError):
        mat * 2


def test_matrix_functions():
    dense = random_array(20, (4, 5))[1]
    coo, csr = sparse.coo_fromdense(dense), sparse.csr_fromdense(dense)
    for mat, matvec, matmat, todense in (
        (coo, sparse.coo_matvec, sparse.coo_matmat, sparse.coo_todense),
        (csr, sparse.csr_matvec, sparse.csr_matmat, sparse.csr_todense),
    ):
        check(todense(mat), dense)
        check(matvec(mat, np.ones(5, "f")), dense.sum(1))
        check(matvec(mat, np.ones(4, "f"), transpose=True), dense.sum(0))
        check(matmat(mat, np.eye(4, dtype="f"), transpose=True), dense.T)


def test_scipy():
    matrix = scipy.sparse.random(6, 7, 0.3, "csr", np.float32, np.random.default_rng(0))
    for cls in (BCOO, BCSR):
        check(cls.from_scipy_sparse(matrix), matrix.toarray())


def test_eye_and_empty():
    for args in ((3,), (3, 5), (5, 3, 1), (4, 4, -2), (2, 2, 5)):
        expected = np.eye(*args, dtype="f")
        for sparse_format in ("bcoo", "bcsr", "coo", "csr", "csc"):
            check(sparse.eye(*args, sparse_format=sparse_format), expected)
        for n_batch, n_dense in ((1, 0), (0, 1), (1, 1), (2, 0)):
            check(sparse.eye(*args, n_batch=n_batch, n_dense=n_dense), expected)
    check(sparse.empty((2, 3), nse=4), np.zeros((2, 3), "f"))
    check(sparse.empty((2, 3, 4), int, n_batch=1, n_dense=1, nse=2), np.zeros((2, 3, 4), "int32"))
    assert sparse.empty((2, 3), sparse_format="bcsr").nse == 0


def test_random():
    mat = sparse.random_bcoo(weft.random.key(0), (4, 50, 2), n_batch=1, n_dense=1, nse=20)
    assert (mat.nse, mat.n_batch, mat.n_dense) == (20, 1, 1)
    for indices in np.asarray(mat.indices)[..., 0]:
        assert len(set(indices)) == 20
        assert indices.max() < 50
    mat = sparse.random_bcoo(
        weft.random.key(1), (10, 10), nse=0.5, unique_indices=False, sorted_indices=True
    )
    assert mat.nse == 50
    assert mat.indices_sorted
    with pytest.raises(ValueError, match="at most"):
        sparse.random_bcoo(weft.random.key(0), (2, 2), nse=5)


def test_trees_and_text():
    mat, _ = random_array(0, n_batch=1)
    leaves, tree = weft.tree_util.tree_flatten(mat)
    assert [x.shape for x in leaves] == [(3, 7), (3, 7, 2)]
    assert tree.unflatten(leaves).shape == SHAPE
    assert repr(mat) == "BCOO(float32[3, 4, 2], nse=7, n_batch=1)"
    assert repr(tree.unflatten([None, None])) == "BCOO(<invalid>)"
    assert (len(mat), mat.ndim, mat.size, mat.dtype) == (3, 3, 24, np.float32)
    rows = list(random_array(0, (3, 4))[0])
    assert [x.shape for x in rows] == [(4,)] * 3


@pytest.mark.parametrize(
    "args, shape",
    [
        ((np.ones(2), np.ones((3, 2), int)), (2, 2)),
        ((np.ones(2), np.ones((2, 3), int)), (2, 2)),
        ((np.ones((2, 4)), np.ones((2, 1), int)), (2, 3)),
        ((np.ones(2), np.ones((2, 2))), (2, 2)),
        ((np.ones(2), np.ones(2, int)), (2,)),
    ],
)
def test_parts_that_do_not_fit(args, shape):
    with pytest.raises((ValueError, TypeError), match="expected"):
        BCOO(args, shape=shape)


# ---- Linear algebra


def test_spsolve():
    rng = np.random.default_rng(0)
    dense = (rng.normal(size=(6, 6)) * (rng.random((6, 6)) < 0.4) + 4 * np.eye(6)).astype("f")
    b = rng.normal(size=6).astype("f")
    mat = BCSR.fromdense(dense)

    def solved(data, b, reorder=1):
        return sparse.linalg.spsolve(data, mat.indices, mat.indptr, b, reorder=reorder)

    for right in (b, np.stack([b, 2 * b], 1)):
        check(solved(mat.data, right), np.linalg.solve(dense, right), rtol=1e-4)
    check(weft.jit(functools.partial(solved, reorder=0))(mat.data, b), np.linalg.solve(dense, b))
    by_data, by_b = weft.grad(lambda d, b: (solved(d, b) ** 2).sum(), (0, 1))(mat.data, b)
    of_dense, expected = weft.grad(lambda a, b: (wnp.linalg.solve(a, b) ** 2).sum(), (0, 1))(
        dense, b
    )
    np.testing.assert_allclose(by_b, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        by_data, sparse.bcsr_extract(mat.indices, mat.indptr, of_dense), rtol=1e-3, atol=1e-4
    )
    found = weft.vmap(solved, (None, 0))(mat.data, np.stack([b, -b]))
    check(found, np.linalg.solve(dense, np.stack([b, -b]).T).T)


@pytest.mark.parametrize("kind", ["dense", "sparse", "function"])
def test_lobpcg(kind):
    n, k = 60, 3
    diagonals = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    matrix = (diagonals @ diagonals).astype("f")
    a = {"dense": matrix, "sparse": BCOO.fromdense(matrix), "function": lambda x: matrix @ x}[kind]
    x = np.random.default_rng(0).normal(size=(n, k)).astype("f")
    values, vectors, steps = sparse.linalg.lobpcg_standard(a, x, m=200)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:k], rtol=1e-4)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=2e-2)
    assert 0 < steps <= 200
    with pytest.raises(ValueError, match="5 k"):
        sparse.linalg.lobpcg_standard(a, np.ones((n, 20), "f"))


# ---- What jax gives

JAX_CASES = oracle.lines(
    """
    A().sum_duplicates().data
    A().sum_duplicates().indices
    A().sum_duplicates(nse=4).todense()
    A().sum_duplicates(nse=4).indices
    A().sort_indices().indices
    A().todense()
    A() @ jnp.array([1.0, jnp.inf, jnp.nan])
    (A() * jnp.array([1.0, jnp.inf, jnp.nan])).todense()
    (A() + A()).nse
    abs(A()).todense()
    (A() ** 2).todense()
    (A() / 0).todense()
    A()[1].todense()
    A()[5:].todense()
    A()[jnp.array([0, 7])].todense()
    A()[None].n_batch
    A()[:, :1].nse
    A().T.indices
    A().reshape(3, 2).indices
    A().sum(0).todense()
    A().sum()
    A().astype(int).todense()
    sparse.bcoo_multiply_dense(A(), x)
    sparse.bcoo_fromdense(x, n_batch=1).indices
    sparse.bcoo_fromdense(x, nse=8).indices
    sparse.bcoo_fromdense(x, nse=2).todense()
    sparse.eye(3, 4, k=1).indices
    sparse.eye(3, n_batch=1).indices
    sparse.empty((2, 3), nse=2, n_batch=1).indices
    sparse.grad(lambda a: (a.data**2).sum())(A()).data
    sparse.grad(lambda a: (a.sum_duplicates(nse=3).todense()**2).sum())(A()).data
    sparse.jacfwd(lambda a: a @ jnp.ones(3))(A()).data
    sparse.sparsify(jnp.sin)(A()).todense()
    sparse.sparsify(lambda a, v: a @ v + 1)(A(), jnp.ones(3))
    sparse.BCSR.fromdense(x).indptr
    sparse.BCSR.fromdense(jnp.eye(3), nse=5).indptr
    sparse.BCSR.from_bcoo(A()).data
    sparse.coo_fromdense(jnp.eye(3)).row
    repr(A())
    A() + 1
    2 / A()
    A() ** 0
    A() > 0
    hash(A())
    """.replace(
        "A()",
        "sparse.BCOO((jnp.array([1.0, 0.0, 3.0, -1.0, 5.0]), "
        "jnp.array([[0, 0], [1, 1], [0, 1], [0, 0], [2, 3]])), shape=(2, 3))",
    )
)


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("expression", JAX_CASES)
def test_as_jax(expression):
    oracle.check(JAX_CASES, expression)
