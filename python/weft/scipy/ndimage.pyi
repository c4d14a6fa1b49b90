"""Written by tools/stubs; do not edit."""

from collections.abc import Sequence
from weft._core import Array
from weft.typing import ArrayLike

def map_coordinates(input: ArrayLike, coordinates: Sequence[ArrayLike] | Array, order: int, mode: str = 'constant', cval: float = 0.0) -> Array: ...
