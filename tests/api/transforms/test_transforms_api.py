"""grad, jvp, vjp, linearize, vmap and their compositions through the public API."""

import gc
import math
import sys
import weakref

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import errors, nn
from weft.ad_checkpoint import checkpoint_name
from weft.test_util import check_grads


def net(params, x):
    for w, b in params:
        x = wnp.tanh(x @ w + b)
    return wnp.mean(x**2)


RNG = np.random.default_rng(0)
PARAMS = [(RNG.standard_normal((4, 4)).astype("f"), np.zeros(4, "f")) for _ in range(3)]
X = RNG.standard_normal((5, 4)).astype("f")
X0 = X[0]


def close(a, b, rtol=1e-5):
    la, ta = weft.tree.flatten(a)
    lb, tb = weft.tree.flatten(b)
    assert ta == tb
    for x, y in zip(la, lb, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=1e-6)


FUNCTIONS = {
    "sin_of_square": (lambda x: wnp.sin(x**2), (np.float32(0.7),)),
    "net": (lambda x: net(PARAMS, x), (X,)),
    "softmax": (lambda x: nn.softmax(x) * wnp.arange(4.0), (X,)),
    "logsumexp": (lambda x: nn.logsumexp(x, axis=1), (X,)),
    "gelu": (nn.gelu, (X,)),
    "softplus": (nn.softplus, (X,)),
    "two": (lambda x, y: (x * wnp.cos(y), wnp.exp(x) / (2 + y**2)), (X, X[:, ::-1] + 0.3)),
    "tree": (lambda p: {"r": p["a"] @ p["b"].T, "s": wnp.sum(p["a"])}, ({"a": X, "b": X + 1},)),
    "slices": (lambda x: x[1:, 0] * x[:-1, 2] + x[3, 1], (X,)),
    "calls": (lambda x: weft.jit(lambda y: wnp.sin(y) * x)(x * 2), (X,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_differences(name):
    f, args = FUNCTIONS[name]
    with weft.enable_x64(True):
        wide = weft.tree.map(lambda x: np.asarray(x, np.float64), args)
        check_grads(f, wide, order=2)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jit_agrees(name):
    f, args = FUNCTIONS[name]

    def both(*args):
        value, pull = weft.vjp(f, *args)
        return value, pull(weft.tree.map(wnp.ones_like, value))

    close(both(*args), weft.jit(both)(*args))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_is_a_loop(name):
    f, args = FUNCTIONS[name]
    stacked = weft.tree.map(lambda x: np.stack([x, x * 0.5, -x]), args)
    lanes = [f(*weft.tree.map(lambda x, i=i: x[i], stacked)) for i in range(3)]
    expected = weft.tree.map(lambda *xs: np.stack([np.asarray(x) for x in xs]), *lanes)
    close(weft.vmap(f)(*stacked), expected)
    close(weft.jit(weft.vmap(f))(*stacked), expected)
    last = weft.vmap(f, out_axes=-1)(*stacked)
    close(weft.tree.map(lambda x: np.moveaxis(np.asarray(x), -1, 0), last), expected)


def test_an_argument_as_result_where_ops_run_one_by_one():
    def f(x, n):
        return x, sum(wnp.sin(x * k) for k in range(n))

    for n in range(8):  # more structures at one line than are compiled whole
        value, dot = weft.jvp(lambda x, n=n: f(x, n), (2.0,), (3.0,))
        assert value[0] == 2 and dot[0] == 3


def test_python_control_flow_under_grad():
    def f(x):
        y = x
        while y < 100:
            y = y * x
        return y if y > 0 else -y

    for x, power in ((2.0, 7), (3.0, 5), (10.0, 2)):
        assert float(weft.grad(f)(x)) == pytest.approx(power * x ** (power - 1), rel=1e-5)


LOSING = {
    "float": float,
    "complex": complex,
    "tolist": lambda x: x.tolist(),
    "math": math.sin,
    "numpy": lambda x: float(np.asarray(x)),
}
CONSTANT = {
    "stopped": weft.lax.stop_gradient,
    "step": wnp.floor,
    "jitted": lambda x: weft.jit(lambda x: (x, weft.lax.stop_gradient(x)))(x)[1],
    "integer": lambda x: x.astype(int).astype(float),
    "of an outer derivative": lambda x: weft.grad(lambda y: y * weft.lax.stop_gradient(x))(x),
}


@pytest.mark.parametrize("convert", LOSING.values(), ids=LOSING)
def test_numbers_of_pythons_are_made_only_of_what_has_no_derivative(convert):
    for made in CONSTANT.values():
        value = np.float32(np.real(convert(made(np.float32(2)))))
        for transform in (weft.grad, weft.jacfwd, lambda f: lambda x: weft.vjp(f, x)[1](1.0)[0]):
            assert (
                float(transform(lambda x, made=made: x * np.real(convert(made(x))))(2.0)) == value
            )
    inputs = {
        "argument": lambda x: x,
        "result": lambda x: wnp.sin(x) + 1,
        "jitted": lambda x: weft.jit(lambda x: (x, weft.lax.stop_gradient(x)))(x)[0],
        "checkpoint": weft.checkpoint(lambda x: x * 2),
        "inner": lambda x: weft.grad(lambda y: convert(x) * y)(1.0),
    }
    for made in inputs.values():
        with pytest.raises(errors.ConcretizationTypeError, match="that no derivative goes through"):
            weft.grad(lambda x, made=made: x * np.real(convert(made(x))))(2.0)


def newton_square_root(c):
    x = 1.0
    while abs(x * x - c) > 1e-5:
        f = lambda x: x * x - c
        x = x - f(x) / weft.grad(f)(x)
    return x


def branch_on_inner_gradient(x):
    slope = weft.grad(lambda y: x * y * y)(x)
    return slope * x if slope > 0 else -slope


def branch_on_linearised_value(x):
    value, push = weft.linearize(lambda y: y * y, x)
    return push(x) * value if value > 0 else value


def branch_around_vmap(x):
    return wnp.sum(weft.vmap(lambda a: a * x * x if x > 0 else -a * x)(np.arange(1.0, 4.0)))


@pytest.mark.parametrize(
    "f, first, second",
    [
        (newton_square_root, 0.5 * 2**-0.5, -0.25 * 2**-1.5),
        (branch_on_inner_gradient, 24, 24),
        (branch_on_linearised_value, 64, 96),
        (branch_around_vmap, 24, 12),
    ],
)
def test_python_control_flow_under_nested_derivatives(f, first, second):
    assert float(weft.grad(f)(2.0)) == pytest.approx(first, rel=1e-3)
    assert float(weft.grad(weft.grad(f))(2.0)) == pytest.approx(second, rel=2e-3)
    assert float(weft.jvp(weft.grad(f), (2.0,), (1.0,))[1]) == pytest.approx(second, rel=2e-3)


def test_loops_of_changing_length_do_not_compile_each_time():
    def f(x, n):
        for _ in range(n):
            x = wnp.sin(x)
        return x

    for n in range(3, 9):
        weft.grad(f)(0.5, n)
    before = weft.compiler.cache_stats()["compiles"]
    for n in range(9, 30):
        got = weft.grad(f)(0.5, n)
        x, slope = 0.5, 1.0
        for _ in range(n):
            x, slope = np.sin(x), slope * np.cos(x)
        assert float(got) == pytest.approx(slope, rel=1e-4)
    assert weft.compiler.cache_stats()["compiles"] - before <= 4


def test_repeated_calls_compile_once():
    g = weft.value_and_grad(net)
    g(PARAMS, X)
    before = weft.compiler.cache_stats()["compiles"]
    for _ in range(3):
        g(PARAMS, X)
    assert weft.compiler.cache_stats()["compiles"] == before


PERTURBATIONS = [
    (lambda x: x * weft.grad(lambda y: x + y)(1.0), 3.0, 1.0),
    (lambda x: weft.grad(lambda y: x * y * y)(2.0), 3.0, 4.0),
    (lambda x: x * weft.grad(lambda y: y * x)(x), 3.0, 6.0),
    (lambda x: weft.jvp(lambda y: weft.grad(lambda z: z * y * x)(y), (x,), (1.0,))[1], 2.0, 1.0),
    (lambda x: weft.jvp(lambda y: y * y * x, (x,), (x,))[1], 2.0, 24.0),
    (lambda x: weft.vjp(lambda y: x * y, 3.0)[1](x)[0], 2.0, 4.0),
    (lambda x: weft.linearize(lambda y: y * y * x, x)[1](x), 2.0, 24.0),
    (lambda x: weft.hessian(lambda y: x * y**3)(x), 2.0, 24.0),
    (lambda x: weft.grad(lambda y: y * weft.grad(lambda z: x * y * z)(1.0))(x), 2.0, 8.0),
    (lambda x: weft.jit(lambda y: weft.grad(lambda z: x * y * z)(5.0))(x), 2.0, 4.0),
    # the classic, with vmap between the two derivatives
    (
        lambda x: wnp.sum(weft.vmap(lambda a: weft.grad(lambda y: a * x * y**2)(x))(wnp.arange(3))),
        2.0,
        24.0,
    ),
    (
        lambda x: wnp.sum(
            weft.vmap(weft.grad(lambda y: x * y * weft.grad(lambda z: x * z)(y)))(X0)
        ),
        2.0,
        4 * 4.0,
    ),
    (
        lambda x: weft.jacfwd(lambda y: weft.vmap(lambda a: a * x * y)(X0))(x)[1],
        2.0,
        float(X[0, 1]),
    ),
]


@pytest.mark.parametrize("i", range(len(PERTURBATIONS)))
def test_no_perturbation_confusion(i):
    f, x, slope = PERTURBATIONS[i]
    assert float(weft.grad(f)(x)) == pytest.approx(slope)
    assert float(weft.jit(weft.grad(f))(x)) == pytest.approx(slope)
    assert float(weft.jvp(f, (x,), (1.0,))[1]) == pytest.approx(slope)
    assert float(weft.vmap(weft.grad(f))(np.full(2, x))[1]) == pytest.approx(slope)


def test_a_linear_map_is_used_inside_another_derivative():
    push = weft.linearize(lambda x: x**3, 2.0)[1]
    pull = weft.vjp(lambda x: x**3, 2.0)[1]
    assert float(weft.grad(lambda t: push(t * t))(5.0)) == pytest.approx(12 * 10)
    assert float(weft.grad(lambda t: pull(t * t)[0])(5.0)) == pytest.approx(12 * 10)


@pytest.mark.parametrize("transform", ["jacfwd", "jacrev", "hessian"])
def test_jacobians_of_long_programs(transform):
    """Made without the interpreter's lock, which is to be given up once."""

    def f(x):
        for _ in range(1000):
            x = wnp.sin(x)
        return x.sum() if transform == "hessian" else x

    assert "iota" in str(weft.make_jaxpr(getattr(weft, transform)(f))(np.ones(3, np.float32)))


@pytest.mark.parametrize("stage", [lambda f: f, weft.jit], ids=["eager", "jit"])
def test_forward_jacobians_of_loops_keep_nothing_of_their_steps(stage):
    def f(x, n):
        def step(c, _):
            c = wnp.sin(c) * x
            return c, None

        last, _ = weft.lax.scan(step, x, None, length=50)
        return last, (last * 2, n + 1)

    x = np.float32([0.5, 1.5, 0.9])
    j, (twice, n) = stage(weft.jacfwd(f, has_aux=True))(x, 3)
    last = x
    slope = np.eye(3)
    for _ in range(50):
        slope = np.diag(np.sin(last)) + np.diag(np.cos(last) * x) @ slope
        last = np.sin(last) * x
    np.testing.assert_allclose(twice, 2 * last, rtol=1e-5)
    np.testing.assert_allclose(j, slope, rtol=1e-4, atol=1e-5)
    assert n == 4
    text = str(weft.make_jaxpr(weft.jacfwd(f, has_aux=True))(x, 3))
    assert text.count("scan[") == 1
    assert "[50" not in text  # no array of steps


def test_effects_of_a_function_happen_once_in_its_forward_jacobian(capfd):
    def f(x):
        weft.debug.print("at {}", x[0])
        return x * x

    np.testing.assert_array_equal(weft.jacfwd(f)(np.float32([1, 2])), np.diag([2, 4]))
    np.testing.assert_array_equal(weft.jit(weft.jacfwd(f))(np.float32([1, 2])), np.diag([2, 4]))
    weft.effects_barrier()
    assert capfd.readouterr().out.count("at 1.0") == 2


LEFT_OUT = {  # name: (function, its slope at 4)
    "root of relu": (lambda x: wnp.sqrt(nn.relu(x)), 0.25),
    "root of maximum": (lambda x: wnp.sqrt(wnp.maximum(x, 0.0)), 0.25),
    "logarithm": (lambda x: wnp.log(wnp.where(x > 0, x, 0.0)), 0.25),
    "cube root": (lambda x: wnp.cbrt(wnp.where(x < 0, 0.0, x)), 4 ** (-2 / 3) / 3),
    "quotient": (lambda x: 3 / wnp.where(x > 0, x, 0.0), -3 / 16),
    "two uses": (lambda x: x * wnp.sqrt(nn.relu(x)), 3.0),
    "negative": (lambda x: wnp.sqrt(wnp.negative(-nn.relu(x))), 0.25),
    "reshaped": (lambda x: wnp.sqrt(nn.relu(x[None]).reshape(1, 1))[0, 0], 0.25),
    "clip": (lambda x: wnp.sqrt(wnp.clip(x, 0.0, 9.0)), 0.25),
    "clip from above": (lambda x: wnp.sqrt(5 - wnp.clip(-x, -4.5, 5.0)) * 3, 0.5),
    "where behind": (lambda x: wnp.where(x > 0, x * wnp.sqrt(x), 0.0), 3.0),
    "where in where": (
        lambda x: wnp.where(x > -20, wnp.where(x > 0, wnp.log(x) + wnp.sqrt(x), 0.0), 0.0),
        0.5,
    ),
    "sum of a row": (
        lambda x: wnp.where(x > 0, wnp.sqrt(wnp.sum(wnp.stack([x, x]))), wnp.zeros(3))[0],
        8**-0.5,
    ),
}


@pytest.mark.parametrize(
    "transform",
    [weft.jacfwd, weft.jacrev, weft.grad, lambda f: lambda x: weft.jvp(f, (x,), (1.0,))[1]],
    ids=["jacfwd", "jacrev", "grad", "jvp"],
)
@pytest.mark.parametrize("stage", [lambda f: f, weft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_a_select_leaves_out_has_no_derivative_whatever_the_slope(name, stage, transform):
    f, slope = LEFT_OUT[name]
    derivative = stage(transform(f))
    assert derivative(-10.0) == 0
    np.testing.assert_allclose(derivative(4.0), slope, rtol=1e-6)
    second = stage(transform(weft.grad(f)))
    assert second(-10.0) == 0
    assert np.isfinite(second(4.0))


def unit_vector(x, keepdims):
    length = wnp.sqrt(wnp.sum(x * x, -1, keepdims=keepdims))
    return (
        wnp.where(length > 0, x / length, 0.0)
        if keepdims
        else wnp.where(length[..., None] > 0, x / length[..., None], 0.0)
    )


@pytest.mark.parametrize("keepdims", [False, True])
def test_unit_vectors_have_no_derivative_at_zero(keepdims):
    x = np.array([[0, 0, 0], [1, 2, 2]], "f")
    right = [[0, 0, 0], [4 / 27, -1 / 27, -1 / 27]]
    f = lambda x: unit_vector(x, keepdims).sum(-1)
    for gradient in (weft.vmap(weft.grad(f)), weft.grad(lambda x: weft.vmap(f)(x).sum())):
        np.testing.assert_allclose(gradient(x), right, rtol=1e-5)
        np.testing.assert_allclose(weft.jit(gradient)(x), right, rtol=1e-5)
    np.testing.assert_allclose(weft.grad(lambda x: f(x).sum())(x), right, rtol=1e-5)
    rows = weft.vmap(weft.jacfwd(lambda x: unit_vector(x, keepdims)))(x)
    np.testing.assert_allclose(rows.sum(1), right, rtol=1e-5)


@pytest.mark.parametrize("num_branches", [2, 3])
def test_branches_of_lanes_that_take_others_have_no_derivative(num_branches):
    branches = [lambda x: 0 * x, lambda x: wnp.sqrt(x) * wnp.log(x), lambda x: 1 / x]
    f = lambda x: weft.lax.switch(
        wnp.sign(x).astype(int) + num_branches - 2, branches[:num_branches], x
    )
    x = np.array([-1, 0, 4], "f") if num_branches == 2 else np.array([-1, 0, 1, 4], "f")
    right = weft.vmap(weft.grad(f))(x)
    assert np.isfinite(right[0]) and np.isfinite(right[-1])
    np.testing.assert_array_equal(weft.grad(lambda x: weft.vmap(f)(x).sum())(x), right)


def test_an_operation_is_computed_for_what_a_select_of_the_users_leaves_out():
    """Only derivatives go past a select: 0 * infinity stays NaN in values."""
    f = weft.jit(lambda x, y: wnp.where(x > 0, x, 0.0) * y)
    assert np.isnan(f(-1.0, np.inf))


def test_hessian_both_ways():
    f = lambda x: net(PARAMS, x[None])
    x = X[0]
    close(weft.hessian(f)(x), weft.jacrev(weft.jacfwd(f))(x), rtol=1e-3)
    close(weft.hessian(f)(x), weft.jit(weft.hessian(f))(x), rtol=1e-4)


@pytest.mark.parametrize("f", [lambda a: a * a, lambda a: 1 / a, wnp.sin])
def test_linear_transpose_refuses_what_is_not_linear(f):
    with pytest.raises(NotImplementedError, match=r"\[(mul|div|sin)\]"):
        weft.linear_transpose(f, X)(X)


# Functions of the linear s, that call a program with results of both kinds; d is 3.
def _jit_of_both(s):
    d, s = weft.jit(lambda d, s: (d * 2, s * d))(3.0, s)
    return s * d


def _scan_of_both(s):
    def body(carry, x):
        d, s = carry
        return (d * x, s * d), (d + 1, s * x)

    (d, s), (ds, ss) = weft.lax.scan(body, (3.0, s), wnp.array([1.0, 2.0, 3.0]))
    return s * d + (ds * ss).sum()


def _fori_of_both(s):
    d, s = weft.lax.fori_loop(0, 3, lambda i, c: (c[0] + i, c[1] * c[0]), (3.0, s))
    return s * d


def _while_of_both(s):
    i, d, s = weft.lax.while_loop(
        lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * 2, c[2]), (0, 3.0, s)
    )
    return s * d * i


def _cond_of_both(s):
    d, s = weft.lax.cond(wnp.array(True), lambda d, s: (d * 2, s * d), lambda d, s: (d, s), 3.0, s)
    return s * d


def _switch_of_both(s):
    branches = [lambda d, s: (d, -s), lambda d, s: (d * 2, s * d), lambda d, s: (d + 1, s)]
    d, s = weft.lax.switch(wnp.array(1), branches, 3.0, s)
    return s * d


def _custom_jvp_of_both(s):
    f = ruled(lambda d, s: (d * 2, s * d), lambda p, t: (p, t))  # is not asked
    d, s = f(3.0, s)
    return s * d


def _custom_vjp_of_both(s):
    f = weft.custom_vjp(lambda d, s: (d * 2, s * d))
    f.defvjp(lambda d, s: (f(d, s), None), lambda _, ct: ct)
    d, s = f(3.0, s)
    return s * d


def _nest_of_both(s):
    @weft.jit
    def inner(d, s, i):
        d, s = weft.checkpoint(lambda d, s: (wnp.sin(d) * i, s * d))(d, s)
        return weft.lax.fori_loop(0, 2, lambda _, c: (c[0] + 1, c[1] * c[0]), (d, s))

    (d, s), (ds, ss) = weft.lax.scan(
        lambda c, i: (inner(*c, i), inner(c[0], c[1], i)), (3.0, s), wnp.arange(3)
    )
    return s * d + (ds * ss).sum()


def _vmap_of_both(s):
    d, s = weft.vmap(weft.jit(lambda d, s: (d * 2, s * d)), in_axes=(0, None))(
        wnp.array([3.0, 4.0]), s
    )
    return (s * d).sum()


def _derivative_of_a_loop(s):
    loop = lambda x: weft.lax.fori_loop(0, 3, lambda i, v: wnp.sin(v) * (1 + i), x)
    y, t = weft.jit(lambda x, t: weft.jvp(loop, (x,), (t,)))(wnp.array(3.0), s)
    return y * t


OF_BOTH = {
    "jit": (_jit_of_both, 18),
    "scan": (_scan_of_both, 3 * 3 * 6 * 18 + (4 * 1 + 4 * 3 * 2 + 7 * 9 * 3)),
    "fori_loop": (_fori_of_both, 3 * 3 * 4 * 6),
    "while_loop": (_while_of_both, 3 * 16 * 4),
    "cond": (_cond_of_both, 18),
    "switch": (_switch_of_both, 18),
    "custom_jvp": (_custom_jvp_of_both, 18),
    "custom_vjp": (_custom_vjp_of_both, 18),
    "vmap": (_vmap_of_both, 3 * 6 + 4 * 8),
    "nest": (_nest_of_both, None),
    "derivative": (_derivative_of_a_loop, None),
}


@pytest.mark.parametrize("name", OF_BOTH)
@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit, weft.checkpoint], ids=["", "jit", "kept"])
def test_transposes_take_known_values_and_linear_ones_apart(name, wrap):
    f, expected = OF_BOTH[name]
    expected = float(f(1.0)) if expected is None else expected
    close(f(1.0), expected)
    transpose = lambda ct: weft.linear_transpose(wrap(f), 1.0)(ct)[0]
    close(transpose(1.0), expected)
    close(weft.jit(transpose)(2.0), 2 * expected)
    close(weft.linear_transpose(transpose, 1.0)(1.0)[0], expected)
    close(weft.vmap(transpose)(np.array([1.0, 2.0])), np.array([expected, 2 * expected]))


def test_known_results_of_a_function_with_rules_stay_known():
    """In a checkpoint, whose other result is linear: the sine is that of the known value."""
    known = weft.custom_vjp(lambda s, d: (s * 2, d))
    known.defvjp(lambda s, d: (known(s, d), None), lambda _, ct: ct)

    def f(s):
        d, s = weft.checkpoint(lambda s: (wnp.sin(known(s, 3.0)[1]), s * 2))(s)
        return s * d

    close(weft.linear_transpose(f, 1.0)(1.0)[0], 2 * np.sin(3.0))


def test_a_call_in_a_loop_whose_result_is_the_same_in_all_iterations():
    """The call has another result that is not: what it keeps cannot be made before the loop."""

    def f(k, xs, wrap):
        call = wrap(lambda k, x: (wnp.sin(k), x * k))

        def body(c, x):
            a, b = call(k, x)
            return c * a + b, None

        return weft.lax.scan(body, 1.0, xs)[0]

    k, xs = 0.7, np.array([0.5, -0.3], np.float32)
    for wrap in (weft.jit, weft.checkpoint):
        close(weft.grad(f)(k, xs, wrap), weft.grad(f)(k, xs, lambda g: g), rtol=1e-5)
        second = lambda k, wrap=wrap: weft.grad(f)(k, xs, wrap)
        plain = lambda k: weft.grad(f)(k, xs, lambda g: g)
        close(weft.grad(second)(k), weft.grad(plain)(k), rtol=1e-4)


def test_second_derivatives_of_a_checkpoint_in_a_scan():
    def f(x, wrap):
        return weft.lax.scan(lambda c, _: (c, wrap(wnp.tanh)(c)), x, None, length=2)[1].sum()

    second = lambda x, wrap: weft.grad(lambda x: weft.grad(lambda x: f(x, wrap))(x))(x)
    close(second(0.3, weft.checkpoint), second(0.3, lambda g: g), rtol=1e-5)


def test_transposes_of_integers_take_them_apart_too():
    def f(s):
        n, s = weft.lax.fori_loop(0, 3, lambda i, c: (c[0] + i, c[1] * c[0]), (2, s))
        return s * n

    (back,) = weft.linear_transpose(f, 1)(1)
    assert back.dtype == np.int32 and back == 2 * 2 * 3 * 5


@pytest.mark.parametrize(
    "f",
    [
        lambda s: weft.jit(lambda d, s: (d, s * s))(3.0, s)[1],
        lambda s: weft.lax.fori_loop(0, 2, lambda i, c: (c[0] * c[1], c[1]), (3.0, s))[0],
        lambda s: weft.lax.cond(True, lambda d, s: (d, wnp.sin(s)), lambda d, s: (d, s), 3.0, s)[1],
        lambda s: (lambda d, t: wnp.sin(t) * d)(*weft.jit(lambda d, s: (d, s * d))(3.0, s)),
        lambda s: weft.lax.cond(s > 0, lambda s: s, lambda s: 2 * s, s),
        lambda s: weft.lax.switch(s.astype(int), [lambda s: s, lambda s: 2 * s], s),
        lambda s: wnp.where(s > 0, s, 2 * s),
        lambda s: s.astype(int).astype(float),
        lambda s: wnp.arange(3.0)[s.astype(int)],
        lambda s: wnp.dot(s * np.ones(3), s * np.ones(3)),
        lambda s: weft.lax.dynamic_slice(s * np.ones(3), (s.astype(int),), (1,)),
        lambda s: (s * np.ones(3)).at[s.astype(int)].add(s),
    ],
)  # fmt: skip
def test_transposes_refuse_what_is_not_linear_in_an_op_with_both(f):
    with pytest.raises((NotImplementedError, TypeError), match="test_transforms_api.py"):
        weft.linear_transpose(f, 1.0)(1.0)


def test_a_while_whose_length_is_not_known_has_no_transpose():
    def f(s):
        n, s = weft.lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * 2), (0, s))
        return s * n

    with pytest.raises(NotImplementedError, match="while_loop has no reverse-mode derivative"):
        weft.linear_transpose(f, 1.0)(1.0)


