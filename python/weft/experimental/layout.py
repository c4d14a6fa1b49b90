"""How arrays lie in memory: with the last axis running fastest, always."""

from weft._sharding.layout import Format, Layout
from weft._surface import (
    named_after as _named_after,
    open_to_users as _open_to_users,
    public as _public,
)
from weft.errors import ArgumentTypeError
from weft.runtime.pytree import registry as _registry
from weft.tree_util import tree_broadcast as _tree_broadcast, tree_map as _tree_map

__all__ = ["Format", "Layout", "explicit_layout", "with_layout_constraint"]
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


def explicit_layout(f=None, /, *, in_layouts=None):
    """A function of arguments in layouts that are given, or a decorator; they have no effect.

    Args:
      f: a function of trees of arrays, which are passed by position.
      in_layouts: a Layout, or a tree of them that begins as the tuple of the arguments does. None
        to pass it with each call, by this name.

    Raises TypeError for a call without layouts, ValueError for a tree that does not fit and for a
    layout of another number of axes than the array has.

    Examples:
      >>> from weft.experimental.layout import Layout, explicit_layout
      >>> explicit_layout(wnp.sum, in_layouts=Layout((1, 0)))(wnp.ones((2, 3)))
      Array(6., dtype=float32)
    """
    if f is None:
        return lambda g: explicit_layout(g, in_layouts=in_layouts)

    @_named_after(f)
    def call(*args, **kwargs):
        layouts = kwargs.pop("in_layouts", None) if in_layouts is None else in_layouts
        if layouts is None:
            raise ArgumentTypeError("explicit_layout expected in_layouts; got none")
        leaves, _ = _registry.flatten(args)
        whole = _tree_broadcast(layouts, args, lambda x: isinstance(x, Layout))
        for leaf, layout in zip(leaves, _registry.flatten(whole)[0], strict=True):
            with_layout_constraint(leaf, layout)
        return f(*args, **kwargs)

    return call


def _constrained(x, layout):
    if sorted(layout.major_to_minor) != list(range(x.ndim)):
        raise ValueError(f"expected a layout of {x.ndim} axes; got {layout}")
    return x


_open_to_users(__name__)
