"""Arrays of other libraries, by the DLPack protocol."""

import numpy as _np

from weft._surface import open_to_users as _open_to_users, public as _public

__all__ = ["from_dlpack", "is_supported_dtype"]
__getattr__, __dir__ = _public(__name__, __all__)

_SUPPORTED = frozenset(
    [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    + ["bool", "bfloat16", "float16", "float32", "float64", "complex64", "complex128"]
)


def from_dlpack(external_array, device=None, copy=None):
    """An array from one of another library; as `weft.numpy.from_dlpack`.

    Args:
      external_array: an object with `__dlpack__` and `__dlpack_device__`.
      device: one of `weft.devices()`, or None for where the array lies.
      copy: whether to copy; None copies only if the memory cannot be shared.

    Examples:
      >>> weft.dlpack.from_dlpack(np.arange(3, dtype="int32"))
      Array([0, 1, 2], dtype=int32)
    """
    from weft.runtime.buffers import from_dlpack as share

    return share(external_array, device, copy)


def is_supported_dtype(dtype):
    """Whether arrays of a dtype can be exchanged. TypeError for what is no dtype.

    Examples:
      >>> weft.dlpack.is_supported_dtype("float32"), weft.dlpack.is_supported_dtype("int4")
      (True, False)
    """
    if dtype is None:
        raise TypeError("[is_supported_dtype] expected a dtype; got None")
    return _np.dtype(dtype).name in _SUPPORTED


_open_to_users(__name__)