def _rule_by_jvp(f):
    return lambda p, t: weft.jvp(f, p, t)


def _rule_by_linearize(f):
    def rule(p, t):
        y, push = weft.linearize(f, *p)
        return y, push(*t)

    return rule


def _rule_in_a_scan(f):
    """Values and tangents in one carry, which the rule itself loops over."""

    def rule(p, t):
        both, _ = weft.lax.scan(
            lambda c, _: (weft.jvp(lambda x: wnp.sin(x) * 2, c[:1], c[1:]), None),
            (*p, *t),
            length=3,
        )
        return both

    return rule


def _rule_in_a_branch(f):
    def rule(p, t):
        both = lambda x, t: weft.jvp(f, (x,), (t,))
        return weft.lax.cond(p[0] > 9, lambda x, t: (x, t), both, *p, *t)

    return rule


RULES_OF_BOTH = {
    "jvp": _rule_by_jvp,
    "jit": lambda f: lambda p, t: weft.jit(_rule_by_jvp(f))(p, t),
    "linearize": _rule_by_linearize,
    "scan": _rule_in_a_scan,
    "cond": _rule_in_a_branch,
    "checkpoint": lambda f: lambda p, t: weft.checkpoint(_rule_by_jvp(f))(p, t),
    "rule": lambda f: lambda p, t: weft.jvp(ruled(f, _rule_by_jvp(f)), p, t),
}


