"""Sorting, and searching in what is sorted. NaN counts as greater than any number."""

from weft import _core
from weft._arguments import (
    is_beyond,
    limit_beside,
    ndim_of,
    normalize_axis,
    shape_of,
    static_int,
    weak_as,
)
from weft._jit import composite
from weft.dtypes import (
    default_int,
    dtype_of,
    is_complex,
    is_inexact,
    is_integer,
    requested_dtype,
    to_complex_dtype,
    to_inexact_dtype,
)
from weft.errors import AttributeValueError, DTypeError, OperandError, ShapeError
from weft.lax._control import fori_loop
from weft.lax._creation import broadcasted_iota, full
from weft.lax._cumulative import cumsum
from weft.lax._shape import concatenate, expand_dims, rev
from weft.lax._slice import sliced
from weft.lax._sort import sort as lax_sort, sort_key_val, top_k as lax_top_k
from weft.numpy import _indexing as indexing, _ufuncs as u
from weft.numpy._products import flattened
from weft.numpy._reductions import sum as array_sum
from weft.numpy._select import choose
from weft.numpy._shape import ravel


def _reject(function, **options):
    for name, value in options.items():
        if value is not None:
            raise TypeError(
                f"[{function}] {name} is not supported and must be None; got {value!r}. "
                "Use stable=True or stable=False."
            )


def sort(a, axis=-1, *, kind=None, order=None, stable=True, descending=False):
    """The elements along an axis in increasing order; NaN comes last.

    Args:
      a: array with at least one axis. Complex numbers are ordered by their real, then by their
        imaginary parts.
      axis: the axis; None sorts the flattened array.
      kind, order: not supported, must be None.
      stable: whether equal elements keep their order.
      descending: whether to sort in decreasing order; NaN comes first.

    Examples:
      >>> wnp.sort(wnp.array([[3, 1, 2], [6, 5, 4]]))
      Array([[1, 2, 3],
             [4, 5, 6]], dtype=int32)
      >>> wnp.sort(wnp.array([3, 1, 2]), descending=True)
      Array([3, 2, 1], dtype=int32)
    """
    _reject("sort", kind=kind, order=order)
    if axis is None:
        a, axis = ravel(a), 0
    axis = normalize_axis(axis, ndim_of(a), "sort")
    return _sort(a, axis=axis, stable=bool(stable), descending=bool(descending))


@composite(static_argnames=("axis", "stable", "descending"))
def _sort(a, *, axis, stable, descending):
    result = lax_sort(a, axis, stable)
    return weak_as(rev(result, (axis,)) if descending else result, a)


def argsort(a, axis=-1, *, kind=None, order=None, stable=True, descending=False, dtype=None):
    """The positions of the elements along an axis in increasing order of the elements.

    Args:
      a: array with at least one axis.
      axis: the axis; None takes the flattened array.
      kind, order: not supported, must be None.
      stable: whether the positions of equal elements increase.
      descending: whether the order is decreasing; see `sort`.
      dtype: dtype of the result, the default integer dtype if None.

    Examples:
      >>> wnp.argsort(wnp.array([30, 10, 20]))
      Array([1, 2, 0], dtype=int32)
    """
    _reject("argsort", kind=kind, order=order)
    if axis is None:
        a, axis = ravel(a), 0
    return _argsort(
        a,
        axis=normalize_axis(axis, ndim_of(a), "argsort"),
        stable=bool(stable),
        descending=bool(descending),
        dtype=default_int() if dtype is None else requested_dtype(dtype, "argsort"),
    )


@composite(static_argnames=("axis", "stable", "descending", "dtype"))
def _argsort(a, *, axis, stable, descending, dtype):
    at = broadcasted_iota(default_int(), shape_of(a), axis)
    if descending and stable:  # so that equal elements are in order once the result is reversed
        a, at = rev(a, (axis,)), rev(at, (axis,))
    _, at = sort_key_val(a, at, axis, stable)
    return _core.astype(rev(at, (axis,)) if descending else at, dtype)


