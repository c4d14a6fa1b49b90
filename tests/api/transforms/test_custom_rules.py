"""custom_jvp, custom_vjp, custom_gradient and closure_convert: values, nesting, mistakes."""

import gc
import weakref

import numpy as np
import programs_oracle
import pytest
from oracle import needs_jax

import weft
import weft.numpy as wnp
from weft import errors

# Each runs under weft and under jax (programs_oracle.py).
DEFINITIONS = """
@fw.custom_jvp
def f(x, y):
    return np.sin(x) * y

@f.defjvp
def f_jvp(primals, tangents):
    x, y = primals
    dx, dy = tangents
    return f(x, y), 3 * np.cos(x) * dx * y + np.sin(x) * dy

@fw.custom_vjp
def g(x, p):
    return {"a": np.cos(x) * p["w"], "n": p["n"] + 1}

def g_fwd(x, p):
    return g(x, p), (np.sin(x), p["w"], x)

def g_bwd(residuals, ct):
    s, w, x = residuals
    return -5 * s * w * ct["a"], {"w": np.cos(x) * ct["a"], "n": None}

g.defvjp(g_fwd, g_bwd)

def g_loss(x, w):
    return np.sum(g(x, {"w": w, "n": np.arange(3)})["a"] ** 2)

xs = np.arange(3.0) / 2 + 0.3
ys = np.linspace(1.0, 2.0, 3)
"""
PROGRAMS = {
    "value": "result = f(xs, ys), g(xs, {'w': ys, 'n': np.arange(3)})",
    "keywords": "result = fw.grad(lambda x: f(y=2.0, x=x))(0.4)",
    "jvp": "result = fw.jvp(f, (xs, ys), (ys, xs))",
    "jvp_one": "result = fw.jvp(lambda x: f(x, ys), (xs,), (ys,))",
    "grad": "result = fw.grad(lambda x, y: f(x, y).sum(), (0, 1))(xs, ys)",
    "wide_cotangent": """
h = fw.custom_vjp(lambda x, y: x * y.astype(x.dtype))
h.defvjp(lambda x, y: (x * y.astype(x.dtype), None), lambda _, ct: (ct, 2 * ct))
result = fw.grad(lambda x: h(x, x.astype("float16")))(3.0)
""",
    "grad_grad": "result = fw.grad(fw.grad(f))(0.7, 1.5)",
    "third": "result = fw.grad(fw.grad(fw.grad(f)), 1)(0.7, 1.5)",
    "hessian": "result = fw.hessian(lambda x: f(x, ys).sum())(xs)",
    "jacfwd": "result = fw.jacfwd(f, (0, 1))(xs, ys)",
    "linearize": "y, lin = fw.linearize(f, xs, ys); result = y, lin(ys, xs)",
    "vmap": "result = fw.vmap(f)(xs, ys), fw.vmap(f, (0, None))(xs, 2.0)",
    "vmap_grad": "result = fw.vmap(fw.grad(f), (0, None))(xs, 2.0)",
    "grad_vmap": "result = fw.grad(lambda x: fw.vmap(f, (0, None))(x, 2.0).sum())(xs)",
    "grad_vmap_shared": "result = fw.grad(lambda y: fw.vmap(f, (0, None))(xs, y).sum())(2.0)",
    "nested_vmap": """
m = np.arange(6.0).reshape(2, 3)
h = fw.vmap(fw.vmap(f, (0, None)), (1, 0), 1)
result = h(m, np.arange(3.0)), fw.grad(lambda m: h(m, np.arange(3.0)).sum())(m)
""",
    "jit": "result = fw.jit(fw.grad(f))(0.7, 1.5), fw.grad(fw.jit(f))(0.7, 1.5)",
    "vjp_grad": "result = fw.grad(g_loss, (0, 1))(xs, ys)",
    "vjp_jit": "result = fw.jit(fw.grad(g_loss, (0, 1)))(xs, ys)",
    "vjp_grad_grad": "h = lambda x: fw.grad(g_loss)(x, ys).sum(); result = fw.grad(h)(xs)",
    "forward_over_reverse": """
@fw.custom_vjp
def h(x):
    return np.sin(x)
h.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (3 * ct * np.cos(x),))
loss = lambda x: np.sum(h(x) * ys)
result = fw.jacfwd(fw.jacrev(loss))(xs), fw.jvp(fw.grad(loss), (xs,), (ys,))
""",
    "vjp_vmap_grad": """
w = np.arange(6.0).reshape(2, 3)
result = fw.vmap(fw.grad(g_loss, (0, 1)), (None, 0))(xs, w)
""",
    "vjp_grad_vmap": """
w = np.arange(6.0).reshape(2, 3) / 7
h = lambda x, w: fw.vmap(g_loss, (None, 0))(x, w).sum()
result = fw.grad(h, (0, 1))(xs, w), fw.jit(fw.grad(h))(xs, w)
""",
    "vjp_nested_vmap": """
w = np.arange(12.0).reshape(2, 2, 3) / 7
h = lambda x, w: fw.vmap(fw.vmap(g_loss, (None, 0)), (None, 1))(x, w).sum()
result = fw.grad(h, (0, 1))(xs, w)
""",
    "vjp_closure": """
def outer(x, scale):
    @fw.custom_vjp
    def h(x):
        return x * x
    h.defvjp(lambda x: (h(x), x), lambda x, ct: (ct * x * scale,))
    return h(x)
result = fw.jit(lambda x, s: fw.grad(outer)(x, s))(2.0, 5.0)
""",
    "closure_over_array": """
table = np.array([1.0, 2.0, 3.0])
@fw.custom_jvp
def h(x):
    return x
h.defjvp(lambda p, t: (p[0], t[0] * table.sum() + (t[0] * table)[1]))
result = fw.grad(h)(1.0), fw.jit(fw.grad(h))(1.0), fw.vmap(fw.grad(h))(xs)
""",
    "nondiff": """
from functools import partial
@partial(fw.custom_jvp, nondiff_argnums=(0, 2))
def app(fun, x, n):
    return fun(x) * n
@app.defjvp
def app_jvp(fun, n, primals, tangents):
    return app(fun, primals[0], n), 10.0 * n * tangents[0]
@partial(fw.custom_vjp, nondiff_argnums=(0,))
def vapp(fun, x):
    return fun(x)
vapp.defvjp(lambda fun, x: (fun(x), x), lambda fun, x, ct: (ct * fun(x) * 2,))
result = (fw.grad(lambda x: app(np.sin, x, 3))(1.0), fw.grad(lambda x: vapp(np.cos, x))(1.0),
          app(np.sin, 2.0, 2))
""",
    "defjvps": """
@fw.custom_jvp
def h(x, y):
    return x * y
h.defjvps(lambda t, ans, x, y: 2 * t * y, None)
@fw.custom_jvp
def k(x, y):
    return x * y
k.defjvps(lambda t, ans, x, y: 2 * t * y + 0 * ans, lambda t, ans, x, y: 3 * t * x)
result = fw.grad(h, (0, 1))(2.0, 3.0), fw.grad(k, (0, 1))(2.0, 3.0), fw.jvp(k, (1., 2.), (3., 4.))
""",
    "clip_gradient": """
@fw.custom_vjp
def clip(lo, hi, x):
    return x
clip.defvjp(lambda lo, hi, x: (x, (lo, hi)),
            lambda r, ct: (None, None, np.clip(ct, r[0], r[1])))
result = fw.vmap(fw.grad(lambda x: clip(-0.75, 0.75, np.sin(x) * 3)))(np.linspace(0, 6, 7))
""",
    "log1pexp": """
@fw.custom_jvp
def softplus(x):
    return np.log(1. + np.exp(x))
@softplus.defjvp
def rule(primals, tangents):
    x, = primals
    t, = tangents
    return softplus(x), (1 - 1 / (1 + np.exp(x))) * t
result = fw.grad(softplus)(100.), fw.jit(fw.vmap(fw.grad(softplus)))(np.array([-3., 100.]))
""",
    "integer_input": """
@fw.custom_jvp
def h(x, n):
    return x * n
h.defjvp(lambda p, t: (h(*p), t[0] * 7.0 * p[1]))
result = fw.grad(h)(2.0, 3), fw.jvp(lambda x: h(x, np.arange(2)), (2.0,), (1.0,))
""",
    "integer_input_of_vjp": """
@fw.custom_vjp
def h(x, n):
    return x * n
h.defvjp(lambda x, n: (h(x, n), n),
         lambda n, ct: (ct * n * 2, onp.zeros(np.shape(n), fw.dtypes.float0)))
result = fw.grad(h)(2.0, 3)
""",
    "rule_calls_jit": """
@fw.custom_jvp
def h(x):
    return x ** 3
h.defjvp(fw.jit(lambda p, t: (h(p[0]), t[0] * np.cos(p[0]))))
result = fw.grad(h)(2.0), fw.grad(fw.grad(h))(2.0)
""",
    "custom_inside_custom": """
@fw.custom_vjp
def inner(x):
    return x ** 2
inner.defvjp(lambda x: (inner(x), x), lambda x, ct: (ct * 11 * x,))
@fw.custom_vjp
def outer(x):
    return inner(x) * 2
outer.defvjp(lambda x: (outer(x), fw.grad(inner)(x)), lambda d, ct: (ct * d,))
result = fw.grad(outer)(3.0), fw.grad(inner)(3.0), fw.grad(lambda x: outer(inner(x)))(3.0)
""",
    "custom_gradient": """
@fw.custom_gradient
def h(x):
    return x ** 2, lambda ct: (ct * x,)
@fw.custom_gradient
def k(x, y):
    return x * y, lambda ct: (y, ct * 2)
result = (h(3.0), fw.grad(h)(3.0), fw.grad(fw.grad(h))(3.0), k(3.0, 4.0),
          fw.grad(k, (0, 1))(3.0, 4.0), fw.vmap(fw.grad(h))(xs), fw.jit(fw.grad(h))(2.0))
""",
    "closure_convert": """
def minimize(objective, x0):
    converted, values = fw.closure_convert(objective, x0)
    return solve(converted, x0, *values)
from functools import partial
@partial(fw.custom_vjp, nondiff_argnums=(0,))
def solve(objective, x0, *values):
    return x0 - 0.1 * fw.grad(objective)(x0, *values)
def fwd(objective, x0, *values):
    y = solve(objective, x0, *values)
    return y, (y, values)
def bwd(objective, res, ct):
    y, values = res
    return (ct, *(7 * ct * v for v in values))
solve.defvjp(fwd, bwd)
result = fw.grad(lambda a: minimize(lambda x: (x - a) ** 2, 1.0))(3.0)
""",
    "stop_gradient": "result = fw.grad(lambda x: x * lax.stop_gradient(f(x, 2.0)))(0.5)",
    "under_checkpoint": """
h = fw.checkpoint(lambda x: f(np.sin(x), ys).sum() + g_loss(x, ys))
result = fw.grad(h)(xs), fw.jit(fw.grad(h))(xs)
""",
    "tree_arguments": """
@fw.custom_jvp
def h(p, q):
    return {"s": p["a"] * q[0], "t": (q[1],)}
@h.defjvp
def rule(primals, tangents):
    (p, q), (dp, dq) = primals, tangents
    return h(p, q), {"s": dp["a"] * 3 + dq[0], "t": (dq[1] * 2,)}
result = fw.jvp(h, ({"a": 2.0}, (3.0, 4.0)), ({"a": 1.0}, (10.0, 100.0)))
""",
}
PROGRAMS = {name: DEFINITIONS + source for name, source in PROGRAMS.items()}


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_jax(name):
    programs_oracle.check(PROGRAMS, name)


