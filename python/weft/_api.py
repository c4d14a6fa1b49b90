"""Functions of the top-level package: programs as values, devices, transfers."""

import contextlib
import functools
import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from weft import _core
from weft._arguments import axis_text, static_int, static_shape
from weft._jit import jit
from weft._recording import check_callable, function_name
from weft._surface import named_after, public_function
from weft._types.avals import ShapeDtypeStruct, typeof
from weft.dtypes import is_key
from weft.errors import ArgumentTypeError, AttributeValueError, ShardingError
from weft.memory import Space
from weft.runtime import devices as _devices, memory as _memory
from weft.tree_util import tree_broadcast, tree_flatten, tree_leaves, tree_map


def make_jaxpr(fun, static_argnums=(), axis_env=None, return_shape=False):
    """A function that returns the traced program of `fun` instead of running it.

    `str()` of the result is the program in jaxpr notation. Arguments may be ShapeDtypeStructs.

    Args:
      fun: a function of arrays or trees of arrays.
      static_argnums: positions of compile-time arguments.
      axis_env: pairs of a name and a size, of axes over which `fun` is mapped.
      return_shape: also return the tree of ShapeDtypeStruct of the results.

    Examples:
      >>> print(weft.make_jaxpr(lambda x: wnp.sin(x) * 2)(1.0))
      { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }
    """
    check_callable(fun, "make_jaxpr")
    jitted: Any = jit(fun, static_argnums=static_argnums)

    axes = tuple((axis_text(name), operator.index(size)) for name, size in axis_env or ())

    @public_function
    @named_after(fun)
    def traced_program(*args, **kwargs):
        traced = _core.with_axes(axes, False, lambda: jitted.trace(*args, **kwargs))
        return (traced.jaxpr, traced.out_info) if return_shape else traced.jaxpr

    named: Any = traced_program
    named.__name__ = named.__qualname__ = f"make_jaxpr({function_name(fun)})"
    return traced_program


def eval_shape(fun, *args, **kwargs):
    """Shapes and dtypes that `fun` would return: a tree of ShapeDtypeStruct. Nothing runs.

    What `fun` returns may have ShapeDtypeStructs in it. Of the arguments only types matter: objects
    with `shape` and `dtype` stand for arrays of these.

    Examples:
      >>> weft.eval_shape(wnp.dot, wnp.ones((2, 3)), wnp.ones((3, 4)))
      ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """
    check_callable(fun, "eval_shape")
    in_shard_map = bool(_core.varying_axes())
    if isinstance(fun, _core.JitFunction) and not in_shard_map:
        return fun.eval_shape(*args, **kwargs)
    manual = []

    @named_after(fun)
    def described(*args, **kwargs):
        result = tree_map(_value_of, fun(*args, **kwargs))
        if in_shard_map:
            manual.extend(typeof(leaf).manual_axis_type for leaf in tree_leaves(result))
        return result

    types = jit(described).eval_shape(*args, **kwargs)
    return types if not manual else _with_manual(types, manual)


def _with_manual(types, manual):
    leaves, tree = tree_flatten(types)
    pairs = zip(leaves, manual, strict=True)
    return tree.unflatten([leaf.update(manual_axis_type=own) for leaf, own in pairs])


def _value_of(leaf):
    """A result of a function of which only the types matter."""
    if not isinstance(leaf, ShapeDtypeStruct):
        return leaf
    from weft.lax import full  # which is made of what is in this module

    zeros = full(leaf.shape, 0, leaf.dtype)
    return _core.astype(zeros, leaf.dtype, True) if leaf.weak_type else zeros


def devices(backend=None):
    """The devices of a platform ("cpu", "gpu"), by default of the first that is present.

    Raises RuntimeError for a platform that is not.

    `backend` is the name of the platform.

    Examples:
      >>> weft.devices("cpu")[0].platform
      'cpu'
    """
    return list(_devices.devices(backend))


def local_devices(process_index=None, backend=None, host_id=None):
    """The devices of a process, by default of this one.

    `host_id` is `process_index` by a name that JAX has deprecated. Raises ValueError for a process
    that is not there.

    `backend` names the platform, as for `devices`.

    Examples:
      >>> weft.local_devices() == weft.devices()
      True
    """
    wanted = host_id if process_index is None else process_index
    if wanted is None:
        wanted = _devices.devices(backend)[0].client.process_index()
    if wanted not in process_indices(backend):
        raise AttributeValueError(f"local_devices: there is no process {wanted!r}")
    return [d for d in devices(backend) if d.process_index == wanted]


def device_count(backend=None):
    """Number of devices of a platform.

    `backend` names it, as for `devices`.

    Examples:
      >>> weft.device_count() == len(weft.devices())
      True
    """
    return len(devices(backend))


def local_device_count(backend=None):
    """Number of devices of this process.

    `backend` names the platform, as for `devices`.

    Examples:
      >>> weft.local_device_count() == len(weft.local_devices())
      True
    """
    return len(local_devices(backend=backend))


def process_index(backend=None):
    """The number of this process among those that share the devices of a platform.

    `backend` names the platform, as for `devices`.

    Examples:
      >>> weft.process_index()
      0
    """
    return _devices.devices(backend)[0].client.process_index()


def process_count(backend=None):
    """How many processes share the devices of a platform.

    `backend` names it, as for `devices`.

    Examples:
      >>> weft.process_count()
      1
    """
    return len(process_indices(backend))


def process_indices(backend=None):
    """The numbers of the processes that share the devices of a platform, a list.

    `backend` names it, as for `devices`.

    Examples:
      >>> weft.process_indices()
      [0]
    """
    return sorted({device.process_index for device in devices(backend)})


