"""Distinct elements of arrays, and arrays as sets of them."""

import math
from typing import NamedTuple

from weft import _core
from weft._arguments import ndim_of, normalize_axis, shape_of, strong, weak_as
from weft._jit import composite
from weft.dtypes import default_int, dtype_of, is_complex, is_inexact
from weft.errors import AttributeValueError
from weft.lax._creation import full, iota
from weft.lax._cumulative import cumsum
from weft.lax._shape import concatenate, expand_dims, reshape
from weft.lax._slice import sliced
from weft.lax._sort import sort as lax_sort
from weft.numpy import _indexing as indexing, _ufuncs as u
from weft.numpy._counted import counted, cut, first_true, kept, known_size
from weft.numpy._products import flattened
from weft.numpy._reductions import any as array_any
from weft.numpy._select import choose
from weft.numpy._shape import moveaxis
from weft.numpy._sorting import insertion_points


class UniqueAllResult(NamedTuple):
    """The distinct values of an array, where each is first, which each element is, how many."""

    values: _core.Array
    indices: _core.Array
    inverse_indices: _core.Array
    counts: _core.Array


class UniqueCountsResult(NamedTuple):
    """The distinct values of an array, and how often each occurs."""

    values: _core.Array
    counts: _core.Array


class UniqueInverseResult(NamedTuple):
    """The distinct values of an array, and which of them each element is."""

    values: _core.Array
    inverse_indices: _core.Array


def unique(
    ar,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    *,
    equal_nan=True,
    size=None,
    fill_value=None,
    sorted=True,
):
    """The distinct elements of an array in increasing order, or distinct slices along an axis.

    Args:
      ar: array or number.
      return_index: whether to return also the position at which each occurs first.
      return_inverse: whether to return also which of them each element is; of the shape of `ar`,
        or one-dimensional with an axis.
      return_counts: whether to return also how often each occurs.
      axis: the axis whose slices are compared, by their elements from the first to the last; None
        for single elements.
      equal_nan: whether NaN equals NaN.
      size: how many to return, which tracing needs; None for as many as there are.
      fill_value: what stands in the place of those that are missing; by default the first one.
      sorted: has no effect: the elements always come in order.

    Returns:
      The elements, or a tuple of them and of what else is to be returned.

    Raises:
      ConcretizationTypeError: for a traced array without `size`.

    Examples:
      >>> wnp.unique(wnp.array([3, 1, 3, 2]))
      Array([1, 2, 3], dtype=int32)
      >>> wnp.unique(wnp.array([3, 1, 3]), return_counts=True)
      (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
      >>> wnp.unique(wnp.array([3, 1, 3]), size=4, fill_value=0)
      Array([1, 3, 0, 0], dtype=int32)
    """
    which = (bool(return_index), bool(return_inverse), bool(return_counts))
    results = _unique("unique", ar, which, axis, equal_nan, size, fill_value)
    return results if len(results) > 1 else results[0]


def _unique(function, ar, which, axis, equal_nan, size, fill_value):
    """The values, and a tuple of those of index, inverse and counts that are wanted."""
    size = known_size(size, function, ar)
    if axis is not None:
        axis = normalize_axis(axis, ndim_of(ar), function)
    n = math.prod(shape_of(ar)) if axis is None else shape_of(ar)[axis]
    if n == 0:
        if size and fill_value is None:
            raise AttributeValueError(
                f"[{function}] expected a fill_value for {size} elements of an empty array"
            )
        values = _fill_only(ar, fill_value, axis=axis, size=size or 0)
        shapes = ((0,), shape_of(ar) if axis is None else (0,), (0,))
        kept = (shape for shape, wanted in zip(shapes, which, strict=True) if wanted)
        return (values, *(full(shape, 0, default_int()) for shape in kept))
    values, *rest, count = _distinct(
        ar,
        fill_value,
        which=which,
        axis=axis,
        equal_nan=bool(equal_nan),
        size=n if size is None else size,
    )
    if size is not None:
        return (values, *rest)
    count = counted(count, function)
    place = 1 if which[0] else 0  # of the inverse, which is as long as the array
    rest = [x if which[1] and i == place else cut(x, count) for i, x in enumerate(rest)]
    return (cut(values, count, axis or 0), *rest)


