"""Types for annotations of functions that take arrays.

def scaled(x: weft.typing.ArrayLike, dtype: weft.typing.DTypeLike) -> weft.Array: ...

`weft.Array` stands for arrays and for traced values. ArrayLike is what functions of arrays take for
one: arrays, NumPy's arrays and numbers, Python's numbers; not lists. DTypeLike names a dtype. Shape
is the lengths of axes; Axis one axis, several, or None for all; AxisName what names a mapped axis;
PyTree a tree of containers, with arrays as its leaves.
"""

from collections.abc import Hashable as _Hashable, Sequence as _Sequence
from typing import (
    Any as _Any,
    Protocol as _Protocol,
    SupportsIndex as _SupportsIndex,
    Union as _Union,
)

import numpy as _np

from weft._array import Array as _Array
from weft._surface import public as _public

__all__ = ["ArrayLike", "Axis", "AxisName", "DTypeLike", "PyTree", "Shape"]
__getattr__, __dir__ = _public(__name__, __all__)


class _HasDType(_Protocol):
    """An object with a dtype, as the classes of NumPy's and weft's scalars are."""

    @property
    def dtype(self) -> _np.dtype[_Any]: ...


ArrayLike = _Union[  # noqa: UP007
    _Array, _np.ndarray, _np.bool_, _np.number, bool, int, float, complex
]
DTypeLike = _Union[str, type[_Any], _np.dtype, _HasDType]  # noqa: UP007
Shape = _Sequence[_SupportsIndex]
Axis = _Union[_SupportsIndex, _Sequence[_SupportsIndex], None]  # noqa: UP007
AxisName = _Hashable
PyTree = _Any
