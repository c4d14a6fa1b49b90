"""Primitives that users define, with all their rules."""

import gc
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import programs_oracle
import pytest
from conftest import ROOT
from oracle import needs_jax

import weft
import weft.numpy as wnp
from weft import errors, lax
from weft.compiler import cache_stats
from weft.core import ShapedArray
from weft.extend.core import Primitive, jaxpr_as_fun
from weft.interpreters import ad, batching, mlir
from weft.test_util import check_grads

F = np.float32
X = np.linspace(0.1, 1.0, 4, dtype=np.float32)
WRAPS = [lambda f: f, weft.jit]
wraps = pytest.mark.parametrize("wrap", WRAPS, ids=["eager", "jit"])


def close(a, b, tolerance=1e-5):
    for x, y in zip(weft.tree.leaves(a), weft.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def same_type(x, *_, **__):
    return ShapedArray(x.shape, x.dtype)


def make_sin_cos():
    """sin by a host function, cos by a lowering; derivatives in terms of each other."""
    sin, cos = Primitive("my_sin"), Primitive("my_cos")
    sin.def_impl(lambda x, *, scale: np.sin(x) * np.asarray(scale, x.dtype))
    cos.def_lowering(lambda x, *, scale: wnp.cos(x) * scale)

    @sin.def_jvp
    def sin_jvp(primals, tangents, *, scale):
        return sin.bind(*primals, scale=scale), cos.bind(*primals, scale=scale) * tangents[0]

    @cos.def_jvp
    def cos_jvp(primals, tangents, *, scale):
        return cos.bind(*primals, scale=scale), -sin.bind(*primals, scale=scale) * tangents[0]

    for p in (sin, cos):
        p.def_abstract_eval(same_type)
        p.def_batching(lambda args, dims, *, p=p, **params: (p.bind(*args, **params), dims[0]))
    return sin, cos


SIN, COS = make_sin_cos()


def f(x):
    return SIN.bind(x, scale=2.0)


# ---- One result


@wraps
def test_values(wrap):
    close(wrap(f)(X), 2 * np.sin(X))
    close(wrap(lambda x: COS.bind(x, scale=3.0))(X), 3 * np.cos(X))
    close(wrap(lambda x: f(x * 2) + 1)(X), 2 * np.sin(2 * X) + 1)


def test_printed_program():
    text = str(weft.make_jaxpr(lambda x: SIN.bind(x, scale=2.0))(X))
    assert text == "{ lambda ; a:f32[4]. let b:f32[4] = my_sin[scale=2.0] a in (b,) }"
    assert str(SIN) == "my_sin"


@wraps
def test_derivatives(wrap):
    g = lambda x: f(x).sum()
    close(wrap(weft.grad(g))(X), 2 * np.cos(X))
    close(wrap(weft.grad(lambda x: weft.grad(g)(x).sum()))(X), -2 * np.sin(X))
    close(wrap(lambda x, t: weft.jvp(f, (x,), (t,)))(X, X), (2 * np.sin(X), 2 * X * np.cos(X)))
    close(wrap(weft.hessian(g))(X), np.diag(-2 * np.sin(X)))
    out, pull = weft.vjp(f, X)
    close(pull(out), (2 * np.cos(X) * 2 * np.sin(X),))
    check_grads(f, (X,), order=2)


@wraps
def test_vmap(wrap):
    close(wrap(weft.vmap(f))(X), 2 * np.sin(X))
    close(wrap(weft.vmap(weft.grad(f)))(X), 2 * np.cos(X))
    close(wrap(weft.vmap(weft.grad(weft.grad(f))))(X), -2 * np.sin(X))
    close(wrap(weft.grad(lambda x: weft.vmap(f)(x).sum()))(X), 2 * np.cos(X))
    xs = np.stack([X, 2 * X])
    close(wrap(weft.vmap(weft.vmap(f), in_axes=1, out_axes=1))(xs), 2 * np.sin(xs))


@wraps
def test_inside_calls_and_checkpoints(wrap):
    inner = weft.jit(f)
    g = lambda x: weft.checkpoint(lambda x: inner(inner(x)))(x).sum()
    close(wrap(weft.grad(g))(X), 2 * np.cos(2 * np.sin(X)) * 2 * np.cos(X))


def test_python_control_flow_under_grad():
    def g(x):
        y = f(x)
        return y * 2 if y > 0.5 else y

    close(weft.grad(g)(np.float32(1.0)), 4 * np.cos(1.0))
    close(weft.grad(g)(np.float32(0.1)), 2 * np.cos(0.1))


def test_parameters_tell_programs_apart():
    p = Primitive("by_type")
    p.def_abstract_eval(same_type)
    p.def_lowering(lambda x, *, k: x + {int: 1, float: 2, bool: 3, tuple: 4}[type(k)])
    for k, add in ((1, 1), (1.0, 2), (True, 3), ((1,), 4)):
        close(weft.jit(lambda x, k=k: p.bind(x, k=k))(X), X + add)
        close(p.bind(X, k=k), X + add)
    both = weft.jit(lambda x: (p.bind(x, k=1), p.bind(x, k=1.0), p.bind(x, k=1)))
    close(both(X), (X + 1, X + 2, X + 1))
    q = Primitive("signed")
    q.def_abstract_eval(same_type)
    q.def_lowering(lambda x, *, k: x * np.float32(np.copysign(1, k[0])))
    close(weft.jit(lambda x: (q.bind(x, k=(0.0,)), q.bind(x, k=(-0.0,))))(X), (X, -X))


def test_programs_are_shared():
    p = Primitive("shared")
    p.def_abstract_eval(same_type)
    traces = []
    p.def_lowering(lambda x, *, k: traces.append(k) or x * k)
    before = cache_stats()["compiles"]
    weft.jit(lambda x: p.bind(x, k=3.5))(X)
    weft.jit(lambda x: p.bind(x, k=3.5))(X)
    p.bind(X, k=3.5)
    p.bind(X, k=3.5)
    # Traced for each function, and once for the primitive on its own; compiled once for all.
    assert traces == [3.5] * 3
    assert cache_stats()["compiles"] - before <= 1


def test_primitives_of_one_name_are_told_apart():
    pair = [Primitive("namesake"), Primitive("namesake")]
    for i, p in enumerate(pair):
        p.def_abstract_eval(same_type)
        p.def_lowering(lambda x, i=i: x + i)
    assert [float(weft.jit(p.bind)(1.0)) for p in pair] == [1.0, 2.0]
    close(weft.jit(lambda x: [p.bind(x) for p in pair])(X), [X, X + 1])


def test_jaxprs_and_functions_as_parameters():
    call = Primitive("my_call")
    call.multiple_results = True
    call.def_abstract_eval(lambda *args, jaxpr, fun: jaxpr.out_avals)
    call.def_lowering(lambda *args, jaxpr, fun: [fun(r) for r in jaxpr_as_fun(jaxpr)(*args)])
    body = lambda: weft.make_jaxpr(lambda x: wnp.sin(x) * 2)(X)
    g = weft.jit(lambda x: call.bind(x, jaxpr=body(), fun=wnp.negative)[0])
    close(g(X), -2 * np.sin(X))
    eqn = weft.make_jaxpr(lambda x: call.bind(x, jaxpr=body(), fun=wnp.negative))(X).eqns[0]
    assert eqn.params["fun"] is wnp.negative
    assert eqn.params["jaxpr"].eqns[0].primitive.name == "sin"
    assert weft.make_jaxpr(lambda x: call.bind(x, jaxpr=body(), fun=wnp.negative))(X).graph == (
        weft.make_jaxpr(lambda x: call.bind(x, jaxpr=body(), fun=wnp.negative))(X).graph
    )


def test_interpreters_see_users_primitives():
    closed = weft.make_jaxpr(lambda x: f(x) + 1)(X)
    eqn = closed.eqns[0]
    assert eqn.primitive is SIN and eqn.params == {"scale": 2.0}
    close(eqn.primitive.bind(X, **eqn.params), 2 * np.sin(X))
    close(weft.grad(lambda x: jaxpr_as_fun(closed)(x)[0].sum())(X), 2 * np.cos(X))


# ---- Several results, linear operands


def make_split():
    split = Primitive("my_split")
    split.multiple_results = True

    @split.def_abstract_eval
    def types(x, *, at):
        return [ShapedArray((at,), x.dtype), ShapedArray((x.shape[0] - at,), x.dtype)]

    split.def_lowering(lambda x, *, at: [x[:at], x[at:]])

    @split.def_jvp
    def jvp(primals, tangents, *, at):
        return split.bind(*primals, at=at), split.bind(*tangents, at=at)

    @split.def_transpose
    def transpose(cts, x, *, at):
        assert ad.is_undefined_primal(x) and x.aval.shape == (sum(c.shape[0] for c in cts),)
        return [wnp.concatenate(cts)]

    @split.def_batching
    def batch(args, dims, *, at):
        (x,), (d,) = args, dims
        x = batching.moveaxis(x, d, 1)
        return [x[:at], x[at:]], [1, 1]

    return split


SPLIT = make_split()


@wraps
def test_multiple_results(wrap):
    a, b = wrap(lambda x: SPLIT.bind(x, at=1))(X)
    close((a, b), (X[:1], X[1:]))
    assert "my_split[at=1]" in str(weft.make_jaxpr(lambda x: SPLIT.bind(x, at=1))(X))
    one = lambda x: (SPLIT.bind(x * x, at=1)[1] * X[1:]).sum()  # the other cotangent is zero
    close(wrap(weft.grad(one))(X), np.array([0, *(2 * X * X)[1:]]))
    xs = np.stack([X, 2 * X, 3 * X])
    close(wrap(weft.vmap(lambda x: SPLIT.bind(x, at=1)))(xs), (xs[:, :1], xs[:, 1:]))
    close(wrap(weft.vmap(weft.grad(one)))(xs)[:, 1:], 2 * xs[:, 1:] * X[1:])
    check_grads(lambda x: SPLIT.bind(wnp.sin(x), at=3), (X,), order=2)


@wraps
def test_operands_of_which_one_is_linear(wrap):
    mul = Primitive("linear_mul")  # linear in x, given y
    mul.def_abstract_eval(same_type)
    mul.def_lowering(lambda x, y: x * y)

    @mul.def_jvp
    def jvp(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        return mul.bind(x, y), mul.bind(tx, y) + mul.bind(ty, x)

    @mul.def_transpose
    def transpose(ct, x, y):
        assert ad.is_undefined_primal(x) and not ad.is_undefined_primal(y)
        return mul.bind(ct, y), None

    g = lambda x, y: mul.bind(x, wnp.sin(y)).sum()
    close(wrap(weft.grad(g, argnums=(0, 1)))(X, X), (np.sin(X), X * np.cos(X)))
    close(weft.linear_transpose(lambda x: mul.bind(x, X), X)(X), (X * X,))


@wraps
def test_integer_operands_and_results(wrap):
    p = Primitive("top")  # (largest element scaled, its position)
    p.multiple_results = True
    p.def_abstract_eval(lambda x, n: [ShapedArray((), x.dtype), ShapedArray((), np.dtype("int32"))])
    p.def_impl(lambda x, n: [x.max() * x.dtype.type(n), np.int32(x.argmax())])
    seen = []

    @p.def_jvp
    def jvp(primals, tangents):
        (x, n), (tx, tn) = primals, tangents
        seen.append(tn)
        value, at = p.bind(x, n)
        return [value, at], [tx[at] * n.astype(x.dtype), np.zeros((), weft.dtypes.float0)]

    x = np.array([1.0, 5.0, 2.0], np.float32)
    n = np.int32(3)
    close(wrap(p.bind)(x, n), (15.0, 1))
    close(wrap(weft.grad(lambda x, n: p.bind(x, n)[0]))(x, n), np.array([0, 3, 0]))
    assert all(t.dtype == weft.dtypes.float0 and t.shape == () for t in seen)


def test_zero_tangents_are_arrays_unless_asked_for():
    for symbolic in (False, True):
        p = Primitive("two")
        p.def_abstract_eval(same_type)
        p.def_lowering(lambda x, y: x + y)
        seen = []

        def jvp(primals, tangents, p=p, seen=seen):
            seen.append(tangents)
            return p.bind(*primals), sum(t for t in tangents if not isinstance(t, ad.Zero))

        p.def_jvp(jvp, symbolic_zeros=symbolic)
        g = weft.jit(weft.grad(lambda x, p=p: p.bind(x * 3, X).sum()))
        close(g(X), np.full(4, 3.0))
        assert isinstance(seen[0][1], ad.Zero) == symbolic
        if symbolic:
            assert seen[0][1].aval == ShapedArray((4,), np.float32)


def test_returned_zeros():
    p = Primitive("constant_of")
    p.def_abstract_eval(same_type)
    p.def_impl(lambda x: np.ones_like(x))
    p.def_jvp(lambda xs, ts: (p.bind(*xs), ad.Zero(ShapedArray(xs[0].shape, xs[0].dtype))))
    close(weft.grad(lambda x: (p.bind(x) * x).sum())(X), np.ones(4))


# ---- Rules that close over arrays; calls within rules


@wraps
def test_rules_close_over_arrays(wrap):
    offset = wnp.asarray(np.arange(4, dtype=np.float32))
    p = Primitive("shifted")
    p.def_abstract_eval(same_type)
    p.def_lowering(lambda x: wnp.sin(x) + offset)
    p.def_jvp(lambda xs, ts: (p.bind(*xs), (wnp.cos(xs[0]) + offset * 0) * ts[0]))
    p.def_batching(lambda xs, ds: (wnp.sin(xs[0]) + offset[:, None], 1 - (1 - ds[0])))
    close(wrap(p.bind)(X), np.sin(X) + np.arange(4))
    close(wrap(weft.grad(lambda x: p.bind(x).sum()))(X), np.cos(X))
    g = weft.grad(lambda x: weft.grad(lambda x: p.bind(x).sum())(x).sum())
    close(wrap(g)(X), -np.sin(X))
    xs = np.stack([X, 2 * X], axis=1)
    close(wrap(weft.vmap(p.bind, in_axes=1, out_axes=1))(xs), np.sin(xs) + np.arange(4)[:, None])
    h = lambda x: weft.vmap(p.bind, in_axes=1, out_axes=1)(x * 2).sum()
    closed = weft.make_jaxpr(h)(xs)
    close(jaxpr_as_fun(closed)(xs)[0], h(xs))


@wraps
def test_jvp_rule_may_call_a_function_of_values_and_tangents(wrap):
    p = Primitive("mixed")
    p.def_abstract_eval(same_type)
    p.def_lowering(lambda x: x**3)
    both = weft.jit(lambda x, t: (p.bind(x), 3 * x * x * t))
    p.def_jvp(lambda xs, ts: both(xs[0], ts[0]))
    close(wrap(weft.grad(lambda x: p.bind(wnp.sin(x)).sum()))(X), 3 * np.sin(X) ** 2 * np.cos(X))
    check_grads(p.bind, (X,), order=2)


# ---- Lowerings


@wraps
def test_stablehlo_text(wrap):
    p = Primitive("by_text")
    p.multiple_results = True
    p.def_abstract_eval(lambda x, y: [same_type(x)] * 2)

    @p.def_stablehlo
    def text(ctx, x, y):
        assert (ctx.platform, ctx.in_types) == ("cpu", ["tensor<4xf32>"] * 2)
        assert ctx.avals_in[0] == ctx.avals_out[1] == ShapedArray((4,), np.float32)
        total = ctx.line(f"stablehlo.add {x}, {y} : {ctx.out_types[0]}")
        operands = ", ".join(ctx.in_types)
        return ctx.line(f"stablehlo.optimization_barrier {total}, {x} : {operands}", num_results=2)

    close(wrap(p.bind)(X, 2 * X), (3 * X, X))
    lowered = weft.jit(lambda x: p.bind(x, x * 2)).lower(X).as_text()
    weft.compiler.verify_stablehlo(lowered)
    assert "optimization_barrier" in lowered


def test_products_in_lowerings():
    """Of other types than the operands of the op."""
    p = Primitive("product_by_text")
    p.def_abstract_eval(same_type)

    @p.def_stablehlo
    def text(ctx, x):
        cube = ctx.line(f"stablehlo.reshape {x} : (tensor<4xf32>) -> tensor<1x2x2xf32>")
        types = "(tensor<1x2x2xf32>, tensor<1x2x2xf32>) -> tensor<1x2x2xf32>"
        dims = "batching_dims = [0] x [0], contracting_dims = [2] x [1]"
        product = ctx.line(f"stablehlo.dot_general {cube}, {cube}, {dims} : {types}")
        return ctx.line(f"stablehlo.reshape {product} : (tensor<1x2x2xf32>) -> tensor<4xf32>")

    square = X.reshape(2, 2)
    close(weft.jit(p.bind)(X), (square @ square).reshape(4))


def test_lowering_context_ends_with_its_rule():
    p = Primitive("keeps_context")
    p.def_abstract_eval(same_type)
    kept = []
    p.def_stablehlo(lambda ctx, x: kept.append(ctx) or x)
    close(p.bind(X), X)
    with pytest.raises(errors.AttributeValueError, match="lowering context"):
        kept[0].line("stablehlo.add")


def test_lowering_by_platform():
    p = Primitive("by_platform")
    p.def_abstract_eval(same_type)
    p.def_lowering(lambda x: x + 1)
    p.def_lowering(lambda x: x + 2, platform="cpu")
    p.def_lowering(lambda x: x + 3, platform="gpu")
    close(p.bind(X), X + 2)
    graph = weft.jit(p.bind).trace(X).graph
    emit = weft._core.emit_stablehlo
    assert "1.0" in emit(graph, platform="tpu") and "3.0" in emit(graph, platform="cuda")
    q = Primitive("cuda_only")
    q.def_abstract_eval(same_type)
    q.def_lowering(lambda x: x, platform="cuda")
    with pytest.raises(errors.NotImplementedRuleError, match="platform 'cpu'.*It has: cuda"):
        q.bind(X)
    q.def_impl(lambda x: x)
    close(weft.jit(q.bind)(X), X)
    with pytest.raises(errors.NotImplementedRuleError, match="def_impl serves programs on cpu"):
        emit(weft.jit(f).trace(X).graph, platform="cuda")


def test_lowerings_for_all_platforms_are_part_of_the_program():
    same, by_platform = Primitive("same"), Primitive("by_platform")
    for p in (same, by_platform):
        p.def_abstract_eval(same_type)
        p.def_lowering(lambda x, **_: x)
    by_platform.def_lowering(lambda x: x, platform="cpu")

    def ops(f):
        return weft.jit(f).lower(X).compile().graph.op_names()

    assert ops(lambda x: wnp.sin(same.bind(x, name="x"))) == ["sin"]
    assert ops(lambda x: wnp.sin(by_platform.bind(x))) == ["by_platform", "sin"]

    def loop(x):
        return weft.lax.fori_loop(0, 100, lambda _, x: wnp.sin(same.bind(x)), x)

    assert len(weft.jit(loop, kernels="always").lower(X).compile().kernels) == 1
    prints = Primitive("prints")
    prints.def_abstract_eval(same_type)
    prints.def_lowering(lambda x: weft.debug.print("seen {}", x.sum()) or x)
    assert ops(lambda x: prints.bind(x)) == ["prints"]


def test_lowering_may_use_other_primitives_and_callbacks():
    p = Primitive("outer")
    p.def_abstract_eval(same_type)
    p.def_lowering(lambda x: SIN.bind(x, scale=1.0) + weft.pure_callback(np.cos, x, x))
    close(weft.jit(p.bind)(X), np.sin(X) + np.cos(X))


def test_calls_that_have_effects_stay_in_programs():
    seen = []
    p = Primitive("seen")
    p.def_impl(lambda x, *, acts: (seen.append(float(x)), x * 2)[1])

    @p.def_effectful_abstract_eval
    def _(x, *, acts):
        return same_type(x), {"note"} if acts else set()

    for acts, expected in ((False, []), (True, [1.0, 1.0])):
        f = weft.jit(lambda x, acts=acts: (p.bind(x, acts=acts), x)[1])
        f(F(1)), f(F(1))
        weft.effects_barrier()
        assert seen == expected
        assert weft.make_jaxpr(f)(F(1)).effects == ({"unordered"} if acts else set())
    assert p.bind(F(3), acts=True) == 6 and seen.pop() == 3
    weft.lax.scan(lambda c, _: (c + 1, p.bind(c, acts=True))[:1] * 2, F(5), None, length=2)
    weft.effects_barrier()
    assert sorted(seen) == [1, 1, 5, 6]


def test_impl_may_use_weft():
    p = Primitive("impl_in_weft")
    p.def_abstract_eval(same_type)
    p.def_impl(lambda x: weft.jit(wnp.tanh)(x))
    close(p.bind(X), np.tanh(X))
    close(weft.jit(lambda x: p.bind(x) * 2)(X), 2 * np.tanh(X))


# ---- The registries


@wraps
def test_registries(wrap):
    p = Primitive("my_mul")
    p.def_abstract_eval(same_type)
    mlir.register_lowering(p, mlir.lower_fun(lambda x, y: x * y, multiple_results=False))
    ad.defjvp(p, lambda t, x, y: t * y, lambda t, x, y: x * t)
    batching.defvectorized(p)
    close(wrap(weft.grad(lambda x: p.bind(x, wnp.sin(x)).sum()))(X), np.sin(X) + X * np.cos(X))
    xs = np.stack([X, 2 * X], 1)
    close(wrap(weft.vmap(p.bind, in_axes=(1, None), out_axes=1))(xs, X), xs * X[:, None])
    ad.defjvp2(p, lambda t, z, x, y: t * z / x, None)
    close(wrap(weft.grad(lambda x: p.bind(x, X).sum()))(X), X)

    double = Primitive("double")
    double.def_abstract_eval(same_type)
    mlir.register_lowering(
        double, lambda ctx, x: ctx.line(f"stablehlo.add {x}, {x} : {ctx.out_types[0]}")
    )
    ad.deflinear2(double, lambda ct, x: [double.bind(ct)])
    close(wrap(weft.grad(lambda x: double.bind(x * x).sum()))(X), 4 * X)
    ad.deflinear(double, lambda ct: [ct * 2])
    close(wrap(weft.grad(lambda x: (double.bind(x) * x).sum()))(X), 4 * X)

    assert double in ad.primitive_jvps and double in ad.primitive_transposes
    assert double not in batching.primitive_batchers and p in list(ad.primitive_jvps)
    rule = lambda args, dims: (double.bind(*args), dims[0])
    batching.primitive_batchers[double] = rule
    assert batching.primitive_batchers[double] is rule
    close(wrap(weft.vmap(double.bind))(X), 2 * X)
    del batching.primitive_batchers[double]

    def sized(size, axis_name, trace_type, args, dims):
        assert (size, axis_name, trace_type, dims) == (len(X), None, None, (0,))
        return double.bind(args[0]), 0

    batching.axis_primitive_batchers[double] = sized
    assert double in batching.primitive_batchers
    close(wrap(weft.vmap(double.bind))(X), 2 * X)
    del batching.axis_primitive_batchers[double]
    with pytest.raises(KeyError):
        batching.primitive_batchers[double]
    with pytest.raises(TypeError, match="built in"):
        ad.primitive_jvps[weft.extend.core.primitives.sin_p] = rule
    with pytest.raises(TypeError, match="expected a Primitive"):
        mlir.register_lowering("double", rule)


def test_lower_fun_with_another_number_of_results():
    p = Primitive("one_from_list")
    p.def_abstract_eval(same_type)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: [x + 1], multiple_results=True))
    close(p.bind(X), X + 1)
    q = Primitive("list_from_one")
    q.multiple_results = True
    q.def_abstract_eval(lambda x: [same_type(x)])
    mlir.register_lowering(q, mlir.lower_fun(lambda x: x + 1, multiple_results=False))
    close(q.bind(X), [X + 1])


