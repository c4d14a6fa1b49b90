"""Trees of arrays as one vector."""

import math as _math

from weft import _core
from weft._arguments import strong as _strong
from weft._surface import open_to_users as _open_to_users, public as _public
from weft.dtypes import dtype_of as _dtype_of
from weft.errors import DTypeError as _DTypeError, ShapeError as _ShapeError
from weft.lax._shape import concatenate as _concatenate, reshape as _reshape
from weft.runtime.pytree import registry as _registry

__all__ = ["ravel_pytree"]
__getattr__, __dir__ = _public(__name__, __all__)


def ravel_pytree(pytree):
    """A tree of arrays and numbers as one vector, and the way back.

    Args:
      pytree: the tree.

    Returns:
      `(vector, unravel)`: the elements of all leaves in a row, of the dtype that the leaves promote
      to (float32 of none), and a function that makes such a tree from such a vector. Its leaves
      have the dtypes of those of `pytree`; only where all of these are the same it takes vectors of
      any dtype, which the leaves get then. It can be hashed and compared.

    Examples:
      >>> flat, unravel = weft.flatten_util.ravel_pytree({"a": wnp.ones((1, 2)), "b": 3.0})
      >>> flat
      Array([1., 1., 3.], dtype=float32)
      >>> unravel(2 * flat)["a"]
      Array([[2., 2.]], dtype=float32)
    """
    leaves, tree = _registry.flatten(pytree)
    shapes = tuple(_core.typeof(leaf)[0] for leaf in leaves)
    dtypes = tuple(_dtype_of(leaf) for leaf in leaves)
    if not leaves:
        nothing = _core.broadcast_to(_core.astype(0, "float32"), (0,))
        return nothing, _Unravel(tree, shapes, dtypes, None)
    promoted = _core.promote_dtypes(*leaves)
    common = _dtype_of(promoted[0])
    vector = _concatenate(
        [_reshape(leaf, (_math.prod(_core.typeof(leaf)[0]),)) for leaf in promoted], 0
    )
    if set(dtypes) == {common}:
        return vector, _Unravel(tree, shapes, dtypes, None)
    return _strong(vector), _Unravel(tree, shapes, dtypes, common)


class _Unravel:
    """The way back from a vector to a tree; `dtype` is that of the vector if it must be checked."""

    def __init__(self, tree, shapes, dtypes, dtype):
        self._key = tree, shapes, dtypes, dtype

    def __call__(self, vector):
        tree, shapes, dtypes, dtype = self._key
        if not shapes:
            return tree.unflatten(())
        vector = _core.asarray(vector)
        sizes = [_math.prod(shape) for shape in shapes]
        if vector.shape != (sum(sizes),):
            raise _ShapeError(
                f"[ravel_pytree] expected a vector of {sum(sizes)} elements; got shape "
                f"{vector.shape}"
            )
        if dtype is not None and vector.dtype != dtype:
            raise _DTypeError(
                f"[ravel_pytree] expected a vector of dtype {dtype}; got {vector.dtype}"
            )
        leaves, start = [], 0
        for shape, size, own in zip(shapes, sizes, dtypes, strict=True):
            leaf = _reshape(vector[start : start + size], shape)
            leaves.append(leaf if dtype is None else _core.astype(leaf, own))
            start += size
        return tree.unflatten(leaves)

    def __eq__(self, other):
        return isinstance(other, _Unravel) and self._key == other._key

    def __hash__(self):
        return hash(self._key)


_open_to_users(__name__)