@weft.custom_jvp
def scaled(x):
    return wnp.sin(x)


@scaled.defjvp
def _(primals, tangents):
    return scaled(*primals), 2 * wnp.cos(primals[0]) * tangents[0]


@weft.custom_vjp
def reverse_only(x):
    return wnp.sin(x)


reverse_only.defvjp(lambda x: (reverse_only(x), x), lambda x, ct: (3 * wnp.cos(x) * ct,))


def test_rules_run_only_for_derivatives():
    calls = []

    @weft.custom_vjp
    def f(x):
        return x * 2

    def fwd(x):
        calls.append("fwd")
        return f(x), x

    def bwd(x, ct):
        calls.append("bwd")
        return (ct * 5,)

    f.defvjp(fwd, bwd)
    assert f(3.0) == 6 and weft.jit(f)(3.0) == 6 and not calls
    np.testing.assert_array_equal(weft.vmap(f)(np.arange(3.0)), [0, 2, 4])
    assert not calls
    assert weft.grad(f)(1.0) == 5
    assert calls == ["fwd", "bwd"]


def test_rules_are_looked_at_again_at_every_call():
    scale = 2.0

    @weft.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda p, t: (p[0], t[0] * scale))
    assert weft.grad(f)(1.0) == 2
    scale = 3.0
    assert weft.grad(f)(1.0) == 3


