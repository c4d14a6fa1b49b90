"""Collectives under vmap(axis_name=...): against jax, and groups of lanes against NumPy."""

import enum
import itertools

import numpy as np
import programs_oracle
import pytest
from conftest import EVERYTHING
from oracle import needs_jax

import weft
import weft.numpy as wnp
from weft import grad, jit, jvp, lax, vjp, vmap
from weft.errors import (
    ArgumentTypeError,
    AttributeValueError,
    ConcretizationTypeError,
    ShapeError,
    UnboundAxisNameError,
)

# Expressions in x, of shape (4, 6) in each of the 5 lanes of the axis "i".
_ONE_AXIS = {
    "psum": "lax.psum(x * x, 'i')",
    "psum_tree": "lax.psum({'a': x, 'b': [x[0], x > 2]}, 'i')",
    "psum_of_unmapped": "x + lax.psum(np.ones((4, 6)) * 2, 'i')",
    "psum_of_number": "x * lax.psum(1, 'i') + lax.psum(2.5, ('i',))",
    "psum_of_bool": "lax.psum(True, 'i')",
    "psum_of_int": "lax.psum(np.int8(100) + x.astype('int8'), 'i')",
    "pmean": "lax.pmean((x, np.sin(x[0])), 'i')",
    "pmax": "lax.pmax(np.sin(x * 7), 'i')",
    "pmin": "lax.pmin(np.sin(x * 7).astype('int32'), 'i')",
    "pmax_of_unmapped": "x * lax.pmax(np.arange(6.0), 'i')",
    "ppermute": "lax.ppermute(x, 'i', [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])",
    "pshuffle": "lax.pshuffle(x, 'i', [4, 2, 0, 1, 3])",
    "all_gather": "lax.all_gather(x, 'i')",
    "all_gather_1": "lax.all_gather(x, 'i', axis=1)",
    "all_gather_last": "lax.all_gather(x, 'i', axis=-1)",
    "all_gather_tiled": "lax.all_gather(x, 'i', axis=1, tiled=True)",
    "all_gather_of_unmapped": "x.sum() + lax.all_gather(np.arange(3.0), 'i')",
    "psum_scatter": "lax.psum_scatter(np.stack([x, 2 * x, x * x, -x, x + 1]), 'i')",
    "psum_scatter_1": "lax.psum_scatter(x[:, :5], 'i', scatter_dimension=1)",
    "psum_scatter_tiled": "lax.psum_scatter(np.concatenate([x, x[:1]]), 'i', tiled=True)",
    "psum_scatter_unmapped": "x[0, 0] + lax.psum_scatter(np.arange(10.0), 'i', tiled=True)",
    "all_to_all": "lax.all_to_all(x[:, :5], 'i', 1, 0)",
    "all_to_all_same": "lax.all_to_all(x[:, :5], 'i', 1, 1)",
    "all_to_all_tiled": "lax.all_to_all(np.tile(x, (5, 1)), 'i', 0, 1, tiled=True)",
    "all_to_all_tiled_back": "lax.all_to_all(np.tile(x, (1, 5)), 'i', 1, 0, tiled=True)",
    "pswapaxes": "lax.pswapaxes(x[:, :5], 'i', 1)",
    "axis_index": "lax.axis_index('i') * 10 + x.astype('int32')",
    "axis_index_alone": "lax.axis_index('i')",
    "axis_size": "x * lax.axis_size('i')",
    "in_jit": "fw.jit(lambda y: lax.psum(y, 'i') + lax.axis_index('i'))(x)",
    "in_jit_of_nothing": "fw.jit(lambda: lax.axis_index('i') + lax.psum(1, 'i'))() + x",
    "in_scan": "lax.scan(lambda c, y: (c + lax.psum(y, 'i'), lax.pshuffle(c, 'i', [4, 2, 0, 1,"
    " 3])), np.zeros(6), x)",
    "in_while": "lax.while_loop(lambda c: c[1] < 3 + 0 * lax.psum(1, 'i'),"
    " lambda c: (lax.pmean(c[0], 'i') * 2, c[1] + 1), (x, 0))",
    "lanes_stop_in_turn": "lax.while_loop(lambda c: c[1] < lax.axis_index('i'),"
    " lambda c: (c[0] * 2, c[1] + 1), (x, 0))",
    "in_cond": "lax.cond(lax.axis_index('i') > 2, lambda y: y * lax.axis_size('i'), np.sin, x)",
    "in_switch_of_unmapped": "lax.switch(1, [np.sin, lambda y: y - lax.pmean(y, 'i')], x)",
    "in_remat": "fw.checkpoint(lambda y: np.sin(lax.psum(np.cos(y), 'i')))(x)",
    "nested_name": "fw.vmap(lambda row: row / lax.psum(row, 'j') + lax.psum(row, ('i', 'j')),"
    " axis_name='j')(x)",
    "shadowed_name": "fw.vmap(lambda row: lax.psum(row, 'i'), axis_name='i')(x) + lax.psum(x, 'i')",
    "within_unnamed": "fw.vmap(lambda row: lax.all_gather(row, 'i') - lax.axis_index('i'))(x)",
    "unnamed_all_to_all": "fw.vmap(lambda c: lax.all_to_all(c, 'i', 0, 0), in_axes=1)(x[:, :5].T)",
    "custom_jvp": "custom(x)",
    "custom_vjp": "customised(x)",
    "batch_norm": "(x - lax.pmean(x, 'i')) / np.sqrt(lax.pmean(x ** 2, 'i') + 1e-3)",
}
_SHARED = """
@fw.custom_jvp
def custom(y):
    return np.sin(lax.psum(y, 'i'))
custom.defjvp(lambda p, t: (custom(*p), lax.psum(t[0], 'i') * 3))

@fw.custom_vjp
def customised(y):
    return y * lax.axis_size('i')
customised.defvjp(lambda y: (customised(y), lax.pmean(y, 'i')),
                  lambda r, ct: (r + lax.psum(ct, 'i'),))
X = np.asarray(onp.random.default_rng(0).normal(size=(5, 4, 6)), dtype='float32')
def f(x):
    return {expression}
def loss(x):
    return sum(np.sum(np.sin(y)) for y in fw.tree_util.tree_leaves(f(x)) if y.dtype.kind == 'f')
"""
_FORMS = {
    "values": "fw.vmap(f, axis_name='i')(X)",
    "other axis": "fw.vmap(f, in_axes=2, out_axes=0, axis_name='i')(np.moveaxis(X, 0, 2))",
    "jit": "fw.jit(fw.vmap(f, axis_name='i'))(X)",
    "lanes' gradients": "fw.vmap(fw.grad(loss), axis_name='i')(X)",
    "gradient": "fw.grad(lambda x: fw.vmap(loss, axis_name='i')(x).sum())(X)",
    "jvp": "fw.vmap(lambda x: fw.jvp(loss, (x,), (np.cos(x),)), axis_name='i')(X)",
    "second": "fw.grad(lambda x: np.sum(fw.vmap(fw.grad(loss), axis_name='i')(x) ** 2))(X)",
    "over vmap": "fw.vmap(fw.vmap(f, axis_name='i'), in_axes=2)(np.stack([X, X * X], 2))",
}
_DERIVATIVES = ("lanes' gradients", "gradient", "jvp", "second")
_WITHOUT_DERIVATIVE = ("in_while", "lanes_stop_in_turn", "psum_of_int", "pmin", "axis_index",
                       "axis_index_alone", "pmax")  # fmt: skip


