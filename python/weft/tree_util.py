"""Pytrees: nested containers of arrays, and the classes that may stand in them.

A pytree is a leaf, or a node (None, tuple, named tuple, list, dict, OrderedDict, defaultdict, or an
instance of a registered class) whose children are pytrees. dict children stand in sorted key order.
`weft.tree` has the same functions under shorter names.
"""

import dataclasses
import functools
from typing import Any

from weft._surface import public as _public
from weft._tree_mismatch import explain_difference, explain_mismatch, structure_text
from weft.errors import ArgumentTypeError, TreeStructureError
from weft.runtime.pytree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    SequenceKey,
    all_leaves as _all_leaves,
    registry,
    treedef_tuple as _treedef_tuple,
)

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "build_tree",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]
__getattr__, __dir__ = _public(__name__, __all__)

default_registry = registry
KeyEntry = DictKey | SequenceKey | GetAttrKey | FlattenedIndexKey
KeyPath = tuple[KeyEntry, ...]

_UNSET = object()


def tree_flatten(tree, is_leaf=None):
    """Returns `(leaves, treedef)`: the leaves of `tree` from left to right, and its structure.

    `is_leaf(x)` is asked at every node; where it is true the whole node counts as one leaf.

    Examples:
      >>> leaves, structure = weft.tree.flatten({"b": [1, 2], "a": 3})
      >>> leaves
      [3, 1, 2]
    """
    return registry.flatten(tree, is_leaf)


def tree_unflatten(treedef, leaves):
    """Builds the tree of structure `treedef` that has the given leaves.

    Raises TreeStructureError if their number is not `treedef.num_leaves`.

    Examples:
      >>> leaves, structure = weft.tree.flatten({"b": [1, 2], "a": 3})
      >>> weft.tree.unflatten(structure, [10 * leaf for leaf in leaves])
      {'a': 30, 'b': [10, 20]}
    """
    if not isinstance(treedef, PyTreeDef):
        raise TypeError(f"tree_unflatten expected a structure first; got {type(treedef).__name__}")
    leaves = list(leaves)
    if len(leaves) != treedef.num_leaves:
        raise TreeStructureError(
            f"tree_unflatten: expected {treedef.num_leaves} leaves for the structure "
            f"{structure_text(treedef)}; got {len(leaves)}"
        )
    return treedef.unflatten(leaves)


def tree_leaves(tree, is_leaf=None):
    """The list of leaves of `tree`.

    `is_leaf` is that of `tree_flatten`.

    Examples:
      >>> weft.tree.leaves({"b": [1, 2], "a": 3, "c": None})
      [3, 1, 2]
    """
    return registry.flatten(tree, is_leaf)[0]


def tree_structure(tree, is_leaf=None):
    """The structure (`PyTreeDef`) of `tree`: hashable, comparable and picklable.

    `is_leaf` is that of `tree_flatten`.

    Examples:
      >>> weft.tree.structure([1, {"a": 2}]) == weft.tree.structure([3, {"a": 4}])
      True
    """
    return registry.flatten(tree, is_leaf)[1]


