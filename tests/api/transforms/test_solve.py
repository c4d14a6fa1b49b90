"""custom_linear_solve and custom_root: derivatives, vmap, against jax and NumPy; and mistakes."""

import re

import numpy as np
import programs_oracle
import pytest
from oracle import needs_jax

import weft
import weft.numpy as wnp
from weft import errors, lax, test_util

# ---- As under jax (programs_oracle.py)

DEFINITIONS = """
def cg(matvec, b):
    # Conjugate gradients, for symmetric positive definite systems.
    def step(state):
        i, x, r, p, rr = state
        ap = matvec(p)
        alpha = rr / np.maximum(np.vdot(p, ap), 1e-30)
        r = r - alpha * ap
        new = np.vdot(r, r)
        p = r + (new / np.maximum(rr, 1e-30)) * p
        return i + 1, x + alpha * (state[3]), r, p, new

    state = (0, np.zeros_like(b), b, b, np.vdot(b, b))
    state = lax.while_loop(lambda s: (s[0] < 8) & (s[4] > 1e-14), step, state)
    return state[1]

def invert(matvec, b):
    # Of a map of two numbers, from its columns.
    c0, c1 = matvec(np.array([1.0, 0.0])), matvec(np.array([0.0, 1.0]))
    det = c0[0] * c1[1] - c1[0] * c0[1]
    return np.stack([c1[1] * b[0] - c1[0] * b[1], c0[0] * b[1] - c0[1] * b[0]]) / det

def spd(a, b):
    m = a @ a.T + 2.0 * np.eye(3)
    return lax.custom_linear_solve(lambda x: m @ x, b, cg, symmetric=True)

def general(a, b):
    return lax.custom_linear_solve(lambda x: a @ x, b, invert, transpose_solve=invert)

def with_aux(a, b):
    def solve(matvec, b):
        x = invert(matvec, b)
        return x, {"steps": np.sum(x > 0), "norm": np.sum(x ** 2)}
    return lax.custom_linear_solve(lambda x: a @ x, b, solve, solve, has_aux=True)

def diagonal(d, b):
    # A tree whose leaves do not touch each other.
    matvec = lambda x: {"u": d["u"] * x["u"], "v": d["v"] * x["v"]}
    solve = lambda matvec, b: {"u": b["u"] / d["u"], "v": b["v"] / d["v"]}
    return lax.custom_linear_solve(matvec, b, solve, solve)

a3 = np.array([[1.0, 0.3, -0.2], [0.5, -1.0, 0.1], [0.2, 0.4, 0.8]])
b3 = np.array([1.0, -2.0, 0.5])
a2 = np.array([[2.0, 0.5], [-0.3, 1.5]])
b2 = np.array([1.0, -2.0])
many_a3 = np.stack([a3, a3 + 0.1, 2 * a3])
many_b3 = np.stack([b3, 2 * b3, 1 - b3])
many_a2 = np.stack([a2, a2 + 0.1, 2 * a2])
many_b2 = np.stack([b2, 2 * b2, 1 - b2])
tree = {"u": np.array([2.0, 4.0]), "v": 3.0}
rhs = {"u": np.array([1.0, -1.0]), "v": 2.0}

def newton(f, x):
    step = lambda s: (s[0] + 1, s[1] - f(s[1]) / fw.grad(f)(s[1]))
    return lax.while_loop(lambda s: (s[0] < 60) & (abs(f(s[1])) > 1e-6), step, (0, x))[1]

scalar = lambda g, y: y / g(1.0)

def cube_root(m, guess=2.0):
    return lax.custom_root(lambda x: x ** 3 - m, guess, newton, scalar)

def iterate(f, x):
    return lax.fori_loop(0, 40, lambda i, x: x - 0.5 * f(x), x)

def fixed_point(w, b):
    # x = tanh(w x + b)
    f = lambda x: x - np.tanh(w @ x + b)
    def tangent_solve(g, y):
        return lax.custom_linear_solve(g, y, invert, invert)
    return lax.custom_root(f, np.zeros(2), iterate, tangent_solve)

def tree_root(p):
    # Two equations in a tree, which the triangular shape decouples.
    def f(x):
        return {"a": x["a"] ** 2 - p["s"], "b": x["b"] * x["a"] - p["t"]}
    def solve(f, x):
        a = np.sqrt(p["s"])
        return {"a": a, "b": p["t"] / a}
    def tangent_solve(g, y):
        zero, one = np.zeros(()), np.ones(())
        col_a, col_b = g({"a": one, "b": zero}), g({"a": zero, "b": one})
        a = y["a"] / col_a["a"]
        return {"a": a, "b": (y["b"] - col_a["b"] * a) / col_b["b"]}
    return lax.custom_root(f, {"a": 1.0, "b": 1.0}, solve, tangent_solve)

def root_aux(m):
    def solve(f, x):
        x = newton(f, x)
        return x, {"residual": f(x) * 0 + m, "count": x * 0 + 3}
    return lax.custom_root(lambda x: x ** 3 - m, 2.0, solve, scalar, has_aux=True)

w2 = np.array([[0.3, -0.2], [0.1, 0.4]])
ms = np.array([1.5, 8.0, 27.0])
"""

