"""Entries: values and the index vectors that say where they are.

`data` has shape (nse, *dense), `indices` (nse, n_sparse); `sizes` are those of the sparse axes. An
entry whose index vector lies outside of `sizes` is padding: it is not part of the array. Functions
that move entries write padding as `sizes`, one past the end of every axis. `are_inside`, `moved`,
`tidied` and `masked` take batch axes in front; of the others, `over_batch` makes such functions.
"""

import math

import numpy as np

from weft import _core, lax, numpy as wnp
from weft._vmap import vmap
from weft.errors import AttributeValueError, ConcretizationTypeError


def over_batch(f, n_batch):
    """`f` on each element of leading batch axes of its arguments."""
    for _ in range(n_batch):
        f = vmap(f)
    return f


def sizes_like(sizes, indices):
    return np.asarray(sizes, _core.typeof(indices)[1])


def are_inside(indices, sizes):
    """A mask of the entries that are part of the array."""
    return ((indices >= 0) & (indices < sizes_like(sizes, indices))).all(-1)


def tidied(indices, sizes):
    """Indices with all padding at `sizes`."""
    return moved(indices, are_inside(indices, sizes), sizes)


def moved(indices, inside, sizes):
    """Index vectors in an array of other sizes; `inside` says which are in it."""
    return wnp.where(inside[..., None], indices, sizes_like(sizes, indices))


def masked(data, inside):
    """Values with zeros in place of padding."""
    inside = inside.reshape(*inside.shape, *[1] * (data.ndim - inside.ndim))
    return wnp.where(inside, data, wnp.zeros((), data.dtype))


def _columns(indices):
    return tuple(indices[:, i] for i in range(indices.shape[1]))


def put(data, indices, sizes):
    """The array (*sizes, *dense) that the entries stand for: duplicates are added up."""
    dense = data.shape[1:]
    if not sizes:
        return total(masked(data, are_inside(indices, sizes)))
    out = wnp.zeros((*sizes, *dense), data.dtype)
    at = out.at[_columns(tidied(indices, sizes))]
    return at.max(data, mode="drop") if data.dtype == bool else at.add(data, mode="drop")


def total(data):
    """The sum over entries, of the same dtype."""
    return data.any(0) if data.dtype == bool else data.sum(0, dtype=data.dtype)


def taken(array, indices, fill=0):
    """Elements (nse, *dense) of an array (*sizes, *dense) at index vectors; `fill` for padding."""
    n_sparse = indices.shape[1]
    if not n_sparse:
        return wnp.broadcast_to(array, (indices.shape[0], *array.shape))
    where = _columns(tidied(indices, array.shape[:n_sparse]))
    return array.at[where].get(mode="fill", fill_value=fill)


def check_countable(sizes, indices):
    """Raises unless an index can number all places."""
    if math.prod(sizes) > np.iinfo(indices.dtype).max:
        raise AttributeValueError(
            f"expected sizes {tuple(sizes)} whose product an index of dtype {indices.dtype.name} "
            "holds"
        )


def flat_index(indices, sizes):
    """One number for each index vector, row-major; the product of the sizes for padding."""
    check_countable(sizes, indices)
    number = wnp.zeros(indices.shape[:1], indices.dtype)
    for i, size in enumerate(sizes):
        number = number * size + indices[:, i]
    return wnp.where(are_inside(indices, sizes), number, math.prod(sizes))


def sorting(indices):
    """(indices in lexicographic order, the number of the entry that stands at each place)."""
    nse, n_sparse = indices.shape
    if not n_sparse:
        return indices, wnp.arange(nse, dtype=indices.dtype)
    number = lax.iota(indices.dtype, nse)
    *columns, order = lax.sort([*_columns(indices), number], num_keys=n_sparse)
    return wnp.stack(columns, 1), order


def grouped(indices, sizes):
    """Numbers entries so that those of one place have one number, in lexicographic order.

    Returns (the number of each entry, how many places there are). Padding is not counted: it has
    the largest number of the dtype.
    """
    ordered, order = sorting(tidied(indices, sizes))
    inside = are_inside(ordered, sizes)
    is_new = wnp.concatenate(
        [wnp.ones((min(len(ordered), 1),), bool), (ordered[1:] != ordered[:-1]).any(-1)]
    )
    number = wnp.cumsum(is_new, dtype=indices.dtype) - 1
    count = (is_new & inside).sum(dtype=indices.dtype)
    number = wnp.where(inside, number, np.iinfo(number.dtype).max)
    return wnp.zeros_like(order).at[order].set(number, unique_indices=True), count


def collected(data, number, nse):
    """Sums (nse, *dense) of the values that have one number."""
    out = wnp.zeros((nse, *data.shape[1:]), data.dtype)
    at = out.at[number]
    return at.max(data, mode="drop") if data.dtype == bool else at.add(data, mode="drop")


def places(indices, number, nse, sizes):
    """Index vectors (nse, n_sparse) of numbered places; padding where there are fewer."""
    out = wnp.broadcast_to(sizes_like(sizes, indices), (nse, len(sizes)))
    return out.at[number].set(tidied(indices, sizes), mode="drop")


def known(count):
    """The value of a scalar as an int, None while it is traced."""
    try:
        return int(count)
    except ConcretizationTypeError:
        return None