def tree_flatten_with_path(tree, is_leaf=None, is_leaf_takes_path=False):
    """As `tree_flatten`, but each leaf comes as `(key path, leaf)`.

    A key path is a tuple of `DictKey`, `SequenceKey`, `GetAttrKey`, `FlattenedIndexKey` or of the
    keys that a registered class gives; `keystr` prints it. With `is_leaf_takes_path` the predicate
    is called as `is_leaf(path, x)`.

    Examples:
      >>> pairs, structure = weft.tree.flatten_with_path({"b": [1, 2], "a": 3})
      >>> [(weft.tree_util.keystr(path), leaf) for path, leaf in pairs]
      [("['a']", 3), ("['b'][0]", 1), ("['b'][1]", 2)]
    """
    if is_leaf is not None and not is_leaf_takes_path:
        takes_value = is_leaf
        is_leaf = lambda _, x: takes_value(x)

    return registry.flatten_with_path(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None, is_leaf_takes_path=False):
    """The list of `(key path, leaf)` of `tree`; see `tree_flatten_with_path`.

    `is_leaf` and `is_leaf_takes_path` are those of `tree_flatten_with_path`.

    Examples:
      >>> pairs = weft.tree.leaves_with_path([5, {"a": 6}])
      >>> [(weft.tree_util.keystr(path), leaf) for path, leaf in pairs]
      [('[0]', 5), ("[1]['a']", 6)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def flatten_one_level(tree):
    """Returns `(children, data)` of a node, without descending. Raises ValueError for a leaf.

    Examples:
      >>> children, data = weft.tree_util.flatten_one_level([1, (2, 3)])
      >>> children
      [1, (2, 3)]
    """
    node = registry.flatten_one_level(tree)
    if node is None:
        raise ValueError(f"flatten_one_level: expected a node; got a leaf of type {type(tree)}")
    return node


def flatten_one_level_with_keys(tree):
    """As `flatten_one_level`, with `(key, child)` pairs for the children.

    Raises ValueError for a leaf.

    Examples:
      >>> pairs, data = weft.tree_util.flatten_one_level_with_keys({"a": 1, "b": (2, 3)})
      >>> [(str(key), child) for key, child in pairs]
      [("['a']", 1), ("['b']", (2, 3))]
    """
    node = registry.flatten_one_level_with_keys(tree)
    if node is None:
        raise ValueError(
            f"flatten_one_level_with_keys: expected a node; got a leaf of type {type(tree)}"
        )
    return node


def all_leaves(iterable, is_leaf=None):
    """Whether every element of `iterable` is a leaf.

    `is_leaf` is that of `tree_flatten`.

    Examples:
      >>> weft.tree_util.all_leaves([1, 2.0]), weft.tree_util.all_leaves([1, [2.0]])
      (True, False)
    """
    if is_leaf is None:
        return _all_leaves(iterable)
    return all(is_leaf(x) or _all_leaves([x]) for x in iterable)


def is_tree_node(typ):
    """Whether instances of the type `typ` are nodes.

    Examples:
      >>> weft.tree_util.is_tree_node(dict), weft.tree_util.is_tree_node(str)
      (True, False)
    """
    return registry.is_node(typ)


def _flatten_up_to(function, treedef, tree, other, is_leaf, position):
    """Leaves of `other`, taken as far down as `treedef` (the structure of `tree`) goes."""
    try:
        return treedef.flatten_up_to(other)
    except (ValueError, TypeError) as error:
        reason = explain_mismatch(tree, other, is_leaf) or str(error)
        raise TreeStructureError(
            f"{function}: tree {position} does not have the structure of the first one: {reason}"
        ) from None


def tree_map(f, tree, *rest, is_leaf=None):
    """Applies `f` to the leaves of one or more trees and returns a tree of the results.

    The result has the structure of `tree`. Each of `rest` must have at least this structure: where
    `tree` has a leaf, the others may have a subtree, which is passed to `f` whole. Raises
    `TreeStructureError`, naming the key path, where they do not fit.

    `is_leaf` is that of `tree_flatten`.

    Examples:
      >>> weft.tree.map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
      {'a': 11, 'b': [22]}
    """
    _check_callable("tree_map", f)
    leaves, treedef = registry.flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten(map(f, leaves))
    columns = [leaves]
    for position, other in enumerate(rest, 2):
        columns.append(_flatten_up_to("tree_map", treedef, tree, other, is_leaf, position))
    return treedef.unflatten(map(f, *columns))


def tree_map_with_path(f, tree, *rest, is_leaf=None, is_leaf_takes_path=False):
    """As `tree_map`, with the leaf's key path as first argument: `f(path, leaf, *other_leaves)`.

    `is_leaf` and `is_leaf_takes_path` are those of `tree_flatten_with_path`.

    Examples:
      >>> named = lambda path, leaf: f"{weft.tree_util.keystr(path)} is {leaf}"
      >>> weft.tree.map_with_path(named, {"a": 1, "b": [2]})
      {'a': "['a'] is 1", 'b': ["['b'][0] is 2"]}
    """
    _check_callable("tree_map_with_path", f)
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [[path for path, _ in pairs], [leaf for _, leaf in pairs]]
    # A predicate on paths cannot be asked again while the mismatch is looked for.
    predicate = None if is_leaf_takes_path else is_leaf
    for position, other in enumerate(rest, 2):
        columns.append(
            _flatten_up_to("tree_map_with_path", treedef, tree, other, predicate, position)
        )
    return treedef.unflatten(map(f, *columns))


def _check_callable(name, f):
    if not callable(f):
        raise ArgumentTypeError(
            f"{name} expected a function as its first argument; got {type(f).__name__}"
        )


def tree_reduce(function, tree, initializer=_UNSET, is_leaf=None):
    """Folds the leaves from the left: `function(function(initializer, leaf0), leaf1)...`.

    Without `initializer` the first leaf is the start, and a tree without leaves is a TypeError.

    `is_leaf` is that of `tree_flatten`.

    Examples:
      >>> weft.tree.reduce(lambda x, y: x - y, [10, {"a": 3, "b": 2}])
      5
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is _UNSET:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(operation, tree, *, identity=_UNSET, is_leaf=None):
    """Combines the leaves pairwise, as a balanced tree of depth log2(number of leaves).

    `operation` must be associative. A tree without leaves gives `identity`; TypeError without one.

    `is_leaf` is that of `tree_flatten`.

    Examples:
      >>> weft.tree.reduce_associative(lambda x, y: x + y, ["a", ["b", "c"], "d"])
      'abcd'
    """
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is _UNSET:
            raise TypeError("tree_reduce_associative: a tree without leaves needs an identity")
        return identity

    def combine(start, stop):
        if stop - start == 1:
            return leaves[start]
        middle = (start + stop) // 2
        return operation(combine(start, middle), combine(middle, stop))

    return combine(0, len(leaves))


