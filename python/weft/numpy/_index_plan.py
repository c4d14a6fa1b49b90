"""What an index means: NumPy's indexing rules, worked out before any array is touched.

An index is read into entries, one for each axis of the array and each new axis. From the entries
comes a `Block` when all are integers, slices and new axes, and else a `Plan` for gather or scatter.
Both are static; the positions, which may vary, are operands that they number.
"""

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import _core, _slice
from weft._dims import is_symbolic_dim, slice_extent
from weft.dtypes import default_int, is_bool, is_integer
from weft.errors import (
    AttributeValueError,
    ConcretizationTypeError,
    ForeignArrayError,
    IndexOutOfBoundsError,
    JAXIndexError,
    NonConcreteBooleanIndexError,
    OperandError,
    TracerArrayConversionError,
)
from weft.lax._shape import common_shape

_INT32 = np.iinfo(np.int32)


class NewAxis(NamedTuple):
    """None."""


class Slice(NamedTuple):
    """Elements start, start + step, ... of an axis, `count` in all."""

    axis: int
    start: int
    count: int
    step: int


class Position(NamedTuple):
    """One element of an axis; `at` is a Python integer or an array without axes."""

    axis: int
    at: Any


class Window(NamedTuple):
    """Elements at, at + step, ... of an axis, `count` in all; `at` as for Position."""

    axis: int
    at: Any
    count: int
    step: int


class Positions(NamedTuple):
    """Elements of an axis that an array of integers gives; without an axis, True or False."""

    axis: int | None
    at: Any
    shape: tuple


class _Mask(NamedTuple):
    values: np.ndarray


def read_index(shape, index):
    """The entries of an index into an array of a shape, and where to put the axes of index arrays.

    That is the number of the entry in whose place they go; None for in front of everything.
    """
    if isinstance(index, list):
        raise OperandError(
            "[index] expected integers, slices, arrays or a tuple of these; got a list: convert it "
            "to an array"
        )
    items = [_checked(item) for item in (index if isinstance(index, tuple) else (index,))]
    ellipses = sum(item is Ellipsis for item in items)
    consumed = sum(map(_axes_of, items))
    if ellipses > 1:
        raise IndexOutOfBoundsError(f"[index] expected at most one '...'; got {ellipses}")
    if consumed > len(shape):
        raise IndexOutOfBoundsError(
            f"[index] expected at most {len(shape)} indices into an array of shape {shape}; "
            f"got {consumed}"
        )
    if not ellipses:
        items.append(Ellipsis)
    entries, axis, runs = [], 0, []
    for number, item in enumerate(items):
        if item is Ellipsis:
            wanted = [Slice(a, 0, shape[a], 1) for a in range(axis, axis + len(shape) - consumed)]
            axis += len(wanted)
        else:
            wanted = _entries(item, axis, shape)
            axis += _axes_of(item)
        if wanted and isinstance(wanted[0], (Position, Positions)):
            runs.append((number, len(entries)))
        entries += wanted
    # Integers and arrays with only each other between them stand together, else in front.
    together = runs and runs[-1][0] - runs[0][0] == len(runs) - 1
    return tuple(entries), runs[0][1] if together else None


def _checked(item):
    if item is None or item is Ellipsis or isinstance(item, (slice, _slice.Slice)):
        return item
    if isinstance(item, str):
        raise OperandError(f"[index] expected integers, slices or arrays; got {item!r}")
    if isinstance(item, (list, tuple)):
        item = _of_sequence(item) if len(item) else np.zeros(0, np.int32)
    if isinstance(item, (bool, np.bool_)):
        return _Mask(np.asarray(item))
    if isinstance(item, np.ndarray) and item.shape == (0,) and item.dtype == bool:
        item = np.zeros(0, np.int32)  # as an empty list, it says nothing of its dtype
    try:
        shape, dtype, _ = _core.typeof(item)
    except ForeignArrayError:
        raise
    except OperandError:
        of_elements = isinstance(item, (Sequence, np.ndarray, np.generic))
        error = OperandError if of_elements else JAXIndexError
        raise error(
            f"[index] expected integers, slices, '...', None or arrays; got {item!r:.60}"
        ) from None
    if is_bool(dtype):
        return _Mask(_known_mask(item, shape))
    if not is_integer(dtype):
        raise OperandError(f"[index] expected indices of integer or bool dtype; got {dtype}")
    return item