# ---- Mistakes


def bare(**rules):
    p = Primitive("bare")
    p.def_abstract_eval(same_type)
    p.def_lowering(lambda x: x)
    for slot, rule in rules.items():
        getattr(p, f"def_{slot}")(rule)
    return p


def message_of(error, function, *args):
    with pytest.raises(error) as e:
        function(*args)
    text = str(e.value)
    assert f"at {__file__}" in text
    return text


MISSING = {
    "jvp": ("differentiation", lambda p: weft.grad(lambda x: p.bind(x).sum())),
    "batching": ("vmap", lambda p: weft.vmap(p.bind)),
    "transpose": (
        "reverse-mode differentiation",
        lambda p: lambda x: weft.linear_transpose(p.bind, X)(x),
    ),
}


@pytest.mark.parametrize("slot", MISSING)
@wraps
def test_missing_rules(slot, wrap):
    purpose, use = MISSING[slot]
    text = message_of(errors.NotImplementedRuleError, wrap(use(bare())), X)
    assert f"[bare] has no rule for {purpose}; define one with def_{slot}" in text


def test_missing_meaning():
    p = Primitive("nothing")
    text = message_of(errors.NotImplementedRuleError, p.bind, X)
    assert "[nothing] has no rule for types of results; define one with def_abstract_eval" in text
    p.def_abstract_eval(same_type)
    text = message_of(errors.NotImplementedRuleError, weft.jit(p.bind), X)
    assert "[nothing] has no lowering for platform 'cpu'" in text and "It has: none" in text


