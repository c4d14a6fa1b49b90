"""Kernels of NVIDIA's newest GPUs, which weft does not make: the names explain themselves."""

from weft._surface import public as _public

__all__ = []
__getattr__, __dir__ = _public(__name__, __all__)
