"""Control flow of weft.lax: values, weak types, closures, caches, disable_jit, and every error."""

import re

import numpy as np
import oracle
import pytest

import weft
from weft import errors, lax, numpy as wnp
from weft.extend.core import Primitive


def here():
    """The name of this file, which every error must mention."""
    return "test_control_flow.py"


# ---- cond and switch


@pytest.mark.parametrize("pred", [True, False, 1, 0, 2.5, np.bool_(False), np.int8(3)])
def test_cond_takes_bools_and_numbers(pred):
    double, negate = (lambda x: x * 2), (lambda x: -x)
    expected = 6.0 if pred else -3.0
    assert lax.cond(pred, double, negate, 3.0) == expected
    assert lax.cond(wnp.asarray(pred), double, negate, 3.0) == expected
    assert weft.jit(lambda p: lax.cond(p, double, negate, 3.0))(pred) == expected
    assert lax.cond(pred, double, negate, operand=3.0) == expected
    assert lax.cond(pred, 3.0, double, 4.0, negate) == (6.0 if pred else -4.0)


def test_cond_trees_and_closures_of_all_kinds():
    outer = wnp.arange(3.0)
    number = 2.5
    host = np.array([1.0, 0.0, -1.0], np.float32)

    @weft.jit
    def f(p, x):
        traced = x["a"] * 2

        def yes(tree):
            return {"r": (tree["a"] + outer * number, traced)}

        def no(tree):
            return {"r": (tree["b"] - host, traced * 0)}

        return lax.cond(p, yes, no, x)

    x = {"a": wnp.ones(3), "b": wnp.full(3, 4.0)}
    np.testing.assert_allclose(f(True, x)["r"], [1 + np.arange(3) * 2.5, [2] * 3])
    np.testing.assert_allclose(f(False, x)["r"], [4 - host, [0] * 3])


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 9])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_switch_clamps(index, dtype):
    if index < 0 and dtype.startswith("u"):
        index = 250 if dtype == "uint8" else 2**32 - 1
    branches = [lambda x, k=k: x + k for k in range(3)]
    expected = 10 + min(max(index, 0), 2)
    assert lax.switch(np.dtype(dtype).type(index), branches, 10) == expected
    assert weft.jit(lambda i: lax.switch(i, branches, 10))(np.dtype(dtype).type(index)) == expected


def test_only_one_branch_is_traced_per_function_and_runs():
    graph = weft.make_jaxpr(lambda p, x: lax.cond(p, wnp.sin, wnp.cos, x))(True, 1.0).graph
    assert graph.op_names() == ["convert_element_type", "cond"]
    known = weft.jit(lambda x: lax.cond(True, wnp.sin, wnp.cos, x)).trace(1.0).graph
    assert weft.compiler.optimize(known).op_names() == ["sin"]


def test_gradient_of_the_branch_that_is_not_taken_does_not_leak():
    f = lambda x: lax.cond(x > 0, lambda x: wnp.sqrt(x), lambda x: x * 0.0, x)
    assert weft.grad(f)(4.0) == 0.25
    assert weft.grad(f)(-1.0) == 0.0
    assert weft.grad(f)(0.0) == 0.0


# ---- loops


def test_while_loop_with_captures_in_both_functions():
    @weft.jit
    def f(limit, step, x):
        return lax.while_loop(lambda s: s[0] < limit, lambda s: (s[0] + step, s[1] * 2), (0, x))

    assert [int(v) for v in f(10, 3, 1)] == [12, 16]
    assert [int(v) for v in f(0, 3, 1)] == [0, 1]


def test_fori_loop_static_and_traced_bounds_agree():
    body = lambda i, x: x * 2 + i
    static = lax.fori_loop(2, 7, body, 1)
    assert weft.jit(lambda a, b: lax.fori_loop(a, b, body, 1))(2, 7) == static
    assert lax.fori_loop(7, 2, body, 5) == 5
    assert weft.jit(lambda a, b: lax.fori_loop(a, b, body, 5))(7, 2) == 5
    assert lax.fori_loop(wnp.int32(2), np.int64(7), body, 1) == static
    names = weft.make_jaxpr(lambda x: lax.fori_loop(0, 4, body, x))(1).graph.op_names()
    assert names == ["scan"]


FEW_OF_MANY = {
    "from 0": (2**31 - 2, 2**31 + 2),
    "up to the largest": (2**31 - 3, 2**31 - 1),
    "one beyond": (2**31 - 2, 2**31),
    "below the smallest": (-(2**31) - 2, -(2**31) + 2),
    "the largest of 64 bits": (2**63 - 4, 2**63 - 1),
    "the smallest of 64 bits": (-(2**63), -(2**63) + 3),
    "unsigned only": (2**63 - 2, 2**63 + 1),
    "backwards": (2**40, -(2**40)),
    "uint32": (np.uint32(2**32 - 3), np.uint32(2**32 - 1)),
    "int8": (np.int8(-128), np.int8(127)),
    "number and int8": (0, np.int8(127)),
    "int8 and number": (np.int8(120), 300),
    "int64": (np.int64(2**31 - 1), np.int64(2**31 + 3)),
}


@pytest.mark.parametrize("name", FEW_OF_MANY)
def test_fori_loop_counts_in_a_type_that_holds_its_bounds(name):
    lower, upper = FEW_OF_MANY[name]
    numbers = range(int(lower), int(upper))
    body = lambda i, v: (v[0] + 1, v[1] + i * np.float32(2.0**-40), i * np.float32(1))
    start = (0, 0.0, np.float32(7))
    expected = (
        len(numbers),
        sum(np.float32(i) * np.float32(2.0**-40) for i in numbers),
        np.float32(numbers[-1] if numbers else 7),
    )
    loops = {
        "known": lambda: lax.fori_loop(lower, upper, body, start),
        "jit": lambda: weft.jit(lambda v: lax.fori_loop(lower, upper, body, v))(start),
    }
    # An argument of jit has 32 bits.
    fits = lambda bound: not isinstance(bound, (int, np.int64)) or abs(bound) < 2**31
    one_type = isinstance(lower, int) or np.dtype(type(lower)).kind != "u"
    if fits(lower) and one_type and not isinstance(upper, np.uint8):
        loops["lower traced"] = lambda: weft.jit(
            lambda n: lax.fori_loop(n, upper, body, start, max_steps=600)
        )(lower)
    if fits(upper) and not isinstance(upper, int) and isinstance(lower, type(upper)):
        loops["upper traced"] = lambda: weft.jit(
            lambda n: lax.fori_loop(lower, n, body, start, max_steps=600)
        )(upper)
    for kind, loop in loops.items():
        for have, want in zip(loop(), expected, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-5, err_msg=kind)


