"""Sets of input elements, by number: what each element of a value may depend on.

Elements of a value have the numbers of their sets, so that an operation that moves elements moves
these numbers, and sets that many elements share are stored once.
"""

import numpy as np

from weft.errors import AttributeValueError

# Elements of all sets together, four bytes each.
_LIMIT = 1 << 28


class Sets:
    """Set 0 is empty, set i of 1 to `size` holds element i - 1; unions have further numbers."""

    def __init__(self, size):
        self._size = size
        self._lengths = np.ones(size + 1, np.int64)
        self._lengths[0] = 0
        self._starts = np.maximum(np.arange(size + 1) - 1, 0)
        self._elements = np.arange(size, dtype=np.int32)

    def length(self, numbers):
        return self._lengths[numbers]

    def members(self, numbers):
        """(which of the given sets, element) of all elements of some sets, as two vectors."""
        lengths = self._lengths[numbers]
        which = np.repeat(np.arange(len(numbers)), lengths)
        offset = np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return which, self._elements[self._starts[numbers][which] + offset]

    def unions(self, group, numbers, count):
        """The unions of the sets that are in the same group, one for each of `count` groups."""
        kept = numbers > 0
        pairs = np.unique(group[kept].astype(np.int64) * len(self._lengths) + numbers[kept])
        group, numbers = np.divmod(pairs, len(self._lengths))
        found = np.zeros(count, np.int64)
        found[group] = numbers  # right where there is one set
        several = np.bincount(group, minlength=count)[group] > 1
        if several.any():
            self._add_unions(group[several], numbers[several], found)
        return found

    def _add_unions(self, group, numbers, found):
        # Groups of the same sets get one union.
        begins = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
        sizes = np.diff(np.r_[begins, len(group)])
        first_of = {}
        place = np.empty(len(begins), np.int64)
        for i, (begin, size) in enumerate(zip(begins, sizes, strict=True)):
            place[i] = first_of.setdefault(numbers[begin : begin + size].tobytes(), i)
        chosen = np.unique(place)
        new_number = np.zeros(len(begins), np.int64)
        new_number[chosen] = len(self._lengths) + np.arange(len(chosen))
        found[group[begins]] = new_number[place]

        is_chosen = np.zeros(len(begins), bool)
        is_chosen[chosen] = True
        kept = np.repeat(is_chosen, sizes)
        owner = np.repeat(np.cumsum(is_chosen) - 1, sizes)[kept]
        total = int(self._lengths[numbers[kept]].sum())
        if total + len(self._elements) > _LIMIT:
            raise AttributeValueError(
                "the pattern of the derivative is not sparse, or not known to be: its sets of "
                f"elements have more than {_LIMIT} members; pass `pattern`"
            )
        which, elements = self.members(numbers[kept])
        keys = np.unique(owner[which] * self._size + elements)
        owner, elements = np.divmod(keys, self._size)
        lengths = np.bincount(owner, minlength=len(chosen))
        starts = len(self._elements) + np.cumsum(lengths) - lengths
        self._lengths = np.r_[self._lengths, lengths]
        self._starts = np.r_[self._starts, starts]
        self._elements = np.r_[self._elements, elements.astype(np.int32)]

    def union_of_all(self, numbers):
        """The union of all sets that an array has."""
        numbers = np.unique(numbers)
        return self.unions(np.zeros(len(numbers), np.int64), numbers, 1)[0]

    def joined(self, operands):
        """Element by element, the unions of the sets of several arrays of one shape."""
        if len(operands) == 1:
            return operands[0]
        shape = operands[0].shape
        columns = np.stack([x.reshape(-1) for x in operands], 1)
        rows, inverse = np.unique(columns, axis=0, return_inverse=True)
        group = np.repeat(np.arange(len(rows)), rows.shape[1])
        return self.unions(group, rows.reshape(-1), len(rows))[inverse.reshape(-1)].reshape(shape)

    def along(self, ids, axes):
        """The unions along some axes, which the result lacks."""
        kept = [i for i in range(ids.ndim) if i not in axes]
        shape = tuple(ids.shape[i] for i in kept)
        count = int(np.prod(shape))
        rows = ids.transpose([*kept, *axes]).reshape(count, -1)
        group = np.repeat(np.arange(count), rows.shape[1])
        return self.unions(group, rows.reshape(-1), count).reshape(shape)
