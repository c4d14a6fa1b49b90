"""Traced, lowered and compiled functions: what they tell; the parameters of jit that say where and
how a program runs."""

import gc
import weakref

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _core, compiler, stages
from weft.errors import ArgumentTypeError, JaxRuntimeError, TreeStructureError
from weft.runtime import compile
from weft.sharding import PartitionSpec as P, SingleDeviceSharding


@pytest.fixture(scope="module")
def traced():
    f = weft.jit(
        lambda x, y, *, k=1, s="a": {"a": x + y * k}, static_argnames="s", donate_argnums=0
    )
    return f.trace(wnp.ones((2, 3)), 2.0, k=3, s="b")


def test_all_stages_tell_of_arguments_and_results(traced):
    lowered = traced.lower()
    compiled = lowered.compile()
    for stage in (traced, lowered, compiled):
        (x, y), named = stage.args_info
        assert (x.shape, x.dtype, x.donated) == ((2, 3), "float32", True)
        assert named == {"k": stages.ArgInfo(weft.typeof(3), False)} and y.shape == ()
        assert str(stage.in_avals) == (
            "((ShapedArray(float32[2,3]), ShapedArray(float32[], weak_type=True)), "
            "{'k': ShapedArray(int32[], weak_type=True)})"
        )
        assert stage.donate_argnums == (0,)
        assert stage.in_tree == weft.tree.structure(((0, 0), {"k": 0}))
        assert stage.out_tree == weft.tree.structure({"a": 0})
        assert str(stage.out_avals["a"]) == "float32[2,3]"
    here = SingleDeviceSharding(weft.devices()[0])
    for stage, place in ((traced, None), (lowered, None), (compiled, here)):
        assert stage.out_info == {"a": weft.ShapeDtypeStruct((2, 3), "float32", sharding=place)}
    assert compiled.input_shardings == ((here, here), {"k": here})
    assert compiled.output_shardings == {"a": here}
    assert compiled.call(wnp.ones((2, 3)), 2.0, k=3)["a"][0, 0] == 7
    assert isinstance(weft.jit(abs), stages.Wrapped) and not isinstance(abs, stages.Wrapped)


def test_plain_arguments_have_trees_too():
    lowered = weft.jit(lambda x, y: x + y).lower(1.0, 2)
    assert lowered.in_tree == weft.tree.structure(((0, 0), {}))
    assert lowered.out_tree == weft.tree.structure(0)
    assert lowered.donate_argnums == () and not lowered.args_info[0][1].donated
    assert lowered.compile()(1.0, 2) == 3


def test_what_a_traced_function_refuses(traced):
    assert traced(wnp.ones((2, 3)), 2.0, k=3)["a"][0, 0] == 7
    with pytest.raises(TreeStructureError, match="traced for other arguments"):
        traced(wnp.ones((2, 3)), 2.0)
    with pytest.raises(ArgumentTypeError, match="float32"):
        traced(wnp.ones((2, 4)), 2.0, k=3)


def test_programs_in_the_forms_of_jaxlib(traced):
    lowered = traced.lower()
    assert lowered.as_text() == lowered.as_text("stablehlo")
    assert "loc(" in lowered.as_text(debug_info=True)
    assert lowered.compiler_ir().operation.verify()
    assert "HloModule" in lowered.compiler_ir("hlo").as_hlo_text()
    for form in (lowered.as_text, lowered.compiler_ir):
        with pytest.raises(ValueError, match="dialect"):
            form("mhlo")
    with pytest.raises(NotImplementedError, match="lowering_platforms"):
        traced.lower(lowering_platforms=("cpu", "tpu"))


def test_programs_for_other_platforms():
    traced = weft.jit(wnp.linalg.eigh).trace(wnp.eye(2))
    texts = [traced.lower(lowering_platforms=(name,)).as_text() for name in ("cpu", "cuda")]
    assert "lapack" in texts[0] and "lapack" not in texts[1]
    assert traced.lower(lowering_platforms=("gpu",)).as_text() == texts[1]


def test_compiled_functions_take_what_they_were_compiled_for():
    compiled = weft.jit(lambda x, *, k: x * k).lower(wnp.ones(3), k=2.0).compile()
    for args, named in [((wnp.ones(4),), {"k": 2.0}), ((wnp.ones(3), 2.0), {}), ((1, 2), {"k": 3})]:
        with pytest.raises(TypeError, match="compiled"):
            compiled(*args, **named)
    of_key = weft.jit(weft.random.bits).lower(weft.random.key(0)).compile()
    with pytest.raises(TypeError, match="for argument key of .*as compiled; got uint32"):
        of_key(np.zeros(2, np.uint32))
    for transform in (weft.jit, weft.vmap, lambda f: weft.grad(lambda x: f(x).sum())):
        with pytest.raises(TypeError, match="compiled"):
            transform(lambda x: compiled(x, k=2.0))(wnp.ones(3))


