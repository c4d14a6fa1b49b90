"""Where arrays lie. Programs run on one device."""

from weft import _core
from weft._placement import placement_of
from weft.errors import NotImplementedRuleError
from weft.tree_util import tree_broadcast, tree_map


def with_sharding_constraint(x, shardings):
    """The tree of arrays, on the device that `shardings` names.

    In a function that is traced the values are those of one program, which runs on one device: they
    are returned as they are.

    Args:
      x: tree of arrays.
      shardings: a device of `weft.devices()`, or an object whose `device_set` has one; or a tree of
        such, of which `x` may go on below.

    Raises:
      NotImplementedError: for arrays that would lie on several devices.
    """
    places = tree_broadcast(shardings, x, is_leaf=lambda place: place is None)
    return tree_map(_constrained, x, places)


def placed(x, device):
    """An array on a device, to which it is committed; as it is if that is None."""
    return x if device is None else _constrained(x, device)


def _constrained(leaf, place):
    placement = placement_of(place, "with_sharding_constraint")
    value = _core.asarray(leaf)
    return value if isinstance(value, _core.Tracer) else _core.commit(value, placement)


def without_sharding(sharding, function, parameter="out_sharding"):
    """Programs run on one device: there is nothing to shard over."""
    if sharding is not None:
        raise NotImplementedRuleError(
            f"[{function}] expected {parameter} to be None, since programs do not run on several "
            f"devices yet; got {sharding!r}"
        )
