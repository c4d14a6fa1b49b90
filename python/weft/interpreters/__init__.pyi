"""Written by tools/stubs; do not edit."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from weft.interpreters import ad as ad
from weft.interpreters import batching as batching
from weft.interpreters import mlir as mlir

F = TypeVar("F", bound=Callable[..., Any])