def ruled(f, rule):
    made = weft.custom_jvp(f)
    made.defjvp(rule)
    return made


@pytest.mark.parametrize("kind", RULES_OF_BOTH)
def test_rules_may_compute_values_and_tangents_in_one_loop(kind):
    loop = lambda x: weft.lax.fori_loop(0, 3, lambda i, v: wnp.sin(v) * 2, x)
    f = ruled(loop, RULES_OF_BOTH[kind](loop))
    x = np.float32(0.3)
    transforms = [weft.grad, weft.jacfwd, weft.jacrev, lambda f: weft.grad(weft.checkpoint(f))]
    for outer in transforms:
        close(outer(f)(x), weft.grad(loop)(x), rtol=1e-5)
        close(weft.jit(outer(f))(x), weft.grad(loop)(x), rtol=1e-5)
        for inner in (weft.grad, weft.jacfwd):
            close(outer(inner(f))(x), outer(inner(loop))(x), rtol=1e-4)
    close(weft.vmap(weft.grad(f))(np.array([x, -x])), np.full(2, weft.grad(loop)(x)), rtol=1e-5)


def test_what_is_known_in_a_rule_is_computed_once():
    """Both halves of a loop that a rule makes: the callback is in the first one."""
    seen = []

    def loop(x):
        def body(i, v):
            weft.debug.callback(seen.append, i, ordered=True)
            return wnp.sin(v)

        return weft.lax.fori_loop(0, 3, body, x)

    f = ruled(loop, _rule_by_jvp(loop))
    close(weft.jit(weft.grad(f))(0.5), weft.grad(lambda x: wnp.sin(wnp.sin(wnp.sin(x))))(0.5))
    weft.effects_barrier()
    assert list(map(int, seen)) == [0, 1, 2]