def test_calls_of_compiled_functions_nested_as_before_and_otherwise():
    def f(tree, *rest, scale, shift):
        (a, b), c = tree["pair"], tree["c"]
        return {"sum": (a + b + c + sum(rest)) * scale + shift}

    def arguments(value, **named):
        return ({"pair": (value, value), "c": [value][0]}, value), named

    args, named = arguments(wnp.float32(1), scale=2.0, shift=1.0)
    compiled = weft.jit(f).lower(*args, **named).compile()
    for i in range(4):
        args, named = arguments(np.float32(i), shift=1.0, scale=2.0)
        assert float(compiled(*args, **named)["sum"]) == 8 * i + 1
        args, named = arguments(wnp.float32(i), scale=2.0, shift=1.0)
        assert float(compiled(*args, **named)["sum"]) == 8 * i + 1
        for wrong in [args[:1], (*args, 1.0), ({"pair": [1.0, 1.0], "c": 1.0}, 1.0)]:
            with pytest.raises(ValueError, match="'f' was compiled for other arguments"):
                compiled(*wrong, **named)
        with pytest.raises(ValueError, match="compiled for other arguments"):
            compiled(*args, scale=2.0)
        with pytest.raises(TypeError, match=r"for argument tree\['c'\] of 'f', as compiled"):
            compiled({"pair": (1.0, 1.0), "c": wnp.ones(2)}, 1.0, **named)
        with pytest.raises(TypeError, match="expected an array or a number; got str"):
            compiled({"pair": (1.0, 1.0), "c": "x"}, 1.0, **named)


def test_a_compiled_function_is_collected():
    class Holder:
        pass

    holder = Holder()
    holder.compiled = weft.jit(lambda x: [v + 1 for v in x]).lower([1.0, 2.0]).compile()
    holder.compiled([1.0, 2.0])
    function = holder.compiled._function
    function_of_holder = weakref.ref(holder)
    holder.compiled.holder = holder
    assert gc.is_tracked(function)
    del holder, function
    gc.collect()
    assert function_of_holder() is None


def test_options_of_the_compiler():
    def f(x):
        return x * 2 + 1

    assert weft.jit(f, compiler_options={"xla_embed_ir_in_executable": True})(1.0) == 3
    lowered = weft.jit(f).lower(1.0)
    compiled = lowered.compile(compiler_options={"xla_llvm_disable_expensive_passes": "True"})
    assert compiled(1.0) == 3
    with pytest.raises(JaxRuntimeError, match="no_such"):
        lowered.compile({"no_such_option": 1})
    with pytest.raises(RuntimeError, match="no_such"):
        weft.jit(f, compiler_options={"no_such_option": 1})(1.0)
    inner = weft.jit(f, compiler_options={"xla_embed_ir_in_executable": True})
    with pytest.raises(ValueError, match="outermost"):
        weft.jit(lambda x: inner(x))(1.0)
    for wrong in (3, {3: 1}, {"a": None}):
        with pytest.raises(TypeError, match="compiler_options"):
            weft.jit(f, compiler_options=wrong)


def test_how_hard_the_compiler_tries():
    def f(x):
        return wnp.tanh(x @ x.T + 1).sum(0) * x[0, 0]

    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    want = np.tanh(x @ x.T + 1).sum(0) * x[0, 0]
    for effort in ("fast_compile", "balanced", "fast_run"):
        g = weft.jit(f, optimize=effort)
        np.testing.assert_allclose(g(x), want, rtol=1e-5)
    again = weft.jit(f, optimize="fast_compile").lower(x).compile({"xla_dump_max_hlo_modules": 1})
    np.testing.assert_allclose(again(x), want, rtol=1e-5)
    with pytest.raises(ValueError, match="outermost"):
        weft.jit(lambda x: g(x))(x)
    with pytest.raises(ValueError, match="optimize"):
        weft.jit(f, optimize="fastest")


