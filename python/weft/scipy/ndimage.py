"""Images: values between the points of a grid."""

import itertools
import math
from typing import Any

from weft import _core, lax, numpy as jnp
from weft._arguments import shape_of
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.dtypes import dtype_of, is_inexact, is_integer
from weft.errors import AttributeValueError, NotImplementedRuleError, ShapeError

__all__ = ["map_coordinates"]
__getattr__, __dir__ = _public(__name__, __all__)

_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def map_coordinates(input, coordinates, order, mode="constant", cval=0.0):
    """The values of an array at positions between its elements.

    Args:
      input: array with n axes, or what `weft.numpy.asarray` makes one of.
      coordinates: n such of positions, which broadcast together; or one array with them along its
        first axis.
      order: 0 for the nearest element, 1 for linear interpolation.
      mode: what lies outside of the array: "constant" for `cval`, "nearest" for the elements on the
        edge, "wrap" for the array over again, "mirror" for the array mirrored at the middle of the
        elements on the edge, "reflect" at their outer side.
      cval: the value for "constant".

    Returns:
      Array of the shape of the coordinates and of the dtype of `input`; integers are rounded.

    Raises NotImplementedRuleError for other orders than 0 and 1 and other modes, ShapeError for
    another number of coordinates, AttributeValueError (a ValueError) for an input without axes,
    OverflowError or ValueError for a `cval` that the dtype of `input` cannot hold.

    Examples:
      >>> x = wnp.array([0.0, 10.0, 20.0])
      >>> weft.scipy.ndimage.map_coordinates(x, [wnp.array([0.5, 1.25])], order=1)
      Array([ 5. , 12.5], dtype=float32)
    """
    if order not in (0, 1):
        raise NotImplementedRuleError(f"[map_coordinates] expected order 0 or 1; got {order!r}")
    if mode not in _MODES:
        raise NotImplementedRuleError(
            f"[map_coordinates] expected mode to be one of {', '.join(map(repr, _MODES))}; got "
            f"{mode!r}"
        )
    input, coordinates = jnp.asarray(input), tuple(jnp.asarray(x) for x in coordinates)
    if len(coordinates) != input.ndim:
        raise ShapeError(
            f"[map_coordinates] expected {input.ndim} arrays of coordinates, as many as input "
            f"has axes; got {len(coordinates)}"
        )
    if not coordinates:
        raise AttributeValueError("[map_coordinates] expected an input with axes; got a scalar")
    # Here, and not in the traced function, a Python number that the dtype cannot hold is an error.
    cval = jnp.asarray(cval, dtype=input.dtype) if mode == "constant" else None
    return _map_coordinates(input, coordinates, cval, order=int(order), mode=mode)


@composite(static_argnames=("order", "mode"))
def _map_coordinates(input, coordinates, cval, *, order, mode):
    dtype = dtype_of(input)
    # Along each axis, pairs of positions and weights.
    sides = []
    for x in coordinates:
        if order == 0:
            sides.append([(_rounded(x), None)])
            continue
        (x,) = _core.promote_dtypes_inexact(x)
        low = jnp.floor(x)
        weight, low = x - low, low.astype("int32")
        sides.append([(low, 1 - weight), (low + 1, weight)])
    total: Any = None
    for corner in itertools.product(*sides):
        value = _element(input, [at for at, _ in corner], mode, cval)
        if order:
            value = value * math.prod(weight for _, weight in corner)
        total = value if total is None else total + value
    if is_integer(dtype) and is_inexact(dtype_of(total)):
        total = lax.round(total)
    return total.astype(dtype)


def _rounded(x):
    return _core.asarray(x) if is_integer(dtype_of(x)) else lax.round(x).astype("int32")


def _element(x, index, mode, cval):
    """The elements at whole positions, which may lie outside."""
    inside, places = True, []
    for at, size in zip(index, shape_of(x), strict=True):
        if mode == "constant":
            inside = inside & (at >= 0) & (at < size)
        places.append(_placed(at, size, mode))
    value = x[tuple(places)]
    return jnp.where(inside, value, cval) if mode == "constant" else value


def _placed(at, size, mode):
    if mode == "wrap":
        return at % size
    if mode == "mirror":
        last = size - 1
        return last - jnp.abs(at % (2 * last) - last) if last else jnp.zeros_like(at)
    if mode == "reflect":
        at = at % (2 * size)
        return jnp.where(at < size, at, 2 * size - 1 - at)
    return jnp.clip(at, 0, size - 1)


_open_to_users(__name__)
