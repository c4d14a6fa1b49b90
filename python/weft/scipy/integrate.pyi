"""Written by tools/stubs; do not edit."""

from weft._core import Array
from weft.typing import ArrayLike, Axis

def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: float = 1.0, axis: Axis = -1) -> Array: ...