@composite(static_argnames=("axis", "size"))
def _fill_only(ar, fill, *, axis, size):
    shape = list(shape_of(ar)) if axis is not None else [0]
    shape[axis or 0] = size
    fill = _core.astype(0 if fill is None else fill, dtype_of(ar))
    return weak_as(_core.broadcast_to(fill, tuple(shape)), ar)


@composite(static_argnames=("which", "axis", "equal_nan", "size"))
def _distinct(ar, fill, *, which, axis, equal_nan, size):
    slices = flattened(ar) if axis is None else moveaxis(ar, axis, 0)
    n = shape_of(slices)[0]
    rows = reshape(slices, (n, math.prod(shape_of(slices)[1:])))
    if equal_nan and is_complex(dtype_of(rows)):  # one NaN for all, so that they stand side by side
        rows = choose(u.isnan(rows), complex(math.nan, math.nan), rows)
    columns = [rows[:, i] for i in range(shape_of(rows)[1])]
    dtype = default_int()
    *columns, order = lax_sort((*columns, iota(dtype, n)), num_keys=max(len(columns), 1))
    new = full((1,), True, bool)
    changes = full((n - 1,), False, bool)
    for column in columns:
        changes = u.logical_or(changes, _changes(column, equal_nan))
    new = concatenate([new, changes], 0)
    starts, count = first_true(new, size + 1, n)
    there = u.less(sliced(starts, 0, size), n)
    index = indexing.getitem(order, choose(there, sliced(starts, 0, size), 0))
    values = indexing.getitem(slices, index)
    if fill is not None:
        mask = expand_dims(there, range(1, ndim_of(slices)))
        values = choose(mask, values, _core.astype(fill, dtype_of(ar)))
    values = weak_as(values if axis is None else moveaxis(values, 0, axis), ar)
    results = [values]
    if which[0]:
        results.append(index)
    if which[1]:
        group = u.subtract(cumsum(_core.astype(new, dtype)), 1)
        inverse = indexing.update("set", full((n,), 0, dtype), order, group, unique=True)
        results.append(reshape(inverse, shape_of(ar)) if axis is None else inverse)
    if which[2]:
        ends = sliced(starts, 1, None)
        results.append(u.subtract(ends, sliced(starts, 0, size)))
    return [*results, count]


def _changes(x, equal_nan):
    """Whether neighbours in a vector differ."""
    before, after = sliced(x, 0, -1), sliced(x, 1, None)
    result = u.not_equal(before, after)
    if equal_nan and is_inexact(dtype_of(x)):
        both = u.logical_and(u.isnan(before), u.isnan(after))
        result = u.logical_and(result, u.logical_not(both))
    return result


def unique_all(x, /, *, size=None, fill_value=None):
    """`unique` with all it can return, as a named tuple: values, indices, inverse_indices, counts.

    NaN does not equal NaN.

    Examples:
      >>> wnp.unique_all(wnp.array([3, 1, 3])).inverse_indices
      Array([1, 0, 1], dtype=int32)
    """
    results = _unique("unique_all", x, (True, True, True), None, False, size, fill_value)
    return UniqueAllResult(*results)


def unique_counts(x, /, *, size=None, fill_value=None):
    """`unique` as a named tuple: values, counts. NaN does not equal NaN.

    Examples:
      >>> wnp.unique_counts(wnp.array([3, 1, 3])).counts
      Array([1, 2], dtype=int32)
    """
    results = _unique("unique_counts", x, (False, False, True), None, False, size, fill_value)
    return UniqueCountsResult(*results)


def unique_inverse(x, /, *, size=None, fill_value=None):
    """`unique` as a named tuple: values, inverse_indices. NaN does not equal NaN.

    Examples:
      >>> values, inverse = wnp.unique_inverse(wnp.array([30, 10, 30]))
      >>> values[inverse]
      Array([30, 10, 30], dtype=int32)
    """
    results = _unique("unique_inverse", x, (False, True, False), None, False, size, fill_value)
    return UniqueInverseResult(*results)


def unique_values(x, /, *, size=None, fill_value=None):
    """The values of `unique`. NaN does not equal NaN.

    Examples:
      >>> wnp.unique_values(wnp.array([3, 1, 3]))
      Array([1, 3], dtype=int32)
    """
    (values,) = _unique("unique_values", x, (False,) * 3, None, False, size, fill_value)
    return values