def test_options_follow_what_repeats():
    """Kernels that are unlike each other are made in the quick way; of equal ones, reductions get
    their loops unrolled, and random bits all that the compiler has."""
    effort = compile._EFFORTS["balanced"]

    def choices(f, unroll=False):
        x = np.ones((8, 8), np.float32)
        graph = compiler.optimize(f, x)
        text = compiler.emit_stablehlo(graph)
        return compile._choices(effort, text, False, unroll, _core.survey(graph))

    def deep(x):
        for _ in range(40):
            x = wnp.tanh(x - x.sum(0))
        return x

    assert choices(lambda x: wnp.sin(x).sum()) == [
        (*effort.extra, compile._OLD_EMITTERS),
        effort.extra,
    ]
    assert choices(lambda x: wnp.sin(x + 1j)) == [effort.extra]

    def scalar(x, n):
        y = 1 / (wnp.ones((n, n)) + x[0, 0])
        return wnp.sin(y) * wnp.exp(y) + y  # written into the quotient, which is not vectorised

    assert choices(lambda x: scalar(x, 200)) == [effort.extra]
    assert choices(lambda x: scalar(x, 20)) == [
        (*effort.extra, compile._OLD_EMITTERS),
        effort.extra,
    ]
    (repeating,) = choices(deep)
    assert set(effort.extra) - set(repeating) == {compile._UNROLLING}
    # So does what the graph says to gain from it.
    assert choices(wnp.sin, unroll=True) == [repeating]
    assert choices(lambda x: weft.random.bits(weft.random.PRNGKey(x[0, 0].astype(int)))) == [()]
    # Loops of kernels are unrolled where that is said to pay, whatever else the compiler may do.
    kernel = f"  {_core.KERNEL_CALL}"
    for each in compile._EFFORTS.values():
        for unroll, want in ((False, (compile._UNROLLING,)), (True, ())):
            assert compile._choices(each, kernel, False, unroll, _core.ModuleSurvey()) == [want]
    # Few kinds of operations, put together in many ways, make kernels that are unlike.
    rng = np.random.default_rng(0)

    def mixed(x):
        for a, b in rng.integers(0, 8, (40, 2)):
            x = wnp.where(x[a] > 0, x * x[b, a], x - x[b])
        return x

    assert choices(mixed)[0] == (*effort.extra, compile._OLD_EMITTERS)
    # Without reductions there is nothing to gain.
    assert choices(lambda x: sum(wnp.tanh(x * (x - 1)) * x for _ in range(40))) != [repeating]


def test_survey_of_a_module():
    def f(x, y):
        for _ in range(3):
            x = wnp.sin(x) * 2
        return wnp.exp(y).sum() + x.reshape(4).sum()

    def survey(*args):
        return _core.survey(compiler.optimize(f, *args))

    found = survey(np.ones((2, 2)), np.ones((128, 128), np.float32))
    # Three sines, three products, an exponential, two sums of different shapes, and their sum.
    assert (found.operations, found.distinct, found.unlike) == (10, 6, 10)
    assert (found.reductions, found.shifts) == (2, 0)
    # The sums are stored, and added.
    assert (found.kernels, found.scalar_work, found.has_rare_types) == (2, 1, False)
    assert survey(np.ones(4), np.ones(3, np.complex64)).has_rare_types


def test_survey_counts_what_the_old_emitters_leave_scalar():
    def survey(f):
        return _core.survey(compiler.optimize(f, np.ones(1000, np.float32)))

    def shared(x):
        y = 3 / x
        return wnp.exp(y + 1) - y

    # A quotient that two operations use is stored; an exponential counts as three.
    assert survey(shared).scalar_work == (1 + 3 + 1) * 1000
    # One kernel reads its argument.
    assert survey(lambda x: wnp.sqrt(3 / x + 1)).scalar_work == 0
    # What is stored here is one number, which has no room for results.
    found = survey(lambda x: wnp.exp(x - x.sum()))
    assert (found.kernels, found.scalar_work) == (1, 0)


def test_what_the_old_emitters_do_not_know():
    least, most = np.array([True, False]), np.array([True, True])
    clamped = weft.jit(weft.lax.clamp)(least, np.array([False, True]), most)
    np.testing.assert_array_equal(clamped, [True, True])


def test_options_without_a_field_reach_xla(tmp_path):
    f = weft.jit(lambda x: wnp.sin(x) * 3, optimize="balanced")
    f.lower(1.0).compile({"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_text": True})
    (told,) = tmp_path.glob("*.debug_options")
    assert 'key: "xla_cpu_disable_loop_unrolling"' in told.read_text()


