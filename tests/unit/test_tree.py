"""Pytrees: flattening, mapping, key paths, registration, pickling and error messages."""

import collections
import dataclasses
import functools
import pickle
import re

import pytest

import weft
from weft import tree, tree_util
from weft.errors import TreeStructureError

Point = collections.namedtuple("Point", "x y")


@tree_util.register_pytree_node_class
class Pair:
    def __init__(self, first, second, tag="t"):
        self.first, self.second, self.tag = first, second, tag

    def tree_flatten(self):
        return (self.first, self.second), self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(*children, tag)

    def __eq__(self, other):
        return vars(self) == vars(other)


@tree_util.register_pytree_with_keys_class
class Named:
    def __init__(self, value):
        self.value = value

    def tree_flatten_with_keys(self):
        return ((tree_util.GetAttrKey("value"), self.value),), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)

    def __eq__(self, other):
        return vars(self) == vars(other)


@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: int
    bias: int
    name: str = tree.static(default="layer")


@tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Setting:
    rate: float


# (tree, leaves, key paths)
TREES = [
    (7, [7], [""]),
    (None, [], []),
    ((), [], []),
    ((1, None, [2, 3]), [1, 2, 3], ["[0]", "[2][0]", "[2][1]"]),
    ({"b": 1, "a": (2,)}, [2, 1], ["['a'][0]", "['b']"]),
    (Point(1, [2]), [1, 2], [".x", ".y[0]"]),
    (collections.OrderedDict(b=1, a=2), [1, 2], ["['b']", "['a']"]),
    (collections.defaultdict(int, b=1, a=2), [2, 1], ["['a']", "['b']"]),
    (Pair(1, [2]), [1, 2], ["[<flat index 0>]", "[<flat index 1>][0]"]),
    (Named({"k": 1}), [1], [".value['k']"]),
    (Layer(1, 2, "first"), [1, 2], [".weight", ".bias"]),
    ((Setting(0.1), 1), [1], ["[1]"]),
    (tree_util.Partial(max, 1, key=2), [1, 2], ["[<flat index 0>][0]", "[<flat index 1>]['key']"]),
]


@pytest.mark.parametrize("value, leaves, paths", TREES, ids=lambda v: type(v).__name__)
def test_flatten_and_back(value, leaves, paths):
    got, treedef = tree.flatten(value)
    assert got == leaves == tree.leaves(value)
    with_path, treedef_again = tree.flatten_with_path(value)
    assert [tree_util.keystr(path) for path, _ in with_path] == paths
    assert [leaf for _, leaf in with_path] == leaves
    assert treedef == treedef_again == tree.structure(value)
    assert hash(treedef) == hash(treedef_again)
    rebuilt = tree.unflatten(treedef, leaves)
    assert type(rebuilt) is type(value)
    if not isinstance(value, functools.partial):
        assert rebuilt == value
    assert tree.structure(rebuilt) == treedef
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        loaded = pickle.loads(pickle.dumps(treedef, protocol))
        assert loaded == treedef
        assert tree.leaves(loaded.unflatten(leaves)) == leaves