def test_loops_longer_than_an_int32_counts_run():
    class Enough(Exception):
        pass

    calls = []

    def stop(x):
        calls.append(int(x))
        if len(calls) == 3:
            raise Enough
        return x

    def call(x):
        return weft.experimental.io_callback(stop, weft.ShapeDtypeStruct((), "int32"), x)

    many = 2**31 + 5
    slices = wnp.zeros((many, 0), "int8")
    loops = {
        "fori_loop": lambda c: lax.fori_loop(0, 3_000_000_000, lambda i, c: call(c) + 1, c),
        "scan": lambda c: lax.scan(lambda c, _: (call(c) + 1, None), c, length=many)[0],
        "scan, reverse": lambda c: lax.scan(lambda c, x: (call(c) + 1, x), c, slices, reverse=True),
        "scan, unrolled": lambda c: lax.scan(lambda c, x: (call(c) + 1, x), c, slices, unroll=2),
        "max_steps": lambda c: lax.while_loop(
            lambda c: c >= 0, lambda c: call(c) + 1, c, max_steps=many
        ),
    }
    for name, loop in loops.items():
        calls.clear()
        with pytest.raises(Enough):
            np.asarray(weft.jit(loop)(0))
        assert calls == [0, 1, 2], name


def test_scan_reads_stacks_and_reverses():
    xs = {"a": np.arange(4.0), "b": np.arange(8.0).reshape(4, 2)}
    step = lambda c, x: (c + x["a"], (c, x["b"] * 2))
    carry, (before, doubled) = lax.scan(step, 1.0, xs)
    assert carry == 7
    np.testing.assert_allclose(before, [1, 1, 2, 4])
    np.testing.assert_allclose(doubled, xs["b"] * 2)
    _, (before, _) = lax.scan(step, 1.0, xs, reverse=True)
    np.testing.assert_allclose(before, [7, 6, 4, 1])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, 5, 9, 0, True, False])
@pytest.mark.parametrize("length", [0, 1, 5, 6])
def test_unroll_changes_nothing(length, unroll, reverse):
    xs = np.linspace(-1, 1, length, dtype=np.float32)
    step = lambda c, x: (wnp.sin(c) + x, c * x)
    loss = lambda c, xs, **kw: sum(y.sum() for y in lax.scan(step, c, xs, reverse=reverse, **kw))
    rolled = weft.value_and_grad(loss, (0, 1))(0.3, xs)
    unrolled = weft.value_and_grad(lambda *a: loss(*a, unroll=unroll), (0, 1))(0.3, xs)
    np.testing.assert_allclose(unrolled[0], rolled[0], rtol=1e-5)
    for got, expected in zip(unrolled[1], rolled[1], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_scan_without_xs_carry_or_ys():
    carry, ys = lax.scan(lambda c, _: (c * 2, None), 1, length=5)
    assert carry == 32 and ys is None
    carry, ys = lax.scan(lambda c, x: ((), x * x), (), wnp.arange(3))
    assert carry == ()
    np.testing.assert_array_equal(ys, [0, 1, 4])
    carry, ys = lax.scan(lambda c, x: (c, ()), 3.0, np.zeros((0, 2)))
    assert carry == 3 and ys == ()


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 5, 7])
def test_map(batch_size):
    xs = (np.arange(5.0), np.arange(10.0).reshape(5, 2))
    f = lambda x: {"p": x[0] * x[1], "q": x[0] - 1}
    ys = lax.map(f, xs, batch_size=batch_size)
    np.testing.assert_allclose(ys["p"], xs[0][:, None] * xs[1])
    np.testing.assert_allclose(ys["q"], xs[0] - 1)


def test_map_of_nothing():
    assert lax.map(lambda x: x * 2, np.zeros((0, 3))).shape == (0, 3)
    assert lax.map(lambda x: x * 2, np.zeros((0, 3)), batch_size=2).shape == (0, 3)


# ---- differentiation and vmap beyond what random programs reach


def test_hessian_through_a_loop():
    f = lambda x: lax.fori_loop(0, 3, lambda i, v: v * wnp.sin(v) + x, x).sum()
    plain = lambda x: (lambda v: v * wnp.sin(v) + x)(
        (lambda v: v * wnp.sin(v) + x)(x * wnp.sin(x) + x)
    ).sum()
    x = np.array([0.3, -0.8, 1.2], np.float32)
    np.testing.assert_allclose(weft.hessian(f)(x), weft.hessian(plain)(x), rtol=1e-4, atol=1e-5)


def test_integer_carries_and_xs_have_no_tangents():
    def f(w, xs, ks):
        def step(carry, x):
            i, c = carry
            return (i + x[1], c * w + x[0] * i), None

        return lax.scan(step, (0, w), (xs, ks))[0][1]

    xs, ks = np.arange(3.0, dtype=np.float32), np.arange(3)
    w = 0.7
    plain = lambda w: ((w * w + 0.0) * w + 0.0) * w + 2.0 * 1
    assert f(w, xs, ks) == pytest.approx(plain(w), rel=1e-5)
    slope = weft.grad(f)(w, xs, ks)
    assert slope == pytest.approx(4 * w**3, rel=1e-4)


