"""Written by tools/stubs; do not edit."""

from collections.abc import Sequence
from typing import Any
from weft._core import Array
from weft._resample import ResizeMethod as ResizeMethod
from weft.lax._dot import PrecisionLike
from weft.typing import ArrayLike, Shape

def resize(image: ArrayLike, shape: Shape, method: str, antialias: bool = True, precision: PrecisionLike = ...) -> Array: ...
def scale_and_translate(image: ArrayLike, shape: Shape, spatial_dims: Sequence[int], scale: ArrayLike, translation: Any, method: str, antialias: bool = True, precision: PrecisionLike = ...) -> Array: ...
