"""Names of no larger part: slices of computed starts, contexts of users, what derivatives
keep, linear functions with a transpose of their own, questions that libraries ask."""

import logging

import numpy as np
import pytest

import weft
import weft.ad_checkpoint as ad_checkpoint
import weft.core as core
import weft.custom_derivatives as rules
import weft.extend.core as extend
import weft.numpy as wnp
from weft.core import ShapedArray
from weft.experimental.layout import Format, Layout, with_layout_constraint
from weft.interpreters import ad, batching

X = np.arange(10)
M = np.arange(12).reshape(3, 4)
S = weft.ShapeDtypeStruct


# ---- slices


def one(i):
    return wnp.int32(i)


# index, and what NumPy reads in its place
SLICES = {
    "of all": (X, weft.ds(None), slice(None)),
    "first": (X, weft.ds(3), slice(3)),
    "known start": (X, weft.ds(1, 2), slice(1, 3)),
    "negative start": (X, weft.ds(-3, 2), slice(7, 9)),
    "start of an array": (X, weft.ds(one(4), 3), slice(4, 7)),
    "negative start of an array": (X, weft.ds(one(-3), 2), slice(7, 9)),
    "moved into bounds": (X, weft.ds(one(9), 2), slice(8, 10)),
    "far out of bounds": (X, weft.ds(one(20), 2), slice(8, 10)),
    "in steps": (X, weft.ds(one(1), 3, 2), slice(1, 6, 2)),
    "empty": (X, weft.ds(0, 0), slice(0, 0)),
    "size of an array": (X, weft.ds(1, one(2)), slice(1, 3)),
    "beside a slice": (M, (weft.ds(one(1), 2), slice(1, 3)), (slice(1, 3), slice(1, 3))),
    "beside an array": (M, (np.array([0, 2]), weft.ds(one(1), 2)), ([0, 2], slice(1, 3))),
    "after dots": (M, (..., weft.ds(one(1), 2)), (..., slice(1, 3))),
    "beside None and a position": (M, (None, weft.ds(one(1), 2), 0), (None, slice(1, 3), 0)),
}


def test_slices_of_computed_starts():
    for name, (x, index, same) in SLICES.items():
        assert wnp.asarray(x)[index].tolist() == x[same].tolist(), name
    f = weft.jit(lambda x, i: x[weft.ds(i, 3)])
    assert f(X, 4).tolist() == [4, 5, 6] and f(X, 5).tolist() == [5, 6, 7]
    assert weft.vmap(f, (None, 0))(X, np.array([0, 6])).tolist() == [[0, 1, 2], [6, 7, 8]]
    slope = weft.grad(lambda x: x[weft.ds(one(1), 2)].sum())(wnp.ones(4))
    assert slope.tolist() == [0, 1, 1, 0]
    assert repr(weft.ds(1, 2)) == "Slice(start=1, size=2, stride=1)"
    part = weft.ds(one(1), 2)
    assert weft.tree.map(lambda i: i + 1, part).start == 2
    assert part.is_dynamic_start and not part.is_dynamic_size


def test_updates_of_slices():
    x = wnp.asarray(X)
    assert x.at[weft.ds(one(2), 3)].add(1).tolist() == [0, 1, 3, 4, 5, 5, 6, 7, 8, 9]
    assert x.at[weft.ds(one(1), 3, 2)].set(0).tolist() == [0, 0, 2, 0, 4, 0, 6, 7, 8, 9]
    assert (x.at[weft.ds(one(9), 2)].set(0) == x).all()  # out of bounds
    assert x.at[weft.ds(one(9), 2)].set(0, mode="clip").tolist() == [*range(8), 0, 0]
    assert x.at[weft.ds(one(9), 2)].get(mode="fill", fill_value=-1).tolist() == [-1, -1]


@pytest.mark.parametrize("part", [weft.ds(0, 11), weft.ds(1, -2), weft.ds(1.5, 2), weft.ds(X, 2)])
def test_slices_that_an_axis_has_not(part):
    with pytest.raises(TypeError, match="slice"):
        wnp.asarray(X)[part]


# ---- contexts


