"""Reads DLPack capsules of dtypes that NumPy's own import refuses: bfloat16 and the float8 kinds.

The structures are those of DLPack's header (github.com/dmlc/dlpack), with a version and without.
Values are copied; the capsule keeps its tensor.
"""

import ctypes
from typing import Any

import numpy as np


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),  # in elements; null: dense, last axis fastest
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_NAMES = {  # (type code, bits) of DLPack's table
    (4, 16): "bfloat16",
    (7, 8): "float8_e3m4",
    (8, 8): "float8_e4m3",
    (9, 8): "float8_e4m3b11fnuz",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
}


class Imported:
    """What a producer gives, asked once: what it refuses is its own error."""

    def __init__(self, producer):
        try:
            self.capsule = producer.__dlpack__(max_version=(1, 0))
        except TypeError:  # it follows the protocol of before versions
            self.capsule = producer.__dlpack__()
        self._device = producer.__dlpack_device__()

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return self._device


def address(capsule):
    """Where the first element of the tensor in a capsule is."""
    tensor = _tensor(capsule)
    return tensor.data + tensor.byte_offset


def _tensor(capsule):
    pointer_of, name_of = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_GetName
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    name = name_of(capsule)
    pointer = pointer_of(capsule, name)
    if name == b"dltensor_versioned":
        return _Versioned.from_address(pointer).tensor
    return _Tensor.from_address(pointer)


def read(capsule) -> Any:
    """A copy of the CPU tensor in a capsule as a NumPy array of an ml_dtypes dtype; None for other
    dtypes."""
    import ml_dtypes

    tensor = _tensor(capsule)
    name = _NAMES.get((tensor.dtype.code, tensor.dtype.bits))
    if name is None or tensor.dtype.lanes != 1:
        return None
    dtype = np.dtype(getattr(ml_dtypes, name))
    shape = tuple(tensor.shape[: tensor.ndim])
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = None
    extent = int(np.prod(shape, dtype=np.int64))
    if tensor.strides:
        elements = tensor.strides[: tensor.ndim]
        extent = 1 + sum((n - 1) * s for n, s in zip(shape, elements, strict=True))
        strides = tuple(s * dtype.itemsize for s in elements)
    memory: Any = (ctypes.c_char * (extent * dtype.itemsize)).from_address(
        tensor.data + tensor.byte_offset
    )
    return np.ndarray(shape, dtype, memory, strides=strides).copy()