def test_where_a_function_runs():
    device = weft.devices()[0]
    here = SingleDeviceSharding(device)
    for where in (
        {"device": device},
        {"backend": "cpu"},
        {"in_shardings": here},
        {"out_shardings": here},
    ):
        y = weft.jit(lambda x: x + 1, **where)(1.0)
        assert y == 2 and y.committed and y.device == device
    assert not weft.jit(lambda x: x + 1)(1.0).committed
    with pytest.raises(ValueError, match="device or a backend"):
        weft.jit(abs, device=device, backend="cpu")
    with pytest.raises(RuntimeError, match="Unknown backend"):
        weft.jit(abs, backend="nonsense")
    with pytest.raises(TypeError, match="one of weft.devices"):
        weft.jit(abs, device="cpu")
    with pytest.raises(TypeError, match="generator"):
        weft.jit(lambda x: (yield x))


def test_derivatives_are_trees():
    def f(x, w):
        return wnp.sin(x) * w

    x = wnp.arange(3.0)
    value, pull = weft.vjp(f, x, 2.0)
    assert pull.in_tree == weft.tree.structure((0, 0)) and pull.out_tree == weft.tree.structure(0)
    np.testing.assert_allclose(weft.jit(pull)(value)[0], pull(value)[0], rtol=1e-6)
    np.testing.assert_allclose(weft.jit(lambda g: g(value))(pull)[0], pull(value)[0], rtol=1e-6)
    _, push = weft.linearize(f, x, 2.0)
    np.testing.assert_allclose(weft.jit(push)(x, 1.0), push(x, 1.0), rtol=1e-6)
    leaves, tree = weft.tree.flatten(pull)
    assert tree.unflatten(leaves)(value)[1] == pull(value)[1]

    forward, backward = weft.fwd_and_bwd(f, (0, 1))
    for point in (x, x + 1):
        value, residuals = forward(point, 2.0)
        expected = weft.vjp(f, point, 2.0)[1](value)
        for got, wanted in zip(backward(residuals, value), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)
    assert backward.cache_info().misses == 1
    forward, backward = weft.fwd_and_bwd(lambda x: (x * x, "aux"[:0] or x), 0, True, jitted=False)
    value, residuals, aux = forward(3.0)
    assert backward(residuals, 1.0) == 6 and aux == 3


def test_types_tell_a_sharding_where_nothing_is_split():
    kind = weft.typeof(wnp.ones((2, 3)))
    assert kind.sharding.is_fully_replicated and kind.sharding.mesh.empty
    assert kind.sharding.spec == P(None, None) and kind.update(shape=()).sharding.spec == P()
    assert kind == weft.core.ShapedArray((2, 3), np.float32) and str(kind) == "float32[2,3]"
    assert weft.ShapeDtypeStruct.like(kind).sharding is None
    assert weft.jit(lambda x: x).lower(kind).in_tree.num_leaves == 1


def test_a_subclass_of_tracer_has_no_instances():
    class Own(weft.core.Tracer):
        pass

    with pytest.raises(TypeError, match="cannot create 'Own'"):
        Own()
    with pytest.raises(TypeError, match="not safe"):
        object.__new__(Own)
    assert weft.jit(lambda x: isinstance(x, Own))(1.0) == False  # noqa: E712


def test_inline_by_name():
    for inline in (True, weft.Inline.JAX_EARLY):
        jaxpr = weft.make_jaxpr(weft.jit(wnp.sin, inline=inline))(1.0)
        assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["sin"]
    for inline in (False, *weft.Inline):
        if inline is not weft.Inline.JAX_EARLY:
            jaxpr = weft.make_jaxpr(weft.jit(wnp.sin, inline=inline))(1.0)
            assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["jit"]


def test_what_a_trace_closed_over_as_an_argument():
    y = wnp.array([1.0, 2.0])
    traced = weft.jit(lambda x, *, k: {"a": x * y + k["b"]}).trace(3.0, k={"b": 1.0})
    consts, fun = traced.closure_convert()
    assert [c.tolist() for c in consts] == [[1.0, 2.0]] and traced.effects == set()
    assert traced(3.0, k={"b": 1.0})["a"].tolist() == [4.0, 7.0]
    assert fun([y * 10], 3.0, k={"b": 1.0})["a"].tolist() == [31.0, 61.0]
    assert weft.grad(lambda c: fun(c, 3.0, k={"b": 1.0})["a"].sum())([y])[0].tolist() == [3, 3]
    with pytest.raises(weft.errors.TreeStructureError, match="traced for other arguments"):
        fun(consts, 3.0)
    printing = weft.jit(lambda x: weft.debug.print("{}", x)).trace(1.0)
    assert printing.effects == {"unordered"}