def _programs():
    out = {}
    for i, (name, expression) in enumerate(_ONE_AXIS.items()):
        forms = [form for form in _FORMS if _has(name, form)]
        if not EVERYTHING:
            forms = [forms[0], forms[1 + i % (len(forms) - 1)]]
        for form in forms:
            shared = _SHARED.replace("{expression}", expression)
            out[f"{name}, {form}"] = f"{shared}\nresult = {_FORMS[form]}"
    return out


def _has(name, form):
    if name in _WITHOUT_DERIVATIVE and form in _DERIVATIVES:
        return False
    # Forward mode of custom_vjp; and what jax gets wrong.
    return (name, form) not in {
        ("custom_vjp", "jvp"),
        ("all_to_all", "lanes' gradients"),
        ("all_to_all", "second"),
    }


PROGRAMS = _programs()


@needs_jax
@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_jax(name):
    programs_oracle.check(PROGRAMS, name, rtol=2e-4)


# ---- Against NumPy: f(lanes) -> lanes, of arrays with all lanes along axis 0


def _np_ppermute(x, perm):
    out = np.zeros_like(x)
    for source, destination in perm:
        out[destination] = x[source]
    return out


def _in_groups(f, x, groups):
    """Lane by lane, f(values of its group, its place in there)."""
    group_of = {lane: group for group in groups for lane in group}
    return np.stack([f(x[group_of[i]], group_of[i].index(i)) for i in range(len(x))])


