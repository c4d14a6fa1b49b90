"""Operations in the order in which a function has them."""

from weft._jit import jit
from weft._stages.options import complete as _complete
from weft._surface import (
    named_after as _named_after,
    open_to_users as _open_to_users,
    public as _public,
)
from weft.extend.core import Literal as _Literal
from weft.lax._barrier import optimization_barrier as _barrier
from weft.runtime.pytree import registry as _registry

__all__ = ["program_order"]
__getattr__, __dir__ = _public(__name__, __all__)


def program_order(f=None, *, enforce, strict_in_out=False, exclude_argnames=None):
    """A function whose operations begin one after the other, as it has them; or a decorator.

    Its values are those of `f`. Between two operations that follow each other there is an
    `lax.optimization_barrier`, on the results of the one and the operands of the other. A function
    under `jit` that it calls is one operation, and so is what has `enforce=False`.

    Args:
      f: the function.
      enforce: whether its own operations are ordered; False frees a part of an ordered one.
      strict_in_out: whether there are barriers on all arguments and on all results as well, or a
        pair of bools, one for each.
      exclude_argnames: a name or names of arguments for which an enclosing ordered function need
        not wait; it has no effect.

    Raises ValueError for `enforce` with `exclude_argnames`, for `strict_in_out` without `enforce`,
    and for a name that `f` has no argument of.

    Examples:
      >>> from weft.experimental.overlap import program_order
      >>> f = program_order(lambda x, y: (wnp.sin(x), wnp.cos(y)), enforce=True)
      >>> weft.jit(f)(0.0, 0.0)
      (Array(0., dtype=float32, weak_type=True), Array(1., dtype=float32, weak_type=True))
    """
    if enforce and exclude_argnames is not None:
        raise ValueError("program_order: expected enforce=False with exclude_argnames; got True")
    strict_in, strict_out = (
        (strict_in_out, strict_in_out) if isinstance(strict_in_out, bool) else strict_in_out
    )
    if not enforce and (strict_in or strict_out):
        raise ValueError("program_order: expected enforce=True with strict_in_out; got False")
    if f is None:
        return lambda g: program_order(
            g, enforce=enforce, strict_in_out=strict_in_out, exclude_argnames=exclude_argnames
        )
    if not enforce:
        return _free(f, exclude_argnames)

    @_named_after(f)
    def ordered(*args, **kwargs):
        traced = jit(f).trace(*args, **kwargs)
        leaves, _ = _registry.flatten((args, kwargs))
        if strict_in:
            leaves = _barrier(leaves)
        closed = traced.jaxpr
        results = _in_order(closed.jaxpr, [*closed.consts, *leaves])
        return traced.out_tree.unflatten(_barrier(results) if strict_out else results)

    return ordered


def _free(f, excluded):
    """A function that is one operation of an ordered one."""
    if excluded is not None:
        names = (excluded,) if isinstance(excluded, str) else tuple(excluded)
        _complete(f, None, names, "exclude")
    return jit(f)


def _in_order(jaxpr, args):
    """The results of a program, with a barrier before each operation."""
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], args, strict=True))
    earlier: list = []  # the variables that the operation before gave
    for eqn in jaxpr.eqns:
        operands = [v for v in dict.fromkeys(eqn.invars) if not isinstance(v, _Literal)]
        if earlier and operands:
            held = list(dict.fromkeys([*earlier, *operands]))
            known.update(zip(held, _barrier([known[v] for v in held]), strict=True))
        values = [v.val if isinstance(v, _Literal) else known[v] for v in eqn.invars]
        results = eqn.primitive.bind(*values, **eqn.params)
        results = results if eqn.primitive.multiple_results else [results]
        known.update(zip(eqn.outvars, results, strict=True))
        earlier = list(eqn.outvars) if operands else earlier
    return [v.val if isinstance(v, _Literal) else known[v] for v in jaxpr.outvars]


_open_to_users(__name__)
