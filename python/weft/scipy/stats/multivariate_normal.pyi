"""Written by tools/stubs; do not edit."""

from typing import Any
from weft._core import Array
from weft.typing import ArrayLike

def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: Any = None) -> Array: ...
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array: ...
