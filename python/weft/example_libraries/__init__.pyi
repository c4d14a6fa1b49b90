"""Written by tools/stubs; do not edit."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from weft.example_libraries import optimizers as optimizers
from weft.example_libraries import stax as stax

F = TypeVar("F", bound=Callable[..., Any])


