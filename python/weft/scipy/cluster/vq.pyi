"""Written by tools/stubs; do not edit."""

from weft._core import Array
from weft.typing import ArrayLike

def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]: ...