def test_numbers_among_residuals_are_known_to_the_backward_rule():
    @weft.custom_vjp
    def f(x):
        return 2 * x

    f.defvjp(lambda x: (f(x), (True, 3, x)), lambda r, ct: (ct * r[1] if r[0] else None,))
    assert weft.grad(f)(1.0) == 3 and weft.jit(weft.grad(f))(1.0) == 3
    assert (weft.vmap(weft.grad(f))(wnp.ones(2)) == 3).all()


def test_python_control_flow_in_the_function():
    @weft.custom_jvp
    def f(x):
        return x if x > 0 else -x

    f.defjvp(lambda p, t: (f(*p) if False else wnp.abs(p[0]), 7 * t[0]))
    assert weft.grad(f)(-2.0) == 7 and f(-2.0) == 2


def test_symbolic_zeros_of_a_jvp_rule():
    seen = []

    @weft.custom_jvp
    def f(x, y, n):
        return x * y

    def rule(primals, tangents):
        seen.append([type(t).__name__ for t in tangents])
        dx, dy, _ = tangents
        return f(*primals), 5 * dx if isinstance(dy, weft.custom_derivatives.SymbolicZero) else dx

    f.defjvp(rule, symbolic_zeros=True)
    assert weft.grad(lambda x: f(x, 2.0, 3))(1.0) == 5
    assert seen == [["Tracer", "SymbolicZero", "SymbolicZero"]]


