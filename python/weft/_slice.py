"""ds: slices of a fixed size whose start may be known only when the program runs."""

import dataclasses
import operator
from typing import Any

from weft.tree_util import register_pytree_node


@dataclasses.dataclass
class Slice:
    """`size` elements of an axis: start, start + stride, ...; what `weft.ds` makes, for indices.

    Reads of elements that are out of bounds move the slice into them, updates leave these out.
    Attributes: start (an integer, or an array without axes), size, stride (integers).
    """

    start: Any
    size: Any
    stride: int = 1

    is_dynamic_start = property(lambda self: not isinstance(self.start, int))
    is_dynamic_size = property(lambda self: not isinstance(self.size, int))

    def _flatten(self):
        parts = (self.start, self.size)
        static = tuple(part if isinstance(part, int) else None for part in parts)
        return [part for part in parts if not isinstance(part, int)], (static, self.stride)

    @classmethod
    def _unflatten(cls, data, leaves):
        static, stride = data
        rest = iter(leaves)
        start, size = (next(rest) if part is None else part for part in static)
        return cls(start, size, stride)


register_pytree_node(Slice, Slice._flatten, Slice._unflatten)


def ds(start, size=None, stride=None):
    """A slice of a fixed size, whose start may be an array: `x[weft.ds(i, 3)]` under `jit`.

    Args:
      start: the first index, an integer or an integer array without axes. Negative ones count from
        the end.
      size: how many elements.
      stride: the distance of two of them, an integer; 1 by default.

    `ds(n)` is the slice of the first n, `ds(None)` the one of all. A size that the axis does not
    have raises TypeError where the array is indexed.

    Examples:
      >>> weft.jit(lambda x, i: x[weft.ds(i, 2)])(wnp.arange(5), 3)
      Array([3, 4], dtype=int32)
    """
    if start is None:
        return slice(None)
    if size is None:
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else operator.index(stride))
