"""Programs as Jaxpr objects, and interpreters written over them."""

import gc
import pickle
import tracemalloc

import numpy as np
import pytest
from op_table import all_rows

import weft
import weft.numpy as wnp
from weft import core, errors, lax
from weft.extend.core import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Primitive,
    Var,
    eval_jaxpr,
    jaxpr_as_fun,
    primitives,
)

X = np.array([3.0, 1.0, 2.0], np.float32)
C = np.array([0.5, 1.5, 2.5], np.float32)


@weft.jit
def layer(x):
    return wnp.sin(x) * 2


def program(x, i):
    y = layer(x) + wnp.asarray(C)
    order = lax.sort(y)
    total = lax.reduce(y, np.float32(0), lambda a, b: lax.max(a, b), (0,))
    return {"picked": order[i], "sum": wnp.sum(y * y), "max": total, "rows": y[wnp.array([2, 0])]}


def interpret(jaxpr, consts, *args):
    """What users write: every equation bound on values."""
    env = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(v):
        return v.val if isinstance(v, Literal) else env[v]

    for eqn in jaxpr.eqns:
        out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        outs = out if eqn.primitive.multiple_results else [out]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def test_objects():
    closed = weft.make_jaxpr(program)(X, 1)
    jaxpr = closed.jaxpr
    assert isinstance(closed, ClosedJaxpr) and isinstance(jaxpr, Jaxpr)
    assert closed.jaxpr is jaxpr
    assert [str(a) for a in closed.in_avals] == ["float32[3]", "~int32[]"]
    assert [v.aval for v in jaxpr.outvars] == closed.out_avals
    assert len(jaxpr.constvars) == len(closed.consts) >= 1
    np.testing.assert_array_equal(closed.consts[0], C)
    assert str(jaxpr) == str(closed) == str(closed.graph)
    assert jaxpr.effects == set()
    assert all(isinstance(e, JaxprEqn) for e in closed.eqns)
    names = [e.primitive.name for e in jaxpr.eqns]
    assert {"jit", "sort", "gather", "reduce_sum"} <= set(names)


def test_variables_are_told_apart_by_identity():
    jaxpr = weft.make_jaxpr(lambda x, y: (x * y + x, y))(1.0, 2.0).jaxpr
    x, y = jaxpr.invars
    mul, add = jaxpr.eqns
    assert mul.invars[0] is x and mul.invars[1] is y and add.invars[1] is x
    assert add.invars[0] is mul.outvars[0] and jaxpr.outvars[1] is y
    assert {x: 1}[mul.invars[0]] == 1 and x != y
    assert isinstance(x, Var) and x.aval == core.ShapedArray((), np.float32)
    # The same value seen anew, also after every object was let go.
    again = weft.make_jaxpr(lambda x: x)
    del x, y, mul, add
    gc.collect()
    assert jaxpr.eqns[0].outvars[0] is jaxpr.eqns[1].invars[0]
    assert again(1.0).jaxpr.invars[0] is not jaxpr.invars[0]


def test_two_views_of_one_graph_share_their_variables():
    closed = weft.make_jaxpr(layer)(X)
    region = closed.eqns[0].params["jaxpr"]
    assert isinstance(region, ClosedJaxpr) and region.consts == []
    again = closed.eqns[0].params["jaxpr"]
    first = region.jaxpr.invars[0]
    assert again.jaxpr.invars[0] is first
    assert ClosedJaxpr(region.graph, []).jaxpr.invars[0] is first