def test_custom_gradient_with_an_integer_result():
    @weft.custom_gradient
    def f(x):
        def vjp(ct):
            assert ct[1].dtype == weft.dtypes.float0 and ct[1].shape == (3,)
            return 3 * ct[0]

        return (x * 2, wnp.round(x).astype("int32")), vjp

    loss = lambda x: wnp.sum(f(x)[0])
    for g in (weft.grad(loss), weft.jit(weft.grad(loss)), weft.grad(weft.jit(loss))):
        assert g(wnp.ones(3)).tolist() == [3, 3, 3]


def test_symbolic_zeros_of_a_vjp_rule():
    seen = []

    @weft.custom_vjp
    def f(x, y):
        return x * y, x + y

    def fwd(x, y):
        seen.append((x.perturbed, y.perturbed))
        return (x.value * y.value, x.value + y.value), (x.value, y.value)

    def bwd(res, cts):
        seen.append([type(ct).__name__ for ct in cts])
        return 10 * cts[0] * res[1], None

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    assert weft.grad(lambda x: f(x, 2.0)[0])(1.0) == 20
    assert seen == [(True, False), ["Tracer", "SymbolicZero"]]


def test_forward_mode_of_a_vjp_rule_names_the_function():
    for transform in (
        lambda: weft.jvp(reverse_only, (1.0,), (1.0,)),
        lambda: weft.jacfwd(reverse_only)(1.0),
        lambda: weft.linearize(reverse_only, 1.0)[1](1.0),
        lambda: weft.jit(lambda x: weft.jvp(reverse_only, (x,), (x,)))(1.0),
    ):
        with pytest.raises(TypeError, match=r"(?s)'reverse_only'.*custom_jvp.*test_custom_rules"):
            transform()


def test_derivatives_by_closed_over_values_are_refused():
    def f(x, y):
        @weft.custom_jvp
        def inner(x):
            return x * y

        inner.defjvp(lambda p, t: (inner(*p), t[0]))
        return inner(x)

    assert weft.grad(f)(2.0, 3.0) == 1
    with pytest.raises(
        errors.UnexpectedTracerError, match=r"(?s)'inner'.*closes over.*closure_convert"
    ):
        weft.grad(f, (0, 1))(2.0, 3.0)


@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit], ids=["plain", "jit"])
def test_closed_over_values_are_refused_without_traced_arguments(wrap):
    """The derivative of such a call is not that of the function's code, which has another rule."""

    def f(x):
        inner = weft.custom_jvp(lambda y: x * y)
        inner.defjvp(lambda p, t: (inner(*p), 7 * t[0]))
        return inner(2.0)

    def g(x):
        inner = weft.custom_vjp(lambda y: x * y)
        inner.defvjp(lambda y: (inner(y), None), lambda _, ct: (7 * ct,))
        return inner(2.0)

    assert wrap(f)(3.0) == wrap(g)(3.0) == 6
    np.testing.assert_array_equal(weft.vmap(wrap(f))(wnp.arange(3.0)), [0, 2, 4])
    for transform in (
        lambda: weft.grad(wrap(f))(3.0),
        lambda: weft.jvp(wrap(f), (3.0,), (1.0,)),
        lambda: weft.grad(wrap(g))(3.0),
    ):
        with pytest.raises(errors.UnexpectedTracerError, match="closes over"):
            transform()


def test_rules_close_over_what_the_function_closes_over():
    """Also where the trace of that value, of vmap or jit here, has ended before the rule runs."""

    def by_jvp(x, z):
        inner = weft.custom_jvp(lambda y: x * wnp.sin(y))
        inner.defjvp(lambda p, t: (inner(*p), 2 * x * wnp.cos(p[0]) * t[0]))
        return inner(z)

    def by_vjp(x, z):
        inner = weft.custom_vjp(lambda y: x * wnp.sin(y))
        inner.defvjp(lambda y: (inner(y), (x, y)), lambda r, ct: (2 * r[0] * wnp.cos(r[1]) * ct,))
        return inner(z)

    xs = np.array([1.0, 2.0, 3.0], np.float32)
    for f in (by_jvp, by_vjp):

        def lanes(z, f=f):
            return weft.vmap(lambda x: f(x, z))(xs).sum()

        def nested(z, f=f):
            return weft.vmap(lambda x: weft.vmap(lambda y: f(x + y, z))(xs))(xs).sum()

        def called(z, f=f):
            return weft.jit(lambda x, z: f(x * x, z))(3.0, z)

        for function, scale in ((lanes, 6), (nested, 36), (called, 9)):
            np.testing.assert_allclose(function(0.5), scale * np.sin(0.5), rtol=1e-6)
            for grad in (weft.grad(function), weft.jit(weft.grad(function))):
                np.testing.assert_allclose(grad(0.5), 2 * scale * np.cos(0.5), rtol=1e-6)
    np.testing.assert_allclose(
        weft.jvp(lambda z: weft.vmap(lambda x: by_jvp(x, z))(xs), (0.5,), (1.0,))[1],
        2 * xs * np.cos(0.5),
        rtol=1e-6,
    )
    second = weft.grad(weft.grad(lambda z: weft.vmap(lambda x: by_jvp(x, z))(xs).sum()))
    np.testing.assert_allclose(second(0.5), -2 * 6 * np.sin(0.5), rtol=1e-6)


