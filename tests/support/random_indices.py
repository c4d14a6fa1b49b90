"""Random index expressions, and what NumPy makes of them.

An expression is a tuple of ints, slices, None, `...`, arrays of ints of any dtype (also negative
ones, of any number of axes) and masks. What may be traced is kept apart: `split` gives the arrays,
and a function that puts others in their place.
"""

import numpy as np

INT_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint32")


def random_shape(rng):
    rank = int(rng.integers(1, 5))
    return tuple(int(n) for n in rng.choice([0, 1, 2, 3, 4, 5], rank, p=[0.04, 0.16] + [0.2] * 4))


def random_index(rng, shape):
    """An index of an array of this shape, in bounds."""
    items, axis, common = [], 0, rng.integers(1, 4, rng.integers(0, 3)).tolist()
    while axis < len(shape):
        n = shape[axis]
        kind = rng.choice(["int", "slice", "array", "scalar", "mask", "none", "rest", "stop"],
                          p=[0.12, 0.28, 0.28, 0.06, 0.06, 0.08, 0.08, 0.04])  # fmt: skip
        if kind == "none":
            items.append(None)
            continue
        if kind == "rest":
            if rest_at(items) is None:
                items.append(...)
                axis += int(rng.integers(0, len(shape) - axis + 1))
            continue
        if kind == "stop":
            break
        if kind == "mask":
            covered = int(rng.integers(1, len(shape) - axis + 1))
            items.append(random_mask(rng, shape[axis : axis + covered], common))
            axis += covered
            continue
        if kind == "slice" or n == 0:
            items.append(random_slice(rng, n))
        elif kind == "int":
            items.append(int(rng.integers(-n, n)))
        else:
            size = [d if rng.integers(0, 3) else 1 for d in common][rng.integers(0, 2) :]
            items.append(random_positions(rng, n, [] if kind == "scalar" else size))
        axis += 1
    if rest_at(items) is None and not rng.integers(0, 6):
        items.append(...)
    return tuple(items) if len(items) != 1 or rng.integers(0, 2) else items[0]


def random_slice(rng, n):
    ends = [None if rng.integers(0, 3) == 0 else int(rng.integers(-n - 2, n + 3)) for _ in "ab"]
    return slice(*ends, rng.choice([None, 1, 2, 3, -1, -2, -3]))


def random_positions(rng, n, size):
    dtype = np.dtype(rng.choice(INT_DTYPES))
    return np.asarray(rng.integers(0 if dtype.kind == "u" else -n, n, size)).astype(dtype)


def random_mask(rng, shape, common):
    """A mask whose positions go together with index arrays of the shape `common`."""
    mask = np.zeros(shape, bool)
    count = common[-1] if common and rng.integers(0, 2) else 1
    mask.reshape(-1)[rng.permutation(mask.size)[:count]] = True
    return mask


def beyond(rng, index, shape):
    """The index with some positions out of bounds; where there are arrays."""
    axis, moved = 0, []
    for item in index:
        if item is None:
            moved.append(item)
            continue
        if item is Ellipsis:
            moved.append(item)
            axis = len(shape) - covered_axes(index[rest_at(index) + 1 :])
            continue
        if is_traced(item) and item.ndim:
            item = item.astype("int32")
            far = rng.integers(shape[axis], shape[axis] + 3, item.shape)
            item = np.where(rng.integers(0, 3, item.shape) == 0, far, item)
        moved.append(item)
        axis += item.ndim if is_mask(item) else 1
    return tuple(moved)


def rest_at(items):
    """Where `...` stands, or None."""
    return next((k for k, item in enumerate(items) if item is Ellipsis), None)


def is_mask(item):
    return isinstance(item, np.ndarray) and item.dtype == bool


def is_traced(item):
    return isinstance(item, np.ndarray) and item.dtype != bool


def covered_axes(items):
    return sum(i.ndim if is_mask(i) else 1 for i in items if i is not None and i is not Ellipsis)


def with_edge(index, shape):
    """The index for an array with one more element along each axis, to which all beyond go."""
    items = []
    at = rest_at(index)
    if at is not None:  # without axes it still parts the arrays on its sides
        rest = [slice(None)] * (len(shape) - covered_axes(index))
        index = (*index[:at], *(rest or [...]), *index[at + 1 :])
    index = (*index, *[slice(None)] * (len(shape) - covered_axes(index)))
    axis = 0
    for item in index:
        if item is Ellipsis:
            items.append(item)
            continue
        n = shape[axis] if axis < len(shape) else None
        if isinstance(item, slice):
            start, stop, step = item.indices(n)
            item = slice(start, None if stop < 0 else stop, step)
            if start < 0:  # an empty one, backwards
                item = slice(0, 0)
        elif is_traced(item):
            item = np.where(item < 0, item.astype("int64") + n, item)
            item = np.where(item >= n, n, item)
        elif is_mask(item):
            item = np.pad(item, [(0, 1)] * item.ndim)
        elif item is not None:
            item = item % n
        items.append(item)
        axis += 0 if item is None else item.ndim if is_mask(item) else 1
    return tuple(items)


def split(index):
    """The arrays of ints in an index, and a function from such arrays to the index."""
    if not isinstance(index, tuple):
        return ([index], lambda arrays: arrays[0]) if is_traced(index) else ([], lambda _: index)

    def put(arrays):
        left = iter(arrays)
        return tuple(next(left) if is_traced(item) else item for item in index)

    return [item for item in index if is_traced(item)], put
