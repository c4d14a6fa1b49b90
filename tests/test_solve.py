"""custom_linear_solve and custom_root: derivatives, batching, against jax and NumPy, and mistakes."""

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
        return x, {"residual": f(x) * 0 + m, "count": np.int32(3)}
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
    "grad_cg": "result = fw.grad(lambda a, b: (spd(a, b) ** 2).sum(), (0, 1))(a3, b3)",
    "jit_grad_cg": "result = fw.jit(fw.grad(lambda a: (spd(a, b3) ** 2).sum()))(a3)",
    "jacobians": "result = fw.jacfwd(general, (0, 1))(a2, b2), fw.jacrev(general, (0, 1))(a2, b2)",
    "hessian": "result = fw.hessian(lambda a, b: (general(a, b) ** 3).sum(), (0, 1))(a2, b2)",
    "grad_grad": "g = fw.grad(lambda a: (spd(a, b3) ** 2).sum()); "
    "result = fw.grad(lambda a: (g(a) ** 2).sum())(a3)",
    "reverse_reverse": "j = fw.jacrev(general); result = fw.jacrev(j)(a2, b2)",
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
    "vmap_grad_cg": "result = fw.vmap(fw.grad(lambda a, b: (spd(a, b) ** 2).sum(), (0, 1)))"
    "(many_a3, many_b3)",
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
    "tree_part": "result = fw.grad(lambda v: diagonal(tree, {'u': rhs['u'], 'v': v})['v'])(2.0)",
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
result = (product(many_a2, b2), fw.jacrev(product, (0, 1))(many_a2, b2),
          fw.jacfwd(product, (0, 1))(many_a2, b2), fw.vmap(product, (1, None))(
              np.stack([many_a2, many_a2 + 1], 1), b2))
""",
    "nested_solve": """
def outer(a, b):
    return lax.custom_linear_solve(lambda x: general(a, x), b, invert, invert)
result = outer(a2, b2), fw.jacrev(outer)(a2, b2), fw.jacfwd(fw.jacrev(outer))(a2, b2)
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
    "fixed_point_second": "f = lambda w: fixed_point(w, b2).sum(); result = fw.hessian(f)(w2), "
    "fw.jacrev(fw.jacrev(f))(w2)",
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
result = polynomial(c), fw.grad(polynomial)(c), fw.jacfwd(polynomial)(c), fw.hessian(polynomial)(c)
""",
}
PROGRAMS = {name: DEFINITIONS + source for name, source in PROGRAMS.items()}


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_jax(name):
    programs_oracle.check(PROGRAMS, name, rtol=2e-4)