def test_linearize_and_transpose():
    value, push = weft.linearize(lambda x: wnp.sin(x) * 2, X)
    close(push(np.ones_like(X)), 2 * np.cos(X))
    (back,) = weft.linear_transpose(lambda x: x @ PARAMS[0][0], X)(np.ones((5, 4), "f"))
    close(back, np.ones((5, 4)) @ PARAMS[0][0].T)


def test_aux_and_argnums():
    (value, aux), (gx, gy) = weft.value_and_grad(
        lambda x, y: (x * y, {"x": x}), argnums=(0, 1), has_aux=True
    )(2.0, 3.0)
    assert (float(value), float(aux["x"]), float(gx), float(gy)) == (6, 2, 3, 2)
    gradient, aux = weft.grad(lambda x: (x**2, x), has_aux=True)(3.0)
    assert (float(gradient), float(aux)) == (6, 3)


def test_aux_that_is_no_array_comes_back_as_it_is():
    rows = np.arange(2)

    def f(x):
        return x * x, (3, 2.5, "text", rows, x, None)

    for aux in (
        weft.grad(f, has_aux=True)(2.0)[1],
        weft.jvp(f, (2.0,), (1.0,), has_aux=True)[2],
        weft.vjp(f, 2.0, has_aux=True)[2],
        weft.linearize(f, 2.0, has_aux=True)[2],
        weft.jacrev(f, has_aux=True)(2.0)[1],
    ):
        assert aux[:3] == (3, 2.5, "text") and type(aux[0]) is int
        assert aux[3] is rows and aux[4] == 2.0  # the argument itself, as it came
        assert aux[5] is None