def test_equations():
    jaxpr = weft.make_jaxpr(lambda x: wnp.sum(layer(x) + 1, axis=0))(X).jaxpr
    jit, add, total = jaxpr.eqns
    assert jit.primitive.multiple_results and jit.primitive.name == str(jit.primitive) == "jit"
    assert jit.params["name"] == "layer"
    assert not add.primitive.multiple_results and add.params == {}
    assert total.params == {"axes": (0,)}
    one = add.invars[1]
    assert isinstance(one, Literal) and not isinstance(one, Var)
    assert one.val == 1 and one.val.dtype == np.float32 and one.aval.shape == ()
    assert add.effects == set()
    assert str(add) == "c:f32[3] = add b 1.0:f32[]"
    assert str(jit).startswith("b:f32[3] = jit[") and "sin" in str(jit)
    info = add.source_info
    assert info.file == __file__ and info.function == "<lambda>" and info.line > 0
    assert add.primitive is primitives.add_p
    assert weft.make_jaxpr(lambda x: x + x)(X).eqns[0].primitive is primitives.add_p
    assert isinstance(add.primitive, Primitive)
    assert lax.add_p is primitives.add_p and lax.scatter_add_p.name == "scatter-add"
    assert "scatter_add_p" in dir(primitives)
    assert add.primitive.get_bind_params(add.params) == ([], {})
    with pytest.raises(AttributeError, match="no_such_p"):
        lax.no_such_p  # noqa: B018
    with pytest.raises(AttributeError, match="no_such_p"):
        primitives.no_such_p  # noqa: B018


def test_every_kind_of_parameter_and_literal():
    def f(x):
        y = lax.dot_general(x, x, (((0,), (0,)), ((), ())), preferred_element_type=np.float32)
        return y + True, wnp.asarray(x, wnp.bfloat16) * 3, x.astype(np.int32) * 7, x * (1 + 2j)

    jaxpr = weft.make_jaxpr(f)(X).jaxpr
    dot = jaxpr.eqns[0]
    assert dot.params["dimension_numbers"] == (((0,), (0,)), ((), ()))
    assert dot.params["preferred_element_type"] == np.float32
    literals = [v for e in jaxpr.eqns for v in e.invars if isinstance(v, Literal)]
    assert {v.aval.dtype.name for v in literals} >= {"bfloat16", "int32", "complex64"}
    assert all(v.val.dtype == v.aval.dtype for v in literals)