def test_reverse_mode_keeps_no_copies_of_constants():
    """A residual that is the same in all iterations is not stacked."""

    def f(w, xs):
        return lax.scan(lambda c, x: (wnp.tanh(c @ wnp.exp(w)) + x, None), xs[0], xs)[0].sum()

    w, xs = np.zeros((8, 8), np.float32), np.zeros((50, 8), np.float32)
    text = weft.jit(weft.grad(f)).lower(w, xs).as_text()
    assert "50x8x8" not in text
    assert "50x8xf32" in text


def test_while_has_forward_mode_only():
    f = lambda x: lax.while_loop(lambda v: v < 10, lambda v: v * v, x)
    assert weft.jvp(f, (2.0,), (1.0,))[1] == 4 * 2.0**3
    assert weft.jacfwd(f)(2.0) == 32
    with pytest.raises(NotImplementedError, match="no reverse-mode derivative") as info:
        weft.grad(f)(2.0)
    assert here() in str(info.value)
    assert weft.grad(lambda x: lax.while_loop(lambda v: v < 3, lambda v: v + 1, 0) * x)(2.0) == 3


def test_what_a_while_body_returns_as_it_was_has_a_reverse_mode():
    def f(x, y):
        stop = lambda s: s[0] < 3
        return lax.while_loop(stop, lambda s: (s[0] + 1, s[1], s[2] * s[1]), (0, x, y))

    assert weft.grad(lambda x: f(x, 2.0)[1] ** 2)(3.0) == 6
    pull = weft.vjp(lambda x: f(x, lax.stop_gradient(x))[1], 3.0)[1]
    assert weft.vmap(pull)(np.ones(2, np.float32))[0].tolist() == [1, 1]
    assert weft.linear_transpose(lambda x: f(x, 2.0)[1], 3.0)(5.0) == (5,)

    step = lambda s: (s[0] + 1, s[1])
    lanes = weft.vmap(lambda n, x: lax.while_loop(lambda s: s[0] < n, step, (0, x))[1])
    xs = np.float32([1, 2])
    assert weft.grad(lambda x: (lanes(np.arange(2), x) ** 2).sum())(xs).tolist() == [2, 4]
    with pytest.raises(NotImplementedError, match="no reverse-mode derivative"):
        weft.grad(lambda x: f(x, 2.0)[2])(3.0)


def test_vmap_of_a_condition_with_lanes():
    f = lambda n, x: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2), (0, x))
    counts, xs = weft.vmap(f)(np.array([0, 3, 1]), np.array([1, 1, 5]))
    np.testing.assert_array_equal(counts, [0, 3, 1])
    np.testing.assert_array_equal(xs, [1, 8, 10])
    counts, xs = weft.vmap(f, (None, 0))(2, np.array([1, 2, 5]))
    np.testing.assert_array_equal(xs, [4, 8, 20])


def test_vmap_keeps_what_all_lanes_share():
    """Carries that do not differ between lanes stay as they are."""
    f = lambda x: lax.scan(lambda c, y: ((c[0] + 1, c[1] * y), c[0]), (0, x), np.arange(4.0))
    (count, _), ys = weft.vmap(f, out_axes=((None, 0), None))(np.arange(3.0))
    assert count == 4
    np.testing.assert_array_equal(ys, [0, 1, 2, 3])


def test_vmap_keeps_what_all_branches_return():
    """An operand that every branch hands on stays as it is, whichever each lane chooses."""
    branches = [lambda y, z: (y, z, z + y), lambda y, z: (y, z, z)]
    f = lambda which, y, z: lax.switch(which, branches, y, z)
    lanes = weft.vmap(f, in_axes=(0, None, 1), out_axes=(None, 1, 0))
    z = np.float32([[0, 1], [2, 3], [4, 5]])
    same, given, sums = lanes(np.array([1, 0]), 10.0, z)
    assert same == 10
    np.testing.assert_array_equal(given, z)
    np.testing.assert_array_equal(sums, [[0, 2, 4], [11, 13, 15]])


def test_stacked_axes_of_mapped_xs():
    xs = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)
    f = lambda xs: lax.scan(lambda c, x: (c + x, c), xs[0] * 0, xs)
    for axis in (0, 1, 2):
        per_lane = [f(x) for x in np.moveaxis(xs, axis, 0)]
        carry, ys = weft.vmap(f, in_axes=axis)(xs)
        np.testing.assert_allclose(carry, np.stack([c for c, _ in per_lane]), rtol=1e-5)
        np.testing.assert_allclose(ys, np.stack([y for _, y in per_lane]), rtol=1e-5)


def test_linear_transpose_of_a_counting_loop():
    f = lambda x: lax.fori_loop(0, 4, lambda i, c: c * (i + 1.0) + x, x)
    x = np.float32(2.0)
    (back,) = weft.linear_transpose(f, x)(np.float32(1.0))
    assert back == f(x) / x


@weft.custom_vjp
def clipped(x, w):
    return wnp.sin(x) * w


clipped.defvjp(
    lambda x, w: (wnp.sin(x) * w, (x, w)),
    lambda r, g: (2 * g * wnp.cos(r[0]) * r[1], g * wnp.sin(r[0])),
)


@weft.custom_jvp
def squared(x):
    return x * x


squared.defjvp(lambda primals, tangents: (primals[0] ** 2, 3 * primals[0] * tangents[0]))


def test_rules_of_users_in_bodies():
    def loss(loop):
        def body(c, x):
            c = clipped(c[0], c[1]) + x, c[1]
            return c, squared(c[0])

        return lambda x, w: sum(part.sum() for part in loop(body, (x, w)))

    def compiled(body, c):
        c, ys = lax.scan(body, c, wnp.arange(4.0))
        return c[0], ys

    def plain(body, c):
        ys = []
        for x in range(4):
            c, y = body(c, float(x))
            ys.append(y)
        return c[0], wnp.stack(ys)

    expected = weft.grad(loss(plain), (0, 1))(0.5, 0.7)
    for gradient in (
        weft.grad(loss(compiled), (0, 1)),
        weft.jit(weft.grad(loss(compiled), (0, 1))),
    ):
        np.testing.assert_allclose(gradient(0.5, 0.7), expected, rtol=1e-5)


