"""Arrays written as indices: r_, c_, mgrid, ogrid, s_, index_exp, and ix_."""

import numpy as np

from weft import _core
from weft._arguments import ndim_of, shape_of
from weft.dtypes import default_int, dtype_of, is_bool, is_integer
from weft.errors import AttributeValueError, NotImplementedRuleError, ShapeError
from weft.numpy._creation import arange, array
from weft.numpy._join import concatenate, stack
from weft.numpy._matrices import linspace, meshgrid
from weft.numpy._shape import reshape, transpose


def _range(part):
    """The numbers that a slice stands for; an imaginary step counts them. Without an end they are
    those of `arange`: from 0 to the start."""
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if isinstance(step, complex):
        return linspace(start, part.stop, int(abs(step)))
    return arange(start, part.stop, step)


def _joined(key, axis, ndmin, position):
    """The parts of an index as arrays with at least `ndmin` axes, joined along one.

    Axes that a part lacks are put before its own ones, or at `position` among them.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    shape = None
    if parts and isinstance(parts[0], str) and parts[0] in ("r", "c"):
        shape = {"r": (1, -1), "c": (-1, 1)}[parts.pop(0)]
    elif parts and isinstance(parts[0], str):
        axis, ndmin, position = _directive(parts.pop(0), axis, ndmin, position)
    if not parts:
        raise AttributeValueError("expected at least one array to join; got none")
    joined = concatenate([_part(part, ndmin, position) for part in parts], axis)
    return joined if shape is None or ndim_of(joined) > 1 else reshape(joined, shape)


def _directive(text, axis, ndmin, position):
    """(axis, ndmin, position) of a text such as "0,2,1", which may end early."""
    try:
        numbers = [int(each) for each in text.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise AttributeValueError(
            "expected one to three integers 'axis,ndmin,position', 'r' or 'c' as the first part; "
            f"got {text!r}"
        )
    return (*numbers, *(axis, ndmin, position)[len(numbers) :])


def _part(part, ndmin, position):
    if isinstance(part, str):
        raise AttributeValueError(f"expected a text as the first part alone; got {part!r}")
    x = _range(part) if isinstance(part, slice) else array(part, copy=False)
    missing = ndmin - ndim_of(x)
    if ndim_of(x) == 0:
        return reshape(x, (1,) * max(ndmin, 1))
    if missing <= 0:
        return x
    x = reshape(x, (1,) * missing + shape_of(x))
    at = position + missing + 1 if position < 0 else position
    order = range(ndmin)
    return transpose(x, [*order[:at], *order[missing:], *order[at:missing]])


class _Joined:
    """What `r_` and `c_` are."""

    def __init__(self, doc, *defaults):
        self.__doc__ = doc
        self._defaults = defaults

    def __getitem__(self, key):
        return _joined(key, *self._defaults)


r_ = _Joined(
    """Joins the parts of an index along the first axis: `r_[x, 1:5, 0]`.

    A part is an array, a number, a sequence, or a slice, which stands for the numbers from its
    start to its end (with an imaginary step `nj`, for n numbers up to the end). A text as the first
    part, "axis,ndmin,position", says along which axis to join, how many axes each part is to have
    at least, and where among these its own are put; "r" and "c" make a row and a column of a
    vector that results.
    """,
    0,
    1,
    -1,
)
c_ = _Joined(
    """Joins the parts of an index along the last axis, vectors as columns: `c_[x, y]`.

    For the parts see `r_`.
    """,
    -1,
    2,
    0,
)


def _grids(key, sparse):
    if isinstance(key, slice):
        return _range(key), True
    if not (isinstance(key, tuple) and all(isinstance(part, slice) for part in key)):
        raise TypeError(f"expected slices; got {key!r}")
    ranges = [_range(part) for part in key]
    # Whole numbers beside others are this function's affair: no promotion that users could forbid.
    others = [dtype_of(x) for x in ranges if not is_integer(dtype_of(x))]
    if others:
        ranges = [_core.astype(x, others[0]) if is_integer(dtype_of(x)) else x for x in ranges]
    ranges = _core.promote_dtypes(*ranges) if key else []
    return meshgrid(*ranges, indexing="ij", sparse=sparse), False


class _Grid:
    """What `mgrid` is."""

    def __getitem__(self, key):
        grids, single = _grids(key, False)
        return grids if single else stack(grids) if grids else array([], int)


class _OpenGrid:
    """What `ogrid` is."""

    def __getitem__(self, key):
        return _grids(key, True)[0]


mgrid = _Grid()
mgrid.__doc__ = """The coordinates of the points of a grid: `mgrid[0:3, 0:1:5j]`.

    Each slice stands for the numbers along an axis, see `r_`. The result has an axis in front with
    as many elements as there are slices; for one slice, it is those numbers.
    """
ogrid = _OpenGrid()
ogrid.__doc__ = """As `mgrid`, a tuple of arrays that broadcast to the grid."""

s_, index_exp = np.s_, np.index_exp


def ix_(*args):
    """Index arrays for the elements where the rows and columns of several vectors cross.

    Args:
      args: vectors of indices, one for each axis.

    Returns:
      Tuple of arrays, each with its elements along an axis of its own.

    Raises ShapeError for indices that are no vectors, NotImplementedRuleError for bools.

    Examples:
      >>> x = wnp.arange(12).reshape(3, 4)
      >>> x[wnp.ix_(wnp.array([0, 2]), wnp.array([1, 3]))]
      Array([[ 1,  3],
             [ 9, 11]], dtype=int32)
    """
    for x in args:
        if ndim_of(x) != 1:
            raise ShapeError(f"[ix_] expected vectors of indices; got shape {shape_of(x)}")
        if is_bool(dtype_of(x)):
            raise NotImplementedRuleError(
                "[ix_] expected vectors of integers; got one of bool\n  How many of its elements "
                "are true depends on values: use numpy.flatnonzero outside of traced functions."
            )
    results = []
    for i, x in enumerate(args):
        shape = [shape_of(x)[0] if axis == i else 1 for axis in range(len(args))]
        x = _core.astype(x, default_int()) if not shape_of(x)[0] else x
        results.append(reshape(x, shape))
    return tuple(results)
