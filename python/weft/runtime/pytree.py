"""The pytree machinery of jaxlib, with a registry of weft's own.

`registry` knows None, tuples, named tuples, lists and dicts by itself; OrderedDict and defaultdict
are registered here. The registry of the `jax` package is another object: classes registered there
are leaves here, and the reverse.
"""

import collections
import copyreg
import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from jaxlib import _jax

from weft import _core
from weft.errors import NestingError

_pytree = _jax.pytree

if TYPE_CHECKING:

    class PyTreeDef:
        """What a structure says of itself; jaxlib has no types."""

        num_leaves: int
        num_nodes: int

        def unflatten(self, leaves: Iterable[Any], /) -> Any: ...
        def flatten_up_to(self, tree: Any, /) -> list[Any]: ...
        def children(self) -> list["PyTreeDef"]: ...
        def compose(self, inner: "PyTreeDef", /) -> "PyTreeDef": ...
        def node_data(self) -> tuple[type[Any], Any] | None: ...

else:
    PyTreeDef = _pytree.PyTreeDef
DictKey = _pytree.DictKey
SequenceKey = _pytree.SequenceKey
GetAttrKey = _pytree.GetAttrKey
FlattenedIndexKey = _pytree.FlattenedIndexKey

_MARGIN = 100  # levels of Python's recursion that jaxlib needs to take back what it has done


def _too_deep(tree):
    return NestingError(
        "expected containers within containers to a depth that can be walked; got a "
        f"{type(tree).__name__} that is deeper, or that holds itself"
    )


def _guarded(flatten: Any) -> Any:
    """A flattening of jaxlib's, which does not give back the levels of recursion where it raises,
    and returns a value beside the error where a tree is too deep."""

    @functools.wraps(flatten)
    def flatten_tree(self, tree, is_leaf=None):
        try:
            return _core.giving_levels_back(flatten, self, tree, is_leaf)
        except SystemError as e:  # so Python calls a value beside an error
            if not isinstance(e.__cause__, RecursionError):
                raise
        raise _too_deep(tree)

    return flatten_tree


class PyTreeRegistry(_pytree.PyTreeRegistry):
    """Which classes are nodes, and how they are taken apart.

    Attributes: registered (by class, the functions or names of fields that it was registered with).
    """

    def __init__(self):
        super().__init__()
        self.registered = {}

    def register_node(self, cls, *functions):
        super().register_node(cls, *functions)
        self.registered[cls] = functions

    def register_dataclass_node(self, cls, data_fields, meta_fields):
        super().register_dataclass_node(cls, data_fields, meta_fields)
        self.registered[cls] = (tuple(data_fields), tuple(meta_fields))

    flatten = _guarded(_pytree.PyTreeRegistry.flatten)
    _flatten_with_path = _guarded(_pytree.PyTreeRegistry.flatten_with_path)

    def flatten_with_path(self, tree, is_leaf=None):
        """As jaxlib's, which ends the process if the levels of Python's recursion run out in it."""
        deepest = _core.recursion_left() - _MARGIN

        def stops(path, x):
            if len(path) > deepest:
                raise _too_deep(tree)
            return is_leaf is not None and is_leaf(path, x)

        return self._flatten_with_path(tree, stops)


registry = PyTreeRegistry()


def _the_registry():
    return registry


def _reduce_registry(instance):
    return (_the_registry, ()) if instance is registry else instance.__reduce__()


# A PyTreeDef pickles as its registry and its nodes; a registry other than jaxlib's default has no
# pickled form of its own.
copyreg.pickle(PyTreeRegistry, _reduce_registry)


def _keyed_children(tree, keys):
    return tuple((DictKey(key), tree[key]) for key in keys)


def _ordered_dict_with_keys(tree):
    return _keyed_children(tree, tree), tuple(tree)


# The order of an OrderedDict is part of its structure; a defaultdict is sorted as a dict is.
registry.register_node(
    collections.OrderedDict,
    lambda tree: (tuple(tree.values()), tuple(tree)),
    lambda keys, values: collections.OrderedDict(zip(keys, values, strict=True)),
    _ordered_dict_with_keys,
)


def _default_dict(tree):
    keys = tuple(sorted(tree))
    return tuple(tree[key] for key in keys), (tree.default_factory, keys)


def _default_dict_with_keys(tree):
    keys = tuple(sorted(tree))
    return _keyed_children(tree, keys), (tree.default_factory, keys)


registry.register_node(
    collections.defaultdict,
    _default_dict,
    lambda data, values: collections.defaultdict(data[0], zip(data[1], values, strict=True)),
    _default_dict_with_keys,
)


def leaf_paths(tree):
    """The path of every leaf of a PyTreeDef, a tuple of keys each.

    Classes tell keys of their objects only; those whose objects cannot be made of numbers, or are
    taken apart otherwise then, get the numbers of the children.
    """
    numbers = list(range(tree.num_leaves))
    try:
        found = registry.flatten_with_path(tree.unflatten(numbers))[0]
        if [leaf for _, leaf in found] == numbers:
            return [path for path, _ in found]
    except Exception:  # what a class of the user raises
        pass
    return list(_paths_by_nodes(tree, ()))


def _paths_by_nodes(tree, path):
    node = tree.node_data()
    if node is None:
        if tree.num_leaves:  # none of None
            yield path
        return
    kind, data = node
    children = tree.children()
    if kind is dict:
        keys = map(DictKey, data)
    else:
        keys = map(
            SequenceKey if kind in (tuple, list) else FlattenedIndexKey, range(len(children))
        )
    for key, child in zip(keys, children, strict=True):
        yield from _paths_by_nodes(child, (*path, key))


def all_leaves(values):
    """Whether no element of `values` is a node of the registry."""
    return _pytree.all_leaves(registry, values)


def treedef_tuple(treedefs):
    """The structure of a tuple whose elements have the given structures."""
    return _pytree.treedef_tuple(registry, treedefs)
