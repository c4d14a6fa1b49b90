"""Checks of static arguments (shapes, axes) that `weft.lax` and `weft.numpy` share."""

import operator
from typing import Any

import numpy as np

from weft import _core
from weft._dims import is_symbolic_dim, to_size
from weft.dtypes import canonicalize_dtype, iinfo, is_bool, is_integer, is_key
from weft.errors import (
    ArgumentTypeError,
    AttributeValueError,
    AxisError,
    ConcretizationTypeError,
    DTypeError,
    ShapeError,
)


def axis_text(name):
    """The name of a mapped axis as programs hold it: a string, as it is; of another hashable object
    a text that stands for it, by its type and `repr`. Raises ArgumentTypeError for others."""
    if isinstance(name, str):
        return name
    try:
        hash(name)
    except TypeError:
        raise ArgumentTypeError(
            f"expected a string or another hashable object as the name of a mapped axis; "
            f"got {name!r}"
        ) from None
    return f"<{type(name).__qualname__} {name!r}>"


def strong(x):
    """An array without the mark of weak types."""
    return _core.astype(x, _core.typeof(x)[1])


def weak_as(x, like):
    """An array, marked as weakly typed if `like` is."""
    _, dtype, weak = _core.typeof(like)
    return _core.astype(x, dtype, True) if weak else x


def wrapped(x, dtype):
    """A Python integer as NumPy converts it to integers or bools: what they have no place for
    wraps around. Other values, and those for other dtypes, as they are."""
    if type(x) is int and (is_integer(dtype) or is_bool(dtype)):
        return np.asarray(x).astype(dtype)[()]
    return x


def is_beyond(x, dtype):
    """-1 or 1 for a Python integer below or above the values of an integer dtype, else 0."""
    if type(x) is not int or not is_integer(dtype):
        return 0
    limits = iinfo(dtype)
    return (x > limits.max) - (x < limits.min)


def limit_beside(x, dtype):
    """The number of an integer dtype that is nearest to a Python integer beyond it."""
    return dtype.type(iinfo(dtype).max if x > 0 else iinfo(dtype).min)


def shape_of(x):
    """The shape of an array or number; TypeError for other objects."""
    return _core.typeof(x)[0]


def ndim_of(x):
    """The number of dimensions of an array or number; TypeError for other objects."""
    return len(_core.typeof(x)[0])


def type_of(x):
    """(shape, dtype, weak type) of an array or number, or of what only has a shape and a dtype.

    The latter, such as ShapeDtypeStruct, stands for an array where values do not matter.
    """
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    if isinstance(x, (_core.Array, _core.Tracer)) or not isinstance(shape, tuple) or dtype is None:
        return _core.typeof(x)
    return shape, canonicalize_dtype(dtype), bool(getattr(x, "weak_type", False))


def static_int(value, function, name):
    """`value` as a Python integer, or the symbolic dimension that it is. AttributeValueError, which
    names it, if it is neither."""
    try:
        return to_size(value)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise AttributeValueError(
            f"[{function}] expected {name} to be an integer; got {value!r}"
        ) from None


def from_whole_float(value) -> Any:
    """A float without a fraction as an integer, and anything else as it is."""
    return int(value) if isinstance(value, (float, np.floating)) and value % 1 == 0 else value


def static_ints(values, function, name) -> tuple[Any, ...]:
    """A tuple of Python integers from an integer or a sequence of integers."""
    if is_symbolic_dim(values):
        return (values,)
    try:
        return (operator.index(values),)
    except ConcretizationTypeError:
        raise
    except TypeError:
        pass
    try:
        # A list: CPython never frees the items of a tuple that it could not enlarge.
        return tuple([to_size(value) for value in values])
    except ConcretizationTypeError:
        raise
    except TypeError:
        is_swapped = is_key(getattr(values, "dtype", None))
        raise AttributeValueError(
            f"[{function}] expected {name} to be integers; got {values!r}"
            + ("\n  The key is the first argument, before the shape." if is_swapped else "")
        ) from None


def listed(values, function, name):
    """`values`, which is a sequence: of one integer, for which most functions take the integer."""
    if isinstance(values, (int, np.integer)):
        raise AttributeValueError(
            f"[{function}] expected {name} as a sequence of integers; got {values}"
        )
    return values


def check_one_dtype(dtypes, function, what):
    """Raises DTypeError where `what` (the arguments, for the message) have several dtypes."""
    if any(dtype != dtypes[0] for dtype in dtypes):
        found = ", ".join(map(str, dtypes))
        raise DTypeError(f"[{function}] expected {what} of one dtype; got {found}")


def counted_axes(axes, function):
    """A tuple of axes that are counted from the start, by functions without negative axes."""
    axes = static_ints(listed(axes, function, "the axes"), function, "the axes")
    if any(axis < 0 for axis in axes):
        raise AttributeValueError(f"[{function}] expected axes of at least 0; got {axes}")
    return axes


def static_shape(shape, function):
    """A shape given as an integer or a sequence, as a tuple; no dimension may be negative."""
    dims = static_ints(shape, function, "the shape")
    if any(dim < 0 for dim in dims if not is_symbolic_dim(dim)):
        raise ShapeError(f"[{function}] expected a shape of non-negative dimensions; got {dims}")
    return dims


def normalize_axis(axis, ndim, function):
    """An axis of -ndim..ndim-1 as one of 0..ndim-1."""
    index = static_int(axis, function, "the axis")
    if not -ndim <= index < ndim:
        raise AxisError(
            f"[{function}] axis {index} is out of bounds for an array with {ndim} dimension"
            + ("" if ndim == 1 else "s")
        )
    return index % ndim


def normalize_axes(axes, ndim, function):
    """Several axes (or one, or None for all) as a tuple without repetitions, in the given order."""
    if axes is None:
        return tuple(range(ndim))
    result = tuple(
        normalize_axis(axis, ndim, function) for axis in static_ints(axes, function, "the axes")
    )
    if len(set(result)) != len(result):
        raise AttributeValueError(f"[{function}] an axis stands twice in {axes}")
    return result
