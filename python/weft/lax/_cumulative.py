"""Running reductions along an axis."""

from weft import _core
from weft._arguments import ndim_of, static_int
from weft._surface import example_section
from weft.dtypes import dtype_of, is_bool
from weft.errors import AxisError, DTypeError


def _cumulative(op, summary, dtypes, example):
    doc = f"""{summary} along an axis.

    Args:
      operand: array of {dtypes}.
      axis: the axis to accumulate along, not counted from the end.
      reverse: accumulate from the end of the axis.

    Raises AxisError (a ValueError) for an axis out of bounds, DTypeError for bools.

    {example_section(*example, indent="    ")}
    """

    def function(operand, axis=0, reverse=False):
        axis = static_int(axis, op, "the axis")
        if not 0 <= axis < ndim_of(operand):
            last = ndim_of(operand) - 1
            expected = "an array with axes" if last < 0 else f"0 to {last}"
            raise AxisError(f"[{op}] axis {axis} is out of bounds: expected {expected}")
        if is_bool(dtype_of(operand)):
            raise DTypeError(f"[{op}] expected numbers; got dtype bool")
        return _core.bind(op, operand, axis=axis, reverse=bool(reverse))

    function.__name__ = function.__qualname__ = op
    function.__doc__ = doc
    return function


cumsum = _cumulative(
    "cumsum",
    "Sum of the elements so far",
    "a number dtype",
    ("lax.cumsum(wnp.array([3, 1, 2]))", "Array([3, 4, 6], dtype=int32)"),
)
cumprod = _cumulative(
    "cumprod",
    "Product of the elements so far",
    "a number dtype",
    ("lax.cumprod(wnp.array([3, 1, 2]))", "Array([3, 3, 6], dtype=int32)"),
)
cummax = _cumulative(
    "cummax",
    "Greatest element so far; NaN if there was one",
    "a real dtype",
    ("lax.cummax(wnp.array([3, 1, 4]))", "Array([3, 3, 4], dtype=int32)"),
)
cummin = _cumulative(
    "cummin",
    "Smallest element so far; NaN if there was one",
    "a real dtype",
    ("lax.cummin(wnp.array([3, 1, 4]), reverse=True)", "Array([1, 1, 4], dtype=int32)"),
)
cumlogsumexp = _cumulative(
    "cumlogsumexp",
    "Logarithm of the sum of exponentials of the elements so far",
    "a float dtype",
    (
        "lax.exp(lax.cumlogsumexp(lax.log(wnp.array([1.0, 2.0])))).round(3)",
        "Array([1., 3.], dtype=float32)",
    ),
)
