"""Types of arguments with symbolic dimensions."""

import functools

from weft._dims import SymbolicScope, symbolic_shape
from weft._types.avals import ShapeDtypeStruct, typeof
from weft.errors import AttributeValueError
from weft.tree_util import tree_map


def symbolic_args_specs(args, shapes_specs, constraints=(), scope=None):
    """ShapeDtypeStructs for arguments, with symbolic dimensions in their shapes.

    Args:
      args: a tree of arrays or ShapeDtypeStructs, of which structure, dtypes and the sizes that are
        placeholders are taken.
      shapes_specs: a text as for `symbolic_shape`, for all arguments; None for their own shapes; or
        a tree of these that is a prefix of `args`.
      constraints, scope: as for `symbolic_shape`.

    Raises ValueError for texts that `symbolic_shape` does not take.

    Examples:
      >>> weft.export.symbolic_args_specs((wnp.ones((2, 3)), wnp.ones(3)), ("b, ...", None))
      (ShapeDtypeStruct(shape=(b, 3), dtype=float32), ShapeDtypeStruct(shape=(3,), dtype=float32))
    """
    if scope is not None and constraints:
        raise AttributeValueError("Cannot specify both a `scope` and `constraints`.")
    scope = scope or SymbolicScope(constraints)

    def described(spec, arg):
        aval = arg if isinstance(arg, ShapeDtypeStruct) else typeof(arg)
        shape = symbolic_shape(spec, scope=scope, like=aval.shape)
        return ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type)

    return tree_map(
        lambda spec, part: tree_map(functools.partial(described, spec), part),
        shapes_specs,
        args,
        is_leaf=lambda x: x is None,
    )
