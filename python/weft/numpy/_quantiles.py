"""Medians, quantiles and percentiles, also of what is not NaN."""

import math

from weft import _core
from weft._arguments import ndim_of, normalize_axes, shape_of
from weft._jit import composite
from weft.dtypes import dtype_of, is_complex, is_float, result_type, to_inexact_dtype
from weft.errors import AttributeValueError, DTypeError, ShapeError
from weft.lax._cumulative import cumsum
from weft.lax._shape import expand_dims, reshape, transpose
from weft.lax._sharding import split_as
from weft.lax._sort import sort_key_val
from weft.numpy import _reductions as r, _ufuncs as u
from weft.numpy._moments import aligned_weights, check_weights
from weft.numpy._select import choose
from weft.numpy._take import take_along_axis

METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def quantile(
    a,
    q,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    weights=None,
):
    """The values below which shares of the elements lie; NaN if there is NaN among them, or none.

    Args:
      a: array of real numbers.
      q: the shares, floats from 0 to 1: a number or a one-dimensional array.
      axis: an axis, several, or None for all.
      out, overwrite_input: not supported, must be None and False.
      method: what to do if the share lies between two elements: "linear" interpolates, "lower",
        "higher" and "nearest" take one of them ("nearest" in the middle the one whose index is
        even, as NumPy), "midpoint" their mean; "inverted_cdf" takes the
        first element up to which the share of the elements is as great.
      keepdims: whether the reduced axes stay, with size 1.
      weights: how much each element counts, for method "inverted_cdf": of the shape of `a`, or of
        its sizes along `axis`.

    Returns:
      Array of the float dtype of `a`; an array of shares gives it an axis in front.

    Examples:
      >>> x = wnp.array([10.0, 20.0, 30.0, 40.0])
      >>> wnp.quantile(x, wnp.array([0.0, 0.5, 1.0]))
      Array([10., 25., 40.], dtype=float32)
      >>> wnp.quantile(x, 0.5, method="lower")
      Array(20., dtype=float32)
    """
    _reject("quantile", out, overwrite_input)
    return _quantile("quantile", a, q, axis, method, keepdims, weights)


def nanquantile(
    a,
    q,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    weights=None,
):
    """`quantile` of the elements that are not NaN; NaN if all are.

    Examples:
      >>> wnp.nanquantile(wnp.array([10.0, np.nan, 30.0]), 0.5)
      Array(20., dtype=float32)
    """
    _reject("nanquantile", out, overwrite_input)
    return _quantile("nanquantile", a, q, axis, method, keepdims, weights)


def percentile(
    a,
    q,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    weights=None,
    out_sharding=None,
):
    """`quantile` with the shares in percent, from 0 to 100.

    `out_sharding` is None, or how the result is split, a PartitionSpec or NamedSharding.

    Examples:
      >>> wnp.percentile(wnp.array([10.0, 20.0, 30.0]), 75)
      Array(25., dtype=float32)
    """
    if out_sharding is not None:
        return split_as(
            out_sharding,
            "percentile",
            lambda: percentile(a, q, axis, out, overwrite_input, method, keepdims, weights=weights),
        )
    _reject("percentile", out, overwrite_input)
    return _quantile("percentile", a, u.divide(q, 100), axis, method, keepdims, weights)


def nanpercentile(
    a,
    q,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    weights=None,
):
    """`percentile` of the elements that are not NaN; NaN if all are.

    Examples:
      >>> wnp.nanpercentile(wnp.array([10.0, np.nan, 30.0]), 75)
      Array(25., dtype=float32)
    """
    _reject("nanpercentile", out, overwrite_input)
    return _quantile("nanpercentile", a, u.divide(q, 100), axis, method, keepdims, weights)


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """The element in the middle, or the mean of the two there; NaN if there is NaN among them, or
    none.

    Args:
      a: array of real numbers.
      axis: an axis, several, or None for all.
      out, overwrite_input: not supported, must be None and False.
      keepdims: whether the reduced axes stay, with size 1.

    Examples:
      >>> wnp.median(wnp.array([7.0, 1.0, 2.0]))
      Array(2., dtype=float32)
      >>> wnp.median(wnp.array([7.0, 1.0, 2.0, 4.0]))
      Array(3., dtype=float32)
    """
    _reject("median", out, overwrite_input)
    return _quantile("median", a, 0.5, axis, "midpoint", keepdims, None)


def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """`median` of the elements that are not NaN; NaN if all are.

    Examples:
      >>> wnp.nanmedian(wnp.array([7.0, np.nan, 1.0]))
      Array(4., dtype=float32)
    """
    _reject("nanmedian", out, overwrite_input)
    return _quantile("nanmedian", a, 0.5, axis, "midpoint", keepdims, None)


def _reject(function, out, overwrite_input):
    if out is not None or overwrite_input:
        raise AttributeValueError(
            f"[{function}] arrays are immutable: out must be None and overwrite_input False"
        )


