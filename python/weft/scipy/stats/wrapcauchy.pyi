"""Written by tools/stubs; do not edit."""

from weft._core import Array
from weft.typing import ArrayLike

def logpdf(x: ArrayLike, c: ArrayLike) -> Array: ...
def pdf(x: ArrayLike, c: ArrayLike) -> Array: ...
