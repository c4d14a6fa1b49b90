"""Functions of the top-level package: programs as values, devices, transfers."""

import numpy as np

from weft import _core
from weft._jit import jit
from weft._recording import function_name
from weft._staging import ShapeDtypeStruct
from weft._surface import public_function
from weft.dtypes import is_key
from weft.runtime import devices as _devices
from weft.tree_util import tree_leaves, tree_map


def make_jaxpr(fun, static_argnums=(), return_shape=False):
    """A function that returns the traced program of `fun` instead of running it.

    `str()` of the result is the program in jaxpr notation. Arguments may be ShapeDtypeStructs.

    Args:
      fun: a function of arrays or trees of arrays.
      static_argnums: positions of compile-time arguments.
      return_shape: also return the tree of ShapeDtypeStruct of the results.
    """
    jitted = jit(fun, static_argnums=static_argnums)

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
    """
    return list(_devices.devices(backend))


def local_devices(backend=None):
    """The devices of this process."""
    return [d for d in devices(backend) if d.process_index == process_index()]


def device_count(backend=None):
    """Number of devices of a platform."""
    return len(devices(backend))


def local_device_count(backend=None):
    """Number of devices of this process."""
    return len(local_devices(backend))


def process_index():
    """The number of this process among those that share the devices."""
    return _devices.devices()[0].client.process_index()


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
      device: one of `weft.devices()`, or None.
      src: ignored: an array knows where it is.
      donate: whether arrays that are copied to another device are deleted.
      may_alias: False for copies also of what is on the device already.
    """
    index = None if device is None else _core.device_index(device)
    if donate and may_alias is False:
        raise ValueError("device_put expected donate or may_alias=False, not both")

    def put(leaf):
        value = _core.explicit_asarray(leaf)
        if isinstance(value, _core.Tracer):
            return value
        result = value if index is None else _core.commit(value, index)
        if may_alias is False and result is leaf:
            return _core.copy_array(result)
        if donate and isinstance(leaf, _core.Array) and leaf.device != result.device:
            leaf.delete()
        return result

    return tree_map(put, x)


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


def live_arrays():
    """The arrays whose buffers are alive in this process."""
    return _core.live_arrays()


def clear_caches():
    """Forgets every compiled program and what functions under `jit` have traced."""
    _core.clear_caches()


memory_stats = _devices.memory_stats

__all__ = [
    "ShapeDtypeStruct",
    "block_until_ready",
    "clear_caches",
    "default_backend",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "eval_shape",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "make_jaxpr",
    "memory_stats",
    "process_index",
]