def test_a_rule_with_a_decision_closes_over_a_value():
    """Un-jitted, the residual that decides is known though the function closes over an array."""
    scale = wnp.array(3.0)

    def f(x, factor):
        inner = weft.custom_vjp(lambda y: y * scale * factor)
        inner.defvjp(
            lambda y: (inner(y), y * scale), lambda r, ct: (ct * 10 if r > 0 else ct * 20,)
        )
        return inner(x)

    assert weft.grad(f)(2.0, 5.0) == 10
    assert weft.grad(f)(-2.0, 5.0) == 20


def test_a_rule_that_alone_closes_over_an_ended_trace_is_refused():
    def f(x, z):
        inner = weft.custom_jvp(lambda y: y * y)
        inner.defjvp(lambda p, t: (inner(*p), x * t[0]))
        return inner(z)

    with pytest.raises(errors.UnexpectedTracerError):
        weft.grad(lambda z: weft.vmap(lambda x: f(x, z))(wnp.arange(3.0)).sum())(0.5)


def test_vmap_leaves_a_call_that_lanes_share_as_one():
    by_jvp = weft.custom_jvp(lambda x: weft.lax.psum(x, "i"))
    by_jvp.defjvp(lambda p, t: (by_jvp(*p), 5 * t[0]))
    by_vjp = weft.custom_vjp(lambda x: weft.lax.psum(x, "i"))
    by_vjp.defvjp(lambda x: (by_vjp(x), x), lambda r, ct: (5 * ct,))
    for f in (by_jvp, by_vjp):
        shared = weft.vmap(lambda _, x, f=f: f(x), in_axes=(0, None), out_axes=None, axis_name="i")
        lanes = np.zeros(4, np.float32)
        assert shared(lanes, 2.0) == 8
        assert weft.grad(shared, 1)(lanes, 2.0) == 5
        assert weft.jit(weft.grad(shared, 1))(lanes, 2.0) == 5
        mapped = weft.vmap(lambda x, f=f: f(x) + weft.lax.axis_index("i"), axis_name="i")
        np.testing.assert_array_equal(mapped(np.ones(4, np.float32)), [4, 5, 6, 7])
        own = weft.vmap(
            lambda _, x, f=f: f(x) * weft.lax.axis_index("i"), in_axes=(0, None), axis_name="i"
        )
        np.testing.assert_array_equal(own(lanes, 2.0), [0, 8, 16, 24])
        assert weft.grad(lambda x, own=own: own(np.zeros(4, np.float32), x).sum())(2.0) == 30


def test_a_symbolic_zero_of_another_shape_is_refused():
    f = weft.custom_vjp(lambda x, y: (x, y))
    f.defvjp(lambda x, y: (f(x.value, y.value), None), lambda _, ct: ct[::-1], symbolic_zeros=True)
    with pytest.raises(ValueError, match=r"cotangent of.*float32\[1\], or None; got SymbolicZero"):
        weft.grad(lambda x, y: f(x, y)[0].sum(), (0, 1))(wnp.ones(1), wnp.ones(2))


def test_rules_that_close_over_differentiated_values():
    def outer(x, scale):
        @weft.custom_jvp
        def h(x):
            return x * x

        h.defjvp(lambda p, t: (p[0] * p[0], t[0] * p[0] * scale * scale))
        return weft.grad(h)(x)

    assert outer(2.0, 5.0) == 50
    assert weft.grad(outer, (0, 1))(2.0, 5.0) == (25, 20)


def rule(fun, jvp):
    f = weft.custom_jvp(fun)
    f.defjvp(jvp)
    return lambda *args: weft.jvp(f, args, args)


def vjp_rule(fun, fwd, bwd):
    f = weft.custom_vjp(fun)
    f.defvjp(fwd, bwd)
    return lambda *args: weft.vjp(f, *args)[1](f(*args))


