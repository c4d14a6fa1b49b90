"""How arrays lie in memory: with the last axis running fastest, always."""

from weft._sharding.layout import Format, Layout
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.tree_util import tree_map as _tree_map

__all__ = ["Format", "Layout", "with_layout_constraint"]
__getattr__, __dir__ = _public(__name__, __all__)


def with_layout_constraint(x, layouts):
    """`x`, an array or a tree of them; the layouts have no effect.

    Within a program XLA chooses them. `layouts` is a Layout, or a tree of them like `x`; ValueError
    for one of another number of axes.

    Examples:
      >>> from weft.experimental.layout import Layout, with_layout_constraint
      >>> with_layout_constraint(wnp.arange(3), Layout((0,)))
      Array([0, 1, 2], dtype=int32)
    """
    if isinstance(layouts, Layout):
        layouts = _tree_map(lambda _: layouts, x)
    return _tree_map(_constrained, x, layouts)


def _constrained(x, layout):
    if sorted(layout.major_to_minor) != list(range(x.ndim)):
        raise ValueError(f"expected a layout of {x.ndim} axes; got {layout}")
    return x


_open_to_users(__name__)