def with_vjp_rule(k):
    f = weft.custom_vjp(lambda x: wnp.sin(x) * k)
    f.defvjp(lambda x: (wnp.sin(x) * k, x), lambda x, g: (g * wnp.cos(x) * k,))
    return f


def with_jvp_rule(k):
    f = weft.custom_jvp(lambda x: wnp.sin(x) * k)
    f.defjvp(lambda x, t: (wnp.sin(x[0]) * k, wnp.cos(x[0]) * k * t[0]))
    return f


LOSSES = {
    "scan": lambda f, x: lax.scan(lambda c, y: (f(c) + y, c), x, wnp.arange(3.0))[1].sum(),
    "cond": lambda f, x: lax.cond(x > 0, lambda x: f(x) * 2, lambda x: x * 3, x),
    "while": lambda f, x: lax.while_loop(
        lambda s: f(s[0]) + s[0] < 3, lambda s: (s[0] + 1, f(s[1])), (0.0, x), max_steps=5
    )[1],
    "nested": lambda f, x: lax.fori_loop(0, 2, lambda i, c: lax.cond(c > 0, f, lambda c: c, c), x),
}


@pytest.mark.parametrize("make", [with_vjp_rule, with_jvp_rule])
@pytest.mark.parametrize("loss", LOSSES)
def test_rules_that_close_over_values_in_bodies(loss, make):
    """What a rule closes over, arrays and values of an outer trace, leaves the body with it."""
    plain = lambda k: lambda x: wnp.sin(x) * k
    of = lambda make, k: weft.grad(lambda x: LOSSES[loss](make(k), x))
    k = wnp.asarray(0.7)
    expected = of(plain, k)(0.5)
    assert of(make, k)(0.5) == pytest.approx(expected)
    assert weft.jit(of(make, k))(0.5) == pytest.approx(expected)
    assert weft.jit(lambda k, x: of(make, k)(x))(k, 0.5) == pytest.approx(expected)
    mapped = weft.jit(weft.vmap(lambda k, x: of(make, k)(x)))(np.full(2, 0.7), np.full(2, 0.5))
    np.testing.assert_allclose(mapped, [expected] * 2, rtol=1e-5)


@pytest.mark.parametrize("size", [(), (3,), (100,)])
def test_checkpoint_in_a_body(size):
    """Loops of few bytes too, which XLA would turn into kernels that cannot hold a barrier."""

    def loss(wrap):
        def body(c, x):
            return wnp.sin(c * w) * wnp.exp(-c) + x, c * c

        return lambda x: sum(y.sum() for y in lax.scan(wrap(body), x, np.arange(4.0, dtype="f4")))

    w = wnp.full(size, 0.7)
    x = wnp.full(size, 0.3)
    expected = weft.jit(weft.grad(loss(lambda body: body)))(x)
    np.testing.assert_allclose(weft.jit(weft.grad(loss(weft.checkpoint)))(x), expected, rtol=1e-5)


def test_barriers_of_products_beside_small_loops():
    """Loops of few bytes stay kernels beside products that are kept apart from a transpose."""
    x = np.ones((128, 64), np.float32)

    @weft.jit
    def f(x, y):
        grown = lax.fori_loop(0, 9, lambda i, c: c * 1.5, y)
        return x.T @ x, grown

    compiled = f.lower(x, np.ones(4, np.float32)).compile()
    product, grown = compiled(x, np.ones(4, np.float32))
    np.testing.assert_array_equal(product, np.full((64, 64), 128))
    np.testing.assert_allclose(grown, np.full(4, 1.5**9), rtol=1e-6)
    assert "optimization_barrier" in f.lower(x, np.ones(4, np.float32)).as_text()
    assert "xla_cpu_small_call" in compiled.as_text()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("every", [1, 2, 3, 7, 20])
def test_scan_in_checkpointed_segments(every, reverse):
    xs = np.linspace(-1, 1, 7, dtype=np.float32)[:, None] * np.ones(3, np.float32)

    def loss(c, xs, **options):
        step = lambda c, x: (wnp.sin(c) * x + c, {"y": c * x})
        c, ys = lax.scan(step, c, xs, reverse=reverse, **options)
        return (c * c).sum() + (ys["y"] * xs).sum()

    c = np.array([0.1, 0.5, -0.4], np.float32)
    expected = weft.value_and_grad(loss, (0, 1))(c, xs)
    got = weft.jit(weft.value_and_grad(lambda *a: loss(*a, checkpoint=every), (0, 1)))(c, xs)
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-5)
    for g, e in zip(got[1], expected[1], strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-4, atol=1e-6)


def test_segments_keep_less():
    step = lambda c, _: (wnp.sin(c @ c), None)
    loss = lambda c, **options: lax.scan(step, c, length=64, **options)[0].sum()
    x = np.eye(16, dtype=np.float32)

    def largest(**options):
        text = weft.jit(weft.grad(lambda c: loss(c, **options))).lower(x).as_text()
        return max(int(n) for n in re.findall(r"tensor<(\d+)x16x16xf32>", text))

    assert largest() == 64
    assert largest(checkpoint=8) == 8
    assert lax.scan(step, x, length=0, checkpoint=3)[0].shape == (16, 16)


def test_bounded_while_has_a_reverse_mode():
    f = lambda x: lax.while_loop(lambda v: v < 10, lambda v: v * v, x, max_steps=8)
    assert f(2.0) == 16
    assert weft.grad(f)(2.0) == 32
    assert weft.grad(f)(11.0) == 1
    np.testing.assert_allclose(weft.vmap(weft.grad(f))(np.array([2.0, 3.0, 20.0])), [32, 108, 1])
    count = lambda n: lax.while_loop(lambda v: True, lambda v: v + 1, 0, max_steps=n)
    assert [int(count(n)) for n in (0, 1, 5)] == [0, 1, 5]
    assert lax.while_loop(lambda v: v < 3, lambda v: v + 0.5, 1, max_steps=9) == 3