ARRAY = np.ones(3, "f")
MISTAKES = {
    "no_rule": (lambda: weft.custom_jvp(wnp.sin)(1.0), AttributeError, "sin.*defjvp"),
    "no_vjp_rule": (lambda: weft.custom_vjp(wnp.sin)(1.0), AttributeError, "sin.*defvjp"),
    "not_a_function": (lambda: weft.custom_jvp(3), TypeError, "custom_jvp expected a function"),
    "rule_is_no_function": (lambda: scaled.defjvp(3), TypeError, "expected a function"),
    "jvp_no_pair": (
        lambda: rule(lambda x: x, lambda p, t: t[0])(ARRAY),
        errors.TreeStructureError,
        "the jvp rule of '<lambda>'.*pair",
    ),
    "jvp_value_tree": (
        lambda: rule(lambda x: x, lambda p, t: ((p[0], p[0]), t[0]))(ARRAY),
        errors.TreeStructureError,
        "expected the result of '<lambda>'",
    ),
    "jvp_tangent_tree": (
        lambda: rule(lambda x: x, lambda p, t: (p[0], [t[0]]))(ARRAY),
        errors.TreeStructureError,
        "a tangent of the same structure",
    ),
    "jvp_value_shape": (
        lambda: rule(lambda x: {"r": x}, lambda p, t: ({"r": p[0][:2]}, {"r": t[0]}))(ARRAY),
        errors.ShapeError,
        r"result\['r'\] of the jvp rule.*float32\[3\].*float32\[2\]",
    ),
    "jvp_tangent_shape": (
        lambda: rule(lambda x: x, lambda p, t: (p[0], t[0][:2]))(ARRAY),
        errors.ShapeError,
        r"the tangent of result.*float32\[3\].*float32\[2\]",
    ),
    "jvp_tangent_dtype": (
        lambda: rule(lambda x: x, lambda p, t: (p[0], t[0].astype("float16")))(ARRAY),
        errors.DTypeError,
        r"float32\[3\].*float16\[3\]",
    ),
    "argument": (
        lambda: weft.grad(lambda y: scaled({"a": y, "b": "text"}))(1.0),
        errors.ArgumentTypeError,
        r"argument x\['b'\] of 'scaled'.*str",
    ),
    "nondiff_argnums": (
        lambda: weft.custom_jvp(lambda x: x, nondiff_argnums=(3,)).__call__(1.0),
        AttributeError,
        "defjvp",
    ),
    "nondiff_argnames": (
        lambda: weft.custom_jvp(lambda x: x, nondiff_argnames=("z",)),
        errors.ArgumentTypeError,
        r"parameters of '<lambda>' \(x\); got 'z'",
    ),
    "vjp_no_pair": (
        lambda: vjp_rule(lambda x: x, lambda x: x, lambda r, ct: (ct,))(ARRAY),
        errors.TreeStructureError,
        "the forward rule of '<lambda>'.*pair",
    ),
    "vjp_value_tree": (
        lambda: vjp_rule(lambda x: x, lambda x: ([x], None), lambda r, ct: (ct,))(ARRAY),
        errors.TreeStructureError,
        "expected the result of '<lambda>'",
    ),
    "vjp_residual": (
        lambda: vjp_rule(lambda x: x, lambda x: (x, {"r": "no"}), lambda r, ct: (ct,))(ARRAY),
        errors.ArgumentTypeError,
        r"residuals\['r'\] of the forward rule",
    ),
    "vjp_count": (
        lambda: vjp_rule(lambda x: x, lambda x: (x, 1.0), lambda r, ct: (ct, ct))(ARRAY),
        errors.TreeStructureError,
        "the backward rule.*a tuple of 1.*a tuple of 2",
    ),
    "vjp_not_a_tuple": (
        lambda: vjp_rule(lambda x: x, lambda x: (x, 1.0), lambda r, ct: ct)(ARRAY),
        errors.TreeStructureError,
        r"a tuple of 1.*Tracer\n  Write `return \(cotangent,\)`",
    ),
    "vjp_tree": (
        lambda: vjp_rule(lambda x: x["a"], lambda x: (x["a"], 1.0), lambda r, ct: ({"b": ct},))(
            {"a": ARRAY}
        ),
        errors.TreeStructureError,
        "argument 0 of '<lambda>'",
    ),
    "vjp_shape": (
        lambda: vjp_rule(lambda x: x, lambda x: (x, 1.0), lambda r, ct: (ct.sum(),))(ARRAY),
        errors.ShapeError,
        r"the cotangent of argument x of '<lambda>'.*float32\[3\].*float32\[\]",
    ),
    "vjp_dtype": (
        lambda: vjp_rule(lambda x: x, lambda x: (x, 1.0), lambda r, ct: (ct.astype("complex64"),))(
            ARRAY
        ),
        errors.DTypeError,
        r"float32\[3\].*complex64\[3\]",
    ),
    "by_name_only": (
        lambda: weft.grad(lambda y: KEYWORD_ONLY(x=y))(1.0),
        errors.ArgumentTypeError,
        "positions; got x",
    ),
    "defjvps_count": (
        lambda: defjvps_of_two(1.0),
        errors.ArgumentTypeError,
        "one rule per argument of '<lambda>', 1; got 2",
    ),
}
KEYWORD_ONLY = weft.custom_jvp(lambda *, x: x)
KEYWORD_ONLY.defjvp(lambda p, t: (p, t))


