"""Written by tools/stubs; do not edit."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from weft.experimental import checkify as checkify
from weft.experimental import jet as jet
from weft.experimental import ode as ode
from weft.experimental import shard_map as shard_map

F = TypeVar("F", bound=Callable[..., Any])

def io_callback(callback: Any, result_shape_dtypes: Any, *args: Any, ordered: Any = False, **kwargs: Any) -> Any: ...
