"""Ordering that the compiler respects, and values that it keeps."""

from weft import _core
from weft._arguments import weak_as
from weft.runtime.pytree import registry
from weft.tree_util import tree_map


def optimization_barrier(operand, /):
    """A tree of arrays, unchanged, across which the compiler moves no computation.

    All leaves are computed before any of the results is used. Derivatives and vectorised forms
    keep the barrier.

    Examples:
      >>> lax.optimization_barrier((wnp.arange(2), wnp.arange(3)))
      (Array([0, 1], dtype=int32), Array([0, 1, 2], dtype=int32))
    """
    leaves, tree = registry.flatten(operand)
    if not leaves:
        return operand
    staged = map(stage, leaves)  # on its own: a number beside arrays would take their dtype
    kept = _core.bind("optimization_barrier", *staged)
    return tree.unflatten([weak_as(x, leaf) for x, leaf in zip(kept, leaves, strict=True)])


def dce_sink(val, *, prevent_mlir_dce=False):
    """Uses the arrays of a tree, so that what makes them stays in the traced program.

    Args:
      val: tree of arrays.
      prevent_mlir_dce: has no effect: XLA may still drop them.

    Examples:
      >>> def f(x):
      ...     lax.dce_sink(wnp.sin(x))
      ...     return x
      >>> print(weft.make_jaxpr(f)(1.0))
      { lambda ; a:f32[]. let b:f32[] = sin a; dce_sink[] b in (a,) }
    """
    tree_map(
        lambda leaf: _core.bind("dce_sink", leaf, prevent_mlir_dce=bool(prevent_mlir_dce)), val
    )


def stage(x, /):
    """A number or array as a value of the program that is being traced; as an Array elsewhere.

    Examples:
      >>> print(weft.make_jaxpr(lambda: wnp.add(lax.stage(1), 2))())
      { lambda ; . let a:i32[] = copy 1:i32[]; b:i32[] = add a 2:i32[] in (b,) }
    """
    return _core.bind("copy", x)


def create_token(_=None):
    """A token: a value without elements, to stand for the order of effects.

    Effects that have to happen in order do so without tokens. The argument is ignored.

    Examples:
      >>> token = lax.create_token()
    """
    return _core.bind("create_token")


def after_all(*operands):
    """A token that comes after the given ones.

    Raises:
      OperandError: for arguments that are no tokens.

    Examples:
      >>> token = lax.after_all(lax.create_token(), lax.create_token())
    """
    return _core.bind("after_all", *operands)
