"""Written by tools/stubs; do not edit."""

from collections.abc import Callable
from typing import Any
from weft.scipy.optimize._minimize import OptimizeResults as OptimizeResults
from weft.typing import ArrayLike

def minimize(fun: Callable[..., Any], x0: ArrayLike, args: tuple[Any, ...] = ..., *, method: str, tol: float | None = None, options: Any = None) -> OptimizeResults: ...
