"""Written by tools/stubs; do not edit."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from weft.extend import core as core
from weft.extend import random as random

F = TypeVar("F", bound=Callable[..., Any])


