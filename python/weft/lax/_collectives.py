"""Collective operations: functions of the values that all lanes of a mapped axis have.

Under `vmap(f, axis_name="i")` a value in `f` is one per lane of the axis "i". These functions let
the lanes see each other. Where they take several names, ("i", "j") stands for one axis whose lanes
are numbered with the last name fastest.

The ops of the core are over one axis, or sum over several; what is more is composed of them here.
"""

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from weft import _core
from weft._arguments import (
    axis_text,
    ndim_of,
    normalize_axes,
    normalize_axis,
    shape_of,
    static_int,
)
from weft._types.avals import typeof
from weft.dtypes import dtype_of, is_bool
from weft.errors import (
    ArgumentTypeError,
    AttributeValueError,
    ShapeError,
)
from weft.lax._creation import full_like, iota
from weft.lax._elementwise import select
from weft.lax._shape import broadcast_in_dim, expand_dims, move_axis, reshape, squeeze
from weft.runtime.pytree import registry
from weft.sharding import check_collective


def _listed(axis_name):
    return axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _names(axis_name):
    return tuple(map(axis_text, _listed(axis_name)))


def _apart(axis_name):
    """The names among names and ints, and the ints: axes of the array itself."""
    given = _listed(axis_name)
    names = tuple(axis for axis in given if not isinstance(axis, int))
    return names, tuple(axis for axis in given if isinstance(axis, int))


def _checked_names(axis_name, op):
    """The names, and the number of lanes of these axes together, for an op that communicates."""
    names, size = _distinct_names(axis_name, op)
    check_collective(op, names)
    return names, size


def _distinct_names(axis_name, op):
    names = _names(axis_name)
    if not names:
        raise AttributeValueError(f"[{op}] expected the name of a mapped axis; got ()")
    size = axis_size(names)
    if len(set(names)) < len(names):
        raise AttributeValueError(f"[{op}] expected distinct names of axes; got {names}")
    return names, size


def _checked_groups(groups, size, op):
    """Groups as lists of ints that hold each of `size` lanes once; None stays None."""
    if groups is None:
        return None
    try:
        groups = [[operator.index(lane) for lane in group] for group in groups]
    except TypeError:
        raise ArgumentTypeError(
            f"[{op}] expected lists of ints for axis_index_groups; got {groups!r}"
        ) from None
    if sorted(lane for group in groups for lane in group) != list(range(size)):
        raise AttributeValueError(
            f"[{op}] expected axis_index_groups with each index from 0 to {size - 1} once; "
            f"got {groups}"
        )
    return groups


def _equal_groups(groups, size, op):
    """The same for groups of one size, and that size."""
    groups = _checked_groups(groups, size, op)
    sizes = {len(group) for group in groups or ()}
    if len(sizes) > 1:
        raise AttributeValueError(
            f"[{op}] expected axis_index_groups of one size; got sizes {sorted(sizes)}"
        )
    return groups, (len(groups[0]) if groups else size)


def _map(f, x):
    leaves, tree = registry.flatten(x)
    return tree.unflatten([f(_core.asarray(leaf)) for leaf in leaves])