def test_cotangents_of_whole_numbers_are_not_looked_at():
    pull = weft.vjp(lambda x: (2 * x, x.astype(int), x > 0), np.float32(1.0))[1]
    for ct in (np.zeros((), weft.float0), 1, 1.0, False, wnp.asarray(1)):
        assert pull((np.float32(1.0), ct, ct))[0] == 2
    with pytest.raises(TypeError):
        pull((np.float32(1.0), wnp.arange(2), 0))


def python_calls(f, *args):
    """How many Python functions of weft run in a call of f."""
    calls = []

    def profile(frame, event, arg):
        if event == "call" and "weft" in frame.f_globals.get("__name__", ""):
            calls.append(frame.f_code.co_name)

    f(*args)
    gc.disable()  # what becomes of objects of other tests is no part of the call
    sys.setprofile(profile)
    try:
        f(*args)
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


@pytest.mark.parametrize(
    "transform",
    [
        lambda f, x: weft.grad(f)(x),
        lambda f, x: weft.value_and_grad(lambda x: (f(x), {"a": f(x)}), has_aux=True)(x),
        lambda f, x: weft.grad(f, allow_int=True)(x),
        lambda f, x: weft.jvp(f, (x,), (x,)),
        lambda f, x: weft.vjp(f, x)[1](np.float32(1)),
        lambda f, x: weft.linearize(f, x)[1](x),
        lambda f, x: weft.vmap(f, axis_size=2, in_axes=None)(x),
        lambda f, x: weft.vmap(lambda p, y: f(p) * y, in_axes=(None, 0))(x, X0),
    ],
    ids=["grad", "value_and_grad", "allow_int", "jvp", "vjp", "linearize", "vmap", "vmap_axes"],
)
def test_derivatives_run_no_python_per_leaf(transform):
    def calls(leaves):
        tree = {f"w{i}": np.float32(i) for i in range(leaves)}
        return python_calls(transform, lambda p: p["w0"] * 2.0, tree)

    assert calls(2) == calls(60)


