"""Arrays over several devices, from their parts."""

import numpy as np

from weft import _core
from weft._arguments import static_shape
from weft._placement import from_parts, map_placed, placement_of, sharding_of
from weft._transfer import device_put
from weft._types.keys import keys
from weft.dtypes import is_key
from weft.errors import ArgumentTypeError, ShardingError
from weft.runtime import devices as _devices
from weft.runtime.listing import process_index
from weft.sharding import PartitionSpec, Sharding
from weft.tree_util import tree_broadcast, tree_leaves


def make_array_from_callback(shape, sharding, data_callback, dtype=None):
    """An array from what a function returns for each part of it.

    Args:
      shape: of the array.
      sharding: how it is split; the array is committed to its devices.
      data_callback: gets an index (a tuple of slices) and returns that part, an array of NumPy or
        weft or a number. It is called once for parts that several devices hold.
      dtype: of the array; it must be that of the parts. None takes theirs.

    Raises ValueError for a part of another shape or dtype, TypeError for what is no sharding.

    Examples:
      >>> from weft.sharding import SingleDeviceSharding
      >>> sharding = SingleDeviceSharding(weft.devices()[0])
      >>> weft.make_array_from_callback((4,), sharding, lambda index: np.arange(4)[index])
      Array([0, 1, 2, 3], dtype=int32)
    """
    function = "make_array_from_callback"
    shape, made, parts = static_shape(shape, function), {}, []
    for index in _local_indices(sharding, shape, function):
        key = tuple((i.start, i.stop) for i in index)
        if key not in made:
            made[key] = data_callback(index)
        parts.append(made[key])
    return _joined(shape, sharding, parts, dtype, function)


def make_array_from_single_device_arrays(shape, sharding, arrays, *, dtype=None):
    """An array from its parts on the devices.

    Args:
      shape: of the array.
      sharding: how it is split; the array is committed to its devices.
      arrays: a list of the parts, one for each device of this process, on that device: in any
        order.
      dtype: of the array; it must be that of the parts. None takes theirs.

    Raises ValueError for a part of another shape or dtype and for another number of parts,
    TypeError for what is no list of arrays.

    Examples:
      >>> part = wnp.arange(3)
      >>> weft.make_array_from_single_device_arrays((3,), part.sharding, [part])
      Array([0, 1, 2], dtype=int32)
    """
    function = "make_array_from_single_device_arrays"
    shape = static_shape(shape, function)
    count = len(_local_indices(sharding, shape, function))
    if not isinstance(arrays, (list, tuple)):
        raise ArgumentTypeError(
            f"{function} expected a list of arrays; got {type(arrays).__name__}"
        )
    if len(arrays) != count:
        raise ShardingError(
            f"{function} expected {count} arrays, one per device of {sharding}; got {len(arrays)}"
        )
    if not all(isinstance(x, (_core.Array, _core.Tracer)) for x in arrays):
        raise ArgumentTypeError(
            f"{function} expected arrays; got {', '.join(type(x).__name__ for x in arrays)}"
        )
    if count > 1:
        by_device = {x.device: x for x in arrays}
        devices = [d for d, _, _ in _core.shards(sharding._placement, shape, True)]
        if set(by_device) != set(devices):
            raise ShardingError(
                f"{function} expected an array on each of {devices}; got some on {list(by_device)}"
            )
        arrays = [by_device[d] for d in devices]
    return _joined(shape, sharding, arrays, dtype, function)


def make_array_from_process_local_data(sharding, local_data, global_shape=None):
    """A tree of arrays from what each process has of them.

    Along each dimension the data of this process is either what its devices hold, block by block
    in the order of the array, or all there is, the same in every process.

    Args:
      sharding: how the arrays are split: a sharding, a PartitionSpec under `weft.set_mesh`, a
        device; or a tree of such, of which `local_data` may go on below.
      local_data: an array of NumPy or weft, or a tree of such.
      global_shape: the shape of the array, or a tree of such, of which `local_data` may go on
        below. None takes the data of every process to be what its devices hold, which must be as
        many blocks in each process, and the same ones or others.

    Raises:
      TypeError: `sharding` is none of these.
      ValueError: the data does not have the shape of what the devices of this process hold, or
        `global_shape` is None and cannot be found from the data.

    Examples:
      >>> from weft.sharding import SingleDeviceSharding
      >>> sharding = SingleDeviceSharding(weft.devices()[0])
      >>> weft.make_array_from_process_local_data(sharding, np.ones((2, 3)))
      Array([[1., 1., 1.],
             [1., 1., 1.]], dtype=float32)
    """
    function = "make_array_from_process_local_data"

    def make(data, place, shape):
        if not isinstance(place, (Sharding, PartitionSpec, _devices.Device)):
            raise ArgumentTypeError(f"{function} expected a sharding; got {place!r}")
        sharding = sharding_of(placement_of(place, function))
        if not isinstance(data, _core.Array):
            data = np.asarray(data)
        shape, index_of = _from_local(sharding, data.shape, shape, function)
        value = data if is_key(data.dtype) else np.asarray(data)
        parts = [value[index_of(index)] for index in _local_indices(sharding, shape, function)]
        return _joined(shape, sharding, parts, data.dtype, function)

    def is_shape(x):
        return x is None or isinstance(x, tuple)

    if is_shape(global_shape):
        return map_placed(lambda x, place: make(x, place, global_shape), local_data, sharding)
    shapes = iter(
        tree_leaves(tree_broadcast(global_shape, local_data, is_leaf=is_shape), is_leaf=is_shape)
    )
    return map_placed(lambda x, place: make(x, place, next(shapes)), local_data, sharding)


