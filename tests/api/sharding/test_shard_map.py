"""shard_map on a mesh of eight CPU devices against NumPy, its derivatives, and what it refuses."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from conftest import EVERYTHING, SUPPORT
from shard_map_checks import MESH, PROGRAMS, P, V, X, on_mesh

import weft
from weft import lax, numpy as wnp
from weft.sharding import AxisType, ManualAxisType

RANDOM = "400" if EVERYTHING else "8"  # random programs


@pytest.fixture(scope="module")
def answers():
    made = subprocess.run(
        [sys.executable, str(SUPPORT / "shard_map_checks.py"), RANDOM],
        capture_output=True,
        timeout=600,
    )
    assert made.returncode == 0, made.stderr.decode()[-4000:]
    return pickle.loads(made.stdout)


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_eight_devices(name, answers):
    want = PROGRAMS[name][2]
    leaves = [want] if isinstance(want, list) else weft.tree_util.tree_leaves(want)
    assert not isinstance(answers[name], str), answers[name]
    for answer in answers[name]:
        for got, expected in zip(answer, leaves, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_random_programs(answers):
    assert len(answers["random"]) == int(RANDOM)
    assert [wrong for wrong in answers["random"].values() if wrong] == []


def test_axis_names_are_a_set():
    with pytest.raises(TypeError, match="a set for axis_names; got 'x'"):
        on_mesh(lambda x: x, P("x"), P("x"), axis_names="x")
    with pytest.raises(TypeError, match="not all axes of"):
        weft.shard_map(lambda x: x, mesh=MESH, out_specs=P("x"))(X)


BAD_SMAP = {
    "name": ({"axis_name": ("x",)}, TypeError, "a string"),
    "negative": ({"in_axes": -1}, ValueError, "from 0 on"),
    "no_int": ({"out_axes": "a"}, TypeError, "ints or None"),
    "no_mesh": ({}, ValueError, "set_mesh"),
    "unknown": ({"axis_name": "q"}, ValueError, "'q'"),
}


@pytest.mark.parametrize("name", BAD_SMAP)
def test_what_smap_refuses(name):
    options, error, message = BAD_SMAP[name]
    options = {"in_axes": 0, "out_axes": 0, "axis_name": "x"} | options
    with pytest.raises(error, match=message):
        if name == "unknown":
            with weft.set_mesh(weft.make_mesh((1,), ("x",))):
                weft.smap(lambda x: x, **options)(X)
        else:
            weft.smap(lambda x: x, **options)(X)


def test_decorator_and_former_name():
    @weft.shard_map(mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    def double(x):
        return x * 2

    former = weft.experimental.shard_map.shard_map(lambda x: x * 2, MESH, P("x"), P("x"))
    assert double.__name__ == "double"
    assert "shard_map" in str(weft.make_jaxpr(double)(X))
    assert weft.make_jaxpr(former)(X).out_avals[0].shape == (8, 2)


def test_specs_without_split_of_an_argument_that_is_handed_on():
    f = on_mesh(lambda x, n: x * n, (P("x"), None), P("x"))
    assert "3.0" in str(weft.make_jaxpr(f, static_argnums=1)(X, 3))


@weft.custom_vjp
def uneven(w, x):
    return (w * x).sum()


uneven.defvjp(lambda w, x: (uneven(w, x), x), lambda x, ct: (ct * x.sum(), ct * x))


def summands(x):
    return lax.pcast(x, "x", to="unreduced")


def same_for_all(x):
    return lax.pcast(x, "x", to="reduced")


BAD = {
    "varying_result": (lambda x: x, P("x"), P(), ValueError, "varies over 'x'"),
    "size": (lambda x: x, P(("x", "y", )), P("x"), None, ""),
    "rank": (lambda x: x, P("x", None, "y"), P("x"), ValueError, "at most 2 dimensions"),
    "result_rank": (lambda x: x.sum(), P("x"), P("x"), ValueError, "at most 0 dimensions"),
    "axis": (lambda x: x, P("z"), P("x"), ValueError, "got 'z'"),
    "axis_twice": (lambda x: x, P("x", "x"), P("x"), ValueError, "'x' twice"),
    "tree": (lambda x: x, (P("x"), P("x")), P("x"), ValueError, "tuple of length 2"),
    "no_spec": (lambda x: x, P("x"), 3, TypeError, "expected PartitionSpecs"),
    "unbound": (lambda x: lax.psum(x, "q"), P("x"), P("x"), NameError, "'x', 'y'"),
    "cast": (lambda x: lax.pcast(x, "x", to="much"), P("x"), P("x"), ValueError, "'varying'"),
    "carry": (lambda x: lax.scan(lambda c, t: (c + t.sum(), None), 0.0, x)[0], P("x"), P(),
              TypeError, r"carry 0, f32.., that an iteration makes f32..\{V:x\}"),
    "branches": (lambda x: lax.cond(lax.psum(x.sum(), "x") > 0, lambda: x,
                                      lambda: lax.psum(x, "x")),
                 P("x"), P("x"), TypeError, r"result 0, f32.2,2. and f32.2,2.\{V:x\}"),
    "carry_less": (lambda x: lax.scan(lambda c, t: (wnp.ones(2), None), x[0], x)[0],
                   P("x"), P("x"), TypeError, r"(?s)that an iteration makes f32.2.\n.*give pcast"),
    "branch_less": (lambda x: lax.cond(x.sum() > 0, lambda: x, lambda: wnp.ones((2, 2))),
                    P("x"), P("x"), TypeError, r"result 0, f32.2,2. and f32.2,2.\{V:x\}"),
    "cast_again": (lambda x: lax.pcast(x, ("x", "y"), to="varying"), P("x"), P("x"), ValueError,
                   r"of one kind .*float32.2,2.\{V:x\}, which is invarying and varying"),
    "cast_back": (lambda x: lax.pcast(x, "x", to="reduced"), P("x"), P("x"), ValueError,
                  "is 'invarying' along"),
    "cast_unreduced": (lambda x: lax.pcast(x, "y", to="unreduced"), P("x"), P("x"), ValueError,
                       "is 'varying' along"),
    "cast_set": (lambda x: lax.pcast(x, {"x"}, to="unreduced"), P("x"), P("x"), TypeError,
                 "a name or a tuple"),
    "function_of_sums": (lambda x: wnp.sin(summands(x)), P("x"), P(), NotImplementedError,
                         r"sin. expected operands whose sums .*\{U:x\}"),
    "sums_and_others": (lambda x: summands(x) + x, P("x"), P(), TypeError, "over the same axes"),
    "product_of_sums": (lambda x: summands(x) * 2, P("x"), P(), TypeError, "whose other operand"),
    "reduced_and_others": (lambda x: same_for_all(V) * wnp.ones_like(V), P("x"),
                           P(), TypeError, "reduced over the same axes"),
    "sum_of_reduced": (lambda x: lax.psum(same_for_all(V), "x"), P("x"), P(),
                       ValueError, "not reduced along 'x'"),
    "maximum_of_sums": (lambda x: lax.pmax(summands(x), "x"), P("x"), P(), ValueError,
                        "not unreduced along 'x'"),
    "gather_of_whole": (lambda x: lax.all_gather(x, "y", to="reduced"), P("x"), P("x"), ValueError,
                        "that varies over"),
    "sums_as_they_are": (summands, P("x"), P(), ValueError, r"unreduced over \['x'\]"),
    "reduced_as_it_is": (lambda x: same_for_all(V), P("x"), P(), ValueError,
                         r"reduced over \['x'\]"),
    "sum": (lambda x: lax.psum(x, ("x", "y")), P("x"), P(), ValueError, "leave out some"),
    "mean": (lambda x: lax.pmean(x, ("x", "y")), P("x"), P(), ValueError, r"\{V:x\}"),
    "scatter": (lambda x: lax.psum_scatter(x[:1].repeat(8, 0), ("x", "y")),
                P("x"), P(), ValueError, r"\{V:x\}"),
    "string": (lambda x: x, "x", P("x"), TypeError, "got 'x'"),
    "unreduced": (lambda x: x, P("x"), P(unreduced={"x"}), ValueError, "of type Explicit"),
    "cotangent": (lambda x: weft.vjp(lambda x: lax.psum(x, "x"), x)[1](x)[0], P("x"), P("x"),
                  ValueError, "output 0, f32.2,2., to be the same"),
    "backward_rule": (lambda x: weft.grad(uneven)(1.0, x), P("x"), P(), ValueError,
                      "backward rule to give, as number 0"),
    "nested": (lambda x: on_mesh(lambda y: y, P(None), P("x"))(x), P("x"), P("x"), ValueError,
               "no shard_map around it has"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(name):
    f, in_specs, out_specs, error, message = BAD[name]
    if error is None:
        with pytest.raises(ValueError, match="divisible by 8"):
            weft.make_jaxpr(on_mesh(f, in_specs, out_specs))(X[:6])
        return
    with pytest.raises(error, match=message):
        weft.make_jaxpr(on_mesh(f, in_specs, out_specs))(X)


# A function of x, of which a device has 2 of 8 rows, and of w, which is the same for all; and the
# types of what it gives, as jax prints them.
TYPES = {
    "arguments": (lambda x, w: (x, w), "float32[2,2]{V:x} float32[2]"),
    "meet": (lambda x, w: (x * w, w * 2, wnp.concatenate([x, w[None]])),
             "float32[2,2]{V:x} float32[2] float32[3,2]{V:x}"),
    "constants": (lambda x, w: (wnp.zeros(3), wnp.zeros_like(x), wnp.zeros_like(x, shape=(3,))),
                  "float32[3] float32[2,2]{V:x} float32[3]{V:x}"),
    "index": (lambda x, w: [lax.axis_index(axes) for axes in ("x", "y", ("y", "x"))],
              "int32[]{V:x} int32[]{V:y} int32[]{V:(x,y)}"),
    "casts": (lambda x, w: lax.pcast((x, w, 1.0), "y", to="varying"),
              "float32[2,2]{V:(x,y)} float32[2]{V:y} ~float32[]{V:y}"),
    "reduced": (lambda x, w: (lax.psum(x, "x"), lax.psum(x, "y"), lax.pmax(x, ("x", "y"))),
                "float32[2,2] float32[2,2]{V:x} float32[2,2]"),
    "gathered": (lambda x, w: (lax.all_gather(x, "x"), lax.all_gather(x, "y", to="invarying"),
                               lax.all_gather(x, "x", to="invarying")),
                 "float32[4,2,2]{V:x} float32[2,2,2]{V:x} float32[4,2,2]"),
    "sums": (lambda x, w: (summands(x), summands(x) + summands(x), summands(x).T.sum(0),
                           lax.psum(summands(x), "x"),
                           lax.psum_scatter(summands(x).repeat(2, 0), "x", tiled=True)),
             "float32[2,2]{U:x} float32[2,2]{U:x} float32[2]{U:x} float32[2,2] float32[1,2]{V:x}"),
    "same": (lambda x, w: (same_for_all(w), wnp.sin(same_for_all(w)) * 2, same_for_all(w) * x,
                           summands(x) * same_for_all(w[None].repeat(2, 0)),
                           lax.all_gather(x, "x", to="reduced", tiled=True)),
             "float32[2]{R:x} float32[2]{R:x} float32[2,2]{V:x} float32[2,2]{U:x} "
             "float32[8,2]{R:x}"),
    "cotangents": (lambda x, w: (weft.grad(lambda w: (w * x).sum())(same_for_all(w)),
                                 weft.grad(lambda s: lax.psum(s, "x").sum())(summands(x))),
                   "float32[2]{U:x} float32[2,2]{R:x}"),
    "moved": (lambda x, w: (lax.ppermute(x, "y", [(0, 1)]), lax.psum_scatter(w, "y", tiled=True),
                            lax.all_to_all(x, "y", 0, 1, tiled=True)),
              "float32[2,2]{V:(x,y)} float32[1]{V:y} float32[1,4]{V:(x,y)}"),
    "keys": (lambda x, w: weft.random.fold_in(weft.random.key(0), lax.axis_index("x")),
             "key<fry>[]{V:x}"),
    "gradients": (lambda x, w: weft.grad(lambda x, w: (x * w).sum(), (0, 1))(x, w),
                  "float32[2,2]{V:x} float32[2]"),
    "loops": (lambda x, w: (lax.scan(lambda c, t: (c + t, c), x[0], x), lax.map(wnp.sin, w),
                            lax.while_loop(lambda c: c.sum() < 3, lambda c: c + 1, x)),
              "float32[2]{V:x} float32[2,2]{V:x} float32[2] float32[2,2]{V:x}"),
    "within_jit": (lambda x, w: _within(weft.jit, x, w), "float32[2,2]{V:x} float32[2]"),
    "within_vmap": (lambda x, w: _within(weft.vmap, x, wnp.stack([w, w])),
                    "float32[2]{V:x} float32[2]"),
    "within_grad": (lambda x, w: _within(lambda f: weft.grad(lambda *a: f(*a).sum()), x, w),
                    "float32[2,2]{V:x} float32[2]"),
    "within_scan": (lambda x, w: _within(
        lambda f: lambda x, w: lax.scan(lambda c, t: (f(c, t), None), x[0], w), x, w),
        "float32[2]{V:x} float32[]"),
    "closed_over": (lambda x, w: _within(lambda f: lambda x, w: weft.jit(lambda: f(x, w))(), x, w),
                    "float32[2,2]{V:x} float32[2]"),
    "traced_again": (lambda x, w: _traced_for(w, w, x[0], x[1]), "float32[2] float32[2]{V:x}"),
    "ref": (lambda x, w: _of_ref(x, w), "float32[2]{V:x}"),
    "nested": (lambda x, w: _within(lambda f: weft.shard_map(
        f, in_specs=(P(None, "y"), P("y")), out_specs=P(None, "y"), axis_names={"y"}), x, w),
        "float32[2,1]{V:(x,y)} float32[1]{V:y}"),
}  # fmt: skip


def _within(transform, x, w):
    """The types of x and w in a function under a transform."""
    seen = []

    @transform
    def f(x, w):
        seen.extend(map(weft.typeof, (x, w)))
        return x * w

    f(x, w)
    return seen


def _traced_for(*xs):
    """The types for which a jitted function is traced that is called with each of these."""
    seen = []
    f = weft.jit(lambda x: seen.append(weft.typeof(x)) or x)
    for x in xs:
        f(x)
    return seen


def _of_ref(x, w):
    ref = weft.new_ref(w)
    ref[...] = x[0]
    return ref[...]


@pytest.mark.parametrize("name", TYPES)
def test_types_within(name):
    f, expected = TYPES[name]
    axes = {"axis_names": {"x"}} if name == "nested" else {}

    def shown(x, w):
        leaves = weft.tree_util.tree_leaves(f(x, w))
        types = [t if isinstance(t, weft.ShapeDtypeStruct) else weft.typeof(t) for t in leaves]
        assert " ".join(map(str, types)) == expected
        return x

    weft.make_jaxpr(on_mesh(shown, (P("x"), P()), P("x"), **axes))(X, X[0])


def test_types_are_values():
    def f(x):
        own, plain = weft.typeof(x), weft.typeof(wnp.ones(x.shape))
        assert own.manual_axis_type == ManualAxisType(varying={"x"}) != plain.manual_axis_type
        assert own != plain and own.update(manual_axis_type=None) == plain
        like = weft.ShapeDtypeStruct.like(x)
        for fun in (wnp.sin, weft.jit(wnp.sin)):
            assert weft.eval_shape(fun, x).manual_axis_type == own.manual_axis_type
        assert like.manual_axis_type == own.manual_axis_type and "varying" in repr(like)
        return x

    weft.make_jaxpr(on_mesh(f, P("x"), P("x")))(X)
    assert weft.typeof(X).manual_axis_type.empty
    for sets, error in (
        ({"varying": "x"}, TypeError),
        ({"varying": {0}, "reduced": {0}}, ValueError),
    ):
        with pytest.raises(error, match="varying"):
            ManualAxisType(**sets)


def test_why_it_is_traced_again():
    f = weft.jit(lambda x: x * 2)
    weft.make_jaxpr(on_mesh(lambda x: f(V) + f(x[0]), P("x"), P("x")))(X)
    (reason,) = f.explain().events[-1].reasons
    assert reason.endswith("variation over axes is {x}, before {}")


def test_nothing_is_shown_unchecked():
    seen = []
    f = on_mesh(lambda x: seen.append(weft.typeof(x)) or x, P("x"), P("x"), check_vma=False)
    weft.make_jaxpr(f)(X)
    assert list(map(str, seen)) == ["float32[2,2]"]


def test_loops_are_refused_where_they_stand():
    reached = []

    def f(x):
        with pytest.raises(TypeError, match="carry 1"):
            lax.fori_loop(0, 3, lambda i, c: c + x, wnp.zeros(x.shape))
        reached.append(True)
        raise KeyError

    with pytest.raises(KeyError):
        weft.make_jaxpr(on_mesh(f, P("x"), P("x")))(X)
    assert reached


BAD_PMAP = {
    "devices": ({}, (X,), ValueError, r"got float32\[8,2\], whose axis 0 has size 8\n  The"),
    "sizes": ({}, (X[:1], X[:2]), ValueError, "axis 0 of float32.2,2. has size 2"),
    "axis_size": ({"axis_size": 2}, (X[:1],), ValueError, "axis_size=2"),
    "nothing_mapped": ({"in_axes": None}, (X,), ValueError, "at least one mapped"),
    "scalar": ({}, (1.0,), ValueError, "an axis of args.0. of 'first'"),
    "negative": ({"in_axes": -1}, (X,), ValueError, "from 0 on"),
    "no_int": ({"in_axes": "a"}, (X,), TypeError, "got 'a'"),
    "in_axes": ({"in_axes": (0, 0)}, (X,), ValueError, "1 positional arguments of 'first'; got 2"),
    "in_tree": ({"in_axes": ({"a": 0},)}, (X,), ValueError, "a prefix of the tree"),
    "out_axes": ({"out_axes": 2}, (X[:1],), ValueError, "expected 0 to 1 for result"),
    "out_tree": ({"out_axes": (0, 0)}, (X[:1],), ValueError, "a prefix of the tree"),
    "no_devices": ({"devices": []}, (X,), ValueError, "got none"),
    "platform": ({"backend": "none"}, (X,), RuntimeError, "'none'"),
    "name": ({"axis_name": 0}, (X,), TypeError, "a string"),
    "static": ({"static_broadcasted_argnums": 1}, (X[:1],), ValueError, "by position"),
    "unhashable": ({"static_broadcasted_argnums": 1}, (X[:1], [1]), ValueError, "hashable"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_PMAP)
def test_what_pmap_refuses(name):
    options, arguments, error, message = BAD_PMAP[name]

    def first(x, *rest):
        return x

    with pytest.raises(error, match=message):
        weft.pmap(first, **options)(*arguments)


def test_pmap_is_jit():
    f = weft.pmap(lambda x: x * 2, donate_argnums=0)
    x = weft.pmap(lambda x: x)(X[:1])
    assert "stablehlo.multiply" in f.lower(X[:1]).as_text()
    assert f(x).shape == (1, 2) and x.is_deleted()
    assert f._cache_size() == 1
    assert weft.eval_shape(f, weft.ShapeDtypeStruct((1, 3), np.float32)).shape == (1, 3)


def test_collectives_outside():
    with pytest.raises(NameError, match="where none is"):
        lax.psum(X, "x")


def test_manual_axes_are_not_set():
    manual = weft.make_mesh((1,), ("x",), axis_types=(AxisType.Manual,))
    with pytest.raises(ValueError, match="without axes of type Manual"):
        weft.set_mesh(manual)