def defjvps_of_two(x):
    f = weft.custom_jvp(lambda x: x)
    f.defjvps(None, None)
    return weft.grad(f)(x)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=f"(?s){message}"):
        call()


@pytest.mark.parametrize("kind", [weft.custom_jvp, weft.custom_vjp])
def test_a_function_with_rules_shows_its_name(kind):
    assert repr(kind(wnp.sin)) == f"<{kind.__name__} function sin>"


def test_mistakes_name_the_line():
    with pytest.raises(errors.ShapeError, match=r"at .*test_custom_rules\.py:\d+"):
        rule(lambda x: x, lambda p, t: (p[0], t[0][:2]))(ARRAY)


def test_a_rule_that_mixes_values_and_tangents():
    @weft.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda p, t: (p[0] + 0 * t[0], t[0]))
    assert weft.jvp(f, (1.0,), (2.0,)) == (1, 2)
    with pytest.raises(NotImplementedError, match="(?s)rule of 'f'.*without the tangents"):
        weft.grad(f)(1.0)


def test_traced_arguments_of_nondiff_argnums_are_constants():
    """Also where the rule runs after the trace that they belong to, as under a vmap."""
    scale = weft.custom_jvp(lambda by, x: by["a"] * x, nondiff_argnums=(0,))
    scale.defjvp(lambda by, p, t: (scale(by, *p), 10 * by["a"] * t[0]))

    def f(a, x):
        return scale({"a": a}, x)

    assert weft.grad(f, (0, 1))(2.0, 3.0) == (0, 20)
    assert weft.grad(lambda x: f(x, x))(2.0) == 20
    assert weft.grad(lambda a: weft.grad(f, 1)(a, 2.0))(3.0) == 0
    xs = wnp.arange(3.0)
    assert weft.vmap(weft.grad(f, 1))(xs, xs).tolist() == [0, 10, 20]
    for wrap in (lambda g: g, weft.jit):
        assert wrap(weft.grad(lambda x: weft.vmap(f, (0, None))(xs, x).sum()))(2.0) == 30
        assert weft.grad(wrap(lambda x: weft.vmap(f, (0, None))(xs, x).sum()))(2.0) == 30
    # Which arguments are traced is part of what calls of a kept rule share.
    g = weft.custom_jvp(lambda a, b, x: a * x, nondiff_argnums=(0, 1))
    g.defjvp(lambda a, b, p, t: (g(a, b, *p), (a - b) * t[0]))
    assert weft.grad(lambda x: g(x, 5.0, x))(2.0) == -3
    assert weft.grad(lambda x: g(5.0, x, x))(2.0) == 3


def test_methods_and_partial_application():
    class Model:
        @weft.custom_jvp
        def apply(self, x):
            return x * 2

        apply = weft.custom_jvp(apply.fun, nondiff_argnums=(0,))

        @apply.defjvp
        def _rule(self, primals, tangents):
            return self.apply(*primals), 9 * tangents[0]

    assert weft.grad(Model().apply)(1.0) == 9


def test_what_rules_hold_is_freed():
    def run():
        table = wnp.arange(4.0)
        watch = weakref.ref(table)

        @weft.custom_jvp
        def f(x):
            return x

        f.defjvp(lambda p, t: (p[0], t[0] * table.sum()))
        assert weft.grad(f)(1.0) == 6
        return watch

    watch = run()
    gc.collect()
    assert watch() is None


def test_data_dependent_loops_do_not_compile_each_time():
    def f(x, n):
        for _ in range(n):
            x = scaled(x)
        return x

    for n in range(1, 6):
        weft.grad(f)(0.3, n)
    before = weft._core.cache_stats()["eager_misses"]
    for n in range(6, 12):
        weft.grad(f)(0.3, n)
    assert weft._core.cache_stats()["eager_misses"] - before <= 6


def slope_by_value(ask):
    """A function with a jvp rule that is 2 or 3, by the value of its argument."""
    f = weft.custom_jvp(lambda x: x * 1.0)
    f.defjvp(lambda p, t: (p[0], (2.0 if ask(p[0]) else 3.0) * t[0]))
    return f