def top_k(a, k, /, *, axis=-1, mode="largest", sorted=True):
    """The greatest or smallest elements along an axis, and their positions.

    Args:
      a: array of a real dtype with at least one axis.
      k: how many, an integer of at most the size of the axis.
      axis: the axis.
      mode: "largest" or "smallest".
      sorted: has no effect: the results are in order, and of equal elements the first comes first.

    Returns:
      `(values, positions)`, arrays with `k` elements along the axis; the positions are int32. NaN
      is greater than all numbers.

    Raises:
      DTypeError: for complex numbers.
      AttributeValueError: for another `mode`, or a `k` or an axis that the array does not have.

    Examples:
      >>> wnp.top_k(wnp.array([5, 9, 7]), 2, mode="smallest")
      (Array([5, 7], dtype=int32), Array([0, 2], dtype=int32))
    """
    if mode not in ("largest", "smallest"):
        raise AttributeValueError(
            f"[top_k] expected mode to be 'largest' or 'smallest'; got {mode!r}"
        )
    a = u.positive(a)
    if mode == "largest":
        return tuple(lax_top_k(a, k, axis=axis))
    if is_complex(dtype_of(a)):
        raise DTypeError(f"[top_k] expected real numbers; got {dtype_of(a)}")
    axis, k = normalize_axis(axis, ndim_of(a), "top_k"), static_int(k, "top_k", "k")
    if not 0 <= k <= shape_of(a)[axis]:
        raise AttributeValueError(
            f"[top_k] expected k to be from 0 to {shape_of(a)[axis]}, the size of the axis; got {k}"
        )
    return _smallest(a, k=k, axis=axis)


@composite(static_argnames=("k", "axis"))
def _smallest(a, *, k, axis):
    at = broadcasted_iota("int32", shape_of(a), axis)
    return tuple(sliced(x, 0, k, axis=axis) for x in sort_key_val(a, at, axis, True))


def lexsort(keys, axis=-1):
    """The positions that sort by several keys, the last one first.

    Args:
      keys: arrays of one shape; a sequence, or stacked along the first axis of an array.
      axis: the axis to sort along.

    Raises ShapeError for keys of different shapes.

    Examples:
      >>> main = wnp.array([1, 0, 1, 0])
      >>> wnp.lexsort((wnp.array([3, 2, 1, 4]), main))
      Array([1, 3, 2, 0], dtype=int32)
    """
    keys = _key_arrays(keys)
    shape = shape_of(keys[0])
    if any(shape_of(key) != shape for key in keys):
        raise ShapeError(f"[lexsort] expected keys of one shape; got {[shape_of(k) for k in keys]}")
    if not shape:
        return _core.asarray(default_int().type(0))
    return _lexsort(tuple(keys), axis=normalize_axis(axis, len(shape), "lexsort"))


def _key_arrays(keys):
    try:
        keys = tuple(keys)
    except TypeError:
        keys = ()
    if not keys:
        raise OperandError("[lexsort] expected a sequence of at least one array")
    return keys


@composite(static_argnames=("axis",))
def _lexsort(keys, *, axis):
    at = broadcasted_iota(default_int(), shape_of(keys[0]), axis)
    return lax_sort((*reversed(keys), at), axis, num_keys=len(keys))[-1]


def _kth(function, a, kth, axis):
    axis = normalize_axis(axis, ndim_of(a), function)
    size, place = shape_of(a)[axis], static_int(kth, function, "kth")
    if not -size <= place < size:
        raise AttributeValueError(
            f"[{function}] expected kth to be within the size {size} of axis {axis}; got {place}"
        )
    if is_complex(dtype_of(a)):
        raise NotImplementedError(f"[{function}] expected real numbers; got {dtype_of(a)}")
    return axis, place % size


def partition(a, kth, axis=-1):
    """The elements along an axis, with those up to the k-th smallest in front.

    Args:
      a: array of real numbers.
      kth: the element at this position is the one that sorting would put there; all before are no
        greater, all after it are no less. These may come in any order.
      axis: the axis.

    Examples:
      >>> smallest = wnp.partition(wnp.array([7, 3, 9, 1]), 2)[:3]
      >>> wnp.sort(smallest)
      Array([1, 3, 7], dtype=int32)
    """
    axis, kth = _kth("partition", a, kth, axis)
    return _partition(a, kth=kth, axis=axis)


