"""Registries of rules under the names that users of JAX know.

Thin: they set and read the slots of `weft.extend.core.Primitive`.
"""

from weft._surface import public as _public
from weft.interpreters import ad, batching, mlir

__all__ = ["ad", "batching", "mlir"]
__getattr__, __dir__ = _public(__name__, __all__)
