"""How arrays lie in memory: with the last axis running fastest, always."""

from typing import NamedTuple

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.tree_util import tree_map as _tree_map

__all__ = ["Format", "Layout", "with_layout_constraint"]
__getattr__, __dir__ = _public(__name__, __all__)


class Layout(NamedTuple):
    """The order of an array's elements in memory.

    Attributes: major_to_minor (the axes, the slowest first), tiling (a tuple of tuples of ints),
    sub_byte_element_size_in_bits (0 for elements of whole bytes).
    """

    major_to_minor: tuple
    tiling: tuple | None = ()
    sub_byte_element_size_in_bits: int = 0

    def __repr__(self):
        return (
            f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
            f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})"
        )


class Format(NamedTuple):
    """The layout of an array, and the sharding that says where it is; None where unknown."""

    layout: Layout | None = None
    sharding: object = None

    def __repr__(self):
        return f"Format(layout={self.layout}, sharding={self.sharding})"


def with_layout_constraint(x, layouts):
    """`x`, an array or a tree of them; the layouts have no effect.

    Within a program XLA chooses them. `layouts` is a Layout, or a tree of them like `x`; ValueError
    for one of another number of axes.
    """
    if isinstance(layouts, Layout):
        layouts = _tree_map(lambda _: layouts, x)
    return _tree_map(_constrained, x, layouts)


def _constrained(x, layout):
    if sorted(layout.major_to_minor) != list(range(x.ndim)):
        raise ValueError(f"expected a layout of {x.ndim} axes; got {layout}")
    return x


_open_to_users(__name__)
