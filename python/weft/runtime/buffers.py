"""Between PJRT buffers and the host: read-back, copies between devices, DLPack.

jaxlib's own read-back of a fresh array tries to import jax; the ways used here never do.
"""

import functools
import operator
import sys
import types
from typing import Any

import numpy as np
from jaxlib import _jax

from weft import _core
from weft.errors import AttributeValueError, DTypeError, OperandError
from weft.runtime import devices, dlpack
from weft.runtime.compile import Module, compile_module

# Device types of DLPack by platform.
_DLPACK_CPU = 1
_DLPACK_TYPES = {"cpu": _DLPACK_CPU, "gpu": 2, "cuda": 2, "rocm": 10}
_ALIGNMENT = 64  # bytes, of memory that jaxlib shares
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


def to_numpy(buffer, dtype, shape, indices=()):
    """The buffer's value as a read-only NumPy array; waits for it. Zero-copy where possible.

    `indices` are, for a buffer on several devices, the parts that those of this process hold: a
    list of tuples of slices, None where each has all of it.
    """
    if _HAS_TO_NUMPY:
        return buffer._to_np_array_did_copy()[0]
    if indices != ():
        return _assembled(buffer, dtype, shape, indices)
    try:
        # The dtype of jaxlib's format for 64 bits is equal to NumPy's int64 and not the same, for
        # other extension modules at least.
        return np.asarray(memoryview(buffer)).view(dtype)
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
        program, handler, there = _widening(dtype.name, shape)
        moved = copy_to_device(buffer, *there)
        (wide,) = program.execute_sharded([moved]).consume_with_handlers([handler])
        value = np.asarray(memoryview(wide)).astype(dtype)
    else:
        value = dlpack.read(to_dlpack(buffer))
    value.flags.writeable = False
    return value


@functools.lru_cache(maxsize=256)
def _widening(name, shape):
    """The program that converts elements of less than a byte, its result's handler, its place."""
    own, wide, wide_name = _WIDER[name]
    dims = "".join(f"{n}x" for n in shape)
    types = f"tensor<{dims}{own}>", f"tensor<{dims}{wide}>"
    text = (
        f"func.func public @main(%x: {types[0]}) -> {types[1]} {{\n"
        f"  %y = stablehlo.convert %x : ({types[0]}) -> {types[1]}\n"
        f"  return %y : {types[1]}\n}}\n"
    )
    device = devices.own_cpu()
    sharding = _core.jaxlib_sharding(devices.placement_of(device), len(shape))
    handler = make_handler(devices.Aval(shape, np.dtype(wide_name)), sharding)
    there = _jax.DeviceList((device,)), sharding
    module = Module(text, (_core.device_index(device),))
    return compile_module(module).executable, handler, there


def _assembled(buffer, dtype, shape, indices):
    """The value of a buffer whose parts lie on several devices."""
    parts = shards(buffer)
    if indices is None:
        return to_numpy(parts[0], dtype, shape)
    value = np.empty(shape, dtype)
    for index, part in zip(indices, parts, strict=True):
        try:
            value[index] = np.asarray(memoryview(part))
        except BufferError:
            value[index] = _to_numpy_otherwise(part, dtype, value[index].shape)
    value.flags.writeable = False
    return value


class _StandIns:
    """jaxlib asks jax for the sharding and the type of each part of a buffer that it hands out.

    While this is entered it finds modules here that make them, so that jax is not imported, nor
    looked for once per part. If jax was imported, it is asked; weft.as_jax is not jax.
    """

    NAMES = ("jax", "jax._src", "jax._src.sharding_impls", "jax.core")

    def __init__(self):
        self._modules: dict[str, Any] = {name: types.ModuleType(name) for name in self.NAMES}
        for module in self._modules.values():
            module.__path__ = []
        impls = self._modules["jax._src.sharding_impls"]
        impls.make_single_device_sharding = self._sharding
        core = self._modules["jax.core"]
        core.ShapedArray = lambda shape, dtype, *_, **__: devices.Aval(shape, dtype)

    @staticmethod
    @functools.cache  # devices last as long as the process
    def _sharding(device, **_):
        return _core.jaxlib_sharding(devices.placement_of(device), 0)

    def __enter__(self):
        self._hidden = None
        if "jax._src.sharding_impls" not in sys.modules:
            self._hidden = {}
            if "jax" in sys.modules:
                self._hidden = {n: sys.modules[n] for n in self.NAMES if n in sys.modules}
            sys.modules.update(self._modules)

    def __exit__(self, *exception):
        if self._hidden is not None:
            for name in self.NAMES:
                sys.modules.pop(name, None)
            sys.modules.update(self._hidden)


def shards(buffer):
    """What each device of this process holds of a buffer: a list of buffers on one device."""
    with _StandIns():
        return buffer._arrays


def assemble(shape, dtype, sharding, parts):
    """An Array of buffers on one device each, in the order of the devices' numbers."""
    handler = make_handler(devices.Aval(shape, dtype), _core.jaxlib_sharding(sharding, len(shape)))
    return _core.wrap_buffer(handler(parts), shape, dtype, False, sharding, True)


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
    """A copy of a buffer on other devices, as many; on the same ones where they are not all own."""
    own = [d for d in device_list if d.process_index == d.client.process_index()]
    if len(own) < len(device_list):
        copies = [
            copy_to_device(part, _jax.DeviceList((device,)), _StandIns._sharding(device))
            for part, device in zip(shards(buffer), own, strict=True)
        ]
        return make_handler(buffer.aval, sharding)(copies)
    return _jax.batched_copy_array_to_devices_with_sharding(
        [buffer], [device_list], [sharding], [_jax.ArrayCopySemantics.ALWAYS_COPY]
    )[0]


