"""Between PJRT buffers and the host: read-back, copies between devices, DLPack.

jaxlib's own read-back of a fresh array tries to import jax; the ways used here never do.
"""

import jaxlib
import numpy as np
from jaxlib import _jax

from weft import _core

_HAS_TO_NUMPY = hasattr(_jax.ArrayImpl, "_to_np_array_did_copy")  # jaxlib 0.11.2 and later
_DLPACK_KINDS = {  # element types that the buffer protocol lacks, by width: same bits, other name
    1: np.uint8,
    2: np.uint16,
}


class _Capsule:
    """A DLPack producer for one capsule on the CPU."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return (1, 0)


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
    # Sub-byte dtypes take one byte an element on the host, as in NumPy.
    size = count * dtype.itemsize
    raw = (ctypes.c_char * size).from_address(buffer.unsafe_buffer_pointer())
    return np.frombuffer(bytes(raw), dtype=dtype).reshape(shape)


def copy_to_device(buffer, device_list, sharding):
    """A copy of a buffer on another device."""
    return _jax.batched_copy_array_to_devices_with_sharding(
        [buffer], [device_list], [sharding], [_jax.ArrayCopySemantics.ALWAYS_COPY]
    )[0]


def to_dlpack(buffer):
    """A DLPack capsule that shares the buffer's memory."""
    return _jax.buffer_to_dlpack_managed_tensor(buffer)


def from_dlpack(producer, device_index, device):
    """An Array of a DLPack producer's values; shares its memory where the alignment allows."""
    capsule = producer.__dlpack__()
    buffer = _jax.dlpack_managed_tensor_to_buffer(capsule, device, None)
    shape, dtype = tuple(buffer.shape), np.dtype(buffer.dtype)
    return _core.wrap_buffer(buffer, shape, dtype, False, device_index, True)


def jaxlib_version():
    """Version of the jaxlib in use, as a tuple of ints."""
    return tuple(int(p) for p in jaxlib.__version__.split(".")[:3] if p.isdigit())
