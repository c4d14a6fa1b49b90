"""Written by tools/stubs; do not edit."""

from weft._core import Array
from weft.typing import ArrayLike

def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array: ...
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array: ...
