"""Interpolation of functions given by their values."""

import itertools
import math

from weft import _core, numpy as jnp
from weft._arguments import ndim_of, shape_of
from weft._jit import composite
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.dtypes import dtype_of, is_complex
from weft.errors import AttributeValueError, NotImplementedRuleError, ShapeError

__all__ = ["RegularGridInterpolator"]
__getattr__, __dir__ = _public(__name__, __all__)

_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """Interpolation between values on the points of a grid.

    Attributes:
      grid, values, method, bounds_error, fill_value: what it was made of, as arrays.
    """

    def __init__(self, points, values, method="linear", bounds_error=False, fill_value=math.nan):
        """Args:
        points: n vectors of increasing coordinates, one for each axis of the grid.
        values: array with these axes, and perhaps others behind them.
        method: "linear" or "nearest".
        bounds_error: False.
        fill_value: the value outside of the grid; None to extrapolate.
        """
        self.method = _checked(method)
        if bounds_error:
            raise NotImplementedRuleError(
                "[RegularGridInterpolator] expected bounds_error=False: where points lie is not "
                "known while programs are traced"
            )
        self.bounds_error = bounds_error
        self.grid = tuple(_core.asarray(each) for each in points)
        (self.values,) = _core.promote_dtypes_inexact(values)
        shape = shape_of(self.values)
        if len(self.grid) > len(shape) or any(
            shape_of(each) != (n,) for each, n in zip(self.grid, shape, strict=False)
        ):
            raise ShapeError(
                "[RegularGridInterpolator] expected vectors of as many points as the first axes of "
                f"values have elements; got shapes {[shape_of(x) for x in self.grid]} and {shape}"
            )
        self.fill_value = None if fill_value is None else _core.asarray(fill_value)
        if self.fill_value is not None and (
            is_complex(dtype_of(self.fill_value)) and not is_complex(dtype_of(self.values))
        ):
            raise AttributeValueError(
                "[RegularGridInterpolator] expected fill_value to be None, or of a type that "
                f"values of dtype {dtype_of(self.values)} can have; got {fill_value!r}"
            )

    def __call__(self, xi, method=None):
        """The values at points.

        Args:
          xi: array of points `[..., n]`, or a tuple of n arrays, which broadcast; for n = 1, a
            vector has as many points as elements.
          method: "linear" or "nearest"; None for that of the interpolator.

        Returns:
          Array `[...]`, `[1]` for a single point `[n]`, with the further axes of the values.
        """
        method = self.method if method is None else _checked(method)
        n = len(self.grid)
        if isinstance(xi, tuple):
            xi = jnp.stack(jnp.broadcast_arrays(*xi), -1)
        elif ndim_of(xi) == 1:
            xi = jnp.reshape(xi, (-1, 1) if n == 1 else (1, -1))
        if not ndim_of(xi) or shape_of(xi)[-1] != n:
            raise ShapeError(
                f"[RegularGridInterpolator] expected points [..., {n}]; got shape {shape_of(xi)}"
            )
        return _interpolated(self.grid, self.values, xi, self.fill_value, method=method)


def _checked(method):
    if method not in _METHODS:
        raise AttributeValueError(
            f"[RegularGridInterpolator] expected method 'linear' or 'nearest'; got {method!r}"
        )
    return method


@composite(static_argnames=("method",))
def _interpolated(grid, values, xi, fill_value, *, method):
    (xi,) = _core.promote_dtypes_inexact(xi)
    outside, missing, sides = False, False, []
    for axis, points in enumerate(grid):
        x, last = xi[..., axis], shape_of(points)[0] - 1
        below = jnp.clip(jnp.searchsorted(points, x) - 1, 0, max(last - 1, 0))
        above = jnp.minimum(below + 1, last)
        share = (x - points[below]) / (points[above] - points[below])
        outside = outside | (x < points[0]) | (x > points[last])
        missing = missing | jnp.isnan(x)
        if method == "nearest":
            sides.append([(jnp.where(share <= 0.5, below, above), None)])
        else:
            sides.append([(below, 1 - share), (above, share)])

    def spread(x):
        return jnp.expand_dims(
            x, tuple(range(ndim_of(x), ndim_of(x) + ndim_of(values) - len(grid)))
        )

    result = 0
    for corner in itertools.product(*sides):
        value = values[tuple(at for at, _ in corner)]
        if method == "linear":
            value = spread(math.prod(weight for _, weight in corner)) * value
        result = result + value
    if fill_value is not None:
        fill_value = fill_value.astype(dtype_of(result))
        result = jnp.where(spread(outside), fill_value, result)
    return result if method == "nearest" else jnp.where(spread(missing), jnp.nan, result)


_open_to_users(__name__)
