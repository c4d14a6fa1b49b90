"""Written by tools/stubs; do not edit."""

from weft.interpreters import ad as ad
from weft.interpreters import batching as batching
from weft.interpreters import mlir as mlir