def check_interpreter(f, *args):
    closed, shape = weft.make_jaxpr(f, return_shape=True)(*args)
    expected = weft.tree.leaves(f(*args))
    flat = weft.tree.leaves(args)
    for got in (interpret(closed.jaxpr, closed.consts, *flat), jaxpr_as_fun(closed)(*flat)):
        for a, b in zip(got, expected, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-6)
    jitted = weft.jit(lambda *xs: interpret(closed.jaxpr, closed.consts, *xs))(*flat)
    for a, b in zip(jitted, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    return closed


def test_interpreter_reproduces_a_program():
    check_interpreter(program, X, 1)


def test_interpreter_goes_through_calls_with_rules():
    @weft.custom_jvp
    def square(x):
        return x * x

    square.defjvp(lambda xs, ts: (square(xs[0]), 3 * xs[0] * ts[0]))

    @weft.checkpoint
    def block(x):
        return wnp.sin(square(x)) + C

    closed = check_interpreter(block, X)
    region = closed.eqns[0].params["jaxpr"]
    assert closed.eqns[0].primitive.name == "checkpoint"
    assert isinstance(region, Jaxpr) and len(region.invars) == 2 and not region.constvars
    values = eval_jaxpr(region, [], *closed.consts, X)
    np.testing.assert_allclose(values[0], np.sin(X * X) + C, rtol=1e-6)
    closed = weft.make_jaxpr(lambda x: block(x).sum())(X)
    gradient = weft.grad(lambda x: interpret(closed.jaxpr, closed.consts, x)[0])(X)
    np.testing.assert_allclose(gradient, 3 * X * np.cos(X * X), rtol=1e-5)


def test_interpreter_under_transforms():
    f = lambda x: wnp.sum(layer(x) ** 2)
    closed = weft.make_jaxpr(f)(X)
    g = lambda x: interpret(closed.jaxpr, closed.consts, x)[0]
    np.testing.assert_allclose(weft.grad(g)(X), weft.grad(f)(X), rtol=1e-6)
    xs = np.stack([X, 2 * X])
    np.testing.assert_allclose(weft.vmap(g)(xs), weft.vmap(f)(xs), rtol=1e-6)


@pytest.mark.parametrize("row", all_rows(), ids=lambda r: r.id)
def test_interpreter_records_the_same_program(row):
    with weft.enable_x64(True):
        _, xs = row.cases()[0]
        closed = weft.make_jaxpr(row.call)(*xs)
        again = weft.make_jaxpr(lambda *xs: interpret(closed.jaxpr, closed.consts, *xs))(*xs)
        assert again.graph.op_names() == closed.graph.op_names()
        if not closed.consts:
            assert again.graph == closed.graph


def test_eval_jaxpr_inlines_under_a_trace():
    closed = weft.make_jaxpr(program)(X, 1)
    inner = weft.make_jaxpr(lambda x, i: eval_jaxpr(closed.jaxpr, closed.consts, x, i))(X, 1)
    assert inner.graph.op_names() == closed.graph.op_names()
    np.testing.assert_allclose(
        weft.jit(jaxpr_as_fun(closed))(X, 1)[0], program(X, 1)["max"], rtol=1e-6
    )


def test_eval_jaxpr_takes_numbers_and_closed_jaxprs():
    closed = weft.make_jaxpr(lambda x: x * 2.0)(np.float32(1))
    assert core.eval_jaxpr(closed.jaxpr, [], 3) == [6.0]
    assert core.eval_jaxpr(closed, [], 3.5) == [7.0]
    region = weft.make_jaxpr(layer)(X).eqns[0].params["jaxpr"]
    np.testing.assert_allclose(eval_jaxpr(region, [], X)[0], 2 * np.sin(X), rtol=1e-6)


def test_avals():
    aval = core.ShapedArray((2, 3), np.float32)
    assert aval.update(shape=(3,)) == core.ShapedArray((3,), np.float32)
    assert aval.update(weak_type=True).weak_type and isinstance(aval.update(), core.ShapedArray)
    assert core.get_aval(X) == weft.make_jaxpr(lambda x: x)(X).in_avals[0]


def test_eval_jaxpr_errors():
    closed = weft.make_jaxpr(lambda x: x * 2 + C)(X)
    with pytest.raises(errors.ArgumentTypeError, match="1 constants and 1 arguments; got 0 and 2"):
        eval_jaxpr(closed.jaxpr, [], X, X)
    with pytest.raises(
        errors.ArgumentTypeError, match=r"argument 0 of type float32\[3\]; got float32\[2\]"
    ):
        eval_jaxpr(closed.jaxpr, closed.consts, X[:2])
    with pytest.raises(errors.ArgumentTypeError, match=r"float32\[3\]; got int32\[3\]"):
        eval_jaxpr(closed.jaxpr, closed.consts, np.arange(3, dtype=np.int32))
    with pytest.raises(errors.ArgumentTypeError, match="expected 1 constants"):
        ClosedJaxpr(closed.jaxpr, [])
    with pytest.raises(TypeError, match="expected a Jaxpr"):
        ClosedJaxpr(3, [])


def test_view_of_a_large_program_is_made_on_access():
    def deep(x):
        for _ in range(10_000):
            x = x * 1.5
        return x

    closed = weft.make_jaxpr(deep)(1.0)
    tracemalloc.start()
    try:
        jaxpr = closed.jaxpr
        assert len(jaxpr.invars) == len(jaxpr.outvars) == 1
        assert tracemalloc.get_traced_memory()[0] < 10_000
        assert len(jaxpr.eqns) == 10_000
        assert tracemalloc.get_traced_memory()[0] > 100_000  # so it would have been noticed
    finally:
        tracemalloc.stop()
    assert jaxpr.eqns[7].outvars[0] is jaxpr.eqns[8].invars[0]


def test_built_in_primitives_keep_their_rules():
    p = primitives.sin_p
    with pytest.raises(TypeError, match="'sin' is built in"):
        p.def_jvp(lambda *_: None)
    with pytest.raises(TypeError, match="'sin' is built in"):
        p.multiple_results = True
    assert pickle.loads(pickle.dumps(p)) is p
    with pytest.raises(errors.OperandError, match=r"\[sin\] expected an array"):
        p.bind("x")
