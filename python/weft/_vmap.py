"""vmap: a function of single examples as a function of batches."""

from typing import Any

from weft import _core
from weft._arguments import axis_text
from weft._dims import to_size
from weft._recording import check_callable, function_name, name_argument
from weft._settings import SETTINGS
from weft._surface import named_after, public_function
from weft._tree_mismatch import LEAF, explain_mismatch
from weft._types.keys import keys
from weft._user_context import UserContext
from weft.errors import ArgumentTypeError, ShapeError, TreeStructureError
from weft.runtime.pytree import registry
from weft.tree_util import tree_broadcast, tree_leaves, tree_map

# True while checkify traces a function whose operations are checked: lanes stay apart until the
# checks have been made, so that each knows whether its lane takes part.
checks_lanes = UserContext(False)


class _Unmapped:
    def __repr__(self):
        return "None"


_UNMAPPED = _Unmapped()


def _is_none(x):
    return x is None


def _is_axis(axis):
    return isinstance(axis, int) and not isinstance(axis, bool)


def _spread_axes(axes, tree_of, what):
    """One axis per leaf of a tree; `axes` is a prefix of it with ints and None as leaves.

    A None in the tree itself is no leaf.
    """
    prefix = tree_map(lambda axis: _UNMAPPED if axis is None else axis, axes, is_leaf=_is_none)
    try:
        spread = tree_broadcast(prefix, tree_of)
    except (TypeError, ValueError) as error:
        try:
            structure = tree_map(lambda _: LEAF, tree_of)
        except Exception:  # a class that cannot be made of placeholders
            structure = tree_of
        reason = explain_mismatch(prefix, structure) or str(error)
        raise TreeStructureError(
            f"{what}: expected axes in a prefix of the tree that they are for; {reason}\n"
            "  An int or None stands for all below it."
        ) from None
    found = [None if axis is _UNMAPPED else axis for axis in tree_leaves(spread)]
    for axis in found:
        if axis is not None and not _is_axis(axis):
            raise ArgumentTypeError(f"{what}: expected ints or None; got {axis!r}")
    return found


def _reject_axis(axis, ndim, where, what):
    has = f"{ndim} axis" if ndim == 1 else f"{ndim} axes"
    hint = "\n  Give it None in in_axes if it is not mapped." if what == "vmap in_axes" else ""
    raise ShapeError(f"{what}: axis {axis} is out of bounds for {where}, which has {has}{hint}")


def _reject_sizes(axes, sizes, axis_size, name_of):
    mapped = [i for i, axis in enumerate(axes) if axis is not None]
    if not mapped:
        raise ShapeError("vmap expected at least one mapped argument, or axis_size")
    shown = [_core.dim_text(sizes[i]) for i in mapped]
    lines = "".join(
        f"\n    {name_of(i)}: axis {axes[i]} has size {size}"
        for i, size in zip(mapped, shown, strict=True)
    )
    asked = "" if axis_size is None else f"\n    axis_size={axis_size}"
    raise ShapeError(f"vmap expected mapped axes of one size; got{lines}{asked}")


_core.install(spread_axes=_spread_axes, reject_axis=_reject_axis, reject_sizes=_reject_sizes)


def vmap(
    fun,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name=None,
    axis_size=None,
    spmd_axis_name=None,
    sum_match=False,
):
    """A function that applies `fun` to every slice of its arguments along an axis.

    Args:
      fun: a function of arrays or trees of arrays.
      in_axes: the axis to map, an int (negative ones count from the end), None for an argument that
        is the same for all, or a tuple of these, one per positional argument; entries may be trees
        that are prefixes of the argument. Keyword arguments are mapped along axis 0.
      out_axes: where the mapped axis stands in the results; likewise.
      axis_name: a string or another hashable object, the name by which collective operations
        (lax.psum, ...) in `fun` refer to the axis.
      spmd_axis_name: the axis of a mesh, or a tuple of axes, over which the mapped axis is split
        where `fun` has a lax.with_sharding_constraint or a shard_map; None for as XLA likes, or,
        over axes of type Explicit, as the mapped axis of the arguments is split.
      axis_size: the number of slices; needed only if nothing is mapped.
      sum_match: no effect.

    Raises ShapeError listing every argument's size if these differ, and TypeError or
    TreeStructureError (a ValueError) for axes that do not fit the arguments. ValueError for a
    spmd_axis_name where the mapped axis is split over an axis of type Explicit.

    A Python `if` on a mapped value cannot work, since it is another value in each slice; use
    weft.numpy.where.

    Examples:
      >>> pairs = wnp.array([[1, 2], [3, 4]])
      >>> weft.vmap(wnp.dot)(pairs, pairs)
      Array([ 5, 25], dtype=int32)
      >>> weft.vmap(wnp.sum, in_axes=1)(pairs)
      Array([4, 6], dtype=int32)
    """
    check_callable(fun, "vmap")
    spread = (spmd_axis_name,) if isinstance(spmd_axis_name, str) else spmd_axis_name
    spread = () if spread is None else spread
    if not isinstance(spread, tuple) or not all(isinstance(name, str) for name in spread):
        raise ArgumentTypeError(
            f"vmap spmd_axis_name: expected a string or a tuple of them; got {spmd_axis_name!r}"
        )
    named = "" if axis_name is None else axis_text(axis_name)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, tuple) or _is_axis(in_axes)):
        raise ArgumentTypeError(
            f"vmap in_axes: expected an int, None, or a tuple of entries, one per positional "
            f"argument; got {in_axes!r:.60}"
        )
    # What the arguments and results leave open is checked at the call.
    for what, axes in ("in_axes", in_axes), ("out_axes", out_axes):
        for axis in registry.flatten((axes,))[0]:
            if axis is not None and not _is_axis(axis):
                raise ArgumentTypeError(f"vmap {what}: expected ints or None; got {axis!r:.60}")
    if axis_size is not None:
        try:
            axis_size = to_size(axis_size)
        except TypeError:
            raise ArgumentTypeError(
                f"vmap axis_size: expected an int; got {axis_size!r:.60}"
            ) from None
    name = function_name(fun)

    @public_function
    @named_after(fun)
    def mapped(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise TreeStructureError(
                f"vmap in_axes: expected one entry per positional argument ({len(args)}); "
                f"got {len(in_axes)}"
                + ("\n  Arguments given by name are mapped over axis 0." if kwargs else "")
            )

        def where(i):
            return name_argument(fun, registry.flatten((args, kwargs))[1], i)

        lane = fun
        if SETTINGS["weft_debug_key_reuse"].core.get():
            lane = keys.lanes(fun, args, kwargs)
        axes = in_axes, out_axes, axis_size, named, "\n".join(spread)
        return _core.vmap(lane, name, args, kwargs, *axes, where, checks_lanes.value)

    return mapped
