"""What transforms share that run a function on tracers: names for messages, checks of leaves."""

import enum
import sys

import numpy as np

from weft import _core
from weft._tracing.signature import describe_argument
from weft.errors import ArgumentTypeError, ForeignArrayError, RefError
from weft.runtime import pytree
from weft.tree_util import keystr


def call(graph, operands, weak=()):
    """Results of a graph, a list: run at once, or recorded where operands are tracers."""
    return _core.call_graph(graph, list(operands), tuple(weak))


def function_name(fun):
    """A function's name for messages."""
    name = getattr(fun, "__name__", None)
    return name if name and isinstance(name, str) else type(fun).__name__


def leaf_paths(tree):
    """The key path of every leaf of a tree definition, as text: ["[0]['w']", ...]."""
    return [keystr(path) for path in pytree.leaf_paths(tree)]


check_leaves = _core.check_leaves  # (leaves, describe)


def _reject_leaf(leaf, where, may_be_static=False):
    expected = f"expected an array, a number or a tree of them for {where}"
    if isinstance(leaf, _core.Ref):
        raise RefError(
            f"{expected}; got {_core.ref_text(leaf)}\n"
            "  Read its value with ref[...]. Refs cannot be returned."
        )
    way_out = _way_into_tree(leaf)
    if may_be_static and "weft.numpy" not in way_out:
        way_out += "\n  Mark it static (static_argnums, static_argnames) if it is no data."
    error = ForeignArrayError if _core.is_foreign_array(leaf) else ArgumentTypeError
    raise error(f"{expected}; got {type(leaf).__name__}: {leaf!r:.60}{way_out}")


_core.install(reject_leaf=_reject_leaf)


def _way_into_tree(x):
    """The end of a message that refuses an object as an argument: what to do with the object."""
    if isinstance(x, (type, np.ndarray, np.generic, str, enum.Enum)):
        return ""
    if way := _core.way_to_array(x):
        return way
    kind = type(x)
    if kind.__module__.partition(".")[0] in (*sys.stdlib_module_names, "numpy", "weft"):
        return ""
    if hasattr(kind, "__dataclass_fields__"):
        how = "@weft.tree_util.register_dataclass"
    else:
        how = "weft.tree_util.register_pytree_node_class"
    return (
        f"\n  Make {kind.__name__} a pytree with {how}: then the arrays in it are arguments and "
        "results."
    )


def check_callable(fun, transform):
    """Raises TypeError if `fun` cannot be called."""
    if not callable(fun):
        raise TypeError(f"{transform} expected a function; got {fun!r}")


def name_argument(fun, tree, i):
    """Names the i-th leaf of (args, kwargs) in messages."""
    return describe_argument(fun, tree, (), i)