WRONG = {
    "abstract_eval": (
        lambda x: 3,
        lambda p: p.bind,
        "expected a ShapedArray for the result; got 3",
    ),
    "lowering": (
        lambda x: x[:1],
        lambda p: p.bind,
        "expected the result to be float32[4]; got float32[1]",
    ),
    "stablehlo": (lambda ctx, x: 3, lambda p: p.bind, "expected names of results such as '%3'"),
    "jvp": (
        lambda xs, ts: xs[0],
        lambda p: weft.grad(lambda x: p.bind(x).sum()),
        "expected a pair (results, their tangents)",
    ),
    "jvp ": (
        lambda xs, ts: (xs[0], ts[0][:2]),
        lambda p: weft.grad(lambda x: p.bind(x).sum()),
        "expected the tangent of the result to be float32[4]; got float32[2]",
    ),
    "jvp  ": (
        lambda xs, ts: (xs[0] + ts[0], ts[0]),
        lambda p: weft.grad(lambda x: p.bind(x).sum()),
        "expected results that do not depend on tangents",
    ),
    "transpose": (
        lambda ct, x: ct,
        lambda p: lambda x: weft.linear_transpose(p.bind, X)(x),
        "expected a list of 1 cotangents, one per operand",
    ),
    "transpose ": (
        lambda ct, x: [ct.astype(np.int32)],
        lambda p: lambda x: weft.linear_transpose(p.bind, X)(x),
        "expected the cotangent of operand 0 to be float32[4]; got int32[4]",
    ),
    "batching": (
        lambda xs, ds: xs[0],
        lambda p: weft.vmap(p.bind),
        "expected a pair (results, their dims)",
    ),
    "batching ": (
        lambda xs, ds: (xs[0], 7),
        lambda p: weft.vmap(p.bind),
        "expected the dim of the result to be None or an axis up to 0; got 7",
    ),
    "batching  ": (
        lambda xs, ds: (xs[0], None),
        lambda p: weft.vmap(p.bind),
        "expected the result, mapped at None, to be float32[]; got float32[4]",
    ),
}


