"""Values that several processes exchange, and places where they wait for one another.

Every process calls these functions in the same order. Values of one process that they exchange pass
through the coordinator (docs/distributed.md): they are for keys, figures, settings and the like.
Arrays that are large belong on the devices of all processes; what of them is asked for here moves
between the devices.
"""

import contextlib
import itertools
import json
import math
from typing import Any as _Any

import ml_dtypes
import numpy as np

from weft import _core
from weft._assembly import make_array_from_process_local_data, make_array_from_single_device_arrays
from weft._placement import parts_of
from weft._surface import open_to_users as _open_to_users, public as _public
from weft._transfer import device_put
from weft.errors import ProcessFailureError as ProcessFailureError
from weft.runtime import preemption as _preemption, processes as _processes
from weft.sharding import Mesh, NamedSharding, PartitionSpec
from weft.tree_util import (
    keystr,
    tree_broadcast,
    tree_flatten,
    tree_flatten_with_path,
    tree_map,
    tree_unflatten,
)

__all__ = [
    "ProcessFailureError",
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "live_devices",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]
__getattr__, __dir__ = _public(__name__, __all__)

_TIMEOUT = 1200.0  # seconds that processes wait for one another
_exchanges = itertools.count()


def _host_value(function, leaf):
    """A leaf as a NumPy array, of its own dtype."""
    if isinstance(leaf, _core.Tracer):
        raise TypeError(f"{function} expected arrays with values; got {leaf}")
    if isinstance(leaf, _core.Array):
        return np.asarray(_core.explicit_value(_whole(leaf)))
    value = np.asarray(leaf)
    if value.dtype.kind in "OSUMm":
        raise TypeError(f"{function} expected arrays and numbers; got {leaf!r}")
    return value


def _whole(leaf):
    """An array, all of which each of the processes that have a part of it gets."""
    if leaf._is_readable:
        return leaf
    return device_put(leaf, NamedSharding(leaf.sharding.mesh, PartitionSpec()))


def _is_spread(leaf):
    return isinstance(leaf, _core.Array) and not leaf.is_fully_addressable


def _packed(arrays):
    """Arrays as bytes: their dtypes and shapes as JSON, and the elements of all."""
    head = json.dumps([[a.dtype.name, a.shape] for a in arrays]).encode()
    return b"".join([head, b"\0", *(np.ascontiguousarray(a).tobytes() for a in arrays)])


def _unpacked(data):
    head, _, rest = data.partition(b"\0")
    arrays, at = [], 0
    for name, shape in json.loads(head):
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        count = math.prod(shape)
        arrays.append(np.frombuffer(rest, dtype, count, at).reshape(shape))
        at += count * dtype.itemsize
    return arrays


def _exchange(arrays, sources):
    """What the processes `sources` give, lists of arrays; every process calls this."""
    joined = _processes.joined()
    key = f"weft/exchange/{next(_exchanges)}"
    if joined.process_id in sources:
        joined.put(f"{key}/{joined.process_id}", _packed(arrays))
    given = [_unpacked(joined.take(f"{key}/{i}", _TIMEOUT)) for i in sources]
    joined.barrier(key, _TIMEOUT)
    if joined.process_id in sources:
        joined.delete(f"{key}/{joined.process_id}")
    return given


def broadcast_one_to_all(in_tree: _Any, is_source: bool | None = None) -> _Any:
    """The tree of arrays of one process, in all processes, as NumPy arrays of their own dtypes.

    Args:
      in_tree: a tree of arrays and numbers, in every process of the same structure, shapes and
        dtypes.
      is_source: True in the one process whose values count; None is process 0. Ignored where
        there is one process only.

    Raises ValueError if the trees differ or if not one process is the source, ProcessFailureError
    if a process fails.

    Examples:
      >>> from weft.experimental import multihost_utils
      >>> multihost_utils.broadcast_one_to_all(wnp.arange(3))
      array([0, 1, 2], dtype=int32)
    """
    leaves, treedef = tree_flatten(in_tree)
    arrays = [_host_value("broadcast_one_to_all", leaf) for leaf in leaves]
    joined = _processes.joined()
    if joined is None:
        return tree_unflatten(treedef, arrays)
    source = 0
    if is_source is not None:
        said = _exchange([np.array(bool(is_source))], range(joined.num_processes))
        found = [i for i, (each,) in enumerate(said) if each]
        if len(found) != 1:
            raise ValueError(
                f"broadcast_one_to_all expected one process with is_source=True; got {found}"
            )
        (source,) = found
    (given,) = _exchange(arrays, [source])
    _check_alike("broadcast_one_to_all", in_tree, arrays, given, source)
    return tree_unflatten(treedef, given)