def test_gradients_of_real_functions_by_complex_arguments():
    z = wnp.array([1 + 2j, 3 - 4j], np.complex64)
    for f, slope in [
        (lambda z: wnp.sum(wnp.abs(z)), z.conj() / wnp.abs(z)),
        (lambda z: wnp.sum(z * z).real, 2 * z),
        (lambda z: wnp.sum(z * z).imag, -2j * z),
        (lambda z: wnp.sum(wnp.max(z) * z).real, None),
    ]:
        if slope is None:
            slope = weft.vjp(f, z)[1](np.float32(1))[0]
        close(weft.grad(f)(z), slope)
        close(weft.jacrev(f)(z), slope)
        close(weft.jit(weft.value_and_grad(f))(z)[1], slope)
    close(weft.jacrev(wnp.abs)(z), np.diag(z.conj() / wnp.abs(z)))
    for transform in (weft.grad, weft.jacrev):
        with pytest.raises(errors.DTypeError, match="expected a? ?real floating-point result"):
            transform(lambda z: wnp.sum(z * z))(z)
        with pytest.raises(errors.DTypeError, match="floating-point or complex"):
            transform(lambda n: n * 1.0)(3)
    with pytest.raises(errors.DTypeError, match="jacrev expected real floating-point results"):
        weft.jacrev(lambda x: x * 1j)(X)
    for transform in (weft.jacrev, weft.jacfwd):
        with pytest.raises(errors.DTypeError, match="expected complex results"):
            transform(lambda z: z.real, holomorphic=True)(z)
    with pytest.raises(errors.DTypeError, match="jacfwd expected real"):
        weft.jacfwd(wnp.abs)(z)


@pytest.mark.parametrize("transform", ["grad", "value_and_grad", "jacfwd", "jacrev", "hessian"])
@pytest.mark.parametrize(
    "argnums, words",
    [
        ((0, 0), r"every position once.*\(0, 0\)"),
        ((1, -1), r"every position once.*\(1, -1\)"),
        ((), "at least one position"),
        (2, "2 positional arguments; got argnums=2"),
        ((0, -3), r"got argnums=\(0, -3\)"),
    ],
)
def test_argnums_that_name_no_arguments_or_one_twice(transform, argnums, words):
    with pytest.raises(errors.AttributeValueError, match=words):
        getattr(weft, transform)(lambda x, y: x * y, argnums=argnums)(2.0, 3.0)


def test_arguments_are_named_by_their_own_numbers_where_some_have_no_derivative():
    def branches(n, x):
        return x if x[0] > 0 else -x  # under vmap, x has no single value

    with pytest.raises(errors.TracerBoolConversionError, match="branches"):
        weft.vmap(branches, in_axes=(None, 0))(1, X)
    leaked = []
    weft.jvp(lambda n, x: leaked.append(x) or x, (1, 2.0), (np.zeros((), weft.dtypes.float0), 1.0))
    with pytest.raises(errors.UnexpectedTracerError, match="argument x of"):
        leaked[0] + 1


TREES = [
    {"b": 1.0, "a": [2.0, (3.0, None)]},
    {"a": [2.0, (3.0, None)], "b": 1.0},
    {"a": [2.0, [3.0, None]], "b": 1.0},
    {"a": (2.0, (3.0, None)), "b": 1.0},
    {"a": [2.0, (None, 3.0)], "b": 1.0},
    {"a": [2.0, (3.0,)], "b": 1.0},
    {2: 1.0, 1: 2.0},
    {"a": {}, "b": [()], "c": 1.0},
    [1.0, 2.0, 3.0],
    (1.0, 2.0, 3.0),
    [],
    None,
    2.0,
]


@pytest.mark.parametrize("again", [False, True])
def test_trees_keep_their_structure_through_every_transform(again):
    """A tree taken apart by what is remembered of others comes back as it is."""

    def f(tree, x):
        return weft.tree.map(lambda leaf: leaf * x, tree)

    for tree in TREES:
        scaled = weft.tree.map(lambda leaf: leaf * 3.0, tree)
        close(weft.jvp(f, (tree, 3.0), (tree, 0.0))[1], scaled)
        value, push = weft.linearize(f, tree, 3.0)
        close(value, scaled)
        close(push(tree, 0.0), scaled)
        value, pull = weft.vjp(f, tree, 3.0)
        close(pull(tree)[0], scaled)
        close(weft.linear_transpose(lambda t: f(t, 3.0), tree)(tree)[0], scaled)
        mapped = weft.vmap(f, in_axes=(None, 0), out_axes=0)(tree, np.full(2, 3.0, "f"))
        close(mapped, weft.tree.map(lambda leaf: np.full(2, leaf * 3.0, "f"), tree))


def test_tangents_of_another_tree_are_refused():
    x = {"a": 1.0, "b": 2.0}
    _, push = weft.linearize(lambda p: p["a"] * p["b"], x)
    _, pull = weft.vjp(lambda p: dict(p), x)
    for call, given in [
        (push, [1.0, 2.0]),
        (push, {"a": 1.0}),
        (push, {"a": 1.0, "c": 2.0}),
        (pull, (1.0, 2.0)),
        (pull, 1.0),
    ]:
        with pytest.raises(errors.TreeStructureError, match=r"'a'|dict"):
            call(given)
    with pytest.raises(errors.TreeStructureError):
        push(x, x)
    with pytest.raises(errors.ShapeError, match=r"argument p\['b'\] of"):
        push({"a": 1.0, "b": X0})
    with pytest.raises(errors.ShapeError, match=r"result\['b'\] of"):
        pull({"a": 1.0, "b": X0})


def test_transposes_of_linear_functions_are_trees():
    def transposed(w):
        return weft.linear_transpose(lambda x: w * x, w)

    w = np.float32([1, 2])
    back = weft.jit(transposed)(w)
    assert [x.tolist() for x in weft.tree.leaves(back)] == [[1, 2]]
    assert weft.jit(lambda f, x: f(x))(back, w)[0].tolist() == [1, 4]
    many = weft.vmap(transposed)(np.float32([[1, 2], [3, 4]]))
    assert weft.vmap(lambda f: f(w))(many)[0].tolist() == [[1, 4], [3, 8]]


def test_linear_functions_can_be_collected():
    class Big:
        def __init__(self):
            self.pull = weft.vjp(self.f, X0)[1]
            self.push = weft.linearize(self.f, X0)[1]

        def f(self, x):
            return wnp.sin(x) * x

    dead = weakref.ref(Big())
    gc.collect()
    assert dead() is None


def test_results_are_weak_however_they_are_run():
    """After a few structures at one line, what is recorded is run op by op."""
    for n in range(6):

        def f(x, n=n):
            for _ in range(n + 1):
                x = x * 2
            return x

        slope = weft.grad(f)(1.0)
        assert (float(slope), slope.weak_type) == (2 ** (n + 1), True)