@composite(static_argnames=("kth", "axis"))
def _partition(a, *, kth, axis):
    at = lax_sort(a, axis)
    rest = sliced(at, kth + 1, None, axis=axis)  # the greatest first
    at = concatenate([sliced(at, 0, kth + 1, axis=axis), rev(rest, (axis,))], axis)
    return weak_as(at, a)


def argpartition(a, kth, axis=-1):
    """The positions of the elements up to the k-th smallest, then those of the others, as int32.

    The others come in the order in which they stand in `a`; for the arguments see `partition`.

    Examples:
      >>> positions = wnp.argpartition(wnp.array([7, 3, 9, 1]), 1)[:2]
      >>> wnp.sort(positions)
      Array([1, 3], dtype=int32)
    """
    axis, kth = _kth("argpartition", a, kth, axis)
    return _argpartition(a, kth=kth, axis=axis)


@composite(static_argnames=("kth", "axis"))
def _argpartition(a, *, kth, axis):
    at = sort_key_val(a, broadcasted_iota("int32", shape_of(a), axis), axis)[1]
    rest = sliced(at, kth + 1, None, axis=axis)
    return concatenate([sliced(at, 0, kth + 1, axis=axis), lax_sort(rest, axis)], axis)


def sort_complex(a):
    """The elements along the last axis in increasing order, as complex numbers.

    Examples:
      >>> wnp.sort_complex(wnp.array([2, 1 + 1j, 1]))
      Array([1.+0.j, 1.+1.j, 2.+0.j], dtype=complex64)
    """
    normalize_axis(-1, ndim_of(a), "sort_complex")
    return _sort_complex(a)


@composite
def _sort_complex(a):
    return _core.astype(lax_sort(a), to_complex_dtype(to_inexact_dtype(dtype_of(a))))


# ---- search

METHODS = ("compare_all", "scan", "scan_unrolled", "sort")


def searchsorted(a, v, side="left", sorter=None, *, method="scan"):
    """Where in a sorted array values would be inserted to keep it sorted.

    Args:
      a: one-dimensional array in increasing order.
      v: the values, of any shape.
      side: "left" for the first such position, in front of equal elements, "right" for the last.
      sorter: positions that bring `a` into order, if it is not.
      method: "scan" bisects in a loop, "scan_unrolled" without one, which takes longer to compile;
        "sort" sorts all the values into the array; "compare_all" compares each with each.

    Returns:
      int32 array of the shape of `v`.

    Raises ShapeError for an `a` that is no vector, AttributeValueError (a ValueError) for another
    side or method, DTypeError for a sorter that is no vector of integers.

    Examples:
      >>> wnp.searchsorted(wnp.array([10, 20, 30]), wnp.array([5, 20, 35]))
      Array([0, 1, 3], dtype=int32)
      >>> wnp.searchsorted(wnp.array([10, 20, 30]), 20, side="right")
      Array(2, dtype=int32)
    """
    if ndim_of(a) != 1:
        raise ShapeError(f"[searchsorted] expected a one-dimensional array; got {shape_of(a)}")
    if side not in ("left", "right"):
        raise AttributeValueError(f"[searchsorted] expected side 'left' or 'right'; got {side!r}")
    _check_method("searchsorted", method)
    if sorter is not None and (not is_integer(dtype_of(sorter)) or ndim_of(sorter) != 1):
        raise DTypeError(
            "[searchsorted] expected as sorter a one-dimensional array of integers; got "
            f"{dtype_of(sorter)}{list(shape_of(sorter))}"
        )
    right = side == "right"
    if beyond := is_beyond(v, dtype_of(a)):  # behind all elements, or in front of them
        v, right = limit_beside(v, dtype_of(a)), beyond > 0
    return _searchsorted(a, v, sorter, right=right, method=method)


def _check_method(function, method):
    if method not in METHODS:
        raise AttributeValueError(
            f"[{function}] expected a method of {', '.join(METHODS)}; got {method!r}"
        )


@composite(static_argnames=("right", "method"))
def _searchsorted(a, v, sorter, *, right, method):
    a, v = _core.promote_dtypes(a, v)
    if sorter is not None:
        a = indexing.getitem(a, sorter)
    return insertion_points(a, v, right, method)


