"""Branches and bodies: functions traced to the graphs that the ops of control flow hold."""

from typing import Any

from weft import _core
from weft._recording import check_leaves, function_name, leaf_paths
from weft._tree_mismatch import first_mismatch
from weft._types.avals import ShapedArray, typeof
from weft.errors import ControlFlowTypeError, RefError
from weft.runtime.pytree import registry


class Body:
    """A function traced on abstract values.

    Attributes: graph (its inputs are the captures, then the arguments' leaves; its outputs are the
    results, the values of refs among the arguments, then of refs of outside, that were written),
    captures (list), weak (per result), out_tree, name (the function's), what (where it was given),
    refs (those of outside that it wrote), refs_weak, changed (positions of the leaves that are refs
    and were written).
    """

    def __init__(self, fun, trees, types, what, names, *, slices=(), writes=False):
        """Traces fun(*args).

        Args:
          fun: the user's function.
          trees: tree definition of each argument.
          types: what has the type of each leaf, of all arguments. A ref is handed on as it is.
          what: the function that `fun` was given to, for messages.
          names: names of the arguments there.
          slices: positions of leaves that are parts of refs: refs for `fun`.
          writes: whether `fun` may write refs of outside; the caller sees to their values then.
        """
        self.name = function_name(fun)
        self.what = what
        self.out_tree: Any = None
        self.changed = []
        places = _leaf_names(trees, names)
        traced = [i for i, x in enumerate(types) if not isinstance(x, _core.Ref)]

        def flat(tracers):
            leaves = list(types)
            for i, tracer in zip(traced, tracers, strict=True):
                leaves[i] = _core.new_ref(tracer, True) if i in slices else tracer
            args, start = [], 0
            for tree in trees:
                args.append(tree.unflatten(leaves[start : start + tree.num_leaves]))
                start += tree.num_leaves
            results, self.out_tree = registry.flatten(fun(*args))
            check_leaves(
                results, lambda i: f"result{leaf_paths(self.out_tree)[i]} of '{self.name}'"
            )
            self.changed = [i for i in slices if leaves[i]._written]
            return results + [leaves[i][...] for i in self.changed]

        self.graph, self.captures, weak, self.refs = _core.trace_body(
            flat,
            [types[i] for i in traced],
            self.name,
            lambda i: f"{places()[traced[i]]} of '{self.name}'",
            "" if writes else f"'{self.name}', given to {what}",
        )
        count = self.out_tree.num_leaves
        self.weak, self.changed_weak = weak[:count], weak[count : count + len(self.changed)]

    @property
    def out_types(self):
        types = self.graph.out_types[: len(self.weak)]
        pairs = zip(types, self.weak, strict=True)
        return [ShapedArray(shape, dtype, weak_type=weak) for (shape, dtype), weak in pairs]

    def structure(self):
        """The result, with types in place of arrays."""
        return self.out_tree.unflatten(self.out_types)


def unites_axes(is_own):
    """Whether what a loop carries, and what branches give, may vary over different axes of a
    shard_map, and so varies over all of them: of a function of weft. Users are told instead."""
    return is_own and bool(_core.varying_axes())


def _leaf_names(trees, names):
    def all_names():
        pairs = zip(trees, names, strict=True)
        return [name + path for tree, name in pairs for path in leaf_paths(tree)]

    return all_names


def regions(*bodies, refs=(), returned=True):
    """(graphs, captures): the graphs of bodies, whose first inputs are the captures of them all.

    The last captures are the values of `refs`; those after the body come first among the outputs of
    a graph, unless they are not `returned`.
    """
    refs = list(refs)
    traced = [(body.graph, body.captures, body.refs if returned else None) for body in bodies]
    return _core.regions(traced, refs)


def written(*bodies):
    """The refs of outside that one of the bodies writes."""
    return list(dict.fromkeys(ref for body in bodies for ref in body.refs))


def weak_types(refs):
    """Per ref whether its value is weak."""
    return tuple(ref.weak_type for ref in refs)


def split(values, *counts):
    """The values in parts of these sizes, and the rest."""
    parts, start = [], 0
    for count in counts:
        parts.append(values[start : start + count])
        start += count
    return *parts, values[start:]


def refs_among(leaves, describe):
    """The refs in a list of leaves, by position; their values take their places.

    Raises RefError for one that is there twice; `describe` names a leaf.
    """
    refs = {i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, _core.Ref)}
    check_distinct(refs, describe)
    for i, ref in refs.items():
        leaves[i] = ref[...]
    return refs


def check_distinct(refs, describe):
    """Raises RefError if a ref occurs twice; `refs` is a dict from positions."""
    first = {}
    for i, ref in refs.items():
        if ref in first:
            raise RefError(
                f"expected every ref once; got {_core.ref_text(ref)} as {describe(first[ref])} and "
                f"as {describe(i)}"
            )
        first[ref] = i


def check_no_refs(leaves, where):
    """Raises RefError if a leaf of what is carried along is a ref; `where` says of what."""
    for leaf in leaves:
        if isinstance(leaf, _core.Ref):
            raise RefError(
                f"expected arrays and numbers in {where}; got {_core.ref_text(leaf)}\n"
                "  Refs cannot be returned: the function can refer to the ref by itself."
            )


def runs_in_python():
    """Whether `weft.disable_jit` is on: control flow runs as Python, for debugging."""
    return bool(_core.get_setting("disable_jit"))


def check_same_tree(expected, got, message, name, error: type[Exception] = ControlFlowTypeError):
    """Raises `error`(message, place) where two trees differ in structure.

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
    raise error(f"{message}\n  {text}")


def check_same_types(
    tree, expected, got, message, prefix, error: type[Exception] = ControlFlowTypeError
):
    """Raises `error` with a line per leaf of another shape or dtype; weakness counts for
    nothing."""
    different = [
        f"\n  {prefix}{path}: expected {plain(want)}, got {plain(have)}"
        for path, want, have in zip(leaf_paths(tree), expected, got, strict=True)
        if (want.shape, want.dtype) != (have.shape, have.dtype)
    ]
    if different:
        raise error(message + "".join(different))


def plain(aval):
    """A type without its weakness, for messages."""
    return ShapedArray(aval.shape, aval.dtype)


def promoted_carry(leaves, results):
    """The leaves of a carry, converted so that the results of the body can follow them.

    A weakly typed leaf (a Python number) of which the body makes another dtype takes the one that
    both promote to, and is weakly typed no more. Returns (leaves, whether one changed).
    """
    out, changed = [], False
    for leaf, result in zip(leaves, results, strict=True):
        own = typeof(leaf)
        if own.weak_type and own.dtype != result.dtype:
            like = _NUMBERS.get(result.dtype.kind) if result.weak_type else result.dtype
            dtype = _core.result_type(leaf, result.dtype if like is None else like)[0]
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
