"""Functions of the top-level package: programs as values, devices, transfers."""

import contextlib
from typing import Any

import numpy as np

from weft import _core
from weft._jit import jit
from weft._recording import function_name
from weft._surface import public_function
from weft.dtypes import is_key
from weft.runtime import devices as _devices
from weft.tree_util import tree_broadcast, tree_leaves, tree_map


def make_jaxpr(fun, static_argnums=(), return_shape=False):
    """A function that returns the traced program of `fun` instead of running it.

    `str()` of the result is the program in jaxpr notation. Arguments may be ShapeDtypeStructs.

    Args:
      fun: a function of arrays or trees of arrays.
      static_argnums: positions of compile-time arguments.
      return_shape: also return the tree of ShapeDtypeStruct of the results.
    """
    jitted: Any = jit(fun, static_argnums=static_argnums)

    @public_function
    def traced_program(*args, **kwargs):
        traced = jitted.trace(*args, **kwargs)
        return (traced.jaxpr, traced.out_info) if return_shape else traced.jaxpr

    traced_program.__name__ = f"make_jaxpr({function_name(fun)})"
    return traced_program


def eval_shape(fun, *args, **kwargs):
    """Shapes and dtypes that `fun` would return: a tree of ShapeDtypeStruct. Nothing runs."""
    jitted = fun if isinstance(fun, _core.JitFunction) else jit(fun)
    return jitted.eval_shape(*args, **kwargs)


def devices(backend=None):
    """The devices of a platform ("cpu", "gpu"), by default of the first that is present.

    Raises RuntimeError for a platform that is not.

    `backend` is the name of the platform.
    """
    return list(_devices.devices(backend))


def local_devices(process_index=None, backend=None, host_id=None):
    """The devices of a process, by default of this one.

    `host_id` is `process_index` by a name that JAX has deprecated. Raises ValueError for a process
    that is not there.

    `backend` names the platform, as for `devices`.
    """
    wanted = host_id if process_index is None else process_index
    if wanted is None:
        wanted = _devices.devices(backend)[0].client.process_index()
    if wanted not in process_indices(backend):
        raise ValueError(f"local_devices: there is no process {wanted!r}")
    return [d for d in devices(backend) if d.process_index == wanted]


def device_count(backend=None):
    """Number of devices of a platform.

    `backend` names it, as for `devices`.
    """
    return len(devices(backend))


def local_device_count(backend=None):
    """Number of devices of this process.

    `backend` names the platform, as for `devices`.
    """
    return len(local_devices(backend=backend))


def process_index(backend=None):
    """The number of this process among those that share the devices of a platform.

    `backend` names the platform, as for `devices`.
    """
    return _devices.devices(backend)[0].client.process_index()


def process_count(backend=None):
    """How many processes share the devices of a platform.

    `backend` names it, as for `devices`.
    """
    return len(process_indices(backend))


def process_indices(backend=None):
    """The numbers of the processes that share the devices of a platform, a list.

    `backend` names it, as for `devices`.
    """
    return sorted({device.process_index for device in devices(backend)})


def host_count(backend=None):
    """`process_count`, by a name that JAX has deprecated.

    `backend` is the same.
    """
    return process_count(backend)


def host_id(backend=None):
    """`process_index`, by a name that JAX has deprecated.

    `backend` is the same.
    """
    return process_index(backend)


def host_ids(backend=None):
    """`process_indices`, by a name that JAX has deprecated.

    `backend` is the same.
    """
    return process_indices(backend)


def default_backend():
    """Name of the platform that is used by default: "cpu" or "gpu"."""
    name = _devices.platform_of(_core.current_device())
    return "gpu" if name == "cuda" else name


def device_put(x, device=None, *, src=None, donate=False, may_alias=None):
    """The tree with every leaf an Array on `device`.

    Without a device, arrays stay where they are and other leaves go to the default device. With
    one, the result is committed to it: computations with it run there, and mixing it with arrays
    committed to another device is an error. In a function that is traced the values are those of
    one program, which runs on one device: they are returned as they are.

    Args:
      x: a tree of arrays and numbers.
      device: one of `weft.devices()`, a sharding over one, or None; or a tree of such, of which `x`
        may go on below.
      src: ignored: an array knows where it is.
      donate: whether arrays that are copied to another device are deleted.
      may_alias: False for copies also of what is on the device already.

    Raises ValueError for `donate` together with `may_alias=False`.
    """
    if donate and may_alias is False:
        raise ValueError("device_put expected donate or may_alias=False, not both")

    def put_on(leaf, place):
        return put(leaf, _devices.index_of(place, "device_put") if place is not None else None)

    def put(leaf, index):
        value = _core.explicit_asarray(leaf)
        if isinstance(value, _core.Tracer):
            return value
        result = value if index is None else _core.commit(value, index)
        if may_alias is False and result is leaf:
            return _core.copy_array(result)
        if donate and isinstance(leaf, _core.Array) and leaf.device != result.device:
            leaf.delete()
        return result

    if device is not None and not isinstance(device, _devices.Device):
        places = tree_broadcast(device, x, is_leaf=lambda place: place is None)
        return tree_map(put_on, x, places)
    index = None if device is None else _core.device_index(device)
    return tree_map(lambda leaf: put(leaf, index), x)