def _of_sequence(item):
    try:
        return np.asarray(item)
    except TracerArrayConversionError:
        from weft.numpy._creation import array  # which indexes arrays

        return array(item)
    except ValueError as error:
        raise AttributeValueError(
            f"[index] expected sequences nested to the same depth and length; got {error}"
        ) from None


def _beyond():
    """The least integer that is none of the default dtype."""
    return 1 << (8 * default_int().itemsize - 1)


def _known_mask(mask, shape):
    try:
        return np.asarray(mask)
    except ConcretizationTypeError:
        raise NonConcreteBooleanIndexError(
            f"[index] expected a mask whose values are known; got a traced bool array of shape "
            f"{shape}. The shape of the result would depend on its values: use "
            "weft.numpy.where(mask, x, y), which keeps the shape"
        ) from None


def _axes_of(item):
    if item is None or item is Ellipsis:
        return 0
    return item.values.ndim if isinstance(item, _Mask) else 1


def _entries(item, axis, shape):
    if item is None:
        return [NewAxis()]
    if isinstance(item, slice):
        return [Slice(axis, *slice_extent(item, shape[axis]))]
    if isinstance(item, _slice.Slice):
        return [_window(item, axis, shape[axis])]
    if isinstance(item, _Mask):
        return _mask_entries(item.values, axis, shape)
    own_shape = _core.typeof(item)[0]
    if own_shape:
        return [Positions(axis, item, own_shape)]
    static = isinstance(item, (int, np.integer))
    if static and int(item) not in range(-_beyond(), _beyond()):
        raise OverflowError(f"[index] expected an index of dtype {default_int()}; got {item}")
    return [Position(axis, operator.index(item) if static else item)]


def _window(item, axis, dim):
    count = operator.index(item.size)
    if count < 0 or (item.stride == 1 and count > dim):
        raise OperandError(f"[index] expected a slice of 0 to {dim} elements; got {item}")
    shape, dtype, _ = _core.typeof(item.start)
    if shape or not is_integer(dtype):
        raise OperandError(f"[index] expected an integer as the start of a slice; got {item}")
    return Window(axis, item.start, count, item.stride)


def _mask_entries(mask, axis, shape):
    if mask.ndim == 0:
        return [Positions(None, None, (int(mask),))]
    covered = shape[axis : axis + mask.ndim]
    # As in NumPy, a mask without elements stands for no elements of axes of any size.
    if any(n not in (0, size) for n, size in zip(mask.shape, covered, strict=False)) or (
        len(covered) < mask.ndim
    ):
        raise IndexOutOfBoundsError(
            f"[index] expected a mask of shape {covered}, that of the axes it stands for; "
            f"got {mask.shape}"
        )
    places = (at.astype(np.int32) for at in mask.nonzero())
    return [Positions(axis + i, at, at.shape) for i, at in enumerate(places)]


def is_basic(entries):
    """Whether there are integers, slices and new axes only."""
    return not any(isinstance(entry, (Positions, Window)) for entry in entries)


class _Operands:
    """Collects the positions that are passed to a program."""

    def __init__(self, shape, wrap):
        self.shape = shape
        self.wrap = wrap
        self.values = []

    def add(self, at, axis):
        """The number of an operand, and the size to add to it where it is negative (0: none)."""
        size = self.shape[axis]
        wrap = self.wrap
        if isinstance(at, int):
            # From the end of an axis whose size is a symbol the program counts.
            wrap = wrap and at < 0 and is_symbolic_dim(size)
            at = at + size if self.wrap and at < 0 and not wrap else at
            at = np.int32(min(max(at, _INT32.min), _INT32.max))
        self.values.append(at)
        return len(self.values) - 1, size if wrap else 0


class Start(NamedTuple):
    """The first element of a block along an axis."""

    axis: int
    operand: int
    wrap: int
    checked: bool  # it may be out of bounds
    outside: bool = False  # it is


class Block(NamedTuple):
    """A part of an array between fixed or computed bounds, in steps."""

    starts: tuple  # a Start for each axis where it is not 0
    covers: tuple  # size along each axis from the first to the last element
    strides: tuple  # positive
    reverse: tuple  # axes whose elements are taken from the last to the first
    axes: tuple  # the axis that each axis of the result is, None for new ones
    result: tuple  # shape of what the index stands for