@pytest.mark.parametrize("slot", WRONG)
def test_wrong_results_of_rules(slot):
    rule, use, expected = WRONG[slot]
    p = bare(**{slot.strip(): rule})
    text = message_of(errors.WeftError, use(p), X)
    assert "[bare] def_" + slot.strip() in text and expected in text


def test_wrong_number_of_results():
    p = Primitive("many")
    p.multiple_results = True
    p.def_abstract_eval(lambda x: x)
    assert "(multiple_results is set)" in message_of(errors.ArgumentTypeError, p.bind, X)
    p.def_abstract_eval(lambda x: [x, x])
    p.def_lowering(lambda x: [x])
    assert "expected 2 results; got 1" in message_of(errors.ArgumentTypeError, p.bind, X)
    p.def_lowering(lambda x: [x, x])
    p.def_jvp(lambda xs, ts: ([*xs, *xs], ts))
    text = message_of(errors.ArgumentTypeError, weft.grad(lambda x: p.bind(x)[0].sum()), X)
    assert "def_jvp: expected 2 tangents; got 1" in text


def test_wrong_results_of_impl():
    p = Primitive("wrong_impl")
    p.def_abstract_eval(same_type)
    p.def_impl(lambda x: x[:1])
    for wrap in WRAPS:
        with pytest.raises(RuntimeError, match=r"result 0 to be float32\[4\]"):
            wrap(lambda x: p.bind(x))(X).block_until_ready()