def test_map_and_reduce():
    values = {"a": 1, "b": (2, [3])}
    assert tree.map(lambda x: 10 * x, values) == {"a": 10, "b": (20, [30])}
    # Where the first tree has a leaf, the others may have a subtree.
    assert tree.map(lambda x, y: (x, y), (1, 2), ([3, 4], 5)) == ((1, [3, 4]), (2, 5))
    assert tree.map(lambda x: len(x), [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [
        2,
        1,
    ]
    labelled = tree.map_with_path(lambda p, x, y: tree_util.keystr(p) + str(x + y), values, values)
    assert labelled == {"a": "['a']2", "b": ("['b'][0]4", ["['b'][1][0]6"])}
    assert tree.reduce(lambda x, y: x + y, values) == 6
    assert tree.reduce(lambda x, y: x + y, values, 4) == 10
    assert tree.reduce(lambda x, y: x + y, (), 4) == 4
    with pytest.raises(TypeError):
        tree.reduce(lambda x, y: x + y, ())
    assert tree.reduce_associative(lambda x, y: f"({x}{y})", list("abcd")) == "((ab)(cd))"
    assert tree.reduce_associative(min, [], identity=0) == 0
    assert tree.all({"a": True, "b": 1}) and tree.all(()) and not tree.all([1, 0])
    assert tree.broadcast((1, 2), ([3, 4], 5)) == ([1, 1], 2)
    assert tree.broadcast([1, None], [[None, 3], 4], lambda t: t is None) == [[None, 1], None]


def test_transpose():
    value = [(1, 2, 3), (4, 5, 6)]
    outer, inner = tree.structure([0, 0]), tree.structure((0, 0, 0))
    assert tree.transpose(outer, inner, value) == ([1, 4], [2, 5], [3, 6])
    assert tree.transpose(outer, None, value) == ([1, 4], [2, 5], [3, 6])
    for bad_outer, bad_inner in [(outer, outer), (inner, outer), (tree.structure([]), None)]:
        with pytest.raises(TreeStructureError, match="tree_transpose: "):
            tree.transpose(bad_outer, bad_inner, value)


def test_structures():
    treedef = tree.structure((1, [2, {"k": 3}]))
    assert treedef.num_leaves == 3
    assert tree_util.treedef_children(treedef) == [tree.structure(1), tree.structure([2, {"k": 3}])]
    assert tree_util.treedef_is_leaf(tree.structure(0))
    assert not tree_util.treedef_is_leaf(treedef)
    assert tree_util.treedef_tuple([treedef, treedef]) == tree.structure(((1, [2, {"k": 3}]),) * 2)
    assert tree_util.all_leaves([1, "x"]) and not tree_util.all_leaves([1, [2]])
    assert tree_util.all_leaves([1, [2]], is_leaf=lambda x: isinstance(x, list))
    assert tree_util.is_tree_node(Layer) and not tree_util.is_tree_node(int)
    assert tuple(tree_util.flatten_one_level({"b": [1], "a": 2})[0]) == (2, [1])
    with pytest.raises(ValueError, match="leaf"):
        tree_util.flatten_one_level(3)


def test_is_leaf_with_path():
    values = {"a": [1, (2,)]}
    pairs, _ = tree.flatten_with_path(values, lambda path, _: len(path) == 1, True)
    assert [(tree_util.keystr(path), leaf) for path, leaf in pairs] == [("['a']", [1, (2,)])]
    pairs, _ = tree.flatten_with_path(values, lambda x: isinstance(x, tuple))
    assert [leaf for _, leaf in pairs] == [1, (2,)]


def test_keystr():
    path = (
        tree_util.DictKey("a"),
        tree_util.SequenceKey(0),
        tree_util.GetAttrKey("n"),
        tree_util.FlattenedIndexKey(3),
    )
    assert tree_util.keystr(path) == "['a'][0].n[<flat index 3>]"
    assert tree_util.keystr(path, simple=True, separator="/") == "a/0/n/3"


# (first tree, second tree, what the message says)
MISMATCHES = [
    ((1, 2), (1, 2, 3), "at the root expected a tuple of length 2; got a tuple of length 3"),
    ({"a": (1, 2)}, {"a": [1, 2]}, "at ['a'] expected a tuple of length 2; got a list of length 2"),
    ({"a": 1}, {"b": 1}, "at the root expected a dict with keys ['a']; got a dict with keys ['b']"),
    (
        [1, {"k": [2]}],
        [1, {"k": 2}],
        "at [1]['k'] expected a list of length 1; got a leaf of type int",
    ),
    ([None], [1], "at [0] expected None; got a leaf of type int"),
    (Layer(1, (2,)), Layer(1, 2), "at .bias expected a tuple of length 1; got a leaf of type int"),
    (Layer(1, 2, "p"), Layer(1, 2, "q"), "data ('p',); got a node of type Layer with 2 children"),
]


@pytest.mark.parametrize("first, second, message", MISMATCHES)
def test_mismatch_names_key_path(first, second, message):
    for call in (
        lambda: tree.map(max, first, second),
        lambda: tree.map_with_path(lambda *_: 0, first, second),
        lambda: tree.broadcast(first, second),
    ):
        with pytest.raises(TreeStructureError, match=re.escape(message)):
            call()


def test_unflatten_checks_the_number_of_leaves():
    for leaves in ([1], [1, 2, 3]):
        with pytest.raises(ValueError):
            tree.unflatten(tree.structure((0, 0)), leaves)


@dataclasses.dataclass
class Plain:
    a: int
    b: int


# (keyword arguments of register_dataclass, error, message)
BAD_DATACLASSES = [
    ({"data_fields": ["a"]}, TypeError, "both"),
    ({"data_fields": ["a"], "meta_fields": []}, ValueError, "['b']"),
    ({"data_fields": ["a", "b", "c"], "meta_fields": []}, ValueError, "['c']"),
    ({"data_fields": ["a", "b"], "meta_fields": ["b"]}, ValueError, "['b']"),
]


@pytest.mark.parametrize("fields, error, message", BAD_DATACLASSES)
def test_register_dataclass_errors(fields, error, message):
    with pytest.raises(error, match=re.escape(message)):
        tree_util.register_dataclass(Plain, **fields)
    assert not tree_util.is_tree_node(Plain)


def test_register_dataclass_forms():
    @dataclasses.dataclass
    class Cached:
        value: int
        cache: int = 0

    tree_util.register_dataclass(Cached, ["value"], [], drop_fields=["cache"])
    assert tree.map(lambda x: x + 1, Cached(1, 5)) == Cached(2, 0)

    @dataclasses.dataclass
    class Counted:
        value: int
        count: int = dataclasses.field(init=False, default=0)

    with pytest.raises(ValueError, match="count"):
        tree_util.register_dataclass(Counted)

    class NoDataclass:
        def __init__(self, a, b):
            self.a, self.b = a, b

    with pytest.raises(TypeError, match="not a dataclass"):
        tree_util.register_dataclass(NoDataclass)
    tree_util.register_dataclass(NoDataclass, ["a"], ["b"])
    assert tree.leaves(NoDataclass([1], "meta")) == [1]


def test_double_registration_is_an_error():
    with pytest.raises(ValueError, match="[Dd]uplicate"):
        tree_util.register_pytree_node_class(Pair)


def test_partial():
    bound = tree_util.Partial(divmod, 7)
    assert bound(2) == (3, 1)
    assert tree.map(lambda x: x + 1, bound)(3) == (2, 2)
    # What a plain partial binds belongs to the structure.
    opaque = tree_util.Partial(functools.partial(divmod, 7), 2)
    assert opaque() == (3, 1)
    assert tree.leaves(opaque) == [2]
    assert tree.structure(opaque) == tree.structure(
        tree_util.Partial(functools.partial(divmod, 7), 5)
    )
    assert tree.structure(opaque) != tree.structure(
        tree_util.Partial(functools.partial(divmod, 8), 2)
    )
    assert pickle.loads(pickle.dumps(opaque))() == (3, 1)
    plain = functools.partial(divmod, 7)
    assert tree_util.Partial(plain, 2).func == plain == tree_util.Partial(plain, 2).func
    assert tree_util.Partial(plain, 2).func != functools.partial(divmod, 8)


def test_registry_is_separate_from_the_default_one():
    from jaxlib import _jax

    assert tree_util.default_registry is not _jax.pytree.default_registry()


class TakesArraysOnly:
    """Has the leaves that are arrays when it is taken apart, as classes that pickle the rest do."""

    def __init__(self, *values):
        self.values = values


tree_util.register_pytree_node(
    TakesArraysOnly,
    lambda t: ([x for x in t.values if hasattr(x, "dtype")], len(t.values)),
    lambda _, children: TakesArraysOnly(*children),
)


def test_arguments_are_named_whose_class_takes_numbers_apart_otherwise():
    value = {"a": TakesArraysOnly(weft.numpy.float32(2), weft.numpy.float32(3))}

    @weft.jit
    def refused(t):
        return bool(t["a"].values[1])

    with pytest.raises(TypeError, match=r"argument t\['a'\]\[<flat index 1>\] of 'refused'"):
        refused(value)


class AnnotatedOtherwise:
    __annotations__ = ("not", "a", "dict")
    __name__ = 3

    def __call__(self, x):
        return x * 2


@pytest.mark.parametrize("transform", [weft.vmap, weft.jit, weft.grad, weft.checkpoint])
def test_callables_whose_attributes_are_not_those_of_functions(transform):
    x = weft.numpy.float32(3) if transform is weft.grad else weft.numpy.ones(2) * 3
    assert (transform(AnnotatedOtherwise())(x) == (2 if transform is weft.grad else 6)).all()