PROGRAMS = {
    "value": "result = spd(a3, b3), general(a2, b2)",
    "jit": "result = fw.jit(spd)(a3, b3), fw.jit(general)(a2, b2)",
    "jvp": "result = fw.jvp(general, (a2, b2), (a2 + 1, b2 * 3))",
    "jvp_a": "result = fw.jvp(lambda a: spd(a, b3), (a3,), (a3 + 1,))",
    "jvp_b": "result = fw.jvp(lambda b: spd(a3, b), (b3,), (b3 + 1,))",
    "grad": "result = fw.grad(lambda a, b: (general(a, b) ** 2).sum(), (0, 1))(a2, b2)",
    "grad_cg": "result = fw.jit(fw.grad(lambda a, b: (spd(a, b) ** 2).sum(), (0, 1)))(a3, b3)",
    "grad_cg_one": "result = fw.grad(lambda a: (spd(a, b3) ** 2).sum())(a3)",
    "jacobians": "result = fw.jit(fw.jacfwd(general, (0, 1)))(a2, b2), "
    "fw.jit(fw.jacrev(general, (0, 1)))(a2, b2)",
    "hessian": "f = lambda a, b: (general(a, b) ** 3).sum(); "
    "result = fw.jit(fw.hessian(f, (0, 1)))(a2, b2)",
    "grad_grad": "g = fw.grad(lambda a: (spd(a, b3) ** 2).sum()); "
    "result = fw.grad(lambda a: (g(a) ** 2).sum())(a3)",
    "reverse_reverse": "result = fw.jit(fw.jacrev(fw.jacrev(general)))(a2, b2)",
    "linearize": "y, lin = fw.linearize(general, a2, b2); result = y, lin(a2 + 1, b2 * 2)",
    "vjp": "y, back = fw.vjp(general, a2, b2); result = y, back(b2 + 1)",
    "transpose": "result = fw.linear_transpose(lambda b: general(a2, b), b2)(b2 + 1)",
    "vmap_b": "result = fw.vmap(spd, (None, 0))(a3, many_b3), "
    "fw.vmap(general, (None, 1), 1)(a2, many_b2.T)",
    "vmap_a": "result = fw.vmap(spd, (0, None))(many_a3, b3), "
    "fw.vmap(general, (2, None))(np.moveaxis(many_a2, 0, 2), b2)",
    "vmap_both": "result = fw.vmap(spd)(many_a3, many_b3), fw.vmap(general)(many_a2, many_b2)",
    "vmap_nested": "result = fw.vmap(fw.vmap(general, (None, 0)), (0, None))(many_a2, many_b2)",
    "vmap_grad": "result = fw.vmap(fw.grad(lambda a, b: (general(a, b) ** 2).sum(), (0, 1)), "
    "(0, None))(many_a2, b2)",
    "vmap_grad_cg": "f = fw.grad(lambda a, b: (spd(a, b) ** 2).sum(), (0, 1)); "
    "result = fw.jit(fw.vmap(f))(many_a3, many_b3)",
    "grad_vmap": "result = fw.grad(lambda a, b: (fw.vmap(general, (None, 0))(a, b) ** 2).sum(), "
    "(0, 1))(a2, many_b2)",
    "grad_vmap_a": "result = fw.grad(lambda a, b: (fw.vmap(general, (0, None))(a, b) ** 2).sum(), "
    "(0, 1))(many_a2, b2)",
    "jit_vmap_jit_grad": "result = fw.jit(fw.vmap(fw.jit(fw.grad(lambda b: general(a2, b).sum()))))"
    "(many_b2)",
    "aux": "result = with_aux(a2, b2), fw.jit(with_aux)(a2, b2)",
    "aux_jvp": "result = fw.jvp(lambda a, b: with_aux(a, b)[1]['norm'], (a2, b2), (a2, b2))",
    "aux_grad": "result = fw.grad(lambda a, b: with_aux(a, b)[0].sum() + "
    "with_aux(a, b)[1]['norm'], (0, 1))(a2, b2)",
    "aux_vmap": "result = fw.vmap(with_aux, (0, None))(many_a2, b2)",
    "tree": "result = diagonal(tree, rhs), fw.grad(lambda d, b: "
    "sum(map(np.sum, fw.tree_util.tree_leaves(diagonal(d, b)))), (0, 1))(tree, rhs)",
    "tree_vmap_one_leaf": "f = lambda v: diagonal({'u': tree['u'], 'v': v}, rhs); "
    "result = fw.vmap(f)(ms)",
    "in_scan": "f = lambda a: lax.scan(lambda c, x: (general(a, c + x), c), b2, many_b2)[0]; "
    "result = f(a2), fw.jacrev(f)(a2), fw.jacfwd(f)(a2)",
    "in_cond": "f = lambda p, a: lax.cond(p, lambda a: general(a, b2), lambda a: a @ b2, a); "
    "result = fw.jacrev(f, 1)(True, a2), fw.vmap(f, (0, None))(np.array([True, False]), a2)",
    "scan_in_matvec": """
def product(a, b):
    def matvec(x):
        return lax.scan(lambda c, m: (m @ c, None), x, a)[0]
    return lax.custom_linear_solve(matvec, b, invert, invert)
rev, fwd = fw.jit(fw.jacrev(product, (0, 1))), fw.jit(fw.jacfwd(product, (0, 1)))
result = (product(many_a2, b2), rev(many_a2, b2), fwd(many_a2, b2),
          fw.vmap(product, (1, None))(np.stack([many_a2, many_a2 + 1], 1), b2))
""",
    "nested_solve": """
def outer(a, b):
    return lax.custom_linear_solve(lambda x: general(a, x), b, invert, invert)
second = fw.jit(fw.jacfwd(fw.jacrev(outer)))
result = outer(a2, b2), fw.jit(fw.jacrev(outer))(a2, b2), second(a2, b2)
""",
    "checkpoint": "result = fw.grad(lambda a: fw.checkpoint(general)(np.sin(a), b2).sum())(a2)",
    "closes_over_traced": """
def f(scale, b):
    s = np.sin(scale)
    solve = lambda matvec, b: b / (s * s)
    return lax.custom_linear_solve(lambda x: s * (s * x), b, solve, solve)
result = f(0.7, b2), fw.jit(fw.jacrev(f, (0, 1)))(0.7, b2), fw.jacfwd(fw.jacfwd(f))(0.7, b2)
""",
    "root": "result = cube_root(8.0), fw.jit(cube_root)(27.0)",
    "root_jvp": "result = fw.jvp(cube_root, (8.0,), (3.0,))",
    "root_grad": "result = fw.grad(cube_root)(8.0), fw.grad(fw.grad(cube_root))(8.0), "
    "fw.grad(fw.grad(fw.grad(cube_root)))(8.0)",
    "root_jit_grad": "result = fw.jit(fw.value_and_grad(cube_root))(8.0)",
    "root_linearize": "y, lin = fw.linearize(cube_root, 8.0); result = y, lin(2.0)",
    "root_vmap": "result = fw.vmap(cube_root)(ms), fw.vmap(fw.grad(cube_root))(ms)",
    "root_grad_vmap": "result = fw.grad(lambda m: fw.vmap(cube_root)(m).sum())(ms)",
    "root_guess": "result = fw.grad(cube_root, (0, 1))(8.0, 1.7), fw.vmap(cube_root, (None, 0))"
    "(8.0, np.array([1.5, 3.0]))",
    "root_hessian": "result = fw.hessian(cube_root)(8.0), fw.jacfwd(fw.jacfwd(cube_root))(8.0)",
    "fixed_point": "result = fixed_point(w2, b2), fw.jacrev(fixed_point, (0, 1))(w2, b2)",
    "fixed_point_forward": "result = fw.jit(fw.jacfwd(fixed_point, (0, 1)))(w2, b2)",
    "fixed_point_second": "f = lambda w: fixed_point(w, b2).sum(); "
    "result = fw.jit(fw.hessian(f))(w2), fw.jit(fw.jacrev(fw.jacrev(f)))(w2)",
    "fixed_point_vmap": "result = fw.vmap(fixed_point, (None, 0))(w2, many_b2), "
    "fw.vmap(fw.jacrev(fixed_point), (0, None))(np.stack([w2, 2 * w2]), b2)",
    "tree_root": "p = {'s': 4.0, 't': 3.0}; result = tree_root(p), fw.jacrev(tree_root)(p), "
    "fw.jacfwd(tree_root)(p), fw.vmap(tree_root)({'s': ms, 't': ms + 1})",
    "root_aux": "result = root_aux(8.0), fw.grad(lambda m: root_aux(m)[0])(8.0), "
    "fw.grad(lambda m: root_aux(m)[1]['residual'])(8.0), fw.vmap(root_aux)(ms)",
    "root_in_scan": "f = lambda m: lax.scan(lambda c, x: (cube_root(c + x * m), c), 1.0, ms)[0]; "
    "result = f(1.2), fw.grad(f)(1.2), fw.jvp(f, (1.2,), (1.0,))",
    "tangent_closes_over_traced": """
def linear(a, b):
    return lax.custom_root(lambda x: a * x - b, 1.0, lambda f, x: b / a, lambda g, y: y / a)
g = fw.grad(linear)
result = fw.grad(linear, (0, 1))(3.0, 2.0), fw.grad(g)(3.0, 2.0), fw.jit(fw.grad(g))(3.0, 2.0)
""",
    "scan_in_equation": """
def polynomial(c):
    # The root of a polynomial that a scan evaluates.
    f = lambda x: lax.scan(lambda y, k: (y * x + k, None), 0.0 * x, c)[0]
    return lax.custom_root(f, 2.0, newton, scalar)
c = np.array([1.0, 0.5, -2.0, -3.0])
second = fw.jit(fw.hessian(polynomial))
result = polynomial(c), fw.grad(polynomial)(c), fw.jacfwd(polynomial)(c), second(c)
""",
}
PROGRAMS = {name: DEFINITIONS + source for name, source in PROGRAMS.items()}


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_jax(name):
    programs_oracle.check(PROGRAMS, name, rtol=2e-4)