# ---- sets


def union1d(ar1, ar2, *, size=None, fill_value=None):
    """The distinct elements of two arrays in increasing order; see `unique`.

    Examples:
      >>> wnp.union1d(wnp.array([1, 3]), wnp.array([2, 3]))
      Array([1, 2, 3], dtype=int32)
    """
    return _unique("union1d", _joined(ar1, ar2), (False,) * 3, None, True, size, fill_value)[0]


@composite
def _joined(ar1, ar2):
    weak = _core.typeof(ar1)[2] and _core.typeof(ar2)[2]
    joined = concatenate([flattened(x) for x in _core.promote_dtypes(ar1, ar2)], 0)
    return joined if weak else strong(joined)


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False, *, size=None, fill_value=None):
    """The distinct elements that two arrays share, in increasing order.

    Args:
      ar1, ar2: arrays, which are flattened. NaN is in no intersection.
      assume_unique: has no effect: elements may occur several times.
      return_indices: whether to return also where each occurs first in `ar1` and in `ar2`.
      size: how many to return, which tracing needs; None for as many as there are.
      fill_value: what stands in the place of those that are missing; by default the first one. For
        the indices it is the size of the array.

    Examples:
      >>> wnp.intersect1d(wnp.array([1, 3, 5]), wnp.array([5, 3, 4]))
      Array([3, 5], dtype=int32)
    """
    size = known_size(size, "intersect1d", ar1, ar2)
    most = min(math.prod(shape_of(x)) for x in (ar1, ar2))
    *results, count = _intersection(ar1, ar2, fill_value, size=most if size is None else size)
    if size is None:
        count = counted(count, "intersect1d")
        results = [cut(x, count) for x in results]
    return tuple(results) if return_indices else results[0]


@composite(static_argnames=("size",))
def _intersection(ar1, ar2, fill, *, size):
    x, y = (flattened(each) for each in _core.promote_dtypes(ar1, ar2))
    (n,), (m,) = shape_of(x), shape_of(y)
    dtype = default_int()
    if 0 in (n, m):
        values = _core.broadcast_to(_core.astype(0 if fill is None else fill, dtype_of(x)), (size,))
        return values, full((size,), n, dtype), full((size,), m, dtype), dtype.type(0)
    x, order = lax_sort((x, iota(dtype, n)))
    y, other = lax_sort((y, iota(dtype, m)))
    place = u.minimum(insertion_points(y, x, False), m - 1)
    new = concatenate([full((1,), True, bool), _changes(x, True)], 0)
    shared = u.logical_and(new, u.equal(indexing.getitem(y, place), x))
    values, count = kept(shared, x, fill, size)
    first, _ = kept(shared, order, n, size)
    second, _ = kept(shared, indexing.getitem(other, place), m, size)
    return values, first, second, count


def setdiff1d(ar1, ar2, assume_unique=False, *, size=None, fill_value=None):
    """The distinct elements of `ar1` that are not in `ar2`, in increasing order.

    Args:
      ar1, ar2: arrays, which are flattened.
      assume_unique: whether to take the elements of `ar1` as they come, in their order.
      size: how many to return, which tracing needs; None for as many as there are.
      fill_value: what stands in the place of those that are missing; 0 by default.

    Examples:
      >>> wnp.setdiff1d(wnp.array([1, 3, 5]), wnp.array([5, 4]))
      Array([1, 3], dtype=int32)
    """
    size = known_size(size, "setdiff1d", ar1, ar2)
    count = math.prod(shape_of(ar1))
    result, count = _difference(
        ar1,
        ar2,
        0 if fill_value is None else fill_value,
        distinct=bool(assume_unique),
        size=count if size is None else size,
    )
    return cut(result, counted(count, "setdiff1d")) if size is None else result


@composite(static_argnames=("distinct", "size"))
def _difference(ar1, ar2, fill, *, distinct, size):
    x = flattened(ar1)
    valid = full(shape_of(x), True, bool)
    if not distinct:
        x, valid = _distinct_in_front(x)
    missing = u.logical_not(_contained(x, ar2, "auto"))
    return kept(u.logical_and(valid, missing), x, fill, size)


