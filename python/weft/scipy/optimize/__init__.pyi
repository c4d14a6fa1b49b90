"""Written by tools/stubs; do not edit."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from weft.scipy.optimize._minimize import OptimizeResults as OptimizeResults

F = TypeVar("F", bound=Callable[..., Any])

def minimize(fun: Any, x0: Any, args: Any = ..., *, method: Any, tol: Any = None, options: Any = None) -> Any: ...
