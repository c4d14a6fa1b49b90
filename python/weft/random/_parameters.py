"""What the functions of `weft.random` check of their arguments, and parameters in common form."""

from weft import _core
from weft._arguments import shape_of, static_shape
from weft.dtypes import (
    default_float,
    default_int,
    dtype_of,
    is_float,
    is_integer,
    requested_dtype,
    result_type,
)
from weft.errors import DTypeError, ShapeError, TypePromotionError
from weft.lax._shape import common_shape
from weft.random._keys import checked_key


def float_dtype(dtype, function):
    """The float dtype that was asked for; None is the default one."""
    dtype = default_float() if dtype is None else requested_dtype(dtype, function)
    if not is_float(dtype):
        raise DTypeError(f"[{function}] expected a float dtype; got {dtype}")
    return dtype


def integer_dtype(dtype, function):
    """The integer dtype that was asked for; None is the default one."""
    dtype = default_int() if dtype is None else requested_dtype(dtype, function)
    if not is_integer(dtype):
        raise DTypeError(f"[{function}] expected an integer dtype; got {dtype}")
    return dtype


def bounds_in(shape, bounds, function):
    """Raises unless bounds broadcast to a shape."""
    for bound in bounds:
        shapes_in(shape, [shape_of(bound)], function)


def shapes_in(shape, shapes, function):
    """Raises unless shapes broadcast to a shape."""
    for own in shapes:
        missing = len(shape) - len(own)
        if missing < 0 or any(n not in (1, m) for n, m in zip(own, shape[missing:], strict=True)):
            raise ShapeError(
                f"[{function}] expected parameters that broadcast to the shape {shape}; "
                f"got shape {own}"
            )


def result_shape(shape, parameters, function):
    """The shape that was asked for; None is the one to which the parameters broadcast."""
    shapes = [shape_of(each) for each in parameters]
    if shape is None:
        return common_shape(shapes, function)
    shape = static_shape(shape, function)
    shapes_in(shape, shapes, function)
    return shape


def checked(function, key, parameters, shape, dtype, *, lossless=False):
    """The key, and what composites of a float distribution take as `shape` and `dtype`.

    With `lossless` the parameters must not lose precision when they are converted to the dtype.
    """
    key = checked_key(key, function)
    dtype = float_dtype(dtype, function)
    if lossless:
        lossless_in(dtype, parameters, function)
    return key, {"shape": result_shape(shape, parameters, function), "dtype": dtype}


def lossless_in(dtype, parameters, function):
    """Raises unless the promotion of parameters with a dtype is that dtype."""
    for each in parameters:
        if result_type(each, dtype) != dtype:
            raise TypePromotionError(
                f"[{function}] expected parameters that can be converted to {dtype} without loss; "
                f"got {dtype_of(each)}"
            )


def spread(parameters, shape, dtype):
    """Parameters as arrays of one shape and dtype."""
    return [_core.broadcast_to(_core.astype(each, dtype), shape) for each in parameters]