def test_bounded_loops_keep_little_and_agree_with_unrolled_ones():
    def step(v):
        return wnp.sin(v) * 1.1 + 0.1 * v @ v

    def bounded(v, n):
        state = lax.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, step(s[1])), (0, v), max_steps=100
        )
        return state[1].sum()

    def counted(v, n):
        return lax.fori_loop(0, n, lambda i, v: step(v), v, max_steps=100).sum()

    def unrolled(v, n):
        for _ in range(n):
            v = step(v)
        return v.sum()

    x = np.linspace(-0.5, 0.5, 16, dtype=np.float32).reshape(4, 4)
    for n in (0, 1, 9, 37):
        expected = weft.grad(unrolled)(x, n)
        for f in (bounded, counted):
            np.testing.assert_allclose(weft.jit(weft.grad(f))(x, n), expected, rtol=2e-4, atol=1e-5)
    dots = [weft.jvp(lambda v, f=f: f(v, 9), (x,), (x,))[1] for f in (bounded, unrolled)]
    np.testing.assert_allclose(*dots, rtol=1e-4)
    text = weft.jit(weft.grad(bounded)).lower(x, 9).as_text()
    assert max(int(n) for n in re.findall(r"tensor<(\d+)x4x4xf32>", text)) <= 11
    with pytest.raises(NotImplementedError, match="max_steps"):
        weft.jit(weft.grad(lambda v, n: lax.fori_loop(0, n, lambda i, v: step(v), v).sum()))(x, 3)


# ---- How often a loop's body is transformed, and how much is kept of it


def counted_double():
    """A primitive 2 x, and how often each of its rules has run."""
    counts = {"jvp": 0, "transpose": 0, "batch": 0}
    double = Primitive("counted_double")
    double.def_abstract_eval(lambda x: weft.core.ShapedArray(x.shape, x.dtype))
    double.def_lowering(lambda x: x * 2)

    @double.def_jvp
    def jvp(primals, tangents):
        counts["jvp"] += 1
        return double.bind(primals[0]), double.bind(tangents[0])

    @double.def_transpose
    def transpose(ct, x):
        counts["transpose"] += 1
        return (double.bind(ct),)

    @double.def_batching
    def batch(args, dims):
        counts["batch"] += 1
        return double.bind(args[0]), dims[0]

    return double, counts


# A function of two values as one through an op that holds it.
WRAPS = {
    "plain": lambda f: f,
    "call": weft.jit,
    "checkpoint": weft.checkpoint,
    "custom_jvp": weft.custom_jvp,
    "scan": lambda f: lambda a, b: lax.scan(lambda c, _: (f(c, b), c), a, length=2)[1][1],
    "while": lambda f: lambda a, b: lax.fori_loop(0, 2, lambda _, c: f(c, b), a),
    "cond": lambda f: lambda a, b: lax.cond(True, f, lambda a, b: b, a, b),
}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("kind", ["scan", "while"])
def test_carries_that_depend_on_each_other_cost_one_transform(kind, wrap):
    n = 60
    double, counts = counted_double()
    add = WRAPS[wrap](lambda a, b: a + b)
    if wrap == "custom_jvp":
        add.defjvp(lambda primals, tangents: (sum(primals), sum(tangents)))

    def body(carry):
        first, *rest = carry
        return (double.bind(first), *(add(a, b) for a, b in zip(carry, rest, strict=False)))

    def loop(x):
        init = (x, *[wnp.float32(k) for k in range(n)])
        if kind == "scan":
            return lax.scan(lambda c, _: (body(c), None), init, length=3)[0][-1] + x
        state = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, body(s[1])), (0, init))
        return state[1][3] + x

    weft.make_jaxpr(lambda x: weft.jvp(loop, (x,), (x,)))(1.0)
    assert counts["jvp"] <= 2
    weft.make_jaxpr(weft.vmap(loop))(wnp.ones(3))
    assert counts["batch"] <= 2
    if kind == "scan" and wrap != "while":
        counts["jvp"] = 0

        def step(c, _):
            shifted = [*c[1:], double.bind(c[0])]
            return tuple(add(a, b) for a, b in zip(c, shifted, strict=True)), None

        last_first = lambda x: lax.scan(step, (x,) * n, length=2)[0][0]
        weft.make_jaxpr(weft.grad(last_first))(1.0)
        assert counts["jvp"] <= 2 and counts["transpose"] <= 3


@pytest.mark.parametrize("inner", ["scan", "while", "cond"])
def test_carries_through_nested_loops_cost_one_transform_per_level(inner):
    """Each carry depends on the one before it, by way of three levels that have them all."""
    n = 30
    double, counts = counted_double()

    def shift(c):
        return (double.bind(c[0]), *(a + b for a, b in zip(c, c[1:], strict=False)))

    def level(f):
        if inner == "scan":
            return lambda c: lax.scan(lambda c, _: (f(c), None), c, length=2)[0]
        if inner == "while":
            return lambda c: lax.while_loop(
                lambda s: s[0] < 2, lambda s: (s[0] + 1, f(s[1])), (0, c)
            )[1]
        return lambda c: lax.cond(c[0] > 100, lambda c: c, f, c)

    nest = shift
    for _ in range(3):
        nest = level(nest)

    def loop(x):
        init = (x, *[wnp.float32(k) for k in range(n)])
        return lax.scan(lambda c, _: (nest(c), None), init, length=2)[0][-1]

    weft.make_jaxpr(lambda x: weft.jvp(loop, (x,), (x,)))(1.0)
    assert counts["jvp"] <= 2
    weft.make_jaxpr(weft.vmap(loop))(wnp.ones(3))
    assert counts["batch"] <= 2
    if inner != "while":
        counts["jvp"] = 0
        weft.make_jaxpr(weft.grad(loop))(1.0)
        assert counts["jvp"] <= 2 and counts["transpose"] <= 3


