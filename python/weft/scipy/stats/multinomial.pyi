"""Written by tools/stubs; do not edit."""

from weft._core import Array
from weft.typing import ArrayLike

def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array: ...
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array: ...