# ---- Against NumPy and differences


def dense(matvec, b):
    """Gauss-Jordan elimination without pivots, by Python loops: b and x are vectors."""
    n = b.shape[0]
    m = wnp.stack([matvec(row) for row in wnp.eye(n, dtype=b.dtype)], 1)
    for i in range(n):
        scale = m[i] / m[i, i]
        ratio = wnp.concatenate([m[:i, i], wnp.zeros(1, b.dtype), m[i + 1 :, i]])
        row = wnp.where(wnp.arange(n) == i, b / m[i, i], b - ratio * (b[i] / m[i, i]))
        m = wnp.where((wnp.arange(n) == i)[:, None], scale, m - ratio[:, None] * scale)
        b = row
    return b


def solve(a, b, **options):
    return lax.custom_linear_solve(lambda x: a @ x, b, dense, dense, **options)


def system(n=4, seed=0, batch=()):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(*batch, n, n)) + 4 * np.eye(n)
    return a.astype(np.float32), rng.normal(size=(*batch, n)).astype(np.float32)


def test_derivatives_against_numpy():
    a, b = system()
    inverse = np.linalg.inv(a.astype(np.float64))
    x = inverse @ b
    np.testing.assert_allclose(solve(a, b), x, rtol=1e-4, atol=1e-5)
    ct = np.arange(4.0, dtype=np.float32) - 1
    _, back = weft.vjp(solve, a, b)
    got_a, got_b = back(ct)
    np.testing.assert_allclose(got_b, inverse.T @ ct, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got_a, -np.outer(inverse.T @ ct, x), rtol=1e-4, atol=1e-5)


