"""What libraries that follow the Python array API standard ask of a namespace."""

import importlib

import numpy as np

from weft._surface import public_methods
from weft.dtypes import canonicalize_dtype, default_float, default_int, isdtype
from weft.errors import AttributeValueError
from weft.runtime.listing import devices

_NAMES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "float32",
    "float64",
    "complex64",
    "complex128",
)


VERSIONS = ("2024.12", "2025.12")  # of the standard; in the later one more is a tuple
module_name = "weft.numpy"  # weft.as_jax gives it the name that libraries know


def array_namespace(self, /, *, api_version=None):
    """weft.numpy, which follows the Python array API standard.

    Raises AttributeValueError for another version of the standard than those of VERSIONS (or None).
    """
    if api_version not in (None, *VERSIONS):
        raise AttributeValueError(
            f"expected api_version None or one of {VERSIONS}; got {api_version!r}"
        )
    return importlib.import_module(module_name)


@public_methods
class ArrayNamespaceInfo:
    """What `weft.numpy.__array_namespace_info__()` returns: what the namespace can do."""

    def capabilities(self):
        """Dict of what there is: masks that set the shape of a result work outside of traces."""
        return {"boolean indexing": True, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self):
        """None: arrays are made on the default device."""
        return

    def devices(self):
        """The devices that `device` arguments take, None for the default one among them."""
        return (None, *devices())

    def default_dtypes(self, *, device=None):
        """Dict from kind to the dtype that is used where none is given.

        Args:
          device: ignored, it is the same on all.
        """
        return {
            "real floating": default_float(),
            "complex floating": canonicalize_dtype("complex128"),
            "integral": default_int(),
            "indexing": default_int(),
        }

    def dtypes(self, *, device=None, kind=None):
        """Dict from name to dtype, of those of the standard that are enabled.

        Args:
          device: ignored, they are the same on all.
          kind: only dtypes of this kind, see `isdtype`; None for all.
        """
        there = {name: np.dtype(name) for name in _NAMES}
        return {
            name: dtype
            for name, dtype in there.items()
            if canonicalize_dtype(dtype) == dtype and (kind is None or isdtype(dtype, kind))
        }