def host_count(backend=None):
    """`process_count`, by a name that JAX has deprecated.

    `backend` is the same.

    Examples:
      >>> weft.host_count()
      1
    """
    return process_count(backend)


def host_id(backend=None):
    """`process_index`, by a name that JAX has deprecated.

    `backend` is the same.

    Examples:
      >>> weft.host_id()
      0
    """
    return process_index(backend)


def host_ids(backend=None):
    """`process_indices`, by a name that JAX has deprecated.

    `backend` is the same.

    Examples:
      >>> weft.host_ids()
      [0]
    """
    return process_indices(backend)


def default_backend():
    """Name of the platform that is used by default: "cpu" or "gpu".

    Examples:
      >>> weft.default_backend() in ("cpu", "gpu")
      True
    """
    name = _devices.platform_of(_core.current_device())
    return "gpu" if name == "cuda" else name


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


def live_arrays(platform=None):
    """The arrays whose buffers are alive in this process, on devices of a platform.

    Examples:
      >>> x = wnp.arange(3)
      >>> any(each is x for each in weft.live_arrays())
      True
    """
    wanted = set(devices(platform))
    return [a for a in _core.live_arrays() if a.devices() & wanted]


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


class ensure_compile_time_eval(contextlib.ContextDecorator):
    """Context manager: in a function that is traced, operations on known values run at once.

    Their results are arrays with values, of which shapes, indices and Python's `if` can be made.
    Operations on traced values are traced as ever.

    Examples:
      >>> @weft.jit
      ... def f(x):
      ...     with weft.ensure_compile_time_eval():
      ...         n = int(wnp.prod(wnp.array(x.shape)))
      ...     return wnp.full(2, n)
      >>> f(wnp.ones((2, 3)))
      Array([6, 6], dtype=int32, weak_type=True)
    """

    def _recreate_cm(self):
        return type(self)()

    def __enter__(self):
        self._depth = _core.begin_eager()

    def __exit__(self, *exception):
        _core.end_eager(self._depth)


def print_environment_info(return_string=False):
    """Prints the versions of weft and of what it runs on, or returns the text: `return_string`.

    Examples:
      >>> "weft" in weft.print_environment_info(return_string=True)
      True
    """
    from weft.cli.about import versions

    text = versions()
    if return_string:
        return text
    print(text)
    return None


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

    from weft._placement import map_placed, placement_of, sharding_of
    from weft.sharding import PartitionSpec, Sharding

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
    from weft.sharding import Sharding

    if not isinstance(sharding, Sharding):
        raise ArgumentTypeError(f"{function} expected a sharding; got {sharding!r}")


def _local_indices(sharding, shape, function):
    _require_sharding(sharding, function)
    return [index for _, _, index in _core.shards(sharding._placement, shape, True)]


def _joined(shape, sharding, parts, dtype, function):
    if len(parts) == 1 and sharding.is_fully_addressable:
        return _whole(shape, sharding, parts[0], dtype, function)
    from weft._placement import from_parts

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
    from weft.random import key_data, wrap_key_data

    words = [key_data(part) for part in parts]
    shape = (*shape, *words[0].shape[len(shape) :])
    joined = from_parts(shape, words[0].dtype, sharding._placement, words)
    return wrap_key_data(joined, dtype=kind)


def _whole(shape, sharding, part, dtype, function):
    array = device_put(part, sharding)
    if not isinstance(array, (_core.Array, _core.Tracer)):
        raise ArgumentTypeError(f"{function} expected an array; got {type(part).__name__}")
    if array.shape != shape:
        raise ShardingError(f"{function} expected a part of shape {shape}; got {array.shape}")
    if dtype is not None and array.dtype != _core.canonical_dtype(dtype):
        raise ShardingError(f"{function} expected parts of dtype {dtype}; got {array.dtype}")
    return array


def make_mesh(axis_shapes, axis_names, axis_types=None, *, devices=None):
    """A mesh of the first devices there are.

    Args:
      axis_shapes, axis_names: sizes and names of the axes, tuples of one length.
      axis_types: a weft.sharding.AxisType per axis; None is Auto for all.
      devices: those to take them from; None is `weft.devices()`.

    Raises ValueError for more positions than devices.

    Examples:
      >>> mesh = weft.make_mesh((1,), ("rows",))
      >>> mesh.shape
      OrderedDict([('rows', 1)])
    """
    from weft.sharding import Mesh

    if not isinstance(axis_shapes, Iterable) or isinstance(axis_shapes, str):
        raise ArgumentTypeError(f"make_mesh expected a tuple of sizes; got {axis_shapes!r}")
    sizes = tuple(static_int(n, "make_mesh", "each of axis_shapes") for n in axis_shapes)
    if min(sizes, default=1) < 1:
        raise ShardingError(f"make_mesh expected axis_shapes of at least 1; got {sizes}")
    found = list(_devices.devices() if devices is None else devices)
    count = math.prod(sizes)
    if count > len(found):
        raise ShardingError(
            f"make_mesh expected axis_shapes of at most the {len(found)} devices; got {sizes}, "
            f"which are {count}"
        )
    grid = np.empty(count, dtype=object)
    grid[:] = found[:count]
    return Mesh(grid.reshape(sizes), axis_names, axis_types)


def clear_caches():
    """Forgets every compiled program and what functions under `jit` have traced.

    Memory of the host that is not in use goes back to the system.

    Examples:
      >>> double = weft.jit(lambda x: 2 * x)
      >>> double(1.0).item()
      2.0
      >>> weft.clear_caches()
      >>> double(1.0).item()
      2.0
    """
    _core.clear_caches()
    _memory.give_back()


memory_stats = _devices.memory_stats
