"""Explicit mode: how values are split over a mesh is part of their types."""

import functools

from weft import _core
from weft._placement import map_placed, placement_of
from weft._surface import named_after
from weft._types.avals import typeof
from weft.errors import ArgumentTypeError, ShardingError
from weft.lax._sharding import axis_types_here
from weft.sharding import (
    AxisType,
    NamedSharding,
    check_reshard,
    get_abstract_mesh,
    mesh_set,
    use_abstract_mesh,
)
from weft.tree_util import tree_map

__all__ = ["auto_axes", "explicit_axes", "reshard"]


def reshard(xs, out_shardings):
    """The tree of arrays, moved to other shardings.

    Values of a function that is traced are moved where the program runs.

    Args:
      xs: tree of arrays.
      out_shardings: a NamedSharding, or a PartitionSpec where a mesh is set; or a tree of such, of
        which `xs` may go on below.

    Raises ValueError for None, for axes that the mesh does not have and for a sharding that an
    array does not fit.

    Examples:
      >>> from weft.sharding import AxisType
      >>> mesh = weft.make_mesh((1,), ("rows",), (AxisType.Explicit,))
      >>> x = weft.reshard(wnp.zeros((2, 3)), weft.NamedSharding(mesh, P(None, "rows")))
      >>> weft.typeof(x)
      ShapedArray(float32[2,3@rows])
    """
    return map_placed(lambda x, place: _resharded(x, place, "reshard"), xs, out_shardings)


def _resharded(x, place, function):
    value = _core.asarray(x)
    placement = _placement_on_mesh(place, function)
    problem = _core.misfit(placement, value.shape)
    if problem:
        raise ShardingError(f"[{function}] {problem}")
    if isinstance(value, _core.Tracer):
        return _core.bind("sharding_constraint", value, sharding=placement)
    check_reshard(function, value, placement)
    return _core.commit(value, placement.unwritten)  # as its type says it


def _placement_on_mesh(place, function):
    placement = None if place is None else placement_of(place, function)
    if placement is None or not placement.mesh.names:
        raise ArgumentTypeError(
            f"{function} expected a NamedSharding or a PartitionSpec; got {place!r}"
        )
    kinds = axis_types_here(placement.mesh)
    hidden = [n for names, _ in placement.dims for n in names if kinds[n] != AxisType.Explicit]
    if hidden:
        raise ShardingError(
            f"{function} expected axes of type Explicit, as others do not show in types; got "
            f"{hidden[0]!r}, of type {kinds[hidden[0]]}, in {place!r}"
        )
    if any(is_open for _, is_open in placement.dims) and AxisType.Auto not in kinds.values():
        raise ShardingError(
            f"{function} expected a spec without UNCONSTRAINED, as no axis is of type Auto; got "
            f"{place!r}"
        )
    return placement


def sharded(place, function, make):
    """make(), whose splits need not follow, split as the parameter out_sharding= says."""
    if isinstance(place, NamedSharding) and place.mesh.empty:  # that of a type without splits
        return make()
    _placement_on_mesh(place, function)  # raises for what is no sharding
    mesh = place.mesh if isinstance(place, NamedSharding) else mesh_set()
    with _types(mesh, None, AxisType.Auto):
        results = make()
    return tree_map(lambda x: _resharded(x, place, function), results)


def auto_axes(f=None, /, *, axes=None, out_sharding=None):
    """The function with axes of the mesh as `AxisType.Auto`: XLA chooses how its values are split.

    Args:
      f: the function; without it a decorator.
      axes: a name or a tuple of names; None is all axes of the mesh that is set.
      out_sharding: how the results are split: a NamedSharding or PartitionSpec, or a tree of them,
        of which the result may go on below. It may be given to the function that is returned
        instead.

    If all axes of the mesh are of type Auto already, it is `f`, and out_sharding has no effect.

    Raises TypeError where there is no out_sharding, ValueError for axes that the mesh lacks.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @named_after(f)
    def call(*args, out_sharding=out_sharding, **kwargs):
        if out_sharding is None:
            raise ArgumentTypeError(
                "auto_axes expected out_sharding=: how the results are split; got none"
            )
        mesh = _mesh_of("auto_axes", args)
        with _types(mesh, axes, AxisType.Auto):
            results = f(*args, **kwargs)
        if mesh.are_all_axes_auto:
            return results
        return reshard(results, out_sharding)

    return call


def explicit_axes(f=None, /, *, axes=None, in_sharding=None):
    """The function with axes of the mesh as `AxisType.Explicit`.

    Args:
      f: the function; without it a decorator.
      axes: a name or a tuple of names; None is all axes of the mesh that is set.
      in_sharding: how the arguments are split in the function: a NamedSharding or PartitionSpec, or
        a tree of them, of which the tuple of arguments may go on below. It may be given to the
        function that is returned instead.

    Raises TypeError where there is no in_sharding, ValueError for axes that the mesh does not have.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @named_after(f)
    def call(*args, in_sharding=in_sharding, **kwargs):
        if in_sharding is None:
            raise ArgumentTypeError(
                "explicit_axes expected in_sharding=: how arguments are split; got none"
            )
        with _types(_mesh_of("explicit_axes", args), axes, AxisType.Explicit):
            return f(*reshard(args, in_sharding), **kwargs)

    return call


def _mesh_of(function, args):
    mesh = get_abstract_mesh()
    if mesh.empty:
        for leaf in tree_map(lambda x: [typeof(x)._place], args):
            for found in leaf if isinstance(leaf, list) else []:
                if found is not None:
                    return found.mesh
        raise ShardingError(f"{function} expected a mesh that is set; use weft.set_mesh")
    return mesh


def _types(mesh, axes, kind):
    """A scope in which axes of a mesh (None: all) are of another type."""
    mesh = mesh.abstract_mesh
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    unknown = set(names) - set(mesh.axis_names)
    if unknown:
        raise ShardingError(f"expected axes of {mesh}; got {sorted(map(str, unknown))}")
    return use_abstract_mesh(mesh.update_axis_types(dict.fromkeys(names, kind)))
