"""Lowerings of primitives: rules that write StableHLO text, or functions of weft."""

from weft._surface import public as _public
from weft.extend.core import Primitive

__all__ = ["lower_fun", "register_lowering"]
__getattr__, __dir__ = _public(__name__, __all__)


class _Lowering:
    def __init__(self, fun, multiple_results):
        self.fun = fun
        self.multiple_results = multiple_results


def lower_fun(fun, multiple_results=True):
    """A lowering, for `register_lowering`, by a function fun(*args, **params) of arrays.

    `multiple_results` says whether `fun` returns a sequence of arrays, and not one.
    """
    return _Lowering(fun, multiple_results)


def register_lowering(primitive, rule, platform=None):
    """Sets how a primitive is lowered, on one platform or on those without a rule of their own.

    Args:
      primitive: a Primitive.
      rule: what `lower_fun` returned, or rule(ctx, *names, **params) that writes text, as
        `Primitive.def_stablehlo` takes it.
      platform: "cpu" or "cuda".

    Raises TypeError for what is no Primitive.
    """
    if not isinstance(primitive, Primitive):
        raise TypeError(f"register_lowering expected a Primitive; got {primitive!r}")
    if not isinstance(rule, _Lowering):
        primitive.def_stablehlo(rule, platform)
    elif rule.multiple_results == primitive.multiple_results:
        primitive.def_lowering(rule.fun, platform)
    else:
        # A function of one result where a list is wanted, or the other way round.
        fun, many = rule.fun, primitive.multiple_results
        primitive.def_lowering(
            lambda *args, **params: [fun(*args, **params)] if many else fun(*args, **params)[0],
            platform,
        )
    return rule
