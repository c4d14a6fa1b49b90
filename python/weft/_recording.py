"""What transforms share that run a function on tracers: names for messages, checks of leaves."""

import numpy as np

from weft import _core
from weft._staging import describe_argument
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


def _reject_leaf(leaf, where):
    if isinstance(leaf, _core.Ref):
        raise RefError(
            f"expected an array, a number or a tree of them for {where}; got "
            f"{_core.ref_text(leaf)}\n  Read its value with ref[...]. Refs cannot be returned."
        )
    error = ForeignArrayError if hasattr(leaf, "__jax_array__") else ArgumentTypeError
    raise error(
        f"expected an array, a number or a tree of them for {where}; "
        f"got {type(leaf).__name__}: {leaf!r:.60}{_way_to_array(leaf)}"
    )


_core.install(reject_leaf=_reject_leaf)


def _way_to_array(x):
    foreign = not isinstance(x, np.ndarray) and any(
        hasattr(x, p) for p in ("__jax_array__", "__array__", "__dlpack__")
    )
    return "\n  Convert it with weft.numpy.asarray." if foreign else ""


def check_callable(fun, transform):
    """Raises TypeError if `fun` cannot be called."""
    if not callable(fun):
        raise TypeError(f"{transform} expected a function; got {fun!r}")


def name_argument(fun, tree, i):
    """Names the i-th leaf of (args, kwargs) in messages."""
    return describe_argument(fun, tree, (), i)