def tree_all(tree, *, is_leaf=None):
    """Whether all leaves are true; true for a tree without leaves.

    `is_leaf` is that of `tree_flatten`.

    Examples:
      >>> weft.tree.all({"a": True, "b": [1, 0]})
      False
    """
    return all(tree_leaves(tree, is_leaf))


def tree_broadcast(prefix_tree, full_tree, is_leaf=None):
    """A tree of the structure of `full_tree`, each leaf of `prefix_tree` repeated over its subtree.

    `prefix_tree` must be a prefix of `full_tree`; else `TreeStructureError`.

    `is_leaf` is that of `tree_flatten`, for `prefix_tree`.

    Examples:
      >>> weft.tree.broadcast({"a": 1, "b": 2}, {"a": [0, 0], "b": 0})
      {'a': [1, 1], 'b': 2}
    """
    leaves, treedef = registry.flatten(prefix_tree, is_leaf)
    subtrees = _flatten_up_to("tree_broadcast", treedef, prefix_tree, full_tree, is_leaf, 2)
    return treedef.unflatten(
        tree_map(lambda _, leaf=leaf: leaf, subtree)
        for leaf, subtree in zip(leaves, subtrees, strict=True)
    )


def tree_transpose(outer_treedef, inner_treedef, pytree_to_transpose):
    """Turns a tree of trees inside out.

    The argument has the structure `outer` with a tree of structure `inner` at each leaf; the result
    has the structure `inner` with a tree of structure `outer` at each leaf. `inner_treedef` may be
    None: it is taken from the first subtree then. Raises `TreeStructureError` on a mismatch.

    Examples:
      >>> rows, pair = weft.tree.structure([0, 0, 0]), weft.tree.structure((0, 0))
      >>> weft.tree.transpose(rows, pair, [(1, 10), (2, 20), (3, 30)])
      ([1, 2, 3], [10, 20, 30])
    """
    try:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
    except (ValueError, TypeError) as error:
        raise TreeStructureError(
            f"tree_transpose: expected a tree with outer structure {outer_treedef}; "
            f"got {tree_structure(pytree_to_transpose)} ({error})"
        ) from None
    if inner_treedef is None:
        if not subtrees:
            raise TreeStructureError(
                "tree_transpose: the outer structure has no leaves, so inner_treedef must be given"
            )
        inner_treedef = tree_structure(subtrees[0])
    rows = []
    for index, subtree in enumerate(subtrees):
        leaves, treedef = tree_flatten(subtree)
        if treedef != inner_treedef:
            raise TreeStructureError(
                f"tree_transpose: leaf {index} of the outer structure: expected a tree of "
                f"structure {explain_difference(inner_treedef, treedef)}"
            )
        rows.append(leaves)
    columns = zip(*rows, strict=True) if rows else [()] * inner_treedef.num_leaves
    return inner_treedef.unflatten(outer_treedef.unflatten(column) for column in columns)


def treedef_is_leaf(treedef):
    """Whether `treedef` is the structure of a single leaf (or of a node without children).

    Examples:
      >>> weft.tree_util.treedef_is_leaf(weft.tree.structure(1))
      True
      >>> weft.tree_util.treedef_is_leaf(weft.tree.structure([1]))
      False
    """
    return treedef.num_nodes == 1


def treedef_children(treedef):
    """The structures of the children of the root node.

    Examples:
      >>> structure = weft.tree.structure([1, (2, 3)])
      >>> weft.tree_util.treedef_children(structure)[1] == weft.tree.structure((0, 0))
      True
    """
    return treedef.children()