def _quantile(function, a, q, axis, method, keepdims, weights):
    shape = shape_of(a)
    if method not in METHODS:
        raise AttributeValueError(
            f"[{function}] expected a method of {', '.join(METHODS)}; got {method!r}"
        )
    if is_complex(dtype_of(a)):
        raise AttributeValueError(f"[{function}] expected real numbers; got dtype {dtype_of(a)}")
    if not is_float(dtype_of(q)):
        raise DTypeError(f"[{function}] expected floating-point shares; got dtype {dtype_of(q)}")
    if ndim_of(q) > 1:
        raise ShapeError(f"[{function}] expected shares with at most one axis; got {shape_of(q)}")
    axes = normalize_axes(axis, len(shape), function)
    if weights is not None:
        if method != "inverted_cdf":
            raise NotImplementedError(
                f"[{function}] weights are for method 'inverted_cdf'; got method {method!r}"
            )
        check_weights(function, weights, shape, axes, axis)
    return _quantiles(
        a,
        q,
        weights,
        axes=axes,
        method=method,
        keepdims=bool(keepdims),
        skip_nan=function.startswith("nan"),
    )


@composite(static_argnames=("axes", "method", "keepdims", "skip_nan"))
def _quantiles(a, q, weights, *, axes, method, keepdims, skip_nan):
    shape, dtype = shape_of(a), to_inexact_dtype(dtype_of(a))
    working = r.compute_dtype(dtype)
    batch = [i for i in range(len(shape)) if i not in axes]
    sizes = tuple(shape[i] for i in batch)
    count = math.prod(shape[i] for i in axes)

    def as_lines(x):
        """The reduced axes as one, at the end."""
        return reshape(transpose(x, [*batch, *axes]), (*sizes, count))

    q = _core.astype(q, result_type(q, working))
    shares = reshape(q, (1,) * len(batch) + (math.prod(shape_of(q)),))
    if math.prod(shape) == 0:
        found = _core.broadcast_to(_core.astype(math.nan, dtype), (*sizes, shape_of(shares)[-1]))
    else:
        lines = _core.astype(as_lines(a), dtype)
        missing = u.isnan(lines)
        if weights is None:
            lines = _core.bind("sort", lines, dimension=len(sizes), is_stable=False, num_keys=1)[0]
            n = r.sum(u.logical_not(missing), -1, keepdims=True) if skip_nan else count
            found = _at_shares(lines, n, shares, method, working)
        else:
            weights = _core.broadcast_to(aligned_weights(weights, shape, axes), shape)
            found = _at_weighted_shares(lines, as_lines(weights), missing, shares)
        if not skip_nan:
            found = choose(r.any(missing, -1, keepdims=True), math.nan, found)
        found = choose(u.isnan(shares), math.nan, found)
    found = _core.astype(found, dtype)
    found = transpose(found, [len(batch), *range(len(batch))])
    if keepdims:
        found = expand_dims(found, [axis + 1 for axis in axes])
    return reshape(found, (*shape_of(q), *shape_of(found)[1:]))


def _at_shares(lines, n, shares, method, working):
    """Elements of sorted lines, of which the first n count."""
    n = _core.astype(n, dtype_of(shares))
    if method == "inverted_cdf":
        low = high = u.subtract(u.ceil(u.multiply(shares, n)), 1)
    else:
        place = u.multiply(shares, u.subtract(n, 1))
        low, high = u.floor(place), u.ceil(place)
        fraction = _core.astype(u.subtract(place, low), working)

    def element(at):
        at = u.maximum(u.minimum(at, u.subtract(n, 1)), 0)
        return _core.astype(take_along_axis(lines, _core.astype(at, "int32"), -1, "clip"), working)

    if method in ("lower", "inverted_cdf"):
        return element(low)
    if method == "higher":
        return element(high)
    if method == "nearest":
        return element(_core.bind("round", place, rounding_method=1))
    low, high = element(low), element(high)
    is_element = u.equal(fraction, 0)
    if method == "midpoint":
        fraction = 0.5
    between = u.add(u.multiply(low, u.subtract(1, fraction)), u.multiply(high, fraction))
    # Zero times an infinite element would be NaN.
    return choose(is_element, low, between)


def _at_weighted_shares(lines, weights, missing, shares):
    """The first elements up to which the weights make as great a share of their sum."""
    weights = _core.astype(weights, result_type(weights, shares))
    negative = r.any(u.less(weights, 0), -1, keepdims=True)
    weights = choose(missing, 0, weights)
    lines, weights = sort_key_val(lines, weights, -1)
    running = cumsum(weights, ndim_of(weights) - 1)
    total = running[..., -1:]
    wanted = u.multiply(shares[..., None, :], total[..., None])
    before = u.less(running[..., None], wanted)
    at = u.minimum(r.sum(before, -2), shape_of(lines)[-1] - 1)
    return choose(negative, math.nan, take_along_axis(lines, at, -1, "clip"))