def _from_local(sharding, local, shape, function):
    """The shape of an array, and what takes an index in it to one in the data of this process."""
    _require_sharding(sharding, function)
    if len(local) < len(sharding._core.dims):
        sharding.check_compatible_aval(local)  # raises
    blocks = sharding._num_blocks(len(local))
    by_process = sharding._blocks_of_processes(len(local))
    own = [sorted(held) for held in by_process.get(process_index(), [()] * len(local))]
    if shape is None:
        uneven = [i for i, held in enumerate(_zip(*by_process.values())) if not _are_even(held)]
        if uneven:
            raise ShardingError(
                f"{function} expected global_shape, as processes hold other numbers of blocks, or "
                f"blocks in common, along dimensions {uneven} of {sharding}"
            )
        if any(
            n * len(held) and size * n % len(held) for size, n, held in _zip(local, blocks, own)
        ):
            raise ShardingError(
                f"{function} expected data that {[len(held) for held in own]} blocks divide, as "
                f"{sharding} has for this process; got shape {local}"
            )
        shape = tuple(size * n // max(1, len(held)) for size, n, held in _zip(local, blocks, own))
    shape = static_shape(shape, function)
    if len(shape) != len(local):
        raise ShardingError(
            f"{function} expected data of {len(shape)} dimensions; got shape {local}"
        )
    sharding.check_compatible_aval(shape)
    places = []  # per dimension None: as in the array; else by number of block where it begins
    for i, (size, whole, n, held) in enumerate(_zip(local, shape, blocks, own)):
        part = whole // n
        if size != whole and size != part * len(held):
            raise ShardingError(
                f"{function} expected {whole} elements along dimension {i}, all of the array, or "
                f"the {part * len(held)} that the devices of this process hold; got shape {local} "
                f"for {shape}"
            )
        places.append(None if size == whole else {b: k * part for k, b in enumerate(held)})

    def index_of(index):
        out = []
        for at, block, whole, n in _zip(places, index, shape, blocks):
            if at is not None:
                begin = at[(block.start or 0) * n // whole]
                block = slice(begin, begin + whole // n)
            out.append(block)
        return tuple(out)

    return shape, index_of


def _are_even(sets):
    """Whether sets are of one size, and any two the same or without common elements."""
    return all(len(s) == len(t) and (s == t or not s & t) for s in sets for t in sets)


def _zip(*rows):
    return zip(*rows, strict=True)


def _require_sharding(sharding, function):
    if not isinstance(sharding, Sharding):
        raise ArgumentTypeError(f"{function} expected a sharding; got {sharding!r}")


def _local_indices(sharding, shape, function):
    _require_sharding(sharding, function)
    return [index for _, _, index in _core.shards(sharding._placement, shape, True)]


def _joined(shape, sharding, parts, dtype, function):
    if len(parts) == 1 and sharding.is_fully_addressable:
        return _whole(shape, sharding, parts[0], dtype, function)
    parts = [x if isinstance(x, _core.Array) else np.asarray(x) for x in parts]
    if not parts and dtype is None:
        raise ShardingError(
            f"{function} expected dtype, as this process holds no part of the array"
        )
    wanted = sharding.shard_shape(shape)
    kind = _core.canonical_dtype(parts[0].dtype if dtype is None else dtype)
    for part in parts:
        if part.shape != wanted:
            raise ShardingError(
                f"{function} expected parts of shape {wanted}, of {shape} on "
                f"{sharding}; got {part.shape}"
            )
        if _core.canonical_dtype(part.dtype) != kind:
            raise ShardingError(f"{function} expected parts of dtype {kind}; got {part.dtype}")
    if not is_key(kind):
        return from_parts(shape, kind, sharding._placement, parts)
    words = [keys.words(part) for part in parts]
    shape = (*shape, *words[0].shape[len(shape) :])
    joined = from_parts(shape, words[0].dtype, sharding._placement, words)
    return keys.wrapped(joined, kind)


def _whole(shape, sharding, part, dtype, function):
    array = device_put(part, sharding)
    if not isinstance(array, (_core.Array, _core.Tracer)):
        raise ArgumentTypeError(f"{function} expected an array; got {type(part).__name__}")
    if array.shape != shape:
        raise ShardingError(f"{function} expected a part of shape {shape}; got {array.shape}")
    if dtype is not None and array.dtype != _core.canonical_dtype(dtype):
        raise ShardingError(f"{function} expected parts of dtype {dtype}; got {array.dtype}")
    return array