def insertion_points(a, v, right, method="scan"):
    """`searchsorted` for arrays of one dtype, within a composite."""
    if 0 in (shape_of(a)[0], *shape_of(v)):
        return full(shape_of(v), 0, "int32")
    if method == "compare_all":
        each = expand_dims(a, range(1, ndim_of(v) + 1))
        return array_sum(_precedes(each, expand_dims(v, (0,)), right), 0, "int32")
    if method == "sort":
        return _by_sorting(a, v, right)
    return _by_bisection(a, v, right, method == "scan_unrolled")


def _less(x, y):
    """Whether x comes before y when sorted."""
    if is_complex(dtype_of(x)):
        xs, ys = ((u.real(z), u.imag(z)) for z in (x, y))
        tied = u.logical_not(u.logical_or(_less(xs[0], ys[0]), _less(ys[0], xs[0])))
        return u.logical_or(_less(xs[0], ys[0]), u.logical_and(tied, _less(xs[1], ys[1])))
    result = u.less(x, y)
    if is_inexact(dtype_of(x)):
        last = u.logical_and(u.isnan(y), u.logical_not(u.isnan(x)))
        result = u.logical_or(result, last)
    return result


def _precedes(element, value, right):
    """Whether an element of the array stands before the place of a value."""
    return u.logical_not(_less(value, element)) if right else _less(element, value)


def _by_bisection(a, v, right, unrolled):
    n = shape_of(a)[0]
    bits = int(n).bit_length()

    def advanced(place, stride):
        # `place` elements are known to stand before; are the next `stride` ones as well?
        last = u.subtract(u.add(place, stride), 1)
        element = indexing.getitem(a, u.minimum(last, n - 1))
        further = u.logical_and(u.less(last, n), _precedes(element, v, right))
        return choose(further, u.add(place, stride), place)

    place = full(shape_of(v), 0, "int32")
    if unrolled:
        for bit in reversed(range(bits)):
            place = advanced(place, 1 << bit)
        return place
    highest = _core.asarray(dtype_of(place).type(1 << (bits - 1)))
    return fori_loop(0, bits, lambda i, place: advanced(place, u.right_shift(highest, i)), place)


def _by_sorting(a, v, right):
    flat = flattened(v)
    n, m = shape_of(a)[0], shape_of(flat)[0]
    # Of equal ones those of the array come first if they count as standing before.
    parts = [a, flat] if right else [flat, a]
    at = _argsort(concatenate(parts, 0), axis=0, stable=True, descending=False, dtype=default_int())
    from_array = u.less(at, n) if right else u.greater_equal(at, m)
    before = cumsum(_core.astype(from_array, "int32"))
    before = indexing.update("set", full((n + m,), 0, "int32"), at, before, unique=True)
    start = n if right else 0
    return _core.bind("reshape", before[start : start + m], new_sizes=shape_of(v))


def digitize(x, bins, right=False, *, method=None):
    """The number of the bin that each value falls into.

    Args:
      x: the values, of any shape.
      bins: the borders, one-dimensional, increasing or decreasing.
      right: whether a border belongs to the bin below it instead of the one above.
      method: see `searchsorted`; None is its default.

    Returns:
      int32 array of the shape of `x`: 0 before the first border, their number after the last.

    Raises ShapeError for bins that are no vector.

    Examples:
      >>> wnp.digitize(wnp.array([5, 20, 35]), wnp.array([10, 20, 30]))
      Array([0, 2, 3], dtype=int32)
    """
    if ndim_of(bins) != 1:
        raise ShapeError(f"[digitize] expected one-dimensional bins; got shape {shape_of(bins)}")
    method = "scan" if method is None else method
    _check_method("digitize", method)
    if beyond := is_beyond(x, dtype_of(bins)):
        x, right = limit_beside(x, dtype_of(bins)), beyond < 0
    return _digitize(x, bins, right=bool(right), method=method)


@composite(static_argnames=("right", "method"))
def _digitize(x, bins, *, right, method):
    x, bins = _core.promote_dtypes(x, bins)
    n = shape_of(bins)[0]
    if n == 0:
        return full(shape_of(x), 0, "int32")
    decreasing = _less(bins[n - 1], bins[0])
    bins = choose(decreasing, rev(bins, (0,)), bins)
    place = insertion_points(bins, x, not right, method)
    return choose(decreasing, u.subtract(n, place), place)