def treedef_tuple(treedefs):
    """The structure of a tuple whose elements have the given structures.

    Raises TypeError for an element that is no structure.

    Examples:
      >>> leaf = weft.tree.structure(1)
      >>> weft.tree_util.treedef_tuple([leaf, leaf]) == weft.tree.structure((1, 2))
      True
    """
    treedefs = list(treedefs)
    for i, treedef in enumerate(treedefs):
        if not isinstance(treedef, PyTreeDef):
            raise TypeError(
                f"treedef_tuple expected structures; got {type(treedef).__name__} at position {i}"
            )
    return _treedef_tuple(treedefs)


def build_tree(treedef, xs):
    """Builds a tree from nested sequences that follow the shape of `treedef`.

    Examples:
      >>> structure = weft.tree.structure({"a": 0, "b": [0, 0]})
      >>> weft.tree_util.build_tree(structure, [1, [2, 3]])
      {'a': 1, 'b': [2, 3]}
    """
    return treedef.from_iterable_tree(xs)


_KEY_FIELDS = {DictKey: "key", SequenceKey: "idx", GetAttrKey: "name", FlattenedIndexKey: "key"}


def keystr(keys, *, simple=False, separator=""):
    """A key path as text, the way one would write the access: `['layers'][0].weight`.

    `simple=True` gives the bare keys, which `separator` should then keep apart:
    `keystr(path, simple=True, separator="/")` is `layers/0/weight`.

    Examples:
      >>> (path, leaf), *rest = weft.tree.leaves_with_path({"layers": [7, 8]})
      >>> weft.tree_util.keystr(path)
      "['layers'][0]"
      >>> weft.tree_util.keystr(path, simple=True, separator="/")
      'layers/0'
    """

    def text(key):
        field = _KEY_FIELDS.get(type(key)) if simple else None
        return str(key) if field is None else str(getattr(key, field))

    return separator.join(map(text, keys))


def register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func=None):
    """Makes instances of `nodetype` pytree nodes.

    `flatten_func(x)` returns `(children, data)`, with hashable and comparable `data`;
    `unflatten_func(data, children)` rebuilds the instance; `flatten_with_keys_func(x)` returns
    `((key, child) pairs, data)`. A type can be registered once; ValueError otherwise.

    Examples:
      >>> class Pair(list):
      ...     pass
      >>> weft.tree_util.register_pytree_node(Pair, lambda p: (p, None), lambda data, p: Pair(p))
      >>> weft.tree.leaves(Pair([1, 2]))
      [1, 2]
    """
    registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_node_class(cls):
    """Class decorator: registers a class by its methods `tree_flatten(self)` and
    `tree_unflatten(cls, data, children)` (a class method).

    Examples:
      >>> @weft.tree_util.register_pytree_node_class
      ... class Pair(list):
      ...     def tree_flatten(self):
      ...         return list(self), None
      ...     @classmethod
      ...     def tree_unflatten(cls, data, children):
      ...         return cls(children)
      >>> weft.tree.leaves(Pair([1, 2]))
      [1, 2]
    """
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys(nodetype, flatten_with_keys, unflatten_func, flatten_func=None):
    """Registers a class by a flatten function that gives `((key, child) pairs, data)`.

    `flatten_func` (without keys) is optional and serves speed.

    Examples:
      >>> class Pair(list):
      ...     pass
      >>> flatten = lambda pair: (list(zip("ab", pair)), None)
      >>> weft.tree_util.register_pytree_with_keys(Pair, flatten, lambda data, both: Pair(both))
      >>> weft.tree.leaves(Pair([1, 2]))
      [1, 2]
    """

    def without_keys(x):
        pairs, data = flatten_with_keys(x)
        return [child for _, child in pairs], data

    flatten = without_keys if flatten_func is None else flatten_func
    register_pytree_node(nodetype, flatten, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls):
    """Class decorator: as `register_pytree_node_class`, by the methods
    `tree_flatten_with_keys(self)` and `tree_unflatten(cls, data, children)`; a method
    `tree_flatten(self)` is used where there is one.

    Examples:
      >>> @weft.tree_util.register_pytree_with_keys_class
      ... class Pair(list):
      ...     def tree_flatten_with_keys(self):
      ...         return list(zip(("first", "second"), self)), None
      ...     @classmethod
      ...     def tree_unflatten(cls, data, children):
      ...         return cls(children)
      >>> weft.tree.leaves(Pair([1, 2]))
      [1, 2]
    """
    flatten = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(
        cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten, flatten
    )
    return cls