def _np_all_gather(rows, _, axis, tiled):
    return np.concatenate(list(rows), axis) if tiled else np.stack(list(rows), axis)


def _np_psum_scatter(rows, place, axis, tiled):
    part = np.split(rows.sum(0), len(rows), axis)[place]
    return part if tiled else part.squeeze(axis)


def _np_all_to_all(rows, place, split, concat, tiled):
    parts = [np.split(row, len(rows), split)[place] for row in rows]
    if tiled:
        return np.concatenate(parts, concat)
    return np.stack([part.squeeze(split) for part in parts], concat)


_GROUPS = [[0, 3], [4, 1], [2, 5]]
_UNEQUAL = [[0], [1, 2, 5], [4, 3]]
_ALL = [[0, 1, 2, 3, 4, 5]]


def _with(f, *options):
    return lambda rows, place: f(rows, place, *options)


# (function of a lane's x and the name, NumPy's of a group's rows and the lane's place, groups)
_GROUPED = {
    "psum": (lambda x, i, g: lax.psum(x, i, axis_index_groups=g), lambda r, _: r.sum(0)),
    "pmean": (lambda x, i, g: lax.pmean(x, i, axis_index_groups=g), lambda r, _: r.mean(0)),
    "pmax": (lambda x, i, g: lax.pmax(x, i, axis_index_groups=g), lambda r, _: r.max(0)),
    "pmin": (lambda x, i, g: lax.pmin(x, i, axis_index_groups=g), lambda r, _: r.min(0)),
}
for _axis, _tiled in itertools.product((0, 1), (False, True)):
    _GROUPED[f"all_gather {_axis} {_tiled}"] = (
        lambda x, i, g, a=_axis, t=_tiled: lax.all_gather(
            x, i, axis_index_groups=g, axis=a, tiled=t
        ),
        _with(_np_all_gather, _axis, _tiled),
    )
    _GROUPED[f"psum_scatter {_axis} {_tiled}"] = (
        lambda x, i, g, a=_axis, t=_tiled: lax.psum_scatter(
            x, i, axis_index_groups=g, scatter_dimension=a, tiled=t
        ),
        _with(_np_psum_scatter, _axis, _tiled),
    )
for _split, _concat, _tiled in itertools.product((0, 1), (0, 1), (False, True)):
    _GROUPED[f"all_to_all {_split} {_concat} {_tiled}"] = (
        lambda x, i, g, s=_split, c=_concat, t=_tiled: lax.all_to_all(
            x, i, s, c, axis_index_groups=g, tiled=t
        ),
        _with(_np_all_to_all, _split, _concat, _tiled),
    )


def _lanes(lanes=6, size=2):
    return np.random.default_rng(3).normal(size=(lanes, size, size)).astype("float32")


