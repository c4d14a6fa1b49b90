"""Branches and bodies: functions traced to the graphs that the ops of control flow hold."""

from weft import _core
from weft._recording import check_leaves, function_name, leaf_paths
from weft._staging import ShapedArray, typeof
from weft._tree_mismatch import first_mismatch
from weft.errors import ControlFlowTypeError
from weft.runtime.pytree import registry


class Body:
    """A function traced on abstract values.

    Attributes: graph (its inputs are the captures, then the arguments' leaves), captures (list),
    weak (per output), out_tree, name (the function's), what (where it was given).
    """

    def __init__(self, fun, trees, types, what, names):
        """Traces fun(*args).

        Args:
          fun: the user's function.
          trees: tree definition of each argument.
          types: what has the type of each leaf, of all arguments.
          what: the function that `fun` was given to, for messages.
          names: names of the arguments there.
        """
        self.name = function_name(fun)
        self.what = what
        self.out_tree = None
        places = _leaf_names(trees, names)

        def flat(tracers):
            args, start = [], 0
            for tree in trees:
                args.append(tree.unflatten(tracers[start : start + tree.num_leaves]))
                start += tree.num_leaves
            leaves, self.out_tree = registry.flatten(fun(*args))
            check_leaves(leaves, lambda i: f"result{leaf_paths(self.out_tree)[i]} of '{self.name}'")
            return leaves

        self.graph, self.captures, self.weak = _core.trace_body(
            flat, types, self.name, lambda i: f"{places()[i]} of '{self.name}'"
        )

    @property
    def out_types(self):
        pairs = zip(self.graph.out_types, self.weak, strict=True)
        return [ShapedArray(shape, dtype, weak_type=weak) for (shape, dtype), weak in pairs]

    def structure(self):
        """The result, with types in place of arrays."""
        return self.out_tree.unflatten(self.out_types)


def _leaf_names(trees, names):
    def all_names():
        pairs = zip(trees, names, strict=True)
        return [name + path for tree, name in pairs for path in leaf_paths(tree)]

    return all_names


def regions(*bodies):
    """(graphs, captures): the graphs of bodies, whose first inputs are the captures of them all."""
    return _core.regions([(body.graph, body.captures) for body in bodies])


def runs_in_python():
    """Whether `weft.disable_jit` is on: control flow runs as Python, for debugging."""
    return _core.get_state()[1]


def check_same_tree(expected, got, message, name):
    """Raises ControlFlowTypeError(message, place) where two trees differ in structure.

    `name` is what the trees are called: "carry".
    """
    if registry.flatten(expected)[1] == registry.flatten(got)[1]:
        return
    found = first_mismatch(expected, got)
    if found:
        path, want, have = found
    else:  # a leaf where a node is
        path, have, want = first_mismatch(got, expected)
    place = name + "".join(map(str, path))
    text = f"{place}: expected {want}, got {have}".replace("a leaf of type ShapedArray", "an array")
    raise ControlFlowTypeError(f"{message}\n  {text}")


def check_same_types(tree, expected, got, message, prefix):
    """Raises ControlFlowTypeError with a line per leaf of another shape or dtype; weakness counts
    for nothing."""
    different = [
        f"\n  {prefix}{path}: expected {plain(want)}, got {plain(have)}"
        for path, want, have in zip(leaf_paths(tree), expected, got, strict=True)
        if (want.shape, want.dtype) != (have.shape, have.dtype)
    ]
    if different:
        raise ControlFlowTypeError(message + "".join(different))


def plain(aval):
    """A type without its weakness, for messages."""
    return ShapedArray(aval.shape, aval.dtype)


def promoted_carry(leaves, results):
    """The leaves of a carry, converted so that the results of the body can follow them.

    A weakly typed leaf (a Python number) of which the body makes another dtype takes the one that
    both promote to. Returns (leaves, whether one changed).
    """
    out, changed = [], False
    for leaf, result in zip(leaves, results, strict=True):
        own = typeof(leaf)
        if own.weak_type and own.dtype != result.dtype:
            like = _NUMBERS.get(result.dtype.kind) if result.weak_type else result.dtype
            dtype = _core.result_type(leaf, result.dtype if like is None else like)[0]
            if dtype != own.dtype:
                leaf, changed = _core.astype(leaf, dtype), True
        out.append(leaf)
    return out, changed


# A Python number of each kind of dtype.
_NUMBERS = {"i": 0, "f": 0.0, "c": 0j}


def check_carry(body, tree, leaves, name):
    """Checks that the first results of a body have the types of the carry."""
    check_same_types(
        tree,
        [typeof(x) for x in leaves],
        body.out_types[: len(leaves)],
        f"[{body.what}] expected '{body.name}' to return a carry of the types it takes; got others",
        name,
    )
