"""Written by tools/stubs; do not edit."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from weft.scipy.sparse import linalg as linalg

F = TypeVar("F", bound=Callable[..., Any])


