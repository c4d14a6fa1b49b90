"""Written by tools/stubs; do not edit."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from weft.scipy.spatial import transform as transform

F = TypeVar("F", bound=Callable[..., Any])