def test_lowerings_that_apply_their_own_primitive():
    p = Primitive("recursive")
    p.def_abstract_eval(same_type)
    p.def_lowering(lambda x, *, n: p.bind(x + 1, n=n - 1) if n > 0 else x)
    close(p.bind(X, n=20), X + 20)
    text = message_of(errors.AttributeValueError, lambda: p.bind(X, n=10**9))
    assert "[recursive] def_lowering: expected at most 100 lowerings within each other" in text
    q = Primitive("endless")
    q.def_abstract_eval(lambda x: weft.eval_shape(lambda x: q.bind(x), x))
    with pytest.raises(RecursionError):
        weft.jit(q.bind)(X)


def test_wrong_use():
    for wrap in (weft.jit, lambda f: f):
        text = message_of(errors.OperandError, wrap(lambda x: bare().bind(x, k=[1])), X)
        assert "[bare] expected a hashable value for parameter k; got list: [1]" in text
    assert "[my_sin] expected an array" in message_of(errors.OperandError, SIN.bind, "x")
    with pytest.raises(TypeError, match="def_jvp of 'bare': expected a function"):
        bare().def_jvp(3)
    with pytest.raises(errors.ParseError):
        weft._core.parse(str(weft.make_jaxpr(f)(X)))


def test_errors_in_rules_are_the_users():
    def rule(xs, ts):
        raise ZeroDivisionError("in my rule")

    with pytest.raises(ZeroDivisionError, match="in my rule"):
        weft.jit(weft.grad(lambda x: bare(jvp=rule).bind(x).sum()))(X)


