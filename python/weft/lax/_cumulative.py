"""Running reductions along an axis."""

from weft import _core
from weft._arguments import ndim_of, normalize_axis


def _cumulative(op, summary, dtypes):
    doc = f"""{summary} along an axis.

    Args:
      operand: array of {dtypes}.
      axis: the axis to accumulate along.
      reverse: accumulate from the end of the axis.
    """

    def function(operand, axis=0, reverse=False):
        axis = normalize_axis(axis, ndim_of(operand), op)
        return _core.bind(op, operand, axis=axis, reverse=bool(reverse))

    function.__name__ = function.__qualname__ = op
    function.__doc__ = doc
    return function


cumsum = _cumulative("cumsum", "Sum of the elements so far", "a number dtype")
cumprod = _cumulative("cumprod", "Product of the elements so far", "a number dtype")
cummax = _cumulative("cummax", "Greatest element so far; NaN if there was one", "a real dtype")
cummin = _cumulative("cummin", "Smallest element so far; NaN if there was one", "a real dtype")
cumlogsumexp = _cumulative(
    "cumlogsumexp", "Logarithm of the sum of exponentials of the elements so far", "a float dtype"
)
