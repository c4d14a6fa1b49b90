"""Recording a function for an un-jitted transform: the shared first step of grad, jvp, vmap, ...

The function runs once on tracers of a deferred context (csrc/deferred.cpp). What comes back is a
graph; the transforms of the C++ core turn it into another, and `Recording.call` runs that eagerly
or puts it into the program that is being traced.
"""

import numpy as np

from weft import _core
from weft._staging import ShapedArray, describe_argument
from weft.errors import ArgumentTypeError
from weft.runtime.pytree import registry
from weft.tree_util import keystr, tree_flatten_with_path


class Recording:
    """A function's graph for given inputs.

    Attributes: graph (its inputs are the captures, then the arguments), captures (list), weak (per
    output), out_tree.
    """

    def __init__(self, fun, leaves, rebuild, dims=None, describe=None):
        """Runs `fun(*args, **kwargs)` with (args, kwargs) = rebuild(tracers of the leaves)."""
        self.name = function_name(fun)
        self.out_tree = None

        def flat(tracers):
            args, kwargs = rebuild(tracers)
            leaves, self.out_tree = registry.flatten(fun(*args, **kwargs))
            check_leaves(leaves, lambda i: f"result{self._out_path(i)} of '{self.name}'")
            return leaves

        self.graph, self.captures, self.weak = _core.record(flat, leaves, dims, self.name, describe)
        self.num_args = len(leaves)

    def _out_path(self, i):
        return leaf_paths(self.out_tree)[i]

    def mask(self, args):
        """A mask over the graph's inputs: False for captures, then `args`."""
        return [False] * len(self.captures) + list(args)

    def mask_dims(self, dims):
        """Mapped axes of the graph's inputs: None for captures, then `dims`."""
        return [None] * len(self.captures) + list(dims)

    def out_avals(self):
        """The types of the results."""
        pairs = zip(self.graph.out_types, self.weak, strict=True)
        return [ShapedArray(s, d, weak_type=w) for (s, d), w in pairs]


def call(graph, operands, weak=()):
    """Results of a graph, a list: run at once, or recorded where operands are tracers."""
    return _core.call_graph(graph, list(operands), tuple(weak))


def function_name(fun):
    """A function's name for messages."""
    return getattr(fun, "__name__", None) or type(fun).__name__


def leaf_paths(tree):
    """The key path of every leaf of a tree definition, as text: ["[0]['w']", ...]."""
    numbered = tree.unflatten(range(tree.num_leaves))
    return [keystr(path) for path, _ in tree_flatten_with_path(numbered)[0]]


check_leaves = _core.check_leaves  # (leaves, describe)


def _reject_leaf(leaf, where):
    raise ArgumentTypeError(
        f"expected an array, a number or a tree of them for {where}; "
        f"got {type(leaf).__name__}: {leaf!r:.60}{_way_to_array(leaf)}"
    )


_core.install(reject_leaf=_reject_leaf)


def _way_to_array(x):
    foreign = not isinstance(x, np.ndarray) and (
        hasattr(x, "__array__") or hasattr(x, "__dlpack__")
    )
    return "\n  Convert it with weft.numpy.asarray." if foreign else ""


def check_callable(fun, transform):
    """Raises TypeError if `fun` cannot be called."""
    if not callable(fun):
        raise TypeError(f"{transform} expected a function; got {fun!r}")


def name_argument(fun, tree, i):
    """Names the i-th leaf of (args, kwargs) in messages."""
    return describe_argument(fun, tree, (), i)