def dlpack_device(array):
    """(device type, number) of an array's device, by DLPack's table."""
    if array.sharding.num_devices > 1:
        raise BufferError(f"expected an array on one device; got {array.sharding}")
    device = array.device
    if device.platform not in _DLPACK_TYPES:
        raise BufferError(f"expected a device that DLPack has; got {device}")
    kind = _DLPACK_TYPES[device.platform]
    return kind, 0 if kind == _DLPACK_CPU else device.local_hardware_id


def _two_ints(pair, name):
    try:
        first, second = pair
        return operator.index(first), operator.index(second)
    except (TypeError, ValueError):
        raise OperandError(f"[__dlpack__] expected two integers as {name}; got {pair!r}") from None


def export(array, stream, max_version, dl_device, copy):
    """What `Array.__dlpack__` gives."""
    own = dlpack_device(array)
    if stream is not None:
        if isinstance(stream, bool) or not isinstance(stream, int):
            raise OperandError(f"[__dlpack__] expected an integer for stream; got {stream!r}")
        if own[0] == _DLPACK_CPU or stream == 0 or stream < -1:
            raise AttributeValueError(
                f"[__dlpack__] expected a stream of {array.device}"
                f"{', which has none' if own[0] == _DLPACK_CPU else ''}; got {stream}"
            )
    is_versioned = max_version is not None and _two_ints(max_version, "max_version") >= (1, 0)
    wanted = own if dl_device is None else _two_ints(dl_device, "dl_device")
    _check_exchanged(array.dtype)
    if wanted == own:
        copied = bool(copy)
        array = _core.copy_array(array) if copied else array
    elif wanted != (_DLPACK_CPU, 0):
        there = sorted({own, (_DLPACK_CPU, 0)})
        raise BufferError(f"[__dlpack__] expected dl_device to be one of {there}; got {wanted}")
    elif copy is False:
        raise AttributeValueError(f"[__dlpack__] expected copy=True or None from {own} to {wanted}")
    else:
        copied = True
        array = _core.commit(array, devices.placement_of(devices.own_cpu()))
    array.block_until_ready()
    capsule = to_dlpack(array._buffer)
    return _core.versioned_capsule(capsule, copied) if is_versioned else capsule


def _check_exchanged(dtype):
    """Raises BufferError for a dtype of which other libraries would read something else."""
    if dtype.names:
        raise BufferError("[__dlpack__] expected a dtype that DLPack has; got float0")
    if dtype.name in _WIDER:
        raise BufferError(
            f"[__dlpack__] expected a dtype of at least 8 bits; got {dtype}\n"
            f"  Convert it with .astype({_WIDER[dtype.name][2]!r})."
        )


def to_dlpack(buffer):
    """A DLPack capsule that shares the buffer's memory."""
    try:
        return _jax.buffer_to_dlpack_managed_tensor(buffer)
    except _jax.JaxRuntimeError as error:
        raise BufferError(f"__dlpack__ expected a dtype that DLPack has; {error}") from None


def from_dlpack(producer, device, copy):
    """An Array of a CPU tensor of another library, through its `__dlpack__`.

    The memory is shared where its alignment allows (64 bytes) and the dtype is not narrowed, so the
    other library must not write to it while the array is in use.
    """
    # By way of NumPy: jaxlib's own import would import jax to find a sharding.
    for method in ("__dlpack__", "__dlpack_device__"):
        if not callable(getattr(type(producer), method, None)):
            raise OperandError(
                f"[from_dlpack] expected an object that has {method}; got {type(producer).__name__}"
            )
    kind, number = producer.__dlpack_device__()
    if kind != _DLPACK_CPU:
        raise ValueError(f"from_dlpack expected a tensor on the CPU; got device {(kind, number)}")
    tensor, shared = dlpack.Imported(producer), True
    try:
        host = np.from_dlpack(tensor)
    except (BufferError, RuntimeError) as error:
        host, shared = dlpack.read(tensor.capsule), False
        if host is None:
            raise DTypeError(f"[from_dlpack] expected a dtype that weft has; {error}") from None
    dtype = _core.canonical_dtype(host.dtype)
    aligned = host.ctypes.data % _ALIGNMENT == 0 and host.flags.c_contiguous
    if copy is False and not (shared and aligned and host.dtype == dtype):
        raise AttributeValueError(
            f"[from_dlpack] expected memory that can be shared, as copy=False: aligned to "
            f"{_ALIGNMENT} bytes, the last axis fastest, of a dtype that needs no conversion; got "
            f"{host.dtype}{list(host.shape)} at {host.ctypes.data:#x} with strides {host.strides}"
        )
    if copy or host.dtype != dtype:
        host = host.astype(dtype)
    cpu = _core.device_index(devices.own_cpu())
    index = None if device is None else _core.device_index(device)
    if index in (None, cpu):
        return _put_shared(host, cpu, index == cpu)
    if copy is False:
        raise AttributeValueError(f"[from_dlpack] expected copy=True or None from cpu to {device}")
    return _core.commit(_put_shared(host, cpu, False), devices.placement_of(device))


def _put_shared(host, index, committed):
    """An Array that shares the memory of a NumPy array if that is aligned to 64 bytes."""
    device = devices.device_at(index)
    placed = devices.placement_of(device)
    sharding = _core.jaxlib_sharding(placed, host.ndim)
    buffer = _jax.batched_device_put(
        devices.Aval(host.shape, host.dtype), sharding, [host], [device], True, enable_x64=True
    )
    return _core.wrap_buffer(buffer, host.shape, host.dtype, False, placed, committed)
