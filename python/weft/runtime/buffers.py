"""Between PJRT buffers and the host: read-back, copies between devices, DLPack.

jaxlib's own read-back of a fresh array tries to import jax; the ways used here never do.
"""

import numpy as np
from jaxlib import _jax

from weft import _core
from weft.errors import DTypeError
from weft.runtime import devices, dlpack

_DLPACK_CPU = 1
_HAS_TO_NUMPY = hasattr(_jax.ArrayImpl, "_to_np_array_did_copy")  # jaxlib 0.11.2 and later
_SUB_BYTE = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}  # bits


def to_numpy(buffer, dtype, shape):
    """The buffer's value as a read-only NumPy array; waits for it. Zero-copy where possible."""
    if _HAS_TO_NUMPY:
        return buffer._to_np_array_did_copy()[0]
    try:
        return np.asarray(memoryview(buffer))
    except BufferError:
        return _to_numpy_by_pointer(buffer, dtype, shape)


def _to_numpy_by_pointer(buffer, dtype, shape):
    """bfloat16, float8 and other dtypes that the buffer protocol cannot express (jaxlib 0.10)."""
    import ctypes

    buffer.block_until_ready()
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.empty(shape, dtype)
    if buffer.platform() != "cpu":
        # Through the host: a CPU copy of the buffer has a pointer that this process can read.
        return buffer._single_device_array_to_np_array_did_copy()[0]
    bits = _SUB_BYTE.get(dtype.name, 8 * dtype.itemsize)
    size = (count * bits + 7) // 8
    raw = bytes((ctypes.c_char * size).from_address(buffer.unsafe_buffer_pointer()))
    if bits >= 8:
        return np.frombuffer(raw, dtype=dtype).reshape(shape)
    # Packed, the first element in the low bits; NumPy has one element a byte.
    packed = np.frombuffer(raw, np.uint8)
    parts = np.stack([(packed >> shift) & (2**bits - 1) for shift in range(0, 8, bits)], axis=-1)
    return parts.reshape(-1)[:count].view(dtype).reshape(shape)


def copy_to_device(buffer, device_list, sharding):
    """A copy of a buffer on another device."""
    return _jax.batched_copy_array_to_devices_with_sharding(
        [buffer], [device_list], [sharding], [_jax.ArrayCopySemantics.ALWAYS_COPY]
    )[0]


def to_dlpack(buffer):
    """A DLPack capsule that shares the buffer's memory."""
    return _jax.buffer_to_dlpack_managed_tensor(buffer)


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
