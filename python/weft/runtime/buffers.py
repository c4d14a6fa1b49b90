"""Between PJRT buffers and the host: read-back, copies between devices, DLPack.

jaxlib's own read-back of a fresh array tries to import jax; the ways used here never do.
"""

import functools

import numpy as np
from jaxlib import _jax

from weft import _core
from weft.errors import DTypeError
from weft.runtime import devices, dlpack
from weft.runtime.compile import compile_text

_DLPACK_CPU = 1
_HAS_TO_NUMPY = hasattr(_jax.ArrayImpl, "_to_np_array_did_copy")  # jaxlib 0.11.2 and later
# Dtypes of less than a byte: their names in MLIR, and wider dtypes that hold their values.
_WIDER = {
    "int2": ("i2", "i8", "int8"),
    "int4": ("i4", "i8", "int8"),
    "uint2": ("ui2", "ui8", "uint8"),
    "uint4": ("ui4", "ui8", "uint8"),
    "float4_e2m1fn": ("f4E2M1FN", "f32", "float32"),
}


def make_handler(aval, sharding):
    """What makes a result of a program an array of jaxlib."""
    # jaxlib 0.10 checks shardings in Python unless told not to; later versions never do.
    skip = {} if _HAS_TO_NUMPY else {"_skip_checks": True}
    return _jax.array_result_handler(aval, sharding, True, **skip)


def to_numpy(buffer, dtype, shape):
    """The buffer's value as a read-only NumPy array; waits for it. Zero-copy where possible."""
    if _HAS_TO_NUMPY:
        return buffer._to_np_array_did_copy()[0]
    try:
        return np.asarray(memoryview(buffer))
    except BufferError:
        return _to_numpy_otherwise(buffer, dtype, shape)


def _to_numpy_otherwise(buffer, dtype, shape):
    """bfloat16, float8 and other dtypes that the buffer protocol cannot express (jaxlib 0.10)."""
    buffer.block_until_ready()
    if 0 in shape:
        return np.empty(shape, dtype)
    if buffer.platform() != "cpu":
        return buffer._single_device_array_to_np_array_did_copy()[0]
    if dtype.name in _WIDER:
        # No interface tells where these are: a program converts them.
        program, handler = _widening(dtype.name, shape)
        (wide,) = program.execute_sharded([buffer]).consume_with_handlers([handler])
        value = np.asarray(memoryview(wide)).astype(dtype)
    else:
        value = dlpack.read(to_dlpack(buffer))
    value.flags.writeable = False
    return value


@functools.lru_cache(maxsize=256)
def _widening(name, shape):
    """The program that converts elements of less than a byte, and its result's handler."""
    own, wide, wide_name = _WIDER[name]
    dims = "".join(f"{n}x" for n in shape)
    types = f"tensor<{dims}{own}>", f"tensor<{dims}{wide}>"
    text = (
        f"func.func public @main(%x: {types[0]}) -> {types[1]} {{\n"
        f"  %y = stablehlo.convert %x : ({types[0]}) -> {types[1]}\n"
        f"  return %y : {types[1]}\n}}\n"
    )
    index = _core.device_index(devices.devices("cpu")[0])
    device_list = _jax.DeviceList((devices.device_at(index),))
    sharding = _jax.GSPMDSharding(device_list, devices.replicated())
    handler = make_handler(devices.Aval(shape, np.dtype(wide_name)), sharding)
    return compile_text(text, index), handler


def pointer(array):
    """The address of an array's buffer."""
    buffer = array._buffer
    if array.dtype.name in _WIDER:
        raise DTypeError(f"unsafe_buffer_pointer expected elements of bytes; got {array.dtype}")
    if buffer.platform() != "cpu":
        return buffer.unsafe_buffer_pointer()
    buffer.block_until_ready()
    try:
        return np.asarray(memoryview(buffer)).ctypes.data
    except BufferError:
        return dlpack.address(to_dlpack(buffer))


def copy_to_device(buffer, device_list, sharding):
    """A copy of a buffer on another device."""
    return _jax.batched_copy_array_to_devices_with_sharding(
        [buffer], [device_list], [sharding], [_jax.ArrayCopySemantics.ALWAYS_COPY]
    )[0]


def to_dlpack(buffer):
    """A DLPack capsule that shares the buffer's memory."""
    try:
        return _jax.buffer_to_dlpack_managed_tensor(buffer)
    except _jax.JaxRuntimeError as error:
        raise BufferError(f"__dlpack__ expected a dtype that DLPack has; {error}") from None


def from_dlpack(producer):
    """An Array of a CPU tensor of another library, through its `__dlpack__`.

    The memory is shared where its alignment allows (64 bytes) and the dtype is not narrowed, so the
    other library must not write to it while the array is in use. Raises DTypeError for a dtype that
    weft does not have.
    """
    # By way of NumPy: jaxlib's own import would import jax to find a sharding.
    kind, number = producer.__dlpack_device__()
    if kind != _DLPACK_CPU:
        raise ValueError(f"from_dlpack expected a tensor on the CPU; got device {(kind, number)}")
    try:
        host = np.from_dlpack(producer)
    except (BufferError, RuntimeError) as error:
        host = dlpack.to_numpy(producer)
        if host is None:
            raise DTypeError(f"[from_dlpack] expected a dtype that weft has; {error}") from None
    dtype = _core.canonical_dtype(host.dtype)
    if host.dtype != dtype:
        host = host.astype(dtype)
    index = _core.device_index(devices.devices("cpu")[0])
    return _put_shared(host, index)


def _put_shared(host, index):
    """An Array that shares the memory of a NumPy array if that is aligned to 64 bytes."""
    device = devices.device_at(index)
    sharding = _jax.GSPMDSharding(_jax.DeviceList((device,)), devices.replicated())
    buffer = _jax.batched_device_put(
        devices.Aval(host.shape, host.dtype), sharding, [host], [device], True, enable_x64=True
    )
    return _core.wrap_buffer(buffer, host.shape, host.dtype, False, index, False)