def _mapped(f, names):
    """f over the lanes of one axis "i", or of the axes "i" and "j" that make it up."""
    if names == "i":
        return vmap(f, axis_name="i")

    def over_two(x):
        x = x.reshape(2, len(x) // 2, *x.shape[1:])
        y = vmap(vmap(f, axis_name="j"), axis_name="i")(x)
        return y.reshape(-1, *y.shape[2:])

    return over_two


@pytest.mark.parametrize("names", ["i", ("i", "j")], ids=str)
@pytest.mark.parametrize("groups", [None, _GROUPS, _UNEQUAL], ids=["all", "groups", "unequal"])
@pytest.mark.parametrize("name", _GROUPED)
def test_groups_and_several_names(name, groups, names):
    f, reference = _GROUPED[name]
    if groups == _UNEQUAL and (name not in ("psum", "pmax", "pmin") or names != "i"):
        return
    x = _lanes(size=6 if groups is None else 2)
    mapped = jit(_mapped(lambda lane: f(lane, names, groups), names))
    expected = _in_groups(reference, x, groups or _ALL)
    np.testing.assert_allclose(mapped(x), expected, rtol=1e-5, atol=1e-6)


# The cotangents that lanes get are those of the linear function of all lanes together.
@pytest.mark.parametrize("names", ["i", ("i", "j")], ids=str)
@pytest.mark.parametrize("name", [*_GROUPED, "ppermute", "pbroadcast", "ragged_all_to_all"])
def test_transposes(name, names):
    functions = {
        "ppermute": lambda x, i, g: lax.ppermute(x, i, [(0, 3), (3, 0), (5, 4), (4, 2)]),
        "pbroadcast": lambda x, i, g: lax.pbroadcast(x, i, 4),
        "ragged_all_to_all": lambda x, i, g: _shift_ragged(x, i),
    }
    f = functions.get(name) or _GROUPED[name][0]

    def lane(x, t, ct):
        y, pulled = vjp(lambda x: f(x, names, _GROUPS), x)
        pushed = jvp(lambda x: f(x, names, _GROUPS), (x,), (t,))[1]
        ct = ct.ravel()[: y.size].reshape(y.shape)
        return wnp.stack([(pushed * ct).sum(), (t * pulled(ct)[0]).sum()])

    x, t, ct = _lanes(), _lanes()[::-1] * 2, np.resize(np.sin(np.arange(6 * 8.0)), (6, 2, 4))
    if names == "i":
        sums = vmap(lane, axis_name="i")(x, t, ct.astype("float32"))
    else:
        split = [a.reshape(2, 3, *a.shape[1:]).astype("float32") for a in (x, t, ct)]
        sums = vmap(vmap(lane, axis_name="j"), axis_name="i")(*split).reshape(6, 2)
    pushed, pulled = np.asarray(sums).sum(0)
    np.testing.assert_allclose(pushed, pulled, rtol=1e-4, atol=1e-5)
    assert abs(pushed) > 1e-3


@pytest.mark.parametrize("names", ["i", ("i", "j")], ids=str)
# Lanes that are no destination get zeros, which jax refuses under vmap.
@pytest.mark.parametrize(
    "perm", [[], [(0, 3), (3, 0), (2, 4)], [(i, (i + 1) % 6) for i in range(6)]], ids=str
)
def test_ppermute(perm, names):
    x = _lanes()
    got = _mapped(lambda lane: lax.ppermute(lane, names, perm), names)(x)
    np.testing.assert_array_equal(got, _np_ppermute(x, perm))


@pytest.mark.parametrize("names", ["i", ("i", "j")], ids=str)
def test_pbroadcast_and_places(names):
    x = _lanes()
    np.testing.assert_array_equal(
        _mapped(lambda lane: lax.pbroadcast(lane, names, 4), names)(x), np.stack([x[4]] * 6)
    )
    np.testing.assert_array_equal(_mapped(lambda _: lax.axis_index(names), names)(x), np.arange(6))
    assert _mapped(lambda _: lax.axis_size(names), names)(x).tolist() == [6] * 6


def _shift_ragged(x, names):
    """Each lane sends its rows to the next: row 0 only, if its number is even."""
    n = lax.axis_size(names)
    me = lax.axis_index(names)
    to, of = wnp.arange(n) == (me + 1) % n, wnp.arange(n) == (me - 1) % n
    return lax.ragged_all_to_all(
        x,
        wnp.full_like(x, 0),
        wnp.zeros(n, "int32"),
        wnp.where(to, 1 + me % 2, 0),
        wnp.zeros(n, "int32"),
        wnp.where(of, 1 + (me - 1) % 2, 0),
        axis_name=names,
    )


def test_ragged_all_to_all():
    data = [
        wnp.array([[1, 2, 2], [3, 4, 0]]),
        wnp.zeros((2, 4), "int32"),
        wnp.array([[0, 1], [0, 1]]),
        wnp.array([[1, 2], [1, 1]]),
        wnp.array([[0, 0], [1, 2]]),
        wnp.array([[1, 1], [2, 1]]),
    ]
    f = jit(vmap(lambda *xs: lax.ragged_all_to_all(*xs, axis_name="i"), axis_name="i"))
    assert f(*data).tolist() == [[1, 3, 0, 0], [2, 2, 4, 0]]
    data[1] = data[1] - 7
    assert f(*data).tolist() == [[1, 3, -7, -7], [2, 2, 4, -7]]
    x = _lanes()
    expected = np.roll(x, 1, 0)
    expected[1::2, 1] = 0
    np.testing.assert_array_equal(vmap(lambda r: _shift_ragged(r, "i"), axis_name="i")(x), expected)


def test_pmax_has_a_derivative():
    x = wnp.array([1.0, 3.0, 3.0])
    slopes = vmap(grad(lambda x: lax.pmax(x, "i")), axis_name="i")(x)
    np.testing.assert_allclose(slopes, [0.0, 1.5, 1.5])


# ---- Places


def test_a_jit_function_knows_its_axes():
    f = jit(lambda x: x * lax.axis_size("i"))
    assert vmap(f, axis_name="i")(wnp.ones(3)).tolist() == [3.0] * 3
    assert vmap(f, axis_name="i")(wnp.ones(5)).tolist() == [5.0] * 5
    with pytest.raises(UnboundAxisNameError, match="got 'i', where none is"):
        f(1.0)
    nested = vmap(lambda y: vmap(f, axis_name="i")(y), axis_name="j")(wnp.ones((2, 4)))
    assert nested.tolist() == [[4.0] * 4] * 2


def test_results_that_touch_no_argument_stay_within():
    got = vmap(lambda x: grad(lambda y: lax.psum(y, "i") * 1.0)(3.0), axis_name="i")(wnp.ones(3))
    assert got.tolist() == [3.0] * 3

    def inner(_):
        return vmap(lambda z: lax.axis_index("i") + 10 * lax.axis_index("j"), axis_name="j")(
            np.zeros(2)
        )

    assert vmap(inner, axis_name="i")(wnp.ones(3)).tolist() == [[0, 10], [1, 11], [2, 12]]


def test_values_of_other_lanes_are_not_there_to_branch_on():
    def f(x):
        return grad(lambda y: y if lax.psum(y, "i") > 0 else -y)(2.0) * x

    with pytest.raises(ConcretizationTypeError):
        vmap(f, axis_name="i")(wnp.ones(3))


def test_rules_are_traced_where_they_were_given():
    @weft.custom_jvp
    def f(x):
        return lax.psum(x, "i")

    f.defjvp(lambda p, t: (f(*p), lax.psum(t[0], "i") * lax.axis_size("i")))

    def total(x):
        return vmap(f, axis_name="i")(x).sum()

    for _ in range(2):
        for n in (3, 4):
            assert grad(total)(wnp.ones(n)).tolist() == [float(n**2)] * n


# ---- Mistakes


@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (lambda x: lax.psum(x, "k"), UnboundAxisNameError, "got 'k', where there are 'i'"),
        (lambda x: lax.axis_index("k"), NameError, "vmap\\(f, axis_name='k'\\)"),
        (lambda x: lax.all_gather(x, 0), UnboundAxisNameError, "got '<int 0>'"),
        (lambda x: lax.psum(x, {}), ArgumentTypeError, "another hashable object"),
        (lambda x: lax.all_gather(x, ()), AttributeValueError, "the name of a mapped axis"),
        (lambda x: lax.psum(x, ("i", "i")), AttributeValueError, "distinct names"),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), AttributeValueError, "source once"),
        (lambda x: lax.ppermute(x, "i", [(0, 9)]), AttributeValueError, "between 0 and 2"),
        (lambda x: lax.ppermute(x, "i", [0]), ArgumentTypeError, "pairs of ints"),
        (lambda x: lax.pshuffle(x, "i", [0, 1]), AttributeValueError, "each lane from 0 to 2"),
        (lambda x: lax.pbroadcast(x, "i", 3), AttributeValueError, "between 0 and 2; got 3"),
        (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1]]), AttributeValueError, "each index"),
        (lambda x: lax.psum(x, "i", axis_index_groups=[0]), ArgumentTypeError, "lists of ints"),
        (
            lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 1], [2]]),
            AttributeValueError,
            "groups of one size",
        ),
        (lambda x: lax.psum_scatter(x, "i"), ShapeError, "scatter_dimension 0 to have size 3"),
        (lambda x: lax.psum_scatter(x, "i", tiled=True), ShapeError, "divisible by 3"),
        (lambda x: lax.all_to_all(x, "i", 0, 0), ShapeError, "split_axis 0 to have size 3"),
        (lambda x: lax.all_to_all(x, "i", 0, 4, tiled=True), AttributeValueError, "out of bounds"),
        (lambda x: lax.all_gather(x, "i", to="x"), AttributeValueError, "to='varying'"),
        (
            lambda x: lax.ragged_all_to_all(x, x, *[wnp.arange(4)] * 4, axis_name="i"),
            ShapeError,
            "K divisible by 3",
        ),
    ],
)
def test_mistakes(f, error, text):
    with pytest.raises(error, match=text) as caught:
        vmap(f, axis_name="i")(wnp.ones((3, 4)))
    assert "test_collectives.py" in str(caught.value)