def _merge(x, axis):
    """Makes one of an axis and that behind it."""
    shape = shape_of(x)
    return reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _split(x, axis, sizes):
    shape = shape_of(x)
    return reshape(x, (*shape[:axis], *sizes, shape[axis] // math.prod(sizes), *shape[axis + 1 :]))


def _check_divisible(x, axis, lanes, op, what):
    size = shape_of(x)[axis]
    if size % lanes:
        raise ShapeError(
            f"[{op}] expected {what} {axis} to have a size divisible by {lanes}, the number of "
            f"lanes; got shape {shape_of(x)}"
        )


def _check_size(x, axis, lanes, op, what):
    if shape_of(x)[axis] != lanes:
        raise ShapeError(
            f"[{op}] expected {what} {axis} to have size {lanes}, the number of lanes, where tiled "
            f"is False; got shape {shape_of(x)}"
        )


# ---- This lane among others


def axis_size(axis_name):
    """The number of lanes of a mapped axis, or of several together: an int.

    Raises UnboundAxisNameError (a NameError) for a name that no vmap around the call gives.

    Examples:
      >>> weft.vmap(lambda x: x * lax.axis_size("i"), axis_name="i")(wnp.array([1, 2, 4]))
      Array([ 3,  6, 12], dtype=int32)
    """
    return math.prod(map(_core.axis_size, _names(axis_name)))


def axis_index(axis_name):
    """The number of this lane along a mapped axis, or along several together: int32[].

    Raises UnboundAxisNameError (a NameError) for a name that no vmap around the call gives.

    Examples:
      >>> weft.vmap(lambda x: x + 10 * lax.axis_index("i"), axis_name="i")(wnp.array([1, 2, 4]))
      Array([ 1, 12, 24], dtype=int32)
    """
    names, _ = _distinct_names(axis_name, "axis_index")
    index = _core.bind("axis_index", axis_name=names[:1])
    for name in names[1:]:
        index = index * _core.axis_size(name) + _core.bind("axis_index", axis_name=(name,))
    return index


# By what a value is along the axes (None: that is not known), and what it is to be: the op, and
# what it is told.
_CASTS = {
    ("invarying", "varying"): ("pvary", {}),
    ("invarying", "reduced"): ("pvary", {"reduced": True}),
    ("varying", "unreduced"): ("vary_cast", {"unreduced": True}),
    ("reduced", "varying"): ("vary_cast", {"unreduced": False}),
    (None, "varying"): ("pvary", {}),
    (None, "reduced"): ("pvary", {"reduced": True}),
    (None, "unreduced"): ("vary_cast", {"unreduced": True}),
}


def pcast(x, axis_name, *, to):
    """The tree of arrays, which count from here on as another kind along axes of a mesh.

    Within a shard_map with check_vma, values that vary over other axes than the values they meet
    are cast where they meet. A cast of one's own says where: the cotangents are summed up over the
    axes there. Elsewhere it changes nothing.

    Args:
      x: tree of arrays.
      axis_name: name of a manual axis of the mesh, or a tuple of several.
      to: "varying", of values that are the same along the axes, or reduced: they may differ.
        "unreduced", of those that vary: they are summands, and their sum is yet to be made.
        "reduced", of those that are the same: they stay so, and their cotangents are summands.

    Raises TypeError for a set of axes, ValueError for another `to`, for a value that is not of a
    kind from which there is a cast, or of several kinds along the axes, and where nothing is
    mapped; UnboundAxisNameError (a NameError) for a name that nothing around the call gives.

    Examples:
      >>> mesh = weft.make_mesh((1,), ("i",))
      >>> f = lambda x: lax.pcast(x, "i", to="varying")
      >>> weft.shard_map(f, mesh=mesh, in_specs=P(), out_specs=P("i"))(wnp.arange(2))
      Array([0, 1], dtype=int32)
    """
    if isinstance(axis_name, (set, frozenset)):
        raise ArgumentTypeError(f"[pcast] expected a name or a tuple of names; got {axis_name!r}")
    if to not in ("varying", "reduced", "unreduced"):
        raise AttributeValueError(
            f"[pcast] expected to='varying', 'reduced' or 'unreduced'; got {to!r}"
        )
    names = _names(axis_name)
    if not names:
        return x
    if not _core.named_axes():
        raise AttributeValueError(
            f"[pcast] expected a call within a shard_map; got one outside, with {axis_name!r}"
        )
    _distinct_names(names, "pcast")

    def one(leaf):
        kind = _kind(leaf, names, "pcast")
        if (kind, to) not in _CASTS:
            kinds = " or ".join(repr(k) for k, other in _CASTS if k and other == to)
            raise AttributeValueError(
                f"[pcast] expected a value that is {kinds} along the axes {names} for to={to!r}; "
                f"got a {typeof(leaf)}"
            )
        op, options = _CASTS[kind, to]
        return _core.bind(op, leaf, axes=names, **options)

    return _map(one, x)


def _kind(x, names, op):
    """What a value is along the axes: "varying", "unreduced", "reduced", "invarying"; None where
    that is not known.

    Raises ValueError where it is not the same kind along all of them.
    """
    known = _core.varying_axes()
    sets = _core.varying_of(x) if known else None
    if sets is None:
        return None

    def along(name):
        found = zip(("varying", "unreduced", "reduced"), sets, strict=True)
        return next((kind for kind, own in found if name in own), "invarying")

    kinds = {along(name) for name in names if name in known}
    if len(kinds) > 1:
        raise AttributeValueError(
            f"[{op}] expected a value of one kind along the axes {names}; got a {typeof(x)}, which "
            f"is {' and '.join(sorted(kinds))}\n  Cast it with lax.pcast first, or leave out some "
            "of the axes."
        )
    return kinds.pop() if kinds else None


def _check_unmarked(x, names, op, marks=("unreduced", "reduced")):
    """Raises where a value is unreduced or reduced along one of the axes."""
    for name in names:
        kind = _kind(x, (name,), op)
        if kind in marks:
            raise AttributeValueError(
                f"[{op}] expected a value that is not {kind} along {name!r}; got a {typeof(x)}"
            )


def _own_entry(table, names):
    """Of an array of ints with one entry per lane, that of this lane."""
    return _core.asarray(np.asarray(table, np.int32))[axis_index(names)]


def _place(groups, size, names):
    """The position of this lane in its group."""
    places = np.empty(size, np.int32)
    for group in groups:
        places[group] = range(len(group))
    return _own_entry(places, names)


def _group_rows(x, groups, size, names):
    """The values of the lanes of this lane's group, along a new axis 0."""
    rows = np.empty((size, len(groups[0])), np.int32)
    for group in groups:
        rows[group] = group
    return all_gather(x, names)[_own_entry(rows, names)]


# ---- Reductions


def _along(x, axes, op):
    """An array reduced along axes of its own."""
    if not axes:
        return x
    axes = normalize_axes(axes, ndim_of(x), op)
    return _core.bind(f"reduce_{op[1:]}", _core.asarray(x), axes=axes)


def _reduction(op, reduce, axis_name, groups):
    """The function that reduces one array, along axes of its own and then over lanes."""
    names, own_axes = _apart(axis_name)
    over_lanes = _over_lanes(op, reduce, names, groups)

    def one(x):
        _check_unmarked(x, _names(names), op)
        return over_lanes(_along(x, own_axes, op))

    return one


def _over_lanes(op, reduce, axis_name, groups):
    """The function that reduces one array over lanes; over no axis, it leaves it as it is."""
    if _names(axis_name) == ():
        return lambda x: x
    names, size = _checked_names(axis_name, op)
    if groups is None or len(names) == 1:
        groups = _checked_groups(groups, size, op)
        return lambda x: _core.bind(op, x, axes=names, axis_index_groups=groups)
    groups, _ = _equal_groups(groups, size, op)
    return lambda x: reduce(_group_rows(x, groups, size, names))


def psum(x, axis_name, *, axis_index_groups=None):
    """The sum of `x` over the lanes of mapped axes.

    Args:
      x: array or tree of arrays; bools count as int32. A number, or an array that no transform is
        at work on, is the same in all lanes: of the number 1 the sum is the int axis_size(...).
      axis_name: the name of an axis that a vmap around the call gives, or a tuple of them. An int
        is an axis of `x` itself, which is summed up as well.
      axis_index_groups: lists that hold each lane once; the sum is then over the lane's own group.

    Returns the sums, of the shapes of `x`. Raises UnboundAxisNameError for a name of no axis, and
    AttributeValueError for groups that are none.

    Examples:
      >>> weft.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(wnp.array([1, 2, 4]))
      Array([7, 7, 7], dtype=int32)
    """
    axis_name, own_axes = _apart(axis_name)
    names = _names(axis_name)
    size = _checked_names(names, "psum")[1] if names else 1
    leaves, tree = registry.flatten(x)
    int32 = np.dtype("int32")
    leaves = [_core.astype(leaf, int32) if is_bool(dtype_of(leaf)) else leaf for leaf in leaves]
    leaves = [_along(leaf, own_axes, "psum") for leaf in leaves]
    is_traced = any(isinstance(leaf, _core.Tracer) for leaf in leaves)
    groups = _checked_groups(axis_index_groups, size, "psum")
    if not is_traced and (groups is None or len({len(group) for group in groups}) == 1):
        lanes = size if groups is None else len(groups[0])
        return tree.unflatten([leaf * lanes for leaf in leaves])
    add = _over_lanes("psum", lambda rows: rows.sum(axis=0), axis_name, groups)

    def one(leaf):
        leaf = _core.asarray(leaf)
        if len(names) > 1:
            _kind(leaf, names, "psum")
        _check_unmarked(leaf, names, "psum", ("reduced",))
        return add(leaf)

    return tree.unflatten([one(leaf) for leaf in leaves])


def pmean(x, axis_name, *, axis_index_groups=None):
    """The mean of `x` over the lanes of mapped axes; arguments as for psum.

    `axis_name` and `axis_index_groups` are those of `psum`.

    Examples:
      >>> weft.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(wnp.array([1.0, 2.0, 6.0]))
      Array([-2., -1.,  3.], dtype=float32)
    """
    lanes = psum(1, axis_name=axis_name, axis_index_groups=axis_index_groups)
    total = psum(x, axis_name=axis_name, axis_index_groups=axis_index_groups)
    leaves, tree = registry.flatten(total)
    return tree.unflatten([leaf / lanes for leaf in leaves])


def pmax(x, axis_name, *, axis_index_groups=None):
    """The maximum of `x`, an array or a tree, over the lanes of mapped axes; as psum.

    The derivative is the mean of those of the lanes that attain it.

    `axis_name` and `axis_index_groups` are those of `psum`.

    Examples:
      >>> weft.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(wnp.array([1, 2, 4]))
      Array([4, 4, 4], dtype=int32)
    """
    return _map(_reduction("pmax", lambda rows: rows.max(axis=0), axis_name, axis_index_groups), x)


def pmin(x, axis_name, *, axis_index_groups=None):
    """The minimum of `x`, an array or a tree, over the lanes of mapped axes; as pmax.

    `axis_name` and `axis_index_groups` are those of `psum`.

    Examples:
      >>> weft.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(wnp.array([1, 2, 4]))
      Array([1, 1, 1], dtype=int32)
    """
    return _map(_reduction("pmin", lambda rows: rows.min(axis=0), axis_name, axis_index_groups), x)


# ---- From lane to lane


def pbroadcast(x, axis_name, source):
    """The value that lane `source` of a mapped axis has, for all lanes.

    Args:
      x: array or tree of arrays.
      axis_name: the name of the axis, or a tuple of names.
      source: the lane, an int.

    Raises AttributeValueError (a ValueError) for a source that is no lane.

    Examples:
      >>> weft.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(wnp.array([7, 8, 9]))
      Array([8, 8, 8], dtype=int32)
    """
    names, size = _checked_names(axis_name, "pbroadcast")
    source = static_int(source, "pbroadcast", "source")
    if not 0 <= source < size:
        raise AttributeValueError(
            f"[pbroadcast] expected a source between 0 and {size - 1}; got {source}"
        )
    lanes = np.unravel_index(source, [_core.axis_size(name) for name in names])

    def one(leaf):
        _check_unmarked(leaf, names, "pbroadcast")
        for name, lane in zip(names, lanes, strict=True):
            leaf = _core.bind("pbroadcast", leaf, axis_name=(name,), source=int(lane))
        return leaf

    return _map(one, x)


def _checked_pairs(perm, size):
    try:
        pairs = [(operator.index(a), operator.index(b)) for a, b in perm]
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"[ppermute] expected perm to be pairs of ints (source, destination); got {perm!r}"
        ) from None
    for what, lanes in zip(("source", "destination"), zip(*pairs, strict=True), strict=False):
        if len(set(lanes)) < len(lanes):
            raise AttributeValueError(f"[ppermute] expected each {what} once; got perm={pairs}")
        if not all(0 <= lane < size for lane in lanes):
            raise AttributeValueError(
                f"[ppermute] expected lanes between 0 and {size - 1}; got perm={pairs}"
            )
    return pairs


def ppermute(x, axis_name, perm):
    """Values sent from lane to lane of a mapped axis.

    Args:
      x: array or tree of arrays.
      axis_name: the name of the axis, or a tuple of names.
      perm: pairs of ints (source, destination), each source and each destination once. A lane that
        is no destination gets zeros.

    Examples:
      >>> shift = lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)])
      >>> weft.vmap(shift, axis_name="i")(wnp.array([7, 8, 9]))
      Array([0, 7, 8], dtype=int32)
    """
    names, size = _checked_names(axis_name, "ppermute")
    pairs = _checked_pairs(perm, size)
    source = np.full(size, -1)
    for a, b in pairs:
        source[b] = a
    own = _own_entry(source, names) if len(names) > 1 else None

    def one(leaf):
        _check_unmarked(leaf, names, "ppermute")
        if own is None:
            return _core.bind("ppermute", leaf, axis_name=names, perm=pairs)
        got = all_gather(leaf, names)[own.clip(0)]
        return select(broadcast_in_dim(own >= 0, got.shape, ()), got, full_like(got, 0))

    return _map(one, x)


def pshuffle(x, axis_name, perm):
    """Lane i of a mapped axis gets the value of lane perm[i]; `perm` holds each lane once.

    Raises AttributeValueError (a ValueError) unless `perm` holds each lane once.

    Examples:
      >>> weft.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(wnp.array([7, 8, 9]))
      Array([9, 7, 8], dtype=int32)
    """
    _, size = _checked_names(axis_name, "pshuffle")
    perm = list(perm)
    if set(perm) != set(range(size)) or len(perm) != size:
        raise AttributeValueError(
            f"[pshuffle] expected perm to hold each lane from 0 to {size - 1} once; got {perm}"
        )
    return ppermute(x, axis_name, [(source, lane) for lane, source in enumerate(perm)])


# ---- Blocks along an axis of the array


def _over_blocks(op, x, name, groups, lanes, **options):
    """One of the core's ops on lanes' blocks, over one axis; `lanes` are those of a group."""
    return _core.bind(
        op,
        x,
        axis_name=(name,),
        axis_index_groups=groups,
        axis_size=lanes if groups is not None else _core.axis_size(name),
        **options,
    )


def all_gather(x, axis_name, *, axis_index_groups=None, axis=0, tiled=False, to="varying"):
    """The values of all lanes of a mapped axis, along an axis of the result.

    Args:
      x: array or tree of arrays.
      axis_name: the name of the mapped axis, or a tuple of names.
      axis_index_groups: lists of one size that hold each lane once; a lane gets the values of its
        own group, in the group's order.
      axis: along which the values are lined up: a new axis, or, if `tiled`, one that `x` has.
      to: "varying": the result may differ along axes of a mesh, and each lane's has a cotangent of
        its own; "invarying": it counts as the same along them, and all have one cotangent, of which
        a lane gets its part; "reduced": it counts as the same, and the lanes' cotangents are
        summands of one. Makes no difference under vmap.

    Returns arrays of the shape of `x`, but with a new axis of the number of lanes, or with `axis`
    as many times as large.

    Raises AttributeValueError (a ValueError) for another `to`.

    Examples:
      >>> weft.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(wnp.array([1, 2]))
      Array([[1, 2],
             [1, 2]], dtype=int32)
    """
    names, size = _checked_names(axis_name, "all_gather")
    groups, lanes = _equal_groups(axis_index_groups, size, "all_gather")
    if to not in ("varying", "reduced", "invarying"):
        raise AttributeValueError(
            f"[all_gather] expected to='varying', 'reduced' or 'invarying'; got {to!r}"
        )

    def gathered(leaf, at):
        if groups is not None and len(names) > 1:
            return _merge(move_axis(_group_rows(leaf, groups, size, names), 0, at), at)
        for name in reversed(names):
            leaf = _over_blocks(
                "all_gather",
                leaf,
                name,
                groups,
                lanes,
                all_gather_dimension=at,
                invariant=to == "invarying",
                reduced=to == "reduced",
            )
        return leaf

    def one(leaf):
        _check_unmarked(leaf, names, "all_gather")
        if to == "reduced" and _kind(leaf, names, "all_gather") == "invarying":
            raise AttributeValueError(
                f"[all_gather] expected a value that varies over {names} for to='reduced'; got a "
                f"{typeof(leaf)}"
            )
        if tiled:
            return gathered(leaf, normalize_axis(axis, ndim_of(leaf), "all_gather"))
        at = normalize_axis(axis, ndim_of(leaf) + 1, "all_gather")
        return gathered(expand_dims(leaf, (at,)), at)

    return _map(one, x)


def psum_scatter(x, axis_name, *, scatter_dimension=0, axis_index_groups=None, tiled=False):
    """The sum over the lanes of a mapped axis, of which each lane gets one part.

    Args:
      x: array or tree of arrays.
      axis_name: the name of the mapped axis, or a tuple of names.
      scatter_dimension: the axis of `x` along which lanes have their parts, one after the other.
      axis_index_groups: lists of one size that hold each lane once; sums are over the own group.
      tiled: whether the result keeps the axis, with size(axis) / lanes elements. Otherwise its size
        has to be the number of lanes, and the result lacks it.

    Raises ShapeError for a size that is not the number of lanes, or a multiple of it.

    Examples:
      >>> f = weft.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")
      >>> f(wnp.array([[1, 2], [10, 20]]))
      Array([11, 22], dtype=int32)
    """
    names, size = _checked_names(axis_name, "psum_scatter")
    groups, lanes = _equal_groups(axis_index_groups, size, "psum_scatter")

    def one(leaf):
        at = normalize_axis(scatter_dimension, ndim_of(leaf), "psum_scatter")
        check = _check_divisible if tiled else _check_size
        check(leaf, at, lanes, "psum_scatter", "scatter_dimension")
        if len(names) > 1:
            _kind(leaf, names, "psum_scatter")
        _check_unmarked(leaf, names, "psum_scatter", ("reduced",))
        if groups is not None and len(names) > 1:
            total = _group_rows(leaf, groups, size, names).sum(axis=0)
            blocks = move_axis(_split(total, at, (lanes,)), at, 0)
            leaf = blocks[_place(groups, size, names)]
        else:
            for name in names:
                leaf = _over_blocks(
                    "reduce_scatter", leaf, name, groups, lanes, scatter_dimension=at
                )
        return leaf if tiled else squeeze(leaf, (at,))

    return _map(one, x)


class Started(NamedTuple):
    """What a collective that was started gives; `done()` has it."""

    value: Any

    def done(self):
        """The result of the collective."""
        return self.value


def psum_scatter_start(x, axis_name, *, scatter_dimension=0, axis_index_groups=None, tiled=False):
    """`psum_scatter` of the same arguments: `done()` of what is returned gives its result.

    XLA decides when it communicates, so that `done` waits for nothing.

    Examples:
      >>> f = weft.vmap(lambda x: lax.psum_scatter_start(x, "i").done(), axis_name="i")
      >>> f(wnp.array([[1, 2], [10, 20]]))
      Array([11, 22], dtype=int32)
    """
    return Started(
        psum_scatter(
            x,
            axis_name,
            scatter_dimension=scatter_dimension,
            axis_index_groups=axis_index_groups,
            tiled=tiled,
        )
    )


def all_to_all(x, axis_name, split_axis, concat_axis, *, axis_index_groups=None, tiled=False):
    """Each lane of a mapped axis sends a part of `x` to each other, and lines up what it gets.

    Args:
      x: array or tree of arrays.
      axis_name: the name of the mapped axis, or a tuple of names.
      split_axis: the axis of `x` along which the parts for the lanes lie.
      concat_axis: the axis of the result along which the parts of the lanes come to lie.
      axis_index_groups: lists of one size that hold each lane once; lanes send within their group.
      tiled: whether both axes stay, the one with size / lanes and the other with size * lanes
        elements. Otherwise split_axis, whose size has to be the number of lanes, goes away, and
        concat_axis is a new one.

    Raises ShapeError for a size that is not the number of lanes, or a multiple of it.

    Examples:
      >>> f = lambda x: lax.all_to_all(x, "i", split_axis=0, concat_axis=0)
      >>> weft.vmap(f, axis_name="i")(wnp.array([[1, 2], [3, 4]]))
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    names, size = _checked_names(axis_name, "all_to_all")
    groups, lanes = _equal_groups(axis_index_groups, size, "all_to_all")

    # Of an array with an axis for each of the names at `at`: what lanes sent, in its place.
    def exchanged(leaf, at):
        if groups is not None and len(names) > 1:
            rows = _group_rows(leaf, groups, size, names)
            return move_axis(rows, at + 1, 0)[_place(groups, size, names)]
        for i, name in enumerate(names):
            leaf = tiled_op(leaf, name, at + i, at + i)
        return leaf

    def tiled_op(leaf, name, split, concat):
        return _over_blocks(
            "all_to_all", leaf, name, groups, lanes, split_axis=split, concat_axis=concat
        )

    def one(leaf):
        _check_unmarked(leaf, names, "all_to_all")
        ndim = ndim_of(leaf)
        split = normalize_axis(split_axis, ndim, "all_to_all")
        concat = normalize_axis(concat_axis, ndim, "all_to_all")
        check = _check_divisible if tiled else _check_size
        check(leaf, split, lanes, "all_to_all", "split_axis")
        if len(names) == 1 and tiled:
            return tiled_op(leaf, names[0], split, concat)
        sizes = (lanes,) if groups is not None else [_core.axis_size(name) for name in names]
        parts = _split(leaf, split, sizes)
        if groups is not None and len(names) > 1:
            parts = move_axis(exchanged(parts, split), 0, split)
        else:
            parts = exchanged(parts, split)
        for i in range(len(sizes) - 1):
            parts = _merge(parts, split + len(sizes) - 2 - i)
        parts = parts if tiled else squeeze(parts, (split + 1,))
        parts = move_axis(parts, split, concat)
        return _merge(parts, concat) if tiled else parts

    return _map(one, x)


def pswapaxes(x, axis_name, axis, *, axis_index_groups=None):
    """Exchanges a mapped axis and an axis of `x`, whose size has to be the number of lanes.

    `axis_name` and `axis_index_groups` are those of `all_to_all`.

    Examples:
      >>> f = weft.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")
      >>> f(wnp.array([[1, 2], [3, 4]]))
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def ragged_all_to_all(
    operand,
    output,
    input_offsets,
    send_sizes,
    output_offsets,
    recv_sizes,
    *,
    axis_name,
    axis_index_groups=None,
):
    """Each lane of a mapped axis sends slices of its rows to the others, of any sizes.

    Args:
      operand: (N, ...), the rows from which lanes send.
      output: (M, ...), what the result is where nothing arrives.
      input_offsets, send_sizes: integers (K,): the slices of `operand` to send; the first K / lanes
        of them go to the first lane, and so on.
      output_offsets: integers (K,): where each slice is put in the result of the lane that gets it.
      recv_sizes: integers (K,): the sizes of the slices that this lane gets.
      axis_name: the name of the mapped axis, or a tuple of names.
      axis_index_groups: lists of one size that hold each lane once; lanes send within their group.

    Returns an array like `output`. Rows that several slices are put at get one of them.

    Raises ShapeError for rows of different shapes, and for offsets or sizes of different lengths.

    Examples:
      >>> def f(x):
      ...     one = wnp.array([1])
      ...     return lax.ragged_all_to_all(x, 0 * x, 2 * one, one, 0 * one, one, axis_name="i")
      >>> mesh = weft.make_mesh((1,), ("i",))
      >>> weft.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(wnp.array([7, 8, 9]))
      Array([9, 0, 0], dtype=int32)
    """
    names, size = _checked_names(axis_name, "ragged_all_to_all")
    groups, lanes = _equal_groups(axis_index_groups, size, "ragged_all_to_all")
    operand, output = _core.asarray(operand), _core.asarray(output)
    if ndim_of(operand) == 0 or operand.shape[1:] != output.shape[1:]:
        raise ShapeError(
            "[ragged_all_to_all] expected operand and output with rows of one shape; got shapes "
            f"{operand.shape} and {output.shape}"
        )
    vectors = {
        "input_offsets": input_offsets,
        "send_sizes": send_sizes,
        "output_offsets": output_offsets,
        "recv_sizes": recv_sizes,
    }
    shapes = {shape_of(x) for x in vectors.values()}
    count = next(iter(shapes))[0] if len(shapes) == 1 and len(next(iter(shapes))) == 1 else None
    if count is None or count % lanes:
        found = ", ".join(f"{name} {shape_of(x)}" for name, x in vectors.items())
        raise ShapeError(
            "[ragged_all_to_all] expected offsets and sizes of one shape (K,), K divisible by "
            f"{lanes}, the number of lanes; got {found}"
        )

    def received(x):
        return all_to_all(
            _core.asarray(x), names, 0, 0, axis_index_groups=axis_index_groups, tiled=True
        )

    begin, start = received(output_offsets), received(input_offsets)
    sizes = _core.asarray(recv_sizes)
    rows = output.shape[0]
    if not rows or not count or not operand.shape[0]:
        return output
    # Which slice, if any, holds row p of the result.
    p = reshape(iota(begin.dtype, rows), (rows, 1))
    holds = (p >= begin) & (p < begin + sizes)
    slice_of = holds.argmax(axis=1)
    row = p[:, 0] - begin[slice_of] + start[slice_of]
    every = all_gather(operand, names, axis_index_groups=axis_index_groups)
    got = every[slice_of // (count // lanes), row]
    any_holds = holds.any(axis=1)
    return select(broadcast_in_dim(any_holds, output.shape, (0,)), got, output)
