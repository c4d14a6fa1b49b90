"""Where arrays lie."""

from weft import _core
from weft._placement import placement_of
from weft.errors import NotImplementedRuleError
from weft.tree_util import tree_broadcast, tree_map


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
            return _core.bind("sharding_constraint", value, sharding=placement)
        return _core.commit(value, placement)

    places = tree_broadcast(shardings, x, is_leaf=lambda place: place is None)
    return tree_map(put, x, places)


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


def without_sharding(sharding, function, parameter="out_sharding"):
    """Raises for a sharding that a function would have to give its result."""
    if sharding is not None:
        raise NotImplementedRuleError(
            f"[{function}] expected {parameter} to be None, since XLA chooses how the values of "
            f"a program are split; got {sharding!r}"
        )
