"""Arrays of which XLA chooses how they are split, but alike."""

from weft import _core
from weft._arguments import weak_as
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.errors import ShapeError, TreeStructureError
from weft.lax._barrier import stage as _stage
from weft.runtime.pytree import registry as _registry

__all__ = ["shard_alike"]
__getattr__, __dir__ = _public(__name__, __all__)


def shard_alike(x, y):
    """Both trees of arrays, unchanged; in a program, XLA splits each pair of leaves alike.

    That is a hint for axes of type `Auto`, and holds for derivatives and vectorised forms, too.

    Raises ValueError for trees of different structures and leaves of different shapes.

    Examples:
      >>> from weft.experimental.shard_alike import shard_alike
      >>> shard_alike(wnp.arange(2), wnp.ones(2))[0]
      Array([0, 1], dtype=int32)
    """
    (xs, tree), (ys, other) = _registry.flatten(x), _registry.flatten(y)
    if tree != other:
        raise TreeStructureError(
            f"shard_alike expected trees of one structure; got {tree}, {other}"
        )
    first, second = [], []
    for a, b in zip(xs, ys, strict=True):
        if _core.typeof(a)[0] != _core.typeof(b)[0]:
            raise ShapeError(
                "shard_alike expected leaves of one shape; got "
                f"{_core.typeof(a)[0]} and {_core.typeof(b)[0]}"
            )
        pair = _core.bind("shard_alike", _stage(a), _stage(b))
        for out, value, leaf in zip((first, second), pair, (a, b), strict=True):
            out.append(weak_as(value, leaf))
    return tree.unflatten(first), tree.unflatten(second)


_open_to_users(__name__)
