"""Arrays to devices and back, and waiting for them."""

import functools
from typing import Any

import numpy as np

from weft import _core
from weft.dtypes import is_key
from weft.errors import AttributeValueError
from weft.memory import Space
from weft.runtime import devices as _devices
from weft.tree_util import tree_leaves, tree_map


def device_put(x, device=None, *, src=None, donate=False, may_alias=None):
    """The tree with every leaf an Array on `device`.

    Without a device, arrays stay where they are and other leaves go to the default device. With
    one, the result is committed to it: computations with it run there, and mixing it with arrays
    committed to other devices is an error. In a function that is traced a sharding over a mesh is
    that of `weft.lax.with_sharding_constraint`, of whose devices and those of a device only the
    kind of memory counts: the values are those of one program.

    Args:
      x: a tree of arrays and numbers.
      device: one of `weft.devices()`, a sharding, a PartitionSpec under `weft.set_mesh`, a
        `weft.memory.Space`, or None; or a tree of such, of which `x` may go on below. A Space moves
        arrays to another memory of the devices that they are on.
      src: ignored: an array knows where it is.
      donate: whether arrays that are copied to another device are deleted; a bool, or a tree of
        bools, of which `x` may go on below.
      may_alias: False for copies also of what is on the device already; or a tree like `donate`.

    Raises ValueError for `donate` together with `may_alias`.

    Examples:
      >>> x = weft.device_put({"a": 1.0, "b": np.ones(2)}, weft.devices()[0])
      >>> x["a"].committed, x["b"].shape
      (True, (2,))
    """
    from weft._placement import map_placed, placement_of
    from weft.lax._sharding import constrained, moved

    def put_on(leaf, place, donate, may_alias):
        if isinstance(place, Space):
            return _in_memory(leaf, place, functools.partial(put, donate=donate, alias=may_alias))
        if place is not None:
            place = placement_of(place, "device_put", np.shape(leaf))
        return put(leaf, place, donate, may_alias)

    def put(leaf, placement, donate, alias):
        if donate and alias is not None:
            raise AttributeValueError(
                f"device_put expected donate or may_alias={alias}, not both; got donate={donate}"
            )
        is_host = isinstance(leaf, np.ndarray) and leaf.ndim
        if is_host and placement is not None and not placement.unreduced:
            return _core.put_explicitly(leaf, placement)
        value = _core.explicit_asarray(leaf)
        if isinstance(value, _core.Tracer):
            value = _core.apart(value)  # no number any more where the caller gave one
            return value if placement is None else moved(constrained(value, placement), placement)
        result: Any = value if placement is None else _core.commit(value, placement)
        source: Any = leaf
        if alias is False and isinstance(leaf, _core.Array) and result._buffer is source._buffer:
            return _core.copy_array(result)
        if donate and isinstance(leaf, _core.Array) and leaf is not result:
            leaf.delete()
        return result

    # Spreading trees of places and options over `x` takes three times as long as the rest.
    is_placed = device is not None and not isinstance(device, _devices.Device)
    if is_placed or not all(o is None or isinstance(o, bool) for o in (donate, may_alias)):
        return map_placed(put_on, x, device, donate, may_alias)
    placement = None if device is None else _devices.placement_of(device)
    return tree_map(lambda leaf: put(leaf, placement, donate, may_alias), x)


def _in_memory(leaf, space, put):
    """put() of a value in a memory of the devices that it is on."""
    from weft.lax._sharding import in_memory

    if space is Space.Any:
        return put(leaf, None)
    value = _core.explicit_asarray(leaf)
    kind = "pinned_host" if space is Space.Host else None
    if isinstance(value, _core.Tracer):
        return in_memory(value, kind)
    return put(leaf, value.sharding.with_memory_kind(kind)._placement)


def device_get(x):
    """The tree with every array as a NumPy array, but for random keys; waits for the values.

    Python's numbers, traced values and other leaves stay as they are.

    Examples:
      >>> weft.device_get({"a": wnp.arange(3), "b": 4})
      {'a': array([0, 1, 2], dtype=int32), 'b': 4}
    """

    def get(leaf):
        if isinstance(leaf, _core.Tracer):
            return leaf
        if not isinstance(leaf, _core.Array):
            return np.asarray(leaf) if hasattr(leaf, "__array__") else leaf
        return leaf if is_key(leaf.dtype) else _core.explicit_value(leaf)

    return tree_map(get, x)


def block_until_ready(x):
    """Waits until every array of the tree has its value; returns the tree.

    Examples:
      >>> weft.block_until_ready([wnp.arange(3), 1.0])
      [Array([0, 1, 2], dtype=int32), 1.0]
    """
    for leaf in tree_leaves(x):
        if isinstance(leaf, _core.Array):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x):
    """Starts copying the arrays of a tree to the host; returns the tree.

    Values of arrays are fetched when they are read, so this checks only that none was deleted. Of
    other leaves it calls a method of this name, if they have one.

    Examples:
      >>> weft.copy_to_host_async({"a": wnp.arange(2)})
      {'a': Array([0, 1], dtype=int32)}
    """
    for leaf in tree_leaves(x):
        if not isinstance(leaf, _core.Tracer) and hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x