def _check_alike(function, tree, arrays, given, process):
    ours = [(a.shape, a.dtype) for a in arrays]
    theirs = [(a.shape, a.dtype) for a in given]
    if len(ours) != len(theirs):
        raise ValueError(
            f"{function} expected trees of one structure; this process has {len(ours)} leaves, "
            f"process {process} has {len(theirs)}"
        )
    for (path, _), own, other in zip(tree_flatten_with_path(tree)[0], ours, theirs, strict=True):
        if own != other:
            raise ValueError(
                f"{function} expected one shape and dtype at in_tree{keystr(path)}; this process "
                f"has {own[1]}{list(own[0])}, process {process} has {other[1]}{list(other[0])}"
            )


def process_allgather(in_tree: _Any, tiled: bool = False) -> _Any:
    """The trees of arrays of all processes, as one tree of NumPy arrays.

    Of an array that is spread over several processes, each gets all of it.

    Args:
      in_tree: a tree of arrays and numbers, in every process of the same structure, shapes and
        dtypes.
      tiled: whether the arrays of the processes are joined along their first axis; otherwise they
        are stacked along a new one. Scalars are stacked, and stay scalars where there is one
        process only.

    Raises ValueError if the trees differ and, without `tiled`, for an array that is spread;
    ProcessFailureError if a process fails.

    Examples:
      >>> from weft.experimental import multihost_utils
      >>> multihost_utils.process_allgather(wnp.arange(3)).tolist()
      [[0, 1, 2]]
    """
    leaves, treedef = tree_flatten(in_tree)
    spread = [_is_spread(leaf) for leaf in leaves]
    if any(spread) and not tiled:
        raise ValueError(
            "process_allgather expected tiled=True for arrays of which processes have parts; got "
            f"{leaves[spread.index(True)].sharding}"
        )
    arrays = [_host_value("process_allgather", leaf) for leaf in leaves]
    joined = _processes.joined()
    if joined is None:
        return tree_unflatten(treedef, arrays if tiled else [a[None] for a in arrays])
    # Of arrays that are spread each has all by now.
    own = [np.empty(0) if is_spread else a for a, is_spread in zip(arrays, spread, strict=True)]
    given = _exchange(own, range(joined.num_processes))
    for process, other in enumerate(given):
        _check_alike("process_allgather", in_tree, own, other, process)

    def together(value, is_spread, parts):
        if is_spread:
            return value
        return np.concatenate(parts) if tiled and parts[0].ndim else np.stack(parts)

    return tree_unflatten(treedef, list(map(together, arrays, spread, zip(*given, strict=True))))


def _over_specs(function, convert, tree, mesh, pspecs):
    """`convert(leaf, sharding)` of each leaf of a tree, of which `pspecs` is a prefix."""
    if not isinstance(mesh, Mesh):
        raise TypeError(f"{function} expected a Mesh; got {mesh!r}")
    if pspecs is None:
        raise ValueError(f"{function} expected PartitionSpecs; got None: P() repeats an array")
    specs = tree_broadcast(pspecs, tree, is_leaf=lambda x: isinstance(x, PartitionSpec))
    return tree_map(lambda leaf, spec: convert(leaf, NamedSharding(mesh, spec)), tree, specs)