def test_names_are_hashable():
    with pytest.raises(ArgumentTypeError, match="another hashable object .* got {}"):
        vmap(lambda x: x, axis_name={})

    class Axis(enum.Enum):
        ROWS = 1

    def sums(x):
        return lax.psum(x, Axis.ROWS), lax.axis_size(3)

    x = wnp.ones((2, 5))
    f = vmap(vmap(sums, axis_name=Axis.ROWS), in_axes=1, axis_name=3)
    total, size = weft.jit(f)(x)
    assert (total == 2.0).all() and (size == 5).all()


def test_programs_with_free_names_are_not_compiled():
    from weft.compiler import parse

    graph = parse("{ lambda ; a:f32[]. let b:f32[] = psum[axes=('i',)] a in (b,) }")
    with pytest.raises(AttributeValueError, match="bound by vmap.*got axis 'i'"):
        graph(1.0)


def test_reductions_over_axes_of_the_array_too():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    mapped = lambda f: np.asarray(weft.vmap(f, axis_name="i")(x))
    assert mapped(lambda v: lax.psum(v, ("i", 0))).tolist() == [66, 66, 66]
    assert mapped(lambda v: lax.pmax(v, (-1, "i"))).tolist() == [11, 11, 11]
    assert mapped(lambda v: lax.pmin(v, 0)).tolist() == [0, 4, 8]
    by_number = weft.vmap(lambda v: lax.psum(v, (0.0, 0)), axis_name=0.0)  # a name, and an axis
    assert by_number(x).tolist() == [66, 66, 66]
    assert lax.psum(x, (0, 1)) == 66  # also where nothing is mapped
    assert weft.grad(lambda v: lax.psum(v, (0, 1)))(x).tolist() == np.ones((3, 4)).tolist()
    assert lax.psum(x > 5, 1).dtype == np.int32
    assert lax.psum(x.astype(np.uint8), 1).dtype == np.uint8
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        lax.psum(x, 2)
