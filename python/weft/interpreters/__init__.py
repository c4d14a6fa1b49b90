"""Registries of rules under the names that users of JAX know.

Thin: they set and read the slots of `weft.extend.core.Primitive`.
"""

from weft.interpreters import ad as ad, batching as batching, mlir as mlir