def _distinct_in_front(x):
    """A vector sorted, and where it has an element for the first time."""
    n = shape_of(x)[0]
    if n == 0:
        return x, full((0,), True, bool)
    x = lax_sort(x)
    return x, concatenate([full((1,), True, bool), _changes(x, True)], 0)


def setxor1d(ar1, ar2, assume_unique=False, *, size=None, fill_value=None):
    """The distinct elements that are in one of two arrays only, in increasing order.

    Args:
      ar1, ar2: arrays, which are flattened.
      assume_unique: whether each has distinct elements; those that occur twice are left out then.
      size: how many to return, which tracing needs; None for as many as there are.
      fill_value: what stands in the place of those that are missing; by default the first one.

    Examples:
      >>> wnp.setxor1d(wnp.array([1, 3, 5]), wnp.array([5, 4]))
      Array([1, 3, 4], dtype=int32)
    """
    size = known_size(size, "setxor1d", ar1, ar2)
    most = sum(math.prod(shape_of(x)) for x in (ar1, ar2))
    result, count = _exclusive(
        ar1, ar2, fill_value, distinct=bool(assume_unique), size=most if size is None else size
    )
    return cut(result, counted(count, "setxor1d")) if size is None else result


@composite(static_argnames=("distinct", "size"))
def _exclusive(ar1, ar2, fill, *, distinct, size):
    parts = [flattened(x) for x in _core.promote_dtypes(ar1, ar2)]
    if distinct:
        both = lax_sort(concatenate(parts, 0))
        valid = full(shape_of(both), True, bool)
    else:
        pairs = [_distinct_in_front(x) for x in parts]
        repeated = concatenate([u.logical_not(valid) for _, valid in pairs], 0)
        # The ones to leave out go to the end.
        repeated, both = lax_sort((repeated, concatenate([x for x, _ in pairs], 0)), num_keys=2)
        valid = u.logical_not(repeated)
    if not shape_of(both)[0]:
        return kept(valid, both, fill, size)
    start = full((1,), True, bool)
    differs = u.logical_or(_changes(both, False), sliced(u.logical_not(valid), 1, None))
    single = u.logical_and(concatenate([start, differs], 0), concatenate([differs, start], 0))
    return kept(u.logical_and(valid, single), both, fill, size)


_ISIN = ("auto", "compare_all", "binary_search", "sort")
_FEW = 16  # as many are compared one by one


def isin(element, test_elements, assume_unique=False, invert=False, *, method="auto"):
    """Whether each element is among others.

    Args:
      element: array or number.
      test_elements: the others, of any shape. NaN equals nothing.
      assume_unique: has no effect: elements may occur several times.
      invert: whether to tell instead if it is not among them.
      method: "compare_all" compares each with each, "binary_search" and "sort" sort the others or
        all; "auto" chooses.

    Returns:
      bool array of the shape of `element`.

    Raises AttributeValueError (a ValueError) for another method.

    Examples:
      >>> wnp.isin(wnp.array([[1, 2], [3, 4]]), wnp.array([2, 4]))
      Array([[False,  True],
             [False,  True]], dtype=bool)
    """
    if method not in _ISIN:
        raise AttributeValueError(f"[isin] expected a method of {', '.join(_ISIN)}; got {method!r}")
    # A comparison takes Python integers exactly.
    if type(test_elements) is int:
        return (u.not_equal if invert else u.equal)(element, test_elements)
    if type(element) is int:
        found = array_any(u.equal(test_elements, element))
        return u.logical_not(found) if invert else found
    return _isin(element, test_elements, invert=bool(invert), method=method)


@composite(static_argnames=("invert", "method"))
def _isin(element, tests, *, invert, method):
    result = _contained(element, tests, method)
    return u.logical_not(result) if invert else result


def _contained(element, tests, method):
    element, tests = _core.promote_dtypes(element, tests)
    tests = flattened(tests)
    n = shape_of(tests)[0]
    if n == 0:
        return full(shape_of(element), False, bool)
    if method == "compare_all" or (method == "auto" and n <= _FEW):
        each = expand_dims(tests, range(1, ndim_of(element) + 1))
        return array_any(u.equal(each, expand_dims(element, (0,))), 0)
    tests = lax_sort(tests)
    way = "sort" if method == "sort" else "scan"
    place = u.minimum(insertion_points(tests, element, False, way), n - 1)
    return u.equal(indexing.getitem(tests, place), element)
