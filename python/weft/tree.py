"""Short names for the functions on pytrees; `weft.tree_util` documents them.

weft.tree.map(lambda x: 2 * x, {"w": w, "b": b})
"""

import dataclasses as _dataclasses

from weft._surface import public as _public
from weft.tree_util import (
    tree_all as all,
    tree_broadcast as broadcast,
    tree_flatten as flatten,
    tree_flatten_with_path as flatten_with_path,
    tree_leaves as leaves,
    tree_leaves_with_path as leaves_with_path,
    tree_map as map,
    tree_map_with_path as map_with_path,
    tree_reduce as reduce,
    tree_reduce_associative as reduce_associative,
    tree_structure as structure,
    tree_transpose as transpose,
    tree_unflatten as unflatten,
)

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
__getattr__, __dir__ = _public(__name__, __all__)


def static(*, metadata=None, **kwargs):
    """A dataclass field that `register_dataclass` makes part of the structure (not a child).

    Takes the arguments of `dataclasses.field`; `metadata` is a mapping to which the mark is added.

    Examples:
      >>> import dataclasses
      >>> @weft.tree_util.register_dataclass
      ... @dataclasses.dataclass
      ... class Layer:
      ...     weight: float
      ...     kind: str = weft.tree.static(default="dense")
      >>> weft.tree.leaves(Layer(1.5))
      [1.5]
    """
    return _dataclasses.field(metadata={**(metadata or {}), "static": True}, **kwargs)