def test_bad_results_are_named_where_the_function_returns_them():
    def names(transform, *args):
        with pytest.raises(errors.ArgumentTypeError) as caught:
            transform(*args)
        return str(caught.value)

    assert "result['a'][0] of" in names(weft.jacrev(lambda x: {"a": ["text"]}), 1.0)
    assert "result['a'] of" in names(weft.grad(lambda x: {"a": "text"}), 1.0)
    assert "result[1] of" in names(weft.jvp, lambda x: (x, object()), (1.0,), (1.0,))
    assert "result of" in names(weft.vjp, lambda x: "text", 1.0)


def test_gradients_of_arguments_that_are_trees():
    dy, dx = weft.grad(lambda x, y: x["a"] * y, argnums=(-1, 0))({"a": 2.0}, 3.0)
    assert (float(dy), float(dx["a"])) == (2, 3)
    assert weft.grad(lambda x, y: y * 1.0, argnums=0)((), 3.0) == ()
    assert float(weft.grad(lambda x, *, scale: x * scale["s"])(2.0, scale={"s": 3.0})) == 3


def test_integers_have_float0_gradients():
    g = weft.grad(lambda p: p["a"] * p["n"], allow_int=True)({"a": 2.0, "n": 3})
    assert float(g["a"]) == 3 and g["n"].dtype == weft.dtypes.float0


def test_complex_derivatives():
    z = np.complex64(1 + 2j)
    close(weft.grad(lambda z: z**3, holomorphic=True)(z), 3 * z**2)
    close(weft.grad(lambda x: wnp.abs(x * z) ** 2)(2.0), 2 * 2.0 * abs(z) ** 2)


def test_compose_and_derivative():
    h = weft.compose(weft.jit, weft.vmap, weft.grad)(lambda x: x**3)
    close(h(np.arange(3.0, dtype="f")), 3 * np.arange(3.0) ** 2)
    f = lambda x: wnp.stack([wnp.sum(x), x[0] * x[1]])
    for mode in ("auto", "forward", "reverse"):
        close(weft.derivative(f, mode)(X[0]), weft.jacfwd(f)(X[0]))
    with pytest.raises(ValueError, match="mode"):
        weft.derivative(f, "sideways")


def test_vmap_axes():
    a = np.arange(6.0, dtype="f").reshape(2, 3)
    close(weft.vmap(lambda x, y: x + y, in_axes=(1, None))(a, 1.0), a.T + 1)
    close(
        weft.vmap(lambda p: p["x"] * p["s"], in_axes=({"x": 0, "s": None},))({"x": a, "s": 2.0}),
        a * 2,
    )
    close(weft.vmap(lambda: wnp.ones(2), axis_size=3)(), np.ones((3, 2)))
    close(weft.vmap(lambda x: x, in_axes=-1, out_axes=1)(a), a)
    assert weft.vmap(lambda x: x * 2)(np.zeros((0, 3), "f")).shape == (0, 3)


def test_what_is_not_mapped_may_be_any_object():
    class Opaque: ...

    call = lambda x, how: how["f"](x) + how["c"]
    how = {"f": wnp.sin, "c": 2.0}
    wanted = np.sin(X[:, 0]) + 2
    close(weft.vmap(call, in_axes=(0, None))(X[:, 0], how), wanted)
    close(weft.jit(lambda x: weft.vmap(call, in_axes=(0, None))(x, how))(X[:, 0]), wanted)
    each = {"f": wnp.sin, "c": X[:, 1]}
    close(
        weft.vmap(call, in_axes=(0, {"f": None, "c": 0}))(X[:, 0], each),
        np.sin(X[:, 0]) + X[:, 1],
    )
    slope = weft.vmap(weft.grad(lambda x, f: f(x)), in_axes=(0, None))
    close(slope(X[:, 0], wnp.sin), np.cos(X[:, 0]))
    for thing in ("text", Opaque(), np.array(["text"])):
        close(weft.vmap(lambda x, _: x * 2, in_axes=(0, None))(X, thing), X * 2)
    with pytest.raises(errors.ArgumentTypeError, match=r"argument how\['f'\] of 'named_call'"):
        weft.vmap(named_call, in_axes=0)(X[:, 0], each)
    with pytest.raises(errors.ArgumentTypeError, match=r"result\[1\] of .*'text'"):
        weft.vmap(lambda x, y: (x, y), in_axes=(0, None), out_axes=(0, None))(X, "text")


def named_call(x, how):
    return how["f"](x) + how["c"]


ERRORS = [
    (lambda: weft.grad(lambda x: x)(X), errors.ShapeError, "scalar"),
    (lambda: weft.grad(lambda x: 2)(1.0), errors.DTypeError, "floating-point result"),
    (lambda: weft.grad(lambda p: p["n"])({"n": 1}), errors.DTypeError, r"p\['n'\]"),
    (lambda: weft.grad(wnp.sin, argnums=1)(1.0), errors.AttributeValueError, "argnums=1"),
    (
        lambda: weft.vmap(lambda a, b: a)(wnp.ones(3), {"k": wnp.ones(4)}),
        errors.ShapeError,
        r"(?s)argument a .*3.*argument b\['k'\].*4",
    ),
    (lambda: weft.vmap(lambda a: a, in_axes=1)(wnp.ones(3)), errors.ShapeError, "argument a"),
    (lambda: weft.vmap(lambda a: a if a > 0 else -a)(X), errors.ShapeError, "where"),
    (
        lambda: weft.jvp(lambda x: x, (X,), (X[0],)),
        errors.ShapeError,
        r"argument x .*float32\[5,4\]; got float32\[4\]",
    ),
    (
        lambda: weft.jvp(lambda x: x, (X,), (X.astype("i4"),)),
        errors.DTypeError,
        r"float32\[5,4\]; got int32\[5,4\]",
    ),
    (lambda: weft.jvp(lambda x: x, (X,), ((X, X),)), errors.TreeStructureError, "tangents"),
    (lambda: weft.vjp(lambda x: (x, x), X)[1](X), errors.TreeStructureError, "cotangent"),
    (lambda: weft.vjp(lambda x: x, X)[1](X[0]), errors.ShapeError, r"result.*got float32\[4\]"),
]


@pytest.mark.parametrize("i", range(len(ERRORS)))
def test_errors(i):
    run, kind, message = ERRORS[i]
    with pytest.raises(kind, match=message) as caught:
        run()
    assert "test_transforms_api.py" in str(caught.value)


# ---- Functions that call functions twice at each level: work goes by functions, not by calls