def test_contexts_of_users():
    context, other = weft.make_user_context(3), weft.make_user_context()
    traced = []

    @weft.jit
    def f(x):
        traced.append(context.value)
        return x * context.value

    assert f(1.0) == 3
    with context(5):
        assert f(1.0) == 5 and f(2.0) == 10
        with other("a"):
            assert f(1.0) == 5 and other.value == "a"
            with context(3), other(None):
                assert f(1.0) == 3  # as outside
        assert context.value == 5 and other.value is None
    assert f(2.0) == 6 and traced == [3, 5, 5]
    with pytest.raises(RuntimeError), context(7):
        raise RuntimeError
    assert context.value == 3
    with pytest.raises(TypeError, match="hash"), context([]):
        pass


# ---- checkpoint


def named(x):
    return wnp.sin(ad_checkpoint.checkpoint_name(wnp.sin(x), "b")).sum()


def hidden(w, x):
    return wnp.sin(wnp.tanh(x @ w)).sum()


def test_what_a_backward_pass_keeps_is_printed(capsys):
    ad_checkpoint.print_saved_residuals(hidden, wnp.ones((3, 4)), x=wnp.ones((2, 3)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["f32[3,4] from the argument w", "f32[2,3] from the argument x"]
    assert any("f32[2,4] output of cos from" in line and __file__ in line for line in lines)
    ad_checkpoint.print_saved_residuals(weft.checkpoint(hidden), wnp.ones((3, 4)), wnp.ones((2, 3)))
    assert len(capsys.readouterr().out.splitlines()) == 2
    ad_checkpoint.print_saved_residuals(lambda x, n: x * n * np.arange(3.0), 2.0, 3)
    assert "f32[3] from a constant" in capsys.readouterr().out


def test_policies_that_offload():
    policies, name_p = weft.checkpoint_policies, extend.primitives.name_p
    places = {"offload_src": "device", "offload_dst": "pinned_host"}
    policy = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"], **places
    )
    assert policy(name_p, name="a") is ad_checkpoint.Saveable
    assert policy(name_p, name="b") == ad_checkpoint.Offloadable("device", "pinned_host")
    assert policy(name_p, name="c") is ad_checkpoint.Recompute is policy(weft.lax.sin_p)
    x = wnp.ones(3)
    expected = weft.grad(named)(x)
    np.testing.assert_allclose(weft.grad(weft.checkpoint(named, policy=policy))(x), expected)
    dots = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    args = wnp.ones((3, 4)), wnp.ones((2, 3))
    got = weft.grad(weft.checkpoint(hidden, policy=dots))(*args)
    np.testing.assert_allclose(got, weft.grad(hidden)(*args), rtol=1e-6)
    with pytest.raises(ValueError, match="both for b"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["b"], names_which_can_be_offloaded=["b"], **places
        )


def power(x, n=2, *, m=1):
    assert isinstance(n, int) and isinstance(m, int)
    return x**n * m


def test_static_arguments_of_checkpoint_by_name():
    by_name = weft.checkpoint(power, static_argnames="n")
    assert weft.grad(by_name)(2.0, n=3) == weft.grad(by_name)(2.0, 3) == 12
    both = weft.checkpoint(static_argnames=("n", "m"))(power)
    assert weft.grad(weft.jit(lambda x: both(x, 3, m=4)))(2.0) == 48 and both(2.0) == 4


# ---- rules of users


def halves(r, x):
    return x / r


def hundredfold(_, ct):
    return ct * 100


def test_linear_functions_with_a_transpose_of_their_own():
    def f(x):
        return rules.linear_call(halves, hundredfold, 2.0, x)

    assert f(3.0) == weft.jit(f)(3.0) == 1.5
    assert weft.grad(f)(3.0) == weft.jit(weft.grad(f))(3.0) == 100
    assert weft.jvp(f, (3.0,), (1.0,)) == (1.5, 0.5)

    def transposed(f):
        return lambda y: weft.linear_transpose(f, 1.0)(y)[0]

    results = [f(1.0)]
    for _ in range(2):
        f = transposed(f)
        results.append(f(1.0))
    assert results == [0.5, 100, 0.5]


@pytest.mark.parametrize(
    ("transpose", "error"),
    [(lambda r, c: (c, c), TypeError), (lambda r, c: wnp.ones(3), ValueError)],
)
def test_transposes_that_do_not_fit(transpose, error):
    with pytest.raises(error, match="fun_transpose"):
        weft.grad(lambda x: rules.linear_call(halves, transpose, 2.0, x))(3.0)
    with pytest.raises(NotImplementedError, match="residual_args"):
        weft.grad(lambda r: rules.linear_call(halves, transpose, r, 3.0))(2.0)


def test_helpers_of_rules():
    zeros = rules.zero_from_primal(wnp.ones(3))
    assert zeros.tolist() == [0, 0, 0] and zeros.dtype == np.float32
    assert rules.zero_from_primal(X).dtype == weft.float0
    assert isinstance(rules.zero_from_primal(1.0, symbolic_zeros=True), rules.SymbolicZero)
    tree = {"a": rules.CustomVJPPrimal(1.0, True), "b": 2}
    assert rules.custom_vjp_primal_tree_values(tree) == {"a": 1.0, "b": 2}
    assert rules.custom_jvp_call_p.name == "custom_jvp_call"


# ---- types and formats


def test_types_like_values():
    assert S.like(wnp.ones(3)) == S((3,), "float32") == S.like(np.ones(3, "f"))
    assert S.like(1.0) == S((), "float32", weak_type=True)
    assert S.like(S((2,), "int8", weak_type=True)) == S((2,), "int8", weak_type=True)
    assert S.like(weft.new_ref(wnp.ones(2))) == S((2,), "float32", is_ref=True)
    mark = S((2,), "float32").update(is_ref=True)
    assert mark.is_ref and repr(mark).endswith("is_ref=True)") and mark != S((2,), "float32")
    assert mark.manual_axis_type is None and mark.format == Format()
    for call in (lambda: S.like("a"), lambda: S((), "int8", manual_axis_type=1)):
        with pytest.raises(TypeError):
            call()


def test_formats_of_compiled_programs():
    compiled = weft.jit(lambda x, y: {"a": x @ y}).lower(wnp.ones((2, 3)), wnp.ones(3)).compile()
    place = compiled.input_shardings[0][0]
    matrix, vector = (Format(Layout(axes, tiling=()), place) for axes in ((0, 1), (0,)))
    assert compiled.input_formats == ((matrix, vector), {})
    assert compiled.output_formats == {"a": vector}
    x = wnp.ones((2, 3))
    assert with_layout_constraint(x, Layout((1, 0))) is x
    with pytest.raises(ValueError, match="2 axes"):
        with_layout_constraint(x, Layout((0,)))


def test_dtypes_of_keys_and_flags():
    key = weft.random.key(0)
    assert weft.random.key_dtype() == key.dtype and str(weft.random.key_dtype("rbg")) == "key<rbg>"
    with pytest.raises(ValueError):
        weft.random.key_dtype("x")
    assert weft.dtypes.result_type(1, return_weak_type_flag=True) == (np.dtype("int32"), True)
    assert weft.dtypes.canonicalize_dtype(key.dtype, allow_extended_dtype=True) == key.dtype
    with pytest.raises(ValueError):
        weft.dtypes.canonicalize_dtype(key.dtype)
    assert weft.dtypes.TypePromotionError is weft.errors.TypePromotionError


def test_values_in_the_log(caplog):
    with caplog.at_level(logging.INFO, "weft.debug"):
        weft.jit(lambda x: weft.debug.log("x = {}, made = {made}", x, made=x + 1))(1)
        weft.effects_barrier()
    assert [r.getMessage() for r in caplog.records] == ["x = 1, made = 2"]


# ---- what libraries ask


def test_questions_about_values_and_types():
    assert extend.valid_jaxtype(1) and extend.valid_jaxtype(X) and not extend.valid_jaxtype("a")
    assert extend.concrete_or_error(int, 3.5) == 3 and extend.concrete_or_error(None, X) is X
    with pytest.raises(weft.errors.ConcretizationTypeError, match="of the size"):
        weft.jit(lambda x: extend.concrete_or_error(int, x, "of the size"))(1)
    assert extend.primal_dtype_to_tangent_dtype(np.dtype("int32")) == weft.float0
    assert extend.primal_dtype_to_tangent_dtype(np.dtype("float32")) == np.float32
    many, each = ShapedArray((3, 2), "float32"), ShapedArray((2,), "float32")
    assert extend.mapped_aval(3, 0, many) == each and extend.unmapped_aval(3, 0, each) == many
    assert extend.mapped_aval(3, None, many) is many
    with pytest.raises(ValueError, match="size 4"):
        extend.mapped_aval(4, 0, many)
    assert {type(wnp.ones(1)), np.ndarray, np.float32} <= extend.array_types
    assert isinstance(many, core.AbstractValue) and (core.max_dim(2, 3), core.min_dim(2, 3)) == (
        3,
        2,
    )


def test_programs_within_programs():
    jaxpr = weft.make_jaxpr(lambda x: weft.lax.scan(lambda c, y: (c + y, c), x, np.ones(3, "f")))(
        1.0
    ).jaxpr
    inner = list(extend.subjaxprs(jaxpr))
    assert len(inner) == 1 and [e.primitive.name for e in inner[0].eqns][-1] == "add"


def test_rules_under_the_names_of_jax():
    def primitive(name, impl, type_of):
        p = extend.Primitive(name)
        p.def_lowering(impl)
        p.def_abstract_eval(type_of)
        return p

    outer = primitive(
        "names_outer", lambda x, y: wnp.outer(x, y), lambda x, y: ShapedArray(x.shape * 2, x.dtype)
    )
    ad.defbilinear(
        outer,
        lambda ct, x, y: ct @ y,
        lambda ct, x, y: x @ ct,  # cotangents of x and of y
    )
    v, w = wnp.asarray([1.0, 2.0]), wnp.asarray([3.0, 5.0])
    assert weft.grad(lambda x, y: outer.bind(x, y).sum(), (0, 1))(v, w)[0].tolist() == [8, 8]
    assert weft.jvp(lambda x: outer.bind(x, w), (v,), (v,))[1].tolist() == [[3, 5], [6, 10]]
    assert callable(ad.get_primitive_transpose(outer))

    total = primitive(
        "names_total",
        lambda x, axes: wnp.sum(x, axes),
        lambda x, axes: ShapedArray([n for i, n in enumerate(x.shape) if i not in axes], x.dtype),
    )
    batching.defreducer(total)
    with pytest.raises(NotImplementedError):
        ad.get_primitive_transpose(total)
    cube = wnp.asarray(np.arange(24.0, dtype="f").reshape(2, 3, 4))
    for axis in range(3):
        mapped = weft.vmap(lambda x: total.bind(x, axes=(1,)), axis)(cube)
        np.testing.assert_array_equal(mapped, weft.vmap(lambda x: x.sum(1), axis)(cube))

    scaled = primitive(
        "names_scaled",
        lambda x, y: x * y,
        lambda x, y: ShapedArray(np.broadcast_shapes(x.shape, y.shape), x.dtype),
    )
    batching.defbroadcasting(scaled)
    got = weft.vmap(lambda x: scaled.bind(x, w), 1)(cube[0, :2])
    np.testing.assert_array_equal(got, cube[0, :2].T * w)

    zero = ad.Zero(ShapedArray((2,), "float32"))
    assert ad.add_tangents(zero, 1.0) == ad.add_tangents(1.0, zero) == 1.0
    assert ad.add_tangents(v, w).tolist() == [4, 7] == ad.add_jaxvals(v, w).tolist()
    assert ad.zeros_like_aval(zero.aval).tolist() == [0, 0]
    assert batching.bdim_at_front(cube, 1, 3).shape == (3, 2, 4)
    assert batching.bdim_at_front(v, None, 4).shape == (4, 2) == batching.broadcast(v, 4, 0).shape


# ---- arguments


@pytest.mark.parametrize("value", [None, 3, "s"])
def test_what_is_no_function_is_not_jitted(value):
    with pytest.raises(TypeError, match="expected a function"):
        weft.jit(value)


def test_check_grads_asks_for_the_order():
    with pytest.raises(TypeError, match="order"):
        weft.test_util.check_grads(wnp.sin, (1.0,))


def cubes(x):
    return {"a": x["b"] ** 3}


@weft.custom_jvp
def off(x):
    return x**2


off.defjvp(lambda xs, ts: (xs[0] ** 2, 2.6 * xs[0] * ts[0]))


@pytest.mark.parametrize("modes", [["fwd"], ["rev"], ["lin"], "rev", ("fwd", "rev", "lin")])
def test_tolerances_of_check_grads_go_by_dtype(modes):
    check = weft.test_util.check_grads
    tight, loose = {np.float32: 1e-3, np.float64: 1e-9}, {wnp.float32: 0.5, "float16": 0.5}
    for dtype in (np.float32, np.float16, weft.dtypes.bfloat16, np.complex64):
        check(cubes, ({"b": np.array([0.5, 2.0]).astype(dtype)},), 2, modes)
    x = np.array([1.0, 3.0], np.float32)
    check(off, (x,), 1, modes, loose, loose)
    check(off, (x,), 1, modes, 0.5, 0.5)
    for tolerance in (tight, None, {np.float16: 0.5}):
        with pytest.raises(AssertionError):
            check(off, (x,), 1, modes, tolerance, tolerance)
    check(off, (x.astype(np.float16),), 1, modes, loose, loose)
    # Numbers stay numbers, and whole ones have no derivative.
    check(lambda x, n: x**n if type(x) is not np.ndarray else None, (1.5, 3), 1, modes)
    with pytest.raises(ValueError, match="lin"):
        check(cubes, (x,), 1, "reverse")


def test_check_jvp_and_check_vjp():
    x = (np.array([0.5, 2.0], np.float32),)
    tolerances = {"rtol": {np.float32: 1e-2}, "atol": {np.float32: 1e-2}}
    weft.test_util.check_jvp(wnp.sin, lambda xs, ts: weft.jvp(wnp.sin, xs, ts), x, **tolerances)
    weft.test_util.check_vjp(wnp.sin, lambda *xs: weft.vjp(wnp.sin, *xs), x, **tolerances)
    with pytest.raises(AssertionError, match="mine value of the jvp"):
        of_cos = lambda xs, ts: (wnp.cos(*xs), weft.jvp(wnp.sin, xs, ts)[1])
        weft.test_util.check_jvp(wnp.sin, of_cos, x, err_msg="mine")
    with pytest.raises(AssertionError, match="vjp against"):
        weft.test_util.check_vjp(wnp.sin, lambda x: (wnp.sin(x), lambda ct: (ct,)), x)


def test_attributes_that_libraries_read():
    aval = weft.typeof(wnp.ones(3))
    assert aval.mat == aval.manual_axis_type and aval.mat.varying == frozenset()
    value, push = weft.linearize(wnp.sin, 0.5)
    assert push.keywords == {} and push.func(*push.args, 2.0) == push(2.0)
    assert weft.tree.leaves(push.args) == weft.tree.leaves(push)
    assert weft.jit(lambda t: push.func(*push.args, t))(2.0) == push(2.0)
    sin = weft.make_jaxpr(wnp.sin)(1.0).eqns[0].primitive
    assert sin.impl(0.5) == value
    own = weft.extend.core.Primitive("own_impl")
    own.impl = lambda x: x + 1
    own.def_abstract_eval(lambda x: x)
    assert own.impl(1.0) == 2.0 and own.bind(np.float32(1)) == 2
    with pytest.raises(TypeError, match="built in"):
        sin.impl = own.impl
    jaxpr = weft.make_jaxpr(wnp.sin)(1.0)
    assert jaxpr.pretty_print(source_info=True) == jaxpr.jaxpr.pretty_print() == str(jaxpr)


def test_arange_moves_nothing():
    with weft.transfer_guard("disallow"):
        assert wnp.arange(3).dtype == np.int32 and wnp.arange(3.0).shape == (3,)
        with pytest.raises(RuntimeError):
            wnp.arange(1, 5, 2)
