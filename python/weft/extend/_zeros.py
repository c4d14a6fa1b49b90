"""What stands in rules of users for values that are not there: zeros and linear operands."""

import numpy as np

from weft import _core
from weft.dtypes import float0


class Zero:
    """A tangent or cotangent that is zero, without an array for it.

    Attributes: aval (ShapedArray).
    """

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return f"Zero({self.aval})"


class UndefinedPrimal:
    """An operand in which an operation is linear: in a transpose it has a type but no value.

    Attributes: aval (ShapedArray).
    """

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return f"UndefinedPrimal({self.aval})"


def is_undefined_primal(x):
    """Whether x is an UndefinedPrimal."""
    return type(x) is UndefinedPrimal


def instantiate_zeros(tangent):
    """The tangent, a Zero as an array of zeros (a NumPy array where the dtype is float0)."""
    if not isinstance(tangent, Zero):
        return tangent
    aval = tangent.aval
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    return _core.broadcast_to(_core.astype(0, aval.dtype), aval.shape)