def test_unused_carries_of_nested_loops_are_dropped():
    n = 20

    def step(c):
        return tuple(c[k] + c[k + 1] for k in range(n)) + (c[n],) + (wnp.sin(c[-1]),)

    def inner(c, _):
        return lax.while_loop(lambda c: c[0] < 9, step, c), None

    f = weft.jit(lambda x: lax.scan(inner, (x,) * (n + 2), length=2)[0][n - 3])
    text = str(weft.compiler.optimize(f.trace(1.0).graph))
    assert "sin" not in text
    # The carries from the condition's on are needed, none but the last one is not.
    assert text.count(" add ") == n


def test_a_scan_with_thousands_of_residuals():
    n = 5000

    def step(c, x):
        for _ in range(n):
            c = wnp.sin(c)
        return c, None

    program = weft.make_jaxpr(weft.grad(lambda x: lax.scan(step, x, length=2)[0]))(0.5)
    assert program.graph.op_names().count("scan") == 2
    branch = lambda x: step(x, None)[0]
    program = weft.make_jaxpr(weft.grad(lambda x: lax.cond(x > 0, branch, wnp.cos, x)))(0.5)
    assert program.graph.op_names().count("cond") == 2


# ---- caches, devices, printing


def test_eager_loops_are_compiled_once():
    def run(x):
        return lax.fori_loop(0, 5, lambda i, v: wnp.sin(v) * i + v, x)

    run(wnp.ones(3))
    before = weft._core.cache_stats()["compiles"]
    for _ in range(3):
        run(wnp.zeros(3))
        lax.fori_loop(0, 5, lambda i, other: wnp.sin(other) * i + other, wnp.ones(3))
    assert weft._core.cache_stats()["compiles"] == before


def test_text_round_trip_of_nested_regions():
    def f(x, n):
        def body(i, v):
            return lax.cond(i > 2, lambda v: lax.map(wnp.sin, v), lambda v: v * x, v)

        return lax.fori_loop(0, 4, body, lax.while_loop(lambda v: v.sum() < n, wnp.cos, x))

    graph = weft.make_jaxpr(f)(np.ones(3, np.float32), 2.0).graph
    assert weft.compiler.parse(str(graph)) == graph


def test_disable_jit_runs_python():
    seen = []

    def body(i, x):
        seen.append(float(x))
        return x * 2

    with weft.disable_jit():
        assert lax.fori_loop(0, 3, body, 1.0) == 8
        assert seen == [1, 2, 4]
        assert lax.while_loop(lambda x: x < 9, lambda x: x + 4, 1) == 9
        carry, ys = lax.scan(lambda c, x: (c + x, {"y": c}), 0.0, np.arange(3.0), reverse=True)
        assert carry == 3
        np.testing.assert_allclose(ys["y"], [3, 2, 0])
        assert lax.cond(False, lambda: 1, lambda: 2) == 2
        assert lax.switch(7, [lambda: 1, lambda: 2]) == 2
        carry, ys = lax.scan(lambda c, x: (c, x), 1.0, np.zeros((0, 2)))
        assert ys.shape == (0, 2)
        slope = weft.grad(lambda x: lax.scan(lambda c, _: (c * x, None), x, length=2)[0])(3.0)
        assert slope == 27


# ---- against jax

ORACLE = oracle.lines("""
lax.scan(lambda c, _: (c + jnp.float32(1), c * jnp.bfloat16(2)), 1.0, None, length=2)
lax.scan(lambda c, _: (c + 1.5, c * jnp.bfloat16(2)), 1, None, length=2)
lax.scan(lambda c, _: (c * jnp.bfloat16(2), c), 1.0, None, length=2)
lax.scan(lambda c, x: (c + x, c), 0, k)
lax.scan(lambda c, x: (c + x.sum(), x), 0, x, reverse=True)
lax.while_loop(lambda c: c < 3, lambda c: 5.0, jnp.float32(2))
lax.scan(lambda c, x: (1.0, c), jnp.float32(2), None, length=3)
lax.while_loop(lambda c: c < 3, lambda c: c + jnp.float32(1), 1.0)
lax.while_loop(lambda c: c < 3, lambda c: c + 1, 1.0)
lax.while_loop(lambda c: c < 3, lambda c: c + 1.0, 1)
lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))
lax.fori_loop(0, 3, lambda i, c: c + i, 1)
lax.fori_loop(0, 3, lambda i, c: c + i * jnp.bfloat16(1), 1)
lax.fori_loop(0, jnp.int8(3), lambda i, c: c + i, 1)
lax.fori_loop(0, 2.5, lambda i, c: c + i, 1)
lax.fori_loop(0, 3, lambda i, c: (c, c), 1)
lax.cond(True, lambda: 1.0, lambda: jnp.float32(2))
lax.cond(True, lambda: 1.0, lambda: 2.0)
lax.cond(True, lambda: 1.0, lambda: 2)
lax.cond(b.any(), lambda a: a.sum(0), lambda a: a[0], x)
lax.cond(b, lambda: 1, lambda: 2)
lax.cond("yes", lambda: 1, lambda: 2)
lax.cond(2.5, lambda: 1, lambda: 2)
lax.cond(True, lambda a: a, lambda a: -a, operand=x)
lax.switch(7, [lambda a: a, lambda a: a * 2, lambda a: a + 1], x)
lax.switch(-1, [lambda a: a, lambda a: a * 2, lambda a: a + 1], x)
lax.switch(1.5, [lambda: 1.0, lambda: 2.0])
lax.switch(True, [lambda: 1.0, lambda: 2.0])
lax.switch(0, [])
lax.map(lambda a: a * 2, k)
lax.map(lambda a: (a.sum(), a), x, batch_size=2)
lax.map(lambda a: a.sum(), u.reshape(6, -1), batch_size=4)
lax.scan(lambda c, a: (c, a), 0, (x, jnp.ones(3)))
lax.scan(lambda c, a: (c, a), 0, x, length=3)
lax.scan(lambda c, a: (c, a), 0, w)
lax.scan(lambda c, a: (c, a), 0)
lax.scan(lambda c, a: c, 0, x)
lax.scan(lambda c, a: (c + x, a), 0.0, x)
lax.while_loop(lambda c: c, lambda c: c, 1.0)
lax.while_loop(lambda c: (c, c), lambda c: c, 1.0)
lax.associative_scan(jnp.add, jnp.arange(5))
lax.associative_scan(jnp.add, x, axis=1)
lax.associative_scan(jnp.multiply, x + 1, reverse=True)
lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (x, x + 1))
lax.associative_scan(jnp.maximum, u, axis=-1)
lax.associative_scan(jnp.add, (jnp.arange(5), jnp.arange(4)))
lax.associative_scan(jnp.add, jnp.zeros((0, 3)))
""")


