"""Where arrays lie."""

from weft import _core
from weft._placement import placement_of
from weft.errors import NotImplementedRuleError
from weft.tree_util import tree_broadcast, tree_map


def with_sharding_constraint(x, shardings):
    """The tree of arrays, split as `shardings` says.

    In a function that is traced it has no effect: XLA chooses how the values of programs are split.

    Args:
      x: tree of arrays.
      shardings: a device of `weft.devices()`, a sharding, or a PartitionSpec where a mesh is set;
        or a tree of such, of which `x` may go on below.

    Raises:
      ValueError: for a sharding that an array does not fit.
    """
    places = tree_broadcast(shardings, x, is_leaf=lambda place: place is None)
    return tree_map(lambda leaf, place: _put(leaf, place, "with_sharding_constraint"), x, places)


def placed(x, device):
    """An array on a device, to which it is committed; as it is if that is None."""
    return x if device is None else _put(x, device, "device:")


def _put(leaf, place, what):
    placement = placement_of(place, what)
    value = _core.asarray(leaf)
    return value if isinstance(value, _core.Tracer) else _core.commit(value, placement)


def without_sharding(sharding, function, parameter="out_sharding"):
    """Raises for a sharding that a function would have to give its result."""
    if sharding is not None:
        raise NotImplementedRuleError(
            f"[{function}] expected {parameter} to be None, since XLA chooses how the values of "
            f"a program are split; got {sharding!r}"
        )
