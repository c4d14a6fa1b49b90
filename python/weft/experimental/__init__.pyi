"""Written by tools/stubs; do not edit."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from weft.experimental import checkify as checkify
from weft.experimental import jet as jet
from weft.experimental import multihost_utils as multihost_utils
from weft.experimental import ode as ode

F = TypeVar("F", bound=Callable[..., Any])

def io_callback(callback: Any, result_shape_dtypes: Any, *args: Any, ordered: Any = False, **kwargs: Any) -> Any: ...
