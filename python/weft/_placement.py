"""From what users say of places (devices, shardings, specs) to the core's shardings, and back."""

import numpy as np

from weft import _core, sharding as _sharding
from weft.errors import AttributeValueError, MissingMeshError, ShardingError
from weft.sharding import (
    NamedSharding,
    PartitionSpec,
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    make_mesh,
    mesh_of_specs,
    mesh_set,
    set_mesh,
    use_abstract_mesh as use_abstract_mesh,
    use_mesh,
)
from weft.tree_util import tree_broadcast, tree_leaves, tree_map

P = PartitionSpec

__all__ = ["NamedSharding", "P", "make_mesh", "set_mesh", "use_mesh"]

_shardings = {}  # (of the core, dimensions) -> as users see it
_splits = {}


def sharding_of(placement, ndim=0):
    """The sharding that users see of one of the core's; always the same object.

    Its spec has as many entries as the one that was written; where none was, as many as it needs,
    and if it is part of types, that of an array one for each of `ndim` dimensions.
    """
    entries = placement.entries
    found = _shardings.get((placement, ndim, entries))
    if found is None:
        found = _sharding._seen(placement)
        if entries is None and placement.mesh.names and found.mesh.explicit_axes:
            entries = ndim
        missing = (entries or 0) - len(placement.dims)
        if missing > 0:
            found = found.with_spec(found.spec + PartitionSpec(*[None] * missing))
        _shardings[placement, ndim, placement.entries] = found
    return found


def split_seen(split, ndim):
    """The sharding of a type: on the mesh without devices, with an entry per dimension."""
    found = _splits.get((split, ndim))
    if found is None:
        seen = _sharding._seen(split)
        spec = seen.spec + PartitionSpec(*[None] * (ndim - len(seen.spec)))
        found = _splits[split, ndim] = NamedSharding(seen.mesh.abstract_mesh, spec)
    return found


def placement_of(place, function, shape=None, mesh_of=mesh_of_specs):
    """The core's sharding of a device, a sharding or, where a mesh is set, a PartitionSpec.

    Raises ValueError for what is none of these and for a spec of more entries than `shape` has,
    MissingMeshError for a spec where no mesh is set.
    """
    from weft._sharding.layout import Format
    from weft.runtime import devices

    if isinstance(place, Format):
        place = place._place(function, None if shape is None else len(shape))
    if isinstance(place, PartitionSpec):
        mesh = mesh_of()
        if mesh.empty:
            raise MissingMeshError(
                f"{function} expected a mesh for {place!r}: use a NamedSharding, or set a mesh "
                "with weft.set_mesh"
            )
        place = NamedSharding(mesh, place)
    elif isinstance(place, NamedSharding):
        here = mesh_set()
        if not here.empty and place.mesh == here.abstract_mesh:
            place = NamedSharding(here, place.spec)  # of a type: the devices are those that are set
    # Of entries that are None: others the core finds.
    if (
        shape is not None
        and isinstance(place, NamedSharding)
        and len(place.spec) > len(shape) >= len(place._placement.dims)
    ):
        raise ShardingError(
            f"[{function}] expected an array of at least {len(place.spec)} dimensions for "
            f"{place.spec} on {place.mesh}; got one of shape {tuple(shape)}"
        )
    placement = getattr(place, "_placement", None)
    if placement is not None and not isinstance(place, _core.Array):
        return placement
    if isinstance(place, devices.Device):
        return devices.placement_of(place)
    found = tuple(getattr(place, "device_set", ()))
    if len(found) != 1:
        raise AttributeValueError(
            f"{function} expected one of weft.devices() or a sharding; got {place!r}"
        )
    return devices.placement_of(found[0])


def map_placed(put, x, *prefixes):
    """The tree of put(leaf, *values), a value of each of the prefixes, trees of places or options.

    What stands in a prefix for a tree is for all its leaves.
    """

    def is_none(value):
        return value is None

    spread = [tree_broadcast(prefix, x, is_leaf=is_none) for prefix in prefixes]
    return tree_map(
        lambda leaf, *own: None if leaf is None else put(leaf, *own), x, *spread, is_leaf=is_none
    )


def parts_of(array):
    """What each device of this process holds of an array: a list of Arrays on one device."""
    from weft.runtime import buffers, devices

    indices = _core.shards(array._placement, array.shape, True)
    parts = buffers.shards(array._buffer)
    out = []
    for (device, _, index), part in zip(indices, parts, strict=True):
        shape = tuple(len(range(*i.indices(n))) for i, n in zip(index, array.shape, strict=True))
        own = devices.placement_of(device, array._placement.memory)
        out.append(_core.wrap_buffer(part, shape, array.dtype, array.weak_type, own, True))
    return out


def resolve(shardings, tree, shapes, parameter):
    """Per leaf of arguments or of a result the core's sharding that was written for it, or None.

    `tree` is None for arguments by position, and for a result, that are leaves; `shapes` has the
    shape of each.
    """
    leaves = [0] * len(shapes)
    if parameter == "in_shardings":
        args, by_name = (tuple(leaves), None) if tree is None else tree.unflatten(leaves)
        if by_name:
            raise ShardingError(
                "jit with in_shardings expected arguments by position; got "
                f"{', '.join(by_name)} by name"
            )
        whole = tuple(shardings) if isinstance(shardings, list) else shardings
        places = tree_leaves(tree_broadcast(whole, args, is_leaf=_is_place), is_leaf=_is_place)
    else:
        result = 0 if tree is None else tree.unflatten(leaves)
        spread = tree_broadcast(shardings, result, is_leaf=_is_place)
        places = tree_leaves(spread, is_leaf=_is_place)
    for place in places:
        spec = place.spec if isinstance(place, NamedSharding) else place
        if isinstance(spec, PartitionSpec) and PartitionSpec.UNCONSTRAINED in spec:
            raise ShardingError(
                f"jit expected {parameter} without UNCONSTRAINED, which is for "
                f"lax.with_sharding_constraint; got {place!r}"
            )
    return [
        None if place is None else placement_of(place, parameter, shape=shape)
        for place, shape in zip(places, shapes, strict=False)  # the core looks at how many
    ]


def _is_place(x):
    return x is None or isinstance(x, PartitionSpec)


def from_parts(shape, dtype, placement, parts):
    """An Array of what the devices of this process hold, NumPy arrays or Arrays on one device."""
    from weft.runtime import buffers, devices

    held = []
    for (device, _, _), part in zip(_core.shards(placement, shape, True), parts, strict=True):
        if not isinstance(part, _core.Array):
            part = _core.explicit_asarray(np.asarray(part))
        own = devices.placement_of(device, placement.memory)
        held.append(_core.commit(part, own)._buffer)
    return buffers.assemble(shape, dtype, placement, held)
