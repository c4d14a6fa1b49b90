"""Types for annotations of functions that take arrays.

def scaled(x: weft.typing.ArrayLike, dtype: weft.typing.DTypeLike) -> weft.Array: ...
"""

from typing import Any as _Any, Protocol as _Protocol, Union as _Union

import numpy as _np

from weft._array import Array as _Array
from weft._surface import public as _public

__all__ = ["ArrayLike", "DTypeLike"]
__getattr__, __dir__ = _public(__name__, __all__)


class _HasDType(_Protocol):
    """An object with a dtype, as the classes of NumPy's and weft's scalars are."""

    @property
    def dtype(self) -> _np.dtype: ...


ArrayLike = _Union[_Array, _np.ndarray, _np.bool_, _np.number, bool, int, float, complex]  # noqa: UP007
DTypeLike = _Union[str, type[_Any], _np.dtype, _HasDType]  # noqa: UP007