@pytest.mark.parametrize("ask", [lambda x: x > 0, lambda x: int(x) == 1, lambda x: float(x) > 0])
def test_a_rule_has_values_where_nothing_is_jitted(ask):
    f = slope_by_value(ask)
    assert [float(weft.grad(f)(x)) for x in (1.0, -1.0, 1.0)] == [2, 3, 2]
    assert float(weft.grad(lambda x: f(x) + f(-x))(1.0)) == -1
    assert float(weft.jvp(f, (-1.0,), (1.0,))[1]) == 3
    assert float(weft.vjp(f, 1.0)[1](1.0)[0]) == 2
    assert np.asarray(weft.jacrev(lambda x: f(x[0]) * x)(wnp.ones(2))).tolist() == [[3, 0], [2, 1]]
    made_anew = weft.grad(lambda x: slope_by_value(ask)(x * 2))
    assert [float(made_anew(x)) for x in (0.5, -1.0)] == [4, 6]
    for transform in (weft.jit, weft.vmap):
        with pytest.raises(errors.ConcretizationTypeError):
            transform(weft.grad(f))(wnp.ones(() if transform is weft.jit else 2))


def test_a_backward_rule_has_residuals_where_nothing_is_jitted():
    f = weft.custom_vjp(lambda x: x * 1.0)
    f.defvjp(lambda x: (x, x), lambda r, ct: ((2.0 if r > 0 else 3.0) * ct,))
    assert float(weft.vjp(f, -1.0)[1](1.0)[0]) == 3  # found at the call of the pullback
    assert [float(weft.grad(f)(x)) for x in (1.0, -1.0)] == [2, 3]
    f.defvjp(lambda x: (x, float(x)), lambda r, ct: (r * ct,))
    assert [float(weft.grad(f)(x)) for x in (1.0, -1.0)] == [1, -1]
    with pytest.raises(errors.ConcretizationTypeError):
        weft.jit(weft.grad(f))(1.0)


def _with_defaults(kind):
    def scaled(x, a=2.0, b=3.0, *, exact=True):
        return x * a + b

    f = kind(scaled)
    if kind is weft.custom_jvp:
        f.defjvp(lambda p, t: (scaled(*p), t[0] * p[1] * 10 + t[1] * p[0] + t[2] * 100))
    else:
        f.defvjp(
            lambda x, a, b: (scaled(x, a, b), (x, a)),
            lambda r, ct: (ct * r[1] * 10, ct * r[0], ct * 100),
        )
    return f


@pytest.mark.parametrize("kind", [weft.custom_jvp, weft.custom_vjp])
def test_keywords_behind_defaults_that_are_left_out(kind):
    f = _with_defaults(kind)
    for call, value, slope in [
        (lambda x: f(x), 5, 20),
        (lambda x: f(x, b=5.0), 7, 20),
        (lambda x: f(x, 4.0), 7, 40),
        (lambda x: f(b=1.0, x=x), 3, 20),
        (lambda x: f(x, b=1.0, a=3.0), 4, 30),
        (lambda b: f(1.0, b=b), 3, 100),
    ]:
        for transform in (lambda g: g, weft.jit):
            found = transform(weft.value_and_grad(call))(1.0)
            assert [float(each) for each in found] == [value, slope]
    with pytest.raises(errors.ArgumentTypeError, match="positions; got exact"):
        f(1.0, exact=False)
    for wrong in (lambda: f(), lambda: f(1.0, x=2.0), lambda: f(1.0, c=2.0)):
        with pytest.raises(errors.ArgumentTypeError, match="call of 'scaled'"):
            wrong()


def test_every_kind_of_parameter_of_a_custom_rule():
    f = weft.custom_jvp(lambda x, *others: x * sum(others))
    f.defjvp(lambda p, t: (f(*p), t[0] * float(len(p))))
    assert [float(x) for x in weft.value_and_grad(lambda x: f(x, 2.0, 3.0))(2.0)] == [10, 3]
    g = weft.custom_jvp(lambda x, n, c=3.0: x * n * c, nondiff_argnums=(1,))
    g.defjvp(lambda n, p, t: (p[0] * n * p[1], t[0] * 100.0 * n))
    assert [float(x) for x in weft.value_and_grad(lambda x: g(x, c=1.0, n=2))(2.0)] == [4, 200]
    h = weft.custom_jvp(lambda x, /, **named: x * named["a"])
    h.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(errors.ArgumentTypeError, match="positions; got a, by name only"):
        h(1.0, a=2.0)


def test_forward_mode_through_a_vjp_rule_fails_where_its_tangent_is_needed():
    f = weft.custom_vjp(wnp.sin)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * wnp.cos(x),))

    def both(x):
        return weft.jvp(f, (x,), (x,))

    np.testing.assert_allclose(weft.jit(lambda x: both(x)[0])(2.0), np.sin(2), rtol=1e-6)
    assert [t.shape for t in weft.eval_shape(both, 2.0)] == [(), ()]
    for g in (both, weft.jit(both), weft.jit(lambda x: both(x)[1]), weft.jacfwd(f)):
        with pytest.raises(TypeError, match="expected reverse mode"):
            g(2.0)