def test_derivatives_against_differences():
    with weft.enable_x64(True):
        a, b = (x.astype(np.float64) for x in system(3))
        test_util.check_grads(solve, (a, b), order=2)
        test_util.check_grads(weft.jit(solve), (a, b), order=1)
        z = a + 1j * a.T
        test_util.check_grads(solve, (z, b + 0j), order=1)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    "mapped_a, mapped_b",
    [(None, 0), (None, 1), (0, None), (2, None), (0, 0), (2, 1)],
)
def test_vmap_in_all_patterns(mapped_a, mapped_b, jitted):
    many_a, many_b = system(3, batch=(5,))
    a = many_a[0] if mapped_a is None else np.moveaxis(many_a, 0, mapped_a)
    b = many_b[0] if mapped_b is None else np.moveaxis(many_b, 0, mapped_b)
    f = weft.vmap(solve, (mapped_a, mapped_b))
    derivative = weft.vmap(
        weft.grad(lambda a, b: wnp.sum(solve(a, b) ** 2), (0, 1)), (mapped_a, mapped_b)
    )
    if jitted:
        f, derivative = weft.jit(f), weft.jit(derivative)
    got, (got_a, got_b) = f(a, b), derivative(a, b)
    for i in range(5):
        one_a = many_a[0 if mapped_a is None else i].astype(np.float64)
        x = np.linalg.solve(one_a, many_b[0 if mapped_b is None else i])
        np.testing.assert_allclose(got[i], x, rtol=1e-3, atol=1e-5)
        dual = np.linalg.solve(one_a.T, 2 * x)
        np.testing.assert_allclose(got_b[i], dual, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(got_a[i], -np.outer(dual, x), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("transform", [lambda f: f, weft.jit], ids=["plain", "jit"])
def test_the_transposed_system_has_closures_of_its_own(transform):
    upper = np.array([[2.0, 1.0], [0.0, 4.0]], np.float32)
    inverse, transposed = np.linalg.inv(upper), np.linalg.inv(upper.T)

    def f(b, inverse, transposed, shift):
        forward = lambda matvec, b: inverse @ b
        backward = lambda vecmat, b: transposed @ b + 0 * shift
        return lax.custom_linear_solve(lambda x: upper @ x, b, forward, backward)

    back = lambda ct, *xs: weft.vjp(lambda b: f(b, *xs), ct)[1](ct)[0]
    args = inverse, transposed, np.ones(2, np.float32)
    ct = np.array([1.0, -3.0], np.float32)
    np.testing.assert_allclose(transform(back)(ct, *args), transposed @ ct, rtol=1e-6)
    # The transpose of the transpose is the system itself.
    again = lambda ct, *xs: weft.vjp(lambda ct: back(ct, *xs), ct)[1](ct)[0]
    np.testing.assert_allclose(transform(again)(ct, *args), inverse @ ct, rtol=1e-6)


def test_vmap_over_what_the_solver_alone_closes_over():
    f = lambda steps: lax.custom_linear_solve(lambda x: 2 * x, 3.0, lambda mv, b: b / 2 + steps)
    np.testing.assert_allclose(weft.vmap(f)(np.arange(3.0, dtype=np.float32)), [1.5, 2.5, 3.5])
    # Derivatives follow from the equation, in which it does not occur.
    assert weft.jvp(f, (0.0,), (1.0,))[1] == 0


def test_only_leaves_that_depend_on_a_mapped_axis_are_mapped():
    def f(v):
        matvec = lambda x: {"u": 2 * x["u"], "v": v * x["v"]}
        invert = lambda matvec, b: {"u": b["u"] / 2, "v": b["v"] / v}
        return lax.custom_linear_solve(matvec, {"u": wnp.ones(7), "v": 1.0}, invert)

    mapped = weft.vmap(f, out_axes={"u": None, "v": 0})(np.array([1.0, 2.0, 4.0], np.float32))
    np.testing.assert_allclose(mapped["u"], np.full(7, 0.5))
    np.testing.assert_allclose(mapped["v"], [1, 0.5, 0.25])


def test_a_derivative_in_a_part_of_b():
    """jax refuses this one."""

    def f(v):
        double = lambda x: {"u": 2 * x["u"], "v": 4 * x["v"]}
        invert = lambda matvec, b: {"u": b["u"] / 2, "v": b["v"] / 4}
        return lax.custom_linear_solve(double, {"u": wnp.ones(2), "v": v}, invert, invert)["v"]

    assert weft.grad(f)(2.0) == 0.25


def test_aux_of_integers():
    def f(m):
        solve = lambda f, x: (m ** (1 / 3), {"count": wnp.int32(3), "m": m})
        return lax.custom_root(lambda x: x**3 - m, 2.0, solve, lambda g, y: y / g(1.0), True)

    root, aux = weft.vmap(f)(np.array([8.0, 27.0], np.float32))
    np.testing.assert_allclose(root, [2, 3], rtol=1e-5)
    assert aux["count"].dtype == np.int32
    value, dot, aux = weft.jvp(f, (8.0,), (1.0,), has_aux=True)
    np.testing.assert_allclose((value, dot), (2, 1 / 12), rtol=1e-5)
    assert weft.grad(lambda m: f(m)[1]["m"])(8.0) == 0


def test_rules_of_functions_that_the_solver_differentiates():
    """Such a rule may close over arrays and values of an outer trace."""

    def solved(c, a):
        @weft.custom_jvp
        def double(x):
            return 2.0 * x

        double.defjvp(lambda x, t: (double(*x), c * t[0]))

        def invert(matvec, b):
            return b / weft.jvp(matvec, (b,), (b,))[1]

        return lax.custom_linear_solve(lambda x: a * double(x), wnp.ones(3), invert)

    c = wnp.arange(3.0) + 2
    expected = 1 / (3 * np.arange(2.0, 5.0))
    np.testing.assert_allclose(solved(c, 3.0), expected, rtol=1e-6)
    np.testing.assert_allclose(weft.jit(lambda a: solved(c, a))(3.0), expected, rtol=1e-6)
    np.testing.assert_allclose(weft.jit(solved)(c, 3.0), expected, rtol=1e-6)
    mapped = weft.jit(weft.vmap(solved, (None, 0)))(c, np.full(2, 3.0, np.float32))
    np.testing.assert_allclose(mapped, [expected] * 2, rtol=1e-6)


def test_of_nothing():
    assert lax.custom_linear_solve(lambda x: x, {}, lambda matvec, b: b, symmetric=True) == {}


def test_under_disable_jit_derivatives_are_still_those_of_the_equation():
    def f(m):
        return lax.custom_linear_solve(
            lambda x: m * x, 6.0, lambda matvec, b: b / 2.0, symmetric=True
        )

    with weft.disable_jit():
        assert (f(2.0), weft.grad(f)(2.0)) == (3, -1.5)


# ---- Programs


def names(f, *args):
    return weft.make_jaxpr(f)(*args).graph.op_names()


def test_compiled_programs_have_the_solver_only():
    a, b = system(3)
    assert names(solve, a, b) == ["custom_linear_solve"]

    def products(f, *args):
        ops = weft.compiler.optimize(weft.jit(f).trace(*args).graph).op_names()
        assert "custom_linear_solve" not in ops
        return ops.count("dot_general")

    solver = products(lambda b: dense(lambda x: a @ x, b), b)
    assert products(lambda b: solve(a, b), b) == solver
    # A gradient in b is one solve of the transposed system; matvec itself is not applied.
    assert products(weft.grad(lambda b: wnp.sum(solve(a, b))), b) == solver


def test_unused_aux_is_not_computed():
    def f(b):
        def invert(matvec, b):
            return b / 2, wnp.sin(b)

        return lax.custom_linear_solve(lambda x: 2 * x, b, invert, has_aux=True)[0]

    graph = weft.compiler.optimize(weft.jit(f).trace(np.ones(3, np.float32)).graph)
    assert "sin" not in str(graph)


def test_fresh_functions_find_the_programs_of_the_ones_before():
    a, b = system(3)

    def run(b):
        cube = lambda m: lax.custom_root(
            lambda x: x**3 - m, m, lambda f, x: m ** (1 / 3), lambda g, y: y / g(1.0)
        )
        return solve(a, b), weft.grad(lambda b: solve(a, b).sum())(b), weft.grad(cube)(b[0])

    run(b)
    before = weft.compiler.cache_stats()["compiles"]
    run(b + 1)
    assert weft.compiler.cache_stats()["compiles"] == before


# ---- Roots


def test_fixed_point_against_differences():
    def contraction(p, x):
        return wnp.tanh(p["w"] @ x + p["b"])

    def fixed_point(p):
        def iterate(f, x):
            return lax.fori_loop(0, 60, lambda i, x: contraction(p, x), x)

        def tangent_solve(g, y):
            return lax.custom_linear_solve(g, y, dense, dense)

        f = lambda x: contraction(p, x) - x
        return lax.custom_root(f, wnp.zeros(3), iterate, tangent_solve)

    rng = np.random.default_rng(1)
    with weft.enable_x64(True):
        p = {"w": rng.normal(size=(3, 3)) * 0.3, "b": rng.normal(size=3)}
        test_util.check_grads(fixed_point, (p,), order=2)
        test_util.check_grads(weft.jit(fixed_point), (p,), order=1)
        many = {"w": np.stack([p["w"], p["w"].T]), "b": np.stack([p["b"], -p["b"]])}
        test_util.check_grads(weft.vmap(fixed_point), (many,), order=1)


def test_the_solver_of_a_root_is_not_differentiated():
    """A while_loop has no reverse-mode derivative, and this one ends after one step."""
    seen = []

    def once(f, x):
        seen.append(1)
        return lax.while_loop(lambda x: x != 3.0, lambda x: x * 0 + 3.0, x)

    root = lambda m: lax.custom_root(lambda x: x**2 - m, 1.0, once, lambda g, y: y / g(1.0))
    value, slope = weft.value_and_grad(root)(9.0)
    assert (value, len(seen)) == (3, 1)
    np.testing.assert_allclose(slope, 1 / 6, rtol=1e-6)


# ---- Mistakes


def matvec(x):
    return 2 * x


def halve(matvec, b):
    return b / 2


def scalar(g, y):
    return y / g(1.0)


def linear(*args, **options):
    return lax.custom_linear_solve(*args, **options)


def root(*args, **options):
    return lax.custom_root(*args, **options)


ONES = np.ones(3, np.float32)
TREE = {"a": ONES, "b": (ONES, ONES)}
LIKE_B = "[custom_linear_solve] expected {} to return a tree like b"
LIKE_GUESS = "[custom_root] expected {} to return a tree like initial_guess"
WRONG = errors.ControlFlowTypeError
SHAPES = errors.ShapeError
MISTAKES = {
    "matvec no function": (TypeError, ("[custom_linear_solve] matvec: expected a function; got 3",),
        lambda: linear(3, ONES, halve)),
    "solve no function": (TypeError, ("[custom_linear_solve] solve: expected a function",),
        lambda: linear(matvec, ONES, None)),
    "transpose_solve no function": (
        TypeError, ("[custom_linear_solve] transpose_solve: expected a function; got 'cg'",),
        lambda: linear(matvec, ONES, halve, "cg")),
    "b no array": (errors.ArgumentTypeError, ("b['k'] of custom_linear_solve", "str"),
        lambda: linear(matvec, {"k": "s"}, halve)),
    "matvec, tree": (WRONG, (LIKE_B.format("matvec ('<lambda>')"), "result: expected an array"),
        lambda: linear(lambda x: (x,), ONES, halve)),
    "matvec, shape": (
        SHAPES,
        (LIKE_B.format("matvec ('<lambda>')"), "result['b'][1]: expected float32[3], got float32"),
        lambda: linear(lambda x: {"a": x["a"], "b": (x["a"], x["a"].sum())}, TREE, halve)),
    "matvec, dtype": (WRONG, ("result: expected float32[3], got int32[3]",),
        lambda: linear(lambda x: x.astype(int), ONES, halve)),
    "solve, tree": (SHAPES, (LIKE_B.format("solve ('<lambda>')"), "expected a tuple of length 2"),
        lambda: linear(lambda x: x, TREE, lambda mv, b: {"a": b["a"], "b": b["b"][0]})),
    "solve, shape": (SHAPES, (LIKE_B.format("solve ('<lambda>')"), "got float32[2]"),
        lambda: linear(matvec, ONES, lambda mv, b: b[:2])),
    "solve, no array": (errors.ArgumentTypeError, ("for result of '<lambda>'; got str",),
        lambda: linear(matvec, ONES, lambda mv, b: "x")),
    "solve, no aux": (errors.TreeStructureError,
        ("solve ('halve') to return a pair (x, aux), as has_aux says",),
        lambda: linear(matvec, ONES, halve, has_aux=True)),
    "solve, x of a pair": (SHAPES, ("result[0]: expected float32[3], got float32[]",),
        lambda: linear(matvec, ONES, lambda mv, b: (b.sum(), b), has_aux=True)),
    "transpose_solve, shape": (SHAPES, (LIKE_B.format("transpose_solve ('<lambda>')"),),
        lambda: linear(matvec, ONES, halve, lambda mv, b: b.sum())),
    "transpose_solve of integers": (errors.DTypeError, ("expected b", "got int32[3]"),
        lambda: linear(matvec, ONES.astype(np.int32), lambda mv, b: b, lambda mv, b: b)),
    "matvec without transpose": (errors.NotImplementedRuleError, ("[sin]", "reverse-mode"),
        lambda: linear(wnp.sin, ONES, halve, halve)),
    "reverse without transpose_solve": (
        TypeError,
        ("[custom_linear_solve] expected a transpose_solve beside 'halve'", "symmetric=True"),
        lambda: weft.grad(lambda b: linear(matvec, b, halve).sum())(ONES)),
    "reverse in a closure without transpose_solve": (TypeError, ("a transpose_solve",),
        lambda: weft.grad(lambda c: linear(lambda x: c * x, ONES, halve).sum())(2.0)),
    "transpose in a closure": (TypeError, ("expected a transpose in b", "'halve'", "f32[]"),
        lambda: weft.linear_transpose(
            lambda c: linear(lambda x: c * x, ONES, halve, halve), 2.0)(ONES)),
    "transpose of aux": (TypeError, ("one of its aux",),
        lambda: weft.linear_transpose(
            lambda b: linear(matvec, b, lambda mv, b: (b / 2, b), symmetric=True, has_aux=True),
            ONES)((ONES, ONES))),
    "f no function": (TypeError, ("[custom_root] f: expected a function",),
        lambda: root(3, 1.0, halve, scalar)),
    "root's solve no function": (TypeError, ("[custom_root] solve: expected a function",),
        lambda: root(matvec, 1.0, 1.0, scalar)),
    "tangent_solve no function": (TypeError, ("[custom_root] tangent_solve: expected a function",),
        lambda: root(matvec, 1.0, lambda f, x: x, None)),
    "guess no array": (errors.ArgumentTypeError, ("initial_guess[1] of custom_root",),
        lambda: root(matvec, (1.0, "x"), lambda f, x: x, scalar)),
    "guess of integers": (errors.DTypeError, ("expected initial_guess[0]", "got int32[]"),
        lambda: root(lambda x: x, (1, 2.0), lambda f, x: x, scalar)),
    "f, tree": (WRONG, (LIKE_GUESS.format("f ('<lambda>')"), "got a tuple of length 1"),
        lambda: root(lambda x: (x,), 1.0, lambda f, x: x, scalar)),
    "f, shape": (WRONG, ("result['b'][0]: expected float32[3], got float32[1]",),
        lambda: root(lambda x: {"a": x["a"], "b": (x["a"][:1], x["a"])}, TREE, halve, scalar)),
    "root's solve, tree": (WRONG, (LIKE_GUESS.format("solve ('<lambda>')"),),
        lambda: root(lambda x: x, 1.0, lambda f, x: [x], scalar)),
    "root's solve, no aux": (errors.TreeStructureError, ("[custom_root]", "a pair (x, aux)"),
        lambda: root(lambda x: x, 1.0, lambda f, x: x, scalar, has_aux=True)),
    "tangent_solve, shape": (WRONG, (LIKE_GUESS.format("tangent_solve ('<lambda>')"),),
        lambda: root(lambda x: x, 1.0, lambda f, x: x, lambda g, y: ONES)),
    "tangent_solve, argument of g": (errors.ShapeError, ("argument x", "got float32[3]"),
        lambda: root(lambda x: x, 1.0, lambda f, x: x, lambda g, y: g(ONES))),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("jitted", [False, True])
def test_mistakes(name, jitted):
    kind, parts, call = MISTAKES[name]
    with pytest.raises(kind) as info:
        (weft.jit(call) if jitted else call)()
    message = str(info.value)
    for part in parts:
        assert part in message, message
    if isinstance(info.value, errors.WeftError):
        assert re.search(r"\n  at .*test_solve.py:\d+", message), message