def host_local_array_to_global_array(local_inputs: _Any, global_mesh: Mesh, pspecs: _Any) -> _Any:
    """Arrays over the devices of all processes, from what each process has of them.

    Args:
      local_inputs: a tree of arrays and numbers: what the devices of this process hold, put
        together. Along axes of the mesh that lead to other processes, each gives its own part.
      global_mesh: a Mesh, in which the devices of a process are a block.
      pspecs: PartitionSpecs of the global arrays, a prefix of the tree.

    Arrays that are spread over several processes already are handed back. Raises ValueError for
    None among `pspecs` and for arrays that cannot be so split.
    """

    def convert(leaf, sharding):
        if _is_spread(leaf):
            return leaf
        return make_array_from_process_local_data(sharding, leaf)

    name = "host_local_array_to_global_array"
    return _over_specs(name, convert, local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs: _Any, global_mesh: Mesh, pspecs: _Any) -> _Any:
    """Arrays over the devices of this process, of what it has of arrays over all devices.

    Args:
      global_inputs: a tree of arrays.
      global_mesh: a Mesh, in which the devices of a process are a block.
      pspecs: PartitionSpecs of the arrays, a prefix of the tree: how they are split before, over
        `global_mesh`, and after, over its part in this process.

    Arrays of this process alone are handed back. Raises ValueError for None among `pspecs` and for
    arrays that cannot be so split.
    """
    local = global_mesh.local_mesh if isinstance(global_mesh, Mesh) else None

    def convert(leaf, sharding):
        if not _is_spread(leaf):
            return leaf
        parts = parts_of(device_put(leaf, sharding))
        own = NamedSharding(local, sharding.spec)
        blocks = own._num_blocks(leaf.ndim)
        shape = tuple(n * size for n, size in zip(blocks, parts[0].shape, strict=True))
        return make_array_from_single_device_arrays(shape, own, parts)

    name = "global_array_to_host_local_array"
    return _over_specs(name, convert, global_inputs, global_mesh, pspecs)


def sync_global_devices(name: str) -> None:
    """Waits until every process is here. Raises AssertionError if they give different names.

    Examples:
      >>> from weft.experimental import multihost_utils
      >>> multihost_utils.sync_global_devices("ready")
    """
    joined = _processes.joined()
    if joined is not None:
        joined.barrier(f"sync_global_devices({name})", _TIMEOUT)


@contextlib.contextmanager
def live_devices(devices):
    """In the `with` block: those of the devices whose processes have not failed, a list.

    Args:
      devices: a list of devices, as of `weft.devices()`.

    Raises RuntimeError where `weft.distributed.initialize` has not been called. In the block a
    process that fails raises ProcessFailureError in the others, as elsewhere.
    """
    joined = _processes.joined()
    if joined is None:
        raise RuntimeError("live_devices expected weft.distributed.initialize to have been called")
    alive = joined.alive()
    yield [d for d in devices if d.process_index in alive]


def assert_equal(in_tree: _Any, fail_message: str = "") -> None:
    """Raises AssertionError, with `fail_message`, unless all processes have the same tree.

    Examples:
      >>> from weft.experimental import multihost_utils
      >>> multihost_utils.assert_equal(wnp.arange(3), "processes differ")
    """
    leaves, _ = tree_flatten(in_tree)
    arrays = [_host_value("assert_equal", leaf) for leaf in leaves]
    joined = _processes.joined()
    if joined is None:
        return
    (given,) = _exchange(arrays, [0])
    try:
        _check_alike("assert_equal", in_tree, arrays, given, 0)
    except ValueError as error:
        raise AssertionError(f"{fail_message} {error}".strip()) from None
    paths = tree_flatten_with_path(in_tree)[0]
    for (path, _), own, first in zip(paths, arrays, given, strict=True):
        if own.tobytes() != first.tobytes():
            raise AssertionError(
                f"{fail_message} expected the value of process 0 at in_tree{keystr(path)}, "
                f"{first}; process {joined.process_id} has {own}".strip()
            )


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes are to save their state now, at step `step_id`, and end.

    Once a process has been sent SIGTERM, this is true in all processes at one and the same step,
    which is soon. Every process calls it at every step, from the same one on; from the first call
    on, SIGTERM does not end the process. False where there is one process only.
    """
    joined = _processes.joined()
    if joined is None:
        return False
    joined.check()
    return _preemption.reached_sync_point(joined.client, step_id)


_open_to_users(__name__)