sine = weft.custom_jvp(wnp.sin)
sine.defjvp(lambda xs, ts: (wnp.sin(xs[0]), wnp.cos(xs[0]) * ts[0]))
cosine = weft.custom_vjp(wnp.cos)
cosine.defvjp(lambda x: (wnp.cos(x), x), lambda x, ct: (-wnp.sin(x) * ct,))
SAVED = weft.checkpoint_policies.save_only_these_names("y")
HALF = wnp.asarray(0.5)
BOTTOMS = {
    "sin": wnp.sin,
    "custom_jvp": sine,
    "custom_vjp": cosine,
    "checkpoint": weft.checkpoint(wnp.sin),
    "saved": weft.checkpoint(lambda x: wnp.sin(checkpoint_name(x * 2, "y")), policy=SAVED),
    "closure": lambda x: wnp.sin(x) * HALF,
}
TWICE = {
    "sum": lambda f: lambda x: f(x) + f(x),
    "chain": lambda f: lambda x: f(f(x)),
    "product": lambda f: lambda x: f(x) * f(2 * x),
    "scan": lambda f: lambda x: weft.lax.scan(lambda c, _: (f(f(c)), None), x, length=2)[0],
    "cond": lambda f: lambda x: weft.lax.cond(x > 0, lambda x: f(f(x)), lambda x: f(x), x),
}


def levels(twice, f, n):
    for _ in range(n):
        f = weft.jit(TWICE[twice](f))
    return f


@pytest.mark.parametrize("bottom", BOTTOMS)
def test_sums_of_two_calls_forty_levels_deep_run(bottom):
    base = BOTTOMS[bottom]
    scale = 2.0**40
    f = levels("sum", base, 40)
    derivative = weft.grad(base)(0.5)
    np.testing.assert_allclose(f(0.5) / scale, base(0.5), rtol=1e-5)
    for grad in (
        weft.grad,
        lambda f: weft.jit(weft.grad(f)),
        lambda f: weft.grad(weft.checkpoint(f)),
    ):
        np.testing.assert_allclose(grad(f)(0.5) / scale, derivative, rtol=1e-5)
    in_scan = lambda x: weft.lax.scan(lambda c, _: (f(c) / scale, None), x, length=1)[0]
    in_cond = lambda x: weft.lax.cond(x > 0, f, lambda x: x, x) / scale
    policy = weft.checkpoint(f, policy=SAVED)
    for g in (in_scan, in_cond, lambda x: policy(x) / scale):
        np.testing.assert_allclose(weft.grad(g)(0.5), derivative, rtol=1e-5)
    x = wnp.full(3, 0.5)
    np.testing.assert_allclose(weft.vmap(weft.grad(f))(x) / scale, [derivative] * 3, rtol=1e-5)
    if bottom != "custom_vjp":
        np.testing.assert_allclose(weft.jvp(f, (0.5,), (1.0,))[1] / scale, derivative, rtol=1e-5)
        np.testing.assert_allclose(weft.linearize(f, 0.5)[1](1.0) / scale, derivative, rtol=1e-5)


@pytest.mark.parametrize("bottom", ["sin", "custom_jvp", "checkpoint", "closure"])
@pytest.mark.parametrize("twice", TWICE)
def test_programs_of_calls_sixty_levels_deep_stay_small(twice, bottom):
    n = 60 if twice in ("sum", "chain", "product") else 12
    f = levels(twice, BOTTOMS[bottom], n)
    x = wnp.full(3, 0.5)
    programs = {
        "itself": weft.make_jaxpr(f),
        "jvp": weft.make_jaxpr(lambda x: weft.jvp(f, (x,), (1.0,))),
        "jvp of jvp": weft.make_jaxpr(
            lambda x: weft.jvp(lambda x: weft.jvp(f, (x,), (1.0,))[1], (x,), (1.0,))
        ),
        "vmap": lambda _: weft.make_jaxpr(weft.vmap(f))(x),
        "vmap of jvp": lambda _: weft.make_jaxpr(weft.vmap(lambda x: weft.jvp(f, (x,), (1.0,))[1]))(
            x
        ),
    }
    for name, program in programs.items():
        first, second = program(0.5), program(0.5)
        assert len(str(first)) < 1_000_000, name
        assert str(first) == str(second)
        assert first.graph == second.graph and hash(first.graph) == hash(second.graph)
        assert not first.effects


def test_linear_calls_sixty_levels_deep_transpose():
    f = levels("chain", lambda x: x * 2, 60)
    for program in (weft.grad(f), weft.grad(weft.checkpoint(f)), weft.linear_transpose(f, 0.5)):
        assert len(str(weft.make_jaxpr(program)(0.5))) < 1_000_000
    assert len(str(weft.make_jaxpr(weft.vmap(weft.grad(f)))(wnp.ones(2)))) < 1_000_000


def test_a_wrong_derivative_is_found():
    """check_grads must be able to fail: stop_gradient hides part of the slope."""
    with pytest.raises(AssertionError):
        check_grads(lambda x: x * weft.lax.stop_gradient(x), (np.float32(2.0),), 1)


def test_reverse_mode_gives_numpy_values_in_the_dtypes_that_cotangents_have():
    wide, numbers = np.ones(3), np.arange(3)
    value, back = weft.vjp(lambda x, n: {"x": x, "n": n}, wide, numbers)
    assert (value["x"].dtype, value["n"].dtype) == (np.float32, np.int32)
    back({"x": value["x"], "n": np.zeros(3, weft.float0)})
    (_, aux), _ = weft.value_and_grad(lambda x: (x.sum(), (x, wide)), has_aux=True)(wide)
    assert [x.dtype for x in aux] == [np.float32, np.float64]
    assert weft.jacrev(lambda x: (x, x), has_aux=True)(wide)[1].dtype == np.float32
    assert weft.value_and_grad(lambda x: x)(np.float64(3))[0].dtype == np.float32
    assert weft.jvp(lambda x: x, (wide,), (wide,))[0] is wide
    assert weft.linearize(lambda x: x, wide)[0] is wide
    same = np.ones(3, np.float32)
    assert weft.vjp(lambda x: x, same)[0] is same
    with weft.enable_x64():
        assert weft.vjp(lambda x: x, wide)[0] is wide


def test_tangents_are_weakly_typed_as_their_values_are():
    def f(x):
        return -x, 2 * x, x * np.float32(2.0)

    weak = [True, True, False]
    values, tangents = weft.jvp(f, (1.0,), (np.float32(1.0),))
    assert [y.weak_type for y in values] == [t.weak_type for t in tangents] == weak
    assert [t.weak_type for t in weft.linearize(f, 1.0)[1](1.0)] == weak
    assert not any(t.weak_type for t in weft.linearize(f, 1.0)[1](np.float32(1.0)))
    assert [t.weak_type for t in weft.jit(lambda: weft.jvp(f, (1.0,), (1.0,)))()[1]] == weak