def device_get(x):
    """The tree with every array as a NumPy array, but for random keys; waits for the values."""

    def get(leaf):
        if not isinstance(leaf, _core.Array):
            return np.asarray(leaf)
        return leaf if is_key(leaf.dtype) else _core.explicit_value(leaf)

    return tree_map(get, x)


def block_until_ready(x):
    """Waits until every array of the tree has its value; returns the tree."""
    for leaf in tree_leaves(x):
        if isinstance(leaf, _core.Array):
            leaf.block_until_ready()
    return x


def live_arrays(platform=None):
    """The arrays whose buffers are alive in this process, on devices of a platform."""
    return [a for a in _core.live_arrays() if a.device in set(devices(platform))]


def copy_to_host_async(x):
    """Starts copying the arrays of a tree to the host; returns the tree.

    Values of arrays are fetched when they are read, so this checks only that none was deleted.
    """
    for leaf in tree_leaves(x):
        if isinstance(leaf, _core.Array):
            leaf.copy_to_host_async()
    return x


class ensure_compile_time_eval(contextlib.ContextDecorator):
    """Context manager: in a function that is traced, operations on known values run at once.

    Their results are arrays with values, of which shapes, indices and Python's `if` can be made.
    Operations on traced values are traced as ever.
    """

    def _recreate_cm(self):
        return type(self)()

    def __enter__(self):
        self._depth = _core.begin_eager()

    def __exit__(self, *exception):
        _core.end_eager(self._depth)


def print_environment_info(return_string=False):
    """Prints the versions of weft and of what it runs on, or returns the text: `return_string`."""
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
      sharding: a SingleDeviceSharding; the array is committed to its device.
      data_callback: gets an index (a tuple of slices) and returns that part, an array of NumPy or
        weft or a number.
      dtype: of the array; it must be that of the parts. None takes theirs.

    Raises ValueError for a part of another shape or dtype, TypeError for what is no sharding.
    """
    shape = tuple(shape)
    part = data_callback(_only_index(sharding, shape, "make_array_from_callback"))
    return _whole(shape, sharding, part, dtype, "make_array_from_callback")


def make_array_from_single_device_arrays(shape, sharding, arrays, *, dtype=None):
    """An array from its parts on the devices.

    Args:
      shape: of the array.
      sharding: a SingleDeviceSharding; the array is committed to its device.
      arrays: a list of the parts, of which there is one.
      dtype: of the array; it must be that of the parts. None takes theirs.

    Raises ValueError for a part of another shape or dtype and for another number of parts,
    TypeError for what is no list of arrays.
    """
    function = "make_array_from_single_device_arrays"
    shape = tuple(shape)
    _only_index(sharding, shape, function)
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"{function} expected a list of arrays; got {type(arrays).__name__}")
    if len(arrays) != 1:
        raise ValueError(f"{function} expected one array, for the one device; got {len(arrays)}")
    if not isinstance(arrays[0], (_core.Array, _core.Tracer)):
        raise TypeError(f"{function} expected arrays; got {type(arrays[0]).__name__}")
    return _whole(shape, sharding, arrays[0], dtype, function)


def make_array_from_process_local_data(sharding, local_data, global_shape=None):
    """A tree of arrays from what this process has of each, which is all of it.

    `global_shape` is None or the shape of `local_data`, or a tree of such. Raises ValueError for
    another shape.
    """

    def make(data, shape):
        function = "make_array_from_process_local_data"
        shape = np.shape(data) if shape is None else tuple(shape)
        _only_index(sharding, shape, function)
        return _whole(shape, sharding, data, None, function)

    if global_shape is None or not isinstance(local_data, (dict, list, tuple)):
        return tree_map(lambda data: make(data, global_shape), local_data)
    return tree_map(make, local_data, global_shape)


def _only_index(sharding, shape, function):
    from weft.sharding import Sharding

    if not isinstance(sharding, Sharding):
        raise TypeError(f"{function} expected a sharding; got {sharding!r}")
    (index,) = sharding.devices_indices_map(shape).values()
    return index


def _whole(shape, sharding, part, dtype, function):
    array = device_put(part, sharding)
    if not isinstance(array, (_core.Array, _core.Tracer)):
        raise TypeError(f"{function} expected an array; got {type(part).__name__}")
    if array.shape != shape:
        raise ValueError(f"{function} expected a part of shape {shape}; got {array.shape}")
    if dtype is not None and array.dtype != _core.canonical_dtype(dtype):
        raise ValueError(f"{function} expected parts of dtype {dtype}; got {array.dtype}")
    return array


def clear_caches():
    """Forgets every compiled program and what functions under `jit` have traced."""
    _core.clear_caches()


memory_stats = _devices.memory_stats