def test_documented_code_runs(run_python):
    text = (ROOT / "docs" / "extending.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 6
    printed = run_python("\n".join(blocks))
    assert "sin {'accuracy': None} [Var(a:f32[3])] [Var(b:f32[3])]" in printed


def test_from_several_threads():
    def work(seed):
        x = np.full(4, seed, np.float32)
        g = weft.jit(weft.grad(lambda x: (f(x) * float(seed)).sum()))
        for _ in range(5):
            close(g(x), 2 * np.cos(x) * seed)
            close(weft.vmap(f)(x), 2 * np.sin(x))
            assert len(weft.make_jaxpr(f)(x).eqns) == 1
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(1, 9)))


def test_primitives_outlive_their_names():
    p = Primitive("short_lived")
    p.def_abstract_eval(same_type)
    p.def_lowering(lambda x: x * 2)
    g = weft.jit(p.bind)
    closed = weft.make_jaxpr(p.bind)(X)
    del p
    gc.collect()
    close(g(X), 2 * X)
    close(jaxpr_as_fun(closed)(X), [2 * X])
    assert lax.neg(closed.eqns[0].primitive.bind(X)).shape == (4,)


# ---- As under jax (programs_oracle.py)

DEFINITIONS = """
import importlib
core = importlib.import_module(fw.__name__ + ".extend.core")
ad, batching, mlir = (
    importlib.import_module(f"{fw.__name__}.interpreters.{m}") for m in ("ad", "batching", "mlir")
)
mul = core.Primitive("my_mul")
mul.def_impl(lambda x, y, *, scale: np.asarray(x) * np.asarray(y) * scale)
mul.def_abstract_eval(lambda x, y, *, scale: fw.core.ShapedArray(x.shape, x.dtype))
mlir.register_lowering(
    mul, mlir.lower_fun(lambda x, y, *, scale: x * y * scale, multiple_results=False)
)

def mul_jvp(primals, tangents, *, scale):
    (x, y), (tx, ty) = primals, tangents
    out = mul.bind(x, y, scale=scale)
    parts = []
    if type(tx) is not ad.Zero:
        parts.append(mul.bind(tx, y, scale=scale))
    if type(ty) is not ad.Zero:
        parts.append(mul.bind(x, ty, scale=scale))
    return out, sum(parts[1:], parts[0])

def mul_transpose(ct, x, y, *, scale):
    if ad.is_undefined_primal(x):
        assert x.aval.shape == ct.shape and not ad.is_undefined_primal(y)
        return mul.bind(ct, y, scale=scale), None
    return None, mul.bind(x, ct, scale=scale)

def mul_batch(args, dims, *, scale):
    (x, y), (dx, dy) = args, dims
    size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    x = np.broadcast_to(x, (size, *x.shape)) if dx is None else np.moveaxis(x, dx, 0)
    y = np.broadcast_to(y, (size, *y.shape)) if dy is None else np.moveaxis(y, dy, 0)
    return mul.bind(x, y, scale=scale), 0

ad.primitive_jvps[mul] = mul_jvp
ad.primitive_transposes[mul] = mul_transpose
batching.primitive_batchers[mul] = mul_batch

parts = core.Primitive("my_parts")
parts.multiple_results = True
parts.def_abstract_eval(lambda x: [fw.core.ShapedArray((), x.dtype), x])
parts.def_impl(lambda x: [np.sum(x), 2 * x])
mlir.register_lowering(parts, mlir.lower_fun(lambda x: [np.sum(x), 2 * x], multiple_results=True))

def parts_transpose(cts, x):
    total, double = map(ad.instantiate_zeros, cts)
    return [np.full(x.aval.shape, total) + 2 * double]

ad.deflinear2(parts, parts_transpose)

f = lambda x, y: mul.bind(x, np.sin(y), scale=2.0)
xs, ys = np.arange(3.0) + 1, np.linspace(0.5, 2.0, 3)
mat = np.arange(6.0).reshape(3, 2)

def interpret(jaxpr, consts, *args):
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))
    read = lambda v: v.val if isinstance(v, core.Literal) else env[v]
    for eqn in jaxpr.eqns:
        out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out]))
    return [read(v) for v in jaxpr.outvars]

def program(x):
    y = fw.jit(lambda x: np.sin(x) * 2)(x) + mat[:, 0]
    return lax.sort(y)[1], lax.cumsum(y), y[np.array([2, 0])], lax.reduce(y, 0.0, lax.max, (0,))
"""
PROGRAMS = {
    "value": "result = f(xs, ys), fw.jit(f)(xs, ys)",
    "grad": "result = fw.grad(lambda x, y: f(x, y).sum(), (0, 1))(xs, ys)",
    "grad_of_one": "result = fw.jit(fw.grad(lambda y: f(xs, y).sum()))(ys)",
    "hessian": "result = fw.hessian(lambda z: f(z[0], z[1] * z[0]).sum())((xs, ys))",
    "jvp": "result = fw.jvp(f, (xs, ys), (ys, xs))",
    "linear_transpose": "result = fw.linear_transpose(lambda x: f(x, ys), xs)(ys)",
    "vmap": "result = fw.vmap(f, (1, None), 1)(mat, ys), fw.jit(fw.vmap(f, (1, 0)))(mat, mat.T)",
    "vmap_grad": "result = fw.vmap(fw.grad(lambda x, y: f(x, y).sum(), 1), (1, None))(mat, ys)",
    "grad_vmap": "result = fw.grad(lambda y: fw.vmap(f, (1, None))(mat, y).sum())(ys)",
    "parts": "result = parts.bind(xs), fw.jit(parts.bind)(xs)",
    "parts_grad": "result = fw.grad(lambda x: parts.bind(x * x)[0] * parts.bind(x)[1].sum())(xs)",
    "parts_one": "result = fw.jit(fw.grad(lambda x: parts.bind(x * x)[1][0]))(xs)",
    "defjvp": """
q = core.Primitive("q")
q.def_abstract_eval(lambda x, y: x)
q.def_impl(lambda x, y: x * y)
ad.defjvp(q, lambda t, x, y: t * y * 3, None)
result = fw.jvp(q.bind, (xs, ys), (ys, xs))
""",
    "defvectorized": """
q = core.Primitive("q")
q.def_abstract_eval(lambda x: x)
mlir.register_lowering(q, mlir.lower_fun(lambda x: x + 1, multiple_results=False))
batching.defvectorized(q)
result = fw.jit(fw.vmap(q.bind, 1, 1))(mat), fw.jit(fw.vmap(q.bind, 1))(mat)
""",
    "interpret": """
closed = fw.make_jaxpr(program)(xs)
again = lambda x: interpret(closed.jaxpr, closed.consts, x)
result = again(xs), fw.jit(again)(xs), core.jaxpr_as_fun(closed)(xs)
result += ([str(a) for a in closed.in_avals] == ["float32[3]"], len(closed.jaxpr.invars))
""",
    "interpret_grad": """
closed = fw.make_jaxpr(lambda x: f(x, ys).sum())(xs)
again = lambda x: interpret(closed.jaxpr, closed.consts, x)[0]
result = fw.grad(again)(xs), fw.vmap(again)(mat.T)
""",
    "eval_jaxpr": """
closed = fw.make_jaxpr(program)(xs)
result = fw.core.eval_jaxpr(closed.jaxpr, closed.consts, ys)
""",
    "inverse": """
inverses = {lax.exp_p: np.log, lax.tanh_p: np.arctanh, lax.neg_p: np.negative}

def inverse(fun):
    def wrapped(*args):
        jaxpr = fw.make_jaxpr(fun)(*args).jaxpr
        env = dict(zip(jaxpr.outvars, args))
        for eqn in reversed(jaxpr.eqns):
            env[eqn.invars[0]] = inverses[eqn.primitive](env[eqn.outvars[0]])
        return env[jaxpr.invars[0]]
    return wrapped

g = inverse(lambda x: np.exp(np.tanh(-x)))
result = g(xs / 3 + 0.5), fw.jit(fw.vmap(fw.grad(g)))(xs / 3 + 0.5)
""",
    "callback": """
import numpy as onp
shapes = []
def host(x, y):
    x, y = onp.asarray(x), onp.asarray(y)
    shapes.extend([*x.shape, *y.shape])
    return {"a": x * y, "b": (x + y).sum(-1)}
def call(x, y, method):
    out = {"a": fw.ShapeDtypeStruct((3,), xs.dtype), "b": fw.ShapeDtypeStruct((), xs.dtype)}
    return fw.pure_callback(host, out, x, y, vmap_method=method)
result = [call(xs, ys, None), fw.jit(lambda x, y: call(x, y, None))(xs, ys)]
for method in ("expand_dims", "broadcast_all", "legacy_vectorized"):
    g = fw.vmap(lambda x, y: call(x, y, method), (1, None))
    result.append(fw.jit(g)(mat, ys))
result.append(shapes)
""",
}
PROGRAMS = {name: DEFINITIONS + source for name, source in PROGRAMS.items()}


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_jax(name):
    programs_oracle.check(PROGRAMS, name)