@oracle.needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("expression", ORACLE)
def test_as_jax(expression):
    oracle.check(ORACLE, expression)


# ---- errors


def fails(kind, *parts, call):
    with pytest.raises(kind) as info:
        call()
    message = str(info.value)
    for part in parts:
        assert part in message, message
    if isinstance(info.value, errors.WeftError):
        assert re.search(rf"\n  at .*{here()}:\d+", message), message


CARRY = {"a": np.ones(3, np.float32), "b": (np.int32(1), 2.0)}

ERRORS = {
    "cond, pred with axes": (
        errors.ControlFlowTypeError,
        ("[cond] expected a scalar pred", "bool[2]", "where"),
        lambda: lax.cond(np.ones(2, bool), lambda: 1, lambda: 2),
    ),
    "cond, pred no number": (
        errors.ControlFlowTypeError,
        ("[cond] expected a scalar pred", "'yes'"),
        lambda: lax.cond("yes", lambda: 1, lambda: 2),
    ),
    "cond, not callable": (TypeError, ("cond expected a function",), lambda: lax.cond(True, 1, 2)),
    "cond, dtypes differ": (
        errors.ControlFlowTypeError,
        ("[cond]", "false_fun", "true_fun", "result['x'][0]: expected float32[], got int32[]"),
        lambda: lax.cond(True, lambda: {"x": (1.0,)}, lambda: {"x": (1,)}),
    ),
    "cond, trees differ": (
        errors.ControlFlowTypeError,
        ("[cond]", "result[1]: expected a tuple of length 2, got an array"),
        lambda: lax.cond(True, lambda: (1, (2, 3)), lambda: (1, 2)),
    ),
    "cond, a leaf where a node was": (
        errors.ControlFlowTypeError,
        ("[cond]", "result['k']: expected an array, got a list of length 1"),
        lambda: lax.cond(True, lambda: {"k": 1}, lambda: {"k": [1]}),
    ),
    "cond, result is no array": (
        errors.ArgumentTypeError,
        ("result[0] of '<lambda>'", "str"),
        lambda: lax.cond(True, lambda: ("no",), lambda: (1,)),
    ),
    "cond, operand is no array": (
        errors.ArgumentTypeError,
        ("operand[1] of cond", "str"),
        lambda: lax.cond(True, lambda a, b: a, lambda a, b: a, 1, "no"),
    ),
    "cond, operands twice": (
        TypeError,
        ("by position or by name",),
        lambda: lax.cond(True, lambda a: a, lambda a: a, 1, operand=2),
    ),
    "switch, float index": (
        errors.ControlFlowTypeError,
        ("[switch] expected an integer scalar", "float32[]"),
        lambda: lax.switch(1.5, [lambda: 1, lambda: 2]),
    ),
    "switch, no branches": (
        errors.AttributeValueError,
        ("[switch] expected at least one branch",),
        lambda: lax.switch(0, []),
    ),
    "switch, shapes differ": (
        errors.ControlFlowTypeError,
        ("branches[1]", "branches[0]", "result: expected float32[3], got float32[4]"),
        lambda: lax.switch(0, [lambda: wnp.ones(3), lambda: wnp.ones(4)]),
    ),
    "while_loop, condition of another type": (
        errors.ControlFlowTypeError,
        ("[while_loop] expected", "bool scalar", "float32[]"),
        lambda: lax.while_loop(lambda x: x, lambda x: x, 1.0),
    ),
    "while_loop, condition of several values": (
        errors.ControlFlowTypeError,
        ("[while_loop] expected", "bool scalar", "tree"),
        lambda: lax.while_loop(lambda x: (True, x), lambda x: x, 1.0),
    ),
    "while_loop, value changes": (
        errors.ControlFlowTypeError,
        ("[while_loop]", "val['a']: expected float32[3], got float32[2]", "val['b'][0]"),
        lambda: lax.while_loop(
            lambda v: True, lambda v: {"a": v["a"][:2], "b": (v["b"][0] * 0.5, v["b"][1])}, CARRY
        ),
    ),
    "while_loop, negative max_steps": (
        errors.AttributeValueError,
        ("[while_loop] expected max_steps >= 0; got -1",),
        lambda: lax.while_loop(lambda x: True, lambda x: x, 1.0, max_steps=-1),
    ),
    "scan, checkpoint": (
        errors.AttributeValueError,
        ("[scan] expected checkpoint >= 1; got 0",),
        lambda: lax.scan(lambda c, _: (c, None), 1.0, length=3, checkpoint=0),
    ),
    "fori_loop, float bounds": (
        errors.ControlFlowTypeError,
        ("[fori_loop] expected integer scalars as bounds", "float32[]"),
        lambda: lax.fori_loop(0, 2.5, lambda i, x: x, 1.0),
    ),
    "fori_loop, bounds of two dtypes": (
        errors.ControlFlowTypeError,
        ("[fori_loop] expected bounds of one dtype", "int8[]", "int32[]"),
        lambda: lax.fori_loop(np.int8(0), np.int32(3), lambda i, x: x, 1.0),
    ),
    "fori_loop, a traced bound of another sign": (
        errors.ControlFlowTypeError,
        ("[fori_loop] expected bounds of one dtype", "int32[]", "uint8[]"),
        lambda: weft.jit(lambda n: lax.fori_loop(n, np.uint8(3), lambda i, x: x, 1.0))(-3),
    ),
    "fori_loop, bounds beyond 64 bits": (
        errors.ControlFlowTypeError,
        (
            "[fori_loop] expected bounds that an integer of 64 bits can count between",
            "-1",
            str(2**63),
        ),
        lambda: lax.fori_loop(-1, 2**63, lambda i, x: x, 1.0),
    ),
    "fori_loop, bounds no numbers": (
        errors.ControlFlowTypeError,
        ("[fori_loop] expected integer bounds", "'3'"),
        lambda: lax.fori_loop(0, "3", lambda i, x: x, 1.0),
    ),
    "fori_loop, unroll with traced bounds": (
        ValueError,
        ("[fori_loop]", "unroll"),
        lambda: weft.jit(lambda n: lax.fori_loop(0, n, lambda i, x: x, 1.0, unroll=2))(3),
    ),
    "scan, carry changes": (
        errors.ControlFlowTypeError,
        ("[scan]", "carry['b'][0]: expected int32[], got float32[]"),
        lambda: lax.scan(
            lambda c, _: ({"a": c["a"], "b": (c["b"][0] * 0.5, c["b"][1])}, None), CARRY, length=2
        ),
    ),
    "scan, carry of another tree": (
        errors.ControlFlowTypeError,
        ("[scan]", "carry['b']: expected a tuple of length 2, got an array"),
        lambda: lax.scan(lambda c, _: ({"a": c["a"], "b": c["b"][0]}, None), CARRY, length=2),
    ),
    "scan, no pair": (
        errors.ControlFlowTypeError,
        ("[scan]", "a pair (carry, y)"),
        lambda: lax.scan(lambda c, x: c, 1.0, np.ones(3)),
    ),
    "scan, lengths differ": (
        errors.ShapeError,
        ("[scan]", "xs['p']: length 3", "xs['q'][0]: length 4"),
        lambda: lax.scan(lambda c, x: (c, None), 1.0, {"p": np.ones(3), "q": [np.ones((4, 2))]}),
    ),
    "scan, another length given": (
        errors.ShapeError,
        ("[scan]", "given length 5", "xs[0]: length 3", "xs[1]: length 3"),
        lambda: lax.scan(lambda c, x: (c, None), 1.0, (np.ones(3), np.ones(3)), length=5),
    ),
    "scan, scalar xs": (
        errors.ShapeError,
        ("[scan]", "xs[1] is a scalar"),
        lambda: lax.scan(lambda c, x: (c, None), 1.0, (np.ones(3), 2.0)),
    ),
    "scan, no length": (
        errors.AttributeValueError,
        ("[scan] expected xs or a length",),
        lambda: lax.scan(lambda c, x: (c, None), 1.0),
    ),
    "scan, negative length": (
        errors.AttributeValueError,
        ("[scan] expected a length between 0 and 2**63 - 1; got -1",),
        lambda: lax.scan(lambda c, x: (c, None), 1.0, length=-1),
    ),
    "scan, length beyond 64 bits": (
        errors.AttributeValueError,
        ("[scan] expected a length between 0 and 2**63 - 1; got 9223372036854775808",),
        lambda: lax.scan(lambda c, x: (c, None), 1.0, length=2**63),
    ),
    "scan, negative unroll": (
        errors.AttributeValueError,
        ("[scan] expected unroll >= 0; got -2",),
        lambda: lax.scan(lambda c, x: (c, None), 1.0, length=3, unroll=-2),
    ),
    "scan, init is no array": (
        errors.ArgumentTypeError,
        ("init['k'] of scan", "str"),
        lambda: lax.scan(lambda c, x: (c, None), {"k": "no"}, length=3),
    ),
    "scan, not callable": (TypeError, ("scan expected a function",), lambda: lax.scan(1, 2, 3)),
    "map, batch size": (
        errors.AttributeValueError,
        ("[map] expected batch_size >= 1; got -1",),
        lambda: lax.map(lambda x: x, np.ones(3), batch_size=-1),
    ),
    "associative_scan, lengths differ": (
        errors.ShapeError,
        ("[associative_scan]", "elems['p']: length 5", "elems['q']: length 4"),
        lambda: lax.associative_scan(lambda a, b: a, {"p": np.ones(5), "q": np.ones(4)}),
    ),
    "associative_scan, result of another type": (
        errors.ControlFlowTypeError,
        ("[associative_scan]", "expected float32[", "got int32["),
        lambda: lax.associative_scan(lambda a, b: (a + b).astype(int), np.ones(5, np.float32)),
    ),
    "associative_scan, result of another tree": (
        errors.TreeStructureError,
        ("[associative_scan]", "got a tuple of length 2"),
        lambda: lax.associative_scan(lambda a, b: (a, b), np.ones(5, np.float32)),
    ),
    "associative_scan, axis": (
        errors.AttributeValueError,
        ("[associative_scan] axis 2 is out of bounds",),
        lambda: lax.associative_scan(lambda a, b: a, np.ones((5, 2)), axis=2),
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_error(case):
    kind, parts, call = ERRORS[case]
    fails(kind, *parts, call=call)


def test_value_of_a_tracer_in_a_body():
    fails(
        errors.TracerBoolConversionError,
        "a traced bool[] of 'step'",
        call=lambda: lax.scan(step, {"k": 1.0}, length=2),
    )


def step(c, _):
    return ({"k": 1.0} if c["k"] > 0 else c), None


def test_a_tracer_that_leaves_a_body():
    kept = []
    lax.scan(lambda c, x: (kept.append(c) or c, None), 1.0, length=2)
    fails(errors.UnexpectedTracerError, "kept after that trace ended", call=lambda: kept[0] + 1)
