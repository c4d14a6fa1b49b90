"""Where arrays lie."""

from weft import _core
from weft._placement import placement_of
from weft._staging import typeof
from weft.tree_util import tree_broadcast, tree_map

_EXPLICIT = 1  # the core's number of AxisType.Explicit


def with_sharding_constraint(x, shardings):
    """The tree of arrays, split as `shardings` says.

    Values of a function that is traced are split so where the program runs, which is on the devices
    of the mesh; dimensions whose entry is `PartitionSpec.UNCONSTRAINED` as XLA likes. Cotangents
    are split like the values, and under vmap the mapped axis as XLA likes. Other arrays are moved,
    as by `weft.device_put`.

    Args:
      x: tree of arrays.
      shardings: a device of `weft.devices()`, a sharding, or a PartitionSpec where a mesh is set;
        or a tree of such, of which `x` may go on below.

    Raises:
      ValueError: for a sharding that an array does not fit, and for axes that a shard_map around
        the call has taken. DeviceMismatchError, when the program is called, for a mesh of other
        devices than its arguments are committed to.
    """

    def put(leaf, place):
        placement = placement_of(place, "with_sharding_constraint")
        value = _core.asarray(leaf)
        if isinstance(value, _core.Tracer):
            _check_explicit(value, placement)
            return _core.bind("sharding_constraint", value, sharding=placement)
        return _core.commit(value, placement)

    places = tree_broadcast(shardings, x, is_leaf=lambda place: place is None)
    return tree_map(put, x, places)


def _check_explicit(tracer, placement):
    split = _core.split_of(tracer)
    if split is None or set(placement.mesh.types) != {_EXPLICIT}:
        return
    open_dims = [i for i, (_, is_open) in enumerate(placement.dims) if is_open]
    ndim = len(tracer.shape)
    own, wanted = (
        [axes for i, (axes, _) in enumerate(_entries(s, ndim)) if i not in open_dims]
        for s in (split, placement)
    )
    if own != wanted:
        raise AssertionError(
            "with_sharding_constraint expected a value that is split as it says, as the axes of "
            f"the mesh are explicit; got {typeof(tracer)} and {placement}\n  weft.reshard moves it."
        )


def _entries(sharding, ndim):
    return (*sharding.dims, *[((), False)] * (ndim - len(sharding.dims)))


def constrained(tracer, placement):
    """A traced value that is split over a mesh; as it is if that is a device."""
    if not placement.mesh.names:
        return tracer
    return _core.bind("sharding_constraint", tracer, sharding=placement)


def placed(x, device):
    """An array on a device, to which it is committed; as it is if that is None."""
    if device is None:
        return x
    placement = placement_of(device, "device:")
    value = _core.asarray(x)
    if isinstance(value, _core.Tracer):
        return constrained(value, placement)
    return _core.commit(value, placement)


def split_like(x, like):
    """An array that is split over explicit axes as another one is."""
    split = _core.split_of(like)
    if split is None or split.is_replicated:
        return x
    if isinstance(x, _core.Tracer):
        return _core.bind("sharding_constraint", x, sharding=split)
    return _core.commit(x, split) if split.mesh.devices else x


def split_as(sharding, function, make):
    """make(), whose result is split as a parameter of the function says."""
    from weft._explicit import sharded

    return sharded(sharding, function, make)
