"""vmap: a function of single examples as a function of batches."""

import functools

from weft import _core
from weft._recording import Recording, call, check_callable, check_leaves, name_argument
from weft._surface import public_function
from weft._tree_mismatch import explain_mismatch
from weft.errors import ArgumentTypeError, ShapeError
from weft.runtime.pytree import registry
from weft.tree_util import tree_broadcast, tree_leaves, tree_map


class _Unmapped:
    def __repr__(self):
        return "None"


_UNMAPPED = _Unmapped()


def _is_none(x):
    return x is None


def _axes(axes, tree_of, what):
    """One axis per leaf of a tree; `axes` is a prefix of it with ints and None as leaves.

    A None in the tree itself is no leaf.
    """
    if type(axes) is int:  # by far the most common, and not worth spreading
        return [axes] * len(registry.flatten(tree_of)[0])
    prefix = tree_map(lambda axis: _UNMAPPED if axis is None else axis, axes, is_leaf=_is_none)
    try:
        spread = tree_broadcast(prefix, tree_of)
    except (TypeError, ValueError) as error:
        reason = explain_mismatch(prefix, tree_of) or str(error)
        raise ArgumentTypeError(
            f"{what}: expected axes in a prefix of the tree that they are for; {reason}\n"
            "  An int or None stands for all below it."
        ) from None
    found = [None if axis is _UNMAPPED else axis for axis in tree_leaves(spread)]
    for axis in found:
        if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
            raise TypeError(f"{what}: expected ints or None; got {axis!r}")
    return found


def _normal(axis, ndim, where, what):
    if axis is None:
        return None
    if not -ndim <= axis < ndim:
        raise ShapeError(f"{what}: axis {axis} is out of bounds for {where}, which has {ndim} axes")
    return axis % ndim


def _mapped_size(dims, leaves, axis_size, name_of):
    sizes = {
        i: _core.typeof(x)[0][d]
        for i, (x, d) in enumerate(zip(leaves, dims, strict=True))
        if d is not None
    }
    if not sizes:
        if axis_size is None:
            raise ShapeError("vmap expected at least one mapped argument, or axis_size")
        return axis_size
    found = set(sizes.values()) | ({axis_size} if axis_size is not None else set())
    if len(found) > 1:
        lines = "".join(
            f"\n    {name_of(i)}: axis {dims[i]} has size {size}" for i, size in sizes.items()
        )
        asked = "" if axis_size is None else f"\n    axis_size={axis_size}"
        raise ShapeError(f"vmap expected mapped axes of one size; got{lines}{asked}")
    return found.pop()


def vmap(fun, in_axes=0, out_axes=0, axis_name=None, axis_size=None, spmd_axis_name=None):
    """A function that applies `fun` to every slice of its arguments along an axis.

    Args:
      fun: a function of arrays or trees of arrays.
      in_axes: the axis to map, an int (negative ones count from the end), None for an argument that
        is the same for all, or a tuple of these, one per positional argument; entries may be trees
        that are prefixes of the argument. Keyword arguments are mapped along axis 0.
      out_axes: where the mapped axis stands in the results; likewise.
      axis_name, spmd_axis_name: names by which collective operations would refer to the axis. There
        are none yet: must be None.
      axis_size: the number of slices; needed only if nothing is mapped.

    Raises ShapeError listing every argument's size if these differ, and TypeError or
    ArgumentTypeError for axes that do not fit the arguments.

    A Python `if` on a mapped value cannot work, since it is another value in each slice; use
    weft.numpy.where.
    """
    check_callable(fun, "vmap")
    for which, name in (("axis_name", axis_name), ("spmd_axis_name", spmd_axis_name)):
        if name is not None:
            raise NotImplementedError(
                f"vmap {which}: names of axes are for collective operations, which are not in weft "
                f"yet; got {name!r}\n  Leave it out; reductions over the mapped axis go outside of "
                "vmap."
            )
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)

    @public_function
    @functools.wraps(fun)
    def mapped(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ArgumentTypeError(
                f"vmap in_axes: expected one entry per positional argument ({len(args)}); "
                f"got {len(in_axes)}"
            )
        leaves, tree = registry.flatten((args, kwargs))

        def name_of(i):
            return name_argument(fun, tree, i)

        check_leaves(leaves, name_of)
        axes = _axes(in_axes, args, "vmap in_axes")
        if kwargs:
            axes += _axes(0, kwargs, "vmap in_axes")
        dims = [
            _normal(axis, len(_core.typeof(x)[0]), _Named(name_of, i), "vmap in_axes")
            for i, (axis, x) in enumerate(zip(axes, leaves, strict=True))
        ]
        size = _mapped_size(dims, leaves, axis_size, name_of)
        batched = [i for i, d in enumerate(dims) if d is not None]

        def rebuild(tracers):
            values = list(leaves)
            for i, tracer in zip(batched, tracers, strict=True):
                values[i] = tracer
            return tree.unflatten(values)

        in_dims = [dims[i] for i in batched]
        rec = Recording(
            fun, [leaves[i] for i in batched], rebuild, in_dims, lambda i: name_of(batched[i])
        )
        out_tree = rec.out_tree
        avals = rec.out_avals()

        def result_name(i):
            return f"a result {avals[i]} with the mapped axis"

        placed = _axes(out_axes, out_tree.unflatten(avals), "vmap out_axes")
        wanted = [
            _normal(axis, len(a.shape) + 1, _Named(result_name, i), "vmap out_axes")
            for i, (axis, a) in enumerate(zip(placed, avals, strict=True))
        ]
        graph, _ = _core.vmap_graph(rec.graph, rec.mask_dims(in_dims), size, wanted)
        operands = [*rec.captures, *(leaves[i] for i in batched)]
        return out_tree.unflatten(call(graph, operands, rec.weak))

    return mapped


class _Named:
    """A name, made only if a message needs it."""

    def __init__(self, name_of, i):
        self._name_of, self._i = name_of, i

    def __str__(self):
        return self._name_of(self._i)