def block_of(shape, entries):
    """The Block of a basic index, and its operands."""
    operands = _Operands(shape, wrap=True)
    starts, covers, strides, reverse, axes, result = [], [], [], [], [], []
    for entry in entries:
        if isinstance(entry, NewAxis):
            axes.append(None)
            result.append(1)
        elif isinstance(entry, Position):
            known, size = isinstance(entry.at, int), shape[entry.axis]
            outside = known and not -size <= entry.at < size
            operand, wrap = operands.add(entry.at, entry.axis)
            starts.append(Start(entry.axis, operand, wrap, outside or not known, outside))
            covers.append(1)
            strides.append(1)
        else:
            axis, start, count, step = entry
            cover = (count - 1) * abs(step) + 1 if count else 0
            low = start if step > 0 else start - cover + 1
            if cover < shape[axis]:
                starts.append(Start(axis, *operands.add(low, axis), False))
            if step < 0:
                reverse.append(axis)
            covers.append(cover)
            strides.append(abs(step))
            axes.append(axis)
            result.append(count)
    lists = (starts, covers, strides, reverse, axes, result)
    return Block(*map(tuple, lists)), tuple(operands.values)


class Component(NamedTuple):
    """One component of the index vectors: along which axis of the array it counts, and its values.

    They are an operand, or start, start + step, ... for a slice in steps; with both, their sum.
    """

    axis: int | None
    dims: tuple  # axes of the index vectors that the values lie along
    operand: int | None = None
    wrap: int = 0
    start: int = 0
    step: int = 0


class Plan(NamedTuple):
    """An index as gather and scatter see it."""

    components: tuple
    vectors: tuple  # shape of the index vectors, without their components
    offset: tuple  # axes of the result that run within windows; new axes are not counted
    collapsed: tuple  # axes of the array that windows have size 1 along
    sizes: tuple  # of the windows
    new_axes: tuple  # axes of the result that None stands for
    result: tuple  # shape of what the index stands for


def plan_of(shape, entries, place, wrap=True):
    """The Plan of any index, and its operands; `place` is from read_index."""
    operands = _Operands(shape, wrap)
    common = common_shape([e.shape for e in entries if isinstance(e, Positions)], "index")
    components, vectors, offset, collapsed, new_axes, result = [], [], [], [], [], []
    sizes = list(shape)
    arrays_at = None  # the axis of the index vectors where the common axes begin

    def place_arrays():
        nonlocal arrays_at
        arrays_at = len(vectors)
        vectors.extend(common)
        result.extend(common)

    if place is None:
        place_arrays()
    later = []
    for number, entry in enumerate(entries):
        if number == place:
            place_arrays()
        if isinstance(entry, NewAxis):
            new_axes.append(len(result))
            result.append(1)
        elif isinstance(entry, (Position, Positions)):
            if entry.axis is not None:
                sizes[entry.axis] = 1
                collapsed.append(entry.axis)
                later.append(entry)
        elif isinstance(entry, Window):
            at = operands.add(entry.at, entry.axis)
            if entry.step == 1:
                offset.append(len(result) - len(new_axes))
                components.append(Component(entry.axis, (), *at))
            else:
                collapsed.append(entry.axis)
                dims = (len(vectors),)
                components.append(Component(entry.axis, dims, *at, step=entry.step))
                vectors.append(entry.count)
            sizes[entry.axis] = entry.count if entry.step == 1 else 1
            result.append(entry.count)
        elif entry.step == 1:
            offset.append(len(result) - len(new_axes))
            sizes[entry.axis] = entry.count
            result.append(entry.count)
            if entry.count < shape[entry.axis]:
                operand, _ = operands.add(entry.start, entry.axis)
                components.append(Component(entry.axis, (), operand))
        else:
            sizes[entry.axis] = 1
            collapsed.append(entry.axis)
            dims = (len(vectors),)
            components.append(Component(entry.axis, dims, start=entry.start, step=entry.step))
            vectors.append(entry.count)
            result.append(entry.count)
    for entry in later:
        rank = len(entry.shape) if isinstance(entry, Positions) else 0
        end = (arrays_at or 0) + len(common)
        dims = tuple(range(end - rank, end))
        components.append(Component(entry.axis, dims, *operands.add(entry.at, entry.axis)))
    components.sort(key=lambda c: c.axis)
    lists = (components, vectors, offset, sorted(collapsed), sizes, new_axes, result)
    return Plan(*map(tuple, lists)), tuple(operands.values)