def register_dataclass(
    nodetype=None, data_fields: Any = None, meta_fields: Any = None, drop_fields=()
):
    """Registers a dataclass (or another class with such a constructor), also as a decorator.

    `data_fields` are children; `meta_fields` belong to the structure and must be hashable. For a
    dataclass both may be left out: fields marked `field(metadata={"static": True})` are then meta
    fields and the others data fields. The instance is rebuilt by calling the class with all these
    fields as keywords, so they must be the `init` fields, except those in `drop_fields`.

    Without `nodetype`, a decorator is returned.

    Raises TypeError for one of data_fields and meta_fields alone, and for a class that is no
    dataclass without them.

    Examples:
      >>> import dataclasses
      >>> @weft.tree_util.register_dataclass
      ... @dataclasses.dataclass
      ... class Point:
      ...     x: float
      ...     y: float
      >>> weft.tree.map(lambda n: 10 * n, Point(1, 2)).y
      20
    """
    if nodetype is None:
        return functools.partial(
            register_dataclass,
            data_fields=data_fields,
            meta_fields=meta_fields,
            drop_fields=drop_fields,
        )
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: give both data_fields and meta_fields or neither; "
            f"got data_fields={data_fields} and meta_fields={meta_fields}"
        )
    init_fields = None
    if dataclasses.is_dataclass(nodetype):
        init_fields = [f for f in dataclasses.fields(nodetype) if f.init]
    if data_fields is None:
        if init_fields is None:
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are needed for a class that is "
                f"not a dataclass; got {nodetype}"
            )
        kept = [f for f in dataclasses.fields(nodetype) if f.name not in drop_fields]
        meta_fields = [f.name for f in kept if f.metadata.get("static", False)]
        data_fields = [f.name for f in kept if f.name not in meta_fields]
    _check_fields(nodetype, init_fields, list(data_fields), list(meta_fields), set(drop_fields))
    registry.register_dataclass_node(nodetype, list(data_fields), list(meta_fields))
    return nodetype


def _check_fields(nodetype, init_fields, data_fields, meta_fields, drop_fields):
    both = sorted(set(data_fields) & set(meta_fields))
    if both:
        raise ValueError(
            f"register_dataclass: {both} of {nodetype.__name__} stand in data_fields and in "
            "meta_fields"
        )
    if init_fields is None:
        return
    names = {f.name for f in init_fields}
    given = set(data_fields) | set(meta_fields)
    if unknown := sorted(given - names):
        raise ValueError(
            f"register_dataclass: {nodetype.__name__} has no init fields named {unknown}"
        )
    if missing := sorted(names - given - drop_fields):
        raise ValueError(
            f"register_dataclass: the init fields {missing} of {nodetype.__name__} are neither in "
            "data_fields nor in meta_fields; list them in drop_fields to leave them out"
        )


def register_static(cls):
    """Class decorator: instances are nodes without children, part of the structure as a whole.

    The class needs `__hash__` and `__eq__`; under `jit` its instances are static values.

    Examples:
      >>> @weft.tree_util.register_static
      ... class Mode(str):
      ...     pass
      >>> weft.tree.leaves([1, Mode("train")])
      [1]
    """
    registry.register_node(cls, lambda x: ((), x), lambda x, _: x, lambda x: ((), x))
    return cls


class _StaticFunction:
    """A `functools.partial` kept as one opaque callable, equal to it and to those of equal parts.

    Its hash is that of the parts, unlike that of a `functools.partial`.
    """

    def __init__(self, wrapped):
        self.wrapped = wrapped

    def _parts(self):
        return (self.wrapped.func, self.wrapped.args, tuple(self.wrapped.keywords.items()))

    def __call__(self, *args, **kwargs):
        return self.wrapped(*args, **kwargs)

    def __eq__(self, other):
        if isinstance(other, _StaticFunction):
            return self._parts() == other._parts()
        return other is self.wrapped

    def __hash__(self):
        return hash(self._parts())

    def __repr__(self):
        return repr(self.wrapped)


class Partial(functools.partial):
    """`functools.partial` as a pytree: the bound arguments are children, the function is structure.

    It can be passed to `jit`-compiled functions and returned from them. A plain
    `functools.partial` given as `func` stays opaque: what it binds is static.

    Examples:
      >>> power = weft.tree_util.Partial(wnp.power, 2.0)
      >>> weft.jit(lambda f, x: f(x))(power, 3.0)
      Array(8., dtype=float32, weak_type=True)
      >>> weft.tree.leaves(power)
      [2.0]
    """

    def __new__(cls, func, /, *args, **keywords):
        if isinstance(func, functools.partial) and not isinstance(func, Partial):
            func = _StaticFunction(func)
        return super().__new__(cls, func, *args, **keywords)


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
